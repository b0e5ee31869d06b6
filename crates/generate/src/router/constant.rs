//! When a constant-spacing packet generator sends which packet (RFC 2544 section 21; bursts: RFC 2285 section 3.4;
//! RFC 2889 section 5.1).

use std::time::Duration;

use swell_base::{Rate, Time};

/// Length of an Ethernet header in bytes, which counters and rates of cables include.
pub const LINK_HEADER: u32 = 14;
/// The smallest packet in bytes: headers of IPv4 and UDP, and a packet number of eight bytes.
pub const SMALLEST: u16 = 36;

/// Network-layer sizes of packets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All packets have the same size.
    One(u16),
    /// 61 % of 40 bytes, 17 % of 576, 22 % of 1500. The shares are exact in every hundred packets, and evenly spread.
    Trimodal,
}

/// Sizes of the mix, with the number of packets of each size per hundred.
const TRIMODAL: [(u16, i64); 3] = [(40, 61), (576, 17), (1500, 22)];

/// The traffic of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Sizes of packets.
    pub sizes: Sizes,
    /// Packets per burst, sent back to back at the rate `line`; 1 means even spacing.
    pub burst: u32,
    /// Number of sources that send the same pattern simultaneously, each over a line of its own.
    pub sources: u32,
    /// Rate of a source's line, link-layer headers included.
    pub line: Rate,
    /// Mean rate of all sources together, link-layer headers included.
    pub load: Rate,
}

/// Why a pattern cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is nothing to send.
    #[error("a pattern needs a burst, a source, a load and packets of at least {SMALLEST} bytes")]
    Empty,
    /// The load exceeds the rate of the lines.
    #[error("a load of {load} does not fit on {sources} lines of {line}")]
    Line {
        /// The requested load.
        load: Rate,
        /// Number of sources.
        sources: u32,
        /// Rate of each source's line.
        line: Rate,
    },
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// Time since the beginning.
    pub at: Time,
    /// Network-layer size in bytes.
    pub size: u16,
}

impl Pattern {
    /// All packets in order of time, without end.
    ///
    /// # Errors
    /// If the load is zero or exceeds the rate of the lines.
    pub fn emissions(&self) -> Result<Emissions, PatternError> {
        let small = matches!(self.sizes, Sizes::One(size) if size < SMALLEST);
        if small || self.burst == 0 || self.sources == 0 || self.load.bps() == 0 {
            return Err(PatternError::Empty);
        }
        if u128::from(self.load.bps()) > u128::from(self.line.bps()) * u128::from(self.sources) {
            return Err(PatternError::Line {
                load: self.load,
                sources: self.sources,
                line: self.line,
            });
        }
        Ok(Emissions {
            pattern: *self,
            mix: [0; 3],
            bursts: 0,
            packet: 0,
            source: 0,
            bits: 0,
            size: 0,
            before: Time::ZERO,
        })
    }

    /// Mean interval between rounds in which each source sends one packet.
    pub(super) fn wait(&self) -> Duration {
        let bits = self.hundred() * 8 * u64::from(self.sources) / 100;
        Duration::from_nanos(bits * 1_000_000_000 / self.load.bps().max(1))
    }

    /// Total size of a hundred packets in bytes, link-layer headers included.
    fn hundred(&self) -> u64 {
        let network: u64 = match self.sizes {
            Sizes::One(size) => 100 * u64::from(size),
            Sizes::Trimodal => TRIMODAL.iter().map(|t| u64::from(t.0) * t.1 as u64).sum(),
        };
        network + 100 * u64::from(LINK_HEADER)
    }
}

/// The packets of a [`Pattern`].
#[derive(Clone, Debug)]
pub struct Emissions {
    pattern: Pattern,
    /// How far each size of the mix is behind its share.
    mix: [i64; 3],
    /// Number of bursts before the current one.
    bursts: u64,
    /// Number of packets of the current burst that each source has sent.
    packet: u32,
    /// The source that sends next.
    source: u32,
    /// Bits of the current burst before this packet.
    bits: u64,
    /// Size of this packet.
    size: u16,
    /// When the previous packet left.
    before: Time,
}

impl Emissions {
    fn next_size(&mut self) -> u16 {
        let Sizes::One(size) = self.pattern.sizes else {
            // Smooth weighted round robin: choose the size that is furthest behind its share.
            let mut most = 0;
            for (i, (_, share)) in TRIMODAL.iter().enumerate() {
                self.mix[i] += share;
                if self.mix[i] > self.mix[most] {
                    most = i;
                }
            }
            self.mix[most] -= 100;
            return TRIMODAL[most].0;
        };
        size
    }
}

impl Iterator for Emissions {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let p = self.pattern;
        if self.source == 0 {
            self.size = self.next_size();
        }
        // Computed from the number of the burst, so that rounding errors do not accumulate.
        let bits = u128::from(self.bursts) * u128::from(p.burst) * u128::from(p.hundred()) * 8;
        let begin = bits * u128::from(p.sources) * 1_000_000_000 / (100 * u128::from(p.load.bps()));
        let within = u128::from(self.bits) * 1_000_000_000 / u128::from(p.line.bps());
        // A burst with more than its share of large packets takes slightly longer than its interval on the line.
        let at =
            Time::from_nanos(u64::try_from(begin + within).unwrap_or(u64::MAX)).max(self.before);
        self.before = at;
        let size = self.size;
        self.source += 1;
        if self.source == p.sources {
            self.source = 0;
            self.packet += 1;
            self.bits += 8 * (u64::from(size) + u64::from(LINK_HEADER));
            if self.packet == p.burst {
                (self.packet, self.bits) = (0, 0);
                self.bursts += 1;
            }
        }
        Some(Emission { at, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern() -> Pattern {
        Pattern {
            sizes: Sizes::One(1500),
            burst: 1,
            sources: 1,
            line: Rate::from_bps(100_000_000),
            load: Rate::from_bps(60_000_000),
        }
    }

    fn times(pattern: Pattern, n: usize) -> Vec<u64> {
        let emissions = pattern.emissions().unwrap().take(n);
        emissions.map(|e| e.at.as_nanos()).collect()
    }

    #[test]
    fn packets_are_spaced_evenly_and_the_load_does_not_drift() {
        // 1514 bytes at 60 Mbit/s take 201.866.. us.
        assert_eq!(pattern().wait(), Duration::from_nanos(201_866));
        assert_eq!(times(pattern(), 4), [0, 201_866, 403_733, 605_600]);
        // A million packets take 1514 x 8 x 10^6 / 60 000 000 s, exact to the nanosecond.
        let last = pattern().emissions().unwrap().nth(1_000_000).unwrap();
        assert_eq!(last.at.as_nanos(), 201_866_666_666);
    }

    #[test]
    fn bursts_leave_at_the_rate_of_the_line_and_keep_the_load() {
        let bursty = Pattern {
            burst: 3,
            ..pattern()
        };
        // A packet takes 121.12 us on the line; there is a burst every 605.6 us.
        assert_eq!(times(bursty, 5), [0, 121_120, 242_240, 605_600, 726_720]);
        let begins = [697u64, 930].map(|burst| {
            let p = Pattern {
                burst: burst as u32,
                ..pattern()
            };
            p.emissions()
                .unwrap()
                .nth(burst as usize * 1_000)
                .unwrap()
                .at
                .as_nanos()
        });
        let exact = [697u128, 930].map(|b| (b * 1_000 * 1_514 * 8 * 1_000 / 60) as u64);
        assert_eq!(begins, exact);
    }

    #[test]
    fn sources_send_together_and_share_the_load() {
        let two = Pattern {
            sources: 2,
            burst: 2,
            ..pattern()
        };
        // Each source has 30 Mbit/s: a burst of two every 807.466.. us.
        assert_eq!(times(two, 6), [0, 0, 121_120, 121_120, 807_466, 807_466]);
    }

    #[test]
    fn the_mix_is_exact_in_every_hundred_and_even_within() {
        let mixed = Pattern {
            sizes: Sizes::Trimodal,
            ..pattern()
        };
        let sizes: Vec<u16> = mixed
            .emissions()
            .unwrap()
            .map(|e| e.size)
            .take(1_000)
            .collect();
        for hundred in sizes.chunks(100) {
            let of = |size| hundred.iter().filter(|s| **s == size).count();
            assert_eq!([of(40), of(576), of(1500)], [61, 17, 22]);
        }
        for ten in sizes.windows(10) {
            let large = ten.iter().filter(|s| **s == 1500).count();
            assert!((2..=3).contains(&large), "{ten:?}");
        }
        // The spacing is that of the mean frame: 466.32 bytes at 60 Mbit/s.
        assert_eq!(times(mixed, 3), [0, 62_176, 124_352]);
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let too_much = Pattern {
            load: Rate::from_bps(100_000_001),
            ..pattern()
        };
        assert!(matches!(
            too_much.emissions(),
            Err(PatternError::Line { .. })
        ));
        for nothing in [
            Pattern {
                burst: 0,
                ..pattern()
            },
            Pattern {
                sources: 0,
                ..pattern()
            },
            Pattern {
                load: Rate::from_bps(0),
                ..pattern()
            },
            Pattern {
                sizes: Sizes::One(35),
                ..pattern()
            },
        ] {
            assert_eq!(nothing.emissions().unwrap_err(), PatternError::Empty);
        }
    }
}

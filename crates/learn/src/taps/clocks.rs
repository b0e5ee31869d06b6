//! How far the clocks of two taps are apart.
//!
//! A packet that goes outward passes the second tap later by the offset of the clocks plus the delay between the taps; one
//! that goes inward, by the offset less the delay. As in NTP (RFC 5905 section 8), the least delayed packets of both ways
//! tell both, if the way there takes as long as the way back. If it does not, half of the difference is taken for offset.
//! An offset that changes at a constant rate is that of a clock which runs too fast or too slow: the rate is found first.

/// The share of packets that may be delayed less than the least delayed ones: a few stamps may be wrong.
const ODD: f64 = 0.05;
/// Delays differ from the median by at most this, nanoseconds. More is another packet that looks the same.
const FAR: i64 = 2_000_000_000;
/// Pieces of the captures in which the offset is estimated, to see whether it changes, and packets each way that such an
/// estimate needs.
const PIECES: usize = 8;
const ENOUGH: usize = 20;
/// Number of pieces that tell a rate.
const LINE: usize = 3;
/// Clocks gain on each other by at most this, parts per billion: the tolerance of NTP (RFC 5905 section 7.2).
const MOST_SKEW: f64 = 500_000.0;
/// What the clocks of usual computers may gain on each other, parts per billion.
const USUAL_SKEW: f64 = 100_000.0;

/// A packet at both taps. Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lag {
    /// When the first tap saw it.
    pub(super) at: i64,
    /// How much later the second tap saw it, by its own clock.
    pub(super) lag: i64,
    /// Whether it went outward, from the first tap to the second.
    pub(super) out: bool,
}

/// The clocks of two taps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// How far the second tap's clock is ahead of the first one's in the middle of the captures, nanoseconds.
    pub offset: i64,
    /// One-way delay between the taps, nanoseconds; `None` if packets of one direction only, or none, were recognised.
    pub lag: Option<i64>,
    /// How far the offset changes during the captures, nanoseconds; `None` if too few packets tell.
    pub drift: Option<i64>,
    /// How much the second tap's clock gains on the first one's, parts per billion; zero if no constant rate explains
    /// most of the drift.
    pub skew: i64,
    /// How far the offset changes apart from this rate, nanoseconds; `None` if too few packets tell.
    pub wander: Option<i64>,
    /// Number of packets that were recognised at both taps.
    pub packets: u64,
    /// The middle of the captures by the first tap's clock, nanoseconds.
    middle: i64,
    /// Time between the first and the last packet that was recognised, nanoseconds.
    length: i64,
}

/// The least lag of outward packets and the largest of others, without odd ones.
fn ends(lags: &[Lag]) -> [Option<i64>; 2] {
    [true, false].map(|out| {
        let mut own: Vec<i64> = (lags.iter())
            .filter(|l| l.out == out)
            .map(|l| l.lag)
            .collect();
        own.sort_unstable();
        let odd = (own.len() as f64 * ODD) as usize;
        let place = match out {
            true => odd,
            false => own.len().checked_sub(1 + odd)?,
        };
        own.get(place).copied()
    })
}

impl Clocks {
    /// From the packets that were recognised; if there are none, from how much later each flow began at the second tap.
    pub(super) fn of(lags: &[Lag], mut begun: Vec<i64>) -> Clocks {
        let mut all: Vec<i64> = lags.iter().map(|l| l.lag).collect();
        let middle = |of: &mut Vec<i64>| {
            of.sort_unstable();
            of.get(of.len() / 2).copied().unwrap_or(0)
        };
        if all.is_empty() {
            return Clocks {
                offset: middle(&mut begun),
                ..Clocks::default()
            };
        }
        let median = middle(&mut all);
        let near = |l: &&Lag| l.lag.abs_diff(median) <= FAR.unsigned_abs();
        let mut lags: Vec<Lag> = lags.iter().filter(near).copied().collect();
        let first = lags.iter().map(|l| l.at).min().unwrap_or(0);
        let last = lags.iter().map(|l| l.at).max().unwrap_or(0);
        let centre = first.midpoint(last);
        let offsets = offsets(&mut lags);
        let drift = range(&offsets);
        let (mut skew, mut wander) = (0, drift);
        if let Some(found) = slope(&offsets) {
            let level = |&(at, offset): &(i64, i64)| (at, offset - gained(found, at - centre));
            let levelled = range(&offsets.iter().map(level).collect::<Vec<_>>());
            // Queues make the offsets uneven, too. What lies on a line is a rate.
            if levelled < drift.map(|drift| drift / 2) {
                (skew, wander) = (found, levelled);
                for l in &mut lags {
                    l.lag -= gained(skew, l.at - centre);
                }
            }
        }
        let (offset, lag) = match ends(&lags) {
            [Some(out), Some(back)] => (out.midpoint(back), Some((out - back) / 2)),
            [Some(one), None] | [None, Some(one)] => (one, None),
            [None, None] => (median, None),
        };
        Clocks {
            offset,
            lag,
            drift,
            skew,
            wander,
            packets: lags.len() as u64,
            middle: centre,
            length: last.saturating_sub(first),
        }
    }

    /// A time of the second tap by the first tap's clock, both in nanoseconds.
    pub fn by_first(&self, time: i64) -> i64 {
        let own = time.saturating_sub(self.offset);
        let since = own.saturating_sub(self.middle);
        let gained = since as f64 * (1.0 - 1.0 / (1.0 + self.skew as f64 / 1e9));
        own.saturating_sub(gained as i64)
    }

    /// How much too small `lag` may be because the offset changes, nanoseconds. It is half of the change, of which a piece
    /// that a step divides shows half.
    pub(super) fn doubt(&self) -> i64 {
        let usual = || (self.length as f64 * USUAL_SKEW / 2e9) as i64;
        self.wander.unwrap_or_else(usual)
    }
}

/// What a clock gains in so many nanoseconds, nanoseconds; `skew` in parts per billion.
fn gained(skew: i64, time: i64) -> i64 {
    (skew as f64 * time as f64 / 1e9) as i64
}

/// The offset in pieces of the captures that tell it: the middle of each and the offset, nanoseconds.
fn offsets(lags: &mut [Lag]) -> Vec<(i64, i64)> {
    lags.sort_by_key(|l| l.at);
    let [first, .., last] = lags else {
        return Vec::new();
    };
    let first = first.at;
    let width = (last.at.saturating_sub(first) / PIECES as i64).max(1);
    let pieces = lags.chunk_by(|a, b| (a.at - first) / width == (b.at - first) / width);
    let told = pieces.filter_map(|piece| {
        let forth = piece.iter().filter(|l| l.out).count();
        let enough = forth.min(piece.len() - forth) >= ENOUGH;
        match (ends(piece), piece) {
            ([Some(out), Some(back)], [a, .., b]) if enough => {
                Some((a.at.midpoint(b.at), out.midpoint(back)))
            }
            _ => None,
        }
    });
    told.collect()
}

/// The range of the offset over pieces of the captures; `None` if there are not two.
fn range(offsets: &[(i64, i64)]) -> Option<i64> {
    let all = || offsets.iter().map(|o| o.1);
    let (least, most) = (all().min()?, all().max()?);
    (offsets.len() > 1).then(|| most - least)
}

/// The rate at which the offset changes, parts per billion: the median of those between any two pieces.
fn slope(offsets: &[(i64, i64)]) -> Option<i64> {
    let mut rates = Vec::new();
    for (i, a) in offsets.iter().enumerate() {
        for b in &offsets[i + 1..] {
            rates.push((b.1 - a.1) as f64 * 1e9 / (b.0 - a.0).max(1) as f64);
        }
    }
    rates.sort_by(f64::total_cmp);
    let rate = *rates.get(rates.len() / 2)?;
    (offsets.len() >= LINE && rate.abs() <= MOST_SKEW).then_some(rate.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Packets over 80 s whose delay is 5 ms and a queue of up to 20 ms, by a clock that is ahead.
    fn lags(offset: impl Fn(i64) -> i64) -> Vec<Lag> {
        let mut rng = swell_base::Stream::new(1, "lags");
        (0..4000)
            .map(|i| {
                let at = i * 20 * MS;
                let out = i % 3 != 0;
                let queue = (rng.uniform() * rng.uniform() * 20e6) as i64;
                let delay = 5 * MS + queue;
                let lag = offset(at) + if out { delay } else { -delay };
                Lag { at, lag, out }
            })
            .collect()
    }

    #[test]
    fn offset_and_delay_are_told_apart() {
        let day = 86_400_000 * MS;
        let found = Clocks::of(&lags(|_| day), Vec::new());
        assert!((found.offset - day).abs() < MS / 5, "{found:?}");
        let lag = found.lag.unwrap();
        assert!((5 * MS..6 * MS).contains(&lag), "{found:?}");
        assert!(found.drift.unwrap() < MS / 2, "{found:?}");
        assert_eq!(found.packets, 4000);
    }

    #[test]
    fn a_clock_that_drifts_is_told() {
        // 100 ppm over 70 s, from the middle of the first piece to the middle of the last one.
        let found = Clocks::of(&lags(|at| at / 10_000), Vec::new());
        let drift = found.drift.unwrap();
        assert!((6 * MS..8 * MS).contains(&drift), "{found:?}");
    }

    #[test]
    fn the_rate_of_a_clock_is_taken_off() {
        // 20 ppm are 1.6 ms in 80 s, 300 ppm are 24 ms.
        for ppm in [-300, -20, 20, 300] {
            let found = Clocks::of(&lags(|at| 7 * MS + at * ppm / 1_000_000), Vec::new());
            assert!((found.skew - 1000 * ppm).abs() < 3000, "{found:?}");
            assert!((5 * MS..6 * MS).contains(&found.lag.unwrap()), "{found:?}");
            assert!(found.wander.unwrap() < MS / 2, "{found:?}");
            for at in [0, 40_000 * MS, 80_000 * MS] {
                let there = at + 7 * MS + at * ppm / 1_000_000;
                assert!((found.by_first(there) - at).abs() < MS / 2, "{found:?}");
            }
        }
    }

    /// A clock that is set while the taps record has no rate that explains it.
    #[test]
    fn a_step_is_no_rate() {
        let found = Clocks::of(
            &lags(|at| if at < 9000 * MS { 0 } else { 30 * MS }),
            Vec::new(),
        );
        assert_eq!((found.skew, found.wander), (0, found.drift));
        assert!(found.lag.unwrap() + found.doubt() >= 5 * MS, "{found:?}");
    }

    #[test]
    fn odd_packets_do_not_decide() {
        let mut all = lags(|_| 0);
        for l in all.iter_mut().step_by(50) {
            l.lag += if l.out { -MS * 900 } else { MS * 900 };
        }
        all[7].lag = 1 << 60;
        let found = Clocks::of(&all, Vec::new());
        assert!(found.offset.abs() < MS, "{found:?}");
    }

    #[test]
    fn without_recognised_packets_the_beginnings_of_flows_tell() {
        let found = Clocks::of(&[], vec![3 * MS, -MS, 2 * MS]);
        assert_eq!((found.offset, found.lag, found.packets), (2 * MS, None, 0));
        assert_eq!(Clocks::of(&[], Vec::new()), Clocks::default());
        let out: Vec<Lag> = lags(|_| 0).into_iter().filter(|l| l.out).collect();
        let one = Clocks::of(&out, Vec::new());
        assert!(one.lag.is_none() && one.offset >= 5 * MS, "{one:?}");
    }
}

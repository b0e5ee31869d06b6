//! How far the clocks of two taps are apart.
//!
//! A packet that goes outward passes the second tap later by the offset of the clocks plus the delay between the taps; one
//! that goes inward, by the offset less the delay. As in NTP (RFC 5905 section 8), the least delayed packets of both ways
//! tell both, if the way there takes as long as the way back. If it does not, half of the difference is taken for offset.

/// The share of packets that may be delayed less than the least delayed ones: a few stamps may be wrong.
const ODD: f64 = 0.05;
/// Delays differ from the median by at most this, nanoseconds. More is another packet that looks the same.
const FAR: i64 = 2_000_000_000;
/// Pieces of the captures in which the offset is estimated, to see whether it changes, and packets each way that such an
/// estimate needs.
const PIECES: usize = 8;
const ENOUGH: usize = 20;

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
    /// How far the second tap's clock is ahead of the first one's, nanoseconds.
    pub offset: i64,
    /// One-way delay between the taps, nanoseconds; `None` if packets of one direction only, or none, were recognised.
    pub lag: Option<i64>,
    /// How far the offset changes during the captures, nanoseconds; `None` if too few packets tell.
    pub drift: Option<i64>,
    /// Number of packets that were recognised at both taps.
    pub packets: u64,
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
        let lags: Vec<Lag> = lags.iter().filter(near).copied().collect();
        let (offset, lag) = match ends(&lags) {
            [Some(out), Some(back)] => (out.midpoint(back), Some((out - back) / 2)),
            [Some(one), None] | [None, Some(one)] => (one, None),
            [None, None] => (median, None),
        };
        Clocks {
            offset,
            lag,
            drift: drift(lags.clone()),
            packets: lags.len() as u64,
        }
    }
}

/// The range of the offset over pieces of the captures.
fn drift(mut lags: Vec<Lag>) -> Option<i64> {
    lags.sort_by_key(|l| l.at);
    let (first, last) = (lags.first()?.at, lags.last()?.at);
    let width = (last.saturating_sub(first) / PIECES as i64).max(1);
    let pieces = lags.chunk_by(|a, b| (a.at - first) / width == (b.at - first) / width);
    let offsets = pieces.filter_map(|piece| {
        let forth = piece.iter().filter(|l| l.out).count();
        let enough = forth.min(piece.len() - forth) >= ENOUGH;
        match ends(piece) {
            [Some(out), Some(back)] if enough => Some(out.midpoint(back)),
            _ => None,
        }
    });
    let offsets: Vec<i64> = offsets.collect();
    let (least, most) = (offsets.iter().min()?, offsets.iter().max()?);
    (offsets.len() > 1).then(|| most - least)
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

//! Exponential gaps in whole nanoseconds, mostly without a full logarithm.

use crate::{Dur, Stream};

/// Number of intervals of [1, 2) in the table. With five terms of the series, the error of the logarithm is below
/// 2^-44. The other errors (table, additions) are small in comparison.
const STEPS: usize = 64;
/// Bound on the relative error, far above the true error of either computation, relative to the mean gap.
const DOUBT: f64 = 1.0 / (1u64 << 40) as f64;

/// 2^52.
const WHOLE: f64 = (1u64 << 52) as f64;

/// Reciprocal and logarithm of the midpoint of each interval.
static MIDDLES: [(f64, f64); STEPS] = middles();

const fn middles() -> [(f64, f64); STEPS] {
    let mut table = [(0.0, 0.0); STEPS];
    let mut i = 0;
    while i < STEPS {
        let middle = 1.0 + (i as f64 + 0.5) / STEPS as f64;
        table[i] = (1.0 / middle, logarithm(middle));
        i += 1;
    }
    table
}

/// ln x = 2 artanh((x - 1) / (x + 1)) by its series, for x in [1, 2).
const fn logarithm(x: f64) -> f64 {
    let t = (x - 1.0) / (x + 1.0);
    let (mut power, mut sum, mut k) = (t, 0.0, 1.0);
    while k < 60.0 {
        sum += power / k;
        power *= t * t;
        k += 2.0;
    }
    2.0 * sum
}

/// The same result as `Dur::from_secs_f64(-mean * libm::log(share / 2^53))`, for `share` in 1..=2^53.
#[inline]
pub(super) fn gap(mean: f64, share: u64) -> Dur {
    match short(mean, share) {
        Some(gap) => gap,
        None => exactly(mean, share),
    }
}

/// A faster computation. `None` if its error could change the rounded nanosecond.
#[inline(always)]
fn short(mean: f64, share: u64) -> Option<Dur> {
    // Converting from a signed number takes a single instruction.
    let bits = (share as i64 as f64).to_bits();
    let exponent = (bits >> 52) as i32 - (1023 + 53);
    let mantissa = f64::from_bits(bits << 12 >> 12 | 1023 << 52);
    let (reciprocal, logarithm) = MIDDLES[(bits >> 46) as usize % STEPS];
    let r = mantissa * reciprocal - 1.0;
    // ln(1 + r), with the terms in pairs.
    let square = r * r;
    let series = (r - 0.5 * square) + square * r * ((1.0 / 3.0 - 0.25 * r) + 0.2 * square);
    let scale = mean * 1e9;
    let nanos = -scale * (f64::from(exponent) * std::f64::consts::LN_2 + (logarithm + series));
    // Between 2^52 and 2^53 neighbouring floats differ by one. So the addition rounds, and leaves the result in the
    // low bits.
    let least = (nanos - scale * DOUBT + WHOLE).to_bits();
    let most = (nanos + scale * DOUBT + WHOLE).to_bits();
    let sure = least == most && most >> 52 == WHOLE.to_bits() >> 52;
    sure.then(|| Dur::from_nanos(most << 12 >> 12))
}

#[cold]
#[inline(never)]
fn exactly(mean: f64, share: u64) -> Dur {
    Dur::from_secs_f64(-mean * libm::log(share as f64 / (1u64 << 53) as f64))
}

impl Stream {
    /// As [`Stream::exponential`] with a mean in seconds, to the nearest nanosecond.
    #[inline]
    pub fn gap(&mut self, mean: f64) -> Dur {
        gap(mean, (1 << 53) - (self.bits() >> 11))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_leads_to_the_same_nanosecond() {
        let mut s = Stream::new(3, "gap");
        for mean in [0.01, 1e-6, 1e-9, 0.0, 3.7, 86_400.0, 1e12, f64::INFINITY] {
            let edges = (0..200).flat_map(|i| [1 + i, (1 << 53) - i]);
            let draws = (0..100_000).map(|_| (1 << 53) - (s.bits() >> 11));
            // Includes values near the edges of the table's intervals, in every octave.
            let near = (0..53 * STEPS as u64).flat_map(|i| {
                let share = (STEPS as u64 + i % STEPS as u64) << 47 >> (i / STEPS as u64);
                [share.max(2) - 1, share.max(1), share + 1]
            });
            for share in edges.chain(draws).chain(near.map(|n| n.min(1 << 53))) {
                assert_eq!(gap(mean, share), exactly(mean, share), "{mean} {share}");
            }
        }
    }

    #[test]
    fn a_gap_is_what_an_exponential_number_is_in_nanoseconds() {
        let (mut a, mut b) = (Stream::new(4, "gap"), Stream::new(4, "gap"));
        let mut longest = Dur::ZERO;
        for _ in 0..10_000 {
            let gap = a.gap(0.01);
            assert_eq!(gap, Dur::from_secs_f64(b.exponential(0.01)));
            longest = longest.max(gap);
        }
        // The maximum is expected at the mean plus eight means. Less than five means would indicate a truncated tail.
        assert!(longest > Dur::from_millis(50), "{longest}");
    }

    /// How often the slow path is needed does not change results, but affects speed.
    #[test]
    fn doubt_is_rare() {
        let mut s = Stream::new(6, "gap");
        let doubted = (0..10_000).filter(|_| short(0.01, (1 << 53) - (s.bits() >> 11)).is_none());
        // Each with a probability of twice the bound, 2e7 ns / 2^40 of a nanosecond: 0.2 are expected.
        assert!(doubted.count() < 10);
    }
}

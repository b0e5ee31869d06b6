//! Named random streams and their samplers.

mod gap;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Dur, Time};

/// A random stream with a name. Equal (seed, name) gives equal numbers on every machine, in every version that keeps
/// the golden values in this file's tests. Different names give independent streams. The generator is xoshiro256++
/// (Blackman & Vigna 2019), seeded through SplitMix64 from an FNV-1a hash of the name. Logarithms come from `libm`,
/// not from the platform.
#[derive(Clone, Debug)]
pub struct Stream {
    rng: Xoshiro256PlusPlus,
}

/// The seed of member `index` of a family under `seed`; for index 0, the seed itself. The mapping is not linear, so
/// that the members of one seed do not coincide with those of another.
pub fn derived(seed: u64, index: u64) -> u64 {
    if index == 0 {
        return seed;
    }
    let a = mixed(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
    mixed(a ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

/// Uniform in [0, `most`): the value that member `who` of a family under `seed` draws for the instant `at`. The same
/// arguments always give the same value, so no state is kept between instants.
#[inline]
pub fn drawn_at(seed: u64, who: u64, at: Time, most: Dur) -> Dur {
    let z = seed
        .wrapping_add(who.wrapping_mul(0xd1b5_4a32_d192_ed03))
        .wrapping_add(at.as_nanos().wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let product = u128::from(mixed(z)) * u128::from(most.as_nanos());
    Dur::from_nanos((product >> 64) as u64)
}

/// A hash that spreads nearby numbers: the finaliser of SplitMix64 (Steele, Lea & Flood 2014).
#[inline]
pub fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream `name` under `seed`.
    pub fn new(seed: u64, name: &str) -> Stream {
        // FNV-1a, 64 bit: offset basis and prime from the authors' page (Fowler, Noll, Vo).
        let mut h: u64 = 0xcbf2_9ce4_8422_2325;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // One SplitMix64 step decorrelates neighbouring seeds before they are combined with the name.
        let z = mixed(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        Stream {
            rng: Xoshiro256PlusPlus::seed_from_u64(z ^ h),
        }
    }

    /// Stream `name` of member `index` of a family under `seed`.
    pub fn indexed(seed: u64, name: &str, index: u64) -> Stream {
        Stream::new(derived(seed, index), name)
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..n, without bias (Lemire 2019). Zero for `n` = 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let mut m = u128::from(self.bits()) * u128::from(n);
        if (m as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (m as u64) < threshold {
                m = u128::from(self.bits()) * u128::from(n);
            }
        }
        (m >> 64) as u64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponential with the given mean, by inversion.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Shuffles `items` (Fisher & Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values() {
        let mut s = Stream::new(1, "golden");
        let got: Vec<u64> = (0..3).map(|_| s.bits()).collect();
        assert_eq!(
            got, GOLDEN,
            "the generator or its seeding changed: every result changes"
        );
    }
    const GOLDEN: [u64; 3] = [
        5145906716308451772,
        3401285051955368420,
        3386872168781002511,
    ];

    #[test]
    fn draws_for_instants_are_uniform_and_have_nothing_to_do_with_each_other() {
        let most = Dur::from_micros(1200);
        // Instants as regular as the departures from a saturated link.
        let drawn = |seed, who| {
            let at = |i| Time::ZERO + Dur::from_micros(1200) * i;
            (0..20_000).map(move |i| drawn_at(seed, who, at(i), most).as_nanos())
        };
        for (seed, who) in [(0, 0), (1, 0), (1, 1), (9, 77 << 33)] {
            let mut bins = [0i64; 20];
            drawn(seed, who).for_each(|d| bins[(d / 60_000) as usize] += 1);
            let squares: i64 = bins.iter().map(|n| (n - 1000).pow(2)).sum();
            // 19 degrees of freedom: 43.8 is the 99.9 % quantile.
            assert!((squares as f64) < 1000.0 * 43.8, "{bins:?}");
        }
        let mean = 600_000.0;
        let together = |a: (u64, u64), b: (u64, u64), lag: usize| {
            let pairs = drawn(a.0, a.1).zip(drawn(b.0, b.1).skip(lag));
            let products = pairs.map(|(x, y)| (x as f64 - mean) * (y as f64 - mean));
            products.sum::<f64>() / 20_000.0 / (mean * mean / 3.0)
        };
        for r in [
            together((1, 2), (1, 2), 1),
            together((1, 2), (1, 3), 0),
            together((1, 2), (2, 2), 0),
        ] {
            assert!(r.abs() < 0.03, "correlation {r}");
        }
        assert_eq!(drawn_at(1, 2, Time::ZERO, Dur::ZERO), Dur::ZERO);
    }

    #[test]
    fn names_and_seeds_separate_streams() {
        let first = |mut s: Stream| s.bits();
        let a = first(Stream::new(1, "a"));
        assert_ne!(a, first(Stream::new(1, "b")));
        assert_ne!(a, first(Stream::new(2, "a")));
        assert_ne!(
            first(Stream::indexed(1, "a", 1)),
            first(Stream::indexed(1, "a", 2))
        );
        assert_eq!(a, first(Stream::indexed(1, "a", 0)));
    }

    #[test]
    fn members_of_families_under_different_seeds_are_all_different() {
        let mut first = std::collections::BTreeSet::new();
        for seed in 1..=20 {
            for index in 0..500 {
                first.insert(Stream::indexed(seed, "a", index).bits());
            }
        }
        assert_eq!(first.len(), 20 * 500);
    }

    #[test]
    fn moments() {
        let mut s = Stream::new(7, "moments");
        let n = 200_000;
        let mean = (0..n).map(|_| s.exponential(2.0)).sum::<f64>() / f64::from(n);
        // Standard error of the mean is 2/sqrt(n) = 0.0045.
        assert!((mean - 2.0).abs() < 0.02, "{mean}");
        let mut counts = [0u32; 7];
        for _ in 0..n {
            counts[s.below(7) as usize] += 1;
        }
        let expected = f64::from(n) / 7.0;
        let chi2: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - expected).powi(2) / expected)
            .sum();
        assert!(
            chi2 < 22.5,
            "chi-square with 6 degrees of freedom, p = 0.001: {chi2}"
        );
    }
}

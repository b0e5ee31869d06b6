//! The parameters of the protection, and its random numbers.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// Parameters of the protection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Private {
    /// Bound on the effect of one session: a factor of `exp(epsilon)` on the probability of any model.
    pub epsilon: f64,
    /// The seed of the noise, a key of ChaCha20. Draw all 256 bits from the system's entropy and discard
    /// them: anyone who knows them can remove the noise.
    pub seed: [u8; 32],
}

/// What random numbers are for. Each purpose has its own sequence under a seed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Noise,
    Model,
}

/// Random numbers that cannot be predicted without the seed.
#[derive(Debug)]
pub(super) struct Secret(ChaCha20Rng);

impl Secret {
    pub(super) fn new(seed: [u8; 32], purpose: Purpose) -> Secret {
        let mut rng = ChaCha20Rng::from_seed(seed);
        rng.set_stream(purpose as u64);
        Secret(rng)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// In (0, 1].
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A geometric variate: `P(n)` in proportion to `exp(-n / scale)`, `n >= 0`.
    pub(super) fn geometric(&mut self, scale: f64) -> i64 {
        (-self.uniform().ln() * scale) as i64
    }

    /// A variate of the two-sided geometric law: `P(n)` in proportion to `exp(-|n| / scale)`.
    pub(super) fn noise(&mut self, scale: f64) -> i64 {
        self.geometric(scale) - self.geometric(scale)
    }
}

//! Models that hide whether any one session was in the trace: differential privacy (C. Dwork, F. McSherry,
//! K. Nissim, A. Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006).
//!
//! *The guarantee.* Take two traces that differ in one session, a user's visit in one application class.
//! All packets of the session, whatever they are, are in one trace and not in the other. Any model file is
//! at most `exp(epsilon)` times as likely to result from one trace as from the other. A user with `n`
//! sessions in the trace has a guarantee of `n * epsilon`. Some properties are public and not protected:
//! start and end of the trace, whether it holds packets twice, the time-outs, the list of classes, the networks inside, the resolution of
//! the clock.
//!
//! *The mechanism.* Only [`Counts`] leave the trace: histograms of session properties, with bins that do
//! not depend on the trace. A session adds to each histogram at most [`Histogram::share`]; of a session
//! with many connections four are used. It is measured by its own packets alone, so it shares no RTT with
//! other sessions of its hosts. Every cell, even an empty one, gets noise of the two-sided geometric law
//! (A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC
//! 2009). All counts are integers, so that no rounding of floating-point numbers leaks information.
//! Uniform numbers have 53 bits: a cell's noise ends at 37 times its scale, which 1 in 10^16 cells would
//! exceed. They come from ChaCha20 (RFC 8439) with a key of 256 bits, which is secret and not kept. So the
//! guarantee holds against anyone who cannot break that cipher. It does not cover what else an attacker
//! may see of the computation: its duration, or the memory of the process. The model is made of the noisy
//! counts and nothing else.
//!
//! *The cost.* Only cells that noise alone does not reach are used: of sizes and pauses that many
//! connections share, within a factor of four, and of RTTs within a factor of two. Everything rarer is
//! lost, with its bytes; where no cell is left, an ordinary value stands for the quantity, and a warning of
//! the model says so. Also lost are dependencies between quantities, except between requests and responses;
//! load changes faster than a tenth of the trace; losses, windows and segment sizes. [`Cost`] says how far
//! the model is from the original.

mod cost;
mod counts;
mod synthesis;
mod totals;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use swell_traffic::Model;

pub use cost::Cost;
pub use counts::Counts;
#[cfg(test)]
use counts::Histogram;

/// Parameters of the protection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Private {
    /// Bound on the effect of one session: a factor of `exp(epsilon)` on the probability of any model.
    pub epsilon: f64,
    /// The seed of the noise, a key of ChaCha20. Draw all 256 bits from the system's entropy and discard
    /// them: anyone who knows them can remove the noise.
    pub seed: [u8; 32],
}

/// Releases the part of `learnt` that `private` allows. `learnt` must come from a learner with
/// [`Options::apart`](crate::Options::apart) set: only then is each session measured by itself.
pub fn release(learnt: &Model, private: &Private) -> Model {
    let counts = Counts::of(learnt).noisy(private);
    synthesis::model(&counts, learnt, private)
}

/// What random numbers are for. Each purpose has its own sequence under a seed.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Noise,
    Model,
}

/// Random numbers that cannot be predicted without the seed.
#[derive(Debug)]
struct Secret(ChaCha20Rng);

impl Secret {
    fn new(seed: [u8; 32], purpose: Purpose) -> Secret {
        let mut rng = ChaCha20Rng::from_seed(seed);
        rng.set_stream(purpose as u64);
        Secret(rng)
    }

    fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// In (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A geometric variate: `P(n)` in proportion to `exp(-n / scale)`, `n >= 0`.
    fn geometric(&mut self, scale: f64) -> i64 {
        (-self.uniform().ln() * scale) as i64
    }

    /// A variate of the two-sided geometric law: `P(n)` in proportion to `exp(-|n| / scale)`.
    fn noise(&mut self, scale: f64) -> i64 {
        self.geometric(scale) - self.geometric(scale)
    }
}

#[cfg(test)]
mod tests;

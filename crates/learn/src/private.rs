//! Models that hide whether any one session was in the trace: differential privacy (C. Dwork, F. McSherry, K. Nissim,
//! A. Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006).
//!
//! *What is promised.* Take two traces that differ in one session, a user's visit in one application class: all
//! packets of it, whatever they are, are in one and not in the other. Any model file is at most
//! `exp(epsilon)` times as likely to come of the one as of the other. A user with `n` sessions in the trace
//! is protected `n * epsilon`. Known to everybody, and not protected: when the trace began and ended, the
//! time-outs, the list of classes, which networks are inside, the resolution of its clock.
//!
//! *How.* Nothing leaves the trace but [`Counts`]: histograms of what sessions are like, with bins that do not
//! depend on the trace. A session adds to each histogram at most [`Histogram::share`] (of one with many
//! connections four are looked at), and is measured by its own packets alone: no round trip is shared with
//! other sessions of its hosts. Every cell, empty ones too, gets noise of the two-sided geometric law (A. Ghosh,
//! T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009), integers
//! throughout, so that no rounding of floating-point numbers betrays anything. Uniform numbers have 53
//! bits: a cell's noise ends at 37 times its scale, which 1 in 10^16 cells would exceed. The seed of the noise
//! is secret and not kept. The model is made of the noisy counts, and of nothing else.
//!
//! *What it costs.* Sizes within a factor of four, pauses within one of four, round trips within one of two; what
//! depends on what, but for requests and responses; the courses of loads below a tenth of the trace; losses,
//! windows, segment sizes; and whatever is rare. [`Cost`] says how far the model is from what it hides.

mod cost;
mod counts;
mod synthesis;

use swell_base::Stream;
use swell_traffic::Model;

pub use cost::Cost;
pub use counts::Counts;
#[cfg(test)]
use counts::Histogram;

/// How a model is to be protected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Private {
    /// What one session can change: a factor of `exp(epsilon)` on the probability of any model.
    pub epsilon: f64,
    /// The seed of the noise, 128 bits. Drawn from the system's entropy and thrown away: anyone who knows it can take
    /// the noise off.
    pub seed: [u64; 2],
}

/// The model that says of `learnt` what `private` allows. `learnt` is made by a learner with
/// [`Options::private`](crate::Options::private) set: only then are its sessions measured each by itself.
pub fn release(learnt: &Model, private: &Private) -> Model {
    let counts = Counts::of(learnt).noisy(private);
    synthesis::model(&counts, learnt, private)
}

/// Uniform numbers that cannot be predicted without both halves of the seed.
#[derive(Debug)]
struct Secret([Stream; 2]);

impl Secret {
    fn new(seed: [u64; 2], name: &str) -> Secret {
        Secret(seed.map(|half| Stream::new(half, name)))
    }

    fn bits(&mut self) -> u64 {
        self.0[0].bits() ^ self.0[1].bits()
    }

    /// In (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Failures before a success, `scale` being how many it takes for the probability to fall by `e`.
    fn geometric(&mut self, scale: f64) -> i64 {
        (-self.uniform().ln() * scale) as i64
    }

    /// Of the two-sided geometric law: `P(n)` in proportion to `exp(-|n| / scale)`.
    fn noise(&mut self, scale: f64) -> i64 {
        self.geometric(scale) - self.geometric(scale)
    }
}

#[cfg(test)]
mod tests;

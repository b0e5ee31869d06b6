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
mod secret;
mod synthesis;
mod totals;

use swell_traffic::Model;

pub use cost::Cost;
pub use counts::Counts;
pub use secret::Private;

/// Releases the part of `learnt` that `private` allows. `learnt` must come from a learner with
/// [`Options::apart`](crate::Options::apart) set: only then is each session measured by itself.
pub fn release(learnt: &Model, private: &Private) -> Model {
    let counts = Counts::of(learnt).noisy(private);
    synthesis::model(&counts, learnt, private)
}

#[cfg(test)]
mod tests;

//! Statistics of measurements and their uncertainty: quantiles, intervals over replications, distances between
//! distributions, and the energy of a process at each timescale. Every function is a pure function of its arguments;
//! random resampling takes a seed.
//!
//! Samples are plain `f64` in the caller's unit, and results are in the same unit unless a function says otherwise.
//! NaN is never a measurement, so constructors drop it.
//!
//! # How slow does background traffic make it?
//!
//! A replication is one run with one seed. [`PairedRatio`] compares two conditions whose replications share their seeds,
//! from one value of each replication; [`hommel`] corrects for many comparisons:
//!
//! ```
//! use swell_stats::PairedRatio;
//! let alone = [1.1, 1.2, 1.1, 1.3, 1.2];
//! let with_traffic = [2.3, 2.2, 2.4, 2.7, 2.3];
//! let slowdown = PairedRatio::of_values(&with_traffic, &alone).unwrap();
//! let (low, _) = slowdown.interval(0.95);
//! assert!(low > 1.1, "it is more than 10 % slower with the traffic");
//! ```
//!
//! # At which timescales does the traffic burst?
//!
//! [`energies`] turns counts per bin into one [`Octave`] per timescale: the points of the log-scale diagram of Abry and
//! Veitch. [`pool`] joins replications:
//!
//! ```
//! use swell_stats::energies;
//! let mut s = swell_base::Stream::new(1, "counts");
//! let counts: Vec<f64> = (0..4096).map(|_| s.below(7) as f64).collect();
//! for octave in energies(&counts, 3).iter().filter(|o| o.n >= 30) {
//!     // Independent counts have a flat diagram, at their variance: 4.
//!     assert!((octave.y() - 2.0).abs() < 4.0 * octave.sd());
//! }
//! ```
//!
//! # Do two links burst together?
//!
//! [`coherences`] compares the wavelet coefficients of two series at each timescale:
//!
//! ```
//! use swell_stats::coherences;
//! let mut s = swell_base::Stream::new(1, "counts");
//! let x: Vec<f64> = (0..4096).map(|_| s.below(7) as f64).collect();
//! let y: Vec<f64> = x.iter().map(|n| n + s.below(7) as f64).collect();
//! let second = coherences(&x, &y, 3)[1];
//! // Half of the energy of y is that of x.
//! assert!((second.coherence() - 0.5).abs() < 0.1);
//! ```
//!
//! # The definitions
//!
//! * A quantile is Hyndman & Fan's type 7 everywhere (the default of R and NumPy); right-censored samples
//!   use its Kaplan-Meier extension, see [`KaplanMeier`].
//! * A standard deviation has the divisor n - 1.
//! * An octave j of counts in bins of width d is the timescale 2^j d: print milliseconds, never j alone.
//!
//! # Not here
//!
//! The experiment crate words the verdict on background traffic, and the report draws the figures.

mod bootstrap;
mod coherence;
mod distance;
mod ecdf;
mod moments;
mod octave;
mod ratio;
mod replications;
mod special;
mod survival;
mod synchrony;
mod wavelet;

pub use bootstrap::{Bootstrap, Estimate};
pub use coherence::{Coherence, coherences};
pub use distance::{ks, wasserstein_log2};
pub use ecdf::Ecdf;
pub use moments::{cov, mean, sd, variance};
pub use octave::{Octave, energies, pool};
pub use ratio::{Known, PairedRatio, hommel};
pub use replications::{
    MIN_REPLICATIONS, MIN_TAIL_SAMPLES, Replications, quantile_name, samples_beyond,
};
pub use special::{hurwitz_zeta, normal_cdf, t_cdf, t_quantile};
pub use survival::{KaplanMeier, Observation, SurvivalStep};
pub use synchrony::{Synchrony, synchrony};

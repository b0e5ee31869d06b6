//! Statistics of measurements and their uncertainty: quantiles, intervals over replications, distances between
//! distributions, and the energy of a process at each timescale. Every function is a pure function of its arguments;
//! random resampling takes a seed.
//!
//! Samples are plain `f64` in the caller's unit, and results are in the same unit unless a function says otherwise.
//! NaN is never a measurement, so constructors drop it.
//!
//! # How slow does background traffic make it?
//!
//! [`Replications`] holds the samples of one condition, grouped by replication (one run with one seed).
//! Requests within a run share its queue and are not independent, so intervals resample *runs*:
//!
//! ```
//! use swell_stats::{Bootstrap, Pairing, Replications};
//! let alone = Replications::new(&[vec![1.0, 1.1, 1.2], vec![1.0, 1.2, 1.3], vec![1.1, 1.1, 1.2]]);
//! let behind = Replications::new(&[vec![2.0, 2.3, 2.6], vec![2.1, 2.2, 2.9], vec![2.0, 2.4, 2.5]]);
//! let slowdown = Bootstrap::seeded(1).slowdown(&behind, &alone, &[0.5], Pairing::Paired)?;
//! let median = slowdown[0].as_ref().unwrap();
//! assert!(median.low > 1.0, "the median request is slower behind the traffic");
//! // Three runs are few, and it says so:
//! assert_eq!(behind.doubts(&[0.5])[0].code, "few-replications");
//! # Ok::<(), swell_stats::PairingError>(())
//! ```
//!
//! # At which timescales does the traffic burst?
//!
//! [`energies`] turns counts per bin into one [`Octave`] per timescale, [`pool`] joins replications,
//! [`Scaling`] reads the slope (the log-scale diagram of Abry and Veitch):
//!
//! ```
//! use swell_stats::{Scaling, energies};
//! let mut s = swell_base::Stream::new(1, "counts");
//! let counts: Vec<f64> = (0..4096).map(|_| s.below(7) as f64).collect();
//! let octaves = energies(&counts, 3);
//! let fit = Scaling::choose(&octaves).unwrap();
//! assert!(fit.alpha.abs() < 4.0 * fit.alpha_sd, "independent counts have a flat diagram");
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
mod diagram;
mod distance;
mod ecdf;
mod moments;
mod octave;
mod permutation;
mod ratio;
mod replications;
mod scaling;
mod sketch;
mod special;
mod survival;
mod synchrony;
mod timescale;
mod wavelet;

pub use bootstrap::{Bootstrap, Estimate, Method, Pairing, PairingError};
pub use diagram::interval_inflation;
pub use distance::{jensen_shannon, ks, wasserstein, wasserstein_log2};
pub use ecdf::Ecdf;
pub use moments::{cov, kurtosis, mean, sd, variance};
pub use octave::{EnergyDistance, Octave, energies, pool};
pub use permutation::{PValue, Permutation};
pub use ratio::{Known, PairedRatio, hommel};
pub use replications::{
    MIN_REPLICATIONS, MIN_TAIL_SAMPLES, Replications, quantile_name, samples_beyond,
};
pub use scaling::{FitError, MIN_COEFFICIENTS, Scaling};
pub use sketch::{SKETCH_ERROR, Sketch};
pub use special::{chi2_tail, hurwitz_zeta, normal_cdf, normal_quantile, t_cdf, t_quantile};
pub use survival::{KaplanMeier, Observation, SurvivalStep};
pub use synchrony::{Synchrony, synchrony};
pub use timescale::{Dispersion, aggregate, autocorrelation, dispersion, dispersions};
pub use wavelet::{MAX_VANISHING, daubechies, details};

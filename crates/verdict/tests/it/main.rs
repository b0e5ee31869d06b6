//! Verdicts on simulated runs, and their error rates.

mod error_rates;
mod simulated;

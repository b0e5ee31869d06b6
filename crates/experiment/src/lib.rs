//! Experiments: the experiment file, its resolution to a plan, the runs, the run directory and the verdict.

pub mod backend;
pub mod bundled;
pub mod exporter;
pub mod fidelity;
pub mod file;
mod hash;
pub mod kinds;
pub mod load;
pub mod made_up;
pub mod measure;
pub mod observe;
pub mod packets;
pub mod plan;
pub mod reported;
pub mod run;
mod simulate;
pub mod store;
pub mod suite;
#[cfg(test)]
mod test_support;
pub mod verdict;

pub use backend::{Backend, RunError, RunSpec};
pub use plan::{Capture, Plan, Traces};
pub use simulate::{Simulator, stage};
pub use store::Results;
pub use verdict::Verdict;

/// Version of the program, as manifests and tables record it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

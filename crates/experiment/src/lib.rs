//! Experiments: the experiment file, its resolution to a plan, the runs and the run directory.
//!
//! A file becomes a [`Plan`]. The [run engine](run::run) carries it out on a [`Backend`], and leaves a run directory,
//! whose [`Results`] are all that a verdict is made of.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use swell_experiment::run::{self, RunOutcome};
//! use swell_experiment::{Plan, Simulator};
//!
//! let text = r#"
//!     name = "short"
//!     network = { rate = "10Mbit", rtt = "20ms" }
//!     foreground = [{ name = "web", kind = "web", object = "10kB", think = "100ms" }]
//!     background = [
//!         { name = "none", kind = "none" },
//!         { name = "poisson", kind = "poisson", rate = "5Mbit" },
//!     ]
//!     run = { replications = 2, warmup = "1s", duration = "3s", seed = 1 }
//! "#;
//! // Reads the file and its models, checks every key and lists the runs.
//! let plan = Plan::resolve(text, "short.toml", Path::new("."))?;
//! assert_eq!(plan.cells.len(), 4);
//!
//! let dir = tempfile::tempdir()?;
//! let options = run::Options { dir: dir.path().join("short"), threads: 2, fresh: false, shard: None };
//! let RunOutcome::Complete(results) = run::run(&plan, &Simulator, &options, &|_| (), &|| false)? else {
//!     unreachable!("nothing interrupts it");
//! };
//! assert_eq!(results.runs.len(), 4);
//! # Ok(())
//! # }
//! ```

pub mod backend;
pub mod bundled;
mod captures;
mod error;
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
mod role;
pub mod run;
mod simulate;
pub mod store;
pub mod suite;
#[cfg(test)]
mod test_support;

pub use backend::{Backend, RunError, RunSpec};
pub use plan::{Capture, Plan, Traces};
pub use simulate::{Simulator, stage};
pub use store::Results;

/// Version of the program, as manifests and tables record it. After the plus sign is the number of the state of its results:
/// simulated runs of equal versions have equal results, and others are neither resumed nor joined. It rises with every
/// change that alters numbers (`tests/version.rs`).
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+7");

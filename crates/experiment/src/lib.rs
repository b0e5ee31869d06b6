//! Experiments: the file, its resolution, the runs, the run directory.

pub mod file;
pub mod observe;
pub mod store;

/// Version of the program, as manifests and tables record it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

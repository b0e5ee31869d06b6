//! Experiments: the file, its resolution, the runs, the run directory.

pub mod observe;

//! Does background traffic matter to my application?
//!
//! This is what the command `swell` does, as functions: they take plain options, return typed results, print nothing,
//! and report progress to a function of the caller's.
//!
//! | module | what it does |
//! |---|---|
//! | [`learn`] | packets or flow records in, a traffic model out |
//! | [`model`] | finds bundled models and model files, tells what is in them |
//! | [`fidelity`] | plays a model and compares what comes out with its own trace |
//!
//! # Example
//!
//! A model that the program carries is played for two seeds' worth of traffic, and learnt again:
//!
//! ```
//! use std::path::Path;
//!
//! use groundswell::{fidelity, model};
//!
//! let model = model::packet_model(Path::new("smart-home"))?;
//! let fidelity = fidelity::fidelity(&model, &fidelity::Playback::default(), 2, || {})?;
//! let volume = &fidelity.rows[0];
//! assert!(volume.trace > 0.0 && volume.regenerated > 0.0);
//! # Ok::<(), groundswell::Error>(())
//! ```
//!
//! # What is stable
//!
//! Version 0: functions may change with any minor version, as Cargo counts them. Files do not: model files, run
//! directories and what `--json` prints keep their formats, or say a new version in them. [`base`], [`experiment`] and
//! [`traffic`] are re-exported, so that their types are those of this crate.
//!
//! The Python package of the same name is another thing: it calls the program.

pub mod fidelity;
pub mod files;
pub mod learn;
pub mod model;

mod error;

pub use error::{Error, Kind};
pub use {swell_base as base, swell_experiment as experiment, swell_traffic as traffic};

//! Founding papers rerun in simulation.
pub mod burstiness;
pub mod filler;
pub mod grid;

mod estimate;
mod ledger;
mod study;

pub use estimate::Estimate;
pub use ledger::{Entry, Finding, Ledger, Verdict};
pub use study::{Axis, Line, Picture, Section, Study, Table, Unit};

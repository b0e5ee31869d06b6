//! Founding papers rerun in simulation.
pub mod burstiness;
pub mod filler;
pub mod grid;

//! The operating system: namespaces, devices, kernel sockets, the wall clock.
//!
//! The only room that touches any of them. It holds no model of a link or of traffic: the emulator
//! drives a [`swell_world::World`] against the clock, and the generator runs the workloads of
//! [`swell_workload`] over kernel sockets.

pub mod agent;
pub mod backend;
pub mod emulate;
pub mod generate;
pub mod host;
pub mod lateness;
#[cfg(test)]
mod patience;
pub mod router;
pub mod scratch;
mod serve;
pub mod sockets;
mod wire;

pub use wire::{Checksum, Nic, Wire};

//! System calls for which `rustix` has no safe function. All of the project's `unsafe` code that talks to the kernel is here.

pub mod batch;
pub mod datagrams;
pub(crate) mod devices;
pub mod features;
pub(crate) mod ring;
mod socket;
pub(crate) mod stamps;
pub mod tcp;

pub use devices::packet_drops;

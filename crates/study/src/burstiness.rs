//! Burstiness of aggregate TCP traffic.
pub mod lineup;
pub mod scenario;

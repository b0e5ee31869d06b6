//! Simulated TCP endpoints.

mod cc;
mod config;
mod endpoint;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;

pub use config::{Algorithm, Config, IdleRestart, LossBase};
pub use endpoint::{Endpoint, Event, Stats};

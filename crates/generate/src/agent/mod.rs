//! The control plane of live generation: an agent on each host, and the controller that drives them.
//!
//! An [`Agent`] serves a small HTTP/JSON interface, described by itself as OpenAPI ([`openapi`]). Every request
//! needs the token that agent and controller share; without it nothing happens, and nothing is revealed. Over
//! TLS, with a certificate that is given or that the agent makes and whose fingerprint it prints; plain HTTP on
//! loopback addresses alone. No code is ever uploaded: a run is a model's statistics and a few numbers.
//!
//! A [`Controller`] asks the servers' agents, then the clients', has them agree with each other, starts them,
//! renews the lease of every run again and again, and fetches what they counted and every transfer. When it
//! stops, for whatever reason, the leases run out, and with them all traffic.

mod api;
mod authority;
mod clock;
mod controller;
mod documents;
mod listen;
mod order;
mod party;
mod remote;
mod routes;
mod runs;
mod tls;
mod visitors;

#[cfg(test)]
mod tests;

pub use api::{
    Change, ClientPart, LateView, LimitsView, ModelPart, NewRun, Part, RunView, ServerPart,
    StatisticsView, Status, TargetPart, TrafficPart,
};
pub use authority::{enrol, kept, make_authority};
pub use clock::Beginning;
pub use controller::Controller;
pub use documents::openapi;
pub use listen::{Agent, AgentConfig, AgentError};
pub use order::{Address, Order, OrderError};
pub use party::Standing;
pub use remote::{Dial, RemoteError, Trust};
pub use routes::FLOWS;
pub use tls::{Identity, TlsError, fingerprint};

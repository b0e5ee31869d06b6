//! The control plane of live generation: an agent on each host, and the controller that drives them.
//!
//! An [`Agent`] serves a small HTTP/JSON interface, which it describes itself as OpenAPI ([`openapi`]). Every request
//! needs the token that agent and controller share. A request without it has no effect and reveals nothing. The
//! interface uses TLS, with a given certificate or with one that the agent makes and whose fingerprint it prints.
//! Plain HTTP is restricted to loopback addresses. No code is ever uploaded: a run consists of a model's statistics
//! and a few numbers.
//!
//! An agent that no controller can connect to dials out instead ([`DialOut`]) to a [`Rendezvous`] of the controller, and
//! serves the same interface over that connection. Both ends show certificates.
//!
//! A [`Controller`] creates the run on the servers' agents, then on the clients', and waits until they have agreed.
//! It then starts them, renews the lease of every run periodically, and fetches their counters and all transfers. If
//! it stops, for whatever reason, the leases expire, and all traffic ends.

mod api;
mod authority;
mod clock;
mod controller;
mod dial_out;
mod documents;
mod errors;
mod listen;
mod lobby;
mod order;
mod party;
mod remote;
mod rendezvous;
mod request;
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
pub use controller::{ClientFlows, Controller};
pub use dial_out::DialOut;
pub use documents::openapi;
pub use errors::{AgentError, RemoteError};
pub use listen::{Agent, AgentConfig};
pub use lobby::Refusals;
pub use order::{Address, Order, OrderError};
pub use party::Standing;
pub use rendezvous::Rendezvous;
pub use request::Dial;
pub use tls::{Identity, TlsError, Trust, fingerprint, is_fingerprint};

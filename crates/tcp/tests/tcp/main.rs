//! Endpoints over a wire: laws, closed forms and misbehaving peers.

mod conversation;
mod golden;
mod kernel;
mod latency;
mod laws;
mod net;
mod ns2;
mod pinned;
mod quic;
mod recovery;
mod robust;
mod scripted;
mod transports;

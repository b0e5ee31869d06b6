//! Endpoints over a wire: laws, closed forms and hostile peers.

mod conversation;
mod golden;
mod latency;
mod laws;
mod net;
mod recovery;
mod robust;

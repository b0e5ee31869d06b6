//! Endpoints over a wire: laws, closed forms and hostile peers.

mod latency;
mod net;
mod robust;

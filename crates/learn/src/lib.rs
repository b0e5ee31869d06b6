//! Learns a traffic model from packets or flow records.
//!
//! A [`Learner`] reads the packets of a trace once, in capture order, and returns a
//! [`Model`](swell_traffic::Model):
//!
//! ```
//! use std::net::IpAddr;
//! use swell_capture::{Packet, Tcp, TcpOptions, Transport};
//! use swell_learn::{Learner, Options};
//!
//! let (client, server) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([192, 0, 2, 80]));
//! let mut learner = Learner::new(Options { name: "lookup".into(), ..Options::default() });
//! for (ms, src, dst, ports, payload) in [
//!     (0, client, server, (4000, 53), 30),
//!     (25, server, client, (53, 4000), 200),
//! ] {
//!     learner.push(&Packet {
//!         time: ms * 1_000_000,
//!         wire_len: payload + 42,
//!         captured_len: payload + 42,
//!         ip_len: payload + 28,
//!         src,
//!         dst,
//!         ttl: 64,
//!         transport: Transport::Udp { src_port: ports.0, dst_port: ports.1, payload },
//!         ..Packet::default()
//!     });
//! }
//! let model = learner.finish();
//! assert_eq!(model.totals.udp_flows, 1);
//! assert_eq!(model.sessions[0].bytes(), [30, 200]);
//! assert_eq!(model.classes[0].name, "dns");
//! ```
//!
//! The model holds connections with their requests, responses and pauses. Where both ends sent at the same
//! time, it holds two independent chains of data units instead. It also holds users, sessions and
//! request-response groups; UDP flows; RTTs, capacities and loss rates between the tap and each host; and
//! the load over time. Anything the tap could not observe becomes a warning in the model.
//!
//! Memory is bounded by the open connections, the users of the last few minutes, a small record per host,
//! and a sample of sessions ([`swell_traffic::Thinner`]).
//!
//! Equal packets give byte-identical models: hash maps have fixed seeds and are never iterated.
//!
//! A model holds exact sizes and pauses. [`private`] makes a model with added noise, which hides whether
//! any one session was in the trace.
//!
//! A [`FlowLearner`] takes flow records and returns the smaller model that they support
//! ([`swell_traffic::flowlevel`]).
//!
//! [`taps`] splits the captures of two taps of one path into the traffic that passes both, and that of each.
//!
//! A [`Splitter`] returns the packets themselves, by direction, for replay.
//!
//! Not learnt: applications identified by payload, and congestion control algorithms.

mod addresses;
mod chunks;
mod clock;
mod counts;
mod directions;
mod doubts;
mod finish;
mod flows;
mod fragments;
mod hosts;
mod index;
mod learner;
mod load;
mod options;
mod pairs;
mod passed;
mod paths;
mod ports;
pub mod private;
mod queue;
mod read;
mod repeats;
mod sides;
mod superpackets;
mod table;
pub mod taps;
mod tcp;
mod together;
mod udp;
mod users;

pub use directions::{Directions, Splitter};
pub use flows::{FlowLearner, network};
pub use learner::Learner;
pub use options::Options;
pub use ports::server_port;
pub use read::Read;
pub use sides::Network;

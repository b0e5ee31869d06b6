//! The traffic model: its definition, its file, drawing from it, varying and comparing it.
//!
//! A [`Model`] is an empirical joint distribution: whole sessions as a trace held them. Its file is
//! versioned JSON ([`Model::from_slice`], [`Model::to_json`]; `docs/model.md`). To play one, set the
//! [`Knobs`] and draw a [`Schedule`]:
//!
//! ```
//! use swell_base::Dur;
//! use swell_traffic::{Knobs, Model, Network, Schedule};
//! let text = br#"{"format":"swell-traffic-model","version":3,"name":"one","provenance":
//!   {"made_by":"by hand","sources":[],"digests":[],"note":""},"warnings":[],"duration":10000000,
//!   "parameters":{"group_timeout":30000000,"session_timeout":300000000,"quiet":500000},
//!   "totals":{"packets":[0,0],"bytes":[0,0],"tcp_connections":1,"tcp_handshakes":1,
//!   "udp_flows":0,"unmodelled_packets":0,"unmodelled_bytes":0},
//!   "load":{"bin":100000,"bytes":[[],[]],"lsd_bin":1000,"lsd":[[],[]]},
//!   "classes":[{"name":"http","udp":false}],
//!   "client_paths":[[2000,null,10000000,0,0,9,12,40]],
//!   "server_paths":[[50000,null,null,0,0.01,9,0,40]],
//!   "sessions":[{"class":0,"start":4000000,"client":0,"groups":[{"think":0,"connections":
//!     [{"gap":0,"server":0,"window":[65535,65535],"turns":[[300,20000,14600,0]]}]}]}]}"#;
//! let model = Model::from_slice(text)?;
//! let knobs = Knobs { sessions: 3.0, response: 2.0, ..Knobs::default() };
//! let played = model.varied(&knobs, 7);
//! assert_eq!(played.sessions[0].bytes(), [300, 29_200]);
//! let schedule = Schedule::draw(&played, &knobs, 7, Dur::from_secs(20), &Network::default())?;
//! // Three users per ten seconds, at times drawn by the seed.
//! assert_eq!(schedule.starts.len(), 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Flow records support another, smaller model: [`flowlevel`].
//!
//! This crate neither learns models (`swell-learn`) nor plays them (`swell-workload`).

mod datagrams;
mod file;
pub mod flowlevel;
mod lasting;
mod marginals;
mod model;
mod remainder;
mod reveal;
mod schedule;
mod sharing;
mod thin;
mod timeline;
mod vary;
mod view;
mod volume;

pub use datagrams::{Cursor, Datagrams, Run};
pub use file::{FORMAT, MAX_BYTES, ModelError, VERSION};
pub use marginals::{Distance, Marginal, Marginals, Quantity, Sample};
pub use model::{
    Certificate, Class, Connection, Exchange, Group, Load, Model, Parameters, Path, Played,
    Provenance, Session, Thinning, Totals, Turn, Unit, Wait, Wire, WireEnd, Write,
};
pub use remainder::{Entered, Rest};
pub use reveal::Reveals;
pub use schedule::{DrawError, Lasting, Schedule, Start};
pub use thin::Thinner;
pub use timeline::Network;
pub use vary::{Dependency, Knobs};
pub use view::{Chain, ConnectionView, CutPoint, Data, Flow, Items};
pub use volume::{InStep, RUN_ITEMS, SENT_AT_ONCE, UNASKED};

#[cfg(test)]
mod testing;

//! Workloads: the applications that send foreground and background traffic, behind one interface.
//!
//! A [`Workload`] receives events ([`Event`]) and returns actions ([`Action`]). It never asks how fast the network
//! is. Its pauses start at *observed* completions, which is what makes traffic responsive. The same workload runs
//! over simulated and over kernel sockets.
//!
//! | machine | what it sends |
//! |---|---|
//! | [`Web`] | foreground: fetches objects, back to back or with think times |
//! | [`Page`] | foreground: browsers that load pages of objects that refer to each other |
//! | [`Dash`] | foreground: media in segments over TCP, at bitrates that the player chooses |
//! | [`Stream`] | foreground: media streams over datagrams, with a play-out buffer and repair |
//! | [`Parametric`] | background: constant or Poisson packets over UDP or TCP |
//! | [`Sources`] | background: as [`Parametric`], with a schedule for each source |
//! | [`Greedy`] | connections that always have data to send |
//! | [`Replay`] | background: the packets of a trace at their own times |
//! | [`Replay`] of [`OnOff`] packets | background: on/off sources, self-similar in aggregate |
//! | [`Sessions`] | background: sessions of files and datagram sources of a flow-level model |
//! | [`Swarm`] | connections to the peers of a file-sharing swarm |
//! | [`Structural`] | background: users, sessions and exchanges of a learnt traffic model |
//! | [`Windows`] | any of these, in given time windows only |
//! | [`Clocked`] | any of these, with more energy at one timescale |
//!
//! A workload controls both ends of its connections ([`End`]). Each end acts only on information that is available at
//! that end.
//!
//! A machine needs no network: events in, actions out.
//!
//! ```
//! use swell_base::{Bytes, Dur, Time};
//! use swell_workload::{Access, Action, Conn, End, Event, Web, WebConfig, Workload};
//!
//! let mut web = Web::new(WebConfig {
//!     clients: 1,
//!     objects: vec![Bytes(1_000_000)],
//!     request: Bytes(120),
//!     server_think: Dur::ZERO,
//!     think: Dur::from_secs(1),
//!     keep: false,
//!     count: None,
//!     start: Dur::ZERO,
//!     client: Access::default(),
//!     server: Access::default(),
//! });
//! let mut actions = Vec::new();
//! web.handle(Time::ZERO, Event::Start, &mut actions);
//! // The first request is due at once: the timer is set, and nothing is sent before it fires.
//! let [Action::Timer(Dur::ZERO, token)] = actions[..] else { panic!("{actions:?}") };
//! actions.clear();
//! web.handle(Time::ZERO, Event::Timer(token), &mut actions);
//! // The client connects and writes its request, which the transport sends once the handshake is complete.
//! let [Action::Connect(Conn(0), _), Action::Send(Conn(0), End::Client, 120)] = actions[..] else {
//!     panic!("{actions:?}")
//! };
//! actions.clear();
//! // The carrier reports what arrived. Only when the whole request is there does the server answer.
//! let at = Time::ZERO + Dur::from_millis(40);
//! web.handle(at, Event::Received(Conn(0), End::Server, 100), &mut actions);
//! assert_eq!(actions, []);
//! web.handle(at, Event::Received(Conn(0), End::Server, 20), &mut actions);
//! assert_eq!(actions, [Action::Send(Conn(0), End::Server, 1_000_000)]);
//! ```

mod clock;
mod dash;
mod greedy;
mod machine;
mod on_off;
mod page;
mod parametric;
mod record;
mod replay;
mod sessions;
mod sources;
mod starts;
mod stream;
mod structural;
mod swarm;
mod web;
mod windows;

pub use clock::{Clock, Clocked, NoClock};
pub use dash::{Dash, DashConfig, Known, Rule, measures as dash_measures};
pub use greedy::{Greedy, GreedyConfig};
pub use machine::{
    Access, Action, Conn, End, Event, Info, Open, TCP_HEADERS, TimedWrite, Workload,
};
pub use on_off::{OnOff, TooManyPackets};
pub use page::{Object, Opening, Page, PageConfig};
pub use parametric::{Law, Parametric, ParametricConfig, Transport};
pub use record::{FlowRecord, Outcome, Record, RequestRecord, Sample};
pub use replay::{Packets, Replay, ReplayConfig};
pub use sessions::{Sessions, SessionsConfig};
pub use sources::Sources;
pub use stream::{Stream, StreamConfig, measures as stream_measures};
pub use structural::Structural;
pub use swarm::{Remote, Swarm, SwarmConfig};
pub use swell_traffic::{Wire, WireEnd};
pub use web::{Web, WebConfig};
pub use windows::{Window, Windows};

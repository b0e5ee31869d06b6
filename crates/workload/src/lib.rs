//! The machines that *send*: backgrounds and foregrounds, one contract.
//!
//! A [`Workload`] is told what happened ([`Event`]) and answers with what it wants done
//! ([`Action`]); it never asks how fast the network is. Its pauses run from *observed* completions,
//! which is what makes traffic responsive. The same machine runs over simulated and over kernel
//! sockets.
//!
//! | machine | what it sends |
//! |---|---|
//! | [`Web`] | foreground: fetches objects, back to back or with think times |
//! | [`Page`] | foreground: browsers that load pages of objects that name each other |
//! | [`Dash`] | foreground: media in segments over TCP, at bitrates that the player chooses |
//! | [`Stream`] | foreground: media streams over datagrams, with a play-out buffer and repair |
//! | [`Parametric`] | background: constant or Poisson packets over UDP or TCP |
//! | [`Sources`] | the same with a schedule for each source |
//! | [`Greedy`] | connections that always have something to send |
//! | [`Replay`] | background: the packets of a trace at their own times |
//! | the same, of the packets of [`OnOff`] | background: on/off sources, self-similar together |
//! | [`Sessions`] | background: sessions of files and datagram sources of a flow-level model |
//! | [`Structural`] | background: users, sessions and exchanges of a learnt traffic model |
//! | [`Windows`] | any of these, in windows of time only |
//! | [`Clocked`] | any of these, with more energy at one timescale |
//!
//! A workload plays both ends of its connections ([`End`]); each end acts only on what that end
//! could know.

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
mod stream;
mod structural;
mod web;
mod windows;

pub use clock::{Clock, Clocked, NoClock};
pub use dash::{Dash, DashConfig, Known, Rule, measures as dash_measures};
pub use greedy::{Greedy, GreedyConfig};
pub use machine::{
    Access, Action, Conn, End, Event, Info, Open, TCP_HEADERS, TimedWrite, Workload,
};
pub use on_off::{OnOff, TooManyPackets};
pub use page::{Object, Page, PageConfig};
pub use parametric::{Law, Parametric, ParametricConfig, Transport};
pub use record::{FlowRecord, Outcome, Record, RequestRecord, Sample};
pub use replay::{Packets, Replay, ReplayConfig};
pub use sessions::{Sessions, SessionsConfig};
pub use sources::Sources;
pub use stream::{Stream, StreamConfig, measures as stream_measures};
pub use structural::Structural;
pub use swell_traffic::{Wire, WireEnd};
pub use web::{Web, WebConfig};
pub use windows::{Window, Windows};

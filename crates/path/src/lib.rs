//! Link elements and queueing disciplines.
//!
//! An [`Element`] takes packets at instants and gives them back at later ones. A [`Link`] is the
//! element everything is made of: a queueing discipline in front of a serializer of some rate, a
//! wire that may lose packets, and a propagation delay; each part may be left out.
//!
//! ```
//! use swell_base::{Dur, Head, QueueLimit, Rate, Time};
//! use swell_path::{Element, Link, LinkConfig};
//!
//! let config = LinkConfig {
//!     rate: Some(Rate::from_bps(10_000_000)),
//!     delay: Dur::from_millis(25),
//!     queue: QueueLimit::Packets(50),
//!     ..LinkConfig::default()
//! };
//! let mut link = Link::new(&config, 1, "gateway");
//! let packet = Head { size: 1500, ..Head::default() };
//! link.push(Time::ZERO, packet.into());
//! // 1.2 ms on the wire and 25 ms of propagation.
//! assert_eq!(link.poll_at(), Some(Time::from_nanos(26_200_000)));
//! ```
//!
//! **A queue holds waiting packets; a delay line holds propagating ones.** Packets in transmission or propagating
//! count against no limit. Rates count network-layer bytes plus a per-packet overhead that is
//! zero unless set.
//!
//! Used as an element, a link keeps its packets itself. Many links share a
//! [`PacketPool`]: a packet stays in its [`Place`] from one drop-tail link to the next
//! ([`Link::accept`], [`Link::begin`]). A [`PlainLink`] is the most frequent kind: it says when a packet arrives
//! and leaves the rest to the caller.
//!
//! A link may change on a schedule ([`LinkConfig::changes`]): rate, delay, loss and queue at exact
//! instants, outages, and a packet-delivery trace ([`Deliveries`]) as its rate.
//!
//! What every element promises, and the shared tests in `tests/contract.rs` check:
//!
//! * polling late changes when events are learnt, never the events;
//! * a departure is never earlier than its arrival, and departures never go back in time;
//! * in = out + held + dropped, at every instant; nothing held if and only if `poll_at` is `None`;
//! * at one instant departures come before arrivals: a queue has room for a packet that arrives
//!   just as another one's transmission begins;
//! * random losses and drops come from streams named after the element.

mod census;
mod deliveries;
mod element;
mod ledger;
mod link;
mod loss;
mod meter;
mod plain;
mod pool;
mod qdisc;
mod schedule;
mod wire;

pub use census::{Bucket, Census, Histogram, Tally};
pub use deliveries::{Deliveries, DeliveriesError};
pub use element::{Chain, Element};
pub use ledger::Ledger;
pub use link::{Begun, Link, LinkConfig};
pub use loss::{Loss, LossProcess};
pub use meter::{CoarseBin, Meter, PHASES};
pub use plain::PlainLink;
pub use pool::{Note, PacketPool, Place};
pub use qdisc::{
    Backlog, Classifier, CoDel, CoDelConfig, Discipline, Drr, DrrConfig, Fifo, FqCoDel,
    FqCoDelConfig, Outlet, Pie, PieConfig, PieDelay, Priority, PriorityConfig, Qdisc, Red,
    RedAdaptive, RedConfig, RedDialect, RedMeasure, RedSpacing, RedThresholds, RedVictim,
    RedWeight,
};
pub use schedule::{Capacity, Change, NewQueue, Outage};
pub use wire::{mean_offered, offered};

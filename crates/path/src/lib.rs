//! Links and queueing disciplines.
//!
//! A [`Link`] accepts packets and returns them at the same or a later instant. It is a queueing discipline, a serializer
//! with a rate, a wire that may lose packets, and a propagation delay. Each part is optional.
//!
//! ```
//! use swell_base::{Dur, Head, QueueLimit, Rate, Time};
//! use swell_path::{Link, LinkConfig};
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
//! **A queue holds waiting packets; a delay line holds propagating ones.** Packets in transmission or propagation do
//! not count against the queue limit. Rates count network-layer bytes, plus a per-packet overhead that is zero by
//! default.
//!
//! A link by itself stores its packets. Many links can share a [`PacketPool`]: a packet then keeps
//! its slot ([`SlotId`]) from one drop-tail link to the next ([`Link::accept`], [`Link::begin`]). A [`PlainLink`]
//! covers the most frequent configuration: it only computes when a packet arrives, and the caller keeps the packet.
//!
//! A link may change on a schedule ([`LinkConfig::changes`]): rate, delay, loss and queue at exact instants, outages,
//! or a packet-delivery trace ([`Deliveries`]) as its rate.
//!
//! Every link guarantees the following, which the shared tests in `tests/contract.rs` check:
//!
//! * polling late changes when events become known, never the events themselves;
//! * a departure is never earlier than its arrival, and departures never go back in time;
//! * arrived = departed + held + dropped at every instant, and `poll_at` is `None` if and only if nothing is held;
//! * at one instant, departures come before arrivals: a queue has space for a packet that arrives just as another
//!   transmission begins;
//! * random losses and drops use streams named after the link.

mod census;
mod channel;
mod deliveries;
mod ledger;
mod link;
mod loss;
mod meter;
mod plain;
mod pool;
mod qdisc;
mod schedule;

pub use census::{Bucket, Census, GroupBin, Histogram, Tally};
pub use channel::{mean_offered, offered};
pub use deliveries::{Deliveries, DeliveriesError};
pub use ledger::Ledger;
pub use link::{Begun, Link, LinkConfig};
pub use loss::{Loss, LossProcess};
pub use meter::{CoarseBin, Meter, PHASES};
pub use plain::PlainLink;
pub use pool::{Note, PacketPool, SlotId};
// The disciplines, which `qdisc.rs` alone lists.
pub use qdisc::*;
pub use schedule::{Capacity, Change, NewQueue, Outage};

//! The words every other room uses: instants and spans, rates and sizes, the packet, random streams,
//! drop reasons and warnings.
//!
//! ```
//! use swell_base::{Bytes, Dur, Rate, Time};
//! let rate: Rate = "10Mbit".parse().unwrap();
//! let on_the_wire = rate.transmit(Bytes(1500));
//! assert_eq!(on_the_wire, "1.2ms".parse::<Dur>().unwrap());
//! assert_eq!(Time::ZERO + on_the_wire, Time::from_nanos(1_200_000));
//! ```
//!
//! Units are types with integers inside (nanoseconds, bits per second, bytes), so nothing drifts and
//! no two units are ever mixed. Random numbers come from named streams ([`Stream`]), so that adding
//! an element to a world does not change what another one draws.

mod fetch;
mod packet;
mod paged;
mod queue;
mod rng;
mod units;
mod warning;

pub use fetch::fetch;
pub use packet::{
    Direction, DropReason, Flags, FlowId, Head, Packet, SackBlocks, Segment, Stamps, Tag,
    UDP_HEADERS,
};
pub use paged::Paged;
pub use queue::{EventQueue, Ranked};
pub use rng::{Stream, derived, drawn_at};
pub use units::{Bytes, Dur, QueueLimit, Rate, Time, UnitError};
pub use warning::{Severity, Warning};

//! Basic types of all other crates: instants and durations, rates and sizes, packets, random streams, drop reasons,
//! warnings, and impossible values of keys.
//!
//! ```
//! use swell_base::{Bytes, Dur, Rate, Time};
//! let rate: Rate = "10Mbit".parse().unwrap();
//! let on_the_wire = rate.transmit(Bytes(1500));
//! assert_eq!(on_the_wire, "1.2ms".parse::<Dur>().unwrap());
//! assert_eq!(Time::ZERO + on_the_wire, Time::from_nanos(1_200_000));
//! ```
//!
//! Units are types around integers: nanoseconds, bits per second, bytes. So rounding errors do not accumulate, and
//! units cannot be mixed up. Random numbers come from named streams ([`Stream`]), so adding an element to a world
//! does not change the numbers that another one draws.

mod code;
mod fetch;
mod findings;
mod packet;
mod paged;
mod queue;
mod rng;
mod two;
mod units;
mod warning;

pub use code::Code;
pub use fetch::fetch;
pub use findings::{Findings, Impossible};
pub use packet::{
    DropReason, Flags, FlowId, Head, Packet, SackBlocks, Segment, Stamps, Tag, UDP_HEADERS,
};
pub use paged::Paged;
pub use queue::{EventQueue, Ranked};
pub use rng::{Stream, derived, drawn_at, mixed};
pub use two::{Direction, End, Side};
pub use units::{Bytes, Dur, QueueLimit, Rate, Time, UnitError};
pub use warning::{Severity, Warning};

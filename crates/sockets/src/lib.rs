//! Workloads over kernel sockets: the same workloads that run in a [`swell_world::World`], on real TCP and UDP.
//!
//! A [`Carrier`] holds both ends of every connection of its workloads. It connects from the address of the client's
//! host to that of the server's, writes and reads real bytes, and reports kernel events to each end. The two sides
//! may be in two network namespaces ([`Sockets`]), with any network between them.
//!
//! ```
//! use std::sync::{Arc, atomic::AtomicBool};
//! use swell_base::{Bytes, Dur, Time};
//! use swell_sockets::{Carrier, CarrierConfig};
//! use swell_workload::{Access, Web, WebConfig};
//!
//! let web = WebConfig {
//!     clients: 10, objects: vec![Bytes(20_000)], request: Bytes(300), server_think: Dur::ZERO,
//!     think: Dur::ZERO, keep: false, count: Some(3), start: Dur::ZERO,
//!     client: Access::default(), server: Access::default(),
//! };
//! let mut carrier = Carrier::new(CarrierConfig::default())?;
//! carrier.add(Box::new(Web::new(web)), &Arc::new(swell_tcp::Config::linux()))?;
//! carrier.run(Time::from_secs_f64(0.5), &AtomicBool::new(false))?;
//! carrier.finish();
//! assert_eq!(carrier.take_records(0).len(), 30);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! * **One thread, one loop** around epoll, called through `rustix`. Its wait has nanosecond resolution
//!   (`epoll_pwait2`), while `mio` rounds to milliseconds, and no other feature of an event library is needed.
//!   Sockets are registered once, edge-triggered. An end that has used up its share of reads or writes waits in a
//!   separate list for its next turn.
//! * **Accepted sockets are matched** to their connection by the addresses and the client's port. Nothing is sent but
//!   the workload's bytes.
//! * **Bytes** are counted, not generated. Reads discard without copying (`MSG_TRUNC`), writes send one buffer
//!   repeatedly, and data that the kernel does not accept yet is only a number. Datagrams begin with a sequence
//!   number.
//! * **`Drained`** comes from the kernel. The last write of the pending data requests a notification of its
//!   acknowledgement (`SOF_TIMESTAMPING_TX_ACK`). It arrives in the socket's error queue and wakes the loop, so no
//!   connection is polled. If the kernel has no memory for a notification, a check once a second finds the
//!   acknowledgement, and it is counted.
//! * **Timers** are delivered with the instant they were set for; all other events carry the instant at which they
//!   were observed. Otherwise the lateness of each wake-up would lengthen a source's pauses and lower its rate. The
//!   lateness is in the [`Report`]. An effect always carries a later instant than its cause. Of two independent
//!   events, the one delivered later may carry an earlier instant while the loop is behind schedule.
//! * **Nothing is left over.** Sockets have a linger time of zero, so open connections are reset when the carrier is
//!   dropped or the process dies. A connection that both ends have closed ends as usual. Its client's address then
//!   keeps the port for a minute (TIME-WAIT) if a peer could otherwise be confused. A kernel with `tcp_tw_reuse` gives it
//!   to a new connection after a second, if both ends send timestamps.
//!
//! # Differences from a world
//!
//! * Access paths ([`Access`](swell_workload::Access)) are not applied. [`Paths`] is notified of the access path of
//!   each address, so that an emulator can apply it. Without `Paths`, a warning reports this.
//! * Of a TCP configuration, a socket gets the congestion control, segment size, cap of the receive window, Nagle's
//!   algorithm and the number of SYN retries. A warning names other differences. `TCP_MAXSEG` affects both directions
//!   of a connection, so the larger of the two sizes is set. The kernel decides how an end delays acknowledgements. A
//!   cap on a server's window is set when the connection is accepted, so the first window it offers is the kernel's.
//! * A datagram larger than the path's MTU is fragmented by IP and arrives whole or not at all. In a world its parts
//!   are separate datagrams.
//! * [`silent`](swell_workload::Open::silent) connections get no `Drained` event.
//! * If a client was refused, or gave up before it was connected, there is no server end and it gets no event.
//!   `Closed` follows the last `Reset`.

mod addresses;
mod carrier;
mod datagrams;
mod descriptors;
mod report;
mod settings;
mod side;
mod slots;
mod tcp;

#[cfg(test)]
mod tests;

pub use addresses::{Paths, Prefix, PrefixError};
pub use carrier::{Carrier, CarrierConfig, StopReason};
pub use report::{Counts, Report};
pub use report::{datagrams_refused, hint, no_descriptors, strangers};
pub use side::{Here, InNamespace, SideConfig, Sockets, family};
pub use swell_base::Side;

use std::net::IpAddr;

use rustix::io::Errno;

/// Errors that prevent workloads from running over sockets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketsError {
    /// The kernel's event queue cannot be created or fails.
    #[error("the kernel's event queue: {0}")]
    Epoll(Errno),
    /// The kernel cannot create a socket.
    #[error("no socket can be made: {0}")]
    Socket(Errno),
    /// An address of a side is not local in the namespace of its sockets.
    #[error(
        "no socket can have address {address}: {error}; make the prefix local where the sockets \
         are (`ip route add local {prefix} dev lo`)"
    )]
    Address {
        /// The address that was tried.
        address: IpAddr,
        /// The side's prefix.
        prefix: Prefix,
        /// The kernel's error.
        error: Errno,
    },
    /// The descriptor limit does not allow a single connection.
    #[error(
        "{used} of the {limit} descriptors that this process may have are in use: raise the hard \
         limit (`ulimit -Hn`)"
    )]
    Descriptors {
        /// The process's limit.
        limit: u64,
        /// The number in use.
        used: u64,
    },
}

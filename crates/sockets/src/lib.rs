//! Workloads over kernel sockets: the same machines that run in a [`swell_world::World`], on real TCP
//! and UDP.
//!
//! A [`Carrier`] holds both ends of every connection of its workloads. It connects from the address
//! of the client's host to the address of the server's, writes and reads real bytes, and reports to each
//! end what the kernel reports. The two sides may be in two network namespaces ([`Sockets`]), with whatever
//! network between them.
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
//! * **One thread, one loop** around epoll, called through `rustix`: its wait takes nanoseconds
//!   (`epoll_pwait2`), where `mio` rounds to milliseconds, and nothing else of an event library is
//!   needed here. Sockets are watched edge-triggered, with one call in their life. An end that has more
//!   to read or write than its share waits for its next turn in a list of its own.
//! * **Which accepted socket is whose** is known from the addresses and the client's port: nothing is
//!   sent but the workload's bytes.
//! * **Bytes** are counted, not made: reads discard without copying (`MSG_TRUNC`), writes send one buffer
//!   again and again, and what the kernel does not take yet is a number. Datagrams begin with their number.
//! * **`Drained`** comes from the kernel: the last write of what there is to send asks for a notice when
//!   it is acknowledged (`SOF_TIMESTAMPING_TX_ACK`), which arrives in the socket's error queue and
//!   wakes the loop; no connection is polled. Should the kernel have no memory for a notice, a look at those
//!   that wait, once a second, finds out, and it is counted.
//! * **Timers** are delivered with the instant they were set for; everything else carries the instant at which it was
//!   observed. Otherwise each pause of a source would be longer by the lateness of a wake-up, and its
//!   rate lower. Their lateness is in the [`Report`]. Whatever was caused by something
//!   carries a later instant; of two independent events, one delivered
//!   later may carry an earlier instant when the loop is behind.
//! * **Nothing is left behind**: sockets linger for no time, so that what is open when the carrier is dropped
//!   or the process dies is reset. A connection that both ends have closed ends as usual, and its client's
//!   address keeps the port for a minute (TIME-WAIT) where there are peers who might be confused.
//!
//! # What is different from a world
//!
//! * Access paths ([`Access`](swell_workload::Access)) are not applied. [`Paths`] learns which address has
//!   which, so that an emulator can; without one, a warning says so.
//! * Of a TCP configuration the socket gets congestion control, segment size, cap of the receive
//!   window, Nagle's algorithm and the number of SYN retries; a warning names what differs otherwise.
//!   `TCP_MAXSEG` works on both directions of a connection, so the larger size of the two is set, and
//!   how an end delays acknowledgements is the kernel's business. A cap on a server's window is set
//!   when the connection is accepted: the first window offered is the kernel's.
//! * A datagram larger than the path's MTU is fragmented by IP and arrives as one, or not at all; in a
//!   world its parts are datagrams of their own.
//! * [`silent`](swell_workload::Open::silent) connections get no `Drained` either.
//! * The server end of a client that was refused, or gave up before it was connected, gets no event: there is
//!   none. `Closed` follows the last `Reset`.

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

pub use addresses::{Paths, Prefix, PrefixError, Side};
pub use carrier::{Carrier, CarrierConfig, Ended};
pub use report::hint;
pub use report::{Counts, Report, TIMERS_LATE};
pub use side::{Here, InNamespace, SideConfig, Sockets};
pub use tcp::family;

use std::net::IpAddr;

use rustix::io::Errno;

/// Why workloads cannot run over sockets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketsError {
    /// The kernel gives no event queue, or does not answer it.
    #[error("the kernel's event queue: {0}")]
    Epoll(Errno),
    /// The kernel makes no socket.
    #[error("no socket can be made: {0}")]
    Socket(Errno),
    /// An address of a side is not local where its sockets are.
    #[error(
        "no socket can have address {address}: {error}; make the prefix local where the sockets \
         are (`ip route add local {prefix} dev lo`)"
    )]
    Address {
        /// The address that was tried.
        address: IpAddr,
        /// The side's prefix.
        prefix: Prefix,
        /// What the kernel said.
        error: Errno,
    },
    /// There is no room for a single connection.
    #[error(
        "{used} of the {limit} descriptors that this process may have are in use: raise the hard \
         limit (`ulimit -Hn`)"
    )]
    Descriptors {
        /// How many it may have.
        limit: u64,
        /// How many it has.
        used: u64,
    },
}

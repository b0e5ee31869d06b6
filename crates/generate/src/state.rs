//! What one thread knows of its connections, leases and sockets.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use swell_base::{Ranked, Time};

use super::connect::Marks;
use super::flow::Flow;
use super::paced::Paced;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Client: waiting for the rate limit before it connects.
    Waiting,
    /// Client: connecting.
    Connecting,
    /// Client: sending.
    Sending,
    /// Client: receiving the answer.
    Receiving,
    /// Client: kept for the next transfer.
    Idle,
    /// Server: waiting for a header.
    Header,
    /// Server: receiving.
    Taking,
    /// Server: sending.
    Giving,
    /// Server: everything was sent; waiting for the client's FIN.
    Ending,
    /// Either end of a lease, during the handshake or afterwards.
    Lease,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub fd: OwnedFd,
    pub state: State,
    /// It is in the ready queue because it has more to do.
    pub ready: bool,
    /// A timer is set for it, because its own rate keeps it waiting.
    pub wakes: bool,
    /// The connection stays open for further transfers.
    pub keep: bool,
    /// Client: index of the server in the run. Server: index of the client.
    pub party: u16,
    /// Client: the socket options of the server's end.
    pub marks: Marks,
    /// Client: the session, and the generation of its traffic.
    pub session: u64,
    pub generation: u32,
    /// Client: retransmissions that belong to earlier transfers.
    pub again: u32,
    /// The limit on the rate at which this end sends.
    pub paced: Option<Paced>,
    /// Client: the same of the server, bytes per second; 0 for none.
    pub limit: u64,
    /// Bytes still to be sent and to be received.
    pub to_send: u64,
    pub to_receive: u64,
    /// Second of the last progress.
    pub progress: u32,
    /// Client: the flow's record. Server: only `source` is used, for the peer's address.
    pub flow: Flow,
}

impl Conn {
    /// A connection without a transfer.
    pub fn new(fd: OwnedFd, state: State, now: Time) -> Conn {
        Conn {
            fd,
            state,
            ready: false,
            wakes: false,
            keep: false,
            party: 0,
            marks: Marks::default(),
            session: 0,
            generation: 0,
            again: 0,
            paced: None,
            limit: 0,
            to_send: 0,
            to_receive: 0,
            progress: seconds(now),
            flow: Flow::default(),
        }
    }
}

/// Timer events.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wake {
    /// A datagram source's next exchange is due.
    Exchange(u64),
    /// The listener may be able to accept again.
    Accept,
    /// It is time to request a lease.
    Lease(u16),
    /// The rate limit may allow sending again.
    Room,
    /// The connection's own rate allows sending again.
    Paced(u64),
}

impl Ranked for Wake {}

/// The leases of one thread.
#[derive(Default)]
pub(super) struct Leases {
    pub all: BTreeMap<u64, Lease>,
    /// When to send the next keep-alive bytes.
    pub next: Time,
}

/// A lease, or an attempt to get one.
pub(super) struct Lease {
    pub party: u16,
    pub stage: Stage,
    /// The client's nonce and the server's.
    pub nonces: [[u8; 16]; 2],
    pub since: Time,
    /// Number of the agreement with this party; 0 before the agreement.
    pub agreement: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Client: the connection is not established yet.
    Connecting,
    /// Client: waits for the server's answer. Server: waits for the client's proof.
    Asked,
    Agreed,
}

/// The server's sockets.
pub(super) struct Answerer {
    pub listener: OwnedFd,
    pub datagrams: OwnedFd,
    /// Descriptors ran out, and connections are waiting.
    pub pausing: bool,
}

/// Marks within tokens.
pub(super) const LISTENER: u64 = 1 << 63;
pub(super) const SOURCE: u64 = 1 << 62;
pub(super) const NEWS_OF_COMMANDS: u64 = LISTENER | SOURCE;
pub(super) const DATAGRAMS: u64 = LISTENER | 1;

/// Most bytes of one write.
pub(super) const CHUNK: usize = 256 << 10;

/// Whole seconds.
pub(super) fn seconds(now: Time) -> u32 {
    u32::try_from(now.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX)
}

//! The interface between a workload and its carrier: the simulator or kernel sockets.

pub use swell_base::End;
use swell_base::{Dur, Rate, Side, Time};
use swell_traffic::Wire;

use crate::{Record, Sample};

/// Bytes of IPv4 and TCP headers with timestamps (RFC 7323), as the `linux` profile sends them. Sources that follow a
/// schedule over TCP subtract them from the packet size, whatever the profile. They thus write the payload of such a
/// packet.
pub const TCP_HEADERS: u32 = 52;

/// A connection or datagram flow, numbered by the workload that opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conn(pub u32);

/// Events passed to a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The run begins. Sent once, before all other events.
    Start,
    /// A timer set by [`Action::Timer`] with this token is due.
    Timer(u64),
    /// The handshake is complete at this end.
    Connected(Conn, End),
    /// The given number of new bytes can be read at this end.
    Received(Conn, End, u64),
    /// On a QUIC connection, bytes arrived at this end beyond some that are missing: offsets in the other end's data of
    /// the first and of one past the last. [`Event::Received`] counts them again when the missing ones are there.
    Early(Conn, End, u64, u64),
    /// Everything sent at this end so far has been acknowledged.
    Drained(Conn, End),
    /// The other end has closed, and all its data has been received.
    Eof(Conn, End),
    /// The connection was reset or timed out.
    Reset(Conn, End),
    /// Both directions are closed and the connection is gone. Includes its final transport statistics.
    Closed(Conn, Info),
    /// The answer to [`Action::Ask`].
    Info(Conn, Info),
    /// The answer to [`Action::Unsent`]: so many bytes have been written at this end and not sent yet.
    Unsent(Conn, End, u64),
    /// A datagram with this many payload bytes arrived at this end. The last field is its number, from 0, among all
    /// datagrams that both ends of the flow have sent. Over kernel sockets the first eight payload bytes carry the
    /// number, so shorter datagrams have none.
    Datagram(Conn, End, u32, Option<u64>),
}

/// Actions that a workload requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Open a TCP connection.
    Connect(Conn, Box<Open>),
    /// Open a datagram flow. This sends nothing.
    Datagrams(Conn, Box<Open>),
    /// Send bytes on a connection.
    Send(Conn, End, u64),
    /// Send one datagram with this many payload bytes.
    SendDatagram(Conn, End, u32),
    /// Close this end: it sends no more data.
    Close(Conn, End),
    /// Reset the connection and forget it. For a datagram flow: forget it.
    Abort(Conn),
    /// Send [`Event::Timer`] with this token after this time.
    Timer(Dur, u64),
    /// Answer with [`Event::Info`]. The statistics are for records, never for deciding what to send.
    Ask(Conn),
    /// Answer with [`Event::Unsent`]. A server that serves streams in turns learns this from its send buffer, and fills
    /// the next packets accordingly.
    Unsent(Conn, End),
}

/// The result of a timer of a source that follows a schedule. It is equivalent to [`Action::Send`] followed by
/// [`Action::Timer`] with the token of the expired timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedWrite {
    /// The connection.
    pub conn: Conn,
    /// The end that writes.
    pub end: End,
    /// Number of bytes.
    pub bytes: u64,
    /// Time until the next write.
    pub pause: Dur,
    /// All later writes of this timer also go to this end of this connection, whatever other events happen. While
    /// earlier data still waits there, further writes have no effect. So the carrier may ask for the next timed
    /// writes late, when their data is needed. It must keep their order and their pauses.
    pub alone: bool,
}

/// Transport statistics of a connection (kernel sockets: `TCP_INFO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Segments retransmitted by the client.
    pub client_retransmissions: u32,
    /// Segments retransmitted by the server.
    pub server_retransmissions: u32,
    /// Smallest round-trip time measured at either end, if any.
    pub min_rtt: Option<Dur>,
    /// Payload bytes received by the client's and by the server's application.
    pub received: [u64; 2],
}

/// Parameters of a new connection. By default both hosts are directly at the bottleneck.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Open {
    /// The side of the bottleneck on which the client is.
    pub client_side: Side,
    /// Path between the bottleneck and the client.
    pub client: Access,
    /// Path between the bottleneck and the server.
    pub server: Access,
    /// Names of the client and the server, where their access paths have no keys; 0 = hosts of this connection alone. For
    /// taps: the network ignores them.
    pub hosts: [u64; 2],
    /// Application class, as an index into the model's classes; 0 without a model. For taps: the network ignores it.
    pub class: u32,
    /// Cap on the client's receive window, bytes; 0 = the profile's.
    pub client_window: u32,
    /// Cap on the server's receive window, bytes; 0 = the profile's.
    pub server_window: u32,
    /// Headers, segment sizes and ACK behaviour, if known; the profile determines the rest.
    pub wire: Wire,
    /// The connection was established before the run began. It has no handshake, and these are the congestion windows
    /// of the client and the server, in segments. Kernel sockets cannot start in this state and connect normally.
    pub under_way: Option<[u32; 2]>,
    /// The workload does not need [`Event::Received`] and [`Event::Datagram`]; arrivals are counted in
    /// [`Info::received`] only. For sources that would only count them.
    pub silent: bool,
}

/// An access path between a host and the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Access {
    /// One-way delay.
    pub delay: Dur,
    /// Rate from the host; `None` = unlimited.
    pub up: Option<Rate>,
    /// Rate to the host; `None` = unlimited.
    pub down: Option<Rate>,
    /// Loss probability from the host, 0..1.
    pub loss_up: f64,
    /// Loss probability to the host, 0..1.
    pub loss_down: f64,
    /// Connections with equal keys share the path's links; 0 = a separate path.
    pub key: u64,
}

/// A workload: events in, actions out. It never asks how fast the network is. Its pauses start at *observed*
/// completions, which is what makes traffic responsive.
pub trait Workload: Send {
    /// Handles one event at `now` and appends the resulting actions to `actions`.
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>);

    /// Handles the expiry of this timer, if a [`TimedWrite`] is its only result. Otherwise returns `None` and changes
    /// nothing; the caller then sends [`Event::Timer`]. This avoids the list of actions, which is a large part of the
    /// cost of a simple source.
    fn timed_write(&mut self, token: u64) -> Option<TimedWrite> {
        let _ = token;
        None
    }

    /// Makes several [timed writes](Workload::timed_write) of a timer that is [alone](TimedWrite::alone): at most
    /// `most` writes of equal size that are due before `now`. `due` is the instant of the first write, and is updated
    /// to that of the next. Returns the bytes per write and the number of writes, which is zero if there are no timed
    /// writes.
    fn timed_writes(&mut self, token: u64, due: &mut Time, now: Time, most: u32) -> (u64, u32) {
        if most == 0 || *due >= now {
            return (0, 0);
        }
        match self.timed_write(token) {
            Some(write) => {
                *due += write.pause;
                (write.bytes, 1)
            }
            None => (0, 0),
        }
    }

    /// The connection that this timer probably concerns. This is only a hint, for prefetching.
    fn about(&self, token: u64) -> Option<Conn> {
        let _ = token;
        None
    }

    /// Sets whether to keep records of connections; the default is to keep them. Records use memory until the end of
    /// the run. Foregrounds and sources with few connections may keep them regardless.
    fn keep_records(&mut self, keep: bool) {
        let _ = keep;
    }

    /// Takes the records of work finished since the last call, in order of completion.
    fn take_records(&mut self) -> Vec<Record>;

    /// Takes the measured values since the last call, from workloads that measure themselves.
    fn take_samples(&mut self) -> Vec<Sample> {
        Vec::new()
    }

    /// Bytes of use to the application that have arrived so far, up and down: without headers, retransmissions and
    /// messages of its protocol. `None` for workloads whose requests or datagrams tell. `info` returns the transport
    /// statistics of open connections.
    fn delivered(&self, info: &dyn Fn(Conn) -> Info) -> Option<[u64; 2]> {
        let _ = info;
        None
    }

    /// Ends the run: unfinished work also becomes records. `info` returns the transport statistics of open connections.
    fn finish(&mut self, info: &dyn Fn(Conn) -> Info);
}

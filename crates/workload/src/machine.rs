//! The contract between a workload and whatever carries it: the simulator or kernel sockets.

use swell_base::{Dur, Rate, Time};
use swell_traffic::Wire;

use crate::{Record, Sample};

/// IPv4 and TCP headers with timestamps in bytes (RFC 7323), as the `linux` profile sends them. Sources
/// that follow a schedule take them off a packet's size where TCP carries it, whatever its profile: what is
/// written is then the payload of such a packet.
pub const TCP_HEADERS: u32 = 52;

/// A connection or datagram flow, numbered by the workload that opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conn(pub u32);

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The end that opened it.
    Client,
    /// The end that accepted it.
    Server,
}

/// What happened to a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The world begins. Sent once, first.
    Start,
    /// A timer set by [`Action::Timer`] with this token is due.
    Timer(u64),
    /// The handshake is complete at this end.
    Connected(Conn, End),
    /// That many new bytes can be read at this end.
    Received(Conn, End, u64),
    /// Everything sent at this end so far is acknowledged.
    Drained(Conn, End),
    /// The other end has closed; all its data was received.
    Eof(Conn, End),
    /// The connection was reset or gave up.
    Reset(Conn, End),
    /// Both directions are closed; the connection is gone. With its last transport facts.
    Closed(Conn, Info),
    /// The answer to [`Action::Ask`].
    Info(Conn, Info),
    /// A datagram of that many payload bytes arrived at this end. With its number among all packets that both ends of
    /// the flow sent, from 0. Over kernel sockets the first eight bytes of the payload carry it: shorter ones have none.
    Datagram(Conn, End, u32, Option<u64>),
}

/// What a workload wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Open a TCP connection.
    Connect(Conn, Box<Open>),
    /// Open a datagram flow; nothing is sent.
    Datagrams(Conn, Box<Open>),
    /// Send bytes on a connection.
    Send(Conn, End, u64),
    /// Send one datagram of that many payload bytes.
    SendDatagram(Conn, End, u32),
    /// No more data from this end.
    Close(Conn, End),
    /// Reset the connection, forget it. For a datagram flow: forget it.
    Abort(Conn),
    /// Call back after this long.
    Timer(Dur, u64),
    /// Answer with [`Event::Info`]: facts for the records, never for deciding what to send.
    Ask(Conn),
}

/// The life of a source that follows a schedule: [`Action::Send`], then [`Action::Timer`] with the token of
/// the timer that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedWrite {
    /// The connection that is written to,
    pub conn: Conn,
    /// by which end,
    pub end: End,
    /// and how much.
    pub bytes: u64,
    /// Until the next.
    pub pause: Dur,
    /// Every later write of this timer writes to this end of this connection too, whatever events there are. While
    /// what was written before still waits there, more changes nothing: the next timed writes may be asked for late, when
    /// what they write is needed, in their order and with the pauses that they give.
    pub alone: bool,
}

/// What the transport knows about a connection (kernel sockets: `TCP_INFO`).
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

/// Where a connection runs.
/// The default has both hosts right at the bottleneck.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Open {
    /// The client is on the right-hand side of the bottleneck instead of the left.
    pub from_right: bool,
    /// Path between the bottleneck and the client.
    pub client: Access,
    /// Path between the bottleneck and the server.
    pub server: Access,
    /// Application class, as an index into the model's classes; 0 where there is no model. For
    /// taps: nothing on the way looks at it.
    pub class: u32,
    /// Cap on the client's receive window, bytes; 0 = the profile's.
    pub client_window: u32,
    /// Cap on the server's receive window, bytes; 0 = the profile's.
    pub server_window: u32,
    /// Headers, segment sizes and acknowledgements where they are known; the rest is the profile's.
    pub wire: Wire,
    /// The connection was established before the world began: it has no handshake, and the client's and the
    /// server's congestion windows hold so many segments. Kernel sockets, which cannot begin so, connect.
    pub under_way: Option<[u32; 2]>,
    /// [`Event::Received`] and [`Event::Datagram`] are not wanted: what arrives is counted in
    /// [`Info::received`] only. For sources that nothing answers, which would do no more than count.
    pub silent: bool,
}

/// A path between a host and the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Access {
    /// One-way delay.
    pub delay: Dur,
    /// Capacity from the host; none = unlimited.
    pub up: Option<Rate>,
    /// Capacity to the host; none = unlimited.
    pub down: Option<Rate>,
    /// Loss from the host, 0..1.
    pub loss_up: f64,
    /// Loss to the host, 0..1.
    pub loss_down: f64,
    /// Connections with equal keys share the path's links; 0 = a path of its own.
    pub key: u64,
}

/// A workload: events in, actions out. It never asks how fast the network is; pauses run from
/// *observed* completions, which is what makes traffic responsive.
pub trait Workload: Send {
    /// Handles one event at `now`, appending what it wants done to `actions`.
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>);

    /// The timer with this token is due, as [`Event::Timer`] says, if all that comes of it is a [`TimedWrite`]; else
    /// `None`, and nothing has happened. Whoever asks instead of calling [`handle`](Workload::handle) saves the
    /// list of actions, which is a large part of what a source costs that does nothing else.
    fn timed_write(&mut self, token: u64) -> Option<TimedWrite> {
        let _ = token;
        None
    }

    /// Several [timed writes](Workload::timed_write) of a timer that is [alone](TimedWrite::alone): at most `most` writes of one size, of
    /// those due before `now`. `due` is when the first is due, and is set to when the next will be. How many bytes
    /// each of them writes, and how many they are; zero of them where there are no timed writes.
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

    /// The connection that the timer with this token is likely to be about: a hint, so that what is
    /// known of it is at hand when the timer is due.
    fn about(&self, token: u64) -> Option<Conn> {
        let _ = token;
        None
    }

    /// Whether connections are to leave records; by default they do. They take memory as long as a run goes on.
    /// Foregrounds and sources with few connections leave theirs all the same.
    fn keep_records(&mut self, keep: bool) {
        let _ = keep;
    }

    /// What was finished since the last call, for the tables, in order of completion.
    fn take_records(&mut self) -> Vec<Record>;

    /// Values of measures since the last call, of those that rate what they see themselves.
    fn take_samples(&mut self) -> Vec<Sample> {
        Vec::new()
    }

    /// The run ends: what was begun and is not finished becomes a record too. `info` knows the
    /// transport facts of connections that are still there.
    fn finish(&mut self, info: &dyn Fn(Conn) -> Info);
}

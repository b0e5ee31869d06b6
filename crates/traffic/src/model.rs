//! The traffic model.

use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate, Warning};

use crate::Datagrams;

/// A traffic model: which hosts exchanged what, with which sizes, pauses and paths, and when.
///
/// It is an empirical *joint* distribution. Sessions are kept whole, so dependencies in the trace
/// (response on request, sizes on class, path on user, pauses on sizes) are preserved. "Up" is from the
/// client (which opened the connection) to the server, "down" the way back. "Inside" is the side of the
/// tap with most clients, on the left of the tapped link.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Short name: `campus`, `isi-2pm`.
    pub name: String,
    /// Where it came from.
    pub provenance: Provenance,
    /// What could not be observed or should be doubted.
    pub warnings: Vec<Warning>,
    /// Duration of the trace.
    pub duration: Dur,
    /// Time-outs used to form sessions and groups.
    pub parameters: Parameters,
    /// Totals of the trace.
    pub totals: Totals,
    /// Bytes on the tapped link over time.
    pub load: Load,
    /// Application classes.
    pub classes: Vec<Class>,
    /// Paths between the tap and each client host.
    pub client_paths: Vec<Path>,
    /// Paths between the tap and each server host.
    pub server_paths: Vec<Path>,
    /// Sessions, ordered by start.
    pub sessions: Vec<Session>,
}

/// Where a model came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Program and version that made it.
    pub made_by: String,
    /// File names (no directories) of the sources.
    pub sources: Vec<String>,
    /// SHA-256 of each source as read, hex, if computed.
    pub digests: Vec<String>,
    /// Free text: what the source is, its licence.
    pub note: String,
    /// Cost of leaving sessions out, if some were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinning: Option<Thinning>,
    /// The epsilon of a model made with noise, which hides whether any one session was in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<f64>,
    /// How closely replayed traffic matches the trace, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// Published mean rates that a stand-in for an unavailable trace aims at, left to right and right to
    /// left, bits per second of network-layer bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<[f64; 2]>,
    /// What the model plays, measured where there is no trace to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<Played>,
}

/// Result of replaying the model and comparing with its trace (`docs/fidelity.md`). It applies to the
/// program version that made it; another version may replay differently.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Program and version.
    pub made_by: String,
    /// Number of seeds replayed.
    pub seeds: u64,
    /// Number of quantities that match.
    pub met: u64,
    /// Number of quantities compared.
    pub rows: u64,
    /// Mean distance of the wavelet energies over the octaves from 2 ms to 8 s, left to right and right to
    /// left, dB.
    pub energy: [f64; 2],
    /// The same between two halves of the trace, if there are two.
    pub halves: [Option<f64>; 2],
    /// Wasserstein distances of distributions, octaves, by quantity.
    pub w1: Vec<(String, f64)>,
    /// Replayed amount relative to the trace, by quantity: bytes, packets, connections, flows.
    pub counts: Vec<(String, f64)>,
}

/// What a model plays in steady state on an otherwise empty link, mean over seeds. It applies to the program
/// version that made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Played {
    /// Program and version.
    pub made_by: String,
    /// Number of seeds played, each for the model's duration.
    pub seeds: u64,
    /// Mean rates left to right and right to left, bits per second of network-layer bytes.
    pub rates: [f64; 2],
    /// [`Load::energy_slope`] of the larger direction, decibels per octave.
    pub energy_slope: Option<f64>,
}

/// Size and accuracy of a sample of sessions whose weights represent all of them ([`crate::Thinner`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thinning {
    /// Sessions kept.
    pub kept: u64,
    /// Sessions offered.
    pub seen: u64,
    /// Wasserstein distance between sizes of connections in the sample and in the whole, octaves.
    pub w1_connections: f64,
    /// The same for bytes by the size of their connection, which shows how well large ones are
    /// represented.
    pub w1_bytes: f64,
}

/// Time-outs of the session structure (Swing; algorithms as in Vishwanath & Vahdat, section III).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Maximum silence before a connection for it to belong to the same group, unless all that group's connections (but
    /// datagrams) are over. 30 s.
    pub group_timeout: Dur,
    /// Maximum silence before a group for it to belong to the same session. 5 min.
    pub session_timeout: Dur,
    /// Silence inside one direction that separates application data units. 500 ms; less if RTTs show that
    /// TCP would not have waited that long.
    pub quiet: Dur,
}

/// Totals of the trace. Bytes are network-layer bytes, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Packets left to right (away from the inside) and right to left.
    pub packets: [u64; 2],
    /// Network-layer bytes left to right and right to left.
    pub bytes: [u64; 2],
    /// TCP connections seen, including incomplete ones.
    pub tcp_connections: u64,
    /// TCP connections with a complete handshake.
    pub tcp_handshakes: u64,
    /// UDP flows.
    pub udp_flows: u64,
    /// Packets in no modelled flow (ICMP, other protocols, fragments).
    pub unmodelled_packets: u64,
    /// Network-layer bytes of those.
    pub unmodelled_bytes: u64,
}

/// Network-layer bytes per bin on the tapped link, and its log-scale diagrams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Bin width.
    pub bin: Dur,
    /// Bytes per bin, left to right and right to left.
    pub bytes: [Vec<u64>; 2],
    /// Whether a line that hosts share was full at times, left to right and right to left. Its queue then made sessions
    /// longer.
    pub filled: [bool; 2],
    /// Bin width of octave 0 of the log-scale diagrams.
    pub lsd_bin: Dur,
    /// log2 of the wavelet energy of bytes per bin by octave (octave 1 first), per direction.
    pub lsd: [Vec<f64>; 2],
}

/// Octaves that determine the slope of the energy, with bins of 1 ms: 8 ms to 1 s.
const SLOPE: std::ops::RangeInclusive<usize> = 3..=10;

impl Load {
    /// Slope of the wavelet energy of one direction (0: left to right) from 8 ms to 1 s, by least squares, in
    /// decibels per octave. Independent packets have 0, long-range dependent traffic has more. `None` if an
    /// octave is missing or silent, or the diagram begins with other bins than 1 ms.
    pub fn energy_slope(&self, way: usize) -> Option<f64> {
        if self.lsd_bin != Dur::from_millis(1) {
            return None;
        }
        let points: Vec<(f64, f64)> = SLOPE
            .map(|octave| Some((octave as f64, *self.lsd[way].get(octave - 1)?)))
            .collect::<Option<_>>()?;
        let n = points.len() as f64;
        let (x, y) = (points.iter()).fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
        let cross: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
        let slope = cross / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
        slope.is_finite().then_some(10.0 * libm::log10(2.0) * slope)
    }
}

/// An application class.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// `https`, `dns`, `other-tcp`, …
    pub name: String,
    /// Whether it is a UDP class.
    pub udp: bool,
}

/// The path between the tap and a host. Directions are relative to the host: "up" is from the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Round-trip time between tap and host.
    pub rtt: Dur,
    /// Capacity from the host, if it could be estimated.
    pub up: Option<Rate>,
    /// Capacity to the host, if it could be estimated.
    pub down: Option<Rate>,
    /// Share of packets lost between host and tap.
    pub loss_up: f64,
    /// Share of packets lost between tap and host.
    pub loss_down: f64,
    /// RTT samples behind `rtt`; 0 means that it was borrowed from a similar host.
    pub rtt_samples: u32,
    /// Packet pairs behind the capacities.
    pub capacity_samples: u32,
    /// Data packets behind the losses.
    pub loss_samples: u32,
}

/// One user's visit: groups of connections with pauses between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Index into `classes`.
    pub class: u32,
    /// Start, since the beginning of the trace.
    pub start: Dur,
    /// Number of sessions of the trace that this one represents (1 unless the model was thinned).
    pub weight: f64,
    /// Index into `client_paths`.
    pub client: u32,
    /// Whether the client is on the outside (right) of the tapped link.
    pub outside: bool,
    /// How long it lasted in the recording: to its last activity. `None`: not recorded.
    pub lasted: Option<Dur>,
    /// Request-response groups (RREs), in order.
    pub groups: Vec<Group>,
}

/// A request-response group: connections opened for one action of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Think time since the end of the previous group (zero for the first). A group ends with the last
    /// activity that the next one waited for, which may be in the middle of a connection
    /// ([`Connection::overlap`]).
    pub think: Dur,
    /// Its connections, in order of their starts.
    pub connections: Vec<Connection>,
}

/// A connection or datagram flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Time since the start of the previous connection of the group (zero for the first).
    pub gap: Dur,
    /// Index into `server_paths`.
    pub server: u32,
    /// The data exchanged.
    pub exchange: Exchange,
    /// Maximum bytes in flight that the client's receive window allows. This is the largest window
    /// offered, if transfers filled it and it did not grow further; else the most that its scale allows. 0
    /// = not seen.
    pub client_window: u32,
    /// The same for the server's receive window.
    pub server_window: u32,
    /// How data were segmented and acknowledged.
    pub wire: Wire,
    /// Where, inside units of data, new writes of the client (0) and the server (1) begin.
    pub writes: [Vec<Write>; 2],
    /// Which of its turns wait until nothing is under way on the other connections of the session that have such
    /// waits, in order; the first is that of turn 0, its opening. Empty: it waits for its own answers only.
    pub waits: Vec<Wait>,
    /// Started before the trace (no SYN seen).
    pub left_censored: bool,
    /// Still open when the trace ended, or ended by the idle time-out.
    pub right_censored: bool,
    /// Progress when the session's next group began, if it was not over by then: units of the client and
    /// of the server (requests and responses of turns, units of chains, SYNs, datagrams). The next group
    /// waits for no more than that, and not for all of it ([`Connection::awaited`]).
    pub overlap: Option<[u32; 2]>,
}

/// Packet-level properties of a connection: headers, segments, ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// IPv6: 20 more bytes of header in every packet than IPv4.
    pub ipv6: bool,
    /// Whether TCP segments carried timestamps (RFC 7323); `None` if no segment was seen.
    pub timestamps: Option<bool>,
    /// Whether both ends permitted selective acknowledgements (RFC 2018); `None` if unknown.
    pub sack: Option<bool>,
    /// The client (0) and the server (1) as TCP ends.
    pub ends: [WireEnd; 2],
}

/// One end of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireEnd {
    /// Payload of the full segments it sends, bytes; 0 = unknown.
    pub mss: u16,
    /// Number of segments it acknowledged individually and promptly before its first delayed ACK. 255: it
    /// never delayed. `None` if there was no opportunity to observe.
    pub quick_acks: Option<u8>,
    /// Full segments per ACK in the middle of transfers, rounded; 0 = unknown.
    pub ack_every: u8,
}

/// The position in a direction's data where one write of the application ended and another began.
///
/// A segment that is not full ends a write: with more data to send, it would have been full. The data
/// after it were written later, whether or not the network was free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// Bytes of the direction since the previous position (or since the start of the connection).
    pub after: u64,
    /// Time from the start of the previous write to the start of the next.
    pub gap: Dur,
}

/// A turn that waits for other connections of its user, as the first request of a page on a kept connection does.
///
/// Busy periods of the session are numbered. The next begins when nothing is under way on the connections that have
/// waits, and the least number for which any of them waits is the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Index of the turn; 0 is the connection's opening.
    pub turn: u32,
    /// Number of the busy period. An opening in period 0 follows its `gap`.
    pub page: u32,
    /// Time from the end of the periods before to the turn's first byte. For a turn but the first, it replaces
    /// `client_think` of the turn before.
    pub pause: Dur,
}

/// The application data of a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Exchange {
    /// Requests and responses in turn.
    Sequential(Vec<Turn>),
    /// Both directions at once, each a chain of units that may wait for units of the other.
    Concurrent {
        /// From the client.
        up: Vec<Unit>,
        /// From the server.
        down: Vec<Unit>,
    },
    /// A TCP connection that was never established: its SYNs with their spacing, and whether one was
    /// refused.
    Attempt {
        /// Pauses before each SYN after the first.
        retries: Vec<Dur>,
        /// Whether a RST came back.
        refused: bool,
    },
    /// Datagrams.
    Datagrams(Datagrams),
}

/// A request and its response. A turn without a request continues the response after `server_think`. After
/// one without a response, the client continues after `client_think`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Turn {
    /// Request bytes.
    pub request: u64,
    /// Time from the request's last byte at the server to the response's first.
    pub server_think: Dur,
    /// Response bytes.
    pub response: u64,
    /// Time from the response's last byte at the client to the next request's first.
    pub client_think: Dur,
}

/// A unit of data of one end of a connection on which both ends send at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unit {
    /// Time from the event that it waits for to its first byte. The event is the last byte of the previous
    /// unit of the same end. If `after` is larger than that unit's, it is instead the arrival of the other
    /// end's unit number `after`.
    pub pause: Dur,
    /// Bytes.
    pub bytes: u64,
    /// Number of the other end's units that had arrived, by its acknowledgement number.
    pub after: u32,
}

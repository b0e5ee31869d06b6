//! What a traffic model is.

use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate, Warning};

use crate::Datagrams;

/// A traffic model: who talked to whom for what, with which sizes, pauses and paths, and when.
///
/// It is an empirical *joint* distribution: sessions are kept whole, so what depends on each other
/// in the trace (response on request, sizes on class, path on user, pauses on sizes) still does.
/// "Up" is from the client (who opened) to the server, "down" the way back. "Inside" is the side
/// of the tap that most clients are on; the tapped link has them on its left.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Short name: `campus`, `isi-2pm`.
    pub name: String,
    /// Where it came from.
    pub provenance: Provenance,
    /// What could not be seen or should be doubted.
    pub warnings: Vec<Warning>,
    /// How long the trace was.
    pub duration: Dur,
    /// Time-outs used to form sessions and groups.
    pub parameters: Parameters,
    /// What the trace held in total.
    pub totals: Totals,
    /// Bytes on the tapped link over time.
    pub load: Load,
    /// Application classes.
    pub classes: Vec<Class>,
    /// Paths between the tap and each client host.
    pub client_paths: Vec<Path>,
    /// Paths between the tap and each server host.
    pub server_paths: Vec<Path>,
    /// Sessions, by start.
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
    /// SHA-256 of each source as read, hex, where computed.
    pub digests: Vec<String>,
    /// Free text: what the source is, its licence.
    pub note: String,
    /// What leaving sessions out cost, where some were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinning: Option<Thinning>,
    /// The epsilon of a model made with noise, so that no session of the trace is betrayed by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<f64>,
    /// How near what is played comes to the trace, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
}

/// What came out when the model was played and held against its trace (`docs/fidelity.md`). It is of the program
/// that made it: another version may play otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Program and version.
    pub made_by: String,
    /// Seeds played.
    pub seeds: u64,
    /// Quantities that are met, of how many.
    pub met: u64,
    /// Quantities compared.
    pub rows: u64,
    /// Mean distance of the wavelet energies over the octaves from 2 ms to 8 s, left to right and right to left, dB.
    pub energy: [f64; 2],
    /// The same between two halves of the trace, where there are two.
    pub halves: [Option<f64>; 2],
    /// Wasserstein distances of distributions, octaves, by quantity.
    pub w1: Vec<(String, f64)>,
    /// What came back over what there was, by quantity: bytes, packets, connections, flows.
    pub counts: Vec<(String, f64)>,
}

/// Sessions that stand for others ([`crate::Thinner`]), and how far the sample is from the whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thinning {
    /// Sessions kept.
    pub kept: u64,
    /// Sessions there were.
    pub seen: u64,
    /// Wasserstein distance between sizes of connections in the sample and in the whole, octaves.
    pub w1_connections: f64,
    /// The same between bytes by the size of their connection: what the large ones look like.
    pub w1_bytes: f64,
}

/// Time-outs of the session structure (Swing; algorithms as in Vishwanath & Vahdat, section III).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// A connection that starts within this of a group belongs to it. 30 s.
    pub group_timeout: Dur,
    /// A group that starts within this of a session's last group belongs to it. 5 min.
    pub session_timeout: Dur,
    /// Silence inside one direction that splits one application data unit from the next. 500 ms;
    /// less where round trips show that TCP would not have waited so long.
    pub quiet: Dur,
}

/// Totals of the trace. Bytes are network-layer bytes, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Packets left to right (away from the inside) and right to left.
    pub packets: [u64; 2],
    /// Network-layer bytes left to right and right to left.
    pub bytes: [u64; 2],
    /// TCP connections seen, however incomplete.
    pub tcp_connections: u64,
    /// TCP connections with a complete handshake.
    pub tcp_handshakes: u64,
    /// UDP flows.
    pub udp_flows: u64,
    /// Packets that belong to no modelled flow (ICMP, other protocols, fragments), and their bytes.
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
    /// Bin width of octave 0 of the log-scale diagrams.
    pub lsd_bin: Dur,
    /// log2 of the wavelet energy of bytes per bin by octave (octave 1 first), per direction.
    pub lsd: [Vec<f64>; 2],
}

/// An application class.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// `https`, `dns`, `other-tcp`, …
    pub name: String,
    /// True for UDP.
    pub udp: bool,
}

/// The path between the tap and a host. Directions are the host's: "up" is from the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Round-trip time between tap and host.
    pub rtt: Dur,
    /// Capacity from the host, where it could be estimated.
    pub up: Option<Rate>,
    /// Capacity to the host, where it could be estimated.
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
    /// How many sessions of the trace this one stands for (1 unless the model was thinned).
    pub weight: f64,
    /// Index into `client_paths`.
    pub client: u32,
    /// True where the client is on the outside (right) of the tapped link.
    pub outside: bool,
    /// Request-response groups (RREs), in order.
    pub groups: Vec<Group>,
}

/// A request-response group: connections opened for one thing the user wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Think time since the end of the previous group (zero for the first): since the last activity
    /// that it waited for, be it of connections that go on ([`Connection::overlap`]).
    pub think: Dur,
    /// Its connections, in order of their starts.
    pub connections: Vec<Connection>,
}

/// A connection or datagram flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Since the start of the previous connection of the group (zero for the first).
    pub gap: Dur,
    /// Index into `server_paths`.
    pub server: u32,
    /// What happened on it.
    pub exchange: Exchange,
    /// Most that the client's receive window lets be under way, bytes: the largest that it offered, where
    /// transfers filled it and it grew no more, else the most that its scale allows. 0 = not seen.
    pub client_window: u32,
    /// The same of the server's.
    pub server_window: u32,
    /// How data was put into packets and acknowledged.
    pub wire: Wire,
    /// Where, inside its units of data, the client (0) and the server (1) wrote anew.
    pub writes: [Vec<Write>; 2],
    /// Started before the trace did (no SYN seen).
    pub left_censored: bool,
    /// Still open when the trace ended, or idle for the time-out.
    pub right_censored: bool,
    /// How much of it had passed when the session's next group began, where it was not over by
    /// then: units of the client and of the server (requests and responses of turns, units of
    /// chains, SYNs, datagrams). The next group waits for no more than that.
    pub overlap: Option<[u32; 2]>,
}

/// What an exchange looks like in packets: headers, segments, acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// IPv6: 20 bytes more of header in every packet than IPv4.
    pub ipv6: bool,
    /// Whether TCP segments carried timestamps (RFC 7323); `None` where no segment was seen.
    pub timestamps: Option<bool>,
    /// Whether both ends permitted selective acknowledgements (RFC 2018); `None` where it was not seen.
    pub sack: Option<bool>,
    /// The client (0) and the server (1) as TCP ends.
    pub ends: [WireEnd; 2],
}

/// One end of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireEnd {
    /// Payload of the full segments it sends, bytes; 0 = not known.
    pub mss: u16,
    /// Segments it acknowledged one by one and at once before it first waited for another; 255 or
    /// more: it never waited. `None` where there was no occasion to see.
    pub quick_acks: Option<u8>,
    /// Full segments per acknowledgement in the middle of transfers, rounded; 0 = not known.
    pub ack_every: u8,
}

/// The place in a direction's data where a write of the application ended and another began.
///
/// A segment that is not full ends a write: had more been there to send, it would have been
/// filled. What follows was written later, whether or not the network was free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// Bytes of the direction since the place before (or since the connection's beginning).
    pub after: u64,
    /// From the beginning of what was written before to the beginning of what follows.
    pub gap: Dur,
}

/// The application's side of a connection.
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
    /// A TCP connection that never came to be: SYNs with their spacing, and whether one was refused.
    Attempt {
        /// Pauses before each SYN after the first.
        retries: Vec<Dur>,
        /// A RST came back.
        refused: bool,
    },
    /// Datagrams.
    Datagrams(Datagrams),
}

/// A request and its response. A turn without request continues the response after `server_think`;
/// one without response lets the client go on after `client_think`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Turn {
    /// Request bytes.
    pub request: u64,
    /// From the request's last byte at the server to the response's first.
    pub server_think: Dur,
    /// Response bytes.
    pub response: u64,
    /// From the response's last byte at the client to the next request's first.
    pub client_think: Dur,
}

/// A unit of data of one end of a connection on which both send at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unit {
    /// From what it waited for to its first byte: the last byte of the unit before it at the same
    /// end, or, where `after` is more than that one's, of the other end's unit it came after.
    pub pause: Dur,
    /// Bytes.
    pub bytes: u64,
    /// How many units of the other end had arrived, as its acknowledgement number says.
    pub after: u32,
}

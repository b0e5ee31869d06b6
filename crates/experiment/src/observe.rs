//! The observations of a run: rows of the result tables.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swell_base::{Direction, Warning};

pub use crate::exporter::{Exported, TrueFlow};
pub use crate::measure::MeasureSample;

/// Identifies a run: a foreground, a background and a seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the foreground in the experiment file.
    pub foreground: String,
    /// Name of the background in the experiment file.
    pub background: String,
    /// Replication number, from 0. Equal numbers use equal seeds in every background.
    pub replication: u32,
    /// The seed of this replication.
    pub seed: u64,
}

/// Everything observed in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observations {
    /// Table `requests`: one row per foreground request, in order of their starts.
    pub requests: Vec<Request>,
    /// Table `bins`: the links over time, in bins, both directions.
    pub bins: Vec<Bin>,
    /// Table `scales`: wavelet energies of the links' arrivals.
    pub scales: Vec<Scale>,
    /// Table `coherence`: what links that follow each other on a path have in common, where there are several.
    pub coherence: Vec<Coherence>,
    /// Table `flows`: background connections, and those of a foreground of packets.
    pub flows: Vec<Flow>,
    /// Table `links`: totals of the links after warm-up.
    pub links: Vec<LinkTotals>,
    /// Table `waits`: waits at the links after warm-up, where the experiment keeps them or the foreground sends packets
    /// at given times over TCP.
    pub waits: Vec<Wait>,
    /// Table `delays`: one-way delays of the foreground's datagrams, where it sends packets at given times.
    pub delays: Vec<Delay>,
    /// Table `parts`: totals of each part after warm-up, where there are several.
    pub parts: Vec<PartTotals>,
    /// Table `part_bins`: each part over time, where there are several.
    pub part_bins: Vec<PartBin>,
    /// Table `synchrony`: loss synchronization of connections, where the experiment keeps it.
    pub synchrony: Vec<Synchrony>,
    /// Reports of the links' flow exporters, where the experiment keeps them.
    pub exported: Vec<Arc<Exported>>,
    /// Table `measures`: values that the foreground reported itself, in the order of its reports.
    pub measures: Vec<MeasureSample>,
    /// Table `estimates`: a probe's estimates and the actual available bandwidth, at several timescales.
    pub estimates: Vec<Estimate>,
    /// Table `waterfall`: the components of request times, where the experiment keeps them.
    pub waterfall: Vec<Share>,
    /// Table `rtts`: round trips of the foreground's packets, where the experiment keeps them.
    pub rtts: Vec<RoundTrip>,
    /// Table `gaps`: idle times between windows of the foreground's senders, where the experiment keeps them.
    pub gaps: Vec<WindowGap>,
    /// Doubts.
    pub warnings: Vec<Warning>,
}

impl Observations {
    /// Keeps only rows of `link` in the tables of links. Other tables are unchanged.
    pub fn of_link(mut self, link: &str) -> Observations {
        self.bins.retain(|row| &*row.link == link);
        self.scales.retain(|row| &*row.link == link);
        self.links.retain(|row| &*row.link == link);
        self.coherence.clear();
        self.waits.retain(|row| &*row.link == link);
        self.parts.retain(|row| &*row.link == link);
        self.part_bins.retain(|row| &*row.link == link);
        self.synchrony.retain(|row| &*row.link == link);
        self.exported.retain(|seen| &*seen.link == link);
        self
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Every byte arrived.
    Done,
    /// The run ended first: it took at least until `observed_until` (right-censored).
    Unfinished,
    /// The connection was reset or gave up.
    Failed,
}

/// A foreground request. Times are seconds since the start of the run; NaN where it did not happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Client number within the foreground.
    pub client: u32,
    /// Number of the request within the client.
    pub index: u32,
    /// When the client issued the request.
    pub start: f64,
    /// When the connection was established (`start` on a kept connection).
    pub connected: f64,
    /// First byte of the response.
    pub first_byte: f64,
    /// Last byte of the response; of an unfinished request the last one seen, if any.
    pub last_byte: f64,
    /// End of the observation: the last byte if it is done, else when it failed or the run ended.
    pub observed_until: f64,
    /// Response bytes received.
    pub bytes: u64,
    /// Segments retransmitted by the server while it sent the response.
    pub retransmissions: u32,
    /// How it ended.
    pub outcome: Outcome,
}

/// An estimate of the available bandwidth, and the actual available bandwidth of the path during the estimate, in
/// intervals of one length. In each interval, the link with the least available bandwidth counts. Bandwidths are bits
/// per second.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// When it was made, seconds since the start of the run.
    pub at: f64,
    /// Lowest and highest value of the estimate.
    pub range: [f64; 2],
    /// Network-layer bytes that the probe sent for it.
    pub bytes: u64,
    /// How long it took, seconds.
    pub duration: f64,
    /// Length of the intervals, seconds.
    pub timescale: f64,
    /// Number of intervals. If the estimate took less time than an interval, there is one, which began earlier.
    pub intervals: u32,
    /// Mean available bandwidth over the intervals.
    pub mean: f64,
    /// Standard deviation over the intervals; zero for a single interval.
    pub sd: f64,
    /// Minimum and maximum over the intervals.
    pub ends: [f64; 2],
}

/// A component of the time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Propagation of the packets that open the connection.
    Handshake,
    /// Propagation of the request.
    Request,
    /// Processing at the server, before it answered.
    Server,
    /// Propagation of the packet with the last byte.
    Response,
    /// Propagation of earlier data and ACKs, while the sender's window was full, as in slow start.
    Rounds,
    /// Queueing of data and handshake packets at a link.
    QueueData,
    /// Queueing of ACKs at a link.
    QueueAcks,
    /// Transmission at a link's rate.
    Transmission,
    /// Loss recovery: from the first transmission of a lost packet to its retransmission.
    Recovery,
    /// Hosts: delayed ACKs, pauses and timers of the application, pacing.
    Hosts,
}

impl Cause {
    /// Every cause, in the order in which a page shows them.
    pub const ALL: [Cause; 10] = [
        Cause::Handshake,
        Cause::Request,
        Cause::Server,
        Cause::Response,
        Cause::Rounds,
        Cause::QueueData,
        Cause::QueueAcks,
        Cause::Transmission,
        Cause::Recovery,
        Cause::Hosts,
    ];

    /// The name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Handshake => "handshake",
            Cause::Request => "request",
            Cause::Server => "server",
            Cause::Response => "response",
            Cause::Rounds => "rounds",
            Cause::QueueData => "queue-data",
            Cause::QueueAcks => "queue-acks",
            Cause::Transmission => "transmission",
            Cause::Recovery => "recovery",
            Cause::Hosts => "hosts",
        }
    }
}

/// A part of the time of a request. The parts of a request add up to its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Client number within the foreground.
    pub client: u32,
    /// Number of the request within the client.
    pub index: u32,
    /// The component.
    pub cause: Cause,
    /// Name of the link; empty if the component belongs to no link.
    pub link: Arc<str>,
    /// Duration, seconds.
    pub seconds: f64,
}

/// What showed a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A SYN or SYN-ACK and its acknowledgement.
    Handshake,
    /// Data and its acknowledgement.
    Data,
}

/// A round trip of a packet of the foreground, at its sender: from its transmission to the first acknowledgement that
/// covers it. Packets sent more than once, and those acknowledged together with one, have none.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTrip {
    /// Connection, from 0 in the order of their first packets.
    pub connection: u32,
    /// In which direction the packet was sent.
    pub direction: Direction,
    /// What showed it.
    pub shown: Shown,
    /// When the packet was sent, seconds since the start of the run.
    pub at: f64,
    /// Seconds until it was acknowledged.
    pub rtt: f64,
}

/// The time between two windows of a sender of the foreground. A window is what it sends from one packet until that
/// packet is acknowledged. Windows on the two sides of data from the other end have no gap between them.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowGap {
    /// Connection, from 0 in the order of their first packets.
    pub connection: u32,
    /// In which direction the windows were sent.
    pub direction: Direction,
    /// The last packet of the earlier window, seconds since the start of the run.
    pub at: f64,
    /// Seconds from there to the first packet of the later window.
    pub gap: f64,
}

/// One bin of one direction of a link. Bytes are network-layer bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bin {
    /// Start of the bin, seconds since the start of the run.
    pub time: f64,
    /// Name of the link.
    pub link: Arc<str>,
    /// Direction; `Down` is towards the foreground's clients.
    pub direction: Direction,
    /// Bytes that arrived at the queue, foreground and background.
    pub arrived: [u64; 2],
    /// Packets that arrived at the queue, foreground and background.
    pub arrived_packets: [u32; 2],
    /// Bytes that left on the wire, foreground and background.
    pub departed: [u64; 2],
    /// Packets dropped, foreground and background.
    pub dropped: [u32; 2],
    /// Longest queue seen at an arrival, bytes.
    pub queue_max: u64,
    /// Mean queue seen by arrivals, bytes; NaN where nothing arrived.
    pub queue_mean: f64,
}

/// Energy of a link's arrivals at one octave.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Name of the link.
    pub link: Arc<str>,
    /// Direction.
    pub direction: Direction,
    /// "background" or "all".
    pub traffic: String,
    /// "bytes" or "packets" per bin.
    pub quantity: String,
    /// Octave j, from 1: timescale is 2^j bins.
    pub octave: u32,
    /// Timescale in seconds: 2^j times the bin width.
    pub timescale: f64,
    /// Wavelet coefficients behind it.
    pub n: u64,
    /// Mean squared wavelet coefficient.
    pub energy: f64,
}

/// What the arrivals at two links, one behind the other on a path, have in common at one octave.
#[derive(Clone, Debug, PartialEq)]
pub struct Coherence {
    /// Name of the first link.
    pub link: Arc<str>,
    /// Direction on it.
    pub direction: Direction,
    /// Name of the link behind it on the path.
    pub next: Arc<str>,
    /// Direction on that one.
    pub next_direction: Direction,
    /// "background" or "all".
    pub traffic: String,
    /// Octave j, from 1: timescale is 2^j bins.
    pub octave: u32,
    /// Timescale in seconds: 2^j times the bin width.
    pub timescale: f64,
    /// Pairs of wavelet coefficients behind it.
    pub n: u64,
    /// Correlation of the coefficients.
    pub correlation: f64,
    /// Its square.
    pub coherence: f64,
}

/// A background connection or datagram flow, or one of a foreground of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Application class of the model; `replay`, `greedy`, `swarm`, `on-off` or, of CBR and Poisson,
    /// `parametric`; of a foreground, `foreground`.
    pub class: String,
    /// Start, seconds since the start of the run.
    pub start: f64,
    /// End; NaN where it was still open at the end of the run.
    pub end: f64,
    /// Application bytes client to server.
    pub up: u64,
    /// Application bytes server to client.
    pub down: u64,
    /// Smallest round-trip time the server measured, seconds; NaN if none.
    pub rtt: f64,
    /// Segments retransmitted, both ends.
    pub retransmissions: u32,
}

/// Totals of one direction of a link, after warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkTotals {
    /// Name of the link.
    pub link: Arc<str>,
    /// Direction.
    pub direction: Direction,
    /// Capacity, bits per second.
    pub rate: f64,
    /// Seconds observed.
    pub duration: f64,
    /// Bytes that arrived at the queue, foreground and background.
    pub arrived: [u64; 2],
    /// Packets that arrived at the queue, foreground and background.
    pub arrived_packets: [u64; 2],
    /// Bytes that left on the wire, foreground and background.
    pub departed: [u64; 2],
    /// Packets dropped, foreground and background.
    pub dropped: [u64; 2],
    /// Packets dropped by reason: queue full, active queue management, loss.
    pub dropped_by: [u64; 3],
    /// Packets that the queue marked Congestion Experienced (RFC 3168) instead of dropping them.
    pub marked: u64,
}

/// Totals of one part in one direction of a link, after warm-up. Packets of real programs belong to no part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartTotals {
    /// Its name in the experiment file.
    pub part: String,
    /// "foreground" or "background".
    pub role: String,
    /// Name of the link.
    pub link: Arc<str>,
    /// Direction.
    pub direction: Direction,
    /// Seconds observed.
    pub duration: f64,
    /// Bytes that arrived at the queue.
    pub arrived: u64,
    /// Packets that arrived at the queue.
    pub arrived_packets: u64,
    /// Bytes whose transmission began.
    pub departed: u64,
    /// Packets whose transmission began.
    pub departed_packets: u64,
    /// Packets dropped: at the queue, or lost on the wire.
    pub dropped: u64,
}

/// Counts of one part in a bin of time, in one direction of a link. Bins in which it did nothing have no row. Packets of
/// real programs belong to no part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartBin {
    /// Start of the bin, seconds since the start of the run.
    pub time: f64,
    /// Its name in the experiment file.
    pub part: String,
    /// "foreground" or "background".
    pub role: String,
    /// Name of the link.
    pub link: Arc<str>,
    /// Direction.
    pub direction: Direction,
    /// Network-layer bytes that arrived at the queue.
    pub arrived: u64,
    /// Packets that arrived at the queue.
    pub arrived_packets: u32,
    /// Network-layer bytes whose transmission ended.
    pub departed: u64,
    /// Packets dropped: at the queue, or lost on the wire.
    pub dropped: u32,
}

/// A histogram bucket of waits in the queue of one direction of a link, after warm-up. A wait lasts from arrival to the
/// beginning of transmission.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Name of the link.
    pub link: Arc<str>,
    /// Direction.
    pub direction: Direction,
    /// "foreground" or "background".
    pub traffic: String,
    /// Shortest wait, seconds.
    pub from: f64,
    /// Longest wait, seconds, an eighth of an octave above `from`; zero for packets that did not wait.
    pub to: f64,
    /// Number of packets.
    pub packets: u64,
    /// Sum of their sizes, network-layer bytes.
    pub bytes: u64,
    /// Sum of the squares of their sizes, bytes squared.
    pub squares: f64,
    /// Sum of their waits, seconds.
    pub waited: f64,
}

/// A histogram bucket of the one-way delays of the foreground's datagrams, from the sending to the receiving host, of
/// those that were sent after the warm-up and arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// Direction.
    pub direction: Direction,
    /// Shortest delay of the bucket, seconds.
    pub from: f64,
    /// Upper edge, seconds: at most 1.6 % above `from`.
    pub to: f64,
    /// Number of packets.
    pub packets: u64,
    /// Sum of their sizes, network-layer bytes.
    pub bytes: u64,
    /// Sum of their delays, seconds.
    pub delayed: f64,
}

/// Loss synchronization of connections and ACK compression at one direction of a link, after warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Synchrony {
    /// Name of the link.
    pub link: Arc<str>,
    /// Direction.
    pub direction: Direction,
    /// Connections and datagram flows that sent anything this way.
    pub flows: u64,
    /// Bins in which anything was dropped.
    pub events: u64,
    /// Mean share of the flows that lost something in such a bin; NaN if there is no such bin.
    pub share: f64,
    /// The expected share if each flow lost independently, in as many bins as it does; NaN if nothing was dropped.
    pub independent: f64,
    /// Pure ACKs that followed another one of their flow.
    pub acks: u64,
    /// Number of these that left at less than half the distance at which they arrived: ACK compression by this queue.
    pub compressed: u64,
}

//! The columns of every table.

use swell_base::Direction;

use super::table::{Column, Columns, Kind, Row, Value};
use crate::observe::{
    Bin, Cause, Coherence, Delay, Estimate, Flow, LinkTotals, MeasureSample, Outcome, PartBin,
    PartTotals, Request, RoundTrip, Scale, Share, Shown, Synchrony, Wait, WindowGap,
};

pub(super) const fn column(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    doc: &'static str,
) -> Column {
    Column {
        name,
        kind,
        unit,
        doc,
    }
}

use Kind::{F64, OptionalF64, Text, U32, U64};

pub(super) const DIRECTION: Column = column(
    "direction",
    Text,
    "",
    "`up` (left to right) or `down` (right to left: towards the foreground's clients).",
);

pub(super) const LINK: Column = column(
    "link",
    Text,
    "",
    "Name of the link; `bottleneck` where the experiment has only one.",
);

// Arrivals, departures and drops at a link: columns of both `bins` and `links`.
const ARRIVED_FOREGROUND_BYTES: Column = column(
    "arrived_foreground_bytes",
    U64,
    "B",
    "Network-layer bytes of the foreground that arrived at the queue.",
);
const ARRIVED_BACKGROUND_BYTES: Column = column(
    "arrived_background_bytes",
    U64,
    "B",
    "The same of the background.",
);
const ARRIVED_FOREGROUND_PACKETS: Column = column(
    "arrived_foreground_packets",
    U64,
    "",
    "Packets of the foreground that arrived at the queue.",
);
const ARRIVED_BACKGROUND_PACKETS: Column = column(
    "arrived_background_packets",
    U64,
    "",
    "The same of the background.",
);
const DEPARTED_FOREGROUND_BYTES: Column = column(
    "departed_foreground_bytes",
    U64,
    "B",
    "Network-layer bytes of the foreground that left on the wire.",
);
const DEPARTED_BACKGROUND_BYTES: Column = column(
    "departed_background_bytes",
    U64,
    "B",
    "The same of the background.",
);
const DROPPED_FOREGROUND_PACKETS: Column = column(
    "dropped_foreground_packets",
    U64,
    "",
    "Packets of the foreground dropped.",
);
const DROPPED_BACKGROUND_PACKETS: Column = column(
    "dropped_background_packets",
    U64,
    "",
    "The same of the background.",
);

/// The same column with 32 bits, which suffice for a bin.
const fn in_32_bits(column: Column) -> Column {
    Column {
        kind: U32,
        ..column
    }
}

impl Value for Direction {
    fn put(&self, values: &mut Columns) {
        values.put_text(self.name());
    }
    fn take(values: &mut Columns) -> Option<Direction> {
        let name = values.take_text();
        Direction::BOTH.into_iter().find(|d| d.name() == name)
    }
}

impl Value for Cause {
    fn put(&self, values: &mut Columns) {
        values.put_text(self.name());
    }
    fn take(values: &mut Columns) -> Option<Cause> {
        let name = values.take_text();
        Cause::ALL.into_iter().find(|c| c.name() == name)
    }
}

impl Value for Shown {
    fn put(&self, values: &mut Columns) {
        values.put_text(match self {
            Shown::Handshake => "handshake",
            Shown::Data => "data",
        });
    }
    fn take(values: &mut Columns) -> Option<Shown> {
        match values.take_text().as_str() {
            "handshake" => Some(Shown::Handshake),
            "data" => Some(Shown::Data),
            _ => None,
        }
    }
}

impl Value for Outcome {
    fn put(&self, values: &mut Columns) {
        values.put_text(match self {
            Outcome::Done => "done",
            Outcome::Unfinished => "unfinished",
            Outcome::Failed => "failed",
        });
    }
    fn take(values: &mut Columns) -> Option<Outcome> {
        match values.take_text().as_str() {
            "done" => Some(Outcome::Done),
            "unfinished" => Some(Outcome::Unfinished),
            "failed" => Some(Outcome::Failed),
            _ => None,
        }
    }
}

/// Defines the table of a row type: its fields in the order of the columns, each with its column or columns.
macro_rules! rows {
    ($row:ident in $table:literal: $($field:ident => $($column:expr),+;)+) => {
        impl Row for $row {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [Column] = &[$($($column),+),+];
            fn put(&self, values: &mut Columns) {
                $(self.$field.put(values);)+
            }
            fn take(values: &mut Columns) -> Option<$row> {
                Some($row { $($field: Value::take(values)?),+ })
            }
        }
    };
}
pub(super) use rows;

rows! {
    Request in "requests":
    client => column("client", U32, "", "Client, from 0.");
    index => column("index", U32, "", "Request of that client, from 0.");
    start => column("start_s", F64, "s", "When the client wanted it, since the start of the run.");
    connected => column("connected_s", OptionalF64, "s", "Connection established; equal to `start_s` on a kept connection.");
    first_byte => column("first_byte_s", OptionalF64, "s", "First byte of the response.");
    last_byte => column(
        "last_byte_s", OptionalF64, "s", "Last byte of the response; of an unfinished or failed request the last one seen, null if none.",
    );
    observed_until => column(
        "observed_until_s", F64, "s", "Until when it was watched: the last byte where it is done, else when it failed or the run ended. Less `start_s` it is the duration, or a lower bound of it (right-censored).",
    );
    bytes => column("received_bytes", U64, "B", "Bytes of the response that arrived.");
    retransmissions => column("retransmissions", U32, "", "Segments that the server retransmitted meanwhile.");
    outcome => column("outcome", Text, "", "`done`, `unfinished` (the run ended first) or `failed` (reset or gave up).");
}

rows! {
    Bin in "bins":
    time => column("time_s", F64, "s", "Start of the bin, since the start of the run (warm-up included).");
    link => LINK;
    direction => DIRECTION;
    arrived =>
        ARRIVED_FOREGROUND_BYTES,
        ARRIVED_BACKGROUND_BYTES;
    arrived_packets =>
        in_32_bits(ARRIVED_FOREGROUND_PACKETS),
        in_32_bits(ARRIVED_BACKGROUND_PACKETS);
    departed =>
        DEPARTED_FOREGROUND_BYTES,
        DEPARTED_BACKGROUND_BYTES;
    dropped =>
        in_32_bits(DROPPED_FOREGROUND_PACKETS),
        in_32_bits(DROPPED_BACKGROUND_PACKETS);
    queue_max => column("queue_max_bytes", U64, "B", "Longest queue seen by an arrival.");
    queue_mean => column("queue_mean_bytes", OptionalF64, "B", "Mean queue seen by arrivals; null where nothing arrived.");
}

rows! {
    Scale in "scales":
    link => LINK;
    direction => DIRECTION;
    traffic => column("traffic", Text, "", "Whose arrivals at the queue: `background` or `all`.");
    quantity => column("quantity", Text, "", "What is counted per bin: `bytes` or `packets`.");
    octave => column("octave", U32, "", "Octave j, from 1.");
    timescale => column("timescale_s", F64, "s", "2^j times the width of the counting bins.");
    n => column("n", U64, "", "Wavelet coefficients behind it.");
    energy => column("energy", F64, "", "Mean squared wavelet coefficient, in (bytes per bin)^2 or (packets per bin)^2.");
}

rows! {
    Coherence in "coherence":
    link => LINK;
    direction => DIRECTION;
    next => column("next_link", Text, "", "Name of the link behind it on a path.");
    next_direction => column("next_direction", Text, "", "The direction on that link.");
    traffic => column("traffic", Text, "", "Whose arrivals at the queues: `background` or `all`.");
    octave => column("octave", U32, "", "Octave j, from 1.");
    timescale => column("timescale_s", F64, "s", "2^j times the width of the counting bins.");
    n => column("n", U64, "", "Pairs of wavelet coefficients behind it.");
    correlation => column("correlation", F64, "", "Correlation of the wavelet coefficients of bytes, from -1 to 1.");
    coherence => column("coherence", F64, "", "Its square: 0 where the links have nothing in common, 1 where one follows from the other.");
}

rows! {
    Flow in "flows":
    class => column(
        "class", Text, "", "Application class of the model; `replay`, `greedy`, `swarm`, `on-off` or, of CBR and Poisson, `parametric`; of a foreground, `foreground`.",
    );
    start => column("start_s", F64, "s", "Start, since the start of the run.");
    end => column("end_s", OptionalF64, "s", "End; null where it was still open when the run ended.");
    up => column("up_bytes", U64, "B", "Application bytes from client to server.");
    down => column("down_bytes", U64, "B", "Application bytes from server to client.");
    rtt => column("rtt_s", OptionalF64, "s", "Smallest round-trip time that the server measured; null if none.");
    retransmissions => column("retransmissions", U32, "", "Segments retransmitted, both ends.");
}

rows! {
    LinkTotals in "links":
    link => LINK;
    direction => DIRECTION;
    rate => column("rate_bps", F64, "bit/s", "Capacity of the link.");
    duration => column("duration_s", F64, "s", "How long was observed, after the warm-up.");
    arrived =>
        ARRIVED_FOREGROUND_BYTES,
        ARRIVED_BACKGROUND_BYTES;
    arrived_packets =>
        ARRIVED_FOREGROUND_PACKETS,
        ARRIVED_BACKGROUND_PACKETS;
    departed =>
        DEPARTED_FOREGROUND_BYTES,
        DEPARTED_BACKGROUND_BYTES;
    dropped =>
        DROPPED_FOREGROUND_PACKETS,
        DROPPED_BACKGROUND_PACKETS;
    dropped_by =>
        column("dropped_queue_full_packets", U64, "", "Packets dropped because the queue was full."),
        column("dropped_aqm_packets", U64, "", "Packets dropped by active queue management."),
        column("dropped_loss_packets", U64, "", "Packets lost at random on the link.");
    marked => column("marked_packets", U64, "", "Packets that the queue marked (ECN) instead of dropping them.");
}

rows! {
    Wait in "waits":
    link => LINK;
    direction => DIRECTION;
    traffic => column("traffic", Text, "", "Whose packets: `foreground` or `background`.");
    from => column("from_s", F64, "s", "Shortest wait of the bucket.");
    to => column("to_s", F64, "s", "Longest wait of the bucket, an eighth of an octave above; 0 where nothing waited.");
    packets => column("packets", U64, "", "Packets that waited so long.");
    bytes => column("bytes", U64, "B", "Their network-layer bytes.");
    squares => column("squares_bytes2", F64, "B²", "Squares of their sizes, summed.");
    waited => column("waited_s", F64, "s", "Their waits, summed.");
}

rows! {
    Delay in "delays":
    direction => DIRECTION;
    from => column("from_s", F64, "s", "Shortest delay of the bucket.");
    to => column("to_s", F64, "s", "Its upper edge, at most 1.6 % above.");
    packets => column("packets", U64, "", "Packets of the foreground that took so long to the other host.");
    bytes => column("bytes", U64, "B", "Their network-layer bytes.");
    delayed => column("delayed_s", F64, "s", "Their delays, summed.");
}

rows! {
    Synchrony in "synchrony":
    link => LINK;
    direction => DIRECTION;
    flows => column("flows", U64, "", "Connections and datagram flows that sent anything this way.");
    events => column("events", U64, "", "Bins of the run in which anything was dropped.");
    share => column("share", F64, "", "Mean share of the flows that lost something in such a bin; null without one.");
    independent => column("independent_share", F64, "", "The same, were every flow to lose by itself in as many bins as it does.");
    acks => column("acks", U64, "", "Pure acknowledgements sent after another of their flow.");
    compressed => column("compressed_acks", U64, "", "Those of them that left at less than half the distance at which they came.");
}

rows! {
    MeasureSample in "measures":
    measure => column("measure", Text, "", "Name of the measure; the experiment file has its unit and which direction is better.");
    value => column("value", F64, "", "The value, in the unit of the measure.");
    at => column("at_s", F64, "s", "When it was measured, since the start of the run.");
}

rows! {
    PartTotals in "parts":
    part => column("part", Text, "", "Name of the foreground or background.");
    role => column("role", Text, "", "foreground or background.");
    link => LINK;
    direction => DIRECTION;
    duration => column("duration_s", F64, "s", "Time observed.");
    arrived => column("arrived_bytes", U64, "B", "Network-layer bytes that arrived at the queue.");
    arrived_packets => column("arrived_packets", U64, "", "Packets that arrived at the queue.");
    departed => column("departed_bytes", U64, "B", "Network-layer bytes whose transmission began.");
    departed_packets => column("departed_packets", U64, "", "Packets whose transmission began.");
    dropped => column("dropped_packets", U64, "", "Packets dropped: at the queue, or lost on the wire.");
}

rows! {
    PartBin in "part_bins":
    time => column("time_s", F64, "s", "Start of the bin, since the start of the run (warm-up included).");
    part => column("part", Text, "", "Name of the foreground or background.");
    role => column("role", Text, "", "foreground or background.");
    link => LINK;
    direction => DIRECTION;
    arrived => column("arrived_bytes", U64, "B", "Network-layer bytes that arrived at the queue.");
    arrived_packets => column("arrived_packets", U32, "", "Packets that arrived at the queue.");
    departed => column("departed_bytes", U64, "B", "Network-layer bytes that left on the wire.");
    dropped => column("dropped_packets", U32, "", "Packets dropped: at the queue, or lost on the wire.");
}

rows! {
    Estimate in "estimates":
    at => column("at_s", F64, "s", "When the estimate was made, since the start of the run.");
    range => column("low_bps", F64, "bit/s", "Its lowest value."),
        column("high_bps", F64, "bit/s", "Its highest value.");
    bytes => column("probe_bytes", U64, "B", "Network-layer bytes that the probe sent for it.");
    duration => column("duration_s", F64, "s", "How long it took.");
    timescale => column("timescale_s", F64, "s", "Length of the intervals in which what was free is counted.");
    intervals => column("intervals", U32, "", "How many there were while it was made; one, which began earlier, where it took less time.");
    mean => column("available_mean_bps", F64, "bit/s", "What was free in them on the link with the least left: mean.");
    sd => column("available_sd_bps", F64, "bit/s", "Standard deviation.");
    ends => column("available_least_bps", F64, "bit/s", "The least."),
        column("available_most_bps", F64, "bit/s", "The most.");
}

rows! {
    Share in "waterfall":
    client => column("client", U32, "", "Client, from 0.");
    index => column("index", U32, "", "Request of that client, from 0.");
    cause => column("cause", Text, "", "What it waited for: `handshake`, `request`, `server`, `response`, `rounds`, `queue-data`, `queue-acks`, `transmission`, `recovery` or `hosts`.");
    link => column("link", Text, "", "At which link; empty where it is none.");
    seconds => column("seconds", F64, "s", "How long.");
}

/// The column that tells the connections of a run apart.
const CONNECTION: Column = column(
    "connection",
    U32,
    "",
    "Connection, from 0 in the order of their first packets.",
);

/// The end of a connection that sent a packet.
const SENDER: Column = column(
    "direction",
    Text,
    "",
    "`up` (sent by the client) or `down` (sent by the server).",
);

rows! {
    RoundTrip in "rtts":
    connection => CONNECTION;
    direction => SENDER;
    shown => column("packet", Text, "", "What showed it: `handshake` (SYN or SYN-ACK) or `data`.");
    at => column("at_s", F64, "s", "When the packet was sent, since the start of the run.");
    rtt => column("rtt_s", F64, "s", "From there to the first acknowledgement that covers it, at its sender.");
}

rows! {
    WindowGap in "gaps":
    connection => CONNECTION;
    direction => SENDER;
    at => column("at_s", F64, "s", "When the last packet of a window was sent, since the start of the run.");
    gap => column("gap_s", F64, "s", "From there to the first packet of the next window.");
}

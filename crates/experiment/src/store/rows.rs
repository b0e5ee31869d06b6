//! The columns of every table.

use super::table::{Column, Columns, Kind, Row};
use crate::observe::{
    Bin, Flow, LinkTotals, MeasureSample, Outcome, Request, Scale, Synchrony, Wait,
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

// What arrived at a link, left it and was dropped: counted in every bin and in total.
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

/// What a bin holds of it fits 32 bits.
const fn in_32_bits(column: Column) -> Column {
    Column {
        kind: U32,
        ..column
    }
}

pub(super) fn put_direction(values: &mut Columns, direction: u8) {
    values.text(if direction == 0 { "up" } else { "down" });
}

pub(super) fn take_direction(values: &mut Columns) -> Option<u8> {
    match values.take_text().as_str() {
        "up" => Some(0),
        "down" => Some(1),
        _ => None,
    }
}

impl Row for Request {
    const TABLE: &'static str = "requests";
    const COLUMNS: &'static [Column] = &[
        column("client", U32, "", "Client, from 0."),
        column("index", U32, "", "Request of that client, from 0."),
        column(
            "start_s",
            F64,
            "s",
            "When the client wanted it, since the start of the run.",
        ),
        column(
            "connected_s",
            OptionalF64,
            "s",
            "Connection established; equal to `start_s` on a kept connection.",
        ),
        column(
            "first_byte_s",
            OptionalF64,
            "s",
            "First byte of the response.",
        ),
        column(
            "last_byte_s",
            OptionalF64,
            "s",
            "Last byte of the response; of an unfinished or failed request the last one seen, null if none.",
        ),
        column(
            "observed_until_s",
            F64,
            "s",
            "Until when it was watched: the last byte where it is done, else when it failed or the run ended. Less `start_s` it is the duration, or a lower bound of it (right-censored).",
        ),
        column(
            "received_bytes",
            U64,
            "B",
            "Bytes of the response that arrived.",
        ),
        column(
            "retransmissions",
            U32,
            "",
            "Segments that the server retransmitted meanwhile.",
        ),
        column(
            "outcome",
            Text,
            "",
            "`done`, `unfinished` (the run ended first) or `failed` (reset or gave up).",
        ),
    ];
    fn put(&self, values: &mut Columns) {
        values.u32(self.client);
        values.u32(self.index);
        values.f64(self.start);
        values.f64(self.connected);
        values.f64(self.first_byte);
        values.f64(self.last_byte);
        values.f64(self.observed_until);
        values.u64(self.bytes);
        values.u32(self.retransmissions);
        values.text(match self.outcome {
            Outcome::Done => "done",
            Outcome::Unfinished => "unfinished",
            Outcome::Failed => "failed",
        });
    }
    fn take(values: &mut Columns) -> Option<Request> {
        Some(Request {
            client: values.take_u32(),
            index: values.take_u32(),
            start: values.take_f64(),
            connected: values.take_f64(),
            first_byte: values.take_f64(),
            last_byte: values.take_f64(),
            observed_until: values.take_f64(),
            bytes: values.take_u64(),
            retransmissions: values.take_u32(),
            outcome: match values.take_text().as_str() {
                "done" => Outcome::Done,
                "unfinished" => Outcome::Unfinished,
                "failed" => Outcome::Failed,
                _ => return None,
            },
        })
    }
}

impl Row for Bin {
    const TABLE: &'static str = "bins";
    const COLUMNS: &'static [Column] = &[
        column(
            "time_s",
            F64,
            "s",
            "Start of the bin, since the start of the run (warm-up included).",
        ),
        LINK,
        DIRECTION,
        ARRIVED_FOREGROUND_BYTES,
        ARRIVED_BACKGROUND_BYTES,
        in_32_bits(ARRIVED_FOREGROUND_PACKETS),
        in_32_bits(ARRIVED_BACKGROUND_PACKETS),
        DEPARTED_FOREGROUND_BYTES,
        DEPARTED_BACKGROUND_BYTES,
        in_32_bits(DROPPED_FOREGROUND_PACKETS),
        in_32_bits(DROPPED_BACKGROUND_PACKETS),
        column(
            "queue_max_bytes",
            U64,
            "B",
            "Longest queue seen by an arrival.",
        ),
        column(
            "queue_mean_bytes",
            OptionalF64,
            "B",
            "Mean queue seen by arrivals; null where nothing arrived.",
        ),
    ];
    fn put(&self, values: &mut Columns) {
        values.f64(self.time);
        values.text(&self.link);
        put_direction(values, self.direction);
        self.arrived.iter().for_each(|&v| values.u64(v));
        self.arrived_packets.iter().for_each(|&v| values.u32(v));
        self.departed.iter().for_each(|&v| values.u64(v));
        self.dropped.iter().for_each(|&v| values.u32(v));
        values.u64(self.queue_max);
        values.f64(self.queue_mean);
    }
    fn take(values: &mut Columns) -> Option<Bin> {
        Some(Bin {
            time: values.take_f64(),
            link: values.take_text().into(),
            direction: take_direction(values)?,
            arrived: [values.take_u64(), values.take_u64()],
            arrived_packets: [values.take_u32(), values.take_u32()],
            departed: [values.take_u64(), values.take_u64()],
            dropped: [values.take_u32(), values.take_u32()],
            queue_max: values.take_u64(),
            queue_mean: values.take_f64(),
        })
    }
}

impl Row for Scale {
    const TABLE: &'static str = "scales";
    const COLUMNS: &'static [Column] = &[
        LINK,
        DIRECTION,
        column(
            "traffic",
            Text,
            "",
            "Whose arrivals at the queue: `background` or `all`.",
        ),
        column(
            "quantity",
            Text,
            "",
            "What is counted per bin: `bytes` or `packets`.",
        ),
        column("octave", U32, "", "Octave j, from 1."),
        column(
            "timescale_s",
            F64,
            "s",
            "2^j times the width of the counting bins.",
        ),
        column("n", U64, "", "Wavelet coefficients behind it."),
        column(
            "energy",
            F64,
            "",
            "Mean squared wavelet coefficient, in (bytes per bin)^2 or (packets per bin)^2.",
        ),
    ];
    fn put(&self, values: &mut Columns) {
        values.text(&self.link);
        put_direction(values, self.direction);
        values.text(&self.traffic);
        values.text(&self.quantity);
        values.u32(self.octave);
        values.f64(self.timescale);
        values.u64(self.n);
        values.f64(self.energy);
    }
    fn take(values: &mut Columns) -> Option<Scale> {
        Some(Scale {
            link: values.take_text().into(),
            direction: take_direction(values)?,
            traffic: values.take_text(),
            quantity: values.take_text(),
            octave: values.take_u32(),
            timescale: values.take_f64(),
            n: values.take_u64(),
            energy: values.take_f64(),
        })
    }
}

impl Row for Flow {
    const TABLE: &'static str = "flows";
    const COLUMNS: &'static [Column] = &[
        column(
            "class",
            Text,
            "",
            "Application class of the model; `replay`, `greedy`, `on-off` or, of CBR and Poisson, `parametric`; of a foreground, `foreground`.",
        ),
        column("start_s", F64, "s", "Start, since the start of the run."),
        column(
            "end_s",
            OptionalF64,
            "s",
            "End; null where it was still open when the run ended.",
        ),
        column(
            "up_bytes",
            U64,
            "B",
            "Application bytes from client to server.",
        ),
        column(
            "down_bytes",
            U64,
            "B",
            "Application bytes from server to client.",
        ),
        column(
            "rtt_s",
            OptionalF64,
            "s",
            "Smallest round-trip time that the server measured; null if none.",
        ),
        column(
            "retransmissions",
            U32,
            "",
            "Segments retransmitted, both ends.",
        ),
    ];
    fn put(&self, values: &mut Columns) {
        values.text(&self.class);
        values.f64(self.start);
        values.f64(self.end);
        values.u64(self.up);
        values.u64(self.down);
        values.f64(self.rtt);
        values.u32(self.retransmissions);
    }
    fn take(values: &mut Columns) -> Option<Flow> {
        Some(Flow {
            class: values.take_text(),
            start: values.take_f64(),
            end: values.take_f64(),
            up: values.take_u64(),
            down: values.take_u64(),
            rtt: values.take_f64(),
            retransmissions: values.take_u32(),
        })
    }
}

impl Row for LinkTotals {
    const TABLE: &'static str = "links";
    const COLUMNS: &'static [Column] = &[
        LINK,
        DIRECTION,
        column("rate_bps", F64, "bit/s", "Capacity of the link."),
        column(
            "duration_s",
            F64,
            "s",
            "How long was observed, after the warm-up.",
        ),
        ARRIVED_FOREGROUND_BYTES,
        ARRIVED_BACKGROUND_BYTES,
        ARRIVED_FOREGROUND_PACKETS,
        ARRIVED_BACKGROUND_PACKETS,
        DEPARTED_FOREGROUND_BYTES,
        DEPARTED_BACKGROUND_BYTES,
        DROPPED_FOREGROUND_PACKETS,
        DROPPED_BACKGROUND_PACKETS,
        column(
            "dropped_queue_full_packets",
            U64,
            "",
            "Packets dropped because the queue was full.",
        ),
        column(
            "dropped_aqm_packets",
            U64,
            "",
            "Packets dropped by active queue management.",
        ),
        column(
            "dropped_loss_packets",
            U64,
            "",
            "Packets lost at random on the link.",
        ),
    ];
    fn put(&self, values: &mut Columns) {
        values.text(&self.link);
        put_direction(values, self.direction);
        values.f64(self.rate);
        values.f64(self.duration);
        let pairs = [
            self.arrived,
            self.arrived_packets,
            self.departed,
            self.dropped,
        ];
        pairs.iter().flatten().for_each(|&v| values.u64(v));
        self.dropped_by.iter().for_each(|&v| values.u64(v));
    }
    fn take(values: &mut Columns) -> Option<LinkTotals> {
        let (link, direction) = (values.take_text().into(), take_direction(values)?);
        let (rate, duration) = (values.take_f64(), values.take_f64());
        let mut pair = || [values.take_u64(), values.take_u64()];
        Some(LinkTotals {
            link,
            direction,
            rate,
            duration,
            arrived: pair(),
            arrived_packets: pair(),
            departed: pair(),
            dropped: pair(),
            dropped_by: [values.take_u64(), values.take_u64(), values.take_u64()],
        })
    }
}

impl Row for Wait {
    const TABLE: &'static str = "waits";
    const COLUMNS: &'static [Column] = &[
        LINK,
        DIRECTION,
        column(
            "traffic",
            Text,
            "",
            "Whose packets: `foreground` or `background`.",
        ),
        column("from_s", F64, "s", "Shortest wait of the bucket."),
        column(
            "to_s",
            F64,
            "s",
            "Longest wait of the bucket, an eighth of an octave above; 0 where nothing waited.",
        ),
        column("packets", U64, "", "Packets that waited so long."),
        column("bytes", U64, "B", "Their network-layer bytes."),
        column(
            "squares_bytes2",
            F64,
            "B²",
            "Squares of their sizes, summed.",
        ),
        column("waited_s", F64, "s", "Their waits, summed."),
    ];
    fn put(&self, values: &mut Columns) {
        values.text(&self.link);
        put_direction(values, self.direction);
        values.text(&self.traffic);
        values.f64(self.from);
        values.f64(self.to);
        values.u64(self.packets);
        values.u64(self.bytes);
        values.f64(self.squares);
        values.f64(self.waited);
    }
    fn take(values: &mut Columns) -> Option<Wait> {
        Some(Wait {
            link: values.take_text().into(),
            direction: take_direction(values)?,
            traffic: values.take_text(),
            from: values.take_f64(),
            to: values.take_f64(),
            packets: values.take_u64(),
            bytes: values.take_u64(),
            squares: values.take_f64(),
            waited: values.take_f64(),
        })
    }
}

impl Row for Synchrony {
    const TABLE: &'static str = "synchrony";
    const COLUMNS: &'static [Column] = &[
        LINK,
        DIRECTION,
        column(
            "flows",
            U64,
            "",
            "Connections and datagram flows that sent anything this way.",
        ),
        column(
            "events",
            U64,
            "",
            "Bins of the run in which anything was dropped.",
        ),
        column(
            "share",
            F64,
            "",
            "Mean share of the flows that lost something in such a bin; null without one.",
        ),
        column(
            "independent_share",
            F64,
            "",
            "The same, were every flow to lose by itself in as many bins as it does.",
        ),
        column(
            "acks",
            U64,
            "",
            "Pure acknowledgements sent after another of their flow.",
        ),
        column(
            "compressed_acks",
            U64,
            "",
            "Those of them that left at less than half the distance at which they came.",
        ),
    ];
    fn put(&self, values: &mut Columns) {
        values.text(&self.link);
        put_direction(values, self.direction);
        values.u64(self.flows);
        values.u64(self.events);
        values.f64(self.share);
        values.f64(self.independent);
        values.u64(self.acks);
        values.u64(self.compressed);
    }
    fn take(values: &mut Columns) -> Option<Synchrony> {
        Some(Synchrony {
            link: values.take_text().into(),
            direction: take_direction(values)?,
            flows: values.take_u64(),
            events: values.take_u64(),
            share: values.take_f64(),
            independent: values.take_f64(),
            acks: values.take_u64(),
            compressed: values.take_u64(),
        })
    }
}

impl Row for MeasureSample {
    const TABLE: &'static str = "measures";
    const COLUMNS: &'static [Column] = &[
        column(
            "measure",
            Text,
            "",
            "Name of the measure; the experiment file has its unit and which direction is better.",
        ),
        column("value", F64, "", "The value, in the unit of the measure."),
        column(
            "at_s",
            F64,
            "s",
            "When it was measured, since the start of the run.",
        ),
    ];
    fn put(&self, values: &mut Columns) {
        values.text(&self.measure);
        values.f64(self.value);
        values.f64(self.at);
    }
    fn take(values: &mut Columns) -> Option<MeasureSample> {
        Some(MeasureSample {
            measure: values.take_text(),
            value: values.take_f64(),
            at: values.take_f64(),
        })
    }
}

//! Rows of the table `parts`.

use super::rows::{DIRECTION, LINK, column, put_direction, take_direction};
use super::table::Kind::{F64, Text, U64};
use super::table::{Column, Columns, Row};
use crate::observe::PartTotals;

impl Row for PartTotals {
    const TABLE: &'static str = "parts";
    const COLUMNS: &'static [Column] = &[
        column("part", Text, "", "Name of the foreground or background."),
        column("role", Text, "", "foreground or background."),
        LINK,
        DIRECTION,
        column("duration_s", F64, "s", "Time observed."),
        column(
            "arrived_bytes",
            U64,
            "B",
            "Network-layer bytes that arrived at the queue.",
        ),
        column(
            "arrived_packets",
            U64,
            "",
            "Packets that arrived at the queue.",
        ),
        column(
            "departed_bytes",
            U64,
            "B",
            "Network-layer bytes whose transmission began.",
        ),
        column(
            "departed_packets",
            U64,
            "",
            "Packets whose transmission began.",
        ),
        column("dropped_packets", U64, "", "Packets dropped at the queue."),
    ];
    fn put(&self, values: &mut Columns) {
        values.text(&self.part);
        values.text(&self.role);
        values.text(&self.link);
        put_direction(values, self.direction);
        values.f64(self.duration);
        values.u64(self.arrived);
        values.u64(self.arrived_packets);
        values.u64(self.departed);
        values.u64(self.departed_packets);
        values.u64(self.dropped);
    }
    fn take(values: &mut Columns) -> Option<PartTotals> {
        Some(PartTotals {
            part: values.take_text(),
            role: values.take_text(),
            link: values.take_text().into(),
            direction: take_direction(values)?,
            duration: values.take_f64(),
            arrived: values.take_u64(),
            arrived_packets: values.take_u64(),
            departed: values.take_u64(),
            departed_packets: values.take_u64(),
            dropped: values.take_u64(),
        })
    }
}

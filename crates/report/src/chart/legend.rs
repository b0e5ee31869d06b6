//! Legends: keys in rows above the plot, each with the line, hatch or fill of its series.

use crate::svg::{PathData, Svg, fit, text_width};

/// Text size of a key.
const SIZE: f64 = 12.0;
/// Width of the line sample.
const SAMPLE: f64 = 28.0;
/// Height of a row of keys.
pub(crate) const ROW: f64 = 20.0;

/// How a key shows its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// A piece of the line, with its dashes.
    Line,
    /// A solid piece of the line, because dashes would hide how it jumps.
    Solid,
    /// A dot in the middle of where a line would be: nothing joins the points.
    Dot,
    /// A filled box, with its hatch.
    Fill,
    /// A filled box.
    Box,
    /// A pale box.
    Pale,
}

/// A key of the legend.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) note: String,
    pub(crate) slot: usize,
    pub(crate) series: usize,
    pub(crate) sample: Sample,
}

/// Layout of the keys: (x, y) of each, and the height of all rows.
fn layout(keys: &[Key], x: f64, width: f64) -> (Vec<(f64, f64)>, f64) {
    let (mut at, mut row) = (0.0, 0.0);
    let places = keys
        .iter()
        .map(|key| {
            let w = key_width(key, width);
            if at > 0.0 && at + w > width {
                at = 0.0;
                row += ROW;
            }
            let place = (x + at, row);
            at += w + 18.0;
            place
        })
        .collect();
    (places, if keys.is_empty() { 0.0 } else { row + ROW })
}

fn key_width(key: &Key, width: f64) -> f64 {
    let note = if key.note.is_empty() {
        0.0
    } else {
        text_width(&key.note, 11.0) + 7.0
    };
    sample_width(key) + 6.0 + text_width(&shown(key, width), SIZE) + note
}

/// Width of the sample: a line needs some length to show its dashes.
fn sample_width(key: &Key) -> f64 {
    match key.sample {
        Sample::Line | Sample::Solid | Sample::Dot => SAMPLE,
        Sample::Fill | Sample::Box | Sample::Pale => 18.0,
    }
}

/// The name, shortened to the available width.
fn shown(key: &Key, width: f64) -> String {
    fit(&key.name, SIZE, (width - SAMPLE - 100.0).clamp(60.0, 220.0))
}

/// Height of the legend at this width.
pub(crate) fn height(keys: &[Key], width: f64) -> f64 {
    layout(keys, 0.0, width).1
}

/// Draws the legend with its upper left corner at (x, y).
pub(crate) fn draw(svg: &mut Svg, keys: &[Key], x: f64, y: f64, width: f64, id: &str) {
    let (places, _) = layout(keys, x, width);
    for (key, (kx, ky)) in keys.iter().zip(places) {
        let middle = y + ky + 9.0;
        svg.tag("g")
            .attr("class", "key")
            .attr("data-s", &key.series.to_string())
            .open();
        let name = shown(key, width);
        if name != key.name {
            svg.tag("title").text(&key.name);
        }
        // A transparent box makes the whole key a pointer target.
        svg.tag("rect")
            .num("x", kx - 3.0)
            .num("y", middle - 10.0)
            .num("width", key_width(key, width) + 6.0)
            .num("height", ROW)
            .attr("fill", "transparent")
            .empty();
        match key.sample {
            Sample::Line | Sample::Solid => svg
                .tag("path")
                .attr(
                    "class",
                    &match key.sample {
                        Sample::Line => format!("line c{0} d{0}", key.slot),
                        _ => format!("line c{}", key.slot),
                    },
                )
                .attr("d", &super::frame::line(kx, middle, kx + SAMPLE, middle))
                .empty(),
            Sample::Dot => {
                let mut dot = PathData::default();
                dot.dot(kx + SAMPLE / 2.0, middle);
                svg.tag("path")
                    .attr("class", &format!("mark c{}", key.slot))
                    .attr("d", &dot.finish())
                    .empty();
            }
            Sample::Fill | Sample::Box | Sample::Pale => {
                let pale = if key.sample == Sample::Pale {
                    " pale"
                } else {
                    ""
                };
                let boxed = |out: &mut Svg, class: &str, fill: Option<&str>| {
                    let mut tag = out.tag("rect").attr("class", class);
                    if let Some(fill) = fill {
                        tag = tag.attr("fill", fill);
                    }
                    tag.num("x", kx)
                        .num("y", middle - 6.0)
                        .num("width", sample_width(key))
                        .num("height", 12.0)
                        .empty();
                };
                boxed(svg, &format!("f{}{pale}", key.slot), None);
                if key.sample == Sample::Fill && hatched(key.slot) {
                    boxed(svg, "", Some(&format!("url(#{id}-h{})", key.slot)));
                }
            }
        }
        // The note is part of the text, so it stands behind the name however wide the font of the reader is.
        svg.tag("text")
            .num("x", kx + sample_width(key) + 6.0)
            .num("y", middle + 4.0)
            .open();
        svg.words(&name);
        if !key.note.is_empty() {
            svg.tag("tspan")
                .attr("class", "note")
                .attr("dx", "3")
                .text(&format!(" {}", key.note));
        }
        svg.close();
        svg.close();
    }
}

/// Whether bars of this slot are hatched: every second slot is plain.
pub(crate) fn hatched(slot: usize) -> bool {
    HATCHES[slot % HATCHES.len()].is_some()
}

/// Tile and lines of each slot's hatch.
const HATCHES: [Option<&str>; crate::palette::SLOTS] = [
    None,
    Some("M0 6L6 0M-1 1L1 -1M5 7L7 5"),
    Some("M0 3H6"),
    None,
    Some("M0 0L6 6M-1 5L1 7M5 -1L7 1"),
    Some("M3 0V6"),
    Some("M0 3H6M3 0V6"),
    Some("M0 0L6 6M0 6L6 0"),
];

/// Defines the hatches of `slots`.
pub(crate) fn define_hatches(svg: &mut Svg, slots: impl Iterator<Item = usize>, id: &str) {
    let mut slots: Vec<usize> = slots.collect();
    slots.sort_unstable();
    slots.dedup();
    svg.tag("defs").open();
    for slot in slots {
        let Some(d) = HATCHES[slot % HATCHES.len()] else {
            continue;
        };
        svg.tag("pattern")
            .attr("id", &format!("{id}-h{slot}"))
            .attr("width", "6")
            .attr("height", "6")
            .attr("patternUnits", "userSpaceOnUse")
            .open();
        svg.tag("path").attr("class", "hatch").attr("d", d).empty();
        svg.close();
    }
    svg.close();
}

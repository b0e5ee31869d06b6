//! Heat maps: panels of cells whose colour is a ratio.
//!
//! The scale is logarithmic around one, from purple (below) over white to orange (above): the ends of ColorBrewer's PuOr,
//! which remain distinguishable with the common colour-vision deficiencies. In grey both ends are dark: the number in
//! the cell says which side it is on.

use swell_study::Answer;

use super::Canvas;
use super::frame::{self, Area};
use crate::human::{Quantity, trimmed};
use crate::palette::FOREGROUND;
use crate::svg::{Svg, fit, number, text_width};

/// Below one, one, above one: the last of each list is the end of the scale.
const BELOW: [[u8; 3]; 4] = [
    [247, 247, 247],
    [178, 171, 210],
    [128, 115, 172],
    [84, 39, 136],
];
const ABOVE: [[u8; 3]; 4] = [
    [247, 247, 247],
    [253, 184, 99],
    [224, 130, 20],
    [179, 88, 6],
];
/// The least and the greatest ratio at which the scale ends.
const ENDS: [f64; 2] = [2.0, 20.0];
/// Ink on light and on dark cells.
const INK: [&str; 2] = ["#1b1f23", "#ffffff"];
/// Space between panels, height of a line of text, and of a cell, pixels.
const GAP: f64 = 10.0;
const LINE: f64 = 18.0;
const CELL: f64 = 27.0;
/// Swatches of the colour scale in the legend.
const SWATCHES: usize = 9;

/// Places of an axis, each with the same room.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// Title without unit.
    pub title: String,
    /// What the places are.
    pub quantity: Quantity,
    /// The places, ascending.
    pub values: Vec<f64>,
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeatCell {
    /// Index of the row of panels and of the panel in it.
    pub panel: (usize, usize),
    /// Indices of the places on both axes.
    pub at: (usize, usize),
    /// The ratio.
    pub value: f64,
    /// The ends of its interval, if it is known.
    pub interval: Option<[f64; 2]>,
    /// What it says of a question.
    pub answer: Option<Answer>,
    /// Whether it has a frame.
    pub framed: bool,
}

/// Panels of cells: a row for each name, a panel in it for each place of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Alternative text, and the title of a file of its own.
    pub title: String,
    /// What it shows, in a sentence.
    pub description: String,
    /// Names of the rows of panels, from the top.
    pub rows: Vec<String>,
    /// What differs along a row.
    pub across: Places,
    /// The horizontal axis of a panel.
    pub x: Places,
    /// The vertical axis of a panel; the least place is at the bottom.
    pub y: Places,
    /// What the ratio is.
    pub value: String,
    /// What a frame says; empty if there is none.
    pub frame: String,
    /// The cells.
    pub cells: Vec<HeatCell>,
}

impl Places {
    /// The title with the unit of the labels, and the labels.
    fn labels(&self) -> (String, Vec<String>) {
        let largest = self.values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let (scale, unit) = self.quantity.unit(largest);
        let title = match unit {
            "" => self.title.clone(),
            unit => format!("{}, {unit}", self.title),
        };
        let labels = self.values.iter().map(|v| trimmed(v / scale));
        (title, labels.collect())
    }
}

/// An item of the legend.
enum Key<'k> {
    Scale,
    Answer(Answer),
    Frame(&'k str),
}

impl HeatMap {
    /// The ratio at the end of the scale.
    pub(crate) fn end(&self) -> f64 {
        let beyond = self.cells.iter().map(|c| c.value.max(1.0 / c.value));
        let most = beyond.filter(|v| v.is_finite()).fold(ENDS[0], f64::max);
        most.min(ENDS[1])
    }

    /// Height of the picture at the width of a canvas.
    pub fn height(&self, canvas: &Canvas) -> f64 {
        let rows = self.rows.len().max(1) as f64;
        let cells = self.y.values.len().max(1) as f64;
        self.fixed(canvas) + rows * cells * CELL
    }

    /// Height of everything but cells.
    fn fixed(&self, canvas: &Canvas) -> f64 {
        let head = if canvas.standalone { 26.0 } else { 0.0 };
        let rows = self.rows.len().max(1) as f64;
        head + self.legend(canvas).1 + LINE + rows * (LINE + 8.0) + 2.0 * LINE + 12.0
    }

    /// The keys of the legend with their places, and its height.
    fn legend(&self, canvas: &Canvas) -> (Vec<(Key<'_>, f64, f64)>, f64) {
        let mut keys = vec![Key::Scale];
        let asked = |a: &Answer| self.cells.iter().any(|c| c.answer == Some(*a));
        keys.extend(Answer::ALL.into_iter().filter(asked).map(Key::Answer));
        if self.cells.iter().any(|c| c.framed) {
            keys.push(Key::Frame(&self.frame));
        }
        let room = canvas.width - 2.0 * canvas.pad();
        let (mut x, mut y) = (0.0, 0.0);
        let mut placed = Vec::new();
        for key in keys {
            let width = match &key {
                Key::Scale => room,
                Key::Answer(answer) => 16.0 + text_width(answer.words(), 12.0),
                Key::Frame(label) => 20.0 + text_width(label, 12.0),
            };
            if x > 0.0 && x + width > room {
                (x, y) = (0.0, y + LINE);
            }
            let at = (x, y);
            match key {
                Key::Scale if self.scale_beside(room) => (x, y) = (0.0, y + LINE + 2.0),
                Key::Scale => (x, y) = (0.0, y + 2.0 * LINE + 2.0),
                Key::Answer(_) | Key::Frame(_) => x += width + 16.0,
            }
            placed.push((key, at.0, at.1));
        }
        (placed, y + LINE + 6.0)
    }

    /// Whether the colour scale has room beside the words for it.
    fn scale_beside(&self, room: f64) -> bool {
        text_width(&self.value, 12.0) + 20.0 + scale_width() <= room
    }

    /// The picture. Cells take what height is left.
    pub fn svg(&self, canvas: &Canvas) -> String {
        let mut svg = frame::begin(canvas, &self.title, &self.description);
        let head = frame::heading(&mut svg, canvas, &self.title);
        let pad = canvas.pad();
        let (x_title, x_labels) = self.x.labels();
        let (y_title, y_labels) = self.y.labels();
        let widest = y_labels.iter().map(|l| text_width(l, 11.5));
        let left = pad + LINE + widest.fold(12.0, f64::max) + 8.0;
        let (rows, columns) = (self.rows.len(), self.across.values.len());
        let (across, up) = (self.x.values.len(), self.y.values.len());
        let free = canvas.width - left - pad - GAP * columns.saturating_sub(1) as f64;
        let width = free / (columns * across).max(1) as f64;
        let height = (canvas.height - self.fixed(canvas)) / (rows * up).max(1) as f64;
        let (width, height) = (width.max(8.0), height.max(12.0));
        let (keys, legend) = self.legend(canvas);
        let top = head + 4.0 + legend;
        if self.cells.is_empty() {
            let area = Area {
                x: left,
                y: top,
                width: free,
                height: 60.0,
            };
            frame::nothing(&mut svg, area);
            return svg.finish();
        }
        for (key, x, y) in keys {
            self.draw_key(&mut svg, canvas, &key, (pad + x, head + 4.0 + y));
        }
        let panel_x = |c: usize| left + c as f64 * (across as f64 * width + GAP);
        let panel_y = |r: usize| top + LINE + r as f64 * (LINE + 8.0 + up as f64 * height) + LINE;
        for (c, value) in self.across.values.iter().enumerate() {
            let label = self.across.quantity.tick(*value);
            let room = across as f64 * width;
            let long = format!("{} {label}", self.across.title);
            let text = match text_width(&long, 12.0) <= room {
                true => long,
                false => label,
            };
            let middle = panel_x(c) + room / 2.0;
            words(
                &mut svg,
                "title",
                (middle, top + 12.0),
                "middle",
                &fit(&text, 12.0, room),
            );
        }
        for (r, name) in self.rows.iter().enumerate() {
            let y = panel_y(r);
            words(
                &mut svg,
                "head",
                (left, y - 5.0),
                "start",
                &fit(name, 12.5, free),
            );
            for (k, label) in y_labels.iter().enumerate() {
                let middle = y + (up - 1 - k) as f64 * height + height / 2.0 + 4.0;
                words(&mut svg, "tick", (left - 6.0, middle), "end", label);
            }
        }
        let bottom = panel_y(rows.saturating_sub(1)) + up as f64 * height;
        for c in 0..columns {
            for (k, label) in x_labels.iter().enumerate() {
                let middle = panel_x(c) + (k as f64 + 0.5) * width;
                words(&mut svg, "tick", (middle, bottom + 15.0), "middle", label);
            }
        }
        let middle = left + (canvas.width - left - pad) / 2.0;
        words(
            &mut svg,
            "title",
            (middle, bottom + 15.0 + LINE),
            "middle",
            &x_title,
        );
        let (x, y) = (pad + 11.0, (panel_y(0) + bottom) / 2.0);
        svg.tag("text")
            .attr("class", "title")
            .num("x", x)
            .num("y", y)
            .attr("text-anchor", "middle")
            .attr(
                "transform",
                &format!("rotate(-90 {} {})", number(x), number(y)),
            )
            .text(&y_title);
        // Frames come last: they lie over the cells beside.
        let mut framed = Vec::new();
        for cell in &self.cells {
            let area = Area {
                x: panel_x(cell.panel.1) + cell.at.0 as f64 * width,
                y: panel_y(cell.panel.0) + (up.saturating_sub(1 + cell.at.1)) as f64 * height,
                width: width - 1.0,
                height: height - 1.0,
            };
            self.draw_cell(&mut svg, canvas, cell, area);
            framed.extend(cell.framed.then_some(area));
        }
        for area in framed {
            draw_frame(&mut svg, area);
        }
        svg.finish()
    }

    fn draw_cell(&self, svg: &mut Svg, canvas: &Canvas, cell: &HeatCell, area: Area) {
        let said = self.say(cell);
        let [r, g, b] = colour(cell.value, self.end());
        let ink = INK[usize::from(is_dark([r, g, b]))];
        svg.tag("g")
            .attr("class", "bar")
            .attr("data-name", &self.rows[cell.panel.0])
            .attr("data-text", &said)
            .open();
        frame::tooltip(svg, canvas, &format!("{}, {said}", self.rows[cell.panel.0]));
        svg.tag("rect")
            .attr("fill", &hex([r, g, b]))
            .num("x", area.x)
            .num("y", area.y)
            .num("width", area.width)
            .num("height", area.height)
            .empty();
        let text = short(cell.value);
        let size = if text_width(&text, 11.0) + 4.0 <= area.width {
            11.0
        } else {
            9.0
        };
        svg.tag("text")
            .attr("fill", ink)
            .attr("style", &format!("font-size:{}px", number(size)))
            .num("x", area.x + area.width / 2.0)
            .num("y", area.y + area.height / 2.0 + 7.0)
            .attr("text-anchor", "middle")
            .text(&text);
        if let Some(answer) = cell.answer {
            let at = (area.x + area.width - 7.5, area.y + 7.5);
            symbol(svg, answer, at, Some(ink));
        }
        svg.close();
    }

    /// A cell in words, for the tooltip.
    fn say(&self, cell: &HeatCell) -> String {
        let place = |places: &Places, at: usize| {
            let value = places.values.get(at).copied().unwrap_or(f64::NAN);
            format!("{} {}", places.title, places.quantity.tick(value))
        };
        let mut text = format!(
            "{}, {}, {}: {}",
            place(&self.across, cell.panel.1),
            place(&self.x, cell.at.0),
            place(&self.y, cell.at.1),
            Quantity::Ratio.show(cell.value, 3)
        );
        if let Some([low, high]) = cell.interval {
            text += &format!(" [{} … {}]", short(low), short(high));
        }
        if let Some(answer) = cell.answer {
            text += &format!(", {}", answer.words());
        }
        if cell.framed {
            text += &format!(", {}", self.frame);
        }
        text
    }

    fn draw_key(&self, svg: &mut Svg, canvas: &Canvas, key: &Key<'_>, (x, y): (f64, f64)) {
        let baseline = y + 13.0;
        match key {
            Key::Scale => {
                let room = canvas.width - 2.0 * canvas.pad();
                words(
                    svg,
                    "title",
                    (x, baseline),
                    "start",
                    &fit(&self.value, 12.0, room),
                );
                let (at, line) = match self.scale_beside(room) {
                    true => (x + text_width(&self.value, 12.0) + 20.0, y),
                    false => (x, y + LINE),
                };
                self.draw_scale(svg, (at, line));
            }
            Key::Answer(answer) => {
                symbol(svg, *answer, (x + 5.0, y + 9.0), None);
                words(svg, "title", (x + 14.0, baseline), "start", answer.words());
            }
            Key::Frame(label) => {
                let area = Area {
                    x,
                    y: y + 3.0,
                    width: 14.0,
                    height: 12.0,
                };
                draw_frame(svg, area);
                words(svg, "title", (x + 20.0, baseline), "start", label);
            }
        }
    }

    /// The colours from the lowest ratio to the highest, with both ends and the middle in numbers.
    fn draw_scale(&self, svg: &mut Svg, (x, y): (f64, f64)) {
        let end = self.end();
        let beyond = self.cells.iter().any(|c| c.value > end * (1.0 + 1e-9));
        let below = self.cells.iter().any(|c| c.value * end < 1.0 - 1e-9);
        let low = format!("{}{}", if below { "≤ " } else { "" }, short(1.0 / end));
        let high = format!("{}{}", if beyond { "≥ " } else { "" }, short(end));
        words(svg, "tick", (x + SIDE - 5.0, y + 13.0), "end", &low);
        for i in 0..SWATCHES {
            let share = 2.0 * i as f64 / (SWATCHES - 1) as f64 - 1.0;
            svg.tag("rect")
                .attr("fill", &hex(colour(libm::pow(end, share), end)))
                .num("x", x + SIDE + SWATCH * i as f64)
                .num("y", y + 3.0)
                .num("width", SWATCH)
                .num("height", 12.0)
                .empty();
        }
        let right = x + SIDE + SWATCH * SWATCHES as f64 + 5.0;
        words(svg, "tick", (right, y + 13.0), "start", &high);
    }
}

/// Room for the number at an end of the colour scale, and width of a swatch, pixels.
const SIDE: f64 = 44.0;
const SWATCH: f64 = 14.0;

fn scale_width() -> f64 {
    2.0 * SIDE + SWATCH * SWATCHES as f64
}

/// The number of a cell: three digits at most.
fn short(value: f64) -> String {
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Colour of a ratio on a scale that ends at `end` and its inverse.
pub(crate) fn colour(value: f64, end: f64) -> [u8; 3] {
    let logarithm = libm::log(value) / libm::log(end);
    let stops = if logarithm < 0.0 { BELOW } else { ABOVE };
    let share = if logarithm.is_finite() {
        logarithm.abs().min(1.0)
    } else {
        f64::from(value > 1.0 || value == 0.0)
    };
    let place = share * (stops.len() - 1) as f64;
    let first = (place.floor() as usize).min(stops.len() - 2);
    let rest = place - first as f64;
    std::array::from_fn(|i| {
        let [a, b] = [stops[first][i], stops[first + 1][i]].map(f64::from);
        (a + (b - a) * rest).round() as u8
    })
}

/// Whether white ink stands out better than black: the luminance is below that of middle grey.
fn is_dark([r, g, b]: [u8; 3]) -> bool {
    0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b) < 125.0
}

/// A colour as in SVG.
pub(crate) fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn words(svg: &mut Svg, class: &str, (x, y): (f64, f64), anchor: &str, text: &str) {
    svg.tag("text")
        .attr("class", class)
        .num("x", x)
        .num("y", y)
        .attr("text-anchor", anchor)
        .text(text);
}

/// The symbol of an answer: a full circle, an empty one, a question mark. Without an ink, that of the page.
fn symbol(svg: &mut Svg, answer: Answer, (x, y): (f64, f64), ink: Option<&str>) {
    if answer == Answer::CannotTell {
        let tag = svg.tag("text");
        let tag = match ink {
            Some(ink) => tag.attr("fill", ink),
            None => tag.attr("class", "title"),
        };
        tag.attr("style", "font-size:9px")
            .num("x", x)
            .num("y", y + 3.0)
            .attr("text-anchor", "middle")
            .text("?");
        return;
    }
    let full = answer == Answer::Matters;
    let tag = svg.tag("circle");
    let tag = match ink {
        Some(ink) => tag
            .attr("fill", if full { ink } else { "none" })
            .attr("stroke", ink),
        None if full => tag.attr("class", &format!("f{FOREGROUND} c{FOREGROUND}")),
        None => tag
            .attr("class", &format!("c{FOREGROUND}"))
            .attr("fill", "none"),
    };
    tag.attr("stroke-width", "1.2")
        .num("cx", x)
        .num("cy", y)
        .num("r", 2.8)
        .empty();
}

/// A dark frame on a white one, so that it stands out from every colour.
fn draw_frame(svg: &mut Svg, area: Area) {
    for (colour, width) in [(INK[1], 5.0), (INK[0], 2.4)] {
        svg.tag("rect")
            .attr("fill", "none")
            .attr("stroke", colour)
            .num("stroke-width", width)
            .num("x", area.x + 1.0)
            .num("y", area.y + 1.0)
            .num("width", area.width - 2.0)
            .num("height", area.height - 2.0)
            .empty();
    }
}

#[cfg(test)]
mod tests;

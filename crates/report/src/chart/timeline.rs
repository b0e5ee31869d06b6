//! Stacked strips over a shared time axis, thinned to the resolution of the picture.

use super::frame::{self, Area};
use super::legend::{self, Key, Sample};
use super::{Axis, Canvas};
use crate::svg::{PathData, Svg, fit, text_width};

/// How a layer of a strip is drawn and thinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// A filled area on top of the stacked layers before it; the mean of each column.
    Stacked,
    /// A line with the mean of each column.
    Mean,
    /// A pale area between the lowest and the highest value of each column.
    Range,
    /// A pale area from zero to the highest value of each column.
    Peak,
}

/// A layer: one value per bin.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name in the legend and the read-out.
    pub name: String,
    /// Look: index into the palette.
    pub slot: usize,
    /// How it is drawn.
    pub kind: LayerKind,
    /// One value per bin; NaN if missing.
    pub values: Vec<f64>,
}

/// One strip: layers over the shared time axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// Vertical axis; its title stands above the strip.
    pub y: Axis,
    /// Layers, drawn in order.
    pub layers: Vec<Layer>,
    /// A value with a dashed line across, such as the capacity.
    pub mark: Option<f64>,
}

/// Strips that share a time axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Alternative text, and the heading.
    pub title: String,
    /// What it shows, in a sentence.
    pub description: String,
    /// Title of the time axis.
    pub time: String,
    /// Start of the first bin, seconds.
    pub start: f64,
    /// Width of a bin, seconds.
    pub bin: f64,
    /// From top to bottom.
    pub strips: Vec<Strip>,
    /// Whether the title of the time axis is drawn; only the last of a column has it.
    pub titled: bool,
    /// Timelines with the same name share cursor and zoom.
    pub link: String,
}

/// Width of the labels of the vertical axes, the same for all strips so that their times align.
const LEFT: f64 = 48.0;
/// Height of the title above a strip.
const GAP: f64 = 28.0;
/// Margin to the right of the strips.
const RIGHT: f64 = 16.0;

/// Assigns bins to drawn columns, as index ranges.
pub(crate) struct Columns {
    /// Bins of each column.
    pub(crate) per_column: usize,
    bins: usize,
}

impl Columns {
    pub(crate) fn new(bins: usize, pixels: f64) -> Columns {
        // A column is at least two pixels wide.
        let columns = (pixels / 2.0).max(1.0) as usize;
        Columns {
            per_column: bins.div_ceil(columns).max(1),
            bins,
        }
    }
    pub(crate) fn count(&self) -> usize {
        self.bins.div_ceil(self.per_column)
    }
    fn of<'a>(&self, values: &'a [f64], column: usize) -> impl Iterator<Item = f64> + use<'a> {
        let from = (column * self.per_column).min(values.len());
        let to = (from + self.per_column).min(values.len());
        values[from..to].iter().copied().filter(|v| v.is_finite())
    }
    pub(crate) fn mean(&self, values: &[f64], column: usize) -> f64 {
        let (n, sum) = self
            .of(values, column)
            .fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + v));
        if n > 0.0 { sum / n } else { f64::NAN }
    }
    pub(crate) fn min(&self, values: &[f64], column: usize) -> f64 {
        self.of(values, column).fold(f64::NAN, f64::min)
    }
    pub(crate) fn max(&self, values: &[f64], column: usize) -> f64 {
        self.of(values, column).fold(f64::NAN, f64::max)
    }
}

impl Timeline {
    pub(crate) fn bins(&self) -> usize {
        self.strips
            .iter()
            .flat_map(|s| &s.layers)
            .map(|l| l.values.len())
            .max()
            .unwrap_or(0)
    }

    /// The highest stack of strip `index` if drawn `width` pixels wide. Means shrink as columns get wider, so an axis for
    /// the widest picture fits every narrower one.
    pub fn highest_stack(&self, index: usize, width: f64) -> f64 {
        let Some(strip) = self.strips.get(index) else {
            return 0.0;
        };
        let columns = Columns::new(self.bins(), width - LEFT - RIGHT);
        (0..columns.count())
            .map(|c| {
                strip
                    .layers
                    .iter()
                    .filter(|l| l.kind == LayerKind::Stacked)
                    .map(|l| columns.mean(&l.values, c))
                    .filter(|v| v.is_finite())
                    .sum()
            })
            .fold(0.0, f64::max)
    }

    /// Height that gives each strip `strip` pixels on a picture of this width.
    pub fn height(&self, strip: f64, width: f64) -> f64 {
        let (_, head) = self.head(width);
        head + self.strips.len() as f64 * (strip + GAP) + self.foot()
    }

    /// Height below the strips: labels of the time axis, and its title.
    fn foot(&self) -> f64 {
        if self.titled { 42.0 } else { 24.0 }
    }

    /// The position of the legend, beside the title if there is space, below it otherwise; and the height of both.
    fn head(&self, width: f64) -> ((f64, f64), f64) {
        let keys = self.keys();
        let beside = text_width(&self.title, 13.5) + 30.0;
        if legend::height(&keys, width - beside) <= legend::ROW {
            ((beside, 2.0), 24.0)
        } else {
            ((1.0, 20.0), 22.0 + legend::height(&keys, width))
        }
    }

    fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        for layer in self.strips.iter().flat_map(|s| &s.layers) {
            if layer.name.is_empty() || keys.iter().any(|k| k.name == layer.name) {
                continue;
            }
            keys.push(Key {
                name: layer.name.clone(),
                note: String::new(),
                slot: layer.slot,
                series: self.series_of(&layer.name),
                sample: match layer.kind {
                    LayerKind::Stacked => Sample::Box,
                    LayerKind::Range | LayerKind::Peak => Sample::Pale,
                    LayerKind::Mean => Sample::Solid,
                },
            });
        }
        keys
    }

    /// The index of the series of this name: layers of one name are one series in all strips.
    fn series_of(&self, name: &str) -> usize {
        let mut names: Vec<&str> = Vec::new();
        for layer in self.strips.iter().flat_map(|s| &s.layers) {
            if !names.contains(&layer.name.as_str()) {
                names.push(&layer.name);
            }
        }
        names.iter().position(|n| *n == name).unwrap_or(0)
    }

    /// The picture.
    pub fn svg(&self, canvas: &Canvas) -> String {
        let mut svg = frame::begin(canvas, &self.title, &self.description);
        let bins = self.bins();
        let time = Axis::linear(
            &self.time,
            crate::human::Quantity::Duration,
            [self.start, self.start + self.bin * bins as f64].into_iter(),
            false,
        );
        let pad = canvas.pad();
        let width = canvas.width - 2.0 * pad;
        svg.tag("text")
            .attr("class", "head")
            .num("x", pad)
            .attr("y", "16")
            .text(&fit(&self.title, 13.0, width));
        let ((legend_x, legend_y), top) = self.head(width);
        let (keys, room) = (self.keys(), width - legend_x);
        legend::draw(&mut svg, &keys, pad + legend_x, legend_y, room, &canvas.id);
        let foot = self.foot();
        let each = (canvas.height - top - foot) / self.strips.len().max(1) as f64;
        let left = LEFT;
        for (i, strip) in self.strips.iter().enumerate() {
            let area = Area {
                x: left,
                y: top + each * i as f64 + GAP - 4.0,
                width: (canvas.width - left - RIGHT).max(40.0),
                height: (each - GAP).max(20.0),
            };
            svg.tag("text")
                .attr("class", "note")
                .num("x", pad)
                .num("y", area.y - 9.0)
                .text(&fit(&strip.y.full_title(), 11.0, width));
            if bins > 0 {
                frame::y_axis(&mut svg, &strip.y, area);
            }
            let last = i + 1 == self.strips.len();
            if last && bins > 0 {
                frame::x_axis(&mut svg, &time, area, self.titled);
            }
            frame::open_plot(&mut svg, &time, &strip.y, area, &self.link);
            self.draw_strip(&mut svg, strip, area, bins);
            svg.close();
            if bins == 0 {
                frame::nothing(&mut svg, area);
            }
        }
        svg.finish()
    }

    fn draw_strip(&self, svg: &mut Svg, strip: &Strip, area: Area, bins: usize) {
        let columns = Columns::new(bins, area.width);
        let count = columns.count();
        let x = |column: usize| {
            let bin = (column * columns.per_column).min(bins);
            area.width * bin as f64 / bins.max(1) as f64
        };
        let y = |v: f64| strip.y.at(v).map(|t| (1.0 - t) * area.height);
        let mut stacked = vec![0.0; count];
        for layer in &strip.layers {
            let values = &layer.values;
            let mut d = PathData::default();
            let class = match layer.kind {
                LayerKind::Stacked => {
                    let before = stacked.clone();
                    for (c, total) in stacked.iter_mut().enumerate() {
                        let v = columns.mean(values, c);
                        *total += if v.is_finite() { v } else { 0.0 };
                    }
                    between(&mut d, count, &x, &|c| y(before[c]), &|c| y(stacked[c]));
                    format!("area f{}", layer.slot)
                }
                LayerKind::Range | LayerKind::Peak => {
                    let low = |c| match layer.kind {
                        LayerKind::Range => y(columns.min(values, c)),
                        _ => y(0.0),
                    };
                    let high = |c| y(columns.max(values, c));
                    between(&mut d, count, &x, &low, &high);
                    format!("pale f{}", layer.slot)
                }
                LayerKind::Mean => {
                    let mut pen_down = false;
                    for c in 0..count {
                        match y(columns.mean(values, c)) {
                            Some(v) if pen_down => {
                                d.upright(v);
                                d.across(x(c + 1));
                            }
                            Some(v) => {
                                d.move_to(x(c), v);
                                d.across(x(c + 1));
                                pen_down = true;
                            }
                            None => pen_down = false,
                        }
                    }
                    format!("line thin c{}", layer.slot)
                }
            };
            let d = d.finish();
            if d.is_empty() {
                continue;
            }
            let kind = match layer.kind {
                LayerKind::Stacked => "stack",
                LayerKind::Range => "range",
                LayerKind::Peak => "peak",
                LayerKind::Mean => "level",
            };
            svg.tag("path")
                .attr("class", &class)
                .attr("data-s", &self.series_of(&layer.name).to_string())
                .attr("data-name", &layer.name)
                .attr("data-kind", kind)
                .attr("d", &d)
                .empty();
        }
        if let Some(v) = strip.mark.and_then(y) {
            svg.tag("path")
                .attr("class", "ref")
                .attr("d", &frame::line(0.0, v, area.width, v))
                .empty();
        }
    }
}

/// A stepped area between two edges: forward along the upper one, back along the lower one, one piece per run of
/// columns that have both. The script reads the upper edge back.
fn between(
    d: &mut PathData,
    count: usize,
    x: &dyn Fn(usize) -> f64,
    low: &dyn Fn(usize) -> Option<f64>,
    high: &dyn Fn(usize) -> Option<f64>,
) {
    let mut c = 0;
    while c < count {
        let run: Vec<(f64, f64)> = (c..count).map_while(|i| low(i).zip(high(i))).collect();
        if run.is_empty() {
            c += 1;
            continue;
        }
        for (i, (_, top)) in run.iter().enumerate() {
            if i == 0 {
                d.move_to(x(c), *top);
            } else {
                d.upright(*top);
            }
            d.across(x(c + i + 1));
        }
        for (i, (bottom, _)) in run.iter().enumerate().rev() {
            d.upright(*bottom);
            d.across(x(c + i));
        }
        d.close();
        c += run.len();
    }
}

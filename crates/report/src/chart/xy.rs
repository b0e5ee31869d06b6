//! Curves over two axes.

use super::frame::{self, Area};
use super::legend::{self, Key, Sample};
use super::{Axis, Canvas};
use crate::svg::{PathData, Svg, text_width};

/// How a curve joins its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The value of a point holds from it to the next: a distribution function.
    Step,
    /// Straight lines.
    Line,
    /// Straight lines with a mark at each point.
    Marked,
    /// A mark at each point; nothing joins them.
    Dots,
    /// As `Marked`, with the band drawn as a vertical bar at each point.
    Intervals,
    /// A mark at each point with the name beside it; nothing joins them, and no legend names them.
    Named,
}

/// A series.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// A note in small type in the legend, `n = 400`; may be empty.
    pub note: String,
    /// Look: index into the palette.
    pub slot: usize,
    /// How points are joined.
    pub shape: Shape,
    /// (x, y), ascending in x.
    pub points: Vec<(f64, f64)>,
    /// (x, lower y, upper y), ascending in x; may be empty. A band behind the curve whose corners are joined by straight
    /// lines whatever the shape, or a bar at each x ([`Shape::Intervals`]).
    pub band: Vec<(f64, f64, f64)>,
}

/// Curves over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct XyChart {
    /// Alternative text, and the title of a file of its own.
    pub title: String,
    /// What it shows, in a sentence.
    pub description: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The series, drawn in order.
    pub curves: Vec<Curve>,
    /// Values of y with a dashed line across.
    pub marks: Vec<f64>,
    /// Plots with the same name share cursor and zoom.
    pub link: String,
}

impl XyChart {
    /// The picture.
    pub fn svg(&self, canvas: &Canvas) -> String {
        let mut svg = frame::begin(canvas, &self.title, &self.description);
        let keys: Vec<Key> = self
            .curves
            .iter()
            .enumerate()
            .filter(|(_, c)| c.shape != Shape::Named)
            .map(|(series, c)| Key {
                name: c.name.clone(),
                note: c.note.clone(),
                slot: c.slot,
                series,
                sample: match c.shape {
                    Shape::Dots => Sample::Dot,
                    _ => Sample::Line,
                },
            })
            .collect();
        let head = frame::heading(&mut svg, canvas, &self.title);
        let pad = canvas.pad();
        let legend_width = canvas.width - 2.0 * pad;
        let top = head + 8.0 + legend::height(&keys, legend_width) + 24.0;
        let height = (canvas.height - top - 46.0).max(40.0);
        let left = frame::label_room(&self.y, height) + pad;
        let area = Area {
            x: left,
            y: top,
            width: (canvas.width - left - 14.0).max(40.0),
            height,
        };
        legend::draw(&mut svg, &keys, pad, head + 6.0, legend_width, &canvas.id);
        if self.curves.iter().all(|c| self.places(c, area).is_empty()) {
            frame::nothing(&mut svg, area);
            return svg.finish();
        }
        frame::y_title(&mut svg, canvas, &self.y, top - 12.0);
        frame::y_axis(&mut svg, &self.y, area);
        frame::x_axis(&mut svg, &self.x, area, true);
        frame::open_plot(&mut svg, &self.x, &self.y, area, &self.link);
        for &mark in &self.marks {
            if let Some(t) = self.y.at(mark) {
                let y = area.height * (1.0 - t);
                svg.tag("path")
                    .attr("class", "ref")
                    .attr("d", &frame::line(0.0, y, area.width, y))
                    .empty();
            }
        }
        for (series, curve) in self.curves.iter().enumerate() {
            self.draw_band(&mut svg, curve, series, area);
        }
        for (series, curve) in self.curves.iter().enumerate() {
            self.draw_curve(&mut svg, curve, series, area);
        }
        self.draw_names(&mut svg, area);
        svg.close();
        svg.finish()
    }

    /// The points that the axes can show, in plot pixels.
    fn places(&self, curve: &Curve, area: Area) -> Vec<(f64, f64)> {
        curve
            .points
            .iter()
            .filter_map(|&(x, y)| {
                let (u, v) = (self.x.at(x)?, self.y.at(y)?);
                Some((u * area.width, (1.0 - v) * area.height))
            })
            .collect()
    }

    fn draw_band(&self, svg: &mut Svg, curve: &Curve, series: usize, area: Area) {
        let edges: Vec<(f64, f64, f64)> = curve
            .band
            .iter()
            .filter_map(|&(x, lo, hi)| {
                let place = |v| self.y.at(v).map(|t| (1.0 - t) * area.height);
                Some((self.x.at(x)? * area.width, place(lo)?, place(hi)?))
            })
            .collect();
        let mut d = PathData::default();
        if matches!(curve.shape, Shape::Intervals | Shape::Named) {
            for &(x, low, high) in &edges {
                d.move_to(x, low);
                d.line_to(x, high);
            }
            svg.tag("path")
                .attr("class", &format!("bar c{}", curve.slot))
                .attr("data-s", &series.to_string())
                .attr("d", &d.finish())
                .empty();
            return;
        }
        if edges.len() < 2 {
            return;
        }
        outline(&mut d, edges.iter().map(|e| (e.0, e.2)), true);
        outline(&mut d, edges.iter().rev().map(|e| (e.0, e.1)), false);
        d.close();
        svg.tag("path")
            .attr("class", &format!("band f{}", curve.slot))
            .attr("data-s", &series.to_string())
            .attr("d", &d.finish())
            .empty();
    }

    fn draw_curve(&self, svg: &mut Svg, curve: &Curve, series: usize, area: Area) {
        let places = self.places(curve, area);
        let Some(&first) = places.first() else {
            return;
        };
        let mut d = PathData::default();
        match curve.shape {
            Shape::Named | Shape::Dots => {}
            Shape::Step => {
                let floor = self
                    .y
                    .at(0.0)
                    .map_or(area.height, |t| (1.0 - t) * area.height);
                d.move_to(first.0, floor);
                for (i, (x, y)) in thin_steps(&places).into_iter().enumerate() {
                    if i > 0 {
                        d.across(x);
                    }
                    d.upright(y);
                }
            }
            Shape::Line | Shape::Marked | Shape::Intervals => {
                outline(&mut d, thin_line(&places).into_iter(), true);
            }
        }
        let kind = match curve.shape {
            Shape::Step => "step",
            _ => "poly",
        };
        svg.tag("path")
            .attr("class", &format!("line c{0} d{0}", curve.slot))
            .attr("data-s", &series.to_string())
            .attr("data-name", &curve.name)
            .attr("data-kind", kind)
            .attr("d", &d.finish())
            .empty();
        if !matches!(curve.shape, Shape::Step | Shape::Line) {
            let mut dots = PathData::default();
            for (x, y) in places {
                dots.dot(x, y);
            }
            svg.tag("path")
                .attr("class", &format!("mark c{}", curve.slot))
                .attr("data-s", &series.to_string())
                .attr("d", &dots.finish())
                .empty();
        }
    }
}

/// Text size of names, and their line height, in pixels.
const NAME: f64 = 11.0;
const LINE: f64 = 13.0;

impl XyChart {
    /// Draws names beside points, on the side with space, each moved up or down past points and earlier names.
    fn draw_names(&self, svg: &mut Svg, area: Area) {
        let named = || self.curves.iter().filter(|c| c.shape == Shape::Named);
        let points = named().flat_map(|c| self.places(c, area));
        // Areas that names must not cover: left, right, and height.
        let mut taken: Vec<(f64, f64, f64)> = points.map(|(x, y)| (x - 5.0, x + 5.0, y)).collect();
        for curve in named() {
            let width = text_width(&curve.name, NAME);
            for (x, y) in self.places(curve, area) {
                let right = (x + 8.0, x + 8.0 + width);
                let left = (x - 8.0 - width, x - 8.0);
                let steps = (0..8).flat_map(|i| [f64::from(i), -f64::from(i)]);
                let both = steps.flat_map(|i| [(right, i), (left, i)]);
                let mut places = both.map(|(span, i)| (span, y + i * LINE));
                let free = |&((from, to), at): &((f64, f64), f64)| {
                    let clear = |&(l, r, other): &(f64, f64, f64)| {
                        from >= r || to <= l || (at - other).abs() >= LINE * 0.9
                    };
                    let inside = from >= 0.0 && to <= area.width && at >= 0.0 && at <= area.height;
                    inside && taken.iter().all(clear)
                };
                let (span, at) = places.find(free).unwrap_or((right, y));
                taken.push((span.0, span.1, at));
                let (edge, anchor) = if span == right {
                    (span.0, "start")
                } else {
                    (span.1, "end")
                };
                svg.tag("text")
                    .attr("class", "note")
                    .num("x", edge)
                    .num("y", at + 4.0)
                    .attr("text-anchor", anchor)
                    .text(&curve.name);
            }
        }
    }
}

/// Straight lines through `points`, starting a new piece where `start`.
fn outline(d: &mut PathData, points: impl Iterator<Item = (f64, f64)>, start: bool) {
    for (i, (x, y)) in points.enumerate() {
        if i == 0 && start {
            d.move_to(x, y);
        } else {
            d.line_to(x, y);
        }
    }
}

/// Thins steps to at least half a pixel apart. The last step in each half pixel determines the position of the line.
fn thin_steps(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = Vec::new();
    for (i, &(x, y)) in places.iter().enumerate() {
        let joined = out.last().is_some_and(|l| x - l.0 < 0.5) && i + 1 < places.len();
        match out.last_mut() {
            Some(last) if joined => last.1 = y,
            _ => out.push((x, y)),
        }
    }
    out
}

/// Keeps the first, lowest, highest and last point of each pixel column, so nothing visible is lost.
pub(crate) fn thin_line(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if places.len() < 1200 {
        return places.to_vec();
    }
    let mut out = Vec::new();
    for column in places.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let extreme = |better: fn(f64, f64) -> bool| {
            (0..column.len()).fold(0, |best, i| {
                if better(column[i].1, column[best].1) {
                    i
                } else {
                    best
                }
            })
        };
        let mut keep = [
            0,
            extreme(|a, b| a < b),
            extreme(|a, b| a > b),
            column.len() - 1,
        ];
        keep.sort_unstable();
        let mut previous = None;
        for i in keep {
            if previous != Some(i) {
                out.push(column[i]);
            }
            previous = Some(i);
        }
    }
    out
}

//! Charts as Vega-Lite specifications, so that users can edit a figure.
//!
//! A specification holds the data of the chart instead of a picture. Notebooks, editors and Altair can read it. Values
//! are in base units (seconds, bytes, bits per second, shares from 0 to 1). Colours and dashes match the SVG files.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Map, Value, json};
use swell_verdict::Known;

use crate::chart::{
    Axis, BarChart, Columns, Curve, Layer, LayerKind, Scale, Shape, Strip, Timeline, XyChart,
};
use crate::human::Quantity;
use crate::palette;

/// The Vega-Lite version of the specifications.
pub const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";

/// Size of a plot, pixels.
const SIZE: (u32, u32) = (560, 300);
/// Maximum number of columns of a timeline: more than a page shows, but few enough for a notebook.
const COLUMNS: f64 = 600.0;
/// Height of a strip of a timeline, pixels.
const STRIP: u32 = 70;

/// Packs a specification for a page: zlib (RFC 1950), then base64. Its rows repeat their keys and compress well.
pub(crate) fn packed(spec: &Value) -> String {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    let bytes = packer.write_all(spec.to_string().as_bytes());
    let bytes = bytes.and_then(|()| packer.finish());
    BASE64_STANDARD.encode(bytes.expect("memory takes everything"))
}

/// Rounds to six digits: more than a picture shows, and a third of the bytes.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// A whole specification with a title.
pub(crate) fn top(title: &str, description: &str, rest: Value) -> Value {
    let mut spec = Map::new();
    spec.insert("$schema".into(), SCHEMA.into());
    spec.insert("title".into(), title.into());
    spec.insert("description".into(), description.into());
    if let Value::Object(rest) = rest {
        spec.extend(rest);
    }
    Value::Object(spec)
}

/// A title that names the unit of the values.
fn titled(title: &str, quantity: Quantity) -> String {
    match quantity {
        Quantity::Duration => format!("{title} (s)"),
        Quantity::Bytes => format!("{title} (B)"),
        Quantity::Rate => format!("{title} (bit/s)"),
        Quantity::Ratio => format!("{title} (×)"),
        Quantity::Share | Quantity::Plain => title.into(),
    }
}

/// The d3 format of ticks.
fn format_of(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Share => "~%",
        Quantity::Bytes | Quantity::Rate => "~s",
        Quantity::Duration | Quantity::Ratio | Quantity::Plain => "~g",
    }
}

fn position(field: &str, axis: &Axis) -> Value {
    json!({
        "field": field, "type": "quantitative", "title": titled(&axis.title, axis.quantity),
        "axis": {"format": format_of(axis.quantity)},
        "scale": {
            "type": match axis.scale { Scale::Log => "log", Scale::Linear => "linear" },
            "domain": [axis.lo, axis.hi], "nice": false, "clamp": true,
        },
    })
}

/// The looks of series by name: two encodings that share a legend.
fn looks(series: &[(String, usize)]) -> (Value, Value) {
    let names: Vec<&str> = series.iter().map(|s| s.0.as_str()).collect();
    let colours: Vec<&str> = series.iter().map(|s| palette::colour(s.1)).collect();
    let dashes: Vec<Vec<f64>> = series.iter().map(|s| palette::dash(s.1)).collect();
    let of = |range: Value| {
        json!({
            "field": "series", "type": "nominal", "title": null,
            "scale": {"domain": names, "range": range}, "sort": names,
        })
    };
    (of(json!(colours)), of(json!(dashes)))
}

/// Whether all values are finite: JSON cannot represent others, so they are left out.
fn finite(values: &[f64]) -> bool {
    values.iter().all(|v| v.is_finite())
}

impl XyChart {
    /// The chart as a Vega-Lite specification.
    pub fn vega(&self) -> Value {
        let series: Vec<(String, usize)> = self
            .curves
            .iter()
            .map(|c| (c.name.clone(), c.slot))
            .collect();
        let (colour, dash) = looks(&series);
        let (x, y) = (position("x", &self.x), position("y", &self.y));
        let mut layers = Vec::new();
        let banded = |bars: bool| {
            let curves = self.curves.iter();
            let has_bars = |c: &Curve| matches!(c.shape, Shape::Intervals | Shape::Named);
            let those = curves.filter(move |c| has_bars(c) == bars);
            let rows = those.flat_map(|c| c.band.iter().map(move |b| (c, b)));
            rows.filter(|(_, b)| finite(&[b.0, b.1, b.2]))
                .map(|(c, b)| {
                    let [at, low, high] = [b.0, b.1, b.2].map(rounded);
                    json!({"series": c.name, "x": at, "low": low, "high": high})
                })
                .collect::<Vec<Value>>()
        };
        let mut low = y.clone();
        low["field"] = "low".into();
        for (bars, mark) in [
            (false, json!({"type": "area", "opacity": 0.15})),
            (true, json!({"type": "rule", "opacity": 0.7})),
        ] {
            let rows = banded(bars);
            if !rows.is_empty() {
                layers.push(json!({
                    "data": {"values": rows}, "mark": mark,
                    "encoding": {"x": x, "y": low, "y2": {"field": "high"}, "color": colour},
                }));
            }
        }
        for shape in [
            Shape::Step,
            Shape::Line,
            Shape::Marked,
            Shape::Intervals,
            Shape::Named,
            Shape::Dots,
        ] {
            let rows = points(self.curves.iter().filter(|c| c.shape == shape), &self.x);
            if rows.is_empty() {
                continue;
            }
            let mark = match shape {
                Shape::Step => json!({"type": "line", "interpolate": "step-after"}),
                Shape::Line => json!({"type": "line"}),
                Shape::Marked | Shape::Intervals => json!({"type": "line", "point": true}),
                Shape::Named | Shape::Dots => json!({"type": "point", "filled": true}),
            };
            layers.push(json!({
                "data": {"values": rows}, "mark": mark,
                "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
            }));
        }
        if !self.marks.is_empty() {
            let rows: Vec<Value> = self.marks.iter().map(|m| json!({"y": m})).collect();
            layers.push(json!({
                "data": {"values": rows}, "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#5a6168"},
                "encoding": {"y": y},
            }));
        }
        if layers.is_empty() {
            layers.push(json!({
                "data": {"values": []}, "mark": "line", "encoding": {"x": x, "y": y},
            }));
        }
        let rest = json!({"width": SIZE.0, "height": SIZE.1, "layer": layers});
        top(&self.title, &self.description, rest)
    }
}

/// Maximum number of steps of a curve along the axis: more than a picture shows.
const STEPS: f64 = 2000.0;

fn points<'c>(curves: impl Iterator<Item = &'c Curve>, x: &Axis) -> Vec<Value> {
    let mut rows = Vec::new();
    for curve in curves {
        let all = curve.points.iter().filter(|p| finite(&[p.0, p.1]));
        let all: Vec<(f64, f64)> = all.copied().collect();
        let kept = match curve.shape {
            Shape::Step if all.len() as f64 > STEPS => thin_steps(&all, x),
            _ => all,
        };
        let row =
            |p: &(f64, f64)| json!({"series": curve.name, "x": rounded(p.0), "y": rounded(p.1)});
        rows.extend(kept.iter().map(row));
    }
    rows
}

/// Steps that are at least a share of 1 / [`STEPS`] of the axis apart, as in the picture: of those nearer to each other
/// the place of the first and the height of the last.
fn thin_steps(points: &[(f64, f64)], axis: &Axis) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = Vec::new();
    let mut last = None;
    for &(x, y) in points {
        let Some(at) = axis.at(x) else { continue };
        match (last, out.last_mut()) {
            (Some(last), Some(own)) if at - last < 1.0 / STEPS => own.1 = y,
            _ => {
                out.push((x, y));
                last = Some(at);
            }
        }
    }
    out
}

impl BarChart {
    /// The chart as a Vega-Lite specification. An interval without an upper end is not drawn.
    pub fn vega(&self) -> Value {
        let mut rows = Vec::new();
        for group in &self.groups {
            for (bar, (series, _)) in group.bars.iter().zip(&self.series) {
                if !bar.value.is_finite() {
                    continue;
                }
                let mut row = json!({
                    "series": series, "group": group.name, "value": bar.value, "from": self.reference,
                });
                if finite(&[bar.lo, bar.hi]) {
                    row["low"] = bar.lo.into();
                    row["high"] = bar.hi.into();
                }
                match bar.known {
                    Known::AtLeast(_) => row["bound"] = "at least".into(),
                    Known::AtMost(_) => row["bound"] = "at most".into(),
                    Known::Interval | Known::Value => {}
                }
                rows.push(row);
            }
        }
        let names: Vec<&str> = self.series.iter().map(|s| s.0.as_str()).collect();
        let (colour, _) = looks(&self.series);
        let axis = self.axis(f64::from(SIZE.1));
        let value = position("value", &axis);
        let mut low = value.clone();
        low["field"] = "low".into();
        let groups: Vec<&str> = self.groups.iter().map(|g| g.name.as_str()).collect();
        let x = json!({"field": "group", "type": "nominal", "title": null, "sort": groups, "axis": {"labelAngle": 0}});
        if self.stacked {
            for row in &mut rows {
                row["order"] = json!(names.iter().position(|n| row["series"] == *n));
            }
            let mut part = value;
            part["stack"] = "zero".into();
            let rest = json!({
                "width": SIZE.0, "height": SIZE.1, "data": {"values": rows}, "mark": "bar",
                "encoding": {"x": x, "y": part, "color": colour, "order": {"field": "order"}},
            });
            return top(&self.title, &self.description, rest);
        }
        let offset = json!({"field": "series", "type": "nominal", "sort": names});
        let rest = json!({
            "width": SIZE.0, "height": SIZE.1, "data": {"values": rows},
            "layer": [
                {"mark": {"type": "bar"},
                 "encoding": {"x": x, "xOffset": offset, "y": value, "y2": {"field": "from"}, "color": colour,
                              "opacity": {"condition": {"test": "isValid(datum.bound)", "value": 0.38}, "value": 0.85}}},
                {"mark": {"type": "rule"}, "transform": [{"filter": "isValid(datum.low)"}],
                 "encoding": {"x": x, "xOffset": offset, "y": low, "y2": {"field": "high"}}},
            ],
        });
        top(&self.title, &self.description, rest)
    }
}

/// Stacked timelines as one Vega-Lite specification.
pub(crate) fn timelines(charts: &[Timeline]) -> Value {
    let strips: Vec<Value> = charts
        .iter()
        .flat_map(|c| {
            c.strips
                .iter()
                .enumerate()
                .map(move |(i, s)| strip(c, i, s))
        })
        .collect();
    let (title, description) = match charts {
        [] => ("", ""),
        [one] => (one.title.as_str(), one.description.as_str()),
        [first, ..] => ("The bottleneck over time", first.description.as_str()),
    };
    top(title, description, json!({"vconcat": strips}))
}

fn strip(chart: &Timeline, index: usize, strip: &Strip) -> Value {
    let series: Vec<(String, usize)> = strip
        .layers
        .iter()
        .map(|l| (l.name.clone(), l.slot))
        .collect();
    let (colour, _) = looks(&series);
    let last = index + 1 == chart.strips.len();
    let time = json!({
        "field": "time", "type": "quantitative", "scale": {"nice": false},
        "title": if last { Value::from(titled(&chart.time, Quantity::Duration)) } else { Value::Null },
    });
    let mut layers: Vec<Value> = Vec::new();
    for stacked in [true, false] {
        let mine: Vec<&Layer> = strip
            .layers
            .iter()
            .filter(|l| (l.kind == LayerKind::Stacked) == stacked)
            .collect();
        let groups: Vec<Vec<&Layer>> = if stacked {
            vec![mine]
        } else {
            mine.into_iter().map(|l| vec![l]).collect()
        };
        for group in groups.into_iter().filter(|g| !g.is_empty()) {
            let mark = match group[0].kind {
                LayerKind::Stacked => json!({"type": "area", "interpolate": "step-after"}),
                LayerKind::Mean => json!({"type": "line", "strokeWidth": 1}),
                LayerKind::Range | LayerKind::Peak => json!({"type": "area", "opacity": 0.25}),
            };
            let mut y = position("value", &strip.y);
            if let Value::Object(scale) = &mut y["scale"] {
                // Means over wider columns have lower maxima, so the picture's domain would cut these values off.
                scale.remove("domain");
            }
            y["stack"] = if stacked { "zero".into() } else { Value::Null };
            let rows: Vec<Value> = group.iter().flat_map(|l| rows(chart, l)).collect();
            let mut encoding = json!({"x": time, "y": y, "color": colour});
            if group[0].kind == LayerKind::Range {
                encoding["y2"] = json!({"field": "low"});
            }
            layers.push(json!({"data": {"values": rows}, "mark": mark, "encoding": encoding}));
        }
    }
    let title = if index == 0 {
        Value::from(chart.title.as_str())
    } else {
        Value::Null
    };
    let mut one = json!({"width": SIZE.0, "height": STRIP, "layer": layers});
    if !title.is_null() {
        one["title"] = title;
    }
    one
}

/// The values of a layer, thinned as in the picture.
fn rows(chart: &Timeline, layer: &Layer) -> Vec<Value> {
    let columns = Columns::new(chart.bins(), 2.0 * COLUMNS);
    let width = chart.bin * columns.per_column as f64;
    let mut rows = Vec::new();
    for column in 0..columns.count() {
        let mut row =
            json!({"series": layer.name, "time": rounded(chart.start + column as f64 * width)});
        let value = match layer.kind {
            LayerKind::Stacked | LayerKind::Mean => columns.mean(&layer.values, column),
            LayerKind::Peak | LayerKind::Range => columns.max(&layer.values, column),
        };
        if !value.is_finite() {
            continue;
        }
        row["value"] = rounded(value).into();
        if layer.kind == LayerKind::Range {
            row["low"] = rounded(columns.min(&layer.values, column)).into();
        }
        rows.push(row);
    }
    rows
}

mod heat;

#[cfg(test)]
mod tests;

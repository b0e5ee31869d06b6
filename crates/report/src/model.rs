//! Pictures of a traffic model's contents, without running it.

use swell_traffic::{Connection, Exchange, Load, Model, Path};

use crate::chart::{Axis, Canvas, Curve, Layer, LayerKind, Shape, Strip, Timeline, XyChart};
use crate::human::{Quantity, count};
use crate::page;
use crate::parts::{Cell, Figure, Part, Section, Table, WIDE};

/// Maximum number of classes drawn; the rest are many and small.
const CLASSES: usize = 6;

/// Classes with fewer responses are not drawn: a curve of three steps is meaningless.
const FEW: usize = 5;

/// A picture of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelPicture {
    /// Distribution of response sizes, a curve per class.
    Sizes,
    /// Distribution of RTTs on both sides of the tap.
    Rtts,
    /// Rates over the length of the trace, both directions.
    Load,
    /// Log-scale diagram, both directions.
    Scales,
}

impl ModelPicture {
    /// Every picture, in the order of the page.
    pub const ALL: [ModelPicture; 4] = [
        ModelPicture::Sizes,
        ModelPicture::Rtts,
        ModelPicture::Load,
        ModelPicture::Scales,
    ];

    /// A name for files and options.
    pub fn name(self) -> &'static str {
        match self {
            ModelPicture::Sizes => "sizes",
            ModelPicture::Rtts => "rtts",
            ModelPicture::Load => "load",
            ModelPicture::Scales => "scales",
        }
    }

    fn caption(self) -> (&'static str, &'static str) {
        match self {
            ModelPicture::Sizes => (
                "How large responses are.",
                "Share of responses up to a size, the classes with the most bytes; sessions count \
                 by their weight.",
            ),
            ModelPicture::Rtts => (
                "How far away hosts are.",
                "Share of hosts within a round-trip time of the tap, on the side of the clients and \
                 on the side of the servers; hosts that were measured.",
            ),
            ModelPicture::Load => (
                "How the load moved.",
                "Rate on the tapped link over the trace, both directions: mean, and lowest to \
                 highest in pale.",
            ),
            ModelPicture::Scales => (
                "At which timescales it bursts.",
                "Log-scale diagram of the trace’s bytes. One unit up is twice the energy; a flat \
                 line is traffic without memory (Poisson).",
            ),
        }
    }

    /// Draws the picture. The caller chooses `canvas.height`; 380 suits a width of 700.
    pub fn svg(self, model: &Model, canvas: &Canvas) -> String {
        match self {
            ModelPicture::Sizes => sizes(model).svg(canvas),
            ModelPicture::Rtts => rtts(model).svg(canvas),
            ModelPicture::Load => load(model, canvas.width).svg(canvas),
            ModelPicture::Scales => scales(&model.load).svg(canvas),
        }
    }
}

impl ModelPicture {
    /// The picture as a Vega-Lite specification.
    pub fn vega(self, model: &Model) -> serde_json::Value {
        match self {
            ModelPicture::Sizes => sizes(model).vega(),
            ModelPicture::Rtts => rtts(model).vega(),
            ModelPicture::Load => crate::vega::timelines(&[load(model, WIDE)]),
            ModelPicture::Scales => scales(&model.load).vega(),
        }
    }
}

/// All pictures of a model on one self-contained page.
pub fn model_html(model: &Model) -> String {
    let figures = ModelPicture::ALL.iter().map(|&picture| {
        let (lead, caption) = picture.caption();
        Figure::both(picture.name(), lead, caption, |canvas, width| {
            let height = if width < 500.0 { 330.0 } else { 370.0 };
            vec![picture.svg(model, &canvas("", height))]
        })
        .vega(&picture.vega(model))
    });
    let doubts = model
        .warnings
        .iter()
        .map(|w| (w.code.to_string(), w.message.clone()));
    let sections = [
        Section {
            id: "doubts".into(),
            title: "What to doubt".into(),
            what: if model.warnings.is_empty() {
                "Nothing was noted while learning.".into()
            } else {
                String::new()
            },
            parts: vec![Part {
                facts: doubts.collect(),
                ..Part::default()
            }],
        },
        Section {
            id: "model".into(),
            title: "What it holds".into(),
            what: model.provenance.note.clone(),
            parts: vec![
                Part {
                    tables: vec![class_table(model)],
                    ..Part::default()
                },
                Part {
                    figures: figures.collect(),
                    ..Part::default()
                },
            ],
        },
    ];
    let seconds = model.duration.as_secs_f64();
    let length = Quantity::Duration.show(seconds, 3);
    let note = match &model.provenance.sources[..] {
        [] => format!("Traffic model of {length}: a stand-in, made without a trace."),
        traces => format!(
            "Traffic model, learnt from {length} of {}.",
            traces.join(", ")
        ),
    };
    page::html(&model.name, &note, minijinja::context! {}, &sections)
}

/// Response sizes of a class, with the weight of their sessions.
fn responses(model: &Model, class: usize) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    for session in model.sessions.iter().filter(|s| s.class as usize == class) {
        for connection in session.groups.iter().flat_map(|g| &g.connections) {
            match &connection.exchange {
                Exchange::Sequential(turns) => {
                    out.extend(turns.iter().map(|t| (t.response as f64, session.weight)));
                }
                Exchange::Concurrent { down, .. } => {
                    out.extend(down.iter().map(|d| (d.bytes as f64, session.weight)));
                }
                Exchange::Attempt { .. } | Exchange::Datagrams(_) => {}
            }
        }
    }
    out
}

/// Bytes of a connection in both directions.
fn volume(connection: &Connection) -> f64 {
    match &connection.exchange {
        Exchange::Sequential(turns) => turns.iter().map(|t| (t.request + t.response) as f64).sum(),
        Exchange::Concurrent { up, down } => up.iter().chain(down).map(|u| u.bytes as f64).sum(),
        Exchange::Attempt { .. } => 0.0,
        Exchange::Datagrams(d) => {
            let [up, down] = d.bytes();
            up as f64 + down as f64
        }
    }
}

/// (class, sessions, connections, bytes), in descending order of bytes.
fn class_totals(model: &Model) -> Vec<(usize, f64, f64, f64)> {
    let mut totals: Vec<(usize, f64, f64, f64)> = (0..model.classes.len())
        .map(|c| (c, 0.0, 0.0, 0.0))
        .collect();
    for session in &model.sessions {
        let Some(total) = totals.get_mut(session.class as usize) else {
            continue;
        };
        total.1 += session.weight;
        for connection in session.groups.iter().flat_map(|g| &g.connections) {
            total.2 += session.weight;
            total.3 += session.weight * volume(connection);
        }
    }
    totals.sort_by(|a, b| b.3.total_cmp(&a.3).then(a.0.cmp(&b.0)));
    totals
}

fn class_table(model: &Model) -> Table {
    let mut table = Table::new(&["Class", "sessions", "connections", "bytes"]);
    for (class, sessions, connections, bytes) in class_totals(model) {
        table.rows.push(vec![
            Cell::text(model.classes[class].name.clone()),
            Cell::text(count(sessions.round() as u64)),
            Cell::text(count(connections.round() as u64)),
            Cell::text(Quantity::Bytes.show(bytes, 3)),
        ]);
    }
    table
}

/// The distribution function of weighted values.
fn weighted_steps(mut values: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    values.retain(|v| v.0.is_finite() && v.1.is_finite() && v.1 > 0.0);
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = values.iter().map(|v| v.1).sum();
    let mut below = 0.0;
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (value, weight) in values {
        below += weight;
        match steps.last_mut() {
            Some(last) if last.0 == value => last.1 = below / total,
            _ => steps.push((value, below / total)),
        }
    }
    steps
}

fn distribution(title: &str, y_title: &str, x: Axis, curves: Vec<Curve>) -> XyChart {
    XyChart {
        title: title.into(),
        description: format!("{y_title}, one curve each for {}.", names(&curves)),
        x,
        y: Axis::linear(y_title, Quantity::Share, [0.0, 1.0].into_iter(), true),
        curves,
        marks: Vec::new(),
        link: String::new(),
    }
}

fn names(curves: &[Curve]) -> String {
    let names: Vec<&str> = curves.iter().map(|c| c.name.as_str()).collect();
    names.join(", ")
}

fn step_curve(name: &str, slot: usize, steps: Vec<(f64, f64)>, n: usize) -> Curve {
    Curve {
        name: name.into(),
        note: format!("n = {}", count(n as u64)),
        slot,
        shape: Shape::Step,
        points: steps,
        band: Vec::new(),
    }
}

/// Slots for curves without a reference, the solid line first.
const LOOKS: [usize; CLASSES] = [3, 1, 2, 4, 6, 5];

fn sizes(model: &Model) -> XyChart {
    let curves: Vec<Curve> = class_totals(model)
        .into_iter()
        .filter_map(|(class, ..)| {
            let mut values = responses(model, class);
            values.retain(|v| v.0 > 0.0);
            (values.len() >= FEW).then_some((class, values))
        })
        .take(CLASSES)
        .zip(LOOKS)
        .map(|((class, values), slot)| {
            let n = values.len();
            step_curve(&model.classes[class].name, slot, weighted_steps(values), n)
        })
        .collect();
    let values = curves.iter().flat_map(|c| c.points.iter().map(|p| p.0));
    let x = Axis::log("Response size", Quantity::Bytes, values).padded(0.02);
    distribution(
        "Response sizes",
        "Share of responses up to this size",
        x,
        curves,
    )
}

fn rtts(model: &Model) -> XyChart {
    let side = |name: &str, slot, paths: &[Path]| {
        let values: Vec<(f64, f64)> = paths
            .iter()
            .filter(|p| p.rtt_samples > 0)
            .map(|p| (p.rtt.as_secs_f64(), 1.0))
            .collect();
        let n = values.len();
        step_curve(name, slot, weighted_steps(values), n)
    };
    let curves = vec![
        side("tap to clients", 1, &model.client_paths),
        side("tap to servers", 3, &model.server_paths),
    ];
    let values = curves.iter().flat_map(|c| c.points.iter().map(|p| p.0));
    let x = Axis::log("Round-trip time to the tap", Quantity::Duration, values).padded(0.02);
    distribution(
        "Round-trip times",
        "Share of hosts within this time",
        x,
        curves,
    )
}

fn load(model: &Model, width: f64) -> Timeline {
    let bin = model.load.bin.as_secs_f64();
    let rates = model.load.bytes.each_ref().map(|bytes| -> Vec<f64> {
        bytes
            .iter()
            .map(|&b| b as f64 * 8.0 / bin.max(1e-9))
            .collect()
    });
    let highest = rates.iter().flatten().copied().fold(0.0, f64::max);
    let strips = [("Left to right", 0), ("Right to left", 1)]
        .into_iter()
        .map(|(title, direction)| Strip {
            y: Axis::linear(title, Quantity::Rate, [0.0, highest].into_iter(), true)
                .nice(if width < 500.0 { 80.0 } else { 110.0 }),
            layers: vec![
                Layer {
                    name: "lowest to highest".into(),
                    slot: 1,
                    kind: LayerKind::Range,
                    values: rates[direction].clone(),
                },
                Layer {
                    name: "mean".into(),
                    slot: 1,
                    kind: LayerKind::Mean,
                    values: rates[direction].clone(),
                },
            ],
            mark: None,
        })
        .collect();
    Timeline {
        title: "Load on the tapped link".into(),
        description: "Rates over the trace, both directions.".into(),
        time: "Time since the start of the trace".into(),
        start: 0.0,
        bin,
        strips,
        titled: true,
        link: "load".into(),
    }
}

fn scales(load: &Load) -> XyChart {
    let bin = load.lsd_bin.as_secs_f64();
    let curves: Vec<Curve> = [("left to right", 0, 1), ("right to left", 1, 3)]
        .into_iter()
        .map(|(name, direction, slot)| Curve {
            name: name.into(),
            note: String::new(),
            slot,
            shape: Shape::Marked,
            points: load.lsd[direction]
                .iter()
                .zip(1..)
                .map(|(&y, j)| (bin * libm::pow(2.0, f64::from(j)), y))
                .filter(|p| p.1.is_finite())
                .collect(),
            band: Vec::new(),
        })
        .collect();
    let of = |take: fn(&(f64, f64)) -> f64| curves.iter().flat_map(|c| c.points.iter()).map(take);
    let x = Axis::log("Timescale", Quantity::Duration, of(|p| p.0)).padded(0.03);
    let y = Axis::linear(
        "log2 of energy (bytes² per bin)",
        Quantity::Plain,
        of(|p| p.1),
        false,
    );
    XyChart {
        title: "Log-scale diagram".into(),
        description: "Wavelet energy of the trace's bytes by timescale, both directions.".into(),
        x,
        y: y.nice(280.0),
        curves,
        marks: Vec::new(),
        link: String::new(),
    }
}

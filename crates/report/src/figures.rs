//! Draws the pictures of a section, with captions and numbers.

use crate::chart::{
    Axis, Bar, BarChart, BarGroup, Canvas, Curve, Layer, LayerKind, Shape, Strip, Timeline, XyChart,
};
use crate::data::{Energy, PartSeries, QUANTILES, Series};
use crate::human::{Quantity, count, significant};
use crate::palette::{FOREGROUND, Role, SLOTS};
use crate::parts::{Cell, Figure, Named, Table, WIDE, slowdown as shown};
use crate::vega;
use swell_base::Direction;

mod times;
pub(crate) use times::{cdf, cdf_chart, effects, effects_chart};

/// Height of a strip of a timeline, pixels.
const STRIP: f64 = 54.0;
/// Pixels between timelines.
const BETWEEN: f64 = 12.0;

/// Slowdowns of every background but the reference.
pub(crate) fn slowdown_chart(named: &[Named<'_>], against: &str) -> BarChart {
    let others: Vec<&Named<'_>> = named.iter().filter(|n| n.role != Role::Reference).collect();
    BarChart {
        title: "Slowdown".into(),
        description: format!(
            "Quantiles of the completion time as multiples of those with {against}, with 95 % intervals."
        ),
        y_title: format!("Completion time against {against}"),
        quantity: Quantity::Ratio,
        reference: 1.0,
        at_least: (0.9, 1.2),
        stacked: false,
        series: others.iter().map(|n| (n.name.to_owned(), n.slot)).collect(),
        groups: QUANTILES
            .iter()
            .enumerate()
            .map(|(i, &p)| BarGroup {
                name: match p {
                    0.5 => "median".into(),
                    p => swell_stats::quantile_name(p),
                },
                bars: others
                    .iter()
                    .map(|n| match n.condition.slowdown[i] {
                        Some(s) => Bar::with_ends(s.value, [s.low, s.high]),
                        None => Bar::of(f64::NAN),
                    })
                    .collect(),
            })
            .collect(),
    }
}

/// What the caption says of bars that are bounds, if there are any.
fn bounds(chart: &BarChart) -> &'static str {
    let mut bars = chart.groups.iter().flat_map(|g| &g.bars);
    match bars.any(Bar::is_bound) {
        true => " Pale bars with ≥ or ≤ are bounds.",
        false => "",
    }
}

pub(crate) fn slowdown(id: &str, named: &[Named<'_>], against: &str) -> Figure {
    let chart = slowdown_chart(named, against);
    let mut table = Table::new(&["Background", "p5", "p50", "p90", "p95"]);
    for n in named.iter().filter(|n| n.role != Role::Reference) {
        let mut row = vec![Cell::text(n.name).slot(n.slot)];
        for s in n.condition.slowdown {
            row.push(match s {
                Some(s) => {
                    let (factor, interval) = shown(&s);
                    Cell::text(factor).small(interval)
                }
                None => Cell::text("–"),
            });
        }
        table.rows.push(row);
    }
    let bounds = bounds(&chart);
    Figure::both(
        &format!("{id}-slow"),
        "How many times as long.",
        &format!(
            "The same quantile over that with {against}; the line is 1×, no difference. \
             Whiskers: 95 % intervals over replications.{bounds}"
        ),
        |canvas, width| {
            let height = if width < 500.0 { 300.0 } else { 340.0 };
            vec![chart.svg(&canvas("", height))]
        },
    )
    .vega(&chart.vega())
    .numbers(table)
}

/// Log-scale diagrams of several backgrounds on one plot.
pub(crate) fn energy_chart(curves: &[(&str, usize, &[Energy])], link: &str) -> XyChart {
    let shown = |e: &&Energy| e.y.is_finite() && e.timescale > 0.0;
    let all = || curves.iter().flat_map(|c| c.2.iter().filter(shown));
    // The intervals of the longest timescales may be wide. The axis covers the estimates, plus at most three octaves
    // for the intervals.
    let (lo, hi) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), e| {
        (lo.min(e.y), hi.max(e.y))
    });
    let ends = all().flat_map(|e| [e.y, e.low.max(lo - 3.0), e.high.min(hi + 3.0)]);
    XyChart {
        title: "Log-scale diagram".into(),
        description:
            "Wavelet energy of the bytes that arrive at the bottleneck, by timescale; one \
                      curve per background."
                .into(),
        x: Axis::log("Timescale", Quantity::Duration, all().map(|e| e.timescale)).padded(0.03),
        y: Axis::linear(
            "log2 of energy (bytes² per bin)",
            Quantity::Plain,
            ends,
            false,
        )
        .nice(280.0),
        curves: curves
            .iter()
            .map(|&(name, slot, energies)| Curve {
                name: name.into(),
                note: String::new(),
                slot,
                shape: Shape::Marked,
                points: energies
                    .iter()
                    .filter(shown)
                    .map(|e| (e.timescale, e.y))
                    .collect(),
                band: energies
                    .iter()
                    .filter(shown)
                    .map(|e| (e.timescale, e.low, e.high))
                    .collect(),
            })
            .collect(),
        marks: Vec::new(),
        link: link.into(),
    }
}

/// The diagrams of both directions: down first, and up if anything arrived there.
pub(crate) fn energies(id: &str, named: &[Named<'_>]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for direction in [Direction::Down, Direction::Up] {
        let curves: Vec<(&str, usize, &[Energy])> = named
            .iter()
            .map(|n| (n.name, n.slot, &n.condition.energies[direction][..]))
            .filter(|c| c.2.iter().any(|e| e.y.is_finite()))
            .collect();
        if curves.is_empty() && direction == Direction::Up {
            continue;
        }
        let figure_id = format!("{id}-lsd-{direction}");
        let chart = energy_chart(&curves, &format!("{id}-lsd"));
        let caption = if direction == Direction::Down {
            "Log-scale diagram of the background’s bytes arriving at the bottleneck, down: how \
             much the load varies at each timescale. One unit up is twice the energy; a flat line \
             is traffic without memory (Poisson). Bands: 95 % intervals of the estimates, all \
             replications joined."
        } else {
            "The same, up."
        };
        let lead = if direction == Direction::Down {
            "At which timescales it bursts."
        } else {
            ""
        };
        figures.push(
            Figure::both(&figure_id, lead, caption, |canvas, width| {
                let height = if width < 500.0 { 320.0 } else { 370.0 };
                vec![chart.svg(&canvas("", height))]
            })
            .vega(&chart.vega())
            .numbers(energy_table(&curves)),
        );
    }
    figures
}

fn energy_table(curves: &[(&str, usize, &[Energy])]) -> Table {
    let mut head = vec!["Timescale"];
    head.extend(curves.iter().map(|c| c.0));
    let mut table = Table::new(&head);
    let mut scales: Vec<f64> = curves
        .iter()
        .flat_map(|c| c.2.iter().map(|e| e.timescale))
        .collect();
    scales.sort_by(f64::total_cmp);
    scales.dedup_by(|a, b| (*a - *b).abs() <= *b * 1e-9);
    for scale in scales {
        let mut row = vec![Cell::text(Quantity::Duration.show(scale, 4))];
        for (_, _, energies) in curves {
            let here = energies
                .iter()
                .find(|e| (e.timescale - scale).abs() <= scale * 1e-9);
            row.push(match here {
                Some(e) if e.y.is_finite() => Cell::text(significant(e.y, 4)).small(format!(
                    "±\u{a0}{}, n = {}",
                    significant((e.high - e.low) / 2.0, 2),
                    count(e.n)
                )),
                _ => Cell::text("–"),
            });
        }
        table.rows.push(row);
    }
    table
}

/// The bottleneck over time. The down direction of the first replication is visible; the other direction and a few
/// other replications are collapsed.
pub(crate) fn timelines(id: &str, named: &[Named<'_>]) -> Vec<Figure> {
    let most = named.iter().map(|n| n.condition.series.len()).max();
    (0..most.unwrap_or(0))
        .flat_map(|nth| [(nth, Direction::Down), (nth, Direction::Up)])
        .filter_map(|(nth, direction)| timelines_of(id, named, nth, direction))
        .enumerate()
        .map(|(i, (figure, name))| match i {
            0 => figure,
            _ => figure.folded(name),
        })
        .collect()
}

/// Timelines, with the condition and series of each.
type Timelines<'a> = (Vec<Timeline>, Vec<(&'a Named<'a>, &'a Series)>);

/// The replications that timelines show, ascending.
fn replications(named: &[Named<'_>]) -> Vec<u32> {
    let most = named.iter().map(|n| n.condition.series.len()).max();
    let each = named.iter().flat_map(|n| &n.condition.series);
    let all: std::collections::BTreeSet<u32> = each.map(|both| both[0].replication).collect();
    all.into_iter().take(most.unwrap_or(0)).collect()
}

/// Utilisation, queue and drops of one direction in the `nth` replication: a picture per background with equal axes,
/// and the series of each.
pub(crate) fn timeline_charts<'a>(
    id: &str,
    named: &'a [Named<'a>],
    nth: usize,
    direction: Direction,
) -> Option<Timelines<'a>> {
    let replication = *replications(named).get(nth)?;
    let shown: Vec<(&Named<'_>, &Series)> = named
        .iter()
        .filter_map(|n| {
            // Late runs are missing, so the same place may be another replication.
            let mut own = n.condition.series.iter().map(|both| &both[direction]);
            Some((n, own.find(|s| s.replication == replication)?))
        })
        .filter(|(_, s)| s.bin > 0.0 && !s.used[0].is_empty())
        .collect();
    shown.first()?;
    let queue = shown.iter().flat_map(|(_, s)| s.queue_max.iter().copied());
    let queue = Axis::linear("Queue", Quantity::Bytes, queue, true).nice(STRIP);
    let mut charts: Vec<Timeline> = shown
        .iter()
        .map(|(n, s)| timeline(n, named, s, &queue, &format!("{id}-time")))
        .collect();
    let drops = charts
        .iter()
        .map(|c| c.highest_stack(2, WIDE))
        .fold(1.0, f64::max);
    let used = charts
        .iter()
        .map(|c| c.highest_stack(0, WIDE))
        .fold(1.0, f64::max);
    let last = charts.len() - 1;
    for (i, chart) in charts.iter_mut().enumerate() {
        chart.titled = i == last;
        let ends = |hi: f64| [0.0, hi].into_iter();
        let title = match shown[i].1.rate_known {
            true => "Utilisation",
            false => "Share of a fixed rate",
        };
        chart.strips[0].y = Axis::linear(title, Quantity::Share, ends(used), true);
        chart.strips[2].y =
            Axis::linear("Drops (packets/s)", Quantity::Plain, ends(drops), true).nice(STRIP);
    }
    Some((charts, shown))
}

/// Timelines as one picture.
pub(crate) fn below_each_other(charts: &[Timeline], width: f64) -> String {
    let mut parts = Vec::new();
    let mut top = 0.0;
    for (i, chart) in charts.iter().enumerate() {
        let mut canvas = Canvas::file(width, chart.height(STRIP, width) + BETWEEN);
        canvas.id = format!("chart-{i}");
        parts.push(format!(
            "<g transform=\"translate(0 {top})\">{}</g>",
            chart.svg(&canvas)
        ));
        top += canvas.height.round();
    }
    format!(
        "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" viewBox=\"0 0 {width} {top}\">{}</svg>",
        parts.concat()
    )
}

/// The timelines of one direction as a figure, with a short description.
fn timelines_of(
    id: &str,
    named: &[Named<'_>],
    nth: usize,
    direction: Direction,
) -> Option<(Figure, String)> {
    let (charts, shown) = timeline_charts(id, named, nth, direction)?;
    let (_, first) = shown.first()?;
    let mut table = Table::new(&[
        "Background",
        "mean utilisation",
        "mean queue",
        "longest queue",
        "packets dropped",
    ]);
    for (n, s) in &shown {
        let both: Vec<f64> = s.used[0]
            .iter()
            .zip(&s.used[1])
            .map(|(a, b)| a + b)
            .collect();
        // What was carried over what could be, and what a packet met, not a bin.
        let mean_used = weighted(&both, &s.rate);
        let mean_queue = weighted(&s.queue_mean, &s.arrived);
        let longest = s.queue_max.iter().copied().fold(0.0, f64::max);
        let dropped: f64 = s.dropped.iter().flatten().filter(|v| v.is_finite()).sum();
        table.rows.push(vec![
            Cell::text(n.name).slot(n.slot),
            Cell::text(Quantity::Share.show(mean_used, 3)),
            Cell::text(Quantity::Bytes.show(mean_queue, 3)),
            Cell::text(Quantity::Bytes.show(longest, 3)),
            Cell::text(count((dropped * s.bin).round().max(0.0) as u64)),
        ]);
    }
    let unknown = match shown.iter().any(|(_, s)| !s.rate_known) {
        true => {
            " Where the rate over time is not known, shares are of the initial rate, or of the mean rate of a delivery trace."
        }
        false => "",
    };
    let caption = format!(
        "Replication {}, {direction} direction, {}: share of the capacity used by the \
         foreground (dark) and the background, the queue that arriving packets found (mean, and highest in pale), and packets dropped. Equal axes throughout.{unknown}",
        first.replication,
        match first.start > 0.0 {
            true => "from the end of the warm-up on",
            false => "the whole run with its warm-up",
        }
    );
    let figure_id = match (nth, direction) {
        (0, Direction::Down) => format!("{id}-time"),
        _ => format!("{id}-time-{nth}-{direction}"),
    };
    let figure = Figure::both(
        &figure_id,
        "What the bottleneck saw.",
        &caption,
        |canvas, width| {
            charts
                .iter()
                .enumerate()
                .map(|(i, c)| c.svg(&canvas(&format!("-{i}"), c.height(STRIP, width))))
                .collect()
        },
    )
    .vega(&vega::timelines(&charts))
    .numbers(table);
    Some((
        figure,
        format!("Replication {}, {direction}", first.replication),
    ))
}

/// Mean of the finite values with these weights; NaN if all weights are zero.
fn weighted(values: &[f64], weights: &[f64]) -> f64 {
    let each = values.iter().zip(weights);
    let (sum, all) = each
        .filter(|(v, w)| v.is_finite() && w.is_finite())
        .fold((0.0, 0.0), |(sum, all), (v, w)| (sum + v * w, all + w));
    if all > 0.0 { sum / all } else { f64::NAN }
}

fn timeline(n: &Named<'_>, named: &[Named<'_>], s: &Series, queue: &Axis, link: &str) -> Timeline {
    let layer = |name: &str, slot, kind, values: &[f64]| Layer {
        name: name.into(),
        slot,
        kind,
        values: values.to_vec(),
    };
    let axis = |title: &str| Axis::linear(title, Quantity::Share, [0.0, 1.0].into_iter(), true);
    let stacked = |values: &[Vec<f64>; 2], of: fn(&PartSeries) -> &[f64]| {
        let mut layers = vec![layer(
            "foreground",
            FOREGROUND,
            LayerKind::Stacked,
            &values[0],
        )];
        match s.parts.is_empty() {
            true => layers.push(layer("background", n.slot, LayerKind::Stacked, &values[1])),
            false => layers.extend(s.parts.iter().enumerate().map(|(i, part)| {
                // A part that is also a background by itself has the same colour in both.
                let own = named.iter().find(|other| other.name == part.name);
                let slot = own.map_or((n.slot + i) % SLOTS, |own| own.slot);
                layer(&part.name, slot, LayerKind::Stacked, of(part))
            })),
        }
        layers
    };
    Timeline {
        title: match s.link.as_str() {
            "" => n.name.into(),
            place => format!("{}, at {place}", n.name),
        },
        description: "Utilisation, queue and drops of the bottleneck over time.".into(),
        time: "Time since the start of the run".into(),
        start: s.start,
        bin: s.bin,
        strips: vec![
            Strip {
                y: axis("Utilisation"),
                layers: stacked(&s.used, |p| &p.used),
                mark: Some(1.0),
            },
            Strip {
                y: queue.clone(),
                layers: vec![
                    layer("longest queue", 0, LayerKind::Peak, &s.queue_max),
                    layer("mean queue", 0, LayerKind::Mean, &s.queue_mean),
                ],
                mark: None,
            },
            Strip {
                y: axis("Drops"),
                layers: stacked(&s.dropped, |p| &p.dropped),
                mark: None,
            },
        ],
        titled: true,
        link: link.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_queue_is_what_packets_met() {
        // One packet met 9 kB, nine met none, and in a bin nothing arrived.
        assert_eq!(weighted(&[9000.0, 0.0, f64::NAN], &[1.0, 9.0, 0.0]), 900.0);
        assert!(weighted(&[f64::NAN], &[0.0]).is_nan());
    }
}

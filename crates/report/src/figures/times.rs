//! How long requests take and, where none finishes, what else was measured.

use super::bounds;
use crate::chart::{Axis, Bar, BarChart, BarGroup, Curve, Shape, XyChart};
use crate::data::{Condition, Interval, MeasureRow};
use crate::human::{Quantity, count};
use crate::palette::Role;
use crate::parts::{Cell, Figure, Named, Table, few, slowdown};

/// Whether requests were made, and none finished.
fn none_finished(condition: &Condition) -> bool {
    condition.samples > 0 && condition.steps.is_empty()
}

/// The completion times of every background as distribution functions.
pub(crate) fn cdf_chart(named: &[Named<'_>], link: &str) -> XyChart {
    let mut values: Vec<f64> = named
        .iter()
        .flat_map(|n| {
            let steps = n.condition.steps.iter().map(|s| s.0);
            steps.chain(none_finished(n.condition).then_some(n.condition.watched))
        })
        .filter(|v| v.is_finite())
        .collect();
    values.sort_by(f64::total_cmp);
    let x = Axis::by_spread("Completion time", Quantity::Duration, &values, 8.0).padded(0.02);
    let x_lo = x.lo;
    XyChart {
        title: "Completion times".into(),
        description: "Share of requests completed within a time, one curve per background.".into(),
        x,
        y: Axis::linear(
            "Share of requests completed",
            Quantity::Share,
            [0.0, 1.0].into_iter(),
            true,
        ),
        curves: named.iter().map(|n| curve(n, x_lo)).collect(),
        // Mark 0.5, so that the median of dots can be read off.
        marks: match named.iter().any(|n| few(n.condition)) {
            true => vec![0.5],
            false => Vec::new(),
        },
        link: link.into(),
    }
}

/// The distribution function of one background. Where no request finished it is a line at zero, from `lo` to where the
/// longest was last watched: the worst that can happen must be seen.
fn curve(n: &Named<'_>, lo: f64) -> Curve {
    let samples = count(n.condition.samples as u64);
    let none = none_finished(n.condition);
    Curve {
        name: n.name.into(),
        note: match none {
            true => format!("n = {samples}, none finished"),
            false => format!("n = {samples}"),
        },
        slot: n.slot,
        shape: match (none, few(n.condition)) {
            (true, _) => Shape::Line,
            (false, true) => Shape::Dots,
            (false, false) => Shape::Step,
        },
        points: match none {
            true => vec![(lo, 0.0), (n.condition.watched, 0.0)],
            false => n.condition.steps.clone(),
        },
        band: match few(n.condition) {
            true => Vec::new(),
            false => n.condition.band.clone(),
        },
    }
}

pub(crate) fn cdf(id: &str, named: &[Named<'_>]) -> Figure {
    let id = format!("{id}-cdf");
    let chart = cdf_chart(named, &id);
    let axis = match chart.x.scale {
        crate::chart::Scale::Log => " The time axis is logarithmic.",
        crate::chart::Scale::Linear => "",
    };
    let banded = if named.iter().any(|n| !n.condition.band.is_empty()) {
        " Bands: 95 % bootstrap intervals over replications, at each time."
    } else {
        ""
    };
    let dots = match named.iter().any(|n| few(n.condition)) {
        true => {
            " Where there are fewer than 20 requests, each that finished is a dot; the dashed line is the median."
        }
        false => "",
    };
    let flat = match named.iter().any(|n| none_finished(n.condition)) {
        true => " A line at 0 %: no request finished; it ends where the longest was last watched.",
        false => "",
    };
    let mut table = Table::new(&[
        "Background",
        "1 %",
        "10 %",
        "25 %",
        "50 %",
        "75 %",
        "90 %",
        "99 %",
    ]);
    for n in named {
        let mut row = vec![Cell::text(n.name).slot(n.slot)];
        for p in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99] {
            // At least one request is to lie beyond.
            let beyond = n.condition.samples as f64 * f64::min(p, 1.0 - p);
            let told = p == 0.5 || !few(n.condition) && beyond >= 1.0 - 1e-9;
            let mut steps = n.condition.steps.iter().filter(|_| told);
            let at = steps.find(|s| s.1 >= p - 1e-12);
            row.push(Cell::text(
                at.map_or("–".into(), |s| Quantity::Duration.show(s.0, 3)),
            ));
        }
        table.rows.push(row);
    }
    Figure::both(
        &id,
        "How long requests take.",
        &format!(
            "Share of requests completed within a time; a request that was unfinished when its \
             run ended counts as longer.{dots}{flat}{banded}{axis}"
        ),
        |canvas, width| {
            let height = if width < 500.0 { 330.0 } else { 390.0 };
            vec![chart.svg(&canvas("", height))]
        },
    )
    .vega(&chart.vega())
    .numbers(table)
}

/// The measures that some background has a ratio of.
fn compared<'a>(named: &[Named<'_>], measures: &'a [MeasureRow]) -> Vec<&'a MeasureRow> {
    let others: Vec<usize> = (named.iter().enumerate())
        .filter(|(_, n)| n.role != Role::Reference)
        .map(|(i, _)| i)
        .collect();
    let known = |row: &MeasureRow, i: usize| ratio(row, i).is_some_and(|r| r.value.is_finite());
    (measures.iter())
        .filter(|row| others.iter().any(|&i| known(row, i)))
        .collect()
}

fn ratio(row: &MeasureRow, background: usize) -> Option<Interval> {
    row.cells.get(background).and_then(|c| c.ratio)
}

/// Measures as multiples of those without background, beside every background. `None` where nothing was compared.
pub(crate) fn effects_chart(
    named: &[Named<'_>],
    measures: &[MeasureRow],
    against: &str,
) -> Option<BarChart> {
    let others = || (named.iter().enumerate()).filter(|(_, n)| n.role != Role::Reference);
    let rows = compared(named, measures);
    if rows.is_empty() {
        return None;
    }
    Some(BarChart {
        title: "What was measured".into(),
        description: format!("Measures as multiples of those with {against}, with 95 % intervals."),
        y_title: format!("Times as much as with {against}"),
        quantity: Quantity::Ratio,
        reference: 1.0,
        at_least: (0.9, 1.2),
        stacked: false,
        series: others().map(|(_, n)| (n.name.to_owned(), n.slot)).collect(),
        groups: (rows.iter())
            .map(|row| BarGroup {
                name: row.name.clone(),
                bars: others()
                    .map(|(i, _)| match ratio(row, i) {
                        Some(r) => Bar::with_ends(r.value, [r.low, r.high]),
                        None => Bar::of(f64::NAN),
                    })
                    .collect(),
            })
            .collect(),
    })
}

/// The figure of [`effects_chart`], for a foreground without completion times.
pub(crate) fn effects(
    id: &str,
    named: &[Named<'_>],
    measures: &[MeasureRow],
    against: &str,
) -> Option<Figure> {
    let chart = effects_chart(named, measures, against)?;
    let rows = compared(named, measures);
    let others = named.iter().enumerate();
    let others = others.filter(|(_, n)| n.role != Role::Reference);
    let asked = named.iter().any(|n| n.condition.samples > 0);
    let why = match asked {
        true => "No request finished, so there are no completion times. ",
        false => "",
    };
    let mut head = vec!["Background"];
    head.extend(rows.iter().map(|row| row.name.as_str()));
    let mut table = Table::new(&head);
    for (i, n) in others {
        let mut cells = vec![Cell::text(n.name).slot(n.slot)];
        cells.extend(rows.iter().map(|row| match ratio(row, i) {
            Some(r) => {
                let (factor, interval) = slowdown(&r);
                Cell::text(factor).small(interval)
            }
            None => Cell::text("–"),
        }));
        table.rows.push(cells);
    }
    let bounds = bounds(&chart);
    let figure = Figure::both(
        &format!("{id}-effects"),
        "What was measured.",
        &format!(
            "{why}Each measure over that with {against}; the line \
             is 1×, no difference. Whiskers: 95 % intervals over replications.{bounds}"
        ),
        |canvas, width| {
            let height = if width < 500.0 { 300.0 } else { 340.0 };
            vec![chart.svg(&canvas("", height))]
        },
    );
    Some(figure.vega(&chart.vega()).numbers(table))
}

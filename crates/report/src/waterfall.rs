//! What requests waited for, as stacked bars.

use swell_experiment::observe::{Cause, Outcome};
use swell_experiment::store::RunResult;

use crate::chart::{Bar, BarChart, BarGroup};
use crate::figures::Named;
use crate::human::Quantity;
use crate::page::{Cell, Figure, Table};

/// The causes shown, from bottom to top, grouped because there are only as many looks.
const SHOWN: [(&str, &[Cause]); 8] = [
    ("handshake", &[Cause::Handshake]),
    ("request and response", &[Cause::Request, Cause::Response]),
    ("further rounds", &[Cause::Rounds]),
    ("transmission", &[Cause::Transmission]),
    ("queues, data", &[Cause::QueueData]),
    ("queues, acknowledgements", &[Cause::QueueAcks]),
    ("recovery of losses", &[Cause::Recovery]),
    ("server and hosts", &[Cause::Server, Cause::Hosts]),
];

/// Mean seconds per cause over completed requests; empty if none were recorded.
pub(crate) fn means(runs: &[&RunResult]) -> Vec<(&'static str, f64)> {
    let rows = || runs.iter().flat_map(|r| &r.observed.waterfall);
    if rows().next().is_none() {
        return Vec::new();
    }
    let requests = runs.iter().flat_map(|r| &r.observed.requests);
    let done = requests.filter(|r| r.outcome == Outcome::Done).count();
    let mean = |&(name, causes): &(&'static str, &[Cause])| {
        let own = rows().filter(|s| causes.contains(&s.cause));
        (name, own.map(|s| s.seconds).sum::<f64>() / done as f64)
    };
    SHOWN.iter().map(mean).collect()
}

/// The conditions with recorded causes.
fn known<'a>(named: &'a [Named<'a>]) -> Vec<&'a Named<'a>> {
    let known = named.iter().filter(|n| !n.condition.waterfall.is_empty());
    known.collect()
}

/// The bars, if anything was recorded.
pub(crate) fn chart(named: &[Named<'_>]) -> Option<BarChart> {
    let known = known(named);
    known.first()?;
    Some(BarChart {
        title: "Why it was slow".into(),
        description: "What requests waited for, mean, one bar per background.".into(),
        y_title: "Completion time, mean".into(),
        quantity: Quantity::Duration,
        reference: 0.0,
        at_least: (0.0, 0.0),
        stacked: true,
        series: (0..).zip(SHOWN).map(|(i, s)| (s.0.to_owned(), i)).collect(),
        groups: known
            .iter()
            .map(|n| BarGroup {
                name: n.name.into(),
                bars: (n.condition.waterfall.iter())
                    .map(|&(_, value)| Bar {
                        value,
                        lo: f64::NAN,
                        hi: f64::NAN,
                    })
                    .collect(),
            })
            .collect(),
    })
}

/// The figure, if anything was recorded.
pub(crate) fn figure(id: &str, named: &[Named<'_>]) -> Option<Figure> {
    let chart = chart(named)?;
    let head: Vec<&str> = ["Background"]
        .into_iter()
        .chain(SHOWN.map(|s| s.0))
        .collect();
    let mut table = Table::new(&head);
    for n in known(named) {
        let cells = n.condition.waterfall.iter();
        let cells = cells.map(|(_, s)| Cell::text(Quantity::Duration.show(*s, 3)));
        let name = Cell::text(n.name).slot(n.slot);
        table.rows.push([name].into_iter().chain(cells).collect());
    }
    let id = format!("{id}-waterfall");
    let figure = Figure::both(
        &id,
        "Why it was slow.",
        "What requests that are done waited for, mean: from the last byte back, what each packet waited for. The parts of a \
         request are its time. “Further rounds” are round trips in which the sender’s window was full, as in slow start.",
        |canvas, width| {
            let height = if width < 500.0 { 400.0 } else { 430.0 };
            vec![chart.svg(&canvas("", height))]
        },
    );
    Some(figure.vega(&chart.vega()).numbers(table))
}

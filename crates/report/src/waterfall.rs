//! What requests waited for, as stacked bars.

use std::collections::BTreeSet;

use swell_experiment::observe::{Cause, Outcome};
use swell_experiment::store::RunResult;

use crate::chart::{Bar, BarChart, BarGroup};
use crate::data::Waterfall;
use crate::human::{Quantity, count};
use crate::parts::{Cell, Figure, Named, Table};

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

/// Mean seconds per cause over the requests that have causes; empty if none were recorded.
pub(crate) fn means(runs: &[&RunResult]) -> Waterfall {
    let rows = || runs.iter().flat_map(|r| &r.observed.waterfall);
    if rows().next().is_none() {
        return Waterfall::default();
    }
    let requests = runs.iter().flat_map(|r| &r.observed.requests);
    let done = requests.filter(|r| r.outcome == Outcome::Done).count();
    // The packets of some requests cannot be followed back to their start. They have no rows.
    let explained: usize = (runs.iter())
        .map(|run| {
            let own = run.observed.waterfall.iter().map(|s| (s.client, s.index));
            own.collect::<BTreeSet<_>>().len()
        })
        .sum();
    let mean = |&(name, causes): &(&'static str, &[Cause])| {
        let own = rows().filter(|s| causes.contains(&s.cause));
        (name, own.map(|s| s.seconds).sum::<f64>() / explained as f64)
    };
    Waterfall {
        parts: SHOWN.iter().map(mean).collect(),
        explained,
        left_out: done.saturating_sub(explained),
    }
}

/// The conditions with recorded causes.
fn known<'a>(named: &'a [Named<'a>]) -> Vec<&'a Named<'a>> {
    let known = named
        .iter()
        .filter(|n| !n.condition.waterfall.parts.is_empty());
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
                bars: (n.condition.waterfall.parts.iter())
                    .map(|&(_, value)| Bar::of(value))
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
        .chain(["requests"])
        .collect();
    let mut table = Table::new(&head);
    for n in known(named) {
        let own = &n.condition.waterfall;
        let cells = (own.parts.iter()).map(|(_, s)| Cell::text(Quantity::Duration.show(*s, 3)));
        let name = Cell::text(n.name).slot(n.slot);
        let requests = Cell::text(count(own.explained as u64)).small(match own.left_out {
            0 => String::new(),
            missing => format!("{} left out", count(missing as u64)),
        });
        let row = [name].into_iter().chain(cells).chain([requests]);
        table.rows.push(row.collect());
    }
    let left_out = |n: &Named<'_>| n.condition.waterfall.left_out;
    let of = |n: &Named<'_>| left_out(n) + n.condition.waterfall.explained;
    let (out, all) =
        (known(named).into_iter()).fold((0, 0), |(out, all), n| (out + left_out(n), all + of(n)));
    let omitted = match out {
        0 => String::new(),
        _ => format!(
            " {} of {} requests are left out, because their packets could not be followed.",
            count(out as u64),
            count(all as u64)
        ),
    };
    let id = format!("{id}-waterfall");
    let figure = Figure::both(
        &id,
        "Why it was slow.",
        &format!(
            "What requests that are done waited for, mean: from the last byte back, what each packet waited for. The parts of a \
             request are its time. “Further rounds” are round trips in which the sender’s window was full, as in slow start.{omitted}"
        ),
        |canvas, width| {
            let height = if width < 500.0 { 400.0 } else { 430.0 };
            vec![chart.svg(&canvas("", height))]
        },
    );
    Some(figure.vega(&chart.vega()).numbers(table))
}

#[cfg(test)]
mod tests {
    use swell_experiment::observe::{Cell, Observations, Request, Share};

    use super::*;

    fn request(index: u32) -> Request {
        Request {
            client: 0,
            index,
            start: 1.0,
            connected: 1.0,
            first_byte: 1.0,
            last_byte: 2.0,
            observed_until: 2.0,
            bytes: 1,
            retransmissions: 0,
            outcome: Outcome::Done,
        }
    }

    /// A request without causes does not make the others look faster.
    #[test]
    fn means_are_over_the_requests_that_have_causes() {
        let share = |index: u32, cause, seconds: f64| Share {
            client: 0,
            index,
            cause,
            link: "".into(),
            seconds,
        };
        let run = RunResult {
            cell: Cell {
                foreground: "web".into(),
                background: "none".into(),
                replication: 0,
                seed: 1,
            },
            observed: Observations {
                requests: (0..3).map(request).collect(),
                waterfall: vec![
                    share(0, Cause::Handshake, 0.25),
                    share(0, Cause::Rounds, 0.75),
                    share(2, Cause::Rounds, 1.0),
                ],
                ..Observations::default()
            },
        };
        let found = means(&[&run]);
        assert_eq!((found.explained, found.left_out), (2, 1));
        assert_eq!(found.parts[0], ("handshake", 0.125));
        assert_eq!(found.parts.iter().map(|p| p.1).sum::<f64>(), 1.0);
        let condition = crate::data::Condition {
            waterfall: found,
            ..Default::default()
        };
        let named = [Named {
            name: "none",
            slot: 0,
            role: crate::Role::Reference,
            condition: &condition,
        }];
        let figure = figure("f0", &named).unwrap();
        assert!(
            figure.caption.contains("1 of 3 requests are left out"),
            "{}",
            figure.caption
        );
    }
}

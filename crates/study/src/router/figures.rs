//! The paper's figures 12 to 14, of the kernel.

use super::bench::{BURSTS, Bench, Mix, Regime, Sent, TABLE, TABLES};
use super::numbers::{BUSY, LOSSES, RATES};
use super::results::Results;
use crate::{Axis, Estimate, Line, Picture, Section, Table, Unit};

/// The sections.
pub fn sections(r: &Results<'_>) -> Vec<Section> {
    vec![
        Section {
            title: "What is forwarded, in time (figures 12(a) and 14)".to_owned(),
            what: format!(
                "High load, {TABLE} routes. The generator offers what the sessions offered in the mean; bits count the \
                 headers of the link layer."
            ),
            pictures: vec![
                in_time(r, &RATES, "rate-in-time", "rate forwarded", Unit::BitsPerSecond),
                in_time(r, &LOSSES, "loss-in-time", "packets lost", Unit::Share),
                in_time(r, &BUSY, "processor-in-time", "router's processor", Unit::Share),
            ],
            tables: Vec::new(),
        },
        Section {
            title: "Tables, bursts and sizes (figures 12(b), 12(c) and 13)".to_owned(),
            what: "Means over the run; bars are a standard deviation over intervals to either side, as in the paper."
                .to_owned(),
            pictures: vec![
                by_table(r, Regime::Low, "rate-by-table-low", "Low load: rate forwarded by size of the table"),
                by_table(r, Regime::High, "rate-by-table-high", "High load: rate forwarded by size of the table"),
                by_burst(r),
                cost(r),
            ],
            tables: vec![table(r)],
        },
    ]
}

fn axis(title: &str, unit: Unit, log: bool) -> Axis {
    Axis {
        title: title.to_owned(),
        unit,
        log,
    }
}

fn in_time(r: &Results<'_>, series: &[&str], name: &str, title: &str, unit: Unit) -> Picture {
    let shown = [
        Bench::sessions(Regime::High, TABLE),
        Bench::constant(Mix::Large, 1, Regime::High, TABLE),
        Bench::constant(Mix::Large, 930, Regime::High, TABLE),
        Bench::constant(Mix::Small, 1, Regime::High, TABLE),
    ];
    let line = |(slot, bench): (usize, &Bench)| {
        let every = r.get(*bench, "every")?;
        let point =
            |(i, n): (usize, &&str)| Some((i as f64 * every, Estimate::exact(r.get(*bench, n)?)));
        let points: Vec<_> = series.iter().enumerate().filter_map(point).collect();
        (!points.is_empty()).then(|| Line {
            name: bench.name(),
            slot: slot + 1,
            points,
            measured: true,
        })
    };
    let mut heading = title.to_owned();
    heading.replace_range(..1, &title[..1].to_uppercase());
    Picture {
        name: name.to_owned(),
        title: format!("{heading}, interval by interval"),
        caption: "Without the first seconds, in which queues and connections are not there yet."
            .to_owned(),
        x: axis("time", Unit::Seconds, false),
        y: axis(title, unit, false),
        lines: shown.iter().enumerate().filter_map(line).collect(),
    }
}

fn by_table(r: &Results<'_>, regime: Regime, name: &str, title: &str) -> Picture {
    let line = |slot, bench: fn(Regime, u32) -> Bench| {
        let points = TABLES.iter().filter_map(|&routes| {
            Some((
                f64::from(routes),
                r.spread(bench(regime, routes), "forwarded")?,
            ))
        });
        Line {
            name: bench(regime, TABLE).name(),
            slot,
            points: points.collect(),
            measured: true,
        }
    };
    Picture {
        name: name.to_owned(),
        title: title.to_owned(),
        caption:
            "Each point is a run; the generator offers what the sessions of the same table offered."
                .to_owned(),
        x: axis("routes", Unit::Plain, true),
        y: axis("rate forwarded", Unit::BitsPerSecond, false),
        lines: vec![
            line(1, Bench::sessions),
            line(2, |load, routes| {
                Bench::constant(Mix::Large, 1, load, routes)
            }),
        ],
    }
}

fn by_burst(r: &Results<'_>) -> Picture {
    let bursts = || std::iter::once(1).chain(BURSTS);
    let own = |burst: u32| {
        r.spread(
            Bench::constant(Mix::Large, burst, Regime::High, TABLE),
            "forwarded",
        )
    };
    let points = bursts().filter_map(|burst| Some((f64::from(burst), own(burst)?)));
    let sessions = r.spread(Bench::sessions(Regime::High, TABLE), "forwarded");
    let mut lines = vec![Line {
        name: "constant, 1500 B".to_owned(),
        slot: 2,
        points: points.collect(),
        measured: true,
    }];
    lines.extend(sessions.map(|s| Line {
        name: "learnt sessions".to_owned(),
        slot: 1,
        points: bursts().map(|burst| (f64::from(burst), s)).collect(),
        measured: true,
    }));
    Picture {
        name: "rate-by-burst".to_owned(),
        title: "Rate forwarded by length of bursts".to_owned(),
        caption: "Two sources in step, each on a line as fast as the output: what does not fit into the queue is lost. \
                  Sessions have no bursts to set; theirs is one run."
            .to_owned(),
        x: axis("packets in a burst", Unit::Plain, false),
        y: axis("rate forwarded", Unit::BitsPerSecond, false),
        lines,
    }
}

fn cost(r: &Results<'_>) -> Picture {
    let line = |slot, name: &str, bench: fn(u32) -> Bench| {
        let points = TABLES.iter().filter_map(|&routes| {
            let micros = r.get(bench(routes), "us_per_packet")?;
            Some((f64::from(routes), Estimate::exact(micros * 1e-6)))
        });
        Line {
            name: name.to_owned(),
            slot,
            points: points.collect(),
            measured: true,
        }
    };
    Picture {
        name: "cost-by-table".to_owned(),
        title: "Processor time per packet by size of the table".to_owned(),
        caption: "Time of the router's processor that neither programs nor idleness had, over the packets that left it \
                  either way: receiving, route, queue and cable, which cannot be separated. The fewer packets, the more \
                  of them pay for a wake-up."
            .to_owned(),
        x: axis("routes", Unit::Plain, true),
        y: axis("processor time per packet", Unit::Seconds, false),
        lines: vec![
            line(1, "learnt sessions, high load", |n| Bench::sessions(Regime::High, n)),
            line(2, "constant, 1500 B, high load", |n| {
                Bench::constant(Mix::Large, 1, Regime::High, n)
            }),
            line(4, "constant, 40 B, line open", |n| Bench::constant(Mix::Small, 1, Regime::Bare, n)),
        ],
    }
}

fn table(r: &Results<'_>) -> Table {
    let head = [
        "sent",
        "load",
        "routes",
        "offered",
        "forwarded",
        "deviation",
        "packets/s",
        "lost",
        "runs of losses",
        "behind a loss",
        "processor",
        "per packet",
        "late, p99",
        "not sent",
    ];
    let rows = r.runs().map(|bench| {
        let get = |n: &str| r.get(bench, n);
        let mbit = |n: &str| get(n).map_or("–".to_owned(), |x| format!("{:.2} Mbit/s", x / 1e6));
        let percent = |n: &str| get(n).map_or("–".to_owned(), |x| format!("{:.2} %", x * 100.0));
        let plain = |n: &str, digits: usize, unit: &str| {
            get(n).map_or("–".to_owned(), |x| format!("{x:.digits$}{unit}"))
        };
        let late = get("late").map_or("–".to_owned(), |x| format!("{:.2} ms", x * 1e3));
        let runs = get("run_mean").zip(get("run_max"));
        let runs = runs.map_or("–".to_owned(), |(mean, most)| {
            format!("{mean:.1}, at most {most:.0}")
        });
        let sent = match bench.sent {
            Sent::Sessions => bench.name(),
            Sent::Constant { .. } if bench.floods() => format!("{}, flood", bench.name()),
            Sent::Constant { .. } => bench.name(),
        };
        vec![
            sent,
            bench.regime.name().to_owned(),
            bench.routes.to_string(),
            mbit("offered"),
            mbit("forwarded"),
            mbit("forwarded_sd"),
            plain("packets", 0, ""),
            percent("loss"),
            runs,
            percent("after_loss"),
            percent("busy"),
            plain("us_per_packet", 2, " us"),
            late,
            percent("short"),
        ]
    });
    Table {
        title: "Every run".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

//! The paper's figures, its histogram and time series, and the price of filler.

use super::Trace;
use super::cells::{FillerCell, LATENCIES, PRICES, RATES};
use super::lineup::FillerKind;
use super::results::Results;
use super::run::Outcome;
use crate::{Axis, Estimate, Line, Picture, Section, Table, Unit};

/// A number over a parameter.
struct Figure {
    name: &'static str,
    title: &'static str,
    caption: &'static str,
    by_latency: bool,
    number: &'static str,
    y: &'static str,
    unit: Unit,
    /// From the table's unit to the axis's.
    scale: f64,
    /// Of the filler, so that there is nothing without it.
    filler: bool,
}

const FIGURES: &[Figure] = &[
    Figure {
        name: "delay-by-rate",
        title: "Delay of pre-existing packets against bandwidth (figure 4)",
        caption: "Queue, transmission and latency of the central link, 20 ms.",
        by_latency: false,
        number: "pre_fwd_delay_ms",
        y: "mean delay",
        unit: Unit::Seconds,
        scale: 1e-3,
        filler: false,
    },
    Figure {
        name: "drops-by-rate",
        title: "Drops of pre-existing packets against bandwidth (figure 5)",
        caption: "Share of the packets that arrived at the central link.",
        by_latency: false,
        number: "pre_fwd_drop_pct",
        y: "dropped",
        unit: Unit::Share,
        scale: 1e-2,
        filler: false,
    },
    Figure {
        name: "throughput-by-rate",
        title: "Throughput of pre-existing traffic against bandwidth (figure 6)",
        caption: "With and without filler the lines lie on each other.",
        by_latency: false,
        number: "pre_fwd_kbytes_per_s",
        y: "carried",
        unit: Unit::BitsPerSecond,
        scale: 8e3,
        filler: false,
    },
    Figure {
        name: "delay-by-latency",
        title: "Delay of pre-existing packets against latency (figure 7)",
        caption: "10 Mbit/s. The latency is most of it; see the next figure for the rest.",
        by_latency: true,
        number: "pre_fwd_delay_ms",
        y: "mean delay",
        unit: Unit::Seconds,
        scale: 1e-3,
        filler: false,
    },
    Figure {
        name: "wait-by-latency",
        title: "Wait of pre-existing packets in the queue, against latency",
        caption: "10 Mbit/s, net of transmission and latency: filler adds a constant.",
        by_latency: true,
        number: "pre_fwd_wait_ms",
        y: "mean wait",
        unit: Unit::Seconds,
        scale: 1e-3,
        filler: false,
    },
    Figure {
        name: "filler-by-rate",
        title: "Idle bandwidth that filler uses, against bandwidth",
        caption: "Share of what pre-existing traffic leaves of the central link.",
        by_latency: false,
        number: "spare_used",
        y: "used",
        unit: Unit::Share,
        scale: 1.0,
        filler: true,
    },
    Figure {
        name: "filler-by-latency",
        title: "Idle bandwidth that filler uses, against latency",
        caption: "10 Mbit/s, a filler buffer of 1.3 bandwidth-delay products.",
        by_latency: true,
        number: "spare_used",
        y: "used",
        unit: Unit::Share,
        scale: 1.0,
        filler: true,
    },
    Figure {
        name: "filler-delay-by-latency",
        title: "Delay of filler packets against latency",
        caption: "Filler waits in its own queue, which grows with the latency.",
        by_latency: true,
        number: "fil_delay_ms",
        y: "mean delay",
        unit: Unit::Seconds,
        scale: 1e-3,
        filler: true,
    },
];

fn picture(figure: &Figure, r: &Results<'_>, traces: &[Trace], prefix: &str) -> Picture {
    let values: &[u32] = if figure.by_latency {
        &LATENCIES
    } else {
        &RATES
    };
    let line = |t: &Trace, filler: bool, slot: usize| Line {
        name: match (figure.filler, filler) {
            (true, _) => t.name.clone(),
            (false, true) => format!("{}, filler", t.name),
            (false, false) => t.name.clone(),
        },
        slot,
        points: values
            .iter()
            .filter_map(|&v| {
                let (rate, latency) = if figure.by_latency { (10, v) } else { (v, 20) };
                let query = FillerCell::base(t).link(rate, latency).filler(filler);
                let x = if figure.by_latency {
                    f64::from(v) / 1e3
                } else {
                    f64::from(v) * 1e6
                };
                Some((
                    x,
                    Estimate::exact(r.get(query, figure.number)? * figure.scale),
                ))
            })
            .collect(),
        measured: true,
    };
    let mut lines = Vec::new();
    for (i, t) in traces.iter().enumerate() {
        if !figure.filler {
            lines.push(line(t, false, 2 * i + 1));
        }
        lines.push(line(t, true, 2 * i + 2));
    }
    Picture {
        name: format!("{prefix}{}", figure.name),
        title: figure.title.to_string(),
        caption: figure.caption.to_string(),
        x: if figure.by_latency {
            Axis {
                title: "latency of the central link".to_string(),
                unit: Unit::Seconds,
                log: true,
            }
        } else {
            Axis {
                title: "bandwidth of the central link".to_string(),
                unit: Unit::BitsPerSecond,
                log: false,
            }
        },
        y: Axis {
            title: figure.y.to_string(),
            unit: figure.unit,
            log: false,
        },
        lines,
    }
}

/// The figures of the paper for up to three traces; `prefix` tells their names apart.
pub fn figures(r: &Results<'_>, traces: &[Trace], prefix: &str) -> Vec<Picture> {
    let all = FIGURES.iter().map(|f| picture(f, r, traces, prefix));
    all.chain([bound(r, traces, prefix)]).collect()
}

/// The wait of pre-existing packets beside the M/G/1 formula.
fn bound(r: &Results<'_>, traces: &[Trace], prefix: &str) -> Picture {
    let mut lines = Vec::new();
    for (i, t) in traces.iter().enumerate() {
        let wait = |measured: bool| -> Vec<(f64, Estimate)> {
            RATES
                .iter()
                .filter_map(|&rate| {
                    let query = FillerCell::base(t).link(rate, 20).filler(true);
                    let bps = f64::from(rate) * 1e6;
                    let value = if measured {
                        r.get(query, "pre_fwd_wait_ms")? / 1e3
                    } else {
                        let share = r.get(query, "fil_kbytes_per_s")? * 8e3 / bps;
                        t.priority_wait(bps, share, 1000.0)
                    };
                    Some((bps, Estimate::exact(value)))
                })
                .collect()
        };
        lines.push(Line {
            name: format!("{}, formula", t.name),
            slot: if t.name == "poisson" { 0 } else { 2 * i + 1 },
            points: wait(false),
            measured: false,
        });
        lines.push(Line {
            name: t.name.clone(),
            slot: 2 * i + 2,
            points: wait(true),
            measured: true,
        });
    }
    Picture {
        name: format!("{prefix}wait-by-rate"),
        title: "Wait of pre-existing packets under filler, and the M/G/1 formula".to_string(),
        caption: "Non-preemptive priority: the residual transmission found, over one minus the \
                  own load. Exact for Poisson arrivals; burstier traffic also waits for itself."
            .to_string(),
        x: Axis {
            title: "bandwidth of the central link".to_string(),
            unit: Unit::BitsPerSecond,
            log: false,
        },
        y: Axis {
            title: "mean wait".to_string(),
            unit: Unit::Seconds,
            log: false,
        },
        lines,
    }
}

/// The paper's histogram and time series for one trace at the base, without filler and with.
pub fn in_time(trace: &Trace) -> Section {
    let base = FillerCell::base(trace);
    let none = base.outcome();
    let with = base.filler(true).outcome();
    let histogram = |name: &str, slot, o: &Outcome| {
        let waits = &o.present[0].tally.waits;
        let total = waits.sum().packets.max(1) as f64;
        let mut sum = 0;
        let mut points: Vec<(f64, Estimate)> = waits
            .buckets()
            .map(|(_, to, n)| {
                sum += n.packets;
                // A logarithmic axis has no zero: what waits not at all stands at a microsecond.
                (
                    to.as_secs_f64().max(1e-6),
                    Estimate::exact(1.0 - sum as f64 / total),
                )
            })
            .collect();
        points.dedup_by(|b, a| a.0 == b.0);
        Line {
            name: name.to_string(),
            slot,
            points,
            measured: false,
        }
    };
    let series = |name: &str, slot, bins: &[u32]| Line {
        name: name.to_string(),
        slot,
        points: bins
            .iter()
            .take(600)
            .enumerate()
            .map(|(i, &b)| (i as f64 / 10.0, Estimate::exact(f64::from(b) * 80.0)))
            .collect(),
        measured: false,
    };
    Section {
        title: "In time".to_string(),
        what: format!(
            "Trace {}, 10 Mbit/s, 20 ms: how long pre-existing packets wait, and what arrives at the \
             link in the first minute.",
            trace.name
        ),
        pictures: vec![
            Picture {
                name: "waits".to_string(),
                title: "Waits of pre-existing packets".to_string(),
                caption: "Share of the packets that wait longer.".to_string(),
                x: Axis {
                    title: "wait in the queue".to_string(),
                    unit: Unit::Seconds,
                    log: true,
                },
                y: Axis {
                    title: "waiting longer".to_string(),
                    unit: Unit::Share,
                    log: false,
                },
                lines: vec![
                    histogram("no filler", 1, &none),
                    histogram("filler", 2, &with),
                ],
            },
            Picture {
                name: "series".to_string(),
                title: "Arrivals at the central link in tenths of a second".to_string(),
                caption: "Filler leaves the peaks alone and fills what is between them."
                    .to_string(),
                x: Axis {
                    title: "time".to_string(),
                    unit: Unit::Seconds,
                    log: false,
                },
                y: Axis {
                    title: "arriving".to_string(),
                    unit: Unit::BitsPerSecond,
                    log: false,
                },
                lines: vec![
                    series("pre-existing", 1, &with.series[0]),
                    series("filler", 2, &with.series[1]),
                ],
            },
        ],
        tables: Vec::new(),
    }
}

/// What filler costs others and what it gets, over every scheduler and transport; `prefix` tells the
/// pictures of several traces apart.
pub fn price(r: &Results<'_>, trace: &Trace, prefix: &str) -> Section {
    let mut lines = Vec::new();
    let mut table = Table {
        title: format!("Trace {}, 10 Mbit/s, 20 ms, 1.3 BDP", trace.name),
        head: [
            "scheduler",
            "filler",
            "spare used",
            "delay added",
            "p99 wait",
            "drops added",
        ]
        .map(str::to_string)
        .to_vec(),
        rows: Vec::new(),
    };
    for (i, &(scheduler, transport)) in PRICES.iter().enumerate() {
        let query = FillerCell::base(trace).scheduler(scheduler);
        let kind = FillerKind::named(transport);
        let with = query.over(kind);
        let row = || {
            let used = r.get(with, "spare_used")?;
            let delay = r.get(with, "pre_fwd_delay_ms")? - r.get(query, "pre_fwd_delay_ms")?;
            let wait = r.get(with, "pre_fwd_wait_p99_ms")?;
            let drops = r.get(with, "pre_fwd_drop_pct")? - r.get(query, "pre_fwd_drop_pct")?;
            Some((used, delay, wait, drops))
        };
        let Some((used, delay, wait, drops)) = row() else {
            continue;
        };
        let label = kind.map_or(transport, |k| k.label);
        lines.push(Line {
            name: format!("{}, {label}", scheduler.name()),
            slot: i % 7 + 1,
            // Nothing is free, and a logarithmic axis has no zero.
            points: vec![(used, Estimate::exact((delay / 1e3).max(1e-6)))],
            measured: true,
        });
        table.rows.push(vec![
            scheduler.name().to_string(),
            label.to_string(),
            format!("{:.1} %", used * 100.0),
            format!("{delay:+.3} ms"),
            format!("{wait:.2} ms"),
            format!("{drops:+.3} points"),
        ]);
    }
    Section {
        title: "The price of filler".to_string(),
        what: "What an endless transfer takes of the idle bandwidth, against what it does to the \
               traffic that was there: to the right is more use, further down less harm. Strict \
               priority needs the network's help, the low-priority transports over one queue do not."
            .to_string(),
        pictures: vec![Picture {
            name: format!("{prefix}price"),
            title: "Harm against use".to_string(),
            caption: "One point for each way of sending filler.".to_string(),
            x: Axis {
                title: "spare capacity used".to_string(),
                unit: Unit::Share,
                log: false,
            },
            y: Axis {
                title: "delay added to pre-existing packets".to_string(),
                unit: Unit::Seconds,
                log: true,
            },
            lines,
        }],
        tables: vec![table],
    }
}

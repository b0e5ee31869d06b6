//! Tinnakornsrisuphap, Feng & Philp, "On the Burstiness of the TCP Congestion-Control Mechanism in a
//! Distributed Computing System" (2000): how bursty is the sum of many TCP connections that each carry
//! Poisson traffic?
//!
//! [`Plan`] says what is run; its [`Plan::scenarios`] go through [`grid::run`](crate::grid::run), and
//! [`Plan::study`] makes the study of what comes back. Who takes part is in the tables of [`lineup`],
//! one run is a [`scenario`] (and [`ties`] says who comes first in it), the claims and their rules are in [`claims`] and [`known`], ns-2's numbers
//! in [`anchors`].
//!
//! *Not modelled:* processing times and routing, as in ns-2; ns-2's own oddities beyond those that a
//! profile names.

pub mod anchors;
pub mod claims;
pub mod figures;
pub mod known;
pub mod lineup;
pub mod results;
pub mod scenario;
pub mod ties;

use swell_base::Warning;

use crate::words;
use crate::{Section, Study, Table, Verdict};
use anchors::{Comparison, Metric, compare};
use lineup::{ADDED, ADDED_TRANSPORTS, BACKGROUND, GATEWAYS, LINES, MIXED_GATEWAYS, Profile};
use results::{Results, Source};
use scenario::{Outcome, Scenario};

/// Numbers of clients, finer where things happen: near 10 and around the knee.
const CLIENTS: [u16; 26] = [
    1, 2, 5, 8, 9, 10, 11, 12, 15, 20, 25, 30, 33, 35, 36, 37, 38, 39, 40, 41, 42, 43, 45, 50, 55,
    60,
];
/// Numbers of clients of the lines beyond the paper.
const COARSE: [u16; 12] = [1, 5, 10, 20, 30, 35, 38, 40, 42, 45, 50, 60];
/// Numbers of clients of a first look.
const QUICK: [u16; 5] = [5, 20, 30, 45, 60];

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// A first look: few numbers of clients, short runs.
    pub quick: bool,
    /// Seeds of each, at least one.
    pub seeds: u64,
}

impl Plan {
    /// Every run, in order: cells, then seeds.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let mut cells = Vec::new();
        let mut add = |profile, transport: &str, gateway: &str, clients, background| {
            let scenario = Scenario::named(profile, transport, gateway, clients);
            cells.extend(scenario.map(|s| Scenario {
                background,
                seconds: if self.quick { 40 } else { 200 },
                ..s
            }));
        };
        for profile in Profile::ALL {
            for line in LINES.iter().filter(|l| l.runs_under(profile)) {
                let clients: &[u16] = match (self.quick, line.paper) {
                    (true, true) => &QUICK,
                    (true, false) => &QUICK[2..],
                    (false, true) => &CLIENTS,
                    (false, false) => &COARSE,
                };
                for &m in clients {
                    add(profile, line.transport, line.gateway, m, 0);
                }
            }
            let weighted = GATEWAYS.iter().filter(|g| g.weight().is_some());
            for gateway in weighted {
                if !self.quick || known::WEIGHTS.contains(&gateway.name) {
                    add(profile, "reno", gateway.name, 60, 0);
                }
            }
            for gateway in known::TIES {
                add(profile, "reno", gateway, 60, 0);
            }
            for gateway in MIXED_GATEWAYS {
                for transport in ADDED_TRANSPORTS {
                    let added = if self.quick { &ADDED[4..] } else { &ADDED[..] };
                    for &n in added {
                        add(profile, transport, gateway, n, BACKGROUND);
                    }
                }
            }
        }
        let seeds = 1..=self.seeds.max(1);
        cells
            .iter()
            .flat_map(|cell| {
                seeds.clone().map(|seed| Scenario {
                    seed,
                    ..cell.clone()
                })
            })
            .collect()
    }

    /// The study of what came of [`Plan::scenarios`], in their order.
    pub fn study(&self, scenarios: &[Scenario], numbers: &[Vec<f64>]) -> Study {
        let outcomes = numbers.iter().filter_map(|n| Outcome::from_numbers(n));
        let results = Results::new(scenarios.iter().zip(outcomes));
        let compared = compare(&results);
        let mut sections = figures::sections(&results);
        if !compared.is_empty() {
            sections.push(beside_ns2(&compared));
        }
        Study {
            name: "burstiness".into(),
            title: "Burstiness of aggregate TCP traffic, rerun".into(),
            paper: "P. Tinnakornsrisuphap, W. Feng and I. Philp, On the Burstiness of the TCP \
                    Congestion-Control Mechanism in a Distributed Computing System, 2000"
                .into(),
            doubts: self.doubts(&compared),
            ledgers: vec![
                claims::ledger(&results),
                known::findings(&results),
                known::anchors(&results),
            ],
            sections,
            command: self.command(),
            real_time: false,
            facts: vec![
                (
                    "simulated seconds of each run".into(),
                    results.seconds().to_string(),
                ),
                ("seeds".into(), self.seeds.to_string()),
                ("runs".into(), scenarios.len().to_string()),
                (
                    "numbers within their bars of ns-2.35’s".into(),
                    agreement(&compared),
                ),
            ],
        }
    }

    fn command(&self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        format!("swell study burstiness{quick} --seeds {}", self.seeds)
    }

    fn doubts(&self, compared: &[Comparison]) -> Vec<Warning> {
        let mut doubts = Vec::new();
        if self.quick {
            doubts.push(Warning::warning(
                "quick-study",
                "a first look: runs of 40 s, in which the start weighs five times as much as in the \
                 paper's 200 s; verdicts may differ from the full study's",
            ));
        }
        if self.seeds < 3 {
            doubts.push(Warning::warning(
                "few-seeds",
                "with fewer than three seeds intervals are missing or mean little; --seeds 5",
            ));
        }
        let misses = missed(compared).count();
        if misses > 0 {
            doubts.push(Warning::note(
                "ns2-differs",
                format!(
                    "{misses} of {} numbers are not within their bar of ns-2.35's; all are listed",
                    barred(compared).count()
                ),
            ));
        }
        doubts
    }
}

/// Comparisons that have a bar.
pub fn barred(compared: &[Comparison]) -> impl Iterator<Item = &Comparison> {
    compared.iter().filter(|c| !c.exempt)
}

/// Those that miss it.
pub fn missed(compared: &[Comparison]) -> impl Iterator<Item = &Comparison> {
    barred(compared).filter(|c| !c.agrees)
}

fn agreement(compared: &[Comparison]) -> String {
    let all = barred(compared).count();
    if all == 0 {
        return "not compared: other lengths".into();
    }
    format!("{} of {all}", all - missed(compared).count())
}

/// Agreement by metric, and every number that misses its bar.
fn beside_ns2(compared: &[Comparison]) -> Section {
    let mut summary = Table {
        title: "Agreement".into(),
        head: ["number", "compared", "within the bar", "bar"]
            .map(String::from)
            .to_vec(),
        rows: Vec::new(),
    };
    for metric in Metric::ALL {
        let mine = || barred(compared).filter(|c| c.metric == metric);
        let bar = match metric {
            Metric::Cov | Metric::CovWarm => "5 %",
            Metric::Delivered | Metric::BackgroundDelivered => "1 %",
            Metric::Loss | Metric::BackgroundLoss | Metric::LossWarm => "10 % or 0.2 points",
        };
        summary.rows.push(vec![
            metric.label().into(),
            mine().count().to_string(),
            mine().filter(|c| c.agrees).count().to_string(),
            bar.into(),
        ]);
    }
    let mut misses = Table {
        title: "Numbers that miss their bar".into(),
        head: [
            "runs",
            "number",
            "ours",
            "ns-2.35",
            "apart",
            "standard errors",
        ]
        .map(String::from)
        .to_vec(),
        rows: Vec::new(),
    };
    misses.rows.extend(missed(compared).map(row));
    Section {
        title: "Beside ns-2.35, number by number".into(),
        what:
            "Means over seeds of runs of equal length. There is no bar for M = 38, where ns-2 is \
               of two minds from seed to seed, and none for deliveries of Vegas from 35 to 42 \
               clients, where ns-2 pins a few connections at a minimal window."
                .into(),
        pictures: Vec::new(),
        tables: vec![summary, misses],
    }
}

/// A comparison as texts: runs, number, ours, ns-2's, difference, in standard errors.
pub fn row(c: &Comparison) -> Vec<String> {
    let k = &c.key;
    let runs = match k.background {
        0 => format!(
            "{}, {}/{}, M = {}",
            k.profile.name(),
            k.transport,
            k.gateway,
            k.clients
        ),
        b => format!(
            "{}, {b} reno + {} {}/{}",
            k.profile.name(),
            k.clients,
            k.transport,
            k.gateway
        ),
    };
    let show = |v: f64| match c.metric {
        Metric::Cov | Metric::CovWarm => format!("{v:.4}"),
        Metric::Delivered | Metric::BackgroundDelivered => format!("{:.1}k", v / 1e3),
        Metric::Loss | Metric::BackgroundLoss | Metric::LossWarm => words::share(v),
    };
    let (ours, ns2) = (c.ours.value, c.ns2.value);
    let apart = match c.metric {
        Metric::Loss | Metric::BackgroundLoss | Metric::LossWarm => {
            format!("{:+.2} points", (ours - ns2) * 100.0)
        }
        _ => words::percent(ours / ns2 - 1.0),
    };
    let errors = c.errors().map_or_else(String::new, |e| format!("{e:+.1}"));
    vec![
        runs,
        c.metric.label().into(),
        show(ours),
        show(ns2),
        apart,
        errors,
    ]
}

/// How many findings of all ledgers have each verdict.
pub fn tally(study: &Study) -> [(Verdict, usize); 4] {
    [
        Verdict::Holds,
        Verdict::InKind,
        Verdict::DoesNotHold,
        Verdict::NotTested,
    ]
    .map(|v| (v, study.ledgers.iter().map(|l| l.count(v)).sum()))
}

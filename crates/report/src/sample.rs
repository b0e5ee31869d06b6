//! Made-up data for tests: four backgrounds, ten replications, ten minutes.

use swell_base::{Code, Stream};

use crate::data::{
    BackgroundData, Condition, Doubt, Energy, ForegroundData, Interval, Load, MeasureCell,
    MeasureRow, NetworkData, ReportData, Rerun, Said, Series, Waterfall,
};
use crate::human::Quantity;
use crate::palette::Role;

fn said(text: &str, lines: &[&str]) -> Said {
    Said {
        text: text.into(),
        lines: lines.iter().map(|&l| l.into()).collect(),
    }
}

/// A whole report over backgrounds of these names; the first is the reference, the last is learnt.
pub(crate) fn report(names: &[&str]) -> ReportData {
    let last = names.len().saturating_sub(1);
    ReportData {
        title: "web-20mbit".into(),
        note: "1 MB objects over 20 Mbit/s, at equal mean load.".into(),
        against: "no background".into(),
        verdict: vec![vec![
            said(
                "Background traffic matters to web-1mb here: with campus the p95 takes 2.57 times \
                 (2.36 to 2.79) as long as without it.",
                &[
                    "campus matters: median ×1.40 (1.28–1.51), p95 ×2.57 (2.36–2.79)",
                    "poisson does not matter: median ×1.02 (1.00–1.04), p95 ×1.04 (1.01–1.07)",
                ],
            ),
            said(
                "Poisson traffic of the same mean rate is not enough: with campus the p95 takes \
                 1.80 times (1.65 to 1.95) as long as with poisson.",
                &[],
            ),
            said(
                "This rests on 10 replications; 1 warning to read first.",
                &[],
            ),
        ]],
        doubts: vec![
            Doubt {
                grave: false,
                code: Code::ShortTrace,
                message: "the trace behind `campus` is 15 min long; nothing slower than that is \
                          in the model"
                    .into(),
                place: "model campus".into(),
                of_model: true,
            },
            Doubt {
                grave: true,
                code: Code::FewSamples,
                message: "the 95th percentile rests on 9 samples beyond it".into(),
                place: "3 runs".into(),
                of_model: false,
            },
        ],
        backgrounds: names
            .iter()
            .enumerate()
            .map(|(i, name)| BackgroundData {
                name: (*name).into(),
                what: [
                    "no background",
                    "CBR over UDP",
                    "Poisson over UDP",
                    "learnt: campus",
                ][i.min(3)]
                .into(),
                role: match i {
                    0 => Role::Reference,
                    i if i == last => Role::Learnt,
                    _ => Role::Other,
                },
            })
            .collect(),
        foregrounds: vec![foreground(names)],
        network: NetworkData {
            clients: vec!["web-1mb, 1 client".into()],
            users: names.iter().skip(1).map(|n| (*n).into()).collect(),
            up: ["20 Mbit/s", "10 ms", "fifo 75 kB"]
                .map(Into::into)
                .to_vec(),
            down: ["20 Mbit/s", "10 ms", "fifo 75 kB"]
                .map(Into::into)
                .to_vec(),
            rtt: "foreground RTT 30 ms without queueing".into(),
            ..NetworkData::default()
        },
        experiment: "name = \"web-20mbit\"\n\n[network]\nrate = \"20Mbit\"\n".into(),
        rerun: Rerun {
            command: "swell run web-20mbit.toml".into(),
            what: "Equal experiment, seed and version give equal tables, bit for bit.".into(),
            facts: vec![
                ("Version".into(), "0.1.0".into()),
                ("Seed".into(), "1".into()),
            ],
        },
    }
}

fn foreground(names: &[&str]) -> ForegroundData {
    ForegroundData {
        name: "web-1mb".into(),
        what: "web: 1 client, 1 MB objects back to back, a new connection each".into(),
        measures: vec![MeasureRow {
            name: "time, p95".into(),
            quantity: Quantity::Duration,
            unit: String::new(),
            cells: (0..names.len()).map(measured).collect(),
        }],
        conditions: (0..names.len()).map(condition).collect(),
    }
}

fn measured(i: usize) -> MeasureCell {
    let interval = |value: f64| Interval {
        value,
        low: value * 0.9,
        high: value * 1.1,
    };
    MeasureCell {
        value: Some(interval(0.478 * [1.0, 1.3, 1.4, 2.57][i.min(3)])),
        ratio: (i > 0).then(|| interval([1.0, 1.3, 1.4, 2.57][i.min(3)])),
        differs: i > 0,
    }
}

fn condition(i: usize) -> Condition {
    let mut rng = Stream::indexed(1, "sample", i as u64);
    let (median, spread) = [(0.47, 0.01), (0.60, 0.02), (0.63, 0.05), (0.66, 0.38)][i.min(3)];
    let mut normal = || (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
    let mut times: Vec<f64> = (0..4000)
        .map(|_| median * libm::exp(spread * normal()))
        .collect();
    times.sort_by(f64::total_cmp);
    let steps: Vec<(f64, f64)> = times
        .iter()
        .enumerate()
        .map(|(k, &t)| (t, (k + 1) as f64 / 4000.0))
        .collect();
    let band = steps
        .iter()
        .step_by(60)
        .map(|&(t, f)| {
            let room = 0.07 * libm::sqrt(f * (1.0 - f));
            (t, f - room, f + room)
        })
        .collect();
    let around = |value: f64, share: f64| {
        Some(Interval {
            value,
            low: value * (1.0 - share),
            high: value * (1.0 + share),
        })
    };
    let at = |p: f64| times[(p * 3999.0) as usize];
    let quantiles = crate::data::QUANTILES.map(|p| around(at(p), 0.02 + spread * p / 6.0));
    let alone = [0.463, 0.47, 0.476, 0.478];
    let slowdown = [0, 1, 2, 3].map(|k| {
        let value = quantiles[k].map_or(f64::NAN, |q| q.value) / alone[k];
        if i == 0 {
            None
        } else {
            around(value, 0.02 + spread / 6.0)
        }
    });
    let energies = [0, 1].map(|direction| {
        (1..=if i == 0 { 0 } else { 13 })
            .map(|j| {
                let slope = [0.0, 0.0, 0.02, 0.45][i.min(3)];
                let sd = 0.02 * libm::pow(1.32, f64::from(j));
                let y = [0.0, 9.0, 20.0, 21.0][i.min(3)] - direction as f64
                    + slope * f64::from(j)
                    + sd * 0.3 * normal();
                Energy {
                    timescale: 0.001 * libm::pow(2.0, f64::from(j)),
                    y,
                    low: y - 1.96 * sd,
                    high: y + 1.96 * sd,
                    n: 600_000 >> j,
                }
            })
            .collect()
    });
    Condition {
        runs: 10,
        replications: 10,
        samples: 4000,
        unfinished: 10,
        failed: usize::from(i == 3),
        quantiles,
        slowdown,
        watched: steps.last().map_or(0.0, |s| s.0),
        steps,
        band,
        energies,
        load: [0.2, 1.0].map(|k| Load {
            requested: (i == 3).then_some(6.6e6 * k),
            carried: if i == 0 { 0.0 } else { 6.5e6 * k },
            background: if i == 0 { 0.0 } else { 6.6e6 * k },
            background_sd: if i == 3 { 0.3e6 } else { 0.01e6 },
            foreground: 9e6 * k,
            utilisation: 0.7 * k,
            dropped: 0.002 * i as f64,
        }),
        series: vec![[series(i, 0), series(i, 1)], [series(i, 2), series(i, 3)]],
        links: Vec::new(),
        waterfall: Waterfall::default(),
    }
}

fn series(i: usize, draw: usize) -> Series {
    let mut rng = Stream::indexed(2, "sample", (i + 100 * draw) as u64);
    let bins = 6000;
    let busy: Vec<f64> = (0..bins)
        .map(|k| {
            let wave = libm::sin(k as f64 / 300.0) * libm::sin(k as f64 / 47.0);
            match i {
                0 => 0.0,
                3 => (0.33 + 0.3 * wave + 0.2 * (rng.uniform() - 0.5)).clamp(0.0, 1.0),
                i => 0.33 + 0.02 * i as f64 * (rng.uniform() - 0.5),
            }
        })
        .collect();
    let web: Vec<f64> = busy
        .iter()
        .map(|b| (0.85 - b) * (0.8 + 0.2 * rng.uniform()))
        .collect();
    let queue_max: Vec<f64> = busy
        .iter()
        .map(|b| 75e3 * (0.3 + 0.7 * rng.uniform() * (0.4 + b).min(1.0)))
        .collect();
    Series {
        replication: draw as u32 / 2,
        link: String::new(),
        start: 0.0,
        bin: 0.1,
        rate: vec![20e6; bins],
        rate_known: true,
        arrived: vec![100.0; bins],
        used: [web, busy.clone()],
        parts: Vec::new(),
        queue_mean: queue_max
            .iter()
            .map(|q| if *q < 24e3 { f64::NAN } else { q * 0.6 })
            .collect(),
        queue_max,
        dropped: [0, 1].map(|_| {
            busy.iter()
                .map(|b| {
                    if rng.uniform() < 0.02 + 0.1 * (b - 0.5) {
                        40.0
                    } else {
                        0.0
                    }
                })
                .collect()
        }),
    }
}

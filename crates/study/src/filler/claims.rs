//! The paper's claims, S3.1 to S3.7, one column per trace.

use super::Trace;
use super::anchors::ANCHORS;
use super::cells::{FillerCell, LATENCIES, RATES};
use super::results::Results;
use crate::{Entry, Estimate, Finding, Ledger, Verdict};

/// Size of a filler packet on the wire, bytes.
const FILLER_SIZE: f64 = 1000.0;

/// The ledger of the study.
pub fn ledger(results: &Results<'_>, traces: &[Trace]) -> Ledger {
    let entry = |claim: &Claim| Entry {
        id: claim.id.to_string(),
        claim: claim.claim.to_string(),
        paper: claim.paper.to_string(),
        rule: claim.rule.to_string(),
        findings: traces
            .iter()
            .map(|t| (claim.find)(results, t).unwrap_or_else(Finding::not_tested))
            .collect(),
    };
    Ledger {
        title: "Claims of the paper".to_string(),
        columns: traces.iter().map(|t| t.name.clone()).collect(),
        entries: CLAIMS.iter().map(entry).collect(),
    }
}

struct Claim {
    id: &'static str,
    claim: &'static str,
    paper: &'static str,
    rule: &'static str,
    find: fn(&Results<'_>, &Trace) -> Option<Finding>,
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "S3.1",
        claim: "delay of pre-existing packets rises a little, less as bandwidth grows",
        paper: "about +4 % at 3 Mbit/s, under +2 % at 10",
        rule: "holds: +3 to +5.5 % at 3 Mbit/s, under +2 % at 10, falling from rate to rate; in kind: \
               under +10 % and falling",
        find: delay_by_rate,
    },
    Claim {
        id: "S3.2a",
        claim: "no drops of pre-existing packets on links that are wide enough",
        paper: "none from 4 to 6 Mbit/s up",
        rule: "holds: none at 6 Mbit/s and more, with filler; in kind: under 0.1 %",
        find: drops_on_wide_links,
    },
    Claim {
        id: "S3.2b",
        claim: "where the link is nearly starved, filler hardly adds to the drops",
        paper: "+3 % of the drops at 3 Mbit/s",
        rule: "holds: at most +5 % of the drops; in kind: at most 0.25 points more",
        find: drops_on_narrow_links,
    },
    Claim {
        id: "S3.3",
        claim: "throughput of pre-existing traffic does not fall",
        paper: "no reduction at any bandwidth",
        rule: "holds: nowhere by more than 0.1 %; in kind: by 1 %",
        find: throughput,
    },
    Claim {
        id: "S3.4a",
        claim: "delay grows linearly with latency; filler adds a constant",
        paper: "0.349 ms without and 0.745 ms with, net of latency",
        rule: "holds: both constant within 5 % from 10 to 250 ms, and within 30 % of the paper's; in \
               kind: constant",
        find: net_of_latency,
    },
    Claim {
        id: "S3.4b",
        claim: "beside the latency the added delay is small",
        paper: "under 1 % of the total from 40 ms up",
        rule: "holds: under 1 % at 40 and 250 ms; in kind: under 2 %",
        find: share_of_latency,
    },
    Claim {
        id: "S3.5a",
        claim: "extra delay = filler utilisation x mean residual transmission of a filler packet",
        paper: "0.396 ms at 10 Mbit/s",
        rule: "holds: within 10 % at 10 Mbit/s; in kind: within 30 %",
        find: residual,
    },
    Claim {
        id: "S3.5b",
        claim: "the wait is that of M/G/1 with priority, without preemption",
        paper: "the exact form of S3.5, for Poisson arrivals",
        rule: "holds: within 2 % in every setting without drops, with and without filler; in kind: \
               within 30 %, since traces other than Poisson are burstier",
        find: formula,
    },
    Claim {
        id: "S3.6a",
        claim: "filler uses most of the idle bandwidth",
        paper: "most of it, at every bandwidth",
        rule: "holds: over half everywhere, over 90 % at 10 Mbit/s and 20 ms; in kind: over half at \
               the base",
        find: idle_bandwidth,
    },
    Claim {
        id: "S3.6b",
        claim: "the filler's delay grows with latency; 16 KB starve it at high latency",
        paper: "1.3 bandwidth-delay products do not",
        rule: "holds: delay rising, and at 250 ms 16 KB give under half of what 1.3 BDP give; in kind: \
               under nine tenths",
        find: small_buffer,
    },
    Claim {
        id: "S3.7",
        claim: "acknowledgements of filler hardly touch pre-existing traffic",
        paper: "nothing remarkable, in either direction",
        rule: "holds: delay against the filler changes by under 0.1 %, forward and reversed; in kind: \
               under 1 %",
        find: acknowledgements,
    },
];

fn percent(share: f64) -> String {
    format!("{:+.2} %", share * 100.0)
}

fn finding(verdict: Verdict, value: String, detail: String, measured: f64) -> Finding {
    Finding {
        verdict,
        value,
        detail,
        // Traces are given and the simulation has no other chance in it: one number, no interval.
        measured: Estimate::of([measured]),
        reference: String::new(),
    }
}

/// What ns-2.35 gave for the same trace, by the same arithmetic.
fn reference(trace: &Trace, rate: u32, latency: u32) -> Option<(f64, f64)> {
    let delay = |filler: bool| {
        ANCHORS
            .iter()
            .find(|a| {
                (a.trace, a.rate, a.latency, a.filler.is_some())
                    == (trace.name.as_str(), rate, latency, filler)
            })
            .map(|a| a.present.delay)
    };
    Some((delay(true)?, delay(false)?))
}

fn delay_by_rate(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let rises: Vec<f64> = RATES
        .iter()
        .map(|&rate| r.rise(FillerCell::base(t).link(rate, 20), "pre_fwd_delay_ms"))
        .collect::<Option<_>>()?;
    let (at_3, at_10) = (rises[0], rises[4]);
    let falling = rises.windows(2).all(|w| w[1] < w[0]);
    let verdict = Verdict::of(
        (0.03..=0.055).contains(&at_3) && at_10 < 0.02 && falling,
        at_3 < 0.1 && falling,
    );
    let theirs = reference(t, 3, 20).map_or(String::new(), |(with, without)| {
        percent(with / without - 1.0)
    });
    Some(Finding {
        reference: theirs,
        ..finding(
            verdict,
            percent(at_3),
            format!("at 3 Mbit/s; {} at 10", percent(at_10)),
            at_3,
        )
    })
}

fn drops_on_wide_links(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let mut most = 0.0f64;
    for rate in RATES.into_iter().filter(|&rate| rate >= 6) {
        most = most.max(r.get(
            FillerCell::base(t).link(rate, 20).filler(true),
            "pre_fwd_drop_pct",
        )?);
    }
    let value = format!("{most:.3} %");
    let verdict = Verdict::of(most == 0.0, most < 0.1);
    Some(finding(
        verdict,
        value,
        "at most, 6 to 15 Mbit/s".into(),
        most,
    ))
}

fn drops_on_narrow_links(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let (with, without) = r.pair(FillerCell::base(t).link(3, 20), "pre_fwd_drop_pct")?;
    let more = with - without;
    let share = if without > 0.0 { more / without } else { 0.0 };
    let verdict = Verdict::of(share <= 0.05, more <= 0.25);
    let detail = format!("{without:.3} % to {with:.3} % at 3 Mbit/s");
    Some(finding(verdict, percent(share), detail, share))
}

fn throughput(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let mut most = 0.0f64;
    for rate in RATES {
        most = most.min(r.rise(FillerCell::base(t).link(rate, 20), "pre_fwd_kbytes_per_s")?);
    }
    let verdict = Verdict::of(most >= -0.001, most >= -0.01);
    Some(finding(
        verdict,
        percent(most),
        "at most, 3 to 15 Mbit/s".into(),
        most,
    ))
}

/// Milliseconds beside the latency, with filler and without, from 10 ms up.
fn nets(r: &Results<'_>, t: &Trace) -> Option<Vec<(f64, f64)>> {
    let latencies = LATENCIES.iter().filter(|&&l| l >= 10);
    latencies
        .map(|&latency| {
            let (with, without) =
                r.pair(FillerCell::base(t).link(10, latency), "pre_fwd_delay_ms")?;
            Some((with - f64::from(latency), without - f64::from(latency)))
        })
        .collect()
}

fn net_of_latency(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let nets = nets(r, t)?;
    let spread = |of: fn(&(f64, f64)) -> f64| {
        let values = nets.iter().map(of);
        let (low, high) = values.fold((f64::MAX, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
        high / low - 1.0
    };
    let constant = spread(|n| n.0) < 0.05 && spread(|n| n.1) < 0.05;
    let (with, without) = nets[1];
    let near = (with / 0.745 - 1.0).abs() < 0.3 && (without / 0.349 - 1.0).abs() < 0.3;
    let theirs = reference(t, 10, 20).map_or(String::new(), |(a, b)| {
        format!("{:.3} to {:.3} ms", b - 20.0, a - 20.0)
    });
    Some(Finding {
        reference: theirs,
        ..finding(
            Verdict::of(constant && near, constant),
            format!("{without:.3} to {with:.3} ms"),
            "without and with filler, 20 ms".to_string(),
            with,
        )
    })
}

fn share_of_latency(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let rise = |latency| r.rise(FillerCell::base(t).link(10, latency), "pre_fwd_delay_ms");
    let (at_40, at_250) = (rise(40)?, rise(250)?);
    let most = at_40.max(at_250);
    let detail = format!("at 40 ms; {} at 250", percent(at_250));
    let verdict = Verdict::of(most < 0.01, most < 0.02);
    Some(finding(verdict, percent(at_40), detail, at_40))
}

fn residual(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let base = FillerCell::base(t);
    let (with, without) = r.pair(base, "pre_fwd_delay_ms")?;
    let share = r.get(base.filler(true), "fil_kbytes_per_s")? * 8e3 / 10e6;
    let predicted = share * FILLER_SIZE * 8.0 / 10e6 / 2.0 * 1e3;
    let off = (with - without) / predicted - 1.0;
    let verdict = Verdict::of(off.abs() <= 0.1, off.abs() <= 0.3);
    let value = format!("{:.3} ms", with - without);
    let detail = format!(
        "{predicted:.3} ms by the check: {share:.2} of {:.1} ms",
        0.4
    );
    Some(finding(verdict, value, detail, with - without))
}

fn formula(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let mut worst = 0.0f64;
    for (rate, latency) in settings() {
        for filler in [false, true] {
            let query = FillerCell::base(t).link(rate, latency).filler(filler);
            if r.get(query, "pre_fwd_drop_pct")? > 0.0 {
                continue;
            }
            let bps = f64::from(rate) * 1e6;
            let share = r.get(query, "fil_kbytes_per_s")? * 8e3 / bps;
            let wait = t.priority_wait(bps, share, FILLER_SIZE) * 1e3;
            let off = r.get(query, "pre_fwd_wait_ms")? / wait - 1.0;
            if off.abs() > worst.abs() {
                worst = off;
            }
        }
    }
    let verdict = Verdict::of(worst.abs() <= 0.02, worst.abs() <= 0.3);
    Some(finding(
        verdict,
        percent(worst),
        "farthest from the formula".into(),
        worst,
    ))
}

/// The paper's rates and latencies, each once.
fn settings() -> Vec<(u32, u32)> {
    let by_rate = RATES.iter().map(|&rate| (rate, 20));
    let by_latency = LATENCIES.iter().filter(|&&l| l != 20).map(|&l| (10, l));
    by_rate.chain(by_latency).collect()
}

fn idle_bandwidth(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let used = |rate, latency| {
        r.get(
            FillerCell::base(t).link(rate, latency).filler(true),
            "spare_used",
        )
    };
    let mut least = f64::MAX;
    for (rate, latency) in settings() {
        least = least.min(used(rate, latency)?);
    }
    let base = used(10, 20)?;
    let verdict = Verdict::of(least > 0.5 && base > 0.9, base > 0.5);
    let value = format!("{:.0} %", base * 100.0);
    let detail = format!("at the base; at least {:.0} %", least * 100.0);
    Some(finding(verdict, value, detail, base))
}

fn small_buffer(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let far = FillerCell::base(t).filler(true).link(10, 250);
    let delays: Vec<f64> = LATENCIES
        .iter()
        .map(|&l| r.get(FillerCell::base(t).filler(true).link(10, l), "fil_delay_ms"))
        .collect::<Option<_>>()?;
    let rising = delays.windows(2).all(|w| w[1] > w[0]);
    let small = r.get(far.buffer(16), "fil_kbytes_per_s")?;
    let share = small / r.get(far, "fil_kbytes_per_s")?;
    let verdict = Verdict::of(rising && share < 0.5, rising && share < 0.9);
    let detail = "of the bandwidth of 1.3 BDP, at 250 ms".to_string();
    Some(finding(
        verdict,
        format!("{:.0} %", share * 100.0),
        detail,
        share,
    ))
}

fn acknowledgements(r: &Results<'_>, t: &Trace) -> Option<Finding> {
    let mut most = 0.0f64;
    for (rate, latency) in settings() {
        let query = FillerCell::base(t).link(rate, latency);
        let forward = r.rise(query, "pre_rev_delay_ms")?;
        let reversed = r.get(query.filler(true).reversed(), "pre_fwd_delay_ms")?
            / r.get(query, "pre_fwd_delay_ms")?
            - 1.0;
        for change in [forward, reversed] {
            if change.abs() > most.abs() {
                most = change;
            }
        }
    }
    let verdict = Verdict::of(most.abs() < 0.001, most.abs() < 0.01);
    let value = format!("{:+.3} %", most * 100.0);
    Some(finding(
        verdict,
        value,
        "at most, in any setting".into(),
        most,
    ))
}

//! What else is asked: the ten anchors by which we hold ourselves against ns-2, and three findings
//! that the paper's readers could not see.

use super::anchors::{Metric, Ns2};
use super::claims::{Claim, Found, View, build, interval};
use super::lineup::{ADDED, ADDED_TRANSPORTS, BACKGROUND, Profile};
use super::results::{Key, Source};
use crate::words::{percent, share};
use crate::{Estimate, Ledger, Verdict};

/// RED's averaging weight in ns-2 of 2000, and what ns-2.35 computes for this link.
pub const WEIGHTS: [&str; 2] = ["red-w0.002", "red-w0.00024"];

/// The gateways that take first of packets at one instant the one that waited behind another of its
/// client, and the one that did not.
pub const TIES: [&str; 2] = ["fifo-waited", "fifo-fresh"];

const ANCHORS: &[Claim] = &[
    Claim {
        id: "A1",
        claim: "UDP: Poisson’s c.o.v., overload’s loss",
        paper: "± 3 %",
        rule: "c.o.v. within 3 % of 1/sqrt(10 M) at every M; loss at M = 45, 50, 60 within 0.3 points of 7.4, 16.6, 30.5 %, 833 100 packets delivered in 200 s within 0.2 %",
        decide: udp,
    },
    Claim {
        id: "A2",
        claim: "Reno, delayed ACKs, Vegas, M ≤ 30: Poisson after 10 s",
        paper: "± 3 %, no loss",
        rule: "c.o.v. without the first 10 s within 3 % of Poisson and no loss there, M ≤ 30",
        decide: light,
    },
    Claim {
        id: "A3",
        claim: "Reno/FIFO at M = 45, 50, 60",
        paper: "+140…230 %",
        rule: "excess 140 to 230 %, 760 000 to 780 000 packets in 200 s, loss within 0.5 points of ns-2’s",
        decide: reno,
    },
    Claim {
        id: "A4",
        claim: "Vegas/FIFO from M = 50 on",
        paper: "≥ 826 000",
        rule: "at least 826 000 packets in 200 s, loss under 0.5 %, c.o.v. without the first 10 s below Poisson",
        decide: vegas,
    },
    Claim {
        id: "A5",
        claim: "Reno/RED, M = 60: burstiness by RED’s weight",
        paper: "≥ .15, ≤ .08",
        rule: "c.o.v. at least 0.15 with weight 0.002 and at most 0.08 with 0.00024",
        decide: red_weight,
    },
    Claim {
        id: "A6",
        claim: "order of loss at M = 60, era",
        paper: "order",
        rule: "Vegas < delayed ACKs < Reno < Reno/RED < Vegas/RED",
        decide: order,
    },
    Claim {
        id: "A7",
        claim: "mixed, 1500 packets: FIFO and RED1’s Vegas lose none",
        paper: "0",
        rule: "not one packet of any client lost with FIFO, not one of added Vegas with RED1",
        decide: no_loss,
    },
    Claim {
        id: "A8",
        claim: "filler traffic: the priority wait",
        paper: "± 2 %",
        rule: "asked in the filler study",
        decide: |_| None,
    },
    Claim {
        id: "A9",
        claim: "start-up and RED’s weight are shown",
        paper: "shown",
        rule: "c.o.v. is there with and without the first 10 s, and for both of RED’s weights",
        decide: shown,
    },
    Claim {
        id: "A10",
        claim: "no bar at M = 38 or on Vegas totals, 35 ≤ M ≤ 42",
        paper: "kept",
        rule: "no rule here or among the claims looks there",
        decide: kept,
    },
];

const FINDINGS: &[Claim] = &[
    Claim {
        id: "F1",
        claim: "moderate burstiness is a start-up transient",
        paper: "up to 50 %",
        rule: "Reno’s excess at M = 30, over the whole run and without the first 10 s: above 20 % and at most 5 % holds; less than a quarter left in kind",
        decide: transient,
    },
    Claim {
        id: "F2",
        claim: "RED’s verdict flips with its averaging weight",
        paper: "RED worse",
        rule: "Reno/RED at M = 60 is burstier and delivers less than Reno/FIFO with weight 0.002, and the other way round with 0.00024: both holds, one in kind",
        decide: flip,
    },
    Claim {
        id: "F3",
        claim: "overload’s burstiness hangs on the order of simultaneous arrivals",
        paper: "–",
        rule: "Reno/FIFO’s c.o.v. at M = 60 where of packets that arrive at one instant the one that waited behind another of its client is taken first, over that where it is taken last: an interval beyond a tenth from 1 holds, one without 1 in kind",
        decide: ties,
    },
];

/// The ten anchors, for the two profiles that are ns-2's.
pub fn anchors(source: &dyn Source) -> Ledger {
    let profiles = [Profile::Era, Profile::Modern];
    build("Anchors in ns-2.35", ANCHORS, source, &profiles)
}

/// The findings.
pub fn findings(source: &dyn Source) -> Ledger {
    build("Beyond the paper", FINDINGS, source, &Profile::ALL)
}

/// A yes or no with the number that speaks for it.
fn answer(yes: bool, value: String, detail: String) -> Option<Found> {
    Some(Found {
        verdict: Verdict::of(yes, false),
        measured: None,
        value,
        detail,
    })
}

fn thousands(packets: f64) -> String {
    format!("{:.1}k", packets / 1e3)
}

fn udp(v: &View) -> Option<Found> {
    let line = ("udp", "fifo");
    if v.source.seconds() != 200 {
        return None;
    }
    let mut worst = 0.0_f64;
    for m in v.clients(line, ..) {
        let excess = v.excess(line, m, Metric::Cov)?.value;
        if excess.abs() > worst.abs() {
            worst = excess;
        }
    }
    let mut good = worst.abs() <= 0.03;
    let mut words = Vec::new();
    for (m, loss) in [(45, 0.074), (50, 0.166), (60, 0.305)] {
        let lost = v.get(line, m, Metric::Loss)?.value;
        let delivered = v.get(line, m, Metric::Delivered)?.value;
        good &= (lost - loss).abs() <= 0.003 && (delivered / 833_100.0 - 1.0).abs() <= 0.002;
        words.push(format!(
            "M = {m}: {} lost, {}",
            share(lost),
            thousands(delivered)
        ));
    }
    answer(good, percent(worst), words.join("; "))
}

fn light(v: &View) -> Option<Found> {
    let (mut worst, mut lost) = (0.0_f64, 0.0_f64);
    let mut at = String::new();
    for line in [("reno", "fifo"), ("renodelack", "fifo"), ("vegas", "fifo")] {
        let clients = v.clients(line, ..=30);
        if !clients.contains(&30) {
            return None;
        }
        for m in clients {
            let excess = v.excess(line, m, Metric::CovWarm)?.value;
            if excess.abs() > worst.abs() {
                worst = excess;
                at = format!("{}, M = {m}", line.0);
            }
            // ns-2's loss without the start is not in its table.
            let warm = v.get(line, m, Metric::LossWarm);
            lost = lost.max(warm.map_or(0.0, |e| e.value));
        }
    }
    let good = worst.abs() <= 0.03 && lost == 0.0;
    answer(good, percent(worst), format!("{at}; {} lost", share(lost)))
}

fn reno(v: &View) -> Option<Found> {
    let line = ("reno", "fifo");
    if v.source.seconds() != 200 {
        return None;
    }
    let ns2 = Ns2::new();
    let mut good = true;
    let (mut words, mut last) = (Vec::new(), None);
    for m in [45, 50, 60] {
        let key = Key::new(v.profile, line.0, line.1, m);
        let loss = ns2.get(&key, Metric::Loss)?.value;
        let excess = v.excess(line, m, Metric::Cov)?;
        let delivered = v.get(line, m, Metric::Delivered)?.value;
        let lost = v.get(line, m, Metric::Loss)?.value;
        good &= (1.4..=2.3).contains(&excess.value)
            && (760e3..=780e3).contains(&delivered)
            && (lost - loss).abs() <= 0.005;
        words.push(format!(
            "M = {m}: {}, {}, {} lost",
            percent(excess.value),
            thousands(delivered),
            share(lost)
        ));
        last = Some(excess);
    }
    answer(good, percent(last?.value), words.join("; "))
}

fn vegas(v: &View) -> Option<Found> {
    let line = ("vegas", "fifo");
    if v.source.seconds() != 200 {
        return None;
    }
    let all = v.clients(line, 50..);
    let (mut good, mut words) = (!all.is_empty(), Vec::new());
    for m in all {
        let delivered = v.get(line, m, Metric::Delivered)?.value;
        let lost = v.get(line, m, Metric::Loss)?.value;
        let excess = v.excess(line, m, Metric::CovWarm)?.value;
        good &= delivered >= 826e3 && lost < 0.005 && excess < 0.0;
        words.push((m, delivered, lost, excess));
    }
    let least = words.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let each = words.iter().map(|(m, d, l, e)| {
        format!(
            "M = {m}: {}, {} lost, {}",
            thousands(*d),
            share(*l),
            percent(*e)
        )
    });
    let each: Vec<String> = each.collect();
    answer(good, thousands(least.1), each.join("; "))
}

fn red_weight(v: &View) -> Option<Found> {
    if v.source.seconds() != 200 {
        return None;
    }
    let [slow, fast] = weights(v)?;
    let good = slow.value >= 0.15 && fast.value <= 0.08;
    let show = |x: f64| format!("{x:.3}");
    let value = format!(
        "{slow}, {fast}",
        slow = show(slow.value),
        fast = show(fast.value)
    );
    let detail = both(interval(&slow, show), interval(&fast, show));
    answer(good, value, detail)
}

/// Two intervals, where there are any.
fn both(a: String, b: String) -> String {
    if a.is_empty() || b.is_empty() {
        return a + b.as_str();
    }
    format!("{a} and {b}")
}

/// Reno/RED's c.o.v. at M = 60 with each of [`WEIGHTS`]. ns-2's, where it is only known with the weight
/// of the profile, is not used.
fn weights(v: &View) -> Option<[Estimate; 2]> {
    let cov = |gateway| v.get(("reno", gateway), 60, Metric::Cov);
    Some([cov(WEIGHTS[0])?, cov(WEIGHTS[1])?])
}

fn order(v: &View) -> Option<Found> {
    if v.profile != Profile::Era {
        return None;
    }
    let lines = [
        ("vegas", "fifo"),
        ("renodelack", "fifo"),
        ("reno", "fifo"),
        ("reno", "red"),
        ("vegas", "red"),
    ];
    let losses: Option<Vec<f64>> = lines
        .iter()
        .map(|&l| Some(v.get(l, 60, Metric::Loss)?.value))
        .collect();
    let losses = losses?;
    let each: Vec<String> = losses.iter().map(|&l| share(l)).collect();
    let good = losses.is_sorted_by(|a, b| a < b);
    let value = if good { "in order" } else { "out of order" };
    answer(good, value.into(), each.join(" < "))
}

fn no_loss(v: &View) -> Option<Found> {
    let loss = |transport: &str, gateway: &str, n: u16, metric| {
        let key = Key {
            background: BACKGROUND,
            ..Key::new(v.profile, transport, gateway, n)
        };
        v.source.get(&key, metric)
    };
    loss("reno", "fifo1500", 40, Metric::Loss)?;
    loss("vegas", "red1", 40, Metric::Loss)?;
    let mut most = 0.0_f64;
    for n in ADDED {
        for transport in ADDED_TRANSPORTS {
            for metric in [Metric::Loss, Metric::BackgroundLoss] {
                most = most.max(loss(transport, "fifo1500", n, metric).map_or(0.0, |e| e.value));
            }
        }
        most = most.max(loss("vegas", "red1", n, Metric::Loss).map_or(0.0, |e| e.value));
    }
    answer(most == 0.0, share(most), "the most lost in any case".into())
}

fn shown(v: &View) -> Option<Found> {
    let line = ("reno", "fifo");
    let m = *v.clients(line, ..).last()?;
    let both = v
        .excess(line, m, Metric::Cov)
        .zip(v.excess(line, m, Metric::CovWarm));
    answer(
        both.is_some() && weights(v).is_some(),
        String::new(),
        "figures 2 and its twin without the first 10 s; the sweep of RED’s weight".into(),
    )
}

fn kept(v: &View) -> Option<Found> {
    v.clients(("reno", "fifo"), ..).last()?;
    answer(true, String::new(), "by construction".into())
}

fn transient(v: &View) -> Option<Found> {
    let line = ("reno", "fifo");
    let whole = v.excess(line, 30, Metric::Cov)?;
    let warm = v.excess(line, 30, Metric::CovWarm)?;
    let verdict = Verdict::of(
        whole.low() > 0.2 && warm.value <= 0.05,
        warm.value < whole.value / 4.0,
    );
    Some(Found {
        verdict,
        measured: Some(whole),
        value: format!("{}, {}", percent(whole.value), percent(warm.value)),
        detail: both(interval(&whole, percent), interval(&warm, percent)),
    })
}

fn flip(v: &View) -> Option<Found> {
    let [slow, fast] = weights(v)?;
    let fifo = ("reno", "fifo");
    let cov = v.get(fifo, 60, Metric::Cov)?;
    let without = v.get(fifo, 60, Metric::Delivered)?;
    let delivered = |gateway| v.get(("reno", gateway), 60, Metric::Delivered);
    let [less, more] = [delivered(WEIGHTS[0])?, delivered(WEIGHTS[1])?];
    let burstiness = slow.low() > cov.value && fast.high() < cov.value;
    let throughput = less.high() < without.value && more.low() > without.value;
    let ratio = slow.over(&fast);
    Some(Found {
        verdict: Verdict::of(burstiness && throughput, burstiness || throughput),
        measured: Some(ratio),
        value: format!("× {:.1}", ratio.value),
        detail: format!(
            "c.o.v. {:.3} and {:.3}, FIFO {:.3}; delivered {} and {}, FIFO {}",
            slow.value,
            fast.value,
            cov.value,
            thousands(less.value),
            thousands(more.value),
            thousands(without.value)
        ),
    })
}

fn ties(v: &View) -> Option<Found> {
    let at = |gateway, metric| v.get(("reno", gateway), 60, metric);
    let [waited, fresh] = [at(TIES[0], Metric::Cov)?, at(TIES[1], Metric::Cov)?];
    let [less, more] = [TIES[0], TIES[1]].map(|g| at(g, Metric::Delivered));
    let ratio = waited.over(&fresh);
    Some(Found {
        verdict: Verdict::of(
            ratio.low() > 1.1 || ratio.high() < 1.0 / 1.1,
            ratio.low() > 1.0 || ratio.high() < 1.0,
        ),
        measured: Some(ratio),
        value: format!("× {:.2}", ratio.value),
        detail: format!(
            "c.o.v. {:.3} and {:.3}; delivered {} and {}",
            waited.value,
            fresh.value,
            thousands(less?.value),
            thousands(more?.value)
        ),
    })
}

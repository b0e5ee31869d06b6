//! The claims S2.1 to S2.8 and their rules. Each rule is a function of a [`Source`], so that it can be
//! asked of ns-2's numbers as well as of ours.
//!
//! "Excess" is how far a coefficient of variation is above that of the Poisson process. Where the paper
//! says that something is above or below a bar (S2.4 to S2.7a, save S2.5c), the end of the 95 % interval
//! on the bar's side must clear it; where it says that things are equal, or puts them in an order, means
//! are compared.

use super::anchors::{Metric, Ns2};
use super::lineup::{ADDED, ADDED_TRANSPORTS, BACKGROUND, MIXED_GATEWAYS, Profile};
use super::results::{Key, Source};
use super::scenario::poisson;
use crate::words::{percent, share};
use crate::{Entry, Estimate, Finding, Ledger, Verdict};

/// The paper's lines over TCP.
const TCP_LINES: [(&str, &str); 5] = [
    ("reno", "fifo"),
    ("renodelack", "fifo"),
    ("vegas", "fifo"),
    ("reno", "red"),
    ("vegas", "red"),
];
/// "Moderately congested", without the knee at 38 clients, where even one simulator is of two minds.
const MODERATE: std::ops::RangeInclusive<u16> = 10..=37;
/// From this many clients to the knee ns-2's Vegas pins some connections at a minimal window for good,
/// so that its deliveries say nothing about burstiness.
const PINNED: u16 = 35;
/// "More than 38 clients", beyond the knee.
const HEAVY: std::ops::RangeInclusive<u16> = 40..=60;
/// Above the capacity of the bottleneck (41.7 clients) by some margin.
const OVERLOAD: std::ops::RangeInclusive<u16> = 45..=60;

/// A claim and how it is decided.
pub(super) struct Claim {
    pub id: &'static str,
    pub claim: &'static str,
    pub paper: &'static str,
    pub rule: &'static str,
    pub decide: fn(&View) -> Option<Found>,
}

/// One profile's numbers of a source.
pub(super) struct View<'s> {
    pub source: &'s dyn Source,
    pub profile: Profile,
}

/// What a rule finds.
pub(super) struct Found {
    pub verdict: Verdict,
    pub measured: Option<Estimate>,
    /// The number that decides, with its unit.
    pub value: String,
    /// Its interval, where it was found.
    pub detail: String,
}

/// The paper's claims.
const CLAIMS: &[Claim] = &[
    Claim {
        id: "S2.1",
        claim: "UDP keeps the c.o.v. of the Poisson aggregate",
        paper: "equal",
        rule: "largest excess at any M, either way: at most 3 % holds, 6 % in kind",
        decide: udp_is_poisson,
    },
    Claim {
        id: "S2.2",
        claim: "under 10 clients every TCP is Poisson",
        paper: "equal",
        rule: "largest excess of any line, M < 10: at most 5 % holds; in kind if so without the first 10 s",
        decide: few_clients_are_poisson,
    },
    Claim {
        id: "S2.3a",
        claim: "10–38 clients: up to 50 % above Poisson",
        paper: "≤ 50 %",
        rule: "largest excess of any line, 10 ≤ M < 38: 25 to 75 % holds, more than 10 % in kind",
        decide: moderate_excess,
    },
    Claim {
        id: "S2.3b",
        claim: "… without harm to throughput or loss",
        paper: "no harm",
        rule: "least delivered by any line, of what UDP delivers, 10 ≤ M < 38 (Vegas: M < 35): 99 % with at most 0.5 % lost holds; 97 % with 1 % in kind",
        decide: moderate_without_harm,
    },
    Claim {
        id: "S2.4a",
        claim: "over 38 clients: Reno over 140 % above",
        paper: "> 140 %",
        rule: "least excess, M ≥ 40: above 140 % holds, above 70 % in kind",
        decide: |v| heavy_excess(v, ("reno", "fifo"), 1.4),
    },
    Claim {
        id: "S2.4b",
        claim: "… Reno/RED over 200 % above",
        paper: "> 200 %",
        rule: "least excess, M ≥ 40: above 200 % holds, above 100 % in kind",
        decide: |v| heavy_excess(v, ("reno", "red"), 2.0),
    },
    Claim {
        id: "S2.4c",
        claim: "… Vegas does not rise so",
        paper: "no rise",
        rule: "largest excess, M ≥ 40: at most 10 points above the largest for 10 ≤ M < 38 holds; below half of Reno's least in kind",
        decide: vegas_does_not_rise,
    },
    Claim {
        id: "S2.5a",
        claim: "under overload Reno's burstiness costs throughput",
        paper: "less",
        rule: "most delivered, of what UDP delivers, M ≥ 45: below 97 % holds, below 99.5 % in kind",
        decide: reno_costs,
    },
    Claim {
        id: "S2.5b",
        claim: "… RED makes it worse: throughput and loss",
        paper: "worse",
        rule: "Reno/RED delivers less and loses more than Reno at every M ≥ 45: both holds, one in kind",
        decide: red_is_worse,
    },
    Claim {
        id: "S2.5c",
        claim: "… Vegas does best: throughput and loss",
        paper: "best",
        rule: "of the paper's TCP lines Vegas/FIFO delivers most and loses least at every M ≥ 45: both holds, one in kind",
        decide: vegas_is_best,
    },
    Claim {
        id: "S2.6",
        claim: "delayed ACKs change Reno's burstiness",
        paper: "change",
        rule: "change of c.o.v. against Reno without, M ≥ 45: 10 % or more at every M holds, at some M in kind",
        decide: delayed_acks_matter,
    },
    Claim {
        id: "S2.7a",
        claim: "beside 20 Reno, added Vegas get more than added Reno",
        paper: "more",
        rule: "least delivered to added Vegas of what added Reno get: above 99.5 % at every number added and above 100 % at some holds; above 100 % where 30 or more are added in kind",
        decide: added_vegas_get_more,
    },
    Claim {
        id: "S2.7b",
        claim: "… and lose less",
        paper: "less",
        rule: "loss of added Vegas against added Reno: less or none at every number added holds, on average in kind",
        decide: added_vegas_lose_less,
    },
    Claim {
        id: "S2.8a",
        claim: "buffer 1500: throughputs lie close together",
        paper: "close",
        rule: "most over least delivered by all clients, six cases, 40 added: within 2 % holds, 10 % in kind",
        decide: large_buffer_throughput,
    },
    Claim {
        id: "S2.8b",
        claim: "… losses differ clearly in relative terms",
        paper: "differ",
        rule: "largest over smallest loss of added clients that is not zero, six cases, 40 added: factor 2 holds, 1.2 in kind",
        decide: large_buffer_loss,
    },
];

/// The ledger of the paper's claims, a column for each profile.
pub fn ledger(source: &dyn Source) -> Ledger {
    build("The paper’s claims", CLAIMS, source, &Profile::ALL)
}

/// A ledger of any claims.
pub(super) fn build(
    title: &str,
    claims: &[Claim],
    source: &dyn Source,
    profiles: &[Profile],
) -> Ledger {
    let ns2 = Ns2::new();
    let entries = claims.iter().map(|c| Entry {
        id: c.id.into(),
        claim: c.claim.into(),
        paper: c.paper.into(),
        rule: c.rule.into(),
        findings: profiles
            .iter()
            .map(|&profile| finding(c, source, &ns2, profile))
            .collect(),
    });
    Ledger {
        title: title.into(),
        columns: profiles.iter().map(|p| p.name().into()).collect(),
        entries: entries.collect(),
    }
}

fn finding(claim: &Claim, source: &dyn Source, ns2: &Ns2, profile: Profile) -> Finding {
    let Some(found) = (claim.decide)(&View { source, profile }) else {
        return Finding::not_tested();
    };
    let there = (claim.decide)(&View {
        source: ns2,
        profile,
    });
    Finding {
        verdict: found.verdict,
        value: found.value,
        detail: found.detail,
        measured: found.measured,
        // Shorter runs carry more of the start than ns-2's did.
        reference: there
            .filter(|_| source.seconds() == ns2.seconds())
            .map_or_else(String::new, |f| f.value),
    }
}

// Numbers.

impl View<'_> {
    pub(super) fn get(&self, line: (&str, &str), m: u16, metric: Metric) -> Option<Estimate> {
        let key = Key::new(self.profile, line.0, line.1, m);
        self.source.get(&key, metric)
    }

    pub(super) fn excess(&self, line: (&str, &str), m: u16, metric: Metric) -> Option<Estimate> {
        let cov = self.get(line, m, metric)?;
        Some(cov.map(|c| c / poisson(m) - 1.0))
    }

    fn mixed(
        &self,
        transport: &str,
        gateway: &str,
        added: u16,
        metric: Metric,
    ) -> Option<Estimate> {
        let key = Key {
            background: BACKGROUND,
            ..Key::new(self.profile, transport, gateway, added)
        };
        self.source.get(&key, metric)
    }

    pub(super) fn clients(
        &self,
        line: (&str, &str),
        range: impl std::ops::RangeBounds<u16>,
    ) -> Vec<u16> {
        let mut all = self.source.clients(self.profile, line.0, line.1);
        all.retain(|m| range.contains(m));
        all
    }

    /// The extreme of `f` over the numbers of clients of a line; none if any is missing.
    fn extreme(
        &self,
        line: (&str, &str),
        range: impl std::ops::RangeBounds<u16>,
        most: bool,
        f: impl Fn(u16) -> Option<Estimate>,
    ) -> Option<(u16, Estimate)> {
        let all: Option<Vec<_>> = self
            .clients(line, range)
            .into_iter()
            .map(|m| Some((m, f(m)?)))
            .collect();
        pick(all?, most)
    }

    /// The extreme of `f` over the paper's TCP lines that were run and their numbers of clients.
    fn extreme_of_lines(
        &self,
        range: &(impl std::ops::RangeBounds<u16> + Clone),
        most: bool,
        f: impl Fn((&str, &str), u16) -> Option<Estimate>,
    ) -> Option<(String, Estimate)> {
        let each = TCP_LINES.into_iter().filter_map(|line| {
            let (m, value) = self.extreme(line, range.clone(), most, |m| f(line, m))?;
            Some((format!("{}/{}, M = {m}", line.0, line.1), value))
        });
        pick(each, most)
    }
}

fn pick<T>(all: impl IntoIterator<Item = (T, Estimate)>, most: bool) -> Option<(T, Estimate)> {
    all.into_iter().reduce(|a, b| {
        if (b.1.value > a.1.value) == most {
            b
        } else {
            a
        }
    })
}

// Words.

pub(super) fn interval(e: &Estimate, show: impl Fn(f64) -> String) -> String {
    e.interval.map_or_else(String::new, |i| {
        format!("[{} … {}]", show(i[0]), show(i[1]))
    })
}

fn found(verdict: Verdict, e: Estimate, show: fn(f64) -> String, rest: &str) -> Found {
    let detail = [interval(&e, show), rest.to_owned()]
        .into_iter()
        .filter(|t| !t.is_empty())
        .collect::<Vec<_>>();
    Found {
        verdict,
        measured: Some(e),
        value: show(e.value),
        detail: detail.join(" "),
    }
}

// The rules.

fn udp_is_poisson(v: &View) -> Option<Found> {
    let line = ("udp", "fifo");
    let each = v
        .clients(line, ..)
        .into_iter()
        .filter_map(|m| Some((m, v.excess(line, m, Metric::Cov)?)));
    let (m, e) = each.max_by(|a, b| a.1.value.abs().total_cmp(&b.1.value.abs()))?;
    let size = e.value.abs();
    let verdict = Verdict::of(size <= 0.03, size <= 0.06);
    Some(found(verdict, e, percent, &format!("at M = {m}")))
}

fn few_clients_are_poisson(v: &View) -> Option<Found> {
    let (at, whole) = v.extreme_of_lines(&(1..10), true, |l, m| v.excess(l, m, Metric::Cov))?;
    let (_, warm) = v.extreme_of_lines(&(1..10), true, |l, m| v.excess(l, m, Metric::CovWarm))?;
    let verdict = Verdict::of(whole.value <= 0.05, warm.value <= 0.05);
    let rest = format!("{at}; at most {} after 10 s", percent(warm.value));
    Some(found(verdict, whole, percent, &rest))
}

fn moderate_excess(v: &View) -> Option<Found> {
    let (at, whole) = v.extreme_of_lines(&MODERATE, true, |l, m| v.excess(l, m, Metric::Cov))?;
    let (_, warm) = v.extreme_of_lines(&MODERATE, true, |l, m| v.excess(l, m, Metric::CovWarm))?;
    let verdict = Verdict::of((0.25..=0.75).contains(&whole.value), whole.value > 0.1);
    let rest = format!("{at}; at most {} after 10 s", percent(warm.value));
    Some(found(verdict, whole, percent, &rest))
}

fn moderate_without_harm(v: &View) -> Option<Found> {
    let mut each = Vec::new();
    let mut lost = 0.0_f64;
    for line in TCP_LINES {
        for m in v.clients(line, MODERATE) {
            lost = lost.max(v.get(line, m, Metric::Loss)?.value);
            if line.0 == "vegas" && m >= PINNED {
                continue;
            }
            let udp = v.get(("udp", "fifo"), m, Metric::Delivered)?;
            let share = v.get(line, m, Metric::Delivered)?.over(&udp);
            each.push((format!("{}/{}, M = {m}", line.0, line.1), share));
        }
    }
    let (at, least) = pick(each, false)?;
    let within = |delivered: f64, loss: f64| least.value >= delivered && lost <= loss;
    let verdict = Verdict::of(within(0.99, 0.005), within(0.97, 0.01));
    let rest = format!("of UDP’s, {at}; at most {} lost", share(lost));
    Some(found(verdict, least, share, &rest))
}

fn heavy_excess(v: &View, line: (&str, &str), bar: f64) -> Option<Found> {
    let (at, least) = v.extreme(line, HEAVY, false, |m| v.excess(line, m, Metric::Cov))?;
    let (_, most) = v.extreme(line, HEAVY, true, |m| v.excess(line, m, Metric::Cov))?;
    let verdict = Verdict::of(least.low() > bar, least.low() > bar / 2.0);
    let rest = format!("at M = {at}; up to {}", percent(most.value));
    Some(found(verdict, least, percent, &rest))
}

fn vegas_does_not_rise(v: &View) -> Option<Found> {
    let (vegas, reno) = (("vegas", "fifo"), ("reno", "fifo"));
    let (at, most) = v.extreme(vegas, HEAVY, true, |m| v.excess(vegas, m, Metric::Cov))?;
    let (_, before) = v.extreme(vegas, MODERATE, true, |m| v.excess(vegas, m, Metric::Cov))?;
    let (_, other) = v.extreme(reno, HEAVY, false, |m| v.excess(reno, m, Metric::Cov))?;
    let verdict = Verdict::of(
        most.high() <= before.value + 0.1,
        most.high() < other.value / 2.0,
    );
    let rest = format!("at M = {at}; {} before the knee", percent(before.value));
    Some(found(verdict, most, percent, &rest))
}

fn reno_costs(v: &View) -> Option<Found> {
    let reno = ("reno", "fifo");
    let (at, most) = v.extreme(reno, OVERLOAD, true, |m| {
        let udp = v.get(("udp", "fifo"), m, Metric::Delivered)?;
        Some(v.get(reno, m, Metric::Delivered)?.over(&udp))
    })?;
    let verdict = Verdict::of(most.high() < 0.97, most.high() < 0.995);
    Some(found(
        verdict,
        most,
        share,
        &format!("of UDP’s, at M = {at}"),
    ))
}

fn red_is_worse(v: &View) -> Option<Found> {
    let (red, fifo) = (("reno", "red"), ("reno", "fifo"));
    let (at, most) = v.extreme(red, OVERLOAD, true, |m| {
        let without = v.get(fifo, m, Metric::Delivered)?;
        Some(v.get(red, m, Metric::Delivered)?.over(&without))
    })?;
    let loses_more = v.clients(red, OVERLOAD).into_iter().all(|m| {
        let loss = |line| v.get(line, m, Metric::Loss);
        loss(red)
            .zip(loss(fifo))
            .is_some_and(|(a, b)| a.value > b.value)
    });
    let less = most.high() < 1.0;
    let verdict = Verdict::of(less && loses_more, less || loses_more);
    let more = if loses_more { "more" } else { "not more" };
    let rest = format!("of what FIFO delivers, at M = {at}; loses {more} at every M");
    Some(found(verdict, most, share, &rest))
}

fn vegas_is_best(v: &View) -> Option<Found> {
    let vegas = ("vegas", "fifo");
    let others = TCP_LINES.into_iter().filter(|&l| l != vegas);
    let all = v.clients(vegas, OVERLOAD);
    let last = *all.last()?;
    let (mut delivers, mut loses) = (true, true);
    for line in others {
        for &m in &all {
            let number = |l, metric| v.get(l, m, metric).map(|e| e.value);
            delivers &= number(vegas, Metric::Delivered)? >= number(line, Metric::Delivered)?;
            loses &= number(vegas, Metric::Loss)? <= number(line, Metric::Loss)?;
        }
    }
    let udp = v.get(("udp", "fifo"), last, Metric::Delivered)?;
    let own = v.get(vegas, last, Metric::Delivered)?.over(&udp);
    let loss = v.get(vegas, last, Metric::Loss)?;
    let word = |yes| if yes { "yes" } else { "no" };
    let rest = format!(
        "of UDP’s and {} lost, at M = {last}; delivers most: {}, loses least: {}",
        share(loss.value),
        word(delivers),
        word(loses)
    );
    let verdict = Verdict::of(delivers && loses, delivers || loses);
    Some(found(verdict, own, share, &rest))
}

fn delayed_acks_matter(v: &View) -> Option<Found> {
    let (with, without) = (("renodelack", "fifo"), ("reno", "fifo"));
    let change = |m: u16| {
        let reno = v.get(without, m, Metric::Cov)?;
        Some(v.get(with, m, Metric::Cov)?.over(&reno).map(|r| r - 1.0))
    };
    let all: Option<Vec<(u16, Estimate)>> = v
        .clients(with, OVERLOAD)
        .into_iter()
        .map(|m| Some((m, change(m)?)))
        .collect();
    let all = all?;
    let clear = |e: &Estimate| e.low() >= 0.1 || e.high() <= -0.1;
    let (at, least) = all
        .iter()
        .copied()
        .min_by(|a, b| a.1.value.abs().total_cmp(&b.1.value.abs()))?;
    let verdict = Verdict::of(
        all.iter().all(|(_, e)| clear(e)),
        all.iter().any(|(_, e)| clear(e)),
    );
    Some(found(
        verdict,
        least,
        percent,
        &format!("at M = {at}, the least"),
    ))
}

/// Numbers of added clients that both transports were run with.
fn added(v: &View) -> Vec<u16> {
    let there = |n: &u16| v.mixed("reno", "fifo", *n, Metric::Delivered).is_some();
    ADDED.into_iter().filter(there).collect()
}

fn added_vegas_get_more(v: &View) -> Option<Found> {
    let all: Option<Vec<(u16, Estimate)>> = added(v)
        .into_iter()
        .map(|n| {
            let reno = v.mixed("reno", "fifo", n, Metric::Delivered)?;
            let vegas = v.mixed("vegas", "fifo", n, Metric::Delivered)?;
            Some((n, vegas.over(&reno)))
        })
        .collect();
    let all = all?;
    let (at, least) = pick(all.iter().copied(), false)?;
    let (_, most) = pick(all.iter().copied(), true)?;
    let congested = all.iter().filter(|(n, _)| *n >= 30);
    let verdict = Verdict::of(
        least.value > 0.995 && most.low() > 1.0,
        congested.clone().count() > 0 && congested.clone().all(|(_, e)| e.low() > 1.0),
    );
    let each: Vec<String> = all
        .iter()
        .map(|(n, e)| format!("{n}: {}", share(e.value)))
        .collect();
    let rest = format!(
        "of Reno’s with {at} added; by number added {}",
        each.join(", ")
    );
    Some(found(verdict, least, share, &rest))
}

fn added_vegas_lose_less(v: &View) -> Option<Found> {
    let mut all = Vec::new();
    for n in added(v) {
        let loss = |transport| v.mixed(transport, "fifo", n, Metric::Loss);
        all.push((n, loss("vegas")?, loss("reno")?));
    }
    let &(most, vegas, reno) = all.last()?;
    let sum = |f: fn(&(u16, Estimate, Estimate)) -> f64| all.iter().map(f).sum::<f64>();
    let verdict = Verdict::of(
        all.iter().all(|(_, a, b)| a.value <= b.value),
        sum(|x| x.1.value) < sum(|x| x.2.value),
    );
    let each: Vec<String> = all
        .iter()
        .map(|(k, a, b)| format!("{k}: {} and {}", share(a.value), share(b.value)))
        .collect();
    let rest = format!(
        "with {most} added, Reno {}; by number added {}",
        share(reno.value),
        each.join(", ")
    );
    Some(found(verdict, vegas, share, &rest))
}

/// The six cases with the large buffer and 40 clients added.
fn large<T>(v: &View, f: impl Fn(&str, &str) -> Option<T>) -> Option<Vec<(String, T)>> {
    v.mixed("reno", "fifo1500", 40, Metric::Delivered)?;
    let large = MIXED_GATEWAYS.into_iter().filter(|g| *g != "fifo");
    large
        .flat_map(|g| ADDED_TRANSPORTS.map(|t| (t, g)))
        .map(|(t, g)| Some((format!("{t}/{g}"), f(t, g)?)))
        .collect()
}

fn large_buffer_throughput(v: &View) -> Option<Found> {
    let totals = large(v, |t, g| {
        let own = v.mixed(t, g, 40, Metric::Delivered)?.value;
        Some(own + v.mixed(t, g, 40, Metric::BackgroundDelivered)?.value)
    })?;
    let values = || totals.iter().map(|t| t.1);
    let spread = values().fold(0.0, f64::max) / values().fold(f64::INFINITY, f64::min) - 1.0;
    let each = large(v, |t, g| Some(v.mixed(t, g, 40, Metric::Delivered)?.value))?;
    let each = each.iter().map(|e| e.1);
    let apart = each.clone().fold(0.0, f64::max) / each.fold(f64::INFINITY, f64::min);
    let verdict = Verdict::of(spread <= 0.02, spread <= 0.1);
    Some(Found {
        verdict,
        measured: None,
        value: percent(spread),
        detail: format!("most over least, all clients; the added ones alone: factor {apart:.2}"),
    })
}

fn large_buffer_loss(v: &View) -> Option<Found> {
    let losses = large(v, |t, g| Some(v.mixed(t, g, 40, Metric::Loss)?.value))?;
    let each: Vec<String> = losses
        .iter()
        .map(|(name, loss)| format!("{name} {}", share(*loss)))
        .collect();
    let lossy = losses.iter().map(|l| l.1).filter(|&l| l > 0.0);
    if lossy.clone().count() < 2 {
        return None;
    }
    let factor = lossy.clone().fold(0.0, f64::max) / lossy.fold(f64::INFINITY, f64::min);
    Some(Found {
        verdict: Verdict::of(factor >= 2.0, factor >= 1.2),
        measured: None,
        value: format!("× {factor:.1}"),
        detail: each.join(", "),
    })
}

#[cfg(test)]
mod tests;

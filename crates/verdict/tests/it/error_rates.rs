//! Error rates of verdicts, on simulated runs and on synthetic ones with known truth.
//!
//! The quick version runs with every test. `scripts/false-alarms simulated` runs the full one: 400 pairs, and enough
//! worlds to distinguish 93 % from 95 %.

#![expect(
    clippy::print_stdout,
    reason = "the figures are what the full version is run for"
)]

use std::collections::BTreeMap;
use std::path::Path;

use swell_base::{Code, Stream};
use swell_experiment::run::{Options, RunOutcome};
use swell_experiment::store::{Manifest, RunResult};
use swell_experiment::{Backend, Plan, Results, Simulator};
use swell_stats::{Observation, PairedRatio};
use swell_verdict::Answer;
use swell_verdict::Verdict;

/// Replications of each condition.
const RUNS: u32 = 5;

/// Number of pairs or worlds: that in the environment variable, or else `quick`.
fn number(variable: &str, quick: usize) -> usize {
    let set = std::env::var(variable).ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(quick)
}

/// A web client behind a link of 20 Mbit/s, with `background`.
fn plan(background: &str) -> Plan {
    let text = format!(
        r#"
name = "false alarms"
[network]
rate = "20Mbit"
rtt = "40ms"
[[foreground]]
name = "web"
kind = "web"
object = ["20kB", "100kB"]
think = "100ms"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "other"
{background}
[run]
replications = {RUNS}
warmup = "5s"
duration = "20s"
[run.keep]
flows = false
"#
    );
    Plan::resolve(&text, "false alarms", Path::new(".")).unwrap_or_else(|e| panic!("{e}"))
}

/// The runs beside `background` of replications `from` on, renumbered from 0 and with the background name `called`.
fn runs(plan: &Plan, background: &str, called: &str, from: u32) -> Vec<RunResult> {
    let template = plan.cells.iter().find(|c| c.background == background);
    let template = template.expect("the plan has this background");
    (0..RUNS)
        .map(|replication| {
            let mut cell = template.clone();
            cell.seed = 1 + u64::from(from + replication);
            let spec = plan.spec(&cell, &BTreeMap::new());
            let spec = spec.expect("the cell is the plan's");
            let observed = Simulator
                .run(&spec, &|_| {}, &|| false)
                .expect("nothing cancels it");
            cell.background = called.into();
            cell.replication = replication;
            RunResult { cell, observed }
        })
        .collect()
}

/// The verdict's answer for the background `other`, after its request times are multiplied by `factor`.
fn answer(plan: &Plan, none: &[RunResult], other: &[RunResult], factor: f64) -> Answer {
    let mut slower = other.to_vec();
    for r in slower.iter_mut().flat_map(|run| &mut run.observed.requests) {
        let stretched = |end: f64| r.start + factor * (end - r.start);
        (r.last_byte, r.observed_until) = (stretched(r.last_byte), stretched(r.observed_until));
    }
    let results = Results {
        dir: "nowhere".into(),
        joined: Vec::new(),
        manifest: Manifest::default(),
        experiment: plan.file.clone(),
        experiment_toml: plan.toml.clone(),
        runs: none.iter().cloned().chain(slower).collect(),
    };
    let verdict = Verdict::of(&results).foregrounds.remove(0);
    let of = verdict.backgrounds.iter().find(|b| b.background == "other");
    of.and_then(|b| b.matters).expect("it is compared")
}

/// How often each answer was given.
#[derive(Debug, Default)]
struct Tally {
    yes: usize,
    no: usize,
    unclear: usize,
}

impl Tally {
    fn count(&mut self, answer: Answer) {
        match answer {
            Answer::Yes => self.yes += 1,
            Answer::No => self.no += 1,
            Answer::Unclear => self.unclear += 1,
        }
    }

    /// Asserts that at most 5 % of these answers are wrong. For this number of pairs, the bound is one that chance exceeds
    /// in one of a thousand experiments.
    fn errs_seldom(&self, wrong: usize, what: &str) {
        let pairs = self.yes + self.no + self.unclear;
        println!("{what}: {self:?}");
        assert!(wrong <= bound(pairs), "{what}: {wrong} of {pairs}");
    }
}

/// The number of wrong answers of `pairs` that an error rate of 5 % exceeds in one of a thousand experiments.
fn bound(pairs: usize) -> usize {
    let seldom = |&k: &usize| at_most(k, pairs, 0.05) >= 0.999;
    (0..=pairs).find(seldom).expect("all are at most all")
}

/// The probability of at most `k` of `n` events with probability `p`: the binomial distribution function.
fn at_most(k: usize, n: usize, p: f64) -> f64 {
    let mut term = (1.0 - p).powi(i32::try_from(n).expect("few pairs"));
    let mut sum = term;
    for i in 0..k {
        term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
        sum += term;
    }
    sum
}

/// The same traffic under two names, with different seeds, so that there is no true difference. Then the request times of
/// one are multiplied by exactly 1.1 and 1.3.
#[test]
fn equal_backgrounds_under_two_names_seldom_differ() {
    let pairs = number("SWELL_PAIRS", 6);
    let worlds = [
        "kind = \"learnt\"\nmodel = \"isi-2pm\"\nsessions = 5.0",
        "kind = \"learnt\"\nmodel = \"access-link\"\nsessions = 13.0",
        "kind = \"poisson\"\nrate = \"12Mbit\"",
    ];
    let plans = worlds.map(plan);
    let mut tallies = [1.0, 1.1, 1.3].map(|factor| (factor, Tally::default()));
    for pair in 0..pairs {
        let own = &plans[pair % plans.len()];
        let from = 2 * RUNS * u32::try_from(pair).expect("few pairs");
        let none = runs(own, "other", "none", from);
        let other = runs(own, "other", "other", from + RUNS);
        for (factor, tally) in &mut tallies {
            tally.count(answer(own, &none, &other, *factor));
        }
    }
    let [(_, equal), (_, edge), (_, slower)] = &tallies;
    equal.errs_seldom(equal.yes, "equal, matters");
    edge.errs_seldom(edge.yes, "1.1 times as long, matters");
    edge.errs_seldom(edge.no, "1.1 times as long, does not matter");
    slower.errs_seldom(slower.no, "1.3 times as long, does not matter");
}

/// A packet of 1000 bytes every eight seconds changes nothing.
#[test]
fn one_kilobit_per_second_seldom_matters() {
    let pairs = number("SWELL_PAIRS", 6);
    let own = plan("kind = \"cbr\"\nrate = \"1kbit\"");
    let mut tally = Tally::default();
    for pair in 0..pairs {
        let from = RUNS * u32::try_from(pair).expect("few pairs");
        let none = runs(&own, "none", "none", from);
        let other = runs(&own, "other", "other", from);
        tally.count(answer(&own, &none, &other, 1.0));
    }
    tally.errs_seldom(tally.yes, "1 kbit/s, matters");
    // It is so little that the answer is nearly always "no".
    assert!(2 * tally.no > pairs, "{tally:?}");
}

/// With so many answers, four times the error rate that is allowed hardly ever passes for chance.
const MANY: usize = 150;

/// One request in fifty hangs under both conditions, by chance: the mean of few runs differs, and nothing matters. Only
/// the hangs make a difference, so they are drawn several times for each pair of simulated runs.
#[test]
fn hangs_by_chance_seldom_matter() {
    let pairs = number("SWELL_PAIRS", 6);
    let own = plan("kind = \"cbr\"\nrate = \"1kbit\"");
    let mut tally = Tally::default();
    let mut s = Stream::new(3, "hangs");
    for pair in 0..pairs {
        let from = RUNS * u32::try_from(pair).expect("few pairs");
        let simulated = ["none", "other"].map(|b| runs(&own, b, b, from));
        for _ in 0..MANY.div_ceil(pairs) {
            let [none, other] = simulated.clone().map(|mut runs| {
                for r in runs.iter_mut().flat_map(|run| &mut run.observed.requests) {
                    let hang = if s.below(50) == 0 { 1.5 } else { 0.0 };
                    (r.last_byte, r.observed_until) = (r.last_byte + hang, r.observed_until + hang);
                }
                runs
            });
            tally.count(answer(&own, &none, &other, 1.0));
        }
    }
    tally.errs_seldom(tally.yes, "hangs by chance, matters");
}

/// From a file to its verdict: learnt traffic scaled to a rate, Poisson packets that match it, and no background, in the
/// real simulator and through the run directory.
#[test]
fn a_short_learnt_run_goes_all_the_way_to_its_verdict() {
    let learnt = "kind = \"learnt\"\nmodel = \"access-link\"\nrate = \"14Mbit\"";
    let poisson = "[[background]]\nname = \"poisson\"\nkind = \"poisson\"\nrate = \"match:other\"";
    let own = plan(&format!("{learnt}\n{poisson}"));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = Options {
        dir: dir.path().join("run"),
        threads: 2,
        fresh: true,
        shard: None,
    };
    let ended = swell_experiment::run::run(&own, &Simulator, &options, &|_| {}, &|| false);
    let Ok(RunOutcome::Complete(results)) = ended else {
        panic!("{ended:?}")
    };
    // Alone, the background carries the requested mean rate, or there is a warning. Poisson offers the measured rate in
    // both directions.
    let alone = &results.manifest.measured["other"];
    let missed = results
        .manifest
        .warnings
        .iter()
        .any(|w| w.code == Code::RateMissed);
    let expected = alone.expected_bps.unwrap_or(alone.down_bps);
    assert_eq!((expected / 14e6 - 1.0).abs() > 0.05, missed, "{alone:?}");
    let verdict = Verdict::of(&results).foregrounds.remove(0);
    let of = |name: &str| {
        let found = verdict.backgrounds.iter().find(|b| b.background == name);
        found.expect("every background is judged")
    };
    let offered = of("poisson").offered_bps;
    assert!(
        (offered[1] / alone.down_bps - 1.0).abs() < 0.03,
        "{offered:?}"
    );
    assert!(
        (offered[0] / alone.up_bps - 1.0).abs() < 0.03,
        "{offered:?}"
    );
    assert_eq!(of("other").requested_bps[1], Some(14e6));
    for name in ["other", "poisson"] {
        // Most of the link is used, so no background may get the answer "does not matter".
        assert_ne!(of(name).matters, Some(Answer::No), "{}", verdict.sentence);
        assert!(of(name).requests > 100);
        assert!(!of(name).judged.is_empty());
    }
    // The answer is withheld exactly if the seeds of this experiment missed the load by more than a quarter.
    let off = (alone.down_bps / 14e6 - 1.0).abs() > 0.25;
    assert_eq!(!of("other").withheld.is_empty(), off, "{alone:?}");
    assert_eq!(verdict.comparisons.len(), 1);
    assert!(verdict.parametric_enough.is_some());
    assert!(verdict.sentence.contains("with other"));
}

/// Standard normal.
fn normal(s: &mut Stream) -> f64 {
    let (u, v) = (1.0 - s.uniform(), s.uniform());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Request times of one run with median e^`mean`: dependent, lognormal with a Pareto tail, a share `cut` of them censored.
fn requests(s: &mut Stream, mean: f64, cut: f64) -> Vec<Observation> {
    let mut level = normal(s);
    (0..60)
        .map(|_| {
            level = 0.6 * level + 0.8 * normal(s);
            let tail = match s.uniform() {
                u if u < 0.05 => (1.0 - s.uniform()).powf(-1.0 / 1.5),
                _ => 1.0,
            };
            let took = (mean + 0.5 * level).exp() * tail;
            match s.uniform() < cut {
                true => Observation::at_least(took * s.uniform()),
                false => Observation::complete(took),
            }
        })
        .collect()
}

/// Intervals cover the true ratio, and both claims have the stated error rates, at 5, 10 and 20 replications, with no and
/// with 3 % unfinished requests. The two conditions have the same distribution except for a factor, which is the truth.
#[test]
fn intervals_cover_the_truth_at_every_number_of_replications() {
    let worlds = number("SWELL_WORLDS", 60);
    let mut s = Stream::new(11, "coverage");
    for n in [5, 10, 20] {
        for (cut, p) in [0.0, 0.03]
            .map(|c| [0.5, 0.9, 0.95].map(|p| (c, p)))
            .concat()
        {
            for truth in [1.0, 1.1, 1.3] {
                let (mut covered, mut known, mut matters, mut equal) = (0, 0, 0, 0);
                for _ in 0..worlds {
                    let mut condition = |mean: f64| -> Vec<Vec<Observation>> {
                        (0..n)
                            .map(|_| {
                                let run = mean + 0.25 * normal(&mut s);
                                requests(&mut s, run, cut)
                            })
                            .collect()
                    };
                    let (with, without) = (condition(f64::ln(truth)), condition(0.0));
                    let Some(r) = PairedRatio::of(&with, &without, p) else {
                        continue;
                    };
                    let (low, high) = r.interval(0.95);
                    known += 1;
                    covered += usize::from(low <= truth && truth <= high);
                    matters += usize::from(r.p_above(1.1).min(r.p_below(1.0 / 1.1)) <= 0.05);
                    equal += usize::from(r.equivalent(0.1, 0.05));
                }
                let share = |k: usize| k as f64 / known as f64;
                println!(
                    "n {n} unfinished {cut} p {p} truth {truth}: covered {:.3}, matters {:.3}, equal {:.3} of {known}",
                    share(covered),
                    share(matters),
                    share(equal)
                );
                // Random deviation in 54 comparisons over this number of worlds.
                let room = |bar: f64| 3.0 * (bar * (1.0 - bar) / known as f64).sqrt();
                assert!(known > worlds / 2);
                assert!(share(covered) >= 0.93 - room(0.93));
                if truth < 1.2 {
                    assert!(share(matters) <= 0.05 + room(0.05));
                }
                if truth > 1.05 {
                    assert!(share(equal) <= 0.05 + room(0.05));
                }
            }
        }
    }
}

/// Tests the bound for tallies.
#[test]
fn chance_is_the_binomials() {
    assert!((at_most(0, 10, 0.05) - 0.95f64.powi(10)).abs() < 1e-12);
    assert!((at_most(10, 10, 0.05) - 1.0).abs() < 1e-12);
    let one = 0.95f64.powi(10) + 10.0 * 0.05 * 0.95f64.powi(9);
    assert!((at_most(1, 10, 0.05) - one).abs() < 1e-12);
    assert!(at_most(bound(MANY), MANY, 0.2) < 0.01);
}

/// The suite's answer where the truth is known. On an almost idle link, no background is sufficient. On a link that bursts
/// fill, neither no background nor Poisson packets are sufficient.
#[test]
fn a_suite_finds_what_is_sufficient() {
    let idle = "kind = \"learnt\"\nmodel = \"access-link\"\nrate = \"50kbit\"";
    let busy = "kind = \"learnt\"\nmodel = \"access-link\"\nrate = \"14Mbit\"";
    for (world, sufficient) in [(idle, true), (busy, false)] {
        let poisson =
            "[[background]]\nname = \"poisson\"\nkind = \"poisson\"\nrate = \"match:other\"";
        let mut own = plan(&format!("{world}\n{poisson}"));
        own.file.run.suite = Some("other".into());
        // The cheapest candidate comes first in the file, the target last.
        own.file.background.swap(1, 2);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let options = Options {
            dir: dir.path().join("run"),
            threads: 2,
            fresh: true,
            shard: None,
        };
        let own = Plan::resolve(&own.file.to_toml(), "suite", Path::new(".")).expect("it resolves");
        let ended = swell_experiment::run::run(&own, &Simulator, &options, &|_| {}, &|| false);
        let Ok(RunOutcome::Complete(results)) = ended else {
            panic!("{ended:?}")
        };
        let verdict = Verdict::of(&results).foregrounds.remove(0);
        let suite = verdict.suite.expect("the file asks for it");
        let yes = |name: &str| {
            let found = suite.candidates.iter().find(|c| c.background == name);
            found.expect("it is a candidate").sufficient == Answer::Yes
        };
        assert_eq!(yes("none"), sufficient, "{suite:#?}");
        assert!(sufficient || !yes("poisson"), "{suite:#?}");
        assert_eq!(suite.cheapest.as_deref(), sufficient.then_some("none"));
        assert!(
            verdict.sentence.contains("sufficient"),
            "{}",
            verdict.sentence
        );
    }
}

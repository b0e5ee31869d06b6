use super::*;
use swell_base::Direction;
use swell_experiment::file::{self, Background};
use swell_experiment::observe::{Cell, LinkTotals, Observations, Outcome, Request};
use swell_experiment::store::{Manifest, RunResult};
use swell_stats::MIN_REPLICATIONS;

mod counts;
mod covered;
mod doubts;
mod equal;
mod laws;
mod lost;
mod open;
mod paced;
mod sizes;
mod steady;
mod suites;
mod tails;

/// An experiment with the backgrounds none, poisson and learnt.
fn experiment(replications: u32) -> String {
    format!(
        r#"
name = "test"
network = {{ rate = "20Mbit", rtt = "40ms" }}
[[foreground]]
name = "web"
kind = "web"
object = "100kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "match:learnt"
[[background]]
name = "learnt"
kind = "learnt"
model = "tiny.json"
rate = "8Mbit"
[run]
replications = {replications}
warmup = "2s"
duration = "22s"
seed = 7
"#
    )
}

/// Results in which requests alone take `base` seconds times 1..2. `stretch` multiplies this, depending on the
/// background's kind and the request's rank in 0..1.
fn results(replications: u32, stretch: impl Fn(&str, f64) -> f64) -> Results {
    let text = experiment(replications);
    let file = file::read(&text, "x").unwrap();
    let mut runs = Vec::new();
    for b in &file.background {
        for replication in 0..replications {
            let mut rng = swell_base::Stream::indexed(3, "verdict", replication.into());
            let requests = (0..100)
                .map(|i| {
                    let rank = rng.uniform();
                    let took = 0.05 * (1.0 + rank) * stretch(b.kind(), rank);
                    let start = 2.0 + 0.19 * f64::from(i);
                    let done = start + took < 22.0;
                    Request {
                        client: 0,
                        index: i,
                        start,
                        connected: start,
                        first_byte: start,
                        last_byte: (start + took).min(22.0),
                        observed_until: (start + took).min(22.0),
                        bytes: 1,
                        retransmissions: 0,
                        outcome: if done {
                            Outcome::Done
                        } else {
                            Outcome::Unfinished
                        },
                    }
                })
                .collect();
            runs.push(RunResult {
                cell: Cell {
                    foreground: "web".into(),
                    background: b.name().into(),
                    replication,
                    seed: 7 + u64::from(replication),
                },
                observed: Observations {
                    requests,
                    links: vec![LinkTotals {
                        link: "bottleneck".into(),
                        direction: Direction::Down,
                        duration: 20.0,
                        departed: [0, 20_000_000],
                        ..LinkTotals::default()
                    }],
                    ..Observations::default()
                },
            });
        }
    }
    Results {
        dir: "x".into(),
        joined: Vec::new(),
        manifest: Manifest::default(),
        experiment: file,
        experiment_toml: text,
        runs,
    }
}

/// A background beside the foreground `web`, with runs only.
fn condition<'r>(results: &'r Results, background: &'r Background) -> Condition<'r> {
    Condition {
        background,
        runs: condition::runs(results, "web", background.name()),
        times: Vec::new(),
        seconds: vec![None; PERCENTILES.len()],
        paired: true,
        warned: condition::Warned::default(),
        failing: Vec::new(),
        propagation: [0.0; 2],
        of_run: None,
    }
}

/// What is asked of request times alone.
fn asked() -> Asked {
    Asked {
        measures: vec![swell_experiment::measure::COMPLETION_TIME],
        program: false,
        end: 22.0,
        bootstrap: Bootstrap::seeded(1),
        paths: Default::default(),
        directions: vec![Direction::Down],
        datagrams: false,
        useful: false,
        silent: None,
        sizes: Vec::new(),
        paced: false,
    }
}

/// The full text of the verdict.
fn full_text(v: &ForegroundVerdict) -> String {
    let each = v.paragraphs.iter();
    let each = each.map(|p| format!("{}\n{}", p.text, p.lines.join("\n")));
    each.collect::<Vec<String>>().join("\n")
}

fn verdict(replications: u32, stretch: impl Fn(&str, f64) -> f64) -> ForegroundVerdict {
    Verdict::of(&results(replications, stretch))
        .foregrounds
        .remove(0)
}

#[test]
fn a_stretch_by_two_is_a_slowdown_of_two_at_every_percentile() {
    let v = verdict(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    assert_eq!(v.matters, Answer::Yes);
    assert_eq!(v.reference.as_deref(), Some("none"));
    for b in v.backgrounds.iter().filter(|b| b.kind != "none") {
        for q in &b.quantiles {
            let s = q.slowdown.unwrap();
            // Paired seeds have the same ranks in both, so the ratio is exact in each resample.
            assert!(
                (s.value - 2.0).abs() < 1e-9 && s.high - s.low < 1e-9,
                "{q:?}"
            );
        }
    }
    assert_eq!(v.backgrounds[0].matters, None);
    assert_eq!(v.backgrounds[2].load_bps[1], 8e6);
    assert_eq!(v.parametric_enough, Some(Answer::Yes));
    assert!(
        full_text(&v).contains("2.00 times (2.00 to 2.00)"),
        "{}",
        full_text(&v)
    );
    assert!(
        full_text(&v).contains("Poisson traffic of the same mean rate is enough"),
        "{}",
        full_text(&v)
    );
}

#[test]
fn a_longer_tail_makes_poisson_insufficient_though_medians_agree() {
    let v = verdict(10, |kind, rank| match kind {
        "none" => 1.0,
        "learnt" if rank > 0.8 => 3.0,
        _ => 1.5,
    });
    assert_eq!(v.parametric_enough, Some(Answer::No));
    let ratio = |p: f64| {
        let found = v.comparisons[0].ratios.iter().find(|r| r.0 == p).unwrap();
        found.1.unwrap().value
    };
    assert!((ratio(0.5) - 1.0).abs() < 1e-9);
    assert!((ratio(0.95) - 2.0).abs() < 1e-9);
    assert!(
        full_text(&v).contains("Poisson traffic of the same mean rate is not enough"),
        "{}",
        full_text(&v)
    );
}

#[test]
fn a_stretch_within_the_margin_does_not_matter() {
    let v = verdict(10, |kind, _| if kind == "none" { 1.0 } else { 1.05 });
    assert_eq!(v.matters, Answer::No);
    assert!(
        full_text(&v).contains("does not matter to web here, within 10 %"),
        "{}",
        full_text(&v)
    );
}

#[test]
fn a_stretch_at_the_margin_is_not_settled() {
    // Ratios scatter around 1.095, so no interval lies completely on one side of the margin.
    let v = verdict(6, |kind, rank| match kind {
        "none" => 1.0,
        _ => 1.065 + 0.06 * (rank * 7919.0).fract(),
    });
    assert_eq!(v.matters, Answer::Unclear, "{v:?}");
    assert!(
        full_text(&v).contains("is not settled"),
        "{}",
        full_text(&v)
    );
}

#[test]
fn unfinished_requests_are_lower_bounds_not_fast_ones() {
    // From rank 0.4 on, requests beside learnt traffic last longer than every run.
    let v = verdict(10, |kind, rank| match kind {
        "learnt" if rank > 0.4 => 1e6,
        _ => 1.0,
    });
    let learnt = &v.backgrounds[2];
    assert!(learnt.unfinished > 500, "{learnt:?}");
    let p95 = learnt.quantiles.iter().find(|q| q.p == 0.95).unwrap();
    assert!(p95.seconds.is_none_or(|e| e.high.is_infinite()), "{p95:?}");
    assert!(
        v.doubts.iter().any(|d| d.code == Code::CensoredQuantile),
        "{:?}",
        v.doubts
    );
    assert!(
        full_text(&v).contains("did not finish"),
        "{}",
        full_text(&v)
    );
}

/// Failed requests have no last byte. If two in five fail beside Poisson, the median lies in the slower part of the
/// others, and p90 is beyond all of them.
#[test]
fn failed_requests_are_slower_than_everything() {
    let mut results = results(10, |_, _| 1.0);
    for run in results
        .runs
        .iter_mut()
        .filter(|r| r.cell.background == "poisson")
    {
        for request in run.observed.requests.iter_mut().filter(|r| r.index % 5 < 2) {
            request.outcome = Outcome::Failed;
            request.last_byte = f64::NAN;
        }
    }
    let observed = request_observations(&valid_runs(&results, "web", "poisson"));
    let all = swell_stats::KaplanMeier::new(observed.iter().flatten().copied());
    let done = observed.iter().flatten().filter(|o| o.complete);
    let rest = swell_stats::KaplanMeier::new(done.copied());
    // Half of all requests are five sixths of the three fifths that finished.
    let (median, want) = (
        all.quantile(0.5).unwrap(),
        rest.quantile(5.0 / 6.0).unwrap(),
    );
    assert!((median / want - 1.0).abs() < 0.01, "{median} {want}");
    assert_eq!(all.quantile(0.9), None);
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(v.backgrounds[1].failed, 400);
    assert!(v.backgrounds[1].quantiles[3].seconds.is_none());
}

/// Requests start every 0.19 s during the observed 20 s. Half of them are observed for at least 10.6 s; alone, the
/// median is 0.075 s.
#[test]
fn a_starved_application_is_slowed_down_at_least_so_many_times() {
    let v = verdict(10, |kind, _| if kind == "none" { 1.0 } else { 1e6 });
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    let median = v.backgrounds[2].quantiles[1];
    assert_eq!(median.seconds, None);
    let slowdown = median.slowdown.unwrap();
    let Known::AtLeast(low) = Known::of(&slowdown) else {
        panic!("{slowdown:?}")
    };
    assert!((130.0..=10.6 / 0.075).contains(&low), "{low}");
    let said = "learnt matters: not one of 1000 requests finished; median at least ×1";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
    // Both starve it. Which one does so more is beyond the observation time.
    assert_eq!(v.parametric_enough, Some(Answer::Unclear));
}

#[test]
fn a_parametric_background_is_not_enough_where_only_one_of_the_two_starves() {
    for (starving, words) in [("learnt", "at least"), ("poisson", "at most")] {
        let v = verdict(10, |kind, _| if kind == starving { 1e6 } else { 1.0 });
        assert_eq!(v.parametric_enough, Some(Answer::No), "{}", full_text(&v));
        let said = full_text(&v);
        let (_, enough) = said.split_once("is not enough: with learnt").unwrap();
        assert!(enough.contains(words), "{}", full_text(&v));
    }
}

#[test]
fn one_replication_has_no_intervals_and_settles_nothing() {
    let v = verdict(1, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    assert_eq!(v.matters, Answer::Unclear);
    assert_eq!(v.parametric_enough, Some(Answer::Unclear));
    assert_eq!(v.sureness.widest, None);
    for q in &v.backgrounds[2].quantiles {
        for e in [q.seconds.unwrap(), q.slowdown.unwrap()] {
            assert_eq!(Known::of(&e), Known::Value, "{e:?}");
        }
        assert!((q.slowdown.unwrap().value - 2.0).abs() < 1e-9);
    }
    assert!(
        full_text(&v).contains("gives no intervals"),
        "{}",
        full_text(&v)
    );
    assert!(!full_text(&v).contains("±"), "{}", full_text(&v));
}

#[test]
fn answers_of_too_few_replications_are_tentative() {
    let stretch = |kind: &str, _| if kind == "none" { 1.0 } else { 2.0 };
    let warned = "With only 4 replications all of this is tentative.";
    assert!(verdict(4, stretch).sentence.starts_with(warned));
    assert!(!verdict(5, stretch).sentence.contains("tentative"));
}

/// Poisson makes every request 1.5 times as long. Learnt traffic leaves most unchanged and makes one in five three
/// times as long.
#[test]
fn the_sentence_covers_both_directions() {
    let v = verdict(10, |kind, rank| match kind {
        "poisson" => 1.5,
        "learnt" if rank > 0.8 => 3.0,
        _ => 1.0,
    });
    assert_eq!(v.parametric_enough, Some(Answer::No));
    let said = full_text(&v);
    let (_, enough) = said.split_once("is not enough: with learnt").unwrap();
    assert!(enough.contains("the median request takes 0.6"), "{enough}");
    assert!(enough.contains("takes 2.00 times"), "{enough}");
}

#[test]
fn every_background_is_judged_and_named() {
    let v = verdict(10, |kind, _| if kind == "poisson" { 21.0 } else { 1.0 });
    let of = |name: &str| {
        let found = v.backgrounds.iter().find(|b| b.background == name);
        found.unwrap().matters.unwrap()
    };
    assert_eq!((of("poisson"), of("learnt")), (Answer::Yes, Answer::No));
    assert_eq!(v.matters, Answer::Yes);
    for said in ["poisson matters: ", "learnt does not matter: median ×1.00"] {
        assert!(full_text(&v).contains(said), "{}", full_text(&v));
    }
}

#[test]
fn what_becomes_faster_is_not_within_the_margin() {
    let v = verdict(10, |kind, _| if kind == "none" { 1.0 } else { 0.62 });
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    assert!(!v.backgrounds[1].judged[0].worse());
    assert!(
        !full_text(&v).contains("does not matter"),
        "{}",
        full_text(&v)
    );
}

#[test]
fn few_replications_never_show_that_nothing_matters() {
    for n in 1..MIN_REPLICATIONS as u32 {
        let v = verdict(n, |_, _| 1.0);
        assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
        assert_eq!(v.parametric_enough, Some(Answer::Unclear));
    }
}

#[test]
fn too_few_requests_for_the_tail_do_not_show_that_nothing_matters() {
    let mut results = results(10, |_, _| 1.0);
    for run in &mut results.runs {
        run.observed.requests.truncate(3);
    }
    let v = Verdict::of(&results).foregrounds.remove(0);
    let times = v.backgrounds[1]
        .judged
        .iter()
        .filter(|j| j.measure == "time");
    assert_eq!(times.count(), 1);
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    // A difference of the median alone is an answer.
    for run in &mut results.runs {
        for r in run
            .observed
            .requests
            .iter_mut()
            .filter(|_| run.cell.background != "none")
        {
            r.last_byte = r.start + 3.0 * (r.last_byte - r.start);
        }
    }
    let then = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(then.matters, Answer::Yes, "{}", full_text(&then));
}

/// A program that always runs for one second, and completes a quarter of its work beside traffic.
#[test]
fn where_durations_are_constant_rates_are_judged() {
    let mut results = results(10, |_, _| 1.0);
    open::program(&mut results, &[]);
    for run in &mut results.runs {
        let alone = run.cell.background == "none";
        for request in &mut run.observed.requests {
            request.outcome = Outcome::Done;
            request.last_byte = request.start + 1.0;
            request.observed_until = request.last_byte;
            request.bytes = if alone { 4000 } else { 1000 };
        }
    }
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(v.matters, Answer::Yes);
    let goodput = &v.backgrounds[1].judged[0];
    assert_eq!(&*goodput.measure, "goodput");
    assert!((goodput.ratio.value - 0.25).abs() < 1e-9 && goodput.worse());
    assert!(
        full_text(&v).contains("goodput is 0.25 times"),
        "{}",
        full_text(&v)
    );
}

#[test]
fn without_a_background_of_kind_none_there_is_no_slowdown() {
    let mut results = results(5, |_, _| 1.0);
    results.experiment.background.remove(0);
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!((v.matters, v.reference.as_deref()), (Answer::Unclear, None));
    assert!(
        v.backgrounds
            .iter()
            .all(|b| b.quantiles.iter().all(|q| q.slowdown.is_none()))
    );
    assert!(
        full_text(&v).contains("cannot be told"),
        "{}",
        full_text(&v)
    );
}

/// A speed test makes a few small requests of constant duration, and streams the rest.
#[test]
fn a_program_that_streams_is_judged_by_what_it_carries() {
    let mut results = results(10, |_, _| 1.0);
    for run in &mut results.runs {
        let alone = run.cell.background == "none";
        run.observed.links[0].arrived[0] = 1_000_000;
        run.observed.links[0].departed[0] = if alone { 1_000_000 } else { 400_000 };
    }
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    assert!(
        full_text(&v).contains("goodput is 0.40 times"),
        "{}",
        full_text(&v)
    );
}

/// With many backgrounds the answer has one or two sentences, and each background has a line.
#[test]
fn many_backgrounds_are_a_short_answer_and_a_line_each() {
    let mut results = results(6, |kind, rank| match kind {
        "none" => 1.0,
        "poisson" => 1.02,
        _ => 1.5 + rank,
    });
    for i in 0..4 {
        let name = format!("other-{i}");
        let copies: Vec<RunResult> = results
            .of("web", "poisson")
            .map(|r| {
                let mut run = r.clone();
                run.cell.background = name.clone();
                run
            })
            .collect();
        results.runs.extend(copies);
        let text = experiment(6).replace("name = \"poisson\"", &format!("name = \"{name}\""));
        let other = file::read(&text, "x").unwrap().background.remove(1);
        results.experiment.background.push(other);
    }
    let v = Verdict::of(&results).foregrounds.remove(0);
    let [first, second, sure] = &v.paragraphs[..] else {
        panic!("{v:?}")
    };
    let whole = "Background traffic matters to web here: with learnt the p95 takes 2.4";
    assert!(first.text.starts_with(whole), "{}", first.text);
    let tally = " as long as without it. Of 6 backgrounds 1 matters and 5 do not.";
    assert!(first.text.ends_with(tally), "{}", first.text);
    assert_eq!(first.lines.len(), 6);
    assert!(first.lines[0].starts_with("learnt matters: median ×"));
    let line = "other-3 does not matter: request rate ×1.00 (1.00–1.00), p95 ×1.02 (1.02–1.02)";
    assert!(first.lines.iter().any(|l| l.starts_with("other-3")));
    assert!(first.lines[5].len() <= line.len(), "{}", first.lines[5]);
    assert_eq!(second.lines.len(), 5);
    assert!(sure.lines.is_empty());
    assert!(v.sentence.chars().count() < 600, "{}", v.sentence);
}

/// Two learnt backgrounds: Poisson is enough for only one of them, so the overall answer is no.
#[test]
fn parametric_traffic_is_enough_where_it_is_for_every_learnt_one() {
    let mut results = results(6, |kind, _| if kind == "none" { 1.0 } else { 1.5 });
    let copies = |of: &Results, from: &str, to: &str, factor: f64| -> Vec<RunResult> {
        of.of("web", from)
            .map(|r| {
                let mut run = r.clone();
                run.cell.background = to.into();
                for request in &mut run.observed.requests {
                    request.last_byte =
                        request.start + factor * (request.last_byte - request.start);
                    request.observed_until = request.last_byte;
                }
                run
            })
            .collect()
    };
    let worse = copies(&results, "learnt", "worse", 2.0);
    let its = copies(&results, "poisson", "its", 1.0);
    results.runs.extend(worse.into_iter().chain(its));
    let text = experiment(6)
        .replace("name = \"poisson\"", "name = \"its\"")
        .replace("name = \"learnt\"", "name = \"worse\"")
        .replace("match:learnt", "match:worse");
    let others = file::read(&text, "x").unwrap().background;
    results
        .experiment
        .background
        .extend(others.into_iter().skip(1));
    let v = Verdict::of(&results).foregrounds.remove(0);
    let each: Vec<Answer> = v.comparisons.iter().map(|c| c.enough).collect();
    assert_eq!(each, [Answer::Yes, Answer::No]);
    assert_eq!(v.parametric_enough, Some(Answer::No), "{}", full_text(&v));

    // Only what is said of the right ones is said.
    let tried = |learnt: &str, kind, enough| Comparison {
        learnt: learnt.into(),
        kind,
        enough,
        ..v.comparisons[0].clone()
    };
    use Answer::{No, Yes};
    let each_its_own = [
        tried("a", "poisson", Yes),
        tried("a", "cbr", No),
        tried("b", "poisson", No),
        tried("b", "cbr", Yes),
    ];
    assert!(words::kinds(&each_its_own, Yes).is_empty());
    let one_of_both = [
        tried("a", "poisson", Yes),
        tried("a", "cbr", Yes),
        tried("b", "cbr", Yes),
    ];
    assert_eq!(words::kinds(&one_of_both, Yes), ["CBR"]);
    let not_for_all = [tried("a", "cbr", No), tried("b", "poisson", Yes)];
    assert_eq!(words::kinds(&not_for_all, No), ["CBR"]);
    let one_is_open = [
        tried("a", "cbr", No),
        tried("b", "poisson", Answer::Unclear),
    ];
    assert_eq!(words::kinds(&one_is_open, No), ["CBR"]);
}

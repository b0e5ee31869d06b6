//! Questions that the runs cannot answer.

use super::*;
use swell_experiment::observe::MeasureSample;

#[test]
fn late_runs_decide_nothing() {
    let mut results = results(6, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    let mark = |of: &mut Results, replication: u32| {
        let run = of
            .runs
            .iter()
            .find(|r| r.cell.background == "poisson" && r.cell.replication == replication);
        let cell = run.unwrap().cell.clone();
        of.manifest
            .run_warnings
            .push(swell_experiment::store::RunWarning {
                cell,
                warning: Warning::warning(Code::EmulatorLate, "late"),
            });
    };
    mark(&mut results, 0);
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(v.backgrounds[1].judged[0].ratio.replications, 5);
    assert_eq!(v.backgrounds[1].matters, Some(Answer::Yes));
    mark(&mut results, 3);
    let then = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(then.backgrounds[1].matters, Some(Answer::Unclear));
    assert!(
        full_text(&then).contains("2 of 6 runs were late"),
        "{}",
        full_text(&then)
    );
    assert_eq!(then.backgrounds[2].matters, Some(Answer::Yes));
}

/// Each of two applications has its own link, and the traffic is on one of them.
#[test]
fn traffic_on_no_common_link_is_said_not_to_be_able_to_matter() {
    let of = |path: &str, run: &str| {
        let mut results = results(6, |_, _| 1.0);
        let links = "[[links]]\nname = \"a\"\nrate = \"20Mbit\"\n[[links]]\nname = \"b\"\nrate = \"20Mbit\"\n";
        let text = experiment(6)
            .replace("network = { rate = \"20Mbit\", rtt = \"40ms\" }\n", links)
            .replace("object = \"100kB\"", "object = \"100kB\"\npath = [\"a\"]\n[[foreground]]\nname = \"other\"\nkind = \"web\"\nobject = \"1kB\"\npath = [\"b\"]")
            .replace("rate = \"match:learnt\"", "rate = \"1Mbit\"")
            .replace("kind = \"poisson\"", &format!("kind = \"poisson\"\n{path}"))
            .replace("seed = 7", run);
        results.experiment = file::read(&text, "x").unwrap_or_else(|e| panic!("{e}"));
        let v = Verdict::of(&results).foregrounds.remove(0);
        let doubts = v.doubts.into_iter();
        let own = doubts.filter(|d| d.code == Code::NoCommonLink);
        own.map(|d| d.message).collect::<Vec<_>>()
    };
    let message = "web against poisson: poisson crosses no link of web, so it cannot matter there";
    assert_eq!(of("path = [\"b\"]", "seed = 7"), [message]);
    let none: [&str; 0] = [];
    assert_eq!(of("path = [\"a reversed\"]", "seed = 7"), none);
    // What slows the other application down gives this one no more, but on longer paths it might.
    assert_eq!(of("path = [\"b\"]", "seed = 7\ntogether = true"), none);
}

#[test]
fn a_missed_load_is_no_basis_for_an_answer() {
    let mut results = results(10, |_, _| 1.0);
    let measured = |down_bps, target_bps| swell_experiment::store::Measured {
        up_bps: 0.0,
        down_bps,
        down_bps_each: vec![down_bps],
        target_bps,
        sessions: Some(1.0),
        ..swell_experiment::store::Measured::default()
    };
    let manifest = &mut results.manifest.measured;
    manifest.insert("learnt".into(), measured(6e3, Some(8e6)));
    manifest.insert("poisson".into(), measured(8e6, None));
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(v.backgrounds[2].matters, Some(Answer::Unclear));
    assert_eq!(v.backgrounds[1].matters, Some(Answer::No));
    assert_eq!(v.parametric_enough, Some(Answer::Unclear));
    let said = "8.00 Mbit/s of learnt were requested and 0.0060 carried";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
    assert!(
        full_text(&v).contains("their loads differ"),
        "{}",
        full_text(&v)
    );
}

/// Sessions of 8 Mbit/s offered. A queue drops a quarter of what they send, so that 10.4 Mbit/s arrive at it.
#[test]
fn retransmissions_of_responsive_traffic_are_no_missed_load() {
    let mut results = results(10, |_, _| 1.0);
    let text =
        super::experiment(10).replace("rate = \"8Mbit\"", "rate = \"8Mbit\"\nload = \"offered\"");
    results.experiment.background = file::read(&text, "x").unwrap().background;
    let measured = swell_experiment::store::Measured {
        down_bps: 8e6,
        down_bps_each: vec![8e6],
        target_bps: Some(8e6),
        sessions: Some(1.0),
        ..swell_experiment::store::Measured::default()
    };
    results.manifest.measured.insert("learnt".into(), measured);
    let mut of = |arrived: f64, departed: f64| {
        for run in &mut results.runs {
            let link = &mut run.observed.links[0];
            let bytes = [arrived, departed].map(|bps| (bps / 8.0 * link.duration) as u64);
            [link.arrived[1], link.departed[1]] = bytes;
        }
        let v = Verdict::of(&results).foregrounds.remove(0);
        v.backgrounds[2].withheld.join("; ")
    };
    assert_eq!(of(10.4e6, 8.4e6), "");
    assert_eq!(of(10.4e6, 7.8e6), "");
    assert!(of(5e6, 5e6).contains("8.00 Mbit/s of learnt were requested down and 5.00 offered"));
    assert!(
        of(12.0e6, 11.0e6).contains("8.00 Mbit/s of learnt were requested down and 11.00 carried")
    );
}

/// Runs in which `learnt` carries `learnt` bits per second and Poisson packets carry 8 Mbit/s. Alone, both are said to
/// carry `alone`. The application carries 4 Mbit/s.
fn beside(learnt: f64, alone: f64) -> ForegroundVerdict {
    beside_load(learnt, alone, 4e6)
}

/// The same with another rate of the application.
fn beside_load(learnt: f64, alone: f64, own: f64) -> ForegroundVerdict {
    let mut results = results(10, |_, _| 1.0);
    for name in ["learnt", "poisson"] {
        let measured = swell_experiment::store::Measured {
            down_bps: alone,
            down_bps_each: vec![alone],
            ..swell_experiment::store::Measured::default()
        };
        results.manifest.measured.insert(name.into(), measured);
    }
    for run in &mut results.runs {
        let link = &mut run.observed.links[0];
        if run.cell.background == "learnt" {
            link.departed[1] = (learnt / 8.0 * link.duration) as u64;
        }
        link.arrived[1] = link.departed[1];
        link.departed[0] = (own / 8.0 * link.duration) as u64;
    }
    Verdict::of(&results).foregrounds.remove(0)
}

/// Nothing carries more because it gives way, so what was measured alone is wrong.
#[test]
fn traffic_that_carries_more_than_alone_is_no_basis_for_an_answer() {
    let said = "learnt was to carry 8.00 Mbit/s down, its rate alone, and carried 10.40";
    let v = beside(10.4e6, 8e6);
    assert_eq!(v.backgrounds[2].matters, Some(Answer::Unclear));
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
    assert_eq!(v.comparisons[0].withheld, [said]);
    assert_eq!(v.parametric_enough, Some(Answer::Unclear));
    // A fifth more may be chance.
    let near = beside(9.6e6, 8e6);
    assert_eq!(near.backgrounds[2].matters, Some(Answer::No));
    assert!(near.comparisons[0].withheld.is_empty());
}

#[test]
fn only_what_carries_less_than_alone_gives_way() {
    let yields = |v: &ForegroundVerdict| v.doubts.iter().any(|d| d.code == Code::LoadYields);
    // The application fills the rest of the link of 20 Mbit/s.
    let beside_full = |learnt, alone| beside_load(learnt, alone, 12e6);
    assert!(yields(&beside_full(6.5e6, 8e6)));
    // It carries more.
    assert!(!yields(&beside_full(9.6e6, 8e6)));
    // It carries less than the packets do, and still what it carries alone.
    assert!(!yields(&beside_full(6.5e6, 6.5e6)));
    // It carries less by chance: the link has room.
    assert!(!yields(&beside_load(6.5e6, 8e6, 11e6)));
    assert!(!yields(&beside(6.5e6, 8e6)));
    // The application is too small to have displaced 1.5 Mbit/s.
    assert!(!yields(&beside_load(6.5e6, 8e6, 0.6e6)));
}

/// Runs with a late one beside learnt traffic, so that four are left, and with unequal slowdowns beside Poisson packets.
#[test]
fn a_larger_change_that_cannot_count_is_named() {
    let said = |learnt: f64| {
        let mut results = results(5, |kind, _| match kind {
            "none" => 1.0,
            "poisson" => 1.08,
            _ => learnt,
        });
        for run in results.runs.iter_mut() {
            if run.cell.background == "poisson" {
                let factor = [0.9, 1.25, 1.0, 1.2, 0.95][run.cell.replication as usize];
                for r in &mut run.observed.requests {
                    r.last_byte = r.start + (r.last_byte - r.start) * factor;
                }
            }
        }
        let late = results.of("web", "learnt").next().unwrap().cell.clone();
        results
            .manifest
            .run_warnings
            .push(swell_experiment::store::RunWarning {
                cell: late,
                warning: Warning::warning(Code::EmulatorLate, "late"),
            });
        let v = Verdict::of(&results).foregrounds.remove(0);
        assert_eq!(v.matters, Answer::Unclear);
        v.paragraphs[0].text.clone()
    };
    let text = said(3.0);
    assert!(
        text.contains("the largest change is with poisson"),
        "{text}"
    );
    let named = "A larger one is left out: learnt, where the median request takes 3";
    let why = "(1 of 5 runs were late, and 4 are too few)";
    assert!(text.contains(named) && text.contains(why), "{text}");
    let small = said(1.0);
    assert!(
        small.contains("the largest change is with poisson"),
        "{small}"
    );
    assert!(!small.contains("left out"), "{small}");
}

/// One request in a run is too few for a percentile of their times. That is no reason to leave out what the program reports.
#[test]
fn too_few_requests_do_not_hide_another_measure() {
    let mut results = results(6, |_, _| 1.0);
    super::open::program(&mut results, &["lag"]);
    let file = &mut results.experiment.background;
    for name in ["other", "third", "fourth"] {
        let text = super::experiment(6).replace("\"poisson\"\nkind", &format!("\"{name}\"\nkind"));
        file.push(file::read(&text, "x").unwrap().background.remove(1));
    }
    let copies: Vec<_> = ["other", "third", "fourth"]
        .iter()
        .flat_map(|name| {
            let of = results
                .runs
                .iter()
                .filter(|r| r.cell.background == "poisson");
            let named = |mut run: RunResult| {
                run.cell.background = (*name).into();
                run
            };
            of.cloned().map(named).collect::<Vec<_>>()
        })
        .collect();
    results.runs.extend(copies);
    for run in &mut results.runs {
        run.observed.requests.truncate(1);
        let spread = [0.4, 0.7, 1.0, 1.4, 2.0, 3.0][run.cell.replication as usize % 6];
        let value = match &*run.cell.background {
            "none" => 1.0,
            "learnt" => 3.0 * spread,
            _ => 1.1,
        };
        run.observed.measures = vec![MeasureSample {
            measure: "lag".into(),
            value,
            at: 3.0,
        }];
    }
    let v = Verdict::of(&results).foregrounds.remove(0);
    let text = full_text(&v);
    assert!(
        text.contains("the largest change is with learnt, where lag is 3"),
        "{text}"
    );
    assert!(!text.contains("left out"), "{text}");
}

/// Nothing finishes anywhere, or only without traffic.
#[test]
fn what_does_not_finish_without_traffic_either_is_no_evidence() {
    let said = |also_alone: bool| {
        let mut results = results(6, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
        for run in &mut results.runs {
            if run.cell.background != "none" || also_alone {
                for r in &mut run.observed.requests {
                    r.outcome = Outcome::Unfinished;
                }
            }
        }
        full_text(&Verdict::of(&results).foregrounds.remove(0))
    };
    let text = said(false);
    assert!(text.contains("not one of 600 requests finished"), "{text}");
    let both = said(true);
    assert!(!both.contains("not one of"), "{both}");
}

/// A program of which runs were timed, and which sent packets in `sent` of its 30 runs.
#[test]
fn a_program_that_sends_nothing_is_told_first() {
    let judged = |sent: usize| {
        let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
        super::open::program(&mut results, &[]);
        for (i, run) in results.runs.iter_mut().enumerate() {
            for r in &mut run.observed.requests {
                (r.bytes, r.first_byte) = (0, f64::NAN);
            }
            run.observed.links[0].arrived_packets[0] = u64::from(i < sent);
        }
        Verdict::of(&results).foregrounds.remove(0)
    };
    let v = judged(0);
    assert_eq!(v.matters, Answer::Unclear);
    let said = "Whether background traffic matters to web is not settled: web sent no packet in any run, so nothing of the network was measured.";
    assert_eq!(v.paragraphs[0].text, said);
    assert_eq!(v.parametric_enough, Some(Answer::Unclear));
    assert_eq!(judged(1).matters, Answer::Yes);
}

#[test]
fn an_application_that_fails_without_background_is_not_judged() {
    let mut results = results(10, |_, _| 1.0);
    for request in results
        .runs
        .iter_mut()
        .flat_map(|r| &mut r.observed.requests)
    {
        request.outcome = Outcome::Failed;
    }
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(v.matters, Answer::Unclear);
    assert!(
        full_text(&v).contains("100 % of the requests fail"),
        "{}",
        full_text(&v)
    );
    // Without requests there is no doubt about them.
    for run in &mut results.runs {
        run.observed.requests.clear();
    }
    let then = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(then.matters, Answer::Unclear);
    assert!(
        full_text(&then).contains("nothing was measured"),
        "{}",
        full_text(&then)
    );
}

/// Results of another foreground called `web`, with the same values of its measures in every run.
fn rated(foreground: &str, values: &[(&str, f64)]) -> Results {
    let mut results = results(10, |_, _| 1.0);
    let text = experiment(10).replace("kind = \"web\"\nobject = \"100kB\"", foreground);
    // Long enough for a viewing.
    let text = text.replace("22s", "100s");
    results.experiment = file::read(&text, "x").unwrap();
    for run in &mut results.runs {
        run.observed.requests.clear();
        run.observed.measures = values
            .iter()
            .map(|&(measure, value)| MeasureSample {
                measure: measure.into(),
                value,
                at: 5.0,
            })
            .collect();
    }
    results
}

#[test]
fn a_kind_that_rates_itself_fails_by_its_own_measures() {
    let dash = "kind = \"dash\"\nlength = \"30s\"";
    let stream = "kind = \"stream\"\nlength = \"20s\"";
    let voice = "kind = \"voice\"";
    for (kind, values, fails) in [
        (dash, [("stall time", 6.74), ("start-up", 5.0)], true),
        (dash, [("stall time", 2.0), ("start-up", 5.0)], false),
        (dash, [("stall time", 0.0), ("start-up", 40.0)], true),
        (
            stream,
            [("lost frame share", 0.66), ("stall time", 0.1)],
            true,
        ),
        (
            stream,
            [("lost frame share", 0.05), ("stall time", 0.1)],
            false,
        ),
        (voice, [("MOS", 1.4), ("unplayed", 0.05)], true),
        (voice, [("MOS", 2.9), ("unplayed", 0.2)], true),
        (voice, [("MOS", 2.9), ("unplayed", 0.05)], false),
    ] {
        let v = Verdict::of(&rated(kind, &values)).foregrounds.remove(0);
        assert_eq!(v.application_failed, fails, "{values:?}: {}", v.sentence);
        let withheld = v.backgrounds[1].withheld.iter();
        let said = withheld.filter(|r| r.contains("is failure")).count();
        assert_eq!(said, usize::from(fails), "{values:?}: {}", v.sentence);
    }
}

#[test]
fn a_probe_without_an_estimate_says_why() {
    let probe = "kind = \"probe\"\ntool = \"pathload\"";
    let v = Verdict::of(&rated(probe, &[])).foregrounds.remove(0);
    let said = full_text(&v);
    assert!(
        said.contains("error was reported in 0 of 20 runs (the run ended before an estimate did"),
        "{said}"
    );
}

#[test]
fn pages_that_are_given_up_have_failed() {
    for every in [3, 4] {
        let mut results = results(10, |_, _| 1.0);
        let page = format!("kind = \"page\"\nevery = \"{every}s\"");
        let text = experiment(10).replace("kind = \"web\"\nobject = \"100kB\"", &page);
        results.experiment = file::read(&text, "x").unwrap();
        let requests = results.runs.iter_mut();
        for (i, r) in requests.flat_map(|r| &mut r.observed.requests).enumerate() {
            if i % 5 == 0 {
                r.outcome = Outcome::Unfinished;
                r.observed_until = r.start + 3.0;
            }
        }
        let v = Verdict::of(&results).foregrounds.remove(0);
        // Those that the end of a run cuts off have not been given up.
        assert_eq!(v.application_failed, every == 3, "{}", v.sentence);
        let said = v
            .sentence
            .contains("20 % of the requests fail or are given up");
        assert_eq!(said, every == 3, "{}", v.sentence);
    }
}

#[test]
fn few_replications_are_doubted_once() {
    let v = verdict(2, |_, _| 1.0);
    assert_eq!(
        v.doubts
            .iter()
            .filter(|d| d.code == Code::FewReplications)
            .count(),
        1
    );
    assert!(
        full_text(&v).contains("2 replications"),
        "{}",
        full_text(&v)
    );
    assert!(v.sureness.warnings > 0);
}

/// What is the same against several backgrounds and of several percentiles is one sentence, and so is what differs in
/// its numbers only.
#[test]
fn a_code_is_one_doubt_of_a_foreground() {
    let mut results = results(5, |_, _| 1.0);
    for run in &mut results.runs {
        run.observed.requests.truncate(2);
        for request in &mut run.observed.requests {
            request.outcome = Outcome::Unfinished;
        }
    }
    let with = |code: Code, of: &Results| -> Vec<String> {
        let v = Verdict::of(of).foregrounds.remove(0);
        let own = v.doubts.into_iter().filter(|d| d.code == code);
        own.map(|d| d.message).collect()
    };
    let unknown = with(Code::CensoredQuantile, &results);
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    assert!(unknown[0].contains("p50, p90, p95: not identifiable, 10 of 10 requests"));
    let few = with(Code::FewSamples, &results);
    assert_eq!(few.len(), 1, "{few:?}");
    assert_eq!(few[0].matches("10 requests are few").count(), 1);
    for run in &mut results.runs {
        if run.cell.background == "none" {
            run.observed.requests.truncate(1);
        }
    }
    let apart = with(Code::FewSamples, &results);
    assert_eq!(apart.len(), 1, "{apart:?}");
    assert!(apart[0].contains("against none: 5 requests") && apart[0].contains(": 10 requests"));
    assert_eq!(apart[0].matches("are wanted beyond each").count(), 1);
}

/// Where runs fell out for a background, the doubt and the text have the same number.
#[test]
fn few_replications_have_one_number() {
    let mut results = results(4, |_, _| 1.0);
    let cell = results.runs.iter().find(|r| r.cell.background != "none");
    let cell = cell.unwrap().cell.clone();
    let name = cell.background.clone();
    let warning = Warning::warning(Code::EmulatorLate, "late");
    let warnings = &mut results.manifest.run_warnings;
    warnings.push(swell_experiment::store::RunWarning { cell, warning });
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert!(full_text(&v).starts_with("With only 3 replications"));
    let few = v.doubts.iter().find(|d| d.code == Code::FewReplications);
    let message = &few.unwrap().message;
    assert!(
        message.starts_with(&format!("3 of 4 replications with {name}: ")),
        "{message}"
    );
}

#[test]
fn doubts_of_runs_are_told_once_with_their_number() {
    let mut results = results(2, |_, _| 1.0);
    for run in results.runs.iter().take(2) {
        results
            .manifest
            .run_warnings
            .push(swell_experiment::store::RunWarning {
                cell: run.cell.clone(),
                warning: Warning::note("odd".into(), "something odd"),
            });
    }
    results
        .manifest
        .warnings
        .push(Warning::warning("heavy".into(), "first"));
    let doubts = Verdict::of(&results).doubts;
    let messages: Vec<&str> = doubts.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages, ["first", "something odd (2 of 6 runs)"]);
}

/// Tables, thresholds and pictures take the times of the runs that decide.
#[test]
fn late_runs_are_in_no_time_and_no_count() {
    // The late runs beside Poisson traffic take ten times as long, and some of their requests fail.
    let mut results = results(20, |_, _| 1.0);
    let late = |run: &RunResult| run.cell.background == "poisson" && run.cell.replication < 12;
    for run in results.runs.iter_mut().filter(|run| late(run)) {
        for r in &mut run.observed.requests {
            r.last_byte = r.start + 10.0 * (r.last_byte - r.start);
        }
        run.observed.requests[0].outcome = Outcome::Failed;
        run.observed.requests[1].outcome = Outcome::Unfinished;
        let warning = Warning::warning(Code::EmulatorLate, "late");
        let cell = run.cell.clone();
        let marked = swell_experiment::store::RunWarning { cell, warning };
        results.manifest.run_warnings.push(marked);
    }
    let mut valid = results.clone();
    valid.runs.retain(|run| !late(run));
    let of = |of: &Results| Verdict::of(of).foregrounds.remove(0).backgrounds.remove(1);
    let [with, without] = [&results, &valid].map(of);
    let times = |b: &BackgroundVerdict| b.quantiles.iter().map(|q| q.seconds).collect::<Vec<_>>();
    assert_eq!(times(&with), times(&without));
    assert_eq!(with.quantiles[1].seconds.unwrap().replications, 8);
    assert_eq!((with.requests, with.unfinished, with.failed), (800, 0, 0));
    assert_eq!(with.judged[0].with, with.quantiles[1].seconds);
}

/// Nothing is known of a background whose runs were all late.
#[test]
fn without_a_valid_run_there_are_no_times() {
    let mut results = results(6, |_, _| 1.0);
    let own = results
        .runs
        .iter()
        .filter(|r| r.cell.background == "poisson");
    let warning = |run: &RunResult| swell_experiment::store::RunWarning {
        cell: run.cell.clone(),
        warning: Warning::warning(Code::EmulatorLate, "late"),
    };
    results.manifest.run_warnings = own.map(warning).collect();
    let v = Verdict::of(&results).foregrounds.remove(0);
    let poisson = &v.backgrounds[1];
    assert!(
        poisson
            .quantiles
            .iter()
            .all(|q| q.seconds.is_none() && q.slowdown.is_none())
    );
    assert_eq!((poisson.requests, poisson.replications), (0, 0));
    assert_eq!(poisson.withheld, ["all runs were late"]);
}

/// A doubt counts the runs that have it, however often a run says it; another message is another doubt.
#[test]
fn doubts_about_runs_are_counted_by_message() {
    let mut results = results(2, |_, _| 1.0);
    let cells: Vec<_> = results.runs.iter().map(|r| r.cell.clone()).collect();
    let of = |i: usize, text: &str| swell_experiment::store::RunWarning {
        cell: cells[i].clone(),
        warning: Warning::warning(Code::InputNotRead, text),
    };
    let said = [of(0, "one"), of(0, "one"), of(3, "one"), of(1, "two")];
    results.manifest.run_warnings = said.to_vec();
    let found = doubts_of_runs(&results);
    let counts: Vec<_> = found
        .iter()
        .map(|(w, runs)| (&*w.message, runs.len()))
        .collect();
    assert_eq!(counts, [("one", 2), ("two", 1)]);
    let general = Verdict::of(&results).doubts;
    assert!(general.iter().any(|d| d.message == "one (2 of 6 runs)"));
}

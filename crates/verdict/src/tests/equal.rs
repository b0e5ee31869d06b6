//! Equal figures that do not show that nothing differs.

use super::*;
use swell_experiment::measure::Better;
use swell_experiment::observe::Wait;
use swell_experiment::store::Measured;

fn judged(results: &Results) -> ForegroundVerdict {
    Verdict::of(results).foregrounds.remove(0)
}

/// Learnt traffic slows down the first half of each run by 8 % less than Poisson traffic does, and the second half by 8
/// % more. Percentiles over whole runs are equal.
#[test]
fn a_difference_that_changes_sign_during_the_runs_leaves_it_open() {
    let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    assert_eq!(judged(&results).parametric_enough, Some(Answer::Yes));
    for run in &mut results.runs {
        if run.cell.background == "learnt" {
            for r in &mut run.observed.requests {
                let factor = if r.index < 50 { 0.92 } else { 1.08 };
                r.last_byte = r.start + factor * (r.last_byte - r.start);
                r.observed_until = r.last_byte;
            }
        }
    }
    results.experiment.run.suite = Some("learnt".into());
    let v = judged(&results);
    let c = &v.comparisons[0];
    // The figures alone would say that they are equal.
    assert!(c.judged.iter().all(|j| j.equal), "{:?}", c.judged);
    assert_eq!(c.enough, Answer::Unclear);
    let said = "what learnt does to request times is not steady";
    assert!(c.open[0].contains(said), "{:?}", c.open);
    let suite = v.suite.unwrap();
    let poisson = &suite.candidates[1];
    assert_eq!(poisson.sufficient, Answer::Unclear);
    assert!(poisson.open[0].contains(said), "{:?}", poisson.open);
    assert_eq!(suite.cheapest, None);
}

/// Both carry 16 of 20 Mbit/s alone. Beside the application learnt traffic carries 8, and Poisson traffic still 16.
#[test]
fn learnt_traffic_that_gives_way_though_there_is_room_leaves_it_open() {
    let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    let measured = Measured {
        down_bps: 16e6,
        down_bps_each: vec![16e6],
        sessions: Some(2.0),
        ..Measured::default()
    };
    results.manifest.measured.insert("learnt".into(), measured);
    for run in &mut results.runs {
        if run.cell.background == "poisson" {
            let link = &mut run.observed.links[0];
            (link.arrived[1], link.departed[1]) = (40_000_000, 40_000_000);
        }
    }
    let v = judged(&results);
    let c = &v.comparisons[0];
    assert!(c.withheld.is_empty(), "{:?}", c.withheld);
    assert!(c.judged.iter().all(|j| j.equal), "{:?}", c.judged);
    assert_eq!(
        c.open,
        ["learnt carried 8.00 of 16.00 Mbit/s down beside it, though the link had room"]
    );
    assert_eq!(c.enough, Answer::Unclear);
}

/// A link of 20 Mbit/s becomes slower during the runs, and could carry 8.5 Mbit/s on average: 8 Mbit/s fill it.
#[test]
fn a_link_that_changes_is_full_at_what_it_could_carry() {
    let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    let measured = Measured {
        down_bps: 16e6,
        down_bps_each: vec![16e6],
        sessions: Some(2.0),
        ..Measured::default()
    };
    results.manifest.measured.insert("learnt".into(), measured);
    let had_room = |of: &Results| {
        let open = judged(of).comparisons.remove(0).open;
        open.iter().any(|o| o.contains("though the link had room"))
    };
    assert!(had_room(&results));
    for run in &mut results.runs {
        run.observed.links[0].rate = 8.5e6;
    }
    assert!(!had_room(&results));
}

/// Results of a foreground that sends 1 Mbit/s whatever happens, and loses nothing. `waited` gives the mean wait of its
/// packets, seconds, where that is known.
fn packets(waited: impl Fn(&str) -> Option<f64>) -> Results {
    let mut results = results(10, |_, _| 1.0);
    let text = "name = \"x\"\n[network]\nrate = \"20Mbit\"\n[[foreground]]\nname = \"web\"\nkind = \"cbr\"\nrate = \"1Mbit\"\n\
                [[background]]\nname = \"none\"\nkind = \"none\"\n[run]\nduration = \"80s\"\n";
    results.experiment.foreground = file::read(text, "x").unwrap().foreground;
    for run in &mut results.runs {
        let observed = &mut run.observed;
        observed.requests.clear();
        let link = &mut observed.links[0];
        (link.arrived[0], link.departed[0], link.arrived_packets[0]) =
            (2_500_000, 2_500_000, 2_000);
        observed.waits = waited(&run.cell.background)
            .map(|mean| wait(1, mean))
            .into_iter()
            .collect();
    }
    results
}

/// 2000 packets that waited `mean` seconds on average in one direction of the bottleneck.
fn wait(direction: u8, mean: f64) -> Wait {
    Wait {
        link: "bottleneck".into(),
        direction,
        traffic: "foreground".into(),
        from: 0.0,
        to: 1.0,
        packets: 2_000,
        bytes: 2_500_000,
        squares: 0.0,
        waited: 2_000.0 * mean,
    }
}

#[test]
fn packets_whose_waits_are_unknown_are_not_called_unharmed() {
    let v = judged(&packets(|_| None));
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    let said = "delay was reported in 0 of 20 runs";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
    assert_eq!(judged(&packets(|_| Some(0.01))).matters, Answer::No);
    let slower = |background: &str| Some(if background == "none" { 0.01 } else { 0.1 });
    assert_eq!(judged(&packets(slower)).matters, Answer::Yes);
}

/// On an idle link packets do not wait at all. The path takes 20 ms one way.
#[test]
fn waits_count_beside_the_time_that_the_path_takes_anyway() {
    let with =
        |wait: f64| move |background: &str| Some(if background == "none" { 0.0 } else { wait });
    assert_eq!(judged(&packets(with(50e-6))).matters, Answer::No);
    let v = judged(&packets(with(0.02)));
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    let delay = v.backgrounds[1]
        .judged
        .iter()
        .find(|j| j.measure == "delay");
    let delay = delay.unwrap();
    assert!(
        (delay.without.unwrap().value - 0.02).abs() < 1e-9,
        "{delay:?}"
    );
    assert!((delay.with.unwrap().value - 0.04).abs() < 1e-9, "{delay:?}");
}

/// One packet in twelve waits 20 ms, the others not at all. That adds 8 % to the mean of 20 ms, and doubles the p95.
#[test]
fn the_few_packets_that_wait_long_count() {
    let mut results = packets(|_| Some(0.0));
    for run in &mut results.runs {
        if run.cell.background != "none" {
            let mut late = wait(1, 0.02);
            late.packets = 167;
            late.waited = 167.0 * 0.02;
            (late.from, late.to) = (0.018, 0.021);
            run.observed.waits[0].packets -= late.packets;
            run.observed.waits.insert(0, late);
        }
    }
    let v = judged(&results);
    let delays = v.backgrounds[1].judged.iter();
    let delays: Vec<f64> = delays
        .filter(|j| j.measure == "delay")
        .map(|j| j.ratio.value)
        .collect();
    assert_eq!(delays.len(), 3, "{delays:?}");
    for (found, truth) in delays.iter().zip([1.083, 1.0, 2.0]) {
        assert!((found / truth - 1.0).abs() < 0.01, "{delays:?}");
    }
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
}

#[test]
fn few_packets_do_not_show_that_none_is_late() {
    let mut results = packets(|_| Some(0.0));
    for run in &mut results.runs {
        run.observed.links[0].arrived_packets[0] = 9;
    }
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear);
    let said = "90 packets are too few for the p90 of delay, which wants 100";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
}

/// As many packets flow up as down, as in a replay of a call. Only those that flow up wait, or are lost.
#[test]
fn both_directions_of_an_application_count() {
    let both = |waits: f64, lost: u64| {
        let mut results = packets(|_| Some(0.0));
        for run in &mut results.runs {
            let beside = run.cell.background != "none";
            let mut up = run.observed.links[0].clone();
            up.direction = 0;
            up.dropped[0] = if beside { lost } else { 0 };
            run.observed.links.push(up);
            let mean = if beside { waits } else { 0.0 };
            run.observed.waits.push(wait(0, mean));
        }
        judged(&results).matters
    };
    assert_eq!(both(0.0, 0), Answer::No);
    assert_eq!(both(0.05, 0), Answer::Yes);
    assert_eq!(both(0.0, 100), Answer::Yes);
}

/// In each run nearly as many bytes flow up as down, and chance decides which are more. What is judged is the same
/// direction in all runs.
#[test]
fn chance_does_not_choose_the_direction_that_is_judged() {
    let mut results = packets(|_| Some(0.0));
    for run in &mut results.runs {
        let mut up = run.observed.links[0].clone();
        (up.direction, up.departed[0]) = (0, 1_000_000);
        up.arrived[0] = 2_500_000 - 1_000 + 1_500 * u64::from(run.cell.replication % 2);
        run.observed.links.push(up);
        run.observed.waits.push(wait(0, 0.0));
    }
    let v = judged(&results);
    let goodput = &v.backgrounds[1].judged[0];
    assert_eq!(goodput.measure, "goodput");
    // 2.5 MB in 20 s: down, in every run.
    assert!(
        (goodput.with.unwrap().value - 1e6).abs() < 1.0,
        "{goodput:?}"
    );
    assert_eq!(v.matters, Answer::No);
}

#[test]
fn an_application_that_carries_nothing_anywhere_is_not_called_unharmed() {
    let mut results = packets(|_| Some(0.01));
    for run in &mut results.runs {
        let link = &mut run.observed.links[0];
        (link.arrived[0], link.departed[0], link.arrived_packets[0]) = (0, 0, 0);
    }
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear);
    let said = "goodput is zero in every run";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
}

/// Poisson traffic cuts off a third of the requests, learnt traffic none.
#[test]
fn more_unfinished_requests_on_either_side_leave_a_comparison_open() {
    let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    for run in &mut results.runs {
        if run.cell.background == "poisson" {
            for r in run
                .observed
                .requests
                .iter_mut()
                .filter(|r| r.index % 3 == 0)
            {
                r.outcome = Outcome::Unfinished;
            }
        }
    }
    let v = judged(&results);
    let open = &v.comparisons[0].open;
    let said = "requests did not finish with it";
    assert!(open.iter().any(|o| o.contains(said)), "{open:?}");
    assert_ne!(v.parametric_enough, Some(Answer::Yes));
}

/// Multiplies the request times of `run`.
fn stretch(run: &mut RunResult, factor: impl Fn(u32) -> f64) {
    for r in &mut run.observed.requests {
        r.last_byte = r.start + factor(r.index) * (r.last_byte - r.start);
        r.observed_until = r.last_byte;
    }
}

/// Learnt traffic slows down as Poisson traffic does on average, and by up to `noise` more or less in each run.
fn nearly_equal(noise: f64) -> Comparison {
    let mut results = results(8, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    for run in &mut results.runs {
        if run.cell.background == "learnt" {
            let sign = if run.cell.replication % 2 == 0 {
                1.0
            } else {
                -1.0
            };
            stretch(run, |_| f64::exp(sign * noise));
        }
    }
    judged(&results).comparisons.remove(0)
}

/// A parametric background that alone would be called enough, with a p-value of 0.036, is one of two that were tried.
#[test]
fn the_more_candidates_the_more_evidence_is_wanted() {
    let (near, mut far) = (nearly_equal(0.12), nearly_equal(0.5));
    assert_eq!(near.enough, Answer::Yes);
    assert_eq!(far.enough, Answer::Unclear);
    far.parametric = "cbr".into();
    let mut both = [near.clone(), far.clone()];
    decide(&mut both);
    assert_eq!(both[0].enough, Answer::Unclear);
    // A candidate for other traffic is another question.
    far.learnt = "other".into();
    let mut apart = [near, far];
    decide(&mut apart);
    assert_eq!(apart[0].enough, Answer::Yes);
}

/// Nine requests in each run: four in its second half, which are too few for a median.
#[test]
fn a_drift_is_seen_though_each_run_has_few_requests() {
    let mut results = results(20, |_, _| 1.0);
    for run in &mut results.runs {
        run.observed.requests.retain(|r| r.index % 12 == 0);
        if run.cell.background == "learnt" {
            stretch(run, |i| if i < 50 { 0.8 } else { 1.25 });
        }
    }
    let v = judged(&results);
    let said = "what learnt does to request times is not steady";
    let open = &v.backgrounds[2].open;
    assert!(open.iter().any(|o| o.contains(said)), "{open:?}");
}

#[test]
fn runs_whose_ratio_changes_are_not_called_equal() {
    let made = || {
        let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
        results.manifest.cells = results.runs.iter().map(|r| r.cell.clone()).collect();
        results
    };
    let (first, mut second) = (made(), made());
    let compared = |with: &Results| RunComparison::of([&first, with], ["a", "b"]);
    assert_eq!(compared(&second).differs, Answer::No);
    for run in &mut second.runs {
        if run.cell.background == "learnt" {
            stretch(run, |i| if i < 50 { 0.92 } else { 1.08 });
        }
    }
    let c = compared(&second);
    let learnt = c.conditions.iter().find(|c| c.background == "learnt");
    let learnt = learnt.unwrap();
    assert!(learnt.judged.iter().all(|j| j.equal), "{:?}", learnt.judged);
    assert!(
        learnt.open[0].contains("is not steady"),
        "{:?}",
        learnt.open
    );
    assert_eq!(
        (learnt.differs, c.differs),
        (Answer::Unclear, Answer::Unclear)
    );
}

/// First bytes are known to the end of their tail. The slowest fifth of the pages never finishes.
#[test]
fn each_measure_needs_its_own_tail() {
    let mut results = super::open::built_in("page", 5);
    for run in &mut results.runs {
        for r in &mut run.observed.requests {
            r.first_byte = r.start + 0.01;
            if r.last_byte - r.start > 0.09 {
                r.outcome = Outcome::Unfinished;
            }
        }
    }
    let v = judged(&results);
    let said = "p90 of time is beyond what was watched";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
    assert_eq!(v.matters, Answer::Unclear);
}

/// Most of the time is that of one long request. Another one fails at once where there is traffic.
#[test]
fn a_request_that_fails_at_once_is_not_a_fast_one() {
    let mut results = results(6, |_, _| 1.0);
    super::open::program(&mut results, &[]);
    for run in &mut results.runs {
        run.observed.requests.truncate(31);
        let last = &mut run.observed.requests[30];
        last.last_byte = last.start + 6.0;
        last.observed_until = last.last_byte;
        if run.cell.background != "none" {
            let first = &mut run.observed.requests[0];
            (first.outcome, first.observed_until) = (Outcome::Failed, first.start);
        }
    }
    let v = judged(&results);
    let judged = &v.backgrounds[2].judged;
    let mean = judged.iter().find(|j| j.measure == "mean time").unwrap();
    assert!(mean.ratio.value > 1.0, "{:?}", mean.ratio);
}

/// Of each measure the percentile nearest to its bad end counts, and of all measures the one that is known least.
#[test]
fn how_far_a_tail_was_judged_is_told_of_the_measure_known_least() {
    let all = judged(&results(10, |_, _| 1.0)).backgrounds[1]
        .judged
        .clone();
    let at = |measure: &str, better: Better, p: f64| {
        let mut made = all[0].clone();
        made.measure = measure.into();
        (made.better, made.statistic) = (better, Statistic::Percentile(p));
        made
    };
    let told = validity::judged_up_to;
    assert_eq!(told(&all), "");
    assert_eq!(told(&all[..1]), " up to p50");
    let mut both: Vec<Judgement> = all.clone();
    for judgement in &mut both {
        judgement.measure = "first byte".into();
    }
    assert_eq!(told(&both), "");
    both.push(all[0].clone());
    assert_eq!(told(&both), " up to p50 of time");
    let bitrate = |p| at("bitrate", Better::Higher, p);
    assert_eq!(told(&[bitrate(0.5), bitrate(0.1)]), " down to p10");
    assert_eq!(told(&[bitrate(0.5), bitrate(0.1), bitrate(0.05)]), "");
}

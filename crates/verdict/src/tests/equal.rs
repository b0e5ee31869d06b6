//! Equal figures that do not show that nothing differs.

use super::*;
use crate::parametric::decide;
use swell_base::Direction;
use swell_experiment::measure::Better;
use swell_experiment::observe::Delay;
use swell_experiment::store::{Measured, RunWarning};

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

fn learnt_carries_16_alone(results: &mut Results) {
    let measured = Measured {
        down_bps: 16e6,
        down_bps_each: vec![16e6],
        sessions: Some(2.0),
        ..Measured::default()
    };
    results.manifest.measured.insert("learnt".into(), measured);
}

/// Both carry 16 of 20 Mbit/s alone. Beside the application learnt traffic carries 8, and Poisson traffic still 16.
#[test]
fn learnt_traffic_that_gives_way_though_there_is_room_leaves_it_open() {
    let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    learnt_carries_16_alone(&mut results);
    for run in &mut results.runs {
        if run.cell.background == "poisson" {
            let link = &mut run.observed.links[0];
            (link.arrived[1], link.departed[1]) = (40_000_000, 40_000_000);
        }
    }
    let v = judged(&results);
    let c = &v.comparisons[0];
    assert!(c.judged.iter().all(|j| j.equal), "{:?}", c.judged);
    let said = "learnt carried 8.00 of 16.00 Mbit/s down beside it, though the link had room";
    assert_eq!(c.withheld, [said]);
    assert_eq!(c.enough, Answer::Unclear);
    // Nor is it shown that Poisson traffic is not enough: the loads were not equal.
    for run in &mut results.runs {
        if run.cell.background == "poisson" {
            stretch(run, |_| 2.0);
        }
    }
    let apart = judged(&results).comparisons.remove(0);
    assert!(apart.judged.iter().any(Judgement::differs));
    assert_eq!(apart.enough, Answer::Unclear);
}

/// A link of 20 Mbit/s becomes slower during the runs, and could carry 8.5 Mbit/s on average: 8 Mbit/s fill it.
#[test]
fn a_link_that_changes_is_full_at_what_it_could_carry() {
    let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    learnt_carries_16_alone(&mut results);
    let had_room = |of: &Results| {
        let reasons = judged(of).comparisons.remove(0).withheld;
        reasons
            .iter()
            .any(|r| r.contains("though the link had room"))
    };
    assert!(had_room(&results));
    for run in &mut results.runs {
        run.observed.links[0].rate = 8.5e6;
    }
    assert!(!had_room(&results));
}

/// Learnt traffic sends for 8 of 20 s. It would carry 19 Mbit/s then, and carries 12.5 beside an application that
/// carries 8: the link of 20 Mbit/s is full then, and has room in the rest of the run.
#[test]
fn a_link_is_full_while_a_background_sends_in_its_windows() {
    let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { 2.0 });
    let rate = "rate = \"8Mbit\"";
    let windows = format!("{rate}\nactive = {{ from = \"2s\", on = \"8s\" }}");
    let text = experiment(10);
    let (before, learnt) = text.split_at(text.rfind(rate).unwrap());
    let windowed = before.to_owned() + &learnt.replacen(rate, &windows, 1);
    results.experiment = file::read(&windowed, "x").unwrap();
    learnt_carries_16_alone(&mut results);
    let measured = results.manifest.measured.get_mut("learnt").unwrap();
    (measured.down_bps, measured.down_bps_each) = (19e6, vec![19e6]);
    let mut had_room = |foreground: u64| {
        for run in &mut results.runs {
            let link = &mut run.observed.links[0];
            link.departed = [foreground, 12_500_000];
        }
        let reasons = judged(&results).comparisons.remove(0).withheld;
        let said = "learnt carried 5.00 of 7.60 Mbit/s down beside it, though the link had room";
        reasons.iter().any(|r| r == said)
    };
    assert!(had_room(2_500_000));
    assert!(!had_room(20_000_000));
}

/// Results of a foreground of datagrams that sends 1 Mbit/s whatever happens, and loses nothing. `delayed` gives the mean
/// one-way delay of its packets, seconds, where that is known.
pub(super) fn packets(delayed: impl Fn(&str) -> Option<f64>) -> Results {
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
        let mean = delayed(&run.cell.background);
        observed.delays = mean
            .map(|mean| delay(Direction::Down, mean))
            .into_iter()
            .collect();
    }
    results
}

/// 2000 packets that took `mean` seconds in one direction.
pub(super) fn delay(direction: Direction, mean: f64) -> Delay {
    Delay {
        direction,
        from: mean,
        to: mean * 1.016,
        packets: 2_000,
        bytes: 2_500_000,
        delayed: 2_000.0 * mean,
    }
}

/// The ratios of a measure beside the background poisson.
pub(super) fn ratios(v: &ForegroundVerdict, measure: &str) -> Vec<f64> {
    let judged = v.backgrounds[1].judged.iter();
    let own = judged.filter(|j| j.measure == measure);
    own.map(|j| j.ratio.value).collect()
}

#[test]
fn packets_whose_delays_are_unknown_are_not_called_unharmed() {
    let v = judged(&packets(|_| None));
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    let said = "delay was reported in 0 of 20 runs";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
    // Made-up runs time nothing; what left the link is known all the same.
    let goodput = v.backgrounds[1]
        .judged
        .iter()
        .find(|j| j.measure == "goodput");
    assert_eq!(goodput.and_then(|j| Some(j.with?.value)), Some(1e6));
    assert_eq!(judged(&packets(|_| Some(0.01))).matters, Answer::No);
    let slower = |background: &str| Some(if background == "none" { 0.01 } else { 0.1 });
    let slow = judged(&packets(slower));
    assert_eq!(slow.matters, Answer::Yes);
    assert!(
        ratios(&slow, "delay")
            .iter()
            .all(|r| (r - 9.91).abs() < 0.01)
    );
}

/// One packet in twelve takes twice as long as the others. That adds 8 % to the mean, and doubles the p95.
#[test]
fn the_few_packets_that_wait_long_count() {
    let mut results = packets(|_| Some(0.02));
    for run in &mut results.runs {
        if run.cell.background != "none" {
            let mut late = delay(Direction::Down, 0.04);
            (late.packets, late.delayed) = (167, 167.0 * 0.04);
            let usual = &mut run.observed.delays[0];
            usual.packets -= late.packets;
            usual.delayed -= 167.0 * 0.02;
            run.observed.delays.insert(0, late);
        }
    }
    let v = judged(&results);
    let delays = ratios(&v, "delay");
    assert_eq!(delays.len(), 3, "{delays:?}");
    for (found, truth) in delays.iter().zip([1.083, 1.0, 2.0]) {
        assert!((found / truth - 1.0).abs() < 0.01, "{delays:?}");
    }
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
}

#[test]
fn few_packets_do_not_show_that_none_is_late() {
    let mut results = packets(|_| Some(0.01));
    for run in &mut results.runs {
        run.observed.delays[0].packets = 9;
    }
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear);
    let said = "90 packets are too few for the p90 of delay, which wants 100";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
}

/// A hundredth of the packets flow up, as those of a game do. Only these are late, lost, or do not arrive.
#[test]
fn each_direction_of_an_application_counts() {
    let with = |late: f64, lost: u64| {
        let mut results = packets(|_| Some(0.02));
        results.experiment.foreground = {
            let text = "name = \"x\"\n[network]\nrate = \"20Mbit\"\n[[foreground]]\nname = \"web\"\nkind = \"cbr\"\n\
                        rate = \"1Mbit\"\nrate_up = \"10kbit\"\n[[background]]\nname = \"none\"\nkind = \"none\"\n\
                        [run]\nduration = \"80s\"\n";
            file::read(text, "x").unwrap().foreground
        };
        for run in &mut results.runs {
            let beside = run.cell.background != "none";
            let mut up = run.observed.links[0].clone();
            (up.direction, up.arrived_packets[0], up.arrived[0]) = (Direction::Up, 20, 25_000);
            up.dropped[0] = if beside { lost } else { 0 };
            run.observed.links.push(up);
            let mut own = delay(Direction::Up, if beside { 0.02 + late } else { 0.02 });
            own.packets = 20 - if beside { lost } else { 0 };
            own.bytes = own.packets * 1_250;
            own.delayed = own.packets as f64 * own.from;
            run.observed.delays.push(own);
        }
        judged(&results)
    };
    let well = with(0.0, 0);
    assert_eq!(well.matters, Answer::No, "{}", full_text(&well));
    let late = with(0.01, 0);
    assert_eq!(late.matters, Answer::Yes);
    assert!(ratios(&late, "delay down").iter().all(|&r| r == 1.0));
    assert!(
        ratios(&late, "delay up")
            .iter()
            .all(|r| (r - 1.4975).abs() < 1e-3)
    );
    let lost = with(0.0, 5);
    assert_eq!(lost.matters, Answer::Yes);
    assert!((ratios(&lost, "goodput up")[0] - 0.75).abs() < 1e-9);
    // A ratio of a loss that was zero says nothing, so the text gives the values.
    let said = "loss up is 0.250 against 0 without it";
    assert!(lost.sentence.contains(said), "{}", lost.sentence);
}

#[test]
fn an_application_that_carries_nothing_anywhere_is_not_called_unharmed() {
    let mut results = packets(|_| Some(0.01));
    for run in &mut results.runs {
        let link = &mut run.observed.links[0];
        (link.arrived[0], link.departed[0], link.arrived_packets[0]) = (0, 0, 0);
        run.observed.delays.clear();
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
    let said = "requests did not finish with learnt";
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

/// Pages and their first bytes lack the same tail. The reason is the same, and given once.
#[test]
fn a_reason_for_two_measures_is_given_once() {
    let mut results = super::open::built_in("page", 5);
    for run in &mut results.runs {
        run.observed.requests.truncate(9);
        for r in &mut run.observed.requests {
            r.first_byte = r.start + 0.01;
        }
    }
    let v = judged(&results);
    let said = "45 requests are too few for p90, which wants 100";
    let given = |b: &BackgroundVerdict| b.open.iter().filter(|o| *o == said).count();
    let each: Vec<usize> = v.backgrounds.iter().skip(1).map(given).collect();
    assert!(!each.is_empty() && each.iter().all(|&n| n == 1), "{each:?}");
    // The mean of another measure is known. A sweep goes on all the same, until the tails are.
    let known = |j: &Judgement| j.statistic == Statistic::Mean;
    assert!(v.backgrounds[1].judged.iter().any(known));
    assert_eq!(v.sureness.widest, Some(f64::INFINITY));
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
    let told = side::judged_up_to;
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

/// What sends nothing in any run tells nothing about what it would do.
#[test]
fn a_background_that_is_silent_is_not_called_harmless() {
    let mut results = results(10, |_, _| 1.0);
    for run in &mut results.runs {
        if run.cell.background == "learnt" {
            let link = &mut run.observed.links[0];
            (link.arrived[1], link.departed[1]) = (0, 0);
        }
    }
    let v = judged(&results);
    assert_eq!(v.backgrounds[1].matters, Some(Answer::No));
    assert_eq!(v.backgrounds[2].matters, Some(Answer::Unclear));
    let said = "learnt sent nothing after the warm-up";
    assert!(v.backgrounds[2].withheld.iter().any(|w| w == said));
}

/// Clients that wait make fewer requests of a jam, the worse it is, so that percentiles of requests do not show it.
#[test]
fn fewer_requests_are_not_equal_ones() {
    let mut results = results(10, |_, _| 1.0);
    for run in &mut results.runs {
        if run.cell.background == "learnt" {
            run.observed
                .requests
                .retain(|r| r.index % 4 > 0 || r.index == 0);
        }
    }
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    let rate = v.backgrounds[2]
        .judged
        .iter()
        .find(|j| j.measure == "request rate");
    assert!(rate.is_some_and(Judgement::worse), "{rate:?}");
}

/// A download that its program cuts off before the response is complete, and an upload of fixed time.
#[test]
fn transfers_that_are_cut_off_are_judged_by_what_they_carried() {
    for upload in [false, true] {
        let mut results = results(10, |_, _| 1.0);
        super::open::program(&mut results, &[]);
        for run in &mut results.runs {
            let beside = if run.cell.background == "none" { 1 } else { 3 };
            let observed = &mut run.observed;
            observed.requests.truncate(1);
            let r = &mut observed.requests[0];
            (r.start, r.first_byte, r.last_byte) = (2.0, 2.1, 5.0);
            (r.observed_until, r.bytes) = (5.0, if upload { 0 } else { 6_000_000 / beside });
            r.outcome = if upload {
                Outcome::Done
            } else {
                Outcome::Unfinished
            };
            let mut way = observed.links[0].clone();
            way.direction = Direction::of(!upload);
            way.arrived[0] = 6_000_000 / beside;
            (way.departed[0], way.arrived_packets[0]) = (way.arrived[0], 4_000 / beside);
            observed.links = vec![observed.links[0].clone(), way];
        }
        let v = judged(&results);
        assert_eq!(v.matters, Answer::Yes, "{upload}: {}", full_text(&v));
        let judged = &v.backgrounds[1].judged;
        let goodput = judged.iter().find(|j| j.measure == "goodput").unwrap();
        assert!(
            (goodput.ratio.value - 1.0 / 3.0).abs() < 1e-3,
            "{goodput:?}"
        );
    }
}

/// Where the client made no request that shows, its whole run was timed: that is no time of a request.
#[test]
fn times_of_runs_are_not_compared_with_times_of_requests() {
    let mut results = results(10, |kind, _| if kind == "none" { 10.0 } else { 1.0 });
    super::open::program(&mut results, &[]);
    let warn = |of: &mut Results, every: bool| {
        let cells = of.runs.iter().map(|r| r.cell.clone());
        let whole = cells.filter(|c| every || c.background == "none");
        of.manifest.run_warnings = whole
            .map(|cell| RunWarning {
                cell,
                warning: Warning::warning(Code::NoRequest, "its runs are measured instead"),
            })
            .collect();
    };
    assert_eq!(judged(&results).matters, Answer::Yes);
    warn(&mut results, true);
    assert_eq!(judged(&results).matters, Answer::Yes);
    warn(&mut results, false);
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear);
    let said = "no request shows in 10 of 20 runs";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
}

/// The answers of users at the other end flow up for the application, and so it says.
#[test]
fn loads_are_in_the_directions_of_the_application() {
    let mut results = results(10, |_, _| 1.0);
    let text = experiment(10).replace("rate = \"8Mbit\"", "rate = \"8Mbit\"\ndirection = \"up\"");
    results.experiment = file::read(&text, "x").unwrap();
    learnt_carries_16_alone(&mut results);
    for run in &mut results.runs {
        if run.cell.background == "learnt" {
            run.observed.links[0].direction = Direction::Up;
        }
    }
    let v = judged(&results);
    let learnt = &v.backgrounds[2];
    // The background's own directions are those of its rates.
    assert_eq!(learnt.load_bps, [0.0, 8e6]);
    let said = full_text(&v);
    for wanted in [
        "learnt carried 8.00 of 16.00 Mbit/s up beside it, though the link had room",
        "(8.0 of 16.0 Mbit/s up)",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}

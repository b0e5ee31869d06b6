//! Equal figures that do not show that nothing differs.

use super::*;
use crate::observe::Wait;
use crate::store::Measured;

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

/// Results of a foreground that sends 1 Mbit/s whatever happens, and loses nothing.
fn packets(waits: bool, waited: impl Fn(&str) -> f64) -> Results {
    let mut results = results(10, |_, _| 1.0);
    let text = "name = \"x\"\n[network]\nrate = \"20Mbit\"\n[[foreground]]\nname = \"web\"\nkind = \"cbr\"\nrate = \"1Mbit\"\n\
                [[background]]\nname = \"none\"\nkind = \"none\"\n[run]\nduration = \"80s\"\n";
    results.experiment.foreground = file::read(text, "x").unwrap().foreground;
    results.experiment.run.keep.waits = waits;
    for run in &mut results.runs {
        let observed = &mut run.observed;
        observed.requests.clear();
        let link = &mut observed.links[0];
        (link.arrived[0], link.departed[0], link.arrived_packets[0]) =
            (2_500_000, 2_500_000, 2_000);
        observed.waits = vec![Wait {
            link: "bottleneck".into(),
            direction: 1,
            traffic: "foreground".into(),
            from: 0.0,
            to: 1.0,
            packets: 2_000,
            bytes: 2_500_000,
            squares: 0.0,
            waited: 2_000.0 * waited(&run.cell.background),
        }];
    }
    results
}

#[test]
fn packets_whose_waits_are_unknown_are_not_called_unharmed() {
    let v = judged(&packets(false, |_| 0.01));
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    let said = "how long its packets wait is not measured (run.keep.waits)";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
    assert_eq!(judged(&packets(true, |_| 0.01)).matters, Answer::No);
    let slower = |background: &str| if background == "none" { 0.01 } else { 0.1 };
    assert_eq!(judged(&packets(true, slower)).matters, Answer::Yes);
}

#[test]
fn an_application_that_carries_nothing_anywhere_is_not_called_unharmed() {
    let mut results = packets(true, |_| 0.01);
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

//! Traffic of a model that is lost before it reaches anybody.

use super::*;

/// A model's bursts overflow the queue of a link that is hardly used. Such traffic did harm nothing, but it is not the
/// model's.
#[test]
fn traffic_that_is_lost_though_there_is_room_shows_no_absence_of_harm() {
    let mut results = results(10, |_, _| 1.0);
    let answer = |of: &Results| {
        let v = Verdict::of(of).foregrounds.remove(0);
        (v.backgrounds[2].matters, full_text(&v))
    };
    let (before, text) = answer(&results);
    assert_eq!(before, Some(Answer::No), "{text}");
    for run in &mut results.runs {
        for link in &mut run.observed.links {
            link.arrived[1] = link.departed[1] * 2;
        }
    }
    let (after, said) = answer(&results);
    assert_eq!(after, Some(Answer::Unclear), "{said}");
    assert!(
        said.contains("of learnt") || said.contains("learnt offered"),
        "{said}"
    );
    assert!(
        said.contains("were carried, though the link had room"),
        "{said}"
    );
}

/// Datagrams of a model for which 8 Mbit/s were asked, on a link of 10 Mbit/s. They are not sent again.
#[test]
fn a_model_of_datagrams_that_offers_twice_as_much_misses_its_load() {
    let mut results = results(10, |_, _| 1.0);
    let text =
        super::experiment(10).replace("rate = \"8Mbit\"", "rate = \"8Mbit\"\nload = \"offered\"");
    results.experiment.background = file::read(&text, "x").unwrap().background;
    for run in &mut results.runs {
        let link = &mut run.observed.links[0];
        let bytes = [16e6, 9.9e6].map(|bps: f64| (bps / 8.0 * link.duration) as u64);
        [link.arrived[1], link.departed[1]] = bytes;
    }
    let mut withheld = |unyielding| {
        let measured = swell_experiment::store::Measured {
            down_bps: 8e6,
            down_bps_each: vec![8e6],
            target_bps: Some(8e6),
            sessions: Some(1.0),
            unyielding,
            ..swell_experiment::store::Measured::default()
        };
        results.manifest.measured.insert("learnt".into(), measured);
        let v = Verdict::of(&results).foregrounds.remove(0);
        let compared = v.comparisons.iter().map(|c| c.withheld.join("; "));
        std::iter::once(v.backgrounds[2].withheld.join("; "))
            .chain(compared)
            .collect::<Vec<String>>()
    };
    let said = "8.00 Mbit/s of learnt were requested down and 16.00 offered";
    let all = withheld(true);
    assert!(
        all.len() > 1 && all.iter().all(|w| w.contains(said)),
        "{all:?}"
    );
    assert!(!withheld(false)[0].contains("requested"));
}

/// Learnt traffic of 16 Mbit/s carries 8 beside the application, on a link with 20 Mbit/s down. Its requests cross the other
/// direction: while that is full, its own network holds it back.
#[test]
fn traffic_whose_other_direction_is_full_is_held_back_by_its_network() {
    let mut results = results(10, |_, _| 1.0);
    let measured = swell_experiment::store::Measured {
        up_bps: 0.5e6,
        down_bps: 16e6,
        down_bps_each: vec![16e6],
        sessions: Some(2.0),
        ..swell_experiment::store::Measured::default()
    };
    results.manifest.measured.insert("learnt".into(), measured);
    let mut gave_way = |up: f64| {
        for run in &mut results.runs {
            run.observed.links.truncate(1);
            let down = run.observed.links[0].clone();
            let bytes = (up / 8.0 * down.duration) as u64;
            run.observed.links.push(LinkTotals {
                direction: Direction::Up,
                arrived: [0, bytes],
                departed: [0, bytes],
                rate: 1e6,
                ..down
            });
        }
        let v = Verdict::of(&results).foregrounds.remove(0);
        let said = "learnt carried 8.00 of 16.00 Mbit/s down beside it, though the link had room";
        full_text(&v).contains(said)
    };
    assert!(gave_way(0.5e6));
    assert!(!gave_way(0.99e6));
}

//! Endless transfers as a foreground, on/off sources as a background, and the table of waits.

use super::*;
use crate::observe::Wait;
use swell_base::Direction;

const FILLER: &str = r#"
name = "filler"
[network]
rate = "4Mbit"
delay = "20ms"
queue = "20pkt"
qdisc = { kind = "priority", foreground = 1, background = 0, limits = ["20pkt", "20pkt"] }
[[foreground]]
name = "nothing"
kind = "none"
[[foreground]]
name = "filler"
kind = "greedy"
direction = "up"
spread = "0s"
delay = "10us"
access = "1Gbit"
[[background]]
name = "there"
kind = "on-off"
rate_up = "1.35Mbit"
rate = "0.9Mbit"
seeds = [1, 11]
delay = "10us"
access = "1Gbit"
[run]
replications = 2
warmup = "5s"
duration = "40s"
keep = { waits = true }
"#;

fn sum(o: &Observations, direction: Direction, traffic: &str, of: fn(&Wait) -> f64) -> f64 {
    let mine = o.waits.iter();
    let mine = mine.filter(|w| w.direction == direction && w.traffic == traffic);
    mine.map(of).sum()
}

#[test]
fn filler_takes_what_is_left_and_harms_little() {
    let (spec, alone) = run_of(FILLER, 0);
    assert!(spec.foreground.is_none());
    let (_, with) = run_of(FILLER, 2);
    let up = |o: &Observations| o.links[0].clone();
    assert_eq!(up(&alone).departed[0], 0);
    // The same packets arrive a little later, so only those at the edges of the counted time differ.
    let apart = up(&with).departed[1].abs_diff(up(&alone).departed[1]);
    assert!(apart < 10_000, "{apart}");
    let used = (up(&with).departed[0] + up(&with).departed[1]) as f64 * 8.0 / 35.0;
    assert!(used > 0.9 * 4e6, "{used}");
    let wait = |o: &Observations, who: &str| {
        sum(o, Direction::Up, who, |w| w.waited) / sum(o, Direction::Up, who, |w| w.packets as f64)
    };
    let (before, after) = (wait(&alone, "background"), wait(&with, "background"));
    // At most the residual transmission of a 1500-byte packet at 4 Mbit/s, over the remaining share of the link.
    assert!(before < after && after - before < 3e-3 / (1.0 - 1.35 / 4.0));
    assert!(wait(&with, "foreground") > 10.0 * after);
    assert_eq!(
        with.flows
            .iter()
            .filter(|f| f.class == "foreground")
            .count(),
        1
    );
    assert!(with.flows.iter().any(|f| f.class == "on-off"));
    assert!(with.requests.is_empty());
}

#[test]
fn waits_count_what_was_sent_after_the_warm_up() {
    let (_, o) = run_of(FILLER, 2);
    for link in &o.links {
        for (i, who) in ["foreground", "background"].into_iter().enumerate() {
            let sent = sum(&o, link.direction, who, |w| w.packets as f64);
            let lost = link.dropped[i] as f64;
            // Up to twenty packets of each kind may be queued at the beginning and at the end.
            let apart = link.arrived_packets[i] as f64 - lost - sent;
            assert!(sent > 100.0 && apart.abs() <= 20.0, "{who}: {apart}");
            let bytes = sum(&o, link.direction, who, |w| w.bytes as f64);
            assert!((bytes - link.departed[i] as f64).abs() <= 30_000.0);
            let squares = sum(&o, link.direction, who, |w| w.squares);
            assert!(squares >= bytes * bytes / sent && squares <= bytes * 1500.0);
        }
    }
    for w in &o.waits {
        let mean = w.waited / w.packets as f64;
        assert!(w.from <= mean && mean <= w.to, "{w:?}");
    }
    let (_, without) = run_of(&FILLER.replace("keep = { waits = true }", ""), 2);
    assert!(without.waits.is_empty());
    assert_eq!(without.bins, o.bins, "keeping account changes nothing");
}

#[test]
fn sources_with_seeds_are_the_same_in_every_run() {
    let arrived = |file: &str, cell| run_of(file, cell).1.links[0].arrived[1];
    assert_eq!(arrived(FILLER, 0), arrived(FILLER, 1));
    let free = FILLER.replace("seeds = [1, 11]", "");
    assert_ne!(arrived(&free, 0), arrived(&free, 1));
    // Sources that are never off are Poisson: 432 packets per second over 35 s have a standard deviation of
    // 1.2 %.
    let poisson = FILLER.replace("seeds = [1, 11]", "off = '0s'");
    let rate = arrived(&poisson, 0) as f64 * 8.0 / 35.0;
    assert!((rate / 1.35e6 - 1.0).abs() < 0.06, "{rate}");
}

#[test]
fn the_seed_draws_the_beginning_within_the_spread() {
    let spread = FILLER.replace("spread = \"0s\"", "start = '5s'");
    let start = |cell| {
        let (_, o) = run_of(&spread, cell);
        o.flows
            .iter()
            .find(|f| f.class == "foreground")
            .expect("a flow")
            .start
    };
    assert!(start(2) > 5.0 && start(2) < 6.0 && start(2) != start(3));
}

/// With this seed the only source is on from the start, at ten thousand times the mean rate.
#[test]
fn sources_that_send_more_than_a_run_holds_are_an_error() {
    let lone = "rate_up = \"1Gbit\"\nsources = 1\non = \"10s\"\noff = \"100000s\"";
    let file = FILLER
        .replace("rate = \"4Mbit\"", "rate = \"1Gbit\"")
        .replace("rate_up = \"1.35Mbit\"", lone)
        .replace("seeds = [1, 11]", "seeds = [12214, 1]");
    let plan = Plan::resolve(&file, "test.toml", Path::new(".")).expect("a good file");
    let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).expect("a cell");
    let found = Simulator.run(&spec, &|_| {}, &|| false);
    let why = found.expect_err("too many").to_string();
    assert!(why.contains("background `there`"), "{why}");
    assert!(why.contains("more than 40000000 packets"), "{why}");
}

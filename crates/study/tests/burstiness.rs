//! The burstiness scenario against what is known in closed form, and against ns-2 where short runs
//! can tell.

use swell_study::Estimate;
use swell_study::burstiness::Plan;
use swell_study::burstiness::lineup::{BACKGROUND, Profile};
use swell_study::burstiness::results::warm;
use swell_study::burstiness::scenario::{CAPACITY, Outcome, PER_SECOND, Scenario, poisson};
use swell_study::grid::{self, Cell, Ended, Options};

fn run(scenario: Scenario) -> Outcome {
    scenario.simulate()
}

fn scenario(transport: &str, gateway: &str, clients: u16, seconds: u64) -> Scenario {
    let named = Scenario::named(Profile::Era, transport, gateway, clients).unwrap();
    Scenario { seconds, ..named }
}

#[test]
fn udp_arrives_as_the_poisson_process_that_was_submitted() {
    for clients in [5, 30] {
        let runs = (1..=4).map(|seed| {
            let outcome = run(Scenario {
                seed,
                ..scenario("udp", "fifo", clients, 200)
            });
            assert_eq!(outcome.drops, [0.0; 2]);
            outcome.cov[warm()]
        });
        // 4 x 1900 counts: the standard error of their c.o.v. is 0.8 %, the bar nearly four of them.
        let cov = Estimate::of(runs).unwrap().value;
        assert!(
            (cov / poisson(clients) - 1.0).abs() < 0.03,
            "M = {clients}: {cov}"
        );
    }
}

#[test]
fn udp_in_overload_loses_what_the_link_cannot_carry() {
    for clients in [50, 60] {
        let outcome = run(scenario("udp", "fifo", clients, 100));
        let lost = outcome.drops[1] / outcome.arrivals[1];
        let expected = 1.0 - CAPACITY / (f64::from(clients) * PER_SECOND);
        // 1/sqrt(500 000) is 0.14 %.
        assert!(
            (lost - expected).abs() < 0.004,
            "M = {clients}: {lost} for {expected}"
        );
        let delivered = outcome.delivered[1] / 100.0;
        assert!(
            (delivered / CAPACITY - 1.0).abs() < 0.002,
            "{delivered} a second"
        );
    }
}

#[test]
fn packets_are_conserved() {
    for transport in ["udp", "reno", "vegas", "cubic"] {
        let outcome = run(scenario(transport, "fifo", 50, 30));
        let [arrived, dropped, delivered] =
            [outcome.arrivals[1], outcome.drops[1], outcome.delivered[1]];
        // What arrived and was not dropped was delivered, was there already, or is under way. Under way
        // is at most a window of each client; there already is what was sent again beyond what was
        // dropped, and what was dropped and not yet sent again is within a window too.
        let again = arrived - dropped - delivered;
        let windows = 50.0 * 20.0;
        let needless = (outcome.retransmissions - dropped).max(0.0);
        assert!(
            (0.0..=needless + 2.0 * windows).contains(&again),
            "{transport}: {again}"
        );
        assert_eq!(
            transport == "udp",
            outcome.retransmissions == 0.0,
            "{transport}"
        );
        // Nobody submits more than the Poisson source does: 5000 a second, sd sqrt(150 000).
        assert!(
            delivered < 150_000.0 + 5.0 * 387.0,
            "{transport}: {delivered}"
        );
    }
}

#[test]
fn the_moderate_excess_is_gone_after_the_start() {
    let outcome = run(scenario("reno", "fifo", 30, 100));
    let excess = |cov: f64| cov / poisson(30) - 1.0;
    assert!(excess(outcome.cov[0]) > 0.3, "{}", excess(outcome.cov[0]));
    // 900 counts: standard error 2.4 %.
    assert!(
        excess(outcome.cov[warm()]) < 0.08,
        "{}",
        excess(outcome.cov[warm()])
    );
}

#[test]
fn heavy_load_makes_reno_bursty_and_vegas_smooth() {
    let reno = run(scenario("reno", "fifo", 60, 60));
    let vegas = run(scenario("vegas", "fifo", 60, 60));
    let excess = |o: &Outcome| o.cov[warm()] / poisson(60) - 1.0;
    assert!(excess(&reno) > 1.2, "{}", excess(&reno));
    assert!(excess(&vegas) < 0.0, "{}", excess(&vegas));
    assert!(vegas.delivered[1] > reno.delivered[1]);
}

#[test]
fn red_turns_with_the_weight_of_its_average() {
    let slow = run(scenario("reno", "red-w0.002", 60, 60));
    let fast = run(scenario("reno", "red-w0.00024", 60, 60));
    let [a, b] = [slow.cov[warm()], fast.cov[warm()]];
    assert!(a > 1.5 * b, "{a} and {b}");
    assert!(slow.delivered[1] < fast.delivered[1]);
}

#[test]
fn windows_that_fit_the_buffer_lose_nothing() {
    for transport in ["reno", "vegas"] {
        // 60 connections of at most 20 packets each: 1200 < 1500.
        let outcome = run(Scenario {
            background: BACKGROUND,
            ..scenario(transport, "fifo1500", 40, 40)
        });
        assert_eq!(outcome.drops, [0.0; 2], "{transport}");
        assert!(outcome.arrivals.iter().all(|&n| n > 0.0));
    }
}

#[test]
fn equal_seeds_give_equal_numbers_and_a_table_gives_them_back() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        file: dir.path().join("runs.csv"),
        jobs: 2,
        fresh: false,
    };
    let plan = Plan {
        quick: true,
        seeds: 1,
    };
    let mut cells = plan.scenarios();
    cells.retain(|c| c.clients == 5 && c.background == 0);
    assert!(cells.len() >= 18, "six lines under three profiles");
    let numbers = || match grid::run(&cells, &options, &|_| {}, &|| false).unwrap() {
        Ended::Complete(numbers) => numbers,
        Ended::Interrupted { .. } => Vec::new(),
    };
    let first = numbers();
    // From the table this time.
    assert_eq!(numbers(), first);
    assert_eq!(first[0], cells[0].run());
    let study = plan.study(&cells, &first);
    assert_eq!(study, plan.study(&cells, &numbers()));
    let outcome = Outcome::from_numbers(&first[0]).unwrap();
    assert_eq!(outcome, cells[0].simulate());
    assert_eq!(first[0].len(), Scenario::NUMBERS.len());
}

/// ns-2.35 itself changes with the order: begun at 260 s, where who waited is first until 512 s, the c.o.v. of
/// 60 Reno clients over 200 s is 0.1441 (both of two seeds); begun at 520 s, where who did not wait is,
/// 0.1174 and 0.1173; begun at 0 s, where the order changes at 16, 32, 64 and 128 s, 0.1286 (three seeds).
/// All with the settings of `era`.
#[test]
fn who_is_first_at_one_instant_matters_as_it_does_in_ns2() {
    for (gateway, ns2) in [
        ("fifo-waited", 0.1441),
        ("fifo-fresh", 0.1174),
        ("fifo", 0.1286),
    ] {
        let runs = (1..=3).map(|seed| {
            let outcome = run(Scenario {
                seed,
                ..scenario("reno", gateway, 60, 200)
            });
            outcome.cov[0]
        });
        let cov = Estimate::of(runs).unwrap().value;
        // The bar for every number that is held against ns-2.
        assert!((cov / ns2 - 1.0).abs() < 0.05, "{gateway}: {cov} for {ns2}");
    }
}

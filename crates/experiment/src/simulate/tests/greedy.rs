//! Endless transfers: replications differ randomly and are not copies.

use swell_base::Code;

use super::*;
use crate::observe::{Flow, Observations};

/// Connections of one run, sorted by start.
fn flows(more: &str, replication: usize) -> Vec<Flow> {
    let text = format!(
        r#"
name = "greedy"
[network]
rate = "50Mbit"
queue = "10pkt"
delay = "1ms"
[[foreground]]
name = "nobody"
kind = "none"
[[background]]
name = "bulk"
kind = "greedy"
connections = 12
spread = "2s"
{more}
[run]
replications = 2
warmup = "0s"
duration = "4s"
keep = {{ flows = true }}
"#
    );
    let mut flows = run_of(&text, replication).1.flows;
    flows.sort_by(|a, b| a.start.total_cmp(&b.start));
    flows
}

fn starts(flows: &[Flow]) -> Vec<f64> {
    flows.iter().map(|f| f.start).collect()
}

#[test]
fn each_connection_begins_at_a_time_of_its_own() {
    let [one, other] = [0, 1].map(|r| starts(&flows("", r)));
    assert_eq!(one.len(), 12);
    assert!(one.iter().all(|s| (0.0..2.0).contains(s)), "{one:?}");
    assert!(one.windows(2).all(|w| w[0] < w[1]), "{one:?}");
    // Another seed gives more than a time shift of the first.
    let shift: Vec<f64> = one.iter().zip(&other).map(|(a, b)| a - b).collect();
    assert!(
        shift.iter().any(|s| (s - shift[0]).abs() > 0.05),
        "{shift:?}"
    );
    // With `independent = false` it is only a shift: all begin together, delayed by a draw from the seed.
    let together = [0, 1].map(|r| starts(&flows("independent = false", r)));
    for starts in &together {
        assert!(starts.iter().all(|s| *s == starts[0]), "{starts:?}");
    }
    assert!(together[0][0] != together[1][0]);
}

#[test]
fn delays_are_taken_in_turn_or_drawn() {
    let round_trips = |more: &str, replication| {
        let mut all: Vec<f64> = flows(more, replication).iter().map(|f| f.rtt).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    // Each access path twice, and the link's 2 ms, plus queueing and transmission.
    let in_turn = round_trips("delay = [\"5ms\", \"20ms\", \"45ms\"]", 0);
    for (i, rtt) in in_turn.iter().enumerate() {
        let least = [0.022, 0.082, 0.182][i / 4];
        assert!((least..least + 0.03).contains(rtt), "{in_turn:?}");
    }
    let drawn = [0, 1].map(|r| round_trips("delay = { from = \"5ms\", to = \"50ms\" }", r));
    for all in &drawn {
        assert!(all.windows(2).all(|w| w[0] < w[1]), "{all:?}");
        assert!(all[0] > 0.022 && all[11] - all[0] > 0.05, "{all:?}");
    }
    assert_ne!(drawn[0], drawn[1]);
}

/// Ten connections over a drop-tail queue, with TCP settings `tcp` and alternating RTTs of 40 and 160 ms.
fn ten(tcp: &str, replication: usize) -> Observations {
    let text = format!(
        r#"
name = "ten"
[network]
rate = "10Mbit"
delay = "0s"
queue = "50pkt"
[[foreground]]
name = "nobody"
kind = "none"
[[background]]
name = "bulk"
kind = "greedy"
connections = 10
direction = "up"
delay = ["10ms", "40ms"]
tcp = {tcp}
[run]
replications = 6
warmup = "0s"
duration = "40s"
keep = {{ flows = true }}
"#
    );
    run_of(&text, replication).1
}

/// Six seeds are six draws: the shares of single connections differ, their sum does not.
#[test]
fn seeds_are_replications() {
    let shares = |replication| {
        let mut flows = ten("{}", replication).flows;
        flows.sort_by(|a, b| a.start.total_cmp(&b.start));
        flows.iter().map(|f| f.up as f64).collect::<Vec<f64>>()
    };
    let all: Vec<Vec<f64>> = (0..6).map(shares).collect();
    let spread = |values: &[f64]| {
        let most = values.iter().copied().fold(0.0, f64::max);
        most / values.iter().copied().fold(f64::INFINITY, f64::min) - 1.0
    };
    let totals: Vec<f64> = all.iter().map(|run| run.iter().sum()).collect();
    assert!(spread(&totals) < 0.05, "{totals:?}");
    for flow in 0..10 {
        let one: Vec<f64> = all.iter().map(|run| run[flow]).collect();
        assert!(spread(&one) > 0.05, "connection {flow}: {one:?}");
    }
}

#[test]
fn locked_phases_are_a_doubt() {
    let doubted = |tcp| {
        let warnings = ten(tcp, 0).warnings;
        let found = warnings.iter().find(|w| w.code == Code::PhaseEffects);
        found.map(|w| w.message.clone())
    };
    for locked in ["{ profile = \"ns2-modern\" }", "{ jitter = \"0s\" }"] {
        let message = doubted(locked).expect(locked);
        assert!(message.starts_with("bottleneck up: "), "{message}");
    }
    for free in [
        "{}",
        "{ profile = \"classic\" }",
        "{ profile = \"ns2-modern\", jitter = \"1200us\" }",
    ] {
        assert_eq!(doubted(free), None, "{free}");
    }
}

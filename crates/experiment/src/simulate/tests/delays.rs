//! One-way delays of a foreground of datagrams.

use super::*;
use crate::observe::Delay;
use swell_base::Direction;

/// Packets of 1500 bytes, a few in each direction, over a slow link with unequal delays. `more` continues the network.
fn file(kind: &str, more: &str, run: &str) -> String {
    format!(
        r#"
name = "delays"
[network]
rate = "128kbit"
queue = "1s"
{more}
[network.up]
delay = "300ms"
[network.down]
delay = "1ms"
[[foreground]]
name = "feed"
kind = "{kind}"
rate = "30kbit"
rate_up = "30kbit"
packet = "1500B"
delay = "5ms"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "down"
kind = "cbr"
rate = "64kbit"
[run]
replications = 1
warmup = "2s"
duration = "42s"
{run}
"#
    )
}

/// Mean delay in a direction, seconds, and the number of packets.
fn mean(delays: &[Delay], direction: Direction) -> (f64, u64) {
    let own = || delays.iter().filter(|d| d.direction == direction);
    let packets = own().map(|d| d.packets).sum::<u64>();
    (
        own().map(|d| d.delayed).sum::<f64>() / packets as f64,
        packets,
    )
}

/// Ten milliseconds of access links, the link's own delay, and 93.75 ms of transmission at 128 kbit/s.
#[test]
fn a_delay_is_from_host_to_host() {
    let text = file("cbr", "", "");
    let (_, idle) = run_of(&text, 0);
    for (direction, truth) in [(Direction::Up, 0.40375), (Direction::Down, 0.10475)] {
        let (mean, packets) = mean(&idle.delays, direction);
        assert!((mean - truth).abs() < 1e-4, "{direction}: {mean}");
        assert!(packets.abs_diff(100) <= 2, "{direction}: {packets}");
    }
    let narrow = |d: &Delay| d.from <= d.delayed / d.packets as f64 && d.to < d.from * 1.017;
    assert!(idle.delays.iter().all(narrow));
    // Traffic down does not delay what flows up, and keeps no packet down at less than that.
    let (_, busy) = run_of(&text, 1);
    assert!((mean(&busy.delays, Direction::Up).0 - 0.40375).abs() < 1e-4);
    let (down, _) = mean(&busy.delays, Direction::Down);
    assert!(down > 0.110 && down < 0.200, "{down}");
}

#[test]
fn a_delay_is_that_of_its_time() {
    let change = "change = [{ at = \"2s\", direction = \"down\", delay = \"201ms\" }]";
    let (_, seen) = run_of(&file("poisson", change, ""), 0);
    let least = seen
        .delays
        .iter()
        .filter(|d| d.direction == Direction::Down);
    let least = least.map(|d| d.from).fold(f64::INFINITY, f64::min);
    assert!((least / 0.30475 - 1.0).abs() < 0.02, "{least}");
}

/// A third of the packets is lost on the wire, of one of two foregrounds or of both.
#[test]
fn what_the_wire_loses_does_not_arrive() {
    for together in ["", "together = true"] {
        let text = file(
            "cbr",
            "loss = { kind = \"independent\", p = 0.3 }",
            together,
        );
        let two =
            "[[foreground]]\nname = \"other\"\nkind = \"cbr\"\nrate = \"8kbit\"\n[[background]]";
        let text = text.replacen("[[background]]", two, 1);
        let (_, seen) = run_of(&text, 0);
        let (sent, dropped) = match together {
            "" => {
                let link = seen
                    .links
                    .iter()
                    .find(|l| l.direction == Direction::Down)
                    .expect("down");
                (link.arrived_packets[0], link.dropped[0])
            }
            _ => {
                let mut parts = seen.parts.iter();
                let own = parts.find(|p| p.direction == Direction::Down && p.part == "feed");
                let own = own.expect("its own row");
                (own.arrived_packets, own.dropped)
            }
        };
        let (_, arrived) = mean(&seen.delays, Direction::Down);
        assert!(dropped > 10, "{dropped}");
        // A few packets are under way at the end of the warm-up and of the run.
        assert!(
            (sent - dropped).abs_diff(arrived) <= 2,
            "{sent} - {dropped}: {arrived}"
        );
    }
}

#[test]
fn delays_are_kept_of_datagrams_only() {
    let web = "kind = \"web\"\nobject = \"1kB\"";
    let own = file("cbr", "", "");
    let begin = own.find("kind = \"cbr\"").expect("a kind");
    let end = own.find("delay = \"5ms\"").expect("its last key");
    let text = format!("{}{web}\n{}", &own[..begin], &own[end..]);
    assert!(run_of(&text, 0).1.delays.is_empty());
    let tcp = own.replacen("packet = \"1500B\"", "transport = \"tcp\"", 1);
    let (_, segments) = run_of(&tcp, 0);
    assert!(segments.delays.is_empty() && !segments.waits.is_empty());
    for kind in ["on-off", "cbr"] {
        let (spec, seen) = run_of(&file(kind, "", "").replace("packet = \"1500B\"\n", ""), 0);
        assert!(
            mean(&seen.delays, Direction::Down).1 > 20 && seen.waits.is_empty(),
            "{kind}"
        );
        let unasked = RunSpec {
            delays: false,
            ..spec
        };
        let without = Simulator.run(&unasked, &|_| {}, &|| false).expect("a run");
        assert_eq!(without.links, seen.links, "keeping account changes nothing");
    }
}

//! Probes on a link of which is known what is free.

use super::*;
use crate::observe::MeasureSample;

/// Values of a measure of a probe beside `background` on 100 Mbit/s.
fn estimates(tool: &str, background: &str, seconds: u32) -> impl Fn(&str) -> Vec<f64> {
    let text = format!(
        r#"
name = "probe"
[network]
rate = "100Mbit"
delay = "10ms"
queue = "100ms"
[[foreground]]
name = "probe"
kind = "probe"
tool = "{tool}"
[[background]]
name = "one"
{background}
[run]
replications = 1
warmup = "2s"
duration = "{seconds}s"
[run.keep]
flows = false
"#
    );
    let measures = run_of(&text, 0).1.measures;
    move |name: &str| {
        let own = |m: &&MeasureSample| m.measure == name;
        measures.iter().filter(own).map(|m| m.value).collect()
    }
}

const IDLE: &str = "kind = \"none\"";

fn cbr(rate: &str) -> String {
    format!("kind = \"cbr\"\nrate = \"{rate}\"\npacket = \"200B\"")
}

/// The truth is what the link did not send for others.
#[test]
fn what_is_free_is_known() {
    for (background, free) in [(IDLE.to_owned(), 100e6), (cbr("30Mbit"), 70e6)] {
        let of = estimates("spruce", &background, 20);
        assert!(!of("available").is_empty());
        for found in of("available") {
            assert!((found / free - 1.0).abs() < 0.01, "{found} {free}");
        }
        assert_eq!(of("available").len(), of("estimate").len());
        assert!(of("probe bytes").iter().all(|&b| b == 300_000.0));
        assert!(of("probe duration").iter().all(|&t| t > 0.0));
    }
}

/// Tools beside packets at equal intervals, and on an idle link.
#[test]
fn tools_find_what_is_free() {
    // How far the mean may be off, of the capacity. IGI takes too little for growth where much is sent.
    for (tool, bar) in [
        ("pathload", 0.05),
        ("spruce", 0.01),
        ("igi", 0.15),
        ("ptr", 0.06),
    ] {
        for (background, free) in [
            (IDLE.to_owned(), 100e6),
            (cbr("30Mbit"), 70e6),
            (cbr("70Mbit"), 30e6),
        ] {
            let all = estimates(tool, &background, 40)("estimate");
            let mean = swell_stats::mean(&all).unwrap_or(f64::NAN);
            assert!(
                (mean - free).abs() <= bar * 100e6,
                "{tool}, {free}: {all:.4?}"
            );
        }
    }
}

/// Packet pairs tell the capacity, whatever is free.
#[test]
fn packet_pairs_tell_the_capacity() {
    for background in [IDLE.to_owned(), cbr("30Mbit")] {
        let all = estimates("packet-pair", &background, 20)("estimate");
        assert!(!all.is_empty());
        assert!(
            all.iter().all(|c| (c / 100e6 - 1.0).abs() < 0.02),
            "{all:?}"
        );
    }
}

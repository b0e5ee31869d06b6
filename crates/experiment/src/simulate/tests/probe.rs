//! Probes on a link with known available bandwidth.

use super::*;
use crate::observe::MeasureSample;

/// A probe beside `background` on 100 Mbit/s.
fn of(tool: &str, background: &str, seconds: u32) -> String {
    format!(
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
    )
}

fn observed(tool: &str, background: &str, seconds: u32) -> Observations {
    run_of(&of(tool, background, seconds), 0).1
}

/// Values of its measures, by name.
fn estimates(tool: &str, background: &str, seconds: u32) -> impl Fn(&str) -> Vec<f64> {
    let measures = observed(tool, background, seconds).measures;
    move |name: &str| {
        let own = |m: &&MeasureSample| m.measure == name;
        measures.iter().filter(own).map(|m| m.value).collect()
    }
}

const IDLE: &str = "kind = \"none\"";

fn cbr(rate: &str) -> String {
    format!("kind = \"cbr\"\nrate = \"{rate}\"\npacket = \"200B\"")
}

/// The available bandwidth is the capacity that the link does not use for other traffic.
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
    // With CBR packets any interval varies by at most one packet; Poisson packets follow their distribution.
    let background = "kind = \"poisson\"\nrate = \"50Mbit\"\npacket = \"1000B\"";
    let rows = observed("spruce", background, 40).estimates;
    for (timescale, intervals) in [(0.01, 500), (1.0, 5)] {
        let own = rows.iter().filter(|r| r.timescale == timescale);
        let own: Vec<_> = own.collect();
        assert!(!own.is_empty());
        let packets = 50e6 / 8000.0 * timescale;
        let law = 50e6 / packets.sqrt();
        for row in own {
            assert!(row.intervals > intervals, "{row:?}");
            assert!((row.mean / 50e6 - 1.0).abs() < 0.05, "{row:?}");
            assert!(row.ends[0] < row.mean && row.mean < row.ends[1], "{row:?}");
            let off = row.sd / law;
            // The queue reduces the variance a little, and few values give a poor estimate.
            assert!(
                off < 2.5 && (timescale > 0.5 || (0.8..1.1).contains(&off)),
                "{row:?}"
            );
        }
    }
}

/// What is known of the warm-up is no result.
#[test]
fn no_estimate_begins_in_the_warm_up() {
    for tool in ["ptr", "spruce"] {
        let measures = observed(tool, IDLE, 20).measures;
        let took = measures.iter().filter(|m| m.measure == "probe duration");
        let began: Vec<f64> = took.map(|m| m.at - m.value).collect();
        let first = began.iter().fold(f64::INFINITY, |a, &b| a.min(b));
        assert!((2.0 - 1e-6..2.1).contains(&first), "{tool}: {began:?}");
    }
}

/// Another foreground takes capacity as a background does.
#[test]
fn other_foregrounds_are_others() {
    let beside = "[[foreground]]\nname = \"other\"\nkind = \"cbr\"\nrate = \"30Mbit\"\npacket = \"1000B\"\n\
                  [[background]]";
    let text = of("spruce", IDLE, 20)
        .replace("[[background]]", beside)
        .replace("[run]\n", "[run]\ntogether = true\n");
    let measures = run_of(&text, 0).1.measures;
    let value = |name: &str| {
        let own = measures.iter().filter(|m| m.measure == name);
        swell_stats::mean(&own.map(|m| m.value).collect::<Vec<_>>()).expect(name)
    };
    assert!(
        (value("available") / 70e6 - 1.0).abs() < 0.01,
        "{}",
        value("available")
    );
    // Pairs fit between the packets of the other, or find one of them.
    assert!(value("error") < 0.1, "{}", value("error"));
}

/// A packet of 1500 bytes takes the time of 1600, and one of 400 bytes that of 500: of 100 Mbit/s, 62.5 are left of
/// 30 Mbit/s of those, and 15/16 of that is for the probe's own bytes.
#[test]
fn the_overhead_of_the_link_layer_is_not_free() {
    let text = of("packet-pair", &cbr("30Mbit").replace("200B", "400B"), 12)
        .replace("queue =", "overhead = \"100B\"\nqueue =");
    let measures = run_of(&text, 0).1.measures;
    let mut found = 0;
    for m in &measures {
        let expected = match m.measure.as_str() {
            "available" => 62.5e6 * 15.0 / 16.0,
            "estimate" => 100e6 * 15.0 / 16.0,
            "error" => {
                assert!(m.value < 0.01, "{m:?}");
                continue;
            }
            _ => continue,
        };
        found += 1;
        assert!((m.value / expected - 1.0).abs() < 0.01, "{m:?}");
    }
    assert!(found >= 2);
}

/// On an idle link, all that it can carry at that time is available.
#[test]
fn what_is_free_on_a_link_that_changes_is_known() {
    let change = "[[network.change]]\nat = \"10s\"\nrate = \"200Mbit\"";
    let measures = observed("ptr", &format!("{IDLE}\n{change}"), 20).measures;
    let (mut early, mut late) = (0, 0);
    for found in measures.iter().filter(|m| m.measure == "available") {
        let mut same = measures.iter().filter(|m| m.at == found.at);
        let took = same.find(|m| m.measure == "probe duration");
        let began = found.at - took.expect("a duration").value;
        let free = match (began, found.at) {
            (_, end) if end < 9.99 => 100e6,
            (start, _) if start > 10.01 => 200e6,
            _ => continue,
        };
        match free > 150e6 {
            true => late += 1,
            false => early += 1,
        }
        assert!((found.value / free - 1.0).abs() < 1e-6, "{found:?}");
    }
    assert!(early > 0 && late > 0, "{early} and {late}");
}

/// Tools beside packets at equal intervals, and on an idle link.
#[test]
fn tools_find_what_is_free() {
    // Tolerance of the mean error, as a share of the capacity. IGI counts only gaps that increased.
    for (tool, bar) in [
        ("pathload", 0.02),
        // A step of its chirps, for the idle link.
        ("pathchirp", 0.16),
        ("spruce", 0.01),
        ("igi", 0.1),
        ("ptr", 0.03),
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

/// Packet pairs estimate the capacity, whatever the available bandwidth.
#[test]
fn packet_pairs_tell_the_capacity() {
    for background in [IDLE.to_owned(), cbr("30Mbit")] {
        let all = estimates("packet-pair", &background, 20)("estimate");
        assert!(!all.is_empty());
        assert!(
            all.iter().all(|c| (c / 100e6 - 1.0).abs() < 0.02),
            "{all:?}"
        );
        // The error is against the capacity, which other traffic does not change.
        let errors = estimates("packet-pair", &background, 20)("error");
        assert_eq!(errors.len(), all.len());
        assert!(errors.iter().all(|e| *e < 0.02), "{errors:?}");
    }
}

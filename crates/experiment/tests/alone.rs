//! What a manifest calls measured alone is what the background carries alone: a quick version of the table from
//! `examples/alone.rs`.

use swell_base::Dur;
use swell_experiment::load::alone::{Case, Found, check};

fn found(link: &str, rtt: &str, model: &str, rate: &str, seconds: u64) -> Found {
    let case = Case {
        model,
        rate: rate.parse().unwrap(),
        link: link.parse().unwrap(),
        rtt: rtt.parse().unwrap(),
        warmup: Dur::from_secs(5),
        duration: Dur::from_secs(seconds),
        seeds: 3,
        threads: 2,
    };
    let dir = tempfile::tempdir().unwrap();
    check(&case, dir.path()).unwrap()
}

/// Here transfers outlast pieces, for different reasons: long round trips, a full link, a slow one.
#[test]
fn where_the_network_shapes_the_traffic_the_calibrated_rates_are_those_of_the_runs() {
    for (link, rtt, model, rate, seconds) in [
        ("800kbit", "500ms", "browsing", "300kbit", 40),
        ("2Mbit", "80ms", "access-link", "1800kbit", 30),
        ("1500kbit", "20ms", "browsing", "400kbit", 60),
        ("3Mbit", "200ms", "streaming", "2Mbit", 20),
    ] {
        let found = found(link, rtt, model, rate, seconds);
        assert!(found.worst() < 1e-6, "{link} {rtt} {model}: {found:?}");
        // The sessions were scaled to the requested rate, or a doubt says that they were not.
        let asked: swell_base::Rate = rate.parse().unwrap();
        let off = (found.expected / asked.bps() as f64 - 1.0).abs();
        assert_eq!(off > 0.05, found.missed, "{link} {rtt} {model}: {found:?}");
    }
}

/// Whole runs and their pieces carry different shares of what is offered, though no queue builds up.
const PIECES: f64 = 0.03;

#[test]
fn where_it_does_not_pieces_suffice() {
    let found = found("1Gbit", "40ms", "browsing", "8Mbit", 90);
    assert!(found.worst() < PIECES, "{found:?}");
    assert!(!found.missed);
}

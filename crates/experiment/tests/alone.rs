//! What a manifest calls measured alone is what the background carries alone: a quick version of the table from
//! `examples/alone.rs`.

use swell_base::Dur;
use swell_experiment::load::alone::{Case, Found, check};

fn found(link: &str, rtt: &str, model: &str, rate: &str, seconds: u64, seeds: u32) -> Found {
    let case = Case {
        model,
        rate: rate.parse().unwrap(),
        link: link.parse().unwrap(),
        rtt: rtt.parse().unwrap(),
        warmup: Dur::from_secs(5),
        duration: Dur::from_secs(seconds),
        seeds,
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
        let found = found(link, rtt, model, rate, seconds, 3);
        assert!(found.worst() < 1e-6, "{link} {rtt} {model}: {found:?}");
        // The mean over all draws is the requested rate, though these three draws may be far from it.
        let asked: swell_base::Rate = rate.parse().unwrap();
        let off = (found.expected / asked.bps() as f64 - 1.0).abs();
        assert!(off < 0.05, "{link} {rtt} {model}: {found:?}");
        assert!(!found.missed);
    }
}

/// A part of the runs is measured, and tells what the others carry.
#[test]
fn where_there_are_many_runs_a_sample_suffices() {
    let found = found("12Mbit", "20ms", "streaming", "10Mbit", 30, 16);
    let exact = found.claimed.iter().zip(&found.carried);
    let exact = exact.filter(|(claimed, carried)| (*claimed / *carried - 1.0).abs() < 1e-6);
    assert!((4..16).contains(&exact.count()), "{found:?}");
    assert!((found.ratio() - 1.0).abs() < 0.01, "{found:?}");
    assert!(found.worst() < 0.1, "{found:?}");
}

/// Whole runs and their pieces carry different shares of what is offered, though no queue builds up.
const PIECES: f64 = 0.03;

#[test]
fn where_it_does_not_pieces_suffice() {
    let found = found("1Gbit", "40ms", "browsing", "8Mbit", 90, 3);
    assert!(found.worst() < PIECES, "{found:?}");
    assert!(!found.missed);
}

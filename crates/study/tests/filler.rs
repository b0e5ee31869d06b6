//! The filler study against closed forms, against ns-2.35 and on a real trace.

#![expect(clippy::print_stderr, reason = "a skipped test says why")]

use std::path::PathBuf;

use swell_base::{Dur, Rate, Warning};
use swell_study::filler::anchors::ANCHORS;
use swell_study::filler::cells::{FillerCell, NUMBERS, PRICES};
use swell_study::filler::lineup::FillerKind;
use swell_study::filler::{Setting, Trace, captured, run, stand_ins, study};
use swell_study::grid::Cell;

fn number(name: &str, numbers: &[f64]) -> f64 {
    let i = NUMBERS.iter().position(|n| *n == name);
    numbers[i.expect("a number of the study")]
}

fn cell(trace: &Trace, rate: u32, latency: u32, filler: bool) -> FillerCell<'_> {
    FillerCell::base(trace).link(rate, latency).filler(filler)
}

#[test]
fn agrees_with_ns_2_on_the_same_traces() {
    let traces = stand_ins(Dur::from_secs(600));
    for anchor in &ANCHORS {
        // Two settings of each trace; the study itself runs them all.
        if ![(3, 20), (10, 20)].contains(&(anchor.rate, anchor.latency)) {
            continue;
        }
        let trace = traces
            .iter()
            .find(|t| t.name == anchor.trace)
            .expect("a stand-in");
        let cell = cell(trace, anchor.rate, anchor.latency, anchor.filler.is_some());
        let numbers = cell.run();
        let get = |name| number(name, &numbers);
        let near = |ours: f64, theirs: f64, share: f64, floor: f64| {
            assert!(
                (ours - theirs).abs() <= (theirs * share).max(floor),
                "{:?}: {ours} against {theirs}",
                cell.key()
            );
        };
        near(get("pre_fwd_delay_ms"), anchor.present.delay, 0.02, 0.0);
        near(get("pre_rev_delay_ms"), anchor.reverse_delay, 0.02, 0.0);
        near(get("pre_fwd_drop_pct"), anchor.present.dropped, 0.1, 0.05);
        near(
            get("pre_fwd_kbytes_per_s"),
            anchor.present.kilobytes,
            0.03,
            0.0,
        );
        if let Some(f) = anchor.filler {
            near(get("fil_delay_ms"), f.delay, 0.02, 0.0);
            near(get("fil_drop_pct"), f.dropped, 0.1, 0.05);
            near(get("fil_kbytes_per_s"), f.kilobytes, 0.03, 0.0);
        }
    }
}

#[test]
fn the_wait_is_the_formula_for_poisson_arrivals() {
    let traces = stand_ins(Dur::from_secs(600));
    let poisson = traces.iter().find(|t| t.name == "poisson").expect("there");
    for rate in [6, 10] {
        for filler in [false, true] {
            let numbers = cell(poisson, rate, 20, filler).run();
            let bps = f64::from(rate) * 1e6;
            let share = number("fil_kbytes_per_s", &numbers) * 8e3 / bps;
            let formula = poisson.priority_wait(bps, share, 1000.0) * 1e3;
            let wait = number("pre_fwd_wait_ms", &numbers);
            assert!(
                (wait / formula - 1.0).abs() < 0.02,
                "{rate} Mbit/s, filler {filler}: {wait} ms against {formula}"
            );
        }
    }
}

#[test]
fn a_first_look_says_so_and_the_doubts_of_a_capture_are_told() {
    let mut traces = stand_ins(Dur::from_secs(1));
    traces.push(Trace {
        name: "mine".into(),
        doubts: vec![Warning::note("silence", "no packet for long")],
        ..traces[0].clone()
    });
    let study = study(&traces, &[], &[], "swell study filler --quick".into());
    let codes: Vec<&str> = study.doubts.iter().map(|d| d.code.as_str()).collect();
    assert_eq!(codes, ["quick-study", "silence"]);
    assert_eq!(study.doubts[1].message, "trace mine: no packet for long");
    assert_eq!(study.command, "swell study filler --quick");
}

#[test]
fn prices_are_asked_of_transports_that_there_are() {
    for (_, name) in PRICES {
        assert!(FillerKind::named(name).is_some(), "{name}");
    }
}

#[test]
fn a_real_trace_is_replayed_in_both_directions() {
    let folder = std::env::var_os("SWELL_TRACES").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/traces"
            ))
        },
        PathBuf::from,
    );
    let path = folder.join("derived/composite-access-link-5min.pcap.zst");
    if !path.exists() {
        assert!(
            std::env::var_os("CI").is_none(),
            "{} is missing; set SWELL_TRACES",
            path.display()
        );
        eprintln!("skipped: {} is missing; set SWELL_TRACES", path.display());
        return;
    }
    let trace = captured(&path).expect("it can be read");
    let both = trace.packets.each_ref().map(|p| p.len() as u64);
    assert!(both[0] + both[1] + trace.left_out > 100_000, "{both:?}");
    // Few packets stay on one side of this trace.
    assert!(
        trace.left_out * 20 < both[0] + both[1],
        "{}",
        trace.left_out
    );
    assert!(trace.load(0) > trace.load(1));
    let setting = Setting::paper(Rate::from_bps(15_000_000), Dur::from_millis(40), None);
    let outcome = run(&trace, &setting, 1);
    for (d, sent) in both.into_iter().enumerate() {
        // Packets larger than the link's were several.
        assert!(outcome.present[d].packets >= sent);
        let carried = outcome.present[d].kilobytes * 8e3;
        assert!(carried <= trace.load(d) * 1.01, "{carried}");
        assert!(carried > trace.load(d) * 0.95, "{carried}");
    }
}

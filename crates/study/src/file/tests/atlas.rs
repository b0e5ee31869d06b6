//! Tests the rules of the atlas on known numbers.

use super::*;
use crate::bundled::Bundled;
use crate::{Answer, Verdict};

/// The atlas, quick with five seeds, if an object takes one second without background and this long beside others:
/// the line and the seed.
fn atlas(p95: impl Fn(&str, usize) -> f64, objects: f64) -> Study {
    let bundled = Bundled::named("atlas").expect("it is carried");
    let overrides = Overrides {
        quick: true,
        seeds: Some(5),
        ..Overrides::default()
    };
    let study = bundled.study(&overrides).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<String> = study.measures().map(str::to_owned).collect();
    let numbers = study.groups().flat_map(|group| {
        let of = |name: &String, seed: usize| match name.as_str() {
            "p95" if group.background == "none" => 1.0,
            "p95" => p95(&group.background, seed),
            "objects" => objects,
            _ => 1.0,
        };
        (0..5)
            .map(|seed| names.iter().map(|name| of(name, seed)).collect())
            .collect::<Vec<_>>()
    });
    let numbers: Vec<Vec<f64>> = numbers.collect();
    study.study(&numbers)
}

fn verdicts(study: &Study) -> Vec<(Verdict, &str)> {
    let entries = study.ledgers.iter().flat_map(|l| &l.entries);
    entries
        .map(|e| (e.findings[0].verdict, &*e.findings[0].value))
        .collect()
}

/// Answer and frame of the first cell of each background.
fn cells(study: &Study) -> Vec<(Option<Answer>, bool)> {
    let picture = &study.sections[0].pictures[0];
    let panels = &picture.heatmap.as_ref().expect("a map").panels;
    assert_eq!(panels.len(), 4 * 2);
    assert!(panels.iter().all(|p| p.cells.len() == 4));
    let first = panels.iter().step_by(2).map(|p| &p.cells[0]);
    first.map(|c| (c.answer, c.framed)).collect()
}

#[test]
fn a_harm_that_packets_miss_is_a_flip() {
    let vary = |mean: f64, seed: usize| mean * (1.0 + 0.001 * seed as f64);
    let made = atlas(
        |line, seed| match line {
            "cbr" => vary(1.02, seed),
            // It is beyond the margin in three seeds of five.
            "poisson" => [1.05, 1.3, 1.0, 1.2, 1.3][seed],
            "replay" => vary(1.9, seed),
            _ => vary(2.0, seed),
        },
        50.0,
    );
    use Answer::{CannotTell, DoesNotMatter, Matters};
    let expected = [
        (Some(DoesNotMatter), true),
        (Some(CannotTell), false),
        (Some(Matters), false),
        (Some(Matters), false),
    ];
    assert_eq!(cells(&made), expected);
    let ledger = [
        (Verdict::DoesNotHold, "0.00 %"),
        (Verdict::DoesNotHold, "60.0 %"),
        (Verdict::Holds, "100.0 %"),
        (Verdict::Holds, "× 0.5838"),
    ];
    let found = verdicts(&made);
    for ((verdict, value), (v, text)) in found.iter().zip(ledger) {
        assert_eq!(*verdict, v, "{found:?}");
        assert!(*value == text, "{found:?}");
    }
    let detail = &made.ledgers[0].entries[0].findings[0].detail;
    let words = "of 8 places with enough objects both can tell at 8, and say the opposite at 8, 8 of them a harm that it misses";
    assert!(detail.ends_with(words), "{detail}");
}

#[test]
fn a_cell_has_the_interval_of_its_ratio() {
    let made = atlas(
        |line, seed| match line {
            "cbr" => [2.0, 4.0, 2.0, 4.0, 2.0][seed],
            _ => 2.0,
        },
        50.0,
    );
    let picture = &made.sections[0].pictures[0];
    let panels = &picture.heatmap.as_ref().expect("a map").panels;
    let cbr = panels[0].cells[0].value;
    // Logarithms ln 2 · (1, 2, 1, 2, 1): mean 1.4, s = 0.5477, half = 2.7764 × 0.5477 / √5 = 0.6801, each times ln 2.
    let [low, high] = cbr.interval.expect("five seeds have one");
    for (is, power) in [(cbr.value, 1.4), (low, 1.4 - 0.6801), (high, 1.4 + 0.6801)] {
        assert!((is / 2f64.powf(power) - 1.0).abs() < 1e-3, "{is}");
    }
    let same = panels[6].cells[0].value;
    assert_eq!((same.low(), same.high()), (same.value, same.value));
}

#[test]
fn few_objects_tell_nothing() {
    let made = atlas(|_, _| 2.0, 19.0);
    assert_eq!(cells(&made), [(Some(Answer::CannotTell), false); 4]);
    let all = verdicts(&made);
    assert!(all.iter().all(|v| v.0 == Verdict::NotTested), "{all:?}");
}

#[test]
fn a_run_without_objects_is_an_empty_cell() {
    let bare = |line: &str, _: usize| if line == "cbr" { f64::NAN } else { 2.0 };
    let made = atlas(bare, 50.0);
    let picture = &made.sections[0].pictures[0];
    let panels = &picture.heatmap.as_ref().expect("a map").panels;
    assert!(panels.iter().all(|p| p.row != "CBR") && panels.len() == 3 * 2);
    assert!(made.doubts.iter().all(|d| d.code != Code::FigureFailed));
    assert_eq!(verdicts(&made)[1].0, Verdict::Holds);
}

//! Claims judged on numbers that are known.

use super::cells::{COPIES, NUMBERS, cells};
use super::claims::ledger;
use super::results::Results;
use super::*;
use crate::{Ledger, Verdict};

/// Numbers of an original: ten of everything, energies that rise.
fn original() -> Vec<f64> {
    let number = |name: &&str| match name.strip_prefix("energy_") {
        Some(j) => j.parse().expect("a number"),
        None => 10.0,
    };
    NUMBERS.iter().map(number).collect()
}

fn judged(copy: impl Fn(&str, f64) -> f64) -> Ledger {
    let one: Vec<f64> = NUMBERS
        .iter()
        .zip(original())
        .map(|(n, x)| copy(n, x))
        .collect();
    let mut numbers = vec![original()];
    numbers.extend(std::iter::repeat_n(one, 2 * COPIES.len()));
    let results = Results::new(&numbers, 2).expect("as many as there are cells");
    ledger(&results, 12)
}

fn verdicts(ledger: &Ledger, id: &str) -> Vec<Verdict> {
    let entry = ledger.entries.iter().find(|e| e.id == id).expect("a claim");
    entry.findings.iter().map(|f| f.verdict).collect()
}

#[test]
fn a_perfect_copy_holds_and_what_says_that_it_cannot_be_does_not() {
    let ledger = judged(|_, x| x);
    for id in ["S4.4", "S4.5", "S4.6a", "S4.6b", "S4.6c", "S4.7a", "S4.7b"] {
        assert_eq!(verdicts(&ledger, id), [Verdict::Holds; 6], "{id}");
    }
    let (holds, fails, none) = (Verdict::Holds, Verdict::DoesNotHold, Verdict::NotTested);
    assert_eq!(
        verdicts(&ledger, "S4.8a"),
        [holds, none, holds, none, holds, holds]
    );
    assert_eq!(
        verdicts(&ledger, "S4.8c"),
        [none, fails, none, fails, none, none]
    );
    assert_eq!(
        verdicts(&ledger, "S4.8d"),
        [none, none, fails, fails, none, none]
    );
}

#[test]
fn what_is_off_does_not_hold() {
    let ledger = judged(|name, x| match name {
        "flows" => 0.52 * x,
        "bytes_3" | "size_99" => 1.3 * x,
        "host_1" => 3.0 * x,
        n if n.starts_with("packets") || n == "packet_size" => 1.1 * x,
        _ => x,
    });
    for (id, verdict) in [
        ("S4.4", Verdict::DoesNotHold),
        // One interval of twelve is more than 5 %.
        ("S4.5", Verdict::DoesNotHold),
        ("S4.6a", Verdict::DoesNotHold),
        ("S4.6b", Verdict::Holds),
        ("S4.6c", Verdict::InPart),
        ("S4.7a", Verdict::Holds),
        ("S4.7b", Verdict::DoesNotHold),
    ] {
        assert_eq!(verdicts(&ledger, id)[0], verdict, "{id}");
    }
    assert!(ledger.entries[0].findings[0].value.contains("-48"));
}

#[test]
fn every_cell_is_another_and_numbers_are_as_many_as_named() {
    let nobody = swell_traffic::Model::from_slice(NOBODY.as_bytes()).expect("a model");
    let original = Original::new(std::sync::Arc::new(nobody), 1.0, QUICK);
    let cells = cells(&original, 2);
    assert_eq!(cells.len(), 1 + 2 * COPIES.len());
    let mut keys: Vec<_> = cells
        .iter()
        .map(swell_experiment::run::grid::Cell::key)
        .collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), cells.len());
    // Of nobody's traffic nothing can be said.
    let numbers: Vec<Vec<f64>> = cells
        .iter()
        .map(swell_experiment::run::grid::Cell::run)
        .collect();
    assert!(
        numbers
            .iter()
            .all(|n| n.len() == NUMBERS.len() && n.iter().all(|x| x.is_nan()))
    );
    let times: Vec<Vec<f64>> = timestamps::cells(&original)
        .iter()
        .map(swell_experiment::run::grid::Cell::run)
        .collect();
    let study = study(&original, 2, &numbers, &times, "command".into());
    assert!(
        study
            .ledgers
            .iter()
            .flat_map(|l| &l.entries)
            .flat_map(|e| &e.findings)
            .all(|f| f.verdict == Verdict::NotTested)
    );
}

/// A model of no users.
const NOBODY: &str = include_str!("nobody.json");

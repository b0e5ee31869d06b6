//! Tests the rules of the Harpoon study on known numbers, and functions and numbered measures in a study.

use std::collections::BTreeMap;

use super::*;
use crate::Verdict;
use crate::bundled::Bundled;

/// Verdicts by claim and column if copies have `copy` of the original's number. The original has ten of everything,
/// rising energies, and records that are late as in the paper.
fn judged(copy: impl Fn(&str, f64) -> f64) -> BTreeMap<String, BTreeMap<String, Verdict>> {
    let bundled = Bundled::named("harpoon").expect("it is carried");
    let overrides = Overrides {
        quick: true,
        ..Overrides::default()
    };
    let study = bundled.study(&overrides).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<String> = study.measures().map(str::to_owned).collect();
    let numbers = study.groups().map(|group| {
        let is_original = group.name.starts_with("original");
        let swept = group.name.starts_with("swept");
        let number = |name: &String| {
            let late = |number: f64| if swept { number } else { 0.0 };
            let own = match (name.as_str(), name.split_once('_')) {
                ("end_mean", _) => late(0.454),
                ("end_50", _) => late(0.461),
                ("end_sd", _) => late(0.254),
                ("begin_50", _) => 0.0,
                ("active", _) => 10.0 + late(2.0),
                ("volume", _) => 1.0 + late(0.2),
                ("true_volume", _) => 1.0,
                (_, Some(("energy", octave))) => octave.parse().expect("a number"),
                _ => 10.0,
            };
            if is_original { own } else { copy(name, own) }
        };
        names.iter().map(number).collect()
    });
    let numbers: Vec<Vec<f64>> = numbers.collect();
    let made = study.study(&numbers);
    let doubts = made
        .doubts
        .iter()
        .filter(|d| d.code.as_str().ends_with("-failed"));
    assert_eq!(doubts.count(), 0, "{:?}", made.doubts);
    let mut all = BTreeMap::new();
    for ledger in &made.ledgers {
        for entry in &ledger.entries {
            let each = ledger.columns.iter().cloned();
            let each = each.zip(entry.findings.iter().map(|f| f.verdict));
            all.insert(entry.id.clone(), each.collect());
        }
    }
    all
}

#[test]
fn a_perfect_copy_holds_and_what_says_that_it_cannot_be_does_not() {
    let found = judged(|_, x| x);
    for id in ["S4.4", "S4.5", "S4.6a", "S4.6b", "S4.6c", "S4.7a", "S4.7b"] {
        assert!(
            found[id].values().all(|v| *v == Verdict::Holds) && found[id].len() == 6,
            "{id}: {:?}",
            found[id]
        );
    }
    let (holds, fails, none) = (Verdict::Holds, Verdict::DoesNotHold, Verdict::NotTested);
    for (id, column, verdict) in [
        ("S4.8a", "300s", holds),
        ("S4.8a", "300s-no-rtt", none),
        ("S4.8c", "300s", none),
        ("S4.8c", "60s-no-rtt", fails),
        ("S4.8d", "60s", fails),
        ("S4.9a", "as-metered", holds),
        ("S4.9b", "as-metered", fails),
        ("S4.9b", "swept", holds),
        ("S4.9c", "swept", holds),
        ("S4.9d", "swept", holds),
        ("S4.9d", "against-payload", fails),
    ] {
        assert_eq!(found[id][column], verdict, "{id} {column}");
    }
}

#[test]
fn a_copy_that_is_off_does_not_hold() {
    let found = judged(|name, x| match name {
        "connections" => 0.52 * x,
        "bytes_1" | "size_99" => 1.3 * x,
        "server_1" => 3.0 * x,
        n if n.starts_with("sent_") || n == "packet_size" => 1.1 * x,
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
        assert_eq!(found[id]["300s"], verdict, "{id}");
    }
}

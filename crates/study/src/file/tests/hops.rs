//! Tests the rules of the study of several hops on known numbers.

use super::*;
use crate::Verdict;
use crate::bundled::Bundled;

/// Verdicts on "one bottleneck will do" and "independent backgrounds will do", if the times of three seeds beside the
/// correlated background are 1 s, and beside the others these.
fn judged(median: [f64; 3], tail: [f64; 3]) -> Vec<Verdict> {
    let bundled = Bundled::named("hops").expect("it is carried");
    let overrides = Overrides {
        quick: true,
        ..Overrides::default()
    };
    let study = bundled.study(&overrides).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(study.seeds(), 3);
    let names: Vec<String> = study.measures().map(str::to_owned).collect();
    let numbers = study.groups().flat_map(|group| {
        let alone = ["independent", "alone2"].contains(&&*group.background);
        let of = |name: &String, seed: usize| match name.as_str() {
            "p50" if alone => median[seed],
            "p90" if alone => tail[seed],
            _ => 1.0,
        };
        (0..3)
            .map(|seed| names.iter().map(|name| of(name, seed)).collect())
            .collect::<Vec<_>>()
    });
    let numbers: Vec<Vec<f64>> = numbers.collect();
    let made = study.study(&numbers);
    let entries = made.ledgers.iter().flat_map(|l| &l.entries);
    entries.map(|e| e.findings[0].verdict).collect()
}

#[test]
fn an_interval_that_is_neither_within_nor_beyond_says_nothing() {
    let (same, wide, apart) = ([1.0, 1.01, 0.99], [0.7, 1.0, 1.6], [1.5, 1.51, 1.52]);
    for (median, tail, verdict) in [
        (same, same, Verdict::Holds),
        (same, apart, Verdict::InPart),
        (apart, same, Verdict::DoesNotHold),
        (apart, wide, Verdict::DoesNotHold),
        (wide, same, Verdict::NotTested),
        (wide, apart, Verdict::NotTested),
        (same, wide, Verdict::NotTested),
    ] {
        assert_eq!(judged(median, tail), [verdict; 2], "{median:?} {tail:?}");
    }
}

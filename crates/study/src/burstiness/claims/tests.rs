//! The rules on ns-2's numbers, of which it is known what they say, and on made-up ones.

use std::collections::BTreeMap;

use super::*;

fn verdicts(ledger: &Ledger) -> BTreeMap<String, Vec<Verdict>> {
    let each = ledger.entries.iter();
    each.map(|e| {
        let verdicts = e.findings.iter().map(|f| f.verdict);
        (e.id.clone(), verdicts.collect())
    })
    .collect()
}

#[test]
fn what_the_rules_say_of_ns2() {
    use Verdict::{DoesNotHold as No, Holds, InKind, NotTested};
    let got = verdicts(&ledger(&Ns2::new()));
    // Read off ns-2's means by hand: excess, deliveries and losses by number of clients.
    let expected = [
        ("S2.1", Holds, Holds),
        // At 5 clients up to 7 % before, 4.9 % after; 2 % below Poisson after 10 s.
        ("S2.2", InKind, Holds),
        ("S2.3a", Holds, Holds),
        ("S2.3b", Holds, Holds),
        ("S2.4a", Holds, Holds),
        // The weight of RED's average: 210 to 317 % before, 6 to 85 % after.
        // At 40 clients three seeds give 210 %, with an interval that reaches below 200.
        ("S2.4b", InKind, No),
        // At 40 to 42 clients the interval of three seeds is wider than the bar.
        ("S2.4c", Holds, InKind),
        ("S2.5a", Holds, Holds),
        // Five per cent fewer packets before, four per cent more after.
        ("S2.5b", Holds, No),
        ("S2.5c", Holds, Holds),
        ("S2.6", Holds, Holds),
        // A few pinned connections where nothing is congested.
        ("S2.7a", InKind, InKind),
        ("S2.7b", Holds, Holds),
        ("S2.8a", Holds, Holds),
        ("S2.8b", Holds, Holds),
    ];
    let expected = expected.map(|(id, era, modern)| (id.to_owned(), vec![era, modern, NotTested]));
    assert_eq!(got, BTreeMap::from(expected));
}

/// Every number of a metric the same, for chosen numbers of clients.
struct MadeUp(Vec<u16>, fn(&Key, Metric) -> f64);

impl Source for MadeUp {
    fn seconds(&self) -> u64 {
        200
    }
    fn clients(&self, _: Profile, _: &str, _: &str) -> Vec<u16> {
        self.0.clone()
    }
    fn get(&self, key: &Key, metric: Metric) -> Option<Estimate> {
        Some(Estimate::known(self.1(key, metric), 0.0, 3))
    }
}

#[test]
fn a_world_without_congestion_control_refutes_the_paper() {
    use Verdict::{DoesNotHold as No, Holds};
    let world = MadeUp(vec![5, 20, 40, 60], |key, metric| match metric {
        Metric::Cov | Metric::CovWarm => poisson(key.clients),
        Metric::Delivered | Metric::BackgroundDelivered => 1000.0,
        Metric::Loss | Metric::BackgroundLoss | Metric::LossWarm => 0.3,
    });
    let got = verdicts(&ledger(&world));
    for (id, verdict) in [
        ("S2.1", Holds),
        ("S2.2", Holds),
        ("S2.3a", No),
        ("S2.3b", No),
        ("S2.4a", No),
        ("S2.4b", No),
        ("S2.4c", Holds),
        ("S2.5a", No),
        ("S2.5b", No),
        ("S2.6", No),
        ("S2.7a", No),
        ("S2.8a", Holds),
        ("S2.8b", No),
    ] {
        assert_eq!(got[id], [verdict; 3], "{id}");
    }
}

#[test]
fn an_interval_that_crosses_the_bar_does_not_hold() {
    struct Wide(f64);
    impl Source for Wide {
        fn seconds(&self) -> u64 {
            200
        }
        fn clients(&self, _: Profile, _: &str, _: &str) -> Vec<u16> {
            vec![50]
        }
        fn get(&self, key: &Key, _: Metric) -> Option<Estimate> {
            // 150 % above Poisson.
            Some(Estimate::known(2.5 * poisson(key.clients), self.0, 5))
        }
    }
    let verdict = |sd| verdicts(&ledger(&Wide(sd)))["S2.4a"][0];
    assert_eq!(verdict(0.0), Verdict::Holds);
    assert_eq!(verdict(0.02), Verdict::InKind);
}

#[test]
fn what_was_not_run_is_not_tested() {
    let nothing = MadeUp(Vec::new(), |_, _| f64::NAN);
    let ledger = ledger(&nothing);
    let small = ledger.entries.iter().take(11);
    assert!(
        small
            .flat_map(|e| &e.findings)
            .all(|f| f.verdict == Verdict::NotTested)
    );
}

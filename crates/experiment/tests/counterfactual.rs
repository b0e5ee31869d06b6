//! The quick version of `scripts/counterfactual`: one world, two changes, two seeds.

#[path = "../examples/counterfactual/ask.rs"]
mod ask;
#[path = "../examples/counterfactual/changes.rs"]
mod changes;
#[path = "../examples/counterfactual/worlds.rs"]
mod worlds;

use ask::Inquiry;

#[test]
fn a_learnt_model_tells_better_than_poisson_packets_what_would_be() {
    let scratch = tempfile::tempdir().unwrap();
    let inquiry = Inquiry {
        seeds: 2,
        duration: 100,
        ..Inquiry::default()
    };
    let asked = ["rate × 0.75", "CoDel"];
    let mut changes = changes::all();
    assert_eq!(changes.len(), 24);
    changes.retain(|c| asked.contains(&c.0));
    let world = worlds::world("access-link", scratch.path()).unwrap();
    let table = inquiry.world(&world, &changes, scratch.path());
    let table = table.unwrap().expect("something was played");
    let details = table.details();
    assert!(asked.iter().all(|change| details.contains(change)));
    // Of the 95th percentile of 1 MB, where Poisson packets are off by more than half.
    let [learnt, poisson] = [0, 2].map(|who| table.median(who, 2));
    assert!(
        learnt < 0.5 && learnt < poisson,
        "{details}{}",
        table.summary()
    );
}

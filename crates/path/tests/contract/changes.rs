//! Changes with random parameters, including extreme ones.

use std::sync::Arc;

use swell_base::{Dur, Rate, Stream, Time};
use swell_path::{Capacity, Change, Deliveries, Loss, NewQueue, Outage};

use crate::common;

/// A delivery trace that lasts some tens of milliseconds.
fn random_trace(rng: &mut Stream) -> Arc<Deliveries> {
    let mut stamp = 0;
    let mut text = String::new();
    for _ in 0..=rng.below(30) {
        stamp += rng.below(3);
        text += &format!("{stamp}\n");
    }
    text += &format!("{}\n", stamp + 1);
    Arc::new(Deliveries::read(text.as_bytes()).expect("stamps that grow"))
}

fn random_capacity(rng: &mut Stream) -> Capacity {
    match rng.below(6) {
        0 => Capacity::Unlimited,
        1 => Capacity::Rate(Rate::from_bps(0)),
        2 => Capacity::Deliveries {
            trace: random_trace(rng),
            phase: Dur::from_nanos(rng.below(40_000_000)),
        },
        _ => Capacity::Rate(Rate::from_bps(rng.below(50_000_000) + 1)),
    }
}

/// Random changes of a link during the second in which it is used. The link stops often, but never for good.
pub fn random_changes(rng: &mut Stream) -> Vec<Change> {
    let mut changes: Vec<Change> = (0..=rng.below(6)).map(|_| random_change(rng)).collect();
    changes.push(Change {
        at: Time::from_nanos(800_000_000),
        every: Some(Dur::from_millis(37)),
        capacity: Some(Capacity::Rate(Rate::from_bps(
            rng.below(50_000_000) + 100_000,
        ))),
        ..Change::default()
    });
    changes
}

fn random_change(rng: &mut Stream) -> Change {
    let every = Dur::from_nanos(rng.below(200_000_000) + 1_000_000);
    Change {
        at: Time::from_nanos(rng.below(800_000_000)),
        every: rng.chance(0.3).then_some(every),
        capacity: rng.chance(0.4).then(|| random_capacity(rng)),
        delay: rng
            .chance(0.3)
            .then(|| Dur::from_nanos(rng.below(30_000_000))),
        loss: rng.chance(0.2).then(|| Loss::Independent {
            p: rng.uniform() * 0.5,
        }),
        queue: rng.chance(0.4).then(|| NewQueue {
            discipline: common::random_discipline(rng),
            limit: common::random_limit(rng),
            rate: rng
                .chance(0.8)
                .then(|| Rate::from_bps(rng.below(50_000_000) + 7)),
        }),
        // Up to six such outages leave at least a quarter of the time.
        outage: rng.chance(0.3).then(|| Outage {
            length: every / 8,
            lossy: rng.chance(0.5),
        }),
    }
}

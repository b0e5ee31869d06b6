//! Sessions that last are played once at a time.

use std::sync::Arc;

use swell_base::{Dur, Time};
use swell_traffic::{Exchange, Group, Lasting, Schedule, Start};
use swell_workload::{Record, Structural};

use crate::common::Ideal;
use crate::structural::{DELAY, connection, model, ms, turn};

/// A session that lasts begins a pause after its predecessor has ended, and not before its time. Others, and the first of
/// each copy, begin at their times.
#[test]
fn a_user_who_stays_does_not_come_twice() {
    let groups = || {
        let exchange = Exchange::Sequential(vec![turn(100, 5_000, 1_000, 0)]);
        vec![Group {
            think: Dur::ZERO,
            connections: vec![connection(Dur::ZERO, exchange)],
        }]
    };
    let every = |cycle| {
        Some(Lasting {
            rest: Dur::from_millis(500),
            cycle: Dur::from_secs(cycle),
        })
    };
    for (lasting, copies, expected) in [
        // Each takes 5 s and two round trips of 20 ms.
        (every(2), &[0][..], [1_000, 6_540, 12_080]),
        (every(8), &[0], [1_000, 9_000, 17_000]),
        (every(2), &[0, 1], [1_000, 2_000, 6_540]),
        (None, &[0, 0, 0], [1_000, 2_000, 3_000]),
    ] {
        let starts = (1..).zip(copies).map(|(second, &copy)| Start {
            at: Time::ZERO + Dur::from_secs(second),
            session: 0,
            copy,
        });
        let schedule = Schedule {
            starts: starts.collect(),
            lasting: vec![lasting],
            ..Schedule::default()
        };
        let machine = Structural::new(Arc::new(model(groups())), &schedule);
        let mut net = Ideal::new(machine, DELAY);
        let flows = net.run(Dur::from_secs(1_000));
        let mut begun: Vec<u64> = flows
            .iter()
            .map(|r| match r {
                Record::Flow(f) => ms(f.start),
                Record::Request(r) => panic!("a background left a request: {r:?}"),
            })
            .collect();
        begun.sort_unstable();
        begun.truncate(3);
        assert_eq!(begun, expected, "{lasting:?} {copies:?}");
    }
}

/// The next copy also waits for a connection that goes on beside the last group.
#[test]
fn a_user_who_stays_first_ends_the_connections_that_go_on() {
    let long = vec![turn(100, 0, 1_000, 0), turn(100, 20_000, 1_000, 0)];
    let mut kept = connection(Dur::ZERO, Exchange::Sequential(long));
    kept.overlap = Some([1, 1]);
    let short = connection(
        Dur::ZERO,
        Exchange::Sequential(vec![turn(100, 0, 1_000, 0)]),
    );
    let groups = [kept, short].map(|c| Group {
        think: Dur::ZERO,
        connections: vec![c],
    });
    let schedule = Schedule {
        starts: vec![Start {
            at: Time::ZERO,
            session: 0,
            copy: 0,
        }],
        lasting: vec![Some(Lasting {
            rest: Dur::from_millis(500),
            cycle: Dur::from_secs(1),
        })],
        ..Schedule::default()
    };
    let machine = Structural::new(Arc::new(model(groups.into())), &schedule);
    let mut net = Ideal::new(machine, DELAY);
    let flows = net.run(Dur::from_secs(30));
    let start = |r: &Record| match r {
        Record::Flow(f) => ms(f.start),
        Record::Request(r) => panic!("a background left a request: {r:?}"),
    };
    let mut begun: Vec<u64> = flows.iter().map(start).collect();
    begun.sort_unstable();
    assert!(begun[1] < 1_000 && begun[2] > 20_000, "{begun:?}");
}

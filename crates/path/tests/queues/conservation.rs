//! Properties of every discipline: no packet is lost without account or duplicated, flows keep their order, and equal
//! seeds give equal results.

use std::collections::BTreeMap;

use swell_base::{DropReason, Dur, Packet, Stream, Tag, Time};
use swell_path::{
    Backlog, Choke, CoDel, Discipline, Drr, Fifo, FqCoDel, Outlet, Pie, Priority, Qdisc, Red,
};

use crate::{common, outlet, packet};

fn build(discipline: &Discipline, outlet: &Outlet, rng: Stream) -> Box<dyn Qdisc> {
    match discipline {
        Discipline::Fifo => Box::new(Fifo::new(outlet.limit, outlet.rate)),
        Discipline::Red(c) => Box::new(Red::new(c, outlet, rng)),
        Discipline::Priority(c) => Box::new(Priority::new(c, outlet)),
        Discipline::Drr(c) => Box::new(Drr::new(c, outlet, rng)),
        Discipline::CoDel(c) => Box::new(CoDel::new(c, outlet)),
        Discipline::FqCoDel(c) => Box::new(FqCoDel::new(c, outlet, rng)),
        Discipline::Choke(c) => Box::new(Choke::new(c, outlet, rng)),
        Discipline::Pie(c) => Box::new(Pie::new(c, outlet, rng)),
    }
}

#[derive(Debug, PartialEq)]
enum Fate {
    Sent(u64),
    Refused(u64, DropReason),
    Dropped(u64, DropReason),
}

/// Runs a random discipline through random calls, with an independent record of the packets it holds.
fn run(seed: u64) -> Vec<Fate> {
    let mut rng = Stream::new(seed, "calls");
    let discipline = common::random_discipline(&mut rng);
    let outlet = Outlet {
        limit: common::random_limit(&mut rng),
        ..outlet()
    };
    let mut q = build(&discipline, &outlet, Stream::new(seed, "queue"));
    let mut inside: BTreeMap<u64, Packet> = BTreeMap::new();
    let mut last_sent: BTreeMap<(u32, Tag), u64> = BTreeMap::new();
    let mut fates = Vec::new();
    let mut now = Time::ZERO;
    let busy = rng.uniform() * 0.4 + 0.4;
    for number in 0..3_000u64 {
        now += Dur::from_nanos(rng.below(2_000_000));
        let mut gone = Vec::new();
        let mut dropped = |p: Packet, reason| gone.push((p, reason));
        if rng.chance(busy) {
            let mut p = packet(rng.below(6) as u32, number, rng.below(1500) as u16 + 1);
            p.seg.ecn = rng.below(4) as u8;
            match q.enqueue(now, p, &mut dropped) {
                Ok(()) => {
                    inside.insert(number, p);
                }
                Err(reason) => fates.push(Fate::Refused(number, reason)),
            }
        } else if let Some(p) = q.dequeue(now, &mut dropped) {
            let was = inside.remove(&p.seg.seq);
            assert_eq!(was.map(|w| (w.flow, w.size)), Some((p.flow, p.size)));
            if let Some(w) = was
                && w.seg.ecn != p.seg.ecn
            {
                assert!(w.seg.ecn != 0 && p.seg.ecn == 3, "only ECT becomes CE");
            }
            let last = last_sent.insert((p.flow.0, p.tag), p.seg.seq);
            assert!(last < Some(p.seg.seq), "{discipline:?} reorders a flow");
            fates.push(Fate::Sent(p.seg.seq));
        }
        for (p, reason) in gone {
            assert!(
                inside.remove(&p.seg.seq).is_some(),
                "dropped what it had not"
            );
            fates.push(Fate::Dropped(p.seg.seq, reason));
        }
        let held = Backlog {
            packets: inside.len() as u64,
            bytes: inside.values().map(|p| u64::from(p.size)).sum(),
        };
        assert_eq!(q.backlog(), held, "{discipline:?}");
    }
    // All packets come out in the end.
    while !inside.is_empty() {
        now += Dur::from_millis(1);
        let mut gone = Vec::new();
        let next = q.dequeue(now, &mut |p, _| gone.push(p));
        assert!(
            next.is_some() || !gone.is_empty(),
            "{discipline:?} is stuck"
        );
        for p in gone.into_iter().chain(next) {
            assert!(inside.remove(&p.seg.seq).is_some());
        }
    }
    assert_eq!(q.backlog(), Backlog::default());
    assert!(q.dequeue(now, &mut |_, _| ()).is_none());
    fates
}

#[test]
fn every_packet_has_one_fate_and_equal_seeds_have_equal_ones() {
    for seed in 0..200 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

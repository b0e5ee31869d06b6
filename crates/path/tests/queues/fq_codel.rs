//! FQ-CoDel compared with RFC 8290.

use swell_base::{Bytes, DropReason, Dur, Packet, QueueLimit, Rate, Stream, Time};
use swell_path::{
    Change, CoDel, Discipline, FqCoDel, FqCoDelConfig, Link, LinkConfig, Loss, Outlet, Qdisc,
};

use crate::{at_ms, never, outlet, packet};

fn fq(config: &FqCoDelConfig, limit: u64) -> FqCoDel {
    let outlet = Outlet {
        limit: QueueLimit::Packets(limit),
        ..outlet()
    };
    FqCoDel::new(config, &outlet, Stream::new(1, "fq"))
}

/// The scheduler of section 4 on plain lists, one queue per flow, at delays where CoDel never acts.
#[derive(Default)]
struct Rfc {
    queues: [Vec<(u64, i64)>; 5],
    credits: [i64; 5],
    new: Vec<usize>,
    old: Vec<usize>,
}

impl Rfc {
    const QUANTUM: i64 = 1514;

    fn enqueue(&mut self, flow: usize, number: u64, size: i64) {
        self.queues[flow].push((number, size));
        if !self.new.contains(&flow) && !self.old.contains(&flow) {
            self.new.push(flow);
            self.credits[flow] = Rfc::QUANTUM;
        }
    }
    fn dequeue(&mut self) -> Option<u64> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new {
                &mut self.new
            } else {
                &mut self.old
            };
            let flow = *list.first()?;
            if self.credits[flow] <= 0 {
                self.credits[flow] += Rfc::QUANTUM;
                list.remove(0);
                self.old.push(flow);
                continue;
            }
            if self.queues[flow].is_empty() {
                list.remove(0);
                if from_new {
                    self.old.push(flow);
                }
                continue;
            }
            let (number, size) = self.queues[flow].remove(0);
            self.credits[flow] -= size;
            return Some(number);
        }
    }
}

#[test]
fn serves_in_the_order_of_the_rfc() {
    let patient = FqCoDelConfig {
        target: Dur::MAX,
        ecn: false,
        ..FqCoDelConfig::default()
    };
    for seed in 0..30 {
        let mut rng = Stream::new(seed, "calls");
        let mut ours = fq(&patient, u64::MAX);
        let mut rfc = Rfc::default();
        let busy = 0.4 + rng.uniform() * 0.2;
        for number in 0..5_000 {
            if rng.chance(busy) {
                let (flow, size) = (rng.below(5), rng.below(1461) + 40);
                let p = packet(flow as u32, number, size as u16);
                assert_eq!(ours.enqueue(Time::ZERO, p, &mut never), Ok(()));
                rfc.enqueue(flow as usize, number, size as i64);
            } else {
                let got = ours.dequeue(Time::ZERO, &mut never).map(|p| p.seg.seq);
                assert_eq!(got, rfc.dequeue(), "seed {seed}");
            }
        }
    }
}

#[test]
fn a_single_flow_has_the_drops_of_codel() {
    let config = FqCoDelConfig {
        ecn: false,
        ..FqCoDelConfig::default()
    };
    let mut fq = fq(&config, u64::MAX);
    let mut codel = CoDel::new(&config.codel(), &outlet());
    let mut rng = Stream::new(9, "calls");
    let mut number = 0;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for t in 0..20_000 {
        // 1000 packets per second are served. 1100 arrive per second, in the second half 700.
        while rng.chance(if t < 10_000 { 0.524 } else { 0.412 }) {
            let p = packet(7, number, 1000);
            assert_eq!(fq.enqueue(at_ms(t), p, &mut never), Ok(()));
            assert_eq!(codel.enqueue(at_ms(t), p, &mut never), Ok(()));
            number += 1;
        }
        if codel.backlog().packets > 0 {
            let x = fq.dequeue(at_ms(t), &mut |p, _| a.push(p.seg.seq));
            let y = codel.dequeue(at_ms(t), &mut |p, _| b.push(p.seg.seq));
            assert_eq!(x, y, "at {t} ms");
        }
    }
    assert_eq!(a, b);
    assert!(a.len() > 100, "{}", a.len());
}

#[test]
fn a_sparse_flow_goes_first() {
    let mut q = fq(&FqCoDelConfig::default(), u64::MAX);
    for flow in 0..10 {
        for i in 0..20 {
            let p = packet(flow, i, 1500);
            assert_eq!(q.enqueue(Time::ZERO, p, &mut never), Ok(()));
        }
    }
    // One round, after which the ten are old.
    for _ in 0..20 {
        assert!(q.dequeue(Time::ZERO, &mut never).is_some());
    }
    assert_eq!(
        q.enqueue(Time::ZERO, packet(99, 1000, 100), &mut never),
        Ok(())
    );
    let next = q.dequeue(Time::ZERO, &mut never);
    assert_eq!(next.map(|p| p.flow.0), Some(99));
    // But it cannot starve them: if it returns at once, it is an old queue and waits for its turn.
    assert_eq!(
        q.enqueue(Time::ZERO, packet(99, 1001, 1500), &mut never),
        Ok(())
    );
    let turn = (0..20)
        .position(|_| q.dequeue(Time::ZERO, &mut never).map(|p| p.flow.0) == Some(99))
        .expect("within two rounds");
    assert!(turn <= 11, "{turn}");
}

/// The serializer of an idle link has found all queues empty (`fq_codel_dequeue` until it returns nothing). So a flow
/// with pauses begins as a new queue each time, and sends a whole quantum before a flow that comes later.
#[test]
fn a_flow_is_new_after_the_link_was_idle() {
    let rate = Some(Rate::from_bps(10_000_000));
    // A link with a rate, and one that follows a schedule.
    let later = Change {
        at: at_ms(60_000),
        loss: Some(Loss::None),
        ..Change::default()
    };
    for changes in [vec![], vec![later]] {
        let config = LinkConfig {
            rate,
            discipline: Discipline::FqCoDel(FqCoDelConfig::default()),
            changes,
            ..LinkConfig::default()
        };
        let mut link = Link::new(&config, 1, "link");
        let mut order = Vec::new();
        for number in 0..5 {
            link.push(at_ms(1000 * number), packet(1, number, 1500));
        }
        link.push(at_ms(4000), packet(1, 5, 1500));
        link.push(at_ms(4000), packet(2, 0, 1500));
        while let Some((_, p)) = link.pop(at_ms(5000)) {
            order.push(p.flow.0);
        }
        assert_eq!(order, [1, 1, 1, 1, 1, 1, 2]);
    }
}

#[test]
fn the_fattest_flow_loses_half_its_packets_from_the_head() {
    let run = |batch| {
        let config = FqCoDelConfig {
            drop_batch: batch,
            ..FqCoDelConfig::default()
        };
        let mut q = fq(&config, 100);
        for i in 0..60 {
            assert_eq!(
                q.enqueue(Time::ZERO, packet(1, i, 1000), &mut never),
                Ok(())
            );
        }
        for i in 0..40 {
            assert_eq!(q.enqueue(Time::ZERO, packet(2, i, 200), &mut never), Ok(()));
        }
        let mut victims: Vec<Packet> = Vec::new();
        let accepted = q.enqueue(Time::ZERO, packet(2, 40, 200), &mut |p, why| {
            assert_eq!(why, DropReason::QueueFull);
            victims.push(p);
        });
        assert_eq!(accepted, Ok(()));
        assert!(victims.iter().all(|p| p.flow.0 == 1));
        victims.iter().map(|p| p.seg.seq).collect::<Vec<_>>()
    };
    assert_eq!(run(64), (0..30).collect::<Vec<_>>());
    assert_eq!(run(8), (0..8).collect::<Vec<_>>());
}

/// An overflow at the start of a run is no earlier dropping state, so the control law begins at its slowest.
#[test]
fn an_overflow_before_the_first_signal_sets_no_rate() {
    let mut q = fq(&FqCoDelConfig::default(), 100);
    let mut early = 0;
    for i in 0..150 {
        let accepted = q.enqueue(Time::ZERO, packet(1, i, 1000), &mut |_, why| {
            assert_eq!(why, DropReason::QueueFull);
            early += 1;
        });
        assert_eq!(accepted, Ok(()));
    }
    assert!(early >= 50, "{early}");
    let mut signals = Vec::new();
    for t in 0..400 {
        assert_eq!(q.enqueue(at_ms(t), packet(1, t, 1000), &mut never), Ok(()));
        let sent = q.dequeue(at_ms(t), &mut |_, why| {
            assert_eq!(why, DropReason::Aqm);
            signals.push(t);
        });
        assert!(sent.is_some());
    }
    // The first, the next after 100 ms, then after 71 ms (section 5.6 of RFC 8289).
    let gaps: Vec<u64> = signals.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(matches!(gaps[..], [100..=101, 70..=72, ..]), "{signals:?}");
}

#[test]
fn a_flood_does_no_harm_to_the_others() {
    // Three flows of 250 packets/s and one of 2000 packets/s; the link sends 1000 packets/s.
    let mut q = fq(&FqCoDelConfig::default(), 1000);
    let mut sent = [0u32; 4];
    let mut lost = [0u32; 4];
    for t in 0..20_000u64 {
        let comes = [t % 4 == 0, t % 4 == 1, t % 4 == 2].into_iter().zip(0..3);
        for flow in comes
            .filter_map(|(yes, flow)| yes.then_some(flow))
            .chain([3, 3])
        {
            let accepted = q.enqueue(at_ms(t), packet(flow, t, 1000), &mut |p, _| {
                lost[p.flow.0 as usize] += 1;
            });
            assert_eq!(accepted, Ok(()));
        }
        if let Some(p) = q.dequeue(at_ms(t), &mut |p, _| lost[p.flow.0 as usize] += 1) {
            sent[p.flow.0 as usize] += 1;
        }
    }
    // Each of the three gets its 5000 packets to within a round; the fast flow gets the rest.
    for (flow, packets) in sent.into_iter().enumerate() {
        assert!(packets.abs_diff(5_000) <= 20, "flow {flow}: {packets}");
    }
    assert_eq!(lost[..3], [0, 0, 0]);
}

#[test]
fn marks_are_the_default_for_those_who_understand() {
    let mut q = fq(&FqCoDelConfig::default(), u64::MAX);
    let mut marks = 0;
    for t in 0..2_000 {
        for _ in 0..if t == 0 { 100 } else { 1 } {
            let mut p = packet(1, t, 1000);
            p.seg.ecn = 2;
            assert_eq!(q.enqueue(at_ms(t), p, &mut never), Ok(()));
        }
        let p = q.dequeue(at_ms(t), &mut never).expect("backlogged");
        marks += u64::from(p.seg.ecn == 3);
    }
    assert!(marks > 50);
    assert_eq!(q.marked(), marks);
}

/// A hundred flows with two packets each at 10 Mbit/s: each packet waits for 240 ms, and CoDel must say so.
#[test]
fn many_thin_flows_get_signals() {
    let mut q = fq(&FqCoDelConfig::default(), u64::MAX);
    let at = |n: u64| Time::from_nanos(n * 1_200_000);
    for i in 0..200 {
        assert_eq!(
            q.enqueue(at(0), packet(i % 100, 0, 1500), &mut never),
            Ok(())
        );
    }
    let mut signals = [0u32; 100];
    let mut longest = 0;
    for n in 1..10_000 {
        let mut gone = Vec::new();
        let sent = q.dequeue(at(n), &mut |p, _| gone.push(p));
        for p in &gone {
            signals[p.flow.0 as usize] += 1;
        }
        // Each flow always has two packets there.
        for p in gone.into_iter().chain(sent) {
            let next = packet(p.flow.0, n, 1500);
            longest = longest.max(n - p.seg.seq);
            assert_eq!(q.enqueue(at(n), next, &mut never), Ok(()));
        }
    }
    assert!(longest >= 190, "{longest}");
    assert!(signals.iter().all(|&n| n > 0), "{signals:?}");
}

/// A quantum of a byte gives the order of any other, and costs no time: 1500 rounds of a thousand queues would take
/// minutes here.
#[test]
fn small_quanta_are_as_fast() {
    let config = FqCoDelConfig {
        quantum: Bytes(1),
        target: Dur::MAX,
        ecn: false,
        ..FqCoDelConfig::default()
    };
    let mut q = fq(&config, u64::MAX);
    for i in 0..40_000 {
        let p = packet(i % 1_000, u64::from(i), 1500);
        assert_eq!(q.enqueue(Time::ZERO, p, &mut never), Ok(()));
    }
    let mut sent = vec![0u32; 1_000];
    for _ in 0..20_000 {
        let p = q.dequeue(Time::ZERO, &mut never).expect("backlogged");
        sent[p.flow.0 as usize] += 1;
    }
    // Flows that share a queue share its turns, so the most is that of a queue.
    assert!(*sent.iter().max().expect("flows") <= 40);
    assert!(sent.iter().filter(|&&n| n > 0).count() > 900);
}

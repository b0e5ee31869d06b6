//! Deficit round robin compared with Shreedhar & Varghese 1996.

use swell_base::{DropReason, FlowId, QueueLimit, Stream, Time};
use swell_path::{Classifier, Drr, DrrConfig, Outlet, Qdisc};

use crate::{never, outlet, packet};

/// Maps flow k to queue k.
fn by_number(queues: u16) -> Classifier {
    Classifier::FlowsFrom((0..queues).map(|k| (FlowId(u32::from(k)), k)).collect())
}

fn config(quantum: u32, quanta: &[u32]) -> DrrConfig {
    DrrConfig {
        classifier: by_number(4),
        queues: 4,
        quantum,
        quanta: quanta.to_vec(),
    }
}

fn drr(config: &DrrConfig) -> Drr {
    Drr::new(config, &outlet(), Stream::new(1, "drr"))
}

/// The paper's algorithm on plain lists, one whole visit at a time.
fn rounds(queues: &[Vec<u64>], quanta: &[u64]) -> Vec<usize> {
    let mut queues = queues.to_vec();
    let mut deficit = vec![0; queues.len()];
    let mut order = Vec::new();
    while queues.iter().any(|q| !q.is_empty()) {
        for i in 0..queues.len() {
            if queues[i].is_empty() {
                continue;
            }
            deficit[i] += quanta[i];
            while let Some(&size) = queues[i].first() {
                if size > deficit[i] {
                    break;
                }
                deficit[i] -= size;
                queues[i].remove(0);
                order.push(i);
            }
            if queues[i].is_empty() {
                deficit[i] = 0;
            }
        }
    }
    order
}

#[test]
fn serves_in_the_order_of_the_paper() {
    for seed in 0..50 {
        let mut rng = Stream::new(seed, "sizes");
        let quanta: Vec<u32> = (0..4).map(|_| rng.below(3000) as u32 + 50).collect();
        let mut q = drr(&config(1, &quanta));
        // The queues become active in order of their numbers.
        let mut queues = vec![Vec::new(); 4];
        for i in 0..200 {
            let k = if i < 4 { i } else { rng.below(4) as usize };
            let size = rng.below(1460) + 40;
            queues[k].push(size);
            let p = packet(k as u32, i as u64, size as u16);
            assert_eq!(q.enqueue(Time::ZERO, p, &mut never), Ok(()));
        }
        let mut got = Vec::new();
        while let Some(p) = q.dequeue(Time::ZERO, &mut never) {
            got.push(p.flow.0 as usize);
        }
        let wide: Vec<u64> = quanta.iter().map(|&x| u64::from(x)).collect();
        assert_eq!(got, rounds(&queues, &wide), "seed {seed}");
    }
}

#[test]
fn backlogged_flows_differ_by_no_more_than_the_papers_bound() {
    // The paper's fairness theorem: over any interval, for flows that are always backlogged, bytes over share differ
    // by at most Quantum + 2 Max.
    let mut rng = Stream::new(3, "sizes");
    let (quantum, largest) = (2_000.0, 1_500.0);
    let mut q = drr(&config(quantum as u32, &[]));
    let size = |k: u32, draw: &mut Stream| match k {
        0 => 1_500,
        1 => 40,
        2 => draw.below(1_461) as u16 + 40,
        _ => [40, 1_500][draw.below(2) as usize],
    };
    for k in 0..4 {
        for i in 0..100 {
            let p = packet(k, i, size(k, &mut rng));
            assert_eq!(q.enqueue(Time::ZERO, p, &mut never), Ok(()));
        }
    }
    let mut sent = [0.0f64; 4];
    let mut range = [[(0.0f64, 0.0f64); 4]; 4];
    for i in 0..200_000 {
        let p = q
            .dequeue(Time::ZERO, &mut never)
            .expect("always backlogged");
        let k = p.flow.0;
        sent[k as usize] += f64::from(p.size);
        let again = packet(k, i, size(k, &mut rng));
        assert_eq!(q.enqueue(Time::ZERO, again, &mut never), Ok(()));
        for a in 0..4 {
            for b in 0..4 {
                let d = sent[a] - sent[b];
                let (low, high) = range[a][b];
                range[a][b] = (low.min(d), high.max(d));
            }
        }
    }
    for (low, high) in range.into_iter().flatten() {
        assert!(high - low <= quantum + 2.0 * largest, "{low} to {high}");
    }
}

#[test]
fn shares_are_in_proportion_to_quanta() {
    let mut q = drr(&config(1_500, &[1_500, 3_000, 6_000]));
    for k in 0..3 {
        for i in 0..50 {
            assert_eq!(
                q.enqueue(Time::ZERO, packet(k, i, 1000), &mut never),
                Ok(())
            );
        }
    }
    let mut sent = [0u32; 3];
    for i in 0..7_000 {
        let p = q
            .dequeue(Time::ZERO, &mut never)
            .expect("always backlogged");
        sent[p.flow.0 as usize] += 1;
        let again = packet(p.flow.0, i, 1000);
        assert_eq!(q.enqueue(Time::ZERO, again, &mut never), Ok(()));
    }
    for (packets, share) in sent.into_iter().zip([1_000, 2_000, 4_000]) {
        // Within one round of 10 500 bytes.
        assert!(packets.abs_diff(share) <= 11, "{packets} against {share}");
    }
}

#[test]
fn the_longest_queue_makes_room() {
    let small = Outlet {
        limit: QueueLimit::Packets(10),
        ..outlet()
    };
    let mut q = Drr::new(&config(1_500, &[]), &small, Stream::new(1, "drr"));
    for i in 0..10 {
        assert_eq!(
            q.enqueue(Time::ZERO, packet(0, i, 1000), &mut never),
            Ok(())
        );
    }
    let mut victims = Vec::new();
    for i in 0..3 {
        let accepted = q.enqueue(Time::ZERO, packet(1, 100 + i, 1000), &mut |p, why| {
            assert_eq!(why, DropReason::QueueFull);
            victims.push(p.seg.seq);
        });
        assert_eq!(accepted, Ok(()));
    }
    assert_eq!(victims, [9, 8, 7], "the last of the longest");
    assert_eq!(q.backlog().packets, 10);
}

#[test]
fn a_queue_that_runs_empty_saves_nothing_up() {
    let mut q = drr(&config(1_500, &[]));
    let calls = [(0, 100, 1), (1, 1_500, 9), (0, 1_400, 9)];
    let mut order = Vec::new();
    for (flow, size, n) in calls {
        if size == 1_400 {
            // By now flow 0 has 1400 bytes of its quantum left.
            order.extend((0..2).map(|_| q.dequeue(Time::ZERO, &mut never).map(|p| p.flow.0)));
        }
        for i in 0..n {
            let p = packet(flow, i, size);
            assert_eq!(q.enqueue(Time::ZERO, p, &mut never), Ok(()));
        }
    }
    // If it had kept them, it could send two packets at its next turn.
    order.extend((0..4).map(|_| q.dequeue(Time::ZERO, &mut never).map(|p| p.flow.0)));
    assert_eq!(order, [0, 1, 0, 1, 0, 1].map(Some));
}

/// A full discipline drops the last packet of the queue with the most bytes, whatever that queue has sent before.
#[test]
fn the_longest_queue_loses_its_last_packet() {
    for seed in 0..20 {
        let mut rng = Stream::new(seed, "full");
        let narrow = Outlet {
            limit: QueueLimit::Packets(20),
            ..outlet()
        };
        let mut q = Drr::new(&config(1_500, &[]), &narrow, Stream::new(1, "drr"));
        // Number and size of the waiting packets.
        let mut waiting: Vec<Vec<(u64, u64)>> = vec![Vec::new(); 4];
        let (mut drops, mut sent) = (0, 0);
        for i in 0..2_000 {
            if rng.chance(0.45) {
                if let Some(p) = q.dequeue(Time::ZERO, &mut never) {
                    let own = &mut waiting[p.flow.0 as usize];
                    assert_eq!(own.remove(0), (p.seg.seq, u64::from(p.size)));
                    sent += 1;
                }
                continue;
            }
            let (k, size) = (rng.below(4) as usize, rng.below(1_460) + 40);
            waiting[k].push((i, size));
            let mut lost = Vec::new();
            let p = packet(k as u32, i, size as u16);
            let taken = q.enqueue(Time::ZERO, p, &mut |victim, reason| {
                assert_eq!(reason, DropReason::QueueFull);
                lost.push((victim.flow.0 as usize, victim.seg.seq));
            });
            assert_eq!(taken, Ok(()));
            if waiting.iter().map(Vec::len).sum::<usize>() > 20 {
                let bytes = |of: &Vec<(u64, u64)>| of.iter().map(|w| w.1).sum::<u64>();
                let longest = (0..4)
                    .rev()
                    .max_by_key(|&c| bytes(&waiting[c]))
                    .unwrap_or(0);
                let last = waiting[longest].pop().map(|w| (longest, w.0));
                assert_eq!(lost, last.into_iter().collect::<Vec<_>>(), "seed {seed}");
                drops += 1;
            } else {
                assert!(lost.is_empty());
            }
        }
        assert!(drops > 50 && sent > 500, "{drops} dropped, {sent} sent");
    }
}

/// An emptied queue saves neither its deficit nor its turn.
#[test]
fn an_emptied_queue_begins_anew() {
    let mut q = drr(&config(1_500, &[]));
    let put = |to: &mut Drr, k: u32, n: u64, size: u16| {
        assert_eq!(
            to.enqueue(Time::ZERO, packet(k, n, size), &mut never),
            Ok(())
        );
    };
    let next = |from: &mut Drr| from.dequeue(Time::ZERO, &mut never).map(|p| p.flow.0);
    put(&mut q, 0, 0, 40);
    assert_eq!([next(&mut q), next(&mut q)], [Some(0), None]);
    for n in 1..4 {
        put(&mut q, 1, n, 1_500);
        put(&mut q, 0, n, 1_500);
    }
    let order: Vec<_> = std::iter::from_fn(|| next(&mut q)).collect();
    assert_eq!(order, [1, 0, 1, 0, 1, 0]);
}

//! Strict priority compared with queueing theory.

use std::collections::BTreeMap;

use swell_base::{DropReason, Dur, FlowId, QueueLimit, Rate, Stream, Time};
use swell_path::{Classifier, Discipline, Link, LinkConfig, Priority, PriorityConfig, Qdisc};

use crate::{never, outlet, packet};

fn three_bands(limits: Vec<QueueLimit>) -> PriorityConfig {
    PriorityConfig {
        classifier: Classifier::FlowsFrom(vec![(FlowId(1), 1), (FlowId(2), 2)]),
        bands: 3,
        limits,
    }
}

#[test]
fn m_g_1_waits_of_three_classes() {
    // Cobham 1954: W_k = R / ((1 - s_(k-1)) (1 - s_k)), R = sum of lambda E[S^2] / 2 over all
    // classes, s_k = load of the classes up to k.
    let rate = Rate::from_bps(10_000_000);
    let seconds = |size: u16| f64::from(size) * 8.0 / 10e6;
    let classes: [(f64, &[u16]); 3] = [
        (0.2, &[40, 552, 1500]),
        (0.3, &[1000]),
        (0.3, &[40, 1500, 1500]),
    ];
    let mut residual = 0.0;
    let lambdas = classes.map(|(load, sizes)| {
        let n = sizes.len() as f64;
        let mean = sizes.iter().map(|&s| seconds(s)).sum::<f64>() / n;
        let square = sizes.iter().map(|&s| seconds(s).powi(2)).sum::<f64>() / n;
        residual += load / mean * square / 2.0;
        load / mean
    });
    let mut link = Link::new(
        &LinkConfig {
            rate: Some(rate),
            discipline: Discipline::Priority(three_bands(Vec::new())),
            queue: QueueLimit::Packets(u64::MAX),
            ..LinkConfig::default()
        },
        1,
        "priority",
    );
    let mut rng = Stream::new(4, "poisson");
    let all: f64 = lambdas.iter().sum();
    let mut now = 0.0;
    let mut arrived = BTreeMap::new();
    let (mut sum, mut n) = ([0.0; 3], [0.0; 3]);
    for number in 0..1_500_000u64 {
        now += rng.exponential(1.0 / all);
        let u = rng.uniform() * all;
        let k = if u < lambdas[0] {
            0
        } else {
            1 + usize::from(u >= lambdas[0] + lambdas[1])
        };
        let sizes = classes[k].1;
        let size = sizes[rng.below(sizes.len() as u64) as usize];
        let at = Time::from_secs_f64(now);
        arrived.insert(number, at);
        link.push(at, packet(k as u32, number, size));
        while let Some((left, p)) = link.pop(at) {
            let came = arrived.remove(&p.seg.seq).expect("it came");
            let class = p.flow.0 as usize;
            sum[class] += left.since(came).as_secs_f64() - seconds(p.size);
            n[class] += 1.0;
        }
    }
    let mut above = 0.0;
    for k in 0..3 {
        let upto = above + classes[k].0;
        let theory = residual / ((1.0 - above) * (1.0 - upto));
        let mean = sum[k] / n[k];
        // The lowest class waits in busy periods of 1/(1-0.8)^2 packets, so its mean has a standard error of about
        // 0.7 %; the other classes have less.
        assert!(
            (mean / theory - 1.0).abs() < 0.02,
            "class {k}: {mean} against {theory}"
        );
        above = upto;
    }
}

#[test]
fn each_band_has_its_own_room() {
    let limits = vec![
        QueueLimit::Packets(2),
        QueueLimit::Bytes(swell_base::Bytes(2500)),
    ];
    let short = swell_path::Outlet {
        limit: QueueLimit::Packets(4),
        ..outlet()
    };
    let mut q = Priority::new(&three_bands(limits), &short);
    let mut accepted = [0; 3];
    for i in 0..30u32 {
        match q.enqueue(Time::ZERO, packet(i % 3, 0, 1000), &mut never) {
            Ok(()) => accepted[(i % 3) as usize] += 1,
            Err(why) => assert_eq!(why, DropReason::QueueFull),
        }
    }
    // Limits: two packets; 2500 bytes; the link's limit.
    assert_eq!(accepted, [2, 2, 4]);
    let order: Vec<u32> = std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut never))
        .map(|p| p.flow.0)
        .collect();
    assert_eq!(order, [0, 0, 1, 1, 2, 2, 2, 2]);
}

#[test]
fn a_transmission_begun_is_finished() {
    let mut link = Link::new(
        &LinkConfig {
            rate: Some(Rate::from_bps(8_000_000)),
            discipline: Discipline::Priority(three_bands(Vec::new())),
            ..LinkConfig::default()
        },
        1,
        "priority",
    );
    // 1000 bytes take 1 ms. Two low-priority packets arrive first, and a high-priority one during the first
    // transmission.
    link.push(Time::ZERO, packet(2, 0, 1000));
    link.push(Time::ZERO, packet(2, 1, 1000));
    link.push(Time::from_nanos(500_000), packet(0, 2, 1000));
    let order: Vec<_> = std::iter::from_fn(|| link.pop(Time::MAX))
        .map(|(at, p)| (at, p.seg.seq))
        .collect();
    let ms = |k| Time::ZERO + Dur::from_millis(k);
    assert_eq!(order, [(ms(1), 0), (ms(2), 2), (ms(3), 1)]);
}

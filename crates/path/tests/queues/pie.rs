//! PIE compared with RFC 8033.

use swell_base::{DropReason, Dur, QueueLimit, Rate, Stream, Time};
use swell_path::{Discipline, Link, LinkConfig, Pie, PieConfig, PieDelay, Qdisc};

use crate::{at_ms, never, outlet, packet};

fn pie(config: &PieConfig) -> Pie {
    Pie::new(config, &outlet(), Stream::new(1, "pie"))
}

/// The drop probability by the formulas of sections 4.2, 4.4, 5.2 and 5.5, with a real timer.
struct Rfc {
    waiting: Vec<f64>, // when each came, seconds
    prob: f64,
    qdelay_old: f64,
    latest: f64,
    burst: f64,
}

impl Rfc {
    fn timer(&mut self) {
        let qdelay = if self.waiting.is_empty() {
            0.0
        } else {
            self.latest
        };
        let mut p = 0.125 * (qdelay - 0.015) + 1.25 * (qdelay - self.qdelay_old);
        for (below, divisor) in [
            (1e-6, 2048.0),
            (1e-5, 512.0),
            (1e-4, 128.0),
            (1e-3, 32.0),
            (1e-2, 8.0),
            (1e-1, 2.0),
        ] {
            if self.prob < below {
                p /= divisor;
                break;
            }
        }
        if self.prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.prob += p;
        if qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.prob *= 0.98;
        }
        self.prob = self.prob.clamp(0.0, 1.0);
        self.burst = (self.burst - 0.015).max(0.0);
        if self.prob == 0.0 && qdelay < 0.0075 && self.qdelay_old < 0.0075 {
            self.burst = 0.150;
        }
        self.qdelay_old = qdelay;
    }
}

#[test]
fn the_probability_follows_the_rfcs_formulas() {
    for seed in 0..20 {
        let mut rng = Stream::new(seed, "pie");
        let mut ours = pie(&PieConfig::default());
        let mut rfc = Rfc {
            waiting: Vec::new(),
            prob: 0.0,
            qdelay_old: 0.0,
            latest: 0.0,
            burst: 0.150,
        };
        let (mut arrival, mut service, mut timer) = (1u64, 500_000u64, 15_000_000u64);
        let (mut load, mut left, mut highest) = (1.3, 2_000, 0.0f64);
        for step in 0..60_000u64 {
            let now = arrival.min(service).min(timer);
            let mut called = false;
            if now == timer {
                // The effect of the timer becomes visible at the next call.
                rfc.timer();
                timer += 15_000_000;
            } else if now == arrival {
                called = true;
                let allowed = rfc.burst > 1e-9;
                let spared = rfc.qdelay_old < 0.0075 && rfc.prob < 0.2;
                let short = rfc.waiting.len() <= 3; // 1000 bytes each, two of 1500 spared
                let accepted =
                    ours.enqueue(Time::from_nanos(now), packet(0, step, 1000), &mut never);
                match accepted {
                    Ok(()) => rfc.waiting.push(now as f64 / 1e9),
                    Err(why) => {
                        assert_eq!(why, DropReason::Aqm);
                        assert!(!allowed && !spared && !short, "seed {seed} at {now}");
                    }
                }
                left -= 1;
                if left == 0 {
                    load = [0.0, 0.5, 1.1, 1.5, 3.0][rng.below(5) as usize];
                    left = if load == 0.0 { 5 } else { 2_000 };
                }
                let gap = if load == 0.0 { 2e8 } else { 1e6 / load };
                arrival += rng.exponential(gap) as u64 + 1;
            } else {
                if ours.backlog().packets > 0 {
                    let p = ours.dequeue(Time::from_nanos(now), &mut never);
                    assert!(p.is_some());
                    called = true;
                    rfc.latest = now as f64 / 1e9 - rfc.waiting.remove(0);
                }
                service += 1_000_000;
            }
            if called {
                let difference = (ours.probability() - rfc.prob).abs();
                // Both sum up to tens of thousands of the same terms, but in different order.
                assert!(difference < 1e-9, "seed {seed} at {now}: {}", rfc.prob);
            }
            highest = highest.max(rfc.prob);
        }
        assert!(highest > 0.1, "seed {seed} saw no congestion: {highest}");
    }
}

/// Share of packets dropped after 60 s, and mean wait of the other packets in seconds, for a Poisson source on a link
/// of 1000 packets per second.
fn overload(load: f64, config: PieConfig) -> (f64, f64) {
    let mut link = Link::new(
        &LinkConfig {
            rate: Some(Rate::from_bps(8_000_000)),
            discipline: Discipline::Pie(config),
            queue: QueueLimit::Packets(u64::MAX),
            ..LinkConfig::default()
        },
        3,
        "pie",
    );
    let mut rng = Stream::new(3, "source");
    let mut came = Vec::new();
    let (mut waits, mut sent, mut now, mut first) = (0.0, 0.0, 0.0, None);
    while now < 660.0 {
        now += rng.exponential(1e-3 / load);
        let at = Time::from_secs_f64(now);
        link.push(at, packet(0, came.len() as u64, 1000));
        came.push(at);
        if now > 60.0 && first.is_none() {
            first = Some(link.ledger());
        }
        while let Some((left, p)) = link.pop(at) {
            if now > 60.0 {
                waits += left.since(came[p.seg.seq as usize]).as_secs_f64() - 1e-3;
                sent += 1.0;
            }
        }
    }
    let (before, after) = (first.expect("it went on"), link.ledger());
    let dropped = after.dropped_total() - before.dropped_total();
    (
        dropped as f64 / (after.arrived - before.arrived) as f64,
        waits / sent,
    )
}

#[test]
fn in_steady_state_the_delay_is_the_target_and_the_drops_the_excess() {
    for delay in [PieDelay::Timestamps, PieDelay::DepartureRate] {
        for load in [1.1, 1.3] {
            let config = PieConfig {
                delay,
                // 16 KiB must fit in the target delay, or the rate is never measured.
                target: Dur::from_millis(40),
                ..PieConfig::default()
            };
            let (dropped, wait) = overload(load, config);
            let excess = 1.0 - 1.0 / load;
            // Standard error of the load over 600 s: 0.13 %.
            assert!(
                (dropped / excess - 1.0).abs() < 0.03,
                "{delay:?}: {dropped}"
            );
            assert!((wait / 0.040 - 1.0).abs() < 0.1, "{delay:?} {load}: {wait}");
        }
    }
}

#[test]
fn a_burst_within_the_allowance_loses_nothing_and_a_longer_one_does() {
    let mut q = pie(&PieConfig::default());
    let mut first = None;
    for t in 0..400 {
        // Twice the service rate, from the start.
        for i in 0..2 {
            if q.enqueue(at_ms(t), packet(0, 2 * t + i, 1500), &mut never)
                .is_err()
            {
                first.get_or_insert(t);
            }
        }
        assert!(q.dequeue(at_ms(t), &mut never).is_some());
    }
    let first = first.expect("400 ms of double load");
    assert!((150..400).contains(&first), "{first} ms");
}

#[test]
fn spread_out_drops_keep_their_distance() {
    // After a drop at probability p there is no other drop within 0.85/p packets (section 5.4).
    let mut q = pie(&PieConfig::default());
    let mut closest = f64::MAX;
    let mut sum = 0.0;
    let mut drops = 0;
    for t in 0..200_000u64 {
        for i in 0..1 + u64::from(t % 10 == 0) {
            let accepted = q.enqueue(at_ms(t), packet(0, t * 2 + i, 1500), &mut never);
            sum += q.probability();
            if accepted.is_err() {
                if drops > 0 {
                    closest = closest.min(sum);
                }
                sum = 0.0;
                drops += 1;
            }
        }
        if q.backlog().packets > 0 {
            assert!(q.dequeue(at_ms(t), &mut never).is_some());
        }
    }
    assert!(drops > 10_000, "{drops}");
    assert!(closest >= 0.85, "{closest}");
}

#[test]
fn marks_below_a_tenth_and_drops_above() {
    let config = PieConfig {
        ecn: true,
        ..PieConfig::default()
    };
    let run = |per_second: u64, ecn: u8| {
        let mut q = pie(&config);
        let mut dropped = 0u64;
        let mut number = 0;
        for t in 0..60_000u64 {
            while number < t * per_second / 1000 {
                let mut p = packet(0, number, 1500);
                p.seg.ecn = ecn;
                dropped += u64::from(q.enqueue(at_ms(t), p, &mut never).is_err());
                number += 1;
            }
            if q.backlog().packets > 0 {
                assert!(q.dequeue(at_ms(t), &mut never).is_some());
            }
        }
        (q.marked(), dropped)
    };
    // The source does not react, so marks do not help and the probability exceeds a tenth.
    let (marked, dropped) = run(1_300, 2);
    assert!(marked > 0 && dropped > 10_000, "{marked} {dropped}");
    assert_eq!(run(1_300, 0).0, 0);
}

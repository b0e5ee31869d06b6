//! RED compared with Floyd & Jacobson 1993 and Floyd, Gummadi & Shenker 2001.

use swell_base::{DropReason, Dur, QueueLimit, Rate, Stream, Time};
use swell_path::{
    Change, Discipline, Link, LinkConfig, NewQueue, Outlet, Qdisc, Red, RedConfig, RedDialect,
    RedMeasure, RedSpacing, RedThresholds, RedVictim, RedWeight, RedWeightRule,
};

use crate::{assert_equal_shares, at_ms, never, outlet, packet};

fn red(config: &RedConfig) -> Red {
    Red::new(config, &outlet(), Stream::new(1, "red"))
}

/// The average equals the current queue, and a queue of 10 packets gives the drop probability `p`.
fn steady(p: f64, spacing: RedSpacing, dialect: RedDialect) -> RedConfig {
    RedConfig {
        thresholds: RedThresholds::Packets {
            min: 0.0,
            max: 20.0,
        },
        max_p: 2.0 * p,
        weight: RedWeight::Fixed(1.0),
        spacing,
        dialect,
        ..RedConfig::classic()
    }
}

/// Fills the queue to 10 packets without a drop.
fn filled(config: &RedConfig, size: u16) -> Red {
    for seed in 0.. {
        let mut q = Red::new(config, &outlet(), Stream::new(seed, "red"));
        if (0..10).all(|i| {
            q.enqueue(Time::ZERO, packet(0, i, size), &mut never)
                .is_ok()
        }) {
            return q;
        }
    }
    unreachable!("some seed lets ten packets in")
}

/// Histogram of the number of packets between drops, from `n` arrivals to a queue that is kept at 10 packets.
fn gaps(config: &RedConfig, n: u64) -> Vec<u64> {
    let mut q = filled(config, 1000);
    let mut counts = Vec::new();
    let mut gap = 0;
    let mut begun = false;
    for i in 0..n {
        gap += 1;
        if q.enqueue(Time::ZERO, packet(0, i, 1000), &mut never)
            .is_ok()
        {
            q.dequeue(Time::ZERO, &mut never);
            continue;
        }
        if begun {
            counts.resize(counts.len().max(gap + 1), 0);
            counts[gap] += 1;
        }
        (begun, gap) = (true, 0);
    }
    counts
}

#[test]
fn the_average_answers_a_step_as_an_exponential_filter() {
    for (measure, unit) in [(RedMeasure::Packets, 1.0), (RedMeasure::Bytes, 1000.0)] {
        let config = RedConfig {
            thresholds: RedThresholds::Packets {
                min: 100.0,
                max: 300.0,
            },
            measure,
            ..RedConfig::classic()
        };
        let mut q = red(&config);
        for i in 0..51 {
            assert!(
                q.enqueue(Time::ZERO, packet(0, i, 1000), &mut never)
                    .is_ok()
            );
        }
        let start = q.average();
        q.dequeue(Time::ZERO, &mut never);
        for n in 1..=3_000 {
            assert!(
                q.enqueue(Time::ZERO, packet(0, n, 1000), &mut never)
                    .is_ok()
            );
            q.dequeue(Time::ZERO, &mut never);
            let left = 0.998f64.powi(n as i32);
            let expected = 50.0 * unit * (1.0 - left) + start * left;
            assert!((q.average() / expected - 1.0).abs() < 1e-9, "{n}");
        }
    }
}

#[test]
fn gaps_between_drops_are_uniform() {
    // Section 7, method 2: with p_a = p/(1 - count p) the gap is uniform. The count of the first
    // packet after a drop is 1 (figure 2), so the gaps are 1 to 1/p - 1.
    let counts = gaps(
        &steady(0.02, RedSpacing::Uniform, RedDialect::Paper),
        500_000,
    );
    assert_eq!(counts.len(), 50);
    assert_equal_shares(&counts[1..]);
    // ns-2 with `wait_`: no drop within 1/p packets, then uniform up to 2/p - 1.
    let waiting = gaps(&steady(0.02, RedSpacing::Wait, RedDialect::Ns2), 500_000);
    assert_eq!(waiting.len(), 100);
    assert!(waiting[..50].iter().all(|&c| c == 0));
    assert_equal_shares(&waiting[50..]);
}

#[test]
fn without_spacing_gaps_are_geometric() {
    // Section 7, method 1: mean 1/p, and half of the gaps shorter than ln 2 / p.
    let counts = gaps(
        &steady(0.02, RedSpacing::Geometric, RedDialect::Paper),
        1_000_000,
    );
    let n: u64 = counts.iter().sum();
    let mean = counts.iter().zip(0..).map(|(&c, g)| c * g).sum::<u64>() as f64 / n as f64;
    let short = counts[..=34].iter().sum::<u64>() as f64 / n as f64;
    // 20 000 gaps: standard errors 0.35 and 0.0035.
    assert!((mean - 50.0).abs() < 1.4, "{mean}");
    assert!((short - (1.0 - 0.98f64.powi(34))).abs() < 0.014, "{short}");
}

/// Share of packets of `size` bytes dropped while the queue is kept at 10 packets.
fn share(config: &RedConfig, size: u16) -> f64 {
    let mut q = filled(config, 1000);
    let n = 200_000;
    let mut dropped = 0;
    for i in 0..n {
        let accepted = q.enqueue(Time::ZERO, packet(0, i, size), &mut never);
        // Restores the queue to ten packets of 1000 bytes.
        match accepted {
            Ok(()) => {
                q.dequeue(Time::ZERO, &mut never);
            }
            Err(why) => {
                assert_eq!(why, DropReason::Aqm);
                dropped += 1;
            }
        }
    }
    f64::from(dropped) / n as f64
}

#[test]
fn the_probability_is_a_line_between_the_thresholds() {
    let at = |min, max, gentle| {
        let config = RedConfig {
            thresholds: RedThresholds::Packets { min, max },
            max_p: 0.1,
            gentle,
            ..steady(0.0, RedSpacing::Geometric, RedDialect::Paper)
        };
        // The first ten packets must be accepted.
        share(&config, 1000)
    };
    // 10 packets between 5 and 15: half of max_p; standard error 0.0005.
    assert!((at(5.0, 15.0, false) - 0.05).abs() < 0.002);
    assert!((at(8.0, 28.0, false) - 0.01).abs() < 0.001);
    assert_eq!(at(10.5, 20.0, false), 0.0);
    // A quarter of the way from 8 to 16: 0.1 + 0.9/4.
    assert!((at(4.0, 8.0, true) - 0.325).abs() < 0.005);
}

#[test]
fn above_the_upper_threshold_everything_goes() {
    let config = RedConfig {
        thresholds: RedThresholds::Packets { min: 5.0, max: 9.5 },
        max_p: 0.0,
        ecn: true,
        ..steady(0.0, RedSpacing::Geometric, RedDialect::Paper)
    };
    let mut q = filled(&config, 1000);
    let mut p = packet(0, 1, 1000);
    p.seg.ecn = 2;
    // Even packets of ECN-capable senders are dropped (RFC 3168 section 7).
    assert_eq!(q.enqueue(Time::ZERO, p, &mut never), Err(DropReason::Aqm));
    let gentle = RedConfig {
        thresholds: RedThresholds::Packets { min: 3.0, max: 4.9 },
        gentle: true,
        ..config
    };
    let mut other = red(&gentle);
    let accepted = (0..200).filter(|&i| {
        other
            .enqueue(Time::ZERO, packet(0, i, 1000), &mut never)
            .is_ok()
    });
    assert_eq!(
        accepted.count(),
        10,
        "all is dropped from twice the threshold on"
    );
}

#[test]
fn large_packets_are_dropped_in_proportion() {
    for dialect in [RedDialect::Paper, RedDialect::Ns2] {
        let config = RedConfig {
            by_size: true,
            mean_packet: 1000,
            ..steady(0.02, RedSpacing::Geometric, dialect)
        };
        let (small, large) = (share(&config, 100), share(&config, 1000));
        assert!((large - 0.02).abs() < 0.0015, "{dialect:?} {large}");
        assert!((small - 0.002).abs() < 0.0005, "{dialect:?} {small}");
    }
}

#[test]
fn while_the_link_rests_small_packets_could_have_been_sent() {
    // 10 Mbit/s and packets of 500 bytes: 2500 a second.
    for (dialect, missed) in [(RedDialect::Paper, 25.5), (RedDialect::Ns2, 26.0)] {
        let config = RedConfig {
            weight: RedWeight::Fixed(0.1),
            dialect,
            ..RedConfig::classic()
        };
        let mut q = red(&config);
        for i in 0..4 {
            assert!(q.enqueue(Time::ZERO, packet(0, i, 500), &mut never).is_ok());
        }
        while q.dequeue(Time::ZERO, &mut never).is_some() {}
        let before = q.average();
        // The last packet is in transmission for 0.4 ms; then 10.2 ms pass, which is 25.5 packets.
        let later = Time::ZERO + Dur::from_micros(10_600);
        assert!(q.enqueue(later, packet(0, 9, 500), &mut never).is_ok());
        let expected = before * 0.9f64.powf(missed);
        assert!((q.average() / expected - 1.0).abs() < 1e-9, "{dialect:?}");
    }
}

#[test]
fn weights_and_thresholds_from_the_link() {
    // Floyd, Gummadi & Shenker 2001: at 1.5 Mbit/s and 500-byte packets C = 375/s;
    // w = 1 - exp(-1/C) = 0.00266, min_th 5.
    let slow = Outlet {
        rate: Some(Rate::from_bps(1_500_000)),
        ..outlet()
    };
    let q = Red::new(&RedConfig::adaptive(), &slow, Stream::new(1, "red"));
    assert!((q.weight() - 0.002_663).abs() < 1e-6, "{}", q.weight());
    // ns-2 on the burstiness study's gateway: 50 Mbit/s, 25 ms, 1500 bytes: 0.00024.
    let fast = Outlet {
        rate: Some(Rate::from_bps(50_000_000)),
        delay: Dur::from_millis(25),
        ..outlet()
    };
    let config = RedConfig {
        mean_packet: 1500,
        ..RedConfig::ns2_modern()
    };
    let w = Red::new(&config, &fast, Stream::new(1, "red")).weight();
    assert!((w - 0.000_24).abs() < 1e-6, "{w}");
}

#[test]
fn adaptation_keeps_the_average_between_the_thresholds() {
    // The average converges to 0.4 to 0.6 of the way between the thresholds.
    for load in [1.05, 1.15, 1.4] {
        let mut q = red(&RedConfig {
            thresholds: RedThresholds::Packets {
                min: 20.0,
                max: 60.0,
            },
            mean_packet: 1000,
            ..RedConfig::adaptive()
        });
        let mut rng = Stream::new(2, "source");
        let (mut arrival, mut service) = (0.0, 0.0);
        let (mut sum, mut n) = (0.0, 0.0);
        while arrival < 400.0 {
            arrival += rng.exponential(8e-4 / load);
            while service < arrival {
                q.dequeue(Time::from_secs_f64(service), &mut never);
                service += 8e-4;
            }
            let _ = q.enqueue(Time::from_secs_f64(arrival), packet(0, 0, 1000), &mut never);
            if arrival > 100.0 {
                sum += q.average();
                n += 1.0;
            }
        }
        let mean = sum / n;
        assert!((36.0..=44.0).contains(&mean), "load {load}: {mean}");
        assert!(q.max_p() > 0.01 && q.max_p() <= 0.51);
    }
}

#[test]
fn those_who_understand_are_marked_as_often_as_others_are_dropped() {
    for dialect in [RedDialect::Paper, RedDialect::Ns2] {
        let config = RedConfig {
            ecn: true,
            ..steady(0.05, RedSpacing::Geometric, dialect)
        };
        let mut q = filled(&config, 1000);
        let (mut marked, n) = (0u64, 200_000);
        for i in 0..n {
            let mut p = packet(0, i, 1000);
            p.seg.ecn = 1 + (i % 2) as u8;
            assert_eq!(q.enqueue(Time::ZERO, p, &mut never), Ok(()));
            let head = q.dequeue(Time::ZERO, &mut never).expect("ten wait");
            marked += u64::from(head.seg.ecn == 3);
        }
        let share = marked as f64 / n as f64;
        assert!((share - 0.05).abs() < 0.002, "{dialect:?}: {share}");
        assert!(q.marked() - marked <= 10, "the rest is still waiting");
        // Above `mark_below` no packet is marked.
        let strict = RedConfig {
            mark_below: Some(0.04),
            ..config
        };
        {
            let mut other = filled(&strict, 1000);
            let mut p = packet(0, 0, 1000);
            p.seg.ecn = 2;
            let refused = (0..1_000).any(|_| {
                let refused = other.enqueue(Time::ZERO, p, &mut never).is_err();
                if !refused {
                    other.dequeue(Time::ZERO, &mut never);
                }
                refused
            });
            assert!(refused);
            assert_eq!(other.marked(), 0);
        }
    }
}

#[test]
fn another_packet_can_be_made_to_go() {
    for (victim, expected) in [(RedVictim::Arriving, None), (RedVictim::Front, Some(1))] {
        let config = RedConfig {
            victim,
            ..RedConfig::ns2_era()
        };
        let short = Outlet {
            limit: QueueLimit::Packets(5),
            ..outlet()
        };
        let mut q = Red::new(&config, &short, Stream::new(1, "red"));
        for i in 0..5 {
            assert_eq!(
                q.enqueue(Time::ZERO, packet(0, i, 1000), &mut never),
                Ok(())
            );
        }
        let mut gone = None;
        let accepted = q.enqueue(Time::ZERO, packet(0, 5, 1000), &mut |p, why| {
            assert_eq!(why, DropReason::QueueFull);
            gone = Some(p.seg.seq);
        });
        assert_eq!(gone, expected);
        assert_eq!(accepted.is_ok(), expected.is_some());
        assert_eq!(q.backlog().packets, 5);
    }
}

#[test]
fn a_link_draws_its_drops_from_its_own_stream() {
    let config = LinkConfig {
        rate: Some(Rate::from_bps(10_000_000)),
        discipline: Discipline::Red(steady(0.1, RedSpacing::Uniform, RedDialect::Paper)),
        ..LinkConfig::default()
    };
    let dropped = |seed, name: &str| {
        let mut link = Link::new(&config, seed, name);
        let mut pattern = Vec::new();
        for i in 0..400u64 {
            let at = Time::from_nanos(i * 700_000);
            let before = link.ledger().dropped_total();
            link.push(at, packet(0, i, 1000));
            pattern.push(link.ledger().dropped_total() > before);
        }
        pattern
    };
    assert_eq!(dropped(1, "a"), dropped(1, "a"));
    assert_ne!(dropped(1, "a"), dropped(1, "b"));
    assert_ne!(dropped(1, "a"), dropped(2, "a"));
}

/// The weight depends on the link's delay when the queue takes over, not on its first delay.
#[test]
fn a_new_queue_has_the_delay_of_its_time() {
    let ten_mbit = Some(Rate::from_bps(10_000_000));
    let queue = Change {
        at: at_ms(2),
        queue: Some(NewQueue {
            discipline: Discipline::Red(RedConfig {
                thresholds: RedThresholds::Packets {
                    min: 20.0,
                    max: 60.0,
                },
                weight: RedWeight::Rule(RedWeightRule::TenRoundTrips),
                ..RedConfig::classic()
            }),
            limit: QueueLimit::Packets(100),
            rate: ten_mbit,
        }),
        ..Change::default()
    };
    let delay = Some(Dur::from_secs(5));
    let farther = Change {
        at: at_ms(1),
        delay,
        ..Change::default()
    };
    let together = Change {
        delay,
        ..queue.clone()
    };
    // 4000 arrivals, twice what the link can carry. The time constant is 2500 arrivals without a delay, so that the
    // average passes both thresholds, and 375 000 with it, so that the average stays near one packet.
    let early = |changes: Vec<Change>| {
        let config = LinkConfig {
            rate: ten_mbit,
            changes,
            ..LinkConfig::default()
        };
        let mut link = Link::new(&config, 1, "link");
        for i in 0..4_000 {
            let at = at_ms(10) + Dur::from_micros(500 * i);
            link.push(at, packet(0, i, 1250));
        }
        link.ledger().dropped[DropReason::Aqm as usize]
    };
    assert!(early(vec![queue.clone()]) > 100);
    assert_eq!(early(vec![farther, queue]), 0);
    assert_eq!(early(vec![together]), 0);
}

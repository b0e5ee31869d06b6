//! Results of queueing theory that a link must reproduce.

use swell_base::{Dur, Head, Packet, QueueLimit, Rate, Stream, Time};
use swell_path::{Link, LinkConfig};

const RATE: Rate = Rate::from_bps(10_000_000);
const SIZE: u16 = 1250;
const SERVICE: f64 = 1e-3;

fn link(queue: &str) -> Link {
    let queue = queue.parse::<QueueLimit>().unwrap();
    Link::new(
        &LinkConfig {
            rate: Some(RATE),
            queue,
            ..LinkConfig::default()
        },
        1,
        "law",
    )
}

fn packet(size: u16) -> Packet {
    Packet::from(Head {
        size,
        ..Head::default()
    })
}

/// Waiting times before transmission of `n` packets that arrive with the given gaps.
fn waits(n: u32, mut gap: impl FnMut() -> Dur) -> Vec<f64> {
    let mut link = link("1000000pkt");
    let mut at = Time::ZERO;
    let mut arrived = std::collections::VecDeque::new();
    let mut waits = Vec::new();
    for _ in 0..n {
        at += gap();
        link.push(at, packet(SIZE));
        arrived.push_back(at);
        while let Some((left, _)) = link.pop(at) {
            waits.push(left.since(arrived.pop_front().unwrap()).as_secs_f64() - SERVICE);
        }
    }
    waits
}

#[test]
fn m_d_1_waiting_time() {
    // Pollaczek and Khinchine: W = rho * s / (2 (1 - rho)) for constant service s.
    for rho in [0.3, 0.6, 0.8] {
        let mut rng = Stream::new(11, "poisson");
        let waits = waits(600_000, || {
            Dur::from_secs_f64(rng.exponential(SERVICE / rho))
        });
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let theory = rho * SERVICE / (2.0 * (1.0 - rho));
        // Waits are correlated over about 1/(1-rho)^2 packets. At rho = 0.8 the standard error of the mean is about 1
        // %.
        assert!(
            (mean / theory - 1.0).abs() < 0.03,
            "rho {rho}: {mean} against {theory}"
        );
    }
}

#[test]
fn constant_rate_below_capacity_waits_and_loses_nothing() {
    let mut link = link("0pkt");
    let mut at = Time::ZERO;
    for _ in 0..100_000 {
        at += Dur::from_micros(1001);
        link.push(at, packet(SIZE));
        while link.pop(at).is_some() {}
    }
    assert_eq!(link.ledger().dropped_total(), 0);
}

#[test]
fn constant_rate_above_capacity_loses_the_excess() {
    let mut link = link("20pkt");
    let mut at = Time::ZERO;
    for _ in 0..100_000 {
        at += Dur::from_micros(800);
        link.push(at, packet(SIZE));
        while link.pop(at).is_some() {}
    }
    let share = link.ledger().dropped_total() as f64 / 100_000.0;
    assert!((share - 0.2).abs() < 1e-3, "{share}");
}

#[test]
fn no_rate_drifts() {
    // 3 Mbit/s and 1000 bytes: 2 666 666.67 ns each. A million packets back to back take the exact time, without a
    // million rounding errors.
    let config = LinkConfig {
        rate: Some(Rate::from_bps(3_000_000)),
        queue: QueueLimit::Packets(u64::MAX),
        ..LinkConfig::default()
    };
    let mut link = Link::new(&config, 1, "drift");
    for _ in 0..1_000_000 {
        link.push(Time::ZERO, packet(1000));
    }
    let mut last = Time::ZERO;
    while let Some((at, _)) = link.pop(Time::MAX) {
        last = at;
    }
    assert_eq!(last.as_nanos(), 1_000_000 * 8_000_000 / 3);
}

#[test]
fn what_flies_counts_against_no_limit() {
    // A satellite link: 10 Mbit/s, 300 ms, and a queue of one packet. A source paced at 99 % of the rate loses
    // nothing, although hundreds of packets are in flight.
    let config = LinkConfig {
        rate: Some(RATE),
        delay: Dur::from_millis(300),
        queue: QueueLimit::Packets(1),
        ..LinkConfig::default()
    };
    let mut link = Link::new(&config, 1, "satellite");
    let mut at = Time::ZERO;
    for _ in 0..2_000 {
        at += Dur::from_micros(1010);
        link.push(at, packet(SIZE));
    }
    assert_eq!(link.ledger().dropped_total(), 0);
    assert!(link.ledger().held() > 250);
}

#[test]
fn a_departure_makes_room_for_an_arrival_at_the_same_instant() {
    let mut link = link("1pkt");
    link.push(Time::ZERO, packet(SIZE)); // in transmission until 1 ms
    link.push(Time::ZERO, packet(SIZE)); // waits
    link.push(Time::ZERO, packet(SIZE)); // the queue is full
    assert_eq!(link.ledger().dropped_total(), 1);
    link.push(Time::from_nanos(1_000_000), packet(SIZE)); // the waiting packet has just left the queue
    assert_eq!(link.ledger().dropped_total(), 1);
}

//! CHOKe compared with Pan, Prabhakar & Psounis 2000 and with the law of Tang, Wang & Low, "Understanding CHOKe:
//! throughput and spatial characteristics", ToN 12(4), 2004.

use swell_base::{Bytes, DropReason, Dur, End, Packet, QueueLimit, Stream, Time};
use swell_path::{Choke, Outlet, Qdisc, Red, RedConfig, RedThresholds, RedWeight};

use crate::{at_ms, never, outlet, packet};

/// The average equals the queue.
fn config(min: f64, max: f64, max_p: f64) -> RedConfig {
    RedConfig {
        thresholds: RedThresholds::Packets { min, max },
        max_p,
        weight: RedWeight::Fixed(1.0),
        ..RedConfig::classic()
    }
}

#[test]
fn a_flow_alone_loses_an_arrival_and_a_waiting_packet_above_the_threshold() {
    let mut q = Choke::new(&config(3.0, 1e9, 0.0), &outlet(), Stream::new(1, "q"));
    let mut gone = Vec::new();
    let mut enqueue = |to: &mut Choke, number| {
        let mut dropped = |p: Packet, reason| gone.push((p.seg.seq, reason));
        to.enqueue(Time::ZERO, packet(1, number, 1000), &mut dropped)
    };
    // An arrival that finds three packets is not above the threshold yet.
    for number in 0..4 {
        assert_eq!(enqueue(&mut q, number), Ok(()));
    }
    assert_eq!(enqueue(&mut q, 4), Err(DropReason::Aqm));
    assert_eq!(q.backlog().packets, 3);
    assert_eq!(enqueue(&mut q, 5), Ok(()));
    let [(victim, DropReason::Aqm)] = gone[..] else {
        panic!("{gone:?}")
    };
    assert!(victim < 4, "a packet that waited");
}

#[test]
fn the_other_direction_and_other_flows_are_spared() {
    for seed in 0..20 {
        let mut q = Choke::new(&config(0.0, 1e9, 0.0), &outlet(), Stream::new(seed, "q"));
        let first = packet(1, 0, 1000);
        let mut back = first;
        back.from = End::Server;
        for p in [first, back, packet(2, 0, 1000)] {
            assert_eq!(q.enqueue(Time::ZERO, p, &mut never), Ok(()));
        }
    }
}

/// Among packets that are all of different flows, no two meet: CHOKe is RED.
#[test]
fn it_is_red_for_flows_of_one_packet() {
    for seed in 0..20 {
        let config = RedConfig {
            max_p: 0.2,
            weight: RedWeight::Fixed(0.1),
            ..RedConfig::classic()
        };
        let mut rng = Stream::new(seed, "q");
        let mut ours = Choke::new(&config, &outlet(), rng.clone());
        // The first number makes the stream of draws.
        rng.bits();
        let mut red = Red::new(&config, &outlet(), rng);
        let mut calls = Stream::new(seed, "calls");
        let mut refused = 0;
        for i in 0..2_000 {
            let now = at_ms(i);
            if calls.chance(0.55) {
                let p = packet(i as u32, i, 500);
                let result = ours.enqueue(now, p, &mut never);
                assert_eq!(result, red.enqueue(now, p, &mut never));
                refused += u32::from(result.is_err());
            } else {
                let next = ours.dequeue(now, &mut never).map(|p| p.seg.seq);
                assert_eq!(next, red.dequeue(now, &mut never).map(|p| p.seg.seq));
            }
        }
        assert!(refused > 20, "{refused}");
    }
}

/// What one greedy flow gets beside very many small ones.
struct Shares {
    /// Of what is sent.
    sent: f64,
    /// Of the queue that its packets find.
    queue: f64,
    /// Dropped because the queue was full, of what met no packet of its flow.
    full: f64,
}

/// Arrivals of a run. The first quarter is not counted.
const N: u32 = 400_000;

/// Poisson arrivals, `greedy` times the link's rate of one flow and 1.2 times of 100 000 others.
fn shares(greedy: f64) -> Shares {
    let outlet = Outlet {
        limit: QueueLimit::Packets(400),
        ..outlet()
    };
    let mut q = Choke::new(&config(0.0, 1e9, 0.0), &outlet, Stream::new(7, "q"));
    let mut rng = Stream::new(7, "arrivals");
    let service = outlet.rate.expect("a rate").transmit(Bytes(1000));
    let total = greedy + 1.2;
    let warm = u64::from(N / 4);
    let (mut now, mut free) = (Time::ZERO, Time::ZERO);
    let (mut held, mut seen, mut arrivals) = (0u64, 0.0, 0.0);
    let (mut sent, mut own, mut full, mut met) = (0.0, 0.0, 0.0, 0.0);
    for number in 0..u64::from(N) {
        now += Dur::from_secs_f64(-(1.0 - rng.uniform()).ln() * service.as_secs_f64() / total);
        while free <= now {
            let Some(p) = q.dequeue(free, &mut never) else {
                free = now;
                break;
            };
            free += service;
            held -= u64::from(p.flow.0 == 0);
            if number > warm {
                sent += 1.0;
                own += f64::from(u8::from(p.flow.0 == 0));
            }
        }
        let is_own = rng.chance(greedy / total);
        let flow = if is_own {
            0
        } else {
            1 + rng.below(100_000) as u32
        };
        if is_own && number > warm {
            arrivals += 1.0;
            seen += held as f64 / q.backlog().packets.max(1) as f64;
        }
        let mut victims = 0;
        let result = q.enqueue(now, packet(flow, number, 1000), &mut |p, _| {
            victims += u64::from(p.flow.0 == 0);
        });
        held -= victims;
        held += u64::from(is_own && result.is_ok());
        if number > warm {
            match result {
                Err(DropReason::QueueFull) => full += 1.0,
                Err(_) => met += 1.0,
                Ok(()) => {}
            }
        }
    }
    let all = f64::from(N) * 0.75;
    Shares {
        sent: own / sent,
        queue: seen / arrivals,
        full: full / (all - met),
    }
}

/// A flow of x times the link's rate with the share h of the queue gets the share m of the link. Of its packets,
/// (1 - h)(1 - r) enter the queue, and each is removed at the rate x/B until it is sent, where B packets wait. The other
/// flows lose none in the queue, so they wait B (1 - h)/(1 - m) services (Little's law). With s = x (1 - h)/(1 - m):
/// m/(1 - m) = (1 - r) s exp(-s), which is 1/e at most. So m is 1/(e + 1) at most, and falls to 0 for a large x.
#[test]
fn a_greedy_flow_gets_what_the_leaky_buffer_gives_it() {
    let rates = [0.2, 0.5, 1.0, 2.0, 4.0, 8.0];
    let all = rates.map(shares);
    for (x, found) in rates.iter().zip(&all) {
        let m = found.sent;
        let s = x * (1.0 - found.queue) / (1.0 - m);
        let law = (1.0 - found.full) * s * (-s).exp();
        let ratio = m / (1.0 - m) / law;
        assert!(
            (ratio - 1.0).abs() < 0.05,
            "x = {x}: {m}, {ratio} of the law"
        );
        assert!(m < 1.0 / (1.0 + std::f64::consts::E) + 0.01, "{x}: {m}");
    }
    let sent = all.map(|found| found.sent);
    assert!(sent[5] < 0.5 * sent[2], "{sent:?}");
}

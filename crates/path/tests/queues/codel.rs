//! CoDel compared with RFC 8289.

use swell_base::{DropReason, Dur, Packet, QueueLimit, Stream, Time};
use swell_path::{CoDel, CoDelConfig, Outlet, Qdisc};

use crate::{at_ms, never, outlet, packet};

/// A literal port of the RFC's pseudocode (sections 5.3 to 5.6), without marks, in nanoseconds and on a plain list.
/// Delivered and dropped packets are given by number.
struct Rfc {
    list: Vec<(u64, u64, u64)>, // number, size, tstamp
    target: u64,
    interval: u64,
    maxpacket: u64,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    drops: Vec<u64>,
}

impl Rfc {
    fn new(c: &CoDelConfig) -> Rfc {
        Rfc {
            list: Vec::new(),
            target: c.target.as_nanos(),
            interval: c.interval.as_nanos(),
            maxpacket: c.mtu.0,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            drops: Vec::new(),
        }
    }
    fn control_law(&self, t: u64, count: u32) -> u64 {
        t + (self.interval as f64 / f64::from(count).sqrt()).round() as u64
    }
    fn dodequeue(&mut self, now: u64) -> (Option<u64>, bool) {
        if self.list.is_empty() {
            self.first_above_time = 0;
            return (None, false);
        }
        let (number, _, tstamp) = self.list.remove(0);
        let bytes: u64 = self.list.iter().map(|p| p.1).sum();
        let mut ok_to_drop = false;
        if now - tstamp < self.target || bytes <= self.maxpacket {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(number), ok_to_drop)
    }
    fn dequeue(&mut self, now: u64) -> Option<u64> {
        let mut r = self.dodequeue(now);
        if self.dropping {
            if !r.1 {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.drops.extend(r.0);
                self.count += 1;
                r = self.dodequeue(now);
                if !r.1 {
                    self.dropping = false;
                } else {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                }
            }
        } else if r.1 {
            self.drops.extend(r.0);
            r = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * self.interval {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.0
    }
}

#[test]
fn delivers_and_drops_what_the_rfc_does() {
    let mut signals = 0;
    for seed in 0..40 {
        let mut rng = Stream::new(seed, "codel");
        let config = CoDelConfig {
            target: Dur::from_micros(rng.below(8_000) + 100),
            interval: Dur::from_millis(rng.below(100) + 5),
            ..CoDelConfig::default()
        };
        let mut ours = CoDel::new(&config, &outlet());
        let mut rfc = Rfc::new(&config);
        let mut dropped = Vec::new();
        let mut arrival = 0u64;
        let mut service = 0u64;
        let mut number = 0;
        let mut load = 1.0;
        while number < 20_000 {
            if arrival <= service {
                let size = rng.below(1400) + 100;
                let now = Time::from_nanos(arrival);
                let p = packet(0, number, size as u16);
                assert_eq!(ours.enqueue(now, p, &mut never), Ok(()));
                rfc.list.push((number, size, arrival));
                number += 1;
                if number % 1000 == 0 {
                    // The load alternates between overload and recovery.
                    load = rng.uniform() * 0.8 + 0.6;
                }
                arrival += rng.exponential(600_000.0 / load) as u64 + 1;
                // Dequeue only while packets are waiting, as a link does.
            } else {
                if ours.backlog().packets > 0 {
                    let now = Time::from_nanos(service);
                    let got = ours.dequeue(now, &mut |p, why| {
                        assert_eq!(why, DropReason::Aqm);
                        dropped.push(p.seg.seq);
                    });
                    let expected = rfc.dequeue(service);
                    assert_eq!(got.map(|p| p.seg.seq), expected, "seed {seed}");
                    assert_eq!(dropped, rfc.drops, "seed {seed} at {now}");
                }
                service += 600_000;
            }
        }
        signals += dropped.len();
    }
    assert!(signals > 1_000, "the comparison saw drops: {signals}");
}

/// A standing queue. A packet of 1000 bytes arrives every millisecond after an initial burst of `ahead` packets, and
/// one is dequeued every millisecond. Returns delivered and dropped packets with their instants.
type Outcome = Vec<(u64, u64)>;
fn standing(ahead: u64, ms: u64, config: &CoDelConfig, ecn: u8) -> (Outcome, Outcome, Vec<Packet>) {
    let mut q = CoDel::new(config, &outlet());
    let (mut sent, mut dropped, mut packets) = (Vec::new(), Vec::new(), Vec::new());
    let mut number = 0;
    for t in 0..ms {
        for _ in 0..if t == 0 { ahead } else { 1 } {
            let mut p = packet(0, number, 1000);
            p.seg.ecn = ecn;
            assert_eq!(q.enqueue(at_ms(t), p, &mut never), Ok(()));
            number += 1;
        }
        if t > 0
            && let Some(p) = q.dequeue(at_ms(t), &mut |p, _| dropped.push((t, p.seg.seq)))
        {
            sent.push((t, p.seg.seq));
            packets.push(p);
        }
    }
    (sent, dropped, packets)
}

#[test]
fn the_packet_that_is_due_is_dropped_and_the_next_one_delivered() {
    // Two emulators deliver the packet that CoDel decided to drop, and drop the next one, because an inner variable
    // shadows an outer one.
    let (sent, dropped, _) = standing(40, 160, &CoDelConfig::default(), 0);
    // Packet 0 is dequeued at 1 ms, packet 4 at 5 ms, when the delay reaches the target. An interval later, at 105
    // ms, packet 104 is at the head.
    assert_eq!(dropped, [(105, 104)]);
    let around: Vec<_> = sent
        .iter()
        .copied()
        .filter(|s| (104..107).contains(&s.0))
        .collect();
    assert_eq!(around, [(104, 103), (105, 105), (106, 106)]);
}

#[test]
fn gaps_between_drops_follow_the_square_root() {
    let (_, dropped, _) = standing(4_000, 1_500, &CoDelConfig::default(), 0);
    // Drops are due at 105 ms and then 100/sqrt(n) ms apart. They happen at the first whole millisecond at or after
    // that.
    let mut due = 105.0;
    let mut expected = vec![105];
    for n in 1.. {
        due += 100.0 / f64::from(n).sqrt();
        if due >= 1_499.0 {
            break;
        }
        expected.push(f64::ceil(due - 1e-6) as u64);
    }
    let times: Vec<u64> = dropped.iter().map(|d| d.0).collect();
    assert_eq!(times, expected);
    assert!(times.len() > 50);
}

#[test]
fn a_short_burst_is_let_through() {
    // A burst of 40 packets drains within 40 ms: the delay exceeds the target, but not for 100 ms.
    let mut q = CoDel::new(&CoDelConfig::default(), &outlet());
    for i in 0..40 {
        assert_eq!(q.enqueue(at_ms(0), packet(0, i, 1000), &mut never), Ok(()));
    }
    for t in 1..=40 {
        assert!(q.dequeue(at_ms(t), &mut never).is_some());
    }
}

#[test]
fn a_single_full_packet_may_be_as_late_as_it_likes() {
    let slow = Outlet {
        limit: QueueLimit::Packets(10),
        ..outlet()
    };
    let mut q = CoDel::new(&CoDelConfig::default(), &slow);
    for t in 0..500 {
        // Two packets wait, 1 s apart. When one is dequeued, one packet of full size remains.
        assert_eq!(
            q.enqueue(at_ms(1000 * t), packet(0, t, 1500), &mut never),
            Ok(())
        );
        if t > 0 {
            assert!(q.dequeue(at_ms(1000 * t), &mut never).is_some());
        }
    }
}

#[test]
fn with_ecn_the_same_signals_are_marks() {
    let marking = CoDelConfig {
        ecn: true,
        ..CoDelConfig::default()
    };
    let (_, dropped, _) = standing(4_000, 1_500, &CoDelConfig::default(), 2);
    let (_, none, packets) = standing(4_000, 1_500, &marking, 2);
    assert!(none.is_empty());
    let marks = packets.iter().filter(|p| p.seg.ecn == 3).count();
    assert_eq!(marks, dropped.len());
    // Senders that are not ECN-capable lose packets.
    let (_, lost, unmarked) = standing(4_000, 1_500, &marking, 0);
    assert_eq!(lost, dropped);
    assert!(unmarked.iter().all(|p| p.seg.ecn == 0));
}

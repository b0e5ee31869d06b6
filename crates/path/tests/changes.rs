//! Links that change, compared with closed forms, with links that do not change, and with a simple replay of delivery
//! traces.

mod common;
#[path = "changes/deliveries.rs"]
mod deliveries;

use swell_base::{Dur, Flags, FlowId, Head, Packet, QueueLimit, Rate, Stream, Time};
use swell_path::{
    Capacity, Change, CoDelConfig, Discipline, DrrConfig, Link, LinkConfig, Loss, Meter, NewQueue,
    Outage, mean_offered, offered,
};

const MS: u64 = 1_000_000;

fn ms(n: u64) -> Time {
    Time::from_nanos(n * MS)
}

fn packet(size: u16, id: u64) -> Packet {
    let mut packet = Packet::from(Head {
        size,
        ..Head::default()
    });
    packet.seg.seq = id;
    packet
}

fn config(mbit: u64, changes: Vec<Change>) -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::from_bps(mbit * 1_000_000)),
        queue: QueueLimit::Packets(1_000),
        changes,
        ..LinkConfig::default()
    }
}

fn rate(at: Time, bps: u64) -> Change {
    Change {
        at,
        capacity: Some(Capacity::Rate(Rate::from_bps(bps))),
        ..Change::default()
    }
}

fn outage(at: Time, length: Dur, lossy: bool) -> Change {
    Change {
        at,
        outage: Some(Outage { length, lossy }),
        ..Change::default()
    }
}

/// All departures from `link`: instant and packet number.
fn out(link: &mut Link) -> Vec<(u64, u64)> {
    let pop = || link.pop(Time::from_nanos(u64::MAX - 1));
    std::iter::from_fn(pop)
        .map(|(at, p)| (at.as_nanos(), p.seg.seq))
        .collect()
}

/// Departures of packets of 1250 bytes (a millisecond each at 10 Mbit/s) that arrive at these milliseconds.
fn sent(config: &LinkConfig, arrivals: &[u64]) -> Vec<(u64, u64)> {
    let mut link = Link::new(config, 1, "link");
    for (id, &at) in arrivals.iter().enumerate() {
        link.push(ms(at), packet(1250, id as u64));
    }
    out(&mut link)
}

#[test]
fn what_is_left_of_a_packet_goes_at_the_new_rate() {
    // Half of the second packet at 10 Mbit/s, half of it at 1 Mbit/s: 0.5 ms and 5 ms.
    let slower = config(10, vec![rate(Time::from_nanos(1_500_000), 1_000_000)]);
    assert_eq!(
        sent(&slower, &[0, 0, 20]),
        [(MS, 0), (6_500_000, 1), (30 * MS, 2)]
    );
}

#[test]
fn an_outage_suspends_a_transmission() {
    let stopped = config(
        10,
        vec![outage(
            Time::from_nanos(1_500_000),
            Dur::from_secs(2),
            false,
        )],
    );
    let end = 2_001_500_000;
    assert_eq!(
        sent(&stopped, &[0, 0, 700]),
        [(MS, 0), (end + MS / 2, 1), (end + MS * 3 / 2, 2)]
    );
}

#[test]
fn a_lossy_outage_takes_whatever_it_touches() {
    // Transmissions of a millisecond each, back to back; the outage covers [1.5 ms, 3 ms).
    let lossy = config(
        10,
        vec![outage(
            Time::from_nanos(1_500_000),
            Dur::from_micros(1_500),
            true,
        )],
    );
    assert_eq!(
        sent(&lossy, &[0, 0, 0, 0, 0]),
        [(MS, 0), (4 * MS, 3), (5 * MS, 4)]
    );
    // A packet that ends when the outage begins is not lost, nor is one that begins when the outage ends.
    let whole = config(10, vec![outage(ms(1), Dur::from_millis(1), true)]);
    assert_eq!(sent(&whole, &[0, 0, 0]), [(MS, 0), (3 * MS, 2)]);
    let mut link = Link::new(&whole, 1, "link");
    link.set_meter(Meter::new(Dur::from_millis(1), Dur::from_millis(1)));
    for id in 0..3 {
        link.push(Time::ZERO, packet(1250, id));
    }
    assert_eq!(out(&mut link).len(), 2);
    assert_eq!(link.ledger().dropped, [0, 0, 1]);
    let lost: Vec<u32> = link
        .meter()
        .unwrap()
        .bins
        .iter()
        .map(|b| b.dropped[0])
        .collect();
    assert_eq!(lost, [0, 0, 1, 0], "lost when its last bit left");
}

#[test]
fn overlapping_outages_last_as_long_as_the_longer() {
    let changes = vec![
        outage(ms(10), Dur::from_millis(20), false),
        outage(ms(15), Dur::from_millis(5), false),
        // The new capacity applies after the outage.
        rate(ms(25), 20_000_000),
    ];
    assert_eq!(
        sent(&config(10, changes), &[10, 12]),
        [(30_500_000, 0), (31 * MS, 1)]
    );
}

#[test]
fn what_was_sent_later_does_not_overtake_when_the_delay_falls() {
    let mut falls = config(
        10,
        vec![
            Change {
                at: ms(2),
                delay: Some(Dur::from_millis(5)),
                ..Change::default()
            },
            Change {
                at: ms(40),
                delay: Some(Dur::from_millis(50)),
                ..Change::default()
            },
        ],
    );
    falls.delay = Dur::from_millis(30);
    // Last bits leave at 1, 2 (when the delay falls), 3, 31 and 41 ms.
    assert_eq!(
        sent(&falls, &[0, 0, 0, 30, 40]),
        [
            (31 * MS, 0),
            (31 * MS, 1),
            (31 * MS, 2),
            (36 * MS, 3),
            (91 * MS, 4)
        ]
    );
    assert_eq!(Link::new(&falls, 1, "link").delay(), Dur::from_millis(5));
}

/// The same for a change that was not scheduled, on a link without a rate, whose packets never wait.
#[test]
fn what_was_sent_later_does_not_overtake_on_a_link_without_a_rate() {
    let base = LinkConfig {
        delay: Dur::from_millis(30),
        ..LinkConfig::default()
    };
    let nearer = Change {
        delay: Some(Dur::from_millis(5)),
        ..Change::default()
    };
    let mut link = Link::new(&base, 1, "link");
    link.push(ms(100), packet(1250, 0));
    // The packet of this instant has left before.
    let took = link.change(ms(100), &nearer, (1, "link"));
    assert_eq!(took, Some(ms(100) + Dur::from_nanos(1)));
    link.push(ms(101), packet(1250, 1));
    link.push(ms(130), packet(1250, 2));
    assert_eq!(
        out(&mut link),
        [(130 * MS, 0), (130 * MS, 1), (135 * MS, 2)]
    );
}

#[test]
fn changes_come_back() {
    // 10 Mbit/s for 4 ms, 5 Mbit/s for 6 ms, and so on: 7 packets in each round of 10 ms.
    let again = |at, bps| Change {
        every: Some(Dur::from_millis(10)),
        ..rate(at, bps)
    };
    let square = config(1, vec![again(ms(0), 10_000_000), again(ms(4), 5_000_000)]);
    let out = sent(&square, &[0; 70]);
    let round: Vec<u64> = out[..7].iter().map(|x| x.0 / MS).collect();
    assert_eq!(round, [1, 2, 3, 4, 6, 8, 10]);
    for (i, &(at, id)) in out.iter().enumerate() {
        assert_eq!(
            (at, id),
            (out[i % 7].0 + (i as u64 / 7) * 10 * MS, i as u64)
        );
    }
    assert_eq!(
        mean_offered(&square, ms(0), ms(1_000)),
        Rate::from_bps(7_000_000)
    );
    let bins = offered(&square, Dur::from_millis(2), 5)
        .into_iter()
        .map(|r| r.bps() / 1_000_000);
    assert_eq!(bins.collect::<Vec<_>>(), [10, 10, 5, 5, 5]);
}

#[test]
fn a_link_that_stands_still_for_good_keeps_what_it_has() {
    let mut link = Link::new(
        &config(10, vec![rate(Time::from_nanos(1_500_000), 0)]),
        1,
        "link",
    );
    link.set_meter(Meter::new(Dur::from_millis(1), Dur::from_millis(1)));
    for id in 0..4 {
        link.push(Time::ZERO, packet(1250, id));
    }
    assert_eq!(out(&mut link), [(MS, 0)]);
    assert_eq!((link.ledger().held(), link.poll_at()), (3, Some(Time::MAX)));
    assert!(link.meter().unwrap().bins.len() < 3);
    // The search also ends quickly if there are changes without end.
    let hopeless = [outage(ms(0), Dur::from_secs(2), false), rate(ms(0), 1)];
    let again = hopeless.map(|c| Change {
        every: Some(Dur::from_secs(1)),
        ..c
    });
    assert_eq!(sent(&config(10, again.to_vec()), &[5, 6]), []);
}

/// The end of each of several back-to-back transmissions equals the integral of the rate.
#[test]
fn departures_are_those_of_the_integral_of_the_rate() {
    for seed in 0..200 {
        let mut rng = Stream::new(seed, "rates");
        let mut at = 0u64;
        // Spans and rates, some of which are zero.
        let spans: Vec<(u64, u64)> = (0..12)
            .map(|_| {
                let from = at;
                at += rng.below(3_000_000) + 1;
                let bps = [0, rng.below(20_000_000) + 1, rng.below(5_000) * 1_000 + 7];
                (from, bps[rng.below(3) as usize])
            })
            .chain([(40_000_000, 3_000_000)])
            .collect();
        // Nanobits carried until `t`.
        let carried = |t: u64| -> u128 {
            let ends = spans.iter().skip(1).map(|s| s.0).chain([u64::MAX]);
            let each = spans.iter().zip(ends).map(|(&(from, bps), to)| {
                u128::from(bps) * u128::from(t.min(to).saturating_sub(from))
            });
            each.sum()
        };
        let changes = spans
            .iter()
            .map(|&(from, bps)| rate(Time::from_nanos(from), bps));
        let mut link = Link::new(&config(1, changes.collect()), 1, "link");
        let mut work = 0u128;
        let mut expected = Vec::new();
        for id in 0..60 {
            let size = rng.below(1460) as u16 + 40;
            link.push(Time::ZERO, packet(size, id));
            work += u128::from(size) * 8_000_000_000;
            // The first nanosecond by the end of which the packet has been carried completely.
            let (mut low, mut high) = (0u64, 1 << 40);
            while low < high {
                let middle = low.midpoint(high);
                if carried(middle) >= work {
                    high = middle
                } else {
                    low = middle + 1
                }
            }
            // Times are rounded down, so the packet ends within that nanosecond, unless it ends exactly at its end.
            expected.push((if carried(low) == work { low } else { low - 1 }, id));
        }
        assert_eq!(out(&mut link), expected, "seed {seed}");
    }
}

#[test]
fn changes_that_change_nothing_change_nothing() {
    for seed in 0..150 {
        let mut rng = Stream::new(seed, "plain");
        let bps = Rate::from_bps(rng.below(20_000_000) + 100_000);
        let plain = LinkConfig {
            rate: rng.chance(0.9).then_some(bps),
            delay: Dur::from_nanos(rng.below(5_000_000)),
            discipline: common::random_discipline(&mut rng),
            queue: common::random_limit(&mut rng),
            overhead: rng.below(20) as u16,
            loss: Loss::Independent { p: 0.1 },
            changes: Vec::new(),
        };
        let again = Change {
            at: Time::from_nanos(rng.below(MS)),
            every: Some(Dur::from_nanos(rng.below(MS) + 1_000)),
            capacity: Some(plain.rate.map_or(Capacity::Unlimited, Capacity::Rate)),
            delay: Some(plain.delay),
            ..Change::default()
        };
        let idle = Change {
            capacity: None,
            ..again.clone()
        };
        for change in [again, idle] {
            let varied = LinkConfig {
                changes: vec![change],
                ..plain.clone()
            };
            let mut links = [&plain, &varied].map(|c| Link::new(c, seed, "link"));
            let mut at = Time::ZERO;
            for id in 0..300 {
                at += Dur::from_nanos(rng.below(1_500_000));
                let mut p = packet(rng.below(1460) as u16 + 40, id);
                p.flow = FlowId(rng.below(5) as u32);
                links.iter_mut().for_each(|l| l.push(at, p));
                let [a, b] = links.each_mut().map(|l| l.backlog(at));
                assert_eq!(a, b, "seed {seed} at {at}");
            }
            let [a, b] = links.each_mut().map(out);
            assert_eq!(a, b, "seed {seed}");
            assert_eq!(links[0].ledger(), links[1].ledger());
            assert_eq!(links[0].marked(), links[1].marked());
        }
    }
}

fn new_queue(at: Time, discipline: Discipline, limit: &str) -> Change {
    Change {
        at,
        queue: Some(NewQueue {
            discipline,
            limit: limit.parse().unwrap(),
            rate: Some(Rate::from_bps(10_000_000)),
        }),
        ..Change::default()
    }
}

#[test]
fn a_shorter_queue_drops_its_tail() {
    let shorter = config(
        10,
        vec![new_queue(
            Time::from_nanos(1_500_000),
            Discipline::Fifo,
            "3pkt",
        )],
    );
    let mut link = Link::new(&shorter, 1, "link");
    link.set_meter(Meter::new(Dur::from_millis(1), Dur::from_micros(100)));
    for id in 0..10 {
        link.push(Time::ZERO, packet(1250, id));
    }
    // Packet 1 is in transmission; the first three of packets 2 to 9 are kept.
    let ids: Vec<u64> = out(&mut link).into_iter().map(|x| x.1).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    assert_eq!(link.ledger().dropped, [5, 0, 0]);
    let bins = &link.meter().unwrap().bins;
    assert_eq!(bins[15].dropped[0], 5, "as the queue was exchanged");
}

#[test]
fn an_arrival_finds_the_queue_of_its_own_instant() {
    let shorter = new_queue(Time::from_nanos(1_500_000), Discipline::Fifo, "3pkt");
    let exchanged = LinkConfig {
        queue: QueueLimit::Packets(100),
        ..config(10, vec![shorter])
    };
    // The queue is replaced between two transmissions. The link is not touched, or touched before or after that.
    for looked in [None, Some(1_200_000), Some(1_600_000)] {
        let mut link = Link::new(&exchanged, 1, "link");
        link.set_meter(Meter::new(Dur::from_millis(1), Dur::from_micros(100)));
        for id in 0..10 {
            link.push(Time::ZERO, packet(1250, id));
        }
        if let Some(now) = looked {
            let gone = link.pop(Time::from_nanos(now));
            assert_eq!(gone.map(|(at, _)| at), Some(ms(1)));
        }
        link.push(Time::from_nanos(1_700_000), packet(1250, 10));
        // The packet finds three packets waiting and a full queue.
        let bin = &link.meter().unwrap().bins[17];
        assert_eq!((bin.queue_max, bin.dropped[0]), (3_750, 1), "{looked:?}");
    }
}

#[test]
fn what_waits_moves_over_in_the_order_of_service() {
    let codel = CoDelConfig {
        target: Dur::from_nanos(1),
        interval: Dur::from_nanos(1),
        ..CoDelConfig::default()
    };
    // A discipline that would drop nearly everything still hands over all its packets.
    for from in [
        Discipline::Fifo,
        Discipline::Drr(DrrConfig::default()),
        Discipline::CoDel(codel),
        Discipline::FqCoDel(Default::default()),
        Discipline::Pie(Default::default()),
        Discipline::Priority(Default::default()),
    ] {
        let moved = LinkConfig {
            discipline: from.clone(),
            // Packet 0 is in transmission until the queue has been replaced.
            ..config(10, vec![new_queue(ms(1), Discipline::Fifo, "100pkt")])
        };
        let mut link = Link::new(&moved, 1, "link");
        for id in 0..20 {
            link.push(Time::ZERO, packet(1250, id));
        }
        let ids: Vec<u64> = out(&mut link).into_iter().map(|x| x.1).collect();
        assert_eq!(ids, (0..20).collect::<Vec<_>>(), "{from:?}");
    }
    // To priority: from then on one band overtakes the other.
    let priority = config(
        10,
        vec![new_queue(
            ms(2),
            Discipline::Priority(Default::default()),
            "9pkt",
        )],
    );
    let mut link = Link::new(&priority, 1, "link");
    for id in 0..6 {
        let mut p = packet(1250, id);
        p.tag = [swell_base::Tag::Background, swell_base::Tag::Foreground][usize::from(id > 3)];
        link.push(Time::ZERO, p);
    }
    let ids: Vec<u64> = out(&mut link).into_iter().map(|x| x.1).collect();
    assert_eq!(ids, [0, 1, 4, 5, 2, 3]);
}

#[test]
fn loss_changes() {
    let lossy = |at, p| Change {
        at,
        loss: Some(Loss::Independent { p }),
        ..Change::default()
    };
    let config = config(10, vec![lossy(ms(100), 1.0), lossy(ms(200), 0.0)]);
    let mut link = Link::new(&config, 1, "link");
    for id in 0..300 {
        link.push(ms(id), packet(125, id));
    }
    let ids: Vec<u64> = out(&mut link).into_iter().map(|x| x.1).collect();
    assert_eq!(ids, (0..100).chain(200..300).collect::<Vec<_>>());
}

/// An unscheduled change has the same effect as one scheduled for the instant at which it took effect.
#[test]
fn a_change_from_outside_is_one_that_was_scheduled() {
    let later = |at: u64, change: &Change| Change {
        at: Time::from_nanos(at),
        ..change.clone()
    };
    let made = |link: &mut Link, changes: &[Change]| {
        let mut effective = Vec::new();
        let mut changes = changes.iter().peekable();
        let mut rng = Stream::new(7, "arrivals");
        let mut at = 0;
        for id in 0..3_000u64 {
            at += rng.below(2_200_000);
            while let Some(change) = changes.next_if(|c| c.at.as_nanos() <= at) {
                // Transmissions due by now begin first.
                link.backlog(change.at);
                let took = link.change(change.at, change, (1, "link"));
                effective.extend(took.map(|t| later(t.as_nanos(), change)));
            }
            let size = 40 + rng.below(1_460) as u16;
            link.push(Time::from_nanos(at), packet(size, id));
        }
        (out(link), effective)
    };
    let shorter = |delay: u64| Change {
        delay: Some(Dur::from_millis(delay)),
        ..Change::default()
    };
    let lossy = Change {
        loss: Some(Loss::Independent { p: 0.1 }),
        ..Change::default()
    };
    let queue = Change {
        queue: Some(NewQueue {
            discipline: Discipline::CoDel(CoDelConfig::default()),
            limit: QueueLimit::Packets(20),
            rate: Some(Rate::from_bps(3_000_000)),
        }),
        ..Change::default()
    };
    let slow = rate(Time::ZERO, 3_000_001);
    let course = [&slow, &shorter(30), &shorter(2), &queue, &lossy, &slow];
    for count in 1..=course.len() {
        let numbered = course[..count].iter().zip(1..);
        let asked: Vec<Change> = numbered.map(|(c, k)| later(k * 401_234_567, c)).collect();
        let base = LinkConfig {
            delay: Dur::from_millis(10),
            ..config(7, Vec::new())
        };
        let (surprised, effective) = made(&mut Link::new(&base, 1, "link"), &asked);
        assert_eq!(effective.len(), count);
        for (wanted, took) in asked.iter().zip(&effective) {
            // At most the transmission time of one packet later.
            assert!(took.at >= wanted.at && took.at.since(wanted.at) < Dur::from_millis(5));
        }
        let scheduled = LinkConfig {
            changes: effective,
            ..base
        };
        let (foreseen, _) = made(&mut Link::new(&scheduled, 1, "link"), &[]);
        let mut both = surprised.iter().zip(&foreseen);
        assert_eq!(both.find(|(a, b)| a != b), None, "{count} changes");
        assert_eq!(surprised.len(), foreseen.len(), "{count} changes");
    }
}

#[test]
fn a_link_tells_the_rate_that_a_change_would_find() {
    let bps = |link: &Link, at| link.rate_at(ms(at)).map(Rate::bps);
    let varied = config(10, vec![rate(ms(5), 3_000_000), rate(ms(9), 0)]);
    let varied = Link::new(&varied, 1, "link");
    let found = [0, 4, 5, 8, 9].map(|at| bps(&varied, at).unwrap_or(0) / 1_000_000);
    assert_eq!(found, [10, 10, 3, 3, 0]);
    // The change waits for the end of a transmission.
    let mut busy = Link::new(&config(10, Vec::new()), 1, "link");
    busy.push(ms(5), packet(1250, 0));
    assert_eq!(bps(&busy, 5), Some(10_000_000));
    let took = busy.change(ms(5), &rate(ms(5), 2_000_000), (1, "link"));
    assert_eq!(took, Some(ms(6) + Dur::from_nanos(1)));
    assert_eq!(bps(&busy, 5), Some(2_000_000));
    assert_eq!(bps(&Link::new(&LinkConfig::default(), 1, "link"), 5), None);
}

/// A link that changes has no one transmission time, so that phases of refused segments are not counted. After a stop
/// for ever, the rest of a transmission has no end.
#[test]
fn links_that_change_count_no_phases() {
    let stopped = rate(ms(1), 0);
    for changes in [vec![rate(ms(1), 5_000_000)], vec![stopped]] {
        let mut config = config(10, changes);
        config.queue = QueueLimit::Packets(2);
        let mut link = Link::new(&config, 1, "link");
        link.set_meter(Meter::new(Dur::from_millis(1), Dur::from_millis(1)));
        for i in 0..100 {
            let mut data = packet(1500, i);
            data.seg.len = 1448;
            data.seg.flags = Flags::ACK;
            link.push(ms(1 + i / 50), data);
        }
        let meter = link.meter().expect("it was set");
        assert!(
            meter
                .bins
                .iter()
                .map(|b| u64::from(b.dropped[0]))
                .sum::<u64>()
                > 50
        );
        assert_eq!(meter.phases.iter().sum::<u32>(), 0);
    }
}

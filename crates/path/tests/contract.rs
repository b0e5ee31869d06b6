//! Checks the contract for random links and chains of links.

#[path = "contract/changes.rs"]
mod changes;
mod common;

use common::random_discipline;
use swell_base::{Dur, FlowId, Head, Packet, Rate, Stream, Tag, Time};
use swell_path::{Ledger, Link, LinkConfig, Loss, Meter, PacketPool};

/// Links in series.
struct Chain(Vec<Link>);

impl Chain {
    fn push(&mut self, at: Time, packet: Packet) {
        self.0[0].push(at, packet);
    }

    fn poll_at(&self) -> Option<Time> {
        self.0.iter().filter_map(Link::poll_at).min()
    }

    fn pop(&mut self, now: Time) -> Option<(Time, Packet)> {
        // Every departure from a link by `now` must enter the next one before that is asked for output.
        for i in 1..self.0.len() {
            while let Some((at, packet)) = self.0[i - 1].pop(now) {
                self.0[i].push(at, packet);
            }
        }
        self.0.last_mut()?.pop(now)
    }

    fn ledger(&self) -> Ledger {
        let all = || self.0.iter().map(Link::ledger);
        Ledger {
            arrived: self.0[0].ledger().arrived,
            departed: self.0[self.0.len() - 1].ledger().departed,
            dropped: [0, 1, 2].map(|reason| all().map(|l| l.dropped[reason]).sum()),
            marked: all().map(|l| l.marked).sum(),
        }
    }
}

fn random_link(rng: &mut Stream, seed: u64, name: &str) -> Link {
    let queue = common::random_limit(rng);
    let loss = match rng.below(3) {
        0 => Loss::None,
        1 => Loss::Independent {
            p: rng.uniform() * 0.2,
        },
        _ => Loss::GilbertElliott {
            to_bad: 0.02,
            to_good: 0.3,
            loss_good: 0.0,
            loss_bad: 0.8,
        },
    };
    let config = LinkConfig {
        rate: rng
            .chance(0.8)
            .then(|| Rate::from_bps(rng.below(50_000_000) + 7)),
        delay: Dur::from_nanos(rng.below(30_000_000)),
        queue,
        discipline: random_discipline(rng),
        overhead: rng.below(40) as u16,
        loss,
        changes: match rng.below(2) {
            0 => Vec::new(),
            _ => changes::random_changes(rng),
        },
    };
    Link::new(&config, seed, name)
}

fn random_chain(seed: u64) -> Chain {
    let mut rng = Stream::new(seed, "element");
    let mut links = vec![random_link(&mut rng, seed, "a")];
    for name in ["b", "c"] {
        if rng.chance(0.5) {
            break;
        }
        links.push(random_link(&mut rng, seed, name));
    }
    Chain(links)
}

/// SACK blocks of a packet, by its number: none, or up to three.
fn acknowledges(number: u64) -> impl Iterator<Item = (i32, i32)> {
    let first = number as i32;
    (0..[0, 1, 0, 3, 2][number as usize % 5]).map(move |k| (first + k, first + 7 * k + 1))
}

fn arrivals(seed: u64) -> Vec<(Time, Packet)> {
    let mut rng = Stream::new(seed, "arrivals");
    let mut at = Time::ZERO;
    (0..400)
        .map(|i| {
            at += match rng.below(4) {
                0 => Dur::ZERO,
                1 => Dur::from_nanos(240_000),
                _ => Dur::from_nanos(rng.below(3_000_000)),
            };
            let size = rng.below(1461) as u16 + 40;
            (at, {
                let mut packet = Packet::from(Head {
                    flow: FlowId(rng.below(12) as u32),
                    size,
                    tag: [Tag::Foreground, Tag::Background][rng.below(2) as usize],
                    ..Head::default()
                });
                // The packet's identity: flow numbers repeat, and some disciplines separate flows.
                packet.seg.seq = i;
                packet.seg.ecn = rng.below(4) as u8;
                for (start, end) in acknowledges(i) {
                    let count = &mut packet.head.seg.sacks;
                    packet.sacks.push(count, start, end);
                }
                packet
            })
        })
        .collect()
}

/// Drives `chain` and checks its guarantees. Polls whenever a poll is due and, if `late`, also at random late
/// instants.
fn drive(mut chain: Chain, seed: u64, late: bool) -> Vec<(Time, u64)> {
    let mut rng = Stream::new(seed, "poller");
    let mut arrived_at = std::collections::BTreeMap::new();
    let mut out: Vec<(Time, u64)> = Vec::new();
    let mut inside = 0i64;
    let collect = |from: &mut Chain, now: Time, to: &mut Vec<(Time, u64)>| {
        while let Some((at, packet)) = from.pop(now) {
            assert!(at <= now, "a departure from the future");
            if let Some(&(last, _)) = to.last() {
                assert!(at >= last, "departures went back in time");
            }
            let wanted = acknowledges(packet.seg.seq);
            assert!(
                packet.sacks().eq(wanted),
                "blocks were mixed up: {packet:?}"
            );
            to.push((at, packet.seg.seq));
        }
    };
    for (at, packet) in arrivals(seed) {
        if !late {
            while let Some(due) = chain.poll_at().filter(|&d| d <= at) {
                let before = out.len();
                collect(&mut chain, due, &mut out);
                // An early poll may return nothing, but then the next deadline must move on.
                assert!(
                    out.len() > before || chain.poll_at() != Some(due),
                    "stuck at {due}"
                );
            }
        } else if rng.chance(0.1) {
            collect(&mut chain, at, &mut out);
        }
        arrived_at.insert(packet.seg.seq, at);
        chain.push(at, packet);
        inside += 1;
        let l = chain.ledger();
        assert_eq!(l.arrived as i64, inside);
        assert_eq!(l.departed, out.len() as u64);
        assert!(l.arrived >= l.departed + l.dropped_total());
        if !late {
            // A chain may only notice a drop when it is polled; a link notices at once.
            assert_eq!(
                chain.poll_at().is_none(),
                l.held() == 0,
                "held {} {l:?}",
                l.held()
            );
        }
    }
    while let Some(due) = chain.poll_at() {
        let now = if late {
            due + Dur::from_nanos(rng.below(1 << 33))
        } else {
            due
        };
        collect(&mut chain, now, &mut out);
    }
    let l = chain.ledger();
    assert_eq!(l.held(), 0, "{l:?}");
    assert_eq!(l.arrived, l.departed + l.dropped_total());
    for &(at, id) in &out {
        assert!(at >= arrived_at[&id], "left before it came");
    }
    out
}

#[test]
fn polling_late_changes_nothing() {
    for seed in 0..300 {
        let prompt = drive(random_chain(seed), seed, false);
        let late = drive(random_chain(seed), seed, true);
        assert_eq!(prompt, late, "seed {seed}");
    }
}

#[test]
fn a_link_alone_has_its_own_random_stream() {
    let config = LinkConfig {
        loss: Loss::Independent { p: 0.5 },
        ..LinkConfig::default()
    };
    let pattern = |seed, name: &str| {
        let mut link = Link::new(&config, seed, name);
        (0..64u64)
            .map(|i| {
                let at = Time::from_nanos(i);
                link.push(at, Packet::default());
                link.pop(at).is_some()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(pattern(1, "a"), pattern(1, "a"));
    assert_ne!(pattern(1, "a"), pattern(1, "b"));
    assert_ne!(pattern(1, "a"), pattern(2, "a"));
}

/// A link without counters takes shorter code paths than one with counters, but gives the same output in any
/// configuration.
#[test]
fn counting_changes_nothing() {
    let (mut drops, mut seen) = (0, 0);
    for seed in 0..400 {
        let mut rng = Stream::new(seed, "counting");
        let rates = [1_000_000, 7_654_321, 10_000_000];
        let config = LinkConfig {
            rate: rng
                .chance(0.9)
                .then(|| Rate::from_bps(rates[rng.below(3) as usize])),
            delay: Dur::from_nanos(rng.below(30_000_000)),
            queue: common::random_limit(&mut rng),
            discipline: random_discipline(&mut rng),
            ..LinkConfig::default()
        };
        let (mut bare, mut counts) = (
            Link::new(&config, seed, "link"),
            Link::new(&config, seed, "link"),
        );
        counts.set_meter(Meter::new(Dur::from_millis(1), Dur::from_millis(100)));
        for (at, packet) in arrivals(seed) {
            for link in [&mut bare, &mut counts] {
                link.push(at, packet);
            }
            if rng.chance(0.5) {
                loop {
                    let (a, b) = (bare.pop(at), counts.pop(at));
                    assert_eq!(a, b, "seed {seed}");
                    if a.is_none() {
                        break;
                    }
                    seen += 1;
                }
            }
        }
        assert_eq!(bare.ledger(), counts.ledger(), "seed {seed}");
        drops += bare.ledger().dropped_total();
    }
    assert!(drops > 1_000 && seen > 10_000, "{drops} {seen}");
}

/// Debug builds only: other builds do not check this.
#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "used by itself")]
fn a_link_whose_packets_lie_in_a_shared_pool_is_not_polled_by_itself() {
    let config = LinkConfig {
        delay: Dur::from_millis(1),
        ..LinkConfig::default()
    };
    let mut pool = PacketPool::default();
    let mut link = Link::new(&config, 1, "shared");
    let place = pool.put(&Packet::default());
    link.push_place(&mut pool, Time::ZERO, place);
    assert_eq!(link.due(), Some(Time::from_nanos(1_000_000)));
    link.poll_at();
}

use std::net::{IpAddr, Ipv4Addr};

use swell_traffic::{Connection, Exchange, Group};

use crate::pairs::UNRESOLVED;

use super::*;

/// Hosts and the sessions that use them.
struct Trace {
    hosts: Hosts,
    paths: Paths,
    next: u32,
}

impl Trace {
    fn new() -> Trace {
        Trace {
            hosts: Hosts::new(Vec::new()),
            paths: Paths::new(),
            next: 0,
        }
    }

    fn host(&mut self) -> u32 {
        self.next += 1;
        self.hosts
            .id(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + self.next)))
    }

    /// A session of a client outside, or inside, with these servers.
    fn session(&mut self, class: u32, client: u32, servers: &[u32], outside: bool) -> Session {
        let connections = servers.iter().map(|&server| Connection {
            gap: Dur::ZERO,
            server,
            exchange: Exchange::Sequential(Vec::new()),
            client_window: 0,
            server_window: 0,
            wire: swell_traffic::Wire::default(),
            writes: Default::default(),
            waits: Vec::new(),
            left_censored: false,
            right_censored: false,
            overlap: None,
        });
        let mut s = Session {
            class,
            start: Dur::ZERO,
            weight: 1.0,
            client,
            outside,
            lasted: None,
            groups: vec![Group {
                think: Dur::ZERO,
                connections: connections.collect(),
            }],
        };
        self.paths.place(&mut s, &self.hosts);
        s
    }

    /// A server of this class, inside or outside, with these samples, one each second.
    fn server(&mut self, class: u32, inside: bool, samples: &[(Sample, u64, usize)]) -> u32 {
        let (client, server) = (self.host(), self.host());
        self.session(class, client, &[server], inside);
        for &(kind, value, times) in samples {
            for i in 0..times as u64 {
                self.hosts.sample(server, kind, value, i * 1_000_000_000);
            }
        }
        server
    }

    /// Server paths, and their counters.
    fn finish(self, apart: bool) -> (Vec<Path>, SideCounts) {
        let mut counts = Counts::default();
        let options = Options {
            apart,
            ..Options::default()
        };
        let (passing, together) = (Passing::default(), Default::default());
        let tap = Seen {
            hosts: &self.hosts,
            passing: &passing,
            together: &together,
        };
        let [_, (servers, taken)] = self.paths.finish(&tap, &mut counts, &options);
        assert!(
            taken.iter().all(|&t| t == Taken::default()),
            "nobody waits beyond the tap"
        );
        (servers, counts.sides[1])
    }
}

const HANDSHAKE: (Sample, u64, usize) = (Sample::Handshake, 40_000, 1);

fn ms(n: u64) -> Dur {
    Dur::from_millis(n)
}

/// Hosts are numbered by first use, clients and servers separately.
#[test]
fn hosts_are_numbered_by_first_use() {
    let mut seen = Trace::new();
    let [a, b, c] = [0; 3].map(|_| seen.host());
    let first = seen.session(0, a, &[c, b], false);
    let second = seen.session(1, c, &[b, c, a], false);
    let servers = |s: &Session| s.connections().map(|x| x.server).collect::<Vec<_>>();
    assert_eq!((first.client, servers(&first)), (0, vec![0, 1]));
    assert_eq!((second.client, servers(&second)), (1, vec![1, 0, 2]));
}

/// The median of the handshakes if there are any, else the tenth percentile of the data samples.
#[test]
fn round_trips_of_handshakes_and_of_data() {
    let mut seen = Trace::new();
    let by_data = seen.server(0, false, &[]);
    // 10, 11, … 60 ms, shuffled: a tenth of the other 50 values are below the sixth.
    for i in 0..51u64 {
        seen.hosts
            .sample(by_data, Sample::Data, 10_000 + 1_000 * (i * 20 % 51), 0);
    }
    let both = seen.server(0, false, &[(Sample::Data, 10_000, 9)]);
    for rtt in [90_000, 30_000, 40_000] {
        seen.hosts.sample(both, Sample::Handshake, rtt, 0);
    }
    seen.server(0, false, &[(Sample::Handshake, 50_000, 4)]);
    seen.server(0, false, &[(Sample::Handshake, 60_000, 5)]);
    let (paths, counts) = seen.finish(false);
    let found: Vec<_> = paths.iter().map(|p| (p.rtt, p.rtt_samples)).collect();
    assert_eq!(found, [(ms(15), 51), (ms(40), 3), (ms(50), 4), (ms(60), 5)]);
    assert_eq!((counts.hosts, counts.borrowed), (4, 0));
    // Hosts with fewer than five samples count as `few`.
    assert_eq!((counts.few, counts.by_data), (2, 1));
}

/// Without handshakes and ACKs that time the path, the shortest echo of a timestamp tells the RTT; but not of a host
/// whose transfers fill its line, where a queue is in all of them.
#[test]
fn round_trips_of_echoes() {
    let mut seen = Trace::new();
    let echo = (Sample::Echo, 30_000, 1);
    seen.server(0, false, &[echo]);
    seen.server(0, false, &[echo, (Sample::Data, 20_000, 5)]);
    // Few answers to data may have waited, so the shorter counts.
    seen.server(0, false, &[echo, (Sample::Data, 70_000, 4)]);
    seen.server(0, false, &[echo, (Sample::Data, 20_000, 4)]);
    let full = seen.server(
        1,
        false,
        &[(Sample::Echo, 700_000, 1), (Sample::Down, 400, 20)],
    );
    seen.hosts.losses(full - 1, full, 1_000, 0, 0);
    let (paths, counts) = seen.finish(false);
    let found: Vec<_> = paths.iter().map(|p| (p.rtt, p.rtt_samples)).collect();
    let expected = [(30, 1), (20, 5), (30, 1), (20, 4)].map(|(rtt, samples)| (ms(rtt), samples));
    assert_eq!(found[..4], expected);
    assert!(found[4].0 <= ms(30) && found[4].1 == 0, "{found:?}");
    assert_eq!((counts.borrowed, counts.by_data), (1, 4));
}

/// The transmission time on the host's access link is not part of the RTT. A handshake has 60 bytes to the
/// host and 56 from it; data have 1500 and 52.
#[test]
fn lines_are_taken_out_of_round_trips() {
    let lines = [(Sample::Up, 800, 15), (Sample::Down, 1_600, 15)];
    let mut seen = Trace::new();
    for timed in [Sample::Handshake, Sample::Data] {
        let samples = [lines[0], lines[1], (timed, 50_000, 5)];
        seen.server(0, false, &samples);
    }
    let (paths, _) = seen.finish(false);
    for (path, [to, from]) in paths.iter().zip([[60, 56], [1_500, 52]]) {
        assert_eq!(path.up.map(Rate::bps), Some(800_000));
        assert_eq!(path.down.map(Rate::bps), Some(1_600_000));
        // A byte takes 10 microseconds up and 5 down.
        assert_eq!(path.rtt, Dur::from_micros(50_000 - 5 * to - 10 * from));
        assert_eq!((path.rtt_samples, path.capacity_samples), (5, 30));
    }
}

/// Fifteen pairs give a capacity, fourteen do not.
#[test]
fn a_capacity_needs_fifteen_pairs() {
    let mut seen = Trace::new();
    for (rate, pairs) in [(5_000, 14), (5_000, 15)] {
        seen.server(0, false, &[HANDSHAKE, (Sample::Up, rate, pairs)]);
    }
    let (paths, _) = seen.finish(true);
    let found: Vec<_> = (paths.iter())
        .map(|p| (p.up.map(Rate::bps), p.down, p.capacity_samples))
        .collect();
    assert_eq!(found[0], (None, None, 14));
    assert_eq!(found[1], (Some(5_000_000), None, 15));
}

/// If at least three hosts of a side have a capacity and two in three agree, the others get the median.
/// This applies to that side and direction only.
#[test]
fn hosts_behind_one_line_share_it() {
    for (known, shared) in [
        (vec![10_000, 10_000], None),
        (vec![10_000, 10_000, 10_000], Some(10_000)),
        (vec![9_000, 10_000, 12_900], Some(10_000)),
        // Within a factor of 1.3, up and down, and just beyond.
        (vec![7_700, 10_000, 13_100], Some(10_000)),
        (vec![7_600, 10_000, 13_000], Some(10_000)),
        (vec![7_600, 10_000, 13_100], None),
        (vec![50_000, 10_000, 10_000], Some(10_000)),
        (vec![10_000, 10_000, 50_000, 60_000], None),
        (
            vec![10_000, 10_000, 10_000, 10_000, 50_000, 60_000],
            Some(10_000),
        ),
        (vec![1_000, 10_000, 100_000], None),
    ] {
        for right in [false, true] {
            let mut seen = Trace::new();
            for &rate in &known {
                seen.server(0, !right, &[HANDSHAKE, (Sample::Down, rate, 20)]);
            }
            seen.server(0, !right, &[HANDSHAKE]);
            // On the other side: another capacity, upwards.
            for _ in 0..3 {
                seen.server(0, right, &[HANDSHAKE, (Sample::Up, 777_000, 20)]);
            }
            let other = seen.server(0, right, &[HANDSHAKE]);
            let n = known.len();
            let (paths, _) = seen.finish(false);
            let kbit = |r: Option<Rate>| r.map(|r| r.bps() / 1_000);
            assert_eq!(kbit(paths[n].down), shared, "{known:?}");
            assert_eq!(paths[n].up, None);
            let far = paths.last().expect("a host");
            assert_eq!((kbit(far.up), far.down), (Some(777_000), None), "{other}");
            // Hosts with a capacity of their own keep it.
            let own: Vec<_> = paths[..n].iter().filter_map(|p| kbit(p.down)).collect();
            let off = |(a, b): (&u64, &u64)| a.abs_diff(*b) * 1_000 > *b;
            assert!(!own.iter().zip(&known).any(off), "{own:?} {known:?}");
        }
    }
}

/// ACKs are no faster than the data that they answer. If those data come through a shared link, only a
/// lower capacity is the receiver's own. A few pairs of each host behind that link reveal it, and they all
/// get its capacity.
#[test]
fn a_line_before_the_tap_is_not_one_beyond_it() {
    for (spacing, own) in [(1_289, None), (900, None), (500, Some(500))] {
        for right in [false, true] {
            let mut seen = Trace::new();
            let receiver = seen.server(0, !right, &[HANDSHAKE, (Sample::Down, spacing, 20)]);
            for _ in 0..3 {
                seen.server(0, right, &[HANDSHAKE, (Sample::Up, 900, 5)]);
            }
            seen.server(0, right, &[HANDSHAKE, (Sample::Up, 40_000, 4)]);
            let (paths, _) = seen.finish(false);
            let kbit = |r: Option<Rate>| r.map(|r| r.bps() / 1_000);
            assert_eq!(kbit(paths[0].down), own, "{receiver}");
            let up: Vec<_> = paths[1..].iter().map(|p| kbit(p.up)).collect();
            assert_eq!(up, [Some(900); 4]);
        }
    }
}

/// Pairs that do not agree show no capacity: at least a third must agree.
#[test]
fn samples_all_over_the_place_are_no_capacity() {
    for (agreeing, known) in [(10, true), (7, false)] {
        let mut seen = Trace::new();
        let scattered = (0..15).map(|i| (Sample::Up, 1_000 << i, 1));
        let agreed = [HANDSHAKE, (Sample::Up, 300, agreeing)];
        let samples: Vec<_> = agreed.into_iter().chain(scattered).collect();
        seen.server(0, false, &samples);
        let (paths, _) = seen.finish(true);
        assert_eq!(paths[0].up.map(|r| r.bps() / 1_000), known.then_some(300));
    }
}

/// A host without RTT samples borrows the RTT of a random host of its class, each with the same
/// probability. If its class has none, it borrows from any host. With `apart`, it borrows nothing.
#[test]
fn round_trips_are_borrowed_within_a_class() {
    let build = || {
        let mut seen = Trace::new();
        for (class, rtt) in [(0, 10_000), (0, 20_000), (1, 70_000)] {
            seen.server(class, false, &[(Sample::Handshake, rtt, 9)]);
        }
        for class in [0, 1, 2] {
            for _ in 0..600 {
                seen.server(class, false, &[(Sample::Up, 1_000, 3)]);
            }
        }
        seen
    };
    let (paths, counts) = build().finish(false);
    assert_eq!(
        (counts.hosts, counts.borrowed, counts.few),
        (1_803, 1_800, 0)
    );
    assert!(paths[3..].iter().all(|p| p.rtt_samples == 0));
    let share = |from: usize, rtt: Dur| {
        let those = &paths[from..from + 600];
        those.iter().filter(|p| p.rtt == rtt).count() as f64 / 600.0
    };
    // Four standard errors of a share of a half are 0.08, of a third 0.077.
    let near = |found: f64, truth: f64| assert!((found - truth).abs() < 0.08, "{found} {truth}");
    near(share(3, ms(10)), 0.5);
    near(share(3, ms(20)), 0.5);
    near(share(603, ms(70)), 1.0);
    for rtt in [10, 20, 70] {
        near(share(1_203, ms(rtt)), 1.0 / 3.0);
    }
    let (alone, said) = build().finish(true);
    assert!(alone[3..].iter().all(|p| p.rtt == Dur::ZERO));
    assert_eq!(said.hosts, 0);
}

/// Loss ratios are shrunk towards the side's ratio with the weight of ten packets; no host contributes
/// more than ten packets to it. With `apart`, they are shrunk towards zero instead.
#[test]
fn losses_are_drawn_towards_the_sides() {
    let build = || {
        let mut seen = Trace::new();
        let [a, b, c] = [0; 3].map(|_| seen.server(0, false, &[HANDSHAKE]));
        let client = seen.host();
        // Packets sent, lost before the tap, and lost beyond it.
        seen.hosts.losses(a, client, 1_000, 100, 0);
        seen.hosts.losses(b, client, 5, 1, 0);
        seen.hosts.losses(client, a, 40, 0, 4);
        seen.hosts.losses(client, c, 0, 0, 7);
        seen
    };
    let (paths, _) = build().finish(false);
    let near = |found: f64, truth: f64| assert!((found - truth).abs() < 1e-6, "{found} {truth}");
    // From the hosts: a tenth of ten packets and one of five.
    let side = (1.0 + 1.0) / 15.0;
    near(paths[0].loss_up, (100.0 + 10.0 * side) / 1_010.0);
    near(paths[1].loss_up, (1.0 + 10.0 * side) / 15.0);
    near(paths[2].loss_up, side);
    // To the hosts: only the first was sent anything.
    near(paths[0].loss_down, (4.0 + 1.0) / 50.0);
    near(paths[1].loss_down, 0.1);
    near(paths[2].loss_down, 0.1);
    let samples: Vec<_> = paths.iter().map(|p| p.loss_samples).collect();
    assert_eq!(samples, [1_040, 5, 0]);
    let (alone, _) = build().finish(true);
    near(alone[0].loss_up, 100.0 / 1_010.0);
    near(alone[1].loss_up, 1.0 / 15.0);
    near(alone[2].loss_up, 0.0);
}

/// RTTs of 20 to 40 ms, twenty losses: those that come when the RTT is long belong to the queue of the host's own link,
/// if its capacity is known and a replay has that queue. Those at any RTT do not, nor do a few.
#[test]
fn what_the_own_queue_lost_is_not_lost_at_random() {
    let times = |kind: Sample| [20, 25, 30, 35, 40].map(|t| (kind, t * 1_000, 12));
    let capacity = [(Sample::Up, 2_000, 20), (Sample::Down, 2_000, 20)];
    let lost = |kind: Sample, at: &[(u64, usize)]| -> Vec<_> {
        at.iter().map(|&(t, n)| (kind, t * 1_000, n)).collect()
    };
    let full = [(40, 20)];
    let any = [(20, 5), (25, 5), (35, 5), (40, 5)];
    let half = [(20, 5), (40, 15)];
    for (known, at, loss) in [
        (true, &full[..], 0.0),
        (true, &any[..], 0.02),
        (true, &half[..], 0.01),
        (true, &[(40, 4)][..], 0.02),
        (false, &full[..], 0.02),
    ] {
        let mut seen = Trace::new();
        let rates = if known { &capacity[..] } else { &[] };
        let samples = [
            &[HANDSHAKE][..],
            rates,
            &times(Sample::Sending)[..],
            &times(Sample::Data)[..],
            &lost(Sample::LostUp, at)[..],
            &lost(Sample::LostDown, at)[..],
        ]
        .concat();
        let (host, client) = (seen.server(0, false, &samples), seen.host());
        seen.hosts.losses(host, client, 1_000, 20, 0);
        seen.hosts.losses(client, host, 1_000, 0, 20);
        let (paths, _) = seen.finish(true);
        for got in [paths[0].loss_up, paths[0].loss_down] {
            assert!((got - loss).abs() < 0.001, "{got} for {at:?}, {known}");
        }
    }
}

/// A queue of the host's own line is in some or most of its handshakes, and a replay has that queue.
#[test]
fn queues_of_the_own_line_are_not_in_round_trips() {
    let waits = [
        (Sample::Handshake, 2_000, 3),
        (Sample::Handshake, 200_000, 9),
    ];
    let line = [(Sample::Down, 2_000, 20)];
    // 60 bytes take 240 us to the host.
    for (known, rtt) in [(true, 2_000 - 240), (false, 200_000)] {
        let mut seen = Trace::new();
        let lines = if known { &line[..] } else { &[] };
        let samples = [&waits[..], lines].concat();
        let (host, server) = (seen.server(0, false, &samples), seen.host());
        seen.hosts.losses(server, host, 1_000, 0, 0);
        let (paths, _) = seen.finish(false);
        assert_eq!(paths[0].rtt, Dur::from_micros(rtt));
    }
}

/// Without hosts to borrow from, the shortest echo is the round trip, even where a queue may be in it.
#[test]
fn an_upper_bound_is_better_than_nothing() {
    let mut seen = Trace::new();
    let echoes = [(Sample::Echo, 40_000, 2), (Sample::Echo, 31_000, 1)];
    let samples = [&echoes[..], &[(Sample::Up, 20_000, 20)]].concat();
    let (server, client) = (seen.server(0, false, &samples), seen.host());
    seen.hosts.losses(server, client, 1_000, 0, 0);
    let (paths, counts) = seen.finish(false);
    assert_eq!((paths[0].rtt, paths[0].rtt_samples), (ms(31), 1));
    assert_eq!((counts.borrowed, counts.few, counts.by_data), (0, 1, 1));
}

/// Three connections share a line of 20 Mbit/s, so their ACKs are spaced as at a third or half of it. That is no capacity.
/// What was delivered together is, if it is the same whenever it is most.
#[test]
fn connections_that_share_a_line_reach_its_capacity_together() {
    for (steady, found) in [(true, Some(20_000)), (false, None)] {
        let mut seen = Trace::new();
        let pairs = [(Sample::Down, 6_700, 20), (Sample::Down, 10_000, 10)];
        let host = seen.server(0, false, &[&[HANDSHAKE][..], &pairs].concat());
        for bin in 0..20u64 {
            let share = if steady || bin % 10 > 0 { 10 } else { 12 };
            for i in 0..50 {
                let at = (bin * 200 + i * 4) * 1_000_000;
                seen.hosts.delivered(host, 10_000 * share / 10, at);
            }
        }
        let (paths, _) = seen.finish(false);
        let kbit = paths[0].down.map(|r| r.bps().div_ceil(1_000_000) * 1_000);
        assert_eq!(kbit, found);
    }
}

/// Of many bins of a load without a limit, or one that grows, some are about as busy as the busiest. Those of a full line
/// are most of those that are busy at all, even if transfers begin and end in some.
#[test]
fn the_busiest_of_many_bins_are_no_line() {
    let bell = |rng: &mut Stream| (0..12).map(|_| rng.below(1_000)).sum::<u64>() / 6;
    // A mean of 1000, with a standard deviation of 17 %.
    let load = |bins: usize| -> Vec<u64> {
        let mut rng = Stream::new(7, "load");
        (0..bins).map(|_| bell(&mut rng)).collect()
    };
    let grows = (0..400)
        .map(|i| 100 + 2 * i)
        .chain((0..400).map(|i| 900 - i));
    let line = (0..60).map(|i| [1_000, 990, 1_010, 600, 980][i % 5]);
    // Two or five acknowledgements of so many segments that no more fit into a bin.
    let coarse = (0..60).map(|i| [400, 1_000][i % 2]);
    let cases = [
        (load(100), false),
        (load(1_000), false),
        (load(18_000), false),
        (grows.collect(), false),
        (coarse.collect(), false),
        (line.collect(), true),
    ];
    for (bins, found) in cases {
        let mut seen = Trace::new();
        let pairs = [(Sample::Down, 100, 20)];
        let host = seen.server(0, false, &[&[HANDSHAKE][..], &pairs].concat());
        for (bin, share) in (0u64..).zip(&bins) {
            for i in 0..10 {
                let at = (bin * 200 + i * 20) * 1_000_000;
                seen.hosts.delivered(host, 10 * share, at);
            }
        }
        let (paths, _) = seen.finish(false);
        assert_eq!(paths[0].down.is_some(), found, "{} bins", bins.len());
    }
}

/// Packets that mostly come faster than can be told have no line, even if some pairs that ACKs spaced agree.
#[test]
fn packets_that_come_together_tell_no_line() {
    for (together, found) in [(10, Some(100_000)), (40, None)] {
        let mut seen = Trace::new();
        let fast = (Sample::Up, u64::from(UNRESOLVED), together);
        seen.server(0, false, &[HANDSHAKE, fast, (Sample::Up, 100_000, 20)]);
        let (paths, _) = seen.finish(true);
        assert_eq!(paths[0].up.map(|r| r.bps() / 1_000), found);
    }
}

/// A queue that is always full loses at any RTT. A short one, or one that comes and goes, does not hide other losses.
#[test]
fn a_queue_that_is_always_full_loses_all() {
    for (low, held_back, loss) in [
        (58_000, 499, 0.0),
        (45_000, 0, 0.02),
        (31_000, 0, 0.02),
        // As long as receive windows permit, but not full.
        (58_000, 500, 0.02),
    ] {
        let mut seen = Trace::new();
        let high = if low == 31_000 { 31_100 } else { 62_000 };
        let samples = [
            (Sample::Handshake, 30_000, 5),
            (Sample::Down, 20_000, 20),
            (Sample::Bulk, low, 30),
            (Sample::Bulk, high, 30),
            (Sample::LostDown, low, 10),
            (Sample::LostDown, high, 10),
        ];
        let (host, client) = (seen.server(0, false, &samples), seen.host());
        seen.hosts.losses(client, host, 1_000, 0, 20);
        seen.hosts.held_back(client, host, held_back);
        let (paths, _) = seen.finish(true);
        assert!((paths[0].loss_down - loss).abs() < 0.001, "{low}");
    }
}

/// One RTT that stands for many segments is one RTT: neither is a queue always full by it, nor does it tell when losses
/// came. The answers to data tell that then, if there are enough.
#[test]
fn one_round_trip_tells_nothing_of_losses() {
    for (answers, loss) in [(0, 0.02), (4, 0.02), (12, 0.0)] {
        let times = [40, 45, 50, 55, 60].map(|t| (Sample::Data, t * 1_000, answers));
        let samples = [
            &[(Sample::Handshake, 30_000, 5), (Sample::Down, 20_000, 20)][..],
            if answers == 4 { &times[..1] } else { &times },
            &[(Sample::LostDown, 60_000, 20)],
        ]
        .concat();
        let mut seen = Trace::new();
        let (host, client) = (seen.server(0, false, &samples), seen.host());
        for _ in 0..32 {
            seen.hosts.sample(host, Sample::Bulk, 58_000, 0);
        }
        seen.hosts.losses(client, host, 1_000, 0, 20);
        let (paths, _) = seen.finish(true);
        assert!((paths[0].loss_down - loss).abs() < 0.001, "{answers}");
    }
}

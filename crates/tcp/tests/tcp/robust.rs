//! On any path, every byte arrives once and in order, and the connection ends.

use swell_base::{Dur, Flags, SackBlocks, Segment, Stream, Time};
use swell_tcp::{Algorithm, Config, Endpoint, Event};

use crate::net::{CLIENT, Net, SERVER, deliver, lose, ms};
use proptest::prelude::*;

fn with(cfg: &Config, algorithm: Algorithm) -> Config {
    Config {
        algorithm,
        ..cfg.clone()
    }
}

/// Configurations that differ in every setting that recovery depends on.
fn variants() -> Vec<(&'static str, Config)> {
    let linux = Config::linux();
    let classic = Config::classic();
    vec![
        ("linux", linux.clone()),
        (
            "linux newreno",
            Config {
                algorithm: Algorithm::NewReno,
                ..linux.clone()
            },
        ),
        (
            "linux rfc6675",
            Config {
                rack_tlp: false,
                ..linux.clone()
            },
        ),
        (
            "linux no prr",
            Config {
                rack_tlp: false,
                prr: false,
                ..linux.clone()
            },
        ),
        (
            "linux no sack",
            Config {
                sack: false,
                ..linux.clone()
            },
        ),
        (
            "small window",
            Config {
                recv_buffer: 4_000,
                ..linux.clone()
            },
        ),
        (
            "tiny window",
            Config {
                recv_buffer: 700,
                nagle: true,
                ..linux.clone()
            },
        ),
        ("bbr", with(&linux, Algorithm::Bbr)),
        ("westwood", with(&linux, Algorithm::Westwood)),
        ("ledbat", with(&linux, Algorithm::Ledbat)),
        ("ledbat++", with(&linux, Algorithm::LedbatPlusPlus)),
        ("tcp-lp", with(&linux, Algorithm::Lp)),
        ("nice", with(&linux, Algorithm::Nice)),
        (
            "bbr without sack",
            Config {
                sack: false,
                ..with(&linux, Algorithm::Bbr)
            },
        ),
        (
            "linux ecn",
            Config {
                ecn: true,
                ..linux.clone()
            },
        ),
        ("ns-2 era", Config::ns2_era()),
        ("ns-2 modern", Config::ns2_modern()),
        (
            "ns-2 newreno",
            with(&Config::ns2_modern(), Algorithm::NewReno),
        ),
        ("ns-2 vegas", with(&Config::ns2_era(), Algorithm::Vegas)),
        (
            "ns-2 vegas modern",
            with(&Config::ns2_modern(), Algorithm::Vegas),
        ),
        (
            "ns-2 delayed, stream",
            Config {
                packets: false,
                delayed_ack: true,
                ..Config::ns2_era()
            },
        ),
        ("classic reno", classic.clone()),
        (
            "classic newreno",
            Config {
                algorithm: Algorithm::NewReno,
                ..classic.clone()
            },
        ),
        (
            "classic delack",
            Config {
                delayed_ack: true,
                initial_window: 1,
                ..classic.clone()
            },
        ),
        (
            "classic limited",
            Config {
                limited_transmit: true,
                packets: true,
                ..classic.clone()
            },
        ),
        (
            "classic one-way",
            Config {
                handshake: false,
                tick: Dur::from_millis(500),
                ..classic
            },
        ),
    ]
}

/// Both sides send random amounts in random writes. The path loses, duplicates and reorders.
fn conversation(name: &str, cfg: &Config, seed: u64) {
    let mut s = Stream::new(seed, "conversation");
    let (loss, dup, late) = (s.uniform() * 0.3, s.uniform() * 0.2, s.uniform() * 0.5);
    let totals = [s.below(60_000), s.below(60_000)];
    let mut wire = Stream::new(seed, "wire");
    let mut net = Net::new(cfg.clone(), ms(1 + s.below(80)))
        .judge(move |_| {
            if wire.chance(loss) {
                return lose();
            }
            let mut fate = deliver();
            if wire.chance(late) {
                fate[0] = Dur::from_micros(wire.below(100_000));
            }
            if wire.chance(dup) {
                fate.push(Dur::from_micros(wire.below(300_000)));
            }
            fate
        })
        .app({
            let mut left = totals;
            let mut writes = Stream::new(seed, "writes");
            move |_, end, event, e: &mut Endpoint| match event {
                Event::Connected | Event::Drained | Event::Received(_) if left[end] > 0 => {
                    let n = (1 + writes.below(20_000)).min(left[end]);
                    left[end] -= n;
                    e.send(n);
                    if left[end] == 0 {
                        e.close();
                    }
                }
                Event::Connected if left[end] == 0 => e.close(),
                _ => {}
            }
        });
    net.run(40_000);
    let told = format!("{name}, seed {seed}");
    for end in [CLIENT, SERVER] {
        assert_eq!(
            net.received(end),
            totals[1 - end],
            "{told}: delivered at {end}"
        );
        assert_eq!(net.ends[end].stats().delivered, totals[1 - end], "{told}");
        for event in [Event::Connected, Event::Eof, Event::Closed] {
            let n = net
                .events
                .iter()
                .filter(|x| (x.1, x.2) == (end, event))
                .count();
            assert_eq!(n, 1, "{told}: {event:?} at {end}");
        }
        assert_eq!(net.when(end, Event::Reset), None, "{told}");
        assert_eq!(
            net.events.iter().rfind(|x| x.1 == end).map(|x| x.2),
            Some(Event::Closed)
        );
    }
}

#[test]
fn every_byte_arrives_once_and_every_conversation_ends() {
    for (name, cfg) in variants() {
        for seed in 0..60 {
            conversation(name, &cfg, seed);
        }
    }
}

fn any_segment() -> impl Strategy<Value = (Segment, SackBlocks)> {
    let number = prop_oneof![
        4 => 0u64..20_000,
        1 => any::<u64>(),
        1 => (u64::MAX - 3)..=u64::MAX,
        1 => Just((1u64 << 32) + 7),
    ];
    let flags = prop_oneof![
        6 => Just(0x10u8), 1 => Just(0x11), 1 => Just(0x02), 1 => Just(0x12), 1 => any::<u8>()
    ];
    let len = prop_oneof![4 => 0u32..3_000, 1 => any::<u32>()];
    let window = prop_oneof![Just(0u32), 0u32..100_000, any::<u32>()];
    let block = (any::<i16>(), 1i32..5_000, any::<bool>());
    (
        number.clone(),
        number,
        len,
        window,
        flags,
        any::<u8>(),
        prop::collection::vec(block, 0..4),
    )
        .prop_map(|(seq, ack, len, window, flags, ecn, said)| {
            let (mut blocks, mut sacks) = (SackBlocks::default(), 0);
            for (from, size, huge) in said {
                let end = if huge {
                    i32::MAX
                } else {
                    i32::from(from) + size
                };
                blocks.push(&mut sacks, i32::from(from), end);
            }
            let seg = Segment {
                seq,
                ack,
                len,
                window,
                sacks,
                flags: Flags(flags),
                ecn,
                stamps: swell_base::Stamps::new(window, window >> 12),
            };
            (seg, blocks)
        })
}

/// Extreme and unusual settings.
fn any_config() -> impl Strategy<Value = Config> {
    let span = || {
        prop_oneof![
            Just(Dur::ZERO),
            Just(Dur::MAX),
            (0u64..10_000).prop_map(Dur::from_millis)
        ]
    };
    let size = || prop_oneof![Just(0u32), Just(1), Just(u32::MAX), 0u32..100_000];
    (
        0..variants().len(),
        (size(), size(), size(), size(), size()),
        (span(), span(), span(), span(), span()),
        (any::<u8>(), any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(|(variant, sizes, spans, (n, odd, sack, packets))| {
            let base = variants().swap_remove(variant).1;
            if !odd {
                return base;
            }
            Config {
                mss: sizes.0,
                initial_window: sizes.1,
                initial_ssthresh: Some(sizes.2),
                send_window: Some(sizes.3),
                recv_buffer: sizes.4,
                min_rto: spans.0,
                max_rto: spans.1,
                initial_rto: spans.2,
                tick: spans.3,
                ack_delay: spans.4,
                retries: n,
                syn_retries: n,
                dup_threshold: u32::from(n),
                quick_acks: n,
                sack,
                packets,
                ..base
            }
        })
}

#[derive(Clone, Debug)]
enum Op {
    Segment(Segment, SackBlocks),
    Send(u64),
    Close,
    Abort,
    Wait(u32),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => any_segment().prop_map(|(seg, sacks)| Op::Segment(seg, sacks)),
        2 => (0u64..100_000).prop_map(Op::Send),
        1 => Just(Op::Send(u64::MAX)),
        1 => Just(Op::Close),
        1 => Just(Op::Abort),
        5 => (0u32..3_000_000_000).prop_map(Op::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn no_segment_makes_an_endpoint_panic_or_babble(
        cfg in any_config(),
        client in any::<bool>(),
        ops in prop::collection::vec(any_op(), 1..60),
    ) {
        let cfg = std::sync::Arc::new(cfg);
        let mut e = if client { Endpoint::client(cfg) } else { Endpoint::server(cfg) };
        let mut now = Time::ZERO;
        for op in ops {
            match op {
                Op::Segment(seg, sacks) => e.handle_segment(now, &seg, &sacks),
                Op::Send(n) => {
                    e.send(n);
                }
                Op::Close => e.close(),
                Op::Abort => e.abort(),
                Op::Wait(ns) => now += Dur::from_nanos(u64::from(ns)),
            }
            if e.poll_timeout().is_some_and(|t| t <= now) {
                e.handle_timeout(now);
            }
            let mut events = 0;
            while e.poll().is_some() {
                events += 1;
                prop_assert!(events < 10);
            }
            // A peer that acknowledges everything at once may open a window of 4 GiB. This test checks that each
            // response is finite.
            for _ in 0..200 {
                if e.poll_transmit(now).is_none() {
                    break;
                }
            }
            let s = e.stats();
            prop_assert!(s.cwnd >= 1 && s.ssthresh >= 1);
        }
    }
}

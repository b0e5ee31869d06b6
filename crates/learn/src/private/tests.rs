use std::net::IpAddr;

use proptest::prelude::*;
use swell_base::{Code, Dur, Stream};
use swell_capture::{Packet, Tcp, TcpOptions, Transport};
use swell_traffic::Model;

use super::counts::Histogram;
use super::secret::{Purpose, Secret};
use super::*;
use crate::{Learner, Options};

/// A user's visit: start (ms), client, server, number of connections, bytes of each, RTT (ms), UDP.
type Visit = (u64, u8, u8, u8, u32, u8, bool);

/// The packets of visits, each in its own port range. `but` names a visit to leave out.
fn packets(visits: &[Visit], but: Option<usize>) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (i, &(start, client, server, connections, bytes, rtt, udp)) in visits.iter().enumerate() {
        if but == Some(i) {
            continue;
        }
        let ends = [
            IpAddr::from([10, 0, 0, client]),
            IpAddr::from([192, 0, 2, server]),
        ];
        for c in 0..u64::from(connections) {
            let port = 2_000 + 40 * i as u16 + c as u16;
            let rtt = u64::from(rtt) * 1_000_000 + c * 50_000;
            let mut at = (start + 40 * c) * 1_000_000;
            let mut put = |when: u64, from: usize, flags: u8, seq: u32, ack: u32, payload: u32| {
                let ports = [port, if udp { 443 } else { 80 }];
                let transport = if udp {
                    Transport::Udp {
                        src_port: ports[from],
                        dst_port: ports[1 - from],
                        payload,
                    }
                } else {
                    Transport::Tcp(Tcp {
                        src_port: ports[from],
                        dst_port: ports[1 - from],
                        seq,
                        ack,
                        flags,
                        window: 65_535,
                        payload,
                        options: TcpOptions::default(),
                    })
                };
                packets.push(Packet {
                    time: 1_700_000_000_000_000_000 + when as i64,
                    wire_len: payload + 54,
                    captured_len: 54,
                    ip_len: payload + if udp { 28 } else { 40 },
                    src: ends[from],
                    dst: ends[1 - from],
                    ttl: 64,
                    transport,
                    ..Packet::default()
                });
            };
            if udp {
                put(at, 0, 0, 0, 0, 40);
                put(at + rtt, 1, 0, 0, 0, bytes % 1_400);
                continue;
            }
            put(at, 0, Tcp::SYN, 0, 0, 0);
            put(at + rtt, 1, Tcp::SYN | Tcp::ACK, 0, 1, 0);
            at += rtt + rtt / 4;
            put(at, 0, Tcp::ACK, 1, 1, 0);
            put(at, 0, Tcp::ACK, 1, 1, 300);
            at += rtt + 7_000_000;
            put(at, 1, Tcp::ACK, 1, 301, bytes % 1_400 + 1);
            at += rtt / 4;
            let all = bytes % 1_400 + 2;
            put(at, 0, Tcp::FIN | Tcp::ACK, 301, all, 0);
            put(at + rtt, 1, Tcp::FIN | Tcp::ACK, all, 302, 0);
        }
    }
    // The ends of the trace, which are public. They also fix the sides.
    let end = |time: i64| Packet {
        time,
        ip_len: 84,
        src: IpAddr::from([10, 0, 0, 1]),
        dst: IpAddr::from([192, 0, 2, 1]),
        transport: Transport::Icmp,
        ..Packet::default()
    };
    packets.push(end(1_700_000_000_000_000_000 - 1));
    packets.push(end(1_700_000_000_000_000_000 + 300_000_000_000));
    packets.sort_by_key(|p| p.time);
    packets
}

fn learnt(packets: &[Packet]) -> Model {
    let mut learner = Learner::new(Options {
        apart: true,
        inside: vec!["10.0.0.0/8".parse().unwrap()],
        parameters: swell_traffic::Parameters {
            group_timeout: Dur::from_secs(1),
            session_timeout: Dur::from_secs(5),
            ..Options::default().parameters
        },
        ..Options::default()
    });
    packets.iter().for_each(|p| learner.push(p));
    learner.finish()
}

fn visits() -> impl Strategy<Value = Vec<Visit>> {
    let one = (
        (0..5u8, 0..4u8, 1..30u8),
        (any::<u32>(), 1..200u8, any::<bool>()),
    );
    proptest::collection::vec(one, 1..12).prop_map(|list| {
        let visit = |(i, ((client, server, connections), (bytes, rtt, udp)))| {
            // Far enough apart that visits of one user are separate sessions.
            let start = 5 + 20_000 * i as u64;
            (start, client, server, connections, bytes, rtt, udp)
        };
        list.into_iter().enumerate().map(visit).collect()
    })
}

/// The share of epsilon that hides the difference: at most 1 for a session.
fn spent(counts: &Counts, other: &Counts) -> f64 {
    let each = Histogram::ALL.into_iter().zip(counts.apart(other));
    each.map(|(h, apart)| h.part() * apart as f64 / h.share() as f64)
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The property that the guarantee rests on: removing a session removes its own counts and changes no
    /// other session's, whatever hosts they share.
    #[test]
    fn a_session_changes_the_counts_by_its_share(visits in visits(), which in any::<usize>()) {
        let which = which % visits.len();
        let with = Counts::of(&learnt(&packets(&visits, None)));
        let without = Counts::of(&learnt(&packets(&visits, Some(which))));
        for (h, apart) in Histogram::ALL.into_iter().zip(with.apart(&without)) {
            prop_assert!(apart <= h.share() as u64, "{h:?}: {apart}");
        }
        prop_assert!(spent(&with, &without) <= 1.0 + 1e-9);
        // The session is counted at all.
        prop_assert!(spent(&with, &without) > 0.0);
    }

    /// Whatever the noise is, the released model is consistent.
    #[test]
    fn released_models_are_sound(visits in visits(), seed in any::<[u8; 32]>(), epsilon in 0.05..50.0f64) {
        let learnt = learnt(&packets(&visits, None));
        let private = Private { epsilon, seed };
        let model = release(&learnt, &private);
        prop_assert!(model.check().is_ok(), "{:?}", model.check());
        prop_assert_eq!(&model, &release(&learnt, &private));
        prop_assert_eq!(model.provenance.private, Some(epsilon));
        prop_assert!(model.load.bytes.iter().all(Vec::is_empty));
        // Noise invents no transfers: a dozen visits of some 30 connections each are less than a gigabyte.
        let bytes = |s: &swell_traffic::Session| s.weight * s.bytes().map(|b| b as f64).iter().sum::<f64>();
        let (all, datagrams) = model.sessions.iter().fold((0.0, 0), |(sum, most), s| {
            let own = s.connections().map(|c| c.exchange.units()[0]).max();
            (sum + bytes(s), most.max(own.unwrap_or(0)))
        });
        prop_assert!(all < 1e9 && datagrams < 1_000_000, "{all} bytes, {datagrams}");
        let text = model.to_json();
        prop_assert_eq!(Model::from_slice(text.as_bytes()).ok(), Some(model));
    }
}

/// The parts of epsilon sum to 1.
#[test]
fn the_budget_is_spent_once() {
    let all: f64 = Histogram::ALL.into_iter().map(Histogram::part).sum();
    assert!((all - 1.0).abs() < 1e-12);
}

/// The noise has the law that the guarantee needs: probabilities of neighbouring values differ by `exp(1 /
/// scale)`.
#[test]
fn noise_is_two_sided_geometric() {
    let scale = 3.0;
    let mut secret = Secret::new(seed(1), Purpose::Noise);
    let n = 400_000;
    let mut seen = std::collections::BTreeMap::<i64, f64>::new();
    for _ in 0..n {
        *seen.entry(secret.noise(scale)).or_default() += 1.0;
    }
    let a = (-1.0f64 / scale).exp();
    let mut chi = 0.0;
    for k in -12..=12i64 {
        let expected = f64::from(n) * (1.0 - a) / (1.0 + a) * a.powi(k.unsigned_abs() as i32);
        let got = seen.get(&k).copied().unwrap_or(0.0);
        chi += (got - expected).powi(2) / expected;
    }
    // 25 degrees of freedom: 99.9 % are below 52.6.
    assert!(chi < 52.6, "chi square {chi:.1}");
}

/// The numbers are those of ChaCha20, and each bit of the seed counts.
#[test]
fn noise_comes_from_the_cipher() {
    // RFC 8439, appendix A.1, test vector 1: the first bytes under a key of zeros.
    let first = |seed| Secret::new(seed, Purpose::Noise).bits();
    let expected = [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90];
    assert_eq!(first([0; 32]).to_le_bytes(), expected);
    let mut seen = std::collections::BTreeSet::from([first([0; 32])]);
    for bit in 0..256 {
        let mut seed = [0; 32];
        seed[bit / 8] = 1u8 << (bit % 8);
        assert!(seen.insert(first(seed)), "bit {bit}");
    }
    assert!(seen.insert(Secret::new([0; 32], Purpose::Model).bits()));
}

/// A seed of one number.
fn seed(n: u64) -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&n.to_le_bytes());
    seed
}

/// An attacker knows every other session and the properties of the one in question. From the noisy counts,
/// the attacker makes the best possible guess whether it was there (Neyman & Pearson). At epsilon 1 that
/// is at most (e - 1) / (e + 1) = 0.46 better than tossing a coin (P. Kairouz, S. Oh, P. Viswanath, ICML
/// 2015). Without noise the guess is always right.
#[test]
fn whoever_looks_for_a_session_finds_no_more_than_promised() {
    let visits: Vec<Visit> = (0..12)
        .map(|i| (5 + 20_000 * i, i as u8 % 5, 1, 3, 500, 20, false))
        .chain([(130_005, 7, 2, 29, 1_399, 180, true)])
        .collect();
    let with = Counts::of(&learnt(&packets(&visits, None)));
    let without = Counts::of(&learnt(&packets(&visits, Some(12))));
    let share = spent(&with, &without);
    assert!(share > 0.3, "{share}");
    let advantage = |epsilon: f64| {
        let times = 3_000;
        let mut right = 0;
        for i in 0..times {
            let truth = i % 2 == 0;
            let seed = seed(i);
            let counts = if truth { &with } else { &without };
            let seen = counts.clone().noisy(&Private { epsilon, seed });
            // Minus the log-likelihoods, without the terms that are the same in both.
            let far = |from: &Counts| spent(&seen, from);
            let says = far(&with) < far(&without);
            right += u64::from(says == truth);
        }
        2.0 * right as f64 / times as f64 - 1.0
    };
    let bound = |e: f64| (e.exp() - 1.0) / (e.exp() + 1.0);
    // Three standard deviations of a share of 3000.
    assert!(advantage(1.0) < bound(1.0) + 0.055, "{}", advantage(1.0));
    assert!(advantage(0.2) < bound(0.2) + 0.055, "{}", advantage(0.2));
    assert!(advantage(60.0) > 0.95, "{}", advantage(60.0));
}

/// Most of the information about many similar sessions is kept.
#[test]
fn what_many_do_is_kept() {
    let mut rng = Stream::new(1, "visits");
    let visits: Vec<Visit> = (0..400)
        .map(|i| {
            (
                5 + rng.below(280_000),
                (i % 200) as u8,
                3,
                4,
                900,
                40,
                false,
            )
        })
        .collect();
    let learnt = learnt(&packets(&visits, None));
    let private = Private {
        epsilon: 20.0,
        seed: seed(3),
    };
    let cost = Cost::of(&learnt, &release(&learnt, &private));
    assert!((cost.sessions - 1.0).abs() < 0.1, "{cost:?}");
    assert!((cost.bytes / 1.0).log2().abs() < 1.0, "{cost:?}");
    for (quantity, octaves) in &cost.octaves {
        // Bins are a factor of four wide. Two visits of one user that follow closely are rare.
        let rare = *quantity == swell_traffic::Quantity::GroupThink;
        assert!(rare || *octaves < 1.6, "{quantity}: {octaves}");
    }
    // Four simultaneous connections are a peak; the synthesis draws them one by one and loses it.
    assert!(cost.decibels < 20.0, "{cost:?}");
    let codes = |m: &Model| {
        m.warnings
            .iter()
            .map(|w| w.code.clone())
            .collect::<Vec<_>>()
    };
    let all = release(&learnt, &private);
    assert!(
        !codes(&all).contains(&Code::PrivateSizes),
        "{:?}",
        all.warnings
    );
    // Of a tenth of the visits with one connection each, noise leaves no size, and the model says so.
    let single: Vec<Visit> = visits[..40]
        .iter()
        .map(|v| (v.0, v.1, v.2, 1, v.4, v.5, v.6))
        .collect();
    let few = release(
        &self::learnt(&packets(&single, None)),
        &Private {
            epsilon: 4.0,
            ..private
        },
    );
    assert!(
        codes(&few).contains(&Code::PrivateSizes),
        "{:?}",
        few.warnings
    );
    let text = &few.warnings[0].message;
    assert!(
        !text.contains("are right within a factor") && text.contains("about 79 connections"),
        "{text}"
    );
    // One more session is hidden; a class with one user is not released.
    let mut odd = visits;
    odd.push((165_000, 201, 4, 1, 10, 3, true));
    let model = release(
        &self::learnt(&packets(&odd, None)),
        &Private {
            epsilon: 1.0,
            ..private
        },
    );
    assert!(model.classes.iter().all(|c| c.name != "quic"));
}

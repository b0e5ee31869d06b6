use std::net::IpAddr;

use swell_base::{Code, Direction, Dur};
use swell_capture::{Packet, Tcp, Transport};

use super::*;
use crate::Options;

const MS: i64 = 1_000_000;

fn ip(a: u8, d: u8) -> IpAddr {
    IpAddr::from([a, 0, 0, d])
}

/// Sequence number, acknowledgement, flags and payload.
type Numbers = (u32, u32, u8, u32);

fn packet(at: i64, from: (IpAddr, u16), to: (IpAddr, u16), numbers: Numbers) -> Packet {
    let (seq, ack, flags, payload) = numbers;
    Packet {
        time: at,
        wire_len: payload + 54,
        captured_len: payload + 54,
        ip_len: payload + 40,
        src: from.0,
        dst: to.0,
        ttl: 64,
        transport: Transport::Tcp(Tcp {
            src_port: from.1,
            dst_port: to.1,
            seq,
            ack,
            flags,
            window: 1000,
            payload,
            ..Tcp::default()
        }),
        ..Packet::default()
    }
}

/// A connection that begins at `at`, ms: handshake, request and response. Both sides of the tap take 20 ms.
fn connection(at: i64, client: IpAddr, server: IpAddr, port: u16) -> Vec<Packet> {
    let (c, s) = ((client, port), (server, 443));
    let isn = u32::from(port) * 1000;
    let (both, last) = (Tcp::SYN | Tcp::ACK, Tcp::FIN | Tcp::ACK);
    [
        (0, c, s, (isn, 0, Tcp::SYN, 0)),
        (20, s, c, (5, isn + 1, both, 0)),
        (40, c, s, (isn + 1, 6, Tcp::ACK, 300)),
        (60, s, c, (6, isn + 301, Tcp::ACK, 1400)),
        (61, s, c, (1406, isn + 301, Tcp::ACK, 1400)),
        (81, c, s, (isn + 301, 2806, last, 0)),
        (101, s, c, (2806, isn + 302, last, 0)),
        (121, c, s, (isn + 302, 2807, Tcp::ACK, 0)),
    ]
    .into_iter()
    .map(|(ms, from, to, numbers)| packet((at + ms) * MS, from, to, numbers))
    .collect()
}

/// A capture in the order of its times.
fn capture(parts: &[Vec<Packet>]) -> Vec<Packet> {
    let mut all = parts.concat();
    all.sort_by_key(|p| p.time);
    all
}

/// As the second tap sees these packets: the delay between the taps is 5 ms, and its clock is `offset` ahead.
fn behind(packets: &[Packet], offset: i64) -> Vec<Packet> {
    let late = |p: &Packet| {
        let outward = p.src.to_string().starts_with("10.");
        let delay = if outward { 5 * MS } else { -5 * MS };
        Packet {
            time: p.time + delay + offset,
            ..*p
        }
    };
    packets.iter().map(late).collect()
}

fn matched(first: &[Packet], second: &[Packet], most: usize) -> Result<Matched, NoMatch> {
    let mut matcher = Matcher::new(&[], most);
    first.iter().for_each(|p| matcher.first(p));
    second.iter().for_each(|p| matcher.second(p));
    matcher.finish()
}

fn parted(first: &[Packet], second: &[Packet], most: usize) -> Parted {
    let matched = matched(first, second, most).unwrap();
    let options = Options {
        name: "two".into(),
        ..Options::default()
    };
    let mut split = Split::new(matched, &options, &["a.pcap".into(), "b.pcap".into()]);
    first.iter().for_each(|p| split.first(p));
    second.iter().for_each(|p| split.second(p));
    split.finish()
}

/// Two captures: `through` connections pass both taps, and ten each pass one of them.
fn two(through: u16, offset: i64) -> [Vec<Packet>; 2] {
    let one = |n: u16, client: u8, server: (u8, u8)| -> Vec<Packet> {
        (0..n)
            .flat_map(|i| {
                let at = i64::from(i) * 5000 / i64::from(n);
                connection(at, ip(10, client), ip(server.0, server.1), 2000 + i)
            })
            .collect()
    };
    let common = capture(&[one(through, 1, (198, 1))]);
    let first = capture(&[common.clone(), one(10, 2, (203, 2))]);
    let second = capture(&[common, one(10, 3, (198, 3))]);
    [first, behind(&second, offset)]
}

#[test]
fn flows_at_both_taps_are_through_traffic_whatever_the_clocks() {
    for offset in [0, 3_600_000 * MS, -17 * MS] {
        let [first, second] = two(30, offset);
        let found = matched(&first, &second, MOST_FLOWS).unwrap();
        assert_eq!(found.flows(), 30);
        let clocks = found.clocks;
        assert!((clocks.offset - offset).abs() < MS, "{clocks:?}");
        assert_eq!(clocks.lag, Some(5 * MS));
        let parted = parted(&first, &second, MOST_FLOWS);
        let connections = parted.models.each_ref().map(|m| {
            let m = m.as_ref().unwrap();
            (m.name.clone(), m.totals.tcp_connections)
        });
        let wanted = [("two-through", 30), ("two-first", 10), ("two-second", 10)];
        assert_eq!(connections, wanted.map(|(name, n)| (name.to_owned(), n)));
        // Each connection has as many bytes. Packets within 5 ms of the ends are in one capture only.
        for tap in [0, 1] {
            let share = parted.links.share(tap);
            assert!((share - 0.75).abs() < 0.005, "{share}");
        }
        // The time that only one tap recorded is left out: there is next to none.
        assert!(parted.links.outside.iter().sum::<u64>() < 10);
        let up = &parted.links.coherence[Direction::Up];
        assert!(up.len() > 5 && parted.links.explained(Direction::Up, 3).is_some());
    }
}

/// Round trips of the models, plus the delay of the links that they are played over, are those of the packets.
#[test]
fn the_delay_between_the_taps_is_taken_off_round_trips() {
    let [first, second] = two(30, 0);
    let parted = parted(&first, &second, MOST_FLOWS);
    for (model, links) in parted.models.iter().zip([10, 5, 5]) {
        let model = model.as_ref().unwrap();
        let sum = |paths: &[swell_traffic::Path]| paths.iter().map(|p| p.rtt).max().unwrap();
        let rtt = sum(&model.client_paths) + sum(&model.server_paths);
        assert_eq!(
            rtt + Dur::from_millis(links),
            Dur::from_millis(40),
            "{}",
            model.name
        );
    }
}

#[test]
fn a_nat_between_the_taps_is_an_error_that_says_so() {
    let [first, _] = two(30, 0);
    let translate = |p: &Packet| {
        let mut p = *p;
        let own = ip(100, 1);
        if p.src.to_string().starts_with("10.") {
            p.src = own;
        } else {
            p.dst = own;
        }
        p
    };
    let second: Vec<Packet> = behind(&first, 0).iter().map(translate).collect();
    let error = matched(&first, &second, MOST_FLOWS).unwrap_err();
    // Connections of the two clients have the same ports, and ten of them the same sequence numbers.
    assert!(
        matches!(
            error,
            NoMatch::NoFlow {
                translated: 20..=30
            }
        ),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("a NAT between the taps"),
        "{error}"
    );
    let strangers: Vec<Packet> = connection(0, ip(10, 9), ip(198, 9), 9);
    let unrelated = matched(&first, &strangers, MOST_FLOWS).unwrap_err();
    assert_eq!(unrelated, NoMatch::NoFlow { translated: 0 });
}

#[test]
fn a_nat_for_some_is_a_warning() {
    let [first, mut second] = two(30, 0);
    for p in &mut second {
        let Transport::Tcp(h) = p.transport else {
            continue;
        };
        let translated = [h.src_port, h.dst_port].map(|port| (2010..2020).contains(&port));
        for address in [&mut p.src, &mut p.dst] {
            if translated.contains(&true) && *address == ip(10, 1) {
                *address = ip(100, 7);
            }
        }
    }
    let parted = parted(&first, &second, MOST_FLOWS);
    let through = parted.models[0].as_ref().unwrap();
    assert_eq!(through.totals.tcp_connections, 20);
    let told =
        |m: &swell_traffic::Model| m.warnings.iter().any(|w| w.code == Code::TranslatedBetween);
    assert!(told(through) && told(parted.models[2].as_ref().unwrap()));
}

#[test]
fn taps_in_the_wrong_order_are_refused() {
    let [first, second] = two(30, 40 * MS);
    let error = matched(&second, &first, MOST_FLOWS).unwrap_err();
    assert_eq!(error, NoMatch::Order(Dur::from_millis(5)));
}

/// A clock that drifts by more than the delay between the taps changes neither their order nor the delay.
#[test]
fn clocks_that_drift_are_corrected() {
    let one = |i: u16| connection(250 * i64::from(i), ip(10, 1), ip(198, 1), 2000 + i);
    let first = capture(&(0..800).map(one).collect::<Vec<_>>());
    for ppm in [-100, 100] {
        let second: Vec<Packet> = (behind(&first, 0).iter())
            .map(|p| Packet {
                time: p.time + p.time / 1_000_000 * ppm,
                ..*p
            })
            .collect();
        let found = matched(&first, &second, MOST_FLOWS).unwrap().clocks;
        let lag = found.lag.unwrap();
        assert!((lag - 5 * MS).abs() < MS / 5, "{found:?}");
        let parted = parted(&first, &second, MOST_FLOWS);
        let told = |m: &swell_traffic::Model| {
            let own = m.warnings.iter().filter(|w| w.code == Code::TapClocks);
            own.map(|w| w.severity).collect::<Vec<_>>()
        };
        let told = told(parted.models[0].as_ref().unwrap());
        assert_eq!(told, [swell_base::Severity::Note]);
    }
}

/// The same addresses and ports at another time are others.
#[test]
fn flows_at_different_times_do_not_match() {
    let [first, second] = two(30, 0);
    let later = connection(3_600_000, ip(10, 2), ip(203, 2), 2003);
    let with = capture(&[second, later]);
    let found = matched(&first, &with, MOST_FLOWS).unwrap();
    assert_eq!(found.flows(), 30);
}

#[test]
fn small_flows_beyond_the_bound_are_forgotten_and_told() {
    let [first, second] = two(30, 0);
    // A scan of 500 hosts: one packet each.
    let scan = |i: u16| {
        let to = (IpAddr::from([192, 0, (i / 250) as u8, (i % 250) as u8]), 22);
        packet(
            i64::from(i) * 10 * MS,
            (ip(10, 8), 999),
            to,
            (1, 0, Tcp::SYN, 0),
        )
    };
    let scanned = capture(&[first, (0..500).map(scan).collect()]);
    let found = matched(&scanned, &second, 100).unwrap();
    assert_eq!(found.flows(), 30, "they have more packets than the scan");
    assert!(
        (400..500).contains(&found.forgotten.flows),
        "{:?}",
        found.forgotten
    );
    let parted = parted(&scanned, &second, 100);
    let model = parted.models[1].as_ref().unwrap();
    let told = model
        .warnings
        .iter()
        .find(|w| w.code == Code::FlowsForgotten);
    assert!(told.is_some(), "{:?}", model.warnings);
}

/// What only one tap recorded is not taken for cross traffic.
#[test]
fn only_the_common_time_counts() {
    let [first, second] = two(30, 0);
    let half = second.iter().filter(|p| p.time < 2500 * MS);
    let half: Vec<Packet> = half.copied().collect();
    let parted = parted(&first, &half, MOST_FLOWS);
    let model = parted.models[1].as_ref().unwrap();
    assert_eq!(model.totals.tcp_connections, 5, "only cross traffic");
    assert!((model.duration.as_secs_f64() - 2.5).abs() < 0.1);
    assert!(parted.links.outside[0] > 100);
    assert!(model.warnings.iter().any(|w| w.code == Code::CommonTime));
}

#[test]
fn traffic_of_one_kind_only_leaves_the_other_models_out() {
    let [_, second] = two(30, 0);
    let through: Vec<Packet> = second
        .iter()
        .filter(|p| ![p.src, p.dst].contains(&ip(10, 3)))
        .copied()
        .collect();
    let first = behind(&through, 0);
    // The first tap is the one that outward packets pass first.
    let parted = parted(&through, &first, MOST_FLOWS);
    assert!(parted.models[0].is_some());
    assert!(parted.models[1].is_none() && parted.models[2].is_none());
}

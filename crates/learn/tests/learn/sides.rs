//! Decides which side of the tap hosts are on, with each kind of evidence.

use std::net::IpAddr;

use crate::synth::{Exchanges, Host, Tap};
use swell_base::{Code, Dur};
use swell_capture::{Heading, Packet, Tcp, Transport};
use swell_learn::{Learner, Options, Splitter};
use swell_traffic::Model;

/// A site of users and of servers, all with public addresses. Users fetch little from outside; the world, with
/// half as many clients, fetches much from the site's servers. Nothing connects the two groups.
fn site() -> Vec<Packet> {
    let mut tap = Tap::new();
    let fetch = |bytes| Exchanges {
        turns: vec![(300, Dur::from_millis(5), bytes, Dur::ZERO)],
        ..Exchanges::default()
    };
    let ms = Dur::from_millis;
    for i in 0..24u8 {
        let user = Host::server(i, ms(2)).in_network([198, 51, 100]);
        let abroad = Host::server(i, ms(30)).in_network([8, i, 1]);
        tap.connection(ms(u64::from(i) * 200), user, abroad, &fetch(20_000));
    }
    for i in 0..12u8 {
        // The site's servers are in another network than its users.
        let server = Host::server(i, ms(2)).in_network([198, 51, 77]);
        let visitor = Host::server(i, ms(50)).in_network([9, i, 2]);
        tap.connection(ms(u64::from(i) * 400 + 7), visitor, server, &fetch(300_000));
    }
    tap.packets()
}

fn at_site(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(a) if a.octets()[..2] == [198, 51])
}

fn tcp_flags(p: &Packet) -> u8 {
    match p.transport {
        Transport::Tcp(h) => h.flags,
        _ => 0,
    }
}

/// Bytes out of the site and into it.
fn truth(packets: &[Packet]) -> [u64; 2] {
    let sum = |out| {
        let own = packets.iter().filter(|p| at_site(p.src) == out);
        own.map(|p| u64::from(p.ip_len)).sum()
    };
    [sum(true), sum(false)]
}

fn learn(packets: &[Packet], inside: &[&str]) -> Model {
    let mut learner = Learner::new(Options {
        inside: inside.iter().map(|n| n.parse().unwrap()).collect(),
        // Most of the trace comes after sides were decided.
        preview: packets.len() / 4,
        ..Options::default()
    });
    packets.iter().for_each(|p| learner.push(p));
    learner.finish()
}

fn split(packets: &[Packet], inside: &[&str]) -> ([u64; 2], bool) {
    let inside = inside.iter().map(|n| n.parse().unwrap()).collect();
    let mut splitter = Splitter::with_inside(inside);
    packets.iter().for_each(|p| splitter.push(p));
    let directions = splitter.finish();
    let voted = directions
        .doubts()
        .iter()
        .any(|w| w.code == Code::SidesVoted);
    (directions.bytes(), voted)
}

/// Learner and splitter find the site's bytes and give no warning.
fn found(packets: &[Packet], inside: &[&str]) {
    let want = truth(packets);
    assert!(want[0] > 5 * want[1], "{want:?}");
    let m = learn(packets, inside);
    let codes: Vec<_> = m.warnings.iter().map(|w| w.code.as_str()).collect();
    assert!(!codes.contains(&"sides-voted"), "{codes:?}");
    assert!(!codes.contains(&"sides"), "{codes:?}");
    let got = [m.totals.bytes, split(packets, inside).0];
    assert_eq!(got, [want; 2]);
    assert!(!split(packets, inside).1);
    // Sessions of visitors come from the other side than those of users.
    let outside = m.sessions.iter().filter(|s| s.outside).count();
    assert_eq!((m.sessions.len(), outside), (36, 12));
}

/// A network that no packet has cannot tell the sides.
#[test]
fn networks_without_a_host_are_told() {
    let packets = site();
    let told = |inside: &str| {
        let m = learn(&packets, &[inside]);
        let said = |w: &&swell_base::Warning| w.code == Code::Sides;
        m.warnings
            .iter()
            .filter(said)
            .map(|w| w.message.clone())
            .collect::<Vec<_>>()
    };
    let said = told("203.0.113.0/24");
    assert!(
        said.len() == 1 && said[0].contains("no host of the trace"),
        "{said:?}"
    );
    let all = told("0.0.0.0/0");
    assert!(
        !all.iter().any(|t| t.contains("no host of the trace")),
        "{all:?}"
    );
}

#[test]
fn without_any_evidence_it_is_a_vote_and_said_to_be_one() {
    let packets = site();
    let m = learn(&packets, &[]);
    // Hosts that open connections are inside, so the loads of the two directions are mixed up.
    assert!(m.totals.bytes[0] < m.totals.bytes[1] / 5);
    assert!(m.warnings.iter().any(|w| w.code == Code::SidesVoted));
    assert!(split(&packets, &[]).1);
}

/// Users of a site, and many more hosts outside that try its addresses. Some get an answer, and go no farther: a scan,
/// or a flood with forged sources.
#[test]
fn scanners_are_no_clients() {
    let ms = Dur::from_millis;
    let mut tap = Tap::new();
    let user = |i: u8| Host::server(i, ms(2)).in_network([198, 51, 100]);
    for i in 0..20u8 {
        let page = Exchanges {
            turns: vec![(300, ms(5), 300_000, Dur::ZERO)],
            ..Exchanges::default()
        };
        let far = Host::server(i, ms(30)).in_network([8, i, 1]);
        tap.connection(ms(u64::from(i) * 400), user(i), far, &page);
    }
    for i in 0..200u8 {
        let scanner = Host::server(i, ms(50)).in_network([9, i, 2]);
        tap.syn(ms(u64::from(i) * 40), scanner, user(i % 20), 4_000);
    }
    let packets = tap.packets();
    let want = truth(&packets);
    assert!(want[1] > 10 * want[0], "{want:?}");
    assert_eq!(learn(&packets, &[]).totals.bytes, want);
    assert_eq!(split(&packets, &[]).0, want);
    // Half of the scans are answered, and every other answer by a RST.
    let mut answered = packets.clone();
    let scans = packets
        .iter()
        .filter(|p| !at_site(p.src) && tcp_flags(p) == Tcp::SYN);
    let tcp = |p: &Packet, change: &dyn Fn(&mut Tcp)| {
        let Transport::Tcp(mut h) = p.transport else {
            panic!("{p:?}");
        };
        change(&mut h);
        Transport::Tcp(h)
    };
    for (i, scan) in scans.enumerate() {
        if i % 2 == 0 {
            answered.push(Packet {
                time: scan.time + 2_000_000,
                src: scan.dst,
                dst: scan.src,
                transport: tcp(scan, &|h| {
                    (h.src_port, h.dst_port) = (h.dst_port, h.src_port);
                    (h.flags, h.ack) = (Tcp::SYN | Tcp::ACK, h.seq.wrapping_add(1));
                }),
                ..*scan
            });
        }
        if i % 4 == 0 {
            answered.push(Packet {
                time: scan.time + 52_000_000,
                transport: tcp(scan, &|h| {
                    (h.flags, h.seq) = (Tcp::RST | Tcp::ACK, h.seq.wrapping_add(1));
                }),
                ..*scan
            });
        }
    }
    answered.sort_by_key(|p| p.time);
    let with_answers = truth(&answered);
    assert!(answered.len() == packets.len() + 150);
    assert_eq!(learn(&answered, &[]).totals.bytes, with_answers);
    assert_eq!(split(&answered, &[]).0, with_answers);
}

/// Where the tap sees one packet of the servers, and only packets of the clients after it, a SYN tells all there is.
#[test]
fn one_direction_tells_its_clients() {
    let all = site();
    let user = |a: IpAddr| matches!(a, IpAddr::V4(v4) if v4.octets()[2] == 100);
    let first = all.iter().rfind(|p| user(p.dst)).expect("an answer");
    let mut packets = vec![*first];
    packets[0].time = all[0].time - 1;
    packets.extend(all.iter().filter(|p| user(p.src)));
    let want = truth(&packets);
    assert!(want[1] > 0);
    assert_eq!(learn(&packets, &[]).totals.bytes, want);
    assert_eq!(split(&packets, &[]).0, want);
}

#[test]
fn networks_named_by_the_user_decide() {
    found(&site(), &["198.51.100.0/24", "198.51.77.0/24"]);
    found(&site(), &["198.51.0.0/16", "2001:db8::/32"]);
}

/// A tap with a port for each direction.
#[test]
fn interfaces_decide() {
    let mut packets = site();
    for p in &mut packets {
        p.interface = u32::from(at_site(p.src));
    }
    found(&packets, &[]);
}

/// Packet files of a run: the names of the interfaces tell which side is inside, whoever opens connections.
#[test]
fn named_interfaces_tell_which_side_is_inside() {
    for up in [true, false] {
        let mut packets = site();
        for p in &mut packets {
            p.heading = match at_site(p.src) == up {
                true => Heading::Up,
                false => Heading::Down,
            };
        }
        let mut want = truth(&packets);
        if !up {
            want.reverse();
        }
        assert_eq!(learn(&packets, &[]).totals.bytes, want);
        assert_eq!(split(&packets, &[]), (want, false));
        // Also if there are packets of one direction only, and of hosts that open nothing.
        packets.retain(|p| at_site(p.src) && tcp_flags(p) & Tcp::SYN == 0);
        let bytes = split(&packets, &[]).0;
        assert_eq!(bytes[usize::from(up)], 0, "{bytes:?}");
    }
}

/// As many hosts open connections on the one side as on the other: no rule tells which is inside.
#[test]
fn openers_on_both_sides_are_told() {
    let mut tap = Tap::new();
    let ms = Dur::from_millis;
    for i in 0..20u8 {
        let [one, other] = [[198, 51, 100], [203, 0, 113]]
            .map(|network| Host::server(i, ms(9)).in_network(network));
        let at = ms(u64::from(i) * 300);
        let (from, to) = if i % 2 == 0 {
            (one, other)
        } else {
            (other, one)
        };
        tap.connection(at, from, to, &Exchanges::default());
    }
    let mut packets = tap.packets();
    assert!(split(&packets, &[]).1);
    for p in &mut packets {
        p.interface = u32::from(at_site(p.src));
    }
    assert!(split(&packets, &[]).1);
    assert!(!split(&packets, &["198.51.0.0/16"]).1);
}

/// Up to eight interfaces are evidence, more are not.
#[test]
fn many_interfaces_say_nothing() {
    for (ports, tell) in [(8, true), (9, false)] {
        let mut packets = site();
        for p in &mut packets {
            let IpAddr::V4(far) = (if at_site(p.src) { p.dst } else { p.src }) else {
                panic!("{p:?}");
            };
            // The site's packets enter through the first interface, others through one that depends on
            // their network.
            let other = 1 + u32::from(far.octets()[1]) % (ports - 1);
            p.interface = if at_site(p.src) { 0 } else { other };
        }
        let voted = split(&packets, &[]).1;
        assert_eq!(voted, !tell, "{ports} interfaces");
    }
}

/// A router's interface, whose capture records the direction of each packet.
#[test]
fn directions_decide() {
    let mut packets = site();
    for p in &mut packets {
        p.heading = if at_site(p.src) {
            Heading::Outbound
        } else {
            Heading::Inbound
        };
    }
    found(&packets, &[]);
    // A few packets without a direction change nothing.
    for p in packets.iter_mut().step_by(97) {
        p.heading = Heading::Unknown;
    }
    let m = learn(&packets, &[]);
    assert!(!m.warnings.iter().any(|w| w.code == Code::SidesVoted));
}

/// A link between two routers: all packets have the two routers' Ethernet addresses.
#[test]
fn two_routers_decide() {
    let mut packets = site();
    for p in &mut packets {
        p.stations = if at_site(p.src) { [7, 9] } else { [9, 7] };
    }
    found(&packets, &[]);
}

/// A network with one router: its hosts have their own Ethernet addresses, the world has the router's.
/// Hosts that also talk to each other do not affect the result.
#[test]
fn one_router_decides() {
    let own = |a: IpAddr| match a {
        IpAddr::V4(v4) if at_site(a) => u64::from(v4.to_bits()),
        _ => 5,
    };
    let mut packets = site();
    for p in &mut packets {
        p.stations = [own(p.src), own(p.dst)];
    }
    found(&packets, &[]);
}

/// A tap without link-layer addresses, a router or two away from the site: the world is farther away.
/// Systems begin with a TTL of 64, 128 or 255, and some routes vary by a router.
#[test]
fn times_to_live_decide() {
    let distant = |near: &dyn Fn(usize, u8) -> u8, far: &dyn Fn(usize, u8) -> u8| {
        let mut packets = site();
        for (i, p) in packets.iter_mut().enumerate() {
            let IpAddr::V4(source) = p.src else {
                panic!("{p:?}");
            };
            let begun = [64, 128, 255][usize::from(source.octets()[3]) % 3];
            let hops = if at_site(p.src) { near } else { far };
            p.ttl = begun - hops(i, source.octets()[1]);
        }
        packets
    };
    found(
        &distant(&|i, _| u8::from(i % 50 == 0), &|_, net| 9 + net % 12),
        &[],
    );
    found(
        &distant(&|_, _| 3, &|i, net| 6 + net % 12 + u8::from(i % 40 == 0)),
        &[],
    );
    // Both sides are far away, or equally far: the groups vote.
    for packets in [
        distant(&|_, _| 12, &|_, _| 20),
        distant(&|_, _| 0, &|_, _| 0),
        distant(&|i, _| (i % 10) as u8, &|i, _| ((i + 5) % 10) as u8),
    ] {
        assert!(split(&packets, &[]).1);
    }
}

/// Private addresses are all on one side, and so are the neighbours of known hosts.
#[test]
fn private_addresses_and_neighbours_decide() {
    let mut packets = site();
    let private = |a: IpAddr| match a {
        IpAddr::V4(v4) if at_site(a) => {
            let [_, _, net, host] = v4.octets();
            IpAddr::from([10, 0, net, host])
        }
        _ => a,
    };
    let want = truth(&packets);
    for p in &mut packets {
        (p.src, p.dst) = (private(p.src), private(p.dst));
    }
    let m = learn(&packets, &[]);
    assert!(!m.warnings.iter().any(|w| w.code == Code::SidesVoted));
    let mut got = m.totals.bytes;
    got.sort_by_key(|&b| std::cmp::Reverse(b));
    assert_eq!(got, want);
}

/// Datagrams between two hosts: from the first, and larger ones back.
fn between(a: [u8; 4], b: [u8; 4], stations: [u64; 2]) -> Vec<Packet> {
    let one = |i: i64, [src, dst]: [[u8; 4]; 2], link, bytes: u32| Packet {
        time: i * 1_000_000,
        ip_len: bytes + 28,
        src: IpAddr::from(src),
        dst: IpAddr::from(dst),
        stations: link,
        transport: Transport::Udp {
            src_port: 4789,
            dst_port: 4789,
            payload: bytes,
        },
        ..Packet::default()
    };
    let [near, far] = stations;
    let pair = |i| {
        [
            one(i, [a, b], [near, far], 60),
            one(i, [b, a], [far, near], 900),
        ]
    };
    (0..500).flat_map(pair).collect()
}

/// If both ends of a tunnel are alike, the side that is inside is a guess, whatever tells the two apart.
#[test]
fn two_ends_that_are_alike_are_a_guess() {
    let voted = |packets: &[Packet]| {
        let m = learn(packets, &[]);
        let warned = m.warnings.iter().any(|w| w.code == Code::SidesVoted);
        assert_eq!(warned, split(packets, &[]).1);
        warned
    };
    let (a, b) = ([198, 18, 0, 1], [198, 18, 0, 2]);
    for stations in [[0, 0], [7, 9]] {
        assert!(voted(&between(a, b, stations)), "{stations:?}");
        // A private address is inside.
        assert!(!voted(&between([10, 0, 0, 1], b, stations)), "{stations:?}");
    }
    let mut headed = between(a, b, [0, 0]);
    for p in &mut headed {
        p.interface = u32::from(p.src == IpAddr::from(a));
    }
    assert!(voted(&headed));
    // Several hosts behind one router are outside.
    let mut many = between(a, b, [7, 9]);
    many.extend(between(a, [203, 0, 113, 5], [7, 9]));
    many.sort_by_key(|p| p.time);
    assert!(!voted(&many));
    assert_eq!(split(&many, &[]).0, [88_000, 928_000]);
    // Addresses of its own, from which a host only sends to groups, make it no router.
    for i in 0..5 {
        let mut own = between([169, 254, 0, i], [224, 0, 0, 251], [7, 5]);
        own.retain(|p| p.stations[0] == 7);
        many.extend(own.into_iter().take(4));
    }
    many.sort_by_key(|p| p.time);
    assert!(!voted(&many));
    assert_eq!(split(&many, &[]).0, [88_000 + 20 * 88, 928_000]);
}

/// A source outside sends to a group: its packets come from the router, or in from the interface, as all others
/// from outside.
#[test]
fn sources_of_groups_are_where_their_packets_come_from() {
    let group = [239, 1, 1, 1];
    for heading in [false, true] {
        let mut packets = between([198, 51, 100, 1], [192, 0, 2, 1], [7, 9]);
        packets.extend(between([198, 51, 100, 2], [192, 0, 2, 3], [8, 9]));
        let mut stream = between([203, 0, 113, 9], group, [9, 5]);
        stream.retain(|p| p.dst == IpAddr::from(group));
        let own = between([198, 51, 100, 3], group, [6, 5]);
        stream.extend(
            own.into_iter()
                .filter(|p| p.dst == IpAddr::from(group))
                .take(10),
        );
        packets.extend(stream);
        packets.sort_by_key(|p| p.time);
        for p in &mut packets {
            if heading {
                let inbound = p.stations[0] == 9;
                p.heading = [Heading::Outbound, Heading::Inbound][usize::from(inbound)];
                p.stations = [0; 2];
            }
        }
        // 1000 requests and 10 datagrams out; 1000 answers and the stream in.
        let want = [1_010 * 88, 1_000 * 928 + 500 * 88];
        // Without stations nobody knows which side is inside.
        let sorted = |mut bytes: [u64; 2]| {
            bytes.sort_unstable();
            bytes
        };
        assert_eq!(sorted(learn(&packets, &[]).totals.bytes), want, "{heading}");
        assert_eq!(sorted(split(&packets, &[]).0), want, "{heading}");
        if !heading {
            assert_eq!(learn(&packets, &[]).totals.bytes, want);
            assert_eq!(split(&packets, &[]).0, want);
        }
    }
}

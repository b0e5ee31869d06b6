#![expect(
    clippy::shadow_unrelated,
    reason = "one name for what is measured again after each change"
)]

use super::*;
use crate::testing::{PATH, model, session};
use crate::*;
use swell_base::Rate;

fn turn(request: u64, server_ms: u64, response: u64, client_ms: u64) -> Turn {
    Turn {
        request,
        server_think: Dur::from_millis(server_ms),
        response,
        client_think: Dur::from_millis(client_ms),
    }
}

fn unit(bytes: u64) -> Unit {
    Unit {
        bytes,
        ..Unit::default()
    }
}

/// A session of one connection with this exchange.
pub(super) fn one(exchange: Exchange) -> Session {
    let mut s = session(0, Dur::ZERO, 0);
    let c = &mut s.groups[0].connections[0];
    // Unknown windows do not limit anything.
    (c.client_window, c.server_window) = (0, 0);
    c.exchange = exchange;
    s
}

fn alone(exchange: Exchange) -> Model {
    model(Dur::from_secs(10), vec![one(exchange)])
}

pub(super) fn datagrams(packets: &[(u64, bool, u32)]) -> Exchange {
    let packets = packets
        .iter()
        .map(|&(ms, client, n)| (Dur::from_millis(ms), client, n));
    Exchange::Datagrams(Datagrams {
        packets: packets.collect(),
        ..Datagrams::default()
    })
}

#[test]
fn bytes_and_items_are_sums() {
    let turns = Exchange::Sequential(vec![turn(300, 0, 5_000, 0), turn(40, 0, 600, 0)]);
    assert_eq!(turns.bytes(), [340, 5_600]);
    assert_eq!(turns.items(), 2);
    let chains = Exchange::Concurrent {
        up: vec![unit(10), unit(20)],
        down: vec![unit(3)],
    };
    assert_eq!(chains.bytes(), [30, 3]);
    assert_eq!(chains.items(), 3);
    let attempt = Exchange::Attempt {
        retries: vec![Dur::from_secs(1); 2],
        refused: false,
    };
    assert_eq!(attempt.bytes(), [0, 0]);
    assert_eq!(attempt.items(), 2);
    let all = datagrams(&[(0, true, 100), (5, false, 30), (5, true, 50)]);
    assert_eq!(all.bytes(), [150, 30]);
    assert_eq!(all.items(), 3);
}

#[test]
fn sessions_add_their_connections() {
    let mut s = one(Exchange::Sequential(vec![
        turn(300, 0, 5_000, 0),
        turn(40, 0, 600, 0),
    ]));
    s.groups
        .push(one(datagrams(&[(0, false, 7)])).groups[0].clone());
    s.groups[0].connections[0].writes = [vec![Write::default(); 2], vec![Write::default()]];
    assert_eq!(s.connections().count(), 2);
    assert_eq!(s.bytes(), [340, 5_607]);
    // Two turns, three writes, a datagram, and one for each connection.
    assert_eq!(s.items(), 2 + 3 + 1 + 2 + SESSION_ITEMS);
}

#[test]
fn a_tcp_exchange_has_its_headers_and_acknowledgements() {
    // Full segments of 1448 bytes with headers of 52: 8 to the client, one to the server.
    let m = alone(Exchange::Sequential(vec![turn(300, 20, 8 * 1448, 0)]));
    // Up: SYN of 60, ACK of 52, request, two of 52 at the end, and an ACK for each of the first 16
    // segments. Down: SYN/ACK, segments, a FIN that acknowledges the other, one ACK.
    let up = 60.0 + 52.0 + (300.0 + 52.0) + 2.0 * 52.0 + 8.0 * 52.0;
    let down = 60.0 + 8.0 * 1500.0 + 52.0 + 52.0;
    assert_eq!(m.rates(), [up, down].map(|b| b * 8.0 / 10.0));

    // The recorded properties count: small segments, IPv6, no timestamps, an ACK for every third segment.
    let mut m = m;
    let c = &mut m.sessions[0].groups[0].connections[0];
    c.wire = Wire {
        sack: None,
        ipv6: true,
        timestamps: Some(false),
        ends: [
            WireEnd {
                quick_acks: Some(2),
                ack_every: 3,
                ..WireEnd::default()
            },
            WireEnd {
                mss: 724,
                ..WireEnd::default()
            },
        ],
    };
    // Two, then one for every three of the 14 others; the FIN carries the last.
    let acks = 2.0 + 4.0;
    let up = 68.0 + 60.0 + 360.0 + 2.0 * 60.0 + acks * 60.0;
    let down = 68.0 + 16.0 * 784.0 + 60.0 + 60.0;
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
    near(m.rates()[0], up * 0.8);
    near(m.rates()[1], down * 0.8);
}

#[test]
fn datagrams_and_attempts_have_their_headers() {
    let m = alone(datagrams(&[(0, true, 100), (5, false, 30), (5, true, 50)]));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    near(m.rates()[0], (150.0 + 56.0) * 0.8);
    near(m.rates()[1], (30.0 + 28.0) * 0.8);
    for (refused, rst) in [(false, 0.0), (true, 3.0 * 40.0)] {
        let retries = vec![Dur::from_secs(1); 2];
        let m = alone(Exchange::Attempt { retries, refused });
        near(m.rates()[0], 180.0 * 0.8);
        near(m.rates()[1], rst * 0.8);
    }
}

/// A run takes as much memory and time as a datagram, whatever number it names.
#[test]
fn runs_pass_as_their_datagrams_do() {
    let run = |packets: u32, seconds: u64| Run {
        pause: Dur::from_secs(1),
        span: Dur::from_secs(seconds),
        packets,
        bytes: u64::from(packets) * 100,
        sizes: [100; 2],
    };
    let runs = |runs| {
        let d = Datagrams {
            packets: Vec::new(),
            runs,
        };
        alone(Exchange::Datagrams(d))
    };
    // From the client at 1, 3 and 5 s, then at 6 s; from the server at 1 s.
    let m = runs([vec![run(3, 4), run(1, 0)], vec![run(1, 0)]]);
    let s = &m.sessions[0];
    let c = &s.groups[0].connections[0];
    let course = Timeline::of(&m, s, c, &Network::default());
    assert_eq!((course.spans.len(), course.end), (0, Dur::from_secs(6)));
    let pieces = on_the_link(&m, s, c, &Network::default());
    let passed = |from: f64, to: f64| {
        pieces.iter().fold([0.0; 2], |sum, piece| {
            let bytes = piece.between(from, to);
            [sum[0] + bytes[0], sum[1] + bytes[1]]
        })
    };
    for (from, to, packets) in [
        (0.0, 1.0, [0.0, 0.0]),
        (1.0, 3.0, [1.0, 1.0]),
        (2.0, 3.5, [1.0, 0.0]),
        (4.0, 6.0, [1.0, 0.0]),
        (5.5, f64::INFINITY, [1.0, 0.0]),
        (f64::NEG_INFINITY, f64::INFINITY, [4.0, 1.0]),
    ] {
        for (found, n) in passed(from, to).into_iter().zip(packets) {
            assert!((found - 128.0 * n).abs() < 1e-9, "{from} to {to}: {found}");
        }
    }
    let mut many = runs([vec![run(u32::MAX, 9)], Vec::new()]);
    let all = f64::from(u32::MAX) * 128.0 * 0.8;
    assert!((many.rates()[0] / all - 1.0).abs() < 1e-9);
    let c = &mut many.sessions[0].groups[0].connections[0];
    c.overlap = Some([u32::MAX, 0]);
    assert_eq!(c.awaited_pauses(), Dur::from_secs(10));
}

/// The next group waits for what the server sent and for long uploads, but not for a few last bytes of the client.
#[test]
fn nobody_waits_for_a_last_message_of_the_client() {
    let c = |exchange, overlap| {
        let mut c = one(exchange).groups[0].connections[0].clone();
        c.overlap = overlap;
        c.awaited()
    };
    let turns = |last| Exchange::Sequential(vec![turn(300, 0, 5_000, 0), turn(last, 0, 0, 0)]);
    assert_eq!(c(turns(31), None), Some([1, 1]));
    assert_eq!(c(turns(SENT_AT_ONCE), None), Some([1, 1]));
    assert_eq!(c(turns(SENT_AT_ONCE + 1), None), None);
    // The next group began when the second request had passed, or after the first response.
    assert_eq!(c(turns(31), Some([2, 1])), Some([1, 1]));
    assert_eq!(c(turns(20_000), Some([1, 1])), Some([1, 1]));
    assert_eq!(c(turns(20_000), Some([2, 1])), Some([2, 1]));
    assert_eq!(c(turns(31), Some([1, 0])), Some([0, 0]));
    // Nothing but a greeting of the client.
    assert_eq!(
        c(Exchange::Sequential(vec![turn(68, 0, 0, 0)]), None),
        Some([0, 0])
    );
    let chains = |last| Exchange::Concurrent {
        up: vec![unit(40_000), unit(last)],
        down: vec![
            unit(9),
            Unit {
                after: 1,
                ..unit(3)
            },
        ],
    };
    assert_eq!(c(chains(100), None), Some([1, 2]));
    assert_eq!(c(chains(30_000), None), None);
    // The first unit of the server followed nothing.
    assert_eq!(c(chains(100), Some([1, 1])), Some([1, 1]));
    let attempt = Exchange::Attempt {
        retries: vec![Dur::from_secs(1)],
        refused: false,
    };
    assert_eq!(c(attempt, None), Some([2, 0]));
    assert_eq!(c(datagrams(&[(0, true, 972)]), Some([1, 0])), Some([1, 0]));
}

#[test]
fn rates_count_weights_sides_and_loss() {
    let packet = datagrams(&[(0, true, 972)]);
    let mut m = alone(packet.clone());
    m.sessions.push(Session {
        weight: 2.5,
        outside: true,
        ..one(packet)
    });
    assert_eq!(m.rates(), [800.0, 2_000.0]);
    // A tenth is lost before the link. Packets lost behind it have passed it.
    m.client_paths[0] = Path {
        loss_up: 0.1,
        loss_down: 0.3,
        ..PATH
    };
    assert_eq!(m.rates(), [720.0, 1_800.0]);
    // TCP retransmits: packets lost behind the link pass twice, packets lost before it once.
    let mut m = alone(Exchange::Sequential(vec![turn(1448, 0, 0, 0)]));
    let whole = m.rates()[0];
    m.server_paths[0].loss_down = 0.2;
    let sent_again = 1500.0 + 60.0 + 52.0;
    assert!((m.rates()[0] - whole - 0.25 * sent_again * 0.8).abs() < 1e-9);
    m.server_paths[0].loss_down = 0.0;
    m.client_paths[0].loss_up = 0.2;
    // The last ACKs of handshake and end are not retransmitted.
    assert!((m.rates()[0] - whole + 0.2 * 2.0 * 52.0 * 0.8).abs() < 1e-9);
    assert_eq!(model(Dur::ZERO, Vec::new()).rates(), [0.0, 0.0]);
}

#[test]
fn a_transfer_takes_what_slow_start_and_the_slowest_rate_take() {
    let mut m = alone(Exchange::Sequential(vec![turn(1448, 50, 100 * 1448, 0)]));
    m.client_paths[0].down = Some(Rate::from_bps(1_500_000 * 8));
    let course = |m: &Model, network: &Network| {
        let s = &m.sessions[0];
        Timeline::of(m, s, &s.groups[0].connections[0], network)
    };
    // With an RTT of 20 ms and a full segment per millisecond (headers included), the window is 20
    // segments. Handshake; request, half an RTT without a capacity limit; 50 ms; a window of 10 in 20 ms,
    // the rest at a segment per millisecond.
    let t = course(&m, &Network::default());
    let ms = |t: Dur| (t.as_millis_f64() * 1e6).round() / 1e6;
    assert_eq!(ms(t.spans[0].from), 20.0);
    assert_eq!(ms(t.spans[0].to), 30.0);
    assert_eq!(ms(t.spans[1].from), 80.0);
    assert_eq!(ms(t.end), 80.0 + 20.0 + 90.0 + 10.0);
    // The network in between counts: its delay twice in the handshake and the request, its rate if it is
    // lower.
    let between = Network {
        rtt: Dur::from_millis(20),
        rates: [None, Some(Rate::from_bps(150_000 * 8))],
    };
    let t = course(&m, &between);
    assert_eq!(ms(t.rtt), 40.0);
    assert_eq!(ms(t.end), 40.0 + 20.0 + 50.0 + 1_000.0 + 20.0);
    // For a client outside, right to left is up.
    m.sessions[0].outside = true;
    m.client_paths[0].down = None;
    let t = course(&m, &between);
    assert_eq!(ms(t.spans[0].to), 40.0 + 10.0 + 20.0);
    // A window of 10 segments per RTT.
    m.sessions[0].outside = false;
    m.sessions[0].groups[0].connections[0].client_window = 14_480;
    let t = course(&m, &Network::default());
    assert_eq!(ms(t.end), 80.0 + 200.0 + 10.0);
    // On a link the cycle is longer by the transmission time of two segments, which are acknowledged
    // together.
    m.client_paths[0].down = Some(Rate::from_bps(1_500_000 * 8));
    let t = course(&m, &Network::default());
    assert_eq!(ms(t.end), 80.0 + 220.0 + 10.0);
}

#[test]
fn writes_take_their_time_unless_the_network_takes_longer() {
    let mut m = alone(Exchange::Sequential(vec![turn(0, 0, 3_000, 0)]));
    let write = Write {
        after: 1_000,
        gap: Dur::from_secs(1),
    };
    m.sessions[0].groups[0].connections[0].writes[1] = vec![write; 2];
    let s = m.sessions[0].clone();
    let course = |m: &Model| Timeline::of(m, &s, &s.groups[0].connections[0], &Network::default());
    let t = course(&m);
    let begins: Vec<f64> = t.spans.iter().map(|s| s.from.as_secs_f64()).collect();
    assert_eq!(begins, [0.02, 1.02, 2.02]);
    assert!((t.end.as_secs_f64() - 2.03).abs() < 1e-9);
    // At 500 bytes per second, headers included, the whole takes a little more than six seconds.
    m.client_paths[0].down = Some(Rate::from_bps(4_000));
    let t = course(&m);
    assert_eq!(t.spans.len(), 1);
    let expected = 6.0 * 1500.0 / 1448.0 + 0.03;
    assert!((t.end.as_secs_f64() - expected).abs() < 1e-6);
}

/// A file may name sizes of which two are more than a number holds.
#[test]
fn the_largest_sizes_may_be_under_way_together() {
    let mut m = alone(Exchange::Concurrent {
        up: vec![unit(u64::MAX); 2],
        down: Vec::new(),
    });
    // The short last write of the first unit leaves at once, so that the second follows.
    let write = Write {
        after: u64::MAX - 10,
        gap: Dur::ZERO,
    };
    m.sessions[0].groups[0].connections[0].writes[0] = vec![write; 2];
    let s = &m.sessions[0];
    let t = Timeline::of(&m, s, &s.groups[0].connections[0], &Network::default());
    assert_eq!(t.spans.len(), 2);
    assert!(t.spans[1].from < t.spans[0].to);
}

#[test]
fn loss_bounds_what_a_transfer_gets() {
    // At 1 % loss, Reno's window is 12.2 segments, which gives 887 kB/s at 20 ms; CUBIC's is 1.8.
    let mut m = alone(Exchange::Sequential(vec![turn(0, 0, 8_870_000, 0)]));
    m.client_paths[0].loss_down = 0.01;
    let s = &m.sessions[0];
    let t = Timeline::of(&m, s, &s.groups[0].connections[0], &Network::default());
    // One loss in four leads to a time-out of 220 ms: 61 losses in 6126 segments.
    let stalls = 6126.0 * 0.01 * (3.0 / 12.25) * 1.0032 * 0.22;
    // One SYN in a hundred is lost, which costs a second.
    let expected = 10.0 + stalls + 0.01;
    assert!((t.end.as_secs_f64() - expected).abs() < 0.1, "{}", t.end);
    // The loss of a single segment always leads to a time-out.
    let mut one = alone(Exchange::Sequential(vec![turn(0, 0, 100, 0)]));
    let least = Timeline::of(
        &one,
        &one.sessions[0],
        &one.sessions[0].groups[0].connections[0],
        &Network::default(),
    );
    one.client_paths[0].loss_down = 0.1;
    let lossy = Timeline::of(
        &one,
        &one.sessions[0],
        &one.sessions[0].groups[0].connections[0],
        &Network::default(),
    );
    let more = (lossy.end - least.end).as_secs_f64();
    let stall = 0.1 * 1.32 * 0.22;
    assert!((more - stall - 0.1).abs() < 0.005, "{more}");
}

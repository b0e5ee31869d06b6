//! Scripted datagram flows, observed at both hosts.

mod quic;

use proptest::prelude::*;

use super::*;

/// One-way delay.
const CROSSING: Dur = Dur::from_millis(10);
const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

fn ms(at: u64) -> Time {
    Time::ZERO + Dur::from_millis(at)
}

/// An IPv4 packet of `protocol`. Its transport header is `head` (8 bytes), followed by `len` bytes of payload.
fn packet(up: bool, protocol: u8, head: [u8; 8], len: usize) -> Vec<u8> {
    let mut p = vec![0; 28 + len];
    p[0] = 0x45;
    p[9] = protocol;
    let [from, to] = if up {
        [CLIENT, SERVER]
    } else {
        [SERVER, CLIENT]
    };
    p[12..16].copy_from_slice(&from);
    p[16..20].copy_from_slice(&to);
    p[20..28].copy_from_slice(&head);
    p
}

/// A datagram between the client's port `port` and the server's port 53.
fn datagram(up: bool, port: u16, len: usize) -> Vec<u8> {
    let mut head = [0; 8];
    let ports = if up { [port, 53] } else { [53, port] };
    head[..2].copy_from_slice(&ports[0].to_be_bytes());
    head[2..4].copy_from_slice(&ports[1].to_be_bytes());
    packet(up, UDP, head, len)
}

/// The same with a long header of QUIC version 1 in front.
fn quic(up: bool, port: u16, len: usize) -> Vec<u8> {
    let mut p = datagram(up, port, len);
    p[28..33].copy_from_slice(&[0xc3, 0, 0, 0, 1]);
    p
}

/// An echo by the client's process `id`, or its reply.
fn echo(up: bool, id: u16, sequence: u16) -> Vec<u8> {
    let mut head = [0; 8];
    head[0] = if up { ECHO[0] } else { REPLY[0] };
    head[4..6].copy_from_slice(&id.to_be_bytes());
    head[6..8].copy_from_slice(&sequence.to_be_bytes());
    packet(up, ICMP, head, 56)
}

/// The tracker, fed with the packets of both hosts.
struct Tap(Datagrams);

impl Tap {
    fn new() -> Tap {
        Tap(Datagrams::new(CROSSING))
    }

    fn sent(&mut self, at: u64, packet: &[u8]) {
        let header = Header::of(packet).unwrap();
        self.0.sent(ms(at), &header, packet, &[]);
    }

    /// It was sent one crossing before.
    fn received(&mut self, at: u64, packet: &[u8]) -> Option<usize> {
        let header = Header::of(packet).unwrap();
        let entered = ms(at.saturating_sub(10));
        self.0.received(ms(at), entered, &header, packet)
    }

    /// The packet is sent at `at` and received one crossing later.
    fn crosses(&mut self, at: u64, packet: &[u8]) {
        self.sent(at, packet);
        self.received(at + 10, packet);
    }

    fn finish(self, at: u64) -> Vec<Conversation> {
        self.0.finish(ms(at))
    }
}

/// Start, last byte and outcome of every exchange; times in milliseconds.
fn times(c: &Conversation) -> Vec<(u64, Option<u64>, Outcome)> {
    let millis = |t: Time| t.since(Time::ZERO).as_nanos() / 1_000_000;
    c.exchanges
        .iter()
        .map(|e| (millis(e.start), e.last_byte.map(millis), e.outcome))
        .collect()
}

#[test]
fn a_query_lasts_from_its_datagram_to_the_answer() {
    let mut tap = Tap::new();
    for (k, at) in [(0, 0), (1, 500)] {
        tap.crosses(at, &datagram(true, 4000, 40 + k));
        tap.crosses(at + 12, &datagram(false, 4000, 120));
    }
    let all = tap.finish(2000);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].client, IpAddr::from(CLIENT));
    assert_eq!(all[0].bytes, [81, 240]);
    let answered = Outcome::Answered;
    assert_eq!(
        times(&all[0]),
        [(0, Some(22), answered), (500, Some(522), answered)]
    );
    assert_eq!(all[0].exchanges[1].bytes, [41, 120]);
}

#[test]
fn a_query_that_is_lost_and_asked_again_took_all_the_time() {
    let mut tap = Tap::new();
    tap.sent(0, &datagram(true, 4000, 40));
    tap.crosses(1000, &datagram(true, 4000, 40));
    tap.crosses(1010, &datagram(false, 4000, 120));
    // Another flow, which is never answered.
    tap.crosses(3000, &datagram(true, 4000, 40));
    let all = tap.finish(5000);
    assert_eq!(
        times(&all[0]),
        [
            (0, Some(1020), Outcome::Answered),
            (3000, None, Outcome::CutOff)
        ]
    );
    assert_eq!(all[0].exchanges[0].pieces, 2);
    assert_eq!(all[0].exchanges[1].until, ms(5000));
}

#[test]
fn flows_of_other_ports_are_other_conversations() {
    let mut tap = Tap::new();
    tap.crosses(0, &datagram(true, 4000, 40));
    tap.crosses(1, &datagram(true, 4001, 40));
    tap.crosses(20, &datagram(false, 4001, 100));
    tap.crosses(40, &datagram(false, 4000, 100));
    let all = tap.finish(100);
    let answered = Outcome::Answered;
    assert_eq!(times(&all[0]), [(0, Some(50), answered)]);
    assert_eq!(times(&all[1]), [(1, Some(30), answered)]);
}

#[test]
fn pings_are_requests_and_those_that_are_overtaken_have_failed() {
    let mut tap = Tap::new();
    for sequence in 1..=5u16 {
        let at = 1000 * u64::from(sequence);
        tap.crosses(at, &echo(true, 7, sequence));
        if sequence != 3 && sequence != 5 {
            tap.crosses(at + 10, &echo(false, 7, sequence));
        }
    }
    // Another process uses the same sequence numbers.
    tap.crosses(1500, &echo(true, 8, 1));
    tap.crosses(1530, &echo(false, 8, 1));
    let all = tap.finish(5100);
    assert_eq!(all.len(), 2);
    let outcomes: Vec<Outcome> = all[0].exchanges.iter().map(|e| e.outcome).collect();
    use Outcome::{Answered, CutOff, Failed};
    assert_eq!(outcomes, [Answered, Answered, Failed, Answered, CutOff]);
    assert_eq!(times(&all[0])[0], (1000, Some(1020), Answered));
    // Periodic and small, but echoes are the program's requests and not heartbeats.
    assert!(all[0].exchanges.iter().all(|e| e.label == Label::Request));
    assert_eq!(times(&all[1]), [(1500, Some(1540), Answered)]);
}

#[test]
fn a_reply_that_overtakes_another_ends_its_own_echo() {
    let mut tap = Tap::new();
    tap.crosses(0, &echo(true, 7, 1));
    tap.crosses(5, &echo(true, 7, 2));
    tap.crosses(20, &echo(false, 7, 2));
    tap.crosses(40, &echo(false, 7, 1));
    let all = tap.finish(100);
    let answered = Outcome::Answered;
    assert_eq!(
        times(&all[0]),
        [(0, Some(50), answered), (5, Some(30), answered)]
    );
}

/// ICMPv6 has type numbers of its own (RFC 4443). An IPv4 echo type in an IPv6 packet is not an echo.
#[test]
fn echoes_of_ipv6_are_followed() {
    let v6 = |up: bool, kind: u8| {
        let mut p = vec![0; 56];
        p[0] = 0x60;
        p[6] = ICMP_V6;
        let [from, to] = if up { [1, 2] } else { [2, 1] };
        (p[23], p[39]) = (from, to);
        p[40] = kind;
        (p[45], p[47]) = (7, 1);
        p
    };
    let mut tap = Tap::new();
    tap.crosses(0, &v6(true, ECHO[0]));
    assert_eq!(tap.0.all.len(), 0);
    tap.crosses(10, &v6(true, ECHO[1]));
    tap.crosses(20, &v6(false, REPLY[1]));
    let all = tap.finish(100);
    assert_eq!(times(&all[0]), [(10, Some(30), Outcome::Answered)]);
}

/// Like iperf3's UDP test: one small datagram each way, then a stream without answers.
#[test]
fn a_stream_after_an_answer_is_no_request() {
    let mut tap = Tap::new();
    tap.crosses(0, &datagram(true, 4000, 4));
    tap.crosses(10, &datagram(false, 4000, 4));
    for k in 0..200 {
        tap.crosses(100 + 10 * k, &datagram(true, 4000, 1400));
    }
    let all = tap.finish(3000);
    let labels: Vec<(Label, bool)> = all[0]
        .exchanges
        .iter()
        .map(|e| (e.label, e.label.waits()))
        .collect();
    assert_eq!(labels, [(Label::First, true), (Label::OneWay, false)]);
    assert_eq!(all[0].bytes, [4 + 200 * 1400, 4]);
}

/// Like iperf3's reverse test or video: the answer is the whole stream.
#[test]
fn a_stream_towards_the_client_is_one_answer() {
    let mut tap = Tap::new();
    tap.crosses(0, &datagram(true, 4000, 4));
    for k in 0..200 {
        tap.crosses(10 + 10 * k, &datagram(false, 4000, 1400));
    }
    let all = tap.finish(2100);
    assert_eq!(times(&all[0]), [(0, Some(2010), Outcome::Answered)]);
    assert_eq!(all[0].exchanges[0].bytes, [4, 200 * 1400]);
}

/// A program keeps two queries outstanding. It sends the third after the first answer, and the second answer arrives
/// sooner than any could to that.
#[test]
fn queries_that_overlap_are_timed_as_one() {
    let mut tap = Tap::new();
    tap.crosses(0, &datagram(true, 4000, 40));
    tap.crosses(5, &datagram(true, 4000, 41));
    tap.crosses(10, &datagram(false, 4000, 120));
    tap.sent(15, &datagram(false, 4000, 121));
    tap.crosses(21, &datagram(true, 4000, 42));
    tap.received(25, &datagram(false, 4000, 121));
    tap.crosses(31, &datagram(false, 4000, 122));
    tap.crosses(500, &datagram(true, 4000, 43));
    tap.crosses(510, &datagram(false, 4000, 123));
    let all = tap.finish(1000);
    let answered = Outcome::Answered;
    assert_eq!(
        times(&all[0]),
        [(0, Some(41), answered), (500, Some(520), answered)]
    );
    let labels: Vec<Label> = all[0].exchanges.iter().map(|e| e.label).collect();
    assert_eq!(labels, [Label::Merged, Label::Request]);
    let merged = &all[0].exchanges[0];
    assert_eq!((merged.bytes, merged.pieces), ([123, 363], 3));
    assert_eq!(merged.first_byte, Some(ms(20)));
}

/// A long queue delays the second query by more than the propagation. An answer that was sent before it came is not its
/// own.
#[test]
fn an_answer_that_was_sent_before_the_query_came_belongs_to_the_one_before() {
    for (sent, merged) in [(99, true), (100, false)] {
        let mut tap = Tap::new();
        tap.crosses(0, &datagram(true, 4000, 40));
        tap.crosses(10, &datagram(false, 4000, 120));
        let second = datagram(true, 4000, 41);
        tap.sent(30, &second);
        let header = Header::of(&second).unwrap();
        tap.0.received(ms(100), ms(30), &header, &second);
        tap.crosses(sent, &datagram(false, 4000, 121));
        let all = tap.finish(1000);
        let is = all[0].exchanges[0].label == Label::Merged;
        assert_eq!((is, all[0].exchanges.len() == 1), (merged, merged));
    }
}

/// Both parts of a request that turned out to be one may have been late.
#[test]
fn lateness_of_both_parts_counts_where_requests_are_joined() {
    let mut tap = Tap::new();
    tap.crosses(0, &datagram(true, 4000, 40));
    let first = tap.received(10, &datagram(true, 4000, 40)).unwrap();
    tap.0.left_late(first, ms(0), ms(10), Dur::from_millis(3));
    tap.crosses(10, &datagram(false, 4000, 120));
    tap.sent(15, &datagram(false, 4000, 121));
    tap.crosses(21, &datagram(true, 4000, 42));
    let second = tap.received(25, &datagram(false, 4000, 121)).unwrap();
    tap.0.left_late(second, ms(15), ms(25), Dur::from_millis(2));
    let all = tap.finish(1000);
    assert_eq!(all[0].exchanges.len(), 1);
    assert_eq!(all[0].exchanges[0].late, Dur::from_millis(5));
}

/// A script asks one query after the other, each from a new port.
#[test]
fn a_query_whose_client_went_on_without_an_answer_has_failed() {
    let mut tap = Tap::new();
    // The last two still wait: the first flow asks again after the last one that is answered has begun.
    for (at, port, answered) in [
        (0, 4000, true),
        (1000, 4001, false),
        (3000, 4002, true),
        (3500, 4000, false),
        (4000, 4003, false),
    ] {
        tap.crosses(at, &datagram(true, port, 40));
        if answered {
            tap.crosses(at + 10, &datagram(false, port, 120));
        }
    }
    let all = tap.finish(5000);
    let last: Vec<Outcome> = all
        .iter()
        .map(|c| c.exchanges.last().unwrap().outcome)
        .collect();
    use Outcome::{Answered, CutOff, Failed};
    assert_eq!(last, [CutOff, Failed, Answered, CutOff]);
}

/// A datagram or echo of `whole` as two fragments over IPv4; `id` is its identification.
fn fragments(mut whole: Vec<u8>, id: u8) -> [Vec<u8>; 2] {
    whole[5] = id;
    let mut rest = whole[..20].to_vec();
    // Its payload must not be taken for a header.
    rest.extend([ECHO[0]; 100]);
    (whole[6], rest[7]) = (0x20, 100);
    [whole, rest]
}

/// Both fragments of a query cross, and the second fragment of its answer comes late.
#[test]
fn fragments_are_one_datagram() {
    for (query, answer) in [
        (datagram(true, 4000, 40), datagram(false, 4000, 120)),
        (echo(true, 7, 1), echo(false, 7, 1)),
    ] {
        let mut tap = Tap::new();
        for (part, at) in fragments(query, 1).iter().zip([0, 1]) {
            tap.crosses(at, part);
        }
        for (part, at) in fragments(answer, 1).iter().zip([12, 17]) {
            tap.crosses(at, part);
        }
        let all = tap.finish(2000);
        assert_eq!(all.len(), 1);
        assert_eq!(times(&all[0]), [(0, Some(27), Outcome::Answered)]);
    }
}

/// A host that gets one fragment of two has no answer.
#[test]
fn an_answer_without_one_of_its_fragments_is_none() {
    for lost in [0, 1] {
        let mut tap = Tap::new();
        tap.crosses(0, &datagram(true, 4000, 40));
        let answer = fragments(datagram(false, 4000, 120), 1);
        for part in &answer {
            tap.sent(12, part);
        }
        tap.received(22, &answer[1 - lost]);
        let all = tap.finish(2000);
        assert_ne!(times(&all[0])[0].2, Outcome::Answered, "lost {lost}");
    }
}

/// Packets without ports belong to no flow: later fragments and ICMP errors.
#[test]
fn fragments_and_errors_belong_to_no_flow() {
    let mut tap = Tap::new();
    let mut fragment = datagram(true, 4000, 1400);
    fragment[7] = 185;
    tap.crosses(0, &fragment);
    let unreachable = packet(false, ICMP, [3, 3, 0, 0, 0, 0, 0, 0], 28);
    tap.crosses(10, &unreachable);
    assert_eq!(tap.finish(100), []);
}

#[test]
fn lateness_counts_for_the_flow_whose_packet_was_late() {
    let mut tap = Tap::new();
    tap.sent(0, &datagram(true, 4000, 40));
    tap.crosses(0, &datagram(true, 4001, 40));
    let index = tap.received(13, &datagram(true, 4000, 40)).unwrap();
    tap.0.left_late(index, ms(0), ms(10), Dur::from_millis(3));
    tap.crosses(15, &datagram(false, 4000, 40));
    tap.crosses(15, &datagram(false, 4001, 40));
    let all = tap.finish(100);
    assert_eq!(all[0].exchanges[0].late, Dur::from_millis(3));
    assert_eq!(all[1].exchanges[0].late, Dur::ZERO);
}

/// A stream has no requests. Each of its packets is judged by its own transit time.
#[test]
fn packets_of_a_stream_are_judged_each() {
    // An unanswered stream; an answered QUIC download; a query.
    let flows = [(4000, 40, 100), (4001, 1200, 1), (4002, 40, 1)];
    for (port, size, up) in flows {
        let mut tap = Tap::new();
        for k in 0..100 {
            let packet = match size {
                1200 => quic(k < up, port, size),
                _ => datagram(k < up, port, size),
            };
            tap.sent(k, &packet);
            let index = tap.received(k + 10, &packet).unwrap();
            // A twentieth of 10 ms is 500 us.
            let by = Dur::from_micros(if k < 30 { 501 } else { 499 });
            tap.0.left_late(index, ms(k), ms(k + 10), by);
        }
        let all = tap.finish(1000);
        let stream = if size < 1200 { [100, 30] } else { [0, 0] };
        assert_eq!(all[0].stream, stream, "port {port}");
    }
    let mut tap = Tap::new();
    tap.crosses(0, &datagram(true, 4000, 40));
    let index = tap.received(10, &datagram(false, 4000, 40)).unwrap();
    tap.0.left_late(index, ms(0), ms(10), Dur::from_millis(5));
    assert_eq!(tap.finish(100)[0].stream, [0, 0]);
}

/// Without kernel time stamps, packets that accumulated during a stall entered late by up to its length.
#[test]
fn packets_of_a_stream_that_came_during_a_stall_are_late() {
    let mut tap = Tap::new();
    for k in 0..100 {
        if k == 50 {
            tap.0.stalled(ms(50), Dur::from_millis(4));
        }
        let packet = datagram(true, 4000, 40);
        tap.sent(k, &packet);
        let index = tap.received(k + 10, &packet).unwrap();
        tap.0.left_late(index, ms(k), ms(k + 10), Dur::ZERO);
    }
    assert_eq!(tap.finish(1000)[0].stream, [100, 4]);
}

/// A stall of the loop may have delayed everything that is still unanswered, but no echo that has its answer.
#[test]
fn a_stall_concerns_what_still_waits() {
    let mut tap = Tap::new();
    tap.crosses(0, &echo(true, 7, 1));
    tap.crosses(10, &echo(false, 7, 1));
    tap.crosses(1000, &echo(true, 7, 2));
    tap.0.stalled(ms(1005), Dur::from_millis(2));
    tap.crosses(1020, &echo(false, 7, 2));
    let all = tap.finish(2000);
    let late: Vec<Dur> = all[0].exchanges.iter().map(|e| e.late).collect();
    assert_eq!(late, [Dur::ZERO, Dur::from_millis(2)]);
}

/// Flows that are over cost nothing when the loop stalls, until they go on.
#[test]
fn a_stall_leaves_flows_alone_that_are_over() {
    let mut tap = Tap::new();
    for (port, id) in [(4000, 1), (4001, 2)] {
        tap.crosses(0, &datagram(true, port, 40));
        tap.crosses(10, &datagram(false, port, 40));
        tap.crosses(0, &echo(true, 7, id));
        tap.crosses(10, &echo(false, 7, id));
    }
    // This one has no answer.
    tap.crosses(20, &datagram(true, 4002, 40));
    tap.0.stalled(ms(9000), Dur::from_millis(2));
    assert_eq!(tap.0.open.len(), 1);
    tap.crosses(10_000, &datagram(true, 4000, 40));
    tap.0.stalled(ms(10_005), Dur::from_millis(3));
    assert_eq!(tap.0.open.len(), 2);
    tap.crosses(10_010, &datagram(false, 4000, 40));
    let all = tap.finish(11_000);
    let late = |port: usize| -> Vec<u64> {
        let exchanges = all[port].exchanges.iter();
        exchanges.map(|e| e.late.as_nanos() / 1_000_000).collect()
    };
    // The conversations of the client's ports 4000, 4001 and 4002; between them, that of the echoes.
    assert_eq!([late(0), late(2), late(3)], [vec![0, 3], vec![0], vec![5]]);
}

proptest! {
    /// For any packets in any order: bytes are counted once, exchanges follow one another, and none ends before it
    /// begins.
    #[test]
    fn exchanges_are_in_order_and_hold_no_more_than_was_received(
        script in prop::collection::vec((any::<bool>(), 0u16..3, 0usize..1500, 0u64..50, any::<bool>()), 1..60)
    ) {
        let mut tap = Tap::new();
        let mut now = 0;
        let mut received = 0;
        for (up, port, len, pause, lost) in script {
            now += pause;
            let p = datagram(up, 4000 + port, len);
            tap.sent(now, &p);
            if !lost && tap.received(now + 10, &p).is_some() {
                received += len as u64;
            }
        }
        let all = tap.finish(now + 10);
        let counted: u64 = all.iter().flat_map(|c| c.bytes).sum();
        prop_assert_eq!(counted, received);
        for c in &all {
            let answers: u64 = c.exchanges.iter().map(|e| e.bytes[1]).sum();
            prop_assert!(answers <= c.bytes[1]);
            prop_assert!(c.exchanges.iter().all(|e| e.until >= e.start));
            prop_assert!(c.exchanges.windows(2).all(|w| w[0].start <= w[1].start));
        }
    }

    /// No packet that a program sends makes the tracker panic.
    #[test]
    fn any_packet_is_borne(bytes in prop::collection::vec(any::<u8>(), 0..80), version in prop::sample::select(vec![0x45u8, 0x60, 0x4f])) {
        let mut p = bytes;
        if let Some(first) = p.first_mut() {
            *first = version;
        }
        if let Some(header) = Header::of(&p) {
            let mut all = Datagrams::new(CROSSING);
            let (head, rest) = p.split_at(p.len().min(28));
            all.sent(ms(0), &header, head, rest);
            all.received(ms(1), ms(0), &header, &p);
            all.finish(ms(2));
        }
    }
}

/// The client's kernel says that no socket was there for this answer.
fn unread(answer: &[u8]) -> Vec<u8> {
    let mut p = packet(true, ICMP, [3, 3, 0, 0, 0, 0, 0, 0], 0);
    p.extend_from_slice(&answer[..28]);
    p
}

#[test]
fn an_answer_that_nobody_read_is_none() {
    let mut answer = datagram(false, 4000, 120);
    answer[24..26].copy_from_slice(&128u16.to_be_bytes());
    let mut tap = Tap::new();
    tap.crosses(0, &datagram(true, 4000, 40));
    tap.crosses(1200, &answer);
    tap.sent(1210, &unread(&answer));
    // More of it makes no difference.
    tap.crosses(1201, &answer);
    // Another program takes the port.
    tap.crosses(5000, &datagram(true, 4000, 40));
    tap.crosses(5012, &answer);
    let all = tap.finish(6000);
    assert_eq!(
        times(&all[0]),
        [
            (0, None, Outcome::CutOff),
            (5000, Some(5022), Outcome::Answered)
        ]
    );
    assert_eq!(all[0].exchanges[0].until, ms(1210));
}

/// A repeated question is answered twice, and the client reads only the first answer.
#[test]
fn an_answer_that_was_read_ends_its_request() {
    let mut answer = datagram(false, 4000, 120);
    answer[24..26].copy_from_slice(&128u16.to_be_bytes());
    let mut tap = Tap::new();
    tap.crosses(0, &datagram(true, 4000, 40));
    tap.crosses(100, &datagram(true, 4000, 40));
    tap.crosses(112, &answer);
    tap.crosses(212, &answer);
    tap.sent(222, &unread(&answer));
    let all = tap.finish(6000);
    assert_eq!(times(&all[0]), [(0, Some(122), Outcome::Answered)]);
}

//! Scripted segments, observed at both hosts.

use super::super::turns::{Label, Outcome, STREAM};
use super::*;

/// A TCP packet over IPv4 with this many bytes of payload.
fn packet(to_server: bool, seq: u32, flags: u8, len: usize) -> Vec<u8> {
    let mut p = vec![0; 40 + len];
    p[0] = 0x45;
    p[9] = TCP;
    let (from, to) = if to_server { (1, 2) } else { (2, 1) };
    p[12..20].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    let ports = if to_server { [5000u16, 80] } else { [80, 5000] };
    p[20..22].copy_from_slice(&ports[0].to_be_bytes());
    p[22..24].copy_from_slice(&ports[1].to_be_bytes());
    p[24..28].copy_from_slice(&seq.to_be_bytes());
    p[32] = 0x50;
    p[33] = flags;
    p
}

struct Line {
    seen: Connections,
    now: u64,
}

impl Line {
    fn new() -> Line {
        Line {
            seen: Connections::default(),
            now: 0,
        }
    }
    fn sends(&mut self, p: &[u8]) {
        self.now += 1;
        let at = Time::from_nanos(self.now);
        self.seen.sent(at, &Header::of(p).unwrap(), p, p.len());
    }
    fn arrives(&mut self, p: &[u8]) {
        self.now += 1;
        let at = Time::from_nanos(self.now);
        self.seen.received(at, &Header::of(p).unwrap(), p);
    }
    fn both(&mut self, p: &[u8]) {
        self.sends(p);
        self.arrives(p);
    }
}

/// Sequence numbers wrap during the transfer.
const CLIENT: u32 = u32::MAX - 50;
const SERVER: u32 = u32::MAX - 2000;

fn opened() -> Line {
    let mut line = Line::new();
    line.both(&packet(true, CLIENT, SYN, 0));
    line.both(&packet(false, SERVER, SYN | ACK, 0));
    line.both(&packet(true, CLIENT.wrapping_add(1), ACK, 100));
    line
}

#[test]
fn a_transfer_with_a_loss_is_complete_when_the_hole_is_filled() {
    let mut line = opened();
    let seg = |i: u32| packet(false, SERVER.wrapping_add(1 + i * 1000), ACK, 1000);
    line.sends(&seg(0));
    line.both(&seg(1));
    line.both(&seg(2));
    line.both(&packet(false, SERVER.wrapping_add(3001), ACK | FIN, 0));
    line.both(&seg(0));
    let filled = line.now;
    line.both(&packet(false, SERVER.wrapping_add(3001), ACK | FIN, 0));
    line.both(&packet(true, CLIENT.wrapping_add(101), ACK | FIN, 0));
    let all = line.seen.finish(Time::from_nanos(line.now));
    let c = &all[0];
    assert_eq!(
        (all.len(), c.bytes, c.retransmissions),
        (1, [100, 3000], [0, 1])
    );
    assert_eq!(c.last_byte, Some(Time::from_nanos(filled)));
    assert_eq!(
        (c.start, c.connected),
        (Time::from_nanos(1), Some(Time::from_nanos(4)))
    );
    assert_eq!(c.ending, Ending::Closed);
}

#[test]
fn a_reset_and_a_second_connection_from_the_same_port() {
    let mut line = opened();
    line.both(&packet(false, SERVER.wrapping_add(1), RST, 0));
    line.both(&packet(true, 7, SYN, 0));
    line.both(&packet(true, 7, SYN, 0));
    let all = line.seen.finish(Time::from_nanos(line.now));
    assert_eq!(all.len(), 2);
    assert_eq!(
        [all[0].ending, all[1].ending],
        [Ending::ResetByServer, Ending::Open]
    );
    assert_eq!(all[1].connected, None);
}

/// TCP Fast Open: data comes with the SYN, and the server takes all of it, a part, or none.
#[test]
fn data_in_a_syn_is_part_of_the_request() {
    for accepted in [100, 40, 0] {
        let mut line = Line::new();
        line.both(&packet(true, CLIENT, SYN, 100));
        let mut answer = packet(false, SERVER, SYN | ACK, 0);
        let ack = CLIENT.wrapping_add(1 + accepted);
        answer[28..32].copy_from_slice(&ack.to_be_bytes());
        line.both(&answer);
        if accepted < 100 {
            line.both(&packet(true, ack, ACK, 100 - accepted as usize));
        }
        line.both(&packet(false, SERVER.wrapping_add(1), ACK | 8, 500));
        let end = line.now;
        line.both(&packet(true, CLIENT.wrapping_add(101), ACK | FIN, 0));
        line.both(&packet(false, SERVER.wrapping_add(501), ACK | FIN, 0));
        let c = &line.seen.finish(Time::from_nanos(line.now))[0];
        assert_eq!((c.bytes, c.ending), ([100, 500], Ending::Closed));
        assert_eq!(c.exchanges.len(), 1, "{c:?}");
        let e = &c.exchanges[0];
        // Data that is sent again after the opening was asked for then, and the opening is added.
        let start = if accepted > 0 { 1 } else { 2 };
        assert_eq!(
            (e.start, e.last_byte, e.bytes),
            (
                Time::from_nanos(start),
                Some(Time::from_nanos(end)),
                [100, 500]
            )
        );
    }
}

/// Whatever is missing, memory does not grow with what comes after it.
#[test]
fn data_beyond_a_gap_is_one_piece() {
    let mut half = Half::default();
    for k in 1..=100_000 {
        half.take(k * 1000, (k + 1) * 1000);
    }
    assert_eq!((half.received, half.beyond.len()), (0, 1));
    half.take(0, 1000);
    assert_eq!((half.received, half.beyond.len()), (100_001_000, 0));
    for k in 0..2 * PIECES as u64 {
        half.take(200_000_000 + 2 * k, 200_000_000 + 2 * k + 1);
    }
    assert_eq!(half.beyond.len(), PIECES);
    // What fills the gap is taken.
    half.take(100_001_000, 200_000_000);
    assert_eq!(half.received, 200_000_001);
}

#[test]
fn noise_does_not_panic() {
    let mut rng = swell_base::Stream::new(2, "noise");
    let mut line = opened();
    for _ in 0..50_000 {
        let len = rng.below(50) as usize;
        let p = packet(
            rng.chance(0.5),
            rng.below(1 << 32) as u32,
            rng.below(256) as u8,
            len,
        );
        if rng.chance(0.5) {
            line.sends(&p);
        } else {
            line.arrives(&p);
        }
    }
}

impl Line {
    fn wait(&mut self, ms: u64) {
        self.now += ms * 1_000_000;
    }
    /// The client acknowledges this many bytes of the server's data.
    fn acknowledges(&mut self, bytes: u32) {
        let mut p = packet(true, CLIENT.wrapping_add(101), ACK, 0);
        p[28..32].copy_from_slice(&SERVER.wrapping_add(1 + bytes).to_be_bytes());
        self.both(&p);
    }
    fn answers(&mut self, from: u32, len: usize) {
        let seq = SERVER.wrapping_add(1 + from);
        self.both(&packet(false, seq, ACK | PSH, len));
    }
    fn one(self) -> Connection {
        let end = Time::from_nanos(self.now);
        self.seen.finish(end).remove(0)
    }
}

/// A program gives up, and then the SYN-ACK comes. Its kernel answers with a reset.
#[test]
fn a_client_that_gave_up_is_not_connected() {
    let mut line = Line::new();
    line.sends(&packet(true, CLIENT, SYN, 0));
    line.wait(1000);
    line.both(&packet(true, CLIENT, SYN, 0));
    let last_try = Time::from_nanos(line.now - 1);
    line.wait(500);
    line.both(&packet(false, SERVER, SYN | ACK, 0));
    line.both(&packet(true, CLIENT.wrapping_add(1), RST, 0));
    let c = line.one();
    assert_eq!(
        (c.connected, c.last_try, c.ending),
        (None, last_try, Ending::ResetByClient)
    );
}

/// Data that comes after the client closed, and that its kernel answers with a reset, was not waited for.
#[test]
fn a_request_that_its_client_abandoned_is_cut_off() {
    // Bytes of the answer that arrive before the client closes and after, and what becomes of the request.
    let cases = [
        (0, 1000, Outcome::CutOff),
        (400, 600, Outcome::CutOff),
        // The whole answer, and the announcement of a close.
        (1000, 31, Outcome::Answered),
    ];
    for (before, after, outcome) in cases {
        let mut line = opened();
        line.wait(10);
        if before > 0 {
            line.sends(&packet(false, SERVER.wrapping_add(1), ACK | PSH, before));
            line.arrives(&packet(false, SERVER.wrapping_add(1), ACK | PSH, before));
        }
        let last = Time::from_nanos(line.now);
        // The rest is on its way.
        let rest = packet(
            false,
            SERVER.wrapping_add(1 + before as u32),
            ACK | PSH,
            after,
        );
        line.sends(&rest);
        line.wait(10);
        line.both(&packet(true, CLIENT.wrapping_add(101), ACK | FIN, 0));
        let closed = Time::from_nanos(line.now - 1);
        line.wait(10);
        line.arrives(&rest);
        line.both(&packet(true, CLIENT.wrapping_add(102), RST, 0));
        let c = line.one();
        assert_eq!(c.exchanges.len(), 1);
        let e = &c.exchanges[0];
        let until = match outcome {
            Outcome::Answered => last,
            _ => closed,
        };
        assert_eq!((e.outcome, e.until), (outcome, until), "{before} bytes");
        assert_eq!(c.until, closed);
        assert_eq!(c.last_byte, (before > 0).then_some(last));
    }
}

/// A server whose congestion window is full waits for acknowledgements in the middle of its answer, and has marked the
/// end of the window like the end of a write. The client gives up then, and the rest comes.
#[test]
fn an_answer_that_stopped_at_a_full_window_is_cut_off() {
    // More of the answer, or the announcement of a close.
    for (rest, outcome) in [(1000, Outcome::CutOff), (31, Outcome::Answered)] {
        let mut line = opened();
        line.wait(10);
        line.answers(0, 1000);
        let last = Time::from_nanos(line.now);
        line.acknowledges(1000);
        line.wait(10);
        let close = packet(true, CLIENT.wrapping_add(101), ACK | FIN, 0);
        line.sends(&close);
        let closed = Time::from_nanos(line.now);
        line.answers(1000, rest);
        line.arrives(&close);
        line.both(&packet(true, CLIENT.wrapping_add(102), RST, 0));
        let c = line.one();
        let until = match outcome {
            Outcome::Answered => last,
            _ => closed,
        };
        let e = &c.exchanges[0];
        assert_eq!((e.outcome, e.until), (outcome, until), "{rest} more bytes");
        assert_eq!((e.bytes[1], c.bytes[1], c.until), (1000, 1000, closed));
    }
}

/// A server that closes first, without a reply, has taken a stream, as iperf3's does, but has not served a request.
#[test]
fn a_server_that_hangs_up_has_not_taken_a_request() {
    let delivered = |pieces: u32, server_first: bool| {
        let mut line = opened();
        for i in 1..pieces {
            line.both(&packet(true, CLIENT.wrapping_add(1 + i * 100), ACK, 100));
        }
        let mut closes = [
            packet(true, CLIENT.wrapping_add(1 + pieces * 100), ACK | FIN, 0),
            packet(false, SERVER.wrapping_add(1), ACK | FIN, 0),
        ];
        if server_first {
            closes.reverse();
        }
        for close in closes {
            line.wait(10);
            line.both(&close);
        }
        let c = line.one();
        assert_eq!(c.ending, Ending::Closed);
        c.delivered.is_some()
    };
    assert!(delivered(1, false));
    assert!(!delivered(1, true));
    assert!(delivered(STREAM + 1, true));
}

/// It waited for less than a round trip, but for an answer to the only data that it sent.
#[test]
fn an_only_request_that_its_client_abandoned_early_is_cut_off() {
    let mut line = Line::new();
    line.both(&packet(true, CLIENT, SYN, 0));
    line.wait(1200);
    line.both(&packet(false, SERVER, SYN | ACK, 0));
    line.both(&packet(true, CLIENT.wrapping_add(1), ACK, 100));
    line.wait(800);
    line.both(&packet(true, CLIENT.wrapping_add(101), ACK | FIN, 0));
    let closed = Time::from_nanos(line.now - 1);
    line.wait(400);
    line.answers(0, 1000);
    line.both(&packet(true, CLIENT.wrapping_add(102), RST, 0));
    let c = line.one();
    let e = &c.exchanges[0];
    assert_eq!(
        (e.outcome, e.label, e.until),
        (Outcome::CutOff, Label::Request, closed)
    );
}

/// A client that closes only its own direction reads the answer, whatever it does with data that comes later.
#[test]
fn a_client_that_closed_its_own_direction_reads_on() {
    let mut line = opened();
    line.both(&packet(true, CLIENT.wrapping_add(101), ACK | FIN, 0));
    line.wait(10);
    line.answers(0, 1000);
    let last = Time::from_nanos(line.now);
    line.acknowledges(1000);
    line.wait(10);
    line.both(&packet(true, CLIENT.wrapping_add(102), RST, 0));
    let c = line.one();
    let e = &c.exchanges[0];
    assert_eq!((e.outcome, e.until), (Outcome::Answered, last));
}

/// The time that a lost SYN cost is no part of the round-trip time.
#[test]
fn an_unanswered_request_after_a_lost_syn_is_no_farewell() {
    let mut line = Line::new();
    line.sends(&packet(true, CLIENT, SYN, 0));
    line.wait(1000);
    line.both(&packet(true, CLIENT, SYN, 0));
    line.wait(20);
    line.both(&packet(false, SERVER, SYN | ACK, 0));
    line.wait(1000);
    line.both(&packet(true, CLIENT.wrapping_add(1), ACK, 100));
    line.wait(500);
    line.both(&packet(true, CLIENT.wrapping_add(101), RST, 0));
    let c = line.one();
    let e = &c.exchanges[0];
    assert_eq!((e.outcome, e.label), (Outcome::CutOff, Label::Request));
}

/// The first exchange includes the opening, so it includes its lateness, but not that of a pause after it.
#[test]
fn lateness_of_the_opening_counts() {
    let late = Dur::from_millis(3);
    let mut line = Line::new();
    line.both(&packet(true, CLIENT, SYN, 0));
    line.both(&packet(false, SERVER, SYN | ACK, 0));
    line.seen.left_late(0, Time::from_nanos(line.now), late);
    line.both(&packet(true, CLIENT.wrapping_add(1), ACK, 0));
    line.wait(1000);
    let resumed = Time::from_nanos(line.now);
    line.seen.stalled(resumed, Dur::from_millis(50));
    line.wait(1000);
    line.both(&packet(true, CLIENT.wrapping_add(1), ACK, 100));
    line.answers(0, 1000);
    assert_eq!(line.one().exchanges[0].late, late);
}

//! Scripted conversations over a network that loses and reorders packets, observed at both hosts. The script defines
//! when every request begins and ends.

mod unasked;

use proptest::prelude::*;

use super::*;
use crate::connections::{Connection, Connections, Ending};
use crate::ip::{Header, TCP};

const FIN: u8 = 1;
const SYN: u8 = 2;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// Payload of a segment.
const SEGMENT: u64 = 1000;
/// One-way delay in nanoseconds.
const CROSSING: u64 = 10_000_000;
/// A lost segment is retransmitted after this; nanoseconds.
const AGAIN: u64 = 200_000_000;

/// A request in a script.
#[derive(Clone, Debug)]
struct Asked {
    request: u64,
    answer: u64,
    /// Think times before the answer (server) and before the next request (client); nanoseconds.
    waits: [u64; 2],
    /// Segments that are lost once, by number in the exchange.
    lost: Vec<u8>,
}

/// A segment that is sent or received.
#[derive(Clone, Debug)]
struct Segment {
    at: u64,
    /// True if it arrived at the other host at `at`, false if it was sent.
    arrives: bool,
    to_server: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    len: u64,
}

impl Segment {
    fn bytes(&self) -> Vec<u8> {
        let mut p = vec![0; 40 + self.len as usize];
        p[0] = 0x45;
        p[9] = TCP;
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let ports = [5000u16, 80];
        let [from, to] = if self.to_server { [0, 1] } else { [1, 0] };
        p[12..16].copy_from_slice(&ends[from]);
        p[16..20].copy_from_slice(&ends[to]);
        p[20..22].copy_from_slice(&ports[from].to_be_bytes());
        p[22..24].copy_from_slice(&ports[to].to_be_bytes());
        p[24..28].copy_from_slice(&self.seq.to_be_bytes());
        p[28..32].copy_from_slice(&self.ack.to_be_bytes());
        p[32] = 0x50;
        p[33] = self.flags;
        p
    }
}

/// Builds the segments of a conversation.
struct Script {
    segments: Vec<Segment>,
    now: u64,
    /// Next sequence numbers of client and server.
    next: [u32; 2],
    /// Beginning and end of each request.
    truth: Vec<(u64, u64)>,
}

impl Script {
    /// A script with an open connection whose client is about to send.
    fn opened(pause: u64) -> Script {
        // Sequence numbers wrap during the script.
        let mut script = Script {
            segments: Vec::new(),
            now: 1,
            next: [u32::MAX - 700, u32::MAX - 2000],
            truth: Vec::new(),
        };
        script.one(true, SYN, 0);
        script.one(false, SYN | ACK, 0);
        script.next = script.next.map(|n| n.wrapping_add(1));
        script.now += pause;
        script
    }

    /// One segment that is not lost. Time advances to its arrival.
    fn one(&mut self, to_server: bool, flags: u8, len: u64) {
        self.put(
            self.now,
            to_server,
            self.next[usize::from(!to_server)],
            flags,
            len,
            1,
        );
        self.now += CROSSING;
    }

    /// A segment that is sent `times` times and arrives the last time. Returns when it arrives.
    fn put(&mut self, at: u64, to_server: bool, seq: u32, flags: u8, len: u64, times: u64) -> u64 {
        let ack = self.next[usize::from(to_server)];
        let segment = |sent, arrives| Segment {
            at: sent,
            arrives,
            to_server,
            seq,
            ack,
            flags,
            len,
        };
        let arrival = at + (times - 1) * AGAIN + CROSSING;
        for i in 0..times {
            self.segments.push(segment(at + i * AGAIN, false));
        }
        self.segments.push(segment(arrival, true));
        arrival
    }

    /// A message of `len` bytes. Time advances until all of it has arrived. `lost` selects the segments that are sent
    /// twice.
    fn message(&mut self, to_server: bool, len: u64, lost: impl Fn(u64) -> bool) {
        let way = usize::from(!to_server);
        let count = len.div_ceil(SEGMENT);
        let mut last = self.now;
        for i in 0..count {
            let size = (len - i * SEGMENT).min(SEGMENT);
            let flags = if i + 1 == count { ACK | PSH } else { ACK };
            let seq = self.next[way].wrapping_add((i * SEGMENT) as u32);
            let times = 1 + u64::from(lost(i));
            last = last.max(self.put(self.now + i * 100_000, to_server, seq, flags, size, times));
        }
        self.next[way] = self.next[way].wrapping_add(len as u32);
        self.now = last;
    }

    fn ask(&mut self, asked: &Asked) {
        let start = self.now;
        let lost = |i: u64| asked.lost.contains(&(i as u8));
        self.message(true, asked.request, lost);
        self.now += asked.waits[0];
        let before = asked.request.div_ceil(SEGMENT);
        self.message(false, asked.answer, |i| lost(i + before));
        self.truth.push((start, self.now));
        self.now += asked.waits[1];
    }

    fn close(&mut self, client_first: bool) {
        self.one(client_first, FIN | ACK, 0);
        self.one(!client_first, FIN | ACK, 0);
    }

    fn seen(&self) -> Connection {
        let mut connections = Connections::new(Dur::from_nanos(CROSSING));
        let mut segments = self.segments.clone();
        segments.sort_by_key(|s| s.at);
        for s in &segments {
            let p = s.bytes();
            let header = Header::of(&p).unwrap();
            if s.arrives {
                connections.received(Time::from_nanos(s.at), &header, &p);
            } else {
                connections.sent(Time::from_nanos(s.at), &header, &p, p.len());
            }
        }
        let mut all = connections.finish(Time::from_nanos(self.now));
        assert_eq!(all.len(), 1);
        all.remove(0)
    }
}

/// Beginning and end of each exchange. The connection's opening is subtracted from the first.
fn times(c: &Connection) -> Vec<(u64, u64)> {
    let times = c.exchanges.iter().enumerate().map(|(i, e)| {
        let opening = if i == 0 { 2 * CROSSING } else { 0 };
        (e.start.as_nanos() + opening, e.until.as_nanos())
    });
    times.collect()
}

fn asked(request: u64, answer: u64) -> Asked {
    Asked {
        request,
        answer,
        waits: [1_000_000, 5_000_000],
        lost: Vec::new(),
    }
}

fn any_request() -> impl Strategy<Value = Asked> {
    let sizes = (1u64..5000, 1u64..30_000);
    // Pauses can also be shorter than two crossings, or zero.
    let waits = [0u64..50_000_000, 0u64..3_000_000_000];
    let lost = proptest::collection::vec(0u8..30, 0..5);
    (sizes, waits, lost).prop_map(|((request, answer), waits, lost)| Asked {
        request,
        answer,
        waits,
        lost,
    })
}

proptest! {
    /// Whatever is lost and retransmitted, requests begin and end when the script says.
    #[test]
    fn requests_begin_and_end_when_they_do(script in proptest::collection::vec(any_request(), 1..12),
                                           pause in 0u64..2_000_000_000,
                                           client_first: bool) {
        let mut played = Script::opened(pause);
        for asked in &script {
            played.ask(asked);
        }
        played.close(client_first);
        let seen = played.seen();
        prop_assert_eq!(seen.ending, Ending::Closed);
        prop_assert_eq!(times(&seen), played.truth);
        for (e, asked) in seen.exchanges.iter().zip(&script) {
            prop_assert_eq!(e.bytes, [asked.request, asked.answer]);
            prop_assert_eq!(e.outcome, Outcome::Answered);
            prop_assert!(matches!(e.label, Label::Request | Label::First | Label::Heartbeat));
        }
    }

    /// If the run ends in the middle, all earlier requests are complete, and the last is cut off or complete.
    #[test]
    fn the_end_of_the_run_censors_the_last_request(script in proptest::collection::vec(any_request(), 1..6),
                                                   share in 0.0f64..1.0) {
        let mut played = Script::opened(0);
        for asked in &script {
            played.ask(asked);
        }
        let cut = (played.now as f64 * share) as u64;
        played.segments.retain(|s| s.at <= cut);
        played.now = cut;
        prop_assume!(!played.segments.is_empty());
        let seen = played.seen();
        let begun: Vec<_> = played.truth.iter().filter(|t| t.0 <= cut).collect();
        prop_assert_eq!(seen.exchanges.len(), begun.len());
        for ((e, timed), truth) in seen.exchanges.iter().zip(times(&seen)).zip(begun) {
            prop_assert_eq!(timed.0, truth.0);
            let whole = truth.1 <= cut;
            prop_assert_eq!(e.outcome == Outcome::Answered, whole, "{:?} until {}", e, cut);
            prop_assert_eq!(timed.1, truth.1.min(cut));
        }
    }
}

#[test]
fn the_first_request_is_labelled_where_others_follow() {
    let mut kept = Script::opened(0);
    kept.ask(&asked(500, 3000));
    kept.ask(&asked(80, 100));
    let labels: Vec<Label> = kept.seen().exchanges.iter().map(|e| e.label).collect();
    assert_eq!(labels, [Label::First, Label::Request]);
    let mut single = Script::opened(0);
    single.ask(&asked(500, 3000));
    assert_eq!(single.seen().exchanges[0].label, Label::Request);
}

#[test]
fn a_first_request_includes_the_opening_and_not_the_pause_after_it() {
    let mut script = Script::opened(7_000_000_000);
    script.ask(&asked(100, 100));
    let e = &script.seen().exchanges[0];
    // Opening, request and answer take four crossings; the server takes a millisecond.
    assert_eq!(e.lasted(), Dur::from_nanos(4 * CROSSING + 1_000_000));
}

#[test]
fn requests_sent_before_the_answer_is_whole_merge_and_say_so() {
    let mut script = Script::opened(0);
    let start = script.now;
    script.message(true, 100, |_| false);
    let answered = script.now;
    // The second request leaves while the answer to the first is in flight.
    script.put(
        answered + CROSSING / 2,
        true,
        script.next[0],
        ACK | PSH,
        100,
        1,
    );
    script.message(false, 200, |_| false);
    script.next[0] = script.next[0].wrapping_add(100);
    script.now = answered + CROSSING / 2 + CROSSING;
    script.message(false, 300, |_| false);
    let end = script.now;
    script.ask(&asked(70, 70));
    let seen = script.seen();
    assert_eq!(times(&seen)[0], (start, end));
    let labels: Vec<Label> = seen.exchanges.iter().map(|e| e.label).collect();
    assert_eq!(labels, [Label::Merged, Label::Request]);
    assert_eq!(seen.exchanges[0].bytes, [200, 500]);
}

/// A request that crosses the answer to the previous request is not answered by it.
#[test]
fn an_answer_to_the_request_before_does_not_end_the_next_one() {
    let mut script = Script::opened(0);
    script.message(true, 100, |_| false);
    // A second request reaches the server after it answered the first. The client has that answer before it sends a
    // third.
    let second = script.now - CROSSING / 2;
    script.put(second, true, script.next[0], ACK | PSH, 100, 1);
    script.message(false, 200, |_| false);
    script.next[0] = script.next[0].wrapping_add(100);
    let third = script.now;
    script.put(third, true, script.next[0], ACK | PSH, 100, 1);
    script.now = third + CROSSING;
    script.next[0] = script.next[0].wrapping_add(100);
    script.message(false, 400, |_| false);
    let seen = script.seen();
    assert_eq!(seen.exchanges.len(), 1, "{:#?}", seen.exchanges);
    assert_eq!(seen.exchanges[0].label, Label::Merged);
}

#[test]
fn last_words_before_a_close_are_no_request() {
    let mut script = Script::opened(0);
    script.ask(&asked(100, 100));
    // Like TLS closing a connection, or an HTTP client giving up.
    script.put(script.now, true, script.next[0], ACK | PSH, 31, 1);
    script.next[0] = script.next[0].wrapping_add(31);
    script.put(script.now + 1000, true, script.next[0], ACK | FIN, 0, 1);
    script.now += 3 * CROSSING;
    let labels: Vec<_> = script
        .seen()
        .exchanges
        .iter()
        .map(|e| (e.label, e.outcome))
        .collect();
    assert_eq!(labels[1], (Label::Farewell, Outcome::CutOff));

    let mut patient = Script::opened(0);
    patient.ask(&asked(100, 100));
    patient.message(true, 31, |_| false);
    patient.now += 900_000_000;
    patient.one(true, ACK | FIN, 0);
    let seen = patient.seen();
    let e = &seen.exchanges[1];
    assert_eq!((e.label, e.outcome), (Label::Request, Outcome::CutOff));
    assert!(e.lasted() >= Dur::from_millis(900));
}

#[test]
fn a_server_that_speaks_first_is_timed_from_the_opening() {
    let mut script = Script::opened(0);
    script.now += 3_000_000;
    script.message(false, 40, |_| false);
    let greeted = script.now;
    script.now += 1_000_000;
    script.ask(&asked(20, 30));
    let seen = script.seen();
    assert_eq!(seen.exchanges.len(), 2);
    let first = &seen.exchanges[0];
    assert_eq!(
        (first.start.as_nanos(), first.until.as_nanos()),
        (1, greeted)
    );
    assert_eq!(times(&seen)[1], script.truth[0]);
}

/// Like `echo q | nc -N server`: the client closes its side together with its request.
#[test]
fn a_client_that_closes_its_side_still_waits() {
    let asks = || {
        let mut script = Script::opened(0);
        script.message(true, 20, |_| false);
        script.now -= CROSSING - 1000;
        script.one(true, ACK | FIN, 0);
        script.next[0] = script.next[0].wrapping_add(1);
        script
    };
    let ended = |script: &Script| -> Vec<(Label, Outcome)> {
        let exchanges = script.seen().exchanges;
        exchanges.iter().map(|e| (e.label, e.outcome)).collect()
    };
    let mut slow = asks();
    slow.now += 3_000_000_000;
    assert_eq!(ended(&slow), [(Label::Request, Outcome::CutOff)]);
    let mut reset = asks();
    reset.now += 3_000_000_000;
    reset.one(false, 4 | ACK, 0);
    assert_eq!(ended(&reset), [(Label::Request, Outcome::Failed)]);
    let mut quick = asks();
    quick.message(false, 30, |_| false);
    assert_eq!(ended(&quick), [(Label::Request, Outcome::Answered)]);
    // A server that only takes data closes, too.
    let mut taken = asks();
    taken.one(false, ACK | FIN, 0);
    assert_eq!(ended(&taken), [(Label::Farewell, Outcome::CutOff)]);
    // The last words after an answer are not waited for, and many servers reset the connection then.
    let mut last = Script::opened(0);
    last.ask(&asked(100, 100));
    last.put(last.now, true, last.next[0], ACK | PSH, 31, 1);
    last.next[0] = last.next[0].wrapping_add(31);
    last.put(last.now + 1000, true, last.next[0], ACK | FIN, 0, 1);
    last.now += 2 * CROSSING;
    last.one(false, 4 | ACK, 0);
    assert_eq!(ended(&last)[1], (Label::Farewell, Outcome::Failed));
}

#[test]
fn heartbeats_are_tiny_and_periodic() {
    let labels = |requests: &[Asked]| -> Vec<Label> {
        let mut script = Script::opened(0);
        for asked in requests {
            script.ask(asked);
        }
        script.seen().exchanges.iter().map(|e| e.label).collect()
    };
    let after = |size: u64, wait: u64| Asked {
        waits: [0, wait],
        ..asked(size, size)
    };
    // One request, then a heartbeat every ten seconds.
    let mut kept = vec![after(900, 2_000_000_000)];
    kept.extend((0..5).map(|_| after(40, 10_000_000_000)));
    assert_eq!(labels(&kept)[1..], [Label::Heartbeat; 5]);
    // Not heartbeats: small requests back to back (like redis), at irregular intervals (like a person's), and large
    // periodic ones.
    for other in [
        (0..5).map(|_| after(40, 0)).collect::<Vec<_>>(),
        [2u64, 3, 2, 9, 4]
            .map(|s| after(40, s * 1_000_000_000))
            .to_vec(),
        (0..5).map(|_| after(4000, 10_000_000_000)).collect(),
    ] {
        assert!(!labels(&other).contains(&Label::Heartbeat), "{other:?}");
    }
}

/// The end of the run cuts off the last heartbeat. After as many answered ones it is no request, and before them it is.
#[test]
fn a_heartbeat_that_is_cut_off_is_no_request() {
    let last = |beats: usize| {
        let mut script = Script::opened(0);
        let beat = Asked {
            waits: [0, 10_000_000_000],
            ..asked(40, 40)
        };
        for _ in 0..beats {
            script.ask(&beat);
        }
        script.message(true, 40, |_| false);
        let seen = script.seen();
        let e = seen.exchanges.last().unwrap();
        (seen.exchanges.len(), e.label, e.outcome)
    };
    assert_eq!(last(3), (4, Label::Heartbeat, Outcome::CutOff));
    assert_eq!(last(2), (3, Label::Request, Outcome::CutOff));
}

#[test]
fn what_is_never_answered_and_goes_on_is_one_way() {
    let mut script = Script::opened(0);
    script.message(true, 40_000, |_| false);
    let e = &script.seen().exchanges[0];
    assert_eq!((e.label, e.outcome), (Label::OneWay, Outcome::CutOff));
    // A single request that is never answered is not one-way.
    let mut single = Script::opened(0);
    single.message(true, 400, |_| false);
    assert_eq!(single.seen().exchanges[0].label, Label::Request);
}

#[test]
fn lateness_counts_once_in_a_crossing() {
    let ms = Dur::from_millis;
    let at = |t: u64| Time::ZERO + ms(t);
    let mut turns = Turns::new(Time::ZERO, ms(10));
    turns.asked(at(1), 10, Received::All);
    for t in 1..10 {
        turns.left_late(at(t), ms(t));
    }
    turns.left_late(at(30), ms(2));
    turns.answered(at(31), 10);
    // Only the largest lateness of the first ten counts; the next packet may depend on it.
    turns.asked(at(40), 10, Received::All);
    turns.left_late(at(50), Dur::from_micros(5));
    turns.answered(at(51), 10);
    turns.asked(at(60), 10, Received::All);
    let late: Vec<Dur> = turns.take().iter().map(|e| e.late).collect();
    assert_eq!(late, [ms(11), Dur::from_micros(5)]);
}

//! Viewings over an ideal network.

use swell_base::{Bytes, Rate};

use super::*;
use crate::Access;

/// A viewing over a network that takes 10 ms and loses nothing.
fn watched(length: Dur, buffer: Dur, preroll: f64) -> Stream {
    let ideal = |_: Time, _: &Sent| Some(Dur::from_millis(10));
    watched_over((length, buffer, preroll), true, ideal)
}

/// As [`watched`], but media packets from this number on are lost, and not asked for.
fn watched_without(length: Dur, buffer: Dur, preroll: f64, lost: u32) -> Stream {
    let network = |_: Time, what: &Sent| {
        let is_lost = matches!(what, Sent::Media { packet, .. } if *packet >= lost);
        (!is_lost).then_some(Dur::from_millis(10))
    };
    watched_over((length, buffer, preroll), false, network)
}

/// A viewing over a network that says how long each datagram takes, if it arrives at all.
fn watched_over(
    (length, buffer, preroll): (Dur, Dur, f64),
    repair: bool,
    mut network: impl FnMut(Time, &Sent) -> Option<Dur>,
) -> Stream {
    let mut stream = Stream::new(StreamConfig {
        rate: Rate::from_bps(400_000),
        frames: 20,
        length,
        buffer,
        preroll,
        packet: Bytes(1_000),
        repair,
        viewers: 1,
        every: None,
        start: Dur::ZERO,
        client: Access::default(),
        server: Access::default(),
    });
    let mut due = BTreeMap::from([((Time::ZERO, 0u64), Event::Start)]);
    let (mut sent, mut order) = (0u64, 0u64);
    while let Some(((now, _), event)) = due.pop_first() {
        let mut actions = Vec::new();
        stream.handle(now, event, &mut actions);
        for action in actions {
            let (after, next) = match action {
                Action::Timer(after, token) => (after, Event::Timer(token)),
                Action::SendDatagram(conn, from, n) => {
                    let to = match from {
                        End::Client => End::Server,
                        End::Server => End::Client,
                    };
                    let number = Some(sent);
                    let what = &stream.viewings[0].sent[sent as usize];
                    sent += 1;
                    let Some(takes) = network(now, what) else {
                        continue;
                    };
                    (takes, Event::Datagram(conn, to, n, number))
                }
                Action::Abort(_) => return stream,
                _ => continue,
            };
            order += 1;
            due.insert((now + after, order), next);
        }
    }
    unreachable!("a viewing ends")
}

#[test]
fn a_stream_that_is_sent_within_a_second_has_its_full_rate() {
    let full = |length, buffer, preroll| {
        let samples = watched(length, buffer, preroll).take_samples();
        let all = samples.iter().filter(|s| s.measure == measures::FULL);
        all.map(|s| s.value).collect::<Vec<_>>()
    };
    let second = Dur::from_secs(1);
    assert_eq!(full(second * 3, second, 1.0), [1.0]);
    // In a quarter of a second.
    assert_eq!(full(second, second, 4.0), [1.0]);
    assert_eq!(full(second / 2, second / 4, 1.0), [1.0]);
}

/// A viewer may watch any number of streams in a run.
#[test]
fn what_was_watched_leaves_nothing_of_its_packets() {
    let second = Dur::from_secs(1);
    let stream = watched(second * 3, second, 1.0);
    let [v] = &stream.viewings[..] else {
        panic!("{} viewings", stream.viewings.len())
    };
    let packets = [v.sent.capacity(), v.sent_at.capacity(), v.got.capacity()];
    assert!(v.over && packets == [0; 3], "{packets:?}");
    let frames = [v.lacks.capacity(), v.left_out.capacity()];
    assert_eq!((frames, v.missing.len()), ([0; 2], 0));
}

/// The end of a stream is no stall, whatever was lost there.
#[test]
fn a_lost_end_is_left_out() {
    let second = Dur::from_secs(1);
    // Sixty frames of three packets each; the last frame is lost.
    let end = |buffer| {
        let mut stream = watched_without(second * 3, buffer, 1.0, 177);
        let samples = stream.take_samples();
        [
            measures::STALLS,
            measures::STALLED,
            measures::LOST,
            measures::STARTUP,
        ]
        .map(|m| samples.iter().find(|s| s.measure == m).expect(m).value)
    };
    // A viewer who wants the whole stream first starts when there is no more.
    for (buffer, starts) in [(second, 1.0..1.2), (second * 3, 3.0..3.3)] {
        let [stalls, stalled, lost, started] = end(buffer);
        assert_eq!((stalls, stalled, lost), (0.0, 0.0, 1.0 / 60.0));
        assert!(starts.contains(&started), "{started}");
    }
}

/// Where nothing comes for a while in the middle, playback does stop. The pause ends with the stream.
#[test]
fn a_stop_lasts_until_the_end_at_most() {
    let second = Dur::from_secs(1);
    let mut stream = watched_without(second * 3, second / 2, 1.0, 90);
    let samples = stream.take_samples();
    let of = |m| samples.iter().find(|s| s.measure == m).expect("one").value;
    assert_eq!((of(measures::STALLS), of(measures::LOST)), (1.0, 0.5));
    // The thirtieth frame is due after 2 s. The end of the stream, after 3.1 s, is awaited for 1.5 s more.
    let stalled = of(measures::STALLED);
    assert!((2.5..2.8).contains(&stalled), "{stalled}");
}

/// Late frames, lost frames and stalls.
fn harm(stream: &mut Stream) -> [f64; 3] {
    let samples = stream.take_samples();
    let of = |m| samples.iter().find(|s| s.measure == m).expect(m).value;
    [measures::LATE, measures::LOST, measures::STALLS].map(of)
}

/// The end of a stream is not given up while a request or its repetition may bring it. The round trip is longer than
/// a frame, so frames would be skipped meanwhile.
#[test]
fn a_lost_end_that_is_sent_again_is_played() {
    let second = Dur::from_secs(1);
    // Packets of the last frame, of the last three, and of the last half second.
    for lost in [177, 171, 150] {
        for times in [1, 2] {
            let mut tries = BTreeMap::new();
            let network = |_: Time, what: &Sent| {
                if let Sent::Media { packet, .. } = what
                    && *packet >= lost
                {
                    let n = tries.entry(*packet).or_insert(0);
                    *n += 1;
                    if *n <= times {
                        return None;
                    }
                }
                Some(Dur::from_millis(100))
            };
            let mut stream = watched_over((second * 3, Dur::ZERO, 1.0), true, network);
            let [late, missing, stalls] = harm(&mut stream);
            assert_eq!((late, missing), (0.0, 0.0), "{lost}, {times}");
            assert!(stalls >= 1.0, "{lost}, {times}");
        }
    }
}

/// An outage that ends after the stream should have holds frames back; they are played when it is over.
#[test]
fn an_outage_at_the_end_is_no_end() {
    let second = Dur::from_secs(1);
    for repair in [false, true] {
        for begins in [2_000, 2_800] {
            let [from, to] = [begins, begins + 1_400].map(|ms| Time::ZERO + Dur::from_millis(ms));
            let network = |now: Time, _: &Sent| {
                let held = if now >= from {
                    to.since(now)
                } else {
                    Dur::ZERO
                };
                Some(held + Dur::from_millis(10))
            };
            let mut stream = watched_over((second * 3, Dur::ZERO, 1.0), repair, network);
            let [late, missing, stalls] = harm(&mut stream);
            assert_eq!(
                (late, missing, stalls),
                (0.0, 0.0, 1.0),
                "{repair}, {begins}"
            );
        }
    }
}

/// What the server sent again in a viewing of 1 MB over a link of this rate, with room for this many bytes; in MB.
fn repaired(rate: u64, room: u64) -> f64 {
    let length = Dur::from_secs(20);
    let delay = Dur::from_millis(20);
    let rate = Rate::from_bps(rate);
    let mut free = Time::ZERO;
    let network = |now: Time, what: &Sent| {
        let Sent::Media { .. } = what else {
            return Some(delay);
        };
        let queued = free.since(now);
        if rate.carried_in(queued).0 + 861 > room {
            return None;
        }
        free = now + queued + rate.transmit(Bytes(861));
        Some(free.since(now) + delay)
    };
    let mut stream = watched_over((length, Dur::from_secs(5), 2.0), true, network);
    let samples = stream.take_samples();
    let again = samples.iter().find(|s| s.measure == measures::AGAIN);
    again.expect("one").value / 1e6
}

/// What is queued and arrives in order is not requested again, however late it is.
#[test]
fn what_is_only_late_is_not_requested() {
    assert_eq!(repaired(300_000, 10_000_000), 0.0);
}

/// A queue that is always full makes packets miss, and delays what is sent again. With waits of a round trip
/// it would be 5 MB.
#[test]
fn requests_do_not_grow_by_their_own_answers() {
    let again = repaired(300_000, 8_000);
    assert!((0.1..2.5).contains(&again), "{again}");
}

/// Share of packets of ten minutes that never arrive over a link of 40 ms that loses this share of all datagrams, in
/// both directions, and the viewer's estimate of the round trip at the end.
fn unrepaired(loss: f64) -> (f64, Dur) {
    let mut random = swell_base::Stream::new(7, "loss");
    let mut arrived = std::collections::BTreeSet::new();
    let network = |_: Time, what: &Sent| {
        if random.uniform() < loss {
            return None;
        }
        if let Sent::Media { packet, .. } = what {
            arrived.insert(*packet);
        }
        Some(Dur::from_millis(20))
    };
    let length = Dur::from_secs(600);
    let stream = watched_over((length, Dur::from_secs(5), 2.0), true, network);
    let share = 1.0 - arrived.len() as f64 / 36_000.0;
    (share, stream.viewings[0].round_trip)
}

/// Packets of which requests and answers are lost too are repaired while the buffer lasts: their long waits are not
/// taken for a long round trip.
#[test]
fn heavy_loss_is_repaired_within_the_buffer() {
    for (loss, most) in [(0.05, 0.0), (0.2, 1e-4), (0.3, 3e-3)] {
        let (lost, round_trip) = unrepaired(loss);
        assert!(lost <= most, "{loss}: {lost}");
        let plausible = Dur::from_millis(39)..Dur::from_millis(250);
        assert!(plausible.contains(&round_trip), "{loss}: {round_trip:?}");
    }
}

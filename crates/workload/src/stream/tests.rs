//! Viewings over an ideal network.

use swell_base::{Bytes, Rate};

use super::*;
use crate::Access;

/// A viewing over a network that takes 10 ms and loses nothing.
fn watched(length: Dur, buffer: Dur, preroll: f64) -> Stream {
    let mut stream = Stream::new(StreamConfig {
        rate: Rate::from_bps(400_000),
        frames: 20,
        length,
        buffer,
        preroll,
        packet: Bytes(1_000),
        repair: true,
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
                    sent += 1;
                    let arrives = Event::Datagram(conn, to, n, number);
                    (Dur::from_millis(10), arrives)
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

//! A Vegas connection of ns-2.35 that never recovers its rate.

use std::sync::Arc;

use swell_base::{Flags, SackBlocks, Segment, Time};
use swell_tcp::{Algorithm, Config, Endpoint};

const MSS: u64 = 1460;

/// One of 36 clients of the burstiness paper, as ns-2.35 ran it (seed 1, client 21, which always has more to send).
/// For each acknowledgement: the arrival time in seconds, the highest packet, and the packets sent in response.
const HEARD: [(f64, u64, &[u64]); 22] = [
    (0.118364, 0, &[1]),
    (0.219843, 1, &[2, 3, 4]),
    (0.326221, 2, &[5]),
    (0.327181, 3, &[6]),
    (0.327901, 4, &[7]),
    (0.427940, 5, &[8, 9]),
    (0.428900, 6, &[10, 11]),
    (0.430100, 7, &[12, 13]),
    // Four of the six are lost. Then the coarse timer expires.
    (0.545498, 7, &[]),
    (0.546698, 7, &[]),
    (0.743175, 8, &[10]),
    (0.744375, 9, &[11]),
    (0.844653, 10, &[12, 13]),
    // A round began with the acknowledgement 1.2 ms ago and already ends.
    (0.845853, 13, &[14, 15, 16]),
    (0.948292, 13, &[]),
    (0.949492, 13, &[]),
    (0.950692, 14, &[17]),
    (0.951652, 15, &[18]),
    (0.952132, 16, &[19]),
    (1.052650, 17, &[20]),
    (1.053610, 18, &[21]),
    (1.054570, 19, &[22]),
];

fn sent(end: &mut Endpoint, now: Time) -> Vec<u64> {
    std::iter::from_fn(|| end.poll_transmit(now))
        .map(|(segment, _)| (segment.seq - 1) / MSS)
        .collect()
}

/// Acknowledges everything up to and including packet `last`.
fn hears(end: &mut Endpoint, at: Time, last: u64) {
    let ack = Segment {
        seq: 1,
        ack: 1 + (last + 1) * MSS,
        window: u32::MAX,
        flags: Flags::ACK,
        ..Segment::default()
    };
    end.handle_segment(at, &ack, &SackBlocks::default());
}

#[test]
fn a_round_of_a_millisecond_pins_the_window_as_in_ns2() {
    let mut end = Endpoint::client(Arc::new(Config {
        algorithm: Algorithm::Vegas,
        handshake: false,
        mss: MSS as u32,
        send_window: Some(20),
        initial_ssthresh: Some(20),
        delayed_ack: false,
        ..Config::ns2_modern()
    }));
    end.send(10_000 * MSS);
    assert_eq!(sent(&mut end, Time::from_secs_f64(0.016886)), [0]);
    let mut again = Vec::new();
    for (at, last, want) in HEARD {
        let at = Time::from_secs_f64(at);
        while let Some(due) = end.poll_timeout().filter(|&due| due < at) {
            end.handle_timeout(due);
            again.extend(sent(&mut end, due));
        }
        hears(&mut end, at, last);
        assert_eq!(sent(&mut end, at), want, "acknowledged up to {last}");
    }
    assert_eq!(again, [8, 9]);
    // From now on the path is empty: each packet is acknowledged one RTT after it was sent.
    let mut now = Time::from_secs_f64(1.154129);
    for last in 20..2_000 {
        hears(&mut end, now, last);
        assert_eq!(sent(&mut end, now), [last + 3]);
        now += swell_base::Dur::from_micros(33_826);
    }
}

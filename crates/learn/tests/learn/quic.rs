//! QUIC: what datagrams of requests and responses show.

use crate::synth::{Exchanges, Host, Tap};
use swell_base::{Code, Dur, Severity};
use swell_learn::{Learner, Options};
use swell_traffic::{Exchange, Model};

/// Users who fetch segments of video. A server sends each in 400 datagrams, `gap` apart; the client acknowledges every
/// second one.
fn learnt(gap: Dur) -> Model {
    let ms = Dur::from_millis;
    let mut tap = Tap::new();
    for user in 0..4u8 {
        let (client, server) = (Host::client(user, ms(4)), Host::server(user, ms(30)));
        let mut put = |at: Dur, from_client: bool, payload: u32| {
            tap.datagram(at, client, server, 50_000, payload);
            if !from_client {
                tap.turn_last();
            }
        };
        let start = Dur::from_secs(70) + ms(700 * u64::from(user));
        put(start, true, 1_250);
        put(start + ms(30), false, 1_250);
        put(start + ms(34), true, 90);
        for segment in 0..6 {
            let asked = start + ms(100 + 4_000 * segment);
            put(asked, true, 350);
            for k in 0..400 {
                let at = asked + ms(40) + gap * k;
                put(at, false, 1_250);
                if k % 2 == 1 {
                    put(at + ms(4), true, 35);
                }
            }
        }
    }
    let mut learner = Learner::new(Options::default());
    // So that the flows begin inside the trace.
    let mut begin = Tap::new();
    begin.datagram(
        Dur::ZERO,
        Host::client(9, ms(4)),
        Host::server(9, ms(30)),
        9,
        40,
    );
    for p in begin.packets().iter().chain(&tap.packets()) {
        learner.push(p);
    }
    learner.finish()
}

/// The spacing of datagrams shows how fast their sender paces them, as it does for segments of TCP.
#[test]
fn datagrams_show_the_capacity_of_their_sender() {
    // 1278 bytes with their headers.
    for (gap, mbit) in [(500, 20.448), (682, 14.991), (100, 102.24)] {
        let model = learnt(Dur::from_micros(gap));
        let fetched = model.sessions.iter().flat_map(|s| s.connections());
        let quic = fetched.filter(|c| matches!(c.exchange, Exchange::Sequential(_)));
        let mut found = 0;
        for c in quic {
            found += 1;
            let path = &model.server_paths[c.server as usize];
            let up = path.up.expect("a capacity").bps() as f64 / 1e6;
            assert!((up / mbit - 1.0).abs() < 0.01, "{up} for {mbit} Mbit/s");
            assert!(path.capacity_samples >= 15);
        }
        assert_eq!(found, 4);
    }
}

/// What is on QUIC's port and shows no requests is played as datagrams. The model says why, and warns if these are most
/// of the load.
#[test]
fn flows_without_requests_are_told() {
    let ms = Dur::from_millis;
    let (client, server) = (Host::client(1, ms(4)), Host::server(1, ms(30)));
    let learnt = |kind: &str, page: u32| {
        let mut tap = Tap::new();
        for i in 0..1_000 {
            let from_server = match kind {
                "call" => i % 2 == 1,
                "silent" => false,
                _ => true,
            };
            tap.datagram(ms(20 * i), client, server, 50_000, 1_000);
            if from_server {
                tap.turn_last();
            }
        }
        let download = Exchanges {
            turns: vec![(300, ms(5), page, Dur::ZERO)],
            ..Exchanges::default()
        };
        tap.connection(ms(1), client, server, &download);
        let mut learner = Learner::new(Options::default());
        tap.packets().iter().for_each(|p| learner.push(p));
        let m = learner.finish();
        let told = |code: Code| {
            let all = m.warnings.iter();
            all.filter(|w| w.code == code)
                .map(|w| (w.severity, w.message.clone()))
                .next()
        };
        (told(Code::Quic), told(Code::UdpOpenLoop))
    };
    for (kind, why) in [
        ("call", "both ends send at once, as in a call (1)"),
        ("silent", "the server sent no data, or none for seconds (1)"),
        (
            "stream",
            "the server sent first, so the beginning is not in the trace (1)",
        ),
    ] {
        let (quic, open_loop) = learnt(kind, 900_000);
        let (severity, text) = quic.expect("a reason");
        assert_eq!(severity, Severity::Note);
        assert!(text.ends_with(why), "{text}");
        assert_eq!(open_loop.expect("a share").0, Severity::Warning);
    }
    let (quic, open_loop) = learnt("call", 1_100_000);
    assert!(quic.is_some());
    assert_eq!(open_loop.expect("a share").0, Severity::Note);
}

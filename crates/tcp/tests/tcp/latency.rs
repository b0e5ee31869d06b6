//! Transfer times over a path that only delays, against closed forms.

use crate::net::{CLIENT, Net, SERVER, ms, serve};
use swell_base::{Dur, Time};
use swell_tcp::{Config, Event};

/// Number of round trips in which `segments` are sent, for a window that starts at `iw` and doubles.
fn rounds(segments: u64, iw: u64) -> u64 {
    let (mut sent, mut window, mut n) = (0, iw, 0);
    while sent < segments {
        sent += window;
        window *= 2;
        n += 1;
    }
    n
}

/// Time from the SYN to the last byte. Data leaves after 1.5 RTT, because the server's first data follows the
/// client's last handshake segment. Each further window adds one RTT, and the last window needs half an RTT to
/// arrive.
fn slow_start_latency(bytes: u64, cfg: &Config, rtt: Dur) -> Time {
    let segments = bytes.div_ceil(u64::from(cfg.mss));
    let n = rounds(segments, u64::from(cfg.initial_window));
    Time::ZERO + rtt + rtt / 2 + rtt * (n - 1) + rtt / 2
}

#[test]
fn slow_start_takes_the_closed_form_number_of_rounds() {
    for (bytes, expected_rounds) in [(4_000, 1), (14_480, 1), (14_481, 2), (1_000_000, 7)] {
        let cfg = Config::linux();
        assert_eq!(
            rounds(bytes / 1448 + u64::from(bytes % 1448 > 0), 10),
            expected_rounds
        );
        let mut net = Net::new(cfg.clone(), ms(50)).app(serve(bytes));
        net.run(5_000);
        assert_eq!(
            net.when_received(CLIENT, bytes),
            Some(slow_start_latency(bytes, &cfg, ms(100)))
        );
        assert_eq!(net.ends[SERVER].stats().retransmitted, 0);
        assert!(net.when(CLIENT, Event::Closed).is_some());
        assert!(net.when(SERVER, Event::Closed).is_some());
    }
}

//! How fast the two ends of a connection send.

use swell_base::Rate;

use super::Network;
use crate::{Connection, Model, Session};

/// Payload of a full segment where the model does not say.
const FULL: u64 = 1448;
/// Segments of the initial window (RFC 6928).
pub(crate) const INITIAL_WINDOW: u64 = 10;
/// How long Linux holds an acknowledgement back for more data or for data of its own (`TCP_DELACK_MIN`), seconds.
pub(crate) const ACK_DELAY: f64 = 0.04;
/// Linux's shortest time-out above the round trip, seconds (`TCP_RTO_MIN`), and the first of a SYN (RFC 6298).
const RTO_MIN: f64 = 0.2;
const SYN_RTO: f64 = 1.0;
/// Headers of IPv4 and TCP; IPv6 has 20 bytes more.
const TCP_HEADERS: f64 = 40.0;
pub(crate) const IPV6_MORE: f64 = 20.0;
/// TCP's timestamps, padded (RFC 7323, appendix A).
const TIMESTAMPS: f64 = 12.0;

/// Payload of a full segment of an end.
pub(crate) fn full(connection: &Connection, end: usize) -> u64 {
    match connection.wire.ends[end].mss {
        0 => FULL,
        mss => u64::from(mss),
    }
}

/// Network-layer bytes of a TCP segment beside its payload.
pub(crate) fn header(connection: &Connection) -> f64 {
    let wire = &connection.wire;
    TCP_HEADERS
        + if wire.ipv6 { IPV6_MORE } else { 0.0 }
        + if wire.timestamps.unwrap_or(true) {
            TIMESTAMPS
        } else {
            0.0
        }
}

/// Full segments that an end acknowledges at once, in the long run.
pub(crate) fn ack_every(connection: &Connection, end: usize) -> f64 {
    match connection.wire.ends[end].ack_every {
        0 => 2.0,
        every => f64::from(every),
    }
}

/// Segments that an end acknowledges one by one at first.
pub(crate) fn quick_acks(connection: &Connection, end: usize) -> f64 {
    match connection.wire.ends[end].quick_acks {
        Some(u8::MAX) => f64::INFINITY,
        Some(n) => f64::from(n),
        // Linux, where the model does not say.
        None => 16.0,
    }
}

/// What decides how fast the two ends of a connection send; pairs are of the client and of the server.
#[derive(Clone)]
pub(super) struct Pace {
    /// Round trip from end to end, seconds; the part of it that is the hosts' own.
    pub rtt: f64,
    pub own_rtt: f64,
    /// The handshake, with the SYNs that are expected to be lost, seconds.
    pub handshake: f64,
    /// Share of the segments that are lost on the way.
    loss: [f64; 2],
    /// Payload of their segments.
    segment: [u64; 2],
    /// Bytes of payload per second.
    pub rate: [f64; 2],
    /// The same of the narrowest link of the way, and of their own.
    pub path: [f64; 2],
    access: [f64; 2],
    /// Bytes that may be under way before a sender has to wait for acknowledgements, once a window is open.
    pub at_once: [u64; 2],
    /// Congestion windows, bytes, and when something was last sent.
    window: [f64; 2],
    last: [f64; 2],
}

impl Pace {
    pub fn new(
        model: &Model,
        session: &Session,
        connection: &Connection,
        network: &Network,
    ) -> Pace {
        let client = model.client_paths.get(session.client as usize);
        let server = model.server_paths.get(connection.server as usize);
        let own_rtt = [client, server].into_iter().flatten();
        let own_rtt: f64 = own_rtt.map(|path| path.rtt.as_secs_f64()).sum();
        let rtt = own_rtt + network.rtt.as_secs_f64();
        let header = header(connection);
        let loss = [(client, server), (server, client)].map(|(sender, receiver)| {
            let delivered = sender.map_or(1.0, |p| 1.0 - p.loss_up)
                * receiver.map_or(1.0, |p| 1.0 - p.loss_down);
            (1.0 - delivered).min(MOST_LOSS)
        });
        let segment = [0, 1].map(|end| full(connection, end).max(1));
        // A link carries headers, too.
        let payload = |end: usize| segment[end] as f64 / (segment[end] as f64 + header);
        let capacity = |rate: Option<Rate>| match rate {
            Some(rate) if rate.bps() > 0 => rate.bps() as f64 / 8.0,
            _ => f64::INFINITY,
        };
        let windows = [connection.server_window, connection.client_window].map(u64::from);
        let path = [0, 1].map(|end| {
            let (sender, receiver) = match end {
                0 => (client, server),
                _ => (server, client),
            };
            let link = network.rates[usize::from((end == 1) != session.outside)];
            capacity(sender.and_then(|p| p.up))
                .min(capacity(receiver.and_then(|p| p.down)))
                .min(capacity(link))
                * payload(end)
        });
        let of = |end: usize| {
            let window = match windows[end] {
                0 => f64::INFINITY,
                bytes => {
                    let every = ack_every(connection, 1 - end);
                    under_window(bytes, segment[end], every, rtt, path[end])
                }
            };
            path[end]
                .min(window)
                .min(under_loss(segment[end], rtt, loss[end]))
        };
        let access = [client, server].map(|p| capacity(p.and_then(|own| own.up)));
        let syns = 1.0 - (1.0 - loss[0]) * (1.0 - loss[1]);
        Pace {
            rtt,
            own_rtt,
            handshake: rtt + syns * SYN_RTO,
            loss,
            segment,
            rate: [of(0), of(1)],
            path,
            access: [0, 1].map(|end| access[end] * payload(end)),
            at_once: [0, 1].map(|end| match windows[end] {
                0 => INITIAL_WINDOW * segment[end],
                window => window.min(INITIAL_WINDOW * segment[end]),
            }),
            window: [0, 1].map(|end| (INITIAL_WINDOW * segment[end]) as f64),
            last: [0.0; 2],
        }
    }

    /// Seconds from the first byte's leaving at `from` to the last one's arrival.
    pub fn transfer(&mut self, end: usize, bytes: u64, from: f64) -> f64 {
        let (mut left, mut time) = (bytes as f64, 0.0);
        let initial = (INITIAL_WINDOW * self.segment[end]) as f64;
        let window = &mut self.window[end];
        // After a time-out's worth of silence a window begins anew (RFC 9293 section 3.8.6.2.2).
        if from - self.last[end] > self.rtt + RTO_MIN {
            *window = initial;
        }
        while left > *window && *window < self.rate[end] * self.rtt {
            left -= *window;
            time += self.rtt;
            *window *= 2.0;
        }
        // A path without limit and without delay takes no time.
        let steady = if self.rate[end].is_finite() {
            left / self.rate[end]
        } else {
            0.0
        };
        let stalls = self.stalls(end, bytes);
        self.last[end] = from + time + steady + stalls;
        time + steady + self.rtt / 2.0 + stalls
    }

    /// Seconds in which an end puts so much onto its access path.
    pub fn leaves(&self, end: usize, bytes: u64) -> f64 {
        bytes as f64 / self.access[end]
    }

    /// Seconds of time-outs that a transfer is expected to have: a loss ends in one where fewer than three
    /// segments follow in the window, and those that follow are longer (Padhye et al., SIGCOMM 1998, eq. 29).
    fn stalls(&self, end: usize, bytes: u64) -> f64 {
        let (p, segment) = (self.loss[end], self.segment[end]);
        if p <= 0.0 {
            return 0.0;
        }
        let segments = bytes.div_ceil(segment) as f64;
        let window = (self.rate[end] * self.rtt / segment as f64).max(1.0);
        let ends_so = (3.0 / window.min(segments)).min(1.0);
        segments * p * ends_so * (1.0 + 32.0 * p * p) * (self.rtt + RTO_MIN)
    }
}

/// More loss than this is taken for this: nothing would ever arrive.
const MOST_LOSS: f64 = 0.5;

/// What TCP gets through a receive window, bytes per second: its whole segments once a round trip, which is
/// as long as it takes for what is acknowledged together to get there. A window of fewer segments than that
/// waits for the acknowledgement's timer.
fn under_window(window: u64, segment: u64, every: f64, rtt: f64, path: f64) -> f64 {
    let whole = (window / segment * segment).max(window.min(segment)) as f64;
    let first = (every * segment as f64).min(whole);
    let held = if whole < every * segment as f64 {
        ACK_DELAY
    } else {
        0.0
    };
    whole / (rtt + first / path + held)
}

/// What TCP gets through independent loss, bytes per second: the larger of Reno's mean window, the square
/// root of 3/(2p) segments (Mathis et al., CCR 27(3), 1997), and CUBIC's (RFC 9438, section 5.1).
fn under_loss(segment: u64, rtt: f64, loss: f64) -> f64 {
    if loss <= 0.0 || rtt <= 0.0 {
        return f64::INFINITY;
    }
    let reno = (1.5 / loss).sqrt();
    // 1.054 (rtt / p)^(3/4) segments.
    let root = (rtt / loss).sqrt();
    let cubic = 1.054 * root * root.sqrt();
    segment as f64 * reno.max(cubic) / rtt
}

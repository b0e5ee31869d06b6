//! Sending rates of the two ends of a connection.

use swell_base::Rate;

use super::network::Network;
use crate::{Connection, Model, Session};

/// Payload of a full segment if the model does not say.
const FULL: u64 = 1448;
/// Segments of the initial window (RFC 6928).
pub(crate) const INITIAL_WINDOW: u64 = 10;
/// Time that Linux delays an ACK to wait for more data or for data of its own (`TCP_DELACK_MIN`), seconds.
pub(crate) const ACK_DELAY: f64 = 0.04;
/// Linux's minimum RTO above the RTT, seconds (`TCP_RTO_MIN`), and the first one of a SYN (RFC 6298).
const RTO_MIN: f64 = 0.2;
const SYN_RTO: f64 = 1.0;
/// Headers of IPv4 and TCP; IPv6 has 20 bytes more.
const TCP_HEADERS: f64 = 40.0;
pub(crate) const IPV6_MORE: f64 = 20.0;
/// TCP timestamps, padded (RFC 7323, appendix A).
const TIMESTAMPS: f64 = 12.0;

/// Payload of a full segment of an end.
pub(crate) fn full(connection: &Connection, end: usize) -> u64 {
    match connection.wire.ends[end].mss {
        0 => FULL,
        mss => u64::from(mss),
    }
}

/// Network-layer bytes of a TCP segment in addition to its payload.
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

/// Full segments per ACK of an end, in the long run.
pub(crate) fn ack_every(connection: &Connection, end: usize) -> f64 {
    match connection.wire.ends[end].ack_every {
        0 => 2.0,
        every => f64::from(every),
    }
}

/// Number of segments that an end acknowledges individually at first.
pub(crate) fn quick_acks(connection: &Connection, end: usize) -> f64 {
    match connection.wire.ends[end].quick_acks {
        Some(u8::MAX) => f64::INFINITY,
        Some(n) => f64::from(n),
        // Linux's behaviour if the model does not say.
        None => 16.0,
    }
}

/// The parameters of the sending rates; pairs are of the client and of the server.
#[derive(Clone)]
pub(super) struct Pace {
    /// End-to-end RTT, seconds, and the hosts' own part of it.
    pub rtt: f64,
    pub own_rtt: f64,
    /// Duration of the handshake, including expected losses of SYNs, seconds.
    pub handshake: f64,
    /// Share of the segments lost end to end.
    loss: [f64; 2],
    /// Payload of their segments.
    segment: [u64; 2],
    /// Steady rate, bytes of payload per second.
    pub rate: [f64; 2],
    /// Rate of the narrowest link of the path, and of their own access link.
    pub path: [f64; 2],
    access: [f64; 2],
    /// Bytes that an end may have in flight before it must wait for ACKs: an initial window, or the
    /// receive window if that is smaller.
    pub at_once: [u64; 2],
    /// Congestion windows, bytes, and when each end last sent.
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
        // A link also carries headers.
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

    /// Seconds from the departure of the first byte, at `from`, to the arrival of the last.
    pub fn transfer(&mut self, end: usize, bytes: u64, from: f64) -> f64 {
        let (mut left, mut time) = (bytes as f64, 0.0);
        let initial = (INITIAL_WINDOW * self.segment[end]) as f64;
        let window = &mut self.window[end];
        // After an idle time of a time-out, slow start begins again (RFC 9293 section 3.8.6.2.2).
        if from - self.last[end] > self.rtt + RTO_MIN {
            *window = initial;
        }
        while left > *window && *window < self.rate[end] * self.rtt {
            left -= *window;
            time += self.rtt;
            *window *= 2.0;
        }
        // A path without limit and delay takes no time.
        let steady = if self.rate[end].is_finite() {
            left / self.rate[end]
        } else {
            0.0
        };
        let stalls = self.stalls(end, bytes);
        self.last[end] = from + time + steady + stalls;
        time + steady + self.rtt / 2.0 + stalls
    }

    /// Seconds that an end takes to put `bytes` onto its access link.
    pub fn leaves(&self, end: usize, bytes: u64) -> f64 {
        bytes as f64 / self.access[end]
    }

    /// Expected seconds of time-outs of a transfer. A loss leads to a time-out if fewer than three
    /// segments follow in the window. Repeated time-outs back off (Padhye et al., SIGCOMM 1998, eq. 29).
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

/// Maximum loss: with more, nothing would ever arrive.
const MOST_LOSS: f64 = 0.5;

/// TCP throughput through a receive window, bytes per second: the window's whole segments once per RTT.
/// The RTT includes the transmission time of the segments that are acknowledged together. A window with
/// fewer segments than that waits for the delayed-ACK timer.
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

/// TCP throughput under independent loss, bytes per second. It uses the larger of Reno's mean window, the
/// square root of 3/(2p) segments (Mathis et al., CCR 27(3), 1997), and CUBIC's (RFC 9438, section 5.1).
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

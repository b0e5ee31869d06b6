//! The end of a connection or flow: what it becomes in the model.

use swell_base::Dur;
use swell_traffic::{Connection, Exchange, Wire};

use super::{Learner, UDP_IDLE};
use crate::hosts::Sample;
use crate::table::{ClosedConnection, State};
use crate::tcp::Tracked;
use crate::users::Talk;

/// An unanswered attempt is over when no further SYN can come. Linux `tcp_syn_retries` = 6: pauses of up
/// to 64 s.
const UNANSWERED: u64 = 75_000_000_000;
/// A closed TCP connection waits this long for late packets before it is recorded …
pub(super) const LINGER: u64 = 2_000_000_000;
/// … and its ports are remembered this long, so that later packets do not open a new connection.
const TOMBSTONE: u64 = 60_000_000_000;
/// Idle time after which a TCP connection ends: 15 minutes.
const TCP_IDLE: u64 = 900_000_000_000;

impl Learner {
    /// Ends a flow that has been idle too long.
    #[inline]
    pub(crate) fn look_after(&mut self, i: u32) {
        let s = self.table.get(i);
        let idle = self.now.saturating_sub(s.last);
        match &s.state {
            State::Asked(_) => {
                if idle > UNANSWERED {
                    self.close(i);
                }
            }
            State::Tcp(t) => {
                if idle > LINGER && s.closed || idle > UNANSWERED && t.attempt() || idle > TCP_IDLE
                {
                    self.close(i);
                }
            }
            State::Udp(_) => {
                if idle > UDP_IDLE {
                    self.close(i);
                    self.table.release(i);
                }
            }
            State::Closed(_) => {
                if idle > TOMBSTONE {
                    self.table.release(i);
                }
            }
            State::Free => {}
        }
    }

    /// Records the flow in a slot and leaves a tombstone.
    pub(crate) fn close(&mut self, i: u32) {
        let s = self.table.get_mut(i);
        let ended = match &s.state {
            State::Asked(a) => ClosedConnection {
                isn: Some(a.header.seq),
                ends: [Some(a.header.seq.wrapping_add(1)), None],
            },
            State::Tcp(t) => ClosedConnection {
                isn: t.client_isn(),
                ends: [0, 1].map(|end| t.halves[end].end()),
            },
            _ => ClosedConnection::default(),
        };
        let state = std::mem::replace(&mut s.state, State::Closed(Box::new(ended)));
        let (hosts, place) = (s.hosts, s.place.take());
        let ipv6 = s.key.ipv6();
        let mut last = s.last;
        let mut own = Talk::default();
        let connection = match state {
            State::Asked(a) => {
                last = a.at;
                let t = a.tracked(self.options.parameters.quiet.as_nanos());
                self.tcp_connection(&t, hosts, ipv6)
            }
            State::Tcp(t) => {
                last = t.last_active();
                self.granted -= t.chunks.granted();
                let rtt = t.rtt[1].unwrap_or(0);
                own = Talk {
                    spans: t.chunks.spans(t.start, t.ready(), rtt),
                    dues: t.chunks.dues(t.ready()),
                    due: t.chunks.due(),
                    rtt,
                    opens: !t.left_censored(),
                    leads: false,
                };
                self.tcp_connection(&t, hosts, ipv6)
            }
            State::Udp(flow) => {
                // What it was granted are items of the session from now on, if they are kept.
                self.granted -= flow.granted();
                let right_censored = self.now.saturating_sub(flow.last) <= UDP_IDLE;
                let overtaken = flow.overtaken;
                let talk = flow.talk.as_ref().and_then(|t| t.finish(ipv6));
                if let Some(doubt) = flow.talk.as_ref().and_then(|t| t.doubt()) {
                    let sum = &mut self.counts.no_talks[doubt as usize];
                    *sum = [sum[0] + 1, sum[1] + flow.bytes];
                }
                if let Some(talk) = flow.talk.as_ref().filter(|_| talk.is_some()) {
                    if talk.merged() {
                        self.counts.merged(flow.bytes, talk.larger());
                    }
                    for (end, rtt) in [(1, talk.rtt[0]), (0, talk.rtt[1])] {
                        if let Some(rtt) = rtt {
                            self.hosts
                                .sample(hosts[end], Sample::Data, rtt / 1000, flow.start);
                        }
                    }
                    for (sending, host) in talk.sending.iter().zip(hosts) {
                        self.hosts.paced(host, sending, flow.last);
                    }
                    for (rates, host) in talk.rates.iter().zip(hosts) {
                        for &(rate, at) in rates {
                            self.hosts.sample(host, Sample::Up, rate, at);
                        }
                    }
                }
                let plain = Wire {
                    ipv6,
                    ..Wire::default()
                };
                if talk.is_some() {
                    last = flow.active();
                }
                let (exchange, wire) = talk.unwrap_or_else(|| {
                    let bytes = flow.bytes;
                    let (datagrams, moved) = flow.finish();
                    self.counts.spaced(bytes, moved);
                    (Exchange::Datagrams(datagrams), plain)
                });
                Some(Connection {
                    gap: Dur::ZERO,
                    server: hosts[1],
                    overlap: overtaken.and_then(|passed| passed.units(&exchange)),
                    exchange,
                    client_window: 0,
                    server_window: 0,
                    wire,
                    writes: Default::default(),
                    waits: Vec::new(),
                    left_censored: false,
                    right_censored,
                })
            }
            State::Closed(_) | State::Free => return,
        };
        if let Some(place) = place {
            self.users.talked(place, own);
            let thinner = &mut self.thinner;
            self.users
                .end(place, connection, last, &mut |session, delays| {
                    thinner.push_with(session, delays)
                });
        }
    }

    fn tcp_connection(&mut self, t: &Tracked, hosts: [u32; 2], ipv6: bool) -> Option<Connection> {
        for from in [0, 1] {
            let h = &t.halves[from];
            self.hosts.losses(
                hosts[from],
                hosts[1 - from],
                h.packets,
                h.lost_before,
                h.lost_beyond,
            );
            if t.halves[1 - from].window.held() {
                (self.hosts).held_back(hosts[from], hosts[1 - from], h.packets);
            }
            let last = h.last_at().unwrap_or(t.start);
            self.hosts.paced(hosts[from], &h.sending, last);
            if let Some(least) = t.echo(from) {
                (self.hosts).sample(hosts[from], Sample::Echo, least.took / 1000, least.at);
            }
        }
        self.counts.tcp(t);
        self.totals.tcp_handshakes += u64::from(t.handshake);
        let (exchange, writes) = if t.attempt() {
            let attempt = Exchange::Attempt {
                retries: t
                    .syns
                    .windows(2)
                    .map(|w| Dur::from_nanos(w[1] - w[0]))
                    .collect(),
                refused: t.reset.is_some(),
            };
            (attempt, Default::default())
        } else {
            if t.left_censored() && t.chunks.is_empty() {
                self.counts.strays += 1;
                return None;
            }
            t.chunks.exchange(t.ready())
        };
        Some(Connection {
            gap: Dur::ZERO,
            server: hosts[1],
            overlap: t.overtaken.and_then(|passed| passed.units(&exchange)),
            exchange,
            client_window: t.halves[0].window.cap(),
            server_window: t.halves[1].window.cap(),
            wire: t.wire(ipv6),
            writes,
            waits: Vec::new(),
            left_censored: t.left_censored(),
            right_censored: !t.closed() && !t.attempt(),
        })
    }
}

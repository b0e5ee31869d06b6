//! The client side of connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SendFlags, SocketType, recv, send, sockopt};
use swell_traffic::flowlevel::Transfer;

use super::connect::{Ends, Marks, begin_connect, mark, socket};
use super::flow::{Flow, Outcome};
use super::paced::Paced;
use super::playing::Playing;
use super::state::{CHUNK, Conn, State, seconds};
use super::wire::{HEADER, Message, Request};
use super::worker::Worker;
use swell_host::sys::tcp as sys;

/// Most reads or writes on one connection before others are served.
const TURNS: u32 = 8;
/// If the process dies, a connection that still has to send more than this is reset and not finished by the kernel.
pub(super) const LARGE: u64 = 64 << 10;

impl Worker {
    /// Begins a transfer, on the connection that its session has kept or on a new one.
    pub fn transfer(&mut self, due: &Transfer, ends: Ends) {
        self.counts.begun += 1;
        let begun = self.since_begun();
        let Some(playing) = &mut self.playing else {
            return;
        };
        let (keep, generation) = (playing.keeps(), playing.begin());
        let kept = playing.take_kept(due.session);
        let flow = Flow {
            session: u32::try_from(due.session).unwrap_or(u32::MAX),
            due: due.at.as_nanos(),
            begun,
            source: ends.from.unwrap_or(any(ends.to)),
            destination: ends.to.ip(),
            ..Flow::default()
        };
        // The header is the first part of the upload. On a kept connection the server marks the end of an upload with
        // one byte.
        let request = [due.up.max(HEADER as u64), due.down.max(u64::from(keep))];
        let limits = due
            .limits
            .map(|l| l.map_or(0, |rate| (rate.bps() / 8).max(1)));
        if let Some(token) = kept {
            let same = self.conns.get_mut(token).is_some_and(|conn| {
                // Several servers may share an address.
                conn.party == ends.server
                    && conn.flow.destination == flow.destination
                    && conn.flow.source == flow.source
            });
            if same {
                self.reuse(token, flow, generation, request, limits);
                return;
            }
            self.forget(token);
        }
        let Some(turns) = &mut self.playing else {
            return;
        };
        let marks = turns.marks(self.shared.config.congestion.len());
        let fd = match self.open(ends, request[0], marks) {
            Ok(fd) => fd,
            Err(error) => {
                self.failed(error);
                self.counts.failed += 1;
                self.log(flow, Outcome::Failed, self.since_begun());
                self.transfer_over(due.session, generation, Outcome::Failed);
                return;
            }
        };
        self.counts.connections += 1;
        let token = self.conns.insert(Conn {
            keep,
            party: ends.server,
            marks,
            session: due.session,
            generation,
            to_send: request[0],
            to_receive: request[1],
            paced: Paced::new(limits[0], self.now()),
            limit: limits[1],
            flow,
            ..Conn::new(fd, State::Waiting, self.now())
        });
        self.connect(token);
    }

    /// Connects as soon as the rate limit allows. It must not hold up a connection later, before its header has left: the
    /// server closes connections without a header after some seconds. So the header is charged now.
    fn connect(&mut self, token: u64) {
        if self.allowed(token, HEADER).is_none() {
            return;
        }
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        conn.state = State::Connecting;
        let (server, address) = (usize::from(conn.party), conn.flow.destination);
        let servers = self.playing.as_ref().map_or(&[][..], Playing::servers);
        let port = servers.get(server).map_or(0, |s| s.address.port());
        self.pay(HEADER as u64);
        let connecting = self.watch(token).and_then(|()| {
            let to = SocketAddr::new(address, port);
            let there = self.conns.get_mut(token);
            there.map_or(Ok(()), |c| begin_connect(&c.fd, &to))
        });
        if let Err(error) = connecting {
            self.failed(error);
            self.over(token, Outcome::Failed);
        }
    }

    /// A socket that is ready to connect.
    fn open(&mut self, ends: Ends, up: u64, marks: Marks) -> Result<OwnedFd> {
        let socket = socket(ends.to.ip(), ends.from, SocketType::STREAM)?;
        let fd = socket.as_fd();
        if up > LARGE {
            sockopt::set_socket_linger(fd, Some(Duration::ZERO))?;
        }
        self.mark(fd, ends.to.is_ipv6(), marks)?;
        Ok(socket)
    }

    /// Sets a socket's DSCP and congestion control.
    pub fn mark(&mut self, fd: BorrowedFd<'_>, ipv6: bool, marks: Marks) -> Result<()> {
        let refused = mark(fd, ipv6, marks, &self.shared.config.congestion)?;
        self.counts.congestion_refused += u64::from(refused);
        Ok(())
    }

    fn reuse(
        &mut self,
        token: u64,
        flow: Flow,
        generation: u32,
        [up, down]: [u64; 2],
        limits: [u64; 2],
    ) {
        let now = self.now();
        if let Some(conn) = self.conns.get_mut(token) {
            conn.state = State::Sending;
            conn.generation = generation;
            conn.to_send = up;
            conn.to_receive = down;
            conn.paced = Paced::new(limits[0], now);
            conn.limit = limits[1];
            conn.progress = seconds(now);
            conn.flow = Flow {
                reused: true,
                connected: flow.begun,
                ..flow
            };
        }
        self.client_sends(token);
    }

    /// Handles events that the kernel reports for a client's connection.
    pub fn client_news(&mut self, token: u64, flags: EventFlags) {
        let at = self.since_begun();
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        match conn.state {
            State::Waiting => self.connect(token),
            State::Connecting => {
                if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
                    self.client_reset(token);
                    return;
                }
                if !flags.contains(EventFlags::OUT) {
                    return;
                }
                conn.state = State::Sending;
                conn.flow.connected = at;
                self.client_sends(token);
            }
            State::Sending => {
                if flags.intersects(EventFlags::ERR | EventFlags::HUP | EventFlags::RDHUP) {
                    self.client_reset(token);
                    return;
                }
                self.client_sends(token);
            }
            State::Receiving => self.client_receives(token, flags),
            // The server closed a kept connection, or sent data without a request.
            State::Idle if flags.intersects(EventFlags::RDHUP | EventFlags::IN) => {
                let session = conn.session;
                self.forget(token);
                if let Some(playing) = &mut self.playing {
                    playing.lost_kept(session, token);
                }
            }
            _ => {}
        }
    }

    fn client_reset(&mut self, token: u64) {
        let error = self.conns.get_mut(token).and_then(|conn| {
            let error = sockopt::socket_error(&conn.fd).ok()?;
            error.err()
        });
        self.failed(error.unwrap_or(Errno::CONNRESET));
        self.over(token, Outcome::Failed);
    }

    /// Sends as much as the kernel accepts: first the header, then filler.
    fn client_sends(&mut self, token: u64) {
        let now = self.now();
        let key = self.shared.config.key;
        let own = self.playing.as_ref().map_or(0, Playing::index);
        for _ in 0..TURNS {
            // Usually the whole header is sent at once. If the kernel is short of memory, it may accept less.
            let left = |c: &mut Conn| (HEADER as u64).saturating_sub(c.flow.up) as usize;
            let sending = self.conns.get_mut(token).filter(|c| c.to_send > 0);
            let Some((header, reused)) = sending.map(|c| (left(c), c.flow.reused)) else {
                break;
            };
            let charged = if reused { 0 } else { header };
            let budget = self.shared.config.limits.budget.as_ref();
            let allowed = match budget {
                // The header was charged before connecting; it leaves at once.
                Some(budget) if charged > 0 => budget.room().unwrap_or(0).min(CHUNK),
                _ if header > 0 => match self.allowed(token, CHUNK) {
                    Some(allowed) => allowed,
                    None => return,
                },
                _ => match self.in_pace(token, CHUNK) {
                    Some(allowed) => allowed,
                    None => return,
                },
            };
            let Some(conn) = self.conns.get_mut(token) else {
                return;
            };
            if header > 0 {
                let message = Message::Request(Request {
                    client: own,
                    keep: conn.keep,
                    dscp: conn.marks.dscp,
                    congestion: conn.marks.congestion,
                    limit: conn.limit,
                    up: conn.flow.up + conn.to_send - HEADER as u64,
                    down: conn.to_receive,
                });
                self.payload[..HEADER].copy_from_slice(&message.encode(&key));
            }
            let from = HEADER - header;
            let mut n = conn.to_send.min((allowed + header) as u64) as usize;
            // What follows the header keeps to the connection's own rate.
            if header > 0 && conn.paced.is_some() {
                n = header;
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(&conn.fd, &self.payload[from..from + n], flags) {
                Ok(sent) => {
                    conn.to_send -= sent as u64;
                    conn.flow.up += sent as u64;
                    conn.progress = seconds(now);
                    // The header leaves at once. At a byte per second, waiting for it would be a stall.
                    if let Some(paced) = &mut conn.paced {
                        paced.sent(sent.saturating_sub(header) as u64, now);
                    }
                    self.counts.sent_bytes += sent as u64;
                    self.pay(sent.saturating_sub(charged) as u64);
                }
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    self.failed(error);
                    self.over(token, Outcome::Failed);
                    return;
                }
            }
        }
        match self.conns.get_mut(token) {
            Some(conn) if conn.to_send == 0 => conn.state = State::Receiving,
            _ => self.later(token),
        }
    }

    fn client_receives(&mut self, token: u64, flags: EventFlags) {
        let now = self.now();
        let at = self.since_begun();
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        for _ in 0..TURNS {
            let asked = conn.to_receive.clamp(1, self.sink.len() as u64) as usize;
            let how = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
            match recv(&conn.fd, &mut self.sink[..asked], how).map(|(_, n)| n) {
                Ok(0) => {
                    let outcome = if conn.to_receive == 0 {
                        Outcome::Done
                    } else {
                        self.failed(Errno::CONNRESET);
                        Outcome::Failed
                    };
                    self.over(token, outcome);
                    return;
                }
                Ok(n) => {
                    if conn.flow.first == 0 {
                        conn.flow.first = at;
                    }
                    conn.flow.down += n as u64;
                    conn.progress = seconds(now);
                    self.counts.received_bytes += n as u64;
                    let Some(left) = conn.to_receive.checked_sub(n as u64) else {
                        self.failed(Errno::PROTO);
                        self.over(token, Outcome::Failed);
                        return;
                    };
                    conn.to_receive = left;
                    if left == 0 && conn.keep {
                        self.over(token, Outcome::Done);
                        return;
                    }
                    // After the last byte only the FIN follows, which the kernel has already reported.
                    if left == 0 && flags.contains(EventFlags::RDHUP) {
                        self.over(token, Outcome::Done);
                        return;
                    }
                    // The socket was empty; epoll reports later data.
                    if left > 0 && n < asked && !flags.contains(EventFlags::RDHUP) {
                        return;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    self.failed(error);
                    self.over(token, Outcome::Failed);
                    return;
                }
            }
        }
        self.later(token);
    }

    /// Ends a transfer.
    pub fn over(&mut self, token: u64, outcome: Outcome) {
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        match outcome {
            Outcome::Done => self.counts.done += 1,
            Outcome::Failed => self.counts.failed += 1,
            Outcome::Unfinished => self.counts.unfinished += 1,
        }
        let mut flow = conn.flow;
        if self.shared.config.room > 0
            && let Ok(facts) = sys::facts(conn.fd.as_fd())
        {
            flow.rtt = facts.min_rtt;
            flow.again = facts.retransmissions.saturating_sub(conn.again);
            conn.again = facts.retransmissions;
        }
        let (session, generation) = (conn.session, conn.generation);
        let keep = conn.keep && outcome == Outcome::Done;
        self.log(flow, outcome, self.since_begun());
        let mut playing = self.playing.as_mut().filter(|_| keep);
        if playing.as_mut().is_some_and(|p| p.keep(session, token)) {
            if let Some(kept) = self.conns.get_mut(token) {
                kept.state = State::Idle;
            }
        } else {
            self.forget(token);
        }
        self.transfer_over(session, generation, outcome);
    }

    /// Records a flow that ended at `end`, in nanoseconds since the run began.
    pub fn log(&mut self, mut flow: Flow, outcome: Outcome, end: u64) {
        if self.shared.config.room > 0 {
            flow.outcome = outcome;
            flow.end = end;
            self.over.push(flow);
        }
    }
}

/// The unspecified address of the same family.
fn any(to: SocketAddr) -> IpAddr {
    if to.is_ipv6() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

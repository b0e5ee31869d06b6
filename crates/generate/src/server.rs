//! The server side: answers requests that carry the run's key.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::epoll::{self, EventFlags};
use rustix::io::{Errno, Result};
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, acceptfrom_with, bind, getsockname,
    listen, recv, send, shutdown, sockopt,
};
use swell_base::Dur;

use super::client::LARGE;
use super::config::Role;
use super::connect::{Marks, mark};
use super::flow::{Flow, Outcome};
use super::paced::Paced;
use super::state::{Answerer, CHUNK, Conn, DATAGRAMS, LISTENER, State, Wake, seconds};
use super::wire::{HEADER, Message, Request, plain};
use super::worker::Worker;
use swell_host::sys::datagrams as sys;
use swell_sockets::{Here, Sockets, family};

/// Length of the listen queue. The kernel caps it at `net.core.somaxconn`, 4096 by default.
const BACKLOG: i32 = 4096;
/// Most accepts, and most reads or writes on one connection, before others are served.
const ACCEPTS: u32 = 128;
const TURNS: u32 = 8;
/// Delay before connections are accepted again after descriptors ran out.
const RETRY: Dur = Dur::from_millis(100);
/// The kernel holds back a connection without data for up to this many seconds (tcp(7), `TCP_DEFER_ACCEPT`). Clients
/// send first, so most probes by strangers never reach the process.
const SILENCE: u32 = 3;

/// Most ports that are tried where any port will do.
const CHOICES: u32 = 100;

impl Worker {
    /// Opens the run's listening sockets. All threads share a port.
    pub fn listen(&mut self) -> Result<()> {
        let Role::Server(server) = &self.shared.config.role else {
            return Ok(());
        };
        let taken = self.shared.port.load(Ordering::Acquire);
        let asked = if taken == 0 { server.port } else { taken };
        if taken == 0 && asked != 0 {
            // Threads share the port (socket(7), `SO_REUSEPORT`), but other runs must not.
            drop(bound(SocketType::STREAM, asked, false)?);
        }
        let [listener, datagrams] = pair(asked)?;
        sys::defer_accept(listener.as_fd(), SILENCE)?;
        listen(&listener, BACKLOG)?;
        let port = SocketAddr::try_from(getsockname(&listener)?)?.port();
        self.shared.port.store(port, Ordering::Release);
        super::datagrams::roomy(&datagrams)?;
        sys::tell_destination(datagrams.as_fd())?;
        self.shared.datagram_port.store(port, Ordering::Release);
        let what = EventFlags::IN | EventFlags::ET;
        for (fd, token) in [(&listener, LISTENER), (&datagrams, DATAGRAMS)] {
            epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), what)?;
        }
        self.answerer = Some(Answerer {
            listener,
            datagrams,
            pausing: false,
        });
        Ok(())
    }

    /// Tries to accept again, since descriptors may be available.
    pub fn accept_again(&mut self) {
        if let Some(answerer) = &mut self.answerer {
            answerer.pausing = false;
        }
        self.accept();
    }

    /// Accepts connections whose first bytes have arrived.
    pub fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let Some(answerer) = &mut self.answerer else {
                return;
            };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match acceptfrom_with(&answerer.listener, flags) {
                Ok((socket, peer)) => {
                    let peer = peer.and_then(|p| SocketAddr::try_from(p).ok());
                    self.accepted(socket, peer.map(|p| plain(p.ip())));
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    self.counts.without_descriptors += 1;
                    // At most one retry is in the queue.
                    let paused = std::mem::replace(&mut answerer.pausing, true);
                    if !paused {
                        let at = self.now() + RETRY;
                        self.queue.push(at, Wake::Accept);
                    }
                    return;
                }
                // The error concerns only that connection (accept(2), "Error handling").
                Err(_) => {}
            }
        }
        self.ready.push_back(LISTENER);
    }

    fn accepted(&mut self, fd: OwnedFd, peer: Option<IpAddr>) {
        let Some(peer) = peer.filter(|&p| self.shared.may_anybody_come(p)) else {
            self.counts.strangers += 1;
            if let Some(stranger) = peer {
                self.shared.refuse(stranger);
            }
            return;
        };
        let mut header = [0; HEADER];
        let got = match recv(&fd, &mut header, RecvFlags::DONTWAIT).map(|(_, n)| n) {
            Err(Errno::AGAIN) => 0,
            Ok(0) | Err(_) => {
                self.counts.strangers += 1;
                return;
            }
            Ok(n) => n,
        };
        let message = (got == HEADER).then(|| Message::decode(&header, &self.shared.config.key));
        match message {
            Some(None) => {
                self.counts.strangers += 1;
                return;
            }
            // Fast path: most transfers are small. The answer fits into the kernel's buffer, so it is sent at once
            // and no connection state is needed.
            Some(Some(Message::Request(r)))
                if r.up == 0
                    && !r.keep
                    && r.down <= LARGE
                    && r.limit == 0
                    && !self.is_limited() =>
            {
                if !self.may_ask(&r, peer) {
                    return self.count_refused(&r, peer);
                }
                self.counts.connections += 1;
                self.counts.begun += 1;
                self.counts.received_bytes += HEADER as u64;
                let marked = self.mark(fd.as_fd(), peer.is_ipv6(), marks_of(&r));
                if marked.is_err() {
                    self.counts.failed += 1;
                    return;
                }
                let part = &self.payload[..r.down as usize];
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                let sent = if part.is_empty() {
                    Ok(0)
                } else {
                    send(&fd, part, flags)
                };
                match sent {
                    Ok(n) if n == part.len() => {
                        self.counts.sent_bytes += n as u64;
                        self.counts.done += 1;
                    }
                    Ok(n) => {
                        self.counts.sent_bytes += n as u64;
                        let left = r.down - n as u64;
                        self.keep_conn(fd, peer, r.client, State::Giving, [left, 0]);
                    }
                    Err(Errno::AGAIN) => {
                        self.keep_conn(fd, peer, r.client, State::Giving, [r.down, 0]);
                    }
                    Err(_) => self.counts.failed += 1,
                }
                return;
            }
            _ => {}
        }
        let Some(token) = self.keep_conn(fd, peer, 0, State::Header, [0, 0]) else {
            return;
        };
        if got > 0 {
            self.partial.insert(token, (got, header));
            self.server_news(token);
        }
    }

    /// Whether the agent's sending rate is limited, so that sending may have to wait.
    fn is_limited(&self) -> bool {
        self.shared.config.limits.budget.is_some()
    }

    /// Whether a request is permitted.
    fn may_ask(&self, request: &Request, peer: IpAddr) -> bool {
        self.shared.may_come(request.client, peer) && self.shared.is_here(request.client)
    }

    /// Counts a request that is not permitted. One that a client sent last may arrive after its bye.
    fn count_refused(&mut self, request: &Request, peer: IpAddr) {
        if self.shared.may_come(request.client, peer) && self.shared.has_ended(request.client) {
            self.counts.begun += 1;
            self.counts.unfinished += 1;
        } else {
            self.counts.strangers += 1;
        }
    }

    /// Adds a connection; `None` if the kernel refuses to watch it.
    pub fn keep_conn(
        &mut self,
        fd: OwnedFd,
        peer: IpAddr,
        party: u16,
        state: State,
        [to_send, to_receive]: [u64; 2],
    ) -> Option<u64> {
        let flow = Flow {
            source: peer,
            ..Flow::default()
        };
        let token = self.conns.insert(Conn {
            party,
            to_send,
            to_receive,
            flow,
            ..Conn::new(fd, state, self.now())
        });
        if let Err(error) = self.watch(token) {
            self.failed(error);
            // A transfer was counted as begun if it already sends.
            self.counts.failed += u64::from(state == State::Giving);
            self.forget(token);
            return None;
        }
        Some(token)
    }

    /// Continues with a connection until the kernel would block.
    pub fn server_news(&mut self, token: u64) {
        for _ in 0..TURNS {
            let Some(conn) = self.conns.get_mut(token) else {
                return;
            };
            let goes_on = match conn.state {
                State::Header => self.server_reads_header(token),
                State::Taking => self.server_takes(token),
                State::Giving => self.server_gives(token),
                State::Ending => self.server_ends(token),
                _ => false,
            };
            if !goes_on {
                return;
            }
        }
        self.later(token);
    }

    fn server_reads_header(&mut self, token: u64) -> bool {
        let (mut got, mut header) = self.partial.remove(&token).unwrap_or((0, [0; HEADER]));
        let Some(conn) = self.conns.get_mut(token) else {
            return false;
        };
        while got < HEADER {
            let read = recv(&conn.fd, &mut header[got..], RecvFlags::DONTWAIT);
            match read.map(|(_, n)| n) {
                Err(Errno::AGAIN) => {
                    if got > 0 {
                        self.partial.insert(token, (got, header));
                    }
                    return false;
                }
                Ok(0) | Err(_) if conn.keep && got == 0 => {
                    self.forget(token);
                    return false;
                }
                Ok(0) | Err(_) => {
                    self.refuse(token);
                    return false;
                }
                Ok(n) => got += n,
            }
        }
        let peer = conn.flow.source;
        let message = Message::decode(&header, &self.shared.config.key);
        match message {
            Some(Message::Request(r)) if self.may_ask(&r, peer) => self.granted(token, &r),
            Some(Message::Request(r)) => {
                self.count_refused(&r, peer);
                self.forget(token);
                false
            }
            Some(Message::Hello { client, nonce }) if self.shared.may_agree(client, peer) => {
                self.welcome(token, client, nonce);
                false
            }
            Some(Message::Hello { .. }) => {
                self.shared.refuse(peer);
                self.refuse(token);
                false
            }
            _ => {
                self.refuse(token);
                false
            }
        }
    }

    /// Closes the connection of a stranger.
    fn refuse(&mut self, token: u64) {
        self.counts.strangers += 1;
        self.forget(token);
    }

    fn granted(&mut self, token: u64, r: &Request) -> bool {
        let now = self.now();
        let Some(conn) = self.conns.get_mut(token) else {
            return false;
        };
        self.counts.connections += u64::from(!conn.keep);
        conn.party = r.client;
        conn.keep = r.keep;
        conn.to_receive = r.up;
        // If the connection stays open, one byte marks the end of an upload.
        conn.to_send = r.down.max(u64::from(r.keep));
        conn.paced = Paced::new(r.limit, now);
        conn.progress = seconds(now);
        conn.state = if r.up > 0 {
            State::Taking
        } else {
            State::Giving
        };
        self.counts.begun += 1;
        self.counts.received_bytes += HEADER as u64;
        self.prepare(token, r)
    }

    fn prepare(&mut self, token: u64, request: &Request) -> bool {
        let Some(conn) = self.conns.get_mut(token) else {
            return false;
        };
        let mut set = Ok(());
        if request.down > LARGE {
            set = sockopt::set_socket_linger(&conn.fd, Some(Duration::ZERO));
        }
        let names = &self.shared.config.congestion;
        let marked = set.and_then(|()| {
            let fd = conn.fd.as_fd();
            let ipv6 = conn.flow.source.is_ipv6();
            mark(fd, ipv6, marks_of(request), names)
        });
        match marked {
            Ok(refused) => self.counts.congestion_refused += u64::from(refused),
            Err(_) => self.drop_conn(token, Outcome::Failed, None),
        }
        marked.is_ok()
    }

    fn server_takes(&mut self, token: u64) -> bool {
        let now = self.now();
        let Some(conn) = self.conns.get_mut(token) else {
            return false;
        };
        if conn.to_receive == 0 {
            conn.state = State::Giving;
            return true;
        }
        let asked = conn.to_receive.min(self.sink.len() as u64) as usize;
        let how = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        match recv(&conn.fd, &mut self.sink[..asked], how).map(|(_, n)| n) {
            Err(Errno::AGAIN) => false,
            Ok(0) | Err(_) => {
                self.drop_conn(token, Outcome::Failed, None);
                false
            }
            Ok(n) => {
                conn.to_receive -= n as u64;
                conn.progress = seconds(now);
                self.counts.received_bytes += n as u64;
                true
            }
        }
    }

    fn server_gives(&mut self, token: u64) -> bool {
        let Some(conn) = self.conns.get_mut(token) else {
            return false;
        };
        if conn.to_send == 0 {
            self.counts.done += 1;
            if conn.keep {
                conn.state = State::Header;
                return true;
            }
            // If little was sent, the kernel completes the connection by itself after the close. Otherwise
            // `SO_LINGER` is set, so that a close would reset the connection. It is then closed only after its end
            // was confirmed.
            let lingers = sockopt::socket_linger(&conn.fd).is_ok_and(|l| l.is_some());
            if lingers && shutdown(&conn.fd, Shutdown::Write).is_ok() {
                conn.state = State::Ending;
                return true;
            }
            self.forget(token);
            return false;
        }
        self.server_sends(token)
    }

    /// Sends part of the pending data.
    fn server_sends(&mut self, token: u64) -> bool {
        let now = self.now();
        let Some(allowed) = self.in_pace(token, CHUNK) else {
            return false;
        };
        let Some(conn) = self.conns.get_mut(token) else {
            return false;
        };
        let n = conn.to_send.min(allowed as u64) as usize;
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match send(&conn.fd, &self.payload[..n], flags) {
            Ok(sent) => {
                conn.to_send -= sent as u64;
                conn.progress = seconds(now);
                if let Some(paced) = &mut conn.paced {
                    paced.sent(sent as u64, now);
                }
                self.counts.sent_bytes += sent as u64;
                self.pay(sent as u64);
                true
            }
            Err(Errno::AGAIN) => false,
            Err(_) => {
                self.drop_conn(token, Outcome::Failed, None);
                false
            }
        }
    }

    fn server_ends(&mut self, token: u64) -> bool {
        let Some(conn) = self.conns.get_mut(token) else {
            return false;
        };
        let how = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        match recv(&conn.fd, &mut self.sink[..1], how).map(|(_, n)| n) {
            Err(Errno::AGAIN) => {}
            _ => {
                self.forget(token);
            }
        }
        false
    }
}

/// Socket options for the server's end of a connection.
fn marks_of(request: &Request) -> Marks {
    Marks {
        dscp: request.dscp,
        congestion: request.congestion,
    }
}

/// A TCP and a UDP socket on the same port; on any port that both have free, if `asked` is 0. The kernel chooses a port
/// that is free for TCP, and another program may have a UDP socket there.
fn pair(asked: u16) -> Result<[OwnedFd; 2]> {
    let mut left = if asked == 0 { CHOICES } else { 1 };
    loop {
        let stream = bound(SocketType::STREAM, asked, true)?;
        let port = SocketAddr::try_from(getsockname(&stream)?)?.port();
        left -= 1;
        match bound(SocketType::DGRAM, port, true) {
            Err(Errno::ADDRINUSE) if left > 0 => {}
            datagrams => return Ok([stream, datagrams?]),
        }
    }
}

/// A socket on a port of all IPv6 and IPv4 addresses; IPv4 only if the kernel has no IPv6.
fn bound(kind: SocketType, port: u16, shared: bool) -> Result<OwnedFd> {
    let both: IpAddr = Ipv6Addr::UNSPECIFIED.into();
    let one: IpAddr = Ipv4Addr::UNSPECIFIED.into();
    let attempt = |address: IpAddr| {
        let socket = Here.socket(family(address), kind)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, false)?;
        }
        if kind == SocketType::STREAM {
            sockopt::set_socket_reuseaddr(&socket, true)?;
        }
        sockopt::set_socket_reuseport(&socket, shared)?;
        bind(&socket, &SocketAddr::new(address, port))?;
        Ok(socket)
    };
    match attempt(both) {
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => attempt(one),
        other => other,
    }
}

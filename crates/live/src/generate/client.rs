//! The client's side: sessions, and the transfers they make.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, Result};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketType, bind, connect, recv, send, sockopt,
};
use swell_base::{Dur, Time};
use swell_traffic::flowlevel::{Due, Share, Transfer};

use super::config::{Client, Target};
use super::datagrams::Source;
use super::flow::{Flow, Outcome};
use super::plan::{SharedPlan, Traffic};
use super::pool::Addresses;
use super::table::Table;
use super::wire::{HEADER, Message, Request};
use super::worker::{CHUNK, Conn, State, Worker, seconds};
use crate::sockets::{Here, Sockets, sys};

/// Writes and reads at one end before others have their turn.
const TURNS: u32 = 8;
/// A connection that sends more than this is reset, should the process die, and not finished by the kernel.
pub(super) const LARGE: u64 = 64 << 10;
/// A session that waits for its transfers tries one that was left out or failed again after this.
const WITHHELD: Dur = Dur::from_millis(100);

/// What one thread plays.
pub(super) struct Playing {
    client: Client,
    traffic: Option<Box<dyn Traffic>>,
    /// Connections that were kept, by session.
    idle: HashMap<u64, u64>,
    pub sources: Table<Source>,
    /// Transfers under way.
    under_way: u64,
    /// Connections so far, by which they take turns in code points and congestion controls.
    turn: u64,
}

impl Playing {
    pub fn new(client: &Client) -> Playing {
        Playing {
            client: client.clone(),
            traffic: None,
            idle: HashMap::new(),
            sources: Table::default(),
            under_way: 0,
            turn: 0,
        }
    }

    pub fn active(&self) -> u64 {
        self.traffic.as_ref().map_or(0, |t| t.active())
    }

    pub fn servers(&self) -> &[Target] {
        &self.client.servers
    }

    pub fn index(&self) -> u16 {
        self.client.index
    }

    /// Where host `n` of the destinations is: its server, and its address.
    fn destination(&self, n: u64) -> (u16, SocketAddr) {
        let servers = self.client.servers.len() as u64;
        let server = n % servers.max(1);
        let target = &self.client.servers[server as usize];
        let address = target.host(n / servers.max(1));
        (
            server as u16,
            SocketAddr::new(address, target.address.port()),
        )
    }

    /// The address of host `n` of the sources.
    fn source(&self, n: u64, ipv6: bool) -> Option<IpAddr> {
        self.client.pool.host_of(n, ipv6)
    }
}

impl Worker {
    /// The play begins, or goes on with another plan.
    pub fn set_plan(&mut self, plan: &SharedPlan) {
        let Some(begun) = self.shared.begun() else {
            if let Some(playing) = &mut self.playing {
                playing.client.plan = Arc::clone(plan);
            }
            return;
        };
        let threads = u32::from(self.shared.config.threads);
        self.shared.played[usize::from(self.number)].store(false, Ordering::Release);
        let now = Time::ZERO + self.now().since(begun);
        let Some(playing) = &mut self.playing else {
            return;
        };
        let changed = plan.model().is_some_and(|model| {
            let traffic = playing.traffic.as_mut();
            traffic.is_some_and(|t| t.change(model, now))
        });
        if !changed {
            let share = Share {
                // Evenly over the clients, however few sessions there are.
                index: u32::from(self.number) * u32::from(playing.client.of)
                    + u32::from(playing.client.index),
                of: u32::from(playing.client.of) * threads,
            };
            // What begins with the play begins at its very beginning.
            let now = if playing.traffic.is_none() {
                Time::ZERO
            } else {
                now
            };
            playing.traffic = Some(plan.part(share, now));
        }
    }

    /// The play begins.
    pub fn start(&mut self) {
        if let Some(playing) = &self.playing {
            let plan = Arc::clone(&playing.client.plan);
            self.set_plan(&plan);
        }
    }

    /// Ends all sources of datagrams, and closes what was kept.
    pub fn end_play(&mut self) {
        let Some(playing) = &mut self.playing else {
            return;
        };
        playing.traffic = None;
        let kept = std::mem::take(&mut playing.idle);
        let sources = playing.sources.tokens(|_| true);
        for token in kept.into_values() {
            self.forget(token);
        }
        for token in sources {
            self.source_over(token);
        }
    }

    /// When the next thing is due, on the clock of the run.
    pub fn next_due(&self) -> Option<Time> {
        let at = self.playing.as_ref()?.traffic.as_ref()?.poll_at()?;
        Some(self.shared.begun()? + at.since(Time::ZERO))
    }

    /// Begins what is due; true if some is left.
    pub fn play(&mut self, most: usize) -> bool {
        let Some(begun) = self.shared.begun() else {
            return false;
        };
        for _ in 0..most {
            let now = Time::ZERO + self.now().since(begun);
            let traffic = self.playing.as_mut().and_then(|p| p.traffic.as_mut());
            match traffic.and_then(|t| t.pop(now)) {
                Some(Due::Transfer(transfer)) => {
                    self.lateness.add(now.since(transfer.at));
                    self.transfer(&transfer);
                }
                Some(Due::Datagrams(source)) => self.source_begins(&source, begun),
                None => {
                    self.perhaps_played();
                    return false;
                }
            }
        }
        true
    }

    /// Server, address and source of what goes between two hosts, by rank.
    pub(super) fn ends_of(
        &self,
        source: u64,
        destination: u64,
    ) -> Option<(u16, SocketAddr, Option<IpAddr>)> {
        let playing = self.playing.as_ref()?;
        let (server, to) = playing.destination(destination);
        Some((server, to, playing.source(source, to.is_ipv6())))
    }

    fn transfer(&mut self, due: &Transfer) {
        let Some((server, to, from)) = self.ends_of(due.source, due.destination) else {
            return;
        };
        let session = due.session;
        if !self.shared.is_here(server) {
            self.counts.withheld += 1;
            let at = Time::from_nanos(self.since_begun()) + WITHHELD;
            if let Some(traffic) = self.playing.as_mut().and_then(|p| p.traffic.as_mut()) {
                traffic.ended(session, at);
            }
            return;
        }
        self.counts.begun += 1;
        let begun = self.since_begun();
        let Some(playing) = &mut self.playing else {
            return;
        };
        playing.under_way += 1;
        let (keep, turn) = (playing.client.play.keep, playing.turn);
        let dscp = in_turn(&playing.client.play.dscp, turn);
        let idle = playing.idle.remove(&session);
        playing.turn += 1;
        let flow = Flow {
            session: u32::try_from(session).unwrap_or(u32::MAX),
            due: due.at.as_nanos(),
            begun,
            source: from.unwrap_or(any(to)),
            destination: to.ip(),
            ..Flow::default()
        };
        // The header is the front of what goes up.
        let request = [due.up.max(HEADER as u64), due.down];
        if let Some(token) = idle {
            let same = self.conns.get_mut(token).is_some_and(|conn| {
                conn.flow.destination == flow.destination && conn.flow.source == flow.source
            });
            if same {
                self.reuse(token, flow, request);
                return;
            }
            self.forget(token);
        }
        let congestion = self.congestion_of(turn);
        let opened = self.open(to, from, request[0], dscp, congestion);
        let fd = match opened {
            Ok(fd) => fd,
            Err(error) => {
                self.failed(error);
                self.not_opened(session, flow);
                return;
            }
        };
        let conn = Conn {
            fd,
            state: State::Connecting,
            ready: false,
            keep,
            party: server,
            dscp,
            congestion,
            session,
            to_send: request[0],
            to_receive: request[1],
            progress: seconds(self.now()),
            flow,
        };
        self.counts.connections += 1;
        let token = self.conns.insert(conn);
        let connecting = self.watch(token).and_then(|()| {
            let there = self.conns.get_mut(token);
            there.map_or(Ok(()), |c| begin_connect(&c.fd, &to))
        });
        if let Err(error) = connecting {
            self.failed(error);
            self.over(token, Outcome::Failed);
        }
    }

    /// A socket that is ready to connect.
    fn open(
        &mut self,
        to: SocketAddr,
        from: Option<IpAddr>,
        up: u64,
        dscp: u8,
        congestion: u8,
    ) -> Result<OwnedFd> {
        let family = if to.is_ipv6() {
            AddressFamily::INET6
        } else {
            AddressFamily::INET
        };
        let socket = Here.socket(family, SocketType::STREAM)?;
        let fd = socket.as_fd();
        if let Some(from) = from {
            bind_to(fd, from)?;
        }
        if up > LARGE {
            sockopt::set_socket_linger(fd, Some(Duration::ZERO))?;
        }
        self.mark(fd, to.is_ipv6(), dscp, congestion)?;
        Ok(socket)
    }

    /// The code point of datagrams.
    pub(super) fn code_point(&self) -> u8 {
        let playing = self.playing.as_ref();
        playing.map_or(0, |p| in_turn(&p.client.play.dscp, 0))
    }

    pub(super) fn datagram_port_of(&self, server: u16) -> u16 {
        let servers = self.playing.as_ref().map(Playing::servers);
        let server = servers.and_then(|s| s.get(usize::from(server)));
        server.map_or(0, |s| s.datagrams)
    }

    fn congestion_of(&self, turn: u64) -> u8 {
        let names = self.shared.config.congestion.len() as u64;
        (turn % names.max(1)) as u8
    }

    /// Gives a socket its code point and congestion control.
    pub(super) fn mark(
        &mut self,
        fd: BorrowedFd<'_>,
        ipv6: bool,
        dscp: u8,
        congestion: u8,
    ) -> Result<()> {
        let refused = mark(fd, ipv6, dscp, &self.shared.config.congestion, congestion)?;
        self.counts.congestion_refused += u64::from(refused);
        Ok(())
    }

    /// A transfer for which there was no socket.
    fn not_opened(&mut self, session: u64, flow: Flow) {
        self.counts.failed += 1;
        self.log(flow, Outcome::Failed, self.since_begun());
        self.transfer_over(session, Outcome::Failed);
    }

    fn reuse(&mut self, token: u64, flow: Flow, [up, down]: [u64; 2]) {
        let now = self.now();
        if let Some(conn) = self.conns.get_mut(token) {
            conn.state = State::Sending;
            conn.to_send = up;
            conn.to_receive = down;
            conn.progress = seconds(now);
            conn.flow = Flow {
                reused: true,
                connected: flow.begun,
                ..flow
            };
        }
        self.client_sends(token, true);
    }

    /// The kernel has news of a client's connection.
    pub fn client_news(&mut self, token: u64, flags: EventFlags) {
        let at = self.since_begun();
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        match conn.state {
            State::Connecting => {
                if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
                    let error = sockopt::socket_error(&conn.fd);
                    let error = error.ok().and_then(std::result::Result::err);
                    self.failed(error.unwrap_or(Errno::CONNRESET));
                    self.over(token, Outcome::Failed);
                    return;
                }
                if !flags.contains(EventFlags::OUT) {
                    return;
                }
                conn.state = State::Sending;
                conn.flow.connected = at;
                self.client_sends(token, true);
            }
            State::Sending => {
                if flags.intersects(EventFlags::ERR | EventFlags::HUP | EventFlags::RDHUP) {
                    self.client_reset(token);
                    return;
                }
                self.client_sends(token, false);
            }
            State::Receiving => self.client_receives(token, flags),
            // The server closed what was kept, or sent what nobody asked for.
            State::Idle if flags.intersects(EventFlags::RDHUP | EventFlags::IN) => {
                let session = conn.session;
                self.forget(token);
                if let Some(playing) = &mut self.playing
                    && playing.idle.get(&session) == Some(&token)
                {
                    playing.idle.remove(&session);
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

    /// Sends; `first`: what is sent begins with the header.
    fn client_sends(&mut self, token: u64, first: bool) {
        let now = self.now();
        let key = self.shared.config.key;
        let own = self.playing.as_ref().map_or(0, Playing::index);
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        let mut from = HEADER;
        if first {
            let message = Message::Request(Request {
                client: own,
                keep: conn.keep,
                dscp: conn.dscp,
                congestion: conn.congestion,
                up: conn.to_send - HEADER as u64,
                down: conn.to_receive,
            });
            self.payload[..HEADER].copy_from_slice(&message.encode(&key));
            from = 0;
            if conn.to_receive == 0 && conn.keep {
                // The end of an upload is told by one byte where the connection stays.
                conn.to_receive = 1;
            }
        }
        for _ in 0..TURNS {
            if conn.to_send == 0 {
                conn.state = State::Receiving;
                return;
            }
            let n = conn.to_send.min((CHUNK + HEADER - from) as u64) as usize;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(&conn.fd, &self.payload[from..from + n], flags) {
                Ok(sent) => {
                    from = HEADER;
                    conn.to_send -= sent as u64;
                    conn.flow.up += sent as u64;
                    conn.progress = seconds(now);
                    self.counts.sent_bytes += sent as u64;
                }
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    self.failed(error);
                    self.over(token, Outcome::Failed);
                    return;
                }
            }
        }
        if conn.to_send == 0 {
            conn.state = State::Receiving;
        } else {
            self.later(token);
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
                    // Behind the last byte there is only the FIN, of which the kernel has told already.
                    if left == 0 && flags.contains(EventFlags::RDHUP) {
                        self.over(token, Outcome::Done);
                        return;
                    }
                    // Nothing more was there; of what comes now there will be news.
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

    /// Nanoseconds since the play began.
    pub(super) fn since_begun(&self) -> u64 {
        let begun = self.shared.begun().unwrap_or(Time::ZERO);
        self.now().since(begun).as_nanos()
    }

    /// A transfer is over.
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
            flow.again = facts.retransmissions;
        }
        let (session, keep) = (conn.session, conn.keep && outcome == Outcome::Done);
        self.log(flow, outcome, self.since_begun());
        let vacant = |p: &&mut Playing| p.traffic.is_some() && !p.idle.contains_key(&session);
        let playing = self.playing.as_mut().filter(vacant).filter(|_| keep);
        if let Some(playing) = playing {
            playing.idle.insert(session, token);
            if let Some(kept) = self.conns.get_mut(token) {
                kept.state = State::Idle;
            }
        } else {
            self.forget(token);
        }
        self.transfer_over(session, outcome);
    }

    pub(super) fn log(&mut self, mut flow: Flow, outcome: Outcome, end: u64) {
        if self.shared.config.room > 0 {
            flow.outcome = outcome;
            flow.end = end;
            self.over.push(flow);
        }
    }

    /// The session may have waited for this.
    fn transfer_over(&mut self, session: u64, outcome: Outcome) {
        let mut now = Time::from_nanos(self.since_begun());
        if outcome == Outcome::Failed {
            // What fails at once would be tried again at once.
            now += WITHHELD;
        }
        if let Some(playing) = &mut self.playing {
            playing.under_way = playing.under_way.saturating_sub(1);
            if let Some(traffic) = &mut playing.traffic {
                traffic.ended(session, now);
            }
        }
        self.perhaps_played();
    }

    /// Says so when the play is over.
    pub(super) fn perhaps_played(&mut self) {
        let over = self.playing.as_ref().is_some_and(|p| {
            let over = p.traffic.as_ref().is_some_and(|t| t.is_over());
            over && p.under_way == 0 && p.sources.len() == 0
        });
        if over {
            self.shared.played[usize::from(self.number)].store(true, Ordering::Release);
        }
    }
}

/// Gives a socket its code point and congestion control; true where it did not get the latter.
pub(super) fn mark(
    fd: BorrowedFd<'_>,
    ipv6: bool,
    dscp: u8,
    names: &[String],
    congestion: u8,
) -> Result<bool> {
    if dscp != 0 {
        set_dscp(fd, ipv6, dscp)?;
    }
    let name = names.get(usize::from(congestion));
    Ok(name.is_some_and(|name| sockopt::set_tcp_congestion(fd, name).is_err()))
}

/// The item whose turn it is; 0 if there is none.
fn in_turn(items: &[u8], turn: u64) -> u8 {
    let at = turn % (items.len() as u64).max(1);
    items.get(at as usize).copied().unwrap_or(0)
}

/// The unspecified address of the same family.
fn any(to: SocketAddr) -> IpAddr {
    if to.is_ipv6() {
        std::net::Ipv6Addr::UNSPECIFIED.into()
    } else {
        std::net::Ipv4Addr::UNSPECIFIED.into()
    }
}

/// Begins a handshake.
pub(super) fn begin_connect(fd: impl AsFd, to: &SocketAddr) -> Result<()> {
    match connect(fd, to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Binds to an address that need be on no interface (ip(7), `IP_FREEBIND`), with the port left to
/// connect(2), which finds one for the pair of addresses.
pub(super) fn bind_to(fd: BorrowedFd<'_>, from: IpAddr) -> Result<()> {
    if from.is_ipv6() {
        sockopt::set_ipv6_freebind(fd, true)?;
    } else {
        sockopt::set_ip_freebind(fd, true)?;
    }
    sys::port_at_connect(fd)?;
    bind(fd, &SocketAddr::new(from, 0))
}

/// Sets the code point of what a socket sends (RFC 2474: the upper six bits of the byte).
pub(super) fn set_dscp(fd: BorrowedFd<'_>, ipv6: bool, dscp: u8) -> Result<()> {
    let byte = dscp << 2;
    if ipv6 {
        sockopt::set_ipv6_tclass(fd, byte.into())
    } else {
        sockopt::set_ip_tos(fd, byte)
    }
}

/// Whether pools fit: traffic between two families is impossible.
pub(super) fn families_meet(pool: &Addresses, servers: &[Target]) -> bool {
    if pool.is_empty() {
        return true;
    }
    let has = |ipv6| pool.prefixes().iter().any(|p| p.is_ipv6() == ipv6);
    servers.iter().all(|s| {
        let own = s.pool.prefixes().iter().map(|p| p.is_ipv6());
        if s.pool.is_empty() {
            has(s.address.is_ipv6())
        } else {
            own.clone().all(has)
        }
    })
}

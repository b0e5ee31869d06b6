//! Datagram sources on the client, and the server's answers.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SocketType, connect, recv, sockopt};
use swell_base::{Dur, Stream, Time, derived};
use swell_traffic::flowlevel::{UdpSource, randomly};

use super::connect::{Ends, set_dscp, socket};
use super::flow::{Flow, Outcome};
use super::source::Source;
use super::state::{DATAGRAMS, SOURCE, Wake};
use super::wire::{DATAGRAM, Stamp, plain};
use super::worker::{Worker, watch};
use swell_host::sys::datagrams as sys;

/// Most datagrams sent or received in one batch before other sockets are served.
const AT_ONCE: usize = 64;
/// Buffer size of a datagram socket, limited by `net.core.rmem_max` and `wmem_max`.
const BUFFER: usize = 4 << 20;
/// How long to wait for answers to a source's last exchange.
const LINGER: Dur = Dur::from_millis(500);
/// How much longer to wait if none of a source's requests was answered: the path may be longer than that.
const PATIENCE: Dur = Dur::from_secs(1);
/// A precise thread spins until an exchange that is due within this time: a round of the loop takes longer, and both
/// exchanges would leave in a burst after it.
const SOON: Dur = Dur::from_micros(20);
/// Most such exchanges in a row, so that a dense source does not keep connections waiting.
const IN_A_ROW: usize = 8;

impl Worker {
    /// Changes the number of running sources by the factor `growth`: ends some, or begins copies of those that the traffic
    /// does not add by itself. A copy is logged under the number of its original.
    pub fn scale_sources(&mut self, growth: f64, now: Time, begun: Time) {
        let (thread, threads) = (self.number, self.shared.config.threads);
        let Some(playing) = &mut self.playing else {
            return;
        };
        let change = playing.next_change();
        // Every thread of every client draws for itself. With the same draws, all could keep their few sources.
        let share = playing.share(thread, threads);
        let seed = derived(playing.seed(), change);
        let mut random = Stream::indexed(seed, "generate/load", share.index.into());
        let mut over = Vec::new();
        let mut copies = Vec::new();
        for token in playing.sources.tokens(|s| s.goes_on()) {
            let Some(source) = playing.sources.get_mut(token) else {
                continue;
            };
            let number = randomly(growth, &mut random);
            if number == 0 {
                over.push(token);
            } else if !source.law.takes_slot() {
                let rest = source.law.rest(now);
                copies.extend((1..number).filter_map(|_| rest));
            }
        }
        for token in over {
            self.source_over(token);
        }
        for (copy, law) in (1..).zip(copies) {
            self.source_begins(&law, begun, change << 32 | copy);
        }
    }

    /// Starts a source; `copy` is 0, or a number that distinguishes it from others with the same number.
    pub fn source_begins(&mut self, law: &UdpSource, begun: Time, copy: u64) {
        let now = self.since_begun();
        let Some(playing) = &mut self.playing else {
            return;
        };
        let Ends { server, to, from } = playing.ends(law.source, law.destination);
        let seed = match copy {
            0 => playing.seed(),
            copy => derived(playing.seed(), copy),
        };
        let mut pacer = law.pace(seed);
        let next = pacer.next();
        if next.is_none() {
            // It ends before its first exchange, so it never sends anything.
            return;
        }
        let dscp = playing.marks(0).dscp;
        let to = SocketAddr::new(to.ip(), playing.datagram_port(server));
        let flow = Flow {
            datagrams: true,
            session: u32::try_from(law.number).unwrap_or(u32::MAX),
            due: law.at.as_nanos(),
            // A source that is entered in its middle begins with its next exchange.
            begun: now.max(law.at.as_nanos()),
            source: from.unwrap_or(Flow::default().source),
            destination: to.ip(),
            ..Flow::default()
        };
        self.counts.sources_begun += 1;
        let made = (|| -> Result<OwnedFd> {
            let fd = socket(to.ip(), from, SocketType::DGRAM)?;
            if dscp != 0 {
                set_dscp(fd.as_fd(), to.is_ipv6(), dscp)?;
            }
            roomy(&fd)?;
            connect(&fd, &to)?;
            Ok(fd)
        })();
        let fd = match made {
            Ok(fd) => fd,
            Err(error) => {
                self.source_failed(error);
                self.counts.sources_ended += 1;
                self.counts.sources_failed += 1;
                self.log(flow, Outcome::Failed, flow.begun);
                return;
            }
        };
        let source = Source {
            fd,
            server,
            law: *law,
            pacer,
            next,
            sent: 0,
            asked: 0,
            requests: false,
            waits: false,
            given_up: false,
            dscp,
            sequence: 0,
            flow,
        };
        let token = playing.sources.insert(source);
        let at = begun + next.map_or(law.at, |e| e.at).since(Time::ZERO);
        if let Some(new) = playing.sources.get_mut(token)
            && let Err(error) = watch(&self.epoll, &new.fd, token | SOURCE)
        {
            self.source_failed(error);
            self.source_over(token);
            return;
        }
        self.queue.push(at, Wake::Exchange(token));
    }

    /// Sends a source's exchange that is due, later ones that are due by now, and, if the thread is precise, those that
    /// follow so closely that other work would make them late.
    pub fn exchanges_due(&mut self, token: u64, due: Time) {
        let mut next = self.send_exchanges(token, due);
        for _ in 0..IN_A_ROW {
            let Some(at) = next else {
                return;
            };
            let first = self.queue.next_at().is_none_or(|other| at <= other);
            let near = at.since(self.now()) < SOON;
            if !(self.shared.config.precise && first && near) {
                break;
            }
            while self.now() < at {
                std::hint::spin_loop();
            }
            next = self.send_exchanges(token, at);
        }
        if let Some(at) = next {
            self.queue.push(at, Wake::Exchange(token));
        }
    }

    /// Sends a source's exchanges that are due by now. Returns when the next one is due; `None` if there is none, or the
    /// source waits for answers.
    fn send_exchanges(&mut self, token: u64, due: Time) -> Option<Time> {
        let now = self.now();
        let begun = self.shared.begun()?;
        let playing = self.playing.as_mut()?;
        let client = playing.index();
        let source = playing.sources.get_mut(token)?;
        if source.next.is_none() {
            if source.is_unanswered() && !std::mem::replace(&mut source.waits, true) {
                self.queue.push(now + PATIENCE, Wake::Exchange(token));
            } else {
                source.given_up = true;
                self.source_over(token);
            }
            return None;
        }
        let here = self.shared.is_here(source.server);
        let mut headers: Vec<[u8; DATAGRAM]> = Vec::new();
        let mut sizes: Vec<u32> = Vec::new();
        let mut at = due;
        while let Some(exchange) = source.next {
            at = begun + exchange.at.since(Time::ZERO);
            if at > now || headers.len() >= AT_ONCE {
                break;
            }
            if here {
                if source.sent == 0 {
                    self.lateness.add(now.since(at));
                }
                while headers.len() < AT_ONCE
                    && let Some((stamp, size)) = source.datagram(&exchange, client)
                {
                    headers.push(self.stamps.encode(stamp));
                    sizes.push(size);
                }
                if headers.len() >= AT_ONCE {
                    // The rest is sent after other sockets were served.
                    continue;
                }
            } else {
                self.counts.withheld += 1;
            }
            source.sent = 0;
            source.next = source.pacer.next();
        }
        let next = source.next.map(|_| at);
        if next.is_none() {
            // Answers may still arrive after the last exchange.
            self.queue.push(now + LINGER, Wake::Exchange(token));
        }
        self.send_datagrams(token, &headers, &sizes);
        next
    }

    fn send_datagrams(&mut self, token: u64, headers: &[[u8; DATAGRAM]], sizes: &[u32]) {
        let at = self.since_begun();
        let Some(playing) = &mut self.playing else {
            return;
        };
        let Some(source) = playing.sources.get_mut(token) else {
            return;
        };
        let (mut sent, mut refused) = (0, 0);
        let budget = self.shared.config.limits.budget.as_ref();
        while sent < headers.len() {
            let room = match budget.map(|b| b.room()) {
                None => usize::MAX,
                Some(Ok(room)) => room,
                Some(Err(_)) => {
                    self.counts.limited += (headers.len() - sent) as u64;
                    return;
                }
            };
            let batch = sent..sent + fitting(&sizes[sent..], room);
            let (rest, lengths) = (&headers[batch.clone()], &sizes[batch]);
            match sys::send_many(source.fd.as_fd(), &[], rest, lengths, &self.payload) {
                Ok(n) if n > 0 => {
                    let bytes: u64 = lengths[..n].iter().copied().map(u64::from).sum();
                    source.flow.up += bytes;
                    source.flow.end = at;
                    self.counts.datagrams_sent += n as u64;
                    self.counts.datagram_bytes_sent += bytes;
                    if let Some(budget) = budget {
                        budget.pay_datagrams(bytes, n as u64);
                    }
                    sent += n;
                    refused = 0;
                }
                // The error belongs to an earlier datagram (udp(7)); the current one was not sent.
                Err(Errno::CONNREFUSED) if refused < 2 => refused += 1,
                _ => {
                    self.counts.datagrams_refused += (headers.len() - sent) as u64;
                    return;
                }
            }
        }
    }

    /// Ends a source.
    pub fn source_over(&mut self, token: u64) {
        let source = self.playing.as_mut().and_then(|p| p.sources.remove(token));
        if let Some(source) = source {
            self.counts.sources_ended += 1;
            let flow = source.flow;
            let outcome = match source.next {
                Some(_) => Outcome::Unfinished,
                // Its server was gone, or the kernel accepted none of its datagrams.
                None if flow.up == 0 => Outcome::Failed,
                // Its datagrams or all of the answers were lost, as a query of which nothing comes back.
                None if source.is_unanswered() && source.given_up => Outcome::Failed,
                // The end of the run cut it off while it waited for answers.
                None if source.is_unanswered() => Outcome::Unfinished,
                None => Outcome::Done,
            };
            self.counts.sources_failed += u64::from(outcome == Outcome::Failed);
            // It ended with its last datagram.
            self.log(flow, outcome, flow.end.max(flow.begun));
            self.perhaps_played();
        }
    }

    /// Reads answers that arrived at a source.
    pub fn answers_arrived(&mut self, token: u64) {
        let at = self.since_begun();
        let Some(playing) = &mut self.playing else {
            return;
        };
        let Some(source) = playing.sources.get_mut(token) else {
            return;
        };
        for _ in 0..AT_ONCE {
            let mut front = [0; DATAGRAM];
            let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
            match recv(&source.fd, &mut front, flags).map(|(_, n)| n) {
                Ok(n) if n >= DATAGRAM && self.stamps.decode(&front).is_some() => {
                    if source.flow.first == 0 {
                        source.flow.first = at;
                    }
                    source.flow.down += n as u64;
                    source.flow.end = at;
                    source.flow.again += 1;
                    self.counts.datagrams_received += 1;
                    self.counts.datagram_bytes_received += n as u64;
                }
                Ok(_) => self.counts.stranger_datagram(),
                Err(Errno::AGAIN) => return,
                // An ICMP error for an earlier datagram, which counts as lost. The socket can still be used.
                Err(_) => {}
            }
        }
        // More datagrams may be left, and an edge-triggered event for them may come late.
        self.ready.push_back(token | SOURCE);
    }

    /// Reads and answers datagrams that arrived at the server.
    pub fn datagrams_arrived(&mut self) {
        let Some(answerer) = &self.answerer else {
            return;
        };
        let fd = answerer.datagrams.as_fd();
        for _ in 0..AT_ONCE {
            let mut front = [0; DATAGRAM];
            let got = match sys::receive_from(fd, &mut front) {
                Ok(got) => got,
                Err(Errno::AGAIN) => return,
                Err(_) => continue,
            };
            let peer = plain(got.from.ip());
            let whole = got.bytes >= DATAGRAM;
            let read = whole.then(|| self.stamps.decode(&front)).flatten();
            let known = read.filter(|s| self.shared.may_come(s.client, peer));
            let here = known.is_some_and(|s| self.shared.is_here(s.client));
            // What a client sent last may arrive after its bye, and is not answered.
            let allowed = known.filter(|s| here || self.shared.has_ended(s.client));
            let Some(stamp) = allowed else {
                self.counts.stranger_datagram();
                continue;
            };
            self.counts.datagrams_received += 1;
            self.counts.datagram_bytes_received += got.bytes as u64;
            if !here {
                continue;
            }
            let size = u32::from(stamp.answer).max(DATAGRAM as u32);
            let header = self.stamps.encode(Stamp {
                answer: 0,
                answers: 0,
                dscp: 0,
                ..stamp
            });
            let budget = self.shared.config.limits.budget.as_ref();
            for _ in 0..stamp.answers {
                if budget.is_some_and(|b| b.room().is_err()) {
                    self.counts.limited += 1;
                    continue;
                }
                match sys::answer(fd, &got, stamp.dscp, &header, size, &self.payload) {
                    Ok(_) => {
                        self.counts.datagrams_sent += 1;
                        self.counts.datagram_bytes_sent += u64::from(size);
                        if let Some(budget) = budget {
                            budget.pay_datagrams(size.into(), 1);
                        }
                    }
                    Err(_) => self.counts.datagrams_refused += 1,
                }
            }
        }
        self.ready.push_back(DATAGRAMS);
    }
}

/// How many of these datagrams have at most `room` bytes together; at least one.
fn fitting(sizes: &[u32], room: usize) -> usize {
    let mut left = room;
    let fits = |size: &&u32| {
        let rest = left.checked_sub(**size as usize);
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    sizes.iter().take_while(fits).count().max(1)
}

/// Enlarges a datagram socket's buffers for packets that arrive while the loop is busy.
pub(super) fn roomy(fd: impl AsFd) -> Result<()> {
    let fd = fd.as_fd();
    if sockopt::set_socket_recv_buffer_size_force(fd, BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(fd, BUFFER)?;
    }
    Ok(())
}

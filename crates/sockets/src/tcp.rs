//! TCP connections.

mod connect;

use std::net::SocketAddr;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendFlags, Shutdown, recv, recvmsg, send, shutdown, sockopt,
};
use swell_base::Dur;
use swell_workload::{End, Event};

use super::carrier::{Carrier, Wake, info};
use super::settings::renew_cap;
use super::slots::{Kind, bits};
use swell_host::sys::tcp as sys;

/// Maximum number of reads and writes per end before others get their turn.
const READS: u32 = 2;
const WRITES: u32 = 4;
/// How long to wait for the other end of a connection that was reset.
const LINGER: Dur = Dur::from_secs(10);

impl Carrier {
    /// Handles a kernel event of a connection.
    pub(super) fn tcp_news(&mut self, slot: u32, end: End, flags: EventFlags) {
        let half = &mut self.slots.at(slot).ends[end];
        if half.has(bits::DEAD) || half.fd.is_none() {
            return;
        }
        let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        if flags.contains(EventFlags::RDHUP) && !broken {
            half.set(bits::FIN_SEEN);
        }
        if !half.has(bits::CONNECTED) {
            if broken {
                let error = self.error(slot, end).unwrap_or(Errno::CONNREFUSED);
                self.failed(error);
                self.lost(slot, end);
                return;
            }
            if !flags.contains(EventFlags::OUT) {
                return;
            }
            self.connected(slot, end);
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP) || broken {
            self.read(slot, end);
        }
        if flags.contains(EventFlags::ERR) {
            self.notices(slot, end);
        }
        if broken && self.is_alive(slot, end) && self.error(slot, end).is_some() {
            self.lost(slot, end);
        }
        self.tell_eof(slot, end);
        if flags.contains(EventFlags::OUT) && self.is_alive(slot, end) {
            self.flush(slot, end);
        }
    }

    /// Continues with an end that used up its share of the previous turn.
    pub(super) fn tcp_goes_on(&mut self, slot: u32, end: End) {
        let half = &mut self.slots.at(slot).ends[end];
        half.clear(bits::READY);
        if half.has(bits::MORE) {
            half.clear(bits::MORE);
            self.read(slot, end);
            self.tell_eof(slot, end);
        }
        if self.is_alive(slot, end) {
            self.flush(slot, end);
        }
    }

    fn is_alive(&self, slot: u32, end: End) -> bool {
        let slot = self.slots.peek(slot);
        slot.kind == Kind::Tcp && !slot.ends[end].has(bits::DEAD) && slot.ends[end].fd.is_some()
    }

    fn error(&self, slot: u32, end: End) -> Option<Errno> {
        let fd = self.slots.peek(slot).ends[end].socket()?;
        sockopt::socket_error(fd).ok()?.err()
    }

    fn later(&mut self, slot: u32, end: End) {
        let half = &mut self.slots.at(slot).ends[end];
        if !half.has(bits::READY) {
            half.set(bits::READY);
            let token = self.slots.token(slot, end);
            self.ready.push_back(token);
        }
    }

    /// Reads the data that has arrived. The bytes are not copied: `MSG_TRUNC` discards them (tcp(7)).
    fn read(&mut self, slot: u32, end: End) {
        let mut taken = 0;
        let mut more = READS;
        let error = loop {
            let half = &mut self.slots.at(slot).ends[end];
            let Some(fd) = half.socket() else {
                return;
            };
            if half.has(bits::EOF | bits::FIN_READ | bits::DEAD) {
                return;
            }
            let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
            match recv(fd, &mut self.sink[..], flags).map(|(_, n)| n) {
                Ok(0) => {
                    half.set(bits::FIN_READ);
                    break None;
                }
                Ok(n) => {
                    taken += n as u64;
                    more -= 1;
                    if n < self.sink.len() {
                        // The socket is empty. If a FIN was seen before, it comes next.
                        if half.has(bits::FIN_SEEN) {
                            half.set(bits::FIN_READ);
                        }
                        break None;
                    }
                    if more == 0 {
                        half.set(bits::MORE);
                        self.later(slot, end);
                        break None;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break None,
                Err(error) => break Some(error),
            }
        };
        if taken > 0 {
            let s = self.slots.at(slot);
            s.ends[end].received += taken;
            self.counts.bytes += taken;
            if s.caps[end] != 0
                && let Some(fd) = s.ends[end].socket()
                && renew_cap(fd, s.caps[end]).is_err()
            {
                self.counts.windows_not_capped += 1;
            }
            if !s.silent {
                let (worker, conn) = (s.worker, s.conn);
                self.post(worker, Event::Received(conn, end, taken));
            }
        }
        if error.is_some() {
            self.lost(slot, end);
        }
    }

    fn tell_eof(&mut self, slot: u32, end: End) {
        let s = self.slots.at(slot);
        let half = &mut s.ends[end];
        if s.kind == Kind::Tcp && half.has(bits::FIN_READ) && !half.has(bits::EOF | bits::DEAD) {
            half.set(bits::EOF);
            let (worker, conn) = (s.worker, s.conn);
            self.post(worker, Event::Eof(conn, end));
            self.perhaps_over(slot);
        }
    }

    /// Empties the error queue of acknowledgement notifications, and reports `Drained` if everything is acknowledged.
    fn notices(&mut self, slot: u32, end: End) {
        let Some(fd) = self.slots.peek(slot).ends[end].socket() else {
            return;
        };
        let flags = RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT;
        while recvmsg(fd, &mut [], &mut RecvAncillaryBuffer::default(), flags).is_ok() {}
        self.perhaps_drained(slot, end);
    }

    /// Reports `Drained` if everything sent is acknowledged; returns true if it is.
    fn perhaps_drained(&mut self, slot: u32, end: End) -> bool {
        let s = self.slots.at(slot);
        let half = &mut s.ends[end];
        if !half.has(bits::DRAINING) || half.pending > 0 || half.has(bits::DEAD) {
            return false;
        }
        let fin = u32::from(half.has(bits::FIN_SENT));
        let left = half.socket().and_then(|fd| sys::unacknowledged(fd).ok());
        if left.is_none_or(|bytes| bytes > fin) {
            return false;
        }
        half.clear(bits::DRAINING | bits::STALE);
        let (worker, conn) = (s.worker, s.conn);
        self.post(worker, Event::Drained(conn, end));
        true
    }

    /// Checks all connections that have waited long for an acknowledgement.
    pub(super) fn sweep(&mut self) {
        for slot in self.slots.numbers() {
            for end in End::BOTH {
                let half = &mut self.slots.at(slot).ends[end];
                if !half.has(bits::DRAINING) {
                    continue;
                }
                if half.has(bits::STALE) {
                    self.counts.late_notices += u64::from(self.perhaps_drained(slot, end));
                } else {
                    half.set(bits::STALE);
                }
            }
        }
    }

    pub(super) fn send(&mut self, slot: u32, end: End, n: u64) {
        let half = &mut self.slots.at(slot).ends[end];
        if half.has(bits::CLOSING | bits::DEAD) || n == 0 {
            return;
        }
        let waits = half.pending > 0 || !half.has(bits::CONNECTED);
        half.pending = half.pending.saturating_add(n);
        if !waits {
            self.flush(slot, end);
        }
    }

    /// Bytes that the workload has written and that are not in the network yet: those that the kernel has not taken,
    /// and those that it has not sent.
    pub(super) fn unsent(&self, slot: u32, end: End) -> u64 {
        let half = &self.slots.peek(slot).ends[end];
        let held = half.socket().and_then(|fd| sys::unsent(fd).ok());
        half.pending.saturating_add(u64::from(held.unwrap_or(0)))
    }

    /// Passes pending data to the kernel.
    fn flush(&mut self, slot: u32, end: End) {
        let mut left = WRITES;
        loop {
            let s = self.slots.at(slot);
            let half = &mut s.ends[end];
            if half.pending == 0 || !half.has(bits::CONNECTED) {
                break;
            }
            if left == 0 {
                self.later(slot, end);
                return;
            }
            let Some(fd) = half.socket() else {
                return;
            };
            let n = half.pending.min(self.payload.len() as u64) as usize;
            let part = &self.payload[..n];
            // Only a workload that is not silent needs to know when the last byte is acknowledged.
            let asks = n as u64 == half.pending && !s.silent;
            let sent = if asks {
                sys::send_asking(fd, part)
            } else {
                send(fd, part, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            };
            match sent {
                Ok(m) => {
                    half.pending -= m as u64;
                    left -= 1;
                    if asks {
                        half.set(bits::DRAINING);
                        half.clear(bits::STALE);
                    }
                    if m < n {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.lost(slot, end);
                    return;
                }
            }
        }
        let half = &mut self.slots.at(slot).ends[end];
        if half.has(bits::CLOSING) && half.has(bits::CONNECTED) && !half.has(bits::FIN_SENT) {
            let fin = half.socket().map(|fd| shutdown(fd, Shutdown::Write));
            if matches!(fin, Some(Ok(()))) {
                half.set(bits::FIN_SENT);
                self.perhaps_over(slot);
            }
        }
    }

    pub(super) fn close(&mut self, slot: u32, end: End) {
        let half = &mut self.slots.at(slot).ends[end];
        half.set(bits::CLOSING);
        if half.pending == 0 && !half.has(bits::DEAD) {
            self.flush(slot, end);
        }
    }

    pub(super) fn abort(&mut self, slot: u32) {
        let half = &mut self.slots.at(slot).ends[0];
        if half.has(bits::DEAD) {
            return;
        }
        half.close();
        half.set(bits::DEAD);
        half.pending = 0;
        self.await_other(slot);
    }

    /// Handles an end that was reset, refused or given up.
    fn lost(&mut self, slot: u32, end: End) {
        let s = self.slots.at(slot);
        let half = &mut s.ends[end];
        if half.has(bits::DEAD) {
            return;
        }
        half.close();
        half.set(bits::DEAD);
        half.pending = 0;
        let alone = end == End::Client && !s.ends[0].has(bits::CONNECTED);
        let (worker, conn) = (s.worker, s.conn);
        self.counts.resets += 1;
        self.post(worker, Event::Reset(conn, end));
        if alone {
            // There is no server end.
            self.expect_no_more(slot);
            self.over(slot);
            return;
        }
        self.await_other(slot);
    }

    /// One end is dead. The other one learns it from the network, or is given up after a time.
    fn await_other(&mut self, slot: u32) {
        if self.perhaps_over(slot) {
            return;
        }
        let token = self.slots.token(slot, End::Client);
        self.queue.push(self.at + LINGER, Wake::Reap(token));
    }

    /// Gives up the other end of a dead connection after [`LINGER`].
    pub(super) fn give_up(&mut self, slot: u32) {
        self.expect_no_more(slot);
        self.over(slot);
    }

    /// Stops waiting for the connection's server end.
    fn expect_no_more(&mut self, slot: u32) {
        let s = self.slots.peek(slot);
        let sides = [s.client_side, s.client_side.other()];
        let [client, server] = [0, 1].map(|i| {
            let pool = self.sides[sides[i]].pools[usize::from(s.ipv6)].as_ref();
            pool.map(|pool| pool.address(s.hosts[i]))
        });
        if let (Some(client), Some(server)) = (client, server) {
            let key = (SocketAddr::new(client, s.port), server);
            if self.waiting.get(&key) == Some(&slot) {
                self.waiting.remove(&key);
            }
        }
    }

    fn perhaps_over(&mut self, slot: u32) -> bool {
        let s = self.slots.peek(slot);
        let over = s.kind == Kind::Tcp && s.ends[0].is_over() && s.ends[1].is_over();
        if over {
            // The FIN of one end may not be acknowledged yet.
            let sockets = s.ends.iter().filter_map(|half| half.socket());
            sockets.for_each(connect::let_end);
            self.over(slot);
        }
        over
    }

    fn over(&mut self, slot: u32) {
        let last = info(&self.slots, slot);
        let s = self.slots.peek(slot);
        let (worker, conn) = (s.worker, s.conn);
        self.leave(slot);
        self.free(slot);
        self.post(worker, Event::Closed(conn, last));
    }
}

//! Datagram flows: a connected socket at each end.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use rustix::io::{Errno, Result};
use rustix::net::{
    RecvFlags, SendFlags, SocketType, bind, connect, getsockname, recv, send, sockopt,
};
use swell_base::{Dur, End};
use swell_workload::{Conn, Event, Open};

use super::carrier::{Carrier, Wake};
use super::side::family;
use super::slots::{Kind, bits};

/// Bytes at the beginning of a payload that hold its sequence number.
const NUMBER: usize = 8;
/// Maximum number of datagrams read at one end before others get their turn.
const READS: u32 = 64;
/// Largest payload of a datagram. IPv4: a packet of 65 535 bytes minus the IPv4 and UDP headers. IPv6: an IPv6
/// payload of 65 535 bytes minus the UDP header (RFC 8200).
const LARGEST: [u32; 2] = [65_507, 65_527];
/// Buffer size of a datagram socket. Datagrams that arrive while the loop is busy must not be lost, because that
/// would not be a loss in the network. Without the privilege to exceed them, `net.core.rmem_max` and `wmem_max`
/// apply.
const BUFFER: usize = 1 << 20;
/// How long the sockets of a closed flow stay open to absorb datagrams in transit. Otherwise the kernel would answer
/// these with an ICMP message that no workload sent.
const SWALLOW: Dur = Dur::from_secs(2);

impl Carrier {
    pub(super) fn open_datagrams(&mut self, worker: u32, conn: Conn, open: &Open) {
        let Some((slot, addresses)) = self.begin(Kind::Datagrams, worker, conn, open) else {
            return;
        };
        self.counts.datagram_flows += 1;
        if let Err(error) = self.pair(slot, addresses) {
            self.failed(error);
            self.leave(slot);
            self.free(slot);
        }
    }

    /// Creates the two sockets of a flow and connects them to each other.
    fn pair(&mut self, slot: u32, addresses: [IpAddr; 2]) -> Result<()> {
        let client_side = self.slots.peek(slot).client_side;
        let mut bound = [SocketAddr::from(([0; 4], 0)); 2];
        for (i, side) in [client_side, client_side.other()].into_iter().enumerate() {
            let sockets = &mut self.sides[side].sockets;
            let socket = sockets.socket(family(addresses[i]), SocketType::DGRAM)?;
            let fd = socket.as_fd();
            if addresses[i].is_ipv6() {
                sockopt::set_ipv6_freebind(fd, true)?;
            }
            if sockopt::set_socket_recv_buffer_size_force(fd, BUFFER).is_err() {
                sockopt::set_socket_recv_buffer_size(fd, BUFFER)?;
            }
            if sockopt::set_socket_send_buffer_size_force(fd, BUFFER).is_err() {
                sockopt::set_socket_send_buffer_size(fd, BUFFER)?;
            }
            bind(fd, &SocketAddr::new(addresses[i], 0))?;
            bound[i] = SocketAddr::try_from(getsockname(fd)?)?;
            self.slots.at(slot).ends[i].fd = Some(socket);
        }
        for end in End::BOTH {
            if let Some(fd) = self.slots.peek(slot).ends[end].socket() {
                connect(fd, &bound[end.other()])?;
                self.watch(fd, slot, end)?;
            }
        }
        Ok(())
    }

    /// Reads the datagrams that arrived at an end.
    pub(super) fn datagram_news(&mut self, slot: u32, end: End) {
        self.slots.at(slot).ends[end].clear(bits::READY);
        for _ in 0..READS {
            let s = self.slots.at(slot);
            let Some(fd) = s.ends[end].socket() else {
                return;
            };
            let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
            // With `MSG_TRUNC` the kernel returns the full length; data after the number is not copied.
            let mut number = [0; NUMBER];
            match recv(fd, &mut number[..], flags).map(|(_, n)| n) {
                Ok(n) => {
                    s.ends[end].received += n as u64;
                    let (worker, conn, silent) = (s.worker, s.conn, s.silent);
                    self.counts.datagrams_received += 1;
                    self.counts.bytes += n as u64;
                    if !silent {
                        let number = (n >= NUMBER).then(|| u64::from_be_bytes(number));
                        self.post(worker, Event::Datagram(conn, end, n as u32, number));
                    }
                }
                Err(Errno::AGAIN) => return,
                // An ICMP error caused by an earlier datagram, which is lost. The socket remains usable.
                Err(_) => {}
            }
        }
        let half = &mut self.slots.at(slot).ends[end];
        half.set(bits::READY);
        let token = self.slots.token(slot, end);
        self.ready.push_back(token);
    }

    /// Sends a datagram, split into several if it is larger than a datagram can be.
    pub(super) fn send_datagram(&mut self, slot: u32, end: End, bytes: u32) {
        let s = self.slots.at(slot);
        let largest = LARGEST[usize::from(s.ipv6)];
        let Some(fd) = s.ends[end].socket() else {
            return;
        };
        let mut left = bytes;
        loop {
            let n = left.min(largest);
            self.payload[..NUMBER].copy_from_slice(&s.datagrams.to_be_bytes());
            s.datagrams += 1;
            let part = &self.payload[..n as usize];
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let mut sent = send(fd, part, flags);
            if sent == Err(Errno::CONNREFUSED) {
                // The error belongs to an earlier datagram (udp(7)), and this one was not sent.
                sent = send(fd, part, flags);
            }
            match sent {
                Ok(_) => self.counts.datagrams_sent += 1,
                Err(error) => {
                    self.counts.datagrams_refused += 1;
                    *self.refusals.entry(error.raw_os_error()).or_default() += 1;
                }
            }
            left -= n;
            if left == 0 {
                return;
            }
        }
    }

    /// Closes a flow that the workload has ended.
    pub(super) fn forget(&mut self, slot: u32) {
        self.leave(slot);
        self.slots.at(slot).kind = Kind::Forgotten;
        if self.descriptors.are_scarce() {
            self.free(slot);
            return;
        }
        let token = self.slots.token(slot, End::Client);
        self.queue.push(self.at + SWALLOW, Wake::Reap(token));
    }
}

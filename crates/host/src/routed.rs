//! An interface as one side of a router. Packets that others send through this machine are read. Packets that are
//! written leave as the kernel's own do, to the neighbour given by its routing and neighbour tables.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{SendFlags, sendto};

use super::interface::Interface;
use super::netlink::Netlink;
use super::sys::devices::raw_socket;
use crate::{Checksum, ETHERNET, IpPacket, Nic, network, rewrite};

/// One side of a router. The kernel continues to answer for this machine's own addresses: ARP, neighbour discovery,
/// pings.
pub struct Routed {
    interface: Interface,
    hardware: [u8; 6],
    /// This machine's addresses on all sides; packets for them are not forwarded.
    own: Vec<IpAddr>,
    /// Raw sockets for IPv4 and IPv6. A machine without IPv6 has only the first.
    ways: [Option<OwnedFd>; 2],
    packet: Vec<u8>,
}

impl Routed {
    /// Opens an interface of the calling thread's network namespace, as [`Interface::open`] does. `own` are this
    /// machine's addresses on all sides.
    ///
    /// # Errors
    /// If there is no such interface, or this process may not read frames or send raw packets.
    pub fn open(name: &str, together: usize, own: Vec<IpAddr>) -> io::Result<Routed> {
        let mut netlink = Netlink::open()?;
        let index = netlink.index(name)?;
        Ok(Routed {
            hardware: netlink.hardware_address(index)?,
            interface: Interface::open(name, together)?,
            own,
            ways: [Some(raw_socket(false, name)?), raw_socket(true, name).ok()],
            packet: Vec::new(),
        })
    }
}

/// The source and the destination of an IP packet; `None` if the packet is truncated.
fn ends(packet: &[u8]) -> Option<[IpAddr; 2]> {
    let v4 = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
    let v6 = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
    match packet.first()? >> 4 {
        4 => Some([v4(12)?, v4(16)?]),
        6 => Some([v6(8)?, v6(24)?]),
        _ => None,
    }
}

/// Whether a router forwards packets from and to this address (RFC 1812 sections 5.2 and 5.3.7, RFC 3927 section 7,
/// RFC 4291 sections 2.5.2, 2.5.3, 2.5.6 and 2.7).
fn leaves_the_link(address: &IpAddr) -> bool {
    let everywhere = address.is_multicast() || address.is_unspecified() || address.is_loopback();
    let linked = match address {
        IpAddr::V4(a) => a.is_broadcast() || a.is_link_local(),
        IpAddr::V6(a) => a.is_unicast_link_local(),
    };
    !everywhere && !linked
}

/// Whether a router with these addresses forwards a packet.
fn is_forwarded(packet: &[u8], own: &[IpAddr]) -> bool {
    ends(packet).is_some_and(|ends| ends.iter().all(leaves_the_link) && !own.contains(&ends[1]))
}

/// Decrements the hop limit; returns false if it is exhausted. The header checksum of IPv4 is updated.
fn spend_hop(packet: &mut [u8]) -> bool {
    let v4 = packet[0] >> 4 == 4;
    let (at, sums) = if v4 { (8, &[10][..]) } else { (6, &[][..]) };
    let hops = if v4 { at } else { at + 1 };
    let Some(left) = packet[hops].checked_sub(1).filter(|&n| n > 0) else {
        return false;
    };
    let mut word = [packet[at], packet[at + 1]];
    word[hops - at] = left;
    rewrite(packet, at, &word, sums);
    true
}

impl Nic for Routed {
    fn fd(&self) -> BorrowedFd<'_> {
        self.interface.fd()
    }

    /// Shows frames whose packets are to be forwarded.
    fn read(&mut self, each: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize> {
        let (own, hardware, header) = (&self.own, &self.hardware, &mut self.packet);
        let mut shown = 0;
        loop {
            let read = self.interface.read(&mut |wire| {
                // A tagged frame belongs to another interface of this machine.
                if network(wire.header) != Some(ETHERNET) || !wire.header.starts_with(hardware) {
                    return;
                }
                if !is_forwarded(&wire.header[ETHERNET..], own) {
                    return;
                }
                header.clear();
                header.extend_from_slice(wire.header);
                if spend_hop(&mut header[ETHERNET..]) {
                    shown += 1;
                    each(IpPacket { header, ..wire });
                }
            })?;
            if read == 0 || shown > 0 {
                return Ok(shown);
            }
        }
    }

    fn write(&mut self, frame: &[u8], checksum: Checksum) -> u64 {
        self.packet.clear();
        self.packet.extend_from_slice(frame);
        checksum.complete(&mut self.packet);
        let packet = network(&self.packet).map_or(&[][..], |start| &self.packet[start..]);
        let Some([_, to]) = ends(packet) else {
            return 1;
        };
        let Some(way) = &self.ways[usize::from(to.is_ipv6())] else {
            return 1;
        };
        let to = SocketAddr::new(to, 0);
        loop {
            match sendto(way, packet, SendFlags::empty(), &to) {
                Err(Errno::INTR) => {}
                sent => return u64::from(sent.is_err()),
            }
        }
    }

    fn flush(&mut self) -> u64 {
        0
    }

    fn lost(&self) -> u64 {
        self.interface.lost()
    }

    fn stamp(&self) -> Option<u64> {
        self.interface.stamp()
    }

    fn stamps(&self) -> bool {
        true
    }

    fn empty(&self) -> bool {
        self.interface.empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_is_spent_and_the_last_one_is_not() {
        let mut v4 = [0u8; 20];
        v4[0] = 0x45;
        v4[8] = 3;
        v4[9] = 17;
        v4[16..20].copy_from_slice(&[10, 0, 0, 1]);
        Checksum::Partial {
            start: 0,
            offset: 10,
        }
        .complete(&mut v4);
        let valid = |p: &[u8]| super::super::sum::fold(super::super::sum::sum_of(p)) == 0xffff;
        let mut v6 = [0u8; 40];
        (v6[0], v6[7]) = (0x60, 3);
        for left in [2, 1] {
            assert!(spend_hop(&mut v4) && spend_hop(&mut v6));
            assert!(valid(&v4));
            assert_eq!((v4[8], v4[9], v6[6], v6[7]), (left, 17, 0, left));
        }
        assert!(!spend_hop(&mut v4) && !spend_hop(&mut v6));
    }

    #[test]
    fn what_stays_on_its_link_is_known() {
        for (text, leaves) in [
            ("10.0.0.1", true),
            ("224.0.0.251", false),
            ("255.255.255.255", false),
            ("169.254.1.1", false),
            ("127.0.0.1", false),
            ("0.0.0.0", false),
            ("fd00::1", true),
            ("fe80::1", false),
            ("ff02::1", false),
            ("::1", false),
            ("::", false),
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(leaves_the_link(&address), leaves, "{text}");
            // From this address to an ordinary one, and back.
            for back in [false, true] {
                let packet = match address {
                    IpAddr::V4(a) => {
                        let mut both = [a.octets(), [10, 9, 9, 9]];
                        both.rotate_left(usize::from(back));
                        [&[0x45; 12][..], &both.concat()[..]].concat()
                    }
                    IpAddr::V6(a) => {
                        let mut both = [a.octets(), [0x20; 16]];
                        both.rotate_left(usize::from(back));
                        [&[0x60; 8][..], &both.concat()[..]].concat()
                    }
                };
                assert_eq!(is_forwarded(&packet, &[]), leaves, "{text} {back}");
                // What is for the router itself is not forwarded.
                let forwarded = is_forwarded(&packet, &[address]);
                assert_eq!(forwarded, leaves && !back, "{text} {back}");
            }
        }
        for length in 0..40 {
            assert_eq!(ends(&vec![0x60; length]), None);
            assert_eq!(ends(&vec![0x45; length.min(19)]), None);
        }
    }
}

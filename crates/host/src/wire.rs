//! Packets with their bytes, and the interface of their sources.

use std::io;
use std::os::fd::BorrowedFd;

use super::sum::{adjust, be16, fold, sum_of};

/// Size of `struct virtio_net_hdr` (linux/virtio_net.h, virtio 1.2 section 5.1.6) without its optional last field.
/// TUN uses the legacy form by default, in which numbers are in native byte order.
pub(crate) const VNET_HEADER: usize = 10;

/// State of a packet's transport checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// It is complete.
    #[default]
    Full,
    /// The field holds the sum of the pseudo-header only. The sum from byte `start` of the packet to its end must be
    /// added, and the result belongs at `start + offset` (as in `virtio_net_hdr`: virtio 1.2, section 5.1.6.2).
    Partial {
        /// Start of the transport header.
        start: u16,
        /// Position of the checksum in the transport header.
        offset: u16,
    },
}

impl Checksum {
    /// Completes the checksum (RFC 1071). For UDP, a sum of zero is sent as all ones (RFC 768).
    pub fn complete(self, packet: &mut [u8]) {
        let Checksum::Partial { start, offset } = self else {
            return;
        };
        let (start, place) = (usize::from(start), usize::from(start) + usize::from(offset));
        if packet.len() < place + 2 {
            return;
        }
        let check = match !fold(sum_of(&packet[start..])) {
            0 if offset == 6 => 0xffff,
            c => c,
        };
        packet[place..place + 2].copy_from_slice(&check.to_be_bytes());
    }
}

/// Overwrites bytes of a packet and updates the complete checksums at the given positions (RFC 1624). `at` must be at
/// an even offset from the start of the summed data.
pub fn rewrite(packet: &mut [u8], at: usize, with: &[u8], checksums: &[usize]) {
    for (k, new) in with.chunks(2).enumerate() {
        let place = at + 2 * k;
        let word = |p: &[u8]| match p.get(place + 1) {
            Some(_) => be16(p, place),
            None => u16::from(p[place]) << 8,
        };
        let before = word(packet);
        packet[place..place + new.len()].copy_from_slice(new);
        let after = word(packet);
        for &sum in checksums {
            let adjusted = adjust(be16(packet, sum), before, after);
            packet[sum..sum + 2].copy_from_slice(&adjusted.to_be_bytes());
        }
    }
}

/// An IP packet as seen on a wire, no larger than the MTU.
#[derive(Clone, Copy, Debug)]
pub struct IpPacket<'a> {
    /// Its IP and transport headers. If it was not segmented from a super-packet, the whole packet.
    pub header: &'a [u8],
    /// The data after the headers.
    pub payload: &'a [u8],
    /// State of the transport checksum.
    pub checksum: Checksum,
}

/// Bytes of an Ethernet header without tags (IEEE 802.3).
pub const ETHERNET: usize = 14;

/// Position of the IP packet in an Ethernet frame, after any VLAN tags (IEEE 802.1Q, 802.1ad); `None` if the frame
/// holds something else.
pub fn network(frame: &[u8]) -> Option<usize> {
    let mut at = ETHERNET;
    // At most two tags are in use.
    for _ in 0..3 {
        match frame.get(at - 2..at)? {
            [0x08, 0x00] | [0x86, 0xdd] => return Some(at),
            [0x81, 0x00] | [0x88, 0xa8] => at += 4,
            _ => return None,
        }
    }
    None
}

/// A host's only link: a device whose other end is the host's IP stack.
pub trait Nic: Send {
    /// Readable when packets are waiting.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Reads once and shows all packets read, in order. Returns their number; 0 means that none are waiting.
    ///
    /// # Errors
    /// If the device no longer exists.
    fn read(&mut self, each: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize>;

    /// Passes a packet to the host, at the latest at the next [`flush`](Nic::flush). Returns how many packets the
    /// host refused: this one, or earlier ones that were held back.
    fn write(&mut self, packet: &[u8], checksum: Checksum) -> u64;

    /// Passes on packets that were held back. Returns how many the host refused.
    fn flush(&mut self) -> u64;

    /// Packets from the host that the device has lost since it was created.
    fn lost(&self) -> u64;

    /// Packets that were passed to [`write`](Nic::write) and dropped on purpose, since it was created.
    fn dropped(&self) -> u64 {
        0
    }

    /// Arrival time of the packets of the last [`read`](Nic::read), in nanoseconds since the Unix epoch, if the
    /// kernel provides it.
    fn stamp(&self) -> Option<u64> {
        None
    }

    /// Whether the kernel provides arrival times.
    fn stamps(&self) -> bool {
        false
    }

    /// Whether there is nothing to read, as far as can be determined without a system call. After a loss it may be
    /// wrong; the descriptor is then ready anyway.
    fn empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rewritten_keeps_its_checksum() {
        let whole = |p: &[u8]| fold(sum_of(p));
        for length in 9..40 {
            let mut packet: Vec<u8> = (0..length).map(|k| (k * 37 + 5) as u8).collect();
            packet[4..6].fill(0);
            Checksum::Partial {
                start: 0,
                offset: 4,
            }
            .complete(&mut packet);
            assert_eq!(whole(&packet), 0xffff);
            let last = (length - 1) & !1;
            rewrite(&mut packet, 0, &[9, 8, 7, 6], &[4]);
            rewrite(&mut packet, last, &[200], &[4]);
            assert_eq!((whole(&packet), &packet[..4]), (0xffff, &[9, 8, 7, 6][..]));
            assert_eq!(packet[last], 200);
        }
    }

    #[test]
    fn packets_are_found_behind_tags() {
        let frame = |types: &[u8]| [&[0; 12][..], types, &[0x45; 30]].concat();
        assert_eq!(network(&frame(&[8, 0])), Some(14));
        assert_eq!(network(&frame(&[0x81, 0, 0, 7, 0x86, 0xdd])), Some(18));
        assert_eq!(
            network(&frame(&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 7, 8, 0])),
            Some(22)
        );
        assert_eq!(network(&frame(&[8, 6])), None);
        for length in 0..30 {
            let _ = network(&vec![0x81; length]);
            let _ = network(&[0x81, 0].repeat(length));
        }
    }
}

//! TCP packets that leave at once, put together as the receive offload of a network card does.
//!
//! A host's kernel works on a super-packet as fast as on a packet, and the packets that are due when the
//! loop looks are often of one connection. Only what is due at once is put together, so nothing
//! waits. The rules are the kernel's own (`tcp_gro_receive` in net/ipv4/tcp_offload.c), a little stricter:
//! headers are equal but for what must grow, so that cutting the whole again gives the packets that
//! were put in.

use super::segment::{Layout, PSH, TCP_CHECKSUM};
use super::sum::{adjust, be16, be32, fold};
use crate::Checksum;

const ACK: u8 = 0x10;
/// Position of the flags in the TCP header (RFC 9293 section 3.1).
const FLAGS: usize = 13;
/// Don't fragment, in the upper byte of IPv4's flags and offset (RFC 791 section 3.1).
const DF: u8 = 0x40;
/// Largest IP packet.
const LARGEST: usize = 0xffff;

/// Packets of one connection, each beginning where the one before ends; or one packet of any kind.
#[derive(Debug, Default)]
pub struct Train {
    bytes: Vec<u8>,
    checksum: Checksum,
    count: u16,
    /// Bytes of payload of every packet but the last.
    size: usize,
    /// `None`: nothing can follow.
    open: Option<Open>,
}

/// What the next packet must go on from.
#[derive(Debug)]
struct Open {
    layout: Layout,
    seq: u32,
}

impl Train {
    /// Takes a packet if it is the first, or goes on where the last one ends.
    pub fn push(&mut self, packet: &[u8], checksum: Checksum) -> bool {
        if self.count == 0 {
            self.bytes.extend_from_slice(packet);
            self.checksum = checksum;
            self.open = Open::of(packet, checksum);
            self.size = self
                .open
                .as_ref()
                .map_or(0, |o| packet.len() - o.layout.header);
            self.count = 1;
            return true;
        }
        let Some(open) = &mut self.open else {
            return false;
        };
        let header = open.layout.header;
        let fits = |payload: usize| payload > 0 && payload <= self.size;
        let payload = packet.len().saturating_sub(header);
        if checksum != self.checksum
            || !fits(payload)
            || self.bytes.len() + payload > LARGEST
            || !open.precedes(&self.bytes, self.count, packet)
        {
            return false;
        }
        self.bytes.extend_from_slice(&packet[header..]);
        self.count += 1;
        open.seq = open.seq.wrapping_add(payload as u32);
        let flags = open.layout.transport + FLAGS;
        self.bytes[flags] = packet[flags];
        if payload < self.size || packet[flags] & PSH != 0 {
            self.close();
        }
        true
    }

    /// How many packets there are.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The whole, its checksum, and the bytes of payload of its packets where there are several.
    pub fn whole(&mut self) -> (&[u8], Checksum, Option<u16>) {
        self.close();
        let size = (self.count > 1).then_some(self.size as u16);
        (&self.bytes, self.checksum, size)
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.open = None;
    }

    /// Nothing follows: the header becomes that of the whole.
    fn close(&mut self) {
        if let Some(open) = self.open.take()
            && self.count > 1
        {
            lengthen(&mut self.bytes, &open.layout, self.size);
        }
    }
}

impl Open {
    /// What may follow on a packet; nothing, unless it is TCP with a checksum to be completed, without
    /// options of IP, and carries payload and no flag but ACK.
    fn of(packet: &[u8], checksum: Checksum) -> Option<Open> {
        let layout = Layout::of(packet, checksum).ok()?;
        let plain = layout.transport == if layout.version == 4 { 20 } else { 40 };
        let payload = packet.len() - layout.header;
        if !plain || packet[layout.transport + FLAGS] != ACK || payload == 0 {
            return None;
        }
        let seq = be32(packet, layout.transport + 4).wrapping_add(payload as u32);
        Some(Open { layout, seq })
    }

    /// Whether `next`, longer than the header, goes on where `first` and those after it end.
    fn precedes(&self, first: &[u8], count: u16, next: &[u8]) -> bool {
        let Layout {
            version,
            transport: t,
            header,
        } = self.layout;
        let same = |from: usize, to: usize| first[from..to] == next[from..to];
        let ip = if version == 4 {
            let number = first[6] & DF != 0 || be16(next, 4) == be16(first, 4).wrapping_add(count);
            number && same(0, 2) && same(6, 10) && same(12, 20)
        } else {
            same(0, 4) && same(6, 40)
        };
        // Between the ports and the options: sequence number, flags and checksum may differ.
        ip && same(t, t + 4)
            && be32(next, t + 4) == self.seq
            && same(t + 8, t + FLAGS)
            && next[t + FLAGS] & !PSH == ACK
            && same(t + 14, t + TCP_CHECKSUM)
            && same(t + 18, header)
    }
}

/// Makes the header of a packet of `size` bytes of payload that of all the bytes.
fn lengthen(bytes: &mut [u8], layout: &Layout, size: usize) {
    let Layout {
        version,
        transport: t,
        header,
    } = *layout;
    let (before, after) = (header + size, bytes.len());
    if version == 4 {
        let sum = adjust(be16(bytes, 10), before as u16, after as u16);
        bytes[2..4].copy_from_slice(&(after as u16).to_be_bytes());
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        bytes[4..6].copy_from_slice(&((after - 40) as u16).to_be_bytes());
    }
    // The sum of the pseudo-header is not complemented, and grows with the length in it.
    let partial = u64::from(be16(bytes, t + TCP_CHECKSUM)) + (after - before) as u64;
    bytes[t + TCP_CHECKSUM..t + TCP_CHECKSUM + 2].copy_from_slice(&fold(partial).to_be_bytes());
}

#[cfg(test)]
mod tests;

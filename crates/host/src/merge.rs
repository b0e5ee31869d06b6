//! Merging TCP packets that are due together, like the receive offload of a network card.
//!
//! A host's kernel processes a super-packet as fast as a single packet, and packets that are due together often
//! belong to one connection. Only packets that are due at once are merged, so nothing waits. The rules are those of
//! the kernel (`tcp_gro_receive` in net/ipv4/tcp_offload.c), slightly stricter: headers must be equal except for
//! fields that necessarily change. Segmenting the result again therefore gives the original packets.

use super::segment::{Layout, PSH, TCP_CHECKSUM};
use super::sum::{adjust, be16, be32, fold};
use crate::Checksum;

const ACK: u8 = 0x10;
/// Position of the flags in the TCP header (RFC 9293 section 3.1).
const FLAGS: usize = 13;
/// Don't Fragment, in the upper byte of IPv4's flags and fragment offset (RFC 791 section 3.1).
const DF: u8 = 0x40;
/// Maximum size of an IP packet.
const LARGEST: usize = 0xffff;

/// Packets of one connection, each starting where the previous one ends; or one packet of any kind.
#[derive(Debug, Default)]
pub struct Train {
    bytes: Vec<u8>,
    checksum: Checksum,
    count: u16,
    /// Payload bytes of every packet except the last.
    size: usize,
    /// `None` if no further packet can be appended.
    open: Option<Open>,
}

/// The state that the next packet must continue.
#[derive(Debug)]
struct Open {
    layout: Layout,
    seq: u32,
}

impl Train {
    /// Adds a packet if it is the first or continues the last one. Returns whether it was added.
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

    /// Number of packets.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The merged packet, its checksum, and the payload bytes per packet if there are several.
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

    /// Completes the train: its header becomes that of the merged packet.
    fn close(&mut self) {
        if let Some(open) = self.open.take()
            && self.count > 1
        {
            lengthen(&mut self.bytes, &open.layout, self.size);
        }
    }
}

impl Open {
    /// The state for packets that may follow. `None` unless this is a TCP packet with a partial checksum, without IP
    /// options, with payload and with no flag except ACK.
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

    /// Whether `next`, which is longer than the header, continues `first` and the packets after it.
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
        // The fields between the ports and the options may differ: sequence number, flags, checksum.
        ip && same(t, t + 4)
            && be32(next, t + 4) == self.seq
            && same(t + 8, t + FLAGS)
            && next[t + FLAGS] & !PSH == ACK
            && same(t + 14, t + TCP_CHECKSUM)
            && same(t + 18, header)
    }
}

/// Changes the header of a packet with `size` bytes of payload to cover all the bytes.
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
    // The sum of the pseudo-header is not complemented, and it grows with the length that it contains.
    let partial = u64::from(be16(bytes, t + TCP_CHECKSUM)) + (after - before) as u64;
    bytes[t + TCP_CHECKSUM..t + TCP_CHECKSUM + 2].copy_from_slice(&fold(partial).to_be_bytes());
}

#[cfg(test)]
mod tests;

//! Segmentation of TCP super-packets into the packets that a network card with segmentation offload would send.
//!
//! With offloads, the kernel passes up to 64 KiB of one connection to a device at once, under one header (virtio 1.2
//! section 5.1.6.2). A queue, a loss process or a meter must see the packets of the wire. [`segment`] therefore shows
//! each packet with its own header. The payload is not copied.
//!
//! [`datagrams`] does the same for UDP payloads that a program wrote together (udp(7), `UDP_SEGMENT`). A TUN device
//! does not request that offload; a veth device always has it.
//!
//! *Not supported*: the extended ECN semantics of AccECN, which the device does not negotiate.

use super::sum::{adjust, be16, be32, fold, sum_of};
use crate::{Checksum, IpPacket};

/// The reason why a packet is not a valid super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// The packet is shorter than its header.
    #[error("the header is cut off after {0} bytes")]
    Short(usize),
    /// It is neither IPv4 nor IPv6.
    #[error("IP version {0} is neither 4 nor 6")]
    Version(u8),
    /// The transport checksum is not partial, so the transport header cannot be found.
    #[error("a super-packet without a partial checksum")]
    Checksum,
    /// A segment would have no payload, or more than fits into an IP packet.
    #[error("segments of {0} bytes")]
    Size(u16),
}

/// Position of the checksum in the TCP header (RFC 9293 section 3.1).
pub(super) const TCP_CHECKSUM: usize = 16;
const FIN: u8 = 0x01;
pub(super) const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Shows the TCP super-packet `packet` as packets of at most `size` payload bytes each, and returns their number.
/// `header` is scratch space. If an error is returned, nothing was shown.
pub fn segment(
    packet: &[u8],
    checksum: Checksum,
    size: u16,
    header: &mut Vec<u8>,
    each: &mut dyn FnMut(IpPacket<'_>),
) -> Result<usize, SegmentError> {
    let layout = Layout::of(packet, checksum)?;
    let (template, payload) = packet.split_at(layout.header);
    let step = usize::from(size);
    if step == 0 || layout.header + step > 0xffff {
        return Err(SegmentError::Size(size));
    }
    let count = payload.len().div_ceil(step).max(1);
    let first = First::of(template, &layout, packet.len());
    header.clear();
    header.extend_from_slice(template);
    for k in 0..count {
        let from = k * step;
        let data = &payload[from..payload.len().min(from + step)];
        first.rewrite(header, &layout, k, from, data.len(), k + 1 == count);
        each(IpPacket {
            header,
            payload: data,
            checksum,
        });
    }
    Ok(count)
}

/// Positions of the checksum and of the length in the UDP header, and the size of the header (RFC 768).
const UDP_CHECKSUM: u16 = 6;
const UDP_LENGTH: usize = 4;
const UDP_HEADER: usize = 8;

/// Shows `packet`, UDP payloads under one header, as datagrams of at most `size` payload bytes each, and returns
/// their number. Otherwise as [`segment`].
pub fn datagrams(
    packet: &[u8],
    checksum: Checksum,
    size: u16,
    header: &mut Vec<u8>,
    each: &mut dyn FnMut(IpPacket<'_>),
) -> Result<usize, SegmentError> {
    let short = SegmentError::Short(packet.len());
    let v4 = match packet.first().ok_or(short)? >> 4 {
        4 => true,
        6 => false,
        other => return Err(SegmentError::Version(other)),
    };
    let Checksum::Partial { start, offset } = checksum else {
        return Err(SegmentError::Checksum);
    };
    if offset != UDP_CHECKSUM {
        return Err(SegmentError::Checksum);
    }
    let t = usize::from(start);
    let ip = if v4 {
        usize::from(packet[0] & 15) * 4
    } else {
        40
    };
    let whole = t + UDP_HEADER;
    if t < ip.max(20) || (v4 && t != ip) || packet.len() < whole {
        return Err(short);
    }
    let step = usize::from(size);
    if step == 0 || whole + step > 0xffff {
        return Err(SegmentError::Size(size));
    }
    let (template, payload) = packet.split_at(whole);
    header.clear();
    header.extend_from_slice(template);
    // A partial checksum is the sum of the pseudo-header, which contains the length of the whole. That length is
    // removed.
    let before = be16(template, t + UDP_LENGTH);
    let pseudo = u64::from(be16(template, t + usize::from(UDP_CHECKSUM))) + u64::from(!before);
    let count = payload.len().div_ceil(step).max(1);
    for k in 0..count {
        let data = &payload[k * step..payload.len().min((k + 1) * step)];
        let length = (UDP_HEADER + data.len()) as u16;
        let total = (whole + data.len()) as u16;
        if v4 {
            let id = be16(template, 4).wrapping_add(k as u16);
            header[2..4].copy_from_slice(&total.to_be_bytes());
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header[10..12].fill(0);
            let sum = !fold(sum_of(&header[..t]));
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            header[4..6].copy_from_slice(&(total - 40).to_be_bytes());
        }
        header[t + UDP_LENGTH..][..2].copy_from_slice(&length.to_be_bytes());
        let sum = fold(pseudo + u64::from(length));
        header[t + usize::from(UDP_CHECKSUM)..][..2].copy_from_slice(&sum.to_be_bytes());
        each(IpPacket {
            header,
            payload: data,
            checksum,
        });
    }
    Ok(count)
}

/// Positions in the super-packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub version: u8,
    pub transport: usize,
    /// Size of the IP and TCP headers together.
    pub header: usize,
}

impl Layout {
    pub fn of(packet: &[u8], checksum: Checksum) -> Result<Layout, SegmentError> {
        let short = SegmentError::Short(packet.len());
        let version = packet.first().ok_or(short)? >> 4;
        let ip = match version {
            4 => usize::from(packet[0] & 15).max(5) * 4,
            6 => 40,
            _ => return Err(SegmentError::Version(version)),
        };
        // The kernel always leaves the checksum of a super-packet to the device. The partial checksum therefore tells
        // where TCP starts after any extension headers.
        let Checksum::Partial { start, offset } = checksum else {
            return Err(SegmentError::Checksum);
        };
        let transport = usize::from(start);
        if usize::from(offset) != TCP_CHECKSUM {
            return Err(SegmentError::Checksum);
        }
        if transport < ip || (version == 4 && transport != ip) || packet.len() < transport + 20 {
            return Err(short);
        }
        let header = transport + usize::from(packet[transport + 12] >> 4).max(5) * 4;
        if packet.len() < header {
            return Err(short);
        }
        Ok(Layout {
            version,
            transport,
            header,
        })
    }
}

/// Values of the super-packet's header from which the headers of the segments follow.
struct First {
    /// IPv4 only: identification, and the header checksum over the fields that do not change.
    id: u16,
    still: u64,
    seq: u32,
    flags: u8,
    /// Sum of the pseudo-header without its length.
    pseudo: u16,
}

impl First {
    fn of(template: &[u8], layout: &Layout, total: usize) -> First {
        let t = layout.transport;
        let (id, still) = if layout.version == 4 {
            let counted = [2, 4, 10].map(|at| u64::from(be16(template, at)));
            (
                be16(template, 4),
                // Header lengths are multiples of four bytes, so words can be removed from the sum exactly.
                sum_words(&template[..t]) - counted.iter().sum::<u64>(),
            )
        } else {
            (0, 0)
        };
        // `adjust` works on complemented fields, but a partial checksum is not complemented.
        let length = (total - t) as u32;
        let high = adjust(!be16(template, t + TCP_CHECKSUM), (length >> 16) as u16, 0);
        First {
            id,
            still,
            seq: be32(template, t + 4),
            flags: template[t + 13],
            pseudo: !adjust(high, length as u16, 0),
        }
    }

    fn rewrite(
        &self,
        header: &mut [u8],
        layout: &Layout,
        k: usize,
        from: usize,
        payload: usize,
        last: bool,
    ) {
        let t = layout.transport;
        let total = layout.header + payload;
        if layout.version == 4 {
            let id = self.id.wrapping_add(k as u16);
            let sum = !fold(self.still + total as u64 + u64::from(id));
            header[2..4].copy_from_slice(&(total as u16).to_be_bytes());
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            header[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
        }
        let seq = self.seq.wrapping_add(from as u32);
        header[t + 4..t + 8].copy_from_slice(&seq.to_be_bytes());
        // Only the first segment signals that the window was reduced (RFC 3168 section 6.1.2). Only the last one
        // carries PSH and FIN.
        let mut flags = self.flags;
        if k > 0 {
            flags &= !CWR;
        }
        if !last {
            flags &= !(FIN | PSH);
        }
        header[t + 13] = flags;
        let sum = fold(u64::from(self.pseudo) + (total - t) as u64);
        header[t + TCP_CHECKSUM..t + TCP_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The sum of 16-bit words without the shortcut of [`sum_of`], so that words can be removed again.
fn sum_words(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(2).map(sum_of).sum()
}

#[cfg(test)]
pub(super) mod tests;

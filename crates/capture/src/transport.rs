//! Decodes TCP and UDP. Other protocols are only distinguished.

use crate::{Tcp, TcpOptions, Transport};

/// The part of an IP packet after its header.
pub(crate) struct Payload<'a> {
    /// IP protocol number.
    pub protocol: u8,
    /// The captured bytes.
    pub data: &'a [u8],
    /// Its length on the wire.
    pub len: u32,
}

#[inline]
pub(crate) fn decode(payload: Payload<'_>, transport: &mut Transport) {
    match payload.protocol {
        6 => tcp(payload, transport),
        17 => *transport = udp(payload),
        1 | 58 => *transport = Transport::Icmp,
        other => *transport = Transport::Other(other),
    }
}

/// The part of the header that differs from packet to packet: the checksum of TCP, UDP or ICMP, or the sequence number
/// of ESP (RFC 4303). 0 if it was not captured, or for other protocols.
#[inline]
pub(crate) fn mark(payload: &Payload<'_>) -> u32 {
    let half = |at: usize| match payload.data.get(at..at + 2) {
        Some(&[a, b]) => u32::from(u16::from_be_bytes([a, b])),
        _ => 0,
    };
    match payload.protocol {
        6 => half(16),
        17 => half(6),
        1 | 58 => half(2),
        50 => half(4) << 16 | half(6),
        _ => 0,
    }
}

/// TCP (RFC 9293 section 3.1). Everything up to the window (16 bytes) must have been captured. Options are read as
/// far as they were captured.
#[inline]
fn tcp(Payload { data, len, .. }: Payload<'_>, transport: &mut Transport) {
    let Some(h) = data.first_chunk::<16>() else {
        *transport = Transport::Truncated(6);
        return;
    };
    let header_len = u32::from(h[12] >> 4) * 4;
    if header_len < 20 || header_len > len {
        *transport = Transport::Other(6);
        return;
    }
    *transport = Transport::Tcp(Tcp {
        src_port: u16::from_be_bytes([h[0], h[1]]),
        dst_port: u16::from_be_bytes([h[2], h[3]]),
        seq: u32::from_be_bytes([h[4], h[5], h[6], h[7]]),
        ack: u32::from_be_bytes([h[8], h[9], h[10], h[11]]),
        flags: h[13],
        window: u16::from_be_bytes([h[14], h[15]]),
        payload: len - header_len,
        options: TcpOptions::default(),
    });
    if header_len > 20
        && let Transport::Tcp(tcp) = transport
    {
        let end = (header_len as usize).min(data.len());
        read_options(data.get(20..end).unwrap_or_default(), &mut tcp.options);
    }
}

/// Reads TCP options: kind, length, value (RFC 9293 section 3.2). Reading stops at the end of the list, at a
/// malformed option, or at the end of the bytes. Options read until then are returned.
pub fn tcp_options(bytes: &[u8]) -> TcpOptions {
    let mut options = TcpOptions::default();
    read_options(bytes, &mut options);
    options
}

#[inline]
fn read_options(bytes: &[u8], options: &mut TcpOptions) {
    // Fast path for nearly all segments of most traces: two no-operations and timestamps (RFC 7323 appendix A).
    if let &[1, 1, 8, 10, a, b, c, d, e, f, g, h] = bytes {
        options.timestamps = Some((
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([e, f, g, h]),
        ));
        return;
    }
    let mut rest = bytes;
    while let [kind, tail @ ..] = rest {
        match kind {
            0 => break,
            1 => {
                rest = tail;
                continue;
            }
            _ => {}
        }
        let Some(&len) = tail.first() else { break };
        let len = usize::from(len);
        let Some(body) = rest.get(2..len.max(1)) else {
            break;
        };
        match (kind, body) {
            (2, &[a, b]) => options.mss = Some(u16::from_be_bytes([a, b])),
            (3, &[shift]) => options.window_scale = Some(shift),
            (4, []) => options.sack_permitted = true,
            (5, blocks) => {
                for (slot, block) in options.sack.iter_mut().zip(blocks.chunks_exact(8)) {
                    *slot = Some((be32(block, 0), be32(block, 4)));
                }
            }
            (8, values) if values.len() == 8 => {
                options.timestamps = Some((be32(values, 0), be32(values, 4)));
            }
            _ => {}
        }
        rest = &rest[len..];
    }
}

/// UDP (RFC 768). Only the ports must have been captured. The payload length comes from the UDP length if that was
/// captured and is plausible within the IP length. Otherwise it comes from the IP length (first fragments, offloaded
/// packets).
#[inline]
fn udp(Payload { data, len, .. }: Payload<'_>) -> Transport {
    let Some(&[a, b, c, d]) = data.first_chunk::<4>() else {
        return Transport::Truncated(17);
    };
    if len < 8 {
        return Transport::Other(17);
    }
    let udp_len = match data.get(4..6) {
        Some(&[e, f]) => match u32::from(u16::from_be_bytes([e, f])) {
            0 => len,
            1..8 => return Transport::Other(17),
            n => n.min(len),
        },
        _ => len,
    };
    Transport::Udp {
        src_port: u16::from_be_bytes([a, b]),
        dst_port: u16::from_be_bytes([c, d]),
        payload: udp_len - 8,
    }
}

/// The four bytes at `at`, which must exist.
#[inline]
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

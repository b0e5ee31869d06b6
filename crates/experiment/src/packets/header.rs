//! Writes IP, TCP and UDP headers, with checksums for payload of zeros.

use std::net::IpAddr;

use swell_capture::{Tcp, TcpOptions};

/// Maximum length of all headers, bytes: IPv6 (40, RFC 8200) and TCP with options (60, RFC 9293).
pub(super) const LONGEST: usize = 100;
/// Maximum length of TCP options, bytes (RFC 9293 section 3.1: the data offset has 4 bits).
const MOST_OPTIONS: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Fields of the network layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub from: IpAddr,
    pub to: IpAddr,
    /// ECN codepoint (RFC 3168).
    pub ecn: u8,
    /// Network-layer size in bytes.
    pub size: u16,
}

impl Network {
    /// Length of the IP header, bytes.
    pub fn header(&self) -> u16 {
        match self.from {
            IpAddr::V4(_) => 20,
            IpAddr::V6(_) => 40,
        }
    }

    /// The length field of UDP: header and payload.
    pub fn udp_length(&self) -> u16 {
        self.size.saturating_sub(self.header()).max(8)
    }

    /// Bytes available for TCP options beside `payload`.
    fn room(&self, payload: u32) -> usize {
        let carried = usize::from(self.size.saturating_sub(self.header()));
        let room = carried.saturating_sub(20 + payload as usize) & !3;
        room.min(MOST_OPTIONS)
    }
}

/// Removes options that do not fit into a packet of this size beside `payload`, so that the header agrees with the
/// packet's size. MSS has priority, and SACK blocks come last.
pub(super) fn fit(options: &mut TcpOptions, network: &Network, payload: u32) {
    let mut room = network.room(payload);
    let mut take = |bytes: usize| {
        let fits = bytes <= room;
        room -= if fits { bytes } else { 0 };
        fits
    };
    let alone = options.mss.is_none();
    options.mss = options.mss.filter(|_| take(4));
    options.sack_permitted = options.sack_permitted && take(2);
    // Timestamps alone take 12 bytes with the usual alignment (RFC 7323 appendix A).
    options.timestamps = (options.timestamps).filter(|_| take(if alone { 12 } else { 10 }));
    options.window_scale = options.window_scale.filter(|_| take(3));
    let blocks = room.saturating_sub(4) / 8;
    options.sack.iter_mut().skip(blocks).for_each(|b| *b = None);
}

/// Replaces `out` by the headers of a TCP segment. Only options of `tcp` that [`fit`] are written; no-operation options
/// (RFC 9293 section 3.2) fill the remaining space.
pub(super) fn tcp(out: &mut Vec<u8>, network: &Network, tcp: &Tcp) {
    let carried = usize::from(network.size.saturating_sub(network.header()));
    let mut fitting = tcp.options;
    fit(&mut fitting, network, tcp.payload);
    let options = options(&fitting, network.room(tcp.payload));
    internet(out, network, TCP);
    let start = out.len();
    out.extend(tcp.src_port.to_be_bytes());
    out.extend(tcp.dst_port.to_be_bytes());
    out.extend(tcp.seq.to_be_bytes());
    out.extend(tcp.ack.to_be_bytes());
    // Data offset in 32-bit words; reserved bits are zero.
    out.push((((20 + options.len()) / 4) << 4) as u8);
    out.push(tcp.flags);
    out.extend(tcp.window.to_be_bytes());
    // Checksum, filled in below, and urgent pointer.
    out.extend([0; 4]);
    out.extend(options);
    let sum = transport_checksum(network, TCP, carried, &out[start..]);
    out[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
}

/// Replaces `out` by the headers of a datagram (RFC 768).
pub(super) fn udp(out: &mut Vec<u8>, network: &Network, ports: [u16; 2]) {
    let carried = network.udp_length();
    internet(out, network, UDP);
    let start = out.len();
    out.extend(ports[0].to_be_bytes());
    out.extend(ports[1].to_be_bytes());
    out.extend(carried.to_be_bytes());
    out.extend([0; 2]);
    let sum = transport_checksum(network, UDP, usize::from(carried), &out[start..]);
    // A checksum of zero would mean that there is none.
    let sum = if sum == 0 { 0xffff } else { sum };
    out[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
}

fn internet(out: &mut Vec<u8>, network: &Network, protocol: u8) {
    const HOPS: u8 = 64;
    out.clear();
    match (network.from, network.to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend([0x45, network.ecn & 3]);
            out.extend(network.size.to_be_bytes());
            // Don't Fragment is set, so the identification has no meaning (RFC 6864 section 4.1).
            out.extend([0, 0, 0x40, 0, HOPS, protocol, 0, 0]);
            out.extend(from.octets());
            out.extend(to.octets());
            let sum = !folded(sum(out));
            out[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (from, to) => {
            // Version, traffic class and a zero flow label.
            out.extend([0x60, (network.ecn & 3) << 4, 0, 0]);
            out.extend(network.size.saturating_sub(40).to_be_bytes());
            out.extend([protocol, HOPS]);
            for address in [from, to] {
                out.extend(match address {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                    IpAddr::V6(v6) => v6.octets(),
                });
            }
        }
    }
}

/// Encodes options, and fills `room` with no-operation options.
fn options(options: &TcpOptions, room: usize) -> Vec<u8> {
    let mut list: Vec<u8> = Vec::with_capacity(MOST_OPTIONS);
    if let Some(mss) = options.mss {
        list.extend([2, 4]);
        list.extend(mss.to_be_bytes());
    }
    if options.sack_permitted {
        list.extend([4, 2]);
    }
    if let Some((value, echo)) = options.timestamps {
        if options.mss.is_none() {
            list.extend([1, 1]);
        }
        list.extend([8, 10]);
        list.extend(value.to_be_bytes());
        list.extend(echo.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        list.extend([3, 3, shift]);
    }
    let blocks: Vec<(u32, u32)> = options.sack.iter().flatten().copied().collect();
    if !blocks.is_empty() {
        list.extend([1, 1, 5, (2 + 8 * blocks.len()) as u8]);
        for (start, end) in blocks {
            list.extend(start.to_be_bytes());
            list.extend(end.to_be_bytes());
        }
    }
    list.resize(room, 1);
    list
}

/// The checksum over the pseudo-header, `header` and payload of zeros (RFC 9293 section 3.1, RFC 8200 section 8.1).
fn transport_checksum(network: &Network, protocol: u8, carried: usize, header: &[u8]) -> u16 {
    let mut total = u64::from(protocol) + carried as u64 + sum(header);
    for address in [network.from, network.to] {
        total += match address {
            IpAddr::V4(v4) => sum(&v4.octets()),
            IpAddr::V6(v6) => sum(&v6.octets()),
        };
    }
    !folded(total)
}

/// The sum of 16-bit words (RFC 1071), carries not yet added.
fn sum(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| {
        let low = pair.get(1).copied().unwrap_or(0);
        u64::from(u16::from_be_bytes([pair[0], low]))
    };
    bytes.chunks(2).map(word).sum()
}

fn folded(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

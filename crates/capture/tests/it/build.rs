//! Builds captures byte by byte.

/// Byte order of the file.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub const BOTH: [Order; 2] = [Order::Little, Order::Big];

    pub fn u16(self, v: u16) -> [u8; 2] {
        match self {
            Order::Little => v.to_le_bytes(),
            Order::Big => v.to_be_bytes(),
        }
    }
    pub fn u32(self, v: u32) -> [u8; 4] {
        match self {
            Order::Little => v.to_le_bytes(),
            Order::Big => v.to_be_bytes(),
        }
    }
    pub fn u64(self, v: u64) -> [u8; 8] {
        match self {
            Order::Little => v.to_le_bytes(),
            Order::Big => v.to_be_bytes(),
        }
    }
}

pub const MICROS: u32 = 0xa1b2_c3d4;
pub const NANOS: u32 = 0xa1b2_3c4d;

/// A pcap file header.
pub fn pcap_header(order: Order, magic: u32, minor: u16, snaplen: u32, link: u32) -> Vec<u8> {
    let mut out = order.u32(magic).to_vec();
    out.extend(order.u16(2));
    out.extend(order.u16(minor));
    out.extend([0; 8]);
    out.extend(order.u32(snaplen));
    out.extend(order.u32(link));
    out
}

/// A pcap record: four header fields as given, followed by the data.
pub fn pcap_record(order: Order, header: [u32; 4], data: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = header.iter().flat_map(|&f| order.u32(f)).collect();
    out.extend(data);
    out
}

/// A little-endian microsecond pcap file of whole frames, one millisecond apart, starting at second 1000.
pub fn pcap(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = pcap_header(Order::Little, MICROS, 4, 65535, link);
    for (i, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        let header = [1000, i as u32 * 1000, len, len];
        out.extend(pcap_record(Order::Little, header, frame));
    }
    out
}

/// A pcapng block: type, length, body padded to a multiple of four bytes, and length.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order.u32(padded as u32 + 12);
    let mut out = order.u32(kind).to_vec();
    out.extend(length);
    out.extend(body);
    out.resize(8 + padded, 0);
    out.extend(length);
    out
}

/// A pcapng section header of version 1.0 with unspecified length.
pub fn section(order: Order) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend(order.u16(1));
    body.extend(order.u16(0));
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

/// A pcapng interface description with options, given as (code, value).
pub fn interface(order: Order, link: u16, snaplen: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = order.u16(link).to_vec();
    body.extend([0, 0]);
    body.extend(order.u32(snaplen));
    for (code, value) in options {
        body.extend(order.u16(*code));
        body.extend(order.u16(value.len() as u16));
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    if !options.is_empty() {
        body.extend([0; 4]);
    }
    block(order, 1, &body)
}

/// A pcapng enhanced packet block with a whole frame.
pub fn enhanced(order: Order, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let mut body = order.u32(interface).to_vec();
    body.extend(order.u32((ticks >> 32) as u32));
    body.extend(order.u32(ticks as u32));
    body.extend(order.u32(frame.len() as u32));
    body.extend(order.u32(frame.len() as u32));
    body.extend(frame);
    block(order, 6, &body)
}

/// A pcapng obsolete packet block with a whole frame.
pub fn obsolete(order: Order, interface: u16, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let mut body = order.u16(interface).to_vec();
    body.extend(order.u16(0xffff));
    body.extend(order.u32((ticks >> 32) as u32));
    body.extend(order.u32(ticks as u32));
    body.extend(order.u32(frame.len() as u32));
    body.extend(order.u32(frame.len() as u32));
    body.extend(frame);
    block(order, 2, &body)
}

/// A pcapng simple packet block: length on the wire, and the captured bytes.
pub fn simple(order: Order, wire_len: u32, captured: &[u8]) -> Vec<u8> {
    let mut body = order.u32(wire_len).to_vec();
    body.extend(captured);
    block(order, 3, &body)
}

/// A snoop file of Ethernet frames at second 1000.
pub fn snoop(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"snoop\0\0\0".to_vec();
    out.extend([0, 0, 0, 2, 0, 0, 0, 4]);
    for (i, frame) in frames.iter().enumerate() {
        let padded = frame.len().next_multiple_of(4);
        let len = frame.len() as u32;
        let header = [len, len, 24 + padded as u32, 0, 1000, i as u32];
        out.extend(header.iter().flat_map(|f| f.to_be_bytes()));
        out.extend(frame);
        out.resize(out.len() + padded - frame.len(), 0);
    }
    out
}

/// An Ethernet frame.
pub fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    out.extend(ether_type.to_be_bytes());
    out.extend(payload);
    out
}

/// An IPv4 packet without options from 10.0.0.1 to 10.0.0.2, TTL 64, ECT(0).
pub fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    v4_with(protocol, 0, &[], payload)
}

/// Like [`v4`], with the flags and fragment offset field, and options.
pub fn v4_with(protocol: u8, fragment: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let total = (header + payload.len()) as u16;
    let mut out = vec![0x40 | (header / 4) as u8, 2];
    out.extend(total.to_be_bytes());
    out.extend([0, 1]);
    out.extend(fragment.to_be_bytes());
    out.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    out.extend(options);
    out.extend(payload);
    out
}

/// An IPv6 packet from 2001:db8::1 to 2001:db8::2, hop limit 63, CE.
pub fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x60, 0x30, 0, 0];
    out.extend((payload.len() as u16).to_be_bytes());
    out.extend([next, 63]);
    for last in [1, 2] {
        out.extend([
            0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last,
        ]);
    }
    out.extend(payload);
    out
}

/// A TCP segment 1234 -> 80 with sequence number 7, acknowledgement 9 and window 4096. `options` must be a multiple
/// of four bytes.
pub fn tcp(flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x04, 0xd2, 0, 80, 0, 0, 0, 7, 0, 0, 0, 9];
    out.extend([((20 + options.len()) as u8 / 4) << 4, flags, 0x10, 0]);
    out.extend([0; 4]);
    out.extend(options);
    out.extend(payload);
    out
}

/// A UDP datagram 53 -> 4000.
pub fn udp(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 53, 0x0f, 0xa0];
    out.extend((payload.len() as u16 + 8).to_be_bytes());
    out.extend([0, 0]);
    out.extend(payload);
    out
}

/// A small web exchange over IPv4: handshake with every option, request, response with SACK, FIN.
pub fn web_frames() -> Vec<Vec<u8>> {
    let syn = [
        2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    let stamps = [1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 1];
    let sack = [1, 1, 5, 10, 0, 0, 0, 10, 0, 0, 0, 20];
    [
        tcp(0x02, &syn, &[]),
        tcp(0x12, &syn, &[]),
        tcp(0x10, &stamps, &[]),
        tcp(0x18, &stamps, b"GET / HTTP/1.0\r\n\r\n"),
        tcp(0x10, &sack, &[7; 100]),
        tcp(0x11, &[], &[]),
    ]
    .iter()
    .map(|segment| ethernet(0x0800, &v4(6, segment)))
    .collect()
}

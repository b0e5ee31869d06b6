//! Cost per packet of reading and dissecting a header-only trace, compared to `pcap-parser` on the same bytes in the
//! same run: `cargo bench -p swell-capture`.
//!
//! The trace is generated in memory: nanosecond pcap, snap length 96, 85 % TCP with timestamps, 12 % UDP, 3 % ICMP. A
//! tenth is IPv6, 2 % has a VLAN tag, and packets have 500 bytes on the wire on average. Each time is the minimum of
//! nine interleaved rounds, because noise only adds to it.
#![expect(clippy::print_stdout, reason = "printing is what a bench does")]

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{LegacyPcapReader, PcapBlockOwned, PcapError, parse_pcap_frame};
use std::hint::black_box;
use std::time::{Duration, Instant};
use swell_base::Stream;
use swell_capture::{Frame, LinkType, Packet, Reader, Transport, dissect};

const PACKETS: usize = 1_000_000;
const ROUNDS: usize = 9;
const FILE_HEADER: usize = 24;

type Way = (&'static str, fn(&[u8]) -> u64);

const WAYS: [Way; 5] = [
    ("swell-capture: Reader::next_packet", reader),
    (
        "swell-capture: dissect alone, frames by pcap-parser slices",
        slices_dissected,
    ),
    ("pcap-parser slices, framing alone", slices),
    ("pcap-parser streaming, framing alone", streaming),
    (
        "pcap-parser streaming, dissected by swell-capture",
        streaming_dissected,
    ),
];

fn main() {
    let trace = trace();
    println!(
        "{PACKETS} packets, {:.0} MB, snap length 96, in memory; least of {ROUNDS} rounds",
        trace.len() as f64 / 1e6
    );
    let mut least = [Duration::MAX; WAYS.len()];
    for _ in 0..ROUNDS {
        for (shortest, (_, way)) in least.iter_mut().zip(WAYS) {
            let begun = Instant::now();
            black_box(way(black_box(&trace)));
            *shortest = (*shortest).min(begun.elapsed());
        }
    }
    for (time, (name, _)) in least.iter().zip(WAYS) {
        println!(
            "{:6.1} ns/packet {:7.0} MB/s {:5.2} x  {name}",
            time.as_secs_f64() * 1e9 / PACKETS as f64,
            trace.len() as f64 / 1e6 / time.as_secs_f64(),
            time.as_secs_f64() / least[0].as_secs_f64(),
        );
    }
}

/// Combines the fields that a later stage would use, so that nothing is optimised away.
#[inline]
fn fold(sum: u64, packet: &Packet) -> u64 {
    let transport = match packet.transport {
        Transport::Tcp(tcp) => {
            let echo = tcp.options.timestamps.map_or(0, |t| t.1);
            u64::from(tcp.seq ^ tcp.payload ^ echo) + u64::from(tcp.src_port ^ tcp.dst_port)
        }
        Transport::Udp {
            src_port,
            dst_port,
            payload,
        } => u64::from(payload) + u64::from(src_port ^ dst_port),
        _ => 1,
    };
    sum.wrapping_mul(31)
        .wrapping_add(packet.time.cast_unsigned() ^ transport ^ u64::from(packet.ip_len))
}

fn reader(trace: &[u8]) -> u64 {
    let mut reader = Reader::new(trace).expect("the trace is well formed: made below");
    let mut sum = 0;
    while let Some(packet) = reader.next_packet().expect("as above") {
        sum = fold(sum, &packet);
    }
    assert_eq!(reader.counts().packets, PACKETS as u64);
    sum
}

fn slices(trace: &[u8]) -> u64 {
    let (mut rest, mut sum) = (&trace[FILE_HEADER..], 0u64);
    while let Ok((next, block)) = parse_pcap_frame(rest) {
        sum = sum.wrapping_add(u64::from(block.ts_usec ^ block.origlen));
        rest = next;
    }
    sum
}

fn slices_dissected(trace: &[u8]) -> u64 {
    let (mut rest, mut sum) = (&trace[FILE_HEADER..], 0u64);
    while let Ok((next, block)) = parse_pcap_frame(rest) {
        sum = dissected(sum, block.ts_sec, block.ts_usec, block.origlen, block.data);
        rest = next;
    }
    sum
}

fn streaming(trace: &[u8]) -> u64 {
    let mut sum = 0u64;
    stream(trace, |seconds, fraction, wire_len, _| {
        sum = sum.wrapping_add(u64::from(seconds ^ fraction ^ wire_len));
    });
    sum
}

fn streaming_dissected(trace: &[u8]) -> u64 {
    let mut sum = 0u64;
    stream(trace, |seconds, fraction, wire_len, data| {
        sum = dissected(sum, seconds, fraction, wire_len, data);
    });
    sum
}

#[inline]
fn dissected(sum: u64, seconds: u32, fraction: u32, wire_len: u32, data: &[u8]) -> u64 {
    let frame = Frame {
        time: i64::from(seconds) * 1_000_000_000 + i64::from(fraction),
        interface: 0,
        heading: swell_capture::Heading::Unknown,
        link: LinkType::ETHERNET,
        wire_len,
        data,
    };
    dissect(&frame).map_or(sum, |packet| fold(sum, &packet))
}

#[inline]
fn stream(trace: &[u8], mut each: impl FnMut(u32, u32, u32, &[u8])) {
    let mut reader = LegacyPcapReader::new(256 * 1024, trace).expect("well formed");
    loop {
        match reader.next() {
            Ok((used, block)) => {
                if let PcapBlockOwned::Legacy(b) = block {
                    each(b.ts_sec, b.ts_usec, b.origlen, b.data);
                }
                reader.consume(used);
            }
            Err(PcapError::Incomplete(_)) => reader.refill().expect("memory can be read"),
            Err(_) => return,
        }
    }
}

fn trace() -> Vec<u8> {
    let mut rng = Stream::new(1, "bench");
    let mut out = Vec::with_capacity(PACKETS * 112);
    out.extend(0xa1b2_3c4du32.to_le_bytes());
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 96, 0, 0, 0, 1, 0, 0, 0]);
    let mut nanos = 0u64;
    for _ in 0..PACKETS {
        nanos += rng.below(20_000);
        let (frame, wire_len) = frame(&mut rng);
        let captured = frame.len().min(96);
        for field in [
            1_700_000_000 + (nanos / 1_000_000_000) as u32,
            (nanos % 1_000_000_000) as u32,
            captured as u32,
            wire_len,
        ] {
            out.extend(field.to_le_bytes());
        }
        out.extend(&frame[..captured]);
    }
    out
}

/// A frame with up to 64 bytes of its payload, and its length on the wire.
fn frame(rng: &mut Stream) -> (Vec<u8>, u32) {
    let v6 = rng.chance(0.1);
    let payload = rng.below(900) as u16;
    let (protocol, transport): (u8, Vec<u8>) = match rng.below(100) {
        0..85 => {
            let mut h = vec![0; 32];
            h[..4].copy_from_slice(&(rng.below(1 << 32) as u32).to_be_bytes());
            h[4..8].copy_from_slice(&(rng.below(1 << 32) as u32).to_be_bytes());
            h[12] = 8 << 4;
            h[13] = 0x10;
            h[20..24].copy_from_slice(&[1, 1, 8, 10]);
            h[28..32].copy_from_slice(&(rng.below(1 << 32) as u32).to_be_bytes());
            (6, h)
        }
        85..97 => {
            let mut h = vec![0; 8];
            h[..4].copy_from_slice(&(rng.below(1 << 32) as u32).to_be_bytes());
            h[4..6].copy_from_slice(&(payload + 8).to_be_bytes());
            (17, h)
        }
        _ => (if v6 { 58 } else { 1 }, vec![0; 8]),
    };
    let len = payload + transport.len() as u16;
    let mut frame = vec![2; 12];
    if rng.chance(0.02) {
        frame.extend([0x81, 0, 0, 7]);
    }
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(len.to_be_bytes());
        frame.extend([protocol, 64]);
        frame.extend((0..4).flat_map(|_| rng.below(1 << 62).to_be_bytes()));
    } else {
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((len + 20).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
        frame.extend(rng.below(1 << 62).to_be_bytes());
    }
    frame.extend(transport);
    let wire_len = frame.len() as u32 + u32::from(payload);
    frame.extend(vec![0xaa; usize::from(payload.min(64))]);
    (frame, wire_len)
}

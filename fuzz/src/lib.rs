//! What the fuzz targets do with their input. The functions are also run by the tests of
//! `swell-capture`, over every seed and mutations of it, so that they hold without a fuzzer.

use std::io::Read;
use swell_capture::flow::{FlowCounts, FlowError, FlowReader, FlowRecord, FlowSkip};
use swell_capture::{
    Compression, Counts, Frame, LinkType, Packet, Reader, TcpOptions, Transport, dissect,
    tcp_options,
};

/// Highly compressed input may hold more packets than there is time for.
const MOST_PACKETS: usize = 20_000;

/// A whole file: pcap, pcapng, snoop, plain or compressed.
///
/// # Panics
/// If a record is lost, if reading goes on after the end, or if what is read depends on how the
/// bytes arrive.
pub fn reader(data: &[u8]) {
    let whole = read(Reader::new(data));
    let dripped = read(Reader::new(Drip { data, step: 1 }));
    if whole.compression == Some(Compression::Plain) {
        assert_eq!(whole, dripped, "packets depend on how the bytes arrive");
    } else {
        // A decoder that meets damage drops what it decoded in the same read.
        let both = whole.packets.len().min(dripped.packets.len());
        assert_eq!(whole.packets[..both], dripped.packets[..both]);
    }
}

/// Everything that can be seen of a capture: its packets, counts and how it ended.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    compression: Option<Compression>,
    packets: Vec<Packet>,
    counts: Option<Counts>,
    end: Option<String>,
}

fn read(opened: Result<Reader<'_>, swell_capture::Error>) -> Seen {
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(e) => {
            return Seen {
                end: Some(e.to_string()),
                ..Seen::default()
            };
        }
    };
    let compression = Some(reader.compression());
    let mut packets = Vec::new();
    let end = loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                check_packet(&packet);
                packets.push(packet);
                if packets.len() == MOST_PACKETS {
                    return Seen {
                        compression,
                        packets,
                        ..Seen::default()
                    };
                }
            }
            Ok(None) => break None,
            Err(e) => {
                assert_eq!(e.records, reader.counts().records);
                assert_eq!(e.offset, reader.offset());
                break Some(e.to_string());
            }
        }
    };
    assert!(
        matches!(reader.next_packet(), Ok(None)),
        "read on behind the end"
    );
    let counts = reader.counts().clone();
    assert_eq!(counts.packets, packets.len() as u64);
    assert_eq!(counts.records, counts.packets + counts.skipped_total());
    let known = counts.tcp + counts.udp + counts.icmp + counts.fragments + counts.other;
    assert_eq!(
        counts.packets,
        known + counts.short_transport + counts.bad_transport
    );
    for packet in &packets {
        assert!((packet.interface as usize) < reader.interfaces().len());
    }
    Seen {
        compression,
        packets,
        counts: Some(counts),
        end,
    }
}

/// A file of flow records of any format.
///
/// # Panics
/// If a record is lost or contradicts itself, or if what is read depends on how the bytes arrive.
pub fn flows(data: &[u8]) {
    let whole = read_flows(FlowReader::new(data));
    let dripped = read_flows(FlowReader::new(Drip { data, step: 1 }));
    if whole.compression == Some(Compression::Plain) {
        assert_eq!(whole, dripped, "records depend on how the bytes arrive");
    } else {
        let both = whole.records.len().min(dripped.records.len());
        assert_eq!(whole.records[..both], dripped.records[..both]);
    }
}

/// Everything that can be seen of a file of flow records.
#[derive(Debug, Default, PartialEq)]
struct SeenFlows {
    compression: Option<Compression>,
    records: Vec<FlowRecord>,
    counts: Option<FlowCounts>,
    end: Option<String>,
}

fn read_flows(opened: Result<FlowReader<'_>, FlowError>) -> SeenFlows {
    let mut seen = SeenFlows::default();
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(e) => {
            seen.end = Some(e.to_string());
            return seen;
        }
    };
    seen.compression = Some(reader.compression());
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                assert!(record.first <= record.last);
                assert_eq!(record.src.is_ipv4(), record.dst.is_ipv4());
                assert!(record.sampling.interval >= 1.0);
                seen.records.push(record);
                if seen.records.len() == MOST_PACKETS {
                    return seen;
                }
            }
            Ok(None) => break,
            Err(e) => {
                assert_eq!(e.records, reader.counts().records);
                seen.end = Some(e.to_string());
                break;
            }
        }
    }
    assert!(
        matches!(reader.next_record(), Ok(None)),
        "read on behind the end"
    );
    let counts = reader.counts().clone();
    assert_eq!(counts.records, seen.records.len() as u64);
    let skipped: u64 = [
        FlowSkip::NoAddresses,
        FlowSkip::NoCounters,
        FlowSkip::NoPacket,
    ]
    .iter()
    .map(|reason| counts.skipped(*reason).times)
    .sum();
    assert_eq!(counts.data_records, counts.records + skipped);
    seen.counts = Some(counts);
    seen
}

/// Gives its bytes in small pieces of changing size.
struct Drip<'a> {
    data: &'a [u8],
    step: usize,
}

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.step = self.step % 13 + 1;
        let n = self.step.min(buffer.len());
        self.data.read(&mut buffer[..n])
    }
}

/// A frame: one byte chooses the link type, two the length on the wire beyond what was captured.
///
/// # Panics
/// If a packet says more than its frame does.
pub fn dissector(data: &[u8]) {
    let [link, more_high, more_low, bytes @ ..] = data else {
        return;
    };
    let supported = LinkType::SUPPORTED;
    let more = u32::from(u16::from_be_bytes([*more_high, *more_low]));
    let frame = Frame {
        time: 0,
        interface: 0,
        heading: swell_capture::Heading::Unknown,
        link: supported[usize::from(*link) % supported.len()],
        wire_len: bytes.len() as u32 + more,
        data: bytes,
    };
    let Ok(packet) = dissect(&frame) else { return };
    check_packet(&packet);
    assert_eq!(packet.captured_len as usize, bytes.len());
    assert_eq!(packet.wire_len, frame.wire_len);
    // The IP header at least was captured.
    let least = if packet.src.is_ipv4() { 20 } else { 40 };
    assert!(bytes.len() >= least);
    // The same frame with less of it captured is the same packet, as far as it goes.
    let shorter = Frame {
        data: &bytes[..least.max(bytes.len() / 2)],
        ..frame
    };
    if let Ok(cut) = dissect(&shorter) {
        assert_eq!((cut.src, cut.dst), (packet.src, packet.dst));
        // The length of a jumbogram is an option. Where that is cut off, the frame's length is all there is.
        let jumbo = packet.ip_len > 0xffff + 40;
        let longest = if jumbo { frame.wire_len } else { packet.ip_len };
        assert!((packet.ip_len..=longest).contains(&cut.ip_len));
    }
}

fn check_packet(packet: &Packet) {
    let header: u32 = if packet.src.is_ipv4() { 20 } else { 40 };
    assert_eq!(packet.src.is_ipv4(), packet.dst.is_ipv4());
    assert!(packet.ip_len >= header);
    assert!(packet.ecn < 4);
    match packet.transport {
        Transport::Tcp(tcp) => assert!(tcp.payload <= packet.ip_len - header - 20),
        Transport::Udp { payload, .. } => assert!(payload <= packet.ip_len - header - 8),
        _ => {}
    }
}

/// The bytes of TCP options.
///
/// # Panics
/// If they are read otherwise than by [`plain_options`].
pub fn options(data: &[u8]) {
    // A header has room for 40 bytes; more is read all the same.
    assert_eq!(tcp_options(data), plain_options(data));
}

/// The same options read the slow way: an independent reading of RFC 9293 section 3.2.
fn plain_options(data: &[u8]) -> TcpOptions {
    let mut options = TcpOptions::default();
    let byte = |i: usize| data.get(i).copied().map(usize::from);
    let word = |i: usize| {
        (0..4).fold(0u32, |word, k| {
            word << 8 | data.get(i + k).map_or(0, |&b| u32::from(b))
        })
    };
    let mut i = 0;
    while let Some(kind) = byte(i) {
        if kind == 0 {
            break;
        }
        if kind == 1 {
            i += 1;
            continue;
        }
        let Some(len) = byte(i + 1).filter(|&len| len >= 2 && i + len <= data.len()) else {
            break;
        };
        if kind == 2 && len == 4 {
            options.mss = Some((word(i) & 0xffff) as u16);
        } else if kind == 3 && len == 3 {
            options.window_scale = Some(data[i + 2]);
        } else if kind == 4 && len == 2 {
            options.sack_permitted = true;
        } else if kind == 5 {
            for k in 0..((len - 2) / 8).min(4) {
                let at = i + 2 + 8 * k;
                options.sack[k] = Some((word(at), word(at + 4)));
            }
        } else if kind == 8 && len == 10 {
            options.timestamps = Some((word(i + 2), word(i + 6)));
        }
        i += len;
    }
    options
}

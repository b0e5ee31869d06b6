//! NetFlow versions 1, 5 and 7: a header and records of fixed layout (Cisco, "NetFlow Export Datagram Format",
//! NetFlow Services Solutions Guide, tables B-1 to B-6).

use std::net::{IpAddr, Ipv4Addr};

use super::draft::{Clock, MILLI};
use super::record::{
    EndReason, FlowDirection, FlowRecord, Layer, Sampling, SamplingSource, Times, known_flags,
};
use super::{FlowCounts, Protocol};

/// The layout of a NetFlow version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub protocol: Protocol,
    pub header: usize,
    pub record: usize,
    /// Most records in a message: as many as fit into 1500 bytes.
    pub most: u16,
    /// Offsets of protocol, type of service and TCP flags in a record.
    protocol_at: usize,
    tos_at: usize,
    flags_at: usize,
}

const V1: Layout = Layout {
    protocol: Protocol::NetFlow1,
    header: 16,
    record: 52,
    most: 24,
    protocol_at: 38,
    tos_at: 39,
    flags_at: 40,
};
const V5: Layout = Layout {
    protocol: Protocol::NetFlow5,
    header: 24,
    record: 48,
    most: 30,
    protocol_at: 38,
    tos_at: 39,
    flags_at: 37,
};
const V7: Layout = Layout {
    protocol: Protocol::NetFlow7,
    header: 24,
    record: 52,
    most: 28,
    ..V5
};

impl Layout {
    /// The layout of a version number; `None` for other versions.
    pub(crate) fn of(version: u16) -> Option<Layout> {
        match version {
            1 => Some(V1),
            5 => Some(V5),
            7 => Some(V7),
            _ => None,
        }
    }
}

/// The fields of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub count: u16,
    pub clock: Clock,
    /// Number of flows sent before; in versions 5 and 7.
    pub sequence: Option<u32>,
    /// Engine type and number; in version 5.
    pub domain: u32,
    pub sampling: Sampling,
}

/// Reads a header of `layout.header` bytes.
pub(crate) fn header(layout: &Layout, h: &[u8]) -> Option<Header> {
    let word = |at: usize| Some(u32::from_be_bytes(*h.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(u16::from_be_bytes(*h.get(at..)?.first_chunk()?));
    let seconds = i64::from(word(8)?) * 1_000_000_000;
    // Limits invalid values: the field holds nanoseconds within a second.
    let told = seconds + i64::from(word(12)?.min(999_999_999));
    let up = i64::from(word(4)?) * MILLI;
    // A clock that was never set stays at zero. Times are then those since the exporter started.
    let boot = if told == 0 { 0 } else { told - up };
    let mut header = Header {
        count: half(2)?,
        clock: Clock {
            export: boot + up,
            boot: Some(boot),
        },
        sequence: None,
        domain: 0,
        sampling: Sampling::UNKNOWN,
    };
    if layout.protocol != Protocol::NetFlow1 {
        header.sequence = Some(word(16)?);
    }
    if layout.protocol == Protocol::NetFlow5 {
        header.domain = u32::from(half(20)?);
        // Two bits of mode, fourteen of interval. The mode is ignored because some exporters leave it out.
        let interval = half(22)? & 0x3fff;
        let found = Sampling::found(f64::from(interval), SamplingSource::Header);
        header.sampling = found.unwrap_or(Sampling::UNKNOWN);
    }
    Some(header)
}

/// Reads the records of a message. `bytes` must contain whole records.
#[inline]
pub(crate) fn records(
    layout: &Layout,
    header: &Header,
    exporter: u32,
    bytes: &[u8],
    counts: &mut FlowCounts,
    out: &mut Vec<FlowRecord>,
) {
    let before = out.len();
    match layout.protocol {
        // If the compiler knows the length, no field needs a bounds check.
        Protocol::NetFlow5 => {
            let (all, _) = bytes.as_chunks::<48>();
            out.extend(all.iter().map(|r| record(&V5, header, exporter, r, counts)));
        }
        _ => {
            let (all, _) = bytes.as_chunks::<52>();
            out.extend(
                all.iter()
                    .map(|r| record(layout, header, exporter, r, counts)),
            );
        }
    }
    counts.sampled(header.sampling, (out.len() - before) as u64);
}

#[inline]
fn record<const N: usize>(
    layout: &Layout,
    header: &Header,
    exporter: u32,
    r: &[u8; N],
    counts: &mut FlowCounts,
) -> FlowRecord {
    let word = |at: usize| u32::from_be_bytes([r[at], r[at + 1], r[at + 2], r[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([r[at], r[at + 1]]);
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(r[at], r[at + 1], r[at + 2], r[at + 3]));
    let clock = &header.clock;
    let boot = clock.boot.unwrap_or(clock.export);
    let (start, end) = (word(24), word(28));
    let (mut first, last) = (clock.at_uptime(boot, start), clock.at_uptime(boot, end));
    let packets = word(16);
    // As for records with templates: a start at uptime zero is implausible for one packet that ended later.
    if start == 0 && packets <= 1 && end != 0 {
        counts.without_start += 1;
        first = last;
    } else if first > last {
        counts.backward += 1;
        first = last;
    }
    let protocol = r[layout.protocol_at];
    let record = FlowRecord {
        first,
        last,
        packets: u64::from(packets),
        bytes: u64::from(word(20)),
        reverse: None,
        src: address(0),
        dst: address(4),
        src_port: half(32),
        dst_port: half(34),
        protocol,
        tos: Some(r[layout.tos_at]),
        tcp_flags: known_flags(protocol, r[layout.flags_at]),
        direction: FlowDirection::Unknown,
        end: EndReason::Unknown,
        times: Times::Uptime,
        payload: None,
        layer: Layer::Network,
        input: u32::from(half(12)),
        output: u32::from(half(14)),
        exporter,
        sampling: header.sampling,
    };
    counts.record(&record);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of messages whose uptimes are ten minutes apart.
    #[test]
    fn a_clock_that_was_never_set_does_not_stop_the_uptime() {
        let first = |seconds: u32, up: u32| {
            let words = [5 << 16 | 1, up, seconds, 0, 7, 0];
            let bytes: Vec<u8> = words.iter().flat_map(|w: &u32| w.to_be_bytes()).collect();
            let clock = header(&V5, &bytes).unwrap().clock;
            [
                clock.at_uptime(clock.boot.unwrap(), up - 1_000),
                clock.export,
            ]
        };
        let second = 1_000_000_000;
        assert_eq!(first(0, 5_000), [4 * second, 5 * second]);
        assert_eq!(first(0, 605_000), [604 * second, 605 * second]);
        assert_eq!(first(1_000, 5_000), [999 * second, 1_000 * second]);
    }
}

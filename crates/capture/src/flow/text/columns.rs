//! The names of table columns, and the meaning of their combinations.

use std::net::IpAddr;

use super::moment;
use crate::Tcp;
use crate::flow::record::{
    FlowRecord, Layer, Reverse, Sampling, SamplingSource, Times, known_flags,
};
use crate::flow::{EndReason, FlowSkip};

/// Sizes of Ethernet frames in bytes: with only IPv4 and TCP headers, and of full size (IEEE 802.3).
const HEADERS: u64 = 54;
const FRAME: u64 = 1_514;

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Ignore,
    Start,
    End,
    Duration,
    Src,
    Dst,
    SrcPort,
    DstPort,
    Protocol,
    Tos,
    Flags,
    ReverseFlags,
    Packets,
    Bytes,
    ReversePackets,
    ReverseBytes,
    /// Bytes of link-layer frames.
    FrameBytes,
    ReverseFrameBytes,
    /// nfdump's "out" counters: of the reverse direction, or of the same packets behind the exporter.
    OutPackets,
    OutBytes,
    /// Both directions together, which include `Forward…`.
    TotalPackets,
    TotalBytes,
    ForwardPackets,
    ForwardBytes,
    /// The reverse direction.
    BackwardPackets,
    BackwardBytes,
    /// Transport payload, used if no better count is given.
    Payload,
    ReversePayload,
    Input,
    Output,
    SamplingInterval,
    /// Zeek's connection history.
    History,
    /// Argus's state: the flags of both sides, or a word.
    State,
}

/// Names of columns in lower case: our own first, then those of Zeek, Argus, nfdump and Suricata.
const NAMES: &[(Column, &[&str])] = &[
    (
        Column::Start,
        &["start", "ts", "starttime", "stime", "flow.start"],
    ),
    (Column::End, &["end", "te", "lasttime", "ltime", "flow.end"]),
    (Column::Duration, &["duration", "dur", "td"]),
    (
        Column::Src,
        &["src", "id.orig_h", "srcaddr", "saddr", "sa", "src_ip"],
    ),
    (
        Column::Dst,
        &["dst", "id.resp_h", "dstaddr", "daddr", "da", "dest_ip"],
    ),
    (Column::SrcPort, &["src_port", "id.orig_p", "sport", "sp"]),
    (
        Column::DstPort,
        &["dst_port", "id.resp_p", "dport", "dp", "dest_port"],
    ),
    (Column::Protocol, &["protocol", "proto", "pr"]),
    (Column::Tos, &["tos", "stos"]),
    (Column::Flags, &["tcp_flags", "flg", "tcp.tcp_flags_ts"]),
    (
        Column::ReverseFlags,
        &["reverse_tcp_flags", "tcp.tcp_flags_tc"],
    ),
    (
        Column::Packets,
        &["packets", "orig_pkts", "ipkt", "flow.pkts_toserver"],
    ),
    (Column::Bytes, &["bytes", "orig_ip_bytes", "ibyt"]),
    (
        Column::ReversePackets,
        &["reverse_packets", "resp_pkts", "flow.pkts_toclient"],
    ),
    (Column::ReverseBytes, &["reverse_bytes", "resp_ip_bytes"]),
    // Suricata counts the length of captured frames (`FlowHandlePacketUpdate` in its `flow.c`).
    (Column::FrameBytes, &["flow.bytes_toserver"]),
    (Column::ReverseFrameBytes, &["flow.bytes_toclient"]),
    (Column::OutPackets, &["opkt"]),
    (Column::OutBytes, &["obyt"]),
    (Column::TotalPackets, &["totpkts", "pkts"]),
    (Column::TotalBytes, &["totbytes"]),
    (Column::ForwardPackets, &["srcpkts", "spkts"]),
    (Column::ForwardBytes, &["srcbytes", "sbytes"]),
    (Column::BackwardPackets, &["dstpkts", "dpkts"]),
    (Column::BackwardBytes, &["dstbytes", "dbytes"]),
    (Column::Payload, &["orig_bytes"]),
    (Column::ReversePayload, &["resp_bytes"]),
    (Column::Input, &["input", "in"]),
    (Column::Output, &["output", "out"]),
    (Column::SamplingInterval, &["sampling_interval"]),
    (Column::History, &["history"]),
    (Column::State, &["state"]),
];

/// The content of a column with this name.
pub(super) fn column(name: &str) -> Column {
    let name = name.trim().to_ascii_lowercase();
    NAMES
        .iter()
        .find(|(_, names)| names.contains(&name.as_str()))
        .map_or(Column::Ignore, |(column, _)| *column)
}

/// The columns named in a header line.
pub(super) fn named(line: &[u8], separator: u8) -> Vec<Column> {
    let text = String::from_utf8_lossy(line);
    let mut columns: Vec<Column> = text.split(char::from(separator)).map(column).collect();
    // Argus's short names: beside the bytes of a side, `bytes` are those of both sides.
    let of_sides = [Column::ForwardBytes, Column::BackwardBytes];
    if of_sides.iter().any(|side| columns.contains(side)) {
        for column in columns.iter_mut().filter(|c| **c == Column::Bytes) {
            *column = Column::TotalBytes;
        }
    }
    columns
}

/// Whether the columns are sufficient for records.
pub(super) fn suffices(columns: &[Column]) -> bool {
    let has = |c: Column| columns.contains(&c);
    are_flows(columns)
        && has(Column::Start)
        && [
            Column::Bytes,
            Column::FrameBytes,
            Column::TotalBytes,
            Column::ForwardBytes,
        ]
        .into_iter()
        .any(has)
}

/// Fewer known names show no table of flows: a word like `state` or `in` may be in any text.
const FEW: usize = 3;

/// The first column that records need and these lack, if they belong to a table of flows.
pub(super) fn missing(columns: &[Column]) -> Option<&'static str> {
    let known = columns.iter().filter(|c| **c != Column::Ignore).count();
    let needed = [
        (Column::Start, "a table of flows without a column `start`"),
        (Column::Src, "a table of flows without a column `src`"),
        (Column::Dst, "a table of flows without a column `dst`"),
        (Column::Bytes, "a table of flows without a column `bytes`"),
    ];
    let lacking = needed.iter().find(|(column, _)| !columns.contains(column));
    lacking
        .map(|l| l.1)
        .filter(|_| known >= FEW && !suffices(columns))
}

/// Whether the columns belong to a table of flows, even if they are not sufficient for records.
pub(super) fn are_flows(columns: &[Column]) -> bool {
    let has = |c: Column| columns.contains(&c);
    has(Column::Src) && has(Column::Dst)
}

/// The values of a row.
#[derive(Debug, Default)]
pub(super) struct Row {
    start: Option<i64>,
    end: Option<i64>,
    duration: Option<i64>,
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    ports: [u16; 2],
    protocol: Option<u8>,
    tos: Option<u8>,
    flags: [u8; 2],
    packets: [Option<u64>; 2],
    bytes: [Option<u64>; 2],
    frames: [Option<u64>; 2],
    out: [Option<u64>; 2],
    total: [Option<u64>; 2],
    forward: [Option<u64>; 2],
    backward: [Option<u64>; 2],
    payload: [Option<u64>; 2],
    interfaces: [u32; 2],
    sampling: Option<f64>,
    other_protocol: bool,
}

impl Row {
    /// Adds a value. Empty and unset values (`-`) are ignored. An invalid value makes the row invalid. Exceptions are
    /// protocols and addresses that are not IP, and interfaces, which count as unknown.
    pub(super) fn put(&mut self, column: Column, value: &str) -> Result<(), FlowSkip> {
        if column == Column::Ignore || value.is_empty() || value == "-" {
            return Ok(());
        }
        fn read<T>(value: Option<T>) -> Result<Option<T>, FlowSkip> {
            value.map(Some).ok_or(FlowSkip::BadRow)
        }
        match column {
            Column::Ignore => {}
            Column::Start => self.start = read(moment::parse(value))?,
            Column::End => self.end = read(moment::parse(value))?,
            Column::Duration => self.duration = read(moment::span(value))?,
            Column::Src => self.src = value.parse().ok(),
            Column::Dst => self.dst = value.parse().ok(),
            Column::SrcPort => self.ports[0] = port(value)?,
            Column::DstPort => self.ports[1] = port(value)?,
            Column::Protocol => {
                self.protocol = protocol(value);
                self.other_protocol = self.protocol.is_none();
            }
            Column::Tos => self.tos = read(value.parse().ok())?,
            Column::Flags => self.flags[0] = flags(value)?,
            Column::ReverseFlags => self.flags[1] = flags(value)?,
            Column::Packets => self.packets[0] = read(count(value))?,
            Column::ReversePackets => self.packets[1] = read(count(value))?,
            Column::Bytes => self.bytes[0] = read(count(value))?,
            Column::ReverseBytes => self.bytes[1] = read(count(value))?,
            Column::FrameBytes => self.frames[0] = read(count(value))?,
            Column::ReverseFrameBytes => self.frames[1] = read(count(value))?,
            Column::OutPackets => self.out[0] = read(count(value))?,
            Column::OutBytes => self.out[1] = read(count(value))?,
            Column::TotalPackets => self.total[0] = read(count(value))?,
            Column::TotalBytes => self.total[1] = read(count(value))?,
            Column::ForwardPackets => self.forward[0] = read(count(value))?,
            Column::ForwardBytes => self.forward[1] = read(count(value))?,
            Column::BackwardPackets => self.backward[0] = read(count(value))?,
            Column::BackwardBytes => self.backward[1] = read(count(value))?,
            Column::Payload => self.payload[0] = read(count(value))?,
            Column::ReversePayload => self.payload[1] = read(count(value))?,
            Column::Input => self.interfaces[0] = value.parse().unwrap_or(0),
            Column::Output => self.interfaces[1] = value.parse().unwrap_or(0),
            Column::SamplingInterval => self.sampling = read(value.parse().ok())?,
            Column::History => self.flags = history(value),
            Column::State => self.flags = state(value).unwrap_or(self.flags),
        }
        Ok(())
    }

    /// Whether the packets of each side must be estimated from bytes, because only their total is given.
    pub(super) fn lacks_packets_of_sides(&self) -> bool {
        let one = |i: usize| self.forward[i].is_some() || self.backward[i].is_some();
        self.bytes[0].is_none() && self.total[0].is_some() && one(1) && !one(0)
    }

    /// Whether the other direction comes from "out" counters alone.
    pub(super) fn has_out_counters(&self) -> bool {
        let own = self.packets[1].or(self.bytes[1]);
        own.is_none() && self.out.iter().flatten().any(|n| *n > 0)
    }

    /// Converts the row to a record.
    pub(super) fn finish(self) -> Result<FlowRecord, FlowSkip> {
        let (Some(src), Some(dst), false) = (self.src, self.dst, self.other_protocol) else {
            return Err(FlowSkip::NoAddresses);
        };
        let protocol = self.protocol.unwrap_or(0);
        if src.is_ipv4() != dst.is_ipv4() {
            return Err(FlowSkip::NoAddresses);
        }
        let (start, end) = match (self.start, self.end, self.duration) {
            (Some(s), Some(e), _) => (s, e),
            (Some(s), None, d) => (s, s.saturating_add(d.unwrap_or(0))),
            (None, Some(e), d) => (e.saturating_sub(d.unwrap_or(0)), e),
            (None, None, _) => return Err(FlowSkip::BadRow),
        };
        let mut record = FlowRecord {
            first: start,
            last: end,
            src,
            dst,
            src_port: self.ports[0],
            dst_port: self.ports[1],
            protocol,
            tos: self.tos,
            tcp_flags: known_flags(protocol, self.flags[0]),
            times: Times::Record,
            input: self.interfaces[0],
            output: self.interfaces[1],
            sampling: self
                .sampling
                .and_then(|n| Sampling::found(n, SamplingSource::Record))
                .unwrap_or(Sampling::UNKNOWN),
            ..FlowRecord::BLANK
        };
        if matches!(protocol, 1 | 58) && self.ports[0] <= 0xff && self.ports[1] <= 0xff {
            // For ICMP, type and code are in the columns of the ports, as in Zeek.
            record.dst_port = self.ports[0] << 8 | self.ports[1];
            record.src_port = 0;
        }
        self.counters(&mut record)?;
        if record.tcp_flags.unwrap_or(0) & (Tcp::FIN | Tcp::RST) != 0 {
            record.end = EndReason::EndOfFlow;
        }
        Ok(record)
    }

    /// Sets the counters from the best available columns.
    fn counters(&self, record: &mut FlowRecord) -> Result<(), FlowSkip> {
        let mut reverse = |packets: u64, bytes: u64| {
            record.reverse = Some(Reverse {
                first: record.first,
                last: record.last,
                packets,
                bytes,
                tcp_flags: known_flags(record.protocol, self.flags[1]),
            });
        };
        match (self.packets, self.bytes, self.frames) {
            ([packets, rp], [Some(bytes), rb], _) => {
                if self.has_out_counters() {
                    reverse(self.out[0].unwrap_or(0), self.out[1].unwrap_or(0));
                } else if rp.is_some() || rb.is_some() {
                    reverse(rp.unwrap_or(0), rb.unwrap_or(0));
                }
                // `pkts` beside `bytes` are of the same packets.
                let packets = packets.or(self.total[0]);
                (record.packets, record.bytes) = (packets.unwrap_or(0), bytes);
                record.payload = self.whole_payload(record);
            }
            ([packets, rp], _, [Some(bytes), rb]) => {
                record.layer = Layer::Link;
                if rp.is_some() || rb.is_some() {
                    reverse(rp.unwrap_or(0), rb.unwrap_or(0));
                }
                (record.packets, record.bytes) = (packets.unwrap_or(0), bytes);
            }
            _ => match (self.argus(), self.payload) {
                (Some(([packets, bytes], back)), _) => {
                    // Argus counts link-layer frames.
                    record.layer = Layer::Link;
                    if let Some([answers, answered]) = back {
                        reverse(answers, answered);
                    }
                    (record.packets, record.bytes) = (packets, bytes);
                }
                (None, [Some(bytes), back]) => {
                    record.layer = Layer::Payload;
                    if let Some(back) = back {
                        reverse(self.packets[1].unwrap_or(0), back);
                    }
                    (record.packets, record.bytes) = (self.packets[0].unwrap_or(0), bytes);
                }
                _ => return Err(FlowSkip::NoCounters),
            },
        }
        Ok(())
    }

    /// Payload of both directions, where a row has it beside the bytes of packets: nothing has to be inferred then.
    /// Zeek takes that of TCP from sequence numbers. If these are wrong, the payload does not fit into the packets,
    /// or leaves more than the largest headers (RFC 9293 section 3.1: 60 bytes, and 60 of IPv4 or 40 of IPv6).
    fn whole_payload(&self, record: &FlowRecord) -> Option<[u64; 2]> {
        let [Some(up), Some(down)] = self.payload else {
            return None;
        };
        let least: u64 = match (record.protocol, record.src.is_ipv6()) {
            (6, v6) => 20 + if v6 { 40 } else { 20 },
            (_, v6) => 8 + if v6 { 40 } else { 20 },
        };
        let fits = |i: usize, payload: u64| {
            let (packets, bytes) = (self.packets[i]?, self.bytes[i]?);
            let headers = bytes.checked_sub(payload)?;
            let may = packets.saturating_mul(least)..=packets.saturating_mul(120);
            may.contains(&headers).then_some(payload)
        };
        Some([fits(0, up)?, fits(1, down)?])
    }

    /// Packets and bytes from Argus's columns: of the source, and of the destination if known separately. Any two of
    /// "source", "destination" and "both" determine the third.
    fn argus(&self) -> Option<([u64; 2], Option<[u64; 2]>)> {
        let third = |i: usize| match (self.forward[i], self.backward[i], self.total[i]) {
            (Some(f), Some(b), _) => Some((f, b)),
            (Some(f), None, Some(all)) => Some((f, all.checked_sub(f)?)),
            (None, Some(b), Some(all)) => Some((all.checked_sub(b)?, b)),
            _ => None,
        };
        let (bytes, back) = match (third(1), self.total[1], self.forward[1]) {
            (Some((bytes, back)), ..) => (bytes, Some(back)),
            (None, Some(all), _) => (all, None),
            (None, None, Some(forward)) => (forward, None),
            _ => return None,
        };
        let all = self.total[0];
        let [packets, back_packets] = match (third(0), back) {
            (Some((packets, back)), _) => [packets, back],
            // All bytes went one way, so all packets did as well.
            (None, Some(0)) => [all.or(self.forward[0]).unwrap_or(0), 0],
            (None, Some(_)) if bytes == 0 => [0, all.or(self.backward[0]).unwrap_or(0)],
            (None, Some(back)) => all.map_or([0, 0], |all| divided(all, bytes, back)),
            (None, None) => [all.or(self.forward[0]).unwrap_or(0), 0],
        };
        Some(([packets, bytes], back.map(|b| [back_packets, b])))
    }
}

/// Divides a total of packets between two sides whose bytes are known. Frames have at least their headers and at most
/// a full segment, which bounds the packets of each side. This keeps payload on its side and the sum exact.
fn divided(packets: u64, bytes: u64, back: u64) -> [u64; 2] {
    let least = |n: u64| n.div_ceil(FRAME);
    let most = |n: u64| n / HEADERS;
    let low = least(bytes).max(packets.saturating_sub(most(back)));
    let high = most(bytes).min(packets.saturating_sub(least(back)));
    let own = (packets / 2)
        .clamp(low.min(high), high.max(low))
        .min(packets);
    [own, packets - own]
}

fn count(value: &str) -> Option<u64> {
    value.parse().ok()
}

/// Parses a port. nfdump writes ICMP type and code as `3.1`; Argus writes hexadecimal numbers.
fn port(value: &str) -> Result<u16, FlowSkip> {
    let read = match (value.strip_prefix("0x"), value.split_once('.')) {
        (Some(hex), _) => u16::from_str_radix(hex, 16).ok(),
        (None, Some((kind, code))) => match (kind.parse::<u8>(), code.parse::<u8>()) {
            (Ok(kind), Ok(code)) => Some(u16::from_be_bytes([kind, code])),
            _ => None,
        },
        _ => value.parse().ok(),
    };
    read.ok_or(FlowSkip::BadRow)
}

/// Parses an IP protocol, given by number or name (the IANA registry "Protocol Numbers").
fn protocol(value: &str) -> Option<u8> {
    Some(match value.to_ascii_lowercase().as_str() {
        "icmp" => 1,
        "igmp" => 2,
        "ipip" | "ipnip" => 4,
        "tcp" => 6,
        "udp" => 17,
        "ipv6" => 41,
        "gre" => 47,
        "esp" => 50,
        "ah" => 51,
        "icmp6" | "ipv6-icmp" => 58,
        "ospf" => 89,
        "pim" => 103,
        "vrrp" => 112,
        "sctp" => 132,
        "udt" => 17,
        // Zeek's name for all other protocols.
        "unknown_transport" => 255,
        "rtp" | "rtcp" => 17,
        number => number.parse().ok()?,
    })
}

/// Parses TCP flags: a number, hexadecimal with `0x` or as Suricata's two digits, or letters in nfdump's order
/// `CEUAPRSF` with dots for flags that are not set.
fn flags(value: &str) -> Result<u8, FlowSkip> {
    if let Some(hex) = value.strip_prefix("0x") {
        return u8::from_str_radix(hex, 16).map_err(|_| FlowSkip::BadRow);
    }
    if let Ok(number) = value.parse::<u8>() {
        return Ok(number);
    }
    let mut set = 0;
    for letter in value.chars() {
        set |= match letter {
            'C' => 0x80,
            'E' => 0x40,
            'U' => 0x20,
            'A' => Tcp::ACK,
            'P' => Tcp::PSH,
            'R' => Tcp::RST,
            'S' => Tcp::SYN,
            'F' => Tcp::FIN,
            '.' | ' ' => 0,
            _ => return Err(FlowSkip::BadRow),
        };
    }
    Ok(set)
}

/// The flags of both sides in Argus's state, as in `FSPA_FSPA` (its manual, `ra(1)`: with `-Z b`); `None` for other
/// states, such as `CON`.
fn state(value: &str) -> Option<[u8; 2]> {
    let (source, destination) = value.split_once('_')?;
    let of = |side: &str| {
        let all = |seen: u8, letter: char| Some(seen | flags(&letter.to_string()).ok()?);
        side.chars().try_fold(0, all)
    };
    Some([of(source)?, of(destination)?])
}

/// The flags recorded in Zeek's history, per direction: capital letters are the originator's (Zeek's manual,
/// `base/protocols/conn/main.zeek`).
fn history(value: &str) -> [u8; 2] {
    let mut seen = [0, 0];
    for letter in value.chars() {
        let of = match letter.to_ascii_lowercase() {
            's' => Tcp::SYN,
            'h' => Tcp::SYN | Tcp::ACK,
            'a' | 'd' => Tcp::ACK,
            'f' => Tcp::FIN,
            'r' => Tcp::RST,
            _ => 0,
        };
        seen[usize::from(letter.is_ascii_lowercase())] |= of;
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(packets: u64, ip_bytes: u64, payload: &str) -> FlowRecord {
        let mut row = Row::default();
        for (column, value) in [
            (Column::Start, "1700000000.5"),
            (Column::Duration, "0.25"),
            (Column::Src, "10.0.0.1"),
            (Column::Dst, "192.0.2.1"),
            (Column::Protocol, "tcp"),
            (Column::Payload, payload),
            (Column::ReversePayload, "9000"),
            (Column::Packets, &packets.to_string()),
            (Column::Bytes, &ip_bytes.to_string()),
            (Column::ReversePackets, "10"),
            (Column::ReverseBytes, "9412"),
            (Column::History, "ShADadFf"),
        ] {
            row.put(column, value).expect("a good value");
        }
        row.finish().expect("a good row")
    }

    /// Zeek counts the payload. It is taken if it fits into the packets.
    #[test]
    fn payload_beside_the_bytes_of_packets_is_kept() {
        let whole = row(8, 832, "500");
        assert_eq!((whole.bytes, whole.payload), (832, Some([500, 9_000])));
        // Unknown; more than the packets have room for; sequence numbers that jumped.
        for payload in ["-", "600", "4000000000"] {
            assert_eq!(row(8, 832, payload).payload, None, "{payload}");
        }
        // Less than the packets hold.
        assert_eq!(row(8, 8_000, "500").payload, None);
    }
}

//! A flow record under construction. Fields arrive in the order of the template; their combined meaning is known only
//! at the end.

use std::net::IpAddr;

use super::element::{Counter, Slot, Unit};
use super::record::{EndReason, FlowDirection, FlowRecord, Layer, Reverse, Times, known_flags};
use super::{FlowCounts, FlowSkip};
use crate::dissect::ip_payload;
use crate::{Frame, LinkType, Packet, Skip, Transport, dissect};

/// Nanoseconds in a millisecond.
pub(crate) const MILLI: i64 = 1_000_000;
const MICRO: i64 = 1_000;
const SECOND: i64 = 1_000_000_000;

/// Seconds from 1900, the epoch of NTP, to 1970.
const NTP_EPOCH: i64 = 2_208_988_800;

/// The time information of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Export time, nanoseconds since the Unix epoch.
    pub export: i64,
    /// When the exporter's uptime was zero, in nanoseconds since the Unix epoch, if known.
    pub boot: Option<i64>,
}

impl Clock {
    /// Converts milliseconds of uptime to a time. The counter wraps after 49.7 days, so the time nearest to the
    /// export time is chosen.
    #[inline]
    pub(crate) fn at_uptime(&self, boot: i64, uptime: u32) -> i64 {
        const WRAP: i64 = 1 << 32;
        let unwrapped = boot.saturating_add(i64::from(uptime) * MILLI);
        let ahead = self.export.saturating_sub(unwrapped) / MILLI;
        let wraps = (ahead + WRAP / 2).div_euclid(WRAP);
        unwrapped.saturating_add((wraps * WRAP).saturating_mul(MILLI))
    }
}

/// Sampling information in a data or options record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SamplingFields {
    pub sampler: Option<u64>,
    pub plain: Option<u64>,
    pub random: Option<u64>,
    pub packets: Option<u64>,
    pub space: Option<u64>,
    pub size: Option<u64>,
    pub population: Option<u64>,
    pub probability: Option<f64>,
}

impl SamplingFields {
    /// Packets observed per packet selected, if the fields give a valid ratio.
    pub(crate) fn interval(&self) -> Option<f64> {
        let ratio = |all: u64, taken: u64| (taken > 0).then(|| all as f64 / taken as f64);
        let said = self
            .random
            .filter(|n| *n > 0)
            .or(self.plain.filter(|n| *n > 0))
            .map(|n| n as f64)
            // RFC 5477 sections 8.2.2 to 8.2.7.
            .or_else(|| {
                let packets = self.packets?;
                ratio(packets.saturating_add(self.space?), packets)
            })
            .or_else(|| ratio(self.population?, self.size?))
            .or_else(|| self.probability.map(|p| 1.0 / p))?;
        (said.is_finite() && said >= 1.0).then_some(said)
    }
}

/// The start or end time of a flow, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct TimeField {
    absolute: Option<i64>,
    uptime: Option<u32>,
}

impl TimeField {
    fn put(&mut self, unit: Unit, value: &[u8], clock: &Clock) {
        if unit == Unit::Uptime {
            self.uptime = Some(uint(value) as u32);
        } else if let Some(time) = absolute(unit, value, clock) {
            self.absolute = Some(time);
        }
    }

    fn resolve(&self, clock: &Clock, boot: Option<i64>) -> Option<i64> {
        self.absolute
            .or_else(|| Some(clock.at_uptime(boot?, self.uptime?)))
    }
}

/// The collected fields of a record.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    record: FlowRecord,
    v4: [Option<[u8; 4]>; 2],
    v6: [Option<[u8; 16]>; 2],
    version: u64,
    bytes: (Counter, u64),
    /// Bytes of frames, and of payload, of this direction and the other one.
    link: [Option<u64>; 2],
    payload: [Option<u64>; 2],
    packets: (Counter, u64),
    flags: u8,
    reverse_bytes: Option<u64>,
    reverse_packets: Option<u64>,
    reverse_flags: u8,
    start: TimeField,
    end: TimeField,
    reverse_start: TimeField,
    reverse_end: TimeField,
    duration: Option<i64>,
    observed: Option<i64>,
    icmp: Option<u16>,
    frame_size: Option<u64>,
    pub(crate) boot: Option<i64>,
    pub(crate) sampling: SamplingFields,
}

impl Draft {
    pub(crate) fn new(exporter: u32) -> Draft {
        Draft {
            record: FlowRecord {
                exporter,
                ..FlowRecord::BLANK
            },
            v4: [None; 2],
            v6: [None; 2],
            version: 0,
            bytes: (Counter::None, 0),
            link: [None; 2],
            payload: [None; 2],
            packets: (Counter::None, 0),
            flags: 0,
            reverse_bytes: None,
            reverse_packets: None,
            reverse_flags: 0,
            start: TimeField::default(),
            end: TimeField::default(),
            reverse_start: TimeField::default(),
            reverse_end: TimeField::default(),
            duration: None,
            observed: None,
            icmp: None,
            frame_size: None,
            boot: None,
            sampling: SamplingFields::default(),
        }
    }

    /// Adds a field, whose length is valid for its slot.
    #[inline]
    pub(crate) fn put(&mut self, slot: Slot, value: &[u8], clock: &Clock) {
        match slot {
            Slot::Ignore => {}
            Slot::SrcV4 => self.v4[0] = value.first_chunk().copied(),
            Slot::DstV4 => self.v4[1] = value.first_chunk().copied(),
            Slot::SrcV6 => self.v6[0] = value.first_chunk().copied(),
            Slot::DstV6 => self.v6[1] = value.first_chunk().copied(),
            Slot::IpVersion => self.version = uint(value),
            Slot::SrcPort => self.record.src_port = uint(value) as u16,
            Slot::DstPort => self.record.dst_port = uint(value) as u16,
            Slot::Protocol => self.record.protocol = uint(value) as u8,
            Slot::Tos => self.record.tos = Some(uint(value) as u8),
            Slot::Dscp => self.record.tos = self.record.tos.or(Some((uint(value) as u8) << 2)),
            Slot::TcpFlags => self.flags = uint(value) as u8,
            Slot::Direction => {
                self.record.direction = match uint(value) {
                    0 => FlowDirection::Ingress,
                    1 => FlowDirection::Egress,
                    _ => FlowDirection::Unknown,
                }
            }
            Slot::EndReason => self.record.end = EndReason::from_number(uint(value)),
            Slot::Input => self.record.input = uint(value) as u32,
            Slot::Output => self.record.output = uint(value) as u32,
            Slot::Bytes(Counter::Layer2) => self.link[0] = Some(uint(value)),
            Slot::Bytes(Counter::Initiator) => self.payload[0] = Some(uint(value)),
            Slot::Bytes(kind) => offer(&mut self.bytes, kind, value),
            Slot::Packets(kind) => offer(&mut self.packets, kind, value),
            Slot::ReverseBytes(Layer::Network) => self.reverse_bytes = Some(uint(value)),
            Slot::ReverseBytes(Layer::Link) => self.link[1] = Some(uint(value)),
            Slot::ReverseBytes(Layer::Payload) => self.payload[1] = Some(uint(value)),
            Slot::ReversePackets => self.reverse_packets = Some(uint(value)),
            Slot::ReverseTcpFlags => self.reverse_flags = uint(value) as u8,
            Slot::Start(unit) => self.start.put(unit, value, clock),
            Slot::End(unit) => self.end.put(unit, value, clock),
            Slot::ReverseStart(unit) => self.reverse_start.put(unit, value, clock),
            Slot::ReverseEnd(unit) => self.reverse_end.put(unit, value, clock),
            Slot::DurationMillis => self.duration = nanos(uint(value), MILLI),
            Slot::DurationMicros => self.duration = nanos(uint(value), MICRO),
            _ => self.put_rare(slot, value, clock),
        }
    }

    #[cold]
    fn put_rare(&mut self, slot: Slot, value: &[u8], clock: &Clock) {
        match slot {
            Slot::IcmpTypeCode => self.icmp = Some(uint(value) as u16),
            Slot::IcmpType => {
                let code = self.icmp.unwrap_or(0) & 0x00ff;
                self.icmp = Some(code | (uint(value) as u16) << 8);
            }
            Slot::IcmpCode => {
                let kind = self.icmp.unwrap_or(0) & 0xff00;
                self.icmp = Some(kind | (uint(value) as u16 & 0xff));
            }
            Slot::Observed(unit) => self.observed = absolute(unit, value, clock),
            Slot::SystemInit => self.boot = nanos(uint(value), MILLI).filter(|n| *n > 0),
            Slot::SamplerId => self.sampling.sampler = Some(uint(value)),
            Slot::SamplingInterval => self.sampling.plain = Some(uint(value)),
            Slot::RandomInterval => self.sampling.random = Some(uint(value)),
            Slot::PacketInterval => self.sampling.packets = Some(uint(value)),
            Slot::PacketSpace => self.sampling.space = Some(uint(value)),
            Slot::SamplingSize => self.sampling.size = Some(uint(value)),
            Slot::SamplingPopulation => self.sampling.population = Some(uint(value)),
            Slot::SamplingProbability => self.sampling.probability = float(value),
            Slot::FrameSize => self.frame_size = Some(uint(value)),
            Slot::FrameSection => self.section(LinkType::ETHERNET, value),
            Slot::IpSection => self.section(LinkType::RAW, value),
            _ => {}
        }
    }

    /// Adds a sampled packet, which takes the place of counters.
    fn section(&mut self, link: LinkType, data: &[u8]) {
        let whole = self.frame_size.unwrap_or(0).min(u64::from(u32::MAX)) as u32;
        self.record.layer = Layer::Network;
        if packet_into(link, data, whole.max(data.len() as u32), &mut self.record) {
            self.packets = (Counter::Delta, self.record.packets);
            self.bytes = (Counter::Delta, self.record.bytes);
            self.flags = self.record.tcp_flags.unwrap_or(0);
        }
    }

    /// Completes the record, and counts values that are missing or implausible. `boot` is the domain's, if known.
    pub(crate) fn finish(
        mut self,
        clock: &Clock,
        boot: Option<i64>,
        counts: &mut FlowCounts,
    ) -> Result<FlowRecord, FlowSkip> {
        self.addresses()?;
        let back = self.bytes_of_layer()?;
        let r = &mut self.record;
        r.packets = self.packets.1;
        r.tcp_flags = known_flags(r.protocol, self.flags);
        if let Some(icmp) = self.icmp
            && matches!(r.protocol, 1 | 58)
            && r.dst_port == 0
        {
            r.dst_port = icmp;
        }
        let boot = self.boot.or(clock.boot).or(boot);
        Self::times(
            &self.start,
            &self.end,
            self.duration,
            self.observed,
            clock,
            boot,
            r,
            counts,
        );
        if back.is_some() || self.reverse_packets.is_some() {
            let first = self.reverse_start.resolve(clock, boot).unwrap_or(r.first);
            let last = self.reverse_end.resolve(clock, boot).unwrap_or(r.last);
            r.reverse = Some(Reverse {
                first: first.min(last),
                last,
                packets: self.reverse_packets.unwrap_or(0),
                bytes: back.unwrap_or(0),
                tcp_flags: known_flags(r.protocol, self.reverse_flags),
            });
        }
        Ok(self.record)
    }

    /// Sets the bytes of this direction, and returns those of the other one. Both are of one layer: the first that has
    /// counters of both directions, or of this one. Payload beside the bytes of packets is kept, too.
    fn bytes_of_layer(&mut self) -> Result<Option<u64>, FlowSkip> {
        let network = (self.bytes.0 > Counter::None).then_some(self.bytes.1);
        // Some templates have fields that their exporter fills with zeros. They do not replace bytes.
        if network.is_some_and(|n| n > 0) && self.reverse_bytes.is_none() {
            for pair in [&mut self.payload, &mut self.link] {
                if *pair == [Some(0); 2] {
                    *pair = [None; 2];
                    self.reverse_packets = self.reverse_packets.filter(|n| *n > 0);
                }
            }
        }
        let layers = [
            (Layer::Network, [network, self.reverse_bytes]),
            (Layer::Payload, self.payload),
            (Layer::Link, self.link),
        ];
        let both = |l: &&(Layer, [Option<u64>; 2])| l.1[0].is_some() && l.1[1].is_some();
        let own = |l: &&(Layer, [Option<u64>; 2])| l.1[0].is_some();
        let r = &mut self.record;
        match layers.iter().find(both).or(layers.iter().find(own)) {
            Some(&(layer, [bytes, back])) => {
                (r.layer, r.bytes) = (layer, bytes.unwrap_or(0));
                if let (Some(_), [Some(up), Some(down)]) = (back, self.payload)
                    && layer != Layer::Payload
                {
                    r.payload = Some([up, down]);
                }
                Ok(back)
            }
            None if self.packets.0 == Counter::None => Err(FlowSkip::NoCounters),
            None => Ok(self.reverse_bytes),
        }
    }

    /// Sets both addresses, which must have the same version. Some templates have fields for both versions and fill
    /// the unused ones with zeros.
    fn addresses(&mut self) -> Result<(), FlowSkip> {
        let r = &mut self.record;
        match (self.v4, self.v6, self.version) {
            ([Some(src), Some(dst)], v6, version)
                if version == 4
                    || v6.contains(&None)
                    || (version != 6 && (src, dst) != ([0; 4], [0; 4])) =>
            {
                (r.src, r.dst) = (IpAddr::from(src), IpAddr::from(dst));
            }
            (_, [Some(src), Some(dst)], _) => {
                (r.src, r.dst) = (IpAddr::from(src), IpAddr::from(dst));
            }
            // The addresses came from a sampled packet.
            _ if self.record.packets > 0 => {}
            _ => return Err(FlowSkip::NoAddresses),
        }
        Ok(())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one draft, borrowed apart"
    )]
    fn times(
        start: &TimeField,
        end: &TimeField,
        duration: Option<i64>,
        observed: Option<i64>,
        clock: &Clock,
        boot: Option<i64>,
        r: &mut FlowRecord,
        counts: &mut FlowCounts,
    ) {
        let mut first = start.resolve(clock, boot);
        let mut last = end.resolve(clock, boot);
        r.times = match end.absolute.or(start.absolute) {
            Some(_) => Times::Record,
            None => Times::Uptime,
        };
        // Some exporters write a start at uptime zero if they have lost the real one. For a single packet that is
        // certainly false. A flow of several packets may really have existed at that time.
        if r.times == Times::Uptime && start.uptime == Some(0) && r.packets <= 1 && first != last {
            first = None;
        }
        if let Some(duration) = duration {
            first = first.or(last.map(|l| l.saturating_sub(duration)));
            last = last.or(first.map(|f| f.saturating_add(duration)));
        }
        match (first, last) {
            (Some(f), Some(l)) if f > l => {
                counts.backward += 1;
                first = last;
            }
            (None, Some(_)) => {
                counts.without_start += 1;
                first = last;
            }
            (Some(_), None) => last = first,
            (None, None) => {
                // Even if the offset of the uptime is unknown, uptimes give the duration of the flow.
                let span = match (start.uptime, end.uptime) {
                    (Some(s), Some(e)) if e.wrapping_sub(s) < 1 << 31 => {
                        i64::from(e.wrapping_sub(s)) * MILLI
                    }
                    _ => duration.unwrap_or(0),
                };
                let at = observed.unwrap_or(clock.export);
                last = Some(at);
                first = Some(at.saturating_sub(span));
                r.times = if observed.is_some() {
                    Times::Record
                } else {
                    Times::Export
                };
                counts.without_time += u64::from(observed.is_none());
            }
            _ => {}
        }
        r.first = first.unwrap_or(clock.export);
        r.last = last.unwrap_or(clock.export);
    }
}

/// Decodes a sampled packet into a record of one packet; false if it contains no IP packet.
pub(crate) fn packet_into(
    link: LinkType,
    data: &[u8],
    wire_len: u32,
    record: &mut FlowRecord,
) -> bool {
    let frame = Frame {
        time: 0,
        interface: 0,
        heading: crate::Heading::Unknown,
        link,
        wire_len,
        data,
    };
    let Ok(packet) = dissect(&frame) else {
        return false;
    };
    record.packets = 1;
    record.bytes = u64::from(packet.ip_len);
    describe(&packet, &frame, record);
    true
}

/// The packet in a frame, and the record that it yields alone; or why there is none.
pub(crate) fn one_packet(frame: &Frame<'_>) -> Result<(Packet, FlowRecord), Skip> {
    let packet = dissect(frame)?;
    let mut record = FlowRecord {
        first: frame.time,
        last: frame.time,
        packets: 1,
        bytes: u64::from(packet.ip_len),
        ..FlowRecord::BLANK
    };
    describe(&packet, frame, &mut record);
    Ok((packet, record))
}

/// Sets the addresses, ports and other key fields of a packet.
fn describe(packet: &Packet, frame: &Frame<'_>, record: &mut FlowRecord) {
    let ip = ip_payload(frame);
    (record.src, record.dst) = (packet.src, packet.dst);
    (record.src_port, record.dst_port) = (0, 0);
    record.tos = ip.map(|ip| ip.tos);
    record.tcp_flags = None;
    match packet.transport {
        Transport::Tcp(tcp) => {
            record.protocol = 6;
            (record.src_port, record.dst_port) = (tcp.src_port, tcp.dst_port);
            record.tcp_flags = known_flags(6, tcp.flags);
        }
        Transport::Udp {
            src_port, dst_port, ..
        } => {
            record.protocol = 17;
            (record.src_port, record.dst_port) = (src_port, dst_port);
        }
        Transport::Icmp => {
            record.protocol = if packet.src.is_ipv4() { 1 } else { 58 };
            if let Some(&[kind, code, ..]) = ip.map(|ip| ip.data) {
                record.dst_port = u16::from_be_bytes([kind, code]);
            }
        }
        Transport::Fragment => record.protocol = ip.map_or(0, |ip| ip.protocol),
        Transport::Other(n) | Transport::Truncated(n) => record.protocol = n,
    }
}

fn offer(slot: &mut (Counter, u64), kind: Counter, value: &[u8]) {
    if kind > slot.0 {
        *slot = (kind, uint(value));
    }
}

/// Decodes a big-endian unsigned integer of up to eight bytes.
#[inline]
pub(crate) fn uint(value: &[u8]) -> u64 {
    match *value {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_be_bytes([a, b, c, d])),
        _ => value.iter().fold(0, |n, b| n << 8 | u64::from(*b)),
    }
}

fn float(value: &[u8]) -> Option<f64> {
    match *value {
        [a, b, c, d] => Some(f64::from(f32::from_be_bytes([a, b, c, d]))),
        _ => Some(f64::from_be_bytes(*value.first_chunk()?)),
    }
}

/// Converts a number of units to nanoseconds; `None` on overflow.
fn nanos(n: u64, unit: i64) -> Option<i64> {
    i64::try_from(n).ok()?.checked_mul(unit)
}

/// Decodes an absolute time. `None` for zero, which exporters write if they have no time, and for times beyond the
/// year 2262.
fn absolute(unit: Unit, value: &[u8], clock: &Clock) -> Option<i64> {
    let n = uint(value);
    if n == 0 && unit != Unit::DeltaMicros {
        return None;
    }
    match unit {
        Unit::Uptime => None,
        Unit::Seconds => nanos(n, SECOND),
        Unit::Millis => nanos(n, MILLI),
        Unit::DeltaMicros => Some(clock.export.saturating_sub(nanos(n, MICRO)?)),
        Unit::Ntp => {
            // The seconds wrap in 2036 (RFC 5905 section 6), so the time nearest to the export time is chosen.
            const ERA: i64 = 1 << 32;
            let seconds = (n >> 32) as i64 - NTP_EPOCH;
            let ahead = clock.export.div_euclid(SECOND) - seconds;
            let seconds = seconds + (ahead + ERA / 2).div_euclid(ERA) * ERA;
            let fraction = ((n & 0xffff_ffff) * SECOND as u64) >> 32;
            seconds.checked_mul(SECOND)?.checked_add(fraction as i64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptimes_are_read_across_the_wrap_of_their_counter() {
        // The uptime is 50 days and a bit, so the counter has wrapped and is at ten seconds.
        let export = 1_700_000_000 * SECOND;
        let clock = Clock {
            export,
            boot: Some(export - 10_000 * MILLI),
        };
        let boot = clock.boot.unwrap();
        assert_eq!(clock.at_uptime(boot, 9_000), export - SECOND);
        assert_eq!(clock.at_uptime(boot, 11_000), export + SECOND);
        // Five seconds before the wrap.
        assert_eq!(
            clock.at_uptime(boot, u32::MAX - 4_999),
            export - 15 * SECOND
        );
        for extreme in [i64::MIN, i64::MAX] {
            clock.at_uptime(extreme, u32::MAX);
        }
    }

    #[test]
    fn integers_of_every_length() {
        assert_eq!(uint(&[1, 2, 3]), 0x01_02_03);
        assert_eq!(uint(&[1, 2, 3, 4, 5, 6, 7, 8]), 0x0102_0304_0506_0708);
        assert_eq!(uint(&[]), 0);
    }

    #[test]
    fn an_ntp_time_is_seconds_since_1900_and_a_fraction() {
        let clock = Clock {
            export: 0,
            boot: None,
        };
        let half = ((NTP_EPOCH as u64 + 5) << 32 | 1 << 31).to_be_bytes();
        assert_eq!(absolute(Unit::Ntp, &half, &clock), Some(5_500_000_000));
        assert_eq!(absolute(Unit::Ntp, &[0; 8], &clock), None);
        // From `date -u -d 2040-01-01 +%s`. The seconds of NTP have wrapped.
        let then = 2_208_988_800i64;
        let wrapped = (((then + NTP_EPOCH) as u64) << 32).to_be_bytes();
        let later = Clock {
            export: (then + 60) * SECOND,
            boot: None,
        };
        assert_eq!(absolute(Unit::Ntp, &wrapped, &later), Some(then * SECOND));
        // A message of 2040 may still report what happened before the wrap.
        let before = ((NTP_EPOCH as u64 + 1_700_000_000) << 32).to_be_bytes();
        let read = absolute(Unit::Ntp, &before, &later);
        assert_eq!(read, Some(1_700_000_000 * SECOND));
    }
}

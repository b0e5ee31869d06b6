//! What a flow record says, whatever exported it.

use std::net::{IpAddr, Ipv4Addr};

/// One flow record: packets of one direction between two transport addresses over a span of time,
/// as an exporter counted them. Of a biflow (RFC 5103) the other direction is in `reverse`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRecord {
    /// Time of the first packet, nanoseconds since the Unix epoch.
    pub first: i64,
    /// Time of the last packet, nanoseconds since the Unix epoch; never before `first`.
    pub last: i64,
    /// Packets, as exported: see `sampling` for what they stand for.
    pub packets: u64,
    /// Bytes, as exported, of the layer that `layer` says.
    pub bytes: u64,
    /// The other direction of a biflow; `None` where the record has one direction only.
    pub reverse: Option<Reverse>,
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port; 0 for protocols without ports.
    pub src_port: u16,
    /// Destination port; for ICMP type times 256 plus code, as NetFlow v5 has it.
    pub dst_port: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Type of service or traffic class byte, where the record has one.
    pub tos: Option<u8>,
    /// Union of the TCP flags (CWR ECE URG ACK PSH RST SYN FIN) of all packets. `None` where they
    /// are not known: other protocols, records without the field, and exporters that fill in zero,
    /// which no TCP flow has.
    pub tcp_flags: Option<u8>,
    /// Where the exporter saw the packets.
    pub direction: Direction,
    /// Why the record was closed.
    pub end: EndReason,
    /// Where `first` and `last` come from.
    pub times: Times,
    /// What `bytes` counts.
    pub layer: Layer,
    /// SNMP index of the interface the packets came in by; 0 where it is not known.
    pub input: u32,
    /// SNMP index of the interface the packets went out by; 0 where it is not known.
    pub output: u32,
    /// Number of the exporter and observation domain in the order of their appearance.
    pub exporter: u32,
    /// The sampling in force.
    pub sampling: Sampling,
}

impl FlowRecord {
    /// Room for a record: nothing known.
    pub const BLANK: FlowRecord = FlowRecord {
        first: 0,
        last: 0,
        packets: 0,
        bytes: 0,
        reverse: None,
        src: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        dst: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        src_port: 0,
        dst_port: 0,
        protocol: 0,
        tos: None,
        tcp_flags: None,
        direction: Direction::Unknown,
        end: EndReason::Unknown,
        times: Times::Record,
        layer: Layer::Network,
        input: 0,
        output: 0,
        exporter: 0,
        sampling: Sampling::UNKNOWN,
    };

    /// Packets of both directions; no sum of counters can overflow it.
    pub fn total_packets(&self) -> u64 {
        self.packets
            .saturating_add(self.reverse.map_or(0, |r| r.packets))
    }

    /// Bytes of both directions.
    pub fn total_bytes(&self) -> u64 {
        self.bytes
            .saturating_add(self.reverse.map_or(0, |r| r.bytes))
    }
}

/// The other direction of a biflow: what went from `dst` to `src`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reverse {
    /// Time of its first packet; that of the record if it has none of its own.
    pub first: i64,
    /// Time of its last packet; that of the record if it has none of its own.
    pub last: i64,
    /// Its packets.
    pub packets: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its TCP flags, as [`FlowRecord::tcp_flags`].
    pub tcp_flags: Option<u8>,
}

/// Which way packets passed the exporter's interface (IPFIX element 61).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The record does not say.
    Unknown,
    /// Coming in.
    Ingress,
    /// Going out.
    Egress,
}

/// Why a record was closed (IPFIX element 136). A flow that ended by the active time-out goes on in
/// a later record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The record does not say.
    Unknown,
    /// No packet for the inactive time-out.
    IdleTimeout,
    /// It went on for the active time-out.
    ActiveTimeout,
    /// The exporter saw its end: FIN or RST.
    EndOfFlow,
    /// The metering process was stopped.
    ForcedEnd,
    /// The flow cache was full.
    LackOfResources,
}

impl EndReason {
    pub(crate) const fn from_number(number: u64) -> EndReason {
        match number {
            1 => EndReason::IdleTimeout,
            2 => EndReason::ActiveTimeout,
            3 => EndReason::EndOfFlow,
            4 => EndReason::ForcedEnd,
            5 => EndReason::LackOfResources,
            _ => EndReason::Unknown,
        }
    }

    pub(crate) const fn number(self) -> u8 {
        match self {
            EndReason::Unknown => 0,
            EndReason::IdleTimeout => 1,
            EndReason::ActiveTimeout => 2,
            EndReason::EndOfFlow => 3,
            EndReason::ForcedEnd => 4,
            EndReason::LackOfResources => 5,
        }
    }
}

/// Where the times of a record come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Absolute times in the record.
    Record,
    /// Milliseconds of the exporter's uptime, made absolute by the message's header or an option.
    Uptime,
    /// The record has none: both are the export time of its message, or its arrival.
    Export,
}

/// What a byte count covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// IP headers and payload.
    Network,
    /// The link layer header too.
    Link,
    /// Transport payload alone.
    Payload,
}

/// The packet sampling in force when a record was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Packets passed per packet metered, on average: at least 1, and 1 where nothing is known.
    pub interval: f64,
    /// Where the interval was found.
    pub source: SamplingSource,
    /// Whether the exporter or collector has multiplied the counters by the interval already.
    pub scaled: bool,
}

impl Sampling {
    /// Nobody said anything about sampling: usually there is none, but that is not certain.
    pub const UNKNOWN: Sampling = Sampling {
        interval: 1.0,
        source: SamplingSource::Unknown,
        scaled: false,
    };

    /// An interval from somewhere; one below 1 or not finite says nothing.
    pub(crate) fn found(interval: f64, source: SamplingSource) -> Option<Sampling> {
        (interval.is_finite() && interval >= 1.0).then_some(Sampling {
            interval,
            source,
            scaled: false,
        })
    }
}

/// Where a sampling interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SamplingSource {
    /// Nowhere.
    Unknown,
    /// In the header of the message (NetFlow v5).
    Header,
    /// In the record itself.
    Record,
    /// In options data, by the sampler or selector that the record names.
    Sampler,
    /// In options data that hold for the whole observation domain, or for its only sampler.
    Domain,
    /// The project's own metering.
    Metering,
}

impl SamplingSource {
    /// In words, for a table.
    pub const fn text(self) -> &'static str {
        match self {
            SamplingSource::Unknown => "not said",
            SamplingSource::Header => "message header",
            SamplingSource::Record => "flow record",
            SamplingSource::Sampler => "options, by sampler",
            SamplingSource::Domain => "options, for the domain",
            SamplingSource::Metering => "own metering",
        }
    }
}

/// TCP flags as a record has them, or nothing: zero is what exporters fill in that do not know, and
/// no segment of a TCP flow carries (RFC 9293 section 3.10: one of SYN, ACK and RST is always set).
#[inline]
pub(crate) fn known_flags(protocol: u8, flags: u8) -> Option<u8> {
    (protocol == 6 && flags != 0).then_some(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_small() {
        let size = size_of::<FlowRecord>();
        assert!(size <= 192, "{size} bytes");
    }

    #[test]
    fn an_interval_that_cannot_be_says_nothing() {
        for bad in [0.0, 0.5, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Sampling::found(bad, SamplingSource::Record), None);
        }
        assert!(Sampling::found(1.0, SamplingSource::Record).is_some());
    }
}

//! A flow record, independent of its export format.

use std::net::{IpAddr, Ipv4Addr};

/// One flow record: the packets of one direction between two transport addresses during an interval, as counted by an
/// exporter. For a biflow (RFC 5103) the other direction is in `reverse`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRecord {
    /// Time of the first packet, nanoseconds since the Unix epoch.
    pub first: i64,
    /// Time of the last packet, nanoseconds since the Unix epoch; never before `first`.
    pub last: i64,
    /// Packets as exported; `sampling` tells what they stand for.
    pub packets: u64,
    /// Bytes as exported, for the layer given by `layer`.
    pub bytes: u64,
    /// The other direction of a biflow; `None` if the record has one direction only.
    pub reverse: Option<Reverse>,
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port; 0 for protocols without ports.
    pub src_port: u16,
    /// Destination port. For ICMP it is type times 256 plus code, as in NetFlow v5.
    pub dst_port: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Type of service or traffic class byte, if the record has one.
    pub tos: Option<u8>,
    /// Union of the TCP flags (CWR ECE URG ACK PSH RST SYN FIN) of all packets. `None` if they are unknown: for other
    /// protocols, for records without the field, and for zero, which some exporters write although no TCP flow has
    /// it.
    pub tcp_flags: Option<u8>,
    /// Where the exporter saw the packets.
    pub direction: FlowDirection,
    /// Why the record was closed.
    pub end: EndReason,
    /// Where `first` and `last` come from.
    pub times: Times,
    /// What `bytes` counts.
    pub layer: Layer,
    /// Payload bytes of the record's direction and of the other one, where the record has them beside `bytes`.
    pub payload: Option<[u64; 2]>,
    /// SNMP index of the interface on which the packets came in; 0 if unknown.
    pub input: u32,
    /// SNMP index of the interface on which the packets went out; 0 if unknown.
    pub output: u32,
    /// Number of the exporter and observation domain, in the order of their first appearance.
    pub exporter: u32,
    /// The sampling in force.
    pub sampling: Sampling,
}

impl FlowRecord {
    /// A record without any information.
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
        direction: FlowDirection::Unknown,
        end: EndReason::Unknown,
        times: Times::Record,
        layer: Layer::Network,
        payload: None,
        input: 0,
        output: 0,
        exporter: 0,
        sampling: Sampling::UNKNOWN,
    };
}

/// The other direction of a biflow, from `dst` to `src`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reverse {
    /// Time of its first packet; that of the record if unknown.
    pub first: i64,
    /// Time of its last packet; that of the record if unknown.
    pub last: i64,
    /// Its packets.
    pub packets: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its TCP flags, like [`FlowRecord::tcp_flags`].
    pub tcp_flags: Option<u8>,
}

/// Direction in which packets passed the exporter's interface (IPFIX element 61).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowDirection {
    /// The record does not say.
    Unknown,
    /// Incoming.
    Ingress,
    /// Outgoing.
    Egress,
}

/// Why a record was closed (IPFIX element 136). If a flow was closed by the active time-out, it continues in a later
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The record does not say.
    Unknown,
    /// There was no packet during the inactive time-out.
    IdleTimeout,
    /// The flow lasted for the active time-out.
    ActiveTimeout,
    /// The exporter saw the end of the flow: FIN or RST.
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
    /// Milliseconds of the exporter's uptime, converted with the message's header or an option.
    Uptime,
    /// The record has no times. Both are the export time of its message, or its arrival time.
    Export,
}

/// What a byte count covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// IP headers and payload.
    Network,
    /// Including the link-layer header.
    Link,
    /// Transport payload only.
    Payload,
}

/// The packet sampling in force when a record was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Packets observed per packet selected, on average. At least 1, and 1 if unknown.
    pub interval: f64,
    /// Where the interval was found.
    pub source: SamplingSource,
    /// Whether the exporter or collector has already multiplied the counters by the interval.
    pub scaled: bool,
}

impl Sampling {
    /// Nothing is known about sampling. Usually there is none, but that is not certain.
    pub const UNKNOWN: Sampling = Sampling {
        interval: 1.0,
        source: SamplingSource::Unknown,
        scaled: false,
    };

    /// What a counter was before an exporter or collector multiplied it, in packets or bytes that were selected. It is
    /// the counter itself if nothing was multiplied, or by an unknown factor.
    pub fn selected(&self, counter: u64) -> u64 {
        match self.scaled && self.interval > 1.0 {
            true => ((counter as f64 / self.interval + 0.5) as u64).max(u64::from(counter > 0)),
            false => counter,
        }
    }

    /// A known interval; `None` if it is below 1 or not finite.
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
    /// In options data of the sampler or selector that the record names.
    Sampler,
    /// In options data for the whole observation domain, or for its only sampler.
    Domain,
    /// In the options of this crate's own metering.
    Metering,
}

impl SamplingSource {
    /// A description for tables.
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

/// The TCP flags of a record, if known. Exporters that do not know them write zero. Every TCP segment has one of SYN,
/// ACK and RST set, so zero cannot be real (RFC 9293 section 3.10).
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

//! Information elements: the fields of NetFlow v9 and IPFIX records that this crate reads.
//!
//! Numbers and meanings are from the IANA registry "IPFIX Information Elements"
//! (<https://www.iana.org/assignments/ipfix>). Numbers below 128 are those of NetFlow v9 (RFC 3954 section 8).
//! Elements of the reverse direction have the same numbers under an enterprise number of their own (RFC 5103).

use super::record::Layer;

/// The enterprise number of reverse elements (RFC 5103 section 6.1).
pub(crate) const REVERSE: u32 = 29_305;

/// The use of a field in this crate. Unless obvious, names are those of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Ignore,
    SrcV4,
    DstV4,
    SrcV6,
    DstV6,
    IpVersion,
    SrcPort,
    DstPort,
    IcmpTypeCode,
    IcmpType,
    IcmpCode,
    Protocol,
    Tos,
    Dscp,
    TcpFlags,
    Direction,
    EndReason,
    Input,
    Output,
    /// A byte or packet counter, with its kind: see [`Counter`].
    Bytes(Counter),
    Packets(Counter),
    ReverseBytes(Layer),
    ReversePackets,
    ReverseTcpFlags,
    /// Start or end of the flow, with the unit.
    Start(Unit),
    End(Unit),
    ReverseStart(Unit),
    ReverseEnd(Unit),
    DurationMillis,
    DurationMicros,
    /// When the record was made, used if it has no flow times.
    Observed(Unit),
    /// When the exporter's uptime was zero.
    SystemInit,
    SamplerId,
    /// One packet is sampled out of this many.
    SamplingInterval,
    /// The same for one sampler (FLOW_SAMPLER_RANDOM_INTERVAL).
    RandomInterval,
    PacketInterval,
    PacketSpace,
    SamplingSize,
    SamplingPopulation,
    SamplingProbability,
    FrameSize,
    /// The first bytes of a sampled frame or IP packet (PSAMP, RFC 5477).
    FrameSection,
    IpSection,
}

/// The kinds of counters of one quantity, from worst to best. If a record has several of one layer, the best one is
/// used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counter {
    None,
    /// Bytes of link-layer frames.
    Layer2,
    /// Counted after a middlebox, or at the egress interface.
    Post,
    /// Packets, or bytes of layer-4 payload, of the initiator of a biflow. Cisco's ASA counts payload, too: requests over
    /// HTTP have fewer bytes than the headers of their packets.
    Initiator,
    /// Counted since the beginning of the flow.
    Total,
    /// Counted since the previous report.
    Delta,
}

/// Units and encodings of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Milliseconds of uptime.
    Uptime,
    Seconds,
    Millis,
    /// 64-bit NTP times, for both microseconds and nanoseconds (RFC 7011 sections 6.1.9 and 6.1.10).
    Ntp,
    /// Microseconds before the export time.
    DeltaMicros,
}

/// The use of element `id` of enterprise `pen` (0 for IANA's own).
pub(crate) fn slot(pen: u32, id: u16) -> Slot {
    match pen {
        0 => plain(id),
        REVERSE => reverse(id),
        _ => Slot::Ignore,
    }
}

fn plain(id: u16) -> Slot {
    match id {
        1 => Slot::Bytes(Counter::Delta),
        2 => Slot::Packets(Counter::Delta),
        4 => Slot::Protocol,
        5 => Slot::Tos,
        6 => Slot::TcpFlags,
        // sourceTransportPort, udpSourcePort, tcpSourcePort.
        7 | 180 | 182 => Slot::SrcPort,
        8 => Slot::SrcV4,
        10 => Slot::Input,
        11 | 181 | 183 => Slot::DstPort,
        12 => Slot::DstV4,
        14 => Slot::Output,
        21 => Slot::End(Unit::Uptime),
        22 => Slot::Start(Unit::Uptime),
        23 => Slot::Bytes(Counter::Post),
        24 => Slot::Packets(Counter::Post),
        27 => Slot::SrcV6,
        28 => Slot::DstV6,
        // icmpTypeCodeIPv4 and icmpTypeCodeIPv6.
        32 | 139 => Slot::IcmpTypeCode,
        34 => Slot::SamplingInterval,
        // FLOW_SAMPLER_ID and selectorId.
        48 | 302 => Slot::SamplerId,
        50 => Slot::RandomInterval,
        60 => Slot::IpVersion,
        61 => Slot::Direction,
        85 => Slot::Bytes(Counter::Total),
        86 => Slot::Packets(Counter::Total),
        136 => Slot::EndReason,
        150 => Slot::Start(Unit::Seconds),
        151 => Slot::End(Unit::Seconds),
        152 => Slot::Start(Unit::Millis),
        153 => Slot::End(Unit::Millis),
        154 | 156 => Slot::Start(Unit::Ntp),
        155 | 157 => Slot::End(Unit::Ntp),
        158 => Slot::Start(Unit::DeltaMicros),
        159 => Slot::End(Unit::DeltaMicros),
        160 => Slot::SystemInit,
        161 => Slot::DurationMillis,
        162 => Slot::DurationMicros,
        176 | 178 => Slot::IcmpType,
        177 | 179 => Slot::IcmpCode,
        195 => Slot::Dscp,
        231 => Slot::Bytes(Counter::Initiator),
        232 => Slot::ReverseBytes(Layer::Payload),
        // collectionTimeMilliseconds.
        258 => Slot::Observed(Unit::Millis),
        298 => Slot::Packets(Counter::Initiator),
        299 => Slot::ReversePackets,
        305 => Slot::PacketInterval,
        306 => Slot::PacketSpace,
        309 => Slot::SamplingSize,
        310 => Slot::SamplingPopulation,
        311 => Slot::SamplingProbability,
        312 => Slot::FrameSize,
        313 => Slot::IpSection,
        315 => Slot::FrameSection,
        322 => Slot::Observed(Unit::Seconds),
        323 => Slot::Observed(Unit::Millis),
        324 | 325 => Slot::Observed(Unit::Ntp),
        352 => Slot::Bytes(Counter::Layer2),
        _ => Slot::Ignore,
    }
}

fn reverse(id: u16) -> Slot {
    match plain(id) {
        Slot::Bytes(Counter::Delta | Counter::Total) => Slot::ReverseBytes(Layer::Network),
        Slot::Bytes(Counter::Layer2) => Slot::ReverseBytes(Layer::Link),
        Slot::Packets(Counter::Delta | Counter::Total) => Slot::ReversePackets,
        Slot::TcpFlags => Slot::ReverseTcpFlags,
        Slot::Start(unit) => Slot::ReverseStart(unit),
        Slot::End(unit) => Slot::ReverseEnd(unit),
        _ => Slot::Ignore,
    }
}

impl Slot {
    /// Whether a field of this length (65 535: variable) can be decoded. Integers may be shortened (RFC 7011 section
    /// 6.2), but addresses and dateTime values may not.
    pub(crate) fn fits(self, len: u16) -> bool {
        match self {
            Slot::Ignore => false,
            Slot::SrcV4 | Slot::DstV4 => len == 4,
            Slot::SrcV6 | Slot::DstV6 => len == 16,
            Slot::Start(Unit::Ntp)
            | Slot::End(Unit::Ntp)
            | Slot::ReverseStart(Unit::Ntp)
            | Slot::ReverseEnd(Unit::Ntp)
            | Slot::Observed(Unit::Ntp) => len == 8,
            Slot::SamplingProbability => len == 4 || len == 8,
            Slot::FrameSection | Slot::IpSection => len > 0,
            _ => (1..=8).contains(&len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reverse_of_an_element_is_its_other_direction() {
        assert_eq!(slot(REVERSE, 1), Slot::ReverseBytes(Layer::Network));
        assert_eq!(slot(REVERSE, 352), Slot::ReverseBytes(Layer::Link));
        assert_eq!(slot(REVERSE, 86), Slot::ReversePackets);
        assert_eq!(slot(REVERSE, 152), Slot::ReverseStart(Unit::Millis));
        // The reverse of an address is not supported.
        assert_eq!(slot(REVERSE, 8), Slot::Ignore);
        assert_eq!(slot(9, 1), Slot::Ignore, "another enterprise's");
    }

    #[test]
    fn only_lengths_that_can_be_read_are_taken() {
        assert!(Slot::Bytes(Counter::Delta).fits(3));
        assert!(!Slot::Bytes(Counter::Delta).fits(9));
        assert!(!Slot::Bytes(Counter::Delta).fits(65_535));
        assert!(!Slot::SrcV4.fits(16));
        assert!(Slot::FrameSection.fits(65_535));
    }
}

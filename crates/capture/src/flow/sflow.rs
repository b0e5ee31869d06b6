//! sFlow version 5 (sflow.org, "sFlow Version 5", July 2004). Each sampled packet becomes a record of one packet.

use std::net::IpAddr;

use super::draft::packet_into;
use super::process::CollectingProcess;
use super::record::{FlowRecord, Sampling, SamplingSource, Times, known_flags};
use super::{FlowSkip, Protocol};
use crate::LinkType;

/// Reads XDR (RFC 4506), in which everything is a multiple of four bytes.
struct Xdr<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Xdr<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.bytes.split_first_chunk::<4>()?;
        (self.bytes, self.at) = (rest, self.at + 4);
        Some(u32::from_be_bytes(*word))
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        (self.bytes, self.at) = (rest, self.at + len);
        Some(taken)
    }

    /// A tag (enterprise and format) and the data that follows it.
    fn tagged(&mut self) -> Option<(u32, Xdr<'a>)> {
        let tag = self.word()?;
        let len = self.word()? as usize;
        let at = self.at;
        Some((
            tag,
            Xdr {
                bytes: self.take(len)?,
                at,
            },
        ))
    }

    /// An address, preceded by its version.
    fn address(&mut self) -> Option<IpAddr> {
        match self.word()? {
            1 => Some(IpAddr::from(*self.take(4)?.first_chunk::<4>()?)),
            2 => Some(IpAddr::from(*self.take(16)?.first_chunk::<16>()?)),
            _ => None,
        }
    }
}

/// Sample formats of enterprise 0.
const FLOW_SAMPLE: u32 = 1;
const COUNTER_SAMPLE: u32 = 2;
const EXPANDED_FLOW_SAMPLE: u32 = 3;
const EXPANDED_COUNTER_SAMPLE: u32 = 4;

/// Flow record formats of enterprise 0.
const RAW_HEADER: u32 = 1;
const SAMPLED_IPV4: u32 = 3;
const SAMPLED_IPV6: u32 = 4;

/// The header of a datagram.
struct Header {
    agent: IpAddr,
    sub_agent: u32,
    sequence: u32,
    /// Milliseconds.
    uptime: u32,
    samples: u32,
}

/// Reads the header of a datagram.
fn header(x: &mut Xdr<'_>) -> Option<Header> {
    x.word()?;
    Some(Header {
        agent: x.address()?,
        sub_agent: x.word()?,
        sequence: x.word()?,
        uptime: x.word()?,
        samples: x.word()?,
    })
}

/// Whether bytes are an sFlow datagram, judging by its counts and lengths.
pub(crate) fn is_message(bytes: &[u8]) -> bool {
    let mut x = Xdr { bytes, at: 0 };
    if !bytes.starts_with(&[0, 0, 0, 5]) {
        return false;
    }
    let Some(Header { samples, .. }) = header(&mut x) else {
        return false;
    };
    samples > 0 && (0..samples).all(|_| x.tagged().is_some()) && x.bytes.is_empty()
}

/// Reads a datagram. Its only time is uptime, so its records get the time of its arrival, or where that is not known, the
/// time since the first datagram. The exporter is the agent that it names, even if another host forwarded it.
pub(crate) fn message(
    process: &mut CollectingProcess,
    _from: IpAddr,
    received: Option<i64>,
    bytes: &[u8],
    out: &mut Vec<FlowRecord>,
) {
    let mut x = Xdr { bytes, at: 0 };
    let Some(header) = header(&mut x) else {
        return process.skip(FlowSkip::CutMessage, 0);
    };
    let Some(domain) = process.domain(header.agent, Protocol::Sflow5, header.sub_agent) else {
        return;
    };
    if process.repeats(domain, Protocol::Sflow5, bytes) {
        return;
    }
    process.sequence(domain, header.sequence, Some(1));
    let time = received.unwrap_or_else(|| process.uptime_alone(domain, header.uptime));
    // Every sample takes at least eight bytes, so a false count ends with the data.
    for _ in 0..header.samples {
        let at = x.at;
        let Some((tag, sample)) = x.tagged() else {
            return process.skip(FlowSkip::CutMessage, at);
        };
        match tag {
            FLOW_SAMPLE | EXPANDED_FLOW_SAMPLE => {
                let mut record = FlowRecord {
                    first: time,
                    last: time,
                    times: Times::Export,
                    exporter: domain,
                    ..FlowRecord::BLANK
                };
                let read = flow_sample(sample, tag == EXPANDED_FLOW_SAMPLE, &mut record);
                match read {
                    Some(true) => {
                        process.counts.record(&record);
                        process.counts.without_time += 1;
                        process.counts.sampled(record.sampling, 1);
                        out.push(record);
                    }
                    Some(false) => {
                        process.counts.data_records += 1;
                        process.skip(FlowSkip::NoPacket, at);
                    }
                    None => process.skip(FlowSkip::BadRecord, at),
                }
            }
            COUNTER_SAMPLE | EXPANDED_COUNTER_SAMPLE => {
                process.skip(FlowSkip::CounterSample, at);
            }
            _ => process.skip(FlowSkip::OtherKind, at),
        }
    }
}

/// Reads a sampled packet. Returns whether its addresses could be read; `None` if the sample contradicts itself.
fn flow_sample(mut x: Xdr<'_>, expanded: bool, record: &mut FlowRecord) -> Option<bool> {
    let _sequence = x.word()?;
    let _source = x.take(if expanded { 8 } else { 4 })?;
    let rate = x.word()?;
    let (_pool, _drops) = (x.word()?, x.word()?);
    let sampling = Sampling::found(f64::from(rate), SamplingSource::Record);
    record.sampling = sampling.unwrap_or(Sampling::UNKNOWN);
    (record.input, record.output) = if expanded {
        let (input_format, input) = (x.word()?, x.word()?);
        let (output_format, output) = (x.word()?, x.word()?);
        let single = |format, value| if format == 0 { value } else { 0 };
        (single(input_format, input), single(output_format, output))
    } else {
        // The highest two bits distinguish an index from "discarded" and "several".
        let single = |v: u32| if v >> 30 == 0 { v } else { 0 };
        (single(x.word()?), single(x.word()?))
    };
    let elements = x.word()?;
    let mut found = false;
    for _ in 0..elements {
        let (tag, element) = x.tagged()?;
        match tag {
            RAW_HEADER => found |= raw_header(element, record)?,
            // The raw header is preferred if there is one.
            SAMPLED_IPV4 | SAMPLED_IPV6 if !found => {
                sampled_ip(element, tag == SAMPLED_IPV6, record)?;
                found = true;
            }
            _ => {}
        }
    }
    Some(found)
}

/// Decodes the first bytes of the packet.
fn raw_header(mut x: Xdr<'_>, record: &mut FlowRecord) -> Option<bool> {
    let protocol = x.word()?;
    let frame_len = x.word()?;
    let stripped = x.word()?;
    let len = x.word()? as usize;
    let data = x.bytes.get(..len)?;
    // The header protocols of section 5.3 of the specification for which this crate has a link type.
    let link = match protocol {
        1 => LinkType::ETHERNET,
        7 => LinkType::PPP,
        11 => LinkType::IPV4,
        12 => LinkType::IPV6,
        _ => return Some(false),
    };
    // The frame's length includes what was stripped, such as the frame check sequence.
    let wire = frame_len.saturating_sub(stripped);
    Some(packet_into(link, data, wire.max(data.len() as u32), record))
}

/// Reads the fields of an IP packet.
fn sampled_ip(mut x: Xdr<'_>, v6: bool, record: &mut FlowRecord) -> Option<()> {
    record.bytes = u64::from(x.word()?);
    record.packets = 1;
    record.protocol = x.word()? as u8;
    if v6 {
        record.src = IpAddr::from(*x.take(16)?.first_chunk::<16>()?);
        record.dst = IpAddr::from(*x.take(16)?.first_chunk::<16>()?);
    } else {
        record.src = IpAddr::from(*x.take(4)?.first_chunk::<4>()?);
        record.dst = IpAddr::from(*x.take(4)?.first_chunk::<4>()?);
    }
    (record.src_port, record.dst_port) = (x.word()? as u16, x.word()? as u16);
    let flags = x.word()? as u8;
    record.tcp_flags = known_flags(record.protocol, flags);
    record.tos = Some(x.word()? as u8);
    Some(())
}

/// The length of the first datagram in `bytes`, or of the part of it that is present.
pub(crate) fn length(bytes: &[u8]) -> usize {
    let mut x = Xdr { bytes, at: 0 };
    let Some(Header { samples, .. }) = header(&mut x) else {
        return bytes.len();
    };
    for _ in 0..samples {
        if x.tagged().is_none() {
            return bytes.len();
        }
    }
    x.at
}

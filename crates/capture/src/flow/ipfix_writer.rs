//! Writes flow records to an IPFIX file (RFC 5655).

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;

use super::element::REVERSE;
use super::record::{FlowDirection, FlowRecord, Layer, Sampling, SamplingSource};
use crate::WriteError;

/// Maximum length of a message, so that each can also be sent as a datagram (RFC 7011 section 10.3.3).
const MOST: usize = 1400;
/// Length of a message's header.
const HEADER: usize = 16;
/// More bytes than the largest data record takes with its set, its template, a sampling and its template.
const LONGEST: usize = 400;

/// Template numbers: for each kind of byte counters, IPv4 and IPv6 addresses, each for one direction and for both.
const FIRST_TEMPLATE: u16 = 256;
const SAMPLING_TEMPLATE: u16 = 272;

/// Seconds from 1900 to 1970, for NTP times.
const NTP_EPOCH: i64 = 2_208_988_800;

/// Elements and lengths after the addresses, before those of byte counters. Times are written twice: in milliseconds,
/// which every reader supports, and in nanoseconds, which lose nothing.
const FIELDS: [(u16, u16); 14] = [
    (7, 2),
    (11, 2),
    (4, 1),
    (5, 1),
    (6, 2),
    (61, 1),
    (136, 1),
    (10, 4),
    (14, 4),
    (2, 8),
    (152, 8),
    (153, 8),
    (156, 8),
    (157, 8),
];

/// Elements of the reverse direction: packets, TCP flags, times.
const REVERSE_FIELDS: [(u16, u16); 4] = [(2, 8), (6, 2), (156, 8), (157, 8)];

/// What the byte counters of a record cover.
#[derive(Clone, Copy)]
enum Bytes {
    Network,
    /// With payload beside.
    Whole,
    Link,
    Payload,
}

impl Bytes {
    fn of(r: &FlowRecord) -> Bytes {
        match r.layer {
            Layer::Network if r.payload.is_some() && r.reverse.is_some() => Bytes::Whole,
            Layer::Network => Bytes::Network,
            Layer::Link => Bytes::Link,
            Layer::Payload => Bytes::Payload,
        }
    }

    /// Elements for this direction, and for the reverse one, which are of the enterprise of RFC 5103 if that is true.
    fn elements(self) -> [&'static [(u16, bool)]; 2] {
        match self {
            Bytes::Network => [&[(1, false)], &[(1, true)]],
            // initiatorOctets and responderOctets count layer-4 payload.
            Bytes::Whole => [&[(1, false), (231, false)], &[(1, true), (232, false)]],
            Bytes::Link => [&[(352, false)], &[(352, true)]],
            Bytes::Payload => [&[(231, false)], &[(232, false)]],
        }
    }
}

/// Writes flow records to an IPFIX file, which any IPFIX reader can read, such as [`FlowReader`].
///
/// Every exporter number becomes an observation domain. Sampling is written as options data of the domain whenever it
/// changes. Counters that were multiplied by a known interval are divided by it again. That they were multiplied by an
/// unknown one cannot be written, nor where times come from. Payload beside the bytes of packets is written for records of
/// both directions and of the network layer. An unknown type of service becomes zero, and an unknown direction becomes
/// ingress.
///
/// [`FlowReader`]: super::FlowReader
///
/// ```
/// use swell_capture::flow::{FlowReader, FlowRecord, IpfixWriter};
///
/// let mut writer = IpfixWriter::new(Vec::new());
/// let record = FlowRecord { packets: 3, bytes: 180, first: 1, last: 2, ..FlowRecord::BLANK };
/// writer.record(&record)?;
/// let file = writer.finish()?;
/// let mut reader = FlowReader::new(&file[..])?;
/// let read = reader.next_record()?.expect("there is one");
/// assert_eq!((read.packets, read.first, read.last), (3, 1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct IpfixWriter<W: Write> {
    out: BufWriter<W>,
    offset: u64,
    domains: BTreeMap<u32, Domain>,
    /// The message under construction: its domain, its sets, where its last set begins and which it is, and the
    /// number of its data records.
    domain: u32,
    body: Vec<u8>,
    set: Option<(usize, u16)>,
    records: u32,
    /// The latest end of any record so far, which is used as export time.
    latest: i64,
}

#[derive(Clone, Copy, Debug)]
struct Domain {
    sequence: u32,
    sampling: Sampling,
    /// Templates that were written, as bits of their numbers from [`FIRST_TEMPLATE`] on.
    templates: u32,
}

impl<W: Write> IpfixWriter<W> {
    /// Starts a file in any sink of bytes, which need not be buffered.
    pub fn new(sink: W) -> IpfixWriter<W> {
        IpfixWriter {
            out: BufWriter::with_capacity(1 << 16, sink),
            offset: 0,
            domains: BTreeMap::new(),
            domain: 0,
            body: Vec::new(),
            set: None,
            records: 0,
            latest: 0,
        }
    }

    /// Writes a record.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn record(&mut self, record: &FlowRecord) -> Result<(), WriteError> {
        if record.exporter != self.domain {
            self.flush()?;
            self.domain = record.exporter;
        }
        if HEADER + self.body.len() + LONGEST > MOST {
            self.flush()?;
        }
        let domain = self.domains.entry(self.domain).or_insert(Domain {
            sequence: 0,
            sampling: Sampling::UNKNOWN,
            templates: 0,
        });
        let interval = |s: Sampling| (s.interval, s.source == SamplingSource::Unknown);
        // Of counters that were multiplied by an unknown factor, nothing more can be told.
        let sampling = match record.sampling.scaled && record.sampling.interval <= 1.0 {
            true => Sampling::UNKNOWN,
            false => record.sampling,
        };
        if interval(domain.sampling) != interval(sampling) {
            domain.sampling = sampling;
            self.sampling(sampling);
        }
        self.latest = self.latest.max(record.last);
        let bytes = Bytes::of(record);
        let v6 = u16::from(record.src.is_ipv6());
        let both = u16::from(record.reverse.is_some());
        let template = FIRST_TEMPLATE + 4 * bytes as u16 + 2 * both + v6;
        if self.is_new(template) {
            self.template(template, bytes, v6 == 1, both == 1);
        }
        self.data(template, |body| fields(record, bytes, body));
        Ok(())
    }

    /// Whether the domain has no such template yet. It is taken to have it from now on.
    fn is_new(&mut self, template: u16) -> bool {
        let bit = 1 << (template - FIRST_TEMPLATE);
        let Some(domain) = self.domains.get_mut(&self.domain) else {
            return false;
        };
        let new = domain.templates & bit == 0;
        domain.templates |= bit;
        new
    }

    /// Writes all pending data and returns the sink.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        let offset = self.offset;
        let failed = |source| WriteError {
            file: None,
            offset,
            source,
        };
        self.out.flush().map_err(failed)?;
        self.out.into_inner().map_err(|e| failed(e.into_error()))
    }

    /// Writes a template of the domain.
    fn template(&mut self, id: u16, bytes: Bytes, v6: bool, both: bool) {
        let addresses = if v6 {
            [(27, 16), (28, 16)]
        } else {
            [(8, 4), (12, 4)]
        };
        let own = addresses.iter().chain(&FIELDS);
        let back = REVERSE_FIELDS.iter().filter(|_| both);
        let [of_own, of_back] = bytes.elements();
        let octets = of_own.iter().chain(of_back.iter().filter(|_| both));
        let all: Vec<(u16, u16, bool)> = own
            .map(|&(element, len)| (element, len, false))
            .chain(back.map(|&(element, len)| (element, len, true)))
            .chain(octets.map(|&(element, reverse)| (element, 8, reverse)))
            .collect();
        self.begin(2);
        self.half(id);
        self.half(all.len() as u16);
        for (element, len, reverse) in all {
            self.half(element | u16::from(reverse) << 15);
            self.half(len);
            if reverse {
                self.body.extend(REVERSE.to_be_bytes());
            }
        }
    }

    /// Writes the sampling that applies to the domain from here on.
    fn sampling(&mut self, sampling: Sampling) {
        let whole = sampling.interval.fract() == 0.0;
        let packets = if whole { 1.0 } else { 1000.0 };
        let space = (sampling.interval * packets).round() - packets;
        let domain = self.domain;
        if self.is_new(SAMPLING_TEMPLATE) {
            // Scope: observationDomainId. Then samplingPacketInterval and samplingPacketSpace.
            self.begin(3);
            for n in [SAMPLING_TEMPLATE, 3, 1, 149, 4, 305, 4, 306, 4] {
                self.half(n);
            }
        }
        self.data(SAMPLING_TEMPLATE, |body| {
            for word in [domain, packets as u32, space as u32] {
                body.extend(word.to_be_bytes());
            }
        });
    }

    /// Appends a data record to the current set or to a new one.
    fn data(&mut self, template: u16, write: impl FnOnce(&mut Vec<u8>)) {
        if self.set.is_none_or(|(_, id)| id != template) {
            self.begin(template);
        }
        write(&mut self.body);
        self.records += 1;
    }

    fn begin(&mut self, id: u16) {
        self.end_set();
        self.set = Some((self.body.len(), id));
        self.half(id);
        self.half(0);
    }

    fn end_set(&mut self) {
        if let Some((at, _)) = self.set.take() {
            // Cannot overflow: the message is flushed long before a set reaches that length.
            let len = (self.body.len() - at) as u16;
            self.body[at + 2..at + 4].copy_from_slice(&len.to_be_bytes());
        }
    }

    fn half(&mut self, n: u16) {
        self.body.extend(n.to_be_bytes());
    }

    /// Writes the pending message, if there is one.
    fn flush(&mut self) -> Result<(), WriteError> {
        self.end_set();
        if self.body.is_empty() {
            return Ok(());
        }
        let mut sequence = 0;
        if let Some(domain) = self.domains.get_mut(&self.domain) {
            sequence = domain.sequence;
            domain.sequence = sequence.wrapping_add(self.records);
        }
        let seconds = self
            .latest
            .div_euclid(1_000_000_000)
            .clamp(0, i64::from(u32::MAX));
        let mut header = vec![0, 10];
        header.extend((self.body.len() as u16 + 16).to_be_bytes());
        for word in [seconds as u32, sequence, self.domain] {
            header.extend(word.to_be_bytes());
        }
        let written = self.write(&header);
        let body = std::mem::take(&mut self.body);
        let written = written.and_then(|()| self.write(&body));
        self.body = body;
        self.body.clear();
        self.records = 0;
        written.map_err(|source| WriteError {
            file: None,
            offset: self.offset,
            source,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Writes the fields of a record in the order of the template.
fn fields(r: &FlowRecord, bytes: Bytes, body: &mut Vec<u8>) {
    for address in [r.src, r.dst] {
        match address {
            IpAddr::V4(a) => body.extend(a.octets()),
            IpAddr::V6(a) => body.extend(a.octets()),
        }
    }
    for n in [r.src_port, r.dst_port] {
        body.extend(n.to_be_bytes());
    }
    body.extend([r.protocol, r.tos.unwrap_or(0)]);
    body.extend(u16::from(r.tcp_flags.unwrap_or(0)).to_be_bytes());
    body.extend([
        u8::from(r.direction == FlowDirection::Egress),
        r.end.number(),
    ]);
    for n in [r.input, r.output] {
        body.extend(n.to_be_bytes());
    }
    let counter = |n| r.sampling.selected(n).to_be_bytes();
    body.extend(counter(r.packets));
    for time in [r.first, r.last] {
        body.extend((time.div_euclid(1_000_000).max(0) as u64).to_be_bytes());
    }
    for time in [r.first, r.last] {
        body.extend(ntp(time).to_be_bytes());
    }
    if let Some(reverse) = &r.reverse {
        body.extend(counter(reverse.packets));
        body.extend(u16::from(reverse.tcp_flags.unwrap_or(0)).to_be_bytes());
        for time in [reverse.first, reverse.last] {
            body.extend(ntp(time).to_be_bytes());
        }
    }
    let beside = r.payload.filter(|_| matches!(bytes, Bytes::Whole));
    body.extend(counter(r.bytes));
    body.extend(beside.into_iter().flat_map(|p| counter(p[0])));
    if let Some(reverse) = &r.reverse {
        body.extend(counter(reverse.bytes));
        body.extend(beside.into_iter().flat_map(|p| counter(p[1])));
    }
}

/// Converts a time to NTP format. It is rounded up, so that rounding down gives the same nanosecond again.
fn ntp(time: i64) -> u64 {
    let seconds = time.div_euclid(1_000_000_000) + NTP_EPOCH;
    let fraction = (time.rem_euclid(1_000_000_000) as u64) << 32;
    (seconds as u64) << 32 | fraction.div_ceil(1_000_000_000)
}

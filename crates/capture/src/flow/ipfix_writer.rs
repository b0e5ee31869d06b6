//! Writes flow records to an IPFIX file (RFC 5655).

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;

use super::record::{Direction, FlowRecord, Sampling, SamplingSource};
use crate::WriteError;

/// Maximum length of a message, so that each can also be sent as a datagram (RFC 7011 section 10.3.3).
const MOST: usize = 1400;

/// Template numbers: IPv4 and IPv6 addresses, each for one direction and for both.
const FIRST_TEMPLATE: u16 = 256;
const SAMPLING_TEMPLATE: u16 = 260;

/// Seconds from 1900 to 1970, for NTP times.
const NTP_EPOCH: i64 = 2_208_988_800;

/// The enterprise number of RFC 5103 for the reverse direction.
const REVERSE: u32 = 29_305;

/// Elements and lengths after the addresses. Times are written twice: in milliseconds, which every reader supports,
/// and in nanoseconds, which lose nothing.
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
    (1, 8),
    (152, 8),
    (153, 8),
    (156, 8),
];
const LAST_FIELD: (u16, u16) = (157, 8);

/// Elements of the reverse direction: packets, bytes, TCP flags.
const REVERSE_FIELDS: [(u16, u16); 3] = [(2, 8), (1, 8), (6, 2)];

/// Writes flow records to an IPFIX file, which any IPFIX reader can read, such as [`FlowReader`].
///
/// Every exporter number becomes an observation domain. Sampling is written as options data of the domain whenever it
/// changes. All fields of a record are kept except `layer`, whether counters were scaled, and the reverse direction's
/// own times. An unknown type of service becomes zero, and an unknown direction becomes ingress.
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
        if !self.domains.contains_key(&self.domain) {
            let domain = Domain {
                sequence: 0,
                sampling: Sampling::UNKNOWN,
            };
            self.domains.insert(self.domain, domain);
            self.templates();
        }
        if let Some(domain) = self.domains.get_mut(&self.domain) {
            let interval = |s: Sampling| (s.interval, s.source == SamplingSource::Unknown);
            // A reader must not multiply counters that were already multiplied.
            let sampling = match record.sampling.scaled {
                true => Sampling::UNKNOWN,
                false => record.sampling,
            };
            if interval(domain.sampling) != interval(sampling) {
                domain.sampling = sampling;
                self.sampling(sampling);
            }
        }
        self.latest = self.latest.max(record.last);
        let v6 = u16::from(record.src.is_ipv6());
        let both = u16::from(record.reverse.is_some());
        self.data(FIRST_TEMPLATE + 2 * both + v6, |body| fields(record, body));
        if self.body.len() > MOST {
            self.flush()?;
        }
        Ok(())
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

    /// Writes the templates of a domain.
    fn templates(&mut self) {
        self.begin(2);
        for id in 0..4 {
            let (v6, both) = (id & 1 == 1, id & 2 == 2);
            let count = 3 + FIELDS.len() + if both { REVERSE_FIELDS.len() } else { 0 };
            self.half(FIRST_TEMPLATE + id);
            self.half(count as u16);
            let addresses = if v6 {
                [(27, 16), (28, 16)]
            } else {
                [(8, 4), (12, 4)]
            };
            for (element, len) in addresses.iter().chain(&FIELDS).chain([&LAST_FIELD]) {
                self.half(*element);
                self.half(*len);
            }
            for (element, len) in REVERSE_FIELDS.iter().filter(|_| both) {
                self.half(element | 0x8000);
                self.half(*len);
                self.body.extend(REVERSE.to_be_bytes());
            }
        }
        // Scope: observationDomainId. Then samplingPacketInterval and samplingPacketSpace.
        self.begin(3);
        for n in [SAMPLING_TEMPLATE, 3, 1, 149, 4, 305, 4, 306, 4] {
            self.half(n);
        }
    }

    /// Writes the sampling that applies to the domain from here on.
    fn sampling(&mut self, sampling: Sampling) {
        let whole = sampling.interval.fract() == 0.0;
        let packets = if whole { 1.0 } else { 1000.0 };
        let space = (sampling.interval * packets).round() - packets;
        let domain = self.domain;
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
fn fields(r: &FlowRecord, body: &mut Vec<u8>) {
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
    body.extend([u8::from(r.direction == Direction::Egress), r.end.number()]);
    for n in [r.input, r.output] {
        body.extend(n.to_be_bytes());
    }
    for n in [r.packets, r.bytes] {
        body.extend(n.to_be_bytes());
    }
    for time in [r.first, r.last] {
        body.extend((time.div_euclid(1_000_000).max(0) as u64).to_be_bytes());
    }
    for time in [r.first, r.last] {
        body.extend(ntp(time).to_be_bytes());
    }
    if let Some(reverse) = &r.reverse {
        for n in [reverse.packets, reverse.bytes] {
            body.extend(n.to_be_bytes());
        }
        body.extend(u16::from(reverse.tcp_flags.unwrap_or(0)).to_be_bytes());
    }
}

/// Converts a time to NTP format. It is rounded up, so that rounding down gives the same nanosecond again.
fn ntp(time: i64) -> u64 {
    let seconds = time.div_euclid(1_000_000_000) + NTP_EPOCH;
    let fraction = (time.rem_euclid(1_000_000_000) as u64) << 32;
    (seconds as u64) << 32 | fraction.div_ceil(1_000_000_000)
}

//! Counts of the flow records that were read, and of what was lost on the way.

use super::{FlowRecord, Protocol, Sampling};

/// Why data contained no usable flow record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FlowSkip {
    /// A packet of a capture that is not a flow export.
    NotAnExport,
    /// A message of an unsupported version.
    Version,
    /// A message that was received before: the network or the capture made a copy of it.
    Repeated,
    /// A message whose header contradicts its length.
    BadMessage,
    /// A message that is shorter than it announces.
    CutMessage,
    /// A message from one observation domain too many (see `Limits`).
    DomainLimit,
    /// A set whose length contradicts its message; the rest of the message is lost.
    BadSet,
    /// A data set whose template never arrived.
    NoTemplate,
    /// A data set that waited in vain for its template, until later ones needed its place.
    BufferLimit,
    /// A template that contradicts its set, or whose records would have length zero.
    BadTemplate,
    /// One template too many, or a template with too many fields (see `Limits`).
    TemplateLimit,
    /// A data record that does not fit into its set; the rest of the set is lost.
    BadRecord,
    /// A data record that does not describe packets between two IP addresses.
    NoAddresses,
    /// A data record without a packet or byte count: an event, not a flow.
    NoCounters,
    /// A sampled packet of which no IP header could be decoded.
    NoPacket,
    /// A captured frame without a usable IP packet, if packets are metered. The counts of the capture have the reasons.
    NoIp,
    /// A sample of interface counters.
    CounterSample,
    /// One sampler too many (see `Limits`).
    SamplerLimit,
    /// An invalid row of text.
    BadRow,
    /// A block, record or row whose kind is unknown or not needed.
    OtherKind,
}

impl FlowSkip {
    /// Every reason, in the order of their numbers.
    pub const ALL: [FlowSkip; 20] = [
        FlowSkip::NotAnExport,
        FlowSkip::Version,
        FlowSkip::Repeated,
        FlowSkip::BadMessage,
        FlowSkip::CutMessage,
        FlowSkip::DomainLimit,
        FlowSkip::BadSet,
        FlowSkip::NoTemplate,
        FlowSkip::BufferLimit,
        FlowSkip::BadTemplate,
        FlowSkip::TemplateLimit,
        FlowSkip::BadRecord,
        FlowSkip::NoAddresses,
        FlowSkip::NoCounters,
        FlowSkip::NoPacket,
        FlowSkip::NoIp,
        FlowSkip::CounterSample,
        FlowSkip::SamplerLimit,
        FlowSkip::BadRow,
        FlowSkip::OtherKind,
    ];

    /// A description for tables.
    pub const fn text(self) -> &'static str {
        match self {
            FlowSkip::NotAnExport => "packets that are not flow exports",
            FlowSkip::Version => "messages of a version that is not read",
            FlowSkip::Repeated => "messages that came twice",
            FlowSkip::BadMessage => "messages whose header contradicts their length",
            FlowSkip::CutMessage => "messages that end before what they announce",
            FlowSkip::DomainLimit => "messages of too many observation domains",
            FlowSkip::BadSet => "sets with an impossible length",
            FlowSkip::NoTemplate => "data sets whose template never came",
            FlowSkip::BufferLimit => "data sets that waited too long for their template",
            FlowSkip::BadTemplate => "impossible templates",
            FlowSkip::TemplateLimit => "templates too many or too long",
            FlowSkip::BadRecord => "data records that do not fit into their set",
            FlowSkip::NoAddresses => "data records that are not between two IP addresses",
            FlowSkip::NoCounters => "data records without packet or byte counts",
            FlowSkip::NoPacket => "sampled packets without a decodable IP header",
            FlowSkip::NoIp => "captured frames without a usable IP packet",
            FlowSkip::CounterSample => "samples of interface counters",
            FlowSkip::SamplerLimit => "samplers too many",
            FlowSkip::BadRow => "rows that do not read",
            FlowSkip::OtherKind => "entries of kinds that are not needed",
        }
    }

    /// Whether this is damage or loss, and not just data that is no flow record.
    pub const fn is_damage(self) -> bool {
        !matches!(
            self,
            FlowSkip::NotAnExport
                | FlowSkip::Repeated
                | FlowSkip::NoIp
                | FlowSkip::NoAddresses
                | FlowSkip::NoCounters
                | FlowSkip::CounterSample
                | FlowSkip::OtherKind
        )
    }
}

/// How often data was skipped for one reason, and where first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How often.
    pub times: u64,
    /// Byte offset of the first occurrence: in the file, or of the packet in a capture, or within a message that was
    /// passed to the process.
    pub first_at: u64,
}

/// A row of text that does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its line in the file, from 1.
    pub line: u64,
    /// The column: its number from 1 in a table, or the name of the member of a JSON object. `None` if no single one is
    /// to blame.
    pub column: Option<Box<str>>,
}

/// A kind of sampling that occurred, and the number of its records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingSeen {
    /// The sampling.
    pub sampling: Sampling,
    /// Records under it.
    pub records: u64,
}

/// Number of samplings that are distinguished. Records with others are not counted by sampling.
const MOST_SAMPLINGS: usize = 64;

/// Counts over flow records. They are valid after every record and after an error.
///
/// Nothing is lost silently: `data_records` is `records` plus the records that were skipped individually
/// ([`FlowSkip::NoAddresses`], [`FlowSkip::NoCounters`], [`FlowSkip::NoPacket`]).
#[derive(Clone, Debug, PartialEq)]
pub struct FlowCounts {
    /// Export messages (or blocks of nfdump files) read, by protocol in the order of [`Protocol::ALL`].
    messages: [u64; Protocol::ALL.len()],
    /// Flow records returned.
    pub records: u64,
    /// Of these, records with counters of both directions.
    pub biflows: u64,
    /// Data records read, usable or not, except options data.
    pub data_records: u64,
    /// Options data records.
    pub options_records: u64,
    /// Templates and options templates that were new or changed.
    pub templates: u64,
    /// Templates withdrawn (RFC 7011 section 8.1).
    pub templates_withdrawn: u64,
    /// Data sets that waited for their template and were decoded when it came.
    pub sets_late: u64,
    /// Forward jumps of sequence numbers, over all observation domains.
    pub gaps: u64,
    /// Missing items according to these jumps: flows (v5, v7), messages (v9, sFlow) or data records (IPFIX).
    pub missing: u64,
    /// Messages that were out of order, or that followed a restart of their exporter.
    pub out_of_order: u64,
    /// Records whose end is before their start. Both times were set to the end. In nfdump files the two times were
    /// swapped instead, because nfcapd exchanges them.
    pub backward: u64,
    /// Records without a start, which was set to the end.
    pub without_start: u64,
    /// Records without any time, which got the time of their message.
    pub without_time: u64,
    /// Records that name no sampler although there are several. Their sampling is unknown.
    pub ambiguous_sampling: u64,
    /// Records that came before options data said that their domain samples packets. They count as not sampled.
    pub before_sampling: u64,
    /// Records that name a sampler of which no options data came before. They count as not sampled.
    pub unknown_sampler: u64,
    /// Records whose "other direction" was left out, because it counts the same packets behind the exporter.
    pub counted_behind: u64,
    /// Records with bytes of each side but only a total of packets. The packets of each side are estimated.
    pub divided: u64,
    /// Packets over all records, both directions, as exported.
    pub packets: u64,
    /// Bytes over all records, both directions, as exported.
    pub bytes: u64,
    /// The earliest start of a record, nanoseconds since the Unix epoch; `i64::MAX` without records.
    pub first: i64,
    /// The latest end of a record; `i64::MIN` without records.
    pub last: i64,
    /// The first row that was skipped for [`FlowSkip::BadRow`].
    pub bad_row: Option<BadRow>,
    samplings: Vec<SamplingSeen>,
    skipped: [Skipped; FlowSkip::ALL.len()],
}

impl Default for FlowCounts {
    fn default() -> FlowCounts {
        FlowCounts {
            messages: [0; Protocol::ALL.len()],
            records: 0,
            biflows: 0,
            data_records: 0,
            options_records: 0,
            templates: 0,
            templates_withdrawn: 0,
            sets_late: 0,
            gaps: 0,
            missing: 0,
            out_of_order: 0,
            backward: 0,
            without_start: 0,
            without_time: 0,
            ambiguous_sampling: 0,
            before_sampling: 0,
            unknown_sampler: 0,
            counted_behind: 0,
            divided: 0,
            packets: 0,
            bytes: 0,
            first: i64::MAX,
            last: i64::MIN,
            bad_row: None,
            samplings: Vec::new(),
            skipped: [Skipped::default(); FlowSkip::ALL.len()],
        }
    }
}

impl FlowCounts {
    /// Messages of one protocol that were read.
    pub fn messages(&self, protocol: Protocol) -> u64 {
        self.messages[protocol as usize]
    }

    /// Messages of all protocols that were read.
    pub fn messages_total(&self) -> u64 {
        self.messages.iter().sum()
    }

    /// What was skipped for a reason.
    pub fn skipped(&self, reason: FlowSkip) -> Skipped {
        self.skipped[reason as usize]
    }

    /// The samplings that occurred, in the order of their first appearance: the first 64.
    pub fn samplings(&self) -> &[SamplingSeen] {
        &self.samplings
    }

    #[inline]
    pub(crate) fn message(&mut self, protocol: Protocol) {
        self.messages[protocol as usize] += 1;
    }

    #[cold]
    pub(crate) fn skip(&mut self, reason: FlowSkip, at: u64) {
        let skipped = &mut self.skipped[reason as usize];
        if skipped.times == 0 {
            skipped.first_at = at;
        }
        skipped.times += 1;
    }

    /// Counts a record that is returned.
    #[inline]
    pub(crate) fn record(&mut self, record: &FlowRecord) {
        self.records += 1;
        self.data_records += 1;
        self.packets = self.packets.saturating_add(record.packets);
        self.bytes = self.bytes.saturating_add(record.bytes);
        if let Some(reverse) = &record.reverse {
            self.biflows += 1;
            self.packets = self.packets.saturating_add(reverse.packets);
            self.bytes = self.bytes.saturating_add(reverse.bytes);
        }
        self.first = self.first.min(record.first);
        self.last = self.last.max(record.last);
    }

    /// Counts the sampling of `records` records.
    #[inline]
    pub(crate) fn sampled(&mut self, sampling: Sampling, records: u64) {
        if records == 0 {
            return;
        }
        if let Some(seen) = self.samplings.iter_mut().find(|s| s.sampling == sampling) {
            seen.records += records;
        } else if self.samplings.len() < MOST_SAMPLINGS {
            self.samplings.push(SamplingSeen { sampling, records });
        }
    }
}

//! What flow records were read and what was lost on the way.

use super::{FlowRecord, Protocol, Sampling};

/// Why something held no flow record that could be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FlowSkip {
    /// A packet of a capture that is not a flow export.
    NotAnExport,
    /// A message of a version that is not read.
    Version,
    /// A message whose header contradicts its length.
    BadMessage,
    /// A message that ends before what it announces.
    CutMessage,
    /// A message of one observation domain too many.
    DomainLimit,
    /// A set whose length contradicts its message; the rest of the message is lost.
    BadSet,
    /// A set of data whose template never came.
    NoTemplate,
    /// A set of data without a template that there was no more room to keep.
    BufferLimit,
    /// A template that contradicts its set, or whose records would have no length.
    BadTemplate,
    /// A template too many, or with too many fields.
    TemplateLimit,
    /// A data record that does not fit into its set; the rest of the set is lost.
    BadRecord,
    /// A data record that is not about packets between two IP addresses.
    NoAddresses,
    /// A data record without a packet or byte count: an event, not a flow.
    NoCounters,
    /// A sampled packet of which no IP header could be decoded.
    NoPacket,
    /// A sample of interface counters.
    CounterSample,
    /// A sampler too many.
    SamplerLimit,
    /// A row of text that does not read.
    BadRow,
    /// A block, record or row of a kind that is not needed or not known.
    OtherKind,
}

impl FlowSkip {
    /// Every reason, in the order of their numbers.
    pub const ALL: [FlowSkip; 18] = [
        FlowSkip::NotAnExport,
        FlowSkip::Version,
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
        FlowSkip::CounterSample,
        FlowSkip::SamplerLimit,
        FlowSkip::BadRow,
        FlowSkip::OtherKind,
    ];

    /// The reason in words, for a table.
    pub const fn text(self) -> &'static str {
        match self {
            FlowSkip::NotAnExport => "packets that are not flow exports",
            FlowSkip::Version => "messages of a version that is not read",
            FlowSkip::BadMessage => "messages whose header contradicts their length",
            FlowSkip::CutMessage => "messages that end before what they announce",
            FlowSkip::DomainLimit => "messages of too many observation domains",
            FlowSkip::BadSet => "sets with an impossible length",
            FlowSkip::NoTemplate => "data sets whose template never came",
            FlowSkip::BufferLimit => "data sets without a template beyond the room for them",
            FlowSkip::BadTemplate => "impossible templates",
            FlowSkip::TemplateLimit => "templates too many or too long",
            FlowSkip::BadRecord => "data records that do not fit into their set",
            FlowSkip::NoAddresses => "data records that are not between two IP addresses",
            FlowSkip::NoCounters => "data records without packet or byte counts",
            FlowSkip::NoPacket => "sampled packets without a decodable IP header",
            FlowSkip::CounterSample => "samples of interface counters",
            FlowSkip::SamplerLimit => "samplers too many",
            FlowSkip::BadRow => "rows that do not read",
            FlowSkip::OtherKind => "entries of kinds that are not needed",
        }
    }

    /// Whether it is damage or loss, rather than something that is simply no flow record.
    pub const fn is_damage(self) -> bool {
        !matches!(
            self,
            FlowSkip::NotAnExport
                | FlowSkip::NoAddresses
                | FlowSkip::NoCounters
                | FlowSkip::CounterSample
                | FlowSkip::OtherKind
        )
    }
}

/// How often something was skipped for one reason, and where it happened first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How often.
    pub times: u64,
    /// Byte offset of the first: in the file, of the packet in a capture, or in the message passed
    /// over.
    pub first_at: u64,
}

/// A sampling that was seen, and on how many records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingSeen {
    /// The sampling.
    pub sampling: Sampling,
    /// Records under it.
    pub records: u64,
}

/// Kinds of sampling that are distinguished; other records count in `other_samplings`.
const MOST_SAMPLINGS: usize = 64;

/// Counts over flow records, valid after every record and after an error.
///
/// Nothing is lost silently: `data_records` is `records` plus those skipped one by one
/// ([`FlowSkip::NoAddresses`], [`FlowSkip::NoCounters`], [`FlowSkip::NoPacket`]).
#[derive(Clone, Debug, PartialEq)]
pub struct FlowCounts {
    /// Export messages read, by protocol in the order of [`Protocol::ALL`]; blocks of nfdump files.
    messages: [u64; Protocol::ALL.len()],
    /// Flow records given.
    pub records: u64,
    /// Those of them with counters of both directions.
    pub biflows: u64,
    /// Data records met, used or not; options data not among them.
    pub data_records: u64,
    /// Options data records.
    pub options_records: u64,
    /// Templates and options templates that were new or changed.
    pub templates: u64,
    /// Templates received again as they were.
    pub templates_repeated: u64,
    /// Templates withdrawn (RFC 7011 section 8.1).
    pub templates_withdrawn: u64,
    /// Data sets that waited for their template and were decoded when it came.
    pub sets_late: u64,
    /// Times that sequence numbers jumped ahead, over all observation domains.
    pub gaps: u64,
    /// What the jumps say is missing: flows (v5, v7), messages (v9, sFlow) or data records (IPFIX).
    pub missing: u64,
    /// Messages out of order, or sent again, or behind a restart of their exporter.
    pub out_of_order: u64,
    /// Records whose end lies before their start: both were taken to be the end; in nfdump files,
    /// whose collector exchanges them, each to be the other.
    pub backward: u64,
    /// Records whose start is missing: it was taken to be the end.
    pub without_start: u64,
    /// Records without any time: they have that of their message.
    pub without_time: u64,
    /// Records that name none of several samplers: their sampling is unknown.
    pub ambiguous_sampling: u64,
    /// Records that know the bytes of each side, and the packets of both together: those of each are estimated.
    pub divided: u64,
    /// Packets over all records, both directions, as exported.
    pub packets: u64,
    /// Bytes over all records, both directions, as exported.
    pub bytes: u64,
    /// The earliest start of a record, nanoseconds since the Unix epoch; `i64::MAX` without records.
    pub first: i64,
    /// The latest end of a record; `i64::MIN` without records.
    pub last: i64,
    /// Records under samplings beyond the 64 that are distinguished.
    pub other_samplings: u64,
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
            templates_repeated: 0,
            templates_withdrawn: 0,
            sets_late: 0,
            gaps: 0,
            missing: 0,
            out_of_order: 0,
            backward: 0,
            without_start: 0,
            without_time: 0,
            ambiguous_sampling: 0,
            divided: 0,
            packets: 0,
            bytes: 0,
            first: i64::MAX,
            last: i64::MIN,
            other_samplings: 0,
            samplings: Vec::new(),
            skipped: [Skipped::default(); FlowSkip::ALL.len()],
        }
    }
}

impl FlowCounts {
    /// Messages read of a protocol.
    pub fn messages(&self, protocol: Protocol) -> u64 {
        self.messages[protocol as usize]
    }

    /// Messages read of any protocol.
    pub fn messages_total(&self) -> u64 {
        self.messages.iter().sum()
    }

    /// What was skipped for a reason.
    pub fn skipped(&self, reason: FlowSkip) -> Skipped {
        self.skipped[reason as usize]
    }

    /// The samplings seen, in the order of their appearance.
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

    /// Counts a record that is given.
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
        } else {
            self.other_samplings += records;
        }
    }
}

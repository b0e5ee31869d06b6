//! NetFlow 9 (RFC 3954) and IPFIX (RFC 7011): messages of sets, whose records are described by templates.

use std::net::IpAddr;

use super::draft::{Clock, Draft};
use super::process::CollectingProcess;
use super::record::SamplingSource;
use super::samplers::NOT_SAMPLED;
use super::template::{Learned, Specifiers, Template};
use super::{FlowRecord, FlowSkip, Protocol};

const V9_HEADER: usize = 20;
const IPFIX_HEADER: usize = 16;
const SET_HEADER: usize = 4;

/// Set numbers (RFC 3954 sections 5.2 and 6.1, RFC 7011 section 3.3.2).
const V9_TEMPLATES: u16 = 0;
const V9_OPTIONS: u16 = 1;
const IPFIX_TEMPLATES: u16 = 2;
const IPFIX_OPTIONS: u16 = 3;
/// Set numbers from here on are numbers of templates.
const FIRST_DATA: u16 = 256;

/// Values common to all sets of a message.
struct Message {
    domain: u32,
    clock: Clock,
    enterprises: bool,
}

/// The result of reading the sets of a message.
#[derive(Default)]
struct Outcome {
    /// Number of data records, including those of options.
    records: u32,
    /// Whether that number is certain.
    counted: bool,
}

/// A NetFlow 9 message (RFC 3954 section 5.1). Its header counts records and templates, and some exporters count sets
/// instead. So the message's end is determined from the sets themselves.
pub(crate) fn v9(
    process: &mut CollectingProcess,
    exporter: IpAddr,
    bytes: &[u8],
    out: &mut Vec<FlowRecord>,
) {
    let Some(h) = bytes.first_chunk::<V9_HEADER>() else {
        return process.skip(FlowSkip::CutMessage, 0);
    };
    let word = |at: usize| u32::from_be_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]]);
    let Some(domain) = process.domain(exporter, Protocol::NetFlow9, word(16)) else {
        return;
    };
    if process.repeats(domain, Protocol::NetFlow9, bytes) {
        return;
    }
    process.sequence(domain, word(12), Some(1));
    let message = Message {
        domain,
        clock: process.v9_clock(domain, word(8), word(4)),
        enterprises: false,
    };
    sets(process, &message, bytes, V9_HEADER, out);
}

/// An IPFIX message (RFC 7011 section 3.1).
pub(crate) fn ipfix(
    process: &mut CollectingProcess,
    exporter: IpAddr,
    bytes: &[u8],
    out: &mut Vec<FlowRecord>,
) {
    let Some(h) = bytes.first_chunk::<IPFIX_HEADER>() else {
        return process.skip(FlowSkip::CutMessage, 0);
    };
    let word = |at: usize| u32::from_be_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]]);
    let Some(domain) = process.domain(exporter, Protocol::Ipfix, word(12)) else {
        return;
    };
    if process.repeats(domain, Protocol::Ipfix, bytes) {
        return;
    }
    let len = usize::from(u16::from_be_bytes([h[2], h[3]]));
    let bytes = match len {
        _ if len < IPFIX_HEADER => return process.skip(FlowSkip::BadMessage, 2),
        _ if len > bytes.len() => {
            process.skip(FlowSkip::CutMessage, bytes.len());
            bytes
        }
        _ => {
            if len < bytes.len() {
                process.skip(FlowSkip::BadMessage, len);
            }
            &bytes[..len]
        }
    };
    let message = Message {
        domain,
        clock: Clock {
            export: i64::from(word(4)) * 1_000_000_000,
            boot: None,
        },
        enterprises: true,
    };
    let outcome = sets(process, &message, bytes, IPFIX_HEADER, out);
    let next = outcome.counted.then_some(outcome.records);
    process.sequence(domain, word(8), next);
}

/// Walks the sets of a message.
fn sets(
    process: &mut CollectingProcess,
    message: &Message,
    bytes: &[u8],
    header: usize,
    out: &mut Vec<FlowRecord>,
) -> Outcome {
    let mut outcome = Outcome {
        records: 0,
        counted: true,
    };
    let mut at = header;
    // Fewer than four remaining bytes are padding.
    while let Some(&[a, b, c, d]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let (id, len) = (
            u16::from_be_bytes([a, b]),
            usize::from(u16::from_be_bytes([c, d])),
        );
        if len < SET_HEADER {
            // Zeros up to the end are padding, which some exporters add to the message.
            if bytes[at..].iter().any(|byte| *byte != 0) {
                process.skip(FlowSkip::BadSet, at);
                outcome.counted = false;
            }
            break;
        }
        let body = match bytes.get(at + SET_HEADER..at + len) {
            Some(body) => body,
            None => {
                // The set is cut, but its complete records are still valid.
                process.skip(FlowSkip::BadSet, at);
                outcome.counted = false;
                &bytes[at + SET_HEADER..]
            }
        };
        let body_at = at + SET_HEADER;
        match (id, message.enterprises) {
            (V9_TEMPLATES, false) => {
                templates(process, message, body, body_at, Kind::Data, out);
            }
            (V9_OPTIONS, false) => templates(process, message, body, body_at, Kind::V9Options, out),
            (IPFIX_TEMPLATES, true) => {
                templates(process, message, body, body_at, Kind::Data, out);
            }
            (IPFIX_OPTIONS, true) => {
                templates(process, message, body, body_at, Kind::IpfixOptions, out);
            }
            (FIRST_DATA.., _) => match data(process, message, id, body, body_at, out) {
                Some(records) => outcome.records = outcome.records.wrapping_add(records),
                None => outcome.counted = false,
            },
            // Reserved set numbers.
            _ => process.skip(FlowSkip::OtherKind, at),
        }
        at += len;
    }
    outcome
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    V9Options,
    IpfixOptions,
}

/// Reads a set of templates. If one cannot be read, the position of the next is unknown.
fn templates(
    process: &mut CollectingProcess,
    message: &Message,
    body: &[u8],
    body_at: usize,
    kind: Kind,
    out: &mut Vec<FlowRecord>,
) {
    let mut rest = body;
    while rest.len() >= 4 {
        let at = body_at + body.len() - rest.len();
        let half = |i: usize| {
            rest.get(i..i + 2)
                .map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
        };
        let (id, count) = (half(0), half(2));
        // Padding.
        if id == 0 {
            return;
        }
        if kind != Kind::V9Options && count == 0 && message.enterprises {
            withdraw(process, message.domain, id, kind);
            rest = &rest[4..];
            continue;
        }
        let header = if kind == Kind::Data { 4 } else { 6 };
        let Some(specifiers) = rest.get(header..).filter(|_| id >= FIRST_DATA) else {
            return process.skip(FlowSkip::BadTemplate, at);
        };
        // NetFlow 9 gives the lengths of scopes and options in bytes. IPFIX gives the number of all fields, and how
        // many of them are scopes.
        let (scopes, fields) = match kind {
            Kind::Data => (0, usize::from(count)),
            Kind::V9Options => {
                let scopes = usize::from(count) / 4;
                (scopes, scopes + usize::from(half(4)) / 4)
            }
            Kind::IpfixOptions => (0, usize::from(count)),
        };
        let limits = process.limits();
        if fields > limits.template_fields {
            process.skip(FlowSkip::TemplateLimit, at);
            // Without enterprise numbers, the position of the next template is known.
            match (message.enterprises, specifiers.get(fields * 4..)) {
                (false, Some(behind)) => rest = behind,
                _ => return,
            }
            continue;
        }
        let mut reading = Specifiers::new(specifiers, message.enterprises);
        let whole = (0..fields).all(|i| reading.field(i < scopes).is_some());
        if !whole {
            return process.skip(FlowSkip::BadTemplate, at);
        }
        rest = reading.rest();
        match reading.finish(kind != Kind::Data) {
            Ok(template) => learn(process, message.domain, id, template, at, out),
            Err(reason) => process.skip(reason, at),
        }
    }
}

/// A template withdrawal (RFC 7011 section 8.1): of one template, or of all if the number is that of the set.
fn withdraw(process: &mut CollectingProcess, domain: u32, id: u16, kind: Kind) {
    let gone = match id {
        IPFIX_TEMPLATES | IPFIX_OPTIONS => process
            .templates
            .withdraw_all(domain, kind == Kind::IpfixOptions),
        _ => u64::from(process.templates.withdraw(domain, id)),
    };
    process.counts.templates_withdrawn += gone;
}

/// Stores a template and decodes the sets that have waited for it.
fn learn(
    process: &mut CollectingProcess,
    domain: u32,
    id: u16,
    template: Template,
    at: usize,
    out: &mut Vec<FlowRecord>,
) {
    let limits = process.limits();
    match process.templates.learn(domain, id, template, &limits) {
        Ok(Learned::New) => process.counts.templates += 1,
        Ok(Learned::Repeated) => {}
        Err(reason) => return process.skip(reason, at),
    }
    for set in process.waiting.take((domain, id)) {
        process.counts.sets_late += 1;
        // Offsets within a set that waited for its template are not known.
        let began = set.at.saturating_sub(process.base()) as usize;
        decode(process, domain, id, &set.clock, &set.data, began, out);
    }
}

/// Reads a data set, or stores it until its template arrives. Returns the number of its records, if known.
fn data(
    process: &mut CollectingProcess,
    message: &Message,
    id: u16,
    body: &[u8],
    at: usize,
    out: &mut Vec<FlowRecord>,
) -> Option<u32> {
    if process.templates.get(message.domain, id).is_some() {
        return decode(process, message.domain, id, &message.clock, body, at, out);
    }
    let limits = process.limits();
    let most = limits.waiting_bytes.checked_sub(body.len());
    let Some(most) = most.filter(|_| limits.waiting_sets > 0) else {
        process.skip(FlowSkip::BufferLimit, at);
        return None;
    };
    while process.waiting.len() >= limits.waiting_sets || process.waiting.bytes > most {
        let Some(oldest) = process.waiting.drop_oldest() else {
            break;
        };
        process.counts.skip(FlowSkip::BufferLimit, oldest);
    }
    let place = process.base() + at as u64;
    let key = (message.domain, id);
    process.waiting.keep(key, message.clock, place, body);
    None
}

/// Decodes the records of a set whose template is known. Returns their number, if all of them are complete.
fn decode(
    process: &mut CollectingProcess,
    number: u32,
    id: u16,
    clock: &Clock,
    body: &[u8],
    at: usize,
    out: &mut Vec<FlowRecord>,
) -> Option<u32> {
    let mut lost: Vec<(FlowSkip, usize)> = Vec::new();
    let mut records = 0;
    let mut whole = true;
    let limits = process.limits();
    let template = process.templates.get(number, id)?;
    let domain = process.domains.get_mut(number as usize)?;
    let counts = &mut process.counts;
    let mut rest = body;
    // A remainder shorter than a record is padding.
    while rest.len() >= template.len {
        let here = at + body.len() - rest.len();
        let mut draft = Draft::new(number);
        let Some(behind) = template.record(rest, |slot, value| draft.put(slot, value, clock))
        else {
            lost.push((FlowSkip::BadRecord, here));
            whole = false;
            break;
        };
        rest = behind;
        records += 1;
        if template.options {
            counts.options_records += 1;
            domain.boot = draft.boot.or(domain.boot);
            let said = &draft.sampling;
            let new = said.sampler.is_some_and(|s| !domain.samplers.knows(s));
            if new && process.samplers >= limits.samplers {
                lost.push((FlowSkip::SamplerLimit, here));
            } else {
                let sampled = domain.samplers.sampled();
                domain.samplers.learn(said);
                if !sampled && domain.samplers.sampled() {
                    counts.before_sampling += std::mem::take(&mut domain.unsampled);
                }
                process.samplers += usize::from(
                    said.sampler
                        .is_some_and(|s| new && domain.samplers.knows(s)),
                );
            }
            continue;
        }
        let found = domain.samplers.in_force(&draft.sampling);
        let not_sampled = draft.sampling.sampler == Some(NOT_SAMPLED);
        match draft.finish(clock, domain.boot, counts) {
            Ok(mut record) => {
                record.sampling = found.sampling;
                counts.ambiguous_sampling += u64::from(found.ambiguous);
                counts.unknown_sampler += u64::from(found.stranger);
                let unknown = record.sampling.source == SamplingSource::Unknown;
                let told = found.stranger || found.ambiguous || not_sampled;
                domain.unsampled += u64::from(unknown && !told && !domain.samplers.sampled());
                counts.record(&record);
                counts.sampled(record.sampling, 1);
                out.push(record);
            }
            Err(reason) => {
                counts.data_records += 1;
                lost.push((reason, here));
            }
        }
    }
    for (reason, place) in lost {
        process.skip(reason, place);
    }
    whole.then_some(records)
}

/// Whether sets with valid numbers and lengths fill the bytes exactly.
fn sets_agree(mut rest: &[u8], reserved: impl Fn(u16) -> bool) -> bool {
    if rest.is_empty() {
        return false;
    }
    while let Some((&[a, b, c, d], _)) = rest.split_first_chunk() {
        let (id, len) = (
            u16::from_be_bytes([a, b]),
            usize::from(u16::from_be_bytes([c, d])),
        );
        if reserved(id) || len < SET_HEADER {
            return false;
        }
        match rest.get(len..) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Whether bytes are a NetFlow 9 message, judging by the lengths of their sets.
pub(crate) fn is_v9(bytes: &[u8]) -> bool {
    bytes
        .get(V9_HEADER..)
        .is_some_and(|rest| sets_agree(rest, |id| (2..FIRST_DATA).contains(&id)))
}

/// Whether bytes are an IPFIX message, judging by its length and those of its sets.
pub(crate) fn is_ipfix(bytes: &[u8]) -> bool {
    let len = bytes
        .get(2..4)
        .map(|l| usize::from(u16::from_be_bytes([l[0], l[1]])));
    let reserved = |id| id < IPFIX_TEMPLATES || (4..FIRST_DATA).contains(&id);
    len == Some(bytes.len())
        && bytes
            .get(IPFIX_HEADER..)
            .is_some_and(|rest| sets_agree(rest, reserved))
}

/// The length of the first of several consecutive NetFlow 9 messages. It ends where a set number is impossible (2 to
/// 255), because that is the version number of the next message. `None` if the bytes end before this is known.
pub(crate) fn v9_length(bytes: &[u8], all: bool) -> Option<usize> {
    let mut at = V9_HEADER;
    loop {
        let Some(&[a, b, c, d]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else {
            return all.then_some(bytes.len());
        };
        let (id, len) = (
            u16::from_be_bytes([a, b]),
            usize::from(u16::from_be_bytes([c, d])),
        );
        if (2..FIRST_DATA).contains(&id) || len < SET_HEADER {
            return Some(at);
        }
        at += len;
        // No datagram is longer.
        if at > usize::from(u16::MAX) {
            return Some(at.min(bytes.len()));
        }
    }
}

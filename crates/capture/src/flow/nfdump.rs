//! nfdump files: layouts 1 (versions up to 1.6) and 2 (1.7), written on little-endian machines.
//!
//! The layouts are from nfdump's `nffile.h`, `nffileV2.h`, `nfxV3.h` and `nfx.h`: a file header, then blocks,
//! compressed or not, which contain records with a type and a size.

mod bytes;
mod lz4;
mod lzo;
mod samplers;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::behind::Behind;
use super::error::FlowProblem;
use super::record::{
    EndReason, FlowDirection, FlowRecord, Layer, Reverse, Sampling, Times, known_flags,
};
use super::{FlowCounts, FlowSkip};
use crate::error::Problem;
use crate::window::Window;
use bytes::{LE, u64_at};
use samplers::{SCALED, Samplers};

const MAGIC: [u8; 2] = [0x0c, 0xa5];
const HEADER_1: usize = 140;
const STATISTICS_1: usize = 136;
const HEADER_2: usize = 40;
const BLOCK_HEADER: usize = 12;

/// Maximum length of a block that is accepted. nfdump's blocks have at most 5 MiB (`BUFFSIZE`), less than a third of
/// this.
const MOST: usize = 16 << 20;

/// Largest zstd window that is accepted, as a power of two: the maximum length of a block.
const WINDOW_LOG: u32 = MOST.ilog2();

/// Maximum length of a record, whose size has 16 bits.
const LONGEST: usize = 1 << 16;
/// Records that are read at a time: they stay in the processor's cache until they are used.
const RECORDS: usize = 512;

/// Record types (`id.h`).
const COMMON: u16 = 10;
const V3: u16 = 11;
/// Element with the number of the flow's sampler (`EXsamplerInfoID`).
const SAMPLER_INFO: u16 = 18;
/// Element of a firewall's event (`EXnselCommonID`).
const FIREWALL: u16 = 19;

/// How blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Lzo,
    Lz4,
    Zstd,
}

/// Whether a file begins like an nfdump file.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// State of a file being read.
#[derive(Debug)]
pub(crate) struct Nfdump {
    packing: Packing,
    layout: u16,
    /// Where the current block began. If it is not compressed, also how much of it is left in the file.
    place: u64,
    left: usize,
    /// The rest of the block cannot be parsed, because a record has an impossible size.
    hidden: bool,
    /// The decompressed block, and how much of it has been read.
    plain: Vec<u8>,
    read: usize,
    known: Known,
}

/// What earlier records of the file tell about later ones.
#[derive(Debug, Default)]
struct Known {
    samplers: Samplers,
    behind: Behind,
}

fn cut(what: &'static str, needed: usize, left: usize) -> FlowProblem {
    FlowProblem::File(Problem::CutShort {
        what,
        needed: needed as u64,
        left: left as u64,
    })
}

impl Nfdump {
    /// Reads the file header.
    pub(crate) fn open(window: &mut Window<'_>) -> Result<Nfdump, FlowProblem> {
        let head = window.peek(HEADER_1 + STATISTICS_1);
        let short = |needed| cut("nfdump file header", needed, head.len());
        let layout = LE.u16_at(head, 2).ok_or(short(4))?;
        let (packing, header) = match layout {
            1 => {
                let flags = LE.u32_at(head, 4).ok_or(short(8))?;
                // FLAG_LZO_COMPRESSED, FLAG_BZ2_COMPRESSED, FLAG_LZ4_COMPRESSED.
                let packing = match flags & 0x19 {
                    0 => Packing::None,
                    1 => Packing::Lzo,
                    0x10 => Packing::Lz4,
                    _ => return Err(FlowProblem::NfdumpPacking("bzip2")),
                };
                (packing, HEADER_1 + STATISTICS_1)
            }
            2 => {
                let (packing, encryption) = match head.get(16..18) {
                    Some(&[packing, encryption]) => (packing, encryption),
                    _ => return Err(short(HEADER_2)),
                };
                if encryption != 0 {
                    return Err(FlowProblem::NfdumpPacking("encryption"));
                }
                let packing = match packing {
                    0 => Packing::None,
                    1 => Packing::Lzo,
                    2 => return Err(FlowProblem::NfdumpPacking("bzip2")),
                    3 => Packing::Lz4,
                    4 => Packing::Zstd,
                    _ => return Err(FlowProblem::NfdumpPacking("an unknown compression")),
                };
                (packing, HEADER_2)
            }
            other => {
                return Err(FlowProblem::File(Problem::Version {
                    format: "nfdump layout",
                    major: u32::from(other),
                    minor: 0,
                }));
            }
        };
        if head.len() < header {
            return Err(short(header));
        }
        window.consume(header);
        Ok(Nfdump {
            packing,
            layout,
            place: 0,
            left: 0,
            hidden: false,
            plain: Vec::new(),
            read: 0,
            known: Known::default(),
        })
    }

    /// Reads some records, or the beginning of a block; false at the end.
    pub(crate) fn next(
        &mut self,
        window: &mut Window<'_>,
        counts: &mut FlowCounts,
        out: &mut Vec<FlowRecord>,
    ) -> Result<bool, FlowProblem> {
        if self.read < self.plain.len() {
            let left = &self.plain[self.read..];
            let read = records(left, true, self.place, &mut self.known, counts, out);
            self.read = read.map_or(self.plain.len(), |n| self.read + n);
            return Ok(true);
        }
        if self.left == 0 {
            return self.begin(window, counts);
        }
        if self.hidden {
            let there = window.peek(1).len().min(self.left);
            if there == 0 {
                return Err(cut("block", self.left, 0));
            }
            window.consume(there);
            self.left -= there;
            return Ok(true);
        }
        let there = window.peek(self.left.min(LONGEST));
        if there.len() < self.left.min(LONGEST) {
            return Err(cut("block", self.left, there.len()));
        }
        let part = &there[..there.len().min(self.left)];
        let whole = part.len() == self.left;
        match records(part, whole, self.place, &mut self.known, counts, out) {
            Some(read) => {
                window.consume(read);
                self.left -= read;
            }
            None => self.hidden = true,
        }
        Ok(true)
    }

    /// Reads a block's header, and decompresses the block if necessary.
    fn begin(
        &mut self,
        window: &mut Window<'_>,
        counts: &mut FlowCounts,
    ) -> Result<bool, FlowProblem> {
        self.place = window.offset();
        let head = window.peek(BLOCK_HEADER);
        if head.is_empty() {
            return Ok(false);
        }
        let Some(&[_, _, _, _, s0, s1, s2, s3, t0, t1, f0, f1]) = head.first_chunk() else {
            return Err(cut("block header", BLOCK_HEADER, head.len()));
        };
        let size = LE.u32([s0, s1, s2, s3]) as usize;
        let (kind, flags) = (LE.u16([t0, t1]), LE.u16([f0, f1]));
        if size > MOST {
            return Err(FlowProblem::Block(size as u64));
        }
        // DATA_BLOCK_TYPE_2 and DATA_BLOCK_TYPE_3 contain records. Blocks of the latter can be left uncompressed (bit
        // 0).
        let holds_records = matches!(kind, 2 | 3);
        if holds_records && (self.packing == Packing::None || (kind == 3 && flags & 1 != 0)) {
            window.consume(BLOCK_HEADER);
            self.left = size;
            self.hidden = false;
            return Ok(true);
        }
        let whole = window.peek(BLOCK_HEADER + size);
        let Some(body) = whole.get(BLOCK_HEADER..BLOCK_HEADER + size) else {
            return Err(cut("block", BLOCK_HEADER + size, whole.len()));
        };
        if holds_records {
            self.plain.clear();
            self.read = 0;
            if unpack(self.packing, body, &mut self.plain).is_none() {
                self.plain.clear();
                return Err(FlowProblem::Unpack(size as u64));
            }
        } else {
            // Statistics, identifiers, and arrays of other data.
            counts.skip(FlowSkip::OtherKind, self.place);
        }
        window.consume(BLOCK_HEADER + size);
        Ok(true)
    }

    /// The name of the layout.
    pub(crate) fn name(&self) -> &'static str {
        match self.layout {
            1 => "nfdump 1.6",
            _ => "nfdump 1.7",
        }
    }
}

/// Decompresses a block into `plain`, which must be empty; `None` if it is damaged or too long.
fn unpack(packing: Packing, body: &[u8], plain: &mut Vec<u8>) -> Option<()> {
    match packing {
        Packing::None => plain.extend_from_slice(body),
        Packing::Lzo => lzo::decompress(body, MOST, plain)?,
        Packing::Lz4 => lz4::decompress(body, MOST, plain)?,
        Packing::Zstd => {
            use std::io::Read;
            let mut decoder = zstd::stream::read::Decoder::new(body).ok()?;
            decoder.window_log_max(WINDOW_LOG).ok()?;
            let mut limited = decoder.take(MOST as u64 + 1);
            limited.read_to_end(plain).ok()?;
        }
    }
    (plain.len() <= MOST).then_some(())
}

/// Reads some of a block's records and returns the number of bytes used. `whole` means that the block ends with these
/// bytes. `None` if a record's size is impossible: then the rest of the block, which may extend beyond these bytes,
/// cannot be read.
fn records(
    block: &[u8],
    whole: bool,
    place: u64,
    known: &mut Known,
    counts: &mut FlowCounts,
    out: &mut Vec<FlowRecord>,
) -> Option<usize> {
    let mut rest = block;
    let mut hidden = false;
    let mut not_scaled = 0;
    for _ in 0..RECORDS {
        let Some(&[k0, k1, s0, s1]) = rest.first_chunk() else {
            hidden = whole && !rest.is_empty();
            break;
        };
        let (kind, size) = (LE.u16([k0, k1]), usize::from(LE.u16([s0, s1])));
        let Some((body, behind)) = rest.split_at_checked(size).filter(|_| size >= 4) else {
            hidden = whole || size < 4;
            break;
        };
        rest = behind;
        if matches!(kind, samplers::LEGACY | samplers::SAMPLER) {
            if known.samplers.learn(kind, body).is_none() {
                counts.skip(FlowSkip::BadRecord, place);
            }
            continue;
        }
        out.push(FlowRecord::BLANK);
        let Some(record) = out.last_mut() else { break };
        let mut sampler = None;
        let read = match kind {
            V3 => version_3(body, record, &mut sampler),
            COMMON => common(body).map(|read| *record = read),
            // Exporters, extension maps, names.
            _ => Err(FlowSkip::OtherKind),
        };
        if let Err(reason) = read {
            out.pop();
            let data = matches!(reason, FlowSkip::NoAddresses | FlowSkip::NoCounters);
            counts.data_records += u64::from(data);
            counts.skip(reason, place);
            continue;
        }
        if record.first > record.last {
            // nfcapd 1.7.1 swaps the two times of some IPFIX flows.
            counts.backward += 1;
            std::mem::swap(&mut record.first, &mut record.last);
        }
        if let Some(reverse) = &mut record.reverse {
            // The reverse direction has no times of its own. The element with the record's times may come after it.
            (reverse.first, reverse.last) = (record.first, record.last);
            if record.layer != Layer::Payload {
                known.behind.judge(record, counts);
            }
        }
        if record.sampling.scaled {
            // Exporter numbers have 16 bits here.
            record.sampling = known.samplers.of(record.exporter as u16, sampler);
            counts.sampled(record.sampling, 1);
        } else {
            not_scaled += 1;
        }
        counts.record(record);
    }
    counts.sampled(Sampling::UNKNOWN, not_scaled);
    if hidden {
        counts.skip(FlowSkip::BadRecord, place);
        return None;
    }
    Some(block.len() - rest.len())
}

#[inline]
fn sampling(sampled: bool) -> Sampling {
    if sampled { SCALED } else { Sampling::UNKNOWN }
}

#[inline]
fn v4(bytes: &[u8], at: usize) -> Option<IpAddr> {
    Some(IpAddr::V4(Ipv4Addr::from(LE.u32_at(bytes, at)?)))
}

/// Two halves of 64 bits, each in the machine's byte order.
fn v6(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let (high, low) = (u64_at(bytes, at)?, u64_at(bytes, at + 8)?);
    let both = u128::from(high) << 64 | u128::from(low);
    Some(IpAddr::V6(Ipv6Addr::from(both)))
}

#[inline]
fn millis(ms: u64) -> i64 {
    i64::try_from(ms)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000_000)
}

/// Reads a record of layout 1 (`common_record_t`): 32 bytes, then addresses, packets and bytes, whose sizes depend on
/// the flags. The extensions after them are not needed.
fn common(r: &[u8]) -> Result<FlowRecord, FlowSkip> {
    common_fields(r).unwrap_or(Err(FlowSkip::BadRecord))
}

fn common_fields(r: &[u8]) -> Option<Result<FlowRecord, FlowSkip>> {
    let flags = LE.u16_at(r, 4)?;
    let time = |seconds: usize, ms: usize| -> Option<i64> {
        let seconds = u64::from(LE.u32_at(r, seconds)?);
        Some(millis(seconds * 1000 + u64::from(LE.u16_at(r, ms)?)))
    };
    let (src, dst, counters) = if flags & 1 != 0 {
        (v6(r, 32)?, v6(r, 48)?, 64)
    } else {
        (v4(r, 32)?, v4(r, 36)?, 40)
    };
    let counter = |at: usize, long: bool| -> Option<(u64, usize)> {
        Some(match long {
            true => (u64_at(r, at)?, at + 8),
            false => (u64::from(LE.u32_at(r, at)?), at + 4),
        })
    };
    let (packets, behind) = counter(counters, flags & 2 != 0)?;
    let (bytes, _) = counter(behind, flags & 4 != 0)?;
    let protocol = *r.get(22)?;
    Some(Ok(FlowRecord {
        first: time(12, 8)?,
        last: time(16, 10)?,
        packets,
        bytes,
        src,
        dst,
        src_port: LE.u16_at(r, 24)?,
        dst_port: LE.u16_at(r, 26)?,
        protocol,
        tos: Some(*r.get(23)?),
        tcp_flags: known_flags(protocol, *r.get(21)?),
        times: Times::Record,
        exporter: u32::from(LE.u16_at(r, 28)?),
        sampling: sampling(flags & 128 != 0),
        ..FlowRecord::BLANK
    }))
}

/// Reads a record of layout 2 (`recordHeaderV3_t`): 12 bytes, then elements with a type and a length. It is written
/// directly to its final place, because copying it would take as long as reading it.
#[inline]
fn version_3(r: &[u8], record: &mut FlowRecord, sampler: &mut Option<u64>) -> Result<(), FlowSkip> {
    let Some((&[_, _, _, _, n0, n1, _, _, x0, x1, flags, _], mut rest)) = r.split_first_chunk()
    else {
        return Err(FlowSkip::BadRecord);
    };
    record.exporter = u32::from(LE.u16([x0, x1]));
    record.sampling = sampling(flags & 2 != 0);
    let (mut generic, mut addresses) = (false, false);
    for _ in 0..LE.u16([n0, n1]) {
        let Some(&[k0, k1, l0, l1]) = rest.first_chunk() else {
            return Err(FlowSkip::BadRecord);
        };
        let len = usize::from(LE.u16([l0, l1]));
        let Some((element, behind)) = rest.split_at_checked(len).filter(|_| len >= 4) else {
            return Err(FlowSkip::BadRecord);
        };
        let element = &element[4..];
        rest = behind;
        let read = match LE.u16([k0, k1]) {
            1 => {
                generic = true;
                generic_flow(element, record)
            }
            2 => {
                addresses = true;
                pair_v4(element, record)
            }
            3 => {
                addresses = true;
                pair_v6(element, record)
            }
            4 => misc(element, record),
            5 => other_side(element, record),
            FIREWALL => {
                firewall(element, record);
                Some(())
            }
            SAMPLER_INFO => {
                *sampler = u64_at(element, 0);
                Some(())
            }
            _ => Some(()),
        };
        read.ok_or(FlowSkip::BadRecord)?;
    }
    match (addresses, generic) {
        (false, _) => Err(FlowSkip::NoAddresses),
        (true, false) => Err(FlowSkip::NoCounters),
        (true, true) => Ok(()),
    }
}

/// `EXgenericFlow_t`.
#[inline]
fn generic_flow(e: &[u8], record: &mut FlowRecord) -> Option<()> {
    // If the compiler knows the length, no field needs a bounds check.
    let e: &[u8; 48] = e.first_chunk()?;
    (record.first, record.last) = (millis(u64_at(e, 0)?), millis(u64_at(e, 8)?));
    (record.packets, record.bytes) = (u64_at(e, 24)?, u64_at(e, 32)?);
    (record.src_port, record.dst_port) = (LE.u16_at(e, 40)?, LE.u16_at(e, 42)?);
    record.protocol = e[44];
    record.tcp_flags = known_flags(record.protocol, e[45]);
    record.tos = Some(e[47]);
    Some(())
}

/// `EXipv4Flow_t`.
#[inline]
fn pair_v4(e: &[u8], record: &mut FlowRecord) -> Option<()> {
    let e: &[u8; 8] = e.first_chunk()?;
    (record.src, record.dst) = (v4(e, 0)?, v4(e, 4)?);
    Some(())
}

/// `EXipv6Flow_t`.
fn pair_v6(e: &[u8], record: &mut FlowRecord) -> Option<()> {
    (record.src, record.dst) = (v6(e, 0)?, v6(e, 16)?);
    Some(())
}

/// `EXnselCommon_t`. nfcapd stores elements 231 and 232 of Cisco's ASA, which are payload, as the bytes. ASA gives the
/// time (element 323) and the kind (233) of its events; NAT routers only the former, other firewalls only the latter.
fn firewall(e: &[u8], record: &mut FlowRecord) {
    let time = u64_at(e, 0).is_some_and(|time| time > 0);
    if time && e.get(14).is_some_and(|kind| *kind > 0) {
        record.layer = Layer::Payload;
    }
}

/// `EXflowMisc_t`. A direction of 0 means ingress or unknown.
#[inline]
fn misc(e: &[u8], record: &mut FlowRecord) -> Option<()> {
    let e: &[u8; 14] = e.first_chunk()?;
    (record.input, record.output) = (LE.u32_at(e, 0)?, LE.u32_at(e, 4)?);
    if e[10] == 1 {
        record.direction = FlowDirection::Egress;
    }
    record.end = EndReason::from_number(u64::from(e[13]));
    Some(())
}

/// `EXcntFlow_t`: "out" counters, taken to be those of the reverse direction of a biflow, if there are any. Its times are
/// set to the record's when those are known.
fn other_side(e: &[u8], record: &mut FlowRecord) -> Option<()> {
    let (packets, bytes) = (u64_at(e, 8)?, u64_at(e, 16)?);
    if packets > 0 || bytes > 0 {
        record.reverse = Some(Reverse {
            first: 0,
            last: 0,
            packets,
            bytes,
            tcp_flags: None,
        });
    }
    Some(())
}

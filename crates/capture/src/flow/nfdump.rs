//! Files of nfdump, layouts 1 (versions to 1.6) and 2 (1.7), written on little-endian machines.
//!
//! Layouts as in nfdump's `nffile.h`, `nffileV2.h`, `nfxV3.h` and `nfx.h`: a file header, then
//! blocks, compressed or not, of records with a type and a size.

mod lz4;
mod lzo;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::FlowProblem;
use super::record::{
    Direction, EndReason, FlowRecord, Reverse, Sampling, SamplingSource, Times, known_flags,
};
use super::{FlowCounts, FlowSkip};
use crate::bytes::Endian;
use crate::error::Problem;
use crate::window::Window;

const MAGIC: [u8; 2] = [0x0c, 0xa5];
const HEADER_1: usize = 140;
const STATISTICS_1: usize = 136;
const HEADER_2: usize = 40;
const BLOCK_HEADER: usize = 12;

/// nfdump's blocks have 5 MiB at most (`BUFFSIZE`); more than three times that is believed.
const MOST: usize = 16 << 20;

/// Record types (`id.h`).
const COMMON: u16 = 10;
const V3: u16 = 11;

/// How blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Lzo,
    Lz4,
    Zstd,
}

/// Whether a file begins like one of nfdump's.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// State of a file being read.
#[derive(Debug)]
pub(crate) struct Nfdump {
    packing: Packing,
    layout: u16,
}

fn cut(what: &'static str, needed: usize, left: usize) -> FlowProblem {
    FlowProblem::File(Problem::CutShort {
        what,
        needed: needed as u64,
        left: left as u64,
    })
}

const LE: Endian = Endian::Little;

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(LE.u64(*bytes.get(at..)?.first_chunk()?))
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
        Ok(Nfdump { packing, layout })
    }

    /// Reads the next block; false at the end.
    pub(crate) fn next(
        &mut self,
        window: &mut Window<'_>,
        counts: &mut FlowCounts,
        out: &mut Vec<FlowRecord>,
    ) -> Result<bool, FlowProblem> {
        let place = window.offset();
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
        let whole = window.peek(BLOCK_HEADER + size);
        let Some(body) = whole.get(BLOCK_HEADER..BLOCK_HEADER + size) else {
            return Err(cut("block", BLOCK_HEADER + size, whole.len()));
        };
        match kind {
            // DATA_BLOCK_TYPE_2 and DATA_BLOCK_TYPE_3: records. The latter may be left plain (bit 0).
            2 | 3 if kind == 3 && flags & 1 != 0 => records(body, place, counts, out),
            2 | 3 => match unpack(self.packing, body) {
                Some(plain) => records(&plain, place, counts, out),
                None => return Err(FlowProblem::Unpack(size as u64)),
            },
            // Statistics, identifiers, arrays of other things.
            _ => counts.skip(FlowSkip::OtherKind, place),
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

/// A block's content; `None` where it is damaged or too long.
fn unpack(packing: Packing, body: &[u8]) -> Option<Vec<u8>> {
    match packing {
        Packing::None => Some(body.to_vec()),
        Packing::Lzo => lzo::decompress(body, MOST),
        Packing::Lz4 => lz4::decompress(body, MOST),
        Packing::Zstd => {
            use std::io::Read;
            let decoder = zstd::stream::read::Decoder::new(body).ok()?;
            let mut plain = Vec::new();
            let mut limited = decoder.take(MOST as u64 + 1);
            limited.read_to_end(&mut plain).ok()?;
            (plain.len() <= MOST).then_some(plain)
        }
    }
}

/// Reads the records of a block. One whose size cannot be hides the rest.
fn records(block: &[u8], place: u64, counts: &mut FlowCounts, out: &mut Vec<FlowRecord>) {
    let mut rest = block;
    while !rest.is_empty() {
        let framed = match (LE.u16_at(rest, 0), LE.u16_at(rest, 2)) {
            (Some(kind), Some(size)) => rest.get(..usize::from(size)).map(|body| (kind, body)),
            _ => None,
        };
        let Some((kind, body)) = framed.filter(|(_, body)| body.len() >= 4) else {
            return counts.skip(FlowSkip::BadRecord, place);
        };
        rest = &rest[body.len()..];
        let read = match kind {
            COMMON => common(body),
            V3 => version_3(body),
            // Exporters, samplers, extension maps, names.
            _ => Err(FlowSkip::OtherKind),
        };
        match read {
            Ok(mut record) => {
                if record.first > record.last {
                    // nfcapd 1.7.1 exchanges the two times of some IPFIX flows.
                    counts.backward += 1;
                    (record.first, record.last) = (record.last, record.first);
                }
                counts.record(&record);
                counts.sampled(record.sampling, 1);
                out.push(record);
            }
            Err(reason) => {
                let data = matches!(reason, FlowSkip::NoAddresses | FlowSkip::NoCounters);
                counts.data_records += u64::from(data);
                counts.skip(reason, place);
            }
        }
    }
}

/// nfcapd multiplies the counters of sampled flows: it says so, but not by how much.
const SCALED: Sampling = Sampling {
    interval: 1.0,
    source: SamplingSource::Record,
    scaled: true,
};

fn sampling(sampled: bool) -> Sampling {
    if sampled { SCALED } else { Sampling::UNKNOWN }
}

fn v4(bytes: &[u8], at: usize) -> Option<IpAddr> {
    Some(IpAddr::V4(Ipv4Addr::from(LE.u32_at(bytes, at)?)))
}

/// Two halves of 64 bits, each in the order of the machine.
fn v6(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let (high, low) = (u64_at(bytes, at)?, u64_at(bytes, at + 8)?);
    let both = u128::from(high) << 64 | u128::from(low);
    Some(IpAddr::V6(Ipv6Addr::from(both)))
}

fn millis(ms: u64) -> i64 {
    i64::try_from(ms)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000_000)
}

/// The record of layout 1 (`common_record_t`): 32 bytes, then addresses, packets and bytes, whose
/// sizes the flags give; what the extension map describes behind them is not needed.
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

/// The record of layout 2 (`recordHeaderV3_t`): 12 bytes, then elements with a type and a length.
fn version_3(r: &[u8]) -> Result<FlowRecord, FlowSkip> {
    let mut record = FlowRecord::BLANK;
    let (mut generic, mut addresses) = (false, false);
    let (Some(elements), Some(exporter), Some(&flags)) =
        (LE.u16_at(r, 4), LE.u16_at(r, 8), r.get(10))
    else {
        return Err(FlowSkip::BadRecord);
    };
    record.exporter = u32::from(exporter);
    record.sampling = sampling(flags & 2 != 0);
    let mut rest = r.get(12..).ok_or(FlowSkip::BadRecord)?;
    for _ in 0..elements {
        let (Some(kind), Some(len)) = (LE.u16_at(rest, 0), LE.u16_at(rest, 2)) else {
            return Err(FlowSkip::BadRecord);
        };
        let len = usize::from(len);
        let element = rest.get(4..len).ok_or(FlowSkip::BadRecord)?;
        rest = &rest[len..];
        let read = match kind {
            1 => {
                generic = true;
                generic_flow(element, &mut record)
            }
            2 | 3 => {
                addresses = true;
                pair(element, kind == 3, &mut record)
            }
            4 => misc(element, &mut record),
            5 => other_side(element, &mut record),
            _ => Some(()),
        };
        read.ok_or(FlowSkip::BadRecord)?;
    }
    match (addresses, generic) {
        (false, _) => Err(FlowSkip::NoAddresses),
        (true, false) => Err(FlowSkip::NoCounters),
        (true, true) => Ok(record),
    }
}

/// `EXgenericFlow_t`.
fn generic_flow(e: &[u8], record: &mut FlowRecord) -> Option<()> {
    (record.first, record.last) = (millis(u64_at(e, 0)?), millis(u64_at(e, 8)?));
    (record.packets, record.bytes) = (u64_at(e, 24)?, u64_at(e, 32)?);
    (record.src_port, record.dst_port) = (LE.u16_at(e, 40)?, LE.u16_at(e, 42)?);
    record.protocol = *e.get(44)?;
    record.tcp_flags = known_flags(record.protocol, *e.get(45)?);
    record.tos = Some(*e.get(47)?);
    Some(())
}

/// `EXipv4Flow_t` and `EXipv6Flow_t`.
fn pair(e: &[u8], six: bool, record: &mut FlowRecord) -> Option<()> {
    (record.src, record.dst) = match six {
        true => (v6(e, 0)?, v6(e, 16)?),
        false => (v4(e, 0)?, v4(e, 4)?),
    };
    Some(())
}

/// `EXflowMisc_t`. Its direction is 0 for ingress and for "not said" alike.
fn misc(e: &[u8], record: &mut FlowRecord) -> Option<()> {
    (record.input, record.output) = (LE.u32_at(e, 0)?, LE.u32_at(e, 4)?);
    if *e.get(10)? == 1 {
        record.direction = Direction::Egress;
    }
    record.end = EndReason::from_number(u64::from(*e.get(13)?));
    Some(())
}

/// `EXcntFlow_t`: the counters of the other side of a biflow, where there are any.
fn other_side(e: &[u8], record: &mut FlowRecord) -> Option<()> {
    let (packets, bytes) = (u64_at(e, 8)?, u64_at(e, 16)?);
    if packets > 0 || bytes > 0 {
        record.reverse = Some(Reverse {
            first: record.first,
            last: record.last,
            packets,
            bytes,
            tcp_flags: None,
        });
    }
    Some(())
}

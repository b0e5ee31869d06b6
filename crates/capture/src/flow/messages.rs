//! Consecutive export messages in a file: IPFIX files (RFC 5655 section 5), and datagrams stored as they arrived.

use std::net::{IpAddr, Ipv4Addr};

use super::error::FlowProblem;
use super::process::CollectingProcess;
use super::{FlowRecord, sets, sflow, v5};
use crate::error::Problem;
use crate::window::Window;

/// The address of the exporter if the file does not contain it.
pub(crate) const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Maximum length of a message, which is at most a datagram.
const MOST: usize = 65_536;

/// Whether a file begins like an export message.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    let [a, b, c, d, ..] = *head else {
        return false;
    };
    let (version, count) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    match version {
        // In version 9 the second field is a count of records and templates, in version 10 a length.
        9 => {
            count > 0
                && sets::v9_length(head, false).is_none_or(|len| len > 20)
                && head
                    .get(20)
                    .is_none_or(|first| *first == 0 || head.get(21).is_some())
        }
        10 => usize::from(count) >= 16,
        0 => {
            (c, d) == (0, 5)
                && head
                    .get(4..8)
                    .is_some_and(|kind| matches!(kind, [0, 0, 0, 1 | 2]))
        }
        _ => v5::Layout::of(version).is_some_and(|l| (1..=l.most).contains(&count)),
    }
}

/// Reads the next message; false at the end.
pub(crate) fn next(
    window: &mut Window<'_>,
    process: &mut CollectingProcess,
    out: &mut Vec<FlowRecord>,
) -> Result<bool, FlowProblem> {
    let base = window.offset();
    let bytes = window.peek(MOST);
    if bytes.is_empty() {
        return Ok(false);
    }
    let len = length(bytes)?;
    if len > bytes.len() {
        return Err(FlowProblem::File(Problem::CutShort {
            what: "message",
            needed: len as u64,
            left: bytes.len() as u64,
        }));
    }
    // Problems inside the message are counted. The next message may be valid.
    let _ = process.message_at(NOBODY, None, &bytes[..len], base, out);
    window.consume(len);
    Ok(true)
}

/// The length of the first message in `bytes`, computed from as many bytes as are needed to separate messages.
fn length(bytes: &[u8]) -> Result<usize, FlowProblem> {
    let Some(&[a, b, c, d]) = bytes.first_chunk() else {
        return Err(FlowProblem::File(Problem::CutShort {
            what: "message header",
            needed: 16,
            left: bytes.len() as u64,
        }));
    };
    let damaged = FlowProblem::Message(u32::from_be_bytes([a, b, c, d]));
    let count = usize::from(u16::from_be_bytes([c, d]));
    match u16::from_be_bytes([a, b]) {
        9 => Ok(sets::v9_length(bytes, bytes.len() < MOST).unwrap_or(bytes.len())),
        10 if count >= 16 => Ok(count),
        0 if (c, d) == (0, 5) => Ok(sflow::length(bytes)),
        version => match v5::Layout::of(version) {
            Some(layout) if count <= usize::from(layout.most) => {
                Ok(layout.header + layout.record * count)
            }
            _ => Err(damaged),
        },
    }
}

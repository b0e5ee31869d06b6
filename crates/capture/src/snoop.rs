//! The snoop file format of Solaris (RFC 1761).

use crate::bytes::Endian;
use crate::counts::Counts;
use crate::error::Problem;
use crate::window::Window;
use crate::{Frame, Interface, LinkType};

pub(crate) const MAGIC: &[u8; 8] = b"snoop\0\0\0";
pub(crate) const HEADER: usize = 16;
const RECORD: usize = 24;
const MOST: u32 = 262_144;

/// State of a snoop file being read.
#[derive(Clone, Debug)]
pub(crate) struct Snoop {
    link: LinkType,
}

impl Snoop {
    /// Reads the file header without consuming it.
    pub(crate) fn open(head: &[u8]) -> Result<(Snoop, Interface), Problem> {
        let (Some(version), Some(datalink)) =
            (Endian::Big.u32_at(head, 8), Endian::Big.u32_at(head, 12))
        else {
            return Err(Problem::CutShort {
                what: "snoop file header",
                needed: HEADER as u64,
                left: head.len() as u64,
            });
        };
        if version != 2 {
            return Err(Problem::Version {
                format: "snoop",
                major: version,
                minor: 0,
            });
        }
        let link = match datalink {
            // 802.3 frames begin like Ethernet's.
            0 | 4 => LinkType::ETHERNET,
            // FDDI, by its number in pcap files.
            8 => LinkType(10),
            // A link type that this crate does not decode: the number is reserved for private use in the pcap
            // registry.
            _ => LinkType(147),
        };
        let interface = Interface {
            link,
            snaplen: 0,
            ticks_per_second: Some(1_000_000),
        };
        Ok((Snoop { link }, interface))
    }

    /// Consumes and returns the next record; `None` at the end of the data.
    pub(crate) fn next<'w>(
        &self,
        window: &'w mut Window<'_>,
        counts: &mut Counts,
    ) -> Result<Option<Frame<'w>>, Problem> {
        let seen = window.peek(RECORD);
        let Some(h) = seen.first_chunk::<RECORD>() else {
            let left = seen.len();
            return match left {
                0 => Ok(None),
                _ => Err(Problem::CutShort {
                    what: "packet record header",
                    needed: RECORD as u64,
                    left: left as u64,
                }),
            };
        };
        let field = |i: usize| u32::from_be_bytes([h[i], h[i + 1], h[i + 2], h[i + 3]]);
        let (wire_len, captured, record) = (field(0), field(4), field(8));
        let (seconds, micros) = (field(16), field(20));
        if captured > MOST {
            return Err(Problem::RecordTooLong {
                captured,
                snaplen: 0,
                limit: MOST,
            });
        }
        let end = RECORD + captured as usize;
        // Records may be padded, but only by a few bytes.
        if (record as usize) < end || record as usize > end + 4096 {
            return Err(Problem::RecordLength { record, captured });
        }
        let whole = record as usize;
        let left = window.peek(whole).len();
        // The last record's padding may be missing.
        if left < end {
            return Err(Problem::CutShort {
                what: "packet record",
                needed: whole as u64,
                left: left as u64,
            });
        }
        if micros >= 1_000_000 {
            counts.odd_times += 1;
        }
        let data = &window.take(RECORD, whole.min(left))[..captured as usize];
        Ok(Some(Frame {
            time: i64::from(seconds) * 1_000_000_000 + i64::from(micros) * 1000,
            interface: 0,
            heading: crate::Heading::Unknown,
            link: self.link,
            wire_len,
            data,
        }))
    }
}

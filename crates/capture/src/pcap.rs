//! The pcap file format (draft-ietf-opsawg-pcap), in both byte orders, with microseconds or nanoseconds.

use crate::bytes::Endian;
use crate::counts::Counts;
use crate::error::Problem;
use crate::window::Window;
use crate::{Frame, Interface, LinkType};

pub(crate) const HEADER: usize = 24;

/// Largest captured length that is accepted if the snap length is smaller: libpcap's MAXIMUM_SNAPLEN.
const USUAL_MOST: u32 = 262_144;

/// Largest captured length that is accepted for any snap length.
const HARD_MOST: u32 = 16 << 20;

/// What the magic number determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Magic {
    endian: Endian,
    /// Nanoseconds in one unit of the fraction.
    unit: u32,
    /// Record header length: 16 bytes, or 24 in Alexey Kuznetzov's variant, which adds interface index, protocol and
    /// packet type.
    record: usize,
}

impl Magic {
    pub(crate) fn sniff(head: &[u8]) -> Option<Magic> {
        let bytes = *head.first_chunk::<4>()?;
        for endian in [Endian::Little, Endian::Big] {
            let (unit, record) = match endian.u32(bytes) {
                0xa1b2_c3d4 => (1000, 16),
                0xa1b2_3c4d => (1, 16),
                0xa1b2_cd34 => (1000, 24),
                _ => continue,
            };
            return Some(Magic {
                endian,
                unit,
                record,
            });
        }
        None
    }
}

/// Order of the two lengths in a record. Some old programs wrote them swapped (see libpcap's `savefile.c`: all before
/// version 2.3, some in 2.3, and DG/UX with its version 543.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    Usual,
    Swapped,
    /// Swapped if the usual order is impossible.
    Either,
}

/// State of a pcap file being read.
#[derive(Clone, Debug)]
pub(crate) struct Pcap {
    magic: Magic,
    lengths: Lengths,
    link: LinkType,
    snaplen: u32,
    most: u32,
}

impl Pcap {
    /// Reads the file header without consuming it.
    pub(crate) fn open(magic: Magic, head: &[u8]) -> Result<(Pcap, Interface), Problem> {
        let Some(h) = head.first_chunk::<HEADER>() else {
            return Err(Problem::CutShort {
                what: "pcap file header",
                needed: HEADER as u64,
                left: head.len() as u64,
            });
        };
        let e = magic.endian;
        let major = e.u16([h[4], h[5]]);
        let minor = e.u16([h[6], h[7]]);
        let lengths = match (major, minor) {
            (2, 0..=2) | (543, _) => Lengths::Swapped,
            (2, 3) => Lengths::Either,
            (2, _) => Lengths::Usual,
            _ => {
                return Err(Problem::Version {
                    format: "pcap",
                    major: u32::from(major),
                    minor: u32::from(minor),
                });
            }
        };
        let snaplen = e.u32([h[16], h[17], h[18], h[19]]);
        // The upper half holds the length of the frame check sequence and reserved bits.
        let link = LinkType(e.u32([h[20], h[21], h[22], h[23]]) as u16);
        let pcap = Pcap {
            magic,
            lengths,
            link,
            snaplen,
            most: snaplen.clamp(USUAL_MOST, HARD_MOST),
        };
        let interface = Interface {
            link,
            snaplen,
            ticks_per_second: Some(u64::from(1_000_000_000 / magic.unit)),
        };
        Ok((pcap, interface))
    }

    /// Consumes and returns the next record; `None` at the end of the data.
    #[inline]
    pub(crate) fn next<'w>(
        &self,
        window: &'w mut Window<'_>,
        counts: &mut Counts,
    ) -> Result<Option<Frame<'w>>, Problem> {
        let header = self.magic.record;
        let seen = window.peek(header);
        let (Some(h), true) = (seen.first_chunk::<16>(), seen.len() >= header) else {
            let left = seen.len();
            return match left {
                0 => Ok(None),
                _ => Err(Problem::CutShort {
                    what: "packet record header",
                    needed: header as u64,
                    left: left as u64,
                }),
            };
        };
        let e = self.magic.endian;
        let seconds = e.u32([h[0], h[1], h[2], h[3]]);
        let fraction = e.u32([h[4], h[5], h[6], h[7]]);
        let mut captured = e.u32([h[8], h[9], h[10], h[11]]);
        let mut wire_len = e.u32([h[12], h[13], h[14], h[15]]);
        if self.lengths == Lengths::Swapped
            || (self.lengths == Lengths::Either && captured > wire_len)
        {
            (captured, wire_len) = (wire_len, captured);
        }
        if captured > self.most {
            return Err(Problem::RecordTooLong {
                captured,
                snaplen: self.snaplen,
                limit: self.most,
            });
        }
        let whole = header + captured as usize;
        let left = window.peek(whole).len();
        if left < whole {
            return Err(Problem::CutShort {
                what: "packet record",
                needed: whole as u64,
                left: left as u64,
            });
        }
        // Cannot overflow: 32-bit seconds and fractions fit into 63 bits of nanoseconds.
        let nanos = i64::from(fraction) * i64::from(self.magic.unit);
        if nanos >= 1_000_000_000 {
            counts.odd_times += 1;
        }
        Ok(Some(Frame {
            time: i64::from(seconds) * 1_000_000_000 + nanos,
            interface: 0,
            heading: crate::Heading::Unknown,
            link: self.link,
            wire_len,
            data: window.take(header, whole),
        }))
    }
}

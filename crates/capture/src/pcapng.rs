//! The pcapng file format (draft-ietf-opsawg-pcapng): sections in either byte order, with interfaces that have their
//! own link type, snap length and time resolution.

use crate::bytes::Endian;
use crate::counts::Counts;
use crate::error::Problem;
use crate::skip::Skip;
use crate::window::Window;
use crate::{Frame, Heading, Interface, LinkType};

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(crate) const ENHANCED_PACKET: u32 = 6;
pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// The option with the name of an interface (section 4.2).
pub(crate) const NAME: u16 = 2;

/// Largest block that is accepted: libpcap's limit for pcapng blocks.
const MOST: u32 = 16 << 20;

/// A larger number of interfaces is treated as an attack on memory.
const MOST_INTERFACES: usize = 1 << 16;

/// How timestamps of an interface are converted to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// Units of this many nanoseconds.
    Coarse(u64),
    /// This many units in a nanosecond.
    Fine(u128),
    /// Units of 2^-n seconds.
    Binary(u32),
}

impl Resolution {
    /// Decodes the `if_tsresol` option: a negative power of ten, or of two if the top bit is set.
    fn from_option(value: u8) -> Resolution {
        let exponent = u32::from(value & 0x7f);
        if value & 0x80 != 0 {
            Resolution::Binary(exponent)
        } else if exponent <= 9 {
            Resolution::Coarse(10u64.pow(9 - exponent))
        } else {
            // Beyond 10^38 the divisor fits no integer, and every 64-bit time is zero anyway.
            Resolution::Fine(10u128.pow((exponent - 9).min(38)))
        }
    }

    fn ticks_per_second(self) -> Option<u64> {
        match self {
            Resolution::Coarse(nanos) => Some(1_000_000_000 / nanos),
            Resolution::Fine(units) => u64::try_from(units.checked_mul(1_000_000_000)?).ok(),
            Resolution::Binary(n) => 1u64.checked_shl(n),
        }
    }

    /// The time in nanoseconds; `None` if it does not fit.
    #[inline]
    fn nanos(self, ticks: u64) -> Option<i64> {
        match self {
            Resolution::Coarse(nanos) => i64::try_from(ticks.checked_mul(nanos)?).ok(),
            Resolution::Fine(units) => i64::try_from(u128::from(ticks) / units).ok(),
            // 64 bits times 10^9 need 94 bits; shifts are at most 127.
            Resolution::Binary(n) => {
                i64::try_from((u128::from(ticks) * 1_000_000_000).wrapping_shr(n)).ok()
            }
        }
    }
}

/// An interface of the current section.
#[derive(Clone, Copy, Debug)]
struct Clocked {
    link: LinkType,
    snaplen: u32,
    resolution: Resolution,
    /// `if_tsoffset` in nanoseconds.
    offset: i64,
    /// The direction of all its packets, if its name states one.
    way: Option<Heading>,
}

/// State of a pcapng file being read.
#[derive(Clone, Debug)]
pub(crate) struct Pcapng {
    endian: Endian,
    section: Vec<Clocked>,
    /// Number of interfaces in earlier sections.
    earlier: usize,
    /// Packets dropped of each interface, in all sections: by the interface, and by the operating system.
    dropped: Vec<[u64; 2]>,
    last_time: i64,
}

/// A packet within a complete block.
struct Located {
    interface: u32,
    ticks: Option<u64>,
    heading: Heading,
    wire_len: u32,
    /// Where the frame is in the block.
    from: usize,
    to: usize,
}

impl Pcapng {
    pub(crate) fn new() -> Pcapng {
        Pcapng {
            endian: Endian::Little,
            section: Vec::new(),
            earlier: 0,
            dropped: Vec::new(),
            last_time: 0,
        }
    }

    /// Consumes and returns the next packet; `None` at the end of the data. Other blocks before it are consumed and
    /// counted, and new interfaces are added to `interfaces`.
    #[inline]
    pub(crate) fn next<'w>(
        &mut self,
        window: &'w mut Window<'_>,
        counts: &mut Counts,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Option<Frame<'w>>, Problem> {
        loop {
            let seen = window.peek(12);
            let Some(h) = seen.first_chunk::<12>() else {
                let left = seen.len();
                return match left {
                    0 => Ok(None),
                    _ => Err(Problem::CutShort {
                        what: "block header",
                        needed: 12,
                        left: left as u64,
                    }),
                };
            };
            let word = |i: usize| [h[i], h[i + 1], h[i + 2], h[i + 3]];
            // The section header's type reads the same in both byte orders. The third word determines the order.
            if self.endian.u32(word(0)) == SECTION_HEADER {
                self.endian = match Endian::Little.u32(word(8)) {
                    BYTE_ORDER_MAGIC => Endian::Little,
                    other if other.swap_bytes() == BYTE_ORDER_MAGIC => Endian::Big,
                    other => return Err(Problem::ByteOrder(other)),
                };
            }
            let kind = self.endian.u32(word(0));
            let length = self.endian.u32(word(4));
            if !(12..=MOST).contains(&length) || !length.is_multiple_of(4) {
                return Err(Problem::BlockLength { kind, length });
            }
            let whole = length as usize;
            let block = window.peek(whole);
            if block.len() < whole {
                return Err(Problem::CutShort {
                    what: "block",
                    needed: u64::from(length),
                    left: block.len() as u64,
                });
            }
            let block = &block[..whole];
            let tail = self.endian.u32_at(block, whole - 4).unwrap_or_default();
            if tail != length {
                return Err(Problem::BlockTrailer {
                    kind,
                    head: length,
                    tail,
                });
            }
            let body = &block[..whole - 4];
            let found = match kind {
                ENHANCED_PACKET => self.enhanced(body),
                PACKET => self.obsolete(body),
                SIMPLE_PACKET => self.simple(body),
                other => {
                    match other {
                        SECTION_HEADER => self.section(body, interfaces.len())?,
                        INTERFACE => self.interface(body, interfaces)?,
                        STATISTICS => self.statistics(body, counts),
                        _ => count_block(other, counts),
                    }
                    window.consume(whole);
                    continue;
                }
            };
            let known = found.and_then(|l| Some((*self.section.get(l.interface as usize)?, l)));
            let Some((interface, located)) = known else {
                counts.records += 1;
                counts.skip(Skip::BadRecord, LinkType(0));
                window.consume(whole);
                continue;
            };
            let time = match located.ticks {
                Some(ticks) => {
                    let time = interface
                        .resolution
                        .nanos(ticks)
                        .and_then(|t| t.checked_add(interface.offset));
                    time.unwrap_or_else(|| {
                        counts.odd_times += 1;
                        self.last_time
                    })
                }
                None => {
                    counts.without_time += 1;
                    self.last_time
                }
            };
            self.last_time = time;
            let data = &window.take(0, whole)[located.from..located.to];
            return Ok(Some(Frame {
                time,
                // Numbers of interfaces restart in every section; there are at most 2^16 in all.
                interface: self.earlier as u32 + located.interface,
                heading: interface.way.unwrap_or(located.heading),
                link: interface.link,
                wire_len: located.wire_len,
                data,
            }));
        }
    }

    fn section(&mut self, body: &[u8], earlier: usize) -> Result<(), Problem> {
        let (Some(major), Some(minor)) =
            (self.endian.u16_at(body, 12), self.endian.u16_at(body, 14))
        else {
            return Err(Problem::BlockLength {
                kind: SECTION_HEADER,
                length: body.len() as u32 + 4,
            });
        };
        // Version 1.2 was written by mistake and is read as 1.0 (the draft's section on the header).
        if (major, minor) != (1, 0) && (major, minor) != (1, 2) {
            return Err(Problem::Version {
                format: "pcapng",
                major: u32::from(major),
                minor: u32::from(minor),
            });
        }
        self.section.clear();
        self.earlier = earlier;
        Ok(())
    }

    fn interface(&mut self, body: &[u8], all: &mut Vec<Interface>) -> Result<(), Problem> {
        let (Some(link), Some(snaplen)) =
            (self.endian.u16_at(body, 8), self.endian.u32_at(body, 12))
        else {
            return Err(Problem::BlockLength {
                kind: INTERFACE,
                length: body.len() as u32 + 4,
            });
        };
        if all.len() == MOST_INTERFACES {
            return Err(Problem::TooManyInterfaces(MOST_INTERFACES));
        }
        // Microseconds by default.
        let mut resolution = Resolution::from_option(6);
        let mut offset = 0i64;
        let mut way = None;
        let mut at = 16;
        while let (Some(code), Some(len)) = (
            self.endian.u16_at(body, at),
            self.endian.u16_at(body, at + 2),
        ) {
            let Some(value) = body.get(at + 4..at + 4 + usize::from(len)) else {
                break;
            };
            match (code, value) {
                (0, _) => break,
                (NAME, name) => way = named(name),
                (9, &[tsresol]) => resolution = Resolution::from_option(tsresol),
                (14, value) => {
                    if let Ok(bytes) = value.try_into() {
                        // Signed seconds.
                        let seconds = self.endian.u64(bytes).cast_signed();
                        offset = seconds.saturating_mul(1_000_000_000);
                    }
                }
                _ => {}
            }
            at += 4 + usize::from(len).next_multiple_of(4);
        }
        let link = LinkType(link);
        self.section.push(Clocked {
            link,
            snaplen,
            resolution,
            offset,
            way,
        });
        all.push(Interface {
            link,
            snaplen,
            ticks_per_second: resolution.ticks_per_second(),
        });
        Ok(())
    }

    /// Interface statistics, whose counters begin with the capture: the last ones count.
    fn statistics(&mut self, body: &[u8], counts: &mut Counts) {
        counts.other_blocks += 1;
        let interface = self.endian.u32_at(body, 8).map(|i| i as usize);
        let Some(interface) = interface.filter(|i| *i < self.section.len()) else {
            return;
        };
        let at = self.earlier + interface;
        if self.dropped.len() <= at {
            self.dropped.resize(at + 1, [0; 2]);
        }
        // isb_ifdrop and isb_osdrop.
        for (code, dropped) in [5, 7].into_iter().zip(&mut self.dropped[at]) {
            let value = option(self.endian, body, 20, code).and_then(|v| v.try_into().ok());
            *dropped = value.map_or(*dropped, |bytes| self.endian.u64(bytes));
        }
        let all = self.dropped.iter().flatten();
        counts.dropped = all.fold(0, |sum, n| sum.saturating_add(*n));
    }

    #[inline]
    fn enhanced(&self, body: &[u8]) -> Option<Located> {
        let h = body.first_chunk::<28>()?;
        let word = |i: usize| self.endian.u32([h[i], h[i + 1], h[i + 2], h[i + 3]]);
        located(
            body,
            28,
            word(20),
            Located {
                interface: word(8),
                ticks: Some(u64::from(word(12)) << 32 | u64::from(word(16))),
                heading: self.heading(body, 28 + word(20) as usize),
                wire_len: word(24),
                from: 28,
                to: 28,
            },
        )
    }

    /// The direction bits of the flags option, from the options that begin after the packet's data at `at`.
    #[inline]
    fn heading(&self, body: &[u8], at: usize) -> Heading {
        let mut at = at.next_multiple_of(4);
        while let (Some(code), Some(len)) = (
            self.endian.u16_at(body, at),
            self.endian.u16_at(body, at + 2),
        ) {
            match (code, len) {
                (0, _) => break,
                (2, 4) => {
                    return match self.endian.u32_at(body, at + 4).unwrap_or_default() & 3 {
                        1 => Heading::Inbound,
                        2 => Heading::Outbound,
                        _ => Heading::Unknown,
                    };
                }
                _ => at += 4 + usize::from(len).next_multiple_of(4),
            }
        }
        Heading::Unknown
    }

    /// The packet block that preceded the enhanced one, with a 16-bit interface number and a drop count.
    fn obsolete(&self, body: &[u8]) -> Option<Located> {
        let h = body.first_chunk::<28>()?;
        let word = |i: usize| self.endian.u32([h[i], h[i + 1], h[i + 2], h[i + 3]]);
        located(
            body,
            28,
            word(20),
            Located {
                interface: u32::from(self.endian.u16([h[8], h[9]])),
                ticks: Some(u64::from(word(12)) << 32 | u64::from(word(16))),
                heading: self.heading(body, 28 + word(20) as usize),
                wire_len: word(24),
                from: 28,
                to: 28,
            },
        )
    }

    /// A simple packet block: no time, the first interface, and as many bytes as the snap length permits.
    fn simple(&self, body: &[u8]) -> Option<Located> {
        let wire_len = self.endian.u32_at(body, 8)?;
        let captured = match self.section.first()?.snaplen {
            0 => wire_len,
            snaplen => wire_len.min(snaplen),
        };
        located(
            body,
            12,
            captured,
            Located {
                interface: 0,
                ticks: None,
                heading: Heading::Unknown,
                wire_len,
                from: 12,
                to: 12,
            },
        )
    }
}

/// The direction that the name of an interface states. No interface of Linux has a slash in its name.
fn named(name: &[u8]) -> Option<Heading> {
    if name.ends_with(b"/up") {
        Some(Heading::Up)
    } else if name.ends_with(b"/down") {
        Some(Heading::Down)
    } else {
        None
    }
}

/// The value of the first option with a code, among those that begin at `at`.
fn option(endian: Endian, body: &[u8], mut at: usize, wanted: u16) -> Option<&[u8]> {
    loop {
        let (code, len) = (endian.u16_at(body, at)?, endian.u16_at(body, at + 2)?);
        let value = body.get(at + 4..at + 4 + usize::from(len))?;
        match code {
            0 => return None,
            _ if code == wanted => return Some(value),
            _ => at += 4 + usize::from(len).next_multiple_of(4),
        }
    }
}

/// Checks that the captured bytes lie within the block.
#[inline]
fn located(body: &[u8], from: usize, captured: u32, packet: Located) -> Option<Located> {
    let to = from + captured as usize;
    (to <= body.len()).then_some(Located { to, ..packet })
}

#[cold]
fn count_block(kind: u32, counts: &mut Counts) {
    match kind {
        // Name resolution, systemd journal, decryption secrets, custom.
        4 | 9 | 10 | 0x0bad | 0x4000_0bad => counts.other_blocks += 1,
        _ => counts.unknown_blocks += 1,
    }
}

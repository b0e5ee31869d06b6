//! A record of what entered a world and what left it, by which a run can be repeated in virtual time.
//!
//! A file of fixed records, little-endian, 24 bytes each, after a head of 16:
//!
//! | bytes | head |
//! |---|---|
//! | 0–7 | `SWELLJNL` |
//! | 8–11 | format version, 1 |
//! | 12–15 | number of ports |
//!
//! | bytes | arrival (1) | departure (2) | drop (3) | end (4) |
//! |---|---|---|---|---|
//! | 0 | kind | kind | kind | kind |
//! | 1 | ECN | ECN | reason | – |
//! | 2–3 | size | – | – | – |
//! | 4–11 | time, ns | time, ns | time, ns | time, ns |
//! | 12–19 | from and to port, bucket (u16 each), – | number of the arrival | number of the arrival | – |
//! | 20–23 | – | – | – | – |

use std::io::{self, Read, Write};

use swell_base::{DropReason, Tag, Time};
use swell_world::{Port, World};

use super::table::Table;

const MAGIC: &[u8; 8] = b"SWELLJNL";
const VERSION: u32 = 1;
const RECORD: usize = 24;

/// Something that happened at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A packet entered the world. Arrivals are numbered from 0 as they come.
    Arrival {
        /// When.
        at: Time,
        /// By which port.
        from: Port,
        /// For which port.
        to: Port,
        /// Which of the flows between them.
        bucket: u16,
        /// Network-layer bytes.
        size: u16,
        /// ECN codepoint.
        ecn: u8,
    },
    /// A packet left the world.
    Departure {
        /// When it was to leave; not when the machine got round to it.
        at: Time,
        /// Number of the arrival.
        number: u64,
        /// ECN codepoint.
        ecn: u8,
    },
    /// A packet was dropped.
    Drop {
        /// When.
        at: Time,
        /// Number of the arrival.
        number: u64,
        /// Why.
        reason: DropReason,
    },
    /// The emulation ended.
    End {
        /// When.
        at: Time,
    },
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It could not be read.
    #[error("the journal cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is something else, or of another version.
    #[error("this is no journal of version {VERSION}")]
    Foreign,
    /// A record makes no sense.
    #[error("byte {offset} of the journal: {reason}")]
    Bad {
        /// Where the record begins.
        offset: u64,
        /// What is wrong.
        reason: &'static str,
    },
}

/// Writes a journal.
#[derive(Debug)]
pub struct Journal<W: Write> {
    sink: W,
}

impl<W: Write> Journal<W> {
    /// Begins a journal of a world with this many ports.
    ///
    /// # Errors
    /// Where the sink refuses.
    pub fn new(mut sink: W, ports: u32) -> io::Result<Journal<W>> {
        sink.write_all(MAGIC)?;
        sink.write_all(&VERSION.to_le_bytes())?;
        sink.write_all(&ports.to_le_bytes())?;
        Ok(Journal { sink })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// Where the sink refuses.
    pub fn add(&mut self, entry: &Entry) -> io::Result<()> {
        self.sink.write_all(&encode(entry))
    }

    /// Ends the journal.
    ///
    /// # Errors
    /// Where the sink refuses.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.flush()?;
        Ok(self.sink)
    }
}

fn encode(entry: &Entry) -> [u8; RECORD] {
    let mut r = [0; RECORD];
    let mut put = |kind: u8, small: u8, at: Time, number: u64| {
        r[0] = kind;
        r[1] = small;
        r[4..12].copy_from_slice(&at.as_nanos().to_le_bytes());
        r[12..20].copy_from_slice(&number.to_le_bytes());
    };
    match *entry {
        Entry::Arrival {
            at,
            from,
            to,
            bucket,
            size,
            ecn,
        } => {
            let flow =
                u64::from(from.0 as u16) | u64::from(to.0 as u16) << 16 | u64::from(bucket) << 32;
            put(1, ecn, at, flow);
            r[2..4].copy_from_slice(&size.to_le_bytes());
        }
        Entry::Departure { at, number, ecn } => put(2, ecn, at, number),
        Entry::Drop { at, number, reason } => put(3, reason as u8, at, number),
        Entry::End { at } => put(4, 0, at, 0),
    }
    r
}

/// Reads a journal: the number of ports, and its entries.
///
/// # Errors
/// Where it cannot be read or is broken. Memory grows with what is read, not with what it says.
pub fn read(source: &mut dyn Read) -> Result<(u32, Vec<Entry>), JournalError> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    let head = bytes.get(..16).ok_or(JournalError::Foreign)?;
    let word = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    if &head[..8] != MAGIC || word(8) != VERSION {
        return Err(JournalError::Foreign);
    }
    let ports = word(12);
    let mut entries = Vec::new();
    let (mut last, mut arrivals) = (Time::ZERO, 0);
    for (i, r) in bytes[16..].chunks(RECORD).enumerate() {
        let offset = 16 + (i * RECORD) as u64;
        let bad = |reason| JournalError::Bad { offset, reason };
        let r: &[u8; RECORD] = r.try_into().map_err(|_| bad("cut short"))?;
        let long = |from: usize| {
            let mut b = [0; 8];
            b.copy_from_slice(&r[from..from + 8]);
            u64::from_le_bytes(b)
        };
        let (at, number) = (Time::from_nanos(long(4)), long(12));
        let entry = match r[0] {
            1 => {
                let (from, to) = (number as u16, (number >> 16) as u16);
                if u32::from(from) >= ports || u32::from(to) >= ports {
                    return Err(bad("a port that there is not"));
                }
                if at < last {
                    return Err(bad("an arrival before the one before it"));
                }
                last = at;
                arrivals += 1;
                Entry::Arrival {
                    at,
                    from: Port(u32::from(from)),
                    to: Port(u32::from(to)),
                    bucket: (number >> 32) as u16,
                    size: u16::from_le_bytes([r[2], r[3]]),
                    ecn: r[1],
                }
            }
            2 | 3 if number >= arrivals => return Err(bad("a packet that never arrived")),
            2 => Entry::Departure {
                at,
                number,
                ecn: r[1],
            },
            3 => Entry::Drop {
                at,
                number,
                reason: *DropReason::ALL
                    .get(usize::from(r[1]))
                    .ok_or(bad("an unknown reason"))?,
            },
            4 => Entry::End { at },
            _ => return Err(bad("an unknown kind of record")),
        };
        entries.push(entry);
    }
    Ok((ports, entries))
}

/// Feeds the arrivals of a journal to a world, as fast as it goes, and returns everything that then
/// happens at its ports, in the order of the journal. The world must be what the recorded one was when
/// its clock was started, its ports included.
pub fn replay(world: &mut World, entries: &[Entry]) -> Vec<Entry> {
    let mut table = Table::default();
    let mut out = Vec::new();
    let mut number = 0;
    for entry in entries {
        match *entry {
            Entry::Arrival {
                at,
                from,
                to,
                bucket,
                size,
                ecn,
            } => {
                world.happen(at);
                leave(world, &mut out);
                out.push(*entry);
                if let Some((flow, back)) = table.flow(world, from, to, bucket, Tag::Foreground) {
                    world.inject(flow, back, size, ecn, number);
                }
                number += 1;
            }
            Entry::End { at } => {
                world.happen(at);
                leave(world, &mut out);
                out.push(*entry);
            }
            Entry::Departure { .. } | Entry::Drop { .. } => {}
        }
    }
    out
}

fn leave(world: &mut World, out: &mut Vec<Entry>) {
    while let Some(d) = world.take_delivery() {
        out.push(Entry::Departure {
            at: d.at,
            number: d.handle,
            ecn: d.ecn,
        });
    }
    world.take_casualties(&mut |c| {
        out.push(Entry::Drop {
            at: c.at,
            number: c.handle,
            reason: c.reason,
        })
    });
}

/// How a repetition differs from its record: the first entry that is not in both, if any. Departures
/// and drops are compared as what happened to packets and when, in the order of time.
pub fn first_difference(recorded: &[Entry], repeated: &[Entry]) -> Option<[Option<Entry>; 2]> {
    let sorted = |entries: &[Entry]| {
        let mut of: Vec<(Time, u64, Entry)> = entries
            .iter()
            .filter_map(|e| match *e {
                Entry::Departure { at, number, .. } | Entry::Drop { at, number, .. } => {
                    Some((at, number, *e))
                }
                Entry::Arrival { .. } | Entry::End { .. } => None,
            })
            .collect();
        of.sort_by_key(|&(at, number, _)| (at, number));
        of
    };
    let (a, b) = (sorted(recorded), sorted(repeated));
    let end = recorded.iter().rev().find_map(|e| match e {
        Entry::End { at } => Some(*at),
        _ => None,
    });
    (0..a.len().max(b.len()))
        .map(|i| [a.get(i).map(|e| e.2), b.get(i).map(|e| e.2)])
        .find(|[x, y]| x != y && !past(*x, end) && !past(*y, end))
}

/// A drop is known as soon as a queue decides it, which may be before its time has come.
fn past(entry: Option<Entry>, end: Option<Time>) -> bool {
    match (entry, end) {
        (Some(Entry::Departure { at, .. } | Entry::Drop { at, .. }), Some(end)) => at > end,
        _ => false,
    }
}

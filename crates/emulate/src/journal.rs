//! A record of the packets that entered and left a world. With it, a run can be repeated in virtual time.
//!
//! A journal is a file of fixed-size records: little-endian, 24 bytes each, after a header of 16 bytes.
//!
//! | bytes | header |
//! |---|---|
//! | 0–7 | `SWELLJNL` |
//! | 8–11 | format version, 2 |
//! | 12–15 | – |
//!
//! | bytes | arrival (1) | departure (2) | drop (3) | end (4) | port (5) |
//! |---|---|---|---|---|---|
//! | 0 | kind | kind | kind | kind | kind |
//! | 1 | ECN | ECN | reason | – | flags: 1 right end, 2 program |
//! | 2–3 | size | – | – | – | – |
//! | 4–11 | time, ns | time, ns | time, ns | time, ns | time, ns |
//! | 12–19 | ports: from, to (u32 each) | number of the arrival | number of the arrival | – | delay, ns |
//! | 20–23 | bucket (u16), – | – | – | – | path (u16), – |
//!
//! A port has two more records: the capacity from the host and to it in bit/s (u64, 0 = unlimited), the loss
//! probability from it and to it (f64), and 16 unused bytes.
//!
//! A setting of a link (kind 6) has flags in byte 1: 1 down, 2 rate, 4 delay, 8 loss, 16 queue. Bytes 2 and 3 are the
//! kinds of queue limit and of loss. Then follow the time, the rate in bit/s (bytes 12–19), and the link's number
//! (u16, bytes 20–21). Two more records hold the delay (ns, u64), the queue limit (u64), and four probabilities
//! (f64).

mod entry;
mod setting;

use std::io::{self, Read, Write};

use swell_base::{DropReason, Dur, Rate, Time};
use swell_workload::Access;
use swell_world::{PathId, Port, PortConfig};

pub use entry::Entry;
use entry::{LONGEST_DELAY, RECORD, word};

const MAGIC: &[u8; 8] = b"SWELLJNL";
const VERSION: u32 = 2;

/// Kinds of the records for ports and for link settings. Both continue in two more records.
const PORT: u8 = 5;
const SET: u8 = 6;
/// A packet that is read after the end of the run is stamped when it is read. This bounds how late that can be.
const LONGEST_STALL: Dur = Dur::from_secs(60);

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It could not be read.
    #[error("the journal cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is not a journal, or has another format version.
    #[error("this is not a journal of version {VERSION}")]
    Foreign,
    /// A record is invalid.
    #[error("byte {offset} of the journal: {reason}")]
    Bad {
        /// Byte offset of the record.
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
    /// Starts a journal of a world without ports.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn new(mut sink: W) -> io::Result<Journal<W>> {
        sink.write_all(MAGIC)?;
        sink.write_all(&VERSION.to_le_bytes())?;
        sink.write_all(&[0; 4])?;
        Ok(Journal { sink })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn add(&mut self, entry: &Entry) -> io::Result<()> {
        self.sink.write_all(&encode(entry))?;
        match entry {
            Entry::Port { config, .. } => self.sink.write_all(&encode_path(&config.access)),
            Entry::Set { setting, .. } => self.sink.write_all(&setting::rest(setting)),
            _ => Ok(()),
        }
    }

    /// Finishes the journal.
    ///
    /// # Errors
    /// If the sink fails.
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
            put(1, ecn, at, u64::from(from.0) | u64::from(to.0) << 32);
            r[2..4].copy_from_slice(&size.to_le_bytes());
            r[20..22].copy_from_slice(&bucket.to_le_bytes());
        }
        Entry::Departure { at, number, ecn } => put(2, ecn, at, number),
        Entry::Drop { at, number, reason } => put(3, reason as u8, at, number),
        Entry::End { at } => put(4, 0, at, 0),
        Entry::Port {
            at,
            config,
            program,
        } => {
            let flags = u8::from(config.right) | u8::from(program) << 1;
            put(PORT, flags, at, config.access.delay.as_nanos());
            r[20..22].copy_from_slice(&config.path.number().to_le_bytes());
        }
        Entry::Set {
            at,
            link,
            direction,
            ref setting,
        } => {
            let rate = setting.rate.map_or(0, Rate::bps);
            put(SET, setting::flags(direction, setting), at, rate);
            r[2..4].copy_from_slice(&setting::kinds(setting));
            r[20..22].copy_from_slice(&link.to_le_bytes());
        }
    }
    r
}

/// The parameters of a path other than its delay.
fn encode_path(access: &Access) -> [u8; 2 * RECORD] {
    let mut r = [0; 2 * RECORD];
    let rate = |rate: Option<Rate>| rate.map_or(0, Rate::bps);
    let words = [
        rate(access.up),
        rate(access.down),
        access.loss_up.to_bits(),
        access.loss_down.to_bits(),
    ];
    for (bytes, word) in r.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    r
}

/// The contents of a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Its entries; the last is always an end.
    pub entries: Vec<Entry>,
    /// The journal is complete. If the run was killed or the disk was full, the journal ends early. Then `entries` is
    /// its reliable part: it extends to an instant by which every departure is present.
    pub whole: bool,
}

/// Reads the journal of a run that was planned to last until `until`.
///
/// # Errors
/// If it cannot be read or is invalid. A truncated end is no error. Memory use grows with the size of the file, not
/// with numbers that the file contains.
pub fn read(source: &mut dyn Read, until: Time) -> Result<Recorded, JournalError> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    let head = bytes.get(..16).ok_or(JournalError::Foreign)?;
    if &head[..8] != MAGIC || head[8..12] != VERSION.to_le_bytes() {
        return Err(JournalError::Foreign);
    }
    let mut entries = Vec::new();
    let mut seen = Seen::default();
    let mut records = bytes[16..].chunks_exact(RECORD).enumerate();
    while let Some((i, r)) = records.next() {
        let bad = |reason| JournalError::Bad {
            offset: 16 + (i * RECORD) as u64,
            reason,
        };
        let entry = if r[0] == PORT || r[0] == SET {
            let (Some((_, a)), Some((_, b))) = (records.next(), records.next()) else {
                break;
            };
            let rest = [a, b].concat();
            let entry = match r[0] {
                PORT => port(r, &rest),
                _ => setting::read(r, &rest),
            };
            entry.map_err(bad)?
        } else {
            packet(r).map_err(bad)?
        };
        seen.fits(&entry, until).map_err(bad)?;
        entries.push(entry);
    }
    let whole = seen.ended;
    if !whole {
        certain(&mut entries);
    }
    Ok(Recorded { entries, whole })
}

/// Cuts a journal without an end to its reliable part. The loop repeatedly writes arrivals, then departures, then
/// drops. So at each arrival, every earlier departure is already present.
fn certain(entries: &mut Vec<Entry>) {
    let arrives = |e: &Entry| matches!(e, Entry::Arrival { .. });
    let leaves = |e: &Entry| matches!(e, Entry::Departure { .. } | Entry::Drop { .. });
    let last =
        |before: usize, what: &dyn Fn(&Entry) -> bool| entries.iter().take(before).rposition(what);
    let known = last(entries.len(), &arrives)
        .and_then(|next| last(next, &leaves))
        .and_then(|left| last(left, &arrives));
    let end = known.map_or(Time::ZERO, |i| entries[i].at());
    // Several packets can arrive at one instant. The departures and drops of those after the cut are removed as well.
    let whole = entries.iter().take(known.map_or(0, |k| k + 1));
    let arrived = whole.filter(|e| arrives(e)).count() as u64;
    let mut index = 0;
    entries.retain(|e| {
        index += 1;
        match e {
            Entry::Departure { at, number, .. } | Entry::Drop { at, number, .. } => {
                *at <= end && *number < arrived
            }
            _ => known.is_some_and(|k| index <= k + 1),
        }
    });
    entries.push(Entry::End { at: end });
}

fn packet(r: &[u8]) -> Result<Entry, &'static str> {
    let (at, number) = (Time::from_nanos(word(r, 4)), word(r, 12));
    Ok(match r[0] {
        1 => Entry::Arrival {
            at,
            from: Port(number as u32),
            to: Port((number >> 32) as u32),
            bucket: u16::from_le_bytes([r[20], r[21]]),
            size: u16::from_le_bytes([r[2], r[3]]),
            ecn: r[1],
        },
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
                .ok_or("an unknown reason")?,
        },
        4 => Entry::End { at },
        _ => return Err("an unknown kind of record"),
    })
}

fn port(r: &[u8], rest: &[u8]) -> Result<Entry, &'static str> {
    let rate = |from| match word(rest, from) {
        0 => None,
        bps => Some(Rate::from_bps(bps)),
    };
    let loss = |from| {
        let p = f64::from_bits(word(rest, from));
        if (0.0..=1.0).contains(&p) {
            Ok(p)
        } else {
            Err("a loss that is not a probability")
        }
    };
    let delay = Dur::from_nanos(word(r, 12));
    if delay > LONGEST_DELAY {
        return Err("a delay of more than an hour");
    }
    Ok(Entry::Port {
        at: Time::from_nanos(word(r, 4)),
        config: PortConfig {
            right: r[1] & 1 != 0,
            access: Access {
                delay,
                up: rate(0),
                down: rate(8),
                loss_up: loss(16)?,
                loss_down: loss(24)?,
                key: 0,
            },
            path: PathId::of_number(u16::from_le_bytes([r[20], r[21]])),
        },
        program: r[1] & 2 != 0,
    })
}

/// Validates that entries are in order and refer only to earlier ones.
#[derive(Default)]
struct Seen {
    last: Time,
    ports: u32,
    arrivals: u64,
    ended: bool,
}

impl Seen {
    fn fits(&mut self, entry: &Entry, until: Time) -> Result<(), &'static str> {
        if self.ended {
            return Err("an entry after the end");
        }
        if entry.at() > until + LONGEST_STALL && !matches!(entry, Entry::Drop { .. }) {
            return Err("a time after the end of the run");
        }
        match *entry {
            Entry::Departure { number, .. } | Entry::Drop { number, .. } => {
                if number >= self.arrivals {
                    return Err("a packet that never arrived");
                }
                return Ok(());
            }
            Entry::Port { .. } => self.ports += 1,
            Entry::Set { .. } => {}
            Entry::Arrival { from, to, ecn, .. } => {
                if from.0.max(to.0) >= self.ports {
                    return Err("a port that there is not");
                }
                if ecn > 3 {
                    return Err("an ECN codepoint of more than two bits");
                }
                self.arrivals += 1;
            }
            Entry::End { .. } => {
                self.ended = true;
                return Ok(());
            }
        }
        if entry.at() < self.last {
            return Err("before what came before it");
        }
        self.last = entry.at();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use swell_base::DropReason;

    use super::*;

    /// Two packets arrive at one instant and both are dropped immediately: the journal is cut between the two.
    #[test]
    fn what_became_of_a_packet_is_cut_with_it() {
        let at = Time::from_nanos(5);
        let arrival = Entry::Arrival {
            at,
            from: Port(0),
            to: Port(1),
            bucket: 0,
            size: 100,
            ecn: 0,
        };
        let lost = |number| Entry::Drop {
            at,
            number,
            reason: DropReason::Loss,
        };
        let mut entries = vec![arrival, lost(0), arrival, lost(1)];
        certain(&mut entries);
        assert_eq!(entries, [arrival, lost(0), Entry::End { at }]);
    }
}

//! Packet-delivery traces: when a radio link let how many packets through.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use swell_base::{Bytes, Dur, Rate, Time};

/// Nanobits in a byte: a link of one bit per second carries one in a nanosecond.
pub(crate) const BYTE: u64 = 8_000_000_000;

/// Digits of the largest stamp, and some more.
const LINE: usize = 24;
/// Most milliseconds with deliveries that a trace may have: 80 MB, and hours of a fast link.
const MOST: usize = 10_000_000;
/// A day: nothing runs longer.
const LATEST: u32 = 86_400_000;
const MILLI: u64 = 1_000_000;

/// A packet-delivery trace in the format of mahimahi (Netravali et al., USENIX ATC 2015; the
/// recordings of Winstein, Sivaraman & Balakrishnan, NSDI 2013, have it): a line for each opportunity
/// to deliver a packet, with whole milliseconds since the beginning. After its last stamp the trace
/// begins again, that stamp being the new beginning.
///
/// ```
/// use swell_base::{Dur, Rate};
/// use swell_path::Deliveries;
///
/// let trace = Deliveries::read("2\n3\n3\n8\n".as_bytes()).unwrap();
/// assert_eq!((trace.opportunities(), trace.period()), (4, Dur::from_millis(8)));
/// assert_eq!(trace.rate(), Rate::from_bps(6_000_000));
/// assert_eq!(Deliveries::read("5\n4\n".as_bytes()).unwrap_err().to_string(),
///            "line 2: 4 comes after 5: stamps must not go back");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Deliveries {
    /// Milliseconds in which something may be delivered, ascending, and how many opportunities each
    /// has.
    instants: Vec<(u32, u32)>,
    opportunities: u64,
}

/// Why a delivery trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DeliveriesError {
    /// A line is not a whole number of milliseconds.
    #[error(
        "line {line}: `{text}` is not a whole number of milliseconds within a day (0 to 86400000)"
    )]
    NoStamp {
        /// From 1.
        line: u64,
        /// Its beginning.
        text: String,
    },
    /// Stamps go back.
    #[error("line {line}: {stamp} comes after {before}: stamps must not go back")]
    Unsorted {
        /// From 1.
        line: u64,
        /// Its stamp.
        stamp: u32,
        /// The stamp before it.
        before: u32,
    },
    /// More than can be held.
    #[error(
        "line {line}: the trace is too long; ten million milliseconds with deliveries are kept"
    )]
    TooLong {
        /// From 1.
        line: u64,
    },
    /// No line at all.
    #[error("the trace is empty: it needs a line for each packet that may be delivered")]
    Empty,
    /// All stamps are zero, so that repeating takes no time.
    #[error("the last stamp is 0: a trace must last for some time before it begins again")]
    NoTime,
    /// The source failed.
    #[error("{0}")]
    Read(#[from] io::Error),
}

impl Deliveries {
    /// What an opportunity carries: the largest packet of a TUN device with its four bytes of packet
    /// information (mahimahi, `link_queue.hh`, PACKET_SIZE).
    pub const OPPORTUNITY: Bytes = Bytes(1504);
    /// What each packet counts more than its network-layer bytes: TUN's packet information, which
    /// mahimahi carries along. A packet of 1500 bytes so fills an opportunity.
    pub const HEADER: Bytes = Bytes(4);

    /// Reads a trace: a stamp on each line. Memory is bounded whatever comes.
    ///
    /// # Errors
    /// If a line is not a stamp, stamps go back, or the trace is empty or too long.
    pub fn read(mut input: impl BufRead) -> Result<Deliveries, DeliveriesError> {
        let mut instants: Vec<(u32, u32)> = Vec::new();
        let mut text = Vec::with_capacity(LINE + 1);
        let (mut line, mut opportunities) = (0u64, 0u64);
        loop {
            text.clear();
            let mut limited = input.by_ref().take(LINE as u64 + 1);
            if limited.read_until(b'\n', &mut text)? == 0 {
                break;
            }
            line += 1;
            let stamp = stamp(&text).ok_or_else(|| DeliveriesError::NoStamp {
                line,
                text: String::from_utf8_lossy(&text).trim_end().to_owned(),
            })?;
            opportunities += 1;
            let kept = instants.len();
            match instants.last_mut() {
                Some(&mut (before, _)) if stamp < before => {
                    return Err(DeliveriesError::Unsorted {
                        line,
                        stamp,
                        before,
                    });
                }
                Some((before, count)) if stamp == *before && *count < u32::MAX => *count += 1,
                Some((before, _)) if stamp == *before => {
                    return Err(DeliveriesError::TooLong { line });
                }
                _ if kept == MOST => return Err(DeliveriesError::TooLong { line }),
                _ => instants.push((stamp, 1)),
            }
        }
        match instants.last() {
            None => Err(DeliveriesError::Empty),
            Some((0, _)) => Err(DeliveriesError::NoTime),
            Some(_) => Ok(Deliveries {
                instants,
                opportunities,
            }),
        }
    }

    /// After how long the trace begins again: never zero.
    pub fn period(&self) -> Dur {
        let last = self.instants.last().map_or(1, |i| u64::from(i.0));
        Dur::from_nanos(last * MILLI)
    }

    /// Opportunities in a period.
    pub fn opportunities(&self) -> u64 {
        self.opportunities
    }

    /// Mean rate in network-layer bytes, if every packet has 1500.
    pub fn rate(&self) -> Rate {
        let bytes = Deliveries::OPPORTUNITY.0 - Deliveries::HEADER.0;
        let nanobits = u128::from(self.opportunities) * u128::from(bytes * BYTE);
        let bps = nanobits / u128::from(self.period().as_nanos());
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

/// The stamp on a line, its end included.
fn stamp(line: &[u8]) -> Option<u32> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    // Nothing but digits: `parse` would take a sign.
    if text.len() > LINE || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let stamp = std::str::from_utf8(text).ok()?.parse().ok()?;
    (stamp <= LATEST).then_some(stamp)
}

/// A place in a trace that repeats: an opportunity, and what is left of it.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    trace: Arc<Deliveries>,
    /// When the trace came into force, and how far into it that was.
    since: Time,
    phase: u64,
    /// Periods before this one.
    turn: u64,
    /// Which millisecond, and which of its opportunities.
    index: usize,
    nth: u32,
    /// Nanobits left of the opportunity.
    left: u64,
}

impl Position {
    const FULL: u64 = Deliveries::OPPORTUNITY.0 * BYTE;

    /// The first opportunity of a trace that comes into force at `since`, `phase` after its beginning.
    pub fn new(trace: &Arc<Deliveries>, phase: Dur, since: Time) -> Position {
        let mut position = Position {
            trace: Arc::clone(trace),
            since,
            phase: phase.as_nanos() % trace.period().as_nanos(),
            turn: 0,
            index: 0,
            nth: 0,
            left: Position::FULL,
        };
        position.seek(since);
        position
    }

    /// When the opportunity is.
    pub fn instant(&self) -> Time {
        let within = u128::from(self.trace.instants[self.index].0) * u128::from(MILLI);
        let period = u128::from(self.trace.period().as_nanos());
        let ns = u128::from(self.since.as_nanos()) + u128::from(self.turn) * period + within
            - u128::from(self.phase);
        Time::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Goes to the first opportunity not before `at`.
    pub fn seek(&mut self, at: Time) {
        match (at.since(self.since).as_nanos()).checked_add(self.phase) {
            Some(0) => {
                (self.turn, self.index, self.nth) = (0, 0, 0);
                self.left = Position::FULL;
            }
            Some(elapsed) => self.after(elapsed - 1),
            None => self.after(u64::MAX),
        }
    }

    /// Goes to the first opportunity later than `at`.
    pub fn seek_beyond(&mut self, at: Time) {
        let elapsed = at.since(self.since).as_nanos();
        self.after(elapsed.saturating_add(self.phase));
    }

    /// Goes to the first opportunity later than `elapsed` nanoseconds of traces one after another. The
    /// last of a period and the first of the next may be at one instant: they come in this order.
    fn after(&mut self, elapsed: u64) {
        let period = self.trace.period().as_nanos();
        self.turn = elapsed / period;
        let rest = elapsed % period;
        let earlier = |i: &(u32, u32)| u64::from(i.0) * MILLI <= rest;
        // The last stamp is the period, and the rest is less: there is one.
        self.index = self.trace.instants.partition_point(earlier);
        self.nth = 0;
        self.left = Position::FULL;
    }

    /// Spends opportunities earlier than `before` on `work` nanobits: the instant of the last one, or
    /// what remains to be done.
    pub fn spend(&mut self, mut work: u128, before: Time) -> Result<Time, u128> {
        loop {
            let instant = self.instant();
            if instant >= before {
                return Err(work);
            }
            let Some(left) = u64::try_from(work).ok().filter(|&w| w <= self.left) else {
                work -= u128::from(self.left);
                self.step();
                continue;
            };
            self.left -= left;
            if self.left == 0 {
                self.step();
            }
            return Ok(instant);
        }
    }

    fn step(&mut self) {
        self.left = Position::FULL;
        self.nth += 1;
        if self.nth == self.trace.instants[self.index].1 {
            self.nth = 0;
            self.index += 1;
            if self.index == self.trace.instants.len() {
                self.index = 0;
                self.turn += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Packet-delivery traces: when, and how often, a radio link could deliver packets.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use swell_base::{Bytes, Dur, Rate, Time};

/// Nanobits per byte. At one bit per second, one nanobit takes one nanosecond.
pub(crate) const BYTE: u64 = 8_000_000_000;

/// Longest accepted line, longer than the largest stamp, bytes.
const LINE: usize = 24;
/// Largest number of milliseconds with deliveries in a trace: 80 MB, and hours of a fast link.
const MOST: usize = 10_000_000;
/// Latest stamp: a day in milliseconds.
const LATEST: u32 = 86_400_000;
const MILLI: u64 = 1_000_000;

/// A packet-delivery trace in mahimahi's format (Netravali et al., USENIX ATC 2015), which the recordings of
/// Winstein, Sivaraman & Balakrishnan (NSDI 2013) use. Each line is an opportunity to deliver a packet, in whole
/// milliseconds since the beginning. After its last stamp the trace repeats, with that stamp as the new beginning.
///
/// ```
/// use swell_base::{Dur, Rate};
/// use swell_path::Deliveries;
///
/// let trace = Deliveries::read("2\n3\n3\n8\n".as_bytes()).unwrap();
/// assert_eq!(trace.period(), Dur::from_millis(8));
/// assert_eq!(trace.rate(), Rate::from_bps(6_000_000));
/// assert_eq!(Deliveries::read("5\n4\n".as_bytes()).unwrap_err().to_string(),
///            "line 2: 4 comes after 5: stamps must not go back");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Deliveries {
    /// Milliseconds with opportunities, ascending, and the number of opportunities in each.
    instants: Vec<(u32, u32)>,
    /// Opportunities in a period.
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
        /// Line number, from 1.
        line: u64,
        /// Beginning of the line.
        text: String,
    },
    /// Stamps decrease.
    #[error("line {line}: {stamp} comes after {before}: stamps must not go back")]
    Unsorted {
        /// Line number, from 1.
        line: u64,
        /// Stamp on this line.
        stamp: u32,
        /// Stamp on the previous line.
        before: u32,
    },
    /// The trace exceeds the supported length.
    #[error(
        "line {line}: the trace is too long; ten million milliseconds with deliveries are kept"
    )]
    TooLong {
        /// Line number, from 1.
        line: u64,
    },
    /// The trace has no lines.
    #[error("the trace is empty: it needs a line for each packet that may be delivered")]
    Empty,
    /// All stamps are zero, so a repetition would take no time.
    #[error("the last stamp is 0: a trace must last for some time before it begins again")]
    NoTime,
    /// Reading the source failed.
    #[error("{0}")]
    Read(#[from] io::Error),
}

impl Deliveries {
    /// Capacity of an opportunity: the largest packet of a TUN device with its four bytes of packet information
    /// (mahimahi, `link_queue.hh`, PACKET_SIZE).
    pub const OPPORTUNITY: Bytes = Bytes(1504);
    /// Bytes added to the network-layer size of each packet: TUN's packet information, which mahimahi carries along.
    /// So a packet of 1500 bytes fills an opportunity.
    pub const HEADER: Bytes = Bytes(4);

    /// Reads a trace with one stamp per line. Memory is bounded for any input.
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

    /// Time after which the trace repeats; never zero.
    pub fn period(&self) -> Dur {
        let last = self.instants.last().map_or(1, |i| u64::from(i.0));
        Dur::from_nanos(last * MILLI)
    }

    /// Mean rate in network-layer bits per second if all packets have 1500 bytes.
    pub fn rate(&self) -> Rate {
        let bytes = Deliveries::OPPORTUNITY.0 - Deliveries::HEADER.0;
        let nanobits = u128::from(self.opportunities) * u128::from(bytes * BYTE);
        let bps = nanobits / u128::from(self.period().as_nanos());
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

/// Parses a line, which may include its line ending.
fn stamp(line: &[u8]) -> Option<u32> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    // Digits only: `parse` would accept a sign.
    if text.len() > LINE || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let stamp = std::str::from_utf8(text).ok()?.parse().ok()?;
    (stamp <= LATEST).then_some(stamp)
}

/// Position in a repeating trace: an opportunity and its remaining capacity.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    trace: Arc<Deliveries>,
    /// When the trace took effect, and the offset into the trace at that instant.
    since: Time,
    phase: u64,
    /// Number of completed periods.
    turn: u64,
    /// Index of the millisecond, and of the opportunity within it.
    index: usize,
    nth: u32,
    /// Remaining capacity of the opportunity, nanobits.
    left: u64,
}

impl Position {
    const FULL: u64 = Deliveries::OPPORTUNITY.0 * BYTE;

    /// The first opportunity of a trace that takes effect at `since`, starting `phase` after its beginning.
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

    /// The instant of the opportunity.
    pub fn instant(&self) -> Time {
        let within = u128::from(self.trace.instants[self.index].0) * u128::from(MILLI);
        let period = u128::from(self.trace.period().as_nanos());
        let ns = u128::from(self.since.as_nanos()) + u128::from(self.turn) * period + within
            - u128::from(self.phase);
        Time::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Moves to the first opportunity at or after `at`.
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

    /// Moves to the first opportunity after `at`.
    pub fn seek_beyond(&mut self, at: Time) {
        let elapsed = at.since(self.since).as_nanos();
        self.after(elapsed.saturating_add(self.phase));
    }

    /// Moves to the first opportunity later than `elapsed` nanoseconds of the repeating trace. The last opportunity
    /// of a period may coincide with the first of the next; they come in this order.
    fn after(&mut self, elapsed: u64) {
        let period = self.trace.period().as_nanos();
        self.turn = elapsed / period;
        let rest = elapsed % period;
        let earlier = |i: &(u32, u32)| u64::from(i.0) * MILLI <= rest;
        // The last stamp equals the period, and `rest` is less than the period, so an opportunity exists.
        self.index = self.trace.instants.partition_point(earlier);
        self.nth = 0;
        self.left = Position::FULL;
    }

    /// Spends opportunities earlier than `before` on `work` nanobits. Returns the instant of the last opportunity
    /// used, or the remaining work.
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

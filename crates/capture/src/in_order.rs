//! Puts packets in the order of their times, and drops copies of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use swell_base::{Code, Warning};

use crate::copies::{Copies, opens};
use crate::{Error, Packet, Reader};

/// A packet stamped earlier than one before it, by at most this, is put in its place. Cards with several queues deliver
/// packets in batches of up to some 50 ms. With several interfaces, dumpcap takes batches of up to 250 ms from each
/// (`CAP_READ_TIMEOUT`). A clock that is set mostly steps farther. NTP may set it from 128 ms on (RFC 5905 section 11.3:
/// `STEPT`): packets around such a step are mixed for as long.
pub const WINDOW: i64 = 300_000_000;
/// An interface whose packets are left out because another one sees them may see them earlier by at most this.
const AHEAD: i64 = 1_000_000_000;
/// Most packets that are held back at once: about 25 MB of memory.
const MOST: usize = 1 << 17;
/// After this many packets in order at the beginning, none are held back until one is out of order.
const CALM: u32 = 1 << 16;

/// Where [`InOrder`] takes packets from: a [`Reader`], or several of them merged.
pub trait Packets {
    /// Overwrites `packet` with the next one; false at the end. After the end or an error, it returns the end again.
    ///
    /// # Errors
    /// As [`Reader::next_packet`].
    fn read_into(&mut self, packet: &mut Packet) -> Result<bool, Error>;
}

impl Packets for Reader<'_> {
    #[inline]
    fn read_into(&mut self, packet: &mut Packet) -> Result<bool, Error> {
        Reader::read_into(self, packet)
    }
}

impl<S: Packets> Packets for &mut S {
    #[inline]
    fn read_into(&mut self, packet: &mut Packet) -> Result<bool, Error> {
        (**self).read_into(packet)
    }
}

/// Reads a trace packet by packet in the order of their times.
///
/// Packets stamped up to 300 ms earlier than one before them are put in order. A larger step back is left as it is: the
/// clock was set, or captures were joined. If the capture system recorded packets twice, they are returned once.
/// [`InOrder::doubts`] reports both.
///
/// Of two interfaces that see the same packets, the second leaves out what the first sees. Packets are then held back for
/// a second.
///
/// Memory use is bounded. Another trace that is in order passes without being held back, except for its beginning.
#[derive(Debug)]
pub struct InOrder<S> {
    reader: S,
    opening: VecDeque<Packet>,
    opened: bool,
    copies: Copies,
    /// Time, number and slot of the packets held back.
    held: BinaryHeap<Reverse<(i64, u64, u32)>>,
    slots: Vec<Packet>,
    free: Vec<u32>,
    /// Packets held back so far.
    number: u64,
    /// The latest time since the last large step back.
    latest: i64,
    /// Packets in order since the beginning, up to [`CALM`]. Beyond, they are not held back.
    calm: u32,
    /// Hold packets back even if all were in order.
    steady: bool,
    /// All packets held back are due before any other.
    draining: bool,
    /// The first packet after a large step back.
    behind: Option<Packet>,
    over: bool,
    error: Option<Error>,
    read: u64,
    moved: u64,
    copied: u64,
}

impl<S: Packets> InOrder<S> {
    /// Takes the packets of this reader.
    pub fn new(reader: S) -> InOrder<S> {
        InOrder {
            reader,
            opening: VecDeque::new(),
            opened: false,
            copies: Copies::default(),
            held: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            number: 0,
            latest: i64::MIN,
            calm: 0,
            steady: false,
            draining: false,
            behind: None,
            over: false,
            error: None,
            read: 0,
            moved: 0,
            copied: 0,
        }
    }

    /// Holds packets back from beginning to end, so that the place of a packet depends on no packet more than 300 ms away:
    /// what is learnt of one session then depends on no other's packets.
    #[must_use]
    pub fn steady(mut self) -> InOrder<S> {
        self.steady = true;
        self
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// As [`Reader::next_packet`], after all packets before the damage.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, Error> {
        let mut packet = Packet::default();
        Ok(self.read_into(&mut packet)?.then_some(packet))
    }

    /// Like [`InOrder::next_packet`], but overwrites `packet`; false at the end.
    ///
    /// # Errors
    /// As [`InOrder::next_packet`]. After an error and at the end, the contents of `packet` are meaningless.
    #[inline]
    pub fn read_into(&mut self, packet: &mut Packet) -> Result<bool, Error> {
        // Nothing is held back, and the packets have been in order so far.
        if self.calm == CALM && !self.draining && !self.over {
            while self.reader.read_into(packet)? {
                self.read += 1;
                if self.copies.is_copy(packet) {
                    self.copied += 1;
                    continue;
                }
                if self.copies.looks_ahead() {
                    // From now on, packets are held back.
                    self.calm = 0;
                }
                if packet.time < self.latest {
                    self.disorder(packet.time);
                } else {
                    self.latest = packet.time;
                }
                return Ok(true);
            }
            self.over = true;
            return Ok(false);
        }
        self.sorted(packet)
    }

    /// A step back after a calm beginning. The packet that shows it passes as it is; later ones are held back.
    #[cold]
    fn disorder(&mut self, time: i64) {
        self.calm = 0;
        if time < self.latest.saturating_sub(WINDOW) {
            self.latest = time;
        }
    }

    fn sorted(&mut self, packet: &mut Packet) -> Result<bool, Error> {
        loop {
            let due = self.draining
                || self.held.len() >= MOST
                || (self.held.peek())
                    .is_some_and(|p| p.0.0 <= self.latest.saturating_sub(self.ahead()));
            if due && let Some(Reverse((_, _, slot))) = self.held.pop() {
                *packet = self.slots[slot as usize];
                self.free.push(slot);
                // In the order of times: batches of two interfaces may be thousands of packets apart in the file.
                if self.copies.is_copy(packet) {
                    self.copied += 1;
                    continue;
                }
                return Ok(true);
            }
            self.draining = false;
            if let Some(next) = self.behind.take() {
                self.latest = next.time;
                self.hold(&next);
                continue;
            }
            if self.over {
                return self.error.take().map_or(Ok(false), Err);
            }
            if self.calm == CALM {
                return self.read_into(packet);
            }
            if self.next(packet) {
                self.place(packet);
            } else {
                self.over = true;
                self.draining = true;
            }
        }
    }

    /// Holds back a packet, or those before it if time stepped back too far.
    fn place(&mut self, p: &Packet) {
        if p.time >= self.latest {
            self.latest = p.time;
            // Once a packet was out of order, others will be.
            let calm = self.moved == 0 && !self.steady && !self.copies.looks_ahead();
            self.calm += u32::from(self.calm < CALM && calm);
            self.draining = self.calm == CALM;
        } else if p.time < self.latest.saturating_sub(WINDOW) {
            self.draining = true;
            self.behind = Some(*p);
            return;
        } else {
            self.calm = 0;
            self.moved += 1;
        }
        self.hold(p);
    }

    /// How long packets are held back.
    fn ahead(&self) -> i64 {
        if self.copies.looks_ahead() {
            AHEAD
        } else {
            WINDOW
        }
    }

    fn hold(&mut self, p: &Packet) {
        self.copies.note(p);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = *p;
                slot
            }
            None => {
                self.slots.push(*p);
                self.slots.len() as u32 - 1
            }
        };
        self.held.push(Reverse((p.time, self.number, slot)));
        self.number += 1;
    }

    /// The next packet of the file; false at the end or before damage.
    fn next(&mut self, packet: &mut Packet) -> bool {
        if !self.opened {
            self.open(packet);
        }
        match self.opening.pop_front() {
            Some(first) => *packet = first,
            None if !self.fetch(packet) => return false,
            None => {}
        }
        self.read += 1;
        true
    }

    fn open(&mut self, packet: &mut Packet) {
        self.opened = true;
        while self.needs_more() && self.fetch(packet) {
            self.opening.push_back(*packet);
        }
        let mut first: Vec<&Packet> = self.opening.iter().collect();
        first.sort_by_key(|p| p.time);
        self.copies.begin(&first);
    }

    /// Whether more packets have to be examined before any is used.
    fn needs_more(&self) -> bool {
        let ends = self.opening.front().zip(self.opening.back());
        ends.is_none_or(|(first, last)| opens(first, last, self.opening.len()))
    }

    fn fetch(&mut self, packet: &mut Packet) -> bool {
        // After the end or an error, the reader returns the end again.
        match self.reader.read_into(packet) {
            Ok(more) => more,
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }

    /// The reader. Its counts may be ahead of the packets that were returned.
    pub fn reader(&self) -> &S {
        &self.reader
    }

    /// Warnings about order and copies.
    pub fn doubts(&self) -> Vec<Warning> {
        let mut doubts = Vec::new();
        if self.moved > 0 {
            doubts.push(Warning::note(
                Code::PutInOrder,
                format!(
                    "{} of {} packets are stamped up to 300 ms before one that came earlier: they were put in the \
                     order of their times",
                    self.moved, self.read
                ),
            ));
        }
        doubts.extend(self.copies.warnings(self.read, self.copied));
        doubts
    }
}

//! One direction of a connection.

use swell_capture::Tcp as Header;

use super::acks::Acks;
use super::sizes::Sizes;
use super::window::Window;
use super::{DUPLICATE, News};

/// Holes remembered per direction; more at once than any sane loss episode leaves.
const MAX_HOLES: usize = 32;
/// A jump in sequence numbers larger than this is not a gap in the capture but another numbering
/// (a mangled packet, a middlebox): tracking starts anew there and the jump counts for nothing.
const MAX_JUMP: i64 = 1 << 24;
/// A single acknowledgement that moves on by more than this, of data that does not pass the tap, is
/// not believed either.
const MAX_UNSEEN: u64 = 1 << 20;
/// Packet pairs taken into account per connection and direction.
const MAX_PAIRS: u8 = 24;
/// Smallest packet, in bytes, whose spacing tells a capacity: header times and timer granularity
/// drown in smaller ones.
const PAIR_BYTES: u32 = 1000;

/// What a segment held.
#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    /// No payload.
    Nothing,
    /// Only payload that was seen before.
    Again,
    /// Payload that fills a hole left before: it counts for the unit that was under way.
    Filled(u64),
    /// New payload bytes, and whether a write begins with them: what came before was sent when there
    /// was nothing more to send.
    New(u64, bool),
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Half {
    /// Sequence number of offset 0.
    pub(super) base: u32,
    known: bool,
    /// Offset after the last byte seen or jumped over.
    next: u64,
    /// Offset up to which the other end has acknowledged.
    acked: u64,
    /// When that was, nanoseconds.
    pub(super) acked_at: u64,
    /// The timestamp of the acknowledgement that left nothing unacknowledged.
    settled_by: Option<u32>,
    /// A packet of this direction was seen.
    seen: bool,
    syn: bool,
    pub(crate) fin: bool,
    pub(super) window_scale: Option<Option<u8>>,
    /// What this end offered.
    pub(crate) window: Window,
    /// MSS option that this end announced.
    pub(super) announced: Option<u16>,
    pub(super) sizes: Sizes,
    /// The other end's acknowledgements of this direction.
    pub(super) acks: Acks,
    holes: Vec<Hole>,
    /// Data packets, and how many were lost before and beyond the tap.
    pub(crate) packets: u64,
    pub(crate) lost_before: u64,
    pub(crate) lost_beyond: u64,
    /// Data sent again and not acknowledged since, and when the last passed: lost beyond the tap,
    /// unless the other end turns out to be gone.
    again: (u64, u64),
    /// Copies made by the capture.
    pub(crate) duplicates: u64,
    /// Jumps in sequence numbers that were not believed.
    pub(crate) jumps: u64,
    /// Bytes known only by the other side's acknowledgements.
    pub(crate) unseen: u64,
    /// Bytes known only by the sequence numbers around them: the capture does not hold them.
    pub(crate) missing: u64,
    /// Data packets since the other side last acknowledged something.
    unacked_packets: u32,
    /// A segment that should make the receiver acknowledge at once: (offset after it, time).
    probe: Option<(u64, u64)>,
    sample: Option<u64>,
    last: Option<Last>,
    /// Packets stamped so close together that the clock cannot part them, the latest such group.
    batch: Batch,
    /// The last acknowledgement of at least two segments: time, and up to where data had passed by then.
    last_ack: Option<(u64, u64)>,
    pairs: u8,
    ack_pairs: u8,
}

/// The segment that brought an acknowledgement.
pub(super) struct By {
    /// It carried nothing else.
    pub(super) pure: bool,
    /// Payload of a full segment of the direction acknowledged.
    pub(super) full: u32,
    /// Its time stamp.
    pub(super) stamp: Option<u32>,
    /// From the tap to its sender and back, nanoseconds.
    pub(super) round_trip: u64,
    /// Shortest spacing that the capture's clock tells, nanoseconds.
    pub(super) least_gap: u64,
}

/// The last data packet.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Offset after it.
    end: u64,
    at: u64,
    /// Could be the first of a pair.
    first: bool,
    /// As [`Around::passed`].
    passed: [u32; 2],
}

/// Packets of one direction, in a row, that a capture stamped in one interrupt.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// When it and the one before it began, if that one was in the same row.
    began: u64,
    before: Option<u64>,
    bytes: u64,
    /// Groups of more than one were seen: spacings mean something from group to group only.
    seen: bool,
}

/// What is known of the connection and the capture around a segment.
pub(super) struct Around {
    /// From end to end and back, nanoseconds.
    pub(super) round_trip: u64,
    /// MSS option of the other end.
    pub(super) allowed: Option<u16>,
    /// Shortest spacing that the capture's clock tells, nanoseconds.
    pub(super) least_gap: u64,
    /// Packets that have passed from its sender and to its receiver, of all connections.
    pub(super) passed: [u32; 2],
}

#[derive(Debug)]
struct Hole {
    start: u64,
    end: u64,
    since: u64,
}

impl Half {
    /// Offset of a sequence number; `None` before any is known.
    fn offset(&self, seq: u32) -> Option<i64> {
        self.known.then(|| {
            let expected = self.base.wrapping_add(self.next as u32);
            self.next as i64 + i64::from(seq.wrapping_sub(expected) as i32)
        })
    }

    /// Takes `seq` as the number of offset `offset`.
    fn anchor(&mut self, seq: u32, offset: u32) {
        self.base = seq.wrapping_sub(offset);
        self.known = true;
        self.next = u64::from(offset);
        self.acked = 0;
        self.probe = None;
        self.last = None;
        self.holes.clear();
    }

    /// Offset after the last data byte, or after the SYN; a FIN takes no place here.
    pub(super) fn data_next(&self) -> u64 {
        self.next
    }

    /// Whether `next` data lies beyond what `ack` confirms: the sender of `ack` had not got it.
    pub(super) fn data_beyond(&self, ack: u32, next: u64) -> bool {
        self.seen
            && self
                .offset(ack)
                .is_some_and(|a| a >= 0 && (a as u64) < next)
    }

    /// Bytes of data before the one with number `ack`.
    pub(super) fn bytes_before(&self, ack: u32) -> u64 {
        let offset = self.offset(ack).and_then(|o| u64::try_from(o).ok());
        offset.map_or(0, |o| o.saturating_sub(1))
    }

    /// Everything sent was acknowledged.
    pub(super) fn settled(&self) -> bool {
        self.acked >= self.next
    }

    /// Whether the sender of a segment with these timestamps knew that everything was acknowledged: what it echoes is the
    /// last that it had got (RFC 7323 section 4.3). Acknowledgements may wait in a queue beyond the tap.
    pub(super) fn knew(&self, timestamps: Option<(u32, u32)>) -> bool {
        match self.settled_by.zip(timestamps) {
            Some((by, (_, echo))) => echo.wrapping_sub(by) as i32 >= 0,
            None => true,
        }
    }

    /// Offset up to which the other end has acknowledged.
    pub(super) fn acked(&self) -> u64 {
        self.acked
    }

    pub(super) fn acked_syn(&self) -> bool {
        self.acked >= 1
    }

    /// A round trip to the receiver of this direction, if the last acknowledgement completed one.
    pub(super) fn take_sample(&mut self) -> Option<u64> {
        self.sample.take()
    }

    /// The other end acknowledged up to `ack`. Returns the bytes this proves that the tap has not
    /// seen, where no packet of this direction passes the tap.
    pub(super) fn acknowledged(&mut self, ack: u32, at: u64, by: &By, news: &mut News) -> u64 {
        if !self.known {
            // Acknowledged data begins at offset 1.
            self.anchor(ack, 1);
            self.acked = 1;
            return 0;
        }
        let Some(offset) = self.offset(ack).and_then(|o| u64::try_from(o).ok()) else {
            return 0;
        };
        if offset <= self.acked || offset > self.next + MAX_JUMP as u64 {
            return 0;
        }
        if let Some((end, sent)) = self.probe
            && offset >= end
        {
            if offset == end {
                self.sample = Some(at - sent);
            }
            self.probe = None;
        }
        self.spread(offset, at, by, news);
        if self.acked >= 1 {
            let bytes = offset - self.acked;
            self.acks.acknowledged(offset, bytes, at, by);
        }
        let (again, last) = std::mem::take(&mut self.again);
        // An acknowledgement that comes sooner than the path allows answers the first copy.
        if at.saturating_sub(last) >= by.round_trip / 4 * 3 {
            self.lost_beyond += again;
        } else {
            self.lost_beyond += again.saturating_sub(1);
        }
        let before = self.acked;
        self.acked = offset;
        self.acked_at = at;
        self.settled_by = by.stamp.filter(|_| offset >= self.next);
        self.unacked_packets = 0;
        if !self.seen && offset > self.next {
            let bytes = offset - self.next.max(before);
            self.next = offset;
            if bytes > MAX_UNSEEN {
                self.jumps += 1;
                return 0;
            }
            // A FIN takes one number; a lone byte of data would look the same.
            if bytes == 1 {
                self.fin = true;
                return 0;
            }
            self.unseen += bytes;
            return bytes;
        }
        0
    }

    /// Capacity towards the receiver by the spacing of its acknowledgements: two segments' worth or
    /// more per acknowledgement, with more data under way, so that the next is paced by arrivals.
    fn spread(&mut self, offset: u64, at: u64, by: &By, news: &mut News) {
        let bytes = offset - self.acked;
        let under_way = self.next.saturating_sub(offset) >= u64::from(PAIR_BYTES);
        let counts = bytes >= 2 * u64::from(PAIR_BYTES) && self.acked > 1;
        if counts
            && let Some((last, passed)) = self.last_ack
            // What comes later than that waited for the sender, or its window.
            && offset <= passed
            && at >= last + by.least_gap
            && self.ack_pairs < MAX_PAIRS
        {
            self.ack_pairs += 1;
            // Headers are lost on the way from acknowledged bytes to the wire: 40 bytes a segment
            // of 1460 (RFC 9293 section 3.7.1).
            let wire = bytes + bytes / 1460 * 40;
            news.down = Some(wire * 8_000_000 / (at - last));
        }
        self.last_ack = (counts && under_way).then_some((at, self.next));
    }

    /// A segment of this direction passed.
    pub(super) fn segment(
        &mut self,
        at: u64,
        ip_len: u32,
        h: &Header,
        around: &Around,
        news: &mut News,
    ) -> Seen {
        let &Around {
            round_trip,
            allowed,
            ..
        } = around;
        let syn = h.has(Header::SYN);
        self.sizes.timestamps = Some(h.options.timestamps.is_some());
        if syn && (!self.known || !self.seen) {
            self.anchor(h.seq, 0);
            self.next = 1;
            self.syn = true;
        } else if !self.known || !self.seen {
            // Begun before the trace, or known so far by acknowledgements only.
            let plausible = self
                .offset(h.seq)
                .is_some_and(|o| (0..MAX_JUMP).contains(&o));
            if !plausible {
                self.anchor(h.seq, 1);
            }
        }
        self.seen = true;
        if h.has(Header::FIN) {
            self.fin = true;
        }
        let start = h.seq.wrapping_add(u32::from(syn));
        if h.payload == 0 {
            return Seen::Nothing;
        }
        let Some(mut offset) = self.offset(start) else {
            return Seen::Nothing;
        };
        if (offset - self.next as i64).abs() > MAX_JUMP {
            self.jumps += 1;
            self.anchor(start, 1);
            offset = 1;
        }
        let end = offset + i64::from(h.payload);
        // A keep-alive repeats the last byte (RFC 9293 section 3.8.4).
        let keep_alive = h.payload == 1 && end == self.next as i64;
        if keep_alive {
            return Seen::Nothing;
        }
        if end <= self.next as i64 {
            return self.old(offset, end, at, round_trip);
        }
        let (offset, end) = (offset.max(0) as u64, end as u64);
        self.packets += 1;
        self.unacked_packets += 1;
        if offset > self.next && (self.next > 1 || self.syn) {
            if self.holes.len() == MAX_HOLES {
                self.holes.remove(0);
            }
            self.missing += offset - self.next;
            self.holes.push(Hole {
                start: self.next,
                end: offset,
                since: at,
            });
        }
        let in_order = offset == self.next;
        let write = self.sizes.segment(h, allowed) && in_order;
        self.acks.data(self.settled(), end, at);
        self.pair((in_order, end), at, ip_len, around, news);
        // A receiver acknowledges every second full-sized segment at once (RFC 9293 section
        // 3.8.6.3), so only the second one's acknowledgement times the path; a first one's may wait.
        if self.unacked_packets == 2 && in_order && ip_len >= PAIR_BYTES {
            self.probe = Some((end, at));
        }
        let bytes = end - self.next.max(offset).max(1);
        self.next = end;
        Seen::New(bytes, write)
    }

    /// Payload that lies wholly before `next`.
    fn old(&mut self, offset: i64, end: i64, at: u64, round_trip: u64) -> Seen {
        self.probe = None;
        if let Some(last) = self.last
            && last.end as i64 == end
            && at.saturating_sub(last.at) < DUPLICATE
        {
            self.duplicates += 1;
            return Seen::Nothing;
        }
        self.packets += 1;
        let filled = self
            .holes
            .iter()
            .position(|h| offset < h.end as i64 && end > h.start as i64);
        match filled {
            Some(i) => {
                let hole = &mut self.holes[i];
                // Reordered within a round trip, or sent again because it was lost on its way here.
                if at.saturating_sub(hole.since) > round_trip {
                    self.lost_before += 1;
                }
                let from = hole.start.max(offset.max(0) as u64);
                let to = hole.end.min(end as u64);
                // What lies before and after the filled part stays missing; of two parts only the
                // later is remembered.
                if to < hole.end {
                    hole.start = to;
                } else {
                    hole.end = from;
                }
                if hole.start >= hole.end {
                    self.holes.remove(i);
                }
                self.missing = self.missing.saturating_sub(to - from);
                Seen::Filled(to - from)
            }
            None => {
                // Sent again though it had arrived: no packet was lost but an acknowledgement, or
                // the sender was impatient.
                if end as u64 > self.acked {
                    self.again = (self.again.0 + 1, at);
                }
                Seen::Again
            }
        }
    }

    /// Capacity by packet pairs: two large packets in a row, with no packet of the other side
    /// between, left the sender's bottleneck back to back. Packets of other connections from that sender, or to
    /// that receiver, took some of the time: two with one of those between are no pair. Spacings below the least gap
    /// are the capture's: where packets are stamped in groups, a group's bytes passed since the group before it.
    fn pair(
        &mut self,
        (in_order, end): (bool, u64),
        at: u64,
        ip_len: u32,
        around: &Around,
        news: &mut News,
    ) {
        let &Around {
            least_gap, passed, ..
        } = around;
        let large = ip_len >= PAIR_BYTES;
        let row = match self.last {
            Some(last)
                if last.first
                    && in_order
                    && large
                    && passed == last.passed.map(|n| n.wrapping_add(1)) =>
            {
                Some(at.saturating_sub(last.at))
            }
            _ => None,
        };
        let mut sample = None;
        match row {
            Some(gap) if gap < least_gap => {
                self.batch.bytes += u64::from(ip_len);
                self.batch.seen = true;
            }
            Some(gap) => {
                let done = self.batch;
                sample = match (done.seen, done.before) {
                    (false, _) => Some((u64::from(ip_len), gap)),
                    (true, Some(before)) => Some((done.bytes, done.began - before)),
                    (true, None) => None,
                };
                self.batch = Batch {
                    began: at,
                    before: Some(done.began),
                    bytes: u64::from(ip_len),
                    seen: done.seen,
                };
            }
            None => {
                self.batch = Batch {
                    began: at,
                    before: None,
                    bytes: u64::from(ip_len),
                    seen: self.batch.seen,
                };
            }
        }
        if let Some((bytes, span)) = sample
            && span > 0
            && self.pairs < MAX_PAIRS
        {
            self.pairs += 1;
            news.up = Some(bytes * 8_000_000 / span);
        }
        self.last = Some(Last {
            end,
            at,
            first: large,
            passed,
        });
    }

    /// The other side sent something: the next data packet may have been caused by it.
    pub(super) fn interrupted(&mut self) {
        if let Some(last) = &mut self.last {
            last.first = false;
        }
    }
}

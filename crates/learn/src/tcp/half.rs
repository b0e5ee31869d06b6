//! One direction of a connection.

use swell_capture::Tcp as Header;

use super::acks::Acks;
use super::around::{Around, By};
use super::delivered::Delivered;
use super::flight::{Flight, Room};
use super::holes::{Hole, Holes};
use super::observed::{DUPLICATE, Observed};
use super::progress::Progress;
use super::releases::Releases;
use super::sizes::Sizes;
use super::timer::Timer;
use super::window::Window;
use crate::clock::TICKS;
use crate::hosts::{PACE_BIN, Peak};
use crate::pairs::{Pairs, Thinned};

/// A larger jump in sequence numbers is not a gap in the capture but another numbering (a mangled packet,
/// a middlebox). Tracking restarts there and the jumped-over bytes are not counted.
pub(crate) const MAX_JUMP: i64 = 1 << 24;
/// Where a single ACK advances by more than this over data that do not pass the tap, the capture lacks packets
/// of both directions. So these data are left out, as those of other gaps are.
const MAX_UNSEEN: u64 = 1 << 20;

/// A sender that is told nothing sends again after this at the earliest, nanoseconds: Linux `TCP_RTO_MIN`.
const LEAST_TIMEOUT: u64 = 200_000_000;

/// Content of a segment.
#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    /// No payload.
    Nothing,
    /// Only payload that was seen before.
    Again,
    /// Payload that fills an earlier hole. It belongs to the unit that was being sent.
    Filled(u64),
    /// Number of new payload bytes, and whether a write begins with them. It does if the segment before
    /// was sent when its sender had nothing more to send.
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
    /// Time of that ACK, nanoseconds.
    pub(super) acked_at: u64,
    /// The timestamp of the ACK that left nothing unacknowledged.
    settled_by: Option<u32>,
    /// Whether a packet of this direction was seen.
    seen: bool,
    syn: bool,
    pub(crate) fin: bool,
    pub(super) window_scale: Option<Option<u8>>,
    /// Receive windows that this end offered.
    pub(crate) window: Window,
    /// MSS option that this end announced.
    pub(super) announced: Option<u16>,
    pub(super) sizes: Sizes,
    /// The other end's ACKs of this direction.
    pub(super) acks: Acks,
    pub(super) flight: Flight,
    /// Since when the sender of the last new data could have sent them.
    pub(super) room: Room,
    holes: Holes,
    /// Segments with data, and how many were lost before and beyond the tap.
    pub(crate) packets: u64,
    pub(crate) lost_before: u64,
    pub(crate) lost_beyond: u64,
    again: Again,
    /// Keep-alive probes.
    pub(crate) keep_alives: u64,
    /// Copies made by the capture.
    pub(crate) duplicates: u64,
    /// Implausible jumps in sequence numbers that were ignored.
    pub(crate) jumps: u64,
    /// Bytes of data that passed, and those of them that had passed before.
    pub(crate) passed: [u64; 2],
    /// Bytes inferred only from the other side's ACKs.
    pub(crate) unseen: u64,
    /// Bytes inferred only from the surrounding sequence numbers; the capture does not hold them.
    missing: u64,
    /// Data packets since the other side last acknowledged new data.
    unacked_packets: u32,
    /// A segment that the receiver should acknowledge at once: (offset after it, time).
    probe: Option<(u64, u64)>,
    sample: Option<u64>,
    last: Option<Last>,
    /// Bytes of the headers of its last data packet.
    headers: u32,
    /// What it sends over time.
    pub(crate) sending: Peak,
    /// Pairs of its packets.
    pairs: Pairs,
    train: Option<Train>,
    progress: Progress,
    ack_pairs: Thinned,
    delivered: Delivered,
    pub(super) timer: Timer,
    pub(super) releases: Releases,
}

/// Retransmissions that have not been acknowledged since. They count as lost beyond the tap once an ACK shows
/// that the other end is still there.
#[derive(Debug, Default)]
struct Again {
    /// Number of segments, how many of them were in the last packet, and when that passed.
    segments: u64,
    last: u64,
    at: u64,
    /// The latest RTT to the receiver when the first of them passed, nanoseconds; and when what had been sent before the
    /// lost data was acknowledged, which then had just left the queue that lost them.
    waited: Option<(u64, u64)>,
    /// Offset up to which data had been sent then: those that are repaired later were lost at that time, too.
    sent: u64,
}

/// ACKs of at least two segments each, between which the receiver's line was busy.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// Time and offset of the first, nanoseconds.
    began: u64,
    offset: u64,
    /// Offset up to which data had reached the line before those of the last ACK had left it.
    waiting: u64,
}

/// The last data packet.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Offset after it.
    end: u64,
    at: u64,
}

impl Half {
    /// Offset of a sequence number; `None` before any is known.
    fn offset(&self, seq: u32) -> Option<i64> {
        self.known.then(|| {
            let reached = self.reached();
            let expected = self.base.wrapping_add(reached as u32);
            reached as i64 + i64::from(seq.wrapping_sub(expected) as i32)
        })
    }

    /// Offset after the last byte that passed, was jumped over or acknowledged.
    fn reached(&self) -> u64 {
        self.next.max(self.acked)
    }

    /// Bytes after the last that passed, but acknowledged: the capture does not hold them.
    fn lacking(&self) -> u64 {
        // A FIN takes one sequence number.
        let fin = u64::from(self.acked > self.next);
        match self.seen {
            true => self.acked.saturating_sub(self.next + fin),
            false => 0,
        }
    }

    /// Bytes that the capture does not hold, inferred from sequence numbers and ACKs.
    pub(crate) fn missing(&self) -> u64 {
        self.missing + self.lacking()
    }

    /// Whether a segment with this number may belong to the connection.
    pub(super) fn plausible(&self, seq: u32) -> bool {
        self.offset(seq)
            .is_none_or(|o| (o - self.reached() as i64).abs() <= MAX_JUMP)
    }

    /// Sequence number after the last byte that passed or was acknowledged; `None` before any is known.
    pub(crate) fn end(&self) -> Option<u32> {
        (self.known).then(|| self.base.wrapping_add(self.reached() as u32))
    }

    /// Makes `seq` the number of offset `offset`.
    fn anchor(&mut self, seq: u32, offset: u32) {
        self.base = seq.wrapping_sub(offset);
        self.known = true;
        self.next = u64::from(offset);
        self.acked = 0;
        self.probe = None;
        self.last = None;
        self.timer = Timer::default();
        self.flight = Flight::default();
        self.progress.clear();
        self.delivered = Delivered::default();
        self.acks.repaired(0);
        self.again = Again::default();
        self.pairs.interrupted();
        self.holes.clear();
    }

    /// Offset after the last data byte, or after the SYN; a FIN does not count.
    pub(super) fn data_next(&self) -> u64 {
        self.next
    }

    /// Whether data up to `next` extend beyond `ack`: the sender of `ack` had not received them.
    pub(super) fn data_beyond(&self, ack: u32, next: u64) -> bool {
        self.seen
            && self
                .offset(ack)
                .is_some_and(|a| a >= 0 && (a as u64) < next)
    }

    /// Bytes of data before the byte with number `ack`.
    pub(super) fn bytes_before(&self, ack: u32) -> u64 {
        let offset = self.offset(ack).and_then(|o| u64::try_from(o).ok());
        offset.map_or(0, |o| o.saturating_sub(1))
    }

    /// Whether all data sent were acknowledged.
    pub(super) fn settled(&self) -> bool {
        self.acked >= self.next
    }

    /// Whether the sender of a segment with these timestamps knew that everything was acknowledged. It
    /// echoes the latest timestamp that it has received (RFC 7323 section 4.3). ACKs may wait in a queue
    /// beyond the tap.
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

    /// Offset after the last byte that the other end has told of, by selective ACKs too.
    pub(super) fn told(&self) -> u64 {
        self.acked.max(self.delivered.reached())
    }

    /// When the last data packet passed.
    pub(crate) fn last_at(&self) -> Option<u64> {
        self.last.map(|last| last.at)
    }

    pub(super) fn acked_syn(&self) -> bool {
        self.acked >= 1
    }

    /// An RTT sample to the receiver of this direction, if the last ACK completed one.
    pub(super) fn take_sample(&mut self) -> Option<u64> {
        self.sample.take()
    }

    /// Processes an ACK up to `ack` from the other end. Returns the newly acknowledged bytes if no packet
    /// of this direction passes the tap.
    pub(super) fn acknowledged(
        &mut self,
        ack: u32,
        at: u64,
        by: &By,
        observed: &mut Observed,
    ) -> u64 {
        if !self.known {
            // Acknowledged data begin at offset 1.
            self.anchor(ack, 1);
            self.acked = 1;
            return 0;
        }
        let Some(offset) = self.offset(ack).and_then(|o| u64::try_from(o).ok()) else {
            return 0;
        };
        let most = self.reached() + MAX_JUMP as u64;
        if offset > most {
            return 0;
        }
        // Until all losses are repaired, an ACK covers data that arrived long before.
        let fresh = self.acked >= self.acks.recover();
        if offset >= self.acked {
            let bytes = self.arrived(offset, by, fresh, most);
            // Those before the first ACK may have arrived at any time.
            observed.delivered = if self.acked >= 1 { bytes } else { 0 };
        }
        if offset <= self.acked {
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
        self.spread(offset, at, fresh, by, observed);
        self.timer.acked(offset, self.next, at, by.full);
        if self.acked >= 1 {
            let bytes = offset - self.acked;
            self.acks.acknowledged(offset, bytes, at, by);
        }
        let again = std::mem::take(&mut self.again.segments);
        self.lost_beyond += again;
        // An ACK that comes sooner than the path allows answers the first copy.
        if at.saturating_sub(self.again.at) < by.round_trip / 4 * 3 {
            self.lost_beyond -= again.min(self.again.last);
        }
        if again > 0 {
            observed.waited[1] = self.again.waited;
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
                self.missing += bytes;
                return 0;
            }
            // A FIN takes one sequence number; a single byte of data would look the same.
            if bytes == 1 {
                self.fin = true;
                return 0;
            }
            self.unseen += bytes;
            return bytes;
        }
        0
    }

    /// Bytes that have arrived since the ACK before this one, up to `offset`. Blocks beyond `most` are of other numbers.
    fn arrived(&mut self, offset: u64, by: &By, fresh: bool, most: u64) -> u64 {
        let mut blocks = [[0; 2]; 4];
        for (block, edges) in blocks.iter_mut().zip(by.sack) {
            let told = edges.and_then(|(start, end)| {
                let [start, end] = [start, end].map(|edge| self.offset(edge));
                let end = u64::try_from(end?).ok().filter(|end| *end <= most)?;
                Some([u64::try_from(start?).ok()?, end])
            });
            *block = told.unwrap_or_default();
        }
        self.delivered.acked(offset, blocks.into_iter(), fresh)
    }

    /// Capacity towards the receiver from the spacing of its ACKs. It uses ACKs of at least two segments,
    /// with more data in flight, so that the next ACK is paced by arrivals.
    ///
    /// The spacing is the line's if the line was never idle between: the data of the second ACK were waiting when those
    /// of the first left. Without a wait, their ACK would have come one RTT after they passed, so they must have passed
    /// an RTT before the first ACK. Otherwise the sender may have spaced them: by pacing, or before its window opened.
    fn spread(&mut self, offset: u64, at: u64, fresh: bool, by: &By, observed: &mut Observed) {
        let bytes = offset - self.acked;
        let least = u64::from(by.least);
        let under_way = self.next.saturating_sub(offset) >= least;
        let counts = fresh && bytes >= 2 * least && self.acked > 1;
        let busy = self.train.filter(|t| counts && offset <= t.waiting);
        // A clock with coarse ticks needs a longer train.
        let long = busy.filter(|t| at >= t.began + by.least_gap);
        if let Some(train) = long
            && self.ack_pairs.take()
        {
            // Acknowledged bytes, and the headers of their segments.
            let passed = offset - train.offset;
            let segments = passed.div_ceil(u64::from(by.full.max(1)));
            let wire = passed + segments * u64::from(self.headers);
            observed.down = Some(wire * 8_000_000 / (at - train.began));
        }
        let (began, offset) = match busy {
            Some(train) if long.is_none() => (train.began, train.offset),
            _ => (at, offset),
        };
        // Times are exact to a tick each.
        let ticks = by.least_gap / TICKS * 2;
        self.train = (counts && under_way).then(|| Train {
            began,
            offset,
            waiting: (self.progress).reached(at.saturating_sub(by.round_trip + ticks)),
        });
    }

    /// Processes a segment of this direction.
    pub(super) fn segment(
        &mut self,
        at: u64,
        ip_len: u32,
        h: &Header,
        around: &Around,
        observed: &mut Observed,
    ) -> Seen {
        let allowed = around.allowed;
        let syn = h.has(Header::SYN);
        self.sizes.timestamps = Some(h.options.timestamps.is_some());
        if syn && (!self.known || !self.seen) {
            self.anchor(h.seq, 0);
            self.next = 1;
            self.syn = true;
        } else if !self.known || !self.seen {
            // The connection began before the trace, or only ACKs of this direction have been seen so far.
            let plausible = self
                .offset(h.seq)
                .is_some_and(|o| (0..MAX_JUMP).contains(&o));
            if !plausible {
                self.anchor(h.seq, 1);
            }
        }
        self.seen = true;
        let ended = self.fin;
        self.fin |= h.has(Header::FIN);
        let start = h.seq.wrapping_add(u32::from(syn));
        let Some(mut offset) = self.offset(start) else {
            return Seen::Nothing;
        };
        // A keep-alive repeats the last byte, or stands where it was (RFC 9293 section 3.8.4).
        let before_last = offset + 1 == self.next as i64 && self.next > 1;
        let only_ack = h.flags & (Header::SYN | Header::FIN | Header::RST) == 0;
        if h.payload <= 1 && before_last && only_ack && self.settled() {
            self.keep_alives += 1;
            return Seen::Nothing;
        }
        let far = (offset - self.reached() as i64).abs() > MAX_JUMP;
        if h.payload == 0 {
            // The last data before a FIN may be missing. A second FIN may come after the number of the first.
            let next = self.next as i64 + i64::from(ended);
            if h.has(Header::FIN) && !far && offset > next {
                self.gap(offset as u64, at, around);
            }
            return Seen::Nothing;
        }
        if far {
            self.jumps += 1;
            self.anchor(start, 1);
            offset = 1;
        }
        let end = offset + i64::from(h.payload);
        // The last byte again: a probe that something is still to be acknowledged.
        if h.payload == 1 && end == self.next as i64 {
            return Seen::Nothing;
        }
        if end <= self.next as i64 {
            return self.old(offset, end, at, around, observed);
        }
        let (offset, end) = (offset.max(0) as u64, end as u64);
        let segments = self.sizes.segments(u64::from(h.payload), allowed);
        self.packets += segments;
        self.unacked_packets += 1;
        self.timer.sent(end, at, !self.settled());
        // A retransmission may begin before data that have passed, and go on after them.
        let filled = self.fill([offset, self.next], at, around, observed);
        self.passed[1] += self.next.saturating_sub(offset.max(1) + filled);
        let in_order = offset == self.next;
        if offset > self.next && self.gap(offset, at, around) {
            self.flight.lost(end);
        }
        // The sender reduced its window although nothing was lost (RFC 3168 section 6.1.2).
        if h.has(Header::CWR) && !syn {
            self.flight.lost(end);
        }
        let full = self.sizes.full(allowed);
        self.room = (self.flight).sent(at, [offset, end], full, around.back);
        self.progress.push(end, at, around.forth);
        self.sending.add(u64::from(ip_len), at, PACE_BIN);
        let write = self.sizes.segment(h, allowed) && in_order;
        self.acks.data(self.settled(), end, at, segments);
        self.headers = ip_len.saturating_sub(h.payload);
        let large = self.sizes.large(allowed);
        // The ACK that came just before may have released this packet, also if it does not pass the tap, or if nobody knows
        // when it reached the sender.
        let released = match (around.timed, around.echo) {
            (true, _) => self.room.acked,
            (false, Some(echo)) => self.releases.sent(at, echo),
            (false, None) => true,
        };
        if released || self.acked == 0 {
            self.pairs.interrupted();
        }
        observed.up = (self.pairs)
            .packet(
                in_order,
                at,
                [ip_len, large],
                around.least_gap,
                around.passed,
            )
            .or(observed.up);
        self.last = Some(Last { end, at });
        // A receiver acknowledges every second full-sized segment at once (RFC 9293 section 3.8.6.3). So
        // only the ACK of the second one times the path; the ACK of the first may be delayed.
        if self.unacked_packets == 2 && in_order && ip_len >= large {
            self.probe = Some((end, at));
        }
        let bytes = end - self.next.max(offset).max(1) + filled;
        self.next = end;
        Seen::New(bytes, write)
    }

    /// Handles payload that lies entirely before `next`.
    fn old(
        &mut self,
        offset: i64,
        end: i64,
        at: u64,
        around: &Around,
        observed: &mut Observed,
    ) -> Seen {
        self.probe = None;
        self.timer.stop();
        if let Some(last) = self.last
            && last.end as i64 == end
            && at.saturating_sub(last.at) < DUPLICATE
        {
            self.duplicates += 1;
            self.passed[1] += (end - offset) as u64;
            return Seen::Nothing;
        }
        self.packets += (self.sizes).segments((end - offset) as u64, around.allowed);
        self.flight.lost(self.next);
        self.acks.repaired(self.next);
        let [start, end] = [offset, end].map(|o| o.max(0) as u64);
        let filled = self.fill([start, end], at, around, observed);
        self.passed[1] += end.saturating_sub(start.max(1) + filled);
        if filled > 0 {
            return Seen::Filled(filled);
        }
        // Retransmitted although it had passed the tap. If it was already acknowledged, the ACK was lost or the
        // sender timed out too early, so no data packet was lost.
        if end > self.acked {
            let last = self
                .sizes
                .segments(end - self.acked.max(start), around.allowed);
            self.again.segments += last;
            self.again.last = last;
            self.again.at = at;
            if start >= self.again.sent {
                self.again.sent = self.next;
                self.again.waited = around.waited[1].map(|rtt| (rtt, self.acked_at));
            }
        }
        Seen::Again
    }

    /// Notes that the data up to `offset` have not passed. Returns whether they belong to the trace.
    fn gap(&mut self, offset: u64, at: u64, around: &Around) -> bool {
        let began = self.next > 1 || self.syn;
        if began {
            self.missing += offset - self.next;
            let hole = Hole {
                start: self.next,
                end: offset,
                since: at,
                waited: around.waited[0],
            };
            self.holes.push(hole, self.acked);
        }
        self.next = offset;
        began
    }

    /// Fills holes with data from offset `start` to `end`. Returns the bytes that were missing.
    fn fill(&mut self, range: [u64; 2], at: u64, around: &Around, observed: &mut Observed) -> u64 {
        let mut bytes = 0;
        let acked = self.acked;
        // What the receiver has told of. It tells at once that it lacks data, or its sender waits for a time-out.
        let told = self.delivered.reached();
        let tells = around.sack || self.delivered.selective();
        self.holes.fill(range, |missing, hole| {
            bytes += missing;
            // Within an RTT it is reordering; later it is a retransmission of segments lost before the tap, unless the
            // receiver had them already, or said nothing of what came after them.
            let took = at.saturating_sub(hole.since);
            let silent = tells && told <= hole.start && acked > 0 && took < LEAST_TIMEOUT;
            if took > around.round_trip && acked < hole.end && !silent {
                observed.waited[0] = hole.waited.map(|rtt| (rtt, hole.since));
                self.timer.stop();
                self.acks.repaired(self.next);
                self.lost_before += self.sizes.segments(missing, around.allowed);
            }
        });
        self.missing = self.missing.saturating_sub(bytes);
        bytes
    }

    /// Notes a packet of the other side: it may have triggered the next data packet.
    pub(super) fn interrupted(&mut self) {
        self.pairs.interrupted();
    }
}

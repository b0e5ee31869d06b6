//! What is in flight: one record per segment sent and not yet cumulatively acknowledged.
//!
//! Records are contiguous and in sequence order. Each is in one of four places: flying, selectively
//! acknowledged, given up for lost and waiting to be sent again, or sent again and not acknowledged since. Byte counts
//! of the last three are kept, so RFC 6675's pipe is a subtraction, never a scan.

mod delivered;

use std::collections::VecDeque;

use swell_base::{Time, fetch};

pub(crate) use delivered::Delivered;

/// Where a segment is thought to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Flying,
    Sacked,
    Lost,
    /// In flight, and the loss counts until it is acknowledged (Linux `TCPCB_LOST` with `TCPCB_SACKED_RETRANS`).
    Repaired,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) seq: u64,
    /// The latest transmission.
    pub(crate) sent_at: Time,
    /// Payload bytes.
    pub(crate) len: u32,
    pub(crate) place: Place,
    /// Sent more than once.
    pub(crate) resent: bool,
    pub(crate) fin: bool,
}

impl Record {
    pub(crate) fn end(&self) -> u64 {
        self.seq + self.size()
    }
    /// Sequence space.
    fn size(&self) -> u64 {
        u64::from(self.len) + u64::from(self.fin)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    /// While something is lost or selectively acknowledged, or sent again and not acknowledged yet.
    losses: Option<Box<Losses>>,
}

/// What only losses need, kept apart to keep connections small.
#[derive(Clone, Debug, Default)]
struct Losses {
    /// Bytes selectively acknowledged.
    sacked: u64,
    /// Bytes lost and not sent again.
    lost: u64,
    /// Bytes lost, sent again and not acknowledged.
    repaired: u64,
    /// Records selectively acknowledged.
    sacked_count: u32,
    /// End of the highest selectively acknowledged record.
    high_sacked: u64,
    /// Records that start below have been judged by a loss rule.
    judged: u64,
    /// No record below is lost.
    lost_from: u64,
    /// Blocks of the last acknowledgement: receivers repeat them, and what they cover is marked.
    seen: [(u64, u64); 3],
    /// Retransmissions in the order they were sent, for the loss rule by time.
    resent: VecDeque<(u64, Time)>,
}

impl Losses {
    /// A record in flight is lost.
    fn lose(&mut self, r: &mut Record) {
        if r.place == Place::Repaired {
            self.repaired -= r.size();
        }
        r.place = Place::Lost;
        self.lost += r.size();
        self.lost_from = self.lost_from.min(r.seq);
    }

    /// Nothing more is to be known of them. What was judged and is in flight was sent again: that rules it
    /// out for the rules by which it was judged.
    fn are_over(&self) -> bool {
        self.sacked == 0 && self.lost == 0 && self.repaired == 0 && self.resent.is_empty()
    }
}

/// Above this many records the memory is given back when nothing is in flight.
const KEEP: usize = 1;
/// Room for as many is made where there are more.
const SHORT: usize = 8;

impl Scoreboard {
    /// `more` will follow now, as far as is known.
    #[inline]
    pub(crate) fn push(&mut self, record: Record, more: bool) {
        if self.records.len() == self.records.capacity() {
            self.enlarge(more);
        }
        self.records.push_back(record);
    }

    #[inline(never)]
    fn enlarge(&mut self, more: bool) {
        match self.records.capacity() {
            0 => self.records = VecDeque::with_capacity(if more { SHORT } else { KEEP }),
            n => self.records.reserve_exact(n.max(SHORT - KEEP)),
        }
    }

    /// [Asks](fetch()) for the oldest segments, which are likely to be acknowledged next, and for where new ones are added.
    #[inline]
    pub(crate) fn fetch(&self) {
        for i in (0..self.records.len().min(16)).step_by(2) {
            fetch(&self.records[i]);
        }
        if let Some(last) = self.records.back() {
            fetch(last);
        }
    }

    /// Bytes given up for lost and not sent again.
    #[inline]
    pub(crate) fn lost(&self) -> u64 {
        self.losses.as_ref().map_or(0, |l| l.lost)
    }

    /// Bytes given up for lost and not acknowledged, sent again or not.
    #[inline]
    pub(crate) fn missing(&self) -> u64 {
        self.losses.as_ref().map_or(0, |l| l.lost + l.repaired)
    }

    /// Bytes sent again, and not acknowledged or lost since.
    #[inline]
    pub(crate) fn repaired(&self) -> u64 {
        self.losses.as_ref().map_or(0, |l| l.repaired)
    }

    /// The same in segments.
    pub(crate) fn repaired_count(&self) -> u32 {
        let repaired = self.records.iter().filter(|r| r.place == Place::Repaired);
        repaired.count() as u32 // as many as are in flight
    }

    /// Whether something in flight was sent again (Linux `tcp_any_retrans_done`).
    pub(crate) fn any_resent(&self) -> bool {
        self.repaired() > 0 || self.records.front().is_some_and(|r| r.resent)
    }

    /// Bytes selectively acknowledged.
    #[inline]
    pub(crate) fn sacked(&self) -> u64 {
        self.losses.as_ref().map_or(0, |l| l.sacked)
    }

    /// Segments selectively acknowledged.
    #[inline]
    pub(crate) fn sacked_count(&self) -> u32 {
        self.losses.as_ref().map_or(0, |l| l.sacked_count)
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The account of a new acknowledgement, with the time stamp that it echoes.
    pub(crate) fn account(&self, echo: Option<u32>) -> Delivered {
        Delivered::new(echo, self.losses.as_ref().map_or(0, |l| l.high_sacked))
    }

    /// Everything below `ack` arrived; `d` collects what was new.
    pub(crate) fn ack(&mut self, ack: u64, d: &mut Delivered) {
        let Scoreboard { records, losses } = self;
        let mut losses = losses.as_deref_mut();
        while let Some(r) = records.front_mut() {
            let whole = r.end() <= ack;
            // Of a segment that is acknowledged in part (real receivers do this only when they trim) it is
            // below the record's size, so at most its payload.
            let bytes = r.end().min(ack).saturating_sub(r.seq);
            match (r.place, &mut losses) {
                (Place::Sacked, Some(l)) => {
                    l.sacked -= bytes;
                    l.sacked_count -= u32::from(whole);
                    d.any_resent |= r.resent;
                }
                (Place::Lost, Some(l)) => {
                    l.lost -= bytes;
                    d.take(r, bytes, whole);
                }
                (Place::Repaired, Some(l)) => {
                    l.repaired -= bytes;
                    d.take(r, bytes, whole);
                }
                _ => d.take(r, bytes, whole),
            }
            if !whole {
                r.seq += bytes;
                r.len -= u32::try_from(bytes).unwrap_or(r.len).min(r.len);
                break;
            }
            records.pop_front();
        }
        if let Some(l) = losses {
            while l.resent.front().is_some_and(|&(seq, _)| seq < ack) {
                l.resent.pop_front();
            }
            if records.is_empty() || l.are_over() {
                self.losses = None;
            }
        }
        if self.records.is_empty() && self.records.capacity() > KEEP {
            self.records = VecDeque::new();
        }
    }

    /// Whether nothing is known to be lost or to have arrived.
    #[inline]
    pub(crate) fn all_fly(&self) -> bool {
        self.losses.is_none()
    }

    /// As [`ack`](Self::ack) where [all fly](Self::all_fly): when the oldest of the segments that were delivered
    /// was sent, if each was sent once.
    #[inline]
    pub(crate) fn take_flying(&mut self, ack: u64) -> Option<Time> {
        let (mut sent, mut resent) = (None, false);
        while let Some(r) = self.records.front_mut() {
            if r.end() > ack {
                if r.seq < ack {
                    // Part of a segment, as above.
                    let cut = ack - r.seq;
                    r.seq = ack;
                    r.len -= u32::try_from(cut).unwrap_or(r.len).min(r.len);
                }
                break;
            }
            sent = sent.or(Some(r.sent_at));
            resent |= r.resent;
            self.records.pop_front();
        }
        if self.records.is_empty() && self.records.capacity() > KEEP {
            self.records = VecDeque::new();
        }
        sent.filter(|_| !resent)
    }

    /// Everything below `ack` arrived, nothing is ever judged: how many segments that were, and the
    /// last of them.
    #[inline]
    pub(crate) fn take_acked(&mut self, ack: u64) -> (u32, Option<Record>) {
        let (mut n, mut last) = (0, None);
        while let Some(r) = self.records.front_mut() {
            if r.end() > ack {
                // Part of a segment, as above.
                let cut = ack.saturating_sub(r.seq);
                r.seq += cut;
                r.len -= u32::try_from(cut).unwrap_or(r.len).min(r.len);
                break;
            }
            n += 1;
            last = self.records.pop_front();
        }
        if self.records.is_empty() && self.records.capacity() > KEEP {
            self.records = VecDeque::new();
        }
        (n, last)
    }

    /// The segment at `index` from the oldest.
    pub(crate) fn at(&self, index: u32) -> Option<&Record> {
        self.records.get(index as usize)
    }

    /// The newest segment passes for one sent before.
    pub(crate) fn mark_newest_resent(&mut self) {
        if let Some(r) = self.records.back_mut() {
            r.resent = true;
        }
    }

    /// Sends the segment at `index` from the oldest again.
    pub(crate) fn resend_at(&mut self, now: Time, index: u32) -> Option<Record> {
        let r = self.records.get_mut(index as usize)?;
        r.resent = true;
        r.sent_at = now;
        Some(*r)
    }

    /// These blocks arrived; `d` collects what was new.
    pub(crate) fn sack(&mut self, blocks: &[(u64, u64)], d: &mut Delivered) {
        let Scoreboard { records, losses } = self;
        let losses = &mut **losses.get_or_insert_default();
        for &(start, end) in blocks {
            let mut from = start;
            for (s, e) in losses.seen {
                if s <= from && from < e {
                    from = e;
                }
            }
            if from < end {
                sack_block(records, losses, (from, end), d);
            }
        }
        losses.seen = [(0, 0); 3];
        for (kept, &block) in losses.seen.iter_mut().zip(blocks) {
            *kept = block;
        }
    }

    /// How many segments of `start..end`, which arrived twice, are in flight or selectively acknowledged and were sent
    /// more than once.
    pub(crate) fn resent_within(&self, (start, end): (u64, u64)) -> u32 {
        let first = self.records.partition_point(|r| r.seq < start);
        let within = self.records.range(first..).take_while(|r| r.end() <= end);
        within.filter(|r| r.resent).count() as u32 // as many as are in flight
    }

    /// Nothing was lost after all: what was given up is in flight.
    pub(crate) fn find_all(&mut self) {
        let Scoreboard { records, losses } = self;
        let Some(losses) = losses else { return };
        for r in records.iter_mut() {
            if matches!(r.place, Place::Lost | Place::Repaired) {
                r.place = Place::Flying;
            }
        }
        losses.lost = 0;
        losses.repaired = 0;
        losses.judged = 0;
    }

    /// RFC 6675 section 4, `IsLost`: a flying segment is lost once `threshold` segments above it
    /// are selectively acknowledged. Segments are counted as in Linux, not bytes.
    pub(crate) fn judge_by_count(&mut self, threshold: u32) {
        let threshold = threshold.max(1);
        let Scoreboard { records, losses } = self;
        let Some(losses) = losses else { return };
        if losses.sacked_count < threshold {
            return;
        }
        let top = records.partition_point(|r| r.seq < losses.high_sacked);
        let mut above = 0;
        let mut limit = 0;
        for r in records.range(..top).rev() {
            if r.place == Place::Sacked {
                above += 1;
                if above == threshold {
                    limit = r.seq;
                    break;
                }
            }
            if r.seq < losses.judged {
                return; // nothing above what was judged has `threshold` segments over it
            }
        }
        // Flying segments that start between `judged` and `limit` are lost.
        if limit <= losses.judged {
            return;
        }
        let first = records.partition_point(|r| r.seq < losses.judged);
        let new = records.range_mut(first..).take_while(|r| r.seq < limit);
        for r in new.filter(|r| r.place == Place::Flying && !r.resent) {
            losses.lose(r);
        }
        losses.judged = limit;
    }

    /// RFC 8985 section 6.2, step 5: a segment sent before the latest delivered one, (`sent`,
    /// `end`), is lost when `due` says that its time is over. Returns the earliest send time
    /// that is not due yet, where there is one, and whether something was lost that was sent again.
    pub(crate) fn judge_by_time(
        &mut self,
        sent: Time,
        end: u64,
        due: impl Fn(Time) -> bool,
    ) -> (Option<Time>, bool) {
        let Scoreboard { records, losses } = self;
        let losses = &mut **losses.get_or_insert_default();
        let mut waiting: Option<Time> = None;
        let mut again = false;
        // Segments sent once, in sequence order and so in the order they were sent.
        let first = records.partition_point(|r| r.seq < losses.judged);
        for r in records.range_mut(first..) {
            if !r.resent {
                if (r.sent_at, r.end()) >= (sent, end) {
                    break;
                }
                if r.place == Place::Flying {
                    if !due(r.sent_at) {
                        waiting = Some(r.sent_at);
                        break;
                    }
                    losses.lose(r);
                }
            }
            losses.judged = r.end();
        }
        // Segments sent again, in the order they were sent again.
        while let Some(&(seq, at)) = losses.resent.front() {
            let i = records.partition_point(|r| r.seq < seq);
            if let Some(r) = records.get_mut(i)
                && (r.seq, r.sent_at) == (seq, at)
                && matches!(r.place, Place::Flying | Place::Repaired)
            {
                // Strictly earlier: of what leaves at one instant nothing is known to be overtaken.
                if at >= sent {
                    break;
                }
                if !due(at) {
                    waiting = Some(waiting.map_or(at, |w| w.min(at)));
                    break;
                }
                again |= r.place == Place::Repaired;
                losses.lose(r);
            }
            losses.resent.pop_front();
        }
        (waiting, again)
    }

    /// The timer went off: what is not selectively acknowledged is lost, but what `recent` says was sent too late to be
    /// missed yet; the oldest segment in any case.
    pub(crate) fn lose_all(&mut self, recent: impl Fn(Time) -> bool) {
        let Scoreboard { records, losses } = self;
        let losses = losses.get_or_insert_default();
        let mut kept = None;
        for (i, r) in records.iter_mut().enumerate() {
            if !matches!(r.place, Place::Flying | Place::Repaired) {
                continue;
            }
            if i > 0 && recent(r.sent_at) {
                kept = kept.or(Some(r.seq));
                continue;
            }
            losses.lose(r);
        }
        losses.lost_from = 0;
        // What was kept is still to be judged.
        losses.judged = kept
            .or(records.back().map(Record::end))
            .unwrap_or(losses.judged);
    }

    /// The next segment to send again: the lowest lost one, if its size fits `room`.
    pub(crate) fn resend(&mut self, now: Time, room: f64, by_time: bool) -> Option<Record> {
        let Scoreboard { records, losses } = self;
        let losses = losses.as_deref_mut()?;
        let first = records.partition_point(|r| r.seq < losses.lost_from);
        let mut later = records.range_mut(first..);
        let r = later.find(|r| r.place == Place::Lost)?;
        losses.lost_from = r.seq;
        if r.size() as f64 > room {
            return None;
        }
        r.place = Place::Repaired;
        r.resent = true;
        r.sent_at = now;
        losses.lost -= r.size();
        losses.repaired += r.size();
        losses.lost_from = r.end();
        if by_time {
            losses.resent.push_back((r.seq, now));
        }
        Some(*r)
    }

    /// Sends the oldest or the newest segment again without judging it lost.
    pub(crate) fn resend_as_is(
        &mut self,
        now: Time,
        newest: bool,
        by_time: bool,
    ) -> Option<Record> {
        let Scoreboard { records, losses } = self;
        let r = if newest {
            records.back_mut()
        } else {
            records.front_mut()
        }?;
        if r.place == Place::Lost
            && let Some(losses) = losses
        {
            r.place = Place::Repaired;
            losses.lost -= r.size();
            losses.repaired += r.size();
        }
        r.resent = true;
        r.sent_at = now;
        if by_time {
            let losses = losses.get_or_insert_default();
            losses.resent.push_back((r.seq, now));
        }
        Some(*r)
    }
}

fn sack_block(
    records: &mut VecDeque<Record>,
    losses: &mut Losses,
    (start, end): (u64, u64),
    d: &mut Delivered,
) {
    let first = records.partition_point(|r| r.seq < start);
    for r in records.range_mut(first..) {
        // Only whole segments count (RFC 6675 works on octets; a receiver that trims inside a
        // segment is not modelled).
        if r.end() > end {
            break;
        }
        match r.place {
            Place::Sacked => continue,
            Place::Flying => {}
            Place::Lost => losses.lost -= r.size(),
            Place::Repaired => losses.repaired -= r.size(),
        }
        r.place = Place::Sacked;
        losses.sacked += r.size();
        losses.sacked_count += 1;
        d.sacked = true;
        if !r.resent {
            d.oldest_sacked = d.oldest_sacked.or(Some(r.sent_at));
        }
        d.note(r, false);
        losses.high_sacked = losses.high_sacked.max(r.end());
    }
}

#[cfg(test)]
mod tests;

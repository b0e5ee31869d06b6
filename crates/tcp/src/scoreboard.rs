//! Segments in flight: one record per segment sent and not yet cumulatively acknowledged.
//!
//! Records are contiguous and in sequence order. Each is in one of four states: in flight; selectively acknowledged;
//! considered lost and not yet retransmitted; or retransmitted and not acknowledged since. Byte counts of the last
//! three are maintained, so RFC 6675's pipe is a subtraction and never a scan.

mod delivered;
mod record;

use std::collections::VecDeque;

use swell_base::{Time, fetch};

pub(crate) use delivered::Delivered;
pub(crate) use record::{Record, SegmentState};

#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    /// Present while a segment is lost, selectively acknowledged, or retransmitted and not yet acknowledged.
    losses: Option<Box<Losses>>,
}

/// State needed only during loss recovery, kept apart so that connections stay small.
#[derive(Clone, Debug, Default)]
struct Losses {
    /// Bytes selectively acknowledged.
    sacked: u64,
    /// Bytes lost and not retransmitted.
    lost: u64,
    /// Bytes lost, retransmitted and not yet acknowledged.
    repaired: u64,
    /// Records selectively acknowledged.
    sacked_count: u32,
    /// End of the highest selectively acknowledged record.
    high_sacked: u64,
    /// Records that start below this number were already examined by a loss rule.
    judged: u64,
    /// No record below this number is lost.
    lost_from: u64,
    /// SACK blocks of the last acknowledgement. Receivers repeat them, and the data in them is already marked.
    seen: [(u64, u64); 3],
    /// Retransmissions in the order in which they were sent, for time-based loss detection.
    resent: VecDeque<(u64, Time)>,
}

impl Losses {
    /// Marks a record in flight as lost.
    fn lose(&mut self, r: &mut Record) {
        if r.place == SegmentState::Repaired {
            self.repaired -= r.size();
        }
        r.place = SegmentState::Lost;
        self.lost += r.size();
        self.lost_from = self.lost_from.min(r.seq);
    }

    /// Whether this state is no longer needed. Records below `judged` that are still in flight were retransmitted, so
    /// the loss rules that use `judged` skip them anyway.
    fn are_over(&self) -> bool {
        self.sacked == 0 && self.lost == 0 && self.repaired == 0 && self.resent.is_empty()
    }
}

/// A buffer with more capacity than this is freed when nothing is in flight.
const KEEP: usize = 1;
/// Initial capacity once there is more than one record.
const SHORT: usize = 8;

impl Scoreboard {
    /// Adds a record. `more` says whether further records are expected to follow at once.
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

    /// [Prefetches](fetch()) the oldest records, which are likely to be acknowledged next, and the place where new
    /// ones are added.
    #[inline]
    pub(crate) fn fetch(&self) {
        for i in (0..self.records.len().min(16)).step_by(2) {
            fetch(&self.records[i]);
        }
        if let Some(last) = self.records.back() {
            fetch(last);
        }
    }

    /// Bytes considered lost and not retransmitted.
    #[inline]
    pub(crate) fn lost(&self) -> u64 {
        self.losses.as_ref().map_or(0, |l| l.lost)
    }

    /// Bytes considered lost and not acknowledged, retransmitted or not.
    #[inline]
    pub(crate) fn missing(&self) -> u64 {
        self.losses.as_ref().map_or(0, |l| l.lost + l.repaired)
    }

    /// Bytes retransmitted after a loss and neither acknowledged nor lost again since.
    #[inline]
    pub(crate) fn repaired(&self) -> u64 {
        self.losses.as_ref().map_or(0, |l| l.repaired)
    }

    /// Segments retransmitted after a loss and neither acknowledged nor lost again since.
    pub(crate) fn repaired_count(&self) -> u32 {
        let repaired = self
            .records
            .iter()
            .filter(|r| r.place == SegmentState::Repaired);
        repaired.count() as u32 // at most the number of segments in flight
    }

    /// Whether a segment in flight was retransmitted (Linux `tcp_any_retrans_done`).
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

    /// A new record of what an acknowledgement delivers; `echo` is its echoed timestamp.
    pub(crate) fn account(&self, echo: Option<u32>) -> Delivered {
        Delivered::new(echo, self.losses.as_ref().map_or(0, |l| l.high_sacked))
    }

    /// Processes a cumulative acknowledgement of all data below `ack`; `d` collects what is newly delivered.
    pub(crate) fn ack(&mut self, ack: u64, d: &mut Delivered) {
        let Scoreboard { records, losses } = self;
        let mut losses = losses.as_deref_mut();
        while let Some(r) = records.front_mut() {
            let whole = r.end() <= ack;
            // Only receivers that trim acknowledge a segment in part. The part is smaller than the record, so it is
            // at most the payload.
            let bytes = r.end().min(ack).saturating_sub(r.seq);
            match (r.place, &mut losses) {
                (SegmentState::Sacked, Some(l)) => {
                    l.sacked -= bytes;
                    l.sacked_count -= u32::from(whole);
                    d.any_resent |= r.resent;
                }
                (SegmentState::Lost, Some(l)) => {
                    l.lost -= bytes;
                    d.take(r, bytes, whole);
                }
                (SegmentState::Repaired, Some(l)) => {
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

    /// Whether all segments are in flight: none is known to be lost or to have arrived.
    #[inline]
    pub(crate) fn all_fly(&self) -> bool {
        self.losses.is_none()
    }

    /// As [`ack`](Self::ack) while [`all_fly`](Self::all_fly) holds. Returns the send times of the oldest and the
    /// newest delivered segment if all delivered segments were sent once.
    #[inline]
    pub(crate) fn take_flying(&mut self, ack: u64) -> Option<(Time, Time)> {
        let (mut sent, mut resent) = (None, false);
        while let Some(r) = self.records.front_mut() {
            if r.end() > ack {
                if r.seq < ack {
                    // Partially acknowledged segment, as in `ack`.
                    let cut = ack - r.seq;
                    r.seq = ack;
                    r.len -= u32::try_from(cut).unwrap_or(r.len).min(r.len);
                }
                break;
            }
            sent = Some((sent.map_or(r.sent_at, |(oldest, _)| oldest), r.sent_at));
            resent |= r.resent;
            self.records.pop_front();
        }
        if self.records.is_empty() && self.records.capacity() > KEEP {
            self.records = VecDeque::new();
        }
        sent.filter(|_| !resent)
    }

    /// Processes a cumulative acknowledgement below `ack` for a sender without loss rules. Returns the number of
    /// acknowledged segments and the last of them.
    #[inline]
    pub(crate) fn take_acked(&mut self, ack: u64) -> (u32, Option<Record>) {
        let (mut n, mut last) = (0, None);
        while let Some(r) = self.records.front_mut() {
            if r.end() > ack {
                // Partially acknowledged segment, as in `ack`.
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

    /// The record at `index`, counted from the oldest.
    pub(crate) fn at(&self, index: u32) -> Option<&Record> {
        self.records.get(index as usize)
    }

    /// Treats the newest segment as if it had been retransmitted.
    pub(crate) fn mark_newest_resent(&mut self) {
        if let Some(r) = self.records.back_mut() {
            r.resent = true;
        }
    }

    /// Retransmits the segment at `index`, counted from the oldest.
    pub(crate) fn resend_at(&mut self, now: Time, index: u32) -> Option<Record> {
        let r = self.records.get_mut(index as usize)?;
        r.resent = true;
        r.sent_at = now;
        Some(*r)
    }

    /// Processes SACK blocks; `d` collects what is newly delivered.
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

    /// Number of segments inside `start..end`, a range reported as duplicate, that are still on the scoreboard and
    /// were sent more than once.
    pub(crate) fn resent_within(&self, (start, end): (u64, u64)) -> u32 {
        let first = self.records.partition_point(|r| r.seq < start);
        let within = self.records.range(first..).take_while(|r| r.end() <= end);
        within.filter(|r| r.resent).count() as u32 // at most the number of segments in flight
    }

    /// Reverts all losses: segments considered lost count as in flight again.
    pub(crate) fn find_all(&mut self) {
        let Scoreboard { records, losses } = self;
        let Some(losses) = losses else { return };
        for r in records.iter_mut() {
            if matches!(r.place, SegmentState::Lost | SegmentState::Repaired) {
                r.place = SegmentState::Flying;
            }
        }
        losses.lost = 0;
        losses.repaired = 0;
        losses.judged = 0;
    }

    /// RFC 6675 section 4, `IsLost`: a segment in flight is lost once `threshold` segments above it are selectively
    /// acknowledged. As in Linux, segments are counted, not bytes.
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
            if r.place == SegmentState::Sacked {
                above += 1;
                if above == threshold {
                    limit = r.seq;
                    break;
                }
            }
            if r.seq < losses.judged {
                return; // above `judged`, no segment has `threshold` SACKed segments over it
            }
        }
        // Segments in flight that start between `judged` and `limit` are lost.
        if limit <= losses.judged {
            return;
        }
        let first = records.partition_point(|r| r.seq < losses.judged);
        let new = records.range_mut(first..).take_while(|r| r.seq < limit);
        for r in new.filter(|r| r.place == SegmentState::Flying && !r.resent) {
            losses.lose(r);
        }
        losses.judged = limit;
    }

    /// RFC 8985 section 6.2, step 5. A segment sent before the latest delivered one, (`sent`, `end`), is lost if
    /// `due` returns true for its send time. Returns the earliest send time that is not due yet, if any, and whether
    /// a retransmission was lost.
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
        // Segments sent once. Sequence order is also their sending order.
        let first = records.partition_point(|r| r.seq < losses.judged);
        for r in records.range_mut(first..) {
            if !r.resent {
                if (r.sent_at, r.end()) >= (sent, end) {
                    break;
                }
                if r.place == SegmentState::Flying {
                    if !due(r.sent_at) {
                        waiting = Some(r.sent_at);
                        break;
                    }
                    losses.lose(r);
                }
            }
            losses.judged = r.end();
        }
        // Retransmitted segments, in the order of their retransmission.
        while let Some(&(seq, at)) = losses.resent.front() {
            let i = records.partition_point(|r| r.seq < seq);
            if let Some(r) = records.get_mut(i)
                && (r.seq, r.sent_at) == (seq, at)
                && matches!(r.place, SegmentState::Flying | SegmentState::Repaired)
            {
                // Strictly earlier: among segments sent at the same instant, nothing shows that one was overtaken.
                if at >= sent {
                    break;
                }
                if !due(at) {
                    waiting = Some(waiting.map_or(at, |w| w.min(at)));
                    break;
                }
                again |= r.place == SegmentState::Repaired;
                losses.lose(r);
            }
            losses.resent.pop_front();
        }
        (waiting, again)
    }

    /// After an RTO: every segment that is not selectively acknowledged is lost, except those for which `recent`
    /// returns true. The oldest segment is lost in any case.
    pub(crate) fn lose_all(&mut self, recent: impl Fn(Time) -> bool) {
        let Scoreboard { records, losses } = self;
        let losses = losses.get_or_insert_default();
        let mut kept = None;
        for (i, r) in records.iter_mut().enumerate() {
            if !matches!(r.place, SegmentState::Flying | SegmentState::Repaired) {
                continue;
            }
            if i > 0 && recent(r.sent_at) {
                kept = kept.or(Some(r.seq));
                continue;
            }
            losses.lose(r);
        }
        losses.lost_from = 0;
        // The segments that were spared are still to be examined.
        losses.judged = kept
            .or(records.back().map(Record::end))
            .unwrap_or(losses.judged);
    }

    /// Retransmits the lowest lost segment if its size is at most `room` bytes.
    pub(crate) fn resend(&mut self, now: Time, room: f64, by_time: bool) -> Option<Record> {
        let Scoreboard { records, losses } = self;
        let losses = losses.as_deref_mut()?;
        let first = records.partition_point(|r| r.seq < losses.lost_from);
        let mut later = records.range_mut(first..);
        let r = later.find(|r| r.place == SegmentState::Lost)?;
        losses.lost_from = r.seq;
        if r.size() as f64 > room {
            return None;
        }
        r.place = SegmentState::Repaired;
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

    /// Retransmits the oldest segment, or the newest that has not arrived, without marking it lost.
    pub(crate) fn resend_as_is(
        &mut self,
        now: Time,
        newest: bool,
        by_time: bool,
    ) -> Option<Record> {
        let Scoreboard { records, losses } = self;
        let i = if newest {
            let open = records
                .iter()
                .rposition(|r| r.place != SegmentState::Sacked);
            // A peer may report everything beyond what it acknowledges, and must still be asked.
            open.or(records.len().checked_sub(1))?
        } else {
            0
        };
        let r = records.get_mut(i)?;
        if r.place == SegmentState::Lost
            && let Some(losses) = losses
        {
            r.place = SegmentState::Repaired;
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
        // Only whole segments count. RFC 6675 works on octets, but receivers that trim inside a segment are not
        // modelled.
        if r.end() > end {
            break;
        }
        match r.place {
            SegmentState::Sacked => continue,
            SegmentState::Flying => {}
            SegmentState::Lost => losses.lost -= r.size(),
            SegmentState::Repaired => losses.repaired -= r.size(),
        }
        r.place = SegmentState::Sacked;
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

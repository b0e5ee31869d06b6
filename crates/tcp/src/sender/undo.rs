//! Undoing window reductions that prove wrong, when segments considered lost were only late. There are three signs:
//!
//! * an echoed timestamp older than the first retransmission (Eifel, RFC 3522 and RFC 4015);
//! * after a time-out, an acknowledgement of data that was not retransmitted (F-RTO, RFC 5682);
//! * every retransmission is reported as a duplicate (RFC 3708).
//!
//! As in Linux (`tcp_try_undo_recovery`, `_partial`, `_loss` and `_dsack`, `tcp_process_loss` in
//! `net/ipv4/tcp_input.c`).

use swell_base::{SackBlocks, Segment, Stamps, Time};

use super::state::{Phase, Probe, Resends, Sender, Undo};
use crate::Config;
use crate::clock::millis;
use crate::scoreboard::Delivered;

/// RFC 8985 section 6.2 step 4: number of recoveries for which a widened reordering window lasts.
const PERSIST: u8 = 16;

impl Sender {
    fn undo_mut(&mut self) -> &mut Undo {
        self.active().undo.get_or_insert_default()
    }

    fn undo(&self) -> Option<&Undo> {
        self.active.as_deref()?.undo.as_deref()
    }

    /// Called before the window is reduced because of a loss. `alone` is false if marks had already reduced it.
    pub(super) fn begin_undo(&mut self, alone: bool) {
        let marker = self.una;
        let resent = (self.board.repaired() > 0).then_some(self.board.repaired_count());
        let began = self.board.any_resent();
        // Linux `tcp_current_ssthresh`.
        let (window, threshold) = (self.window.cwnd, self.window.ssthresh);
        let threshold = threshold.max(0.75 * window);
        let undo = self.undo_mut();
        if !began {
            undo.since = None;
        }
        undo.marker = marker;
        undo.resent = resent;
        undo.window = window;
        undo.threshold = alone.then_some(threshold);
        undo.frto = false;
        undo.resends = Resends::First;
    }

    /// Notes whether this time-out may be spurious: only if no other recovery was in progress.
    pub(super) fn doubt_timeout(&mut self, possible: bool) {
        self.undo_mut().frto = possible;
    }

    /// Notes that a lost segment is retransmitted.
    pub(super) fn note_resent(&mut self, now: Time) {
        let undo = self.undo_mut();
        undo.resent = Some(undo.resent.unwrap_or(0) + 1);
        undo.since.get_or_insert(millis(now) % Stamps::RANGE);
    }

    /// ECN marks arrived: the reduction is justified whatever was lost.
    pub(super) fn forbid_undo(&mut self) {
        if let Some(undo) = self.active_if_any().and_then(|a| a.undo.as_deref_mut()) {
            undo.threshold = None;
        }
    }

    /// Whether the acknowledgement answers a segment sent before the first retransmission (`tcp_packet_delayed`).
    pub(super) fn is_delayed(&self, cfg: &Config, echo: u32) -> bool {
        let since = self.undo().and_then(|u| u.since);
        cfg.echoes() && since.is_some_and(|since| Stamps::since(echo, since) < 0)
    }

    fn all_twice(&self) -> bool {
        self.undo()
            .is_some_and(|u| u.marker != 0 && u.resent == Some(0))
    }

    /// Whether the reduction was wrong (`tcp_may_undo`).
    fn was_wrong(&self, delayed: bool) -> bool {
        self.is_undoable() && delayed || self.all_twice()
    }

    /// Whether there is a reduction that can still be undone.
    pub(super) fn is_undoable(&self) -> bool {
        self.undo().is_some_and(|u| u.marker != 0)
    }

    /// Restores the window and the threshold from before the reduction.
    fn undo_reduction(&mut self, find_all: bool) {
        if find_all {
            self.board.find_all();
        }
        let undo = self.undo_mut();
        undo.marker = 0;
        undo.frto = false;
        let (window, threshold) = (undo.window, undo.threshold);
        if let Some(threshold) = threshold {
            self.window.undo(window, threshold);
            self.cwr = false;
        }
        let count = &mut self.rare().count;
        count.undone = count.undone.saturating_add(1);
    }

    /// Resets the per-acknowledgement state.
    pub(super) fn begin_answer(&mut self) {
        if let Some(undo) = self.active_if_any().and_then(|a| a.undo.as_deref_mut()) {
            undo.resends = Resends::First;
        }
    }

    /// Called at the end of recovery: undoes the reduction if it was wrong.
    pub(super) fn undo_recovery(&mut self, delayed: bool) {
        if self.was_wrong(delayed) {
            self.undo_reduction(false);
        } else if let Some(rare) = &mut self.rare {
            rare.persist = rare.persist.saturating_sub(1);
        }
    }

    /// Undoes a reduction if every retransmission was reported as a duplicate.
    pub(super) fn undo_twice(&mut self) -> bool {
        let wrong = self.all_twice();
        if wrong {
            let rare = self.rare();
            rare.persist = (rare.persist + 1).min(PERSIST);
            self.undo_reduction(false);
        }
        wrong
    }

    /// In recovery, checks whether SND.UNA moved only because a segment was late. Returns whether that is so.
    pub(super) fn undo_partial(&mut self, delayed: bool) -> bool {
        if !(delayed && self.is_undoable()) {
            return false;
        }
        self.rare().reordering_seen = true;
        if self.board.repaired() > 0 {
            self.undo_mut().resends = Resends::Never;
        } else {
            self.undo_reduction(true);
            self.phase = Phase::Open;
        }
        true
    }

    /// Processes an acknowledgement after a time-out (`tcp_process_loss`): was the time-out spurious?
    pub(super) fn judge_timeout(&mut self, moved: u64, d: &Delivered, delayed: bool) {
        let recovered = self.una >= self.recover;
        if moved > 0 && self.was_wrong(delayed) {
            return self.forgive_timeout();
        }
        if self.undo().is_some_and(|u| u.frto) {
            // Step 3b: a delivered segment was sent before the time-out and not retransmitted.
            if d.original.is_some_and(|end| end <= self.recover) {
                return self.forgive_timeout();
            }
            if self.nxt > self.recover {
                if d.sacked {
                    self.undo_mut().frto = false; // step 3a
                }
            } else if moved > 0 && !recovered {
                let more = self.end > self.nxt && self.edge > self.nxt;
                let undo = self.undo_mut();
                if more {
                    undo.resends = Resends::AfterNew;
                    return;
                }
                undo.frto = false;
            }
        }
        if recovered {
            self.undo_recovery(delayed);
            self.phase = Phase::Open;
        }
    }

    fn forgive_timeout(&mut self) {
        self.undo_reduction(true);
        self.timeouts = 0;
        self.phase = Phase::Open;
        let count = &mut self.rare().count;
        count.spurious = count.spurious.saturating_add(1);
    }

    /// Whether retransmissions wait until new data was sent.
    pub(super) fn holds_resends(&mut self) -> bool {
        let fresh = self.nxt > self.recover;
        let Some(undo) = self.active_if_any().and_then(|a| a.undo.as_deref_mut()) else {
            return false;
        };
        match undo.resends {
            Resends::First => false,
            Resends::Never => true,
            Resends::AfterNew => {
                if !fresh {
                    // No new data could be sent, so conventional recovery applies.
                    undo.frto = false;
                    undo.resends = Resends::First;
                }
                fresh
            }
        }
    }

    /// Whether new data goes before retransmissions.
    pub(super) fn prefers_new(&self) -> bool {
        self.undo().is_some_and(|u| u.resends != Resends::First)
    }

    /// The range that the first block reports as a duplicate (RFC 2883 section 4), if it does. Updates the undo
    /// state. `una` is SND.UNA before this acknowledgement.
    pub(super) fn hear_twice(
        &mut self,
        cfg: &Config,
        una: u64,
        seg: &Segment,
        sacks: &SackBlocks,
    ) -> Option<(u64, u64)> {
        let mut blocks = sacks.first(seg.sacks);
        let (start, end) = blocks.next()?;
        let below = start < 0;
        let within = blocks.next().is_some_and(|(s, e)| s <= start && end <= e);
        if !(below || within) {
            return None;
        }
        let at = |offset: i32| seg.ack.checked_add_signed(i64::from(offset));
        let (start, end) = (at(start)?, at(end)?);
        if start >= end || end > self.nxt {
            return None;
        }
        let copies = u32::try_from((end - start).div_ceil(u64::from(cfg.mss()))).ok()?;
        let probe = self.probing() && copies == 1 && {
            let rare = self.rare();
            let own = rare.probe_end == end as u32; // the lower 32 bits
            if own && rare.probe == Probe::Resent {
                rare.probe = Probe::None;
            }
            own
        };
        let (sent_again, nxt) = (self.counters().resent, self.nxt as u32);
        let reached = self.una as u32;
        let rare = self.rare();
        rare.twice = rare.twice.saturating_add(copies);
        if rare.twice > sent_again {
            return Some((start, end)); // more duplicates than retransmissions: the network duplicates segments
        }
        // RFC 8985 section 6.2 step 4: the reordering window was too small. It is widened at most once per RTT.
        if rare.reordering_seen
            && !probe
            && (reached.wrapping_sub(rare.adjusted)).cast_signed() >= 0
        {
            rare.wider = rare.wider.saturating_add(1);
            rare.adjusted = nxt;
            rare.persist = PERSIST;
        }
        let above = self.board.resent_within((start, end));
        if let Some(undo) = self.active_if_any().and_then(|a| a.undo.as_deref_mut())
            && undo.marker != 0
            && end > undo.marker
            && let Some(resent) = &mut undo.resent
        {
            // Below SND.UNA the records are gone, so segments are counted by length. Above it, only those that were
            // retransmitted count.
            let copies = if end <= una { copies } else { above };
            *resent = resent.saturating_sub(copies);
        }
        Some((start, end))
    }

    /// By how many quarters of the smallest RTT a segment may be late (RFC 8985 section 6.2 step 4).
    pub(super) fn reordering_steps(&mut self) -> u64 {
        let Some(rare) = &mut self.rare else { return 1 };
        if rare.persist == 0 {
            rare.wider = 0;
        }
        1 + u64::from(rare.wider)
    }
}

//! Header prediction, after Van Jacobson ("4BSD TCP header prediction", 1990): a fast path for nearly all segments.
//! It gives the same result as the full path.

use swell_base::{Segment, Time};

use super::round_trip;
use super::state::{Phase, Sender, Timer};
use crate::Config;
use crate::cc::Window;

impl Sender {
    /// Whether acknowledgements can be [predicted](Self::expected_ack) at all: no SACK, no ECN, not ns-2's sender,
    /// and a congestion control that needs no measurements.
    pub(super) fn is_simple(cfg: &Config, window: &Window) -> bool {
        !cfg.sack && !cfg.ecn && cfg.ns2_sender().is_none() && window.is_plain()
    }

    /// Fast path for an acknowledgement without data. Applies if it acknowledges new data while no loss is known;
    /// otherwise returns `None`. Returns how far SND.UNA moved.
    #[inline]
    pub(crate) fn expected_ack(&mut self, cfg: &Config, now: Time, seg: &Segment) -> Option<u64> {
        let expected = self.simple
            && seg.ack > self.una
            && seg.ack <= self.nxt
            && self.phase == Phase::Open
            && self.timer != Timer::Persist
            && self.board.all_fly();
        if !expected {
            return None;
        }
        self.edge = self.edge.max(seg.ack.saturating_add(u64::from(seg.window)));
        let sent_once = self.board.take_flying(seg.ack);
        let moved = seg.ack - self.una;
        self.una = seg.ack;
        let rtt = match sent_once {
            Some((oldest, newest)) if cfg.rtt_every_ack => {
                Some((now.since(oldest), now.since(newest)))
            }
            None if cfg.rtt_every_ack && cfg.echoes() => {
                round_trip(now, seg.stamps.echo()).map(|rtt| (rtt, rtt))
            }
            _ => None,
        };
        self.advance(cfg, now, rtt);
        self.dupacks = 0;
        self.grow_plainly(cfg, now, moved);
        self.rest();
        Some(moved)
    }

    /// Whether the fast path of sending applies. Then the next segment, if any, is new data: something is in flight
    /// and no loss is known. Window validation must be off, because the fast path does not record whether the window
    /// was the limit.
    #[inline]
    pub(crate) fn sends_briskly(&self, cfg: &Config) -> bool {
        self.simple
            && self.una < self.nxt
            && self.phase == Phase::Open
            && self.board.all_fly()
            && !(self.force | self.fin_queued | self.paced)
            && !cfg.window_validation
    }

    /// Fast path of [`Sender::next`], valid while [`sends_briskly`](Self::sends_briskly) holds. Returns sequence
    /// number, length, and whether there may be more.
    #[inline]
    pub(crate) fn next_briskly(&mut self, cfg: &Config, now: Time) -> Option<(u64, u32, bool)> {
        let limit = self.limit(cfg);
        let len = self.next_within(cfg, limit)?;
        let seq = self.nxt;
        self.fly(now, len, false);
        if self.deadline == Time::MAX {
            self.rearm(cfg, now);
        }
        Some((seq, len, self.next_within(cfg, limit).is_some()))
    }

    /// Size of the next new segment, if one may be sent.
    #[inline]
    fn next_within(&self, cfg: &Config, limit: f64) -> Option<u32> {
        let pending = self.end - self.nxt;
        let mss = cfg.mss();
        let len = (pending.min(u64::from(mss)) as u32).min(self.writes.left());
        let after = self.nxt - self.una + u64::from(len);
        let goes = pending > 0
            && after as f64 <= limit
            && self.edge.saturating_sub(self.nxt) >= u64::from(len)
            && !(self.nagle && len < mss);
        goes.then_some(len)
    }

    /// Whether the acknowledgement on a data segment carries no news, because nothing is in flight.
    #[inline]
    pub(crate) fn expects_nothing(&self, cfg: &Config, seg: &Segment) -> bool {
        seg.ack == self.una
            && self.una == self.nxt
            && self.timer != Timer::Persist
            && !(self.ns2 | self.marks)
            && !(cfg.rack_tlp && self.probing())
    }

    /// The whole effect of such an acknowledgement: it may update the window, and it clears the time-out count.
    #[inline]
    pub(crate) fn heard(&mut self, seg: &Segment) {
        self.edge = self.edge.max(seg.ack.saturating_add(u64::from(seg.window)));
        self.timeouts = 0;
    }
}

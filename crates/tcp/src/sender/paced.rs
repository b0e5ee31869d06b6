//! Sending outside loss recovery: pacing and the model of BBR, and ECN marks (RFC 3168).

use swell_base::{Dur, Time};

use super::state::{Phase, Sender};
use crate::Config;
use crate::cc::Acked;
use crate::scoreboard::Delivered;

impl Sender {
    /// The handshake is over: BBR begins with its RTT.
    pub(crate) fn begin_pacing(&mut self, now: Time) {
        let min = self.rtt.min();
        if let (Some(b), Some(min)) = (self.window.bbr(), min) {
            b.begin(now, min);
        }
    }

    /// Whether pacing delays the next segment.
    #[inline(never)]
    pub(super) fn held_back(&mut self, now: Time) -> bool {
        let ready = self.force || self.board.lost() > 0 || self.end > self.nxt;
        let Some(b) = self.window.bbr() else {
            return false;
        };
        b.waiting = ready && b.holds(now);
        b.waiting
    }

    /// When a segment delayed by pacing may be sent; `Time::MAX` without pacing.
    pub(crate) fn pacing_deadline(&self) -> Time {
        if self.paced {
            self.window.pacing_deadline()
        } else {
            Time::MAX
        }
    }

    /// Notes that all written data is sent (application limited).
    #[inline(never)]
    pub(super) fn nothing_to_send(&mut self, cfg: &Config) {
        let flight = self.in_flight();
        if self.window.cwnd >= (flight + u64::from(cfg.mss())) as f64
            && let Some(b) = self.window.bbr()
        {
            b.app_limited(flight);
        }
    }

    /// Notes for BBR that a segment ending at `end` was sent.
    pub(super) fn note_paced(&mut self, cfg: &Config, now: Time, end: u64, len: u32) {
        let flight = self.in_flight().saturating_sub(u64::from(len));
        let srtt = self.rtt.smoothed().unwrap_or(Dur::ZERO);
        let cwnd = self.window.cwnd;
        if let Some(b) = self.window.bbr() {
            b.on_send(cfg, now, (end, len), flight, srtt, cwnd);
        }
    }

    /// Updates BBR's model, in every phase. The acknowledgement delivered `d`, `moved` bytes of it cumulatively, and
    /// `lost` bytes were found lost by it.
    pub(super) fn model(&mut self, cfg: &Config, now: Time, moved: u64, d: &Delivered, lost: u64) {
        if let Some((sent, end, _)) = d.last_sent {
            let runt = moved > 0 && moved < u64::from(cfg.mss()) && moved == d.bytes;
            let acked = Acked {
                lost,
                delayed: runt && d.segments == 1 && self.board.sacked() == 0,
                ..self.acked(now, d, true)
            };
            self.window.bbr_ack(cfg, &acked, (sent, end));
        }
        if self.phase == Phase::Open {
            self.window.bbr_recovery(None, cfg.mss());
        }
    }

    /// Processes an acknowledgement with ECE. RFC 3168 section 6.1.2: react as to a loss, once per window of data.
    pub(super) fn marked(&mut self, cfg: &Config, now: Time, ack: u64) {
        self.forbid_undo();
        // The lower 32 bits of a sequence number suffice, because a flight never exceeds 2 GB.
        let last = self.rare.as_ref().map_or(0, |r| r.ecn_recover);
        let before = last != 0 && (ack as u32).wrapping_sub(last).cast_signed() <= 0;
        if self.phase != Phase::Open || before || self.paced {
            return;
        }
        self.rare().count.marks += 1;
        if cfg.sack && cfg.prr {
            // Linux `tcp_enter_cwr`: reduces to the threshold within one RTT.
            self.phase = Phase::Reducing;
            self.begin_reduction(cfg, now, 0);
            return;
        }
        self.rare().ecn_recover = self.nxt as u32;
        self.cwr = true;
        self.reduce(cfg, now);
        self.window.cwnd = self.window.ssthresh;
    }
}

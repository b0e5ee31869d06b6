//! Choosing what to send: retransmissions first, then new data.

use swell_base::{Dur, Time};

use super::state::{Out, Phase, Sender, Timer};
use crate::Config;
use crate::scoreboard::{Record, SegmentState};

impl Sender {
    /// The next segment that may be sent now, by the full path. See [`sends_briskly`](Self::sends_briskly) for the
    /// fast one.
    #[inline(never)]
    pub(crate) fn next(&mut self, cfg: &Config, now: Time) -> Option<Out> {
        if self.has_nothing() {
            return None;
        }
        if self.ns2 {
            return self.next_packet(cfg, now);
        }
        if self.paced && self.held_back(now) {
            return None;
        }
        let pending = self.end.saturating_sub(self.nxt);
        if self.force || self.board.lost() > 0 {
            if self.prefers_new() {
                let new = if pending > 0 {
                    self.send_new(cfg, now, pending)
                } else {
                    None
                };
                if new.is_some() || self.holds_resends() {
                    return new;
                }
            }
            return self.resend(cfg, now);
        }
        if pending > 0 {
            self.send_new(cfg, now, pending)
        } else if self.fin_queued && !self.fin_sent {
            // A lone FIN is sent regardless of the window, as in Linux (`tcp_cwnd_test`).
            Some(self.push(cfg, now, 0))
        } else {
            if self.paced {
                self.nothing_to_send(cfg);
            }
            None
        }
    }

    #[inline(never)]
    fn resend(&mut self, cfg: &Config, now: Time) -> Option<Out> {
        let forced = std::mem::take(&mut self.force);
        let r = if forced {
            self.board.resend_as_is(now, false, cfg.rack_tlp)?
        } else {
            let in_flight = self.in_flight();
            let room = if in_flight == 0 {
                f64::INFINITY
            } else {
                self.limit(cfg) - in_flight as f64
            };
            let Some(r) = self.board.resend(now, room, cfg.rack_tlp) else {
                self.note_limited(cfg);
                return None;
            };
            r
        };
        if cfg.sack {
            self.note_resent(now);
        }
        Some(self.sent_again(cfg, now, &r))
    }

    pub(super) fn sent_again(&mut self, cfg: &Config, now: Time, r: &Record) -> Out {
        self.note_sent(r.end() - r.seq);
        self.rare().count.resent += 1;
        self.last_sent = now;
        if r.end() >= self.timed.0 && r.seq < self.timed.0 {
            self.timed.0 = 0; // Karn's algorithm: a segment sent twice is not timed
        }
        // RFC 6675 section 5 step (4.3) and Linux restart the timer when the oldest segment is retransmitted.
        let restarts = r.seq == self.una || cfg.quic && self.timer == Timer::Rto;
        if restarts || self.deadline == Time::MAX {
            self.arm(Timer::Rto, now + self.rto(cfg));
        }
        if self.paced {
            self.note_paced(cfg, now, r.end(), r.len);
        }
        Out {
            seq: r.seq,
            len: r.len,
            fin: r.fin,
            fresh: false,
        }
    }

    fn send_new(&mut self, cfg: &Config, now: Time, pending: u64) -> Option<Out> {
        let mss = cfg.mss();
        let mut len = pending.min(u64::from(mss)) as u32;
        len = len.min(self.writes.left());
        let outstanding = self.outstanding();
        if outstanding == 0 {
            self.wake(cfg, now);
        }
        // Without limited transmit, a selective acknowledgement allows no new data before recovery.
        let in_flight = if self.phase == Phase::Open && !cfg.limited_transmit {
            outstanding - self.board.lost()
        } else {
            self.in_flight()
        };
        if in_flight as f64 + f64::from(len) > self.limit(cfg) && in_flight > 0 {
            self.note_limited(cfg);
            return None;
        }
        let allowed = self.edge.saturating_sub(self.nxt);
        if allowed < u64::from(len) {
            // RFC 9293 section 3.8.6.2.1: avoid the silly window syndrome while an acknowledgement is outstanding.
            if outstanding > 0 {
                return None;
            }
            if allowed == 0 {
                if self.deadline == Time::MAX {
                    self.arm(Timer::Persist, now + self.rto(cfg));
                }
                return None;
            }
            len = allowed as u32; // below `len`, which is a u32
        }
        let last = u64::from(len) == pending;
        if cfg.nagle && len < mss && outstanding > 0 && !(last && self.fin_queued) {
            return None;
        }
        Some(self.push(cfg, now, len))
    }

    /// Sends `len` new bytes, with the FIN if they are the last.
    pub(super) fn push(&mut self, cfg: &Config, now: Time, len: u32) -> Out {
        let seq = self.nxt;
        let fin = self.fin_queued && seq + u64::from(len) == self.end;
        self.fly(now, len, fin);
        self.fin_sent |= fin;
        self.note_sent(self.nxt - seq);
        if cfg.window_validation {
            self.validate(cfg);
        }
        // RFC 8985 section 7.2: new data postpones a probe but not an RTO. In QUIC every packet does (RFC 9002 section
        // 6.2.1).
        let probes = self.timer == Timer::Probe || cfg.quic && self.timer == Timer::Rto;
        if self.deadline == Time::MAX || probes {
            self.rearm(cfg, now);
        }
        if self.paced {
            self.note_paced(cfg, now, self.nxt, len);
        }
        Out {
            seq,
            len,
            fin,
            fresh: true,
        }
    }

    /// Puts `len` new bytes, and possibly the FIN, in flight.
    #[inline(always)]
    pub(super) fn fly(&mut self, now: Time, len: u32, fin: bool) {
        let record = Record {
            seq: self.nxt,
            sent_at: now,
            len,
            place: SegmentState::Flying,
            resent: false,
            fin,
        };
        self.nxt = record.end();
        self.board.push(record, self.end > self.nxt);
        self.writes.take(&mut self.active, len);
        if self.timed.0 == 0 {
            self.timed = (self.nxt, now);
        }
        self.last_sent = now;
    }

    /// Called before data is sent with nothing in flight: handles the idle time. As in Linux
    /// (`tcp_slow_start_after_idle_check`), a reduction of the window that is not over does not matter.
    #[inline(never)]
    fn wake(&mut self, cfg: &Config, now: Time) {
        if self.last_sent == Time::MAX {
            return;
        }
        let idle = now.since(self.last_sent);
        if idle > Dur::ZERO {
            self.window.on_idle(cfg, idle, self.rto(cfg));
            self.last_sent = now;
        }
    }
}

//! Recovery with selective acknowledgements, the retransmission timer, RACK-TLP and PRR.

use swell_base::{Dur, Segment, Time};

use super::{Episode, Out, Phase, Sender, Timer};
use crate::Config;
use crate::config::LossBase;
use crate::scoreboard::Delivered;

/// Proportional rate reduction (RFC 9937 section 6), in bytes.
#[derive(Clone, Debug)]
pub(super) struct Prr {
    delivered: u64,
    out: u64,
    /// `RecoverFS`: what was in flight when recovery began.
    flight: u64,
}

/// Of the state of RFC 8985 section 5.3 what says which segment was delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// `RACK.xmit_ts` and `RACK.end_seq`: the delivered segment that was sent last.
    sent: Time,
    end: u64,
    /// `RACK.rtt`.
    rtt: Dur,
}

/// RFC 8985 section 7.2: how long a peer may delay the acknowledgement of a single segment.
const WORST_ACK_DELAY: Dur = Dur::from_millis(200);

impl Sender {
    /// What an acknowledgement with (or without) SACK blocks means for recovery.
    pub(super) fn recover_with_sack(&mut self, cfg: &Config, now: Time, moved: u64, d: &Delivered) {
        if moved == 0 && cfg.rtt_every_ack && !d.any_resent {
            // Linux takes the first segment newly selectively acknowledged.
            if let Some(sent) = d.oldest {
                self.rtt.sample(cfg, now.since(sent));
            }
        }
        let lost_before = self.board.lost();
        if cfg.rack_tlp {
            self.rack_delivered(cfg, now, d);
        }
        if self.board.sacked_count() > 0 || self.phase != Phase::Open {
            if cfg.rack_tlp {
                self.rack_judge(cfg, now);
            } else {
                self.board.judge_by_count(cfg.dup_threshold);
            }
        }
        if self.phase != Phase::Open && self.una >= self.recover {
            if self.phase == Phase::Recovery && !self.paced {
                self.window.cwnd = self.window.ssthresh;
            }
            self.phase = Phase::Open;
            self.end_pacing();
            if self.board.lost() > 0 {
                self.enter_recovery(cfg, now, d.bytes);
            }
            return;
        }
        match self.phase {
            Phase::Open if self.board.lost() > 0 => self.enter_recovery(cfg, now, d.bytes),
            Phase::Open | Phase::Loss if moved > 0 => self.grow(cfg, now, d),
            Phase::Recovery if d.bytes > 0 => {
                let safe = moved > 0 && self.board.lost() <= lost_before;
                self.pace(cfg, d.bytes, safe);
            }
            _ => {}
        }
    }

    fn enter_recovery(&mut self, cfg: &Config, now: Time, delivered: u64) {
        self.reduce(cfg, now);
        self.phase = Phase::Recovery;
        self.recover = self.nxt;
        self.rare().count.recoveries += 1;
        let begins = Some((self.in_flight(), self.nxt));
        if self.window.bbr_recovery(begins, cfg.mss()) {
            self.force = self.board.lost() > 0;
        } else if cfg.prr {
            // RFC 9937 section 6: what was in the network just before this acknowledgement.
            let flight = (self.outstanding() - self.board.sacked() + delivered).max(1);
            self.minded = false;
            self.active().episode = Some(Episode::Recovery(Prr {
                delivered: 0,
                out: 0,
                flight,
            }));
            self.pace(cfg, delivered, false);
        } else {
            self.window.cwnd = self.window.ssthresh;
            self.force = self.board.lost() > 0; // RFC 6675 section 5 step (4.3)
        }
        if self.timer != Timer::Reorder {
            self.arm(Timer::Rto, now + self.rto(cfg));
        }
    }

    /// RFC 9937 section 6: the window follows what is delivered towards the threshold.
    fn pace(&mut self, cfg: &Config, delivered: u64, safe: bool) {
        let in_flight = self.in_flight() as f64;
        let ssthresh = self.window.ssthresh;
        let mss = f64::from(cfg.mss());
        let Some(Episode::Recovery(p)) = self.episode() else {
            return;
        };
        p.delivered += delivered;
        let (delivered_all, out) = (p.delivered as f64, p.out as f64);
        let mut send = if in_flight > ssthresh {
            (delivered_all * ssthresh / p.flight as f64).ceil() - out
        } else {
            let mut s = (delivered_all - out).max(delivered as f64);
            if safe {
                s += mss;
            }
            s.min(ssthresh - in_flight)
        };
        if p.out == 0 {
            send = send.max(mss); // the fast retransmit itself
        }
        self.window.cwnd = in_flight + send.max(0.0);
    }

    /// `bytes` of sequence space left.
    #[inline]
    pub(super) fn note_sent(&mut self, bytes: u64) {
        if let Some(Episode::Recovery(p)) = self.episode() {
            p.out += bytes;
        }
    }

    /// Fast recovery is over.
    fn end_pacing(&mut self) {
        if let Some(Episode::Recovery(_)) = self.episode() {
            self.active().episode = None;
        }
    }

    /// Sets the threshold after a loss.
    pub(super) fn reduce(&mut self, cfg: &Config, now: Time) {
        let base = match cfg.loss_base {
            LossBase::Window => self.window.cwnd.min(cfg.window_cap()),
            LossBase::Flight => self.outstanding() as f64,
        };
        let srtt = self.rtt.smoothed().unwrap_or(Dur::ZERO);
        self.window.on_loss(cfg, now, srtt, base);
    }

    /// The timer is due.
    pub(crate) fn on_timer(&mut self, cfg: &Config, now: Time) -> Option<Expired> {
        match self.timer {
            Timer::Rto => {
                if self.ns2 && self.outstanding() == 0 {
                    self.idle_timeout(cfg);
                    return None;
                }
                if self.timeouts >= cfg.retries {
                    return Some(Expired::GiveUp);
                }
                if self.ns2 {
                    self.packet_timeout(cfg, now);
                } else {
                    self.retransmission_timeout(cfg, now);
                }
                None
            }
            Timer::Probe => self.send_probe(cfg, now).map(Expired::Send),
            Timer::Reorder => {
                self.deadline = Time::MAX;
                self.rack_judge(cfg, now);
                if self.phase == Phase::Open && self.board.lost() > 0 {
                    self.enter_recovery(cfg, now, 0);
                }
                if self.deadline == Time::MAX {
                    self.rearm(cfg, now);
                }
                None
            }
            Timer::Persist => {
                if self.timeouts >= cfg.retries {
                    return Some(Expired::GiveUp);
                }
                self.timeouts += 1;
                self.rtt.back_off();
                self.arm(Timer::Persist, now + self.rto(cfg));
                // An old sequence number makes the peer answer, as Linux probes
                // (`tcp_xmit_probe_skb`).
                Some(Expired::Send(Out {
                    seq: self.una - 1,
                    len: 0,
                    fin: false,
                    fresh: false,
                }))
            }
        }
    }

    fn retransmission_timeout(&mut self, cfg: &Config, now: Time) {
        self.rare().count.rtos += 1;
        self.timeouts += 1;
        // RFC 5681 section 3.1: the threshold stays when the same segment times out again.
        let again = self.phase == Phase::Loss && self.timeouts > 1;
        // A window already reduced in this recovery is not reduced again (Linux
        // `tcp_enter_loss`); without SACK it is, as in RFC 5681 and ns-2.
        if !(again || cfg.sack && self.phase == Phase::Recovery) {
            self.reduce(cfg, now);
        }
        if !self.window.bbr_recovery(Some((0, self.nxt)), cfg.mss()) {
            self.window.cwnd = f64::from(cfg.mss());
        }
        self.inflation = 0.0;
        self.dupacks = 0;
        self.force = false;
        self.timed.0 = 0;
        self.rare().probe_end = 0;
        self.end_pacing();
        self.phase = Phase::Loss;
        self.recover = self.nxt;
        self.board.lose_all();
        self.rtt.back_off();
        self.arm(Timer::Rto, now + self.rto(cfg));
    }

    /// RFC 8985 section 6.2 steps 1 to 4.
    fn rack_delivered(&mut self, cfg: &Config, now: Time, d: &Delivered) {
        let min = self.rtt.min();
        if d.reordered {
            self.rare().reordering_seen = true;
        }
        let Some((sent, end, resent)) = d.last_sent else {
            return;
        };
        let rtt = now.since(sent);
        // Step 2: an acknowledgement faster than any round trip belongs to the original. Echoed
        // timestamps tell a kernel so (RFC 3522), and that the path reorders.
        if resent && min.is_some_and(|min| rtt < min) {
            self.rare().reordering_seen |= cfg.timestamps;
            return;
        }
        // Whatever is delivered next was sent later.
        if self.una == self.nxt {
            return;
        }
        let rack = &mut self.active().rack;
        if (sent, end) > (rack.sent, rack.end) {
            rack.sent = sent;
            rack.end = end;
            rack.rtt = rtt;
        }
    }

    /// RFC 8985 section 6.2 step 5, and the timer for what is not due yet.
    fn rack_judge(&mut self, cfg: &Config, now: Time) {
        if self.una == self.nxt {
            return; // nothing left to judge
        }
        let enough = self.board.sacked_count() >= cfg.dup_threshold;
        let rack = self.active.as_ref().map_or_else(Rack::default, |a| a.rack);
        let reordering_seen = self.rare.as_ref().is_some_and(|r| r.reordering_seen);
        let window = if !reordering_seen && (self.phase != Phase::Open || enough) {
            Dur::ZERO
        } else {
            // A quarter of the smallest round trip; it does not adapt, since duplicate SACKs
            // cannot be said.
            let quarter = self.rtt.min().unwrap_or(Dur::ZERO) / 4;
            quarter.min(self.rtt.smoothed().unwrap_or(Dur::ZERO))
        };
        let wait = rack.rtt + window;
        let waiting = self
            .board
            .judge_by_time(rack.sent, rack.end, |sent| sent + wait <= now);
        if let Some(sent) = waiting {
            self.arm(Timer::Reorder, sent + wait);
        } else if self.timer == Timer::Reorder {
            self.rearm(cfg, now);
        }
    }

    /// RFC 8985 section 7.2: when to probe, where a probe is to be sent at all.
    pub(super) fn probe_timeout(&self, cfg: &Config) -> Option<Dur> {
        let possible = cfg.rack_tlp
            && cfg.sack
            && self.phase == Phase::Open
            && self.board.sacked_count() == 0
            && !self.probing();
        let srtt = self.rtt.smoothed().filter(|_| possible)?;
        let mut pto = srtt * 2;
        if self.board.len() == 1 {
            pto += WORST_ACK_DELAY;
        }
        let rto = self.rto(cfg);
        (pto < rto).then_some(pto)
    }

    /// RFC 8985 section 7.3: new data if the peer allows it, else the last segment again.
    fn send_probe(&mut self, cfg: &Config, now: Time) -> Option<Out> {
        let pending = self.end.saturating_sub(self.nxt);
        let len = pending.min(u64::from(cfg.mss())) as u32;
        let fresh = len > 0 && self.edge.saturating_sub(self.nxt) >= u64::from(len);
        self.rare().probe_end = u64::MAX; // no second probe while this one is sent
        let out = if fresh {
            self.push(cfg, now, len.min(self.writes.left()))
        } else if let Some(r) = self.board.resend_as_is(now, true, true) {
            self.sent_again(cfg, now, &r)
        } else {
            self.rare().probe_end = 0;
            self.deadline = Time::MAX;
            return None;
        };
        let end = self.nxt;
        let rare = self.rare();
        rare.count.probes += 1;
        rare.probe_end = end;
        rare.probe_resent = !fresh;
        rare.probe_echoed = false;
        self.arm(Timer::Rto, now + self.rto(cfg));
        Some(out)
    }

    /// A tail loss probe is not answered yet.
    #[inline]
    pub(super) fn probing(&self) -> bool {
        self.rare.as_ref().is_some_and(|r| r.probe_end != 0)
    }

    /// RFC 8985 section 7.4.2: did the probe repair a loss?
    #[inline]
    pub(super) fn probe_answered(&mut self, cfg: &Config, now: Time, ack: u64, seg: &Segment) {
        let end = self.rare.as_ref().map_or(0, |r| r.probe_end);
        if end != 0 && ack >= end {
            self.answer(cfg, now, ack, seg);
        }
    }

    #[inline(never)]
    fn answer(&mut self, cfg: &Config, now: Time, ack: u64, seg: &Segment) {
        let una = self.una;
        let rare = self.rare();
        if !rare.probe_resent {
            rare.probe_end = 0;
        } else if ack > rare.probe_end {
            // Later data is acknowledged and the second copy never was: one of the two was lost.
            rare.probe_end = 0;
            if self.phase == Phase::Open {
                self.reduce(cfg, now);
                if !self.paced {
                    self.window.cwnd = self.window.ssthresh;
                }
            }
        } else if una == ack && seg.seq_len() == 0 && seg.sacks == 0 && rare.probe_echoed {
            rare.probe_end = 0; // a duplicate: both copies arrived
        } else {
            rare.probe_echoed = true;
        }
    }
}

/// What a timer wants done outside the sender.
pub(crate) enum Expired {
    /// Send this segment now.
    Send(Out),
    /// Too many time-outs in a row.
    GiveUp,
}

//! Recovery with selective acknowledgements, the retransmission timer, RACK-TLP and PRR.

use swell_base::{Dur, Segment, Time};

use super::state::{Episode, Expired, Out, Phase, Probe, Prr, Rack, Sender, Timer};
use crate::config::LossBase;
use crate::scoreboard::Delivered;
use crate::{Algorithm, Config};

/// RFC 8985 section 7.2: maximum time for which a peer may delay the acknowledgement of a single segment.
const WORST_ACK_DELAY: Dur = Dur::from_millis(200);

/// Linux waits for this long in addition, both for a probe and for a reordered segment (`TCP_TIMEOUT_MIN_US`). Before
/// 6.7 it waited for two ticks, which is 8 ms at 250 Hz. QUIC adds nothing (RFC 9002 sections 6.1.2 and 6.2.1).
const TIMER_MIN: Dur = Dur::from_millis(2);

/// Number of QUIC's probe time-outs in a row before congestion counts as persistent. Packets lost then span more than
/// three of the first one (RFC 9002 section 7.6.1).
const PROBES: u8 = 2;

impl Sender {
    /// Processes an acknowledgement (with or without SACK blocks) for loss recovery: Linux `tcp_fastretrans_alert`.
    /// `echo` is its echoed timestamp.
    pub(super) fn recover_with_sack(
        &mut self,
        cfg: &Config,
        now: Time,
        moved: u64,
        d: &Delivered,
        echo: u32,
    ) {
        if cfg.rack_tlp {
            self.rack_delivered(cfg, now, d);
        }
        if self.phase == Phase::Open && self.board.all_fly() {
            // The common case.
            if cfg.dsack && self.active.is_some() {
                self.undo_twice();
            }
            if moved > 0 {
                self.grow(cfg, now, d);
            }
            return;
        }
        if !cfg.rack_tlp {
            return self.recover_by_count(cfg, now, moved, d, echo);
        }
        self.begin_answer();
        let delayed = self.is_delayed(cfg, echo);
        // RFC 3168 section 6.1.2: the window stays reduced until data beyond `recover` is acknowledged.
        match self.phase {
            Phase::Recovery if self.una >= self.recover => {
                self.undo_recovery(delayed);
                self.end_reduction();
            }
            Phase::Reducing if self.una > self.recover => self.end_reduction(),
            _ => {}
        }
        let lost_before = self.board.lost();
        let mut again = false;
        match self.phase {
            Phase::Recovery => {
                if moved > 0 && self.undo_partial(delayed) && self.phase == Phase::Recovery {
                    return self.pace(cfg, d.bytes, true);
                }
                if self.phase == Phase::Recovery && self.undo_twice() {
                    self.phase = Phase::Open;
                }
                self.judge(cfg, now);
            }
            Phase::Loss => {
                self.judge_timeout(moved, d, delayed);
                again = self.judge(cfg, now);
            }
            Phase::Open | Phase::Reducing => {
                if self.phase == Phase::Open {
                    self.undo_twice();
                }
                self.judge(cfg, now);
            }
        }
        let missing = self.board.missing() > 0;
        match self.phase {
            Phase::Open | Phase::Reducing if missing => self.enter_recovery(cfg, now, d.bytes),
            // A retransmission after the time-out was lost again.
            Phase::Loss if again => self.enter_recovery(cfg, now, d.bytes),
            Phase::Open | Phase::Loss if moved > 0 => {
                self.end_pacing();
                self.grow(cfg, now, d);
            }
            Phase::Open => self.end_pacing(),
            Phase::Recovery | Phase::Reducing if d.bytes > 0 => {
                let safe = moved > 0 && self.board.lost() <= lost_before;
                self.pace(cfg, d.bytes, safe);
            }
            _ => {}
        }
    }

    /// Loss recovery by segment count (RFC 6675 section 5). A lost retransmission is not detected here, and it starts
    /// no further recovery after this one.
    fn recover_by_count(&mut self, cfg: &Config, now: Time, moved: u64, d: &Delivered, echo: u32) {
        self.begin_answer();
        let delayed = self.is_delayed(cfg, echo);
        let lost_before = self.board.lost();
        self.judge(cfg, now);
        let lost = self.board.lost() > 0;
        if self.phase == Phase::Reducing && self.una > self.recover {
            self.end_reduction();
        }
        let over = matches!(self.phase, Phase::Recovery | Phase::Loss) && self.una >= self.recover;
        if over || self.phase == Phase::Loss {
            self.judge_timeout_or_recovery(moved, d, delayed);
        } else if self.phase != Phase::Reducing && self.undo_twice() {
            self.phase = Phase::Open;
        }
        match self.phase {
            Phase::Open | Phase::Reducing if lost && self.board.lost() > 0 => {
                self.enter_recovery(cfg, now, d.bytes);
            }
            Phase::Open if over => {}
            Phase::Open | Phase::Loss if moved > 0 => self.grow(cfg, now, d),
            Phase::Recovery | Phase::Reducing if d.bytes > 0 => {
                let safe = moved > 0 && self.board.lost() <= lost_before;
                self.pace(cfg, d.bytes, safe);
            }
            _ => {}
        }
    }

    fn judge_timeout_or_recovery(&mut self, moved: u64, d: &Delivered, delayed: bool) {
        if self.phase == Phase::Loss {
            self.judge_timeout(moved, d, delayed);
        } else {
            self.undo_recovery(delayed);
            self.end_reduction();
        }
    }

    /// Applies the loss rules. Returns whether a retransmission was lost.
    fn judge(&mut self, cfg: &Config, now: Time) -> bool {
        if self.board.sacked_count() == 0 && self.phase == Phase::Open && self.board.missing() == 0
        {
            return false;
        }
        if cfg.rack_tlp {
            return self.rack_judge(cfg, now);
        }
        self.board.judge_by_count(cfg.dup_threshold);
        false
    }

    /// Completes the current reduction of the window.
    fn end_reduction(&mut self) {
        let stands = self.phase == Phase::Reducing || self.is_undoable();
        if stands && !self.paced {
            self.window.cwnd = self.window.ssthresh;
        }
        self.phase = Phase::Open;
        self.end_pacing();
    }

    fn enter_recovery(&mut self, cfg: &Config, now: Time, delivered: u64) {
        // ECN marks already reduced the window; a loss does not reduce it again.
        let reduced = self.phase == Phase::Reducing;
        self.begin_undo(!reduced);
        self.phase = Phase::Recovery;
        self.rare().count.recoveries += 1;
        if reduced {
            return self.pace(cfg, delivered, false);
        }
        self.begin_reduction(cfg, now, delivered);
        if self.timer != Timer::Reorder {
            self.arm(Timer::Rto, now + self.rto(cfg));
        }
    }

    /// Starts to reduce the window to a new threshold.
    pub(super) fn begin_reduction(&mut self, cfg: &Config, now: Time, delivered: u64) {
        self.reduce(cfg, now);
        self.recover = self.nxt;
        self.cwr |= cfg.ecn;
        let begins = Some(self.in_flight());
        if self.window.bbr_recovery(begins, cfg.mss()) {
            self.force = self.board.lost() > 0;
        } else if cfg.prr && cfg.sack {
            // RFC 9937 section 6: bytes in the network just before this acknowledgement.
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
    }

    /// RFC 9937 section 6: moves the window towards the threshold in proportion to the delivered data.
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

    /// Counts `bytes` of sequence space as sent.
    #[inline]
    pub(super) fn note_sent(&mut self, bytes: u64) {
        if let Some(Episode::Recovery(p)) = self.episode() {
            p.out += bytes;
        }
    }

    /// Ends the PRR state of fast recovery.
    fn end_pacing(&mut self) {
        if let Some(Episode::Recovery(_)) = self.episode() {
            self.active().episode = None;
        }
    }

    /// Sets the slow-start threshold after a loss.
    pub(super) fn reduce(&mut self, cfg: &Config, now: Time) {
        let base = match cfg.loss_base {
            LossBase::Window => self.window.cwnd.min(cfg.window_cap()),
            LossBase::Flight => self.outstanding() as f64,
        };
        let srtt = self.rtt.smoothed().unwrap_or(Dur::ZERO);
        self.window.on_loss(cfg, now, srtt, base);
    }

    /// Handles the expiry of the timer.
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
                if cfg.quic && self.timeouts < PROBES {
                    return self.probe_once_more(cfg, now).map(Expired::Send);
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
                let before = self.board.lost();
                self.rack_judge(cfg, now);
                if self.phase != Phase::Recovery && self.board.lost() > before {
                    self.begin_answer();
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
                // A segment with an old sequence number makes the peer answer; Linux probes the same way
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

    /// Handles an RTO: Linux `tcp_enter_loss`.
    fn retransmission_timeout(&mut self, cfg: &Config, now: Time) {
        let first = self.timeouts == 0;
        let open = matches!(self.phase, Phase::Open | Phase::Reducing);
        // RFC 5681 section 3.1: the threshold stays when the same segment times out again. With SACK, a window
        // already reduced in this recovery is not reduced again. Without SACK it is, as in RFC 5681 and ns-2.
        let reduces = match self.phase {
            Phase::Open => true,
            Phase::Loss => first,
            Phase::Recovery => !cfg.sack,
            Phase::Reducing => false,
        } || self.una >= self.recover;
        self.rare().count.rtos += 1;
        self.timeouts += 1;
        let rack = self.active.as_ref().map_or_else(Rack::default, |a| a.rack);
        let recent = |sent: Time| cfg.rack_tlp && sent + rack.rtt > now;
        if cfg.sack && reduces {
            self.begin_undo(true);
        }
        self.board.lose_all(recent);
        if reduces {
            self.reduce(cfg, now);
        }
        self.window.on_timeout();
        self.index_or_delay = 0; // see `delay_min`
        self.window.cwnd = self.in_flight() as f64 + f64::from(cfg.mss());
        self.minded = cfg.hystart && cfg.algorithm == Algorithm::Cubic;
        self.cwr |= cfg.ecn;
        self.inflation = 0.0;
        self.dupacks = 0;
        self.force = false;
        self.timed.0 = 0;
        self.rare().probe = Probe::None;
        self.end_pacing();
        self.phase = Phase::Loss;
        self.recover = self.nxt;
        if cfg.sack {
            self.begin_answer();
            self.doubt_timeout(cfg.frto && (open || !first));
        }
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
        // Step 2: an acknowledgement that arrives sooner than the smallest RTT belongs to the original transmission.
        // So does one that echoes an older timestamp (`tcp_skb_spurious_retrans`). QUIC's packet numbers tell this, so
        // no guess by RTT is needed.
        let guessed = !cfg.quic && min.is_some_and(|min| rtt < min);
        if resent && (guessed || d.last_late) {
            return;
        }
        // Nothing is left in flight, and any segment delivered later is also sent later.
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

    /// RFC 8985 section 6.2 step 5, including the timer for segments that are not due yet.
    fn rack_judge(&mut self, cfg: &Config, now: Time) -> bool {
        if self.una == self.nxt {
            return false; // nothing left to examine
        }
        let enough = self.board.sacked_count() >= cfg.dup_threshold;
        let rack = self.active.as_ref().map_or_else(Rack::default, |a| a.rack);
        let reordering_seen = self.rare.as_ref().is_some_and(|r| r.reordering_seen);
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let window = if !reordering_seen && (recovering || enough) {
            Dur::ZERO
        } else {
            let quarter = self.rtt.min().unwrap_or(Dur::ZERO) / 4;
            let wider = quarter * self.reordering_steps();
            wider.min(self.rtt.smoothed().unwrap_or(Dur::ZERO))
        };
        let wait = rack.rtt + window;
        let (waiting, again) = self
            .board
            .judge_by_time(rack.sent, rack.end, |sent| sent + wait <= now);
        if let Some(sent) = waiting {
            let more = if cfg.quic { Dur::ZERO } else { TIMER_MIN };
            self.arm(Timer::Reorder, sent + wait + more);
        } else if self.timer == Timer::Reorder {
            self.rearm(cfg, now);
        }
        again
    }

    /// RFC 8985 section 7.2: the probe time-out, if a probe may be sent.
    pub(super) fn probe_timeout(&self, cfg: &Config) -> Option<Dur> {
        let possible = cfg.rack_tlp
            && cfg.sack
            && !cfg.quic
            && matches!(self.phase, Phase::Open | Phase::Reducing)
            && self.board.sacked_count() == 0
            && self.board.missing() == 0
            && !self.probing();
        let srtt = self.rtt.smoothed().filter(|_| possible)?;
        let alone = self.board.len() == 1;
        let pto = srtt * 2 + if alone { WORST_ACK_DELAY } else { TIMER_MIN };
        // If the RTO would come first, the probe replaces it.
        Some(pto.min(self.rto(cfg)))
    }

    /// RFC 8985 section 7.3: sends new data if the peer's window allows it, else retransmits the last segment.
    fn send_probe(&mut self, cfg: &Config, now: Time) -> Option<Out> {
        self.rare().probe = Probe::New; // no second probe while this one is being sent
        let Some((out, kind)) = self.probe(cfg, now) else {
            self.rare().probe = Probe::None;
            return None;
        };
        let end = self.nxt as u32; // the lower 32 bits
        let rare = self.rare();
        rare.count.probes += 1;
        rare.probe_end = end;
        rare.probe = kind;
        Some(out)
    }

    /// Sends new data if there is any and the peer's window allows it, else the newest data without an acknowledgement
    /// again.
    fn probe(&mut self, cfg: &Config, now: Time) -> Option<(Out, Probe)> {
        let pending = self.end.saturating_sub(self.nxt);
        let len = (pending.min(u64::from(cfg.mss())) as u32).min(self.writes.left());
        let sent = if len > 0 && self.edge.saturating_sub(self.nxt) >= u64::from(len) {
            (self.push(cfg, now, len), Probe::New)
        } else if let Some(r) = self.board.resend_as_is(now, true, true) {
            (self.sent_again(cfg, now, &r), Probe::Resent)
        } else {
            self.deadline = Time::MAX;
            return None;
        };
        self.arm(Timer::Rto, now + self.rto(cfg));
        Some(sent)
    }

    /// Handles QUIC's probe time-out (RFC 9002 section 6.2.4). Congestion control is not involved, and nothing is
    /// declared lost. The acknowledgement shows what was lost before the probe, whatever data it carried; by sequence
    /// numbers, only data at the end shows that.
    fn probe_once_more(&mut self, cfg: &Config, now: Time) -> Option<Out> {
        self.timeouts += 1;
        self.rtt.back_off();
        self.rare().count.probes += 1;
        self.probe(cfg, now).map(|(out, _)| out)
    }

    /// Whether a tail loss probe is unanswered.
    #[inline]
    pub(super) fn probing(&self) -> bool {
        self.rare.as_ref().is_some_and(|r| r.probe != Probe::None)
    }

    /// RFC 8985 section 7.4.2: checks whether the probe repaired a loss. SND.UNA moved by `moved`.
    #[inline]
    pub(super) fn probe_answered(&mut self, cfg: &Config, now: Time, moved: u64, seg: &Segment) {
        if self.probing() {
            self.answer(cfg, now, moved, seg);
        }
    }

    #[inline(never)]
    fn answer(&mut self, cfg: &Config, now: Time, moved: u64, seg: &Segment) {
        let rare = self.rare();
        // A flight never exceeds 2 GB, so 32-bit arithmetic suffices.
        let beyond = (seg.ack as u32).wrapping_sub(rare.probe_end).cast_signed();
        if beyond < 0 {
            return;
        }
        if rare.probe == Probe::New {
            rare.probe = Probe::None;
        } else if beyond > 0 {
            // Later data is acknowledged and no duplicate was reported, so one of the two copies was lost.
            rare.probe = Probe::None;
            if self.phase == Phase::Open {
                self.reduce(cfg, now);
                if !self.paced {
                    self.window.cwnd = self.window.ssthresh;
                }
            }
        } else if moved == 0 && seg.seq_len() == 0 && seg.sacks == 0 {
            rare.probe = Probe::None; // a duplicate ACK: both copies arrived
        }
    }
}

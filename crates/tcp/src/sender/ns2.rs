//! The senders of ns-2's one-way agents, packet for packet: `TcpAgent`, `RenoTcpAgent` and `NewRenoTcpAgent` of
//! ns-2.35 (`tcp/tcp.cc`, `tcp/tcp-reno.cc`, `tcp/tcp-newreno.cc`). The names in backquotes are theirs. Windows are
//! in packets. Packets in flight are numbered from the oldest, so `highest_ack_` is always -1 and `t_seqno_` is
//! [`Sender::index_or_delay`].

use swell_base::{Flags, Segment, Time};

use super::state::{Action, NO_LIMIT, Out, Phase, Sender, Timer};
use crate::config::{Algorithm, Config, IdleRestart, Ns2};
use crate::scoreboard::Record;

impl Sender {
    /// `send_much`: the next packet that may be sent now.
    #[inline(never)]
    pub(super) fn next_packet(&mut self, cfg: &Config, now: Time) -> Option<Out> {
        if self.force {
            self.force = false;
            if let Some(r) = self.board.resend_at(now, 0) {
                return Some(self.packet_again(cfg, now, &r));
            }
        }
        if (self.index_or_delay >= self.packets_allowed(cfg) || self.burst == 0) && !self.extra {
            return None;
        }
        self.extra = false;
        if u64::from(self.index_or_delay) < self.board.len() as u64 {
            // After a time-out all packets are resent, whether they arrived or not (go back N).
            let r = self.board.resend_at(now, self.index_or_delay)?;
            self.index_or_delay += 1;
            self.burst = self.burst.saturating_sub(u8::from(self.burst < NO_LIMIT));
            return Some(self.packet_again(cfg, now, &r));
        }
        let pending = self.end.saturating_sub(self.nxt);
        if pending == 0 && (!self.fin_queued || self.fin_sent) {
            return None;
        }
        let len = pending.min(u64::from(cfg.mss())) as u32; // at most the segment size, a u32
        self.index_or_delay += 1;
        self.burst = self.burst.saturating_sub(u8::from(self.burst < NO_LIMIT));
        Some(self.new_packet(cfg, now, len.min(self.writes.left())))
    }

    /// `output` for a packet that was never sent before.
    #[inline]
    fn new_packet(&mut self, cfg: &Config, now: Time, len: u32) -> Out {
        let idle = self.outstanding() == 0;
        if self.last_sent == Time::MAX
            && let Some(v) = self.window.vegas()
        {
            v.begin(now);
        }
        let out = self.push(cfg, now, len);
        if let Some(v) = self.window.vegas()
            && v.takes_for_resent(self.index_or_delay - 1)
        {
            self.board.mark_newest_resent();
        }
        // Vegas overrides `output`, and its version does not restart a running timer.
        if idle && !self.window.is_vegas() {
            self.arm(Timer::Rto, now + self.rto(cfg));
        }
        out
    }

    fn packet_again(&mut self, cfg: &Config, now: Time, r: &Record) -> Out {
        self.rare().count.resent += 1;
        self.last_sent = now;
        if self.deadline == Time::MAX {
            self.arm(Timer::Rto, now + self.rto(cfg));
        }
        Out {
            seq: r.seq,
            len: r.len,
            fin: r.fin,
            fresh: false,
        }
    }

    /// `window`: number of packets that may be in flight.
    #[inline]
    fn packets_allowed(&self, cfg: &Config) -> u32 {
        // Both terms are non-negative, and ns-2 truncates too; the cast saturates.
        let window = (self.window.cwnd as u32).saturating_add(self.inflation as u32);
        window.min(window_cap(cfg))
    }

    /// Processes an acknowledgement of sent data. Returns how far SND.UNA moved.
    #[inline]
    pub(super) fn packets_acked(&mut self, cfg: &Config, now: Time, seg: &Segment) -> u64 {
        let ns2 = cfg.ns2_sender().unwrap_or(NONE);
        let moved = seg.ack - self.una;
        self.burst = NO_LIMIT;
        if cfg.ecn
            && seg.flags.has(Flags::ECE)
            && (seg.ack > self.recover || self.action == Action::Timeout)
        {
            // `ecn`
            self.recover = self.nxt;
            self.action = Action::Ecn;
            self.window.cwnd = self.slow_down(cfg, ns2).max(1.0);
            self.cwr = true;
            self.rare().count.marks += 1;
        }
        if moved > 0 {
            self.timeouts = 0;
            if self.window.is_vegas() {
                self.vegas_new_ack(cfg, now, seg.ack, ns2);
            } else {
                let marked = cfg.ecn && seg.flags.has(Flags::ECE);
                self.reno_new_ack(cfg, now, seg.ack, marked, ns2);
            }
            self.rest();
        } else if seg.seq_len() == 0 && self.outstanding() > 0 {
            if self.window.is_vegas() {
                self.vegas_dup_ack(cfg, now, ns2);
            } else {
                self.reno_dup_ack(cfg, now, ns2);
            }
        }
        moved
    }

    #[inline]
    fn reno_new_ack(&mut self, cfg: &Config, now: Time, ack: u64, marked: bool, ns2: Ns2) {
        if cfg.algorithm == Algorithm::NewReno
            && self.action == Action::DupAck
            && ack < self.recover
        {
            self.partial_new_ack(cfg, now, ack);
            return;
        }
        if self.action == Action::DupAck {
            self.action = Action::Exited;
        }
        self.phase = Phase::Open;
        self.inflation = 0.0;
        self.partial_acked = false;
        self.new_ack(cfg, now, ack, ns2);
        // `opencwnd`
        if marked {
            return; // no growth while marks arrive
        }
        let w = &mut self.window;
        w.cwnd += if w.cwnd < w.ssthresh {
            1.0
        } else {
            1.0 / w.cwnd
        };
    }

    /// `newack`. Returns the number of acknowledged packets and the last of them.
    #[inline]
    fn new_ack(&mut self, cfg: &Config, now: Time, ack: u64, ns2: Ns2) -> (u32, Option<Record>) {
        let before = self.index_or_delay;
        let (n, last) = self.board.take_acked(ack);
        // `newtimer`. Until `t_seqno_` is updated, it may lie below the acknowledged packets.
        let restart = ns2.timerfix || before >= n || ack < self.nxt;
        if !ns2.timerfix {
            self.new_timer(cfg, now, restart);
        }
        self.dupacks = 0;
        self.una = ack;
        self.index_or_delay = before.saturating_sub(n);
        if self.timed.0 != 0 && ack >= self.timed.0 {
            self.rtt.sample_in_ticks(cfg, self.timed.1, now);
            self.timed.0 = 0;
        }
        if ns2.timerfix {
            self.new_timer(cfg, now, restart);
        }
        (n, last)
    }

    #[inline]
    fn new_timer(&mut self, cfg: &Config, now: Time, restart: bool) {
        if restart {
            self.arm(Timer::Rto, now + self.rto(cfg));
        } else {
            self.deadline = Time::MAX;
        }
    }

    /// `partialnewack_helper` with `newreno_changes1_` and `partial_window_deflation_`.
    fn partial_new_ack(&mut self, cfg: &Config, now: Time, ack: u64) {
        let before = self.index_or_delay;
        let (n, _) = self.board.take_acked(ack);
        if !self.partial_acked {
            self.partial_acked = true;
            self.arm(Timer::Rto, now + self.rto(cfg));
        }
        if self.inflation > f64::from(n) {
            self.inflation -= f64::from(n) - 1.0;
        } else {
            self.window.cwnd = (self.window.cwnd - (f64::from(n) - self.inflation)).max(1.0);
            self.inflation = 1.0;
        }
        self.una = ack;
        self.index_or_delay = before.saturating_sub(n);
        if self.timed.0 != 0 && ack >= self.timed.0 {
            self.timed.0 = 0;
            self.rtt.end_backoff();
        }
        self.force = true;
        self.burst = 2;
    }

    fn reno_dup_ack(&mut self, cfg: &Config, now: Time, ns2: Ns2) {
        self.dupacks = self.dupacks.saturating_add(1);
        let threshold = cfg.dup_threshold.max(1);
        if cfg.algorithm == Algorithm::NewReno {
            self.burst = 2; // `send_much(0, 0, 2)` on duplicates
        }
        if self.dupacks == threshold {
            // `dupack_action` with `bugFix_`: duplicates of data sent before the last reduction do not cause another
            // one. Reno may start recovery again.
            let again = self.action == Action::DupAck && cfg.algorithm == Algorithm::Reno;
            if self.una > self.recover || again {
                self.recover = self.nxt;
                self.action = Action::DupAck;
                self.phase = Phase::Recovery;
                self.rare().count.recoveries += 1;
                self.window.cwnd = self.slow_down(cfg, ns2).max(1.0);
                self.restart_timer(cfg, now);
                self.force = true;
                self.inflation = f64::from(threshold);
            }
        } else if self.dupacks > threshold {
            if self.action == Action::DupAck {
                self.inflation += 1.0;
            }
        } else if cfg.limited_transmit {
            // `send_one`
            let next = f64::from(self.index_or_delay) + 1.0;
            self.extra = next <= f64::from(window_cap(cfg))
                && next <= self.window.cwnd + f64::from(self.dupacks)
                && self.end > self.nxt;
        }
    }

    fn vegas_new_ack(&mut self, cfg: &Config, now: Time, ack: u64, ns2: Ns2) {
        let dupacks = self.dupacks;
        let acked = self.new_ack(cfg, now, ack, ns2);
        let flying = (self.index_or_delay, self.board.at(0).map(|r| r.sent_at));
        self.phase = Phase::Open;
        if self
            .window
            .vegas_new_ack(cfg, now, acked, dupacks, flying, ns2)
        {
            self.dupacks = cfg.dup_threshold;
            self.force = true;
        }
    }

    fn vegas_dup_ack(&mut self, cfg: &Config, now: Time, ns2: Ns2) {
        self.dupacks = self.dupacks.saturating_add(1);
        let threshold = cfg.dup_threshold.max(1);
        let flying = self.index_or_delay;
        let window = (self.window.cwnd as u32).min(window_cap(cfg)); // a cast saturates
        let (Some(v), Some(&oldest)) = (self.window.vegas(), self.board.at(0)) else {
            return;
        };
        if !v.overdue(now, oldest.sent_at) && self.dupacks != threshold {
            if self.dupacks > threshold {
                self.window.cwnd += 1.0;
            }
            return;
        }
        if self.una <= self.recover && self.action == Action::Timeout {
            return; // `bugFix_`
        }
        if let Some(reduced) = v.on_loss(now, (oldest.sent_at, oldest.resent), flying, window) {
            self.window.cwnd = reduced + f64::from(self.dupacks);
            self.rare().count.recoveries += 1;
        }
        self.action = Action::DupAck;
        self.phase = Phase::Recovery;
        self.recover = self.nxt;
        self.rtt.back_off_in_ticks(cfg, ns2);
        self.restart_timer(cfg, now);
        self.force = true;
        if !oldest.resent {
            self.dupacks = threshold;
        }
    }

    /// `slowdown(CLOSE_SSTHRESH_HALF)`: sets the threshold and returns half the window.
    fn slow_down(&mut self, cfg: &Config, ns2: Ns2) -> f64 {
        let half = if ns2.precision_reduce {
            (self.window.cwnd + self.inflation).min(f64::from(window_cap(cfg))) / 2.0
        } else {
            f64::from(self.packets_allowed(cfg) / 2)
        };
        self.window.ssthresh = libm::floor(half).max(2.0);
        half
    }

    /// `reset_rtx_timer(1, 0)`.
    pub(super) fn restart_timer(&mut self, cfg: &Config, now: Time) {
        self.arm(Timer::Rto, now + self.rto(cfg));
        self.timed.0 = 0;
    }

    /// `timeout` with data in flight.
    pub(super) fn packet_timeout(&mut self, cfg: &Config, now: Time) {
        let ns2 = cfg.ns2_sender().unwrap_or(NONE);
        self.rare().count.rtos += 1;
        self.timeouts = self.timeouts.saturating_add(1);
        self.inflation = 0.0;
        self.dupacks = 0;
        self.force = false;
        self.recover = self.nxt;
        self.phase = Phase::Loss;
        self.action = Action::Timeout;
        self.slow_down(cfg, ns2);
        self.burst = NO_LIMIT;
        self.window.cwnd = 1.0;
        if let Some(cwnd) = self.window.vegas().map(|v| v.timeout(now)) {
            self.window.cwnd = cwnd;
        }
        self.rtt.back_off_in_ticks(cfg, ns2);
        self.restart_timer(cfg, now);
        self.index_or_delay = 0;
    }

    /// `timeout` with nothing in flight. The retransmission timer keeps running after the last acknowledgement and
    /// restarts slow start (`slow_start_restart_`, `restart_bugfix_`). ns-2 then sets the timer again, which would
    /// have no further effect here.
    pub(super) fn idle_timeout(&mut self, cfg: &Config) {
        self.deadline = Time::MAX;
        self.recover = self.nxt;
        self.action = Action::Timeout;
        self.inflation = 0.0;
        self.dupacks = 0;
        self.timed.0 = 0;
        self.index_or_delay = 0;
        if cfg.idle_restart == IdleRestart::Off {
            return;
        }
        if self.window.is_vegas() {
            // Vegas overrides `timeout` without this exception.
            let ns2 = cfg.ns2_sender().unwrap_or(NONE);
            self.slow_down(cfg, ns2);
            self.rtt.back_off_in_ticks(cfg, ns2);
            self.window.cwnd = 2.0;
        } else {
            self.window.cwnd = 1.0;
        }
    }
}

/// `window_` in packets.
#[inline]
pub(super) fn window_cap(cfg: &Config) -> u32 {
    cfg.send_window.map_or(u32::MAX, |w| w.max(1))
}

/// Placeholder for the switches. It is never used while ns-2's sender is configured.
const NONE: Ns2 = Ns2 {
    precision_reduce: true,
    rfc2988: true,
    timerfix: true,
    delay_growth: false,
};

//! TCP Vegas (L. Brakmo, L. Peterson, IEEE JSAC 13(8), 1995) as in ns-2.35 (`tcp/tcp-vegas.cc`; names in backquotes
//! are from there). Windows are in packets, times in seconds.

use swell_base::Time;

use crate::config::{Config, Ns2};
use crate::scoreboard::Record;

#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    /// When the first packet was sent (`firstsent_`); the times below are relative to it.
    first_sent: Time,
    /// `v_sa_`, `v_sd_` and `v_timeout_`: the fine-grained RTT estimate and time-out. `heard` is set by the first
    /// acknowledgement.
    heard: bool,
    sa: f64,
    sd: f64,
    timeout: f64,
    base_rtt: f64,
    /// For the current round: `v_sumRTT_`, `v_cntRTT_`, `v_begtime_`, `v_begseq_`.
    rtt_sum: f64,
    rtt_count: u32,
    round_time: f64,
    round_start: u64,
    /// Total packets acknowledged: `last_ack_` + 1.
    acked: u64,
    /// Range of packets that will be treated as retransmitted. ns-2 records transmissions in a ring of `window_`
    /// slots and does not clear them when one acknowledgement passes the end of the ring.
    stale: (u64, u64),
    /// Growth per acknowledgement in this round (`v_incr_`); in slow start it is non-zero in every other round
    /// (`v_inc_flag_`).
    step: f64,
    grow_round: bool,
    /// Number of further acknowledgements after which the age of the next packet is checked (`v_worried_`).
    worried: u32,
    /// The window without inflation (`v_newcwnd_`), and the time of its last reduction.
    new_cwnd: f64,
    reduced_at: f64,
}

impl Default for Vegas {
    fn default() -> Vegas {
        Vegas {
            first_sent: Time::ZERO,
            heard: false,
            sa: 0.0,
            sd: 0.0,
            timeout: 1000.0,
            base_rtt: 1e9,
            rtt_sum: 0.0,
            rtt_count: 0,
            round_time: 0.0,
            round_start: 0,
            acked: 0,
            stale: (0, 0),
            step: 0.0,
            grow_round: true,
            worried: 0,
            new_cwnd: 0.0,
            reduced_at: 0.0,
        }
    }
}

impl Vegas {
    pub(crate) fn begin(&mut self, now: Time) {
        self.first_sent = now;
    }

    /// Whether the packet sent now, after `flying` others, uses a slot that was not cleared.
    pub(crate) fn takes_for_resent(&self, flying: u32) -> bool {
        let packet = self.acked + u64::from(flying);
        self.stale.0 <= packet && packet < self.stale.1
    }

    /// The coarse timer expired. Returns the new window (`v_slowstart_`).
    pub(crate) fn timeout(&mut self, now: Time) -> f64 {
        self.new_cwnd = 0.0;
        self.reduced_at = self.clock(now);
        2.0
    }

    /// `vegastime`
    fn clock(&self, at: Time) -> f64 {
        at.since(self.first_sent).as_secs_f64()
    }

    /// Handles the first acknowledgement.
    fn hear(&mut self, clock: f64) {
        if !self.heard {
            self.heard = true;
            self.base_rtt = clock;
            self.sa = clock * 8.0;
            self.sd = clock;
            self.timeout = (self.sa / 4.0 + self.sd) / 2.0;
        }
    }

    /// Takes the RTT of a packet sent once.
    fn sample(&mut self, rtt: f64) {
        self.rtt_sum += rtt;
        self.rtt_count += 1;
        if rtt <= 0.0 {
            return;
        }
        self.base_rtt = self.base_rtt.min(rtt);
        let n = rtt - self.sa / 8.0;
        self.sa += n;
        self.sd += n.abs() - self.sd / 4.0;
        self.timeout = (self.sa / 4.0 + self.sd) / 2.0;
        self.timeout += self.timeout / 16.0;
    }

    /// Once per RTT, when `next` packets were sent in total: compares the packets in transit with the number that the
    /// window would carry on an empty path.
    fn round(&mut self, cfg: &Config, clock: f64, next: u64, cwnd: &mut f64, ssthresh: &mut f64) {
        let rtt = if self.rtt_count > 0 {
            self.rtt_sum / f64::from(self.rtt_count)
        } else {
            clock - self.round_time
        };
        self.rtt_sum = 0.0;
        self.rtt_count = 0;
        let in_transit = next.saturating_sub(self.round_start) as f64;
        if rtt > 0.0 {
            if rtt < self.base_rtt || in_transit <= 1.0 {
                self.base_rtt = rtt;
            }
            let window = (next + 1).saturating_sub(self.acked) as f64;
            let expected = window / self.base_rtt;
            let actual = in_transit / rtt;
            // Rounded to whole packets, as `int(... + 0.5)` does.
            let queued = libm::trunc((expected - actual) * self.base_rtt + 0.5);
            if *cwnd < *ssthresh {
                self.grow_round = !self.grow_round;
                self.step = 0.0;
                if self.grow_round {
                    if queued > f64::from(cfg.vegas.gamma) {
                        *ssthresh = 2.0;
                        *cwnd = (*cwnd - *cwnd / 8.0).max(2.0);
                    } else {
                        self.step = 1.0;
                    }
                }
            } else if queued > f64::from(cfg.vegas.beta) {
                *cwnd = (*cwnd - 1.0).max(2.0);
                self.step = 0.0;
            } else if queued < f64::from(cfg.vegas.alpha) {
                self.step = 1.0 / *cwnd;
            } else {
                self.step = 0.0;
            }
        }
        self.round_start = next;
        self.round_time = clock;
    }

    /// Processes an acknowledgement of `acked` more packets, `last` being the last of them, after `dupacks`
    /// duplicates. `flying` remain, the oldest sent at `oldest`. Returns whether that one is overdue.
    pub(crate) fn on_new_ack(
        &mut self,
        cfg: &Config,
        now: Time,
        (acked, last): (u32, Option<Record>),
        (dupacks, ns2): (u32, Ns2),
        (flying, oldest): (u32, Option<Time>),
        (cwnd, ssthresh): (&mut f64, &mut f64),
    ) -> bool {
        let clock = self.clock(now);
        self.hear(clock);
        if self.acked == 1 && ns2.delay_growth {
            *cwnd = f64::from(cfg.initial_window.max(1));
        }
        if dupacks > cfg.dup_threshold && *cwnd > self.new_cwnd {
            *cwnd = self.new_cwnd; // no longer inflated
            *ssthresh = 2.0;
        }
        let ring = u64::from(cfg.send_window.unwrap_or(u32::MAX).max(1));
        let before = self.acked;
        self.acked += u64::from(acked);
        if acked > 0 && before % ring > (self.acked - 1) % ring {
            self.stale = (before + ring, self.acked + ring);
        }
        if self.acked > self.round_start {
            let next = self.acked + u64::from(flying);
            self.round(cfg, clock, next, cwnd, ssthresh);
        }
        if self.step == 1.0 && *cwnd >= *ssthresh {
            self.step = 0.0;
        }
        // Only a fully used window grows.
        if self.step > 0.0 && *cwnd - (f64::from(flying) + 1.0) <= 2.0 {
            *cwnd += self.step;
        }
        if let Some(r) = last
            && !r.resent
            && r.sent_at > self.first_sent
        {
            self.sample(now.since(r.sent_at).as_secs_f64());
        }
        if self.worried == 0 {
            return false;
        }
        let overdue = oldest.is_some_and(|sent| self.overdue(now, sent));
        self.worried = if overdue { self.worried - 1 } else { 0 };
        overdue
    }

    /// Whether a packet sent at `sent` is older than the fine-grained time-out.
    pub(crate) fn overdue(&self, now: Time, sent: Time) -> bool {
        now.since(sent).as_secs_f64() >= self.timeout
    }

    /// The oldest packet, last sent at `sent`, is about to be retransmitted; `resent` says whether it was
    /// retransmitted before. Returns the new window if it is to be reduced: only for packets sent since the last
    /// reduction.
    pub(crate) fn on_loss(
        &mut self,
        now: Time,
        (sent, resent): (Time, bool),
        flying: u32,
        window: u32,
    ) -> Option<f64> {
        let clock = self.clock(now);
        self.hear(clock);
        self.worried = flying.saturating_add(1).min(2);
        if resent {
            self.timeout *= 2.0;
        } else {
            self.timeout += self.timeout / 8.0;
        }
        if self.reduced_at >= self.clock(sent) {
            return None;
        }
        let window = if window <= 3 {
            2
        } else if resent {
            window / 2
        } else {
            window - window / 4
        };
        self.new_cwnd = f64::from(window);
        self.reduced_at = clock;
        Some(self.new_cwnd)
    }
}

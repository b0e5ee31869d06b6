//! BBR v1 (draft-cardwell-iccrg-bbr-congestion-control-00; N. Cardwell et al., CACM 60(2), 2017) with the
//! delivery rate samples of draft-cheng-iccrg-delivery-rate-estimation-00. Section numbers are the first
//! draft's; constants that differ from it are those of Linux's `tcp_bbr.c`, and named there.

use std::collections::VecDeque;

use swell_base::{Dur, Time};

use super::Acked;
use crate::config::Config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    /// Until the time, once the window is down.
    ProbeRtt(Option<Time>),
}

/// What was known when a segment was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    end: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    app_limited: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    state: State,
    /// In the order of sending.
    sent: VecDeque<Sent>,
    /// Bytes delivered in all, when the last were, and when the segment was sent that began the present
    /// send interval.
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// The application was the limit up to this count of delivered bytes; 0: it is not.
    limited_until: u64,
    /// Windowed maximum of (round, bytes per second): best, and best of what came after each.
    btlbw: [(u32, f64); 3],
    rtprop: Dur,
    rtprop_at: Time,
    round: u32,
    round_end: u64,
    /// Full pipe: the bandwidth that did not grow, and for how many rounds.
    full_bw: f64,
    full_rounds: u8,
    filled: bool,
    phase: usize,
    phase_at: Time,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// The window before recovery or PROBE_RTT.
    prior: f64,
    recovering: bool,
    /// Packet conservation until the first round of recovery is over.
    conserve_until: u64,
    idle_restart: bool,
    pub(crate) next_send: Time,
    /// The sender waits for `next_send`.
    pub(crate) waiting: bool,
}

/// 2/ln 2: doubles the rate each round.
const HIGH_GAIN: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const BTLBW_ROUNDS: u32 = 10;
const RTPROP_FILTER: Dur = Dur::from_secs(10);
const PROBE_RTT: Dur = Dur::from_millis(200);
/// Segments in PROBE_RTT and at least.
const MIN_CWND: f64 = 4.0;
/// Linux paces one percent below (`bbr_pacing_margin_percent`).
const MARGIN: f64 = 0.99;

impl Default for Bbr {
    fn default() -> Bbr {
        Bbr {
            state: State::Startup,
            sent: VecDeque::new(),
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            limited_until: 0,
            btlbw: [(0, 0.0); 3],
            rtprop: Dur::MAX,
            rtprop_at: Time::ZERO,
            round: 0,
            round_end: 0,
            full_bw: 0.0,
            full_rounds: 0,
            filled: false,
            phase: 0,
            phase_at: Time::ZERO,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            prior: 0.0,
            recovering: false,
            conserve_until: 0,
            idle_restart: false,
            next_send: Time::ZERO,
            waiting: false,
        }
    }
}

impl Bbr {
    /// A segment up to `end` of `size` bytes on the wire leaves, with `flight` bytes in flight before it.
    pub(crate) fn on_send(
        &mut self,
        now: Time,
        end: u64,
        size: u32,
        flight: u64,
        srtt: Dur,
        cwnd: f64,
    ) {
        if flight == 0 {
            self.first_sent = now;
            self.delivered_at = now;
            self.idle_restart = self.limited_until > 0; // section 4.4.4
        }
        self.sent.push_back(Sent {
            at: now,
            end,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.limited_until > 0,
        });
        let rate = self.pacing_rate(srtt, cwnd);
        let gap = Dur::from_secs_f64(f64::from(size) / rate.max(1.0));
        self.next_send = self.next_send.max(now) + gap;
        self.waiting = false;
    }

    /// Bytes per second.
    fn pacing_rate(&self, srtt: Dur, cwnd: f64) -> f64 {
        let bw = self.bw();
        if bw > 0.0 {
            let gain = if self.idle_restart && self.state == State::ProbeBw {
                1.0
            } else {
                self.pacing_gain
            };
            return gain * bw * MARGIN;
        }
        // Section 4.2.1: the initial window over the first round trip, or a millisecond before that.
        let rtt = if srtt == Dur::ZERO {
            Dur::from_millis(1)
        } else {
            srtt
        };
        HIGH_GAIN * cwnd / rtt.as_secs_f64()
    }

    /// There was nothing to send and room to send it.
    pub(crate) fn app_limited(&mut self, flight: u64) {
        self.limited_until = (self.delivered + flight).max(1);
    }

    fn bw(&self) -> f64 {
        self.btlbw[0].1
    }

    /// Bandwidth-delay product in bytes, times `gain`.
    fn bdp(&self, gain: f64) -> f64 {
        gain * self.bw() * self.rtprop.as_secs_f64()
    }

    pub(crate) fn on_ack(
        &mut self,
        cfg: &Config,
        a: &Acked,
        last_sent: (Time, u64),
        cwnd: &mut f64,
    ) {
        let mss = f64::from(cfg.mss());
        self.delivered += a.bytes;
        self.delivered_at = a.now;
        if self.limited_until > 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let mut round_start = false;
        if let Some(s) = self.sample_of(last_sent) {
            self.first_sent = s.at;
            if s.delivered >= self.round_end {
                self.round_end = self.delivered;
                self.round += 1;
                round_start = true;
            }
            let interval = (s.at.since(s.first_sent)).max(a.now.since(s.delivered_at));
            // Rates over less than the smallest round trip are an artefact of compressed acknowledgements.
            if interval >= self.rtprop.min(a.min_rtt) && interval > Dur::ZERO {
                let rate = (self.delivered - s.delivered) as f64 / interval.as_secs_f64();
                if rate >= self.bw() || !s.app_limited {
                    self.max_filter(rate);
                }
                self.check_full_pipe(round_start, s.app_limited);
            }
        }
        self.advance(a, mss);
        self.check_rtprop(a, mss, cwnd);
        self.set_cwnd(cfg, a, mss, cwnd);
        if a.bytes > 0 {
            self.idle_restart = false;
        }
    }

    fn sample_of(&mut self, (at, end): (Time, u64)) -> Option<Sent> {
        while let Some(&s) = self.sent.front() {
            if (s.at, s.end) == (at, end) {
                self.sent.pop_front();
                return Some(s);
            }
            if s.at > at {
                return None;
            }
            self.sent.pop_front();
        }
        None
    }

    /// Kathleen Nichols' windowed maximum, as Linux `lib/win_minmax.c`.
    fn max_filter(&mut self, rate: f64) {
        let new = (self.round, rate);
        let b = &mut self.btlbw;
        if rate >= b[0].1 || new.0 - b[2].0 > BTLBW_ROUNDS {
            *b = [new; 3];
            return;
        }
        if rate >= b[1].1 {
            b[1] = new;
            b[2] = new;
        } else if rate >= b[2].1 {
            b[2] = new;
        }
        let age = new.0 - b[0].0;
        if age > BTLBW_ROUNDS {
            *b = [b[1], b[2], new];
            if new.0 - b[0].0 > BTLBW_ROUNDS {
                *b = [b[1], b[2], new];
            }
        } else if b[1].0 == b[0].0 && age > BTLBW_ROUNDS / 4 {
            b[1] = new;
            b[2] = new;
        } else if b[2].0 == b[1].0 && age > BTLBW_ROUNDS / 2 {
            b[2] = new;
        }
    }

    /// Section 4.3.2.2: three rounds without a quarter more.
    fn check_full_pipe(&mut self, round_start: bool, app_limited: bool) {
        if self.filled || !round_start || app_limited {
            return;
        }
        if self.bw() >= self.full_bw * 1.25 {
            self.full_bw = self.bw();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= 3;
    }

    /// Sections 4.3.3 and 4.3.4.
    fn advance(&mut self, a: &Acked, mss: f64) {
        let flight = a.flight as f64;
        if self.state == State::Startup && self.filled {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        if self.state == State::Drain && flight <= self.bdp(1.0) + 3.0 * mss {
            self.probe_bw(a.now);
        }
        if self.state == State::ProbeBw {
            let elapsed = a.now.since(self.phase_at) > self.rtprop;
            let next = if self.pacing_gain > 1.0 {
                // Long enough to fill the pipe to the gain, unless losses say that it is shallow.
                elapsed
                    && (self.recovering || flight + a.bytes as f64 >= self.bdp(self.pacing_gain))
            } else if self.pacing_gain < 1.0 {
                elapsed || flight + a.bytes as f64 <= self.bdp(1.0)
            } else {
                elapsed
            };
            if next {
                self.phase = (self.phase + 1) % CYCLE.len();
                self.phase_at = a.now;
                self.pacing_gain = CYCLE[self.phase];
            }
        }
    }

    /// The phase is drawn among all but the draining one; here from the clock, which is as good.
    fn probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw;
        self.cwnd_gain = 2.0;
        let drawn = (now.as_nanos() / 1000 % 7) as usize; // 0 to 6
        self.phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.phase_at = now;
        self.pacing_gain = CYCLE[self.phase];
    }

    /// Section 4.3.5.
    fn check_rtprop(&mut self, a: &Acked, mss: f64, cwnd: &mut f64) {
        let expired = self.rtprop != Dur::MAX && a.now > self.rtprop_at + RTPROP_FILTER;
        if let Some(rtt) = a.rtt
            && (rtt <= self.rtprop || expired)
        {
            self.rtprop = rtt;
            self.rtprop_at = a.now;
        }
        if expired && !self.idle_restart && !matches!(self.state, State::ProbeRtt(_)) {
            self.state = State::ProbeRtt(None);
            self.pacing_gain = 1.0;
            self.cwnd_gain = 1.0;
            self.prior = self.prior.max(*cwnd);
        }
        if let State::ProbeRtt(done) = self.state {
            match done {
                None if a.flight as f64 <= MIN_CWND * mss => {
                    let stay = PROBE_RTT.max(self.rtprop);
                    self.state = State::ProbeRtt(Some(a.now + stay));
                }
                Some(at) if a.now > at => {
                    self.rtprop_at = a.now;
                    *cwnd = cwnd.max(self.prior);
                    self.prior = 0.0;
                    if self.filled {
                        self.probe_bw(a.now);
                    } else {
                        self.state = State::Startup;
                        self.pacing_gain = HIGH_GAIN;
                        self.cwnd_gain = HIGH_GAIN;
                    }
                }
                _ => {}
            }
        }
    }

    /// Section 4.2.3.
    fn set_cwnd(&mut self, cfg: &Config, a: &Acked, mss: f64, cwnd: &mut f64) {
        let bytes = a.bytes as f64;
        if self.recovering && a.una < self.conserve_until {
            *cwnd = cwnd.max(a.flight as f64 + bytes);
        } else {
            // Room for what aggregation holds back: three segments (`bbr_quantization_budget`).
            let target = if self.rtprop == Dur::MAX || self.bw() == 0.0 {
                cfg.initial_cwnd()
            } else {
                self.bdp(self.cwnd_gain) + 3.0 * mss
            };
            if self.filled {
                *cwnd = (*cwnd + bytes).min(target);
            } else if *cwnd < target || (self.delivered as f64) < cfg.initial_cwnd() {
                *cwnd += bytes;
            }
        }
        *cwnd = cwnd.max(MIN_CWND * mss);
        if matches!(self.state, State::ProbeRtt(_)) {
            *cwnd = cwnd.min(MIN_CWND * mss);
        }
    }

    /// Recovery begins with `flight` bytes thought to be in flight; it is over when `until` is
    /// acknowledged.
    pub(crate) fn begin_recovery(&mut self, cwnd: &mut f64, flight: f64, mss: f64, until: u64) {
        if !self.recovering {
            self.prior = self.prior.max(*cwnd);
        }
        self.recovering = true;
        self.conserve_until = until;
        *cwnd = (flight + mss).max(mss);
    }

    /// A loss was none: the path may be faster than was thought (`bbr_undo_cwnd`).
    pub(crate) fn undo(&mut self) {
        self.full_bw = 0.0;
        self.full_rounds = 0;
    }

    pub(crate) fn end_recovery(&mut self, cwnd: &mut f64) {
        if std::mem::take(&mut self.recovering) {
            *cwnd = cwnd.max(self.prior);
            if !matches!(self.state, State::ProbeRtt(_)) {
                self.prior = 0.0;
            }
        }
    }
}

//! BBR v1 (draft-cardwell-iccrg-bbr-congestion-control-00; N. Cardwell et al., CACM 60(2), 2017) with the delivery
//! rate samples of draft-cheng-iccrg-delivery-rate-estimation-00. Section numbers refer to the first draft. Constants
//! that differ from it are those of Linux's `tcp_bbr.c` and are named as such.

use std::collections::VecDeque;

use swell_base::{Dur, Time};

use super::acked::Acked;
use crate::config::Config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    /// In PROBE_RTT until this time, which is set once the window is small enough.
    ProbeRtt(Option<Time>),
}

/// State at the time when a segment was sent.
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
    /// In sending order.
    sent: VecDeque<Sent>,
    /// Total bytes delivered, the time of the latest delivery, and the send time of the segment that started the
    /// current send interval.
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// The flow is application-limited until this many bytes are delivered; 0 if it is not.
    limited_until: u64,
    /// Windowed maximum of (round, bytes per second): the best sample, and the best after each earlier entry.
    btlbw: [(u32, f64); 3],
    /// The smallest RTT of the last ten seconds or more; `Dur::MAX` before the first.
    pub(crate) rtprop: Dur,
    rtprop_at: Time,
    round: u32,
    round_end: u64,
    /// Full-pipe estimation: the bandwidth that did not grow, and for how many rounds.
    full_bw: f64,
    full_rounds: u8,
    filled: bool,
    phase: usize,
    phase_at: Time,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// The window before recovery or PROBE_RTT, to be restored afterwards.
    prior: f64,
    recovering: bool,
    /// Packet conservation during the first round of recovery.
    conserving: bool,
    idle_restart: bool,
    /// Pacing rate in payload bytes per second, zero before the first segment (`sk_pacing_rate`).
    rate: f64,
    /// The initial rate comes from an RTT sample (`has_seen_rtt`).
    seen_rtt: bool,
    next_send: Time,
    /// The sender is waiting for `next_send`.
    pub(crate) waiting: bool,
    /// Remaining segments of the current burst, when the burst was sent, and how much of the timer's lateness is
    /// still to be made up.
    burst: u32,
    burst_at: Time,
    credit: Dur,
    /// Number of segments sent, counted up to [`UNPACED`].
    sent_first: u8,
    /// ACK aggregation: start of the current interval, bytes acknowledged since, and the largest excess over the
    /// bandwidth in the current window of rounds and in the previous one.
    span: Time,
    span_acked: f64,
    extra: [f64; 2],
    extra_rounds: u8,
}

/// 2/ln 2: doubles the rate in each round.
const HIGH_GAIN: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const BTLBW_ROUNDS: u32 = 10;
const RTPROP_FILTER: Dur = Dur::from_secs(10);
const PROBE_RTT: Dur = Dur::from_millis(200);
/// Window in PROBE_RTT and minimum window, in segments.
const MIN_CWND: f64 = 4.0;
/// Linux paces one per cent below the bandwidth (`bbr_pacing_margin_percent`).
const MARGIN: f64 = 0.99;
/// Number of first segments that Linux does not pace (`tcp_update_skb_after_send`).
const UNPACED: u8 = 10;
/// Below this rate, in bytes per second, segments leave one by one; above it, at least in pairs (`bbr_min_tso_rate`).
const SINGLE: f64 = 150_000.0;
/// A burst for segmentation offload holds the data of this fraction of a second (`sk_pacing_shift`), limited to this
/// number of bytes.
const OFFLOAD: f64 = 1.0 / 1024.0;
const OFFLOAD_MOST: f64 = 65_536.0;
/// Rounds per window of ACK aggregation, and the maximum time's worth of data that the excess may add
/// (`bbr_extra_acked_win_rtts`, `bbr_extra_acked_max_us`).
const EXTRA_ROUNDS: u8 = 5;
const EXTRA_MOST: f64 = 0.1;

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
            conserving: false,
            idle_restart: false,
            rate: 0.0,
            seen_rtt: false,
            next_send: Time::ZERO,
            waiting: false,
            burst: 0,
            burst_at: Time::MAX,
            credit: Dur::ZERO,
            sent_first: 0,
            span: Time::ZERO,
            span_acked: 0.0,
            extra: [0.0; 2],
            extra_rounds: 0,
        }
    }
}

impl Bbr {
    /// The connection opens, with an RTT from its handshake (`bbr_init`).
    pub(crate) fn begin(&mut self, now: Time, rtt: Dur) {
        self.rtprop = rtt;
        self.rtprop_at = now;
    }

    /// Notes that a segment of `len` bytes ending at `end` is sent, with `flight` bytes in flight before it.
    pub(crate) fn on_send(
        &mut self,
        cfg: &Config,
        now: Time,
        (end, len): (u64, u32),
        flight: u64,
        srtt: Dur,
        cwnd: f64,
    ) {
        if flight == 0 {
            self.first_sent = now;
            self.delivered_at = now;
            self.idle_restart = self.limited_until > 0; // section 4.4.4
            if self.idle_restart {
                self.span = now;
                self.span_acked = 0.0;
                if self.state == State::ProbeBw {
                    self.rate = self.bw() * MARGIN;
                }
            }
        }
        self.sent.push_back(Sent {
            at: now,
            end,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.limited_until > 0,
        });
        if self.rate == 0.0 {
            self.first_rate(cwnd, srtt);
        }
        if self.burst == 0 || self.burst_at != now {
            // A new burst. Lateness of the timer is made up for, by at most half a gap per segment.
            self.burst = self.offload(cfg);
            self.burst_at = now;
            self.credit = now.since(self.next_send.min(now));
            self.next_send = self.next_send.max(now);
        }
        self.burst -= 1;
        self.waiting = false;
        self.sent_first = (self.sent_first + 1).min(UNPACED);
        if self.sent_first == UNPACED {
            // Neither rate nor length includes headers, as in Linux.
            let gap = Dur::from_secs_f64(f64::from(len) / self.rate.max(1.0));
            let made_up = self.credit.min(gap / 2);
            self.credit -= made_up;
            self.next_send += gap - made_up;
        }
    }

    /// Whether pacing delays the next segment.
    pub(crate) fn holds(&self, now: Time) -> bool {
        now < self.next_send && (self.burst == 0 || self.burst_at != now)
    }

    /// When the next segment may be sent.
    pub(crate) fn next_send(&self) -> Time {
        self.next_send
    }

    /// Segments per burst (`bbr_tso_segs_goal`).
    fn offload_goal(&self, cfg: &Config) -> f64 {
        let least = if self.rate < SINGLE { 1.0 } else { 2.0 };
        let bytes = (self.rate * OFFLOAD).min(OFFLOAD_MOST);
        (bytes / f64::from(cfg.mss())).floor().clamp(least, 127.0)
    }

    /// Segments per burst, plus an allowance for short RTTs (`tcp_tso_autosize`).
    fn offload(&self, cfg: &Config) -> u32 {
        let halvings = self.rtprop.as_nanos() / 512_000;
        let more = if halvings < 32 {
            OFFLOAD_MOST / (1u64 << halvings) as f64
        } else {
            0.0
        };
        let bytes = (self.rate * OFFLOAD + more).min(OFFLOAD_MOST);
        let segments = (bytes / f64::from(cfg.mss())).floor();
        segments.max(self.offload_goal(cfg)) as u32
    }

    /// Section 4.2.1: the initial rate is the window per RTT, or per millisecond before the first RTT sample
    /// (`bbr_init_pacing_rate_from_rtt`).
    fn first_rate(&mut self, cwnd: f64, srtt: Dur) {
        self.seen_rtt = srtt > Dur::ZERO;
        let rtt = if self.seen_rtt {
            srtt
        } else {
            Dur::from_millis(1)
        };
        self.rate = HIGH_GAIN * cwnd * MARGIN / rtt.as_secs_f64();
    }

    /// Section 4.2.1. Until the pipe is known to be full, the rate does not fall, except at the first RTT sample.
    fn set_rate(&mut self, cwnd: f64, srtt: Dur) {
        if !self.seen_rtt && srtt > Dur::ZERO {
            self.first_rate(cwnd, srtt);
        }
        let rate = self.pacing_gain * self.bw() * MARGIN;
        if self.filled || rate > self.rate {
            self.rate = rate;
        }
    }

    /// Notes that the application was the limit: there was no data although the window allowed some. PROBE_RTT limits
    /// the flow, too.
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
                self.conserving = false;
                round_start = true;
            }
            let interval = (s.at.since(s.first_sent)).max(a.now.since(s.delivered_at));
            // Rates over less than the smallest RTT are an artefact of ACK compression.
            if interval >= self.rtprop.min(a.min_rtt) && interval > Dur::ZERO {
                let rate = (self.delivered - s.delivered) as f64 / interval.as_secs_f64();
                if rate >= self.bw() || !s.app_limited {
                    self.max_filter(rate);
                }
                self.check_full_pipe(round_start, s.app_limited);
            }
        }
        self.aggregate(a, round_start, *cwnd);
        self.advance(cfg, a);
        self.check_rtprop(a, mss, cwnd);
        self.set_rate(*cwnd, a.srtt);
        self.set_cwnd(cfg, a, mss, cwnd);
        if a.bytes > 0 {
            self.idle_restart = false;
        }
    }

    /// Measures ACK aggregation: how much more was acknowledged than the bandwidth explains
    /// (`bbr_update_ack_aggregation`).
    fn aggregate(&mut self, a: &Acked, round_start: bool, cwnd: f64) {
        if a.bytes == 0 || self.bw() == 0.0 {
            return;
        }
        if round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= EXTRA_ROUNDS {
                self.extra_rounds = 0;
                self.extra = [0.0, self.extra[0]];
            }
        }
        let mut expected = self.bw() * a.now.since(self.span).as_secs_f64();
        if self.span_acked <= expected {
            self.span_acked = 0.0;
            self.span = a.now;
            expected = 0.0;
        }
        self.span_acked += a.bytes as f64;
        let extra = (self.span_acked - expected).min(cwnd);
        self.extra[0] = self.extra[0].max(extra);
    }

    /// Target for the data in flight (`bbr_inflight`): `product` plus three bursts for the queues and offloads of the
    /// hosts (`bbr_quantization_budget`).
    fn inflight(&self, cfg: &Config, product: f64) -> f64 {
        let mss = f64::from(cfg.mss());
        let mut segments = (product / mss).ceil() + 3.0 * self.offload_goal(cfg);
        segments += segments % 2.0; // an even number reduces delayed acknowledgements
        if self.state == State::ProbeBw && self.phase == 0 {
            segments += 2.0;
        }
        segments * mss
    }

    /// Estimates how much of `flight` is still in the network when the next segment leaves
    /// (`bbr_packets_in_net_at_edt`).
    fn at_departure(&self, cfg: &Config, now: Time, flight: f64) -> f64 {
        let mut then = flight;
        if self.pacing_gain > 1.0 {
            then += self.offload_goal(cfg) * f64::from(cfg.mss());
        }
        let wait = self.next_send.since(now.min(self.next_send));
        (then - self.bw() * wait.as_secs_f64()).max(0.0)
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

    /// Kathleen Nichols' windowed maximum, as in Linux `lib/win_minmax.c`.
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

    /// Section 4.3.2.2: the pipe is full after three rounds in which the bandwidth grew by less than a quarter.
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

    /// State transitions: sections 4.3.3 and 4.3.4.
    fn advance(&mut self, cfg: &Config, a: &Acked) {
        if self.state == State::ProbeBw {
            let elapsed = a.now.since(self.phase_at) > self.rtprop;
            let before = self.at_departure(cfg, a.now, a.flight as f64 + a.bytes as f64);
            let next = if self.pacing_gain > 1.0 {
                // Probe long enough to fill the pipe up to the gain, unless losses show that the buffer is shallow.
                let full = self.inflight(cfg, self.bdp(self.pacing_gain));
                elapsed && (a.lost > 0 || before >= full)
            } else if self.pacing_gain < 1.0 {
                elapsed || before <= self.inflight(cfg, self.bdp(1.0))
            } else {
                elapsed
            };
            if next {
                self.phase = (self.phase + 1) % CYCLE.len();
                self.phase_at = a.now;
                self.pacing_gain = CYCLE[self.phase];
            }
        }
        if self.state == State::Startup && self.filled {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        if self.state == State::Drain {
            let now = self.at_departure(cfg, a.now, a.flight as f64);
            if now <= self.inflight(cfg, self.bdp(1.0)) {
                self.probe_bw(a.now);
            }
        }
    }

    /// Enters PROBE_BW in any phase but the draining one. The draft draws the phase at random; here it comes from the
    /// clock.
    fn probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw;
        self.cwnd_gain = 2.0;
        let drawn = (now.as_nanos() / 1000 % 7) as usize; // 0 to 6
        self.phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.phase_at = now;
        self.pacing_gain = CYCLE[self.phase];
    }

    /// RTT probing: section 4.3.5.
    fn check_rtprop(&mut self, a: &Acked, mss: f64, cwnd: &mut f64) {
        let expired = self.rtprop != Dur::MAX && a.now > self.rtprop_at + RTPROP_FILTER;
        // An equal RTT does not postpone PROBE_RTT (Linux since 5.10).
        if let Some(rtt) = a.rtt
            && (rtt < self.rtprop || expired && !a.delayed)
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
            // Rates of this time say nothing about the path.
            self.app_limited(a.flight);
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

    /// Sets the window: section 4.2.3.
    fn set_cwnd(&mut self, cfg: &Config, a: &Acked, mss: f64, cwnd: &mut f64) {
        let bytes = a.bytes as f64;
        if bytes > 0.0 {
            *cwnd = (*cwnd - a.lost as f64).max(mss);
            if self.conserving {
                *cwnd = cwnd.max(a.flight as f64 + bytes);
            } else {
                let target = if self.rtprop == Dur::MAX || self.bw() == 0.0 {
                    cfg.initial_cwnd()
                } else {
                    // Allowance for ACK aggregation.
                    let extra = if self.filled {
                        self.extra[0].max(self.extra[1]).min(self.bw() * EXTRA_MOST)
                    } else {
                        0.0
                    };
                    self.inflight(cfg, self.bdp(self.cwnd_gain) + extra)
                };
                if self.filled {
                    *cwnd = (*cwnd + bytes).min(target);
                } else if *cwnd < target || (self.delivered as f64) < cfg.initial_cwnd() {
                    *cwnd += bytes;
                }
                *cwnd = cwnd.max(MIN_CWND * mss);
            }
        }
        if matches!(self.state, State::ProbeRtt(_)) {
            *cwnd = cwnd.min(MIN_CWND * mss);
        }
    }

    /// A time-out: no packet conservation. The window is saved and restored when recovery ends.
    pub(crate) fn on_timeout(&mut self, cwnd: f64) {
        let reduced = self.recovering || matches!(self.state, State::ProbeRtt(_));
        self.prior = if reduced { self.prior.max(cwnd) } else { cwnd };
        self.recovering = true;
        self.conserving = false;
        self.full_bw = 0.0;
    }

    /// Recovery begins; `flight` is the estimated number of bytes in flight.
    pub(crate) fn begin_recovery(&mut self, cwnd: &mut f64, flight: f64, mss: f64) {
        if !self.recovering {
            self.prior = self.prior.max(*cwnd);
        }
        self.recovering = true;
        self.conserving = true;
        self.round_end = self.delivered; // a round begins
        *cwnd = (flight + mss).max(mss);
    }

    /// A loss proved spurious: the full-pipe estimate restarts, because the path may be faster than assumed
    /// (`bbr_undo_cwnd`).
    pub(crate) fn undo(&mut self) {
        self.full_bw = 0.0;
        self.full_rounds = 0;
    }

    /// Recovery ends: restores the window.
    pub(crate) fn end_recovery(&mut self, cwnd: &mut f64) {
        if std::mem::take(&mut self.recovering) {
            self.conserving = false;
            *cwnd = cwnd.max(self.prior);
            if !matches!(self.state, State::ProbeRtt(_)) {
                self.prior = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux `bbr_save_cwnd`.
    #[test]
    fn a_timeout_in_probe_rtt_keeps_the_window_from_before() {
        let mut bbr = Bbr {
            state: State::ProbeRtt(None),
            prior: 1e6,
            ..Bbr::default()
        };
        bbr.on_timeout(4000.0);
        assert_eq!(bbr.prior, 1e6);
    }
}

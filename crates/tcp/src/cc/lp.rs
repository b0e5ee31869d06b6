//! TCP-LP (A. Kuzmanovic, E. Knightly, INFOCOM 2003): Reno that yields as soon as one-way delays rise.

use swell_base::{Dur, Time};

use super::acked::Acked;
use crate::config::Config;

#[derive(Clone, Debug)]
pub(crate) struct Lp {
    min: f64,
    max: f64,
    /// Smoothed one-way delay, seconds.
    smooth: f64,
    /// End of the inference phase. A further congestion sign before this time means that other traffic is present.
    infers_until: Time,
    acted: Time,
}

/// The paper, section III: delta, gamma, and an inference phase of three round trips.
const DELTA: f64 = 0.15;
const GAMMA: f64 = 1.0 / 8.0;
const INFERENCE: u64 = 3;

impl Default for Lp {
    fn default() -> Lp {
        Lp {
            min: f64::INFINITY,
            max: 0.0,
            smooth: 0.0,
            infers_until: Time::ZERO,
            acted: Time::ZERO,
        }
    }
}

impl Lp {
    /// Processes an acknowledgement. Returns whether Reno's growth may continue.
    pub(crate) fn on_ack(
        &mut self,
        cfg: &Config,
        a: &Acked,
        cwnd: &mut f64,
        ssthresh: &mut f64,
    ) -> bool {
        let mss = f64::from(cfg.mss());
        if let Some(d) = a.one_way.map(Dur::as_secs_f64) {
            self.min = self.min.min(d);
            self.max = self.max.max(d);
            self.smooth = if self.smooth == 0.0 {
                d
            } else {
                self.smooth + (d - self.smooth) * GAMMA
            };
        }
        let inferring = a.now < self.infers_until;
        // The paper learns the range of delays in slow start, which ends with a loss. A window limited by the
        // receiver or the application causes no loss, however long its queue. In that case the range seen so far is
        // used.
        let learning = *cwnd < *ssthresh && a.limited;
        let early = !learning && self.smooth > self.min + DELTA * (self.max - self.min);
        // A sign counts once per RTT, because the delay from before the reduction is still being reported.
        if early && a.now >= self.acted + a.srtt {
            self.acted = a.now;
            if inferring {
                *cwnd = mss;
            } else {
                *cwnd = (*cwnd / 2.0).max(mss);
            }
            *ssthresh = cwnd.max(2.0 * mss);
            self.infers_until = a.now + a.srtt * INFERENCE;
            return false;
        }
        !inferring && a.limited
    }
}

//! TCP Nice (A. Venkataramani, R. Kokku, M. Dahlin, OSDI 2002): Vegas, but the window is halved as soon as a given
//! fraction of the RTTs in one window shows a queue.

use super::acked::Acked;
use crate::config::Config;

#[derive(Clone, Debug)]
pub(crate) struct Nice {
    min: f64,
    max: f64,
    /// For the current round: acknowledgements, those above the delay threshold, the sum of RTTs, and the end of the
    /// round.
    acks: u32,
    late: u32,
    sum: f64,
    end: u64,
    grow: bool,
}

/// The paper, section 3.2: delay threshold, and fraction of late acknowledgements.
const THRESHOLD: f64 = 0.1;
const FRACTION: f64 = 0.5;

impl Default for Nice {
    fn default() -> Nice {
        Nice {
            min: f64::INFINITY,
            max: 0.0,
            acks: 0,
            late: 0,
            sum: 0.0,
            end: 0,
            grow: false,
        }
    }
}

impl Nice {
    pub(crate) fn on_ack(&mut self, cfg: &Config, a: &Acked, cwnd: &mut f64, ssthresh: &mut f64) {
        let mss = f64::from(cfg.mss());
        if let Some(rtt) = a.rtt.map(|r| r.as_secs_f64()) {
            self.min = self.min.min(rtt);
            self.max = self.max.max(rtt);
            self.acks += 1;
            self.sum += rtt;
            self.late += u32::from(rtt > self.min + THRESHOLD * (self.max - self.min));
        }
        if *cwnd < *ssthresh && self.grow {
            *cwnd += a.bytes as f64;
        }
        if a.una < self.end || self.acks == 0 {
            return;
        }
        self.end = a.nxt;
        let rtt = self.sum / f64::from(self.acks);
        let queued = *cwnd / mss * (1.0 - self.min / rtt);
        if f64::from(self.late) > FRACTION * f64::from(self.acks) && self.acks > 1 {
            *cwnd /= 2.0;
            *ssthresh = *cwnd;
        } else if *cwnd < *ssthresh {
            // Vegas: double every other RTT until a queue builds up.
            self.grow = !self.grow;
            if queued > f64::from(cfg.vegas.gamma) {
                *ssthresh = *cwnd;
            }
        } else if queued < f64::from(cfg.vegas.alpha) {
            *cwnd += mss;
        } else if queued > f64::from(cfg.vegas.beta) {
            *cwnd -= mss;
        }
        // Windows below a packet (the paper goes down to 1/48) are not modelled.
        *cwnd = cwnd.max(mss);
        self.acks = 0;
        self.late = 0;
        self.sum = 0.0;
    }
}

//! CUBIC (RFC 9438) as Linux has it (`net/ipv4/tcp_cubic.c`). All windows are in segments, as in the RFC.

use swell_base::{Dur, Time};

/// Section 4.6.
pub(crate) const BETA: f64 = 0.7;
/// Section 5.1, segments per cubic second.
const C: f64 = 0.4;
/// Section 4.3: the additive increase that makes an AIMD with `BETA` as fast as Reno. The RFC has 1 once W_est has
/// passed the window before the reduction; Linux keeps this.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Before the first loss the window grows by a segment for so many acknowledged at least (`bictcp_update`): 5 % per
/// round trip.
const UNKNOWN: f64 = 20.0;

#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    /// The window at the last reduction (section 4.1.2), after fast convergence; zero before the first and after a
    /// time-out.
    w_max: f64,
    /// Where the curve is flat.
    origin: f64,
    /// The Reno-friendly estimate W_est.
    w_est: f64,
    /// Seconds from the start of the epoch until the curve passes `origin` again.
    k: f64,
    /// When this congestion avoidance stage began; `Time::MAX` until its first acknowledgement.
    epoch: Time,
}

impl Default for Cubic {
    fn default() -> Cubic {
        Cubic {
            w_max: 0.0,
            origin: 0.0,
            w_est: 0.0,
            k: 0.0,
            epoch: Time::MAX,
        }
    }
}

impl Cubic {
    /// The window after `segments` were acknowledged in congestion avoidance at window `cwnd`; `rtt` is the smallest
    /// round trip.
    pub(crate) fn on_ack(&mut self, cwnd: f64, segments: f64, now: Time, rtt: Dur) -> f64 {
        if self.epoch == Time::MAX {
            // Section 4.2, equation 2. A window that already passed w_max (slow start after a
            // time-out, or no loss so far) starts the convex part at once: section 4.8, 4.10.
            self.k = libm::cbrt((self.w_max - cwnd).max(0.0) / C);
            self.origin = self.w_max.max(cwnd);
            self.w_est = cwnd;
            self.epoch = now;
        }
        let t = now.since(self.epoch).as_secs_f64();
        self.w_est += ALPHA * segments / cwnd;
        // Sections 4.4 and 4.5: aim where the curve is one round trip later. Linux takes the smallest round trip for
        // it, and no more than half the window per round trip.
        let mut up = ((self.at(t + rtt.as_secs_f64()) - cwnd) / cwnd).clamp(0.0, 0.5);
        if self.w_max == 0.0 {
            up = up.max(1.0 / UNKNOWN);
        }
        // Section 4.3, Reno-friendly region.
        up = up.max((self.w_est - cwnd) / cwnd);
        cwnd + up.min(0.5) * segments
    }

    pub(crate) fn on_loss(&mut self, cwnd: f64) {
        // Section 4.7: fast convergence leaves room to flows that arrived.
        self.w_max = if cwnd < self.w_max {
            cwnd * (1.0 + BETA) / 2.0
        } else {
            cwnd
        };
        self.epoch = Time::MAX;
    }

    /// Idle time is not part of the epoch (section 4.2, last paragraph).
    pub(crate) fn shift(&mut self, idle: Dur) {
        self.epoch += idle; // saturates at `Time::MAX`
    }

    /// W_cubic(t), equation 1.
    fn at(&self, t: f64) -> f64 {
        let d = t - self.k;
        C * d * d * d + self.origin
    }
}

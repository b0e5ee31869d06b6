//! CUBIC (RFC 9438) as in Linux (`net/ipv4/tcp_cubic.c`). All windows are in segments, as in the RFC.

use swell_base::{Dur, Time};

/// Section 4.6.
pub(crate) const BETA: f64 = 0.7;
/// Section 5.1, segments per cubic second.
const C: f64 = 0.4;
/// Section 4.3: acknowledged segments per window size that raise W_est by one: (1 + BETA) / (3 (1 - BETA)), rounded
/// down to eighths as in Linux.
const PER_FRIENDLY: f64 = 15.0 / 8.0;
/// Before the first loss the window grows by one segment for at most this many acknowledged segments: 5 % per RTT.
const UNKNOWN: f64 = 20.0;
/// Linux recomputes the curve when the window has changed, or after more than `HZ / 32` ticks: 7 ticks of 4 ms at its
/// usual 250 Hz.
const LOOK: Dur = Dur::from_millis(28);

/// Single precision saves memory per connection. It holds whole segments up to sixteen million exactly.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    /// The window at the last reduction (section 4.1.2), after fast convergence; zero before the first reduction and
    /// after a time-out.
    w_max: f32,
    /// The window at the plateau of the curve.
    origin: f32,
    /// The Reno-friendly estimate W_est, in whole segments, and the segments acknowledged since it last grew.
    w_est: f32,
    acked: f32,
    /// Seconds from the start of the epoch until the curve passes `origin` again.
    k: f32,
    /// When this congestion avoidance stage began; `Time::MAX` until its first acknowledgement.
    epoch: Time,
    /// Acknowledged segments per segment of growth (`cnt`), and the segments counted towards it.
    per_segment: f32,
    counted: f32,
    /// The window when the curve was last computed, and the time of that.
    looked_window: f32,
    looked: Time,
}

impl Default for Cubic {
    fn default() -> Cubic {
        Cubic {
            w_max: 0.0,
            origin: 0.0,
            w_est: 0.0,
            acked: 0.0,
            k: 0.0,
            epoch: Time::MAX,
            per_segment: 0.0,
            counted: 0.0,
            looked_window: 0.0,
            looked: Time::ZERO,
        }
    }
}

impl Cubic {
    /// Returns the growth in segments after `segments` were acknowledged in congestion avoidance
    /// (`tcp_cong_avoid_ai`). `window` is in whole segments; `rtt` is the smallest RTT.
    pub(crate) fn on_ack(&mut self, window: f64, segments: f64, now: Time, rtt: Dur) -> f64 {
        self.look(window, segments, now, rtt);
        let per_segment = f64::from(self.per_segment);
        let mut counted = f64::from(self.counted);
        let mut up = 0.0;
        if counted >= per_segment {
            // The curve has become steeper since the count began, so the count is worth one segment and not several.
            counted = 0.0;
            up = 1.0;
        }
        counted += segments;
        let whole = (counted / per_segment).floor();
        self.counted = (counted - whole * per_segment) as f32;
        up + whole
    }

    /// Recomputes the growth rate (`bictcp_update`).
    fn look(&mut self, window: f64, segments: f64, now: Time, rtt: Dur) {
        let mut acked = f64::from(self.acked) + segments;
        let same = f64::from(self.looked_window).total_cmp(&window).is_eq();
        let begins = self.epoch == Time::MAX;
        if same && !begins && now.since(self.looked) <= LOOK {
            self.acked = acked as f32;
            return;
        }
        self.looked_window = window as f32;
        self.looked = now;
        if begins {
            // Section 4.2, equation 2. A window already above w_max (slow start after a time-out, or no loss so far)
            // starts the convex region at once: sections 4.8 and 4.10.
            let most = f64::from(self.w_max);
            self.k = libm::cbrt((most - window).max(0.0) / C) as f32;
            self.origin = most.max(window) as f32;
            self.w_est = window as f32;
            acked = segments;
            self.epoch = now;
        }
        // Sections 4.4 and 4.5: the target is the value of the curve one RTT from now. Linux uses the smallest RTT
        // here.
        let t = now.since(self.epoch).as_secs_f64();
        let target = self.at(t + rtt.as_secs_f64());
        let mut per_segment = per(window, target - window);
        if self.w_max == 0.0 {
            per_segment = per_segment.min(UNKNOWN);
        }
        // Section 4.3, Reno-friendly region.
        let each = (window * PER_FRIENDLY).floor();
        let grown = ((acked / each).ceil() - 1.0).max(0.0);
        self.acked = (acked - grown * each) as f32;
        let w_est = f64::from(self.w_est) + grown;
        self.w_est = w_est as f32;
        per_segment = per_segment.min(per(window, w_est - window));
        // Section 4.4: growth of at most half the window per RTT.
        self.per_segment = per_segment.max(2.0) as f32;
    }

    pub(crate) fn on_loss(&mut self, cwnd: f64) {
        // Section 4.7: fast convergence releases bandwidth to new flows.
        self.w_max = if cwnd < f64::from(self.w_max) {
            (cwnd * (1.0 + BETA) / 2.0).floor() as f32
        } else {
            cwnd as f32
        };
        self.epoch = Time::MAX;
        self.counted = 0.0;
    }

    /// Whether the epoch is less than a second old.
    pub(crate) fn is_new(&self, now: Time) -> bool {
        self.epoch != Time::MAX && now < self.epoch + Dur::from_secs(1)
    }

    /// Idle time is not part of the epoch (section 4.2, last paragraph).
    pub(crate) fn shift(&mut self, idle: Dur) {
        self.epoch += idle; // saturates at `Time::MAX`
    }

    /// W_cubic(t), equation 1. The distance from the origin is truncated to whole segments.
    fn at(&self, t: f64) -> f64 {
        let d = t - f64::from(self.k);
        (C * d * d * d).trunc() + f64::from(self.origin)
    }
}

/// Acknowledged segments per segment of growth, for growth by `up` segments per RTT, truncated to whole segments.
/// Without growth, the value is one hundred windows.
fn per(window: f64, up: f64) -> f64 {
    if up > 0.0 {
        (window / up).floor()
    } else {
        100.0 * window
    }
}

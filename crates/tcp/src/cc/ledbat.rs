//! LEDBAT (RFC 6817), based on one-way delays, and LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus-01), based on RTTs.
//! Windows are in bytes, delays in seconds.

use swell_base::{Dur, Time};

use super::acked::Acked;
use crate::config::Config;

#[derive(Clone, Debug)]
pub(crate) struct Ledbat {
    plus: bool,
    /// Minimum delay of each recent minute, the newest first (`BASE_HISTORY`).
    base: [f64; BASE_HISTORY],
    minute: u64,
    /// The latest delays (`CURRENT_FILTER`).
    current: [f64; CURRENT_FILTER],
    next: usize,
    /// No further reduction before this time, after a reduction for loss or delay.
    calm_until: Time,
    /// LEDBAT++: state of the periodic slowdowns.
    slow: Slowdown,
}

/// Section 4.4 of the draft: the window falls to two packets for two RTTs, so that the base delay can be measured.
#[derive(Clone, Copy, Debug)]
enum Slowdown {
    /// Initial slow start; no slowdown so far.
    Never,
    /// The next slowdown begins at this time.
    At(Time),
    /// Window of two packets from `began` until `until`, then slow start up to `ssthresh`.
    Low { began: Time, until: Time },
    /// Slow start after the slowdown that began at this time.
    Back(Time),
}

/// RFC 6817 section 2.5 and appendix A: ten minutes, four samples.
const BASE_HISTORY: usize = 10;
const CURRENT_FILTER: usize = 4;
/// RFC 6817 section 2.4.2: at most 100 ms. The draft, section 4.2: 60 ms.
const TARGET: f64 = 0.1;
const TARGET_PLUS: f64 = 0.06;
/// `MIN_CWND` and `ALLOWED_INCREASE`, segments.
const MIN_CWND: f64 = 2.0;
const ALLOWED_INCREASE: f64 = 1.0;
/// The draft, section 4.4: the interval to the next slowdown is nine times the length of the last, so slowdowns take
/// a tenth of the time.
const BETWEEN_SLOWDOWNS: u64 = 9;

impl Ledbat {
    pub(crate) fn new(plus: bool) -> Ledbat {
        Ledbat {
            plus,
            base: [f64::INFINITY; BASE_HISTORY],
            minute: 0,
            current: [f64::INFINITY; CURRENT_FILTER],
            next: 0,
            calm_until: Time::ZERO,
            slow: Slowdown::Never,
        }
    }

    pub(crate) fn on_ack(&mut self, cfg: &Config, a: &Acked, cwnd: &mut f64, ssthresh: &mut f64) {
        let measured = if self.plus { a.rtt } else { a.one_way };
        if let Some(d) = measured {
            self.note(a.now, d.as_secs_f64());
        }
        let base = self.base.iter().copied().fold(f64::INFINITY, f64::min);
        let now = self.current.iter().copied().fold(f64::INFINITY, f64::min);
        let queue = if now.is_finite() {
            (now - base).max(0.0)
        } else {
            0.0
        };
        let mss = f64::from(cfg.mss());
        if self.plus {
            self.plus(a, base, queue, mss, cwnd, ssthresh);
        } else {
            // RFC 6817 section 2.4.2; GAIN is 1.
            let off = (TARGET - queue) / TARGET;
            *cwnd += off * a.bytes as f64 * mss / *cwnd;
            let most = a.flight as f64 + a.bytes as f64 + ALLOWED_INCREASE * mss;
            *cwnd = cwnd.min(most).max(MIN_CWND * mss);
        }
    }

    fn note(&mut self, now: Time, delay: f64) {
        let minute = now.as_nanos() / 60_000_000_000;
        if minute != self.minute {
            let gone = (minute - self.minute).min(BASE_HISTORY as u64) as usize;
            self.base.rotate_right(gone % BASE_HISTORY);
            self.base[..gone].fill(f64::INFINITY);
            self.minute = minute;
        }
        self.base[0] = self.base[0].min(delay);
        self.current[self.next] = delay;
        self.next = (self.next + 1) % CURRENT_FILTER;
    }

    fn plus(
        &mut self,
        a: &Acked,
        base: f64,
        queue: f64,
        mss: f64,
        cwnd: &mut f64,
        ssthresh: &mut f64,
    ) {
        let gain = if base.is_finite() && base > 0.0 {
            1.0 / 16f64.min(libm::ceil(2.0 * TARGET_PLUS / base))
        } else {
            1.0 / 16.0
        };
        match self.slow {
            Slowdown::At(at) if a.now >= at => {
                *ssthresh = *cwnd;
                *cwnd = MIN_CWND * mss;
                self.slow = Slowdown::Low {
                    began: a.now,
                    until: a.now + a.srtt * 2,
                };
                return;
            }
            Slowdown::Low { until, .. } if a.now < until => {
                *cwnd = MIN_CWND * mss;
                return;
            }
            Slowdown::Low { began, .. } => self.slow = Slowdown::Back(began),
            _ => {}
        }
        let bytes = a.bytes as f64;
        if *cwnd < *ssthresh {
            // Section 4.3: the initial slow start ends at three quarters of the target delay. Slow start after a
            // slowdown ends at the old window.
            if matches!(self.slow, Slowdown::Never) && queue > 0.75 * TARGET_PLUS {
                *ssthresh = *cwnd;
            } else {
                *cwnd = (*cwnd + gain * bytes).min(*ssthresh);
            }
        }
        if *cwnd >= *ssthresh {
            match self.slow {
                Slowdown::Never => self.slow = Slowdown::At(a.now + a.srtt * 2),
                Slowdown::Back(began) => {
                    let took = a.now.since(began);
                    self.slow = Slowdown::At(a.now + took * BETWEEN_SLOWDOWNS);
                }
                _ => {}
            }
            // Section 4.2, spread over the acknowledgements of one RTT.
            let share = bytes / *cwnd;
            let w = *cwnd / mss;
            let step = if queue <= TARGET_PLUS {
                gain
            } else {
                (gain - w * (queue / TARGET_PLUS - 1.0)).max(-w / 2.0)
            };
            *cwnd += step * share * mss;
            *ssthresh = ssthresh.min(*cwnd);
        }
        *cwnd = cwnd.max(MIN_CWND * mss);
    }

    /// RFC 6817 section 2.4.1: halve at most once per RTT.
    pub(crate) fn factor(&mut self, now: Time, srtt: Dur) -> f64 {
        if now < self.calm_until {
            return 1.0;
        }
        self.calm_until = now + srtt;
        if matches!(self.slow, Slowdown::Never) {
            self.slow = Slowdown::At(now + srtt * 2);
        }
        0.5
    }
}

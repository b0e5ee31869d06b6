//! Round-trip times and the retransmission timeout (RFC 6298).

use swell_base::Dur;

use crate::Config;

/// The estimator. SRTT is zero until the first sample.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    srtt: Dur,
    var: Dur,
    min: Dur,
    /// Without back-off.
    base: Dur,
    backoff: u8,
}

impl Rtt {
    pub(crate) fn new(cfg: &Config) -> Rtt {
        Rtt {
            srtt: Dur::ZERO,
            var: Dur::ZERO,
            min: Dur::MAX,
            base: cfg.initial_rto.max(Dur::from_nanos(1)),
            backoff: 0,
        }
    }

    /// A measured round trip of a segment sent once (Karn's algorithm, RFC 6298 section 3).
    pub(crate) fn sample(&mut self, cfg: &Config, rtt: Dur) {
        // One nanosecond stands for "no time at all", so that zero can mean "no sample yet".
        let r = ceil_to(rtt, cfg.tick).max(Dur::from_nanos(1));
        self.min = self.min.min(rtt.max(Dur::from_nanos(1)));
        if self.srtt == Dur::ZERO {
            self.srtt = r; // section 2.2
            self.var = r / 2;
        } else {
            let deviation = self.srtt.saturating_sub(r).max(r.saturating_sub(self.srtt));
            self.var = (self.var * 3 + deviation) / 4; // section 2.3, beta = 1/4
            self.srtt = (self.srtt * 7 + r) / 8; // alpha = 1/8
        }
        let spread = (self.var * 4).max(cfg.tick);
        let rto = if cfg.min_rto_is_variance {
            self.srtt + spread.max(cfg.min_rto)
        } else {
            (self.srtt + spread).max(cfg.min_rto)
        };
        self.base = ceil_to(rto, cfg.tick).max(Dur::from_nanos(1));
        self.backoff = 0;
    }

    /// The timer went off: the next one waits twice as long (section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    pub(crate) fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// A handshake that needed its timer starts data with at least 3 s (section 5.7).
    pub(crate) fn after_handshake_timeout(&mut self) {
        self.base = self.base.max(Dur::from_secs(3));
        self.backoff = 0;
    }

    pub(crate) fn rto(&self, cfg: &Config) -> Dur {
        if self.backoff == 0 {
            return self.base.min(cfg.max_rto);
        }
        (self.base * (1u64 << self.backoff.min(40))).min(cfg.max_rto)
    }

    /// Smoothed round trip, `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Dur> {
        (self.srtt != Dur::ZERO).then_some(self.srtt)
    }

    /// Smallest sample, `None` before the first.
    pub(crate) fn min(&self) -> Option<Dur> {
        (self.min != Dur::MAX).then_some(self.min)
    }
}

fn ceil_to(d: Dur, tick: Dur) -> Dur {
    if tick == Dur::ZERO {
        return d;
    }
    Dur::from_nanos(
        d.as_nanos()
            .div_ceil(tick.as_nanos())
            .saturating_mul(tick.as_nanos()),
    )
}

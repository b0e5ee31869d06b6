//! Round-trip times and the retransmission timeout (RFC 6298).

use swell_base::{Dur, Time, mixed};

use crate::Config;
use crate::config::Ns2;

/// The estimator-specific state: [`Ticks`] or [`Mean`].
#[derive(Clone, Copy, Debug, Default)]
struct Own([u32; 3]);

/// State of Linux's estimator (`tcp_rtt_estimator`). Times are in microseconds; deviations are stored times four.
#[derive(Clone, Copy, Debug)]
struct Mean {
    /// `mdev_us`: smoothed mean deviation. It reacts slowly to a sample below the estimate.
    deviation: u32,
    /// `mdev_max_us`: the largest value in this round trip.
    largest: u32,
    /// `rtt_seq`: the round trip ends when this sequence number is acknowledged; lower 32 bits.
    end: u32,
}

impl From<Own> for Mean {
    fn from(Own([deviation, largest, end]): Own) -> Mean {
        Mean {
            deviation,
            largest,
            end,
        }
    }
}

impl From<Mean> for Own {
    fn from(m: Mean) -> Own {
        Own([m.deviation, m.largest, m.end])
    }
}

impl From<Own> for Ticks {
    #[inline]
    fn from(Own([srtt, var, phase]): Own) -> Ticks {
        Ticks {
            srtt: srtt.cast_signed(),
            var: var.cast_signed(),
            phase,
        }
    }
}

impl From<Ticks> for Own {
    #[inline]
    fn from(t: Ticks) -> Own {
        Own([t.srtt.cast_unsigned(), t.var.cast_unsigned(), t.phase])
    }
}

/// ns-2's estimator, in whole ticks (`TcpAgent::rtt_update`), after BSD's.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    /// SRTT with 3 fractional bits (`T_SRTT_BITS`) and RTTVAR with 2 (`T_RTTVAR_BITS`).
    srtt: i32,
    var: i32,
    /// Phase of this host's clock within a tick, in nanoseconds (`boot_time_`).
    phase: u32,
}

/// The estimator. SRTT is zero until the first sample.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Rtt {
    srtt: Dur,
    var: Dur,
    min: Dur,
    /// RTO without back-off.
    base: Dur,
    backoff: u8,
    own: Own,
}

/// SND.UNA and SND.NXT, by which successive round trips are told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) una: u64,
    pub(crate) nxt: u64,
}

impl Rtt {
    pub(crate) fn new(cfg: &Config) -> Rtt {
        Rtt {
            own: Ticks {
                // `rttvar_init_` is 12 s.
                var: i32::try_from(Dur::from_secs(12).as_nanos() / tick(cfg)).unwrap_or(1 << 20)
                    << 2,
                ..Ticks::default()
            }
            .into(),
            srtt: Dur::ZERO,
            var: Dur::ZERO,
            min: Dur::MAX,
            base: cfg.initial_rto.max(Dur::from_nanos(1)),
            backoff: 0,
        }
    }

    /// Takes a sample from a segment that was sent once (Karn's algorithm, RFC 6298 section 3), or from a timestamp.
    #[inline]
    pub(crate) fn sample(&mut self, cfg: &Config, rtt: Dur, round: Round) {
        if cfg.min_rto_is_variance {
            self.sample_as_linux(cfg, rtt, round);
        } else {
            self.sample_as_rfc(cfg, rtt);
        }
    }

    /// `tcp_rtt_estimator`: a sudden drop of the RTT does not raise the RTO, and the variance term stays at its
    /// maximum of the round trip.
    fn sample_as_linux(&mut self, cfg: &Config, rtt: Dur, round: Round) {
        self.min = self.min.min(rtt.max(Dur::from_nanos(1)));
        let r = rtt.max(Dur::from_micros(1));
        let least = micros(cfg.min_rto);
        let mut mean = Mean::from(self.own);
        if self.srtt == Dur::ZERO {
            self.srtt = r;
            mean.deviation = micros(r).saturating_mul(2);
            let spread = mean.deviation.max(least);
            mean.largest = spread;
            mean.end = round.nxt as u32;
            self.var = Dur::from_micros(u64::from(spread));
        } else {
            let shorter = r < self.srtt;
            let error = micros(self.srtt.saturating_sub(r).max(r.saturating_sub(self.srtt)));
            self.srtt = (self.srtt * 7 + r) / 8;
            let quarter = mean.deviation / 4;
            mean.deviation = if error < quarter {
                mean.deviation - (quarter - error)
            } else if shorter {
                // Eifel's remedy for a sudden fall (Ludwig & Sklower 2000).
                mean.deviation.saturating_add((error - quarter) / 8)
            } else {
                mean.deviation.saturating_add(error - quarter)
            };
            mean.largest = mean.largest.max(mean.deviation);
            let mut spread = micros(self.var).max(mean.largest);
            // Whether the data in flight at that time is acknowledged: no more was sent since than is in flight now.
            let sent_since = u64::from((round.nxt as u32).wrapping_sub(mean.end));
            if sent_since > round.nxt - round.una {
                spread -= (spread - mean.largest) / 4;
                mean.end = round.nxt as u32;
                mean.largest = least;
            }
            self.var = Dur::from_micros(u64::from(spread));
        }
        self.own = mean.into();
        self.base = self.srtt + self.var;
        self.backoff = 0;
    }

    /// RFC 6298 section 2.
    fn sample_as_rfc(&mut self, cfg: &Config, rtt: Dur) {
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
        let rto = (self.srtt + spread + cfg.announced_delay()).max(cfg.min_rto);
        self.base = ceil_to(rto, cfg.tick).max(Dur::from_nanos(1));
        self.backoff = 0;
    }

    /// As [`sample`](Self::sample), with ns-2's arithmetic. The segment was sent at `sent` and its acknowledgement
    /// arrived at `now`.
    pub(crate) fn sample_in_ticks(&mut self, cfg: &Config, sent: Time, now: Time) {
        let rtt = now.since(sent).max(Dur::from_nanos(1));
        self.min = self.min.min(rtt);
        let (tick, mut t) = (tick(cfg), Ticks::from(self.own));
        if self.srtt == Dur::ZERO {
            // ns-2 draws the phase at random; here a hash of the connection's start time serves the same purpose.
            t.phase = (mixed(sent.as_nanos()) % tick) as u32; // a tick is below 4 s
        }
        let since_tick = (sent.as_nanos() + u64::from(t.phase)) % tick;
        let r = ((rtt.as_nanos() + since_tick) / tick).clamp(1, 1 << 20) as i32;
        if t.srtt == 0 {
            t.srtt = r << 3;
            t.var = r << 1;
        } else {
            let d = r - (t.srtt >> 3);
            t.srtt = (t.srtt + d).max(1);
            t.var = (t.var + d.abs() - (t.var >> 2)).max(1);
        }
        let rto = (i64::from(t.var) * 8 + i64::from(t.srtt)) >> 3;
        self.base = Dur::from_nanos(tick) * rto.unsigned_abs();
        self.srtt = (Dur::from_nanos(tick) * u64::from(t.srtt.unsigned_abs())) / 8;
        self.own = t.into();
        self.backoff = 0;
    }

    /// `TcpAgent::rtt_backoff`.
    pub(crate) fn back_off_in_ticks(&mut self, cfg: &Config, ns2: Ns2) {
        if self.backoff < 6 || ns2.rfc2988 && self.rto_in_ticks(cfg, ns2) < cfg.max_rto {
            self.backoff = self.backoff.saturating_add(1);
        }
        if self.backoff > 3 {
            // The estimate is no longer trusted: SRTT is folded into the variance and cleared.
            let mut t = Ticks::from(self.own);
            t.var = t.var.saturating_add(t.srtt >> 3);
            t.srtt = 0;
            self.own = t.into();
        }
    }

    /// `TcpAgent::rtt_timeout`.
    pub(crate) fn rto_in_ticks(&self, cfg: &Config, ns2: Ns2) -> Dur {
        let factor = 1u64 << self.backoff.min(40);
        let rto = if ns2.rfc2988 {
            self.base.max(cfg.min_rto) * factor
        } else {
            (self.base * factor).max(cfg.min_rto)
        };
        rto.min(cfg.max_rto).max(Dur::from_nanos(2 * tick(cfg)))
    }

    /// The timer expired: the next RTO is doubled (section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    pub(crate) fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// If the handshake needed its timer and gave no RTT sample, data starts with an RTO of at least 3 s (section
    /// 5.7, Linux `TCP_TIMEOUT_FALLBACK`).
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

    /// Smoothed RTT, `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Dur> {
        (self.srtt != Dur::ZERO).then_some(self.srtt)
    }

    /// Smallest sample, `None` before the first.
    pub(crate) fn min(&self) -> Option<Dur> {
        (self.min != Dur::MAX).then_some(self.min)
    }

    /// Estimated queueing delay: smoothed RTT minus smallest RTT, not counting the rounding to ticks.
    #[inline]
    pub(crate) fn queueing(&self, cfg: &Config) -> Dur {
        self.srtt.saturating_sub(self.min).saturating_sub(cfg.tick)
    }
}

/// Whole microseconds, saturating at about 71 minutes.
fn micros(d: Dur) -> u32 {
    u32::try_from(d.as_nanos() / 1000).unwrap_or(u32::MAX)
}

/// Nanoseconds per tick, clamped to a usable range.
fn tick(cfg: &Config) -> u64 {
    cfg.tick.as_nanos().clamp(1_000, 4_000_000_000)
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

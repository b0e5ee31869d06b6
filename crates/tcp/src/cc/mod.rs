//! Congestion control: a window, moved by a few notifications. A new algorithm is a variant of
//! [`Control`], a file beside this one, and its arms below.

mod cubic;
mod vegas;

use swell_base::{Dur, Time};

use crate::config::{Algorithm, Config, IdleRestart, Ns2};
use crate::scoreboard::Record;
use cubic::Cubic;
pub(crate) use vegas::Vegas;

/// What an acknowledgement tells a congestion control.
pub(crate) struct Acked {
    pub(crate) now: Time,
    /// Bytes newly delivered.
    pub(crate) bytes: u64,
    /// Smoothed round trip; zero before the first sample.
    pub(crate) srtt: Dur,
}

/// Window and threshold in bytes, in packets with ns-2's sender. They are fractional because congestion avoidance adds less
/// than a byte per acknowledgement at large windows.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
    control: Control,
}

#[derive(Clone, Debug)]
enum Control {
    Reno,
    Cubic(Cubic),
    /// Moved by ns-2's sender.
    Vegas(Box<Vegas>),
}

impl Window {
    pub(crate) fn new(cfg: &Config) -> Window {
        let mut unit = f64::from(cfg.mss());
        let mut first = f64::from(cfg.initial_window.max(1));
        if let Some(ns2) = cfg.ns2_sender() {
            unit = 1.0;
            if ns2.delay_growth && cfg.algorithm == Algorithm::Vegas {
                first = 1.0;
            }
        }
        Window {
            cwnd: first * unit,
            ssthresh: cfg
                .initial_ssthresh
                .map_or(f64::INFINITY, |s| f64::from(s.max(1)) * unit),
            control: match cfg.algorithm {
                Algorithm::Reno | Algorithm::NewReno => Control::Reno,
                Algorithm::Cubic => Control::Cubic(Cubic::default()),
                Algorithm::Vegas => Control::Vegas(Box::default()),
            },
        }
    }

    pub(crate) fn vegas(&mut self) -> Option<&mut Vegas> {
        match &mut self.control {
            Control::Vegas(v) => Some(v),
            _ => None,
        }
    }

    /// See [`Vegas::on_new_ack`].
    pub(crate) fn vegas_new_ack(
        &mut self,
        cfg: &Config,
        now: Time,
        acked: (u32, Option<Record>),
        dupacks: u32,
        flying: (u32, Option<Time>),
        ns2: Ns2,
    ) -> bool {
        let Control::Vegas(v) = &mut self.control else {
            return false;
        };
        let windows = (&mut self.cwnd, &mut self.ssthresh);
        v.on_new_ack(cfg, now, acked, dupacks, flying, windows, ns2)
    }

    pub(crate) fn is_vegas(&self) -> bool {
        matches!(self.control, Control::Vegas(_))
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// New data was acknowledged outside fast recovery and the window was in use.
    pub(crate) fn on_ack(&mut self, cfg: &Config, ack: &Acked) {
        let mss = f64::from(cfg.mss());
        let mut bytes = if cfg.byte_counting {
            ack.bytes as f64
        } else {
            mss
        };
        if self.cwnd < self.ssthresh {
            // Slow start, RFC 5681 section 3.1. With byte counting, what reaches the threshold
            // is left for congestion avoidance (Linux `tcp_slow_start`); without it RFC 3465's
            // limit of one segment per acknowledgement is implied.
            let up = if cfg.byte_counting {
                bytes.min(self.ssthresh - self.cwnd)
            } else {
                bytes
            };
            self.cwnd += up;
            bytes -= up;
            if bytes <= 0.0 {
                return;
            }
        }
        match &mut self.control {
            // RFC 5681 equation 3, summed over the bytes.
            Control::Reno | Control::Vegas(_) => self.cwnd += mss * bytes / self.cwnd,
            Control::Cubic(c) => {
                self.cwnd = c.on_ack(self.cwnd / mss, bytes / mss, ack.now, ack.srtt) * mss;
            }
        }
    }

    /// A loss was found; `base` is what the threshold is computed from. The window itself is
    /// set by the recovery in use.
    pub(crate) fn on_loss(&mut self, cfg: &Config, base: f64) {
        let mss = f64::from(cfg.mss());
        let factor = match &mut self.control {
            Control::Reno | Control::Vegas(_) => 0.5,
            Control::Cubic(c) => {
                c.on_loss(self.cwnd / mss);
                cubic::BETA
            }
        };
        // Never below two segments: RFC 5681 equation 4, RFC 9438 section 4.6.
        self.ssthresh = (base * factor).max(2.0 * mss);
    }

    /// The sender was silent for `idle` with nothing in flight.
    pub(crate) fn on_idle(&mut self, cfg: &Config, idle: Dur, rto: Dur) {
        if let Control::Cubic(c) = &mut self.control {
            c.shift(idle);
        }
        if idle <= rto || self.cwnd <= cfg.initial_cwnd() {
            return;
        }
        match cfg.idle_restart {
            IdleRestart::Off => {}
            IdleRestart::Reset => self.cwnd = cfg.initial_cwnd(),
            IdleRestart::Decay => {
                // RFC 2861 section 3: remember three quarters of the window in the threshold.
                self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
                let halvings = idle.as_nanos() / rto.as_nanos().max(1);
                let halved = self.cwnd / (1u64 << halvings.min(60)) as f64;
                self.cwnd = halved.max(cfg.initial_cwnd());
            }
        }
    }
}

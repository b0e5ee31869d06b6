//! Congestion control: a window changed by a few notifications. A new algorithm is a variant of [`Control`], a file
//! in this folder, and its match arms below.

mod acked;
mod bbr;
mod cubic;
mod ledbat;
mod lp;
mod nice;
mod vegas;
mod westwood;

use swell_base::{Dur, Time};

use crate::config::{Algorithm, Config, IdleRestart, Ns2};
use crate::scoreboard::Record;
pub(crate) use acked::Acked;
pub(crate) use bbr::Bbr;
use cubic::Cubic;
use ledbat::Ledbat;
use lp::Lp;
use nice::Nice;
pub(crate) use vegas::Vegas;
pub(crate) use westwood::Westwood;

/// Window and threshold in bytes, or in packets with ns-2's sender. They are fractional because congestion avoidance
/// adds less than a byte per acknowledgement at large windows.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Window {
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
    /// State of the algorithm. Reno has none; CUBIC has none before its first loss or the end of slow start.
    control: Option<Box<Control>>,
}

#[derive(Clone, Debug)]
enum Control {
    Cubic(Cubic),
    /// Updated by ns-2's sender.
    Vegas(Box<Vegas>),
    Bbr(Box<Bbr>),
    Westwood(Box<Westwood>),
    Ledbat(Box<Ledbat>),
    Lp(Box<Lp>),
    Nice(Box<Nice>),
}

impl Control {
    /// The state that an algorithm has from the start.
    fn new(algorithm: Algorithm) -> Option<Control> {
        Some(match algorithm {
            Algorithm::Reno | Algorithm::NewReno | Algorithm::Cubic => return None,
            Algorithm::Vegas => Control::Vegas(Box::default()),
            Algorithm::Bbr => Control::Bbr(Box::default()),
            Algorithm::Westwood => Control::Westwood(Box::default()),
            Algorithm::Ledbat => Control::Ledbat(Box::new(Ledbat::new(false))),
            Algorithm::LedbatPlusPlus => Control::Ledbat(Box::new(Ledbat::new(true))),
            Algorithm::Lp => Control::Lp(Box::default()),
            Algorithm::Nice => Control::Nice(Box::default()),
        })
    }
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
            ssthresh: match cfg.algorithm {
                Algorithm::Ledbat => unit, // RFC 6817 has no slow start
                _ => cfg
                    .initial_ssthresh
                    .map_or(f64::INFINITY, |s| f64::from(s.max(1)) * unit),
            },
            control: Control::new(cfg.algorithm).map(Box::new),
        }
    }

    pub(crate) fn bbr(&mut self) -> Option<&mut Bbr> {
        match self.control.as_deref_mut() {
            Some(Control::Bbr(b)) => Some(b),
            _ => None,
        }
    }

    pub(crate) fn pacing_deadline(&self) -> Time {
        match self.control.as_deref() {
            Some(Control::Bbr(b)) if b.waiting => b.next_send(),
            _ => Time::MAX,
        }
    }

    /// Westwood's state, which measures the bandwidth.
    #[inline]
    pub(crate) fn westwood(&mut self) -> Option<&mut Westwood> {
        match self.control.as_deref_mut() {
            Some(Control::Westwood(w)) => Some(w),
            _ => None,
        }
    }

    /// See [`Bbr::on_ack`].
    pub(crate) fn bbr_ack(&mut self, cfg: &Config, ack: &Acked, last_sent: (Time, u64)) {
        if let Some(Control::Bbr(b)) = self.control.as_deref_mut() {
            b.on_ack(cfg, ack, last_sent, &mut self.cwnd);
        }
    }

    /// Starts or ends BBR's recovery, in which BBR sets the window itself. Returns false for other algorithms.
    pub(crate) fn bbr_recovery(&mut self, begins: Option<u64>, mss: u32) -> bool {
        let Some(Control::Bbr(b)) = self.control.as_deref_mut() else {
            return false;
        };
        match begins {
            Some(flight) => b.begin_recovery(&mut self.cwnd, flight as f64, f64::from(mss)),
            None => b.end_recovery(&mut self.cwnd),
        }
        true
    }

    /// Whether the algorithm needs acknowledgements even if the window is not fully used, because delay may shrink
    /// it.
    pub(crate) fn reacts_to_delay(&self) -> bool {
        matches!(
            self.control.as_deref(),
            Some(Control::Ledbat(_) | Control::Lp(_) | Control::Nice(_))
        )
    }

    pub(crate) fn vegas(&mut self) -> Option<&mut Vegas> {
        match self.control.as_deref_mut() {
            Some(Control::Vegas(v)) => Some(v),
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
        let Some(Control::Vegas(v)) = self.control.as_deref_mut() else {
            return false;
        };
        let windows = (&mut self.cwnd, &mut self.ssthresh);
        v.on_new_ack(cfg, now, acked, (dupacks, ns2), flying, windows)
    }

    pub(crate) fn is_vegas(&self) -> bool {
        matches!(self.control.as_deref(), Some(Control::Vegas(_)))
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether the algorithm uses only losses, bytes and time, so that [`on_ack`](Self::on_ack) is sufficient.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.control.as_deref(), None | Some(Control::Cubic(_)))
    }

    /// As [`on_ack`](Self::on_ack), for the other algorithms.
    pub(crate) fn on_ack_measured(&mut self, cfg: &Config, ack: &Acked) {
        match self.control.as_deref_mut() {
            None | Some(Control::Cubic(_) | Control::Vegas(_) | Control::Westwood(_)) => {}
            Some(Control::Bbr(_)) => return, // updated by `bbr_ack`
            Some(Control::Ledbat(l)) => {
                return l.on_ack(cfg, ack, &mut self.cwnd, &mut self.ssthresh);
            }
            Some(Control::Nice(n)) => {
                return n.on_ack(cfg, ack, &mut self.cwnd, &mut self.ssthresh);
            }
            Some(Control::Lp(l)) => {
                if !l.on_ack(cfg, ack, &mut self.cwnd, &mut self.ssthresh) {
                    return;
                }
            }
        }
        self.on_ack(cfg, ack.now, ack.bytes, ack.min_rtt);
    }

    /// New data was acknowledged outside fast recovery and the window was fully used; `shortest` is CUBIC's smallest
    /// RTT.
    pub(crate) fn on_ack(&mut self, cfg: &Config, now: Time, acked: u64, shortest: Dur) {
        let mss = f64::from(cfg.mss());
        let mut bytes = if cfg.byte_counting { acked as f64 } else { mss };
        if self.cwnd < self.ssthresh {
            // Slow start, RFC 5681 section 3.1. With byte counting, the part that exceeds the threshold is left for
            // congestion avoidance (Linux `tcp_slow_start`). Without it, RFC 3465's limit of one segment per
            // acknowledgement is implied.
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
        let window = self.cwnd;
        let whole = whole_segments(cfg, window);
        self.cwnd = match self.cubic(cfg) {
            Some(c) => window + mss * c.on_ack((whole / mss).floor(), bytes / mss, now, shortest),
            // RFC 5681 equation 3, summed over the bytes.
            None => window + mss * bytes / whole,
        };
    }

    /// CUBIC's state, created now if there is none; `None` for other algorithms.
    #[inline]
    fn cubic(&mut self, cfg: &Config) -> Option<&mut Cubic> {
        if cfg.algorithm != Algorithm::Cubic {
            return None;
        }
        let first = || Box::new(Control::Cubic(Cubic::default()));
        match &mut **self.control.get_or_insert_with(first) {
            Control::Cubic(c) => Some(c),
            _ => None,
        }
    }

    /// A loss was detected; `base` is the quantity from which the threshold is computed. The recovery in use sets the
    /// window itself.
    pub(crate) fn on_loss(&mut self, cfg: &Config, now: Time, srtt: Dur, base: f64) {
        let mss = f64::from(cfg.mss());
        let window = whole_segments(cfg, self.cwnd);
        if let Some(c) = self.cubic(cfg) {
            c.on_loss(window / mss);
        }
        let factor = match self.control.as_deref_mut() {
            Some(Control::Westwood(w)) => {
                if let Some(threshold) = w.threshold() {
                    self.ssthresh = threshold.max(2.0 * mss);
                    return;
                }
                0.5
            }
            Some(Control::Ledbat(l)) => l.factor(now, srtt),
            Some(Control::Bbr(_)) => return,
            Some(Control::Cubic(_)) => cubic::BETA,
            _ => 0.5,
        };
        // At least two segments: RFC 5681 equation 4, RFC 9438 section 4.6.
        self.ssthresh = whole_segments(cfg, whole_segments(cfg, base) * factor).max(2.0 * mss);
    }

    /// Whether CUBIC's epoch began less than a second ago. RTTs then include the queue that caused the loss
    /// (`cubictcp_acked`).
    pub(crate) fn has_just_reduced(&self, now: Time) -> bool {
        match self.control.as_deref() {
            Some(Control::Cubic(c)) => c.is_new(now),
            _ => false,
        }
    }

    /// The retransmission timer expired. CUBIC resets its state (`cubictcp_state`).
    pub(crate) fn on_timeout(&mut self) {
        match self.control.as_deref_mut() {
            Some(Control::Cubic(c)) => *c = Cubic::default(),
            Some(Control::Bbr(b)) => b.on_timeout(self.cwnd),
            _ => {}
        }
    }

    /// A reduction proved wrong: restores window and threshold to at least these values (`tcp_undo_cwnd_reduction`).
    pub(crate) fn undo(&mut self, window: f64, threshold: f64) {
        match self.control.as_deref_mut() {
            Some(Control::Bbr(b)) => b.undo(),
            _ => self.cwnd = self.cwnd.max(window),
        }
        self.ssthresh = self.ssthresh.max(threshold);
    }

    /// The sender was idle for `idle` with nothing in flight.
    pub(crate) fn on_idle(&mut self, cfg: &Config, idle: Dur, rto: Dur) {
        match self.control.as_deref_mut() {
            Some(Control::Cubic(c)) => c.shift(idle),
            Some(Control::Bbr(_)) => return, // section 4.4.4: pacing replaces the restart
            _ => {}
        }
        if idle <= rto || self.cwnd <= cfg.initial_cwnd() {
            return;
        }
        match cfg.idle_restart {
            IdleRestart::Off => {}
            IdleRestart::Reset => self.cwnd = cfg.initial_cwnd(),
            IdleRestart::Decay => {
                // RFC 2861 section 3: save three quarters of the window in the threshold.
                self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
                let halvings = idle.as_nanos() / rto.as_nanos().max(1);
                let halved = self.cwnd / (1u64 << halvings.min(60)) as f64;
                self.cwnd = halved.max(cfg.initial_cwnd());
            }
        }
    }
}

/// With byte counting, rounds a window in bytes down to whole segments, in which Linux counts. Reductions then drop
/// the fraction, and growth per RTT is based on whole segments. Otherwise returns the window unchanged.
fn whole_segments(cfg: &Config, window: f64) -> f64 {
    if cfg.byte_counting {
        let mss = f64::from(cfg.mss());
        (window / mss).floor().max(1.0) * mss
    } else {
        window
    }
}

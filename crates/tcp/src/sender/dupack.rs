//! Recovery without selective acknowledgements: Reno (RFC 5681) and NewReno (RFC 6582).

use swell_base::Time;

use super::state::{Phase, Sender, Timer};
use crate::Config;
use crate::config::Algorithm;
use crate::scoreboard::Delivered;

impl Sender {
    /// SND.UNA moved by `moved` bytes.
    pub(super) fn new_ack_without_sack(
        &mut self,
        cfg: &Config,
        now: Time,
        moved: u64,
        d: &Delivered,
    ) {
        self.dupacks = 0;
        match self.phase {
            Phase::Open | Phase::Reducing => self.grow(cfg, now, d),
            Phase::Recovery if self.una < self.recover && cfg.algorithm != Algorithm::Reno => {
                // RFC 6582 section 3.2 step 3, partial acknowledgement: retransmit the next hole, deflate the window
                // by the amount acknowledged, and add back one segment.
                self.force = true;
                let mss = f64::from(cfg.mss());
                self.inflation -= moved as f64;
                if moved as f64 >= mss {
                    self.inflation += mss;
                }
            }
            Phase::Recovery => {
                self.inflation = 0.0;
                if !self.paced {
                    self.window.cwnd = self.window.ssthresh;
                }
                self.phase = Phase::Open;
            }
            Phase::Loss => {
                self.grow(cfg, now, d);
                if self.una >= self.recover {
                    self.phase = Phase::Open;
                }
            }
        }
    }

    /// Processes a duplicate acknowledgement.
    pub(super) fn dup_ack(&mut self, cfg: &Config, now: Time) {
        self.dupacks = self.dupacks.saturating_add(1);
        match self.phase {
            // RFC 6582 section 3.2 step 2: `recover` prevents duplicates of data sent before the last recovery from
            // starting another one.
            Phase::Open if self.dupacks == cfg.dup_threshold.max(1) && self.una > self.recover => {
                self.reduce(cfg, now);
                self.inflation = f64::from(cfg.dup_threshold) * f64::from(cfg.mss());
                if !self.window.bbr_recovery(Some(self.in_flight()), cfg.mss()) {
                    self.window.cwnd = self.window.ssthresh;
                }
                self.phase = Phase::Recovery;
                self.recover = self.nxt;
                self.partial_acked = false;
                self.rare().count.recoveries += 1;
                self.force = true;
                self.arm(Timer::Rto, now + self.rto(cfg));
            }
            Phase::Recovery => self.inflation += f64::from(cfg.mss()),
            Phase::Open | Phase::Reducing | Phase::Loss => {}
        }
    }
}

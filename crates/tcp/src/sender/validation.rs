//! Congestion window validation: a window that was not filled does not grow.

use super::{Sender, saturated};
use crate::Config;

/// What the last flight was: Linux `tcp_cwnd_validate`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// Where it ends.
    end: u64,
    bytes: u32,
    /// Whether the window was its limit.
    limited: bool,
}

impl Sender {
    /// The window is the limit now.
    pub(super) fn note_limited(&mut self, cfg: &Config) {
        if cfg.window_validation {
            self.rare().flight = Flight {
                end: self.nxt,
                bytes: saturated(self.outstanding()),
                limited: true,
            };
        }
    }

    /// Linux `tcp_cwnd_validate`: once per flight, was the window filled?
    pub(super) fn validate(&mut self, cfg: &Config) {
        let out = saturated(self.outstanding());
        let full = self.in_flight() as f64 + f64::from(cfg.mss()) > self.limit(cfg);
        let (una, end) = (self.una, self.nxt);
        let flight = &mut self.rare().flight;
        if full || una >= flight.end || (!flight.limited && out > flight.bytes) {
            *flight = Flight {
                end,
                bytes: out,
                limited: full,
            };
        }
    }

    /// Whether the window may grow (RFC 7661 in the form of Linux `tcp_is_cwnd_limited`).
    pub(super) fn may_grow(&self, cfg: &Config) -> bool {
        if !cfg.window_validation {
            return true;
        }
        let Flight { bytes, limited, .. } = self
            .rare
            .as_ref()
            .map_or_else(Flight::default, |r| r.flight);
        limited || (self.window.in_slow_start() && self.window.cwnd < 2.0 * f64::from(bytes))
    }
}

//! Congestion window validation: a window that was not filled does not grow.

use super::{Sender, saturated};
use crate::Config;

/// What the last flight was: Linux `tcp_cwnd_validate`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// Where it ends, of which the lower half is enough: a flight has less than 2 GB.
    end: u32,
    /// [`LIMITED`] where the window was its limit: then they do not matter.
    bytes: u32,
}

const LIMITED: u32 = u32::MAX;

impl Flight {
    fn new(end: u64, bytes: u32, limited: bool) -> Flight {
        Flight {
            end: end as u32, // the lower half
            bytes: if limited {
                LIMITED
            } else {
                bytes.min(LIMITED - 1)
            },
        }
    }

    /// Whether all of it is acknowledged when everything below `una` is.
    fn is_over(self, una: u64) -> bool {
        (una as u32).wrapping_sub(self.end) < 1 << 31
    }
}

impl Sender {
    /// The window is the limit now.
    pub(super) fn note_limited(&mut self, cfg: &Config) {
        if cfg.window_validation {
            self.flight = Flight::new(self.nxt, 0, true);
        }
    }

    /// Linux `tcp_cwnd_validate`: once per flight, was the window filled?
    pub(super) fn validate(&mut self, cfg: &Config) {
        let out = saturated(self.outstanding());
        let full = self.in_flight() as f64 + f64::from(cfg.mss()) > self.limit(cfg);
        if full || self.flight.is_over(self.una) || out > self.flight.bytes {
            self.flight = Flight::new(self.nxt, out, full);
        }
    }

    /// Whether the window may grow (RFC 7661 in the form of Linux `tcp_is_cwnd_limited`).
    pub(super) fn may_grow(&self, cfg: &Config) -> bool {
        if !cfg.window_validation {
            return true;
        }
        let bytes = self.flight.bytes;
        bytes == LIMITED
            || (self.window.in_slow_start() && self.window.cwnd < 2.0 * f64::from(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_sequence_number_says_whether_a_flight_is_over() {
        for base in [1u64, (1 << 32) - 2, (5 << 32) + 7] {
            let flight = Flight::new(base + 1000, 1000, false);
            let over = |una| flight.is_over(base + una);
            assert_eq!(
                [0, 999, 1000, 1001, (1 << 31) - 1].map(over),
                [false, false, true, true, true]
            );
        }
        assert!(Flight::default().is_over(1));
    }
}

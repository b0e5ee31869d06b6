//! Congestion window validation: the window does not grow if it was not fully used.

use super::saturated;
use super::state::{Flight, Sender};
use crate::Config;

const LIMITED: u32 = u32::MAX;

impl Flight {
    fn new(end: u64, bytes: u32, limited: bool) -> Flight {
        Flight {
            end: end as u32, // the lower 32 bits
            bytes: if limited {
                LIMITED
            } else {
                bytes.min(LIMITED - 1)
            },
        }
    }

    /// Whether the whole flight is acknowledged, given SND.UNA and SND.NXT. It is if no more was sent since the
    /// flight ended than is in flight now.
    fn is_over(self, una: u64, nxt: u64) -> bool {
        u64::from((nxt as u32).wrapping_sub(self.end)) >= nxt - una
    }
}

impl Sender {
    /// Notes that the window is the limit now.
    pub(super) fn note_limited(&mut self, cfg: &Config) {
        if cfg.window_validation {
            self.flight = Flight::new(self.nxt, 0, true);
        }
    }

    /// Linux `tcp_cwnd_validate`: checks once per flight whether the window was filled.
    pub(super) fn validate(&mut self, cfg: &Config) {
        let out = saturated(self.outstanding());
        let full = self.in_flight() as f64 + f64::from(cfg.mss()) > self.limit(cfg);
        if full || self.flight.is_over(self.una, self.nxt) || out > self.flight.bytes {
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
            // Beyond 2 GB as well, because some windows are larger.
            for bytes in [1000, 3 << 30] {
                let flight = Flight::new(base + bytes, 0, false);
                for after in [0, 1, 1000] {
                    let nxt = base + bytes + after;
                    let over = |una| flight.is_over(base + una, nxt);
                    assert_eq!(
                        [0, 1, bytes - 1, bytes].map(over),
                        [false, false, false, true],
                        "{bytes} {after}"
                    );
                    assert!(flight.is_over(nxt, nxt));
                }
            }
        }
        assert!(Flight::default().is_over(1, 1));
    }
}

//! Estimates when an agent began to send, on its controller's clock.
//!
//! An agent reports for how long it has been sending. The report was made at some instant between the request and the
//! answer, both of which the controller times. (These are the four instants of RFC 5905 section 8, with the agent's
//! two combined into one.) So the beginning is known to within half of the round trip. Among the last samples, the
//! one with the shortest round trip is used. Old samples are discarded, since clocks drift against each other.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of samples that are kept: about a minute at one sample every half second.
const SAMPLES: usize = 128;

/// When an agent began to send, with the uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beginning {
    /// Delay after the controller's request to start, on the controller's clock, in seconds; negative if earlier.
    pub offset_s: f64,
    /// Bound on the error, in seconds: half of the round trip.
    pub uncertainty_s: f64,
}

/// The samples of one agent's part.
#[derive(Debug, Default)]
pub(super) struct Clock(VecDeque<Sample>);

#[derive(Clone, Copy, Debug)]
struct Sample {
    middle: Instant,
    half: Duration,
    elapsed_s: f64,
}

impl Clock {
    /// Adds an answer to a request that left at `sent` and was answered at `received`; it reported `elapsed_s`.
    pub fn add(&mut self, sent: Instant, received: Instant, elapsed_s: f64) {
        // There is nothing to learn before the traffic begins.
        if elapsed_s <= 0.0 {
            return;
        }
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        let half = received.saturating_duration_since(sent) / 2;
        self.0.push_back(Sample {
            middle: sent + half,
            half,
            elapsed_s,
        });
    }

    /// Discards all samples. Another part of the agent has a beginning of its own.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// The estimated beginning, relative to `begun`.
    pub fn beginning(&self, begun: Instant) -> Option<Beginning> {
        let best = self.0.iter().min_by_key(|s| s.half)?;
        let since = best.middle.saturating_duration_since(begun);
        Some(Beginning {
            offset_s: since.as_secs_f64() - best.elapsed_s,
            uncertainty_s: best.half.as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: f64) -> Duration {
        Duration::from_secs_f64(n / 1e3)
    }

    #[test]
    fn the_truth_is_within_the_uncertainty_however_unequal_the_ways_are() {
        let begun = Instant::now();
        let mut clock = Clock::default();
        assert_eq!(clock.beginning(begun), None);
        // The agent begins 7 ms after the request. Each direction takes 0.3 to 30 ms, also asymmetrically.
        let truth = 7.0;
        for (n, there, back) in [
            (1.0, 30.0, 0.3),
            (2.0, 0.3, 30.0),
            (3.0, 1.0, 2.0),
            (4.0, 9.0, 9.0),
        ] {
            let sent = begun + ms(1_000.0 * n);
            let answered = 1_000.0 * n + there;
            clock.add(sent, sent + ms(there + back), (answered - truth) / 1e3);
            let got = clock.beginning(begun).unwrap();
            let error = (got.offset_s * 1e3 - truth).abs();
            assert!(error <= got.uncertainty_s * 1e3 + 1e-6, "{got:?}");
        }
        let got = clock.beginning(begun).unwrap();
        assert!(
            (got.uncertainty_s - 1.5e-3).abs() < 1e-9,
            "the shortest counts"
        );
    }

    #[test]
    fn a_clock_that_drifts_is_followed() {
        let begun = Instant::now();
        let mut clock = Clock::default();
        // The agent's clock gains 1 ms per second. The very first answer had the shortest round trip.
        for n in 1..=2 * SAMPLES as u32 {
            let at = f64::from(n);
            let sent = begun + ms(1e3 * at);
            let trip = if n == 1 { 0.1 } else { 1.0 };
            clock.add(sent, sent + ms(trip), at * 1.001);
        }
        let drifted = clock.beginning(begun).unwrap();
        let oldest = -1e-3 * SAMPLES as f64;
        assert!(
            drifted.offset_s < oldest && drifted.offset_s > 2.1 * oldest,
            "{drifted:?}"
        );
    }
}

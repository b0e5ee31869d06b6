//! Leaving slow start before the queue overflows: HyStart as in Linux (S. Ha, I. Rhee, "Taming the elephants: new TCP
//! slow start", Computer Networks 55 (2011); `net/ipv4/tcp_cubic.c`, `hystart_update`). RFC 9438 section 4.10
//! recommends such an algorithm. HyStart++ (RFC 9406) is a different one and is not implemented.

use swell_base::{Dur, Time};

use super::state::{Episode, HyStart, Sender};
use crate::{Algorithm, Config};

/// HyStart does nothing below this window, in segments (`hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgements closer together than this form a train (`hystart_ack_delta_us`).
const ACK_DELTA: Dur = Dur::from_millis(2);
/// Number of delay samples used per round (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;
/// An RTT increase of one eighth indicates a queue. The threshold is clamped to this range (`HYSTART_DELAY_MIN`,
/// `HYSTART_DELAY_MAX`).
const DELAY_MIN: Dur = Dur::from_millis(4);
const DELAY_MAX: Dur = Dur::from_millis(16);
/// Time for which segmentation offload may hold an acknowledgement back (`hystart_ack_delay`). Linux computes it from
/// the pacing rate with this maximum; below 2 Gbit/s it equals the maximum.
const OFFLOAD: Dur = Dur::from_millis(1);

impl HyStart {
    pub(super) fn new() -> HyStart {
        HyStart {
            end: 0,
            start: Time::ZERO,
            last_ack: Time::ZERO,
            shortest: Dur::MAX,
            samples: 0,
        }
    }

    /// Processes an acknowledgement in slow start. `una` and `nxt` are SND.UNA and SND.NXT, `rtt` is the sample,
    /// `min` the smallest so far; `window` is in segments. Returns whether to leave slow start.
    pub(super) fn leaves(
        &mut self,
        now: Time,
        (una, nxt): (u64, u64),
        (rtt, min): (Dur, Dur),
        window: f64,
    ) -> bool {
        if una > self.end {
            *self = HyStart {
                end: nxt,
                start: now,
                last_ack: now,
                ..HyStart::new()
            };
        }
        if window < LOW_WINDOW {
            return false;
        }
        if now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = now;
            // Linux allows a whole RTT with pacing. Sending here is not paced, so the limit is half the RTT.
            if now.since(self.start) > (min + OFFLOAD) / 2 {
                return true;
            }
        }
        self.shortest = self.shortest.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let rise = (min / 8).clamp(DELAY_MIN, DELAY_MAX);
        self.shortest > min + rise
    }
}

impl Sender {
    /// Takes an RTT sample for CUBIC, which keeps a minimum of its own. Unlike that of the connection, it does not
    /// include the SYN, and a time-out clears it (`cubictcp_acked`, `bictcp_reset`).
    pub(super) fn note_delay(&mut self, cfg: &Config, now: Time, rtt: Dur) {
        if cfg.algorithm != Algorithm::Cubic || self.window.has_just_reduced(now) {
            return;
        }
        let sample = u32::try_from(rtt.as_nanos() / 1000).unwrap_or(u32::MAX);
        let min = &mut self.index_or_delay;
        if *min == 0 || sample < *min {
            *min = sample.max(1);
        }
    }

    /// CUBIC's smallest RTT, `None` before its first sample (`delay_min`).
    pub(crate) fn delay_min(&self) -> Option<Dur> {
        let micros = u64::from(self.index_or_delay);
        (micros > 0 && !self.ns2).then(|| Dur::from_micros(micros))
    }

    /// HyStart: ends slow start when the path shows that it is full.
    pub(super) fn mind_slow_start(&mut self, now: Time, rtt: Dur, cfg: &Config) {
        if !self.minded {
            return;
        }
        if self.window.in_slow_start() {
            // The first acknowledgement of a round only records when the round began. If the round ends with it,
            // nothing needs to be recorded.
            if self.una == self.nxt && self.episode().is_none() {
                return;
            }
            let window = self.window.cwnd / f64::from(cfg.mss());
            let min = self.delay_min().unwrap_or(rtt);
            let round = (self.una, self.nxt);
            let first = || Episode::SlowStart(HyStart::new());
            let Episode::SlowStart(hystart) = self.active().episode.get_or_insert_with(first)
            else {
                return;
            };
            if !hystart.leaves(now, round, (rtt, min), window) {
                return;
            }
            self.window.ssthresh = self.window.cwnd;
        }
        self.end_slow_start();
    }

    /// Stops monitoring slow start.
    fn end_slow_start(&mut self) {
        self.minded = false;
        if let Some(Episode::SlowStart(_)) = self.episode() {
            self.active().episode = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Dur = Dur::from_millis(40);

    /// Feeds a round of `n` acknowledgements `gap` apart. Returns the first one that says to leave slow start.
    fn round(h: &mut HyStart, n: u64, gap: Dur, rtt: Dur, window: f64) -> Option<u64> {
        let begin = Time::from_nanos(1_000_000_000);
        (1..=n).find(|&i| h.leaves(begin + gap * i, (i * 1000, 1_000_000), (rtt, MIN), window))
    }

    #[test]
    fn a_train_of_half_a_round_trip_means_a_full_pipe() {
        let mut h = HyStart::new();
        // (40 + 1)/2 = 20.5 ms after the round began, in steps of 1.2 ms: the 19th.
        assert_eq!(
            round(&mut h, 100, Dur::from_micros(1200), MIN, 40.0),
            Some(19)
        );
    }

    /// Hence no state of a round is needed while nothing is in flight.
    #[test]
    fn the_first_acknowledgement_of_a_round_asks_nothing_of_the_one_before() {
        for window in [10.0, 40.0] {
            let mut old = HyStart::new();
            round(&mut old, 12, Dur::from_micros(900), MIN, window);
            let mut new = HyStart::new();
            let at = Time::from_nanos(1_500_000_000);
            for h in [&mut old, &mut new] {
                assert!(!h.leaves(at, (2_000_000, 3_000_000), (MIN * 2, MIN), window));
            }
            assert_eq!(format!("{old:?}"), format!("{new:?}"));
        }
    }

    #[test]
    fn a_broken_train_and_a_small_window_mean_nothing() {
        let slow = Dur::from_micros(2100);
        assert_eq!(round(&mut HyStart::new(), 100, slow, MIN, 40.0), None);
        let fast = Dur::from_micros(1200);
        assert_eq!(round(&mut HyStart::new(), 100, fast, MIN, 15.0), None);
    }

    #[test]
    fn a_round_trip_longer_by_an_eighth_means_a_queue() {
        let slow = Dur::from_micros(2100);
        let queue = MIN + Dur::from_micros(5001);
        assert_eq!(round(&mut HyStart::new(), 100, slow, queue, 40.0), Some(9));
        let less = MIN + Dur::from_micros(4999);
        assert_eq!(round(&mut HyStart::new(), 100, slow, less, 40.0), None);
    }
}

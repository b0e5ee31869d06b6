//! Westwood+ (L. Grieco, S. Mascolo, CCR 34(2), 2004) in the form of Linux's `tcp_westwood.c`. The threshold after a
//! loss is the measured bandwidth times the smallest RTT.

use swell_base::{Dur, Time};

#[derive(Clone, Debug, Default)]
pub(crate) struct Westwood {
    /// Bytes acknowledged in this round, and when it began.
    bytes: u64,
    since: Option<Time>,
    /// Bandwidth in bytes per second after one and after two low-pass filters; zero before the first round.
    once: f64,
    twice: f64,
    /// Smallest RTT in seconds, and the last RTT, which sets the length of rounds.
    min_rtt: f64,
}

/// Shortest round (`TCP_WESTWOOD_RTT_MIN`), seconds.
const SHORTEST: f64 = 0.05;

impl Westwood {
    /// Counts `bytes` that an acknowledgement delivered. Called in every phase, as in Linux (`in_ack_event`): a rate
    /// measured outside recovery only would be too low.
    pub(crate) fn on_ack(&mut self, now: Time, bytes: u64, srtt: Dur, min_rtt: Dur) {
        self.min_rtt = min_rtt.as_secs_f64();
        self.bytes += bytes;
        let Some(since) = self.since else {
            self.since = Some(now);
            self.bytes = 0;
            return;
        };
        let took = now.since(since).as_secs_f64();
        if took > srtt.as_secs_f64().max(SHORTEST) {
            let sample = self.bytes as f64 / took;
            if self.once == 0.0 {
                self.once = sample;
                self.twice = sample;
            } else {
                self.once = (7.0 * self.once + sample) / 8.0;
                self.twice = (7.0 * self.twice + self.once) / 8.0;
            }
            self.bytes = 0;
            self.since = Some(now);
        }
    }

    /// The threshold in bytes; `None` before anything was measured.
    pub(crate) fn threshold(&self) -> Option<f64> {
        (self.twice > 0.0).then_some(self.twice * self.min_rtt)
    }
}

//! Computes how many sessions carry the model's bytes.
//!
//! The paper's figure 4 counts simulated sessions until they have moved the interval's bytes, and takes
//! the mean of several tries. That has two flaws. Stopping at the first session that reaches the target
//! overshoots it. And the released program's sessions begin with an idle wait and linger after their last
//! connection, which is not compensated. Here a session is a renewal process that has always been running:
//! its first wait is a residual life. So it opens W / E[gap] connections on average in an interval of
//! length W, from its first moment on (D. Cox, *Renewal Theory*, 1962, section 4). This is the limit of
//! the mean of ever more tries, without any tries. Rounding remainders are carried to the next interval.

use swell_base::{Dur, Stream};

use super::law::Law;
use super::model::{FlowModel, Profile};

/// If the sessions carry more than this many times the model's bytes, or less than the inverse, they were
/// not tuned to it.
const MEANT: f64 = 1.25;
/// Number of tries of the released program.
const TRIES: u64 = 100;
/// Maximum number of simulated connections in all tries together.
const MAX_DRAWS: u64 = 20_000_000;

impl FlowModel {
    /// Distribution of the gaps between connections of a session, microseconds. If no client opened two
    /// connections, one connection per interval and session. `None` only if there were no connections at
    /// all.
    pub fn gap_law(&self) -> Option<Law> {
        let mut gaps = self.tcp.gaps.clone();
        // With a mean of zero, a session would open endless connections at once.
        if gaps.sum() == 0 {
            if self.tcp.down.count() == 0 {
                return None;
            }
            gaps = super::Histogram::default();
            gaps.add((self.interval.as_nanos() / 1_000).max(1));
        }
        Law::new(&gaps, &super::Histogram::default())
    }

    /// Expected bytes that a session moves in an interval, both directions.
    pub fn session_bytes(&self) -> Option<f64> {
        let size = self.tcp.up.law().map_or(0.0, |l| l.mean()) + self.tcp.down.law()?.mean();
        let gaps = self.gap_law()?;
        Some(self.micros() / gaps.mean() * size)
    }

    /// Bytes that the sessions carry over all intervals, relative to the intervals' bytes: near one if
    /// they were tuned to them.
    pub(super) fn carried(&self) -> f64 {
        let all = &self.tcp.intervals;
        let bytes: f64 = all.iter().map(|i| i.bytes as f64).sum();
        let active: f64 = (0..all.len())
            .map(|i| all[i].sessions as f64 * self.seen_of(i).as_secs_f64())
            .sum();
        active * self.session_bytes().unwrap_or(0.0) / self.interval.as_secs_f64() / bytes
    }

    /// Whether the sessions were tuned to the bytes of all intervals together, which then tell when large files begin.
    pub(super) fn is_tuned(&self) -> bool {
        let meant = (1.0 / MEANT..MEANT).contains(&self.carried());
        self.profile == Profile::Fixed && meant
    }

    /// Sets the number of sessions of every interval. Under [`Profile::Fixed`] it is proportional to the
    /// interval's connections and carries the bytes of all intervals together. Under [`Profile::Harpoon`]
    /// it meets each interval's bytes.
    pub fn tune(&mut self) {
        match self.profile {
            Profile::Fixed => self.tune_fixed(),
            Profile::Harpoon => self.tune_harpoon(),
        }
    }

    fn tune_fixed(&mut self) {
        let each = self.session_bytes().unwrap_or(0.0);
        let length = self.interval.as_nanos() as f64;
        let intervals = &self.tcp.intervals;
        let bytes: f64 = intervals.iter().map(|i| i.bytes as f64).sum();
        let begun: f64 = intervals.iter().map(|i| i.connections as f64).sum();
        let seen: Vec<f64> = (0..self.tcp.intervals.len())
            .map(|i| self.seen_of(i).as_nanos() as f64 / length)
            .collect();
        let mut left = 0.0;
        for (interval, part) in self.tcp.intervals.iter_mut().zip(seen) {
            interval.sessions = 0;
            let carried = if begun > 0.0 {
                interval.connections as f64 * (bytes / begun)
            } else {
                interval.bytes as f64
            };
            // An idle interval gets no remainder from a busy one.
            if each > 0.0 && carried > 0.0 {
                let want = carried / (each * part) + left;
                interval.sessions = (want + 0.5) as u64;
                left = want - interval.sessions as f64;
            }
        }
    }

    /// `mimic_harpoon`: mean over the tries, rounded down. Draws are independent here, instead of walks
    /// along a list that was shuffled without a seed. If no gap fits into an interval, there are no
    /// sessions; the released program loops forever in that case.
    fn tune_harpoon(&mut self) {
        let (Some(gaps), Some(sizes)) = (self.gap_law(), self.tcp.down.law()) else {
            return;
        };
        let length = self.micros();
        if gaps.quantile(0.0) > length || sizes.mean() <= 0.0 {
            return;
        }
        let all = self
            .tcp
            .intervals
            .iter()
            .map(|i| i.bytes as f64)
            .sum::<f64>();
        let once = 1.0 + all / sizes.mean() + self.tcp.intervals.len() as f64;
        let tries = ((MAX_DRAWS as f64 / once) as u64).clamp(1, TRIES);
        let mut stream = Stream::new(1, "harpoon tuning");
        let mut draws = 0;
        for interval in &mut self.tcp.intervals {
            let mut sessions = 0u64;
            for _ in 0..tries {
                let mut bytes = 0.0;
                while bytes < interval.bytes as f64 && draws < 2 * MAX_DRAWS {
                    sessions += 1;
                    let mut t = gaps.draw(&mut stream);
                    draws += 1;
                    while t <= length && draws < 2 * MAX_DRAWS {
                        bytes += sizes.draw(&mut stream);
                        t += gaps.draw(&mut stream);
                        draws += 1;
                    }
                }
            }
            interval.sessions = sessions / tries;
        }
    }

    fn micros(&self) -> f64 {
        self.interval.max(Dur::from_micros(1)).as_nanos() as f64 / 1e3
    }
}

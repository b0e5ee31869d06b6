//! How many sessions carry an interval's bytes, and what playing them comes to.
//!
//! The paper's figure 4 counts imaginary sessions until they have moved the interval's bytes, and takes
//! the mean of several tries. Stopping at the first session that reaches the target overshoots it, and
//! the released program's sessions begin with an empty wait and linger after their last connection,
//! for which nothing is added. Here a session is a renewal process that has always been running (its
//! first wait is a residual life), so that it opens W / E[gap] connections in an interval of length W,
//! exactly and from its first moment on (D. Cox, *Renewal Theory*, 1962, section 4): what the mean of
//! ever more tries tends to needs no tries. What rounding to whole sessions leaves over is carried to the
//! next interval.

use swell_base::{Dur, Stream};

use super::law::Law;
use super::model::{FlowModel, Profile};

/// Tries of the released program.
const TRIES: u64 = 100;
/// Imaginary connections that all tries together may open.
const MAX_DRAWS: u64 = 20_000_000;
/// Sessions that an imitation keeps active at most.
const MAX_SESSIONS: u64 = 1 << 20;

/// What an interval comes to when it is played.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Played {
    /// Connections opened.
    pub connections: u64,
    /// Bytes of their files, both directions.
    pub bytes: f64,
}

impl FlowModel {
    /// From one connection of a session to the next: microseconds. Where no client opened two, one
    /// connection per interval and session. `None` only if there were no connections at all.
    pub fn gap_law(&self) -> Option<Law> {
        let mut gaps = self.tcp.gaps.clone();
        // A mean of zero would let a session open endless connections at once.
        if gaps.sum() == 0 {
            if self.tcp.down.count() == 0 {
                return None;
            }
            gaps = super::Histogram::default();
            gaps.add((self.interval.as_nanos() / 1_000).max(1));
        }
        Law::new(&gaps, &super::Histogram::default())
    }

    /// Bytes that a session is expected to move in an interval, both directions.
    pub fn session_bytes(&self) -> Option<f64> {
        let size = self.tcp.up.law().map_or(0.0, |l| l.mean()) + self.tcp.down.law()?.mean();
        let gaps = self.gap_law()?;
        Some(self.micros() / gaps.mean() * size)
    }

    /// Sets the number of sessions of every interval so that its bytes are met.
    pub fn tune(&mut self) {
        match self.profile {
            Profile::Fixed => self.tune_fixed(),
            Profile::Harpoon => self.tune_harpoon(),
        }
    }

    fn tune_fixed(&mut self) {
        let each = self.session_bytes().unwrap_or(0.0);
        let mut left = 0.0;
        for interval in &mut self.tcp.intervals {
            interval.sessions = 0;
            // An idle interval gets nothing that was left over from a busy one.
            if each > 0.0 && interval.bytes > 0 {
                let want = interval.bytes as f64 / each + left;
                interval.sessions = (want + 0.5) as u64;
                left = want - interval.sessions as f64;
            }
        }
    }

    /// `mimic_harpoon`: mean over the tries, rounded down. Draws are independent here instead of walks
    /// along a list that was shuffled without a seed; and where no gap fits into an interval, on which the
    /// released program loops for ever, there are no sessions.
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

    /// Plays the model's arithmetic, without a network: what each interval comes to if transfers take no
    /// time. At most twenty million connections and a million sessions at once; intervals after that many
    /// connections stay empty.
    pub fn imitate(&self, seed: u64) -> Vec<Played> {
        let mut played = vec![Played::default(); self.tcp.intervals.len()];
        let (Some(gaps), Some(down)) = (self.gap_law(), self.tcp.down.law()) else {
            return played;
        };
        let up = self.tcp.up.law();
        let mut stream = Stream::new(seed, "imitate");
        let length = self.micros();
        let busy = self.tcp.intervals.iter().filter(|i| i.sessions > 0).count();
        let sessions: u64 = self
            .tcp
            .intervals
            .iter()
            .map(|i| i.sessions)
            .fold(0, u64::saturating_add);
        let per_interval = sessions as f64 / busy.max(1) as f64 * length / gaps.mean();
        let mut down = down.deck(per_interval as usize);
        let mut up = up.as_ref().map(|l| l.deck(per_interval as usize));
        let (mut draws, mut looks) = (0, 0);
        // When each session opens its next connection, and when it ends.
        let mut active: Vec<(f64, f64)> = Vec::new();
        for (k, interval) in self.tcp.intervals.iter().enumerate() {
            let (begin, end) = (k as f64 * length, (k + 1) as f64 * length);
            let wanted = interval.sessions.min(MAX_SESSIONS) as usize;
            if self.profile == Profile::Fixed {
                active.truncate(wanted);
            }
            while active.len() < wanted {
                active.push(self.begin(begin, &gaps, &mut stream));
            }
            let mut live = 0;
            let mut spent = 0;
            looks += active.len() as u64;
            if looks > 10 * MAX_DRAWS {
                break;
            }
            while live < active.len() {
                let (next, ends) = active[live];
                if next >= end || draws >= MAX_DRAWS {
                    live += 1;
                } else if next > ends {
                    spent += 1;
                    // The released program ends a session only here, and replaces it if still wanted.
                    if active.len() > wanted || spent > MAX_DRAWS {
                        active.swap_remove(live);
                    } else {
                        active[live] = self.begin(next, &gaps, &mut stream);
                    }
                } else {
                    played[k].connections += 1;
                    played[k].bytes +=
                        down.draw(&mut stream) + up.as_mut().map_or(0.0, |u| u.draw(&mut stream));
                    active[live].0 = next + gaps.draw(&mut stream);
                    draws += 1;
                }
            }
        }
        played
    }

    /// A session that begins at `now`: its first connection and its end, microseconds.
    fn begin(&self, now: f64, gaps: &Law, stream: &mut Stream) -> (f64, f64) {
        match self.profile {
            Profile::Fixed => (now + gaps.draw_residual(stream), f64::INFINITY),
            // Up to a second of jitter, one whole gap, and an end after the length of an interval.
            Profile::Harpoon => {
                let begin = now + stream.uniform() * 1e6;
                (begin + gaps.draw(stream), begin + self.micros())
            }
        }
    }

    fn micros(&self) -> f64 {
        self.interval.max(Dur::from_micros(1)).as_nanos() as f64 / 1e3
    }
}

//! When which session starts: a balanced block bootstrap of the recorded starts.
//!
//! A run of any length walks through the model's time axis, cyclically, from a phase. Each pass
//! ("cycle") is drawn anew:
//!
//! * *How often* each session appears is fixed, as in the balanced bootstrap (Davison, Hinkley &
//!   Schechtman, Biometrika 73, 1986): `floor(k * weight)` times, and once more for a share of the
//!   sessions that carries the fractions, chosen by systematic sampling over the sessions of a class
//!   in order of window and size. So volume, overall and per window, hardly varies with the seed,
//!   whatever the tail of the sizes.
//! * *When* is drawn within the session's own class and window (a tenth of the model's duration):
//!   a window's sessions are put into random order and take stratified draws from the window's
//!   recorded start times, smoothed to the midpoints between them. With `k` = 1 every recorded
//!   start is used once, moved within its own gap. So the arrangement is random, while daily
//!   courses and load steps longer than a window stay where they were.
//!
//! The schedule begins with an empty link: sessions that had started before the phase and would
//! still be running are not in it. Warm up for [`Model::warm_up`] or so before measuring.

use swell_base::{Dur, Stream, Time};

use crate::{Knobs, Model};

/// Windows per cycle within which sessions change places.
const WINDOWS: u64 = 10;
/// More starts than any run can play; drawing them would only exhaust memory.
const MAX_STARTS: f64 = 20e6;

/// Session starts of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// In order of time; ties in the order of the sessions.
    pub starts: Vec<Start>,
    /// Where in the model the run began.
    pub phase: Dur,
}

/// One session to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    /// Since the beginning of the run.
    pub at: Time,
    /// Index into [`Model::sessions`]; that names the client path, its connections the server paths.
    pub session: u32,
    /// Which appearance of this session in the run it is, from 0: a name for its random stream.
    pub copy: u32,
}

/// Why no schedule can be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DrawError {
    /// The factor on sessions is negative, infinite or not a number.
    #[error("sessions x {0}: must be zero or positive")]
    Factor(f64),
    /// The model's sessions have nowhere to lie.
    #[error("the model lasts no time")]
    NoDuration,
    /// The phase lies outside the model.
    #[error("phase {phase} lies beyond the model's {duration}")]
    Phase {
        /// What was asked for.
        phase: Dur,
        /// The model's duration.
        duration: Dur,
    },
    /// The run would hold more sessions than can be played.
    #[error("about {0:.0} session starts; at most 20 million can be played")]
    TooMany(f64),
}

impl Schedule {
    /// Draws the starts of a run of length `horizon`. Equal arguments give equal schedules. Only
    /// `sessions` and `phase` of the knobs are used; [`Model::varied`] applies the others.
    ///
    /// # Errors
    /// See [`DrawError`].
    pub fn draw(
        model: &Model,
        knobs: &Knobs,
        seed: u64,
        horizon: Dur,
    ) -> Result<Schedule, DrawError> {
        let k = knobs.sessions;
        if !(k.is_finite() && k >= 0.0) {
            return Err(DrawError::Factor(k));
        }
        let duration = model.duration.as_nanos();
        let phase = match knobs.phase {
            Some(p) if p > Dur::ZERO && p >= model.duration => {
                return Err(DrawError::Phase {
                    phase: p,
                    duration: model.duration,
                });
            }
            Some(p) => p,
            None => Dur::from_nanos(Stream::new(seed, "schedule-phase").below(duration)),
        };
        if model.sessions.is_empty() {
            return Ok(Schedule {
                starts: Vec::new(),
                phase,
            });
        }
        if duration == 0 {
            return Err(DrawError::NoDuration);
        }
        let end = phase.as_nanos().saturating_add(horizon.as_nanos());
        let cycles = end.div_ceil(duration);
        let weight: f64 = model.sessions.iter().map(|s| s.weight).sum();
        let about = cycles as f64 * (weight * k).max(model.sessions.len() as f64);
        if about > MAX_STARTS {
            return Err(DrawError::TooMany(about));
        }
        let strata = strata(model);
        let mut starts = Vec::new();
        for cycle in 0..cycles {
            let mut rng = Stream::indexed(seed, "schedule-cycle", cycle);
            // Cannot overflow: `cycle * duration < end`.
            let origin = cycle * duration;
            draw_cycle(model, &strata, k, &mut rng, |at, session| {
                let at = origin.saturating_add(at);
                if at >= phase.as_nanos() && at < end {
                    starts.push(Start {
                        at: Time::from_nanos(at - phase.as_nanos()),
                        session,
                        copy: 0,
                    });
                }
            });
        }
        starts.sort_unstable();
        let mut copies = vec![0u32; model.sessions.len()];
        for s in &mut starts {
            let copy = &mut copies[s.session as usize];
            s.copy = *copy;
            *copy += 1;
        }
        Ok(Schedule { starts, phase })
    }
}

/// The sessions of one class and window.
struct Stratum {
    class: u32,
    /// Where each recorded start may move to: boundaries at the midpoints between starts, from the
    /// window's beginning to its end; one more than sessions.
    cells: Vec<u64>,
    /// Running sum of the weights, one more than sessions, from 0.
    mass: Vec<f64>,
    /// Session indices in order of size.
    by_size: Vec<u32>,
}

fn strata(model: &Model) -> Vec<Stratum> {
    let duration = model.duration.as_nanos();
    // Window i begins at i * duration / WINDOWS; products in 128 bits.
    let edge = |i: u64| (u128::from(i) * u128::from(duration) / u128::from(WINDOWS)) as u64;
    let mut keyed: Vec<(u32, u64, u32)> = Vec::with_capacity(model.sessions.len());
    for (i, s) in (0u32..).zip(&model.sessions) {
        let at = s.start.as_nanos().min(duration - 1);
        let window = (0..WINDOWS).rfind(|&w| edge(w) <= at).unwrap_or(0);
        keyed.push((s.class, window, i));
    }
    keyed.sort_unstable();
    keyed
        .chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
        .map(|group| {
            let (class, window, _) = group[0];
            let sessions: Vec<u32> = group.iter().map(|g| g.2).collect();
            let start = |i: u32| model.sessions[i as usize].start.as_nanos();
            let mut cells = vec![edge(window)];
            for pair in sessions.windows(2) {
                let (a, b) = (start(pair[0]), start(pair[1]));
                cells.push(a + b.saturating_sub(a) / 2);
            }
            cells.push(edge(window + 1));
            let mut mass = vec![0.0];
            let mut sum = 0.0;
            for &i in &sessions {
                sum += model.sessions[i as usize].weight;
                mass.push(sum);
            }
            let mut by_size = sessions;
            by_size.sort_by_key(|&i| {
                let [up, down] = model.sessions[i as usize].bytes();
                (up.saturating_add(down), i)
            });
            Stratum {
                class,
                cells,
                mass,
                by_size,
            }
        })
        .collect()
}

fn draw_cycle(
    model: &Model,
    strata: &[Stratum],
    k: f64,
    rng: &mut Stream,
    mut place: impl FnMut(u64, u32),
) {
    let mut class = None;
    // Systematic sampling of the fractions: the running sum crosses an integer exactly as often as
    // the fractions add up to, within one per class.
    let mut running = 0.0;
    let mut chosen = Vec::new();
    for stratum in strata {
        if class != Some(stratum.class) {
            class = Some(stratum.class);
            running = rng.uniform();
        }
        chosen.clear();
        for &i in &stratum.by_size {
            let expected = k * model.sessions[i as usize].weight;
            let mut count = expected.floor() as u64;
            running += expected.fract();
            if running >= 1.0 {
                running -= 1.0;
                count += 1;
            }
            chosen.extend((0..count).map(|_| i));
        }
        rng.shuffle(&mut chosen);
        for (j, &session) in chosen.iter().enumerate() {
            let u = (j as f64 + rng.uniform()) / chosen.len() as f64;
            place(stratum.quantile(u), session);
        }
    }
}

impl Stratum {
    /// The smoothed distribution of recorded starts: uniform within each session's cell, cells
    /// weighted as their sessions. `u` in [0, 1).
    fn quantile(&self, u: f64) -> u64 {
        let n = self.mass.len() - 1;
        let target = u * self.mass[n];
        let i = (self.mass.partition_point(|&m| m <= target).max(1) - 1).min(n - 1);
        let within = (target - self.mass[i]) / (self.mass[i + 1] - self.mass[i]);
        let (a, b) = (self.cells[i], self.cells[i + 1]);
        let at = a + ((b - a) as f64 * within.clamp(0.0, 1.0)) as u64;
        at.min(self.cells[n].saturating_sub(1))
    }
}

#[cfg(test)]
mod tests;

//! Decides when each session starts, and which sessions are in progress when a run begins.
//!
//! The recording is a circle, entered at a *phase* that the seed draws uniformly. Sessions that begin
//! after the phase start at their recorded times. Sessions in progress at the phase are entered at their
//! age at that point ([`Entered`]). So relations between sessions are preserved, and the mean load at the
//! start of a run equals that at its end.
//!
//! * *Copies.* With `k` times the model's sessions, a session of weight `w` appears in `k * w` copies of
//!   the recording. Each copy has its own phase. The fraction is given to some of the sessions, by
//!   systematic sampling within a class in order of size. So the volume hardly varies with the seed.
//! * *Passes.* A run longer than the recording goes round again, with a new phase for each copy.
//! * *Lasting sessions* took at least half of the recording ([`Session::lasted`]). They are users who are always there. At
//!   any time there is one copy of each ([`Lasting`]). So a slower network does not multiply them, and a faster one does
//!   not leave gaps.
//! * *A given phase* applies to the first copy, in every pass. Other copies begin up to a twentieth of the
//!   recording before or after it. So copies do not coincide, and the time of day is kept.
//!
//! Ages follow the model's estimated times over a [`Network`]. Sessions that a slower network stretches
//! are in progress for longer than the schedule assumes.

use swell_base::{Dur, Stream, Time, derived};

use crate::lasting::stays;
use crate::remainder::{Entered, SessionInProgress};
use crate::timeline::{Groups, Network};
use crate::{Knobs, Model};

/// Maximum number of sessions in a run; drawing more would only exhaust memory.
const MAX_STARTS: f64 = 20e6;
/// With a given phase, other copies begin within one of this many parts of the recording around it.
const AROUND: u64 = 10;

/// Sessions of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// Sessions that start in the run, in time order; ties in the order of the sessions.
    pub starts: Vec<Start>,
    /// Sessions in progress when it begins.
    pub entered: Vec<Entered>,
    /// By session of the model, for lasting ones: when the next copy begins. What `starts` has of these is the first of
    /// each copy, or the first after the one that has been entered.
    pub lasting: Vec<Option<Lasting>>,
    /// Phase of the first copy in the first pass.
    pub phase: Dur,
}

/// When the copy after a session begins that is played once at a time: both this long after the end of its predecessor,
/// and this long after its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting {
    /// Pause after the end: the rest of the recording.
    pub rest: Dur,
    /// Time from one beginning to the next over the assumed network: on the recorded link, the duration of the recording.
    pub cycle: Dur,
}

/// One session to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    /// Time since the start of the run.
    pub at: Time,
    /// Index into [`Model::sessions`]. The session names the client path, its connections name the server
    /// paths.
    pub session: u32,
    /// The copy of the recording that it belongs to, from 0. The hosts of one copy share their access
    /// paths.
    pub copy: u32,
}

/// Why no schedule can be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DrawError {
    /// The factor on sessions is negative, infinite or not a number.
    #[error("sessions x {0}: must be zero or positive")]
    Factor(f64),
    /// The model has no duration.
    #[error("the model lasts no time")]
    NoDuration,
    /// The phase lies outside the model.
    #[error("phase {phase} lies beyond the model's {duration}")]
    Phase {
        /// The requested phase.
        phase: Dur,
        /// The model's duration.
        duration: Dur,
    },
    /// The run repeats a short model more often than can be played.
    #[error(
        "the model lasts {duration}, and a run of {horizon} would repeat its {sessions} sessions too often: learn a \
         longer trace, or run it for less time"
    )]
    TooShort {
        /// The model's duration.
        duration: Dur,
        /// The length of the run.
        horizon: Dur,
        /// Number of sessions in the model.
        sessions: usize,
    },
    /// The run would have more sessions than can be played.
    #[error("about {0:.0} sessions; at most 20 million can be played")]
    TooMany(f64),
}

impl Schedule {
    /// Draws the sessions of a run of length `horizon` over `network`. Equal arguments give equal
    /// schedules. Only `sessions` and `phase` of the knobs are used; [`Model::varied`] applies the others.
    ///
    /// # Errors
    /// See [`DrawError`].
    pub fn draw(
        model: &Model,
        knobs: &Knobs,
        seed: u64,
        horizon: Dur,
        network: &Network,
    ) -> Result<Schedule, DrawError> {
        Schedule::drawn(model, knobs, seed, horizon, network, false)
    }

    /// The same without sessions in progress at the beginning. All begin at their recorded times after it.
    ///
    /// # Errors
    /// See [`DrawError`].
    pub fn cold(
        model: &Model,
        knobs: &Knobs,
        seed: u64,
        horizon: Dur,
        network: &Network,
    ) -> Result<Schedule, DrawError> {
        Schedule::drawn(model, knobs, seed, horizon, network, true)
    }

    fn drawn(
        model: &Model,
        knobs: &Knobs,
        seed: u64,
        horizon: Dur,
        network: &Network,
        cold: bool,
    ) -> Result<Schedule, DrawError> {
        let k = knobs.sessions;
        if !(k.is_finite() && k >= 0.0) {
            return Err(DrawError::Factor(k));
        }
        let circle = Circle::new(model, knobs.phase, seed)?;
        let mut schedule = Schedule {
            phase: Dur::from_nanos(circle.phase(0, 0)),
            ..Schedule::default()
        };
        if model.sessions.is_empty() {
            return Ok(schedule);
        }
        if circle.length == 0 {
            return Err(DrawError::NoDuration);
        }
        let times: Vec<Groups> = (model.sessions.iter())
            .map(|s| Groups::of(model, s, network))
            .collect();
        let stays = stays(model, knobs.think, network.rtt);
        schedule.lasting = (stays.iter().zip(&times))
            .map(|(stay, course)| {
                let (rest, cycle) = stay.map(|stay| (stay.rest, stay.cycle(course.end)))?;
                Some(Lasting { rest, cycle })
            })
            .collect();
        let rounds = horizon.as_secs_f64() / model.duration.as_secs_f64();
        let about: f64 = (model.sessions.iter().zip(&times))
            .zip(&schedule.lasting)
            .map(|((s, t), lasting)| {
                let cycle = lasting.map_or(Dur::MAX, |l| l.cycle).as_secs_f64();
                let rounds = rounds.max(horizon.as_secs_f64() / cycle.max(1e-9));
                let under_way = t.end.as_secs_f64() / model.duration.as_secs_f64();
                k * s.weight * (rounds.max(1.0) + under_way)
            })
            .sum();
        let too_short = || DrawError::TooShort {
            duration: model.duration,
            horizon,
            sessions: model.sessions.len(),
        };
        if about > MAX_STARTS {
            return Err(match model.has_duration() {
                true => DrawError::TooMany(about),
                false => too_short(),
            });
        }
        let passes = horizon.as_nanos().div_ceil(circle.length);
        // Each pass has a cost, however few of its sessions are chosen.
        if passes as f64 * model.sessions.len() as f64 > MAX_STARTS {
            return Err(too_short());
        }
        let by_class = by_class_and_size(model);
        let mut under_way: Vec<(u32, u32, Dur)> = Vec::new();
        for pass in 0..passes {
            let mut rng = Stream::indexed(seed, "schedule-cycle", pass);
            let chosen = appearances(model, &by_class, k, &mut rng);
            for copy in 0..chosen.first().map_or(0, |c| c.1) {
                let phase = circle.phase(copy, pass);
                for &(session, _) in chosen.iter().take_while(|c| c.1 > copy) {
                    let lasting = schedule.lasting[session as usize];
                    if lasting.is_some() && pass > 0 {
                        continue;
                    }
                    let start = model.sessions[session as usize].start.as_nanos();
                    let turn = (start % circle.length + circle.length - phase) % circle.length;
                    // Cannot overflow, because the pass begins before the horizon.
                    let at = (pass * circle.length).saturating_add(turn);
                    let copy = copy as u32;
                    let course = &times[session as usize];
                    // The age at the beginning of the latest that began before it.
                    let mut age = Dur::from_nanos(circle.length - turn);
                    let mut at = at;
                    if let Some(Lasting { cycle, .. }) = lasting.filter(|_| !cold) {
                        // The same place in its course and pause over this network.
                        let due = cycle.scale(at as f64 / circle.length as f64);
                        age = cycle.saturating_sub(due);
                        at = match knobs.phase {
                            // It has not come yet.
                            Some(_) if age >= course.end => at,
                            Some(_) => at.min(due.as_nanos()),
                            None => due.as_nanos(),
                        };
                    }
                    if at < horizon.as_nanos() {
                        let at = Time::from_nanos(at);
                        schedule.starts.push(Start { at, session, copy });
                    }
                    if pass == 0 && !cold {
                        while age < course.end {
                            under_way.push((session, copy, age));
                            if lasting.is_some() {
                                break;
                            }
                            age += model.duration;
                        }
                    }
                }
            }
        }
        schedule.starts.sort_unstable();
        schedule.entered = entered(model, &times, &under_way, network);
        Ok(schedule)
    }
}

/// Enters sessions that are under way: index, copy and age. They keep their order. All copies of a session are cut at one
/// time, so that the courses of only one are in memory.
fn entered(
    model: &Model,
    times: &[Groups],
    under_way: &[(u32, u32, Dur)],
    network: &Network,
) -> Vec<Entered> {
    let mut order: Vec<u32> = (0..under_way.len() as u32).collect();
    order.sort_by_key(|&i| under_way[i as usize].0);
    let mut found: Vec<(u32, Entered)> = Vec::with_capacity(under_way.len());
    for copies in order.chunk_by(|&a, &b| under_way[a as usize].0 == under_way[b as usize].0) {
        let session = under_way[copies[0] as usize].0;
        let course = &times[session as usize];
        let Some(entering) = SessionInProgress::new(model, (session, course), network) else {
            continue;
        };
        for &i in copies {
            let (_, copy, age) = under_way[i as usize];
            found.extend(entering.at(copy, age).into_iter().map(|e| (i, e)));
        }
    }
    // Stable: a session may be entered twice.
    found.sort_by_key(|f| f.0);
    found.into_iter().map(|f| f.1).collect()
}

/// The recording as a circle, and the phase of each copy in each pass.
struct Circle {
    /// Circumference, nanoseconds.
    length: u64,
    given: Option<u64>,
    seed: u64,
}

impl Circle {
    fn new(model: &Model, given: Option<Dur>, seed: u64) -> Result<Circle, DrawError> {
        match given {
            Some(phase) if phase > Dur::ZERO && phase >= model.duration => {
                let duration = model.duration;
                Err(DrawError::Phase { phase, duration })
            }
            _ => Ok(Circle {
                length: model.duration.as_nanos(),
                given: given.map(Dur::as_nanos),
                seed,
            }),
        }
    }

    fn phase(&self, copy: u64, pass: u64) -> u64 {
        let mut stream = Stream::indexed(derived(self.seed, pass), "schedule-phase", copy);
        match self.given {
            None => stream.below(self.length),
            Some(phase) if copy == 0 => phase,
            Some(phase) => {
                let wide = self.length / AROUND;
                // The sum of three recording lengths fits, unless they last centuries.
                let before = phase.saturating_add(self.length - wide / 2);
                before.saturating_add(stream.below(wide)) % self.length
            }
        }
    }
}

/// Session indices by class, and by bytes within a class.
fn by_class_and_size(model: &Model) -> Vec<u32> {
    let mut keyed: Vec<(u32, u64, u32)> = (0u32..)
        .zip(&model.sessions)
        .map(|(i, s)| {
            let [up, down] = s.bytes();
            (s.class, up.saturating_add(down), i)
        })
        .collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|k| k.2).collect()
}

/// Sessions and how often each appears in a pass, most frequent first. The fractions are sampled
/// systematically: within a class, the number of extra appearances differs from the sum of the fractions
/// by less than one.
fn appearances(model: &Model, by_class: &[u32], k: f64, rng: &mut Stream) -> Vec<(u32, u64)> {
    let mut class = None;
    let mut running = 0.0;
    let mut chosen = Vec::with_capacity(by_class.len());
    for &i in by_class {
        let session = &model.sessions[i as usize];
        if class != Some(session.class) {
            class = Some(session.class);
            running = rng.uniform();
        }
        let expected = k * session.weight;
        let mut count = expected.floor() as u64;
        running += expected.fract();
        if running >= 1.0 {
            running -= 1.0;
            count += 1;
        }
        if count > 0 {
            chosen.push((i, count));
        }
    }
    chosen.sort_by_key(|&(i, count)| (std::cmp::Reverse(count), i));
    chosen
}

#[cfg(test)]
mod tests;

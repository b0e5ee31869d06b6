//! A part of a run: traffic, the windows in which it sends, and its additional energy.

use std::ops::Deref;

use swell_base::{Dur, derived};
use swell_workload::{Clock, Clocked, Window, Windows};

use super::contract::{Machine, Offered, Plays, Setting, Traffic};
use super::{Active, Energy};
use crate::error::RunError;
use crate::file::Hop;

/// Label of the seeds for the second and later windows.
const WINDOW: u64 = 1 << 42;

/// Label of the seed for the speed of traffic with additional energy.
const SPEED: u64 = 1 << 43;

/// Maximum variation of the speed. With more variation the speed would often be negative.
const MOST: f64 = 0.5;

/// A part of a run.
#[derive(Clone, Debug)]
pub struct Playing {
    /// Its name.
    pub name: String,
    /// Its traffic.
    pub traffic: Traffic,
    /// The time windows in which it sends; `None` if it always sends.
    pub active: Option<Active>,
    /// Additional energy at one timescale.
    pub energy: Option<Energy>,
    /// The links that it crosses, from its clients to its servers.
    pub path: Vec<Hop>,
}

impl Deref for Playing {
    type Target = dyn Plays;
    fn deref(&self) -> &dyn Plays {
        &*self.traffic
    }
}

impl Playing {
    /// Its workload; `None` if nothing is sent, or a real program sends.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let made = match self.active {
            Some(active) => self.in_windows(active, at),
            None => self.traffic.machine(at),
        }?;
        match (made, self.energy) {
            (Some(machine), Some(energy)) => self.with_energy(energy, machine, at).map(Some),
            (made, _) => Ok(made),
        }
    }

    /// The load that it offers between the end of the warm-up and the end of the run, if known.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn offered(&self, at: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        match self.active {
            Some(active) => self.offered_in_windows(active, at),
            None => self.traffic.offered(at),
        }
    }

    /// The workload of traffic that sends in these windows.
    fn in_windows(&self, active: Active, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let mut windows = Vec::new();
        let mut tcp = None;
        for (begin, setting) in settings(active, at) {
            if let Some((machine, own)) = self.traffic.machine(&setting)? {
                let end = begin + setting.duration;
                windows.push(Window {
                    begin,
                    // The last window needs no end if the run ends first.
                    end: (end < at.duration).then_some(end),
                    machine,
                });
                tcp.get_or_insert(own);
            }
        }
        Ok(tcp.map(|tcp| -> Machine { (Box::new(Windows::new(windows)), tcp) }))
    }

    /// The load that traffic offers in these windows.
    fn offered_in_windows(
        &self,
        active: Active,
        at: &Setting<'_>,
    ) -> Result<Option<Offered>, RunError> {
        let mut sum = Offered {
            mean: [0.0; 2],
            drawn: [0.0; 2],
        };
        for (_, setting) in settings(active, at) {
            let counted = setting.duration.saturating_sub(setting.warmup);
            if counted == Dur::ZERO {
                continue;
            }
            let Some(own) = self.traffic.offered(&setting)? else {
                return Ok(None);
            };
            let share = counted.as_secs_f64() / at.seconds();
            for d in 0..2 {
                sum.mean[d] += own.mean[d] * share;
                sum.drawn[d] += own.drawn[d] * share;
            }
        }
        Ok(Some(sum))
    }

    /// Adds this energy to its workload.
    fn with_energy(
        &self,
        energy: Energy,
        (machine, tcp): Machine,
        at: &Setting<'_>,
    ) -> Result<Machine, RunError> {
        let refuse = |why: String| {
            let (role, name) = (at.role.word(), at.name);
            let text = format!("{role} `{name}`: energy at {}: {why}", energy.at);
            RunError::Failed(text.into())
        };
        // Before the variance, which counts bytes in bins of a fraction of the timescale.
        Clock::fits(at.duration, energy.at).map_err(|e| refuse(e.to_string()))?;
        let variance = self.traffic.variance(at, energy.at)?;
        let variance = variance.ok_or_else(|| refuse("it has none that is known".to_owned()))?;
        let deviation = Clock::deviation(energy.db, variance);
        if deviation.is_nan() || deviation > MOST {
            return Err(refuse(format!(
                "a rate that varies by {:.0} % would be needed, and {:.0} % are the most; less energy, a longer timescale or smoother traffic is possible",
                100.0 * deviation,
                100.0 * MOST
            )));
        }
        // A foreground and a background have the same seed, but must not have the same clock.
        let seed = derived(at.own_seed(), SPEED);
        let clock = Clock::new(seed, at.duration, energy.at, deviation)
            .map_err(|e| refuse(e.to_string()))?;
        Ok((Box::new(Clocked::new(machine, clock)), tcp))
    }
}

/// The start of each window, with the setting for it.
fn settings<'r>(active: Active, at: &Setting<'r>) -> impl Iterator<Item = (Dur, Setting<'r>)> {
    let at = *at;
    let all = active.windows(at.duration).into_iter().enumerate();
    all.map(move |(i, (begin, end))| {
        let setting = Setting {
            seed: match i {
                0 => at.seed,
                i => derived(at.seed, WINDOW + i as u64),
            },
            warmup: at.warmup.saturating_sub(begin).min(end - begin),
            duration: end - begin,
            ..at
        };
        (begin, setting)
    })
}

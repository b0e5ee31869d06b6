//! Sessions of users who are always there, and how soon the next copy of each begins.

use swell_base::Dur;

use crate::timeline::{Groups, Network};
use crate::{Exchange, Model, Session};

/// An estimated course that is longer than the recording by more than one of this many parts is no record of anything.
const LONGER: u64 = 20;

/// A lasting session pauses for at least one of this many parts of the recording, in case that its copies are empty.
const LEAST_REST: u64 = 1_000;

/// A session that took at least half of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stay {
    /// The rest of the recording: the least pause after it.
    pub rest: Dur,
    recording: Dur,
    /// Its estimated course over the recorded link.
    tapped: Dur,
}

impl Stay {
    /// Time from its beginning to that of the next copy, if its estimated course is `course`. On the recorded link that
    /// is the duration of the recording, even where something unknown made it slower there than its estimated course.
    /// Elsewhere the ratio of the estimates tells.
    pub fn cycle(&self, course: Dur) -> Dur {
        let own = course + self.rest;
        let then = self.tapped + self.rest;
        own.max(self.recording.scale(own.as_secs_f64() / then.as_secs_f64()))
    }
}

/// The sessions that took at least half of the recording ([`Session::lasted`]). `think` has been applied to think times.
/// Without a record, the estimated course over an empty network counts, unless it is clearly longer than the recording.
pub(crate) fn stays(model: &Model, think: f64) -> Vec<Option<Stay>> {
    let recording = model.duration;
    let course =
        |s: &Session, network: &Network| Groups::of(model, &recorded(s, think), network).end;
    let lasted = |s: &Session| {
        let lasted = s.lasted.unwrap_or_else(|| course(s, &Network::default()));
        let known = s.lasted.is_some() || lasted <= recording + recording / LONGER;
        (known && lasted * 2 >= recording).then_some(lasted)
    };
    let all: Vec<Option<Dur>> = model.sessions.iter().map(lasted).collect();
    let tapped = tapped(model, &all);
    let one = |(s, known): (&Session, &Option<Dur>)| {
        let took = (*known)?;
        let rest = recording.saturating_sub(took);
        Some(Stay {
            rest: rest.max(recording / LEAST_REST),
            recording,
            tapped: match (&tapped, s.lasted) {
                // Think times of zero cannot be undone.
                (Some(tapped), Some(_)) if think > 0.0 => course(s, tapped),
                _ => took,
            },
        })
    };
    model.sessions.iter().zip(&all).map(one).collect()
}

/// What the recorded link left to one of the users who stayed, as in [`Network::met`]. Its busiest moment is taken for its
/// rate. `None` without a record of its load.
fn tapped(model: &Model, stayed: &[Option<Dur>]) -> Option<Network> {
    let bin = model.load.bin.as_secs_f64();
    let bps = |bytes: f64| bytes * 8.0 / bin;
    let [up, down] = &model.load.bytes;
    let most = [up, down].map(|bins| bps(bins.iter().copied().max().unwrap_or(0) as f64));
    let mean = [up, down].map(|bins| {
        let sum = bps(bins.iter().map(|&bytes| bytes as f64).sum());
        sum / bins.len().max(1) as f64
    });
    let stays = |i: usize| stayed.get(i).is_some_and(Option::is_some);
    let own = model.rates_of(|i, _| f64::from(u8::from(stays(i))));
    let weights = (0..).zip(&model.sessions).filter(|(i, _)| stays(*i));
    let users = weights.map(|(_, s)| s.weight).sum::<f64>().max(1.0);
    let offered = [0, 1].map(|d| (mean[d] - own[d] / users).max(0.0));
    let known = bin > 0.0 && most != [0.0; 2];
    known.then(|| Network::shared(Dur::ZERO, most, offered))
}

/// The session with the think times of the recording: `factor` has been applied to them.
fn recorded(session: &Session, factor: f64) -> Session {
    let mut session = session.clone();
    if factor == 1.0 || factor <= 0.0 {
        return session;
    }
    let undo = |think: &mut Dur| *think = Dur::from_secs_f64(think.as_secs_f64() / factor);
    for group in &mut session.groups {
        undo(&mut group.think);
        for connection in &mut group.connections {
            if let Exchange::Sequential(turns) = &mut connection.exchange {
                turns.iter_mut().for_each(|t| undo(&mut t.client_think));
            }
        }
    }
    session
}

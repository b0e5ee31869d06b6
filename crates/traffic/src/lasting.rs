//! Sessions of users who are always there, and how soon the next copy of each begins.

use std::borrow::Cow;

use swell_base::Dur;

use crate::timeline::{Groups, Network};
use crate::{Connection, Exchange, Model, Session};

/// An estimated course that is longer than the recording by more than one of this many parts is no record of anything.
const LONGER: u64 = 20;

/// A lasting session pauses for at least one of this many parts of the recording, in case that its copies are empty.
const LEAST_REST: u64 = 1_000;

/// Data sent in one go, from which on they take long enough to share the link with others of their session, bytes.
const LARGE: u64 = 1_000_000;

/// Part of a high rate of the recorded link that it carried in the mean, from which on it was full all the time. What passes
/// before a queue is more than the link carries, at times.
const FULL: f64 = 0.9;

/// Quantile of the rate in windows that counts as high: while transfers begin, more passes before a queue than later.
const HIGH: f64 = 0.9;

/// These windows, seconds: longer than most queues.
const WINDOW: f64 = 1.0;

/// Mean load of a line that was full at times, as a part of its high rate, from which on waiting for the line is what makes
/// sessions longer.
const LOADED: f64 = 0.5;

/// A session that took at least half of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stay {
    /// The rest of the recording: the least pause after it.
    pub rest: Dur,
    recording: Dur,
    /// Its estimated course over the recorded link.
    tapped: Dur,
    /// Whether waiting for the recorded link made it longer.
    waited: bool,
}

impl Stay {
    /// Time from its beginning to that of the next copy, if its estimated course is `course`. On the recorded link that
    /// is the duration of the recording, even where something unknown made it slower there than its estimated course.
    /// Elsewhere the ratio of the estimates tells. Where the recorded link was full at times, it is known what made the
    /// session slower: the queue. A session waits in that of a run by itself, and then for nothing else.
    pub fn cycle(&self, course: Dur) -> Dur {
        let own = course + self.rest;
        if self.waited {
            return own;
        }
        let then = self.tapped + self.rest;
        own.max(self.recording.scale(own.as_secs_f64() / then.as_secs_f64()))
    }
}

/// The sessions that took at least half of the recording ([`Session::lasted`]). `think` has been applied to think times.
/// Without a record, the estimated course over an empty network counts, unless it is clearly longer than the recording.
/// `rtt`: of the network in which they are played. How long the recorded link was is not known, for it is not on the paths. It
/// is taken to be as long as that network, as far as the sessions did not last longer than they did.
pub(crate) fn stays(model: &Model, think: f64, rtt: Dur) -> Vec<Option<Stay>> {
    let recording = model.duration;
    let course =
        |s: &Session, network: &Network| Groups::of(model, &recorded(s, think), network).end;
    let lasted = |s: &Session| {
        let lasted = s.lasted.unwrap_or_else(|| course(s, &Network::default()));
        let known = s.lasted.is_some() || lasted <= recording + recording / LONGER;
        (known && lasted * 2 >= recording).then_some(lasted)
    };
    let all: Vec<Option<Dur>> = model.sessions.iter().map(lasted).collect();
    if all.iter().all(Option::is_none) {
        return vec![None; all.len()];
    }
    let tapped = tapped(model, &all);
    let one = |(s, known): (&Session, &Option<Dur>)| {
        let took = (*known)?;
        let rest = recording.saturating_sub(took);
        Some(Stay {
            rest: rest.max(recording / LEAST_REST),
            recording,
            waited: s.lasted.is_some() && tapped.as_ref().is_some_and(|t| t.1),
            tapped: match (&tapped, s.lasted) {
                // Think times of zero cannot be undone.
                (Some((tapped, _)), Some(_)) if think > 0.0 => {
                    let long = course(s, &Network { rtt, ..*tapped });
                    course(s, tapped).max(long).min(took)
                }
                _ => took,
            },
        })
    };
    model.sessions.iter().zip(&all).map(one).collect()
}

/// What the recorded link left to one of the users who stayed, as in [`Network::met`], and whether sessions waited for it.
/// Its busiest moment is taken for its rate, unless it was full all the time: then its mean is. `None` without a record of
/// its load.
fn tapped(model: &Model, stayed: &[Option<Dur>]) -> Option<(Network, bool)> {
    let bin = model.load.bin.as_secs_f64();
    if bin <= 0.0 {
        return None;
    }
    let bps = |bytes: f64, seconds: f64| bytes * 8.0 / seconds;
    let length = (WINDOW / bin).ceil().max(1.0) as usize;
    let of = |bins: &Vec<u64>| {
        let mut windows: Vec<u64> = (bins.chunks_exact(length))
            .map(|window| window.iter().sum())
            .collect();
        windows.sort_unstable();
        let place = (HIGH * windows.len() as f64) as usize;
        let high = windows.get(place).map_or(f64::INFINITY, |&bytes| {
            bps(bytes as f64, bin * length as f64)
        });
        let sum = bins.iter().map(|&bytes| bytes as f64).sum::<f64>();
        let mean = bps(sum, bin * bins.len().max(1) as f64);
        let most = bps(bins.iter().copied().max().unwrap_or(0) as f64, bin);
        let loaded = high > 0.0 && mean >= LOADED * high;
        (
            [mean, if mean >= FULL * high { mean } else { most }],
            loaded,
        )
    };
    let [(up, up_loaded), (down, down_loaded)] = model.load.bytes.each_ref().map(of);
    let filled = model.load.filled;
    let waited = filled[0] && up_loaded || filled[1] && down_loaded;
    let most = [up[1], down[1]];
    let stays = |i: usize| stayed.get(i).is_some_and(Option::is_some);
    let own = model.rates_of(|i, _| f64::from(u8::from(stays(i))));
    let mut transfers = [0.0; 2];
    for (_, s) in (0..).zip(&model.sessions).filter(|(i, _)| stays(*i)) {
        let beside = at_once(s);
        (0..2).for_each(|d| transfers[d] += s.weight * beside[d]);
    }
    let offered = [(0, up[0]), (1, down[0])].map(|(d, mean)| {
        let one = own[d] / transfers[d].max(1.0);
        (mean - one).max(0.0)
    });
    (most != [0.0; 2]).then(|| (Network::shared(Dur::ZERO, most, offered), waited))
}

/// How many transfers of a session share the link at a time, left to right and right to left: those of its connections that
/// are opened together and send much in one go, if they were equal. At least one.
pub(crate) fn at_once(session: &Session) -> [f64; 2] {
    let ways = [0, 1].map(|from_right| usize::from(session.outside) ^ from_right);
    ways.map(|end| {
        let (mut sum, mut all) = (0.0, 0.0);
        for group in &session.groups {
            let large = |c: &Connection| Some(largest(&c.exchange, end)).filter(|n| *n >= LARGE);
            let sizes = || group.connections.iter().filter_map(large).map(|n| n as f64);
            let (bytes, squares) = (sizes().sum::<f64>(), sizes().map(|n| n * n).sum::<f64>());
            if squares > 0.0 {
                sum += bytes * (bytes * bytes / squares);
                all += bytes;
            }
        }
        if all > 0.0 { sum / all } else { 1.0 }
    })
}

/// The most that an end sends in one go.
fn largest(exchange: &Exchange, end: usize) -> u64 {
    match exchange {
        Exchange::Sequential(turns) => {
            let sizes = turns.iter().map(|t| [t.request, t.response][end]);
            sizes.max().unwrap_or(0)
        }
        Exchange::Concurrent { up, down } => {
            let units = [up, down][end].iter().map(|u| u.bytes);
            units.max().unwrap_or(0)
        }
        Exchange::Attempt { .. } | Exchange::Datagrams(_) => 0,
    }
}

/// The session with the think times of the recording: `factor` has been applied to them.
fn recorded(session: &Session, factor: f64) -> Cow<'_, Session> {
    if factor == 1.0 || factor <= 0.0 {
        return Cow::Borrowed(session);
    }
    let mut session = session.clone();
    let undo = |think: &mut Dur| *think = Dur::from_secs_f64(think.as_secs_f64() / factor);
    for group in &mut session.groups {
        undo(&mut group.think);
        for connection in &mut group.connections {
            if let Exchange::Sequential(turns) = &mut connection.exchange {
                turns.iter_mut().for_each(|t| undo(&mut t.client_think));
            }
        }
    }
    Cow::Owned(session)
}

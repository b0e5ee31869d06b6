//! Connections of one user that wait for each other.
//!
//! A browser asks for the next page on any of its connections once the page before is there on all, and for the objects
//! of a page once the HTML is there. A server or an observer sees no more than the times. So a request that follows
//! another connection's answer at once is evidence, if that is more frequent than by chance: the same requests, moved by
//! a second or so, meet others as often as independent ones do in the same busy times. Two people behind one address, or a
//! heartbeat beside a download, do not. Requests on several connections at once are none: a timer makes them, too, as
//! where a peer-to-peer program opens a dozen connections a second, whatever has become of the last dozen.

use swell_base::Dur;
use swell_traffic::Wait;

use crate::chunks::{Dues, Span};

/// When something was under way on a connection.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    /// In order; the first begins with the connection and is of turn 0.
    pub(crate) spans: Vec<Span>,
    /// The delays in the pauses of its turns.
    pub(crate) dues: Vec<Dues>,
    /// How long an answer of its client took at its end, nanoseconds; 0: unknown.
    pub(crate) due: u64,
    /// RTT between the tap and the client, nanoseconds; 0: unknown.
    pub(crate) rtt: u64,
    /// Whether its beginning was seen.
    pub(crate) opens: bool,
    /// Whether it is the first of its group, which begins when the group does.
    pub(crate) leads: bool,
}

impl Talk {
    /// What it takes in memory, as items of the model.
    pub(crate) fn items(&self) -> usize {
        self.spans.len() + self.dues.len()
    }
}

/// A request sooner after the connection's own answer follows that.
const IDLE: u64 = 200_000_000;
/// Requests on several connections at once are spread over less than this.
const VOLLEY: u64 = 20_000_000;
/// What follows an answer comes within this, and an RTT.
const PROMPT: u64 = 100_000_000;
/// By how much requests are moved, to and fro, to see what chance does.
const MOVES: [u64; 4] = [400_000_000, 700_000_000, 1_100_000_000, 1_700_000_000];
/// Number of requests that follow others, beyond twice what chance does. With fewer, a Poisson number of the mean that
/// chance has comes too often: one time in a thousand at most with these.
const EVIDENCE: usize = 4;

/// Answers on all connections of a session, by time.
struct Events {
    ends: Vec<(u64, usize)>,
    rtt: u64,
}

impl Events {
    fn of(talks: &[Talk]) -> Events {
        let each = talks.iter().enumerate();
        let ends = each.flat_map(|(c, talk)| talk.spans.iter().map(move |s| (s.last, c)));
        let mut ends: Vec<(u64, usize)> = ends.collect();
        ends.sort_unstable();
        let rtt = talks.iter().map(|t| t.rtt).max().unwrap_or(0);
        Events { ends, rtt }
    }

    /// The connection whose answer a request of `own` at `at` follows.
    fn before(&self, own: usize, at: u64) -> Option<usize> {
        let here = self.ends.partition_point(|&e| e < (at, own));
        let recent = self.ends[..here].iter().rev();
        let mut recent = recent.take_while(|e| e.0 + PROMPT + self.rtt > at);
        recent.find(|e| e.1 != own).map(|e| e.1)
    }
}

/// Which connections wait for each other.
fn dependent(talks: &[Talk]) -> Vec<bool> {
    let events = Events::of(talks);
    // By connection: requests after an idle time, and how many of them follow others or are followed.
    let mut tried = vec![0usize; talks.len()];
    let mut joined = vec![0usize; talks.len()];
    let (mut all, mut follow, mut by_chance) = (0, 0, 0);
    for (c, talk) in talks.iter().enumerate() {
        let mut ended = None;
        for span in &talk.spans {
            let idle = match ended {
                None => talk.opens && !talk.leads,
                Some(ended) => span.first.saturating_sub(ended) >= IDLE,
            };
            ended = Some(span.last);
            if !idle {
                continue;
            }
            tried[c] += 1;
            all += 1;
            if let Some(other) = events.before(c, span.first) {
                follow += 1;
                joined[c] += 1;
                joined[other] += 1;
            }
            for by in MOVES {
                let moved = [span.first + by, span.first.saturating_sub(by)];
                let met = moved.iter().filter(|&&at| events.before(c, at).is_some());
                by_chance += met.count();
            }
        }
    }
    let chances = 2 * MOVES.len();
    let evident = follow * chances >= 2 * by_chance + EVIDENCE * chances && 3 * follow >= all;
    let part = |c: usize| evident && joined[c] > 0 && 3 * joined[c] >= tried[c];
    (0..talks.len()).map(part).collect()
}

/// What begins together after nothing was under way.
struct Period {
    /// When nothing was, and on which connection the last answer ended.
    quiet: (u64, usize),
    /// First requests of connections: connection, span.
    begins: Vec<(usize, usize)>,
}

/// A longer silence separates groups and is no wait, nanoseconds: the default group time-out.
const LONGEST: u64 = 30_000_000_000;

/// For each connection of a session, the turns that wait for others.
pub(super) fn waits(talks: &[Talk]) -> Vec<Vec<Wait>> {
    let mut waits = vec![Vec::new(); talks.len()];
    if talks.iter().filter(|t| !t.spans.is_empty()).count() < 2 {
        return waits;
    }
    let part = dependent(talks);
    let periods = periods(talks, &part);
    if periods.len() < 2 {
        return waits;
    }
    for (page, period) in periods.iter().enumerate() {
        for &(c, i) in &period.begins {
            let span = talks[c].spans[i];
            let pause = match page {
                0 => 0,
                _ => span.first.saturating_sub(period.quiet.0),
            };
            if pause > LONGEST {
                continue;
            }
            waits[c].push(Wait {
                turn: span.turn,
                page: page as u32,
                pause: Dur::from_nanos(pause),
            });
        }
    }
    // Of a connection that does not wait for its opening, no turn waits.
    for own in &mut waits {
        if own.first().is_some_and(|w| w.turn > 0) {
            own.clear();
        }
    }
    waits
}

/// Busy periods of the connections that take part.
fn periods(talks: &[Talk], part: &[bool]) -> Vec<Period> {
    let taking = || (0..talks.len()).filter(|&c| part[c]);
    let mut spans: Vec<(u64, usize, usize)> = Vec::new();
    for c in taking() {
        let own = talks[c].spans.iter().enumerate();
        spans.extend(own.map(|(i, s)| (s.first, c, i)));
    }
    spans.sort_unstable();
    // Who asks sooner has not seen the answer.
    let rtts = taking().map(|c| talks[c].rtt).filter(|&rtt| rtt > 0);
    let soonest = rtts.min().unwrap_or(0) / 4 * 3;
    let mut periods: Vec<Period> = Vec::new();
    let mut quiet = (0, usize::MAX);
    // The period of each connection's last request.
    let mut latest = vec![usize::MAX; talks.len()];
    for (k, &(first, c, i)) in spans.iter().enumerate() {
        let silent = first > quiet.0 && first - quiet.0 >= soonest;
        // It follows its own answer, and no other connection does.
        let others = || spans[k + 1..].iter().take_while(|s| s.0 < first + VOLLEY);
        let own = quiet.1 == c && first.saturating_sub(quiet.0) < PROMPT + talks[c].rtt;
        let alone = || own && others().all(|s| s.1 == c);
        if periods.is_empty() || silent && !alone() {
            periods.push(Period {
                quiet,
                begins: Vec::new(),
            });
        }
        let here = periods.len() - 1;
        if latest[c] != here {
            latest[c] = here;
            periods[here].begins.push((c, i));
        }
        quiet = quiet.max((talks[c].spans[i].last, c));
    }
    periods
}

#[cfg(test)]
mod tests;

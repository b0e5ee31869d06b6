//! The rest of a session that began before the run.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use swell_base::Dur;

use crate::timeline::{Groups, INITIAL_WINDOW, Network, Span, Timeline, full};
use crate::view::{ConnectionView, CutChain, CutData, CutList, CutPoint, Heard};
use crate::{Connection, Datagrams, Exchange, Group, Model, Run, Session, Turn, Unit, Write};

/// A session in progress when a run begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Entered {
    /// Index into [`Model::sessions`].
    pub session: u32,
    /// As [`Start::copy`](crate::Start::copy).
    pub copy: u32,
    /// Time since it began.
    pub age: Dur,
    /// The rest of its current group, in order of their starts; `None` between two groups.
    pub rest: Option<Arc<[Rest]>>,
    /// Index of the next group; the number of groups if there is none.
    pub group: u32,
    /// The rest of the pause before that group, if it is in that pause.
    pub pause: Dur,
}

/// A connection of a session in progress that is not over.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// Indices of its group, and of itself in the group.
    pub group: u32,
    /// See `group`.
    pub connection: u32,
    /// Time since the start of the previous one (or since the run's).
    pub gap: Dur,
    /// What is left of it; `None`: all.
    pub cut: Option<Arc<CutPoint>>,
    /// Its congestion windows if it is already established: segments of the client and of the server.
    pub windows: Option<[u32; 2]>,
}

impl Rest {
    /// Its connection of `session`, as far as it is left.
    pub fn part<'m>(&'m self, session: &'m Session) -> Option<ConnectionView<'m>> {
        let group = session.groups.get(self.group as usize)?;
        let connection = group.connections.get(self.connection as usize)?;
        Some(ConnectionView::of(connection, self.cut.as_deref()))
    }
}

/// A session that a run begins in the middle of, with the courses of its connections. They are the same for all copies, so each is computed
/// once.
pub(crate) struct SessionInProgress<'m> {
    model: &'m Model,
    network: &'m Network,
    index: u32,
    session: &'m Session,
    times: &'m Groups,
    /// By group and connection.
    courses: Vec<Vec<OnceCell<Timeline>>>,
}

impl<'m> SessionInProgress<'m> {
    /// Session `index` of `model`, by the estimated times over `network`.
    pub fn new(
        model: &'m Model,
        (index, times): (u32, &'m Groups),
        network: &'m Network,
    ) -> Option<SessionInProgress<'m>> {
        let session = model.sessions.get(index as usize)?;
        let courses = session.groups.iter();
        let courses = courses.map(|g| vec![OnceCell::new(); g.connections.len()]);
        Some(SessionInProgress {
            model,
            network,
            index,
            session,
            times,
            courses: courses.collect(),
        })
    }

    /// The rest of it at `age`. Connections that no later group waits for form a separate entry. Empty if the session is
    /// over.
    pub fn at(&self, copy: u32, age: Dur) -> Vec<Entered> {
        let times = self.times;
        // The first group that is not over: the session is in it, or in the pause before it.
        let all = times.groups.len();
        let here = times
            .groups
            .iter()
            .position(|g| g.ends > age)
            .unwrap_or(all);
        let entered = |rest: Option<Vec<Rest>>, group: usize, pause| Entered {
            session: self.index,
            copy,
            age,
            rest: rest.map(Arc::from),
            group: group as u32,
            pause,
        };
        let beside = self.rest(0..here, age);
        let mut found = Vec::new();
        if !beside.is_empty() {
            found.push(entered(Some(beside), all, Dur::ZERO));
        }
        match times.groups.get(here) {
            Some(group) if group.begins > age => {
                found.push(entered(None, here, group.begins - age));
            }
            Some(_) => {
                let rest = self.rest(here..here + 1, age);
                found.push(entered(Some(rest), here + 1, Dur::ZERO));
            }
            None => {}
        }
        found
    }

    /// The rest of groups: the connections in progress, which continue at once, and those not started yet.
    fn rest(&self, groups: Range<usize>, age: Dur) -> Vec<Rest> {
        let mut left = Vec::new();
        for g in groups {
            let group: &Group = &self.session.groups[g];
            let times = &self.times.groups[g].connections;
            for (i, (c, &(start, end))) in group.connections.iter().zip(times).enumerate() {
                let mut rest = Rest {
                    group: g as u32,
                    connection: i as u32,
                    gap: Dur::ZERO,
                    cut: None,
                    windows: None,
                };
                if start > age {
                    left.push((start - age, rest));
                } else if end > age {
                    let course = self.courses[g][i]
                        .get_or_init(|| Timeline::of(self.model, self.session, c, self.network));
                    if let Some((wait, part, windows)) = cut(c, course, age - start) {
                        (rest.cut, rest.windows) = (part.map(Arc::new), windows);
                        left.push((wait, rest));
                    }
                }
            }
        }
        left.sort_by_key(|l| l.0);
        let mut before = Dur::ZERO;
        let placed = left.into_iter().map(|(at, rest)| {
            let gap = at - std::mem::replace(&mut before, at);
            Rest { gap, ..rest }
        });
        placed.collect()
    }
}

/// The time until a connection must be opened at `age`, what is left of it (`None`: all), and its congestion windows if
/// it is an established TCP connection.
fn cut(
    c: &Connection,
    course: &Timeline,
    age: Dur,
) -> Option<(Dur, Option<CutPoint>, Option<[u32; 2]>)> {
    let tcp = matches!(
        c.exchange,
        Exchange::Sequential(_) | Exchange::Concurrent { .. }
    );
    // During the handshake the connection starts again as a whole.
    if tcp && age < course.rtt {
        return Some((Dur::ZERO, None, None));
    }
    let windows = tcp.then(|| [0, 1].map(|end| window(c, course, end, age)));
    let (wait, data) = match &c.exchange {
        Exchange::Sequential(turns) => {
            let list = cut_turns(turns, course, age)?;
            (Dur::ZERO, CutData::Sequential(list))
        }
        Exchange::Concurrent { up, down } => (
            Dur::ZERO,
            CutData::Concurrent(cut_chains([up, down], course, age)),
        ),
        Exchange::Attempt { .. } => {
            let next = course.spans.iter().position(|s| s.from > age)?;
            let list = CutList::from(next);
            (course.spans[next].from - age, CutData::Attempt(list))
        }
        Exchange::Datagrams(d) => (Dur::ZERO, cut_datagrams(d, course, age)?),
    };
    let mut part = CutPoint {
        data,
        writes: [0, 1].map(|end| cut_writes(&c.writes[end], course, end, age)),
        overlap: None,
    };
    // Units that have passed do not count again.
    part.overlap = c.overlap.map(|o| {
        let whole = c.exchange.units();
        let units = ConnectionView::of(c, Some(&part)).units();
        [0, 1].map(|end| {
            let passed = whole[end].saturating_sub(units[end]);
            o[end].saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX))
        })
    });
    Some((wait, Some(part), windows))
}

/// Congestion window of an end at `age`, in segments. This is what its transfer sends per RTT on average,
/// or an initial window if no transfer is in progress.
fn window(c: &Connection, course: &Timeline, end: usize, age: Dur) -> u32 {
    let here = in_flight(course, end, age).next();
    let rtt = course.rtt.as_secs_f64();
    let long = here.and_then(|s| {
        let takes = (s.to - s.from - course.rtt / 2).as_secs_f64();
        (takes > rtt && rtt > 0.0).then(|| s.bytes as f64 / full(c, end) as f64 * rtt / takes)
    });
    long.map_or(INITIAL_WINDOW as u32, |segments| {
        (segments.ceil() as u32).max(2)
    })
}

/// Spans that an end has begun to send by `age` and that have not fully arrived.
fn in_flight(course: &Timeline, end: usize, age: Dur) -> impl Iterator<Item = &Span> {
    let spans = course.spans.iter();
    spans.filter(move |s| s.end == end && s.from <= age && s.to > age)
}

/// Bytes of a span sent by `age`, in proportion to time. At least one byte remains until it is over.
fn sent(span: &Span, age: Dur) -> u64 {
    if age >= span.to {
        return span.bytes;
    }
    let share = age.saturating_sub(span.from).as_secs_f64() / (span.to - span.from).as_secs_f64();
    ((span.bytes as f64 * share) as u64).min(span.bytes.saturating_sub(1))
}

fn cut_turns(turns: &[Turn], course: &Timeline, age: Dur) -> Option<CutList<Turn>> {
    let here = course.spans.iter().find(|s| s.to > age)?;
    // Later data that the same end has already begun to send are merged into the same unit.
    let (first, end) = (here.unit, here.end);
    let flying = in_flight(course, end, age);
    let (last, arrives) = flying.fold((first, age), |(unit, to), s| {
        (unit.max(s.unit), to.max(s.to))
    });
    let units = |from: usize, to: usize| {
        let spans = course.spans.iter();
        spans.filter(move |s| s.end == end && (from..=to).contains(&s.unit))
    };
    let left: u64 = units(first, last)
        .map(|s| s.bytes - sent(s, age))
        .fold(0, u64::saturating_add);
    let pause = here.from - age;
    let leaves = leaves(course, (end, last), left, age + pause);
    let mut turn = turns[last];
    // The pause after the merged data may have begun.
    let then = units(last + 1, last + 1).next();
    let then = then.filter(|s| s.from < arrives);
    if let (Some(next), Some(then)) = (turns.get(last + 1), then) {
        let until = then.from - leaves;
        match end {
            0 if turn.response == 0 && next.request > 0 => turn.client_think = until,
            1 if next.request == 0 => turn.client_think = until - next.server_think,
            _ => {}
        }
    }
    let mut own = Vec::new();
    if end == 0 {
        if pause > Dur::ZERO {
            own.push(Turn {
                client_think: pause,
                ..Turn::default()
            });
        }
        own.push(Turn {
            request: left,
            ..turn
        });
    } else {
        own.push(Turn {
            request: 0,
            server_think: pause,
            response: left,
            ..turn
        });
    }
    Some(CutList {
        first: own.into(),
        then: last + 1,
    })
}

/// When the last of `bytes` leaves, which are what is left of the data up to unit `last` of `end` from `from` on. The pause
/// after them counts from then.
fn leaves(course: &Timeline, (end, last): (usize, usize), bytes: u64, from: Dur) -> Dur {
    let mine = |s: &&Span| (s.end, s.unit) == (end, last);
    let whole = course.spans.iter().rev().find(mine);
    let whole = whole.filter(|_| bytes > course.at_once[end]);
    whole.map_or(from, |s| s.left.max(from))
}

/// Position of an end in its chain: its first unit that has not arrived, and its first unit not begun. The
/// units in between are sent as one.
fn places(units: &[Unit], course: &Timeline, end: usize, age: Dur) -> (usize, usize) {
    let mine = || course.spans.iter().filter(|s| s.end == end);
    let arrived = mine().take_while(|s| s.to <= age).last();
    let first = mine()
        .find(|s| s.to > age)
        .map_or_else(|| arrived.map_or(0, |s| s.unit + 1), |s| s.unit);
    let begun = mine().filter(|s| s.from <= age).map(|s| s.unit + 1).max();
    (first, begun.unwrap_or(first).clamp(first, units.len()))
}

fn cut_chains(chains: [&[Unit]; 2], course: &Timeline, age: Dur) -> [CutChain; 2] {
    let at = [0, 1].map(|end| places(chains[end], course, end, age));
    [0, 1].map(|end| {
        let (first, next) = at[end];
        let spans = |unit: usize| {
            let all = course.spans.iter();
            all.filter(move |s| (s.end, s.unit) == (end, unit))
        };
        let (arrived, begun) = at[1 - end];
        let heard = Heard { arrived, begun };
        let mut own = Vec::new();
        let mut since = age;
        if next > first {
            let all = (first..next).flat_map(spans);
            let waits = spans(first).find(|s| s.to > age);
            let pause = waits.map_or(Dur::ZERO, |s| s.from - age);
            let bytes = all
                .map(|s| s.bytes - sent(s, age))
                .fold(0, u64::saturating_add);
            since = leaves(course, (end, next - 1), bytes, age + pause);
            own.push(Unit {
                pause,
                bytes,
                after: 0,
            });
        }
        let arrives = in_flight(course, end, age).map(|s| s.to).max();
        let begins = spans(next).next().map(|s| s.from);
        // The pause before the unit that comes has begun if its reference has left or arrived.
        let begun_pause =
            begins.is_some_and(|from| first == next || arrives.is_some_and(|to| from < to));
        let units = chains[end];
        let here = (next..units.len()).take_while(|&i| heard.of(units[i].after) == 0);
        // What they answer has arrived, and their pauses run beside each other.
        let answers = here.clone().filter(|&i| {
            let before = i.checked_sub(1).map_or(0, |before| units[before].after);
            units[i].after > before
        });
        let last = answers
            .last()
            .or(here.clone().next().filter(|_| begun_pause));
        let mut then = next;
        for i in here.take_while(|&i| last.is_some_and(|last| i <= last)) {
            let (Some(opens), Some(ends)) = (spans(i).next(), spans(i).next_back()) else {
                break;
            };
            own.push(Unit {
                pause: opens.from - since,
                after: 0,
                ..units[i]
            });
            since = since.max(ends.left);
            then += 1;
        }
        let list = CutList {
            first: own.into(),
            then,
        };
        CutChain { list, heard }
    })
}

fn cut_datagrams(d: &Datagrams, course: &Timeline, age: Dur) -> Option<CutData> {
    if d.is_whole() {
        let next = course.spans.iter().position(|s| s.from > age)?;
        let mut packet = *d.packets.get(next)?;
        packet.0 = course.spans[next].from - age;
        return Some(CutData::Packets(CutList {
            first: Box::from([packet]),
            then: next + 1,
        }));
    }
    let runs = [0, 1].map(|end| cut_runs(&d.runs[end], age));
    let lists = runs.each_ref();
    let any = (0..2).any(|end| lists[end].of(&d.runs[end]).len() > 0);
    any.then_some(CutData::Runs(runs))
}

fn cut_runs(runs: &[Run], age: Dur) -> CutList<Run> {
    let mut ended = Dur::ZERO;
    for (i, run) in runs.iter().enumerate() {
        let begins = ended + run.pause;
        let n = if begins > age {
            0
        } else {
            run.due_by(age - begins)
        };
        if n < run.packets {
            let bytes = run.bytes_of_first(run.packets);
            let here = Run {
                pause: begins + run.due(n) - age,
                span: run.span - run.due(n),
                packets: run.packets - n,
                bytes: bytes.saturating_sub(run.bytes_of_first(n)),
                sizes: run.sizes,
            };
            return CutList {
                first: Box::from([here]),
                then: i + 1,
            };
        }
        ended = begins + run.span;
    }
    CutList::from(runs.len())
}

/// The remaining positions at which an end begins a new write.
fn cut_writes(writes: &[Write], course: &Timeline, end: usize, age: Dur) -> CutList<Write> {
    let mine = || course.spans.iter().filter(|s| s.end == end);
    let done: u64 = mine().map(|s| sent(s, age)).fold(0, u64::saturating_add);
    let mut place = 0u64;
    let next = writes.iter().position(|w| {
        place = place.saturating_add(w.after);
        place > done
    });
    let Some(next) = next else {
        return CutList::from(writes.len());
    };
    let mut first = Write {
        after: place - done,
        gap: writes[next].gap,
    };
    // Inside a write, part of the gap to the next one is over.
    let mut rest = mine().skip_while(|s| s.to <= age);
    if let (Some(here), Some(then)) = (rest.next(), rest.next())
        && here.from < age
        && (here.unit, here.bytes - sent(here, age)) == (then.unit, first.after)
    {
        first.gap = then.from - age;
    }
    CutList {
        first: Box::from([first]),
        then: next + 1,
    }
}

#[cfg(test)]
mod tests;

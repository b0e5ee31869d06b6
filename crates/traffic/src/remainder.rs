//! What is left of a session that began before the run did.

use swell_base::Dur;

use crate::timeline::{GroupTimes, Groups, Network, Span, Timeline};
use crate::{Connection, Datagrams, Exchange, Group, Model, Run, Session, Turn, Unit, Write};

/// A session in progress when a run begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Entered {
    /// Index into [`Model::sessions`].
    pub session: u32,
    /// As [`Start::copy`](crate::Start::copy).
    pub copy: u32,
    /// How long ago it began.
    pub age: Dur,
    /// What is left of the group that it is in; `None` between two groups.
    pub rest: Option<Group>,
    /// The group that comes next; as many as there are where none does.
    pub group: u32,
    /// What is left of the pause before that, where it is in that pause.
    pub pause: Dur,
}

impl Entered {
    /// `session` of `model`, `age` after its beginning, as its own times over `network` have it: where it
    /// goes on, and apart from that the connections for which nothing waits any more. Empty where it is over.
    pub(crate) fn at(
        model: &Model,
        (index, times): (u32, &Groups),
        copy: u32,
        age: Dur,
        network: &Network,
    ) -> Vec<Entered> {
        let Some(session) = model.sessions.get(index as usize) else {
            return Vec::new();
        };
        // The first group that is not over: the session is in it or in the pause before it.
        let all = times.groups.len();
        let here = times
            .groups
            .iter()
            .position(|g| g.ends > age)
            .unwrap_or(all);
        let entered = |rest, group: usize, pause| Entered {
            session: index,
            copy,
            age,
            rest,
            group: group as u32,
            pause,
        };
        let parts = || session.groups.iter().zip(&times.groups);
        let beside = rest(model, session, parts().take(here), age, network);
        let mut found = Vec::new();
        if !beside.connections.is_empty() {
            found.push(entered(Some(beside), all, Dur::ZERO));
        }
        match times.groups.get(here) {
            Some(group) if group.begins > age => {
                found.push(entered(None, here, group.begins - age));
            }
            Some(_) => {
                let rest = rest(model, session, parts().skip(here).take(1), age, network);
                found.push(entered(Some(rest), here + 1, Dur::ZERO));
            }
            None => {}
        }
        found
    }
}

/// What is left of groups: what is left of connections in progress, begun anew at once, and those that
/// come.
fn rest<'m>(
    model: &Model,
    session: &Session,
    groups: impl Iterator<Item = (&'m Group, &'m GroupTimes)>,
    age: Dur,
    network: &Network,
) -> Group {
    let mut left: Vec<(Dur, Connection)> = Vec::new();
    for (group, times) in groups {
        for (c, &(start, end)) in group.connections.iter().zip(&times.connections) {
            if start > age {
                left.push((start - age, c.clone()));
            } else if end > age {
                let course = Timeline::of(model, session, c, network);
                left.extend(cut(c, &course, age - start));
            }
        }
    }
    left.sort_by_key(|l| l.0);
    let mut before = Dur::ZERO;
    for (at, c) in &mut left {
        c.gap = *at - before;
        before = *at;
    }
    Group {
        think: Dur::ZERO,
        connections: left.into_iter().map(|l| l.1).collect(),
    }
}

/// What is left of a connection at `age`, and how long until it has to be opened. A TCP connection is
/// opened anew at once, and its handshake is taken out of the pause that it is in.
fn cut(c: &Connection, course: &Timeline, age: Dur) -> Option<(Dur, Connection)> {
    // The handshake is the beginning of the whole.
    if age < course.rtt
        && matches!(
            c.exchange,
            Exchange::Sequential(_) | Exchange::Concurrent { .. }
        )
    {
        return Some((Dur::ZERO, c.clone()));
    }
    let (wait, exchange) = match &c.exchange {
        Exchange::Sequential(turns) => (Dur::ZERO, cut_turns(turns, course, age)?),
        Exchange::Concurrent { up, down } => (Dur::ZERO, cut_chains([up, down], course, age)),
        Exchange::Attempt { retries, refused } => {
            let next = course.spans.iter().position(|s| s.from > age)?;
            let retries = retries.get(next..).unwrap_or_default().to_vec();
            (
                course.spans[next].from - age,
                Exchange::Attempt {
                    retries,
                    refused: *refused,
                },
            )
        }
        Exchange::Datagrams(d) => (
            Dur::ZERO,
            Exchange::Datagrams(cut_datagrams(d, course, age)?),
        ),
    };
    let whole = c.exchange.units();
    let units = exchange.units();
    // Units that have passed are not waited for again.
    let overlap = c.overlap.map(|o| {
        [0, 1].map(|end| {
            let passed = whole[end].saturating_sub(units[end]);
            o[end].saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX))
        })
    });
    let writes = [0, 1].map(|end| cut_writes(&c.writes[end], course, end, age));
    Some((
        wait,
        Connection {
            exchange,
            writes,
            left_censored: true,
            overlap,
            ..c.clone()
        },
    ))
}

/// Bytes of a span sent by `age`: in proportion to time, all but one where it is not over.
fn sent(span: &Span, age: Dur) -> u64 {
    if age >= span.to {
        return span.bytes;
    }
    let share = age.saturating_sub(span.from).as_secs_f64() / (span.to - span.from).as_secs_f64();
    ((span.bytes as f64 * share) as u64).min(span.bytes.saturating_sub(1))
}

fn cut_turns(turns: &[Turn], course: &Timeline, age: Dur) -> Option<Exchange> {
    let here = course.spans.iter().find(|s| s.to > age)?;
    let of_unit = course
        .spans
        .iter()
        .filter(|s| (s.end, s.unit) == (here.end, here.unit));
    let left: u64 = of_unit
        .map(|s| s.bytes - sent(s, age))
        .fold(0, u64::saturating_add);
    let pause = here.from - age - course.rtt;
    let turn = turns[here.unit];
    let mut rest = Vec::with_capacity(turns.len() - here.unit + 1);
    if here.end == 0 {
        if pause > Dur::ZERO {
            rest.push(Turn {
                client_think: pause,
                ..Turn::default()
            });
        }
        rest.push(Turn {
            request: left,
            ..turn
        });
    } else {
        rest.push(Turn {
            request: 0,
            server_think: pause,
            response: left,
            ..turn
        });
    }
    rest.extend_from_slice(&turns[here.unit + 1..]);
    Some(Exchange::Sequential(rest))
}

fn cut_chains(chains: [&[Unit]; 2], course: &Timeline, age: Dur) -> Exchange {
    // How many units of each end have arrived.
    let done = [0, 1].map(|end| {
        let mut over = 0;
        for s in course.spans.iter().filter(|s| s.end == end) {
            if s.to > age {
                return s.unit;
            }
            over = s.unit + 1;
        }
        over
    });
    let [up, down] = [0, 1].map(|end| {
        let mut units = chains[end][done[end]..].to_vec();
        for unit in &mut units {
            unit.after = unit.after.saturating_sub(done[1 - end] as u32);
        }
        let mut spans = course
            .spans
            .iter()
            .filter(|s| (s.end, s.unit) == (end, done[end]));
        if let (Some(first), Some(unit)) = (spans.clone().next(), units.first_mut()) {
            if first.from <= age {
                unit.bytes = spans
                    .clone()
                    .map(|s| s.bytes - sent(s, age))
                    .fold(0, u64::saturating_add);
                let next = spans.find(|s| s.to > age);
                unit.pause = next.map_or(Dur::ZERO, |s| s.from - age - course.rtt);
            } else if unit.after == 0 {
                unit.pause = first.from - age - course.rtt;
            }
        }
        units
    });
    Exchange::Concurrent { up, down }
}

fn cut_datagrams(d: &Datagrams, course: &Timeline, age: Dur) -> Option<Datagrams> {
    if d.is_whole() {
        let next = course.spans.iter().position(|s| s.from > age)?;
        let mut packets = d.packets.get(next..)?.to_vec();
        packets.first_mut()?.0 = course.spans[next].from - age;
        return Some(Datagrams {
            packets,
            ..Datagrams::default()
        });
    }
    let runs = [0, 1].map(|end| cut_runs(&d.runs[end], age));
    let any = runs.iter().any(|r| !r.is_empty());
    any.then(|| Datagrams {
        packets: Vec::new(),
        runs,
    })
}

fn cut_runs(runs: &[Run], age: Dur) -> Vec<Run> {
    let mut ended = Dur::ZERO;
    for (i, run) in runs.iter().enumerate() {
        let begins = ended + run.pause;
        let next = (0..run.packets).find(|&n| begins + run.due(n) > age);
        if let Some(n) = next {
            let first = Run {
                pause: begins + run.due(n) - age,
                span: run.span - run.due(n),
                packets: run.packets - n,
                bytes: (n..run.packets).map(|m| u64::from(run.size(m))).sum(),
                sizes: run.sizes,
            };
            return std::iter::once(first)
                .chain(runs[i + 1..].iter().copied())
                .collect();
        }
        ended = begins + run.span;
    }
    Vec::new()
}

/// The places where an end will write anew.
fn cut_writes(writes: &[Write], course: &Timeline, end: usize, age: Dur) -> Vec<Write> {
    let mine = || course.spans.iter().filter(|s| s.end == end);
    let done: u64 = mine().map(|s| sent(s, age)).fold(0, u64::saturating_add);
    let mut place = 0u64;
    let mut left: Vec<Write> = Vec::new();
    for w in writes {
        place = place.saturating_add(w.after);
        if place > done {
            let before = left.is_empty();
            let after = if before { place - done } else { w.after };
            left.push(Write { after, gap: w.gap });
        }
    }
    // In the middle of a piece a part of its gap has run.
    let mut rest = mine().skip_while(|s| s.to <= age);
    if let (Some(here), Some(next), Some(first)) = (rest.next(), rest.next(), left.first_mut())
        && here.from < age
        && (here.unit, here.bytes - sent(here, age)) == (next.unit, first.after)
    {
        first.gap = next.from - age;
    }
    left
}

#[cfg(test)]
mod tests;

//! The rest of a session that began before the run.

use swell_base::Dur;

use crate::timeline::{GroupTimes, Groups, INITIAL_WINDOW, Network, Span, Timeline, full};
use crate::{Connection, Datagrams, Exchange, Group, Model, Run, Session, Turn, Unit, Wait, Write};

/// A session in progress when a run begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Entered {
    /// Index into [`Model::sessions`].
    pub session: u32,
    /// As [`Start::copy`](crate::Start::copy).
    pub copy: u32,
    /// Time since it began.
    pub age: Dur,
    /// The rest of its current group; `None` between two groups.
    pub rest: Option<Group>,
    /// For each connection of `rest`, its congestion windows if it is already established: segments of the
    /// client and of the server.
    pub under_way: Vec<Option<[u32; 2]>>,
    /// Index of the next group; the number of groups if there is none.
    pub group: u32,
    /// The rest of the pause before that group, if it is in that pause.
    pub pause: Dur,
}

impl Entered {
    /// The rest of `session` of `model` at `age`, by the estimated times over `network`. Connections that
    /// no later group waits for form a separate entry. Empty if the session is over.
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
        // The first group that is not over: the session is in it, or in the pause before it.
        let all = times.groups.len();
        let here = times
            .groups
            .iter()
            .position(|g| g.ends > age)
            .unwrap_or(all);
        let entered = |left: Option<Left>, group: usize, pause| {
            let (rest, under_way) = left.map_or((None, Vec::new()), |l| (Some(l.0), l.1));
            Entered {
                session: index,
                copy,
                age,
                rest,
                under_way,
                group: group as u32,
                pause,
            }
        };
        let parts = || session.groups.iter().zip(&times.groups);
        let beside = rest(model, session, parts().take(here), age, network);
        let mut found = Vec::new();
        if !beside.0.connections.is_empty() {
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

/// The rest of groups, and for each connection in progress its congestion windows.
type Left = (Group, Vec<Option<[u32; 2]>>);

/// The rest of groups: the connections in progress, which continue at once, and those not started yet.
fn rest<'m>(
    model: &Model,
    session: &Session,
    groups: impl Iterator<Item = (&'m Group, &'m GroupTimes)>,
    age: Dur,
    network: &Network,
) -> Left {
    let mut left: Vec<(Dur, Connection, Option<[u32; 2]>)> = Vec::new();
    for (group, times) in groups {
        for (c, &(start, end)) in group.connections.iter().zip(&times.connections) {
            if start > age {
                left.push((start - age, c.clone(), None));
            } else if end > age {
                let course = Timeline::of(model, session, c, network);
                left.extend(cut(c, &course, age - start));
            }
        }
    }
    left.sort_by_key(|l| l.0);
    let mut before = Dur::ZERO;
    for (at, c, _) in &mut left {
        c.gap = *at - before;
        before = *at;
    }
    let (connections, windows) = left.into_iter().map(|l| (l.1, l.2)).unzip();
    let group = Group {
        think: Dur::ZERO,
        connections,
    };
    (group, windows)
}

/// The rest of a connection at `age`, the time until it must be opened, and its congestion windows if it
/// is an established TCP connection.
fn cut(c: &Connection, course: &Timeline, age: Dur) -> Option<(Dur, Connection, Option<[u32; 2]>)> {
    let tcp = matches!(
        c.exchange,
        Exchange::Sequential(_) | Exchange::Concurrent { .. }
    );
    // During the handshake the connection starts again as a whole.
    if tcp && age < course.rtt {
        return Some((Dur::ZERO, c.clone(), None));
    }
    let windows = tcp.then(|| [0, 1].map(|end| window(c, course, end, age)));
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
    // Units that have passed do not count again.
    let overlap = c.overlap.map(|o| {
        [0, 1].map(|end| {
            let passed = whole[end].saturating_sub(units[end]);
            o[end].saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX))
        })
    });
    let writes = [0, 1].map(|end| cut_writes(&c.writes[end], course, end, age));
    let waits = cut_waits(&c.waits, whole[0], units[0]);
    Some((
        wait,
        Connection {
            exchange,
            writes,
            waits,
            left_censored: true,
            overlap,
            // No clone of the connection: it would copy a whole exchange, which may be megabytes, to drop it.
            gap: c.gap,
            server: c.server,
            client_window: c.client_window,
            server_window: c.server_window,
            wire: c.wire,
            right_censored: c.right_censored,
        },
        windows,
    ))
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

fn cut_turns(turns: &[Turn], course: &Timeline, age: Dur) -> Option<Exchange> {
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
    let mut turn = turns[last];
    // The pause after the merged data may have begun.
    let then = units(last + 1, last + 1).next();
    let then = then.filter(|s| s.from < arrives);
    if let (Some(next), Some(then)) = (turns.get(last + 1), then) {
        let until = then.from - age - pause;
        match end {
            0 if turn.response == 0 && next.request > 0 => turn.client_think = until,
            1 if next.request == 0 => turn.client_think = until - next.server_think,
            _ => {}
        }
    }
    let mut rest = Vec::with_capacity(turns.len() - last + 1);
    if end == 0 {
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
    rest.extend_from_slice(&turns[last + 1..]);
    Some(Exchange::Sequential(rest))
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

fn cut_chains(chains: [&[Unit]; 2], course: &Timeline, age: Dur) -> Exchange {
    let at = [0, 1].map(|end| places(chains[end], course, end, age));
    let [up, down] = [0, 1].map(|end| {
        let (first, next) = at[end];
        let spans = |unit: usize| {
            let all = course.spans.iter();
            all.filter(move |s| (s.end, s.unit) == (end, unit))
        };
        // Converts a number of units of the other end's whole chain to a number in the rest of it.
        let (arrived, begun) = at[1 - end];
        let heard = |after: u32| match after as usize {
            n if n <= arrived => 0,
            n if n <= begun => 1,
            n => (n - begun + usize::from(begun > arrived)) as u32,
        };
        let mut units = Vec::with_capacity(chains[end].len() - first);
        if next > first {
            let all = (first..next).flat_map(spans);
            let waits = spans(first).find(|s| s.to > age);
            units.push(Unit {
                pause: waits.map_or(Dur::ZERO, |s| s.from - age),
                bytes: all
                    .map(|s| s.bytes - sent(s, age))
                    .fold(0, u64::saturating_add),
                after: 0,
            });
        }
        let arrives = in_flight(course, end, age).map(|s| s.to).max();
        let begins = spans(next).next().map(|s| s.from);
        let coming = chains[end][next..]
            .iter()
            .enumerate()
            .map(|(i, unit)| Unit {
                after: heard(unit.after),
                pause: match begins {
                    // The pause before this unit has begun: its reference has left or arrived.
                    Some(from)
                        if i == 0
                            && heard(unit.after) == 0
                            && (first == next || arrives.is_some_and(|to| from < to)) =>
                    {
                        from - age
                    }
                    _ => unit.pause,
                },
                ..*unit
            });
        units.extend(coming);
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
        let n = if begins > age {
            0
        } else {
            run.due_by(age - begins)
        };
        if n < run.packets {
            let bytes = run.bytes_of_first(run.packets);
            let first = Run {
                pause: begins + run.due(n) - age,
                span: run.span - run.due(n),
                packets: run.packets - n,
                bytes: bytes.saturating_sub(run.bytes_of_first(n)),
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

/// The waits of the turns that remain whole, the last `left` of them but the first. What is under way, or in the pause
/// before it, waits no more.
fn cut_waits(waits: &[Wait], whole: usize, left: usize) -> Vec<Wait> {
    if waits.is_empty() {
        return Vec::new();
    }
    let later = waits.iter().filter_map(|w| {
        let turn = (w.turn as usize + left).checked_sub(whole)?;
        Some(Wait {
            turn: u32::try_from(turn).ok()?,
            ..*w
        })
    });
    // A pause before the turn that is next makes a turn of its own.
    let opening = Wait::default();
    std::iter::once(opening)
        .chain(later.filter(|w| w.turn > 1))
        .collect()
}

/// The remaining positions at which an end begins a new write.
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
    // Inside a write, part of the gap to the next one is over.
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

//! Repeats a recorded run in virtual time.

use swell_base::Time;
use swell_world::{PathId, PortConfig, World};

use super::journal::Entry;
use super::table::{Table, tag};

/// Feeds the arrivals of a journal to a world in virtual time. Returns all entries that result, in the order of a
/// journal. The world must be in the state that the recorded one had when its clock started, without ports.
pub fn replay(world: &mut World, entries: &[Entry]) -> Vec<Entry> {
    let mut table = Table::default();
    let mut out = Vec::new();
    let mut number = 0;
    let mut programs = Vec::new();
    for entry in entries {
        match *entry {
            Entry::Port {
                at,
                config,
                program,
            } => {
                world.happen(at);
                leave(world, &mut out);
                out.push(*entry);
                // The journal of another network may name paths that do not exist here. The departures then differ.
                let path = match world.has_path(config.path) {
                    true => config.path,
                    false => PathId::default(),
                };
                world.add_port(&PortConfig { path, ..config });
                programs.push(program);
            }
            Entry::Arrival {
                at,
                from,
                to,
                bucket,
                size,
                ecn,
            } => {
                world.happen(at);
                leave(world, &mut out);
                out.push(*entry);
                let observed = [from, to].iter().all(|p| programs[p.0 as usize]);
                if let Some((flow, back)) = table.flow(world, from, to, bucket, tag(observed)) {
                    world.inject(flow, back, size, ecn, number);
                }
                number += 1;
            }
            Entry::Set {
                at,
                link,
                direction,
                ref setting,
            } => {
                world.happen(at);
                leave(world, &mut out);
                out.push(*entry);
                // The journal of another network may name a link that does not exist here.
                if usize::from(link) < world.duplexes() {
                    world.set_link(usize::from(link), direction, setting);
                }
            }
            Entry::End { at } => {
                world.happen(at);
                leave(world, &mut out);
                out.push(*entry);
            }
            Entry::Departure { .. } | Entry::Drop { .. } => {}
        }
    }
    out
}

fn leave(world: &mut World, out: &mut Vec<Entry>) {
    while let Some(d) = world.take_delivery() {
        out.push(Entry::Departure {
            at: d.at,
            number: d.handle,
            ecn: d.ecn,
        });
    }
    world.take_drops(&mut |c| {
        out.push(Entry::Drop {
            at: c.at,
            number: c.handle,
            reason: c.reason,
        })
    });
}

/// The first entry by which a repetition differs from its record, if any. Departures and drops are compared by time
/// and packet number, whatever their order in the journal.
pub fn first_difference(recorded: &[Entry], repeated: &[Entry]) -> Option<[Option<Entry>; 2]> {
    let sorted = |entries: &[Entry]| {
        let mut of: Vec<(Time, u64, Entry)> = entries
            .iter()
            .filter_map(|e| match *e {
                Entry::Departure { at, number, .. } | Entry::Drop { at, number, .. } => {
                    Some((at, number, *e))
                }
                Entry::Port { .. }
                | Entry::Arrival { .. }
                | Entry::Set { .. }
                | Entry::End { .. } => None,
            })
            .collect();
        of.sort_by_key(|&(at, number, _)| (at, number));
        of
    };
    let known = without_later(recorded, repeated);
    let (a, b) = (sorted(&known), sorted(repeated));
    let end = recorded.iter().rev().find_map(|e| match e {
        Entry::End { at } => Some(*at),
        _ => None,
    });
    (0..a.len().max(b.len()))
        .map(|i| [a.get(i).map(|e| e.2), b.get(i).map(|e| e.2)])
        .find(|[x, y]| x != y && !past(*x, end) && !past(*y, end))
}

/// The entries of a record without drops that became known only after its end. A link decides on the losses of its wire
/// at its next event, and a journal of a killed run is cut at the instant of an arrival. What was written after that
/// arrival may be such a drop, unless the repetition knows it, too.
fn without_later(recorded: &[Entry], repeated: &[Entry]) -> Vec<Entry> {
    let arrives = |e: &Entry| matches!(e, Entry::Arrival { .. });
    let last = recorded.iter().rposition(arrives).unwrap_or(0);
    let cut = matches!(recorded, [.., Entry::End { at }] if *at == recorded[last].at());
    let later = |i: usize, e: &Entry| {
        cut && i > last && matches!(e, Entry::Drop { .. }) && !repeated.contains(e)
    };
    let each = recorded.iter().enumerate();
    each.filter(|&(i, e)| !later(i, e))
        .map(|(_, e)| *e)
        .collect()
}

/// Whether an entry lies after the end of the run. A queue can decide on a drop before the instant of the drop, so
/// its entry may or may not be recorded.
fn past(entry: Option<Entry>, end: Option<Time>) -> bool {
    match (entry, end) {
        (Some(Entry::Departure { at, .. } | Entry::Drop { at, .. }), Some(end)) => at > end,
        _ => false,
    }
}

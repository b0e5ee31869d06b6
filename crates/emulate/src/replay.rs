//! A recorded run, repeated in virtual time.

use swell_base::Time;
use swell_world::{PathId, PortConfig, World};

use super::journal::Entry;
use super::table::{Table, tag};

/// Feeds the arrivals of a journal to a world in virtual time. Returns everything that then
/// happens at its ports, in the order of a journal. The world must be what the recorded one was when
/// its clock was started, without ports.
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
                // A journal of another network names paths that are not there; what leaves then differs.
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
                // A journal of another network may name a link that is not there.
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

/// How a repetition differs from its record: the first entry that is not in both, if any. Departures
/// and drops are compared as what happened to packets and when, in the order of time.
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
    let (a, b) = (sorted(recorded), sorted(repeated));
    let end = recorded.iter().rev().find_map(|e| match e {
        Entry::End { at } => Some(*at),
        _ => None,
    });
    (0..a.len().max(b.len()))
        .map(|i| [a.get(i).map(|e| e.2), b.get(i).map(|e| e.2)])
        .find(|[x, y]| x != y && !past(*x, end) && !past(*y, end))
}

/// A drop is known when a queue decides it, which may be earlier than its instant.
fn past(entry: Option<Entry>, end: Option<Time>) -> bool {
    match (entry, end) {
        (Some(Entry::Departure { at, .. } | Entry::Drop { at, .. }), Some(end)) => at > end,
        _ => false,
    }
}

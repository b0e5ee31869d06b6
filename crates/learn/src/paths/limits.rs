//! Capacities that are not those of single hosts: the tapped link's, or a line's that hosts share before it.

use swell_base::Rate;

use super::capacity::{SAME, SOUND_PAIRS, capacity};
use super::full;
use super::line::Line;
use crate::hosts::{Measured, Sample};
use crate::together::{Limit, Together};

/// Number of capacities within a factor of e that are told apart.
const STEPS: f64 = 20.0;
/// Share of the data packets with which a host is practically the only one of its side.
const NEARLY_ALL: f64 = 0.9;

/// A rate that the hosts of a side never exceed together, for the warnings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limited {
    pub(crate) rate: Rate,
    /// Whether several hosts fill it, so that it is not that of a single host's line.
    pub(crate) shared: bool,
    /// Whether one host has nearly all packets of the side.
    pub(crate) one: bool,
    /// Whether it is full all the time, and yet no host sends packets at that rate.
    pub(crate) paced: bool,
    /// Number of hosts that have it as their capacity, and of those with any.
    pub(crate) hosts: [usize; 2],
}

/// The line that limits the hosts of a side in the direction of `kind`, and what to say of it. `given`: the rate of the
/// tapped link, if it is known.
fn find<'t>(
    hosts: &[&Measured],
    kind: Sample,
    by: &'t Together,
    given: Option<Rate>,
) -> (Option<Line<'t>>, Option<Limited>) {
    let packets = |m: &Measured| match kind {
        Sample::Up => u64::from(m.sent[0]),
        _ => u64::from(m.received[0]),
    };
    let most = hosts.iter().map(|m| packets(m)).max().unwrap_or(0);
    let all: u64 = hosts.iter().map(|m| packets(m)).sum();
    let one = all > 0 && most as f64 >= NEARLY_ALL * all as f64;
    let always = |rate: Rate| {
        by.always(rate, one) && full::waits(hosts, usize::from(kind == Sample::Down), rate)
    };
    if let Some(rate) = given {
        let limit = by.limit(rate, one);
        let line = Line {
            rate,
            shared: true,
            // Before its queue, and where acknowledgements wait together, more passes at times.
            filled: limit != Limit::Unreached,
            always: always(rate),
            given: true,
            by,
        };
        return (Some(line), None);
    }
    let mut known: Vec<u64> = (hosts.iter())
        .filter_map(|m| capacity(m, kind, SOUND_PAIRS))
        .map(Rate::bps)
        .collect();
    known.sort_unstable();
    let found = |bps: u64, limit: Limit| {
        let (rate, shared) = (Rate::from_bps(bps), limit == Limit::Shared);
        let line = Line {
            rate,
            shared,
            filled: limit != Limit::Unreached,
            always: shared && always(rate),
            given: false,
            by,
        };
        let its = known.iter().filter(|own| line.is(Rate::from_bps(**own)));
        let limited = Limited {
            rate,
            shared,
            one,
            paced: false,
            hosts: [its.count(), known.len()],
        };
        (line, limited)
    };
    // Many hosts have equal capacities.
    let mut asked = known.clone();
    asked.dedup_by_key(|bps| ((*bps as f64).ln() * STEPS) as i64);
    let mut unclear = None;
    for &bps in asked.iter().rev() {
        match by.limit(Rate::from_bps(bps), one) {
            Limit::Shared => {
                let (line, limited) = found(bps, Limit::Shared);
                return (Some(line), Some(limited));
            }
            Limit::Unclear => unclear = unclear.or(Some(bps)),
            Limit::None | Limit::Unreached => {}
        }
    }
    // Where senders space their packets, none shows the rate at which all of them together leave a queue.
    if let Some(rate) = by.steady(one).filter(|rate| always(*rate)) {
        let (line, limited) = found(rate.bps(), Limit::Shared);
        let paced = Limited {
            paced: true,
            ..limited
        };
        return (Some(line), Some(paced));
    }
    let Some(&median) = known.get(known.len() / 2) else {
        return (None, None);
    };
    // No capacity exceeds the link's. So if it is the link's, most hosts have it.
    let alike = |bps: &u64| {
        let (line, limited) = found(*bps, Limit::Unclear);
        2 * limited.hosts[0] >= limited.hosts[1]
            && known
                .iter()
                .all(|own| *own as f64 <= line.rate.bps() as f64 * SAME)
    };
    let unreached =
        Some(median).filter(|bps| by.limit(Rate::from_bps(*bps), one) == Limit::Unreached);
    match unclear.or(unreached) {
        Some(bps) => {
            let limit = unclear.map_or(Limit::Unreached, |_| Limit::Unclear);
            let (line, limited) = found(bps, limit);
            (Some(line), Some(limited).filter(|_| alike(&bps)))
        }
        None => (None, None),
    }
}

/// The lines of a side's hosts, from them and to them, and what to say of these.
pub(super) fn of_side<'t>(
    hosts: &[&Measured],
    right: bool,
    together: &'t [[Together; 2]; 2],
    given: [Option<Rate>; 2],
) -> ([Option<Line<'t>>; 2], [Option<Limited>; 2]) {
    let [up, down] = [(Sample::Up, right), (Sample::Down, !right)].map(|(kind, to_left)| {
        let way = usize::from(to_left);
        let arrived = usize::from(kind == Sample::Down);
        find(hosts, kind, &together[arrived][way], given[way])
    });
    ([up.0, down.0], [up.1, down.1])
}

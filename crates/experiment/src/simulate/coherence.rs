//! What links have in common that follow each other on a path.

use std::collections::BTreeSet;
use std::sync::Arc;

use swell_base::{Direction, Dur};
use swell_stats::coherences;
use swell_world::World;

use super::observe::VANISHING;
use crate::backend::RunSpec;
use crate::observe::Coherence;

/// A direction of a link, by the number of the link.
type Way = (usize, Direction);

/// Pairs of links that follow each other on the path of any traffic of the run, both ways, the link with the smaller
/// number first. Only these, because a network of many links has too many pairs.
fn pairs(spec: &RunSpec) -> BTreeSet<[Way; 2]> {
    let all = (spec.foreground.iter())
        .chain(&spec.beside)
        .chain(&spec.background);
    let mut pairs = BTreeSet::new();
    for part in all {
        for two in part.path.windows(2) {
            let mut ways = [0, 1].map(|i| (two[i].link, Direction::of(two[i].reversed)));
            ways.sort_unstable();
            pairs.insert(ways);
            pairs.insert(ways.map(|(link, direction)| (link, direction.opposite())));
        }
    }
    pairs
}

/// The bytes of arrivals at a queue after the warm-up, in fine bins: of the background, and of all traffic.
fn series(world: &World, spec: &RunSpec, (link, direction): Way, fine: Dur) -> [Vec<f64>; 2] {
    let from = spec.warmup.as_nanos().div_ceil(fine.as_nanos()) as usize;
    let to = (spec.duration.as_nanos() / fine.as_nanos()) as usize;
    let Some(meter) = world.link(link, direction).meter() else {
        return Default::default();
    };
    let of = |who: usize, i: usize| {
        let bytes = meter.fine_bytes[who].get(i).copied();
        f64::from(bytes.unwrap_or(0))
    };
    [
        (from..to).map(|i| of(1, i)).collect(),
        (from..to).map(|i| of(0, i) + of(1, i)).collect(),
    ]
}

/// The rows of the table.
pub(super) fn neighbours(world: &World, spec: &RunSpec, fine: Dur) -> Vec<Coherence> {
    let mut rows = Vec::new();
    for [first, second] in pairs(spec) {
        let [here, next] = [first, second].map(|way| series(world, spec, way, fine));
        let both = here.into_iter().zip(next);
        for (traffic, (x, y)) in ["background", "all"].into_iter().zip(both) {
            // A silent octave has no correlation.
            let octaves = coherences(&x, &y, VANISHING).into_iter();
            let known = octaves.filter(|o| o.energies.iter().all(|&e| e > 0.0));
            rows.extend(known.map(|octave| Coherence {
                link: Arc::clone(&spec.links[first.0].name),
                direction: first.1,
                next: Arc::clone(&spec.links[second.0].name),
                next_direction: second.1,
                traffic: traffic.into(),
                octave: octave.j,
                timescale: octave.timescale(fine).as_secs_f64(),
                n: octave.n,
                correlation: octave.correlation(),
                coherence: octave.coherence(),
            }));
        }
    }
    rows
}

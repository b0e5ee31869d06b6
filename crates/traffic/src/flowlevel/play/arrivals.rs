//! Datagram sources of kind `other`: when each one begins, and how much of it is played.
//!
//! Sources are numbered in order of the intervals in which they begin. Start and rank of a source follow
//! from its number and the seed of the round. So no list of them is kept, as there may be 2^31. The rank
//! chooses volume and lifetime together, because large transfers take long.
//!
//! A source sends at the rate that it had in the records, whatever the compression. A source that lasts
//! longer than the whole round sends for the length of the round. At any time, there are as many such
//! sources as the records had at once, in the mean: their number is rounded up, and all are played for as much less
//! time. The round is a circle: the part of a source beyond its end is
//! played at its beginning. So the load is that of the records from the first moment to the last. The
//! alternative, sending a late source's volume in the rest of the round, would raise the load towards the
//! end.

use swell_base::{Dur, Stream, Time, derived};

use super::super::law::{Law, permuted};
use super::rounds::Rounds;

/// Number of sources whose starts are drawn together. It bounds the queue.
pub(super) const BLOCK: u64 = 1_024;
/// Number of parts into which ranks are divided if long sources are more frequent than short ones.
const CELLS: usize = 1_024;

/// Numbers of sources per interval, and their distributions.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// Number of sources that begin in each interval or before it.
    upto: Vec<u64>,
    /// Share of the sources with a rank in each part or below it; empty if the ranks are uniform.
    ranks: Vec<f64>,
    lifetimes: Law,
    /// Maximum playing time of a source, microseconds.
    round: f64,
    /// Share of its time, and of its volume, that a source is played: their number is rounded up.
    share: f64,
}

/// Differences below this share of a number come from rounding of floats.
const EXACT: f64 = 1e-9;

/// Position of a source in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundSlot {
    /// Start, relative to the start of the round.
    pub(super) at: Dur,
    /// Its quantile in the distributions of volumes and lifetimes.
    pub(super) rank: f64,
    /// Duration for which it is played.
    pub(super) lasts: Dur,
    /// Share of its volume that is played.
    pub(super) part: f64,
}

impl Arrivals {
    /// No sources.
    pub(super) fn none() -> Arrivals {
        Arrivals {
            upto: Vec::new(),
            ranks: Vec::new(),
            lifetimes: Law::of_one(1),
            round: 0.0,
            share: 1.0,
        }
    }

    /// `begun` is the number of sources per interval that would carry the model's volume over its own
    /// time. The round lasts `round` and is shorter than the model by the factor `compression`.
    pub(super) fn new(
        begun: impl Iterator<Item = f64>,
        lifetimes: Law,
        round: Dur,
        compression: f64,
    ) -> Arrivals {
        let round = (round.as_nanos() as f64 / 1e3).max(1.0);
        let (mut ranks, mut all) = (Vec::new(), 1.0);
        if lifetimes.quantile(1.0) > round {
            let mut sum = 0.0;
            ranks = (0..CELLS)
                .map(|i| {
                    let middle = (i as f64 + 0.5) / CELLS as f64;
                    sum += (lifetimes.quantile(middle) / round).max(1.0) / CELLS as f64;
                    sum
                })
                .collect();
            all = sum;
            ranks.iter_mut().for_each(|r| *r /= sum);
        }
        let mut sum = 0.0;
        let upto = begun.map(|n| {
            sum += n * all / compression;
            sum
        });
        let upto: Vec<f64> = upto.collect();
        let whole = (sum * (1.0 - EXACT)).ceil();
        let scale = whole / sum;
        let scale = if scale.is_finite() { scale } else { 1.0 };
        Arrivals {
            upto: upto.iter().map(|n| (n * scale + 0.5) as u64).collect(),
            ranks,
            lifetimes,
            round,
            share: (1.0 / scale).min(1.0),
        }
    }

    /// Number of sources in a round.
    pub(super) fn all(&self) -> u64 {
        self.upto.last().copied().unwrap_or(0)
    }

    /// The numbers of the sources that begin in interval `index` of a round.
    pub(super) fn of(&self, index: usize) -> std::ops::Range<u64> {
        let end = self.upto.get(index).copied().unwrap_or(0);
        let begin = index.checked_sub(1).and_then(|i| self.upto.get(i));
        begin.copied().unwrap_or(0).min(end)..end
    }

    /// The interval of a round in which source `number` begins.
    pub(super) fn interval_of(&self, number: u64) -> usize {
        self.upto.partition_point(|&n| n <= number)
    }

    /// Start of the time slot of the block whose first source is `number`, relative to the start of the
    /// round.
    pub(super) fn block_at(&self, rounds: &Rounds, index: usize, number: u64) -> Dur {
        let all = self.of(index);
        let part = (number - all.start) as f64 / (all.end - all.start).max(1) as f64;
        begin_of(rounds, index) + rounds.lasts(index as u64).scale(part)
    }

    /// Position of source `number`, of interval `index`, in a round of this seed. The starts of a block
    /// are uniform and independent within its part of the interval.
    pub(super) fn place(&self, rounds: &Rounds, index: usize, number: u64, seed: u64) -> RoundSlot {
        let mut stream = Stream::indexed(seed, "arrival", number);
        let all = self.of(index);
        let block = (number - all.start) / BLOCK * BLOCK;
        let first = all.start + block;
        let last = (first + BLOCK).min(all.end);
        let [begin, end] = [first, last].map(|n| self.block_at(rounds, index, n));
        let width = end.saturating_sub(begin);
        let at = begin + width.scale(stream.uniform());
        // Rounding must not move it into the next interval.
        let at = at.min(end.saturating_sub(Dur::from_nanos(1))).max(begin);
        let sources = self.all();
        let stratum = permuted(number, sources, derived(seed, 1));
        let rank = self.rank((stratum as f64 + stream.uniform()) / sources as f64);
        let lifetime = self.lifetimes.quantile(rank).max(1.0);
        let lasts = lifetime.min(self.round) * self.share;
        RoundSlot {
            at,
            rank,
            lasts: Dur::from_nanos((lasts * 1e3 + 0.5) as u64),
            part: lasts / lifetime,
        }
    }

    /// The rank below which a share `p` of the sources lie.
    fn rank(&self, p: f64) -> f64 {
        if self.ranks.is_empty() {
            return p;
        }
        let i = self.ranks.partition_point(|&r| r <= p).min(CELLS - 1);
        let before = i.checked_sub(1).map_or(0.0, |j| self.ranks[j]);
        let inside = (p - before) / (self.ranks[i] - before).max(1e-300);
        (i as f64 + inside.clamp(0.0, 1.0)) / CELLS as f64
    }

    /// The selected sources of a round of this seed that are in progress at `at`, relative to the start of the round. It
    /// may be after its end: the sources that last longer.
    pub(super) fn in_progress<'a>(
        &'a self,
        rounds: &'a Rounds,
        seed: u64,
        at: Dur,
        mine: impl Fn(u64) -> bool + 'a,
    ) -> impl Iterator<Item = u64> + 'a {
        let longest = Dur::from_nanos((self.lifetimes.quantile(1.0).min(self.round) * 1e3) as u64);
        // Rounding must not leave one out.
        let longest = longest + Dur::from_micros(1);
        (0..self.upto.len())
            .take_while(move |&index| begin_of(rounds, index) < at)
            .filter(move |&index| begin_of(rounds, index + 1) + longest > at)
            .flat_map(move |index| self.of(index).map(move |number| (index, number)))
            .filter(move |&(_, number)| mine(number))
            .filter(move |&(index, number)| {
                let place = self.place(rounds, index, number, seed);
                place.at < at && place.at + place.lasts > at
            })
            .map(|(_, number)| number)
    }
}

fn begin_of(rounds: &Rounds, index: usize) -> Dur {
    rounds.starts_at(index as u64).since(Time::ZERO)
}

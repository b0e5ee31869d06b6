//! Tracks how many bytes intervals still lack while large files are assigned to them.
//!
//! A file loads the intervals in which it is in progress. The first [`NEAR`] of them are updated at once.
//! Its load on later ones is kept as differences between neighbouring intervals, so that the cost of a
//! file does not depend on its duration. These differences are applied after 1, 2, 4, 8 ... files.

use std::collections::BTreeSet;

use swell_base::Stream;

use super::super::rounds::Rounds;

/// Number of intervals of a file that are updated individually.
const NEAR: usize = 32;
/// Bound on the work of a plan, in updates of intervals. Beyond it, only the interval in which a file
/// begins is updated.
const WORK: u64 = 1 << 22;
/// Number of attempts to find an interval that lacks as many bytes as a file has.
const TRIES: usize = 16;
/// Large files begin in this part of their interval, so that they are sent even if fewer transfers than
/// expected happen to start.
const EARLY: f64 = 0.95;
/// A large file begins this many times its expected duration before the end of its interval.
const ROOM: f64 = 2.0;

/// A file to be assigned to an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct LargeFile {
    /// Bytes.
    pub(super) size: f64,
    /// Seconds.
    pub(super) takes: f64,
    /// Position within the part of the interval in which it may begin: 0..1.
    pub(super) uniform: f64,
}

/// The bytes that intervals lack, indexed for weighted choice.
pub(super) struct Deficit {
    /// Start of each interval, seconds, followed by the end of the last one.
    begins: Vec<f64>,
    lacks: Vec<f64>,
    open: Vec<bool>,
    /// Cumulative lacking bytes as a binary indexed tree (P. Fenwick, Software: Practice and Experience
    /// 24, 1994).
    tree: Vec<f64>,
    /// Open intervals by lacking bytes; the bits of non-negative floats sort like the numbers.
    order: BTreeSet<(u64, usize)>,
    /// Load of files on intervals that are not updated yet, and on the next round.
    far: Far,
    next: Far,
    cycle: bool,
    steps: u64,
}

impl Deficit {
    pub(super) fn new(rounds: &Rounds, lacks: Vec<f64>, open: impl Fn(usize) -> bool) -> Deficit {
        let n = lacks.len();
        let mut deficit = Deficit {
            begins: (0..=n as u64)
                .map(|i| rounds.starts_at(i).as_secs_f64())
                .collect(),
            lacks,
            open: (0..n).map(open).collect(),
            tree: Vec::new(),
            order: BTreeSet::new(),
            far: Far::new(n),
            next: Far::new(n),
            cycle: rounds.cycle,
            steps: 0,
        };
        deficit.index();
        deficit
    }

    /// What intervals lack now, and the load on the next round if the plan cycles; empty if there is none.
    pub(super) fn finish(mut self) -> (Vec<f64>, Vec<f64>) {
        self.apply_far();
        let mut next = Vec::new();
        if self.next.any {
            next = vec![0.0; self.lacks.len()];
            self.next.add_to(&self.begins, &mut next);
        }
        (self.lacks, next)
    }

    /// Number of interval updates.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Position in an interval at which a file begins, 0..1.
    pub(super) fn place(&self, file: LargeFile, interval: usize) -> f64 {
        let lasts = (self.begins[interval + 1] - self.begins[interval]).max(1e-9);
        file.uniform * (1.0 - ROOM * file.takes / lasts).clamp(0.0, EARLY)
    }

    /// Chooses an interval for a file, with a probability proportional to what it lacks. It takes one that
    /// the file does not overload, or the least overloaded of several.
    pub(super) fn choose(&mut self, file: LargeFile, stream: &mut Stream) -> Option<usize> {
        let &(_, most) = self.order.last()?;
        let mut best = (self.excess(file, most), most);
        let total = self.total();
        for _ in 0..TRIES {
            let i = self.at(stream.uniform() * total);
            if self.open.get(i) != Some(&true) {
                continue;
            }
            let too_much = self.excess(file, i);
            if too_much <= 0.0 {
                return Some(i);
            }
            if too_much < best.0 {
                best = (too_much, i);
            }
        }
        Some(best.1)
    }

    /// Bytes by which the file would overload the intervals that it touches, and those that the end of the plan would
    /// cut off.
    fn excess(&mut self, file: LargeFile, first: usize) -> f64 {
        let (mut excess, mut steps) = (0.0, 0);
        let (from, left) = self.near(file, first, |i, share| {
            excess += (file.size * share - self.lacks[i]).max(0.0);
            steps += 1;
        });
        self.steps += steps;
        if !self.cycle && left > 0.0 {
            let lost = left - (self.begins[self.lacks.len()] - self.begins[from]);
            excess += file.size * (lost / file.takes).max(0.0);
        }
        excess
    }

    /// Assigns a file to interval `first`; `rank` is its number in the order of assignment.
    pub(super) fn give(&mut self, file: LargeFile, first: usize, rank: u64) {
        let mut loads = [(0, 0.0); NEAR];
        let mut len = 0;
        let (from, left) = self.near(file, first, |i, share| {
            loads[len] = (i, share);
            len += 1;
        });
        for &(i, share) in &loads[..len] {
            self.take(i, file.size * share);
        }
        self.steps += len as u64;
        if left > 0.0 {
            let n = self.lacks.len();
            let rate = file.size / file.takes;
            let rest = (self.begins[n] - self.begins[from]).min(left);
            self.far.add(&self.begins, from, rest, rate);
            if self.cycle && left > rest {
                let round = self.begins[n].max(1e-9);
                let rounds = ((left - rest) / round).floor();
                self.next.add(&self.begins, 0, round, rate * rounds);
                self.next
                    .add(&self.begins, 0, left - rest - rounds * round, rate);
            }
        }
        if (rank + 1).is_power_of_two() {
            self.apply_far();
        }
    }

    /// Calls `each` with the first intervals in which a transfer that begins in interval `first` is in
    /// progress, and its share in each. Returns the first interval not visited and the remaining seconds.
    fn near(
        &self,
        file: LargeFile,
        first: usize,
        mut each: impl FnMut(usize, f64),
    ) -> (usize, f64) {
        let n = self.lacks.len();
        let end = if self.steps < WORK { NEAR } else { 1 };
        let end = n.min(first + end);
        let begins = self.begins[first];
        let mut at = begins + self.place(file, first) * (self.begins[first + 1] - begins);
        let mut left = file.takes;
        for interval in first..end {
            let here = self.begins[interval + 1] - at;
            at = self.begins[interval + 1];
            if left <= here {
                each(
                    interval,
                    if file.takes > 0.0 {
                        left / file.takes
                    } else {
                        1.0
                    },
                );
                return (interval, 0.0);
            }
            each(interval, here / file.takes);
            left -= here;
        }
        (end, left)
    }

    /// Applies the accumulated load of files on distant intervals.
    fn apply_far(&mut self) {
        if !self.far.any {
            return;
        }
        let n = self.lacks.len();
        let mut loads = vec![0.0; n];
        std::mem::replace(&mut self.far, Far::new(n)).add_to(&self.begins, &mut loads);
        for (lack, load) in self.lacks.iter_mut().zip(loads) {
            *lack -= load;
        }
        self.steps += n as u64;
        self.index();
    }

    /// Rebuilds the tree and the order.
    fn index(&mut self) {
        let n = self.lacks.len();
        let weight = |i: usize| if self.open[i] { self.weight(i) } else { 0.0 };
        self.tree = std::iter::once(0.0).chain((0..n).map(weight)).collect();
        self.order = (0..n)
            .filter(|&i| self.open[i])
            .map(|i| (self.weight(i).to_bits(), i))
            .collect();
        for i in 1..=n {
            let above = i + (i & i.wrapping_neg());
            if above <= n {
                self.tree[above] += self.tree[i];
            }
        }
    }

    fn weight(&self, i: usize) -> f64 {
        // The bits of negative zero do not sort like the number.
        if self.lacks[i] > 0.0 {
            self.lacks[i]
        } else {
            0.0
        }
    }

    fn shift(&mut self, i: usize, by: f64) {
        let mut at = i + 1;
        while at < self.tree.len() {
            self.tree[at] += by;
            at += at & at.wrapping_neg();
        }
    }

    /// Reduces what interval `i` lacks by `size`.
    pub(super) fn take(&mut self, i: usize, size: f64) {
        let before = self.weight(i);
        let listed = self.order.remove(&(before.to_bits(), i));
        self.lacks[i] -= size;
        let after = self.weight(i);
        if listed {
            self.order.insert((after.to_bits(), i));
            self.shift(i, after - before);
        }
    }

    /// Closes interval `i`: no more files begin in it.
    pub(super) fn close(&mut self, i: usize) {
        let weight = self.weight(i);
        self.open[i] = false;
        if self.order.remove(&(weight.to_bits(), i)) {
            self.shift(i, -weight);
        }
    }

    fn total(&self) -> f64 {
        let (mut at, mut sum) = (self.lacks.len(), 0.0);
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    /// The interval at which the cumulative sum passes `sum`.
    fn at(&self, mut sum: f64) -> usize {
        let mut at = 0;
        let mut step = self.tree.len().next_power_of_two() / 2;
        while step > 0 {
            if at + step < self.tree.len() && self.tree[at + step] <= sum {
                at += step;
                sum -= self.tree[at];
            }
            step /= 2;
        }
        at
    }
}

/// Bytes of many transfers, each at a constant rate over a period of time.
#[derive(Clone, Debug)]
struct Far {
    /// Change of the total rate over whole intervals, at the start of each interval.
    changes: Vec<f64>,
    /// Bytes of transfers in their last intervals, which they fill only partly.
    ends: Vec<f64>,
    any: bool,
}

impl Far {
    fn new(intervals: usize) -> Far {
        Far {
            changes: vec![0.0; intervals + 1],
            ends: vec![0.0; intervals],
            any: false,
        }
    }

    /// Adds a transfer at `rate` for `seconds` from the start of interval `from`.
    fn add(&mut self, begins: &[f64], from: usize, seconds: f64, rate: f64) {
        if seconds <= 0.0 || rate <= 0.0 || from >= self.ends.len() {
            return;
        }
        self.any = true;
        let end = begins[from] + seconds;
        let last = begins.partition_point(|&b| b <= end).max(from + 1) - 1;
        self.changes[from] += rate;
        self.changes[last] -= rate;
        if let Some(ends) = self.ends.get_mut(last) {
            *ends += rate * (end - begins[last]).max(0.0);
        }
    }

    fn add_to(&self, begins: &[f64], loads: &mut [f64]) {
        let mut rate = 0.0;
        for (i, load) in loads.iter_mut().enumerate() {
            rate += self.changes[i];
            *load += self.ends[i] + rate.max(0.0) * (begins[i + 1] - begins[i]);
        }
    }
}

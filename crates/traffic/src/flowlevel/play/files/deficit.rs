//! What intervals still lack of their volumes while large files are assigned to them.
//!
//! A file loads the intervals in which it is in progress. The first [`NEAR`] of them are updated at once. Its load on later
//! ones is kept as differences between neighbouring intervals, so that the cost of a file does not depend on how long it
//! takes. These differences are applied after 1, 2, 4, 8 ... files.

use std::collections::BTreeSet;

use swell_base::Stream;

use super::super::Plan;

/// Intervals of a file that are updated one by one.
const NEAR: usize = 32;
/// Bound on the work of a plan, in updates of intervals. Beyond it only the interval in which a file begins is updated.
const WORK: u64 = 1 << 22;
/// Attempts to find an interval that lacks as much as a file has.
const TRIES: usize = 16;
/// Large files begin in this part of their interval, so that they are played even if fewer transfers than
/// expected happen to start.
const EARLY: f64 = 0.95;
/// A large file begins this many times its expected duration before the end of its interval.
const ROOM: f64 = 2.0;

/// A file that looks for an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct LargeFile {
    /// Bytes.
    pub(super) size: f64,
    /// Seconds.
    pub(super) takes: f64,
    /// Where in its interval, of the part in which it may begin: 0..1.
    pub(super) uniform: f64,
}

/// What intervals lack, ready to choose one of them.
pub(super) struct Deficit {
    /// When each interval begins, seconds; the end of the last one comes last.
    begins: Vec<f64>,
    lacks: Vec<f64>,
    open: Vec<bool>,
    /// Sums of what is lacked, as a binary indexed tree (P. Fenwick, Software: Practice and Experience 24, 1994).
    tree: Vec<f64>,
    /// By what they lack; bits of non-negative numbers are in the order of the numbers.
    order: BTreeSet<(u64, usize)>,
    /// Load of files on intervals that are not updated yet, and on the next round.
    far: Far,
    next: Far,
    steps: u64,
}

impl Deficit {
    pub(super) fn new(plan: &Plan, lacks: Vec<f64>, open: impl Fn(usize) -> bool) -> Deficit {
        let n = lacks.len();
        let mut deficit = Deficit {
            begins: (0..=n as u64)
                .map(|i| plan.starts_at(i).as_secs_f64())
                .collect(),
            lacks,
            open: (0..n).map(open).collect(),
            tree: Vec::new(),
            order: BTreeSet::new(),
            far: Far::new(n),
            next: Far::new(n),
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

    /// How often intervals were looked at.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Where in an interval a file begins, 0..1.
    pub(super) fn place(&self, file: LargeFile, interval: usize) -> f64 {
        let lasts = (self.begins[interval + 1] - self.begins[interval]).max(1e-9);
        file.uniform * (1.0 - ROOM * file.takes / lasts).clamp(0.0, EARLY)
    }

    /// An interval for a file, in proportion to what it lacks: one that it does not load too much, or the least
    /// of some.
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

    /// What would be too much for the intervals that the file loads.
    fn excess(&mut self, file: LargeFile, first: usize) -> f64 {
        let (mut excess, mut steps) = (0.0, 0);
        self.near(file, first, |i, share| {
            excess += (file.size * share - self.lacks[i]).max(0.0);
            steps += 1;
        });
        self.steps += steps;
        excess
    }

    /// The file begins in interval `first`, the number `rank` of all.
    pub(super) fn give(&mut self, file: LargeFile, first: usize, rank: u64, cycle: bool) {
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
            if cycle && left > rest {
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

    /// Calls with the first intervals in which a transfer is under way that begins in interval `first`, and with
    /// which part of it. Says from which interval on it is for how many more seconds.
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

    /// Takes what files far from where they begin do to intervals.
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

    /// Tree and order of what intervals lack.
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
        // Of negative zero the bits are not in order.
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

    /// Interval `i` lacks so much less.
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

    /// Nothing more begins in interval `i`.
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

    /// The interval at which the sum passes `sum`.
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

/// Bytes of many transfers, each at a constant rate over a stretch of time.
#[derive(Clone, Debug)]
struct Far {
    /// By how much the sum of the rates of whole intervals changes at each one.
    changes: Vec<f64>,
    /// What the last intervals of transfers have, which they do not fill, bytes.
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

    /// A transfer at `rate` for so many seconds from the beginning of interval `from` on.
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

//! Which files each interval carries: the law's own quantiles, dealt out so that volumes are met.
//!
//! Heavy-tailed sizes that are drawn independently miss the volume of an interval by what its few largest
//! files happen to be. Here a plan of N transfers has N files, one from each N-th part of the law, as the
//! trace had its own. The large ones are given to intervals one by one, largest first, each to an interval
//! that still lacks so much, with a probability in proportion to what it lacks. How long it takes to transfer
//! is told by the rates of the records: it begins so early in its interval that it ends there even on a
//! network half as fast; if it cannot, what goes on into the next interval is counted there. The others, each less than a five-hundredth of an interval, are stratified within every
//! interval and bent (quantile `u` becomes `u^b`) by as little as meets the rest of its volume. What cannot
//! be met is carried to the next interval.

use std::collections::BTreeSet;

use swell_base::{Stream, derived};

use super::super::law::Law;
use super::{Plan, Share};

/// A file of so small a part of a middling interval is not planned one by one.
const SMALL: f64 = 0.002;
/// Files that are planned one by one, at most.
const MOST: f64 = 65_536.0;
/// Files of a share in an interval that are stratified together, at most.
const DEALT: u64 = 1 << 18;
/// Parts of the law below the large files that are told apart for bending it.
const PARTS: usize = 512;
/// The law is bent by no more than this.
const BENT: f64 = 1.3;
/// Large files begin in this part of their interval, so that they are played even if fewer transfers than
/// expected happen to start.
const EARLY: f64 = 0.95;
/// Times what a large file is expected to take: room for it to the end of its interval.
const ROOM: f64 = 2.0;
/// Small files that are left over from one interval to the next, at most, if that is not one in fifty.
const LEFT: usize = 16;
/// Tries to find an interval that lacks as much as a file has.
const TRIES: usize = 16;

/// The files of one direction for all intervals of a plan, once round.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// The large files are the law's from this quantile on.
    border: f64,
    /// Where the law is cut into parts below that, their ends and their means.
    parts: Vec<f64>,
    /// Large files, by interval.
    large: Vec<Large>,
    intervals: Vec<Wanted>,
    seed: u64,
}

/// What a share still has to send of an interval's files, as quantiles of their law.
#[derive(Clone, Debug, Default)]
pub(super) struct Hand {
    /// When in the interval, 0..1, and what; the last first.
    large: Vec<(f64, f64)>,
    small: Vec<f64>,
}

impl Hand {
    /// The file that is sent at `place` of the interval; `None` if there is none left.
    pub(super) fn draw(&mut self, place: f64) -> Option<f64> {
        let large = self.large.pop_if(|l| l.0 <= place);
        let any = large.map(|l| l.1).or_else(|| self.small.pop());
        any.or_else(|| self.large.pop().map(|l| l.1))
    }

    /// Only what is to be sent in the last `part` of the interval.
    pub(super) fn keep(&mut self, part: f64) {
        self.large.retain(|l| l.0 >= 1.0 - part);
        let small = self.small.len() as f64 * part;
        self.small.truncate((small + 0.5) as usize);
    }
}

#[derive(Clone, Copy, Debug)]
struct Large {
    interval: usize,
    /// When in the interval, 0..1.
    place: f64,
    quantile: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    /// Files, and how many of those are large ones.
    files: u64,
    large: u64,
    /// What the others should sum up to, bytes.
    volume: f64,
}

impl Files {
    /// Files of `law` for the intervals of `plan`, which are to carry `part` of its volume. All shares of a plan
    /// have the same if they have the same `seed`.
    pub(super) fn new(law: &Law, plan: &Plan, part: f64, seed: u64) -> Files {
        let n = plan.sessions.len();
        let mut files = Files {
            border: 1.0,
            seed,
            ..Files::default()
        };
        let (mut begun, mut counted) = (0.0, 0);
        let mut lacks: Vec<f64> = Vec::with_capacity(n);
        for index in 0..n {
            begun += plan.expected(index as u64).0;
            let upto = (begun + 0.5) as u64;
            files.intervals.push(Wanted {
                files: upto - counted,
                ..Wanted::default()
            });
            counted = upto;
            lacks.push(plan.volumes[index] * part);
        }
        files.choose_border(law, &lacks, counted);
        let mean = law.mean_below(files.border) / files.border;
        files.parts = (0..PARTS)
            .map(|i| {
                let [a, b] = [i, i + 1].map(|i| files.border * i as f64 / PARTS as f64);
                (law.mean_below(b) - law.mean_below(a)) / (b - a)
            })
            .collect();
        for (lack, wanted) in lacks.iter_mut().zip(&files.intervals) {
            *lack -= wanted.files as f64 * mean;
        }
        files.give_large(law, plan, &mut lacks, counted, mean);
        files.settle(plan, &mut lacks, mean);
        files
    }

    /// Files from which size on are large: small ones must not matter to an interval.
    fn choose_border(&mut self, law: &Law, volumes: &[f64], all: u64) {
        let mut busy: Vec<f64> = volumes.iter().copied().filter(|&v| v > 0.0).collect();
        if busy.is_empty() || all == 0 {
            return;
        }
        busy.sort_by(f64::total_cmp);
        let least = SMALL * busy[busy.len() / 2];
        let n = all as f64;
        let large = ((1.0 - law.share_below(least)) * n)
            .floor()
            .clamp(0.0, MOST.min(n / 2.0));
        self.border = 1.0 - large / n;
    }

    fn give_large(&mut self, law: &Law, plan: &Plan, lacks: &mut [f64], all: u64, mean: f64) {
        let mut stream = Stream::new(self.seed, "large files");
        let n = all as f64;
        let count = ((1.0 - self.border) * n + 0.5) as u64;
        let mut need = Need::new(lacks, |i| self.intervals[i].files > 0);
        for rank in 0..count {
            let quantile = 1.0 - (rank as f64 + 1.0 - stream.uniform()) / n;
            let size = law.quantile(quantile);
            let takes = size * plan.pace;
            let uniform = stream.uniform();
            let place_in = |interval: usize| {
                let room = ROOM * takes / plan.lasts(interval as u64).as_secs_f64();
                uniform * (1.0 - room).clamp(0.0, EARLY)
            };
            // What would be too much for the intervals that it loads.
            let excess = |lacking: &[f64], first: usize| {
                let mut excess = 0.0;
                plan.spread(first, place_in(first), takes, |i, share| {
                    excess += (size * share - lacking[i]).max(0.0);
                });
                excess
            };
            let Some(first) = need.choose(excess, &mut stream) else {
                break;
            };
            let place = place_in(first);
            let wanted = &mut self.intervals[first];
            wanted.large += 1;
            need.take(first, -mean);
            plan.spread(first, place, takes, |interval, share| {
                need.take(interval, size * share);
            });
            if wanted.large >= wanted.files {
                need.close(first);
            }
            self.large.push(Large {
                interval: first,
                place,
                quantile,
            });
        }
        // Stable, so that the order is the same everywhere.
        self.large.sort_by_key(|l| l.interval);
        lacks.copy_from_slice(&need.lacks);
    }

    /// What the small files of each interval are to carry.
    fn settle(&mut self, plan: &Plan, lacks: &mut [f64], mean: f64) {
        let small = |w: &Wanted| (w.files - w.large) as f64;
        // What an interval in which nothing begins lacks, the one before should have sent.
        for i in (1..lacks.len()).rev() {
            if small(&self.intervals[i]) == 0.0 {
                lacks[i - 1] += std::mem::take(&mut lacks[i]);
            }
        }
        // Half of the time that bytes take is what is late by the end of an interval, in the mean.
        let each = self.parts.iter().sum::<f64>();
        let late = self.parts.iter().map(|s| s * s * plan.pace).sum::<f64>();
        let late = if each > 0.0 { late / each / 2.0 } else { 0.0 };
        let (mut carried, mut before) = (0.0, 0.0);
        for (i, wanted) in self.intervals.iter_mut().enumerate() {
            let expected = small(wanted) * mean;
            if expected <= 0.0 {
                carried += lacks[i];
                before = 0.0;
                continue;
            }
            let lasts = plan.lasts(i as u64).as_secs_f64();
            let share = (late / lasts).min(0.4);
            let wish = (expected + lacks[i] + carried - before) / (1.0 - share);
            let [least, most] =
                [self.parts[0].min(mean / BENT), mean * BENT].map(|m| small(wanted) * m);
            wanted.volume = wish.clamp(least, most);
            // An error of a whole interval is no rounding, and would drown the next.
            carried = ((wish - wanted.volume) * (1.0 - share)).clamp(-expected, expected);
            before = wanted.volume * share;
        }
    }

    /// The share's files of an interval, and those that are `left` from the one before.
    pub(super) fn deal(
        &self,
        interval: usize,
        sessions: u64,
        share: Share,
        left: Hand,
        stream: &mut Stream,
    ) -> Hand {
        let wanted = self.intervals.get(interval).copied().unwrap_or_default();
        let seed = derived(self.seed, interval as u64 + 1);
        let of = u64::from(share.of.max(1));
        // Which share a file goes to: as many to each as it has sessions.
        let mine = |file: u64| {
            let sessions = sessions.max(1);
            let session = (file + derived(seed, file / sessions) % sessions) % sessions;
            session % of == u64::from(share.index)
        };
        let begin = self.large.partition_point(|l| l.interval < interval);
        let large = self.large[begin..]
            .iter()
            .take_while(|l| l.interval == interval);
        let large = (0..).zip(large).filter(|&(file, _)| mine(file));
        let mut hand = Hand {
            large: large.map(|(_, l)| (l.place, l.quantile)).collect(),
            small: Vec::new(),
        };
        let small = wanted.files - wanted.large;
        // Of more than can be held, evenly chosen ones.
        let every = (small / of).div_ceil(DEALT).max(1);
        let bend = self.bend(wanted.volume / small.max(1) as f64);
        for file in (0..small).filter(|f| f % every == 0 && mine(f + wanted.large)) {
            let u = (file as f64 + stream.uniform() * every as f64) / small as f64;
            hand.small.push(self.border * libm::pow(u.min(1.0), bend));
        }
        hand.large.extend(left.large.iter().map(|l| (0.0, l.1)));
        // Not more than chance leaves, and of those the ones that matter.
        let mut late = left.small;
        late.sort_by(|a, b| b.total_cmp(a));
        late.truncate(LEFT.max(hand.small.len() / 50));
        hand.small.extend(late);
        hand.large.sort_by(|a, b| b.0.total_cmp(&a.0));
        stream.shuffle(&mut hand.small);
        hand
    }

    /// A small file that was not planned.
    pub(super) fn any(&self, stream: &mut Stream) -> f64 {
        self.border * stream.uniform()
    }

    /// The exponent of quantiles with which small files have this mean.
    fn bend(&self, mean: f64) -> f64 {
        let of = |bend: f64| {
            let (mut before, mut sum) = (0.0, 0.0);
            for (i, part) in self.parts.iter().enumerate() {
                let upto = libm::pow((i + 1) as f64 / PARTS as f64, 1.0 / bend);
                sum += part * (upto - before);
                before = upto;
            }
            sum
        };
        // The mean falls as the exponent rises.
        let (mut low, mut high) = (0.25_f64, 4.0_f64);
        for _ in 0..20 {
            let middle = (low * high).sqrt();
            if of(middle) > mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low * high).sqrt()
    }
}

/// What intervals lack, ready to choose one of them.
struct Need {
    lacks: Vec<f64>,
    open: Vec<bool>,
    /// Sums of what is lacked, as a binary indexed tree (P. Fenwick, Software: Practice and Experience 24, 1994).
    tree: Vec<f64>,
    /// By what they lack; bits of non-negative numbers are in the order of the numbers.
    order: BTreeSet<(u64, usize)>,
}

impl Need {
    fn new(lacks: &[f64], open: impl Fn(usize) -> bool) -> Need {
        let mut need = Need {
            lacks: vec![0.0; lacks.len()],
            open: (0..lacks.len()).map(open).collect(),
            tree: vec![0.0; lacks.len() + 1],
            order: BTreeSet::new(),
        };
        for (i, &lack) in lacks.iter().enumerate() {
            need.order.insert((0, i));
            need.take(i, -lack);
        }
        for i in 0..lacks.len() {
            if !need.open[i] {
                need.order.remove(&(need.weight(i).to_bits(), i));
                need.shift(i, -need.lacks[i].max(0.0));
            }
        }
        need
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
    fn take(&mut self, i: usize, size: f64) {
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
    fn close(&mut self, i: usize) {
        let weight = self.weight(i);
        self.open[i] = false;
        if self.order.remove(&(weight.to_bits(), i)) {
            self.shift(i, -weight);
        }
    }

    /// An interval for a file, in proportion to what it lacks: one that it does not load too much, or the least
    /// of some.
    fn choose(&self, excess: impl Fn(&[f64], usize) -> f64, stream: &mut Stream) -> Option<usize> {
        let &(_, most) = self.order.last()?;
        let mut best = (excess(&self.lacks, most), most);
        let total = self.total();
        for _ in 0..TRIES {
            let i = self.at(stream.uniform() * total);
            if self.open.get(i) != Some(&true) {
                continue;
            }
            let too_much = excess(&self.lacks, i);
            if too_much <= 0.0 {
                return Some(i);
            }
            if too_much < best.0 {
                best = (too_much, i);
            }
        }
        Some(best.1)
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

impl Plan {
    /// Calls with the intervals in which a transfer is under way, and with which part of it, that begins at
    /// `place` of interval `first` and takes so many seconds. What is left at the end is not sent.
    fn spread(&self, first: usize, place: f64, takes: f64, mut each: impl FnMut(usize, f64)) {
        let lasts = |i: usize| self.lasts(i as u64).as_secs_f64();
        let mut at = place * lasts(first);
        let mut left = takes;
        let n = self.sessions.len();
        for interval in first..n {
            let here = lasts(interval) - at;
            at = 0.0;
            if left <= here {
                each(interval, if takes > 0.0 { left / takes } else { 1.0 });
                return;
            }
            each(interval, here / takes);
            left -= here;
        }
    }
}

//! Which files each interval carries: the law's own quantiles, dealt out so that volumes are met.
//!
//! Heavy-tailed sizes that are drawn independently miss the volume of an interval by what its few largest
//! files happen to be. Here a plan of N transfers has N files, one from each N-th part of the law, as the
//! trace had its own. The large ones are given to intervals one by one, largest first, each to an interval
//! that still lacks so much, with a probability in proportion to what it lacks. How long it takes to transfer
//! is told by the rates of the records: it begins so early in its interval that it ends there even on a
//! network half as fast; if it cannot, what goes on into the intervals after it is counted there, and after the
//! last in the next round, if there is one. The others, each less than a five-hundredth of an interval, are stratified within every
//! interval and bent (quantile `u` becomes `u^b`) by as little as meets the rest of its volume. What cannot
//! be met is carried to the next interval.

use swell_base::{Stream, derived};

use super::super::law::Law;
use super::{Plan, Share};
use need::{Need, Wish};

mod need;

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
/// Small files that are left over from one interval to the next, at most, if that is not one in fifty.
const LEFT: usize = 16;

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
    /// Bytes that these files still bring into intervals of the next round; empty if none.
    pub(super) next: Vec<f64>,
    seed: u64,
    /// How often intervals were looked at to give out the large files.
    steps: u64,
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
    /// Files of `law` for the intervals of `plan`, which are to carry `part` of its volume. Files of the round
    /// `before` still bring so many bytes into each of them. All shares of a plan have the same if they have the
    /// same `seed`.
    pub(super) fn new(law: &Law, plan: &Plan, part: f64, seed: u64, before: &[f64]) -> Files {
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
        for (lack, sent) in lacks.iter_mut().zip(before) {
            *lack -= sent;
        }
        let mut lacks = files.give_large(law, plan, lacks, counted, mean);
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

    /// Gives the large files to intervals, and says what those lack then.
    fn give_large(
        &mut self,
        law: &Law,
        plan: &Plan,
        lacks: Vec<f64>,
        all: u64,
        mean: f64,
    ) -> Vec<f64> {
        let mut stream = Stream::new(self.seed, "large files");
        let n = all as f64;
        let count = ((1.0 - self.border) * n + 0.5) as u64;
        let mut need = Need::new(plan, lacks, |i| self.intervals[i].files > 0);
        for rank in 0..count {
            let quantile = 1.0 - (rank as f64 + 1.0 - stream.uniform()) / n;
            let size = law.quantile(quantile);
            let file = Wish {
                size,
                takes: size * plan.pace,
                uniform: stream.uniform(),
            };
            let Some(first) = need.choose(file, &mut stream) else {
                break;
            };
            let place = need.place(file, first);
            let wanted = &mut self.intervals[first];
            wanted.large += 1;
            need.take(first, -mean);
            need.give(file, first, rank, plan.cycle);
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
        self.steps = need.steps();
        let (left, next) = need.finish();
        self.next = next;
        left
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
        if plan.cycle && before > 0.0 {
            self.next.resize(lacks.len(), 0.0);
            self.next[0] += before;
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

#[cfg(test)]
mod tests;

//! Assigns files to intervals so that each interval carries its volume. Files are quantiles of the
//! distribution of sizes.
//!
//! With independent draws of heavy-tailed sizes, the few largest files decide the volume of an interval,
//! so volumes are missed. Here a plan of N transfers has N files, one from each N-th part of the
//! distribution, as the trace had.
//!
//! **Large files** are assigned to intervals one by one, the largest first. Each goes to an interval that
//! still lacks as many bytes, with a probability proportional to what it lacks. The rates of the records
//! say how long a transfer takes. A file begins early enough to end in its interval even on a network half
//! as fast. If it is too long for that, its bytes count in the intervals in which they are sent. After the
//! last interval they count in the next round, if there is one.
//!
//! **Small files** have less than a five-hundredth of the bytes of a median interval and are stratified
//! within every interval. Their distribution is tilted to meet the rest of the volume: it gets a density
//! of `1 + t (2 u - 1)` over its quantiles `u`. If the volumes together are those of the distribution, the
//! tilts of all intervals cancel. So the sizes of the whole plan still follow it. A remainder is carried
//! to the next interval.

use swell_base::{Stream, derived};

use super::super::law::Law;
use super::Plan;
use super::rates::FileRates;
use super::share::Share;
use deficit::{Deficit, LargeFile};
use remaining::{Allotment, Small};

pub(super) use remaining::{File, Remaining};

mod deficit;
mod remaining;

/// A file below this part of a median interval's bytes is not planned individually.
const SMALL: f64 = 0.002;
/// Maximum number of files planned individually.
const MOST: f64 = 65_536.0;
/// Number of parts of the distribution below the large files, used to compute the effect of a tilt.
const PARTS: usize = 512;
/// Maximum relative change of the mean of an interval's small files.
const TILTED: f64 = 0.3;

/// The files of one direction for all intervals of a plan, for one round.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// Quantile of the distribution at which the large files begin.
    border: f64,
    /// The mean sizes in equal parts of the distribution below the border.
    parts: Vec<f64>,
    /// Large files, by interval.
    large: Vec<Large>,
    intervals: Vec<Wanted>,
    /// Bytes that these files still bring into intervals of the next round; empty if none.
    pub(super) next: Vec<f64>,
    seed: u64,
    /// Number of interval updates made to assign the large files.
    steps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Large {
    interval: usize,
    /// Position in the interval, 0..1.
    place: f64,
    file: File,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    /// Number of files, and of the large ones among them.
    files: u64,
    large: u64,
    /// Tilt of the distribution of small files, so that they sum to what the interval still lacks.
    tilt: f64,
}

impl Files {
    /// Plans the files of `law` for the intervals of `plan`, which carry `part` of its volume. `before`
    /// are the bytes that files of the previous round still bring into each interval. All shares of a plan
    /// have the same files if they have the same `seed`.
    pub(super) fn new(
        (law, rates): (&Law, &FileRates),
        plan: &Plan,
        part: f64,
        seed: u64,
        before: &[f64],
    ) -> Files {
        let n = plan.sessions.len();
        let mut files = Files {
            border: 1.0,
            seed,
            ..Files::default()
        };
        let (mut begun, mut counted) = (0.0, 0);
        let mut lacks: Vec<f64> = Vec::with_capacity(n);
        for index in 0..n {
            begun += plan.expected(index as u64);
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
        let mut lacks = files.give_large((law, rates), plan, lacks, counted, mean);
        files.settle(rates, plan, &mut lacks, mean);
        files.keep_the_law();
        files
    }

    /// Chooses the size above which files are large. A single small file must not matter to an interval.
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

    /// Assigns the large files to intervals, and returns what the intervals lack afterwards.
    fn give_large(
        &mut self,
        (law, rates): (&Law, &FileRates),
        plan: &Plan,
        lacks: Vec<f64>,
        all: u64,
        mean: f64,
    ) -> Vec<f64> {
        let mut stream = Stream::new(self.seed, "large files");
        let mut ranks = Stream::new(self.seed, "rates of large files");
        let n = all as f64;
        let count = ((1.0 - self.border) * n + 0.5) as u64;
        let mut deficit = Deficit::new(&plan.rounds, lacks, |i| self.intervals[i].files > 0);
        for rank in 0..count {
            let quantile = 1.0 - (rank as f64 + 1.0 - stream.uniform()) / n;
            let size = law.quantile(quantile);
            let chosen = ranks.uniform();
            let file = LargeFile {
                size,
                takes: plan.takes(size, rates.limit(size, chosen)),
                uniform: stream.uniform(),
            };
            let Some(first) = deficit.choose(file, &mut stream) else {
                break;
            };
            let place = deficit.place(file, first);
            let wanted = &mut self.intervals[first];
            wanted.large += 1;
            deficit.take(first, -mean);
            deficit.give(file, first, rank);
            if wanted.large >= wanted.files {
                deficit.close(first);
            }
            self.large.push(Large {
                interval: first,
                place,
                file: File {
                    quantile,
                    rank: Some(chosen),
                },
            });
        }
        // The sort is stable, so that the order is the same everywhere.
        self.large.sort_by_key(|l| l.interval);
        self.steps = deficit.steps();
        let (left, next) = deficit.finish();
        self.next = next;
        left
    }

    /// Sets the tilts from what the small files of each interval must carry.
    fn settle(&mut self, rates: &FileRates, plan: &Plan, lacks: &mut [f64], mean: f64) {
        let small = |w: &Wanted| (w.files - w.large) as f64;
        // An interval in which no file begins cannot send anything, so the previous one must send its
        // bytes.
        for i in (1..lacks.len()).rev() {
            if small(&self.intervals[i]) == 0.0 {
                lacks[i - 1] += std::mem::take(&mut lacks[i]);
            }
        }
        // At the end of an interval the files in progress are half sent on average; these bytes come late.
        let each = self.parts.iter().sum::<f64>();
        let takes = |size: f64| rates.mean(size, |limit| plan.takes(size, limit));
        let late = self.parts.iter().map(|&s| s * takes(s)).sum::<f64>();
        let late = if each > 0.0 { late / each / 2.0 } else { 0.0 };
        // Relative change of the mean by a tilt of one.
        let ranks = (0..PARTS).map(|i| 2.0 * (i as f64 + 0.5) / PARTS as f64 - 1.0);
        let slope = self
            .parts
            .iter()
            .zip(ranks)
            .map(|(s, r)| s * r)
            .sum::<f64>();
        let slope = if each > 0.0 { slope / each } else { 0.0 };
        let most = slope.clamp(0.0, TILTED);
        let (mut carried, mut before) = (0.0, 0.0);
        for (i, wanted) in self.intervals.iter_mut().enumerate() {
            let expected = small(wanted) * mean;
            if expected <= 0.0 {
                carried += lacks[i];
                before = 0.0;
                continue;
            }
            let lasts = plan.rounds.lasts(i as u64).as_secs_f64();
            let share = (late / lasts).min(0.4);
            let wanted_bytes = (expected + lacks[i] + carried - before) / (1.0 - share);
            let volume = wanted_bytes.clamp(expected * (1.0 - most), expected * (1.0 + most));
            if slope > 0.0 {
                wanted.tilt = (volume / expected - 1.0) / slope;
            }
            // Limited to one interval: a larger remainder would not be a rounding error, and would distort
            // the next interval.
            carried = ((wanted_bytes - volume) * (1.0 - share)).clamp(-expected, expected);
            before = volume * share;
        }
        if plan.rounds.cycle && before > 0.0 {
            self.next.resize(lacks.len(), 0.0);
            self.next[0] += before;
        }
    }

    /// Removes the mean of all tilts, except for what chance alone could produce. Otherwise the sizes of
    /// the whole plan would deviate from the distribution.
    fn keep_the_law(&mut self) {
        let sum = |of: fn(&Wanted) -> f64| self.intervals.iter().map(of).sum::<f64>();
        let small = sum(|w| (w.files - w.large) as f64);
        let files = sum(|w| w.files as f64);
        if small <= 0.0 {
            return;
        }
        // A tilt of t moves the distribution of small files away from the uniform one by at most t / 4, at
        // u = 1/2. The largest distance of n independent draws is 0.87 / sqrt(n) on average (Kolmogorov's
        // law).
        let most = (4.0 * 0.87 / 2.0) * files.sqrt() / small;
        // Clamping at -1 and 1 changes the mean again, so the correction is repeated.
        for _ in 0..8 {
            let common = |w: &Wanted| (w.files - w.large) as f64 * w.tilt;
            let common = self.intervals.iter().map(common).sum::<f64>() / small;
            let excess = common - common.clamp(-most, most);
            for wanted in &mut self.intervals {
                wanted.tilt = (wanted.tilt - excess).clamp(-1.0, 1.0);
            }
        }
    }

    /// The share's files of an interval, plus the large ones `left` from the previous interval.
    pub(super) fn of_interval(
        &self,
        interval: usize,
        sessions: u64,
        share: Share,
        left: Remaining,
    ) -> Remaining {
        let wanted = self.intervals.get(interval).copied().unwrap_or_default();
        let allotment = Allotment::new(derived(self.seed, interval as u64 + 1), sessions, share);
        let begin = self.large.partition_point(|l| l.interval < interval);
        let large = self.large[begin..]
            .iter()
            .take_while(|l| l.interval == interval);
        let mut large: Vec<(f64, File)> = (0..)
            .zip(large)
            .filter(|&(file, _)| allotment.is_mine(file))
            .map(|(_, l)| (l.place, l.file))
            .collect();
        large.sort_by(|a, b| b.0.total_cmp(&a.0));
        let small = Small {
            allotment,
            first: wanted.large,
            count: wanted.files - wanted.large,
            border: self.border,
            tilt: wanted.tilt,
            next: 0,
        };
        Remaining::new(large, small, left)
    }
}

#[cfg(test)]
mod tests;

//! The empirical distribution behind a histogram of complete and of censored values, and drawing from it.
//!
//! Sources: E. Kaplan & P. Meier, JASA 53 (1958), with the tail correction of B. Efron, Proc. 5th Berkeley
//! Symposium (1967): values that exceed the largest complete value end at the largest censored one.
//! Residual lives: D. Cox, *Renewal Theory* (1962), section 5.

use swell_base::{Stream, derived};

use super::histogram::{Bucket, Histogram};

/// Complete values, and censored values that are only lower bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Values observed completely.
    pub complete: Histogram,
    /// Observed parts of values that continued unobserved.
    pub censored: Histogram,
}

impl Sizes {
    /// Adds everything in `other`; exact in any order.
    pub fn merge(&mut self, other: &Sizes) {
        self.complete.merge(&other.complete);
        self.censored.merge(&other.censored);
    }

    /// Number of values, complete or not.
    pub fn count(&self) -> u64 {
        self.complete.count().saturating_add(self.censored.count())
    }

    /// The sum of the observed parts.
    pub fn sum(&self) -> u64 {
        self.complete.sum().saturating_add(self.censored.sum())
    }

    /// The distribution of the values; `None` if there are none.
    pub fn law(&self) -> Option<Law> {
        Law::new(&self.complete, &self.censored)
    }
}

/// A distribution on whole numbers, prepared for drawing.
#[derive(Clone, Debug)]
pub struct Law {
    cells: Vec<Cell>,
    mean: f64,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Mean of the values of the cell.
    mean: f64,
    /// Values lie within this distance of the mean, on both sides.
    spread: f64,
    /// Cumulative probability, including this cell.
    upto: f64,
    /// Cumulative share in the mean, including this cell.
    volume: f64,
}

impl Law {
    /// The distribution of complete values; `None` without values.
    pub(super) fn of(values: &Histogram) -> Option<Law> {
        Law::new(values, &Histogram::default())
    }

    /// The product-limit estimate. Without censored values it is the plain empirical distribution, whose
    /// mean is exactly that of the values. `None` without values.
    pub fn new(complete: &Histogram, censored: &Histogram) -> Option<Law> {
        // Whole numbers, because beyond 2^53 differences of floating-point numbers would leave nobody at risk.
        let count = |h: &Histogram| h.buckets().map(|(_, b)| u128::from(b.count)).sum::<u128>();
        let total = count(complete) + count(censored);
        if total == 0 {
            return None;
        }
        let mut law = Law {
            cells: Vec::new(),
            mean: 0.0,
        };
        let mut cut = censored.buckets().peekable();
        let (mut at_risk, mut survival) = (total, 1.0);
        for (index, bucket) in complete.buckets() {
            // Of equal values the complete ones come first, so only smaller censored ones are removed
            // here.
            while let Some((_, left)) = cut.next_if(|&(i, _)| i < index) {
                at_risk -= u128::from(left.count);
            }
            let weight = survival * (bucket.count as f64 / at_risk as f64);
            law.push(&bucket, weight);
            survival -= weight;
            at_risk -= u128::from(bucket.count);
        }
        // All values still at risk were censored above every complete value.
        if let Some((_, bucket)) = censored.buckets().last()
            && at_risk > 0
        {
            law.push(&bucket, survival);
        }
        law.finish();
        Some(law)
    }

    fn push(&mut self, bucket: &Bucket, weight: f64) {
        let (low, high) = (bucket.least as f64, bucket.most as f64);
        let mean = (bucket.sum as f64 / bucket.count as f64).clamp(low, high);
        let spread = (mean - low).min(high - mean);
        let (upto, volume) = self.cells.last().map_or((0.0, 0.0), |c| (c.upto, c.volume));
        self.cells.push(Cell {
            mean,
            spread,
            upto: upto + weight,
            volume: volume + weight * mean,
        });
    }

    /// Normalizes the probabilities to end at one despite rounding.
    fn finish(&mut self) {
        let (all, volume) = self.cells.last().map_or((1.0, 0.0), |c| (c.upto, c.volume));
        self.mean = volume / all;
        for cell in &mut self.cells {
            cell.upto /= all;
            cell.volume /= if volume > 0.0 { volume } else { 1.0 };
        }
    }

    /// The distribution of a single value.
    pub(super) fn of_one(value: u64) -> Law {
        let mean = value as f64;
        let cell = Cell {
            mean,
            spread: 0.0,
            upto: 1.0,
            volume: 1.0,
        };
        Law {
            cells: vec![cell],
            mean,
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The value below which a share `p` lies.
    pub fn quantile(&self, p: f64) -> f64 {
        self.at(p, |c| c.upto)
    }

    /// The share of values below `value`.
    pub(super) fn share_below(&self, value: f64) -> f64 {
        let i = self.cells.partition_point(|c| c.mean + c.spread < value);
        let before = i.checked_sub(1).map_or(0.0, |j| self.cells[j].upto);
        let Some(cell) = self.cells.get(i) else {
            return 1.0;
        };
        let inside = (value - (cell.mean - cell.spread)) / (2.0 * cell.spread);
        // A cell with a single value has no width.
        let inside = if cell.spread > 0.0 {
            inside.clamp(0.0, 1.0)
        } else {
            0.0
        };
        before + (cell.upto - before) * inside
    }

    /// The contribution to the mean of the values below the quantile `p`: the integral of the quantile
    /// function up to `p`.
    pub(super) fn mean_below(&self, p: f64) -> f64 {
        let i = self.cells.partition_point(|c| c.upto <= p);
        let (upto, volume) = i
            .checked_sub(1)
            .map_or((0.0, 0.0), |j| (self.cells[j].upto, self.cells[j].volume));
        let whole = volume * self.mean;
        match self.cells.get(i) {
            // The mean over the part of the cell is half way between its lower end and the quantile.
            Some(c) => whole + (p - upto) * (c.mean - c.spread + self.quantile(p)) / 2.0,
            None => whole,
        }
    }

    /// Draws one value.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        self.quantile(stream.uniform())
    }

    /// The rest of the current value at a random time of an endless sequence of values. It is the time to
    /// the next event of a renewal process that has always been running. The two uniform numbers in 0..1
    /// choose the current value, and the part of it that is left.
    pub fn residual(&self, chosen: f64, left: f64) -> f64 {
        self.at(chosen, |c| c.volume) * left
    }

    /// The mean of the reciprocals, with each value taken as at least `least`, which is positive.
    pub fn mean_reciprocal(&self, least: f64) -> f64 {
        let mut before = 0.0;
        self.cells
            .iter()
            .map(|c| {
                let weight = c.upto - before;
                before = c.upto;
                weight / c.mean.max(least)
            })
            .sum()
    }

    fn at(&self, p: f64, cumulative: impl Fn(&Cell) -> f64) -> f64 {
        let i = self
            .cells
            .partition_point(|c| cumulative(c) <= p)
            .min(self.cells.len() - 1);
        let cell = &self.cells[i];
        let from = i.checked_sub(1).map_or(0.0, |j| cumulative(&self.cells[j]));
        let width = cumulative(cell) - from;
        let inside = if width > 0.0 {
            ((p - from) / width).clamp(0.0, 1.0)
        } else {
            0.5
        };
        cell.mean + cell.spread * (2.0 * inside - 1.0)
    }
}

/// Stratified draws. They follow a [`Law`] more closely than independent draws: of every `len` consecutive
/// draws, each `len`-th part of the distribution has one, in random order.
#[derive(Clone, Debug)]
pub struct Stratified {
    order: Vec<u32>,
    next: usize,
    /// Number of sequences that share the parts, and the index of this one.
    of: u32,
    index: u32,
    seed: u64,
    /// Length and seed of the passes after this one, if they change.
    later: Option<(usize, u64)>,
}

impl Stratified {
    /// Passes of `len` draws, at least one and at most 2^18.
    pub fn new(len: usize) -> Stratified {
        Stratified::of_several(len, 0, 1, 0)
    }

    /// Sequence number `index` of `of` sequences. Their passes of `len` draws together use each part of
    /// the distribution once. `seed`, the same for all of them, decides which of every `of` neighbouring
    /// parts goes to which sequence.
    pub fn of_several(len: usize, index: u32, of: u32, seed: u64) -> Stratified {
        Stratified {
            order: (0..len.clamp(1, 1 << 18) as u32).collect(),
            next: 0,
            of: of.max(1),
            index,
            seed,
            later: None,
        }
    }

    /// Finishes this pass, then uses passes of `len` draws. A pass must not be abandoned early: if drawing
    /// stops when a sum is reached, the remaining values are biased.
    pub(super) fn then(&mut self, len: usize, seed: u64) {
        self.later = Some((len, seed));
        if self.next == 0 {
            self.renew();
        }
    }

    fn renew(&mut self) {
        if let Some((len, seed)) = self.later.take() {
            *self = Stratified::of_several(len, self.index, self.of, seed);
        }
    }

    /// Draws one value of `law`.
    pub fn draw(&mut self, law: &Law, stream: &mut Stream) -> f64 {
        law.quantile(self.uniform(stream))
    }

    /// A stratified number in 0..1.
    pub fn uniform(&mut self, stream: &mut Stream) -> f64 {
        if self.next == 0 {
            self.renew();
            stream.shuffle(&mut self.order);
        }
        let stratum = u64::from(self.order[self.next]);
        self.next = (self.next + 1) % self.order.len();
        let of = u64::from(self.of);
        let part = stratum * of + (u64::from(self.index) + derived(self.seed, stratum) % of) % of;
        let parts = self.order.len() as f64 * of as f64;
        (part as f64 + stream.uniform()) / parts
    }
}

/// Position of `i` in a pseudo-random permutation of the numbers below `n` that depends on `seed`.
pub(super) fn permuted(i: u64, n: u64, seed: u64) -> u64 {
    let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
    if bits == 0 {
        return 0;
    }
    let mask = u64::MAX >> (u64::BITS - bits);
    let half = bits.div_ceil(2);
    let mut x = i;
    // Each step is invertible, so it permutes the numbers with this many bits; results of `n` or more are
    // skipped.
    loop {
        for round in 0..4 {
            let key = derived(seed, round);
            x = x.wrapping_add(key) & mask;
            x = x.wrapping_mul((key >> 32) | 1) & mask;
            x ^= x >> half;
        }
        if x < n {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut h = Histogram::default();
        values.iter().for_each(|&v| h.add(v));
        h
    }

    #[test]
    fn without_censoring_the_mean_is_that_of_the_values() {
        let values = [100, 1_500, 1_501, 70_001, 12_345_678];
        let law = Law::new(&of(&values), &Histogram::default()).unwrap();
        let mean = values.iter().sum::<u64>() as f64 / 5.0;
        assert!((law.mean() / mean - 1.0).abs() < 1e-12);
        assert!(Law::new(&Histogram::default(), &Histogram::default()).is_none());
    }

    /// More values than floating-point numbers can tell apart.
    #[test]
    fn huge_counts_have_a_law() {
        let mut h = of(&[20, 20, 20, 30]);
        h.add_many(10, 1_000_000_000_000_000_000);
        let law = Law::new(&h, &of(&[40])).unwrap();
        assert!((law.mean() - 10.0).abs() < 1e-9, "{}", law.mean());
        let mut s = Stream::new(1, "huge");
        assert!((0..100).all(|_| law.draw(&mut s) == 10.0));
    }

    #[test]
    fn values_that_occur_again_and_again_are_drawn_exactly() {
        let mut s = Stream::new(1, "one");
        let law = Law::new(&of(&[5_000; 7]), &Histogram::default()).unwrap();
        assert!((0..100).all(|_| law.draw(&mut s) == 5_000.0));
        // The bucket is 4992 to 5055, but no value below the minimum or above the maximum occurs.
        let nearly = Law::new(&of(&[5_000, 5_000, 5_000, 5_004]), &Histogram::default()).unwrap();
        let draws: Vec<f64> = (0..1_000).map(|_| nearly.draw(&mut s)).collect();
        assert!(draws.iter().all(|d| (5_000.0..=5_002.0).contains(d)));
    }

    #[test]
    fn the_product_limit_estimate_is_that_of_a_textbook_example() {
        // Values 1, 3, 4 complete and 2, 5 censored, by hand: S drops to 4/5 at 1, to 4/5 * 2/3 at 3
        // (three at risk), to 4/5 * 2/3 * 1/2 at 4; the rest, 4/15, ends at 5.
        let law = Law::new(&of(&[1, 3, 4]), &of(&[2, 5])).unwrap();
        let expected = (3.0 + 4.0 * 3.0 + 4.0 * 4.0 + 4.0 * 5.0) / 15.0;
        assert!((law.mean() - expected).abs() < 1e-12, "{}", law.mean());
        assert_eq!(
            [0.1, 0.3, 0.6, 0.9].map(|p| law.quantile(p)),
            [1.0, 3.0, 4.0, 5.0]
        );
    }

    #[test]
    fn residual_lives_have_the_mean_of_renewal_theory() {
        let mut h = Histogram::default();
        let mut s = Stream::new(1, "gaps");
        let (mut first, mut second) = (0.0, 0.0);
        for _ in 0..20_000 {
            let v = s.exponential(3e6) as u64;
            h.add(v);
            first += v as f64;
            second += (v as f64).powi(2);
        }
        let law = Law::new(&h, &Histogram::default()).unwrap();
        let n = 200_000;
        let mean = (0..n)
            .map(|_| law.residual(s.uniform(), s.uniform()))
            .sum::<f64>()
            / f64::from(n);
        // E[x^2] / 2 E[x]; the standard error of the sample is 0.22 %, buckets add 0.01 %.
        let expected = second / (2.0 * first);
        assert!((mean / expected - 1.0).abs() < 0.01, "{mean} {expected}");
    }

    #[test]
    fn stratified_draws_meet_the_mean_in_every_pass() {
        let values: Vec<u64> = (1..=4_096).map(|i| i * 1_000).collect();
        let law = Law::new(&of(&values), &Histogram::default()).unwrap();
        let mut s = Stream::new(3, "pass");
        let mut draws = Stratified::new(256);
        for _ in 0..10 {
            let mean = (0..256).map(|_| draws.draw(&law, &mut s)).sum::<f64>() / 256.0;
            // A stratum is 1/256 of the range wide, which bounds the error of a pass.
            assert!((mean / law.mean() - 1.0).abs() < 2.0 / 256.0, "{mean}");
        }
    }

    #[test]
    fn sequences_that_share_a_law_hold_every_part_once() {
        let mut s = Stream::new(4, "sequences");
        let mut held = [0; 300];
        for index in 0..3 {
            let mut draws = Stratified::of_several(100, index, 3, 7);
            for _ in 0..100 {
                held[(draws.uniform(&mut s) * 300.0) as usize] += 1;
            }
        }
        assert_eq!(held, [1; 300]);
    }

    #[test]
    fn an_order_has_every_number_once_and_is_no_order() {
        for n in [1, 2, 3, 7, 64, 100, 4_097, 50_000] {
            let order: Vec<u64> = (0..n).map(|i| permuted(i, n, 9)).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..n), "{n}");
        }
        // Correlations of neighbours have a standard error of 1 / sqrt(n), and means of a tenth one of
        // 0.0013.
        let n = 50_000;
        for seed in 0..20 {
            let order: Vec<f64> = (0..n)
                .map(|i| permuted(i, n, seed) as f64 / n as f64 - 0.5)
                .collect();
            for lag in [1, 2, 3, 10, 256] {
                let sum: f64 = order.windows(lag + 1).map(|w| w[0] * w[lag]).sum();
                let correlation = 12.0 * sum / n as f64;
                assert!(correlation.abs() < 0.03, "{seed} {lag}: {correlation}");
            }
            for tenth in order.chunks(n as usize / 10) {
                let mean = tenth.iter().sum::<f64>() / tenth.len() as f64;
                assert!(mean.abs() < 0.02, "{seed}: {mean}");
            }
        }
    }
}

//! Counts and sums of whole numbers in buckets of equal relative width.
//!
//! Values below 128 have a bucket each. Every octave above has 64, so a bucket's width is at most 1/64 of
//! its values (the log-linear layout of HdrHistogram, G. Tene). Each bucket keeps the count, the sum, the
//! minimum and the maximum of its values. So totals, means and frequently repeated values are exact, and
//! merging is exact in any order.

use std::collections::BTreeMap;

/// Buckets per octave.
const SUB: u64 = 64;
/// Number of the last bucket, that of `u64::MAX`.
pub(super) const LAST_BUCKET: u16 = bucket_of(u64::MAX);

/// The values in a bucket, in the histogram's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The smallest.
    pub least: u64,
    /// The largest.
    pub most: u64,
}

impl Bucket {
    /// A bucket with `count` times the same value.
    pub fn of(value: u64, count: u64) -> Bucket {
        Bucket {
            count,
            sum: value.saturating_mul(count),
            least: value,
            most: value,
        }
    }

    fn merge(&mut self, other: &Bucket) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }
}

/// A mergeable histogram of whole numbers; at most 3,776 buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: BTreeMap<u16, Bucket>,
}

impl Histogram {
    /// Adds one value.
    pub fn add(&mut self, value: u64) {
        self.add_many(value, 1);
    }

    /// Adds the same value `count` times.
    pub fn add_many(&mut self, value: u64, count: u64) {
        if count > 0 {
            self.add_bucket(bucket_of(value), Bucket::of(value, count));
        }
    }

    /// Adds everything in `other`; exact in any order.
    pub fn merge(&mut self, other: &Histogram) {
        for (&index, &bucket) in &other.buckets {
            self.add_bucket(index, bucket);
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.buckets
            .values()
            .fold(0, |n, b| n.saturating_add(b.count))
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.buckets
            .values()
            .fold(0, |n, b| n.saturating_add(b.sum))
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Non-empty buckets with their numbers, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u16, Bucket)> + '_ {
        self.buckets.iter().map(|(&i, &b)| (i, b))
    }

    pub(super) fn add_bucket(&mut self, index: u16, bucket: Bucket) {
        self.buckets
            .entry(index)
            .and_modify(|b| b.merge(&bucket))
            .or_insert(bucket);
    }
}

/// A histogram for millions of additions: an array instead of a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallied {
    /// Indexed by bucket number; a count of zero is an empty bucket.
    buckets: Vec<Bucket>,
}

impl Tallied {
    /// Adds one value.
    pub(super) fn add(&mut self, value: u64) {
        let index = usize::from(bucket_of(value));
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, Bucket::of(0, 0));
        }
        let (bucket, one) = (&mut self.buckets[index], Bucket::of(value, 1));
        match bucket.count {
            0 => *bucket = one,
            _ => bucket.merge(&one),
        }
    }

    /// Converts to a [`Histogram`].
    pub(super) fn histogram(&self) -> Histogram {
        let filled = (0u16..).zip(&self.buckets).filter(|(_, b)| b.count > 0);
        Histogram {
            buckets: filled.map(|(i, b)| (i, *b)).collect(),
        }
    }
}

/// The number of the bucket that holds `value`.
pub(super) const fn bucket_of(value: u64) -> u16 {
    let octave = 63 - (value | 1).leading_zeros() as u64;
    let shift = octave.saturating_sub(6);
    // At most 57 * 64 + 127.
    (shift * SUB + (value >> shift)) as u16
}

/// The smallest and the largest value of a bucket.
pub(super) const fn range_of(index: u16) -> (u64, u64) {
    let index = index as u64;
    if index < 2 * SUB {
        return (index, index);
    }
    let shift = index / SUB - 1;
    let low = (index % SUB + SUB) << shift;
    (low, low + ((1 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_tile_the_whole_numbers() {
        let mut next = 0u128;
        for index in 0..=LAST_BUCKET {
            let (low, high) = range_of(index);
            assert_eq!(u128::from(low), next, "bucket {index}");
            assert_eq!((bucket_of(low), bucket_of(high)), (index, index));
            next = u128::from(high) + 1;
        }
        assert_eq!(next, 1 << 64);
    }

    proptest! {
        #[test]
        fn merging_is_exact_in_any_order(values in prop::collection::vec(0u64..1 << 50, 0..200), cut in 0usize..200) {
            let fill = |part: &[u64]| {
                let mut h = Histogram::default();
                part.iter().for_each(|&v| h.add(v));
                h
            };
            let (a, b) = values.split_at(cut.min(values.len()));
            let (a, b, whole) = (fill(a), fill(b), fill(&values));
            let mut ab = a.clone();
            ab.merge(&b);
            let mut ba = b;
            ba.merge(&a);
            let mut tallied = Tallied::default();
            values.iter().for_each(|&v| tallied.add(v));
            prop_assert_eq!(&tallied.histogram(), &whole);
            prop_assert_eq!(&ab, &whole);
            prop_assert_eq!(&ba, &whole);
            prop_assert_eq!((whole.count(), whole.sum()), (values.len() as u64, values.iter().sum()));
        }
    }
}

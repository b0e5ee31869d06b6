//! The numbers of a finished grid: the original's, and each copy's over its seeds.

use super::cells::{COPIES, NUMBERS};
use crate::Estimate;

/// Numbers of every cell, as [`super::cells::cells`] lists them.
pub struct Results<'a> {
    original: &'a [f64],
    /// Of each of [`COPIES`], its seeds.
    copies: Vec<&'a [Vec<f64>]>,
}

impl<'a> Results<'a> {
    /// `numbers` as the grid gave them for all cells with `seeds` seeds; none if they are not so many.
    pub fn new(numbers: &'a [Vec<f64>], seeds: u64) -> Option<Results<'a>> {
        let (original, copies) = numbers.split_first()?;
        let seeds = usize::try_from(seeds).ok().filter(|&s| s > 0)?;
        let copies: Vec<_> = copies.chunks(seeds).collect();
        (copies.len() == COPIES.len()).then_some(Results { original, copies })
    }

    /// A number of the original; none where there is none.
    pub fn original(&self, number: &str) -> Option<f64> {
        let value = self.original.get(column(number)?).copied()?;
        value.is_finite().then_some(value)
    }

    /// A number of a copy, over its seeds.
    pub fn copy(&self, copy: usize, number: &str) -> Option<Estimate> {
        let column = column(number)?;
        let rows = self.copies.get(copy)?;
        Estimate::of(rows.iter().filter_map(|r| r.get(column).copied()))
    }

    /// A number of a copy over the original's, less one.
    pub fn off(&self, copy: usize, number: &str) -> Option<Estimate> {
        let original = self.original(number).filter(|x| *x > 0.0)?;
        Some(self.copy(copy, number)?.map(|x| x / original - 1.0))
    }

    /// A series of a copy over the original's, less one: every seed's every value, but for intervals that the
    /// original has not whole.
    pub fn each_off(&self, copy: usize, series: &str, whole: usize) -> Vec<f64> {
        let mut all = Vec::new();
        for i in 0..whole {
            let name = format!("{series}_{i}");
            let (Some(original), Some(column)) = (self.original(&name), column(&name)) else {
                continue;
            };
            let rows = self.copies.get(copy).copied().unwrap_or_default();
            all.extend(
                rows.iter()
                    .filter_map(|r| r.get(column))
                    .map(|x| x / original - 1.0),
            );
        }
        all.retain(|x| x.is_finite());
        all
    }
}

fn column(number: &str) -> Option<usize> {
    NUMBERS.iter().position(|n| *n == number)
}

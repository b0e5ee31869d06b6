//! The numbers of a finished grid, found by what was run.

use super::cells::{FillerCell, NUMBERS};

/// Numbers of every cell.
pub struct Results<'a> {
    cells: &'a [FillerCell<'a>],
    numbers: &'a [Vec<f64>],
}

impl<'a> Results<'a> {
    /// `numbers` as the grid gave them for `cells`.
    pub fn new(cells: &'a [FillerCell<'a>], numbers: &'a [Vec<f64>]) -> Results<'a> {
        Results { cells, numbers }
    }

    /// A number of a cell; none if it was not run.
    pub fn get(&self, cell: FillerCell<'_>, number: &str) -> Option<f64> {
        let place = self.cells.iter().position(|c| c.is(&cell))?;
        let column = NUMBERS.iter().position(|n| *n == number)?;
        self.numbers.get(place)?.get(column).copied()
    }

    /// A number with the paper's filler and without.
    pub fn pair(&self, cell: FillerCell<'_>, number: &str) -> Option<(f64, f64)> {
        Some((
            self.get(cell.filler(true), number)?,
            self.get(cell.filler(false), number)?,
        ))
    }

    /// By how much a number is larger with the paper's filler, as a share.
    pub fn rise(&self, cell: FillerCell<'_>, number: &str) -> Option<f64> {
        let (with, without) = self.pair(cell, number)?;
        Some(with / without - 1.0)
    }
}

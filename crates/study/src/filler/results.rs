//! The numbers of a finished grid, found by what was run.

use super::Trace;
use super::cells::{BASE, FillerCell, NUMBERS, Scheduler};
use super::lineup::FILLERS;

/// Numbers of every cell.
pub struct Results<'a> {
    cells: &'a [FillerCell<'a>],
    numbers: &'a [Vec<f64>],
}

/// A question: one cell, by what differs from the paper's base without filler.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    trace: &'a Trace,
    rate: u32,
    latency: u32,
    buffer: Option<u32>,
    scheduler: Scheduler,
    filler: Option<&'static str>,
    reversed: bool,
}

impl<'a> Query<'a> {
    /// The base setting without filler.
    pub fn base(trace: &'a Trace) -> Query<'a> {
        Query {
            trace,
            rate: BASE.0,
            latency: BASE.1,
            buffer: None,
            scheduler: Scheduler::Priority,
            filler: None,
            reversed: false,
        }
    }

    /// On a link of this rate and latency.
    #[must_use]
    pub fn link(self, rate: u32, latency: u32) -> Query<'a> {
        Query {
            rate,
            latency,
            ..self
        }
    }

    /// With the paper's filler, or without.
    #[must_use]
    pub fn filler(self, there: bool) -> Query<'a> {
        self.over(there.then_some("sack"))
    }

    /// With filler over this transport.
    #[must_use]
    pub fn over(self, filler: Option<&'static str>) -> Query<'a> {
        Query { filler, ..self }
    }

    /// With another scheduler.
    #[must_use]
    pub fn scheduler(self, scheduler: Scheduler) -> Query<'a> {
        Query { scheduler, ..self }
    }

    /// With the filler the other way.
    #[must_use]
    pub fn reversed(self) -> Query<'a> {
        Query {
            reversed: true,
            ..self
        }
    }

    /// With a fixed filler buffer, thousands of bytes.
    #[must_use]
    pub fn buffer(self, kilobytes: u32) -> Query<'a> {
        Query {
            buffer: Some(kilobytes),
            ..self
        }
    }
}

impl<'a> Results<'a> {
    /// `numbers` as the grid gave them for `cells`.
    pub fn new(cells: &'a [FillerCell<'a>], numbers: &'a [Vec<f64>]) -> Results<'a> {
        Results { cells, numbers }
    }

    /// A number of a cell; none if it was not run.
    pub fn get(&self, query: Query<'_>, number: &str) -> Option<f64> {
        let place = self.cells.iter().position(|c| {
            c.trace.name == query.trace.name
                && (c.rate, c.latency) == (query.rate, query.latency)
                && c.buffer == query.buffer
                && c.scheduler == query.scheduler
                && c.reversed == query.reversed
                && c.filler.and_then(|i| FILLERS.get(i)).map(|f| f.name) == query.filler
        })?;
        let column = NUMBERS.iter().position(|n| *n == number)?;
        self.numbers.get(place)?.get(column).copied()
    }

    /// A number with the paper's filler and without.
    pub fn pair(&self, query: Query<'_>, number: &str) -> Option<(f64, f64)> {
        Some((
            self.get(query.filler(true), number)?,
            self.get(query.filler(false), number)?,
        ))
    }

    /// By how much a number is larger with the paper's filler, as a share.
    pub fn rise(&self, query: Query<'_>, number: &str) -> Option<f64> {
        let (with, without) = self.pair(query, number)?;
        Some(with / without - 1.0)
    }
}

//! The numbers of finished runs, by what was run.

use super::bench::Bench;
use super::numbers::NUMBERS;
use crate::Estimate;

/// A generator that leaves out more than this share of its packets offers another load than it was to.
const SHORT: f64 = 0.01;

/// Runs and their numbers.
pub struct Results<'a> {
    runs: &'a [(Bench, Vec<f64>)],
}

impl<'a> Results<'a> {
    /// Of these.
    pub fn new(runs: &'a [(Bench, Vec<f64>)]) -> Results<'a> {
        Results { runs }
    }

    /// All of them.
    pub fn runs(&self) -> impl Iterator<Item = Bench> {
        self.runs.iter().map(|r| r.0)
    }

    /// Whether the load was sent as planned. If not, the run is reported but not judged.
    pub fn is_fair(&self, bench: Bench) -> bool {
        self.get(bench, "short").is_some_and(|short| short <= SHORT)
    }

    /// A number; none where there is none.
    pub fn get(&self, bench: Bench, number: &str) -> Option<f64> {
        let numbers = &self.runs.iter().find(|r| r.0 == bench)?.1;
        let column = NUMBERS.iter().position(|n| *n == number)?;
        numbers.get(column).copied().filter(|x| x.is_finite())
    }

    /// A number with its standard deviation over intervals as its ends, as the paper's figures have it.
    pub fn spread(&self, bench: Bench, number: &str) -> Option<Estimate> {
        let value = self.get(bench, number)?;
        let sd = self.get(bench, &format!("{number}_sd"))?;
        Some(Estimate {
            interval: Some([value - sd, value + sd]),
            sd: Some(sd),
            ..Estimate::exact(value)
        })
    }
}

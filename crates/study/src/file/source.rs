//! The input of figures and tables.

use super::compiled::Compiled;
use super::kept::Points;
use super::reference::Numbers;
use super::results::Views;
use super::script::Trouble;

/// The faulty key of a figure or table, and the reason.
pub(super) type Wrong = (&'static str, Trouble);

/// The input of figures and tables.
pub(super) struct Source<'a> {
    pub compiled: &'a Compiled,
    pub numbers: &'a Numbers,
    pub views: &'a Views,
    /// The points of an expression for the tables of a row's first run.
    pub points: &'a dyn Fn(usize, &str) -> Result<Points, Wrong>,
}

/// The indices of the chosen names, in the order of the choice; all indices without a choice.
pub(super) fn chosen<'n>(
    choice: Option<&[String]>,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Vec<usize> {
    match choice {
        None => (0..names.count()).collect(),
        Some(choice) => choice
            .iter()
            .filter_map(|c| names.clone().position(|n| n == c))
            .collect(),
    }
}

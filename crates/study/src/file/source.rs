//! What figures and tables are made of.

use super::compiled::Compiled;
use super::kept::Points;
use super::reference::Numbers;
use super::script::Trouble;

/// Which key of a figure or table is wrong, and why.
pub(super) type Wrong = (&'static str, Trouble);

/// What figures and tables are made of.
pub(super) struct Source<'a> {
    pub compiled: &'a Compiled,
    pub numbers: &'a Numbers,
    /// What an expression gives of the tables of a row's first run.
    pub points: &'a dyn Fn(usize, &str) -> Result<Points, Wrong>,
}

/// The places of names, in the order in which they are chosen; all without a choice.
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

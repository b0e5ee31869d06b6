//! Plays the runs of a study on real hosts.

use std::sync::Arc;

use swell_experiment::file;
use swell_experiment::run::grid::{Grid, GridError, GridOutcome, Options, Progress, Task};

use super::bench::{Bench, Bencher};
use super::cells::{self, FileCell};
use super::compiled::{Compiled, scope};
use super::error::StudyError;
use super::facade::FileStudy;
use super::group::Group;
use super::reference::Numbers;
use super::results::Views;
use super::script::Trouble;
use super::template;

/// A combination with the `late` keys of its line set. They may use the results of other lines.
pub(super) fn late(
    compiled: &Compiled,
    numbers: &Numbers,
    group: &Group,
) -> Result<Group, StudyError> {
    let list = &compiled.file.line[group.line].late;
    let mut engine = compiled.asker();
    Views::of(compiled, numbers).register(group.column, &mut engine);
    let mut known = scope(&compiled.file, (group.column, group.line), &group.axes);
    let mut set = Vec::new();
    for (i, text) in list.iter().enumerate() {
        let filled = template::filled(&engine, text, &mut known);
        set.push(
            filled.map_err(|(Trouble::NotThere(why) | Trouble::Wrong(why))| {
                let place = compiled.place(format!("line[{}].late", group.line));
                place.item(i, &why)
            })?,
        );
    }
    let wrong = |problem| StudyError::Experiment {
        runs: group.name.clone(),
        problem,
    };
    let text = file::override_keys(&group.text, &set).map_err(wrong)?;
    let mut own = group.clone();
    own.bench = Bench::read(&text).map_err(wrong)?;
    own.hash = text.clone();
    own.text = text;
    own.assignments.extend(set);
    Ok(own)
}

/// A run on real hosts.
struct BenchCell<'a> {
    cell: FileCell,
    compiled: &'a Compiled,
    group: Arc<Group>,
    seed: u64,
    bencher: &'a dyn Bencher,
}

impl Task for BenchCell<'_> {
    fn key(&self) -> Vec<String> {
        self.cell.key()
    }

    fn settings(&self) -> String {
        self.cell.settings()
    }

    fn cost(&self) -> f64 {
        self.cell.cost()
    }

    fn run(&self) -> Result<Vec<f64>, String> {
        let none = || "it is not of a bench".to_owned();
        let bench = self.group.bench.as_ref().ok_or_else(none)?;
        let seen = self.bencher.play(bench, self.seed)?;
        cells::seen_measures(self.compiled, &self.group, &seen).map_err(|(_, why)| why)
    }
}

impl FileStudy {
    /// Whether its runs are on real hosts. [`FileStudy::play`] performs such runs.
    pub fn is_of_hosts(&self) -> bool {
        self.groups.iter().any(|g| g.bench.is_some())
    }

    /// As [`FileStudy::run`], on real hosts, one run at a time. Lines with `late` keys run after all others.
    ///
    /// # Errors
    /// As [`FileStudy::run`], and if a run fails.
    pub fn play(
        &self,
        bencher: &dyn Bencher,
        options: &Options,
        progress: &(dyn Fn(Progress) + Sync),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<GridOutcome, GridError> {
        let compiled = &*self.compiled;
        let is_late = |g: &&Arc<Group>| !compiled.file.line[g.line].late.is_empty();
        let (later, first): (Vec<&Arc<Group>>, Vec<_>) = self.groups.iter().partition(is_late);
        // Concurrent runs would disturb each other.
        let alone = Options {
            jobs: 1,
            ..options.clone()
        };
        let seeds = usize::from(self.seeds);
        let run = |groups: &[Arc<Group>], with: &Options| {
            let each = groups
                .iter()
                .flat_map(|group| self.cells_of(group, bencher));
            let cells: Vec<BenchCell<'_>> = each.collect();
            Grid::open(cells::columns(&compiled.file), with)?.run(&cells, progress, stop)
        };
        let first: Vec<Arc<Group>> = first.into_iter().cloned().collect();
        let found = match run(&first, &alone)? {
            GridOutcome::Complete(numbers) => numbers,
            other => return Ok(other),
        };
        let ours = Numbers::ours(compiled, &first, seeds, &found);
        let resolved = later.iter().map(|group| {
            let own = late(compiled, &ours, group).map_err(|e| GridError::Run {
                key: group.name.clone(),
                reason: e.to_string(),
            });
            own.map(Arc::new)
        });
        let resolved: Vec<Arc<Group>> = resolved.collect::<Result<_, _>>()?;
        if resolved.is_empty() {
            return Ok(GridOutcome::Complete(found));
        }
        // The second pass has all lines, so that their plan is whole. The results of the first are in the table.
        let more = Options {
            fresh: false,
            ..alone
        };
        let mut resolved = resolved.into_iter();
        let all = self.groups.iter().filter_map(|group| {
            if is_late(&group) {
                resolved.next()
            } else {
                Some(Arc::clone(group))
            }
        });
        run(&all.collect::<Vec<_>>(), &more)
    }

    /// The runs of a combination, one per seed.
    fn cells_of<'a>(
        &'a self,
        group: &Arc<Group>,
        bencher: &'a dyn Bencher,
    ) -> impl Iterator<Item = BenchCell<'a>> + use<'a> {
        let group = Arc::clone(group);
        (0..u64::from(self.seeds)).map(move |i| {
            let seed = group.seed.wrapping_add(i);
            BenchCell {
                cell: FileCell::new(&self.compiled, &group, seed),
                compiled: &self.compiled,
                group: Arc::clone(&group),
                seed,
                bencher,
            }
        })
    }
}

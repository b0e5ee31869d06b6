//! A study file, read and checked: its runs, and the study of their numbers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use swell_base::{Code, Warning};
use swell_experiment::run::grid::{self, Grid, GridError, GridOutcome, Options, Progress};

use super::bench::Bencher;
use super::cells::{self, FileCell};
use super::compiled::Compiled;
use super::format;
use super::group::Group;
use super::kept::{Field, Kept, Points};
use super::reference::{self, Numbers};
use super::results::Views;
use super::source::{Source, Wrong};
use super::tables::Tables;
use super::units::written;
use super::wanted::{self, Wants};
use super::with::Change;
use super::{claims, compare, draw, late, points};
use crate::{Study, Table};

/// A study file, read and checked.
pub struct FileStudy {
    pub(super) compiled: Arc<Compiled>,
    /// The runs without seeds, in the order columns, lines, axes.
    pub(super) groups: Vec<Arc<Group>>,
    pub(super) seeds: u16,
    pub(super) quick: bool,
    pub(super) reference: Option<Numbers>,
    pub(super) command: String,
    /// Values changed with `--with`.
    pub(super) changes: Vec<Change>,
    /// Points that figures take from runs.
    pub(super) points: Arc<Kept<Points>>,
    /// Warnings of runs.
    pub(super) warnings: Arc<Kept<Warning>>,
    /// The runs that were performed, with their `late` keys, if some have such keys.
    pub(super) performed: OnceLock<Vec<Arc<Group>>>,
    /// The points that figures need.
    pub(super) wants: OnceLock<Vec<Wants>>,
}

impl std::fmt::Debug for FileStudy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {} combinations", self.name(), self.groups.len())
    }
}

/// How a study file is to be run.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Whether this is a quick run (`--quick`).
    pub quick: bool,
    /// Number of seeds instead of the file's.
    pub seeds: Option<u16>,
    /// Captures; each adds a column.
    pub captures: Vec<PathBuf>,
    /// The columns to run; if empty, all.
    pub columns: Vec<String>,
    /// Replacements for values under the study's `with`, each `NAME=VALUE`.
    pub with: Vec<String>,
}

impl FileStudy {
    /// The study's name.
    pub fn name(&self) -> &str {
        &self.compiled.file.name
    }

    /// The values that `--with` may change.
    pub fn options(&self) -> &[format::StudyOption] {
        &self.compiled.file.option
    }

    /// The changed values, each as `NAME=VALUE`.
    pub fn changes(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().map(|c| &*c.assignment)
    }

    /// The runs without seeds.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().map(|g| &**g)
    }

    /// Number of seeds of each run.
    pub fn seeds(&self) -> u16 {
        self.seeds
    }

    pub(super) fn cells(&self) -> Vec<FileCell<'_>> {
        self.cells_of(self.performed.get().unwrap_or(&self.groups))
    }

    fn cells_of<'a>(&self, groups: &[Arc<Group>]) -> Vec<FileCell<'a>> {
        let seeds = 0..u64::from(self.seeds);
        let each = groups.iter().flat_map(|group| {
            seeds
                .clone()
                .map(|i| FileCell::new(&self.compiled, group, group.seed.wrapping_add(i)))
        });
        each.collect()
    }

    /// Whether its runs are on real hosts.
    pub fn is_of_hosts(&self) -> bool {
        self.groups.iter().any(|g| g.bench.is_some())
    }

    /// The measures of one run, in the order of the file.
    ///
    /// # Errors
    /// A sentence that says why the run failed.
    pub fn run_one(&self, group: usize, seed: u64) -> Result<Vec<f64>, String> {
        let Some(group) = self.groups.get(group) else {
            return Err(format!("there is no combination {group}"));
        };
        grid::Task::run(&FileCell::new(&self.compiled, group, seed))
    }

    /// Names of the measures.
    pub fn measures(&self) -> impl Iterator<Item = &str> {
        self.compiled.file.measure.iter().map(|m| &*m.name)
    }

    /// Runs every cell that is not in the table yet; as [`Grid::run`].
    ///
    /// # Errors
    /// As [`Grid::run`], and if runs are on real hosts.
    pub fn run(
        &self,
        options: &Options,
        progress: &(dyn Fn(Progress) + Sync),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<GridOutcome, GridError> {
        self.run_on(None, options, progress, stop)
    }

    /// As [`FileStudy::run`]. Runs on real hosts are performed by `bencher`, one at a time, and those of lines with `late`
    /// keys after all others.
    ///
    /// # Errors
    /// As [`FileStudy::run`].
    pub fn run_on(
        &self,
        bencher: Option<&dyn Bencher>,
        options: &Options,
        progress: &(dyn Fn(Progress) + Sync),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<GridOutcome, GridError> {
        let mut options = options.clone();
        if self.is_of_hosts() {
            // Concurrent runs would disturb each other.
            options.jobs = 1;
        }
        let lines = &self.compiled.file.line;
        let is_late = |g: &Group| !lines[g.line].late.is_empty();
        if !self.groups.iter().any(|g| is_late(g)) {
            return self.perform(&self.groups, bencher, &options, progress, stop);
        }
        let early: Vec<_> = self
            .groups
            .iter()
            .filter(|g| !is_late(g))
            .cloned()
            .collect();
        // Both passes tell of all runs.
        let runs = self.groups.len() * usize::from(self.seeds);
        let seconds = |groups: &[Arc<Group>]| groups.iter().map(|g| g.seconds).sum::<f64>();
        let part = seconds(&early) / seconds(&self.groups).max(f64::MIN_POSITIVE);
        let there = AtomicUsize::new(0);
        let first = |p: Progress| {
            there.store(p.kept, Ordering::Relaxed);
            let share = p.share * part;
            progress(Progress { runs, share, ..p });
        };
        let found = match self.perform(&early, bencher, &options, &first, stop)? {
            GridOutcome::Complete(numbers) => numbers,
            GridOutcome::Interrupted { finished, .. } => {
                return Ok(GridOutcome::Interrupted { finished, runs });
            }
            shard @ GridOutcome::Shard { .. } => return Ok(shard),
        };
        let ours = Numbers::ours(&self.compiled, &early, usize::from(self.seeds), &found);
        let all = self.groups.iter().map(|group| match is_late(group) {
            false => Ok(Arc::clone(group)),
            true => late::resolved(&self.compiled, &ours, group).map(Arc::new),
        });
        let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|e| GridError::Run {
            key: self.name().to_owned(),
            reason: e.to_string(),
        })?;
        // The second pass has all lines, so that their plan is whole. The results of the first are in the table.
        options.fresh = false;
        let performed = early.len() * usize::from(self.seeds) - there.load(Ordering::Relaxed);
        let second = |p: Progress| {
            let kept = p.kept.saturating_sub(performed);
            progress(Progress { kept, ..p });
        };
        let ended = self.perform(&all, bencher, &options, &second, stop);
        let _ = self.performed.set(all);
        ended
    }

    /// Runs the cells of these groups.
    fn perform(
        &self,
        groups: &[Arc<Group>],
        bencher: Option<&dyn Bencher>,
        options: &Options,
        progress: &(dyn Fn(Progress) + Sync),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<GridOutcome, GridError> {
        let columns = cells::columns(&self.compiled.file);
        // Open the table of runs first: if it belongs to another study and is refused, that study's points stay.
        let grid = Grid::open(columns.clone(), options)?;
        let all = self.cells_of(groups).into_iter();
        let mut cells: Vec<FileCell<'_>> =
            all.map(|c| c.on(bencher).warning(&self.warnings)).collect();
        open(&self.warnings, options, &columns.keys)?;
        if self.has_points() {
            open(&self.points, options, &columns.keys)?;
            // `None` means stopped; then no run begins either.
            let wants = self.wants(stop).unwrap_or_default();
            let each = cells.into_iter().enumerate();
            let keeping = each.map(|(i, cell)| {
                let first = i % usize::from(self.seeds) == 0;
                let wants = wants.get(i / usize::from(self.seeds)).filter(|_| first);
                match wants {
                    Some(wants) => cell.keeping(&wants.surely, &self.points),
                    None => cell,
                }
            });
            cells = keeping.collect();
        }
        grid.run(&cells, progress, stop)
    }

    /// Whether this study, or another one, was begun with this table of runs.
    pub fn is_begun(&self, runs: &Path) -> bool {
        grid::is_begun(runs, &cells::columns(&self.compiled.file).keys)
    }

    /// The table of runs, and the files beside it that a study writes.
    pub fn files(runs: &Path) -> Vec<PathBuf> {
        vec![
            runs.to_owned(),
            grid::plan_of(runs),
            Kept::<Points>::beside(runs),
            Kept::<Warning>::beside(runs),
        ]
    }

    pub(super) fn has_points(&self) -> bool {
        let mut figures = self.compiled.file.figure.iter();
        figures.any(|f| !f.points.is_empty())
    }

    /// Whether figures of `points` may have to simulate runs again, which takes a while. That is so for runs whose
    /// points [`FileStudy::run`] did not keep.
    pub fn runs_again(&self) -> bool {
        let wants = self.wants(&|| false).unwrap_or_default();
        wants.iter().any(|w| {
            let mut texts = w.surely.iter().chain(&w.perhaps);
            texts.any(|text| self.points.get(&w.name, text).is_none())
        })
    }

    /// The points that figures need of each combination, computed once. `None` if `stop` answers true before that.
    pub(super) fn wants(&self, stop: &(dyn Fn() -> bool + Sync)) -> Option<&[Wants]> {
        if self.wants.get().is_none() {
            let found = wanted::wanted(&self.compiled, &self.groups, stop)?;
            return Some(self.wants.get_or_init(|| found));
        }
        self.wants.get().map(Vec::as_slice)
    }

    /// The study with the numbers that [`FileStudy::run`] returned.
    pub fn study(&self, numbers: &[Vec<f64>]) -> Study {
        self.made(numbers, &|| false)
    }

    /// As [`FileStudy::study`]; `None` if `stop` answers true while runs are simulated again for figures.
    pub fn study_unless(
        &self,
        numbers: &[Vec<f64>],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<Study> {
        self.wants(stop)?;
        let again = self.runs_again();
        let made = self.made(numbers, stop);
        (!(again && stop())).then_some(made)
    }

    /// Makes the study. If it is stopped, figures are missing.
    fn made(&self, numbers: &[Vec<f64>], stop: &(dyn Fn() -> bool + Sync)) -> Study {
        let file = &self.compiled.file;
        let ours = Numbers::ours(
            &self.compiled,
            &self.groups,
            usize::from(self.seeds),
            numbers,
        );
        let named = file.reference.as_ref();
        let theirs = self.reference.as_ref().zip(named);
        let theirs = theirs.map(|(r, n)| self.comparable(n, r));
        let reference = theirs.as_ref().and_then(|c| c.numbers.as_ref());
        let left_out = theirs.as_ref().and_then(|c| c.left_out.as_deref());
        let mut doubts = self.doubts();
        doubts.extend(self.of_runs());
        doubts.extend(ours.lacking(file));
        let mut ledgers = claims::ledgers(&self.compiled, &ours, reference, &mut doubts);
        let known = RefCell::new(BTreeMap::new());
        let points = |row: usize, text: &str| self.points_of(&known, row, text, stop);
        let source = Source {
            compiled: &self.compiled,
            numbers: &ours,
            views: &Views::of(&self.compiled, &ours),
            points: &points,
        };
        let mut sections = draw::sections(&source, &mut doubts);
        // A figure without points has no picture.
        let pictures: Vec<&String> = sections
            .iter()
            .flat_map(|s| s.pictures.iter().map(|p| &p.name))
            .collect();
        // One seed does not show how much the result varies with the seed.
        let tentative = self.seeds < 2 && !self.compiled.file.fixed;
        let findings = ledgers.iter_mut().flat_map(|l| &mut l.entries);
        for finding in findings.flat_map(|e| &mut e.findings) {
            finding.tentative = (tentative || finding.tentative && !self.compiled.file.fixed)
                && finding.verdict != crate::Verdict::NotTested;
        }
        for entry in ledgers.iter_mut().flat_map(|l| &mut l.entries) {
            for finding in &mut entry.findings {
                finding.pictures.retain(|name| pictures.contains(&name));
            }
        }
        let mut facts = self.facts(numbers.len());
        if let Some((r, named)) = reference.zip(named) {
            let compared = compare::compare(&self.compiled, named, &ours, r);
            sections.push(compare::section(file, named, &compared));
            doubts.extend(compare::doubt(named, &compared));
            facts.push(compare::fact(named, &compared));
        }
        if let Some((why, named)) = left_out.zip(named) {
            let what = match reference {
                Some(_) => "the others".to_owned(),
                None => format!("numbers within their bars of {}’s", named.name),
            };
            facts.push((what, format!("not compared{why}")));
            // Quick runs and changed studies have a doubt of their own.
            if !self.quick && self.changes.is_empty() {
                let text = format!("numbers are not compared{why}");
                doubts.push(swell_base::Warning::note(Code::ReferenceLength, text));
            }
        }
        sections.push(self.every_number(&ours));
        Study {
            name: file.name.clone(),
            title: file.title.clone(),
            paper: file.paper.clone(),
            doubts,
            ledgers,
            sections,
            command: self.command.clone(),
            facts,
            reference: file
                .reference
                .as_ref()
                .map_or_else(String::new, |r| r.name.clone()),
            real_time: self.is_of_hosts(),
        }
    }

    pub(super) fn comparable(
        &self,
        named: &format::Reference,
        theirs: &Numbers,
    ) -> reference::Comparable {
        let changed = !self.changes.is_empty();
        reference::comparable(named, theirs, &self.groups, self.quick, changed)
    }

    /// The points of an expression for the first run of a combination: kept ones, or those of the run simulated again.
    fn points_of(
        &self,
        known: &RefCell<BTreeMap<usize, (Tables, f64)>>,
        row: usize,
        text: &str,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Points, Wrong> {
        let group = self.groups.get(row);
        let group = group.ok_or_else(|| points::wrong("no such run"))?;
        let name = grid::name(&FileCell::new(&self.compiled, group, group.seed));
        if let Some(kept) = self.points.get(&name, text) {
            return Ok(kept);
        }
        let again = self.again(known, row, stop);
        let again = again.map_err(|why| points::wrong(&why))?;
        let found = points::of(&self.compiled, group, again, text)?;
        let done = self.points.keep(&name, text, found.clone());
        done.map_err(|e| points::wrong(&format!("its points cannot be kept: {e}")))?;
        Ok(found)
    }

    /// The tables of the first run of a combination, cached because several figures may need them.
    fn again(
        &self,
        known: &RefCell<BTreeMap<usize, (Tables, f64)>>,
        row: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Tables, f64), String> {
        if let Some(there) = known.borrow().get(&row) {
            return Ok(there.clone());
        }
        let group = self.groups.get(row).ok_or("no such run")?;
        if stop() {
            return Err("interrupted".into());
        }
        let tables = FileCell::new(&self.compiled, group, group.seed).tables(stop)?;
        known.borrow_mut().insert(row, tables.clone());
        Ok(tables)
    }

    /// The warnings of runs: the first of each code, and how many runs have one.
    fn of_runs(&self) -> Vec<Warning> {
        let mut found: BTreeMap<String, (Warning, usize)> = BTreeMap::new();
        let cells = self.cells();
        for cell in &cells {
            let mut seen = BTreeSet::new();
            for doubt in self.warnings.all(&grid::name(cell)) {
                if seen.insert(doubt.code.to_string()) {
                    let new = || (doubt.clone(), 0);
                    found.entry(doubt.code.to_string()).or_insert_with(new).1 += 1;
                }
            }
        }
        let each = found.into_values().map(|(doubt, n)| Warning {
            message: format!("{} ({n} of {} runs)", doubt.message, cells.len()),
            ..doubt
        });
        each.collect()
    }

    /// Doubts that are known before any run.
    pub(super) fn doubts(&self) -> Vec<swell_base::Warning> {
        let file = &self.compiled.file;
        let mut doubts = Vec::new();
        if self.quick {
            let what = file.quick.what.as_deref();
            let mut what = what.unwrap_or("fewer or shorter runs").to_owned();
            let others = self.changes.iter().filter(|c| c.instead_of(&file.quick));
            for change in others {
                what += &format!(", but {}", change.asked());
            }
            doubts.push(swell_base::Warning::warning(
                Code::QuickStudy,
                format!("a first look: {what}; verdicts may differ from the full study's"),
            ));
        }
        if !self.changes.is_empty() {
            let each: Vec<String> = self.changes.iter().map(Change::in_words).collect();
            let text = format!("a study that was changed: {}", each.join("; "));
            doubts.push(swell_base::Warning::warning(Code::ChangedStudy, text));
        }
        doubts.extend(self.compiled.captures.doubts.iter().cloned());
        if self.seeds < 3 && !file.fixed {
            // The study's own number, unless that is too few, too.
            let more = if file.seeds < 3 { 5 } else { file.seeds };
            doubts.push(swell_base::Warning::warning(
                Code::FewSeeds,
                format!(
                    "with fewer than three seeds, intervals are missing or say little: use --seeds {more}"
                ),
            ));
        }
        let own = file.doubt.iter();
        doubts.extend(own.map(|d| swell_base::Warning::note(d.code.clone(), &d.text)));
        doubts
    }

    /// Facts about a study of `runs` runs.
    fn facts(&self, runs: usize) -> Vec<(String, String)> {
        let seconds = self.groups.iter().map(|g| g.seconds);
        let shortest = seconds.clone().fold(f64::INFINITY, f64::min);
        let longest = seconds.fold(0.0, f64::max);
        let length = if shortest < longest {
            format!("{shortest} to {longest}")
        } else {
            longest.to_string()
        };
        let what = match self.is_of_hosts() {
            true => "seconds of each run",
            false => "simulated seconds of each run",
        };
        let mut facts = vec![
            (what.to_owned(), length),
            ("seeds".to_owned(), self.seeds.to_string()),
            ("runs".to_owned(), runs.to_string()),
        ];
        facts.extend(self.changes.iter().map(Change::fact));
        facts.extend(self.compiled.captures.facts.iter().cloned());
        facts
    }

    /// The section with every measure of every combination.
    fn every_number(&self, ours: &Numbers) -> crate::Section {
        let file = &self.compiled.file;
        let names = ["column".to_owned(), "line".to_owned()].into_iter();
        let axes = file.axis.iter().map(|a| a.name.clone());
        let measures = file.measure.iter();
        let rows = ours.rows.iter().map(|row| {
            let place = [row.column.clone(), row.line.clone()].into_iter();
            let values = row.axes.iter().map(f64::to_string);
            let numbers = file.measure.iter().zip(&row.numbers);
            let numbers = numbers.map(|(m, e)| match e {
                Some(e) if e.n < usize::from(self.seeds) => {
                    format!("{} (of {})", written(m.unit, e.value), e.n)
                }
                Some(e) => written(m.unit, e.value),
                None => String::new(),
            });
            place.chain(values).chain(numbers).collect()
        });
        crate::Section {
            title: "Every number".into(),
            what: "Means over seeds; in brackets, how many have the number, if not all.".into(),
            pictures: Vec::new(),
            tables: vec![Table {
                title: String::new(),
                head: names
                    .chain(axes)
                    .chain(measures.map(|m| m.label.clone().unwrap_or_else(|| m.name.clone())))
                    .collect(),
                rows: rows.collect(),
            }],
        }
    }
}

/// Opens what is kept of runs beside their table, and joins the files of shards.
fn open<T: Field>(kept: &Kept<T>, options: &Options, keys: &[String]) -> Result<(), GridError> {
    let all = Kept::<T>::beside(&options.file);
    let path = options.own(&all);
    let opened = kept.open(&path, keys, options.fresh);
    let joined = opened.and_then(|()| match options.shard {
        None => kept.join(&grid::of_shards(&all), options.fresh),
        Some(_) => Ok(()),
    });
    joined.map_err(|error| GridError::Io { path, error })
}

#[cfg(test)]
impl FileStudy {
    /// Keys and settings of the runs.
    pub(crate) fn cells_by_name(&self) -> impl Iterator<Item = (Vec<String>, String)> {
        self.cells()
            .into_iter()
            .map(|c| (grid::Task::key(&c), grid::Task::settings(&c)))
    }
}

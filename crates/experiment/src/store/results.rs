//! A whole run directory, in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::manifest::{temporary, text_hash};
use super::table::{self, Key, Row};
use super::{Manifest, StoreError, at};
use crate::file::{self, File};
use crate::observe::{
    Bin, Cell, Coherence, Delay, Estimate, Flow, LinkTotals, MeasureSample, Observations, PartBin,
    PartTotals, Request, RoundTrip, Scale, Share, Synchrony, Wait, WindowGap,
};

/// A finished run directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Path of the directory.
    pub dir: PathBuf,
    /// Paths of directories with other seeds that were merged into it.
    pub joined: Vec<PathBuf>,
    /// Facts about the runs, and doubts.
    pub manifest: Manifest,
    /// The resolved experiment.
    pub experiment: File,
    /// Its text: `experiment.toml`.
    pub experiment_toml: String,
    /// The runs, in the order of the file: foregrounds, then backgrounds, then replications.
    pub runs: Vec<RunResult>,
}

/// One run and what was observed in it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// Which run.
    pub cell: Cell,
    /// What was observed.
    pub observed: Observations,
}

/// Whether a directory has the manifest of live traffic, which is no experiment.
fn is_live(dir: &Path) -> bool {
    let text = fs::read_to_string(dir.join(Manifest::FILE)).unwrap_or_default();
    let manifest: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    manifest.is_some_and(|m| m["backend"] == "live")
}

impl Results {
    /// Reads a run directory.
    ///
    /// # Errors
    /// If it holds no finished run, or one of its files cannot be read.
    pub fn load(dir: &Path) -> Result<Results, StoreError> {
        let no_run = |reason| StoreError::NoRun {
            path: dir.to_owned(),
            reason,
        };
        if !dir.join(Manifest::FILE).exists() {
            return Err(no_run("no run directory: there is no manifest.json in it"));
        }
        let manifest = Manifest::load(dir).map_err(|error| match is_live(dir) {
            true => no_run(
                "this is a directory of `swell generate`: `swell watch` shows it, and its table is in flows/",
            ),
            false => error,
        })?;
        if !manifest.complete {
            // Emulated runs have settings, and are resumed only on request.
            return Err(no_run(match manifest.settings.is_empty() {
                true => "the run is not finished; `swell run` resumes it",
                false => "the run is not finished; its command resumes it with --resume",
            }));
        }
        let path = dir.join("experiment.toml");
        let experiment_toml = fs::read_to_string(&path).map_err(at(&path))?;
        let own = text_hash(&experiment_toml);
        if manifest.experiment.as_ref().is_some_and(|of| *of != own) {
            return Err(StoreError::Content {
                path,
                reason: "changed since the runs, which were those of another experiment".into(),
            });
        }
        let experiment = file::read(&experiment_toml, &path.display().to_string())?;
        let mut runs = read_runs(dir, &manifest.cells)?;
        let places = places(&manifest.cells);
        for doubt in &manifest.run_warnings {
            let place = places.get(&place_of(&doubt.cell)).copied();
            if let Some(run) = place.and_then(|i| runs.get_mut(i))
                && run.cell == doubt.cell
            {
                run.observed.warnings.push(doubt.warning.clone());
            }
        }
        Ok(Results {
            dir: dir.to_owned(),
            joined: Vec::new(),
            manifest,
            experiment,
            experiment_toml,
            runs,
        })
    }

    /// The runs of a foreground beside a background, by replication.
    pub fn of<'r>(
        &'r self,
        foreground: &'r str,
        background: &'r str,
    ) -> impl Iterator<Item = &'r RunResult> {
        let own =
            |r: &&RunResult| r.cell.foreground == foreground && r.cell.background == background;
        let mut all: Vec<&RunResult> = self.runs.iter().filter(own).collect();
        // Replications are paired by position, so sort them whatever the order in which they ran.
        all.sort_by_key(|r| r.cell.replication);
        all.into_iter()
    }

    /// Names of the foregrounds, in the order of the file.
    pub fn foregrounds(&self) -> Vec<&str> {
        self.experiment
            .foreground
            .iter()
            .map(|f| f.name())
            .collect()
    }

    /// Names of the backgrounds, in the order of the file.
    pub fn backgrounds(&self) -> Vec<&str> {
        self.experiment
            .background
            .iter()
            .map(|b| b.name())
            .collect()
    }
}

/// Writes the tables of one run into `dir`.
pub(crate) fn write_cell(dir: &Path, run: &RunResult) -> Result<(), StoreError> {
    write_tables(dir, std::slice::from_ref(run))
}

/// Reads the tables of one run back.
pub(crate) fn read_cell(dir: &Path, cell: &Cell) -> Result<RunResult, StoreError> {
    let mut runs = read_runs(dir, std::slice::from_ref(cell))?;
    Ok(runs.remove(0))
}

/// Writes all tables of `runs` into `dir`, in the order of the runs.
pub(crate) fn write_tables(dir: &Path, runs: &[RunResult]) -> Result<(), StoreError> {
    fn one<R: Row>(
        dir: &Path,
        runs: &[RunResult],
        rows: fn(&Observations) -> &[R],
    ) -> Result<(), StoreError> {
        let path = dir.join(format!("{}.parquet", R::TABLE));
        let all = runs
            .iter()
            .flat_map(|r| rows(&r.observed).iter().map(move |row| (&r.cell, row)));
        let partial = temporary(&path);
        table::write(&partial, all)?;
        fs::rename(&partial, &path).map_err(at(&path))
    }
    one::<Request>(dir, runs, |o| &o.requests)?;
    one::<Bin>(dir, runs, |o| &o.bins)?;
    one::<Scale>(dir, runs, |o| &o.scales)?;
    one::<Flow>(dir, runs, |o| &o.flows)?;
    one::<LinkTotals>(dir, runs, |o| &o.links)?;
    // Tables of KEPT exist only if they have rows.
    fn kept<R: Row>(
        dir: &Path,
        runs: &[RunResult],
        rows: fn(&Observations) -> &[R],
    ) -> Result<(), StoreError> {
        match runs.iter().any(|r| !rows(&r.observed).is_empty()) {
            true => one::<R>(dir, runs, rows),
            false => Ok(()),
        }
    }
    kept::<Coherence>(dir, runs, |o| &o.coherence)?;
    kept::<Wait>(dir, runs, |o| &o.waits)?;
    kept::<Delay>(dir, runs, |o| &o.delays)?;
    kept::<Synchrony>(dir, runs, |o| &o.synchrony)?;
    kept::<PartTotals>(dir, runs, |o| &o.parts)?;
    kept::<PartBin>(dir, runs, |o| &o.part_bins)?;
    kept::<MeasureSample>(dir, runs, |o| &o.measures)?;
    kept::<Estimate>(dir, runs, |o| &o.estimates)?;
    kept::<Share>(dir, runs, |o| &o.waterfall)?;
    kept::<RoundTrip>(dir, runs, |o| &o.rtts)?;
    kept::<WindowGap>(dir, runs, |o| &o.gaps)
}

/// Foreground, background and replication of a run.
type RunKey<'c> = (&'c str, &'c str, u32);

fn place_of(cell: &Cell) -> RunKey<'_> {
    (&cell.foreground, &cell.background, cell.replication)
}

/// Indices of runs.
fn places(cells: &[Cell]) -> BTreeMap<RunKey<'_>, usize> {
    let all = cells.iter().enumerate();
    all.map(|(i, cell)| (place_of(cell), i)).collect()
}

/// Reads all tables and assigns their rows to `cells`.
pub(crate) fn read_runs(dir: &Path, cells: &[Cell]) -> Result<Vec<RunResult>, StoreError> {
    let mut runs: Vec<RunResult> = cells
        .iter()
        .map(|cell| RunResult {
            cell: cell.clone(),
            observed: Observations::default(),
        })
        .collect();
    let places = places(cells);

    fn one<R: Row>(
        dir: &Path,
        places: &BTreeMap<(&str, &str, u32), usize>,
        runs: &mut [RunResult],
        rows: fn(&mut Observations) -> &mut Vec<R>,
    ) -> Result<(), StoreError> {
        let path = dir.join(format!("{}.parquet", R::TABLE));
        let mut stranger: Option<Key> = None;
        table::read::<R>(&path, |key, row| {
            let place = (
                key.foreground.as_str(),
                key.background.as_str(),
                key.replication,
            );
            match places.get(&place) {
                Some(&i) => rows(&mut runs[i].observed).push(row),
                None => stranger = Some(key),
            }
        })?;
        match stranger {
            None => Ok(()),
            Some(key) => Err(StoreError::Content {
                path,
                reason: format!(
                    "rows of a run that the manifest does not list: {} against {}, replication {}",
                    key.foreground, key.background, key.replication
                ),
            }),
        }
    }
    one::<Request>(dir, &places, &mut runs, |o| &mut o.requests)?;
    one::<Bin>(dir, &places, &mut runs, |o| &mut o.bins)?;
    one::<Scale>(dir, &places, &mut runs, |o| &mut o.scales)?;
    one::<Flow>(dir, &places, &mut runs, |o| &mut o.flows)?;
    one::<LinkTotals>(dir, &places, &mut runs, |o| &mut o.links)?;
    fn kept<R: Row>(
        dir: &Path,
        places: &BTreeMap<(&str, &str, u32), usize>,
        runs: &mut [RunResult],
        rows: fn(&mut Observations) -> &mut Vec<R>,
    ) -> Result<(), StoreError> {
        match dir.join(format!("{}.parquet", R::TABLE)).exists() {
            true => one::<R>(dir, places, runs, rows),
            false => Ok(()),
        }
    }
    kept::<Coherence>(dir, &places, &mut runs, |o| &mut o.coherence)?;
    kept::<Wait>(dir, &places, &mut runs, |o| &mut o.waits)?;
    kept::<Delay>(dir, &places, &mut runs, |o| &mut o.delays)?;
    kept::<Synchrony>(dir, &places, &mut runs, |o| &mut o.synchrony)?;
    kept::<PartTotals>(dir, &places, &mut runs, |o| &mut o.parts)?;
    kept::<PartBin>(dir, &places, &mut runs, |o| &mut o.part_bins)?;
    kept::<MeasureSample>(dir, &places, &mut runs, |o| &mut o.measures)?;
    kept::<Estimate>(dir, &places, &mut runs, |o| &mut o.estimates)?;
    kept::<Share>(dir, &places, &mut runs, |o| &mut o.waterfall)?;
    kept::<RoundTrip>(dir, &places, &mut runs, |o| &mut o.rtts)?;
    kept::<WindowGap>(dir, &places, &mut runs, |o| &mut o.gaps)?;
    Ok(runs)
}

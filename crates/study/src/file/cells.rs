//! Combinations of columns, lines and axes as runs of an experiment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rhai::Scope;
use swell_experiment::observe::{Bin, Cell, LinkTotals, Observations, Wait};
use swell_experiment::run::{self, Ended, Options};
use swell_experiment::{Backend as _, Plan, Simulator, Traces, file};

use super::format::StudyFile;
use super::points::{self, Kept};
use super::read::{Compiled, scope};
use super::script::{self, Trouble};
use super::tables::{Facts, Tables};
use super::texts::quoted;
use super::{StudyError, template};
use crate::grid::{self, Columns, Task};

/// A combination: all of a run but its seed.
#[derive(Debug)]
pub struct Group {
    pub(super) column: usize,
    pub(super) line: usize,
    pub(super) axes: Vec<f64>,
    /// What `swell run` would be told with `--set`.
    pub assignments: Vec<String>,
    /// The foreground that is run.
    pub foreground: String,
    /// The background that is run.
    pub background: String,
    /// The experiment file.
    pub experiment: PathBuf,
    /// Seed of the first of its runs.
    pub seed: u64,
    /// Which it is, in words.
    pub name: String,
    /// The experiment with everything set.
    text: String,
    hash: String,
    /// Simulated; what a run costs is its packets, but time is all that is known of any experiment.
    pub(super) seconds: f64,
    /// Whether it keeps waits.
    waits: bool,
    /// Whether it keeps how connections lose together.
    synchrony: bool,
}

impl Group {
    pub(super) fn resolve(
        compiled: &Compiled,
        (column, line): (usize, usize),
        axes: Vec<f64>,
        experiment: &str,
        path: &Path,
        quick: bool,
    ) -> Result<Group, StudyError> {
        let study = &compiled.file;
        let named = study.axis.iter().zip(&axes);
        let axes_named: Vec<String> = named.map(|(a, v)| format!("{} = {v}", a.name)).collect();
        let mut parts = vec![study.line[line].name.clone()];
        if study.column.len() > 1 {
            parts.insert(0, study.column[column].name.clone());
        }
        parts.extend(axes_named);
        let name = parts.join(", ");
        let wrong = |problem: String| StudyError::Experiment {
            runs: name.clone(),
            problem,
        };
        let assignments = assignments(compiled, (column, line), &axes, quick)?;
        let mut set = assignments.clone();
        set.push("run.replications=1".into());
        let text = file::override_keys(experiment, &set)
            .map_err(|e| wrong(format!("{}: {e}", path.display())))?;
        let plan = resolve(&text, path, &compiled.traces).map_err(&wrong)?;
        if plan.file.backend != file::BackendKind::Simulated {
            return Err(wrong(
                "a study is simulated; this experiment asks for the emulator".into(),
            ));
        }
        let (own, about) = (&study.line[line], &study.column[column]);
        let front = own.foreground.as_ref().or(about.foreground.as_ref());
        let foreground = one(
            "foreground",
            front.or(study.foreground.as_ref()),
            plan.file.foreground.iter().map(|f| f.name()).collect(),
        );
        let back = own.background.as_ref().or(about.background.as_ref());
        let background = one(
            "background",
            back.or(study.background.as_ref()),
            plan.file.background.iter().map(|b| b.name()).collect(),
        );
        Ok(Group {
            column,
            line,
            axes,
            assignments,
            foreground: foreground.map_err(&wrong)?,
            background: background.map_err(&wrong)?,
            experiment: path.to_owned(),
            seed: plan.file.run.seed,
            hash: plan.hash(Simulator.name()),
            seconds: plan.file.run.duration.as_secs_f64(),
            waits: plan.file.run.keep.waits,
            synchrony: plan.file.run.keep.synchrony,
            name,
            text,
        })
    }

    /// The command that does its run with this seed.
    pub fn command(&self, seed: u64) -> String {
        let mut command = format!("swell run {}", quoted(&self.experiment));
        let more = [format!("run.seed={seed}"), "run.replications=1".into()];
        for set in self.assignments.iter().chain(&more) {
            let quoted = set.replace('\'', "'\\''");
            command += &format!(" --set '{quoted}'");
        }
        command
    }
}

/// What a combination sets: of the study, the first look, the column, the axes, the line.
fn assignments(
    compiled: &Compiled,
    (column, line): (usize, usize),
    axes: &[f64],
    quick: bool,
) -> Result<Vec<String>, StudyError> {
    let study = &compiled.file;
    let mut known = scope(study, (column, line), axes);
    let quick: &[String] = if quick { &study.quick.set } else { &[] };
    let first = [
        ("set".to_owned(), &*study.set),
        ("quick.set".to_owned(), quick),
        (format!("column[{column}].set"), &*study.column[column].set),
    ];
    // Last, so that a line can be what an axis would make otherwise.
    let own = [(format!("line[{line}].set"), &*study.line[line].set)];
    let varied = study.axis.iter().enumerate();
    let varied = varied.map(|(i, a)| (format!("axis[{i}].set"), &*a.set));
    let mut out = Vec::new();
    for (key, list) in first.into_iter().chain(varied).chain(own) {
        for (i, text) in list.iter().enumerate() {
            let filled = template::filled(&compiled.engine, text, &mut known);
            let (Trouble::NotThere(why) | Trouble::Wrong(why)) = match filled {
                Ok(set) => {
                    out.push(set);
                    continue;
                }
                Err(trouble) => trouble,
            };
            let place = compiled.place(key.clone());
            return Err(place.item(i, &why).into());
        }
    }
    Ok(out)
}

/// The one of this name, or the only one.
fn one(what: &str, name: Option<&String>, there: Vec<&str>) -> Result<String, String> {
    match name {
        Some(name) if there.contains(&&**name) => Ok(name.clone()),
        Some(name) => {
            let hint = file::suggest(name, &there, "there are");
            Err(format!("no {what} is called `{name}`; {hint}"))
        }
        None if there.len() == 1 => Ok(there[0].to_owned()),
        None => Err(format!(
            "the experiment has several {what}s ({}); write {what} = one of them",
            there.join(", ")
        )),
    }
}

fn resolve(text: &str, path: &Path, traces: &Traces) -> Result<Plan, String> {
    let base = path.parent().unwrap_or(Path::new(""));
    let name = format!("{} with what is set", path.display());
    Plan::resolve_with(text, &name, base, traces).map_err(|e| e.to_string())
}

/// The columns of the table of runs.
pub(super) fn columns(study: &StudyFile) -> Columns {
    let keys = ["column".to_owned(), "line".to_owned()].into_iter();
    let axes = study.axis.iter().map(|a| a.name.clone());
    Columns {
        keys: keys.chain(axes).chain(["seed".to_owned()]).collect(),
        numbers: study.measure.iter().map(|m| m.name.clone()).collect(),
    }
}

/// A combination with a seed.
pub(super) struct FileCell {
    compiled: Arc<Compiled>,
    group: Arc<Group>,
    seed: u64,
    /// Expressions of figures about this run, and where what they give is kept.
    points: Option<(Vec<String>, Arc<Kept>)>,
}

impl FileCell {
    pub(super) fn new(compiled: &Arc<Compiled>, group: &Arc<Group>, seed: u64) -> FileCell {
        FileCell {
            compiled: Arc::clone(compiled),
            group: Arc::clone(group),
            seed,
            points: None,
        }
    }

    /// Whose first run, of which figures show the course, keeps that too.
    pub(super) fn keeping(mut self, texts: &[String], kept: &Arc<Kept>) -> FileCell {
        self.points = Some((texts.to_vec(), Arc::clone(kept)));
        self
    }

    /// The tables of the run, and its length in seconds; a sentence where it failed or was stopped.
    pub(super) fn tables(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(Tables, f64), String> {
        let (observed, plan) = self.observe(stop)?;
        let facts = facts(&plan);
        Ok((Tables::new(observed, &facts), facts.seconds))
    }

    /// The run itself, by the simulator that `swell run` uses.
    fn observe(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(Observations, Plan), String> {
        let group = &self.group;
        let seed = [format!("run.seed={}", self.seed)];
        let text = file::override_keys(&group.text, &seed)?;
        let mut plan = resolve(&text, &group.experiment, &self.compiled.traces)?;
        plan.cells
            .retain(|c| c.foreground == group.foreground && c.background == group.background);
        let none = || "no such run in the plan".to_owned();
        let cell: Cell = plan.cells.first().ok_or_else(none)?.clone();
        let background = plan
            .file
            .background
            .iter()
            .find(|b| b.name() == group.background);
        let measured = background.is_some_and(|b| b.matches().is_some() || b.is_scaled());
        if !measured {
            let spec = plan.spec(&cell, &Default::default()).ok_or_else(none)?;
            let observed = Simulator.run(&spec, &|_| {}, stop);
            return Ok((observed.map_err(|e| e.to_string())?, plan));
        }
        // A background with a rate to reach is measured alone first, as by `swell run`.
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let options = Options {
            dir: dir.path().to_owned(),
            threads: 1,
            fresh: true,
        };
        match run::run(&plan, &Simulator, &options, &|_| {}, stop) {
            Ok(Ended::Complete(mut results)) if !results.runs.is_empty() => {
                Ok((results.runs.remove(0).observed, plan))
            }
            Ok(_) => Err("it was not finished".into()),
            Err(failure) => Err(failure.to_string()),
        }
    }
}

impl Task for FileCell {
    fn key(&self) -> Vec<String> {
        let (study, group) = (&self.compiled.file, &self.group);
        let names = [
            &study.column[group.column].name,
            &study.line[group.line].name,
        ];
        let axes = group.axes.iter().map(f64::to_string);
        let seed = [self.seed.to_string()];
        names.into_iter().cloned().chain(axes).chain(seed).collect()
    }

    fn settings(&self) -> String {
        let study = &self.compiled.file;
        let measures = study
            .measure
            .iter()
            .map(|m| format!("{}={}", m.name, m.value));
        let measures: Vec<String> = measures.collect();
        let group = &self.group;
        // What measures know beyond the run.
        let known = scope(study, (group.column, group.line), &group.axes);
        let known: Vec<String> = known.iter().map(|(k, _, v)| format!("{k}={v}")).collect();
        let mut settings = format!(
            "{} {} {} {} {}",
            group.hash,
            group.foreground,
            group.background,
            measures.join(";"),
            known.join(";")
        );
        // Rows of lines that have every measure stay what they were.
        if let Some(only) = &study.line[group.line].measures {
            settings += &format!(" {}", only.join(";"));
        }
        settings
    }

    fn cost(&self) -> f64 {
        self.group.seconds
    }

    fn run(&self) -> Result<Vec<f64>, String> {
        let (tables, seconds) = self.tables(&|| false)?;
        let (compiled, group) = (&self.compiled, &self.group);
        if let Some((texts, kept)) = &self.points {
            for text in texts {
                // A figure that cannot be drawn says so when it is.
                if let Ok(found) = points::of(compiled, group, (tables.clone(), seconds), text) {
                    let done = kept.keep(&grid::name(self), text, found);
                    done.map_err(|e| format!("points of figures: {e}"))?;
                }
            }
        }
        measures(compiled, group, tables, seconds).map_err(|(_, why)| why)
    }
}

fn facts(plan: &Plan) -> Facts {
    let run = &plan.file.run;
    Facts {
        warmup: run.warmup.as_secs_f64(),
        seconds: run.duration.as_secs_f64(),
        width: run.bins.as_secs_f64(),
        delays: plan.links().map(|l| l.delay.as_secs_f64()),
        waits: run.keep.waits,
        synchrony: run.keep.synchrony,
    }
}

/// What expressions know of the tables of a combination's run.
pub(super) fn scope_of(
    compiled: &Compiled,
    group: &Group,
    tables: Tables,
    seconds: f64,
) -> Scope<'static> {
    let mut known = scope(&compiled.file, (group.column, group.line), &group.axes);
    known.push("up", tables.up).push("down", tables.down);
    known
        .push("requests", tables.requests)
        .push("flows", tables.flows);
    known.push("seconds", seconds);
    known
}

/// The numbers of a run; else which measure is wrong, and why.
fn measures(
    compiled: &Compiled,
    group: &Group,
    tables: Tables,
    seconds: f64,
) -> Result<Vec<f64>, (usize, String)> {
    let study = &compiled.file;
    let mut known = scope_of(compiled, group, tables, seconds);
    let mut out = Vec::new();
    for (i, (measure, ast)) in study.measure.iter().zip(&compiled.measures).enumerate() {
        let fail = |why: &str| (i, format!("measure `{}`: {why}", measure.name));
        let found = script::value(&compiled.engine, ast, &mut known, &measure.value);
        let found = found.map_err(|t| match t {
            Trouble::NotThere(why) | Trouble::Wrong(why) => fail(&why),
        })?;
        let x = match script::number(&found) {
            Some(x) => x,
            None if found.is_unit() => f64::NAN,
            None => match found.as_bool() {
                Ok(b) => f64::from(u8::from(b)),
                Err(kind) => return Err(fail(&format!("a {kind} is no number"))),
            },
        };
        // What follows from a number that means nothing does not either.
        let means = study.line[group.line].has(&measure.name);
        let x = if means { x } else { f64::NAN };
        known.push(measure.name.clone(), x);
        out.push(x);
    }
    Ok(out)
}

/// The tables of a run in which little happens, and its length in seconds.
pub(super) fn made_up(group: &Group) -> (Tables, f64) {
    let mut observed = Observations::default();
    for direction in 0..2 {
        observed.links.push(LinkTotals {
            direction,
            rate: 1e6,
            ..LinkTotals::default()
        });
        let wait = |who: &str| Wait {
            direction,
            traffic: who.into(),
            from: 1e-3,
            to: 2e-3,
            packets: 4,
            bytes: 4000,
            squares: 4e6,
            waited: 6e-3,
        };
        observed
            .waits
            .extend(["foreground", "background"].map(wait));
        observed.bins.extend((0..4).map(|i| Bin {
            time: f64::from(i),
            direction,
            arrived_packets: [1, 1],
            ..Bin::default()
        }));
    }
    let facts = Facts {
        warmup: 0.0,
        seconds: 4.0,
        width: 1.0,
        delays: [0.01; 2],
        waits: group.waits,
        synchrony: group.synchrony,
    };
    let tables = Tables::new(observed, &facts);
    (tables, facts.seconds)
}

/// Asks the measures of such a run.
pub(super) fn rehearse(compiled: &Compiled, group: &Group) -> Result<(), StudyError> {
    let (tables, seconds) = made_up(group);
    let asked = measures(compiled, group, tables, seconds);
    asked.map(|_| ()).map_err(|(i, why)| {
        let place = compiled.place(format!("measure[{i}]"));
        place.problem("value", &why).into()
    })
}

/// What a scope holds, for claims and figures: by name.
pub(super) fn entries(scope: Scope<'static>) -> rhai::Map {
    let each = scope.into_iter();
    each.map(|(name, value, _)| (name.as_str().into(), value))
        .collect()
}

#[cfg(test)]
impl super::FileStudy {
    /// Keys and settings of the runs.
    pub(crate) fn cells_by_name(&self) -> impl Iterator<Item = (Vec<String>, String)> {
        self.cells().into_iter().map(|c| (c.key(), c.settings()))
    }
}

#[cfg(test)]
impl FileCell {
    /// The value of the first axis.
    pub(super) fn group_load(&self) -> f64 {
        self.group.axes[0]
    }
}

//! Combinations of columns, lines and axes, resolved as experiments.

use std::path::{Path, PathBuf};

use rhai::Scope;
use swell_experiment::{Backend as _, Plan, Simulator, Traces, file};

use super::bench::Bench;
use super::compiled::{Compiled, scope};
use super::error::StudyError;
use super::script::Trouble;
use super::tables::Tables;
use super::template;
use super::texts::quoted;

/// A combination: a run without its seed.
#[derive(Clone, Debug)]
pub struct Group {
    pub(super) column: usize,
    pub(super) line: usize,
    pub(super) axes: Vec<f64>,
    /// The values of `swell run --set`.
    pub assignments: Vec<String>,
    /// The foreground that is run.
    pub foreground: String,
    /// The background that is run.
    pub background: String,
    /// The experiment file.
    pub experiment: PathBuf,
    /// Seed of the first of its runs.
    pub seed: u64,
    /// The combination in words.
    pub name: String,
    /// The experiment with everything set.
    pub(super) text: String,
    /// The bench, if the run is on real hosts instead of simulated.
    pub(super) bench: Option<Bench>,
    pub(super) hash: String,
    /// Simulated seconds. The cost of a run depends on its packets, but only the time is known for every experiment.
    pub(super) seconds: f64,
    /// Whether the run keeps waiting times.
    pub(super) waits: bool,
    /// Whether the run keeps loss synchrony.
    pub(super) synchrony: bool,
    /// Whether the run keeps round trips of packets.
    pub(super) rtts: bool,
    /// Whether the run keeps gaps between windows.
    pub(super) gaps: bool,
    /// Whether the run keeps flow records.
    pub(super) records: bool,
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
        let here = |e| wrong(format!("{}: {e}", path.display()));
        let bench = file::override_keys(experiment, &assignments).map_err(here)?;
        if let Some(own) = Bench::read(&bench).map_err(here)? {
            return Ok(Group {
                column,
                line,
                axes,
                assignments,
                foreground: String::new(),
                background: String::new(),
                experiment: path.to_owned(),
                seed: 1,
                hash: bench.clone(),
                seconds: own.duration().as_secs_f64(),
                waits: false,
                synchrony: false,
                rtts: false,
                gaps: false,
                records: false,
                name,
                text: bench,
                bench: Some(own),
            });
        }
        let mut set = assignments.clone();
        set.push("run.replications=1".into());
        let text = file::override_keys(experiment, &set).map_err(here)?;
        let base = path.parent().unwrap_or(Path::new(""));
        let plan = Plan::outline(&text, &called(path), base, &compiled.traces);
        let plan = plan.map_err(|e| wrong(e.to_string()))?;
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
            rtts: plan.file.run.keep.rtts,
            gaps: plan.file.run.keep.gaps,
            records: plan.file.run.keep.records.is_some(),
            name,
            text,
            bench: None,
        })
    }

    /// The command that performs its run with this seed. A run on real hosts has none: then a comment with what it sets.
    pub fn command(&self, seed: u64) -> String {
        if self.bench.is_some() {
            return format!("# on real hosts: {}", self.assignments.join(", "));
        }
        let mut command = format!("swell run {}", quoted(&self.experiment));
        let more = [format!("run.seed={seed}"), "run.replications=1".into()];
        for set in self.assignments.iter().chain(&more) {
            let quoted = set.replace('\'', "'\\''");
            command += &format!(" --set '{quoted}'");
        }
        command
    }
}

/// The keys that a combination sets: those of the study, the quick run, the column, the axes and the line.
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
    // The line comes last, so that it can override what an axis sets.
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

/// The item with this name, or the only item.
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

/// Resolves an experiment with one foreground and one background.
pub(super) fn resolve_one(
    text: &str,
    path: &Path,
    traces: &Traces,
    parts: [&str; 2],
) -> Result<Plan, String> {
    let base = path.parent().unwrap_or(Path::new(""));
    Plan::resolve_one(text, &called(path), base, traces, parts).map_err(|e| e.to_string())
}

/// The name in messages of an experiment with keys set.
fn called(path: &Path) -> String {
    format!("{} with what is set", path.display())
}

/// The variables of a combination, with the tables of its run.
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
        .push("flows", tables.flows)
        .push("measures", tables.measures);
    known.push("records", tables.records);
    known.push("seconds", seconds);
    known
}

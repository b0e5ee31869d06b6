//! The runs of a study: combinations with a seed.

use std::sync::Arc;

use rhai::Scope;
use swell_base::{Code, Direction, Severity, Warning};
use swell_experiment::file::Bottleneck;
use swell_experiment::observe::{Bin, Cell, LinkTotals, Observations, Wait};
use swell_experiment::run::grid::{self, Columns, Task};
use swell_experiment::run::{self, Options, RunOutcome};
use swell_experiment::{Backend as _, Plan, Simulator, file};

use super::bench::Bencher;
use super::compiled::{Compiled, Measurement, scope};
use super::error::StudyError;
use super::format::StudyFile;
use super::group::{Group, resolve_one, scope_of};
use super::kept::{Field as _, Kept, Points};
use super::points;
use super::script::{self, Trouble};
use super::tables::{Facts, Tables};

/// The column names of the table of runs.
pub(super) fn columns(study: &StudyFile) -> Columns {
    let keys = ["column".to_owned(), "line".to_owned()].into_iter();
    let axes = study.axis.iter().map(|a| a.name.clone());
    Columns {
        keys: keys.chain(axes).chain(["seed".to_owned()]).collect(),
        numbers: study.measure.iter().map(|m| m.name.clone()).collect(),
    }
}

/// A combination with a seed.
pub(super) struct FileCell<'a> {
    compiled: Arc<Compiled>,
    group: Arc<Group>,
    seed: u64,
    /// Performs the run if it is on real hosts.
    bencher: Option<&'a dyn Bencher>,
    /// Expressions of figures to evaluate for this run, and the store of their points.
    points: Option<(Vec<String>, Arc<Kept<Points>>)>,
    /// Where the warnings of the run are kept.
    warnings: Option<Arc<Kept<Warning>>>,
}

impl<'a> FileCell<'a> {
    pub(super) fn new(compiled: &Arc<Compiled>, group: &Arc<Group>, seed: u64) -> FileCell<'a> {
        FileCell {
            compiled: Arc::clone(compiled),
            group: Arc::clone(group),
            seed,
            bencher: None,
            points: None,
            warnings: None,
        }
    }

    /// A cell whose run on real hosts is performed by `bencher`.
    pub(super) fn on(mut self, bencher: Option<&'a dyn Bencher>) -> FileCell<'a> {
        self.bencher = bencher;
        self
    }

    /// A cell that also keeps the warnings of its run.
    pub(super) fn warning(mut self, kept: &Arc<Kept<Warning>>) -> FileCell<'a> {
        self.warnings = Some(Arc::clone(kept));
        self
    }

    /// A cell that also keeps the points of these expressions.
    pub(super) fn keeping(mut self, texts: &[String], kept: &Arc<Kept<Points>>) -> FileCell<'a> {
        self.points = Some((texts.to_vec(), Arc::clone(kept)));
        self
    }

    /// The tables of the run and its length in seconds; a sentence if it failed or was stopped.
    pub(super) fn tables(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(Tables, f64), String> {
        let (mut observed, facts) = self.observe(stop)?;
        if let Some(kept) = &self.warnings {
            observed
                .warnings
                .retain(|w| w.severity == Severity::Warning);
            for doubt in observed.warnings.drain(..) {
                let done = kept.keep(&grid::name(self), &doubt.written(), doubt);
                done.map_err(|e| format!("its warnings: {e}"))?;
            }
        }
        Ok((Tables::new(observed, &facts), facts.seconds))
    }

    /// Performs the run, on real hosts or with the simulator.
    fn observe(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(Observations, Facts), String> {
        if let Some(bench) = &self.group.bench {
            let bencher = self.bencher.ok_or("it is on real hosts")?;
            let facts = Facts {
                warmup: bench.warmup().as_secs_f64(),
                seconds: self.group.seconds,
                ..Facts::default()
            };
            return Ok((bencher.play(bench, self.seed)?, facts));
        }
        let (mut observed, plan) = self.simulate(stop)?;
        let inputs = plan.facts().flat_map(|(_, facts)| facts.warnings.clone());
        observed.warnings.extend(inputs);
        // Measures describe one link: the slowest on the foreground's path towards its clients.
        let link = watched(&plan).map(|b| b.link).unwrap_or_default();
        Ok((observed.of_link(&link), facts(&plan)))
    }

    /// Performs the run with the simulator that `swell run` uses.
    fn simulate(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(Observations, Plan), String> {
        let group = &self.group;
        let seed = [format!("run.seed={}", self.seed)];
        let text = file::override_keys(&group.text, &seed)?;
        let parts = [&*group.foreground, &*group.background];
        let plan = resolve_one(&text, &group.experiment, &self.compiled.traces, parts)?;
        let none = || "no such run in the plan".to_owned();
        let cell: Cell = plan.cells.first().ok_or_else(none)?.clone();
        let all = &plan.file.background;
        let measured = all.iter().any(|b| b.matches().is_some() || b.is_scaled());
        let (rates, told) = match measured.then(|| measuring(&plan)) {
            None => Measurement::default(),
            Some(key) => match self.compiled.measured.get(&key) {
                Some(known) => known,
                // A background with a target rate is measured alone first, as in `swell run`.
                None => {
                    let (mut observed, found) = measured_first(&plan, stop)?;
                    observed.warnings.extend(found.1.iter().cloned());
                    self.compiled.measured.put(key, found);
                    return Ok((observed, plan));
                }
            },
        };
        let spec = plan.spec(&cell, &rates).ok_or_else(none)?;
        let observed = Simulator.run(&spec, &|_| {}, stop);
        let mut observed = observed.map_err(|e| e.to_string())?;
        observed.warnings.extend(told);
        Ok((observed, plan))
    }
}

/// A key of all that the measurement of a plan's backgrounds depends on.
fn measuring(plan: &Plan) -> String {
    let mut file = plan.file.clone();
    // The foreground affects the measurement only through the RTT, which scales queues given in round trips.
    file.foreground.clear();
    let models: Vec<&str> = plan.facts().map(|(_, facts)| &*facts.hash).collect();
    format!("{} {models:?} {}", plan.rtt(), file.to_toml())
}

/// Runs a plan with one run, backgrounds measured first. Returns the observations and the measurements.
fn measured_first(
    plan: &Plan,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(Observations, Measurement), String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let options = Options {
        dir: dir.path().to_owned(),
        threads: 1,
        fresh: true,
        shard: None,
    };
    match run::run(plan, &Simulator, &options, &|_| {}, stop) {
        Ok(RunOutcome::Complete(mut results)) if !results.runs.is_empty() => {
            // Those of the measurement, for example of a load that was missed. Those of inputs are known from the plan,
            // and what the plan of a single run lacks, the study may have.
            let of_inputs: Vec<&Code> = (plan.facts())
                .flat_map(|(_, facts)| facts.warnings.iter().map(|w| &w.code))
                .collect();
            let mut told = results.manifest.warnings;
            told.retain(|w| w.code != Code::NoReference && !of_inputs.contains(&&w.code));
            Ok((
                results.runs.remove(0).observed,
                (results.manifest.measured, told),
            ))
        }
        Ok(_) => Err("it was not finished".into()),
        Err(failure) => Err(failure.to_string()),
    }
}

impl Task for FileCell<'_> {
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
        // The values that measures know besides the run's tables.
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
        // Lines with all measures keep their settings, so their rows in existing tables stay valid.
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
                // Errors are ignored here: they are reported when the figure is drawn.
                if let Ok(found) = points::of(compiled, group, (tables.clone(), seconds), text) {
                    let done = kept.keep(&grid::name(self), text, found);
                    done.map_err(|e| format!("points of figures: {e}"))?;
                }
            }
        }
        let known = scope_of(compiled, group, tables, seconds);
        measures(compiled, group, known).map_err(|(_, why)| why)
    }
}

/// The link that measures describe.
fn watched(plan: &Plan) -> Option<Bottleneck> {
    let file = &plan.file;
    let [_, down] = file.narrowest(file.foreground.first()?)?;
    Some(down)
}

fn facts(plan: &Plan) -> Facts {
    let run = &plan.file.run;
    let links = plan.links();
    let link = links.get(watched(plan).map_or(0, |b| b.queue.link));
    Facts {
        warmup: run.warmup.as_secs_f64(),
        seconds: run.duration.as_secs_f64(),
        width: run.bins.as_secs_f64(),
        delays: Direction::BOTH.map(|d| link.map_or(0.0, |l| l.directions[d].delay.as_secs_f64())),
        waits: run.keep.waits,
        synchrony: run.keep.synchrony,
        rtts: run.keep.rtts,
        gaps: run.keep.gaps,
        records: run.keep.records.is_some(),
    }
}

/// The measures of a run with these values in scope, or the index of the measure that failed and the reason.
fn measures(
    compiled: &Compiled,
    group: &Group,
    mut known: Scope<'static>,
) -> Result<Vec<f64>, (usize, String)> {
    let study = &compiled.file;
    let mut out = Vec::new();
    for (i, (measure, ast)) in study.measure.iter().zip(&compiled.measures).enumerate() {
        // A measure that this line lacks is NaN, and so are measures computed from it.
        if !study.line[group.line].has(&measure.name) {
            known.push(measure.name.clone(), f64::NAN);
            out.push(f64::NAN);
            continue;
        }
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
                Err(kind) => return Err(fail(&format!("a {kind} is not a number"))),
            },
        };
        known.push(measure.name.clone(), x);
        out.push(x);
    }
    Ok(out)
}

/// Made-up tables of a short run with little traffic, and its length in seconds.
pub(super) fn made_up(group: &Group) -> (Tables, f64) {
    let mut observed = Observations::default();
    for direction in Direction::BOTH {
        observed.links.push(LinkTotals {
            direction,
            rate: 1e6,
            ..LinkTotals::default()
        });
        let wait = |who: &str| Wait {
            link: "".into(),
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
        rtts: group.rtts,
        gaps: group.gaps,
        records: group.records,
    };
    let tables = Tables::new(observed, &facts);
    (tables, facts.seconds)
}

/// Evaluates the measures on made-up tables.
pub(super) fn rehearse(compiled: &Compiled, group: &Group) -> Result<(), StudyError> {
    let (tables, seconds) = made_up(group);
    let asked = measures(compiled, group, scope_of(compiled, group, tables, seconds));
    asked.map(|_| ()).map_err(|(i, why)| {
        let place = compiled.place(format!("measure[{i}]"));
        place.problem("value", &why).into()
    })
}

#[cfg(test)]
impl FileCell<'_> {
    /// The value of the first axis.
    pub(super) fn group_load(&self) -> f64 {
        self.group.axes[0]
    }
}

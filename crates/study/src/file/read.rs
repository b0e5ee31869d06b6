//! Reads source texts into a checked study.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use swell_experiment::Traces;
use swell_experiment::file;

use super::compiled::{Compiled, Measurements};
use super::error::StudyError;
use super::facade::{FileStudy, Overrides};
use super::format::{Claim, ClaimsFile, Column, Line, StudyFile};
use super::group::Group;
use super::origin::{Origin, TableLocation};
use super::reference::{self, Numbers};
use super::results::Views;
use super::script::{self, Trouble};
use super::source::Source;
use super::texts::{Texts, quoted};
use super::{
    axes, captures, cells, claims, compare, draw, each, late, names, points, records, tables,
    traffic, with,
};

/// Maximum number of runs in a study.
const MOST: usize = 200_000;

/// The JSON schema of the study file, and that of a file of claims.
fn schemas() -> &'static [Value; 2] {
    static SCHEMAS: OnceLock<[Value; 2]> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        [
            file::schema_of::<StudyFile>("Groundswell study"),
            file::schema_of::<ClaimsFile>("Claims of a Groundswell study"),
        ]
    })
}

/// Restricts all lines to the named columns; without names, changes nothing. Figures and claims still know all
/// columns.
fn only(study: &mut StudyFile, columns: &[String]) -> Result<(), StudyError> {
    let known: Vec<&str> = study.column.iter().map(|c| &*c.name).collect();
    if let Some(name) = columns.iter().find(|c| !known.contains(&&***c)) {
        return Err(StudyError::Column {
            name: name.clone(),
            hint: file::suggest(name, &known, "columns"),
        });
    }
    if !columns.is_empty() {
        for line in &mut study.line {
            let asked = |c: &&String| line.columns.as_ref().is_none_or(|own| own.contains(c));
            line.columns = Some(columns.iter().filter(asked).cloned().collect());
        }
    }
    Ok(())
}

impl FileStudy {
    /// The JSON schema (draft 2020-12) of study files.
    pub fn schema() -> &'static Value {
        &schemas()[0]
    }

    /// Reads and checks a study file and every file that it names.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn read(path: &Path, overrides: &Overrides) -> Result<FileStudy, StudyError> {
        let (texts, name) = Texts::beside(path);
        FileStudy::of(&texts, &name, overrides)
    }

    /// As [`FileStudy::read`], for the file `main` among the bundled `files` of the study `name`.
    pub(crate) fn carried(
        name: &str,
        files: &'static [(&'static str, &'static str)],
        main: &str,
        overrides: &Overrides,
    ) -> Result<FileStudy, StudyError> {
        FileStudy::of(&Texts::carried(name, files), main, overrides)
    }

    fn of(texts: &Texts, name: &str, overrides: &Overrides) -> Result<FileStudy, StudyError> {
        let origin = Origin::new(texts.path(name).display().to_string(), texts.read(name)?);
        let mut file: StudyFile = file::read_as(origin.text(), origin.name(), &schemas()[0])?;
        with::check(&file).map_err(|(key, why)| origin.problem(&key, &why, None))?;
        with::first_look(&mut file, overrides.quick)
            .map_err(|(key, why)| origin.problem(&format!("quick.with.{key}"), &why, None))?;
        let changes = with::set(&mut file, &overrides.with)?;
        let traces = Arc::new(Traces::default());
        let captures = captures::columns(&mut file, &origin, &overrides.captures, &traces)?;
        // A study without columns, lines or axes gets one of each.
        if file.column.is_empty() {
            file.column.push(Column {
                name: "all".into(),
                label: Some(String::new()),
                ..Column::default()
            });
        }
        if file.line.is_empty() {
            file.line.push(Line {
                name: "all".into(),
                label: Some(file.title.clone()),
                ..Line::default()
            });
        }
        only(&mut file, &overrides.columns)?;
        if overrides.quick {
            let columns = std::mem::take(&mut file.quick.columns);
            only(&mut file, &columns)?;
        }
        each::expand(&mut file);
        names::check(&file, &origin)?;
        let claims = gathered(&mut file, &origin, texts)?;
        let mut engine = script::engine();
        tables::register(&mut engine);
        traffic::register(&mut engine);
        records::register(&mut engine);
        let mut measures = Vec::new();
        for (i, measure) in file.measure.iter().enumerate() {
            let ast = script::compile(&engine, &measure.value);
            measures.push(
                ast.map_err(|t| origin.problem(&format!("measure[{i}].value"), &why(&t), None))?,
            );
        }
        let functions = script::compile(&engine, &file.functions);
        let functions = functions.map_err(|t| origin.problem("functions", &why(&t), None))?;
        let compiled = Arc::new(Compiled {
            file,
            engine,
            measures,
            functions,
            claims,
            origin,
            traces,
            measured: Measurements::default(),
            captures,
        });
        let seeds = overrides.seeds.unwrap_or(if overrides.quick {
            compiled.file.quick.seeds.unwrap_or(1)
        } else {
            compiled.file.seeds
        });
        let groups = groups(&compiled, texts, overrides.quick, seeds)?;
        let theirs = compiled.file.reference.as_ref();
        if theirs.and_then(|r| r.duration) == Some(swell_base::Dur::ZERO) {
            let why = "runs of no length have no numbers";
            let problem = compiled.origin.problem("reference.duration", why, None);
            return Err(problem.into());
        }
        let reference = match &compiled.file.reference {
            Some(named) => Some(reference::read(&compiled.file, named, texts)?),
            None => None,
        };
        let mut command = format!("swell study {}", texts.called);
        for path in &overrides.captures {
            command += &format!(" '{}'", path.display().to_string().replace('\'', "'\\''"));
        }
        for column in &overrides.columns {
            command += &format!(" --foreground {}", quoted(column.as_ref()));
        }
        for change in &changes {
            command += &format!(" --with {}", quoted(change.assignment.as_ref()));
        }
        if overrides.quick {
            command += " --quick";
        }
        let study = FileStudy {
            command: format!("{command} --seeds {seeds}"),
            compiled,
            groups,
            seeds: seeds.max(1),
            quick: overrides.quick,
            reference,
            changes,
            points: Arc::default(),
            warnings: Arc::default(),
            performed: OnceLock::new(),
            wants: OnceLock::new(),
        };
        study.rehearse()?;
        Ok(study)
    }

    /// Evaluates every expression once with made-up numbers.
    fn rehearse(&self) -> Result<(), StudyError> {
        let compiled = &self.compiled;
        for group in &self.groups {
            cells::rehearse(compiled, group)?;
        }
        let numbers = Numbers::made_up(compiled, &self.groups);
        for group in &self.groups {
            self.of_hosts(&numbers, group)?;
        }
        claims::rehearse(compiled, &numbers)?;
        let made_up = |row: usize, text: &str| {
            let group = self.groups.get(row);
            let group = group.ok_or_else(|| points::wrong("no such run"))?;
            points::of(compiled, group, cells::made_up(group), text)
        };
        let source = Source {
            compiled,
            numbers: &numbers,
            views: &Views::of(compiled, &numbers),
            points: &made_up,
        };
        draw::rehearse(&source)?;
        if let Some(reference) = &compiled.file.reference {
            compare::rehearse(compiled, reference, &numbers)?;
        }
        Ok(())
    }
}

impl FileStudy {
    /// Checks that keys for runs on real hosts are used for such runs, and only for them.
    fn of_hosts(&self, numbers: &Numbers, group: &Group) -> Result<(), StudyError> {
        let (compiled, line) = (&self.compiled, group.line);
        let problem = |key: &str, why: &str| Err(compiled.origin.problem(key, why, None).into());
        match &group.bench {
            None if !compiled.file.line[line].late.is_empty() => {
                problem(&format!("line[{line}].late"), "only a bench is set late")
            }
            None if self.is_of_hosts() => problem(
                "experiment",
                "some runs are on real hosts and some simulated: write two studies",
            ),
            Some(_) if self.has_points() => {
                problem("figure", "runs on real hosts keep no tables for points")
            }
            Some(_) => late::resolved(compiled, numbers, group).map(|_| ()),
            None => Ok(()),
        }
    }
}

fn why(trouble: &Trouble) -> String {
    match trouble {
        Trouble::NotThere(what) | Trouble::Wrong(what) => what.clone(),
    }
}

/// The claims of the study file, then those of its `claims` file.
fn gathered(
    study: &mut StudyFile,
    origin: &Arc<Origin>,
    texts: &Texts,
) -> Result<Vec<(Claim, TableLocation)>, StudyError> {
    let placed = |claims: Vec<Claim>, from: &Arc<Origin>| -> Vec<(Claim, TableLocation)> {
        let each = claims.into_iter().enumerate();
        each.map(|(i, claim)| (claim, from.place(format!("claim[{i}]"))))
            .collect()
    };
    let mut all = placed(std::mem::take(&mut study.claim), origin);
    if let Some(named) = &study.claims {
        let path = texts.path(named);
        if !texts.has(named) {
            let message = format!("there is no file {}", path.display());
            return Err(origin.problem("claims", &message, None).into());
        }
        let from = Origin::new(path.display().to_string(), texts.read(named)?);
        let claims: ClaimsFile = file::read_as(from.text(), from.name(), &schemas()[1])?;
        all.extend(placed(claims.claim, &from));
    }
    for (i, (claim, place)) in all.iter().enumerate() {
        if all[..i].iter().any(|(c, _)| c.id == claim.id) {
            return Err(place.problem("id", "another claim has this id").into());
        }
        for column in claim.columns.iter().flatten() {
            if !study.column.iter().any(|c| c.name == *column) {
                let why = format!("no column is called `{column}`");
                return Err(place.problem("columns", &why).into());
            }
        }
    }
    Ok(all)
}

/// Resolves every combination once.
fn groups(
    compiled: &Compiled,
    texts: &Texts,
    quick: bool,
    seeds: u16,
) -> Result<Vec<Arc<Group>>, StudyError> {
    let study = &compiled.file;
    let mut known: BTreeMap<String, Arc<str>> = BTreeMap::new();
    let mut out = Vec::new();
    for (c, column) in study.column.iter().enumerate() {
        for (l, line) in study.line.iter().enumerate() {
            if line
                .columns
                .as_ref()
                .is_some_and(|only| !only.contains(&column.name))
            {
                continue;
            }
            let name = line.experiment.as_ref().unwrap_or(&study.experiment);
            let path = texts.path(name);
            let experiment = match known.get(name) {
                Some(text) => Arc::clone(text),
                None => {
                    if !texts.has(name) {
                        let key = match &line.experiment {
                            Some(_) => format!("line[{l}].experiment"),
                            None => "experiment".into(),
                        };
                        let why = format!("there is no file {}", path.display());
                        return Err(compiled.origin.problem(&key, &why, None).into());
                    }
                    let read: Arc<str> = texts.read(name)?.into();
                    known.insert(name.clone(), Arc::clone(&read));
                    read
                }
            };
            let most = MOST / usize::from(seeds.max(1));
            let here = axes::combinations(&study.axis, line, quick, most);
            let Some(here) = here.filter(|h| h.len() <= most.saturating_sub(out.len())) else {
                let why = format!("more than {MOST} runs");
                return Err(compiled
                    .origin
                    .problem(&format!("line[{l}]"), &why, None)
                    .into());
            };
            for axes in here {
                let group = Group::resolve(compiled, (c, l), axes, &experiment, &path, quick)?;
                out.push(Arc::new(group));
            }
        }
    }
    if out.is_empty() {
        return Err(compiled
            .origin
            .problem("line", "no run is left", None)
            .into());
    }
    Ok(out)
}

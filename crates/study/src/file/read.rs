//! From texts to a checked study.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rhai::{AST, Engine, Scope};
use serde_json::Value;
use swell_experiment::Traces;
use swell_experiment::file::{self, Problem, Problems};

use super::again::Source;
use super::axes;
use super::cells::{self, Group};
use super::format::{Claim, ClaimsFile, Column, Line, Scalar, StudyFile};
use super::reference::{self, Numbers};
use super::script::{self, Trouble};
use super::texts::{Texts, quoted};
use super::{
    EXPRESSIONS, FIGURES, FileStudy, MOST, StudyError, Wish, captures, claims, draw, points,
    tables, with,
};
use crate::bundled::{self, Bundled};

/// A study file with its expressions read.
pub(super) struct Compiled {
    pub file: StudyFile,
    /// Of measures: tables are known.
    pub engine: Engine,
    pub measures: Vec<AST>,
    pub claims: Vec<(Claim, Place)>,
    /// What messages call the study file, and its text.
    origin: Arc<Origin>,
    /// Captures that were read.
    pub traces: Arc<Traces>,
    /// What is said of those named on the command line.
    pub captures: captures::About,
}

/// A text that messages can point into.
#[derive(Debug)]
pub(super) struct Origin {
    name: String,
    text: String,
}

/// A table of a text.
#[derive(Clone, Debug)]
pub(super) struct Place {
    origin: Arc<Origin>,
    key: String,
}

impl Place {
    /// What is wrong with one of its keys.
    pub(super) fn problem(&self, key: &str, why: &str) -> Problems {
        let key = format!("{}.{key}", self.key);
        self.origin.problem(&key, why, None)
    }
}

impl Place {
    /// What is wrong with one of its items, where it is a list.
    pub(super) fn item(&self, i: usize, why: &str) -> Problems {
        self.origin
            .problem(&format!("{}[{i}]", self.key), why, None)
    }
}

impl Origin {
    pub(super) fn problem(&self, key: &str, why: &str, hint: Option<String>) -> Problems {
        let problem: Problem = file::problem(&self.text, key, why.to_owned(), hint);
        Problems::of(&self.name, vec![problem])
    }
}

impl Compiled {
    /// A table of the study file.
    pub(super) fn place(&self, key: String) -> Place {
        let origin = Arc::clone(&self.origin);
        Place { origin, key }
    }
}

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

impl FileStudy {
    /// The JSON schema (draft 2020-12) of study files.
    pub fn schema() -> &'static Value {
        &schemas()[0]
    }

    /// Reads and checks a study file and all that it names.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub fn read(path: &Path, wish: &Wish) -> Result<FileStudy, StudyError> {
        let (texts, name) = Texts::beside(path);
        FileStudy::of(&texts, &name, wish)
    }

    /// As [`FileStudy::read`], of a study that the program carries.
    pub(crate) fn carried(bundled: &Bundled, wish: &Wish) -> Result<FileStudy, StudyError> {
        let texts = Texts::carried(bundled.name, bundled.files);
        FileStudy::of(&texts, bundled::STUDY, wish)
    }

    fn of(texts: &Texts, name: &str, wish: &Wish) -> Result<FileStudy, StudyError> {
        let origin = Arc::new(Origin {
            name: texts.path(name).display().to_string(),
            text: texts.read(name)?,
        });
        let mut file: StudyFile = file::read_as(&origin.text, &origin.name, &schemas()[0])?;
        with::check(&file).map_err(|(key, why)| origin.problem(&key, &why, None))?;
        with::first_look(&mut file, wish.quick)
            .map_err(|(key, why)| origin.problem(&format!("quick.with.{key}"), &why, None))?;
        let changes = with::set(&mut file, &wish.with)?;
        let traces = Arc::new(Traces::default());
        let captures = captures::columns(&mut file, &origin, &wish.captures, &traces)?;
        // Without columns, lines or axes there is one of each.
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
        names(&file, &origin)?;
        let claims = gathered(&mut file, &origin, texts)?;
        let mut engine = script::engine();
        tables::register(&mut engine);
        let mut measures = Vec::new();
        for (i, measure) in file.measure.iter().enumerate() {
            let ast = script::compile(&engine, &measure.value);
            measures.push(
                ast.map_err(|t| origin.problem(&format!("measure[{i}].value"), &why(&t), None))?,
            );
        }
        let compiled = Arc::new(Compiled {
            file,
            engine,
            measures,
            claims,
            origin,
            traces,
            captures,
        });
        let seeds = wish.seeds.unwrap_or(if wish.quick {
            compiled.file.quick.seeds.unwrap_or(1)
        } else {
            compiled.file.seeds
        });
        let groups = groups(&compiled, texts, wish.quick, seeds)?;
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
        for path in &wish.captures {
            command += &format!(" '{}'", path.display().to_string().replace('\'', "'\\''"));
        }
        for change in &changes {
            command += &format!(" --with {}", quoted(change.assignment.as_ref()));
        }
        if wish.quick {
            command += " --quick";
        }
        let study = FileStudy {
            command: format!("{command} --seeds {seeds}"),
            compiled,
            groups,
            seeds: seeds.max(1),
            quick: wish.quick,
            reference,
            changes,
            points: Arc::default(),
            wants: OnceLock::new(),
        };
        study.rehearse()?;
        Ok(study)
    }

    /// Asks every expression once with made-up numbers.
    fn rehearse(&self) -> Result<(), StudyError> {
        let compiled = &self.compiled;
        for group in &self.groups {
            cells::rehearse(compiled, group)?;
        }
        let numbers = Numbers::made_up(compiled, &self.groups);
        claims::rehearse(compiled, &numbers)?;
        let made_up = |row: usize, text: &str| {
            let group = self.groups.get(row);
            let group = group.ok_or_else(|| points::wrong("no such run"))?;
            points::of(compiled, group, cells::made_up(group), text)
        };
        let source = Source {
            compiled,
            numbers: &numbers,
            points: &made_up,
        };
        draw::rehearse(&source)?;
        if let Some(reference) = &compiled.file.reference {
            super::compare::rehearse(compiled, reference, &numbers)?;
        }
        Ok(())
    }
}

fn why(trouble: &Trouble) -> String {
    match trouble {
        Trouble::NotThere(what) | Trouble::Wrong(what) => what.clone(),
    }
}

/// The claims of the study file, then those of the file that it names.
fn gathered(
    study: &mut StudyFile,
    origin: &Arc<Origin>,
    texts: &Texts,
) -> Result<Vec<(Claim, Place)>, StudyError> {
    let placed = |claims: Vec<Claim>, from: &Arc<Origin>| -> Vec<(Claim, Place)> {
        let each = claims.into_iter().enumerate();
        each.map(|(i, claim)| {
            let place = Place {
                origin: Arc::clone(from),
                key: format!("claim[{i}]"),
            };
            (claim, place)
        })
        .collect()
    };
    let mut all = placed(std::mem::take(&mut study.claim), origin);
    if let Some(named) = &study.claims {
        let path = texts.path(named);
        if !texts.has(named) {
            let message = format!("there is no file {}", path.display());
            return Err(origin.problem("claims", &message, None).into());
        }
        let from = Arc::new(Origin {
            name: path.display().to_string(),
            text: texts.read(named)?,
        });
        let claims: ClaimsFile = file::read_as(&from.text, &from.name, &schemas()[1])?;
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

/// Names that expressions have already.
const TAKEN: [&str; 15] = [
    "column",
    "line",
    "label",
    "seed",
    "seconds",
    "up",
    "down",
    "requests",
    "flows",
    "value",
    "x",
    "measure",
    "run",
    "runs",
    "reference",
];

/// Whether a name is one that expressions can use.
fn is_word(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !TAKEN.contains(&name)
}

/// How such names are written.
const WORDS: &str = "write letters, digits and _, a letter first; some words are taken";

/// Names that tell things apart, in tables and in expressions.
fn names(study: &StudyFile, origin: &Origin) -> Result<(), StudyError> {
    let plain = |name: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        !name.is_empty() && name.chars().all(allowed) && !name.starts_with('.')
    };
    let fail = |key: String, message: String, hint: &str| -> Result<(), StudyError> {
        Err(origin.problem(&key, &message, Some(hint.into())).into())
    };
    let letters = "write letters, digits and dashes";
    if !plain(&study.name) {
        return fail(
            "name".into(),
            format!("`{}` cannot name a directory", study.name),
            letters,
        );
    }
    if study.measure.is_empty() {
        return fail(
            "measure".into(),
            "a study measures something".into(),
            "write [[measure]]",
        );
    }
    let many = |what: &str, found: usize, most: usize| format!("{found} {what}, at most {most}");
    if study.figure.len() > FIGURES {
        return fail(
            format!("figure[{FIGURES}]"),
            many("figures", study.figure.len(), FIGURES),
            "each is asked of every combination; write a second study of the same runs",
        );
    }
    for (i, figure) in study.figure.iter().enumerate() {
        if figure.points.len() > EXPRESSIONS {
            return fail(
                format!("figure[{i}].points"),
                many("expressions in a figure", figure.points.len(), EXPRESSIONS),
                "write several figures",
            );
        }
    }
    let lists: [(&str, Vec<&str>, bool); 5] = [
        ("axis", study.axis.iter().map(|a| &*a.name).collect(), true),
        ("line", study.line.iter().map(|l| &*l.name).collect(), false),
        (
            "column",
            study.column.iter().map(|c| &*c.name).collect(),
            false,
        ),
        (
            "measure",
            study.measure.iter().map(|m| &*m.name).collect(),
            true,
        ),
        (
            "figure",
            study.figure.iter().map(|f| &*f.name).collect(),
            false,
        ),
    ];
    for (what, list, in_expressions) in &lists {
        for (i, name) in list.iter().enumerate() {
            let key = format!("{what}[{i}].name");
            if list[..i].contains(name) {
                return fail(
                    key,
                    format!("there are two {what}s called `{name}`"),
                    "names tell them apart",
                );
            }
            if *in_expressions && !is_word(name) {
                let message = format!("`{name}` is no name that expressions can use");
                return fail(key, message, WORDS);
            }
            if !plain(name) {
                return fail(key, format!("`{name}` is no name"), letters);
            }
        }
    }
    let axes = &lists[0].1;
    for measure in &lists[3].1 {
        if axes.contains(measure) {
            return fail(
                "measure".into(),
                format!("`{measure}` is an axis already"),
                "names tell them apart",
            );
        }
    }
    if let Err(wrong) = axes::check(study) {
        return fail(wrong.key, wrong.why, &wrong.hint);
    }
    let columns = &lists[2].1;
    for (i, line) in study.line.iter().enumerate() {
        for column in line.columns.iter().flatten() {
            if !columns.contains(&&**column) {
                return fail(
                    format!("line[{i}].columns"),
                    format!("no column is called `{column}`"),
                    &file::suggest(column, columns, "columns"),
                );
            }
        }
        for measure in line.measures.iter().flatten() {
            let measures = &lists[3].1;
            if !measures.contains(&&**measure) {
                return fail(
                    format!("line[{i}].measures"),
                    format!("no measure is called `{measure}`"),
                    &file::suggest(measure, measures, "measures"),
                );
            }
        }
    }
    let of_columns = study.column.iter().enumerate();
    let of_lines = study.line.iter().enumerate();
    let sets = [("with".to_owned(), &study.with)]
        .into_iter()
        .chain(of_columns.map(|(i, c)| (format!("column[{i}].with"), &c.with)))
        .chain(of_lines.map(|(i, l)| (format!("line[{i}].with"), &l.with)))
        .chain(
            study
                .capture
                .iter()
                .map(|c| ("capture.with".into(), &c.with)),
        );
    for (place, with) in sets {
        for name in with.keys() {
            let key = format!("{place}.{name}");
            if !is_word(name) {
                let message = format!("`{name}` is no name that expressions can use");
                return fail(key, message, WORDS);
            }
            for (what, taken) in [("an axis", axes), ("a measure", &lists[3].1)] {
                if taken.contains(&&**name) {
                    let message = format!("`{name}` is {what} already");
                    return fail(key, message, "names tell them apart");
                }
            }
        }
    }
    Ok(())
}

/// Every combination, resolved once.
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

/// What expressions know of a combination.
pub(super) fn scope(
    study: &StudyFile,
    (column, line): (usize, usize),
    axes: &[f64],
) -> Scope<'static> {
    let (column, line) = (&study.column[column], &study.line[line]);
    let mut known: BTreeMap<&str, rhai::Dynamic> = BTreeMap::new();
    for with in [&study.with, &column.with, &line.with] {
        known.extend(with.iter().map(|(k, v)| (&**k, dynamic(v))));
    }
    for (axis, value) in study.axis.iter().zip(axes) {
        known.insert(&axis.name, (*value).into());
    }
    known.insert("column", column.name.clone().into());
    known.insert("line", line.name.clone().into());
    let mut scope = Scope::new();
    for (name, value) in known {
        scope.push_dynamic(name.to_owned(), value);
    }
    scope
}

pub(super) fn dynamic(value: &Scalar) -> rhai::Dynamic {
    match value {
        Scalar::Switch(b) => (*b).into(),
        Scalar::Number(x) => (*x).into(),
        Scalar::Text(t) => t.clone().into(),
    }
}

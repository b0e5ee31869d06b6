//! What figures of points take from the tables of a run, kept beside the table of runs: a run that is
//! simulated for its numbers is not simulated again for a picture.
//!
//! The file is CSV: keys and fingerprint of the run as in the table of runs, a fingerprint of the expression,
//! and the numbers of the points, x before y, in one field. It may be thrown away: what it lacks is simulated again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rhai::{AST, Array, Dynamic, Engine, Scope};

use super::cells::{self, FileCell, Group};
use super::draw::{self, Wrong};
use super::format::{Figure, StudyFile};
use super::read::{self, Compiled};
use super::script::{self, Trouble};
use super::tables::Tables;
use crate::grid::{self, hash};

/// Points in the order of their x.
pub(super) type Points = Vec<[f64; 2]>;

/// The points that are known, by run and expression.
#[derive(Default)]
pub(super) struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    known: BTreeMap<(String, u64), Points>,
    /// Where more of them go; nowhere before a file was opened.
    out: Option<File>,
}

impl Kept {
    /// The file beside a table of runs.
    pub(super) fn beside(runs: &Path) -> PathBuf {
        runs.with_extension("points.csv")
    }

    /// Takes up what a file of runs with these keys holds, and adds to it from now on; a `fresh` one begins anew,
    /// as does one of something else.
    pub(super) fn open(&self, path: &Path, keys: &[String], fresh: bool) -> io::Result<()> {
        let header = format!("{},settings,expression,points\n", keys.join(","));
        let old = match fs::read_to_string(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            // Not text: nothing of ours.
            Err(e) if e.kind() == io::ErrorKind::InvalidData => String::new(),
            old => old?,
        };
        let mut state = self.lock();
        if fresh || !old.starts_with(&header) {
            let mut file = File::create(path)?;
            file.write_all(header.as_bytes())?;
            state.out = Some(file);
            return Ok(());
        }
        // A last line without an end was being written when the study was ended.
        let whole = old.rfind('\n').map_or(0, |end| end + 1);
        state.known.extend(old[..whole].lines().filter_map(parsed));
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(whole as u64)?;
        state.out = Some(file);
        Ok(())
    }

    /// What an expression gives of a run; none where it is not known.
    pub(super) fn get(&self, run: &str, text: &str) -> Option<Points> {
        self.lock()
            .known
            .get(&(run.to_owned(), hash(text)))
            .cloned()
    }

    /// Keeps it.
    pub(super) fn keep(&self, run: &str, text: &str, points: Points) -> io::Result<()> {
        let key = (run.to_owned(), hash(text));
        let numbers: Vec<String> = points.iter().flatten().map(f64::to_string).collect();
        let line = format!("{},{:016x},{}\n", key.0, key.1, numbers.join(" "));
        let mut state = self.lock();
        state.known.insert(key, points);
        match &mut state.out {
            Some(out) => out.write_all(line.as_bytes()),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whatever panicked elsewhere, what is in here is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line of the file; none where it is not one.
fn parsed(line: &str) -> Option<((String, u64), Points)> {
    let mut fields = line.rsplitn(3, ',');
    let numbers = fields.next()?;
    let expression = u64::from_str_radix(fields.next()?, 16).ok()?;
    let run = fields.next()?.to_owned();
    let numbers: Result<Vec<f64>, _> = numbers.split_whitespace().map(str::parse).collect();
    let numbers = numbers.ok()?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    rest.is_empty().then(|| ((run, expression), pairs.to_vec()))
}

/// What figures of points want of the first run of a combination.
pub(super) struct Wants {
    /// Its key and fingerprint.
    pub name: String,
    /// Expressions of figures that show it.
    pub surely: Vec<String>,
    /// Expressions of figures of which only the numbers of runs tell whether they show it.
    pub perhaps: Vec<String>,
}

/// A figure of points and which combinations it shows.
struct Shown<'f> {
    lines: Vec<usize>,
    columns: Vec<usize>,
    filter: Option<(&'f str, Option<AST>)>,
    texts: Vec<&'f String>,
}

/// What is wanted of every combination, as far as that can be said before any run; none where `stop` said so.
pub(super) fn wanted(
    compiled: &Arc<Compiled>,
    groups: &[Arc<Group>],
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<Wants>> {
    let study: &StudyFile = &compiled.file;
    let engine = script::engine();
    let figures = study.figure.iter().filter(|f| !f.points.is_empty());
    let figures: Vec<Shown<'_>> = figures.map(|f| Shown::new(study, &engine, f)).collect();
    let mut all = Vec::new();
    for group in groups {
        let mut wants = Wants {
            name: grid::name(&FileCell::new(compiled, group, group.seed)),
            surely: Vec::new(),
            perhaps: Vec::new(),
        };
        let known = read::scope(study, (group.column, group.line), &group.axes);
        for figure in &figures {
            if stop() {
                return None;
            }
            let list = match figure.shows(&engine, group, &known) {
                Some(true) => &mut wants.surely,
                Some(false) => continue,
                None => &mut wants.perhaps,
            };
            for text in &figure.texts {
                if !list.contains(text) {
                    list.push((*text).clone());
                }
            }
        }
        all.push(wants);
    }
    Some(all)
}

impl<'f> Shown<'f> {
    fn new(study: &StudyFile, engine: &Engine, figure: &'f Figure) -> Shown<'f> {
        let lines = study.line.iter().map(|l| &*l.name);
        let columns = study.column.iter().map(|c| &*c.name);
        let filter = figure.filter.as_deref();
        Shown {
            lines: draw::chosen(figure.lines.as_deref(), lines),
            columns: draw::chosen(figure.columns.as_deref(), columns),
            filter: filter.map(|text| (text, script::compile(engine, text).ok())),
            texts: figure.points.values().collect(),
        }
    }

    /// None where that hangs on the numbers of runs.
    fn shows(&self, engine: &Engine, group: &Group, known: &Scope<'static>) -> Option<bool> {
        if !self.lines.contains(&group.line) || !self.columns.contains(&group.column) {
            return Some(false);
        }
        let Some((text, ast)) = &self.filter else {
            return Some(true);
        };
        // Statements may change what they know.
        let answer = script::value(engine, ast.as_ref()?, &mut known.clone(), text);
        script::truth(&answer.ok()?).ok()
    }
}

/// What an expression gives of the tables of a combination's run.
pub(super) fn of(
    compiled: &Compiled,
    group: &Group,
    (tables, seconds): (Tables, f64),
    text: &str,
) -> Result<Points, Wrong> {
    let mut known = cells::scope_of(compiled, group, tables, seconds);
    let ast = script::compile(&compiled.engine, text).map_err(|t| ("points", t))?;
    let found = script::value(&compiled.engine, &ast, &mut known, text);
    points(found.map_err(|t| ("points", t))?)
}

fn points(found: Dynamic) -> Result<Points, Wrong> {
    let list = |value: Dynamic| {
        let kind = value.type_name();
        let why = format!("a {kind} is no list of [x, y]");
        value.try_cast::<Array>().ok_or_else(|| wrong(&why))
    };
    let mut all = Vec::new();
    for item in list(found)? {
        let pair = list(item)?;
        let [first, second] = &pair[..] else {
            return Err(wrong("a point is [x, y]"));
        };
        let both = script::number(first).zip(script::number(second));
        let (x, y) = both.ok_or_else(|| wrong("a point is [x, y], two numbers"))?;
        if x.is_finite() && y.is_finite() {
            all.push([x, y]);
        }
    }
    all.sort_by(|a, b| a[0].total_cmp(&b[0]));
    Ok(all)
}

pub(super) fn wrong(why: &str) -> Wrong {
    ("points", Trouble::Wrong(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_there_again_and_a_cut_line_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = Kept::beside(&dir.path().join("runs.csv"));
        assert_eq!(path, dir.path().join("runs.points.csv"));
        let keys = ["column", "line", "seed"].map(String::from);
        let points = vec![[0.1 + 0.2, 1.0 / 3.0], [1e-300, -0.0]];
        let kept = Kept::default();
        kept.open(&path, &keys, false).unwrap();
        kept.keep("a,b,1,00ff", "up.x", points.clone()).unwrap();
        kept.keep("a,b,2,00ff", "up.x", Vec::new()).unwrap();
        assert_eq!(kept.get("a,b,1,00ff", "up.x"), Some(points.clone()));

        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}a,b,3,00ff,0000000000000001,1 2 3")).unwrap();
        let again = Kept::default();
        again.open(&path, &keys, false).unwrap();
        assert_eq!(again.get("a,b,1,00ff", "up.x"), Some(points));
        assert_eq!(again.get("a,b,2,00ff", "up.x"), Some(Vec::new()));
        for (run, expression) in [("a,b,1,00fe", "up.x"), ("a,b,1,00ff", "up.y")] {
            assert_eq!(again.get(run, expression), None);
        }
        again.keep("a,b,3,00ff", "up.x", vec![[1.0, 2.0]]).unwrap();
        let last = fs::read_to_string(&path).unwrap();
        assert!(
            last.starts_with(&text) && last.ends_with(",1 2\n"),
            "{last}"
        );

        for (begun, fresh) in [(last, true), ("a,b\n".to_owned(), false)] {
            fs::write(&path, begun).unwrap();
            Kept::default().open(&path, &keys, fresh).unwrap();
            let header = fs::read_to_string(&path).unwrap();
            assert_eq!(header, "column,line,seed,settings,expression,points\n");
        }
    }
}

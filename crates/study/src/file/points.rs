//! What figures of points take from the tables of a run, kept beside the table of runs: a run that is
//! simulated for its numbers is not simulated again for a picture.
//!
//! The file is CSV: keys and fingerprint of the run as in the table of runs, a fingerprint of the expression,
//! and the numbers of the points, x before y, in one field. It may be thrown away: what it lacks is simulated again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rhai::{Array, Dynamic};

use super::cells::{self, Group};
use super::draw::{self, Wrong};
use super::format::{Figure, StudyFile};
use super::read::{self, Compiled};
use super::script::{self, Trouble};
use super::tables::Tables;
use crate::grid::hash;

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

/// The expressions of all figures of points that show this combination, as far as that can be said before
/// any run: one whose `where` asks for measures is not among them.
pub(super) fn wanted(compiled: &Compiled, group: &Group) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for figure in &compiled.file.figure {
        if !figure.points.is_empty() && shows(compiled, figure, group) == Some(true) {
            for text in figure.points.values() {
                if !texts.contains(text) {
                    texts.push(text.clone());
                }
            }
        }
    }
    texts
}

/// Whether a figure shows a combination; none where that hangs on the numbers of runs.
pub(super) fn shows(compiled: &Compiled, figure: &Figure, group: &Group) -> Option<bool> {
    let study: &StudyFile = &compiled.file;
    let lines = draw::chosen(figure.lines.as_deref(), study.line.iter().map(|l| &*l.name));
    let columns = draw::chosen(
        figure.columns.as_deref(),
        study.column.iter().map(|c| &*c.name),
    );
    if !lines.contains(&group.line) || !columns.contains(&group.column) {
        return Some(false);
    }
    let Some(text) = &figure.filter else {
        return Some(true);
    };
    let engine = script::engine();
    let ast = script::compile(&engine, text).ok()?;
    let mut known = read::scope(study, (group.column, group.line), &group.axes);
    let answer = script::value(&engine, &ast, &mut known, text).ok()?;
    script::truth(&answer).ok()
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

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

/// Points of a list that are kept: more than a picture has pixels to show.
const SHOWN: usize = 2000;
/// Bytes of the file. What is beyond them is simulated again.
const BYTES: u64 = 64_000_000;

/// The points that are known, by run and expression.
pub(super) struct Kept {
    state: Mutex<State>,
    /// Bytes of the file, or of what it would be.
    most: u64,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            state: Mutex::default(),
            most: BYTES,
        }
    }
}

#[derive(Default)]
struct State {
    known: BTreeMap<(String, u64), Points>,
    bytes: u64,
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
        let long = fs::metadata(path).is_ok_and(|m| m.len() > self.most);
        let read = || {
            if long {
                Ok(String::new())
            } else {
                fs::read_to_string(path)
            }
        };
        let old = match read() {
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
            state.bytes = header.len() as u64;
            return Ok(());
        }
        // A last line without an end was being written when the study was ended.
        let whole = old.rfind('\n').map_or(0, |end| end + 1);
        state.known.extend(old[..whole].lines().filter_map(parsed));
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(whole as u64)?;
        state.out = Some(file);
        state.bytes = whole as u64;
        Ok(())
    }

    /// What an expression gives of a run; none where it is not known.
    pub(super) fn get(&self, run: &str, text: &str) -> Option<Points> {
        self.lock()
            .known
            .get(&(run.to_owned(), hash(text)))
            .cloned()
    }

    /// Keeps it, where there is still room.
    pub(super) fn keep(&self, run: &str, text: &str, points: Points) -> io::Result<()> {
        let key = (run.to_owned(), hash(text));
        let numbers: Vec<String> = points.iter().flatten().map(|x| format!("{x:e}")).collect();
        let line = format!("{},{:016x},{}\n", key.0, key.1, numbers.join(" "));
        let mut state = self.lock();
        let bytes = state.bytes + line.len() as u64;
        if bytes > self.most {
            return Ok(());
        }
        state.bytes = bytes;
        state.known.insert(key, points);
        match &mut state.out {
            Some(out) => out.write_all(line.as_bytes()),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whatever panicked elsewhere, what is in here is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    Ok(thinned(all))
}

/// The least and the greatest of each of equally many neighbours, where a picture cannot show all.
fn thinned(all: Points) -> Points {
    if all.len() <= SHOWN {
        return all;
    }
    let neighbours = all.chunks(all.len().div_ceil(SHOWN / 2));
    let ends = neighbours.flat_map(|some| {
        let rank = |a: &usize, b: &usize| some[*a][1].total_cmp(&some[*b][1]);
        let least = (0..some.len()).min_by(rank).unwrap_or(0);
        let most = (0..some.len()).max_by(rank).unwrap_or(0);
        let pair = [least.min(most), least.max(most)];
        let different = if least == most { 1 } else { 2 };
        pair.into_iter().take(different).map(|i| some[i])
    });
    ends.collect()
}

pub(super) fn wrong(why: &str) -> Wrong {
    ("points", Trouble::Wrong(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.points.csv");
        let keys = ["seed".to_owned()];
        let header = "seed,settings,expression,points\n".len() as u64;
        // Room for two lines.
        let line = ",0123456789abcdef,1e-300 -1.7976931348623157e308\n".len() as u64 + 1;
        let kept = Kept {
            most: header + 2 * line + 1,
            ..Kept::default()
        };
        kept.open(&path, &keys, false).unwrap();
        let points = vec![[1e-300, f64::MIN]];
        for run in ["1", "2", "3"] {
            kept.keep(run, "x", points.clone()).unwrap();
        }
        assert_eq!(kept.get("2", "x"), Some(points.clone()));
        assert_eq!(kept.get("3", "x"), None);
        assert_eq!(fs::metadata(&path).unwrap().len(), header + 2 * line);
        // What stands there counts, and a file that is too long is begun anew.
        let again = Kept {
            most: header + 2 * line + 1,
            ..Kept::default()
        };
        again.open(&path, &keys, false).unwrap();
        assert_eq!(again.get("1", "x"), Some(points.clone()));
        again.keep("3", "x", points.clone()).unwrap();
        assert_eq!(again.get("3", "x"), None);
        let less = Kept {
            most: header + line,
            ..Kept::default()
        };
        less.open(&path, &keys, false).unwrap();
        assert_eq!(less.get("1", "x"), None);
        assert_eq!(fs::metadata(&path).unwrap().len(), header);
    }

    #[test]
    fn a_long_list_keeps_its_extremes() {
        let list = |n: usize| -> Points { (0..n).map(|i| [i as f64, (i as f64).sin()]).collect() };
        assert_eq!(thinned(list(2000)), list(2000));
        for n in [2001, 3999, 20_000] {
            let mut all = list(n);
            all[1234][1] = 9.0;
            all[1235][1] = -9.0;
            let few = thinned(all.clone());
            assert!(few.len() <= 2000 && few.len() > 1000, "{n}: {}", few.len());
            assert!(few.is_sorted_by(|a, b| a[0] < b[0]));
            assert!(few.contains(&[1234.0, 9.0]) && few.contains(&[1235.0, -9.0]));
            assert!(few.iter().all(|p| all.contains(p)));
        }
    }

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
            last.starts_with(&text) && last.ends_with(",1e0 2e0\n"),
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

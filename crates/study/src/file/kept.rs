//! What is kept of runs beside the table of runs: points that figures take from their tables, and warnings. A run that
//! was simulated for its numbers need not be simulated again for a picture.
//!
//! The files are CSV: the keys and the fingerprint of the run as in the table of runs, a fingerprint of the expression
//! or of the warning, and the value in one field. They may be deleted: missing points are simulated again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use swell_base::Warning;
use swell_experiment::run::grid::hash;

/// Points in ascending x.
pub(super) type Points = Vec<[f64; 2]>;

/// What is kept of a run: one field without commas and line breaks.
pub(super) trait Field: Clone {
    /// The name of the file's last column, and of the file.
    fn name() -> &'static str;
    /// Writes the field.
    fn written(&self) -> String;
    /// Reads the field; `None` if it is malformed.
    fn read(text: &str) -> Option<Self>;
}

impl Field for Points {
    fn name() -> &'static str {
        "points"
    }

    fn written(&self) -> String {
        let numbers: Vec<String> = self.iter().flatten().map(|x| format!("{x:e}")).collect();
        numbers.join(" ")
    }

    fn read(text: &str) -> Option<Points> {
        let numbers: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
        let numbers = numbers.ok()?;
        let (pairs, rest) = numbers.as_chunks::<2>();
        rest.is_empty().then(|| pairs.to_vec())
    }
}

impl Field for Warning {
    fn name() -> &'static str {
        "warnings"
    }

    fn written(&self) -> String {
        // A JSON string has no line breaks, and its commas can be escaped.
        let text = serde_json::Value::from(format!("{} {}", self.code, self.message));
        text.to_string().replace(',', "\\u002c")
    }

    fn read(text: &str) -> Option<Warning> {
        let text: String = serde_json::from_str(text).ok()?;
        let (code, message) = text.split_once(' ')?;
        Some(Warning::warning(code.into(), message))
    }
}

/// Size limit of the file in bytes. What is beyond it is simulated again, if it is needed.
const BYTES: u64 = 64_000_000;

/// What is known, by run and fingerprint.
pub(super) struct Kept<T> {
    state: Mutex<State<T>>,
    /// Size limit of the file in bytes.
    most: u64,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept {
            state: Mutex::new(State {
                known: BTreeMap::new(),
                bytes: 0,
                out: None,
            }),
            most: BYTES,
        }
    }
}

struct State<T> {
    known: BTreeMap<(String, u64), T>,
    bytes: u64,
    /// The file to append to; `None` before `open`.
    out: Option<File>,
}

impl<T: Field> Kept<T> {
    /// The path of the file for a table of runs.
    pub(super) fn beside(runs: &Path) -> PathBuf {
        runs.with_extension(format!("{}.csv", T::name()))
    }

    /// Reads the file for runs with these keys, and appends to it from now on. A `fresh` file starts empty,
    /// and so does a file with another header.
    pub(super) fn open(&self, path: &Path, keys: &[String], fresh: bool) -> io::Result<()> {
        let header = format!("{},settings,expression,{}\n", keys.join(","), T::name());
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
            // Not UTF-8, so this program did not write it.
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
        // An unterminated last line was being written when the study was interrupted.
        let whole = old.rfind('\n').map_or(0, |end| end + 1);
        state.known.extend(old[..whole].lines().filter_map(parsed));
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(whole as u64)?;
        state.out = Some(file);
        state.bytes = whole as u64;
        Ok(())
    }

    /// Merges the files of shards into an open file, and removes them. A `fresh` file takes nothing from them.
    pub(super) fn join(&self, shards: &[PathBuf], fresh: bool) -> io::Result<()> {
        for path in shards {
            if fresh {
                fs::remove_file(path)?;
                continue;
            }
            let old = fs::read_to_string(path)?;
            // An unterminated last line was cut off.
            for line in old.split_inclusive('\n').filter(|l| l.ends_with('\n')) {
                if let Some((key, value)) = parsed(line.trim_end()) {
                    self.put(key, value)?;
                }
            }
            fs::remove_file(path)?;
        }
        Ok(())
    }

    /// What is kept of a run under an expression; `None` if it is unknown.
    pub(super) fn get(&self, run: &str, text: &str) -> Option<T> {
        self.lock()
            .known
            .get(&(run.to_owned(), hash(text)))
            .cloned()
    }

    /// All that is kept of a run.
    pub(super) fn all(&self, run: &str) -> Vec<T> {
        let state = self.lock();
        let own = (run.to_owned(), 0)..=(run.to_owned(), u64::MAX);
        state
            .known
            .range(own)
            .map(|(_, value)| value.clone())
            .collect()
    }

    /// Keeps a value while the size limit allows.
    pub(super) fn keep(&self, run: &str, text: &str, value: T) -> io::Result<()> {
        self.put((run.to_owned(), hash(text)), value)
    }

    fn put(&self, key: (String, u64), value: T) -> io::Result<()> {
        let line = format!("{},{:016x},{}\n", key.0, key.1, value.written());
        let mut state = self.lock();
        let bytes = state.bytes + line.len() as u64;
        if bytes > self.most {
            return Ok(());
        }
        state.bytes = bytes;
        state.known.insert(key, value);
        match &mut state.out {
            Some(out) => out.write_all(line.as_bytes()),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // A panic elsewhere cannot leave the state half-written, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses a line of the file; `None` if it is malformed.
fn parsed<T: Field>(line: &str) -> Option<((String, u64), T)> {
    let mut fields = line.rsplitn(3, ',');
    let value = T::read(fields.next()?)?;
    let expression = u64::from_str_radix(fields.next()?, 16).ok()?;
    Some(((fields.next()?.to_owned(), expression), value))
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
        // Space for two lines.
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
        // Existing contents count towards the limit, and a file that is too long is started anew.
        let again = Kept {
            most: header + 2 * line + 1,
            ..Kept::default()
        };
        again.open(&path, &keys, false).unwrap();
        assert_eq!(again.get("1", "x"), Some(points.clone()));
        again.keep("3", "x", points.clone()).unwrap();
        assert_eq!(again.get("3", "x"), None);
        let less = Kept::<Points> {
            most: header + line,
            ..Kept::default()
        };
        less.open(&path, &keys, false).unwrap();
        assert_eq!(less.get("1", "x"), None);
        assert_eq!(fs::metadata(&path).unwrap().len(), header);
    }

    #[test]
    fn what_was_kept_is_there_again_and_a_cut_line_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = Kept::<Points>::beside(&dir.path().join("runs.csv"));
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

        // The points of shards are added, except a line that was cut off.
        let shard = dir.path().join("runs.points.1-of-2.csv");
        fs::write(
            &shard,
            "header\na,b,9,00ff,0000000000000001,1e0 2e0\na,b,8,00ff,00",
        )
        .unwrap();
        again.join(std::slice::from_ref(&shard), false).unwrap();
        assert!(!shard.exists());
        let joined = fs::read_to_string(&path).unwrap();
        assert_eq!(
            joined,
            last.clone() + "a,b,9,00ff,0000000000000001,1e0 2e0\n"
        );

        // Those of a study that begins anew are not.
        fs::write(&shard, "header\na,b,7,00ff,0000000000000001,1e0 2e0\n").unwrap();
        again.join(std::slice::from_ref(&shard), true).unwrap();
        assert!(!shard.exists() && fs::read_to_string(&path).unwrap() == joined);

        for (begun, fresh) in [(last, true), ("a,b\n".to_owned(), false)] {
            fs::write(&path, begun).unwrap();
            Kept::<Points>::default().open(&path, &keys, fresh).unwrap();
            let header = fs::read_to_string(&path).unwrap();
            assert_eq!(header, "column,line,seed,settings,expression,points\n");
        }
    }

    #[test]
    fn warnings_of_runs_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = Kept::<Warning>::beside(&dir.path().join("runs.csv"));
        let keys = ["seed".to_owned()];
        let kept = Kept::default();
        kept.open(&path, &keys, false).unwrap();
        let [a, b] = ["18 asked, 12 carried", "a \"second\"\nline"]
            .map(|m| Warning::warning("rate-missed".into(), m));
        for doubt in [&a, &b, &a] {
            kept.keep("1,00ff", &doubt.written(), doubt.clone())
                .unwrap();
        }
        let again = Kept::<Warning>::default();
        again.open(&path, &keys, false).unwrap();
        let mut found = again.all("1,00ff");
        found.sort_by(|x, y| x.message.cmp(&y.message));
        assert_eq!(found, [a, b]);
        assert_eq!(again.all("2,00ff"), []);
    }
}

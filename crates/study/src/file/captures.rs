//! Columns for captures named on the command line.

use std::path::{Path, PathBuf};

use swell_base::Warning;
use swell_experiment::Traces;

use super::error::StudyError;
use super::format::{Column, Scalar, StudyFile};
use super::origin::Origin;
use super::units::{Units, written};

/// What the page reports about captures.
#[derive(Debug, Default)]
pub(super) struct About {
    /// Reasons to distrust the captures.
    pub doubts: Vec<Warning>,
    /// Facts about each capture: name and value.
    pub facts: Vec<(String, String)>,
}

/// Adds a column for each capture.
pub(super) fn columns(
    study: &mut StudyFile,
    origin: &Origin,
    paths: &[PathBuf],
    traces: &Traces,
) -> Result<About, StudyError> {
    let mut about = About::default();
    if paths.is_empty() {
        return Ok(about);
    }
    let Some(template) = study.capture.clone() else {
        let hint = "a [capture] table says what one more column sets";
        let why = "this study takes no captures";
        return Err(origin.problem("name", why, Some(hint.into())).into());
    };
    for path in paths {
        let name = named(path);
        let wrong = |reason: String| StudyError::Capture {
            path: path.clone(),
            reason,
        };
        let full = std::fs::canonicalize(path).map_err(|e| wrong(e.to_string()))?;
        // Opening a pipe would block for ever.
        let kind = std::fs::metadata(&full).map_err(|e| wrong(e.to_string()))?;
        if !kind.is_file() {
            let reason = "not a file with a capture, but a directory, pipe or device";
            return Err(wrong(reason.into()));
        }
        let Some(file) = full.to_str() else {
            return Err(wrong(
                "its path is not UTF-8, as an experiment file is".into(),
            ));
        };
        if study.column.iter().any(|c| c.name == name) {
            let reason = format!("there is another column called `{name}`; rename the file");
            return Err(wrong(reason));
        }
        let read = traces.read(&full, &[]).map_err(|mut e| {
            // The outer message already names the file as the user gave it.
            e.file = None;
            wrong(e.to_string())
        })?;
        let [up, down] = read.bps();
        let mut with = template.with.clone();
        let numbers = [
            ("length", read.length.as_secs_f64()),
            ("rate_up", up),
            ("rate_down", down),
        ];
        with.extend(numbers.map(|(key, x)| (key.to_owned(), Scalar::Number(x))));
        with.insert("file".into(), Scalar::Text(file.to_owned()));
        about.doubts.extend(read.doubts.iter().map(|doubt| Warning {
            message: format!("capture {name}: {}", doubt.message),
            ..doubt.clone()
        }));
        let packets = read.packets.each_ref().map(|way| way.len());
        let what = format!(
            "{:.1} s, {} packets from inside out at {} and {} back at {}",
            read.length.as_secs_f64(),
            packets[0],
            written(Units::BitsPerSecond, up),
            packets[1],
            written(Units::BitsPerSecond, down),
        );
        about.facts.push((format!("capture {name}"), what));
        study.column.push(Column {
            name,
            label: None,
            foreground: template.foreground.clone(),
            background: template.background.clone(),
            with,
            set: template.set.clone(),
        });
    }
    Ok(about)
}

/// The name of a column: the file name up to its first dot, reduced to characters that names may have.
fn named(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').find(|part| !part.is_empty());
    let plain = |c: char| match c.is_ascii_alphanumeric() || "-_+".contains(c) {
        true => c,
        false => '-',
    };
    stem.unwrap_or("capture").chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for (path, name) in [
            ("a/b/campus-1997.pcap.zst", "campus-1997"),
            (".hidden.pcap", "hidden"),
            ("mon day,ü.pcap", "mon-day--"),
            ("..", "capture"),
        ] {
            assert_eq!(named(Path::new(path)), name);
        }
    }
}

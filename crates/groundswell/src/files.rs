//! Files that are written atomically: whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use swell_experiment::run::LOCK;
use swell_experiment::store::Manifest;

use crate::Error;

/// The file in the directory of a generation that `swell watch` reads.
pub const PROGRESS: &str = "progress.json";

/// Checks that the parent directory of `path` exists. Missing parents of a path typed by a user are not created,
/// because the path may be mistyped.
///
/// # Errors
/// If there is no such directory.
pub fn parent_exists(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new(""));
    if parent.as_os_str().is_empty() || parent.is_dir() {
        return Ok(());
    }
    if let Some(file) = parent.ancestors().find(|a| a.exists() && !a.is_dir()) {
        let message = format!("{} is a file, not a directory", file.display());
        return Err(Error::usage(message).hint("name another place"));
    }
    let name = parent.display();
    let fail = Error::usage(format!("there is no directory {name}"));
    Err(fail.hint(format!("`mkdir -p {name}` makes it")))
}

/// Checks that a directory for results can be created at `path`, or exists.
///
/// # Errors
/// If its parent does not exist, or there is a file in its place.
pub fn may_be_made(path: &Path) -> Result<(), Error> {
    parent_exists(path)?;
    if path.exists() && !path.is_dir() {
        let message = format!("{} is a file, not a directory", path.display());
        return Err(Error::usage(message).hint("name a directory that is new"));
    }
    Ok(())
}

/// Most symbolic links that are followed one after the other, as in the kernel (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// The file that `path` leads to over symbolic links, whether it exists or not.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = at.read_link() else {
            return Ok(at);
        };
        // A relative link starts from its own directory.
        at = at.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// The place of a file that is being written: a temporary path in the directory of the final one. They are equal for a
/// device or a pipe, which is written to directly.
pub(crate) struct Partial {
    /// The temporary path.
    pub at: PathBuf,
    /// The final path. A symbolic link is followed: its target is replaced, not the link.
    pub whole: PathBuf,
    /// Whether the temporary file has its final path.
    finished: bool,
}

impl Partial {
    /// Creates the temporary file. No other writer has it, in this process or another.
    pub(crate) fn create(path: &Path) -> io::Result<(File, Partial)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            let device = Partial {
                at: path.to_owned(),
                whole: path.to_owned(),
                finished: true,
            };
            return Ok((File::create(path)?, device));
        }
        let whole = followed(path)?;
        loop {
            let mut at = whole.clone().into_os_string();
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            at.push(format!(".{}-{n}.partial", std::process::id()));
            let at = PathBuf::from(at);
            match File::create_new(&at) {
                Ok(file) => {
                    let finished = false;
                    return Ok((
                        file,
                        Partial {
                            at,
                            whole,
                            finished,
                        },
                    ));
                }
                // Another machine or container may have the same process ID; a killed process leaves its file.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Gives the complete file its final path.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if !self.finished {
            std::fs::rename(&self.at, &self.whole)?;
            self.finished = true;
        }
        Ok(())
    }
}

impl Drop for Partial {
    /// Removes a temporary file that was not finished.
    fn drop(&mut self) {
        if !self.finished {
            let _ = std::fs::remove_file(&self.at);
        }
    }
}

/// Whether a file is to be in a directory, however both are spelt and whether they exist or not.
pub fn is_inside(file: &Path, dir: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute(file).starts_with(absolute(dir))
}

/// Checks that [`write`] could write `path`, before the work whose result it will hold.
///
/// # Errors
/// If its directory does not exist or refuses a new file, or `path` is a directory.
pub fn writable(path: &Path) -> Result<(), Error> {
    parent_exists(path)?;
    let refused = |e: io::Error| Error::usage(format!("{}: {e}", path.display()));
    match path.metadata() {
        Ok(there) if there.is_dir() => Err(refused(io::ErrorKind::IsADirectory.into())),
        Ok(there) if !there.is_file() => Ok(()),
        _ => Partial::create(path).map(drop).map_err(refused),
    }
}

/// Checks that writing `output` would replace none of `inputs`, however they are spelt.
///
/// # Errors
/// If it would.
pub fn not_an_input(output: &Path, inputs: &[PathBuf]) -> Result<(), Error> {
    // What does not exist or is no file, such as a device, loses nothing.
    let Ok(there) = output.canonicalize() else {
        return Ok(());
    };
    let read = |input: &PathBuf| match input.as_os_str() == "-" {
        true => Path::new("/dev/stdin").canonicalize(),
        false => input.canonicalize(),
    };
    let same = |input: &&PathBuf| read(input).is_ok_and(|input| input == there);
    match inputs.iter().find(same) {
        Some(input) if there.is_file() => Err(Error::usage(format!(
            "{} would be written over the input {}",
            output.display(),
            input.display()
        ))
        .hint("name another file")),
        _ => Ok(()),
    }
}

/// Names of what a run, or a generation, keeps in its directory: its own files and directories.
const OF_RUNS: [&str; 11] = [
    Manifest::FILE,
    PROGRESS,
    LOCK,
    "experiment.toml",
    "cells",
    "measured",
    "models",
    "output",
    "packets",
    "records",
    "shards",
];

/// Checks that `output` is nothing that a run keeps in its directory `dir`, which need not be there yet: a table, or what
/// it is read by. A report and pictures may be there.
///
/// # Errors
/// If it is.
pub fn not_of_run(output: &Path, dir: &Path) -> Result<(), Error> {
    let place = place(output);
    let inside = [dir.canonicalize(), std::path::absolute(dir)]
        .into_iter()
        .flatten()
        .find_map(|dir| Some(place.strip_prefix(dir).ok()?.to_owned()));
    let first = inside.and_then(|inside| Some(inside.components().next()?.as_os_str().to_owned()));
    let Some(first) = first.and_then(|name| name.into_string().ok()) else {
        return Ok(());
    };
    if OF_RUNS.contains(&first.as_str()) || first.ends_with(".parquet") {
        let message = format!("{} would be written over the run's own", output.display());
        return Err(Error::usage(message).hint("name another file"));
    }
    Ok(())
}

/// Checks that all `outputs` could be written, each to a file of its own, and that none replaces one of `inputs` or what
/// a run keeps.
///
/// # Errors
/// If one could not, or would.
pub fn outputs<'a>(
    outputs: impl IntoIterator<Item = &'a PathBuf>,
    inputs: &[PathBuf],
) -> Result<(), Error> {
    let mut places: Vec<PathBuf> = Vec::new();
    for output in outputs {
        not_an_input(output, inputs)?;
        let dir = directory(output);
        if dir.join(Manifest::FILE).is_file() {
            not_of_run(output, dir)?;
        }
        writable(output)?;
        let place = place(output);
        let device = place.exists() && !place.is_file();
        if places.contains(&place) && !device {
            let message = format!("two outputs would be written to {}", output.display());
            return Err(Error::usage(message));
        }
        places.push(place);
    }
    Ok(())
}

/// The directory of a file.
fn directory(file: &Path) -> &Path {
    let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Where a file is or will be, without links on its way.
fn place(path: &Path) -> PathBuf {
    if let Ok(there) = path.canonicalize() {
        return there;
    }
    match (directory(path).canonicalize(), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

/// Writes a file atomically; a device or a pipe is written to directly.
///
/// # Errors
/// If its directory does not exist, or the file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    parent_exists(path)?;
    let written = Partial::create(path)
        .and_then(|(mut file, partial)| file.write_all(bytes).and_then(|()| partial.finish()));
    written.map_err(|e| Error::failed(format!("{}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use swell_host::scratch::Scratch;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_inside_however_it_is_spelt() {
        let here = std::env::current_dir().unwrap();
        for (file, dir, inside) in [
            ("out/x.xml", "./out", true),
            ("./out/x.xml", "out/", true),
            ("out.xml", "out", false),
            ("other/x.xml", "out", false),
        ] {
            let [file, dir] = [file, dir].map(Path::new);
            assert_eq!(is_inside(file, dir), inside, "{file:?} {dir:?}");
            assert_eq!(is_inside(&here.join(file), dir), inside, "{file:?} {dir:?}");
        }
    }

    #[test]
    fn what_could_not_be_written_is_known_before() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path();
        let refused = |path: &Path| writable(path).unwrap_err().to_string();
        assert!(refused(&dir.join("no/file")).contains("there is no directory"));
        assert!(refused(dir).contains("is a directory"), "{}", refused(dir));
        writable(&dir.join("file")).unwrap();
        writable(Path::new("/dev/null")).unwrap();
        assert!(names(dir).is_empty(), "{:?}", names(dir));
        std::fs::write(dir.join("file"), "old").unwrap();
        writable(&dir.join("file")).unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("file")).unwrap(), "old");
    }

    #[test]
    fn an_input_is_no_output_however_it_is_spelt() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path();
        let input = dir.join("trace.json");
        std::fs::write(&input, "").unwrap();
        symlink("trace.json", dir.join("link")).unwrap();
        std::fs::create_dir(dir.join("sub")).unwrap();
        let inputs = [PathBuf::from("-"), input.clone()];
        for same in ["trace.json", "link", "sub/../trace.json"] {
            let error = not_an_input(&dir.join(same), &inputs).unwrap_err();
            assert!(error.message.contains("over the input"), "{error}");
        }
        for other in ["new.json", "sub"] {
            not_an_input(&dir.join(other), &inputs).unwrap();
        }
        let device = PathBuf::from("/dev/null");
        not_an_input(&device, std::slice::from_ref(&device)).unwrap();
    }

    #[test]
    fn each_output_is_a_file_of_its_own() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path();
        std::fs::create_dir(dir.join("sub")).unwrap();
        let [a, same, other] = ["a", "sub/../a", "b"].map(|name| dir.join(name));
        let device = PathBuf::from("/dev/null");
        outputs([&a, &other, &device, &device], &[]).unwrap();
        let error = outputs([&a, &other, &same], &[]).unwrap_err();
        assert!(error.message.starts_with("two outputs"), "{error}");
        std::fs::write(&other, "").unwrap();
        let over = outputs([&a, &other], std::slice::from_ref(&other)).unwrap_err();
        assert!(over.message.contains("over the input"), "{over}");
    }

    #[test]
    fn what_a_run_keeps_is_no_output() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path().join("run");
        let own = [
            "manifest.json",
            "experiment.toml",
            "bins.parquet",
            "cells/x",
        ];
        for name in own {
            let error = not_of_run(&dir.join(name), &dir).unwrap_err();
            assert!(error.message.contains("the run's own"), "{error}");
        }
        for sub in ["sub", "cells"] {
            std::fs::create_dir_all(dir.join(sub)).unwrap();
        }
        std::fs::write(dir.join("manifest.json"), "{}").unwrap();
        for name in own {
            let spelt = dir.join("sub/..").join(name);
            assert!(not_of_run(&spelt, &dir).is_err(), "{name}");
        }
        for name in ["report.html", "cdf.svg", "sub/manifest.json", "junit.xml"] {
            not_of_run(&dir.join(name), &dir).unwrap();
            outputs([&dir.join(name)], &[]).unwrap();
        }
        not_of_run(&scratch.path().join("manifest.json"), &dir).unwrap();
        assert!(outputs([&dir.join("manifest.json")], &[]).is_err());
    }

    #[test]
    fn a_file_is_no_place_for_a_directory() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path();
        std::fs::write(dir.join("file"), "").unwrap();
        let refused = |path: &Path| may_be_made(path).unwrap_err().to_string();
        assert!(refused(&dir.join("file")).contains("is a file, not a directory"));
        assert!(refused(&dir.join("no/dir")).contains("there is no directory"));
        for below in ["file/dir", "file/no/dir"] {
            let error = may_be_made(&dir.join(below)).unwrap_err();
            assert!(
                error.message.contains("is a file, not a directory"),
                "{error}"
            );
            assert!(!error.hint.is_some_and(|hint| hint.contains("mkdir")));
        }
        may_be_made(dir).unwrap();
        may_be_made(&dir.join("new")).unwrap();
    }

    #[test]
    fn a_symbolic_link_stays_whether_its_target_exists_or_not() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path().join("links");
        std::fs::create_dir_all(dir.join("real")).unwrap();
        symlink("second", dir.join("first")).unwrap();
        symlink("real/file", dir.join("second")).unwrap();
        for text in ["created", "replaced"] {
            write(&dir.join("first"), text.as_bytes()).unwrap();
            assert_eq!(
                std::fs::read_to_string(dir.join("real/file")).unwrap(),
                text
            );
            assert_eq!(names(&dir), ["first", "real", "second"]);
            assert_eq!(names(&dir.join("real")), ["file"]);
            assert!(dir.join("first").is_symlink() && dir.join("second").is_symlink());
        }
        symlink("loop", dir.join("loop")).unwrap();
        assert!(write(&dir.join("loop"), b"").is_err());
        symlink("missing/file", dir.join("nowhere")).unwrap();
        assert!(write(&dir.join("nowhere"), b"").is_err());
        assert!(dir.join("nowhere").is_symlink());
    }

    #[test]
    fn two_writers_of_one_file_have_a_temporary_file_each() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path().join("writers");
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("file");
        let (mut one, first) = Partial::create(&path).unwrap();
        let (mut two, second) = Partial::create(&path).unwrap();
        one.write_all(b"first, and longer").unwrap();
        two.write_all(b"second").unwrap();
        first.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"first, and longer");
        second.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(names(&dir), ["file"]);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path().join("failed");
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("file");
        let (_, partial) = Partial::create(&path).unwrap();
        // A directory appears there meanwhile.
        std::fs::create_dir(&path).unwrap();
        assert!(partial.finish().is_err());
        assert_eq!(names(&dir), ["file"]);
    }
}

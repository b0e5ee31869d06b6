//! Files that are written atomically: whole or not at all.

use std::path::{Path, PathBuf};

use crate::Error;

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
    let name = parent.display();
    let fail = Error::usage(format!("there is no directory {name}"));
    Err(fail.hint(format!("`mkdir -p {name}` makes it")))
}

/// The temporary path to write to, and the final path. They are equal for a device or a pipe, which is written to
/// directly. A symbolic link is followed: its target is replaced, not the link.
pub(crate) fn places(path: &Path) -> (PathBuf, PathBuf) {
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return (path.to_owned(), path.to_owned());
    }
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut partial = whole.clone().into_os_string();
    partial.push(".partial");
    (partial.into(), whole)
}

/// Writes a file atomically; a device or a pipe is written to directly.
///
/// # Errors
/// If its directory does not exist, or the file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    parent_exists(path)?;
    let (partial, whole) = places(path);
    let written = std::fs::write(&partial, bytes);
    let written = match partial == whole {
        true => written,
        false => written
            .and_then(|()| std::fs::rename(&partial, &whole))
            .inspect_err(|_| {
                let _ = std::fs::remove_file(&partial);
            }),
    };
    written.map_err(|e| Error::failed(format!("{}: {e}", path.display())))
}

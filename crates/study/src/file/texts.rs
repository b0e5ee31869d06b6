//! Sources of a study's texts: files, or the program itself.

use std::path::{Path, PathBuf};

use super::error::StudyError;

/// The files of a study, by the names with which they refer to each other.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    /// Their directory; messages put it before their names.
    base: PathBuf,
    /// The bundled texts; `None` if the texts are read from files.
    carried: Option<&'static [(&'static str, &'static str)]>,
    /// The arguments of `swell study` that run the study.
    pub called: String,
}

/// A path as a word of a shell command, quoted if it has special characters.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl Texts {
    /// The files in the folder of a study file, and that file's own name.
    pub(super) fn beside(study: &Path) -> (Texts, String) {
        let name = study.file_name().unwrap_or(study.as_os_str());
        let texts = Texts {
            base: study.parent().unwrap_or(Path::new("")).to_owned(),
            carried: None,
            called: format!("file {}", quoted(study)),
        };
        (texts, name.to_string_lossy().into_owned())
    }

    /// The bundled texts of the study `name`.
    pub(super) fn carried(name: &str, files: &'static [(&'static str, &'static str)]) -> Texts {
        Texts {
            base: PathBuf::from(name),
            carried: Some(files),
            called: name.to_owned(),
        }
    }

    /// The path of a file; for a bundled file, its name in messages.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// Whether a file of this name exists.
    pub(super) fn has(&self, name: &str) -> bool {
        match self.carried {
            Some(files) => files.iter().any(|f| f.0 == name),
            None => self.path(name).is_file(),
        }
    }

    /// The contents of a file.
    pub(super) fn read(&self, name: &str) -> Result<String, StudyError> {
        let path = self.path(name);
        let text = match self.carried {
            Some(files) => {
                let found = files.iter().find(|f| f.0 == name);
                let none = || std::io::Error::from(std::io::ErrorKind::NotFound);
                found.map(|f| f.1.to_owned()).ok_or_else(none)
            }
            None => std::fs::read_to_string(&path),
        };
        text.map_err(|error| StudyError::Io { path, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_command() {
        for (path, word) in [
            ("studies/mine-2/study.toml", "studies/mine-2/study.toml"),
            ("my studies/study.toml", "'my studies/study.toml'"),
            ("it's.toml", r"'it'\''s.toml'"),
            ("~/$HOME", "'~/$HOME'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}

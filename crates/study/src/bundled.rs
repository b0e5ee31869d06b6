//! Studies bundled with the program: the unmodified files of `studies/`.

use crate::file::{FileStudy, Overrides, StudyError};

/// A bundled study.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its files by name.
    pub files: &'static [(&'static str, &'static str)],
}

/// Name of the study file among its files.
pub const STUDY: &str = "study.toml";

macro_rules! bundled {
    ($name:literal: $($file:literal),+) => {
        Bundled {
            name: $name,
            files: &[$(($file, include_str!(concat!("../studies/", $name, "/", $file)))),+],
        }
    };
}

/// All bundled studies, one line for each folder of `studies/`.
pub const ALL: &[Bundled] = &[
    bundled!("atlas": "study.toml", "experiment.toml", "claims.toml"),
    bundled!("background": "study.toml", "experiment.toml", "claims.toml"),
    bundled!("buffers": "study.toml", "experiment.toml", "claims.toml"),
    bundled!("burstiness": "study.toml", "experiment.toml", "claims.toml", "ns2.csv"),
    bundled!("filler": "study.toml", "experiment.toml", "claims.toml", "ns2.csv"),
    bundled!("harpoon": "study.toml", "experiment.toml", "claims.toml"),
    bundled!("hops": "study.toml", "experiment.toml", "claims.toml"),
    bundled!("residential": "study.toml", "experiment.toml", "segment.toml", "claims.toml"),
    bundled!("router": "study.toml", "experiment.toml", "agents.toml", "claims.toml"),
    bundled!("sensitivity": "study.toml", "experiment.toml", "claims.toml"),
];

impl Bundled {
    /// The bundled study called `name`, if any.
    pub fn named(name: &str) -> Option<&'static Bundled> {
        ALL.iter().find(|b| b.name == name)
    }

    /// Reads and checks the study like any other.
    ///
    /// # Errors
    /// As [`FileStudy::read`].
    pub fn study(&self, overrides: &Overrides) -> Result<FileStudy, StudyError> {
        FileStudy::carried(self.name, self.files, STUDY, overrides)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_is_carried_is_what_the_repository_holds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        let mut folders = BTreeMap::new();
        for folder in fs::read_dir(root).unwrap() {
            let folder = folder.unwrap();
            let files = fs::read_dir(folder.path()).unwrap();
            let files = files.map(|f| {
                let path = f.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, fs::read_to_string(path).unwrap())
            });
            let name = folder.file_name().to_string_lossy().into_owned();
            folders.insert(name, files.collect::<BTreeMap<_, _>>());
        }
        let carried: BTreeMap<_, _> = ALL
            .iter()
            .map(|b| {
                let files = b.files.iter();
                let files = files.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
                (b.name.to_owned(), files.collect::<BTreeMap<_, _>>())
            })
            .collect();
        assert_eq!(carried, folders);
    }

    #[test]
    fn a_carried_study_is_the_one_on_disk() {
        for bundled in ALL {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
            let overrides = Overrides {
                quick: true,
                ..Overrides::default()
            };
            let read = FileStudy::read(&root.join(bundled.name).join(STUDY), &overrides);
            let read = read.unwrap_or_else(|e| panic!("{e}"));
            let carried = bundled.study(&overrides).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(carried.name(), bundled.name);
            // Cells have equal keys and settings, so either study can reuse the other's table of runs.
            assert!(carried.cells_by_name().eq(read.cells_by_name()));
        }
    }
}

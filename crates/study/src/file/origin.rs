//! Source texts that error messages refer to.

use std::sync::Arc;

use swell_experiment::file::{self, Problem, Problems};

/// A source text that error messages can refer to.
#[derive(Debug)]
pub(super) struct Origin {
    name: String,
    text: String,
}

/// A TOML table in a source text.
#[derive(Clone, Debug)]
pub(super) struct TableLocation {
    origin: Arc<Origin>,
    key: String,
}

impl TableLocation {
    /// What is wrong with one of its keys.
    pub(super) fn problem(&self, key: &str, why: &str) -> Problems {
        let key = format!("{}.{key}", self.key);
        self.origin.problem(&key, why, None)
    }

    /// What is wrong with one of its items, where it is a list.
    pub(super) fn item(&self, i: usize, why: &str) -> Problems {
        self.origin
            .problem(&format!("{}[{i}]", self.key), why, None)
    }
}

impl Origin {
    pub(super) fn new(name: String, text: String) -> Arc<Origin> {
        Arc::new(Origin { name, text })
    }

    /// The text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// One of its tables.
    pub(super) fn place(self: &Arc<Origin>, key: String) -> TableLocation {
        TableLocation {
            origin: Arc::clone(self),
            key,
        }
    }

    /// What is wrong with one of its keys.
    pub(super) fn problem(&self, key: &str, why: &str, hint: Option<String>) -> Problems {
        let problem: Problem = file::problem(&self.text, key, why.to_owned(), hint);
        Problems::of(&self.name, vec![problem])
    }
}

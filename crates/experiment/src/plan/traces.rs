//! A cache of captures and models.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use swell_learn::Network;

use crate::captures::{Capture, read};
use crate::kinds::Input;

/// A cache of captures and models, so that experiments that share one read it only once. A file that changes later is
/// not read again.
#[derive(Debug, Default)]
pub struct Traces {
    captures: Mutex<BTreeMap<(PathBuf, String), Capture>>,
    models: Mutex<BTreeMap<PathBuf, Input>>,
}

impl Traces {
    /// The capture in a file. `inside` lists the networks that are inside; if it is empty, the sides are inferred from
    /// the packets.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, path: &Path, inside: &[Network]) -> Result<Capture, swell_capture::Error> {
        let networks: Vec<String> = inside.iter().map(Network::to_string).collect();
        let key = (path.to_owned(), networks.join(" "));
        // Read under the lock: other threads most likely wait for the same capture.
        let mut known = (self.captures.lock()).unwrap_or_else(PoisonError::into_inner);
        if let Some(capture) = known.get(&key) {
            return Ok(capture.clone());
        }
        let capture = read(path, inside)?;
        known.insert(key, capture.clone());
        Ok(capture)
    }

    /// The model with this path; `load` reads it if it is not in the cache.
    pub(crate) fn model<E>(
        &self,
        path: PathBuf,
        load: impl FnOnce() -> Result<Input, E>,
    ) -> Result<Input, E> {
        let mut known = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = known.get(&path) {
            return Ok(model.clone());
        }
        let model = load()?;
        known.insert(path, model.clone());
        Ok(model)
    }
}

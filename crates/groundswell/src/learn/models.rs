//! Input that is a model already: models of pieces of a trace, or Harpoon's configurations.

use std::io::Read;
use std::path::PathBuf;

use swell_traffic::flowlevel::FlowModel;
use swell_traffic::{MAX_BYTES, Provenance};

use super::options::Options;
use super::source::{Opened, Progress};
use crate::Error;

/// What the files are.
pub(super) enum Input {
    /// Flow-level models.
    Models,
    /// Harpoon's configurations.
    Configurations,
}

impl Input {
    /// What this first file is; `None` if it is no model.
    pub(super) fn of(first: &Opened) -> Option<Input> {
        if FlowModel::is_one(first.head()) {
            Some(Input::Models)
        } else {
            FlowModel::is_harpoon(first.head()).then_some(Input::Configurations)
        }
    }

    /// The model that the files hold or describe together.
    pub(super) fn read(
        self,
        first: &mut Opened,
        others: &[PathBuf],
        progress: &Progress,
        name: &str,
        provenance: Provenance,
        options: &Options,
    ) -> Result<FlowModel, Error> {
        let mut all = vec![contents(first)?];
        for path in others {
            all.push(contents(&mut Opened::new(path, progress)?)?);
        }
        match self {
            Input::Models => merge(&all, name, &options.note),
            Input::Configurations => configurations(all, name, provenance, options),
        }
    }
}

/// The name and the bytes of a file. No more are read than a model may have.
fn contents(file: &mut Opened) -> Result<(String, Vec<u8>), Error> {
    let mut bytes = Vec::new();
    let read = file
        .bytes()
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes);
    read.map_err(|e| Error::usage(format!("{}: {e}", file.name)))?;
    Ok((file.name.clone(), bytes))
}

fn merge(files: &[(String, Vec<u8>)], name: &str, note: &str) -> Result<FlowModel, Error> {
    let mut whole: Option<FlowModel> = None;
    for (file, bytes) in files {
        let wrong = |e: &dyn std::fmt::Display| Error::usage(format!("{file}: {e}"));
        let piece = FlowModel::from_slice(bytes).map_err(|e| wrong(&e))?;
        match &mut whole {
            None => whole = Some(piece),
            Some(whole) => whole.merge(&piece).map_err(|e| wrong(&e))?,
        }
    }
    // `whole` is set, because there is a first file.
    let mut whole = whole.ok_or_else(|| Error::usage("no files"))?;
    whole.name = name.to_string();
    if !note.is_empty() {
        whole.provenance.note = note.to_owned();
    }
    Ok(whole)
}

fn configurations(
    files: Vec<(String, Vec<u8>)>,
    name: &str,
    provenance: Provenance,
    options: &Options,
) -> Result<FlowModel, Error> {
    let mut texts = Vec::new();
    for (file, bytes) in files {
        let text = String::from_utf8(bytes);
        texts.push(text.map_err(|e| Error::usage(format!("{file}: {e}")))?);
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    FlowModel::from_harpoon(&texts, name, provenance, options.flows.interval).map_err(Error::usage)
}

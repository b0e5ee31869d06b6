//! Input that is a model already: models of pieces of a trace, or Harpoon's configurations.

use std::path::{Path, PathBuf};

use swell_traffic::Provenance;
use swell_traffic::flowlevel::FlowModel;

use super::Options;
use super::source::Opened;
use crate::Error;

/// The model that the files hold or describe together; `None` if the first file is something else.
pub(super) fn read(
    first: &Opened,
    files: &[PathBuf],
    name: &str,
    provenance: &Provenance,
    options: &Options,
) -> Result<Option<FlowModel>, Error> {
    if FlowModel::is_one(first.head()) {
        merge(files, name).map(Some)
    } else if FlowModel::is_harpoon(first.head()) {
        configurations(files, name, provenance, options).map(Some)
    } else {
        Ok(None)
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|e| Error::usage(format!("{}: {e}", path.display())))
}

fn merge(files: &[PathBuf], name: &str) -> Result<FlowModel, Error> {
    let mut whole: Option<FlowModel> = None;
    for path in files {
        let wrong = |e: &dyn std::fmt::Display| Error::usage(format!("{}: {e}", path.display()));
        let piece = FlowModel::from_slice(&bytes(path)?).map_err(|e| wrong(&e))?;
        match &mut whole {
            None => whole = Some(piece),
            Some(whole) => whole.merge(&piece).map_err(|e| wrong(&e))?,
        }
    }
    // `whole` is set, because there is a first file.
    let mut whole = whole.ok_or_else(|| Error::usage("no files"))?;
    whole.name = name.to_string();
    Ok(whole)
}

fn configurations(
    files: &[PathBuf],
    name: &str,
    provenance: &Provenance,
    options: &Options,
) -> Result<FlowModel, Error> {
    let mut texts = Vec::new();
    for path in files {
        let text = String::from_utf8(bytes(path)?);
        texts.push(text.map_err(|e| Error::usage(format!("{}: {e}", path.display())))?);
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    FlowModel::from_harpoon(&texts, name, provenance.clone(), options.flows.interval)
        .map_err(Error::usage)
}

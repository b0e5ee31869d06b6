//! `swell learn` of what is a model already: of pieces of a trace, or Harpoon's configurations.

use std::path::{Path, PathBuf};

use swell_traffic::Provenance;
use swell_traffic::flowlevel::FlowModel;

use super::flows::{LearntFlows, Opened};
use crate::cli::FlowArgs;
use crate::fail::Fail;

/// The model that the files are or describe together; `None` if the first one is something else.
pub(super) fn read(
    first: &Opened,
    files: &[PathBuf],
    name: &str,
    provenance: &Provenance,
    args: &FlowArgs,
) -> Result<Option<LearntFlows>, Fail> {
    let model = if FlowModel::is_one(first.head()) {
        merge(files, name)?
    } else if FlowModel::is_harpoon(first.head()) {
        configurations(files, name, provenance, args)?
    } else {
        return Ok(None);
    };
    Ok(Some(LearntFlows {
        model,
        files: Vec::new(),
    }))
}

fn bytes(path: &Path) -> Result<Vec<u8>, Fail> {
    std::fs::read(path).map_err(|e| Fail::usage(format!("{}: {e}", path.display())))
}

fn merge(files: &[PathBuf], name: &str) -> Result<FlowModel, Fail> {
    let mut whole: Option<FlowModel> = None;
    for path in files {
        let wrong = |e: &dyn std::fmt::Display| Fail::usage(format!("{}: {e}", path.display()));
        let piece = FlowModel::from_slice(&bytes(path)?).map_err(|e| wrong(&e))?;
        match &mut whole {
            None => whole = Some(piece),
            Some(whole) => whole.merge(&piece).map_err(|e| wrong(&e))?,
        }
    }
    // There is a first file.
    let mut whole = whole.ok_or_else(|| Fail::usage("no files"))?;
    whole.name = name.to_string();
    Ok(whole)
}

fn configurations(
    files: &[PathBuf],
    name: &str,
    provenance: &Provenance,
    args: &FlowArgs,
) -> Result<FlowModel, Fail> {
    let mut texts = Vec::new();
    for path in files {
        let text = String::from_utf8(bytes(path)?);
        texts.push(text.map_err(|e| Fail::usage(format!("{}: {e}", path.display())))?);
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    FlowModel::from_harpoon(&texts, name, provenance.clone(), args.interval).map_err(Fail::usage)
}

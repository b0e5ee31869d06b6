//! Flow-level models of backgrounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use swell_traffic::flowlevel::{FlowModel, Plan, Playback};

use super::{Complaint, LoadedFlowModel};
use crate::bundled;
use crate::file::Sessions;
use crate::hash::Hash;
use crate::store::ModelFacts;

/// Reads the model and checks that it can generate traffic. The error is the wrong key, and the reason.
pub(super) fn load(
    sessions: &Sessions,
    base: &Path,
) -> Result<LoadedFlowModel, (&'static str, Complaint)> {
    let name = &sessions.model;
    let (path, bytes) = match bundled::flow_model(name) {
        Some(bytes) => (PathBuf::from(format!("{name}.json.zst")), bytes.to_vec()),
        None => {
            let path = base.join(name);
            let bytes = std::fs::read(&path).map_err(|e| {
                let known: Vec<&str> = bundled::flow_models().collect();
                let hint = format!(
                    "`swell learn FLOWFILE` makes a flow-level model; bundled: {}",
                    known.join(", ")
                );
                ("model", (format!("{}: {e}", path.display()), Some(hint)))
            })?;
            (path, bytes)
        }
    };
    let model = FlowModel::from_slice(&bytes).map_err(|e| {
        let hint = "a model learnt from packets is played by kind = \"learnt\"";
        ("model", (format!("model `{name}`: {e}"), Some(hint.into())))
    })?;
    let playback = Playback {
        load: sessions.sessions.unwrap_or(1.0),
        ..playback(sessions)
    };
    Plan::new(&model, &playback).map_err(|e| ("model", (format!("model `{name}`: {e}"), None)))?;
    let facts = ModelFacts {
        name: model.name.clone(),
        source: match bundled::flow_model(name) {
            Some(_) => format!("bundled {name}"),
            None => path.display().to_string(),
        },
        hash: Hash::new().part(&bytes).hex(),
        note: model.provenance.note.clone(),
        warnings: model.warnings.clone(),
    };
    let file_name = path.file_name().map_or_else(PathBuf::new, PathBuf::from);
    Ok(LoadedFlowModel {
        model: Arc::new(model),
        facts,
        copy: (file_name.display().to_string(), bytes),
    })
}

/// The playback parameters of the file, except the load.
pub(super) fn playback(sessions: &Sessions) -> Playback {
    Playback {
        load: 1.0,
        compression: sessions.compression,
        sizes: sessions.sizes,
        gaps: sessions.gaps,
        first: sessions.first as usize,
        cycle: true,
        ..Playback::default()
    }
}

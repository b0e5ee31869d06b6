//! How to learn, what comes of it, and the words that all kinds of input share.

use std::path::{Path, PathBuf};

use swell_base::Warning;
use swell_capture::flow::Metering;
use swell_traffic::{Provenance, flowlevel};

use super::counts::FileCounts;
use crate::Error;
use crate::model::AnyModel;

/// How to learn.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the model. Default: the first file's, up to its first dot.
    pub name: Option<String>,
    /// What the trace is and its licence, in free text; kept in the model.
    pub note: String,
    /// How captures are interpreted.
    pub read_as: ReadAs,
    /// Keep the SHA-256 of each file in the model.
    pub digest: bool,
    /// How a model is made from packets. Its name and provenance are ignored.
    pub packets: swell_learn::Options,
    /// How a model is made from flow records.
    pub flows: flowlevel::Options,
    /// How packets are metered into flow records.
    pub metering: Metering,
    /// Also write the flow records to this IPFIX file (RFC 5655).
    pub ipfix: Option<PathBuf>,
    /// The only level of model that is wanted. Files that give the other are refused before they are read to their end.
    pub only: Option<Level>,
}

/// What a model is learnt from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Packets.
    Packets,
    /// Flow records.
    Flows,
}

/// How a capture is interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAs {
    /// Flow records if it holds flow exports, else packets.
    #[default]
    Detect,
    /// Flow records: packets are metered.
    Flows,
    /// Packets, even if they are flow exports.
    Packets,
}

/// A model, and what it was made from.
#[derive(Clone, Debug)]
pub struct Learnt {
    /// The model.
    pub model: AnyModel,
    /// What was read from each file; empty if the files were models or configurations.
    pub files: Vec<FileCounts>,
    /// Why the IPFIX file was not written, if it could not be.
    pub unwritten: Option<Error>,
}

/// How to use a trace without a model of it.
pub(super) const REPLAY: &str =
    "a background of kind \"replay\" sends the packets of a trace as they are";

pub(super) fn provenance(files: &[PathBuf], note: &str) -> Provenance {
    Provenance {
        made_by: format!("swell {}", env!("CARGO_PKG_VERSION")),
        sources: files.iter().map(|p| file_name(p)).collect(),
        note: note.to_owned(),
        ..Provenance::default()
    }
}

/// A warning about one of several files, with its name.
pub(super) fn in_file(name: &str, doubt: Warning) -> Warning {
    Warning {
        message: format!("{name}: {}", doubt.message),
        ..doubt
    }
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || "standard input".into(),
        |n| n.to_string_lossy().into_owned(),
    )
}

/// The file name up to its first dot; `model` for standard input.
pub fn stem(path: &Path) -> String {
    let name = file_name(path);
    let stem = name.split('.').next().unwrap_or("");
    if stem.is_empty() || stem == "-" {
        "model".into()
    } else {
        stem.into()
    }
}

//! Why a model file could not be read.

use super::format::{FORMAT, MAX_BYTES, OLDEST, VERSION};

/// Why a model file could not be read, or a model is inconsistent.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Not JSON, or JSON of another structure.
    #[error("line {line}, column {column}: {reason}")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1; 0 at the very end of a line.
        column: usize,
        /// What was expected.
        reason: String,
    },
    /// A JSON object of another kind.
    #[error("this is not a traffic model: its `format` is {0}, not \"{FORMAT}\"")]
    Format(String),
    /// A model of an unsupported version.
    #[error("`version` is {0}; this program reads {OLDEST} to {VERSION}")]
    Version(String),
    /// An impossible value.
    #[error("{at}: {reason}")]
    Invalid {
        /// JSON path.
        at: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Broken zstd data.
    #[error("zstd: {0}")]
    Compression(String),
    /// Larger than any model should be.
    #[error("larger than {MAX_BYTES} bytes")]
    TooLarge,
}

impl ModelError {
    pub(crate) fn invalid(at: impl Into<String>, reason: impl Into<String>) -> ModelError {
        ModelError::Invalid {
            at: at.into(),
            reason: reason.into(),
        }
    }
}

impl From<serde_json::Error> for ModelError {
    fn from(e: serde_json::Error) -> ModelError {
        let text = e.to_string();
        // serde_json appends the position, but our message begins with it.
        let reason = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(r, _)| r);
        ModelError::Json {
            line: e.line(),
            column: e.column(),
            reason: reason.to_string(),
        }
    }
}

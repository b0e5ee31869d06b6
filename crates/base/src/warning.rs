//! Doubts that travel with results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Code;

/// How much a doubt weighs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Check before trusting the result.
    Warning,
}

/// A doubt about a model or a result: what is doubtful, the numbers, and what could be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A stable name, in `kebab-case`, that programs can match: `few-samples`, `no-handshake`.
    #[schemars(with = "String")]
    pub code: Code,
    /// How much it weighs.
    pub severity: Severity,
    /// One sentence with the numbers in it.
    pub message: String,
}

impl Warning {
    /// A doubt to check before trusting the result.
    #[expect(
        clippy::self_named_constructors,
        reason = "named after the severity, like `note`"
    )]
    pub fn warning(code: Code, message: impl Into<String>) -> Warning {
        Warning {
            code,
            severity: Severity::Warning,
            message: message.into(),
        }
    }
    /// A fact worth knowing.
    pub fn note(code: Code, message: impl Into<String>) -> Warning {
        Warning {
            code,
            severity: Severity::Note,
            message: message.into(),
        }
    }
}

//! Lines that are no records.

use crate::flow::FlowSkip;

/// Why a line is no record.
pub(super) struct Wrong {
    pub reason: FlowSkip,
    /// The column with the value that does not read.
    pub column: Option<Box<str>>,
}

impl From<FlowSkip> for Wrong {
    fn from(reason: FlowSkip) -> Wrong {
        Wrong {
            reason,
            column: None,
        }
    }
}

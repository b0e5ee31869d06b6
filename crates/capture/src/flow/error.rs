//! What can be wrong with a file of flow records, and where.

use std::fmt;

use crate::{Error, Problem};

/// A file of flow records could not be read further.
pub type FlowError = Error<FlowProblem>;

/// What is wrong with a file of flow records.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlowProblem {
    /// A problem that any file can have.
    #[error(transparent)]
    File(#[from] Problem),
    /// None of the supported formats.
    #[error(
        "neither flow records (NetFlow, IPFIX or sFlow messages, nfdump, conn.log, CSV) nor a capture{}",
        looks(.0)
    )]
    NotFlowRecords(Option<&'static str>),
    /// An nfdump file whose blocks are compressed in an unsupported way.
    #[error(
        "nfdump blocks under {0} are not read; `nfdump -r FILE -w NEW -z=lzo` writes them anew"
    )]
    NfdumpPacking(&'static str),
    /// An nfdump block with an impossible length.
    #[error("the block says it is {0} bytes long, which no block is: the file is damaged here")]
    Block(u64),
    /// An nfdump block that cannot be decompressed.
    #[error("the block of {0} bytes cannot be decompressed: the file is damaged here")]
    Unpack(u64),
    /// The file continues with something that cannot be a message.
    #[error(
        "what begins here is no export message (its first bytes are {0:#010x}): the file is \
         damaged here"
    )]
    Message(u32),
}

fn looks(like: &Option<&'static str>) -> String {
    like.map_or(String::new(), |what| format!(" (it looks like {what})"))
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_all = match &self.problem {
            FlowProblem::File(problem) => problem.is_of_all(self.offset),
            FlowProblem::NotFlowRecords(_) => true,
            _ => false,
        };
        self.write(f, of_all, "", "flow record")
    }
}

impl std::error::Error for FlowError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            FlowProblem::File(problem) => std::error::Error::source(problem),
            _ => None,
        }
    }
}

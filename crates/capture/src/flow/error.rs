//! What can be wrong with a file of flow records, and where.

use std::fmt;

use crate::Problem;

/// A file of flow records could not be read further. Everything that was read before stays valid.
///
/// Displayed as one sentence for the user: file, byte offset, reason, and how much was read before.
#[derive(Debug)]
pub struct FlowError {
    /// The file as the user named it, if it has a name.
    pub file: Option<Box<str>>,
    /// Byte offset of the data that could not be read, from the beginning of the data. For compressed input this
    /// counts uncompressed bytes.
    pub offset: u64,
    /// Whether `offset` counts bytes after decompression.
    pub uncompressed: bool,
    /// Flow records that were read before.
    pub records: u64,
    /// The reason.
    pub problem: FlowProblem,
}

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
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        let whole = match self.problem {
            FlowProblem::File(Problem::Empty | Problem::Open(_))
            | FlowProblem::NotFlowRecords(_) => true,
            FlowProblem::File(Problem::Read(_)) => self.offset == 0,
            _ => false,
        };
        if whole {
            return write!(f, "{}", self.problem);
        }
        write!(f, "at byte {}", self.offset)?;
        if self.uncompressed {
            f.write_str(" of the uncompressed data")?;
        }
        write!(f, ": {}; ", self.problem)?;
        match self.records {
            0 => f.write_str("no flow record was read before"),
            1 => f.write_str("the flow record before it was read"),
            n => write!(f, "the {n} flow records before it were read"),
        }
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

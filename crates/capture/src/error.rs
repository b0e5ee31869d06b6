//! What can be wrong with a trace file, and where.

use std::fmt;
use std::io;

/// A trace, or a file of flow records, could not be read further. Everything that was read before stays valid.
///
/// Displayed as one sentence for the user: file, byte offset, packet number, reason, and how much was read before.
#[derive(Debug)]
pub struct Error<P = Problem> {
    /// The file as the user named it, if it has a name.
    pub file: Option<Box<str>>,
    /// Byte offset of the record that could not be read, from the beginning of the data. For compressed input this
    /// counts uncompressed bytes.
    pub offset: u64,
    /// Whether `offset` counts bytes after decompression.
    pub uncompressed: bool,
    /// Records that were read before: of packets, or of flows.
    pub records: u64,
    /// The reason.
    pub problem: P,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is no data at all.
    #[error("the file is empty")]
    Empty,
    /// Neither pcap, pcapng nor snoop.
    #[error("not a pcap, pcapng or snoop capture{}", looks(.0))]
    NotACapture(Option<&'static str>),
    /// The file could not be opened.
    #[error("cannot be opened: {0}")]
    Open(#[source] io::Error),
    /// The operating system refused to read on.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The compressed stream is damaged, ends early, or asks for too much memory.
    #[error("the {format} stream cannot be decompressed further: {source}")]
    Decompress {
        /// The compression: gzip, zstd, xz.
        format: &'static str,
        /// What the decompressor says.
        #[source]
        source: io::Error,
    },
    /// The data ends in the middle of a structure.
    #[error("the file ends inside a {what}: {needed} bytes needed, {left} left")]
    CutShort {
        /// The structure.
        what: &'static str,
        /// Its length in bytes, as far as it is known.
        needed: u64,
        /// Bytes that are left in the file.
        left: u64,
    },
    /// A file format version this crate does not know.
    #[error("{format} version {major}.{minor} is not supported")]
    Version {
        /// The file format.
        format: &'static str,
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
    /// A record longer than the file allows: the file is damaged here.
    #[error(
        "the record says {captured} bytes were captured, but the snap length is {snaplen} and no \
         more than {limit} are believed: the file is damaged here"
    )]
    RecordTooLong {
        /// Captured length the record gives.
        captured: u32,
        /// Snap length the file header gives.
        snaplen: u32,
        /// The largest captured length accepted.
        limit: u32,
    },
    /// A snoop record whose total length is too small for its packet.
    #[error("the record says it is {record} bytes long with {captured} bytes captured")]
    RecordLength {
        /// Total record length.
        record: u32,
        /// Captured length.
        captured: u32,
    },
    /// A pcapng block length that is too small, too large or not a multiple of four.
    #[error("the block (type {kind:#010x}) says it is {length} bytes long, which no block can be")]
    BlockLength {
        /// Block type.
        kind: u32,
        /// Length it gives.
        length: u32,
    },
    /// A pcapng block whose two length fields differ.
    #[error("the block (type {kind:#010x}) is {head} bytes long at its head but {tail} at its end")]
    BlockTrailer {
        /// Block type.
        kind: u32,
        /// Length at the beginning.
        head: u32,
        /// Length at the end.
        tail: u32,
    },
    /// A pcapng section header without a valid byte-order magic.
    #[error("the section header's byte-order magic is {0:#010x}")]
    ByteOrder(u32),
    /// More pcapng interfaces than any real capture has.
    #[error("more than {0} interfaces are described")]
    TooManyInterfaces(usize),
}

fn looks(like: &Option<&'static str>) -> String {
    like.map_or(String::new(), |l| format!(": looks like {l}"))
}

impl Problem {
    /// Whether the problem, met at `offset`, concerns the whole file: an offset would only confuse.
    pub(crate) fn is_of_all(&self, offset: u64) -> bool {
        match self {
            Problem::Empty | Problem::NotACapture(_) | Problem::Open(_) => true,
            Problem::Read(_) => offset == 0,
            _ => false,
        }
    }
}

impl<P: fmt::Display> Error<P> {
    /// Writes the sentence. `at` follows the offset, which is left out if the problem concerns the whole file; records
    /// are called `record`.
    pub(crate) fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        of_all: bool,
        at: &str,
        record: &str,
    ) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if of_all {
            return write!(f, "{}", self.problem);
        }
        write!(f, "at byte {}", self.offset)?;
        if self.uncompressed {
            f.write_str(" of the uncompressed data")?;
        }
        write!(f, "{at}: {}; ", self.problem)?;
        match self.records {
            0 => write!(f, "no {record} was read before"),
            1 => write!(f, "the {record} before it was read"),
            n => write!(f, "the {n} {record}s before it were read"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = format!(" (packet {})", self.records + 1);
        self.write(f, self.problem.is_of_all(self.offset), &at, "packet")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Open(e) | Problem::Read(e) | Problem::Decompress { source: e, .. } => Some(e),
            _ => None,
        }
    }
}

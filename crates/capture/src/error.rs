//! What can be wrong with a file, and where.

use std::fmt;
use std::io;

/// A trace could not be read further. Everything read before stays valid.
///
/// Displays as one sentence for a person: file, byte offset, packet number, reason, and how much
/// was read before.
#[derive(Debug)]
pub struct Error {
    /// The file as the user named it, where it has a name.
    pub file: Option<Box<str>>,
    /// Where in the data, in bytes from its beginning: of the record that could not be read. For
    /// compressed input this counts uncompressed bytes.
    pub offset: u64,
    /// Whether `offset` counts bytes after decompression.
    pub uncompressed: bool,
    /// Packet records read before.
    pub records: u64,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No data at all.
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
    /// The data ends inside something.
    #[error("the file ends inside a {what}: {needed} bytes needed, {left} left")]
    CutShort {
        /// Inside what.
        what: &'static str,
        /// Its length in bytes, as far as known.
        needed: u64,
        /// Bytes left in the file.
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
    /// A snoop record whose total length cannot hold its packet.
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
        /// Length at the head.
        head: u32,
        /// Length at the end.
        tail: u32,
    },
    /// A pcapng section header without a valid byte-order magic.
    #[error("the section header's byte-order magic is {0:#010x}")]
    ByteOrder(u32),
    /// More pcapng interfaces than any capture has.
    #[error("more than {0} interfaces are described")]
    TooManyInterfaces(usize),
}

fn looks(like: &Option<&'static str>) -> String {
    like.map_or(String::new(), |l| format!(": looks like {l}"))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        // About the whole file: a place in it would only confuse.
        let whole = match self.problem {
            Problem::Empty | Problem::NotACapture(_) | Problem::Open(_) => true,
            Problem::Read(_) => self.offset == 0,
            _ => false,
        };
        if whole {
            return write!(f, "{}", self.problem);
        }
        write!(f, "at byte {}", self.offset)?;
        if self.uncompressed {
            f.write_str(" of the uncompressed data")?;
        }
        write!(f, " (packet {}): {}; ", self.records + 1, self.problem)?;
        match self.records {
            0 => f.write_str("no packet was read before"),
            1 => f.write_str("the packet before it was read"),
            n => write!(f, "the {n} packets before it were read"),
        }
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

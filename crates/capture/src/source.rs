//! Decompresses input, whose format is recognised by its first bytes.

use std::io::{self, Cursor, Read};

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    Plain,
    /// gzip (RFC 1952), also with several members.
    Gzip,
    /// Zstandard (RFC 8878), also with several frames; windows of up to 128 MiB.
    Zstd,
    /// xz, also with several streams; decoders of up to 256 MiB.
    Xz,
}

impl Compression {
    /// The name, as in the usual description of the file type.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
        }
    }

    /// Recognises the compression from a file's first bytes.
    pub(crate) fn sniff(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            // A skippable frame may come first (RFC 8878 section 3.1.2).
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0x00, ..] => Compression::Xz,
            _ => Compression::Plain,
        }
    }
}

/// Number of bytes needed to recognise a compression.
const MAGIC: usize = 6;

/// Bytes that a decoder requests from the file at once.
const CHUNK: usize = 128 * 1024;

/// zstd's default limit for decoders: windows of 2^27 bytes.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Memory limit for xz: over three times what `xz -9` needs.
const XZ_MEMORY: u64 = 256 << 20;

/// Recognises the compression from the first bytes and adds the matching decoder.
///
/// # Errors
/// If the first bytes cannot be read, or the decoder cannot be set up.
pub fn open<'a>(
    mut source: impl Read + Send + 'a,
) -> io::Result<(Compression, Box<dyn Read + Send + 'a>)> {
    let mut head = Vec::with_capacity(MAGIC);
    source.by_ref().take(MAGIC as u64).read_to_end(&mut head)?;
    let compression = Compression::sniff(&head);
    let whole = Cursor::new(head).chain(source);
    let buffered = |r| io::BufReader::with_capacity(CHUNK, r);
    Ok((
        compression,
        match compression {
            Compression::Plain => Box::new(whole),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(whole))),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered(whole))?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(
                    XZ_MEMORY,
                    liblzma::stream::CONCATENATED,
                )?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(
                    buffered(whole),
                    stream,
                ))
            }
        },
    ))
}

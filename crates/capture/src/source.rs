//! Compressed input, recognised by its first bytes.

use std::io::{self, Cursor, Read};

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    Plain,
    /// gzip (RFC 1952), several members allowed.
    Gzip,
    /// Zstandard (RFC 8878), several frames allowed, windows of up to 128 MiB.
    Zstd,
    /// xz, several streams allowed, decoders of up to 256 MiB.
    Xz,
}

impl Compression {
    /// The name, as in `file.gz`'s usual description.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
        }
    }

    /// What a file's first bytes say.
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

/// Enough of the beginning to know a compression by.
const MAGIC: usize = 6;

/// What a decoder asks of the file at once.
const CHUNK: usize = 128 * 1024;

/// zstd's own limit for decoders by default: windows of 2^27 bytes.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Over three times what `xz -9` needs.
const XZ_MEMORY: u64 = 256 << 20;

/// Looks at the first bytes and puts the decoder they ask for in front.
///
/// # Errors
/// What the source said while the first bytes were read, or the decoder when it was set up.
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

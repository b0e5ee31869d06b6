//! The model's file: one JSON object, plain or zstd-compressed. `docs/model.md` describes every field.

use std::io::{self, Read, Write};

use crate::Model;

mod error;
mod format;
mod read;
mod write;

pub use error::ModelError;
pub use format::{FORMAT, MAX_BYTES, VERSION};
pub(crate) use write::text_of;

/// First bytes of a zstd frame (RFC 8878 section 3.1.1).
pub(crate) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Archives are written once and read often.
const ZSTD_LEVEL: i32 = 19;

impl Model {
    /// Reads a model, plain or zstd-compressed, and checks everything in it. Never panics.
    ///
    /// # Errors
    /// Says where (line and column, or the JSON path such as `sessions[3].class`) and why.
    pub fn from_slice(file: &[u8]) -> Result<Model, ModelError> {
        if file.starts_with(&ZSTD_MAGIC) {
            let mut text = Vec::new();
            zstd::stream::read::Decoder::with_buffer(file)
                .and_then(|d| d.take(MAX_BYTES as u64 + 1).read_to_end(&mut text))
                .map_err(|e| ModelError::Compression(e.to_string()))?;
            return read::parse(&text);
        }
        read::parse(file)
    }

    /// The model as JSON text, one session per line. Times are rounded to whole microseconds. Equal models
    /// give equal bytes.
    pub fn to_json(&self) -> String {
        write::text(self)
    }

    /// The model as zstd-compressed JSON.
    ///
    /// # Errors
    /// If the text is longer than [`MAX_BYTES`], and those of the compressor (out of memory).
    pub fn to_zstd(&self) -> io::Result<Vec<u8>> {
        zstd::bulk::compress(readable(&self.to_json())?, ZSTD_LEVEL)
    }

    /// Writes the model as JSON, zstd-compressed if `compress`.
    ///
    /// # Errors
    /// If the text is longer than [`MAX_BYTES`], because no reader would take it; then nothing is written. And
    /// those of the writer.
    pub fn write(&self, mut writer: impl Write, compress: bool) -> io::Result<()> {
        if compress {
            writer.write_all(&self.to_zstd()?)
        } else {
            writer.write_all(readable(&self.to_json())?)
        }
    }

    /// Makes the checks of a reader: indices, order, ranges. A model that passes can be written, read back
    /// and played.
    ///
    /// # Errors
    /// The first error found, with its JSON path.
    pub fn check(&self) -> Result<(), ModelError> {
        read::check(self)
    }
}

/// The text of a model, if it may be read again.
fn readable(text: &str) -> io::Result<&[u8]> {
    match text.len() {
        0..=MAX_BYTES => Ok(text.as_bytes()),
        long => Err(io::Error::other(format!(
            "the model has {} MiB of text, and models of more than {} MiB are not read: a smaller `--budget` keeps \
             fewer sessions",
            long.div_ceil(1 << 20),
            MAX_BYTES >> 20
        ))),
    }
}

#[cfg(test)]
mod tests;

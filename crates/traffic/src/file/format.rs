//! What is fixed about the file.

/// The value of the file's `format` key.
pub const FORMAT: &str = "swell-traffic-model";
/// The version that this program writes.
pub const VERSION: u64 = 3;
/// The oldest version that it reads. A warning in the model says what such a file lacks.
pub const OLDEST: u64 = 2;
/// Largest accepted file, in bytes after decompression. A model should be under 1 MB. Reading needs at
/// most some thirty times the text in memory, whatever its content.
pub const MAX_BYTES: usize = 32 << 20;

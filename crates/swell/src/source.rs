//! The bytes of a trace on their way to the reader: counted for the progress bar and hashed for the
//! model's provenance.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;
use sha2::{Digest, Sha256};

/// A file, or standard input for `-`. The clone that the reader takes and this one are the same bytes.
#[derive(Clone)]
pub(crate) struct Source(Arc<Mutex<Hashed>>);

struct Hashed {
    bytes: Box<dyn Read + Send>,
    hash: Sha256,
    bar: ProgressBar,
}

impl Source {
    pub(crate) fn open(path: &Path, bar: &ProgressBar) -> io::Result<Source> {
        let bytes: Box<dyn Read + Send> = if path.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path)?)
        };
        Ok(Source(Arc::new(Mutex::new(Hashed {
            bytes,
            hash: Sha256::new(),
            bar: bar.clone(),
        }))))
    }

    /// SHA-256 of all bytes, hex; reads what the reader left, as it does behind damage.
    pub(crate) fn digest(self) -> io::Result<String> {
        let mut hashed = self.lock();
        io::copy(&mut *hashed, &mut io::sink())?;
        let digest = std::mem::take(&mut hashed.hash).finalize();
        let mut hex = String::with_capacity(64);
        for byte in digest {
            let _ = write!(hex, "{byte:02x}");
        }
        Ok(hex)
    }

    /// The bytes are read by one thread after the other: a panic in between ends the program.
    fn lock(&self) -> MutexGuard<'_, Hashed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.lock().read(buffer)
    }
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.bytes.read(buffer)?;
        self.hash.update(&buffer[..n]);
        self.bar.inc(n as u64);
        Ok(n)
    }
}

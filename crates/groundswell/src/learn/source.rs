//! The bytes of a trace on their way to the reader: counted for whoever shows progress, and hashed for the model's
//! provenance.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use sha2::{Digest, Sha256};
use swell_capture::flow::ENOUGH_TO_TELL;

use crate::Error;

/// Gets the number of bytes that were just read.
pub(super) type Progress = Arc<dyn Fn(u64) + Send + Sync>;

/// Blocks on their way to the hashing thread: a few, so that neither waits for the other's every step.
const BLOCKS: usize = 8;

/// A file, or standard input for `-`. The clone that the reader takes and this one are the same bytes.
#[derive(Clone)]
pub(super) struct Source(Arc<Mutex<Hashed>>);

struct Hashed {
    bytes: Box<dyn Read + Send>,
    /// To a thread of its own, for hashing takes as long as reading and learning together.
    blocks: SyncSender<Vec<u8>>,
    hash: JoinHandle<Sha256>,
    progress: Progress,
}

impl Source {
    fn open(path: &Path, progress: &Progress) -> io::Result<Source> {
        let bytes: Box<dyn Read + Send> = if path.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path)?)
        };
        let (blocks, to_hash) = sync_channel::<Vec<u8>>(BLOCKS);
        let hash = thread::spawn(move || {
            let mut hash = Sha256::new();
            to_hash.iter().for_each(|block| hash.update(&block));
            hash
        });
        Ok(Source(Arc::new(Mutex::new(Hashed {
            bytes,
            blocks,
            hash,
            progress: Arc::clone(progress),
        }))))
    }

    /// SHA-256 of all bytes, hex; reads what the reader left, as it does behind damage. The reader
    /// must be gone.
    pub(super) fn digest(self) -> io::Result<String> {
        let mut hashed = Arc::into_inner(self.0)
            .expect("the reader, which held the only other handle, is gone")
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        io::copy(&mut hashed, &mut io::sink())?;
        let Hashed { blocks, hash, .. } = hashed;
        drop(blocks);
        let hash = hash.join().expect("hashing does not panic");
        let mut hex = String::with_capacity(64);
        for byte in hash.finalize() {
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
        // It ends when this sender does.
        let _ = self.blocks.send(buffer[..n].to_vec());
        (self.progress)(n as u64);
        Ok(n)
    }
}

/// A file of which the beginning has been looked at.
pub(super) struct Opened {
    pub name: String,
    pub source: Source,
    head: Vec<u8>,
}

impl Opened {
    pub(super) fn new(path: &Path, progress: &Progress) -> Result<Opened, Error> {
        let name = path.display().to_string();
        let failed = |e: io::Error| Error::usage(format!("{name}: {e}"));
        let source = Source::open(path, progress).map_err(failed)?;
        let mut head = Vec::new();
        source
            .clone()
            .take(ENOUGH_TO_TELL as u64)
            .read_to_end(&mut head)
            .map_err(failed)?;
        Ok(Opened { name, source, head })
    }

    /// Its beginning.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// All its bytes, those looked at included.
    pub(super) fn bytes(&mut self) -> impl Read + Send + 'static {
        Cursor::new(std::mem::take(&mut self.head)).chain(self.source.clone())
    }
}

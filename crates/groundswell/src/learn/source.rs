//! The byte stream of a trace: counts the bytes for progress reports and hashes them for the model's provenance.

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

/// Called with the number of bytes just read.
pub(super) type Progress = Arc<dyn Fn(u64) + Send + Sync>;

/// Capacity of the channel to the hashing thread, in blocks: enough that neither side waits for every block.
const BLOCKS: usize = 8;

/// A file, or standard input for `-`. Clones share one stream: the reader holds one of them.
#[derive(Clone)]
pub(super) struct Source(Arc<Mutex<Hashed>>);

struct Hashed {
    bytes: Box<dyn Read + Send>,
    /// To the hashing thread. Hashing takes as long as reading and learning together, so it runs in parallel.
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

    /// SHA-256 of all bytes, in hex. Reads what the reader left unread, for example after damage. The reader must have
    /// been dropped.
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

    /// Only one thread reads at a time, and a panic ends the program, so a poisoned lock is safe to use.
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
        // The hashing thread ends only when this sender is dropped.
        let _ = self.blocks.send(buffer[..n].to_vec());
        (self.progress)(n as u64);
        Ok(n)
    }
}

/// A file whose first bytes have been read to detect its format.
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

    /// Its first bytes.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// All its bytes, including the first ones.
    pub(super) fn bytes(&mut self) -> impl Read + Send + 'static {
        Cursor::new(std::mem::take(&mut self.head)).chain(self.source.clone())
    }
}

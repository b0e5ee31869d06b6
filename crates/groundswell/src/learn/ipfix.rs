//! Writes the flow records that were read, metered or collected to an IPFIX file beside the model.

use std::fs::File;
use std::path::Path;

use swell_capture::flow::{FlowRecord, IpfixWriter};

use crate::Error;
use crate::files::{Partial, parent_exists};

/// The file, if one was requested. It gets its final name only when it is complete. Where it cannot be written, as on a
/// full disk, learning goes on without it.
pub(super) enum Ipfix {
    /// No file was requested.
    None,
    Open(Open),
    Failed(Error),
}

pub(super) struct Open {
    partial: Partial,
    writer: IpfixWriter<File>,
}

impl Ipfix {
    pub(super) fn new(path: Option<&Path>) -> Result<Ipfix, Error> {
        let Some(path) = path else {
            return Ok(Ipfix::None);
        };
        parent_exists(path)?;
        let created = Partial::create(path);
        let (file, partial) =
            created.map_err(|e| Error::failed(format!("{}: {e}", path.display())))?;
        Ok(Ipfix::Open(Open {
            partial,
            writer: IpfixWriter::new(file),
        }))
    }

    /// Writes a record. An error is that of [`Ipfix::finish`]; what was written is discarded.
    pub(super) fn record(&mut self, record: &FlowRecord) {
        if let Ipfix::Open(open) = self
            && let Err(error) = open.writer.record(record)
        {
            *self = Ipfix::Failed(open.failed(&error));
        }
    }

    /// Completes the file, or returns why there is none.
    pub(super) fn finish(self) -> Option<Error> {
        match self {
            Ipfix::None => None,
            Ipfix::Open(open) => open.finish().err(),
            Ipfix::Failed(error) => Some(error),
        }
    }
}

impl Open {
    fn failed(&self, error: &dyn std::fmt::Display) -> Error {
        Error::failed(format!("{}: {error}", self.partial.whole.display()))
    }

    fn finish(self) -> Result<(), Error> {
        let whole = self.partial.whole.display().to_string();
        let failed = |e: &dyn std::fmt::Display| Error::failed(format!("{whole}: {e}"));
        self.writer.finish().map_err(|e| failed(&e))?;
        self.partial.finish().map_err(|e| failed(&e))
    }
}

#[cfg(test)]
mod tests {
    use swell_capture::flow::FlowReader;

    use super::*;

    /// The device is full from the first byte on (full(4)).
    #[test]
    fn a_full_disk_is_told_at_the_end() {
        let mut written = Ipfix::new(Some(Path::new("/dev/full"))).unwrap();
        let table = b"start,src,dst,bytes\n1,10.0.0.1,10.0.0.2,50\n";
        let mut reader = FlowReader::new(&table[..]).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        for _ in 0..100_000 {
            written.record(&record);
        }
        let error = written.finish().unwrap();
        assert!(error.message.contains("No space left"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_finished_is_discarded() {
        let scratch = swell_host::scratch::Scratch::new().unwrap();
        let path = scratch.path().join("x.ipfix");
        let written = Ipfix::new(Some(&path)).unwrap();
        let left = || std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(left(), 1);
        drop(written);
        assert_eq!(left(), 0);
    }
}

//! Writes the flow records that were read, metered or collected to an IPFIX file beside the model.

use std::fs::File;
use std::path::{Path, PathBuf};

use swell_capture::flow::{FlowRecord, IpfixWriter};

use crate::{Error, files};

/// The file, if one was requested. It gets its final name only when it is complete.
pub(super) struct Ipfix(Option<Open>);

struct Open {
    path: PathBuf,
    partial: PathBuf,
    writer: IpfixWriter<File>,
}

impl Ipfix {
    pub(super) fn new(path: Option<&Path>) -> Result<Ipfix, Error> {
        let Some(path) = path else {
            return Ok(Ipfix(None));
        };
        files::parent_exists(path)?;
        let (partial, path) = files::places(path);
        let file = File::create(&partial);
        let file = file.map_err(|e| Error::failed(format!("{}: {e}", partial.display())))?;
        Ok(Ipfix(Some(Open {
            path,
            partial,
            writer: IpfixWriter::new(file),
        })))
    }

    pub(super) fn record(&mut self, record: &FlowRecord) -> Result<(), Error> {
        let Some(open) = &mut self.0 else {
            return Ok(());
        };
        let partial = &open.partial;
        let written = open.writer.record(record);
        written.map_err(|e| Error::failed(format!("{}: {e}", partial.display())))
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        let Some(open) = self.0 else { return Ok(()) };
        let failed =
            |e: &dyn std::fmt::Display| Error::failed(format!("{}: {e}", open.path.display()));
        open.writer.finish().map_err(|e| failed(&e))?;
        if open.partial == open.path {
            return Ok(());
        }
        std::fs::rename(&open.partial, &open.path).map_err(|e| failed(&e))
    }
}

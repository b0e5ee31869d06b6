//! Writes the flow records that were read, metered or collected to an IPFIX file beside the model.

use std::fs::File;
use std::path::Path;

use swell_capture::flow::{FlowRecord, IpfixWriter};

use crate::Error;
use crate::files::{Partial, parent_exists};

/// The file, if one was requested. It gets its final name only when it is complete.
pub(super) struct Ipfix(Option<Open>);

struct Open {
    partial: Partial,
    writer: IpfixWriter<File>,
}

impl Ipfix {
    pub(super) fn new(path: Option<&Path>) -> Result<Ipfix, Error> {
        let Some(path) = path else {
            return Ok(Ipfix(None));
        };
        parent_exists(path)?;
        let created = Partial::create(path);
        let (file, partial) =
            created.map_err(|e| Error::failed(format!("{}: {e}", path.display())))?;
        Ok(Ipfix(Some(Open {
            partial,
            writer: IpfixWriter::new(file),
        })))
    }

    pub(super) fn record(&mut self, record: &FlowRecord) -> Result<(), Error> {
        let Some(open) = &mut self.0 else {
            return Ok(());
        };
        let at = &open.partial.at;
        let written = open.writer.record(record);
        written.map_err(|e| Error::failed(format!("{}: {e}", at.display())))
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        let Some(open) = self.0 else { return Ok(()) };
        let whole = &open.partial.whole;
        let failed = |e: &dyn std::fmt::Display| Error::failed(format!("{}: {e}", whole.display()));
        open.writer.finish().map_err(|e| failed(&e))?;
        open.partial.finish().map_err(|e| failed(&e))
    }
}

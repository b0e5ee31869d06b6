//! Reads the packets of a capture.

use std::path::Path;

use swell_base::{Code, Warning};
use swell_capture::{InOrder, Packet, Reader};

use super::counts::{Counted, FileCounts};
use super::options::{file_name, in_file};
use super::source::{Opened, Source};
use crate::Error;

/// What was read from a capture.
pub(super) struct WasRead {
    pub counts: FileCounts,
    /// What the capture cannot show: of damage, of the file, of the order of packets.
    pub doubts: Vec<Warning>,
    pub source: Source,
}

/// Passes the packets of a capture to `each`, in the order of their times. A truncated or damaged capture is used up to the
/// damage, with a doubt. `steady`: see [`InOrder::steady`].
///
/// # Errors
/// If it is no capture, holds no packet, or `each` fails.
pub(super) fn read(
    mut file: Opened,
    steady: bool,
    mut each: impl FnMut(&Packet) -> Result<(), Error>,
) -> Result<WasRead, Error> {
    let named = file.name.clone();
    let mut ordered = InOrder::new(Reader::named(&named, file.bytes()).map_err(Error::usage)?);
    if steady {
        ordered = ordered.steady();
    }
    let mut packet = Packet::default();
    let mut doubts = Vec::new();
    loop {
        match ordered.read_into(&mut packet) {
            Ok(true) => each(&packet)?,
            Ok(false) => break,
            Err(error) => {
                doubts.push(Warning::warning(Code::TraceDamaged, error.to_string()));
                break;
            }
        }
    }
    let of_order = ordered.doubts();
    let reader = ordered.reader();
    let counts = FileCounts {
        file: named,
        format: reader.format().name(),
        counts: Counted::Packets(reader.counts().clone()),
    };
    if reader.counts().packets == 0 {
        return Err(Error::usage(format!("{}: no IP packets in it", counts.file)).hint(counts));
    }
    let of_capture = reader.counts().doubts().into_iter();
    doubts.extend(of_capture.map(|d| in_file(&file_name(Path::new(&counts.file)), d)));
    doubts.extend(of_order);
    drop(ordered);
    Ok(WasRead {
        counts,
        doubts,
        source: file.source,
    })
}

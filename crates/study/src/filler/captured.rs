//! Pre-existing traffic from a packet trace.

use std::path::Path;

use swell_base::Dur;
use swell_capture::{Error, Packet, Reader};
use swell_learn::Splitter;

use super::Trace;

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// Nothing in it crosses from one side to the other.
    #[error("{name}: no packet leads from one side to the other; {packets} packets were read")]
    OneSided {
        /// The file.
        name: String,
        /// Packets read.
        packets: u64,
    },
}

/// Reads a capture; [`Splitter`] tells its directions. The one with more bytes becomes the first.
/// Packets between two hosts of one side are left out and counted; times that step backwards are
/// put in order.
///
/// # Errors
/// When the file cannot be read, and when nothing in it has a direction.
pub fn captured(path: &Path) -> Result<Trace, TraceError> {
    let name = path.file_name().map_or_else(
        || path.display().to_string(),
        |f| f.to_string_lossy().into_owned(),
    );
    // Commas would break the study's table.
    let name: String = name.split('.').next().unwrap_or("trace").replace(',', "-");
    let mut reader = Reader::open(path)?;
    let mut splitter = Splitter::new();
    let mut packet = Packet::default();
    while reader.read_into(&mut packet)? {
        // Offloaded packets were several on the wire; what was on it is not known.
        splitter.push(&packet);
    }
    let mut trace = splitter.finish();
    let mut doubts = reader.counts().doubts();
    doubts.extend(trace.doubts());
    let [out, back] = trace.bytes();
    if back > out {
        trace.packets.swap(0, 1);
    }
    if trace.packets[0].is_empty() {
        return Err(TraceError::OneSided {
            name,
            packets: trace.left_out,
        });
    }
    Ok(Trace {
        name,
        packets: trace.packets.map(Into::into),
        // Some time for the last packet to arrive.
        duration: trace.duration + Dur::from_secs(1),
        left_out: trace.left_out,
        doubts,
    })
}

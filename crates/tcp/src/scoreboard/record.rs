//! The record of a segment in flight.

use swell_base::Time;

/// Estimated state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    Flying,
    Sacked,
    Lost,
    /// Retransmitted after a loss, which counts until the segment is acknowledged (Linux `TCPCB_LOST` with
    /// `TCPCB_SACKED_RETRANS`).
    Repaired,
}

/// A segment that is not yet cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) seq: u64,
    /// Time of the latest transmission.
    pub(crate) sent_at: Time,
    /// Payload bytes.
    pub(crate) len: u32,
    pub(crate) place: SegmentState,
    /// Sent more than once.
    pub(crate) resent: bool,
    pub(crate) fin: bool,
}

impl Record {
    pub(crate) fn end(&self) -> u64 {
        self.seq + self.size()
    }
    /// Length in sequence space.
    pub(super) fn size(&self) -> u64 {
        u64::from(self.len) + u64::from(self.fin)
    }
}

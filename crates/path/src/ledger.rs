//! Packet counts of a link.

/// Packet counts of a link. It holds `arrived - departed - dropped` packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that departed.
    pub departed: u64,
    /// Packets dropped, by [`DropReason`](swell_base::DropReason), in the order of its `ALL`.
    pub dropped: [u64; 3],
    /// Packets marked Congestion Experienced instead of dropped.
    pub marked: u64,
}

impl Ledger {
    /// Packets dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }
    /// Packets currently held.
    pub fn held(&self) -> u64 {
        self.arrived - self.departed - self.dropped_total()
    }
}

//! What came in, went out and was dropped.

/// Packet counts of an element. `arrived - departed - dropped` is what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets that came in.
    pub arrived: u64,
    /// Packets that went out.
    pub departed: u64,
    /// Packets dropped, by [`DropReason`](swell_base::DropReason) in the order of its `ALL`.
    pub dropped: [u64; 3],
}

impl Ledger {
    /// Packets dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }
    /// Packets inside.
    pub fn held(&self) -> u64 {
        self.arrived - self.departed - self.dropped_total()
    }
}

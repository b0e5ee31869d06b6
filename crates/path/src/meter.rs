//! Time series of the traffic on a link.

use swell_base::{Dur, Flags, Head, Tag, Time};

use crate::Backlog;

/// Counts arrivals in fine bins (for burstiness) and everything else in coarse bins. In every pair, index 0 is
/// foreground and index 1 is background.
#[derive(Clone, Debug)]
pub struct Meter {
    fine: u64,
    coarse: u64,
    /// Network-layer bytes that arrived at the queue, per fine bin.
    pub fine_bytes: [Vec<u32>; 2],
    /// Packets that arrived at the queue, per fine bin.
    pub fine_packets: [Vec<u32>; 2],
    /// Network-layer bytes of background packets by end of transmission, per fine bin. The rest of the capacity was
    /// available to the foreground.
    pub fine_departed: Vec<u32>,
    /// Other counts, per coarse bin.
    pub bins: Vec<CoarseBin>,
    /// TCP data segments that found the queue full. They are binned by the remaining time of the transmission in
    /// progress, relative to the segment's own transmission time. Meaningful at a constant rate only.
    pub phases: [u32; PHASES],
}

/// Number of bins in [`Meter::phases`].
pub const PHASES: usize = 16;

/// One coarse bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoarseBin {
    /// Network-layer bytes that arrived at the queue.
    pub arrived: [u64; 2],
    /// Packets that arrived at the queue.
    pub arrived_packets: [u32; 2],
    /// Network-layer bytes whose transmission ended.
    pub departed: [u64; 2],
    /// Packets dropped at the queue or on the wire.
    pub dropped: [u32; 2],
    /// Largest backlog found by an arrival, bytes.
    pub queue_max: u64,
    /// Sum of the backlogs found by arrivals, bytes.
    pub queue_sum: u64,
}

impl Meter {
    /// A meter with bins of these widths (at least a nanosecond).
    pub fn new(fine: Dur, coarse: Dur) -> Meter {
        Meter {
            fine: fine.as_nanos().max(1),
            coarse: coarse.as_nanos().max(1),
            fine_bytes: Default::default(),
            fine_packets: Default::default(),
            fine_departed: Vec::new(),
            bins: Vec::new(),
            phases: [0; PHASES],
        }
    }

    /// Width of a coarse bin.
    pub fn coarse_width(&self) -> Dur {
        Dur::from_nanos(self.coarse)
    }

    pub(crate) fn arrival(&mut self, at: Time, packet: &Head, backlog: Backlog) {
        let who = who(packet.tag);
        let i = (at.as_nanos() / self.fine) as usize;
        for counts in [&mut self.fine_bytes[who], &mut self.fine_packets[who]] {
            if counts.len() <= i {
                counts.resize(i + 1, 0);
            }
        }
        self.fine_bytes[who][i] += u32::from(packet.size);
        self.fine_packets[who][i] += 1;
        let bin = self.bin(at);
        bin.arrived[who] += u64::from(packet.size);
        bin.arrived_packets[who] += 1;
        bin.queue_max = bin.queue_max.max(backlog.bytes);
        bin.queue_sum += backlog.bytes;
    }

    pub(crate) fn departure(&mut self, at: Time, packet: &Head) {
        self.bin(at).departed[who(packet.tag)] += u64::from(packet.size);
        if packet.tag == Tag::Background {
            let i = (at.as_nanos() / self.fine) as usize;
            if self.fine_departed.len() <= i {
                self.fine_departed.resize(i + 1, 0);
            }
            self.fine_departed[i] += u32::from(packet.size);
        }
    }

    pub(crate) fn count_drop(&mut self, at: Time, packet: &Head) {
        self.bin(at).dropped[who(packet.tag)] += 1;
    }

    /// A packet found the queue full. `left` is the remaining time of the transmission in progress, `whole` the
    /// packet's own transmission time.
    pub(crate) fn refuses(&mut self, packet: &Head, left: Dur, whole: Dur) {
        if packet.seg.len > 0 && packet.seg.flags.has(Flags::ACK) {
            let phase = left.as_nanos() * PHASES as u64 / whole.as_nanos().max(1);
            self.phases[phase as usize % PHASES] += 1;
        }
    }

    fn bin(&mut self, at: Time) -> &mut CoarseBin {
        let i = (at.as_nanos() / self.coarse) as usize;
        if self.bins.len() <= i {
            self.bins.resize(i + 1, CoarseBin::default());
        }
        &mut self.bins[i]
    }
}

fn who(tag: Tag) -> usize {
    match tag {
        Tag::Foreground => 0,
        Tag::Background => 1,
    }
}

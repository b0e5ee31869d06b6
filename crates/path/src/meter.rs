//! Time series of the traffic on a link.

use swell_base::{Dur, Flags, Head, Tag, Time};

use crate::{Backlog, Census};

/// Counts arrivals in fine bins (for burstiness) and everything else in coarse bins. In every pair, index 0 is
/// foreground and index 1 is background.
#[derive(Clone, Debug)]
pub struct Meter {
    fine: u64,
    coarse: u64,
    /// Events after this are not counted.
    until: Time,
    /// The group whose departures are not those of others.
    own: Option<u32>,
    /// Network-layer bytes that arrived at the queue, per fine bin.
    pub fine_bytes: [Vec<u32>; 2],
    /// Packets that arrived at the queue, per fine bin.
    pub fine_packets: [Vec<u32>; 2],
    /// Link-layer bytes of others by end of transmission, per fine bin. The rest of the capacity was available to the
    /// foreground. Others are the background or, of a link with a [`Census`], all groups but [`Meter::beside`]'s.
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
            until: Time::MAX,
            own: None,
            fine_bytes: Default::default(),
            fine_packets: Default::default(),
            fine_departed: Vec::new(),
            bins: Vec::new(),
            phases: [0; PHASES],
        }
    }

    /// The same without counts of what happens after `end`. A transmission that begins in a run may end long after it.
    pub fn until(mut self, end: Time) -> Meter {
        self.until = end;
        self
    }

    /// The same with all groups of the link's [`Census`] but this one as others.
    pub fn beside(mut self, group: Option<u32>) -> Meter {
        self.own = group;
        self
    }

    /// Width of a coarse bin.
    pub fn coarse_width(&self) -> Dur {
        Dur::from_nanos(self.coarse)
    }

    pub(crate) fn arrival(&mut self, at: Time, packet: &Head, backlog: Backlog) {
        if at > self.until {
            return;
        }
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

    /// The transmission of a packet ended, of which the link layer has `overhead` bytes more.
    pub(crate) fn departure(
        &mut self,
        at: Time,
        packet: &Head,
        overhead: u64,
        census: Option<&Census>,
    ) {
        if at > self.until {
            return;
        }
        self.bin(at).departed[who(packet.tag)] += u64::from(packet.size);
        let is_other = match (self.own, census) {
            (Some(own), Some(census)) => census.group(packet.flow.0) != own,
            _ => packet.tag == Tag::Background,
        };
        if is_other {
            let i = (at.as_nanos() / self.fine) as usize;
            if self.fine_departed.len() <= i {
                self.fine_departed.resize(i + 1, 0);
            }
            self.fine_departed[i] += u32::from(packet.size) + overhead as u32;
        }
    }

    pub(crate) fn count_drop(&mut self, at: Time, packet: &Head) {
        if at <= self.until {
            self.bin(at).dropped[who(packet.tag)] += 1;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow link, or an outage, may end a transmission days after the run.
    #[test]
    fn what_happens_after_the_end_takes_no_memory() {
        let (ms, second) = (Dur::from_millis(1), Dur::from_secs(1));
        let end = Time::ZERO + second;
        let mut meter = Meter::new(ms, ms).until(end);
        let packet = Head {
            size: 1000,
            tag: Tag::Background,
            ..Head::default()
        };
        let late = Time::ZERO + Dur::from_secs(86_400);
        meter.arrival(end, &packet, Backlog::default());
        meter.departure(end, &packet, 18, None);
        for at in [end + Dur::from_nanos(1), late] {
            meter.arrival(at, &packet, Backlog::default());
            meter.departure(at, &packet, 18, None);
            meter.count_drop(at, &packet);
        }
        assert_eq!(meter.bins.len(), 1001);
        assert_eq!(meter.fine_departed.len(), 1001);
        assert_eq!(meter.fine_bytes[1].len(), 1001);
        assert_eq!(meter.fine_departed[1000], 1018);
        assert_eq!(meter.bins[1000].departed, [0, 1000]);
        assert_eq!(meter.bins[1000].dropped, [0, 0]);
    }
}

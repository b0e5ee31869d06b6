//! Per-group packet counts and waiting times at a link.

use std::collections::VecDeque;

use swell_base::{Dur, Flags, Head, Time};

/// Buckets of a [`Histogram`] per factor of two.
const PER_OCTAVE: u32 = 8;

/// Counts packets and their waiting times by group. A group is a number that the caller assigns to flows, for example
/// the workload that they belong to.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Group of each flow.
    groups: Vec<u32>,
    tallies: Vec<Tally>,
    /// Waiting packets by flow, as (sequence number, acknowledgement number, arrival). Packets have no field for
    /// their arrival.
    waiting: Vec<VecDeque<(u64, u64, Time)>>,
    /// Memory of flows of which no packet waits any more, for the next that need some.
    spare: Vec<VecDeque<(u64, u64, Time)>>,
    /// Arrival and start of transmission of the latest pure ACK, by flow.
    last_ack: Vec<Option<(Time, Time)>>,
    /// Instants and flows of dropped packets, in order of time.
    drops: Vec<(Time, u32)>,
    /// When the latest packet of each flow arrived.
    last: Vec<Option<Time>>,
    /// Width of a bin in nanoseconds, and the end of counting, if groups are counted over time.
    binned: Option<(u64, Time)>,
    /// Counts of each group over time.
    bins: Vec<Vec<GroupBin>>,
}

/// Counts of one group in one bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupBin {
    /// Network-layer bytes that arrived at the queue.
    pub arrived_bytes: u64,
    /// Packets that arrived at the queue.
    pub arrived: u32,
    /// Network-layer bytes whose transmission ended.
    pub departed_bytes: u64,
    /// Packets dropped: at the queue, or lost on the wire.
    pub dropped: u32,
}

/// Counts of one group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Packets that arrived at the queue.
    pub arrived: u64,
    /// Network-layer bytes of these packets.
    pub arrived_bytes: u64,
    /// Packets whose transmission began.
    pub sent: u64,
    /// Network-layer bytes of these packets.
    pub sent_bytes: u64,
    /// Packets dropped: at the queue, or lost on the wire.
    pub dropped: u64,
    /// Sum of the waiting times of the packets sent, from arrival to start of transmission, nanoseconds.
    pub wait: u128,
    /// The packets sent, by waiting time.
    pub waits: Histogram,
    /// Pure ACKs sent after an earlier one of the same flow.
    pub acks: u64,
    /// Those ACKs whose gap to the previous ACK more than halved in the queue. This is the ACK compression (Zhang,
    /// Shenker & Clark, SIGCOMM 1991) that this queue causes.
    pub compressed_acks: u64,
}

/// Packets sent after waits of similar length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Packets.
    pub packets: u64,
    /// Network-layer bytes of these packets.
    pub bytes: u64,
    /// Sum of their squared sizes, from which a queue's mean residual transmission time follows.
    pub squares: u128,
    /// Sum of their waiting times, nanoseconds.
    pub wait: u128,
}

impl Bucket {
    fn add(&mut self, other: &Bucket) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.squares += other.squares;
        self.wait += other.wait;
    }

    fn since(&self, earlier: &Bucket) -> Bucket {
        Bucket {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
            squares: self.squares - earlier.squares,
            wait: self.wait - earlier.wait,
        }
    }
}

/// Packets by waiting time, in eight buckets of equal width per octave, from a nanosecond to centuries. The upper
/// edge of a bucket is at most 12.5 % above the lower one; below eight nanoseconds edges are rounded up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Packets that did not wait.
    zero: Bucket,
    buckets: Vec<Bucket>,
}

impl Histogram {
    fn add(&mut self, wait: Dur, size: u32) {
        let ns = wait.as_nanos();
        let packet = Bucket {
            packets: 1,
            bytes: u64::from(size),
            squares: u128::from(size) * u128::from(size),
            wait: u128::from(ns),
        };
        if ns == 0 {
            self.zero.add(&packet);
            return;
        }
        let octave = ns.ilog2();
        // The three bits after the leading one.
        let eighth = (ns << 3 >> octave) as u32 & (PER_OCTAVE - 1);
        let i = (octave * PER_OCTAVE + eighth) as usize;
        if self.buckets.len() <= i {
            self.buckets.resize(i + 1, Bucket::default());
        }
        self.buckets[i].add(&packet);
    }

    /// The sum of all buckets.
    pub fn sum(&self) -> Bucket {
        let mut all = self.zero;
        self.buckets.iter().for_each(|b| all.add(b));
        all
    }

    /// The difference between this histogram and an `earlier` state of it.
    #[must_use]
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let before = earlier.buckets.iter().chain(std::iter::repeat(&NOTHING));
        let each = self.buckets.iter().zip(before);
        Histogram {
            zero: self.zero.since(&earlier.zero),
            buckets: each.map(|(now, then)| now.since(then)).collect(),
        }
    }

    /// Non-empty buckets as (from, to, contents), ascending; from = to for packets that did not wait.
    pub fn buckets(&self) -> impl Iterator<Item = (Dur, Dur, Bucket)> + '_ {
        let zero = (self.zero.packets > 0).then_some((Dur::ZERO, Dur::ZERO, self.zero));
        let edge = |i: usize| {
            let (octave, eighth) = (i as u32 / PER_OCTAVE, i as u128 % u128::from(PER_OCTAVE));
            // Rounded up, because below eight nanoseconds an eighth of an octave is not a whole number.
            Dur::from_nanos(((8 + eighth) << octave).div_ceil(8) as u64)
        };
        let each = self.buckets.iter().enumerate();
        zero.into_iter().chain(
            each.filter(|(_, b)| b.packets > 0)
                .map(move |(i, b)| (edge(i), edge(i + 1), *b)),
        )
    }
}

const NOTHING: Bucket = Bucket {
    packets: 0,
    bytes: 0,
    squares: 0,
    wait: 0,
};

impl Census {
    /// A census that also counts each group in bins of this width (at least a nanosecond) until `end`.
    pub fn over_time(width: Dur, end: Time) -> Census {
        Census {
            binned: Some((width.as_nanos().max(1), end)),
            ..Census::default()
        }
    }

    /// Counts of a group over time, without the empty bins at the end; empty if nothing is counted over time.
    pub fn bins(&self, group: u32) -> &[GroupBin] {
        self.bins.get(group as usize).map_or(&[], Vec::as_slice)
    }

    /// The bin of a flow's group at this instant, if it is counted over time.
    fn bin(&mut self, at: Time, flow: u32) -> Option<&mut GroupBin> {
        let (width, end) = self.binned?;
        if at > end {
            return None;
        }
        let (group, i) = (self.group(flow) as usize, (at.as_nanos() / width) as usize);
        if self.bins.len() <= group {
            self.bins.resize(group + 1, Vec::new());
        }
        let row = &mut self.bins[group];
        if row.len() <= i {
            row.resize(i + 1, GroupBin::default());
        }
        row.get_mut(i)
    }

    /// Assigns a flow to a group, before its first packet. Unassigned flows are in group 0.
    pub fn assign(&mut self, flow: u32, group: u32) {
        let i = flow as usize;
        if self.groups.len() <= i {
            self.groups.resize(i + 1, 0);
        }
        self.groups[i] = group;
    }

    /// The group of a flow.
    pub(crate) fn group(&self, flow: u32) -> u32 {
        self.groups.get(flow as usize).copied().unwrap_or(0)
    }

    /// Counts of a group; zero if it sent nothing.
    pub fn tally(&self, group: u32) -> Tally {
        self.tallies
            .get(group as usize)
            .cloned()
            .unwrap_or_default()
    }

    /// Instants and flows of packets dropped at the queue, in order of time.
    pub fn drops(&self) -> &[(Time, u32)] {
        &self.drops
    }

    /// Number of flows of which a packet arrived at this instant or later.
    pub fn flows_since(&self, from: Time) -> u32 {
        let since = self.last.iter().flatten().filter(|&&last| last >= from);
        since.count() as u32
    }

    fn tally_of(&mut self, flow: u32) -> &mut Tally {
        let group = self.group(flow) as usize;
        if self.tallies.len() <= group {
            self.tallies.resize(group + 1, Tally::default());
        }
        &mut self.tallies[group]
    }

    pub(crate) fn arrival(&mut self, at: Time, packet: &Head) {
        let i = packet.flow.0 as usize;
        if self.waiting.len() <= i {
            self.waiting.resize(i + 1, VecDeque::new());
            self.last.resize(i + 1, None);
        }
        self.last[i] = Some(at);
        let row = &mut self.waiting[i];
        if row.capacity() == 0 {
            *row = self.spare.pop().unwrap_or_default();
        }
        row.push_back((packet.seg.seq, packet.seg.ack, at));
        let tally = self.tally_of(packet.flow.0);
        tally.arrived += 1;
        tally.arrived_bytes += u64::from(packet.size);
        if let Some(bin) = self.bin(at, packet.flow.0) {
            bin.arrived += 1;
            bin.arrived_bytes += u64::from(packet.size);
        }
    }

    /// The transmission of a packet ends, and the wire may lose it.
    pub(crate) fn leaves(&mut self, at: Time, packet: &Head, lost: bool) {
        if let Some(bin) = self.bin(at, packet.flow.0) {
            bin.departed_bytes += u64::from(packet.size);
            bin.dropped += u32::from(lost);
        }
        if lost {
            self.tally_of(packet.flow.0).dropped += 1;
        }
    }

    /// The transmission of a packet begins.
    pub(crate) fn begins(&mut self, at: Time, packet: &Head) {
        // Disciplines keep the order within a flow, so this is the flow's first waiting packet.
        let arrival = self.take(packet, false).unwrap_or(at);
        let wait = at.since(arrival);
        let tally = self.tally_of(packet.flow.0);
        tally.sent += 1;
        tally.sent_bytes += u64::from(packet.size);
        tally.wait += u128::from(wait.as_nanos());
        tally.waits.add(wait, u32::from(packet.size));
        if packet.seg.len == 0 && packet.seg.flags == Flags::ACK {
            self.ack_begins(packet.flow.0, arrival, at);
        }
    }

    fn ack_begins(&mut self, flow: u32, arrival: Time, at: Time) {
        let i = flow as usize;
        if self.last_ack.len() <= i {
            self.last_ack.resize(i + 1, None);
        }
        let before = self.last_ack[i].replace((arrival, at));
        let Some((arrived, began)) = before else {
            return;
        };
        let tally = self.tally_of(flow);
        tally.acks += 1;
        if at.since(began) * 2 < arrival.since(arrived) {
            tally.compressed_acks += 1;
        }
    }

    /// A packet was dropped. `refused`: the arriving packet itself.
    pub(crate) fn count_drop(&mut self, at: Time, packet: &Head, refused: bool) {
        self.take(packet, refused);
        self.drops.push((at, packet.flow.0));
        self.tally_of(packet.flow.0).dropped += 1;
        if let Some(bin) = self.bin(at, packet.flow.0) {
            bin.dropped += 1;
        }
    }

    /// Removes a waiting packet and returns its arrival. `newest` selects the latest match.
    fn take(&mut self, packet: &Head, newest: bool) -> Option<Time> {
        let queue = self.waiting.get_mut(packet.flow.0 as usize)?;
        let same =
            |&(seq, ack, _): &(u64, u64, Time)| (seq, ack) == (packet.seg.seq, packet.seg.ack);
        let place = if newest {
            queue.iter().rposition(same)
        } else {
            queue.iter().position(same)
        }?;
        let (_, _, at) = queue.remove(place)?;
        if queue.is_empty() {
            self.spare.push(std::mem::take(queue));
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_without_a_waiting_packet_hold_no_memory() {
        let mut census = Census::default();
        let packet = |flow| Head {
            flow: swell_base::FlowId(flow),
            ..Head::default()
        };
        for flow in 0..100 {
            let at = Time::from_nanos(u64::from(flow));
            // Two packets wait at once: this one and that of the flow before.
            census.arrival(at, &packet(flow));
            if flow > 0 {
                census.begins(at, &packet(flow - 1));
            }
        }
        let held = census.waiting.iter().filter(|row| row.capacity() > 0);
        assert_eq!((held.count(), census.spare.len()), (1, 1));
        assert_eq!(census.tally(0).wait, 99);
    }

    #[test]
    fn buckets_hold_what_lies_between_their_edges() {
        let mut h = Histogram::default();
        let values = [0, 1, 2, 3, 7, 8, 9, 1000, 123_456_789, u64::MAX >> 8];
        for ns in values {
            h.add(Dur::from_nanos(ns), 2);
        }
        let sum = h.sum();
        assert_eq!(sum.packets, values.len() as u64);
        assert_eq!((sum.bytes, sum.squares), (20, 40));
        assert_eq!(h.since(&Histogram::default()), h);
        for ns in values.into_iter().filter(|&ns| ns > 0) {
            let d = Dur::from_nanos(ns);
            assert!(
                h.buckets().any(|(from, to, _)| from <= d && d < to),
                "{ns} is in no bucket"
            );
        }
        // Above eight nanoseconds a bucket is an eighth of its octave.
        for (from, to, _) in h.buckets().filter(|b| b.0 >= Dur::from_nanos(8)) {
            let ratio = to.as_nanos() as f64 / from.as_nanos() as f64;
            assert!(ratio <= 1.125, "{ratio}");
        }
    }
}

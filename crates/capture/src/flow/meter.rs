//! Meters packets: combines them into flow records.

use std::net::IpAddr;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use swell_base::{Dur, Stream};

use super::record::{EndReason, FlowRecord, Sampling, SamplingSource};
use crate::Tcp;

/// Which packets are selected (RFC 5475).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSampling {
    /// All of them.
    All,
    /// Each with probability 1 in n, independently (section 5.2.2.1: uniform probabilistic); 0 counts as 1.
    Random {
        /// One in this many, on average.
        interval: u32,
        /// Equal seeds select equal packets.
        seed: u64,
    },
}

/// Options for metering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metering {
    /// A record is closed after this time even if its flow continues.
    pub active_timeout: Dur,
    /// A flow without a packet for this time has ended.
    pub inactive_timeout: Dur,
    /// Which packets are selected.
    pub sampling: PacketSampling,
    /// Most open flows. Beyond this, the flow that has been without a packet for longest is closed.
    pub most_open: usize,
}

impl Default for Metering {
    /// 30 minutes and 15 seconds, the defaults of the routers that produce most records (Cisco IOS NetFlow command
    /// reference, `ip flow-cache timeout`). All packets are selected. Up to a million flows are open, which take
    /// about 250 MB.
    fn default() -> Metering {
        Metering {
            active_timeout: Dur::from_secs(1800),
            inactive_timeout: Dur::from_secs(15),
            sampling: PacketSampling::All,
            most_open: 1 << 20,
        }
    }
}

/// A packet stamped farther ahead than this of all before must be confirmed by the next one, nanoseconds.
const FAR: i64 = 60_000_000_000;
/// A packet that leapt farther ahead than this, and is the last, has a wrong stamp, nanoseconds.
const DAY: i64 = 86_400_000_000_000;
/// Packets farther behind than this, nanoseconds, …
const BACK: i64 = 5_000_000_000;
/// … show that the clock was set back, or that captures were joined, if there are so many in a row.
const AGREE: u32 = 8;

/// Counts of metered packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterCounts {
    /// Packets received.
    pub received: u64,
    /// Packets that were not selected by sampling.
    pub left_out: u64,
    /// Packets stamped more than a minute ahead of those before and after, which count at the time of the one before.
    pub far_off: u64,
    /// Packets stamped more than five seconds behind one before, which count at its time.
    pub behind: u64,
    /// Steps back for good, at which all flows were closed.
    pub steps_back: u64,
    /// Packets in records, including those of open flows.
    pub packets: u64,
    /// Their bytes: IP headers and payload.
    pub bytes: u64,
    /// Records closed because too many flows were open.
    pub evicted: u64,
}

/// The flow key. The "common properties" of RFC 7011 are the five-tuple of most exporters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    src: IpAddr,
    dst: IpAddr,
    src_port: u16,
    dst_port: u16,
    protocol: u8,
}

struct Open {
    record: FlowRecord,
    key: Key,
    /// Neighbours in a list ordered by the time of the last packet.
    older: u32,
    newer: u32,
}

const NONE: u32 = u32::MAX;

/// Converts packets to flow records (RFC 5470: a Metering Process). Each record has one direction. A flow ends by its
/// time-outs, or when a SYN follows a FIN or RST between the same ports.
///
/// Wrong stamps are told from a clock that was set, as for models of packets: see [`MeterCounts`]. A step back for good
/// closes all flows.
///
/// The order of the records depends on the packets alone. Memory use is bounded by [`Metering::most_open`].
pub struct MeteringProcess {
    options: Metering,
    index: HashMap<Key, u32, FixedState>,
    open: Vec<Open>,
    /// Unused slots of `open`.
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    sampled: Sampling,
    stream: Stream,
    counts: MeterCounts,
    /// The latest time; `None` before the first packet.
    now: Option<i64>,
    /// A packet that leapt ahead, to be confirmed by the next one.
    leapt: Option<FlowRecord>,
    /// Packets in a row that are far behind.
    behind: u32,
}

impl MeteringProcess {
    /// A process with these options and no open flows.
    pub fn new(options: Metering) -> MeteringProcess {
        let (interval, seed) = match options.sampling {
            PacketSampling::All => (1, 0),
            PacketSampling::Random { interval, seed } => (interval.max(1), seed),
        };
        MeteringProcess {
            options,
            index: HashMap::with_hasher(FixedState::default()),
            open: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            sampled: Sampling {
                interval: f64::from(interval),
                source: SamplingSource::Metering,
                scaled: false,
            },
            stream: Stream::new(seed, "packet sampling"),
            counts: MeterCounts::default(),
            now: None,
            leapt: None,
            behind: 0,
        }
    }

    /// Meters a packet. `packet` is the record that it would yield alone. Records of flows that end are appended to `out`.
    pub fn packet(&mut self, packet: FlowRecord, out: &mut Vec<FlowRecord>) {
        if let Some(leapt) = self.leapt.take() {
            let confirmed = packet.first >= leapt.first.saturating_sub(FAR);
            self.settle(leapt, confirmed, out);
        }
        let leaps = |now: i64| packet.first.saturating_sub(now) > FAR;
        match self.now.is_some_and(leaps) {
            true => self.leapt = Some(packet),
            false => self.take(packet, out),
        }
    }

    /// Closes all open flows.
    pub fn finish(&mut self, out: &mut Vec<FlowRecord>) {
        if let (Some(leapt), Some(now)) = (self.leapt.take(), self.now) {
            self.settle(leapt, leapt.first.saturating_sub(now) <= DAY, out);
        }
        self.close_all(out);
    }

    fn close_all(&mut self, out: &mut Vec<FlowRecord>) {
        while self.oldest != NONE {
            self.close(self.oldest, EndReason::ForcedEnd, out);
        }
    }

    /// Takes a packet that leapt ahead. If its stamp was not confirmed, it counts at the time of the packet before.
    fn settle(&mut self, mut leapt: FlowRecord, confirmed: bool, out: &mut Vec<FlowRecord>) {
        if let (false, Some(now)) = (confirmed, self.now) {
            self.counts.far_off += 1;
            (leapt.first, leapt.last) = (now, now);
        }
        self.take(leapt, out);
    }

    /// Takes the next packet in the order of the capture.
    fn take(&mut self, mut packet: FlowRecord, out: &mut Vec<FlowRecord>) {
        let now = self.now.unwrap_or(packet.first);
        if packet.first >= now.saturating_sub(BACK) {
            self.behind = 0;
            self.now = Some(now.max(packet.first));
        } else if self.behind + 1 < AGREE {
            self.behind += 1;
            self.counts.behind += 1;
            (packet.first, packet.last) = (now, now);
        } else {
            self.behind = 0;
            self.counts.steps_back += 1;
            self.close_all(out);
            self.now = Some(packet.first);
        }
        self.expire(out);
        self.counts.received += 1;
        let taken = match self.options.sampling {
            PacketSampling::All => true,
            PacketSampling::Random { interval, .. } => {
                self.stream.below(u64::from(interval.max(1))) == 0
            }
        };
        if !taken {
            self.counts.left_out += 1;
            return;
        }
        self.counts.packets += 1;
        self.counts.bytes += packet.bytes;
        let sampling = self.sampled;
        self.add(FlowRecord { sampling, ..packet }, out);
    }

    /// Counts so far.
    pub fn counts(&self) -> &MeterCounts {
        &self.counts
    }

    /// Number of open flows.
    pub fn open(&self) -> usize {
        self.index.len()
    }

    fn add(&mut self, packet: FlowRecord, out: &mut Vec<FlowRecord>) {
        let key = Key {
            src: packet.src,
            dst: packet.dst,
            src_port: packet.src_port,
            dst_port: packet.dst_port,
            protocol: packet.protocol,
        };
        if let Some(&at) = self.index.get(&key) {
            let record = &mut self.open[at as usize].record;
            let age = packet.first.saturating_sub(record.first);
            let ended = |flags: Option<u8>| flags.unwrap_or(0) & (Tcp::FIN | Tcp::RST) != 0;
            let begins = packet.tcp_flags.unwrap_or(0) & Tcp::SYN != 0;
            if begins && ended(record.tcp_flags) {
                self.close(at, EndReason::EndOfFlow, out);
            } else if age >= nanos(self.options.active_timeout) {
                self.close(at, EndReason::ActiveTimeout, out);
            } else {
                record.packets += 1;
                record.bytes += packet.bytes;
                record.first = record.first.min(packet.first);
                record.last = record.last.max(packet.last);
                record.tcp_flags = match (record.tcp_flags, packet.tcp_flags) {
                    (Some(a), Some(b)) => Some(a | b),
                    (a, b) => a.or(b),
                };
                self.unlink(at);
                self.link(at);
                return;
            }
        }
        if self.index.len() >= self.options.most_open.max(1) {
            self.counts.evicted += 1;
            self.close(self.oldest, EndReason::LackOfResources, out);
        }
        let open = Open {
            record: packet,
            key,
            older: NONE,
            newer: NONE,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.open[at as usize] = open;
                at
            }
            None => {
                self.open.push(open);
                self.open.len() as u32 - 1
            }
        };
        self.index.insert(key, at);
        self.link(at);
    }

    /// Closes flows that had no packet during the inactive time-out. With packets out of order, a flow may stay open
    /// slightly longer, but never shorter.
    fn expire(&mut self, out: &mut Vec<FlowRecord>) {
        let Some(now) = self.now else { return };
        let limit = nanos(self.options.inactive_timeout);
        while let Some(open) = self.open.get(self.oldest as usize) {
            if now.saturating_sub(open.record.last) <= limit {
                break;
            }
            let ended = open.record.tcp_flags.unwrap_or(0) & (Tcp::FIN | Tcp::RST) != 0;
            let reason = match ended {
                true => EndReason::EndOfFlow,
                false => EndReason::IdleTimeout,
            };
            self.close(self.oldest, reason, out);
        }
    }

    fn close(&mut self, at: u32, reason: EndReason, out: &mut Vec<FlowRecord>) {
        self.unlink(at);
        let open = &self.open[at as usize];
        out.push(FlowRecord {
            end: reason,
            ..open.record
        });
        self.index.remove(&open.key);
        self.free.push(at);
    }

    fn link(&mut self, at: u32) {
        let newest = std::mem::replace(&mut self.newest, at);
        let open = &mut self.open[at as usize];
        (open.older, open.newer) = (newest, NONE);
        match self.open.get_mut(newest as usize) {
            Some(before) => before.newer = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let Open { older, newer, .. } = self.open[at as usize];
        match self.open.get_mut(older as usize) {
            Some(before) => before.newer = newer,
            None => self.oldest = newer,
        }
        match self.open.get_mut(newer as usize) {
            Some(behind) => behind.older = older,
            None => self.newest = older,
        }
    }
}

impl std::fmt::Debug for MeteringProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MeteringProcess")
            .field("options", &self.options)
            .field("open", &self.open())
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

fn nanos(span: Dur) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

//! The most frequent kind of link, computed in advance.

use std::collections::VecDeque;

use swell_base::{Dur, QueueLimit, Stream, Time, fetch};

use crate::link::BYTE;
use crate::{Discipline, LinkConfig, Loss, LossProcess};

/// A [`Link`](crate::Link) with common features only: drop tail by bytes, a constant rate, a delay, independent
/// loss, no counters. Later packets do not change when a packet of such a link arrives. So the arrival is known at
/// once, the link holds no packets, and it needs no wake-up. A learnt model has hundreds of thousands of such links.
///
/// It accepts and drops the same packets as a `Link`, at the same nanoseconds.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct PlainLink {
    /// End of the last transmission.
    free_at: Time,
    delay: Dur,
    /// Bytes of the packets in `row`.
    waiting: u32,
    /// Bytes that may wait.
    limit: u32,
    /// Nanoseconds per byte where the rate makes that a whole number, else zero.
    per_byte: u32,
    /// Packets before the last one in this busy period.
    before: u32,
    // Every packet needs the fields above; they share a cache line.
    /// Sizes of the packets that waited when the last one of them arrived.
    row: VecDeque<u16>,
    /// When the transmission of the first of them begins.
    begins: Time,
    /// The remainder of the division at that time.
    begins_carry: u64,
    /// Loss on the wire, if there is any; few links of a network lose packets, all of a learnt model's may.
    loss: Option<Box<LossProcess>>,
    /// Bits per second; zero = transmission takes no time.
    rate: u64,
    /// What the division of bits by rate left over in this busy period, so that rates do not drift.
    carry: u64,
}

/// Above this many packets the memory of a row is given back when nothing waits.
const KEEP: usize = 64;

impl PlainLink {
    /// Its first bytes, which every packet needs; the others are for packets that wait and rates that do not divide.
    pub const HOT: usize = std::mem::offset_of!(PlainLink, row);

    /// The link that `config` describes, if it is a plain one. Its loss draws from the same stream as that of a
    /// [`Link`](crate::Link) with this seed and name.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Option<PlainLink> {
        let loss = match config.loss {
            Loss::None => None,
            loss @ Loss::Independent { .. } => {
                Some(Box::new(LossProcess::new(loss, Stream::new(seed, name))))
            }
            Loss::GilbertElliott { .. } => return None,
        };
        let plain = config.discipline == Discipline::Fifo
            && config.overhead == 0
            && config.changes.is_empty();
        let limit = match (config.queue, config.rate) {
            (QueueLimit::Bytes(bytes), Some(_)) if bytes.0 < 1 << 31 => bytes.0 as u32,
            (_, None) => 0, // nothing waits
            _ => return None,
        };
        let rate = config.rate.map_or(0, |r| r.bps());
        let per_byte = if rate > 0 && BYTE.is_multiple_of(rate) {
            u32::try_from(BYTE / rate).unwrap_or(0)
        } else {
            0
        };
        plain.then(|| PlainLink {
            delay: config.delay,
            limit,
            per_byte,
            loss,
            rate,
            ..PlainLink::default()
        })
    }

    /// A packet of `size` bytes arrives at `at`, or right after the one before it if that is later. When it will arrive at
    /// the far end; `None` where it finds the queue full or the wire loses it.
    #[inline(always)]
    pub fn push(&mut self, at: Time, size: u16) -> Option<Time> {
        let idle = self.free_at < at;
        if self.free_at > at {
            // Without a rate nothing waits: packets keep their order, and that is all.
            if self.rate > 0 && !self.wait(at, size) {
                return None;
            }
        } else {
            self.before = 0;
            if self.waiting > 0 {
                self.rest();
            }
            self.free_at = at;
        }
        if self.per_byte > 0 {
            self.free_at += Dur::from_nanos(u64::from(size) * u64::from(self.per_byte));
        } else {
            self.transmit_seldom(size, idle);
        }
        if let Some(loss) = &mut self.loss
            && loss.loses()
        {
            return None;
        }
        Some(self.free_at + self.delay)
    }

    /// Transmits where the rate does not divide.
    #[inline(never)]
    fn transmit_seldom(&mut self, size: u16, idle: bool) {
        // The remainder of the last busy period is void.
        let carry = if idle { 0 } else { self.carry };
        let (took, carry) = self.transmission(size, carry);
        self.free_at += took;
        self.carry = carry;
    }

    /// How long a transmission takes, and what the division leaves over.
    #[inline]
    fn transmission(&self, size: u16, carry: u64) -> (Dur, u64) {
        if self.per_byte > 0 {
            let took = u64::from(size) * u64::from(self.per_byte);
            return (Dur::from_nanos(took), 0);
        }
        if self.rate == 0 {
            return (Dur::ZERO, 0);
        }
        // Sizes are 16 bits and a second has 1e9 nanoseconds: 2^16 * 8e9 + rate fits 64 bits.
        let work = u64::from(size) * BYTE + carry;
        (Dur::from_nanos(work / self.rate), work % self.rate)
    }

    /// A packet finds the link busy. Returns whether it fits into the queue.
    #[inline(never)]
    fn wait(&mut self, at: Time, size: u16) -> bool {
        while let Some(&first) = self.row.front()
            && self.begins <= at
        {
            self.row.pop_front();
            self.waiting -= u32::from(first);
            let (took, carry) = self.transmission(first, self.begins_carry);
            self.begins += took;
            self.begins_carry = carry;
        }
        let room = self.waiting + u32::from(size) <= self.limit;
        if room {
            if self.row.is_empty() {
                self.begins = self.free_at;
                self.begins_carry = self.carry;
            }
            self.before = self.before.saturating_add(1);
            self.waiting += u32::from(size);
            self.row.push_back(size);
        }
        room
    }

    /// Nothing waits any more.
    #[inline(never)]
    fn rest(&mut self) {
        self.waiting = 0;
        self.row.clear();
        self.row.shrink_to(KEEP);
    }

    /// [Asks](fetch()) for what only packets need that wait.
    #[inline]
    pub fn fetch(&self) {
        fetch(&self.row);
    }

    /// Asks for where those are noted; reads what the former asks for.
    #[inline]
    pub fn fetch_waiting(&self) {
        if let Some(first) = self.row.front() {
            fetch(first);
        }
    }

    /// How many packets were transmitted right before the last one that was taken, without a pause.
    #[inline]
    pub fn before(&self) -> u32 {
        self.before
    }

    /// When the last packet that was taken arrives, or earlier where it has.
    #[inline]
    pub fn empty_at(&self) -> Time {
        self.free_at + self.delay
    }

    /// Propagation delay.
    pub fn delay(&self) -> Dur {
        self.delay
    }

    /// Whether a packet needs time to be transmitted.
    pub fn has_rate(&self) -> bool {
        self.rate > 0
    }
}

impl Default for PlainLink {
    /// Passes packets on at once.
    fn default() -> Self {
        PlainLink {
            free_at: Time::ZERO,
            delay: Dur::ZERO,
            waiting: 0,
            limit: 0,
            per_byte: 0,
            before: 0,
            row: VecDeque::new(),
            begins: Time::ZERO,
            begins_carry: 0,
            loss: None,
            rate: 0,
            carry: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Link};
    use swell_base::{
        Bytes, DropReason, Flags, FlowId, Head, Packet, Rate, Segment, Stamps, Stream, Tag,
    };

    /// The oracle: the link itself. Rates that divide and rates that do not, idle and crowded, polled in
    /// time and late.
    #[test]
    fn it_does_what_a_link_does() {
        let (mut drops, mut arrivals, mut most, mut lost) = (0, 0, 0, 0);
        for seed in 0..200 {
            let mut rng = Stream::new(seed, "plain");
            let config = LinkConfig {
                rate: rng.chance(0.9).then(|| {
                    let rates = [1_000_000, 10_000_000, 7_654_321, 4_000_000_000_000];
                    Rate::from_bps(rates[rng.below(4) as usize])
                }),
                delay: Dur::from_nanos(rng.below(3) * rng.below(10_000_000)),
                queue: QueueLimit::Bytes(Bytes(rng.below(20_000))),
                loss: match rng.below(3) {
                    0 => Loss::None,
                    _ => Loss::Independent {
                        p: rng.uniform() * 0.1,
                    },
                },
                ..LinkConfig::default()
            };
            let mut link = Link::new(&config, seed, "link");
            let mut plain = PlainLink::new(&config, seed, "link").expect("plain");
            let mut flying = VecDeque::new();
            let mean_gap = 1e5 + rng.uniform() * 4e6;
            let mut now = Time::ZERO;
            for i in 0..3_000u32 {
                if rng.chance(0.8) {
                    now += Dur::from_nanos(rng.exponential(mean_gap) as u64 / 8 * 8);
                }
                let mut packet = Packet::from(Head {
                    size: 40 + rng.below(2) as u16 * 1460,
                    flow: FlowId(i),
                    way: rng.below(2) as u8,
                    tag: Tag::Background,
                    ..Head::default()
                });
                packet.seg = Segment {
                    seq: rng.bits(),
                    ack: rng.bits(),
                    len: rng.below(1 << 16) as u32,
                    window: rng.bits() as u32,
                    sacks: 0,
                    flags: Flags(rng.bits() as u8),
                    ecn: rng.below(4) as u8,
                    stamps: Stamps::one_way(rng.bits() as u32),
                };
                for _ in 0..rng.below(4) * rng.below(2) {
                    let start = rng.below(1 << 30) as i32;
                    let count = &mut packet.head.seg.sacks;
                    packet.sacks.push(count, start, start + 1460);
                }
                link.push(now, packet);
                arrivals += 1;
                match plain.push(now, packet.size) {
                    Some(at) => flying.push_back((at, packet)),
                    None => drops += 1,
                }
                most = most.max(plain.row.len());
                if rng.chance(0.3) {
                    continue;
                }
                while let Some(want) = link.pop(now) {
                    assert_eq!(flying.pop_front(), Some(want));
                }
                // A link draws the loss of a packet that waits when its transmission begins.
                let held = link.ledger().held();
                match config.loss {
                    Loss::None => assert_eq!(flying.len() as u64, held),
                    _ => assert!(flying.len() as u64 <= held),
                }
            }
            // All that is left arrives, and nothing else.
            now += Dur::from_secs(1000);
            while let Some(want) = link.pop(now) {
                assert_eq!(flying.pop_front(), Some(want));
            }
            assert!(flying.is_empty() && link.ledger().held() == 0);
            if config.loss != Loss::None {
                lost += link.ledger().dropped[DropReason::Loss as usize];
            }
        }
        assert!(drops > arrivals / 50 && drops < arrivals / 2, "{drops}");
        assert!(lost > arrivals / 100, "{lost} lost on the wire");
        // What has begun is forgotten: no more than fits the queue.
        assert!(most > 10 && most <= 20_000 / 40, "{most}");
    }

    /// A packet that comes earlier than the one before it enters right after it.
    #[test]
    fn packets_keep_their_order() {
        for seed in 0..100 {
            let mut rng = Stream::new(seed, "order");
            let config = LinkConfig {
                rate: (rng.chance(0.7))
                    .then(|| Rate::from_bps([10_000_000, 7_654_321][rng.below(2) as usize])),
                delay: Dur::from_millis(1),
                queue: QueueLimit::Bytes(Bytes(6_000)),
                ..LinkConfig::default()
            };
            let mut plain = PlainLink::new(&config, seed, "link").expect("plain");
            let mut sorted = plain.clone();
            let (mut now, mut last) = (Time::ZERO, Time::ZERO);
            for _ in 0..2_000 {
                now += Dur::from_nanos(rng.exponential(1e6) as u64);
                let at = now + Dur::from_micros(rng.below(3) * rng.below(2_000));
                last = last.max(at);
                let size = 40 + rng.below(2) as u16 * 1460;
                assert_eq!(plain.push(at, size), sorted.push(last, size));
            }
        }
    }

    #[test]
    fn what_few_links_have_is_not_plain() {
        let plain = LinkConfig {
            rate: Some(Rate::from_bps(1_000_000)),
            queue: QueueLimit::Bytes(Bytes(65_536)),
            ..LinkConfig::default()
        };
        assert!(PlainLink::new(&plain, 1, "link").is_some());
        let others = [
            LinkConfig {
                loss: Loss::GilbertElliott {
                    to_bad: 0.1,
                    to_good: 0.1,
                    loss_good: 0.0,
                    loss_bad: 0.5,
                },
                ..plain.clone()
            },
            LinkConfig {
                overhead: 4,
                ..plain.clone()
            },
            LinkConfig {
                discipline: Discipline::CoDel(crate::CoDelConfig::default()),
                ..plain.clone()
            },
            LinkConfig {
                queue: QueueLimit::Packets(10),
                ..plain.clone()
            },
        ];
        for other in others {
            assert!(PlainLink::new(&other, 1, "link").is_none(), "{other:?}");
        }
    }
}

//! The most frequent kind of link, whose arrivals are computed in advance.

use std::collections::VecDeque;

use swell_base::{Dur, QueueLimit, Stream, Time, fetch};

use crate::deliveries::BYTE;
use crate::{Discipline, LinkConfig, Loss, LossProcess};

/// A [`Link`](crate::Link) restricted to common features: drop tail by bytes, a constant rate, a delay, independent
/// loss, no counters. Later packets do not change when a packet of such a link arrives. So the arrival is known at
/// once, the link stores no packets, and it needs no wake-up. A learnt model has hundreds of thousands of such links.
///
/// It accepts and drops the same packets as a `Link`, at the same nanoseconds.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct PlainLink {
    /// End of the latest transmission.
    free_at: Time,
    delay: Dur,
    /// Total bytes of the packets in `row`.
    waiting: u32,
    /// Limit on waiting bytes.
    limit: u32,
    /// Nanoseconds per byte if that is a whole number at this rate, else zero.
    per_byte: u32,
    /// Number of packets sent back to back before the latest one in this busy period.
    before: u32,
    // Every packet needs the fields above; they share a cache line.
    /// Sizes of the packets that were waiting when the latest one was queued. Entries are removed lazily.
    row: VecDeque<u16>,
    /// When the transmission of the first packet in `row` begins.
    begins: Time,
    /// Remainder of the division at that instant.
    begins_carry: u64,
    /// Loss on the wire, if any. Boxed, because it is rare except in learnt models.
    loss: Option<Box<LossProcess>>,
    /// Bits per second; zero = transmission takes no time.
    rate: u64,
    /// Remainder of dividing bits by rate in this busy period, so that rounding does not accumulate.
    carry: u64,
}

/// If `row` has grown beyond this many packets, its memory is released when nothing waits.
const KEEP: usize = 64;

impl PlainLink {
    /// Size of the fields that every packet needs. The others are for waiting packets and for rates without a whole
    /// number of nanoseconds per byte.
    pub const HOT: usize = std::mem::offset_of!(PlainLink, row);

    /// The link described by `config`, if it has no other features. Its loss draws from the same stream as that of a
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

    /// A packet of `size` bytes enters at `at`, or right after the previous packet if that is later. Returns its
    /// arrival at the far end, or `None` if the queue is full or the wire loses the packet.
    #[inline(always)]
    pub fn push(&mut self, at: Time, size: u16) -> Option<Time> {
        let idle = self.free_at < at;
        if self.free_at > at {
            // Without a rate no packet waits in the queue; packets only keep their order.
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

    /// Transmits at a rate without a whole number of nanoseconds per byte.
    #[inline(never)]
    fn transmit_seldom(&mut self, size: u16, idle: bool) {
        // The remainder of the last busy period is dropped.
        let carry = if idle { 0 } else { self.carry };
        let (took, carry) = self.transmission(size, carry);
        self.free_at += took;
        self.carry = carry;
    }

    /// Transmission time, and the remainder of the division.
    #[inline]
    fn transmission(&self, size: u16, carry: u64) -> (Dur, u64) {
        if self.per_byte > 0 {
            let took = u64::from(size) * u64::from(self.per_byte);
            return (Dur::from_nanos(took), 0);
        }
        if self.rate == 0 {
            return (Dur::ZERO, 0);
        }
        // Sizes have 16 bits and a second has 1e9 nanoseconds: 2^16 * 8e9 + rate fits in 64 bits.
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

    /// Empties the queue.
    #[inline(never)]
    fn rest(&mut self) {
        self.waiting = 0;
        self.row.clear();
        self.row.shrink_to(KEEP);
    }

    /// [Prefetches](fetch()) the fields that only waiting packets need.
    #[inline]
    pub fn fetch(&self) {
        fetch(&self.row);
    }

    /// Prefetches the list of waiting packets. Reads the fields that [`PlainLink::fetch`] prefetches.
    #[inline]
    pub fn fetch_waiting(&self) {
        if let Some(first) = self.row.front() {
            fetch(first);
        }
    }

    /// Number of packets transmitted back to back before the latest accepted one.
    #[inline]
    pub fn before(&self) -> u32 {
        self.before
    }

    /// When the latest accepted packet arrives, or an earlier instant if it has already arrived.
    #[inline]
    pub fn empty_at(&self) -> Time {
        self.free_at + self.delay
    }

    /// Propagation delay.
    pub fn delay(&self) -> Dur {
        self.delay
    }

    /// Whether transmission takes time.
    pub fn has_rate(&self) -> bool {
        self.rate > 0
    }
}

impl Default for PlainLink {
    /// A link that passes packets on at once.
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
    use crate::Link;
    use swell_base::{
        Bytes, DropReason, End, Flags, FlowId, Head, Packet, Rate, Segment, Stamps, Stream, Tag,
    };

    /// The oracle is `Link`. Covers rates with and without a whole number of nanoseconds per byte, light and heavy
    /// load, and timely and late polling.
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
                    from: End::of(rng.below(2) == 1),
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
                    stamps: Stamps::new(rng.bits() as u32, rng.bits() as u32),
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
                // A `Link` draws the loss of a waiting packet when its transmission begins, so it may hold more
                // packets.
                let held = link.ledger().held();
                match config.loss {
                    Loss::None => assert_eq!(flying.len() as u64, held),
                    _ => assert!(flying.len() as u64 <= held),
                }
            }
            // The remaining packets arrive, and no others.
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
        // Packets in transmission are removed from the row, so its length is limited by the queue.
        assert!(most > 10 && most <= 20_000 / 40, "{most}");
    }

    /// A packet that comes earlier than the previous one enters right after it.
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

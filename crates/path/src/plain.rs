//! The commonest link, computed ahead.

use swell_base::{Dur, FlowId, QueueLimit, Time};

use crate::link::BYTE;
use crate::pool::{Place, Queue};
use crate::{Discipline, LinkConfig, Loss, PacketPool};

/// A [`Link`](crate::Link) without anything that few have: drop tail by bytes, a constant rate, a
/// delay, nobody who counts. Nothing that comes later changes when a packet of such a link arrives, so it
/// is known at once, and a packet is handled twice: when it comes and when it goes.
///
/// It takes and drops what a `Link` does, to the nanosecond. Its packets lie in a [`PacketPool`], always
/// the same one.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct PlainLink {
    /// End of the last transmission.
    free_at: Time,
    delay: Dur,
    /// The packets on it.
    queue: Queue,
    /// The last packet of which it is known that its transmission has begun, if it is on the link.
    begun: Place,
    /// Bytes of the packets of which that is not known: at least what waits.
    waiting: u32,
    /// Bytes that may wait.
    limit: u32,
    /// Nanoseconds per byte where the rate makes that a whole number, else zero.
    per_byte: u32,
    // Up to here what every packet needs.
    /// Bits per second; zero = transmission takes no time.
    rate: u64,
    /// What the division of bits by rate left over in this busy period, so that rates do not drift.
    carry: u64,
}

impl PlainLink {
    /// Its first bytes, which every packet needs; the others are for rates that do not divide.
    pub const HOT: usize = std::mem::offset_of!(PlainLink, rate);

    /// The link that `config` describes, if it is a plain one.
    pub fn new(config: &LinkConfig) -> Option<PlainLink> {
        let plain = config.discipline == Discipline::Fifo
            && config.loss == Loss::None
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
            rate,
            ..PlainLink::default()
        })
    }

    /// A packet arrives at `at`, which never decreases. When it will arrive at the far end; `None` where
    /// it finds the queue full and is gone.
    #[inline(always)]
    pub fn push(&mut self, pool: &mut PacketPool, at: Time, place: Place) -> Option<Time> {
        let size = u32::from(pool.packet(place).size);
        if self.per_byte == 0 {
            return self.push_seldom(pool, at, place);
        }
        let idle = self.free_at <= at;
        if idle {
            self.free_at = at;
        } else {
            if self.waiting + size > self.limit {
                return self.push_seldom(pool, at, place);
            }
            self.waiting += size;
        }
        let took = u64::from(size) * u64::from(self.per_byte);
        self.launch(pool, place, idle, Dur::from_nanos(took))
    }

    /// The same where the queue seems full, or the rate does not divide.
    #[inline(never)]
    fn push_seldom(&mut self, pool: &mut PacketPool, at: Time, place: Place) -> Option<Time> {
        let size = u32::from(pool.packet(place).size);
        let idle = self.free_at <= at;
        if idle {
            if self.free_at < at {
                // A new busy period owes nothing.
                self.free_at = at;
                self.carry = 0;
            }
        } else {
            if self.waiting + size > self.limit {
                self.look_what_waits(pool, at);
                if self.waiting + size > self.limit {
                    pool.release(place);
                    return None;
                }
            }
            self.waiting += size;
        }
        let took = self.transmission(size);
        self.launch(pool, place, idle, took)
    }

    /// The packet is transmitted after those before it.
    #[inline(always)]
    fn launch(
        &mut self,
        pool: &mut PacketPool,
        place: Place,
        idle: bool,
        took: Dur,
    ) -> Option<Time> {
        self.free_at += took;
        let arrival = self.free_at + self.delay;
        self.queue.push(pool, arrival, place);
        if idle {
            self.begun = place;
            self.waiting = 0;
        }
        Some(arrival)
    }

    #[inline]
    fn transmission(&mut self, size: u32) -> Dur {
        if self.per_byte > 0 {
            return Dur::from_nanos(u64::from(size) * u64::from(self.per_byte));
        }
        if self.rate == 0 {
            return Dur::ZERO;
        }
        // Sizes are 16 bits and a second has 1e9 nanoseconds: 2^16 * 8e9 + rate fits 64 bits.
        let work = u64::from(size) * BYTE + self.carry;
        self.carry = work % self.rate;
        Dur::from_nanos(work / self.rate)
    }

    /// Finds the last packet whose transmission has begun by `at`.
    #[cold]
    #[inline(never)]
    fn look_what_waits(&mut self, pool: &PacketPool, at: Time) {
        loop {
            // A transmission begins when the one before ends; where that packet has already arrived, so
            // has this transmission begun.
            let next = match pool.arrival(self.begun) {
                None => self.queue.first,
                Some(before) if before <= at + self.delay => pool.behind(self.begun),
                Some(_) => return,
            };
            if next == Place::NONE {
                return;
            }
            self.waiting -= u32::from(pool.packet(next).size);
            self.begun = next;
        }
    }

    /// When the first packet on the link arrives.
    #[inline]
    pub fn arrival(&self, pool: &PacketPool) -> Option<Time> {
        self.queue.arrival(pool)
    }

    /// Flow and way of the first packet on the link, and whether it has payload.
    #[inline]
    pub fn next(&self, pool: &PacketPool) -> Option<(FlowId, u8, bool)> {
        self.queue.iter(pool).next()
    }

    /// Reads a little of the packets that are taken next.
    #[inline]
    pub fn touch_first(&self, pool: &PacketPool) -> u64 {
        self.queue.touch_first(pool)
    }

    /// Reads a little of the packet that another will follow.
    #[inline]
    pub fn touch_last(&self, pool: &PacketPool) -> u64 {
        self.queue.touch_last(pool)
    }

    /// Takes the first packet off the link, if it has arrived by `now`.
    #[inline]
    pub fn take(&mut self, pool: &PacketPool, now: Time) -> Option<Place> {
        let place = self.queue.pop(pool, now)?;
        if self.begun == place {
            self.begun = Place::NONE;
        } else if self.begun == Place::NONE {
            self.waiting -= u32::from(pool.packet(place).size);
        }
        Some(place)
    }
}

impl Default for PlainLink {
    /// Passes packets on at once.
    fn default() -> Self {
        PlainLink {
            free_at: Time::ZERO,
            delay: Dur::ZERO,
            queue: Queue::default(),
            begun: Place::NONE,
            waiting: 0,
            limit: 0,
            per_byte: 0,
            rate: 0,
            carry: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Link};
    use swell_base::{Bytes, Flags, Packet, Rate, SackBlocks, Segment, Stream, Tag};

    /// The oracle: the link itself. Rates that divide and rates that do not, idle and crowded, polled in
    /// time and late.
    #[test]
    fn it_does_what_a_link_does() {
        let (mut drops, mut arrivals) = (0, 0);
        for seed in 0..200 {
            let mut rng = Stream::new(seed, "plain");
            let config = LinkConfig {
                rate: rng.chance(0.9).then(|| {
                    let rates = [1_000_000, 10_000_000, 7_654_321, 4_000_000_000_000];
                    Rate::from_bps(rates[rng.below(4) as usize])
                }),
                delay: Dur::from_nanos(rng.below(3) * rng.below(10_000_000)),
                queue: QueueLimit::Bytes(Bytes(rng.below(20_000))),
                ..LinkConfig::default()
            };
            let mut link = Link::new(&config, seed, "link");
            let mut plain = PlainLink::new(&config).expect("plain");
            let mut pool = PacketPool::default();
            let mean_gap = 1e5 + rng.uniform() * 4e6;
            let (mut now, mut held, mut peak) = (Time::ZERO, 0, 0);
            for i in 0..3_000u32 {
                if rng.chance(0.8) {
                    now += Dur::from_nanos(rng.exponential(mean_gap) as u64 / 8 * 8);
                }
                let mut packet = Packet {
                    size: 40 + rng.below(2) as u16 * 1460,
                    flow: FlowId(i),
                    way: rng.below(2) as u8,
                    tag: Tag::Background,
                    ..Packet::default()
                };
                packet.seg = Segment {
                    seq: rng.bits(),
                    ack: rng.bits(),
                    len: rng.below(1 << 16) as u32,
                    window: rng.bits() as u32,
                    sack: SackBlocks::default(),
                    flags: Flags(rng.bits() as u8),
                    ecn: rng.below(4) as u8,
                    stamp: rng.bits() as u32,
                };
                for _ in 0..rng.below(4) * rng.below(2) {
                    let start = rng.below(1 << 31) as u32;
                    packet.seg.sack.push(start, start + 1460);
                }
                link.push(now, packet);
                arrivals += 1;
                let put = pool.put(&packet);
                let accepted = u64::from(plain.push(&mut pool, now, put).is_some());
                drops += 1 - accepted;
                held += accepted;
                peak = held.max(peak);
                assert_eq!(pool.in_use() as u64, held);
                if rng.chance(0.3) {
                    continue;
                }
                while let Some(want) = link.pop(now) {
                    assert_eq!(plain.arrival(&pool), Some(want.0));
                    let place = plain.take(&pool, now).expect("a packet");
                    assert_eq!(*pool.packet(place), want.1);
                    pool.release(place);
                    held -= 1;
                }
                assert_eq!(held, link.ledger().held());
                assert_eq!(plain.take(&pool, now), None);
                assert_eq!(plain.arrival(&pool).is_none(), link.poll_at().is_none());
            }
            // A packet that is refused takes a place for a moment.
            let len = pool.len() as u64;
            assert!(len <= peak + 1, "places are used again: {len}, {peak}");
        }
        assert!(drops > arrivals / 50 && drops < arrivals / 2, "{drops}");
    }

    #[test]
    fn what_few_links_have_is_not_plain() {
        let plain = LinkConfig {
            rate: Some(Rate::from_bps(1_000_000)),
            queue: QueueLimit::Bytes(Bytes(65_536)),
            ..LinkConfig::default()
        };
        assert!(PlainLink::new(&plain).is_some());
        let others = [
            LinkConfig {
                loss: Loss::Independent { p: 0.1 },
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
            assert!(PlainLink::new(&other).is_none(), "{other:?}");
        }
    }
}

//! The link: queue, serializer, wire, propagation.

mod config;
mod extra;
mod varied;

use std::collections::VecDeque;

use swell_base::{DropReason, Dur, Packet, Rate, Stream, Time};

use crate::deliveries::BYTE;
use crate::pool::SlotId;
use crate::qdisc::{AnyQdisc, Waiting};
use crate::{Backlog, Census, Ledger, Loss, LossProcess, Meter, Note, Outlet, PacketPool};
pub use config::LinkConfig;
use extra::{Extra, Varied};

/// The start of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// When the packet arrives at the far end.
    pub arrival: Time,
    /// The packet.
    pub place: SlotId,
    /// Note of the packet. A caller that needs only the note does not touch the memory of the packet.
    pub note: Note,
}

/// A queueing discipline, a serializer, a lossy wire and a propagation delay.
///
/// The end of a transmission is known when it begins. The packet then moves to the delay line with its arrival at the
/// far end, so it costs one wake-up per link. Whenever the link is touched, it processes all dequeues that were due,
/// each at its own instant.
///
/// A link is used in one of two ways, never both. By itself it stores packets in its own pool, with `push`,
/// `poll_at`, `pop` and [`Link::backlog`]. With many links it uses slots of a shared pool, with the methods that take
/// a [`PacketPool`], which must always be the same pool. Then [`Link::due`] replaces `poll_at`, and debug builds
/// panic if one of those four is called while the link holds packets. Counters ([`Link::ledger`], meter, census,
/// marks) are the same in both.
///
/// Fields are in order of use: first those for a packet that finds the link idle, then those for a packet that waits.
/// With thousands of links, cache misses dominate the cost of a hop.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    /// End of the latest transmission that has begun.
    free_at: Time,
    delay: Dur,
    /// Nanoseconds per byte if that is a whole number at this rate, else zero.
    per_byte: u64,
    /// Number of waiting packets.
    waiting: u32,
    /// The discipline must also see packets that find the serializer idle and the queue empty.
    sees_all: bool,
    /// Packets in flight, with their arrival at the far end.
    flight: VecDeque<(Time, SlotId)>,
    arrived: u64,
    departed: u64,
    /// Features that few links use.
    extra: Option<Box<Extra>>,
    /// Bits per second; zero if transmission takes no time or the link changes.
    rate: u64,
    /// Remainder of dividing bits by rate in this busy period, so that rounding does not accumulate.
    carry: u64,
    dropped: [u64; 3],
    queue: AnyQdisc,
    /// The link's own pool, if it is used by itself.
    own: PacketPool,
}

impl Link {
    /// A link whose random streams derive from `seed` and `name`.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Link {
        let constant = config.rate.filter(|_| config.changes.is_empty());
        let rate = constant.map_or(0, Rate::bps);
        let varied = Varied::new(config, seed, name).map(Box::new);
        let varied_delay = varied.as_ref().map(|v| v.shortest());
        let plain = config.loss == Loss::None && config.overhead == 0 && varied.is_none();
        let extra = (!plain).then(|| {
            Box::new(Extra {
                overhead: u64::from(config.overhead),
                loss: (config.loss != Loss::None)
                    .then(|| LossProcess::new(config.loss, Stream::new(seed, name))),
                varied,
                ..Extra::default()
            })
        });
        let outlet = Outlet {
            limit: config.queue,
            rate: config.rate,
            overhead: config.overhead,
            delay: config.delay,
        };
        let queue = AnyQdisc::new(&config.discipline, &outlet, seed, name);
        Link {
            free_at: Time::ZERO,
            // For a link that changes, this is its shortest delay ever, so that wake-ups are never too late.
            delay: varied_delay.unwrap_or(config.delay),
            per_byte: if rate > 0 && BYTE.is_multiple_of(rate) {
                BYTE / rate
            } else {
                0
            },
            flight: VecDeque::new(),
            arrived: 0,
            departed: 0,
            waiting: 0,
            sees_all: queue.sees_all(),
            extra,
            rate,
            carry: 0,
            dropped: [0; 3],
            queue,
            own: PacketPool::default(),
        }
    }

    /// Measures the traffic from now on.
    pub fn set_meter(&mut self, meter: Meter) {
        self.extra.get_or_insert_default().meter = Some(meter);
    }

    /// The meter, if one was set.
    pub fn meter(&self) -> Option<&Meter> {
        self.extra.as_deref()?.meter.as_ref()
    }

    /// Counts packets of groups of flows from now on.
    pub fn set_census(&mut self, census: Census) {
        self.extra.get_or_insert_default().census = Some(census);
    }

    /// The census, if one was set.
    pub fn census(&self) -> Option<&Census> {
        self.extra.as_deref()?.census.as_ref()
    }

    /// The census, mutable, to assign flows.
    pub fn census_mut(&mut self) -> Option<&mut Census> {
        self.extra.as_deref_mut()?.census.as_mut()
    }

    /// Keeps dropped packets from now on until they are taken.
    pub fn keep_dropped(&mut self) {
        self.extra
            .get_or_insert_default()
            .lost
            .get_or_insert_default();
    }

    /// Packets dropped since the last call as (instant, packet, reason), in the order in which the drops became known.
    pub fn take_dropped(&mut self) -> Vec<(Time, Packet, DropReason)> {
        let lost = self.extra.as_deref_mut().and_then(|e| e.lost.as_mut());
        lost.map(std::mem::take).unwrap_or_default()
    }

    /// Propagation delay. For a link that changes, the shortest delay that it ever has.
    pub fn delay(&self) -> Dur {
        self.delay
    }

    /// When the transmission of the first waiting packet begins; `None` if none waits.
    pub fn next_start(&self) -> Option<Time> {
        (self.waiting > 0).then_some(self.free_at)
    }

    /// Waiting packets and bytes at `now`.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.with_own(|link, pool| {
            link.advance(pool, now);
            while link.exchange(pool, now) {}
        });
        self.queue.backlog()
    }

    /// Runs `act` with the link's own pool.
    fn with_own<T>(&mut self, act: impl FnOnce(&mut Link, &mut PacketPool) -> T) -> T {
        let mut pool = std::mem::take(&mut self.own);
        let result = act(self, &mut pool);
        #[cfg(debug_assertions)]
        self.check_places(&pool);
        self.own = pool;
        result
    }

    /// Checks that the own pool holds exactly the packets of this link.
    #[cfg(debug_assertions)]
    fn check_places(&self, own: &PacketPool) {
        assert_eq!(
            own.used() as u64 + self.queue.holds(),
            self.ledger().held(),
            "packets and places of a link that is used by itself"
        );
    }

    /// Number of packets that the queue has marked instead of dropping.
    pub fn marked(&self) -> u64 {
        let extra = self.extra.as_deref();
        let before = extra.and_then(|e| Some(e.varied.as_ref()?.marked_before));
        self.queue.marked() + before.unwrap_or(0)
    }

    /// Begins the next transmission due by `now` whose packet the wire does not lose. The caller must then either
    /// take the packet ([`Link::leaves`]) or leave it in the link ([`Link::flies`]).
    #[inline]
    pub fn begin(&mut self, pool: &mut PacketPool, now: Time) -> Option<Begun> {
        if self.waiting > 0 && self.free_at <= now {
            self.dequeue(pool, now)
        } else {
            None
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, pool: &mut PacketPool, now: Time) -> Option<Begun> {
        match &mut self.queue {
            AnyQdisc::Fifo(row) if self.extra.is_none() => {
                let Waiting { place, size, note } = row.dequeue()?;
                self.waiting -= 1;
                let took = self.transmission(u64::from(size));
                self.free_at += took;
                Some(Begun {
                    arrival: self.free_at + self.delay,
                    place,
                    note,
                })
            }
            _ => {
                let (arrival, place) = self.dequeue_any(pool, now)?;
                Some(Begun {
                    arrival,
                    place,
                    note: pool.note(place),
                })
            }
        }
    }

    #[inline(never)]
    fn dequeue_any(&mut self, pool: &mut PacketPool, now: Time) -> Option<(Time, SlotId)> {
        while self.waiting > 0 && self.free_at <= now {
            if self.rate == 0 {
                return self.dequeue_varied(pool, now);
            }
            let start = self.free_at;
            let (dropped, extra) = (&mut self.dropped, &mut self.extra);
            let next = self.queue.dequeue(start, pool, &mut |packet, reason| {
                dropped[reason as usize] += 1;
                if let Some(extra) = extra {
                    extra.count_drop(start, &packet, reason, false);
                }
            });
            self.waiting = self.queue.waiting();
            let place = next?;
            if let Some(arrival) = self.transmit(pool, start, place) {
                return Some((arrival, place));
            }
        }
        None
    }

    /// Begins the transmission of a packet at `start`. Returns its arrival, unless the wire loses it.
    #[inline(always)]
    fn transmit(&mut self, pool: &mut PacketPool, start: Time, place: SlotId) -> Option<Time> {
        let packet = pool.packet(place);
        let mut bytes = u64::from(packet.size);
        if let Some(extra) = &mut self.extra {
            extra.begins(start, packet);
            bytes += extra.overhead;
        }
        let end = start + self.transmission(bytes);
        self.free_at = end;
        self.launch(pool, end, place)
    }

    /// Transmission time of `bytes` at a constant rate.
    #[inline(always)]
    fn transmission(&mut self, bytes: u64) -> Dur {
        Dur::from_nanos(if self.per_byte > 0 {
            bytes * self.per_byte
        } else {
            // Sizes have 16 bits and a second has 1e9 nanoseconds: 2^17 * 8e9 + rate fits in 64 bits.
            let work = bytes * BYTE + self.carry;
            self.carry = work % self.rate;
            work / self.rate
        })
    }

    /// The last bit of a packet leaves at `end`. Returns its arrival, unless the wire loses it.
    #[inline]
    fn launch(&mut self, pool: &mut PacketPool, end: Time, place: SlotId) -> Option<Time> {
        if let Some(extra) = &mut self.extra
            && extra.loses(end, pool.packet(place))
        {
            extra.keep(end, &pool.copy(place), DropReason::Loss);
            self.dropped[DropReason::Loss as usize] += 1;
            pool.release(place);
            return None;
        }
        Some(end + self.delay)
    }

    /// A packet arrives. If its transmission begins at once, returns its arrival at the far end, as [`Link::begin`]
    /// does. All transmissions due by `at` must have begun. If this returns `None`, another transmission may have
    /// become due.
    #[inline(always)]
    pub fn accept(&mut self, pool: &mut PacketPool, at: Time, place: SlotId) -> Option<Time> {
        self.arrived += 1;
        if self.extra.is_some() || self.rate == 0 {
            return self.accept_any(pool, at, place);
        }
        if self.free_at < at {
            // The serializer was idle, so the remainder of the last busy period is dropped.
            self.free_at = at;
            self.carry = 0;
        }
        if self.free_at == at && self.waiting == 0 && !self.sees_all {
            let took = self.transmission(u64::from(pool.packet(place).size));
            self.free_at += took;
            Some(self.free_at + self.delay)
        } else {
            self.enqueue(pool, at, place);
            None
        }
    }

    #[inline(never)]
    fn accept_any(&mut self, pool: &mut PacketPool, at: Time, place: SlotId) -> Option<Time> {
        if let Some(extra) = &mut self.extra {
            if extra.varied.is_some() {
                return self.accept_varied(pool, at, place);
            }
            extra.arrival(at, pool.packet(place), &self.queue);
        }
        if self.rate == 0 {
            if let Some(extra) = &mut self.extra {
                extra.begins(at, pool.packet(place));
            }
            // Packets sent after a change ([`Link::change`]) must not overtake this one.
            self.free_at = at;
            return self.launch(pool, at, place);
        }
        if self.free_at < at {
            // The serializer was idle, so the remainder of the last busy period is dropped.
            self.free_at = at;
            self.carry = 0;
        }
        if self.free_at == at && self.waiting == 0 && !self.sees_all {
            self.transmit(pool, at, place)
        } else {
            self.enqueue(pool, at, place);
            None
        }
    }

    #[inline(never)]
    fn enqueue(&mut self, pool: &mut PacketPool, at: Time, place: SlotId) {
        match &mut self.queue {
            AnyQdisc::Fifo(row) if self.extra.is_none() => match row.enqueue(pool, place) {
                Ok(()) => self.waiting += 1,
                Err(reason) => {
                    self.dropped[reason as usize] += 1;
                    pool.release(place);
                }
            },
            _ => self.enqueue_any(pool, at, place),
        }
    }

    #[inline(never)]
    fn enqueue_any(&mut self, pool: &mut PacketPool, at: Time, place: SlotId) {
        if self.waiting == 0 && self.free_at <= at {
            self.queue.fall_idle(at); // links call their disciplines only while packets wait
        }
        let (dropped, extra) = (&mut self.dropped, &mut self.extra);
        let accepted = self.queue.enqueue(at, pool, place, &mut |other, reason| {
            dropped[reason as usize] += 1;
            if let Some(extra) = extra {
                extra.count_drop(at, &other, reason, false);
            }
        });
        self.waiting = self.queue.waiting();
        if let Err(reason) = accepted {
            self.dropped[reason as usize] += 1;
            if let Some(e) = &mut self.extra {
                let packet = pool.copy(place);
                e.count_drop(at, &packet, reason, true);
                // Without a rate, as on a link that changes, nothing tells how far the transmission in progress is.
                if reason == DropReason::QueueFull
                    && self.rate > 0
                    && let Some(meter) = &mut e.meter
                {
                    let bytes = u64::from(packet.size) + e.overhead;
                    let whole = Dur::from_nanos(bytes * BYTE / self.rate);
                    meter.refuses(&packet, self.free_at.since(at), whole);
                }
            }
            pool.release(place);
        }
    }

    /// Keeps a packet whose transmission has begun in the link until `arrival`. It counts as departed when it is
    /// [taken](Link::take_arrived).
    #[inline]
    pub fn flies(&mut self, arrival: Time, place: SlotId) {
        self.flight.push_back((arrival, place));
    }

    /// The caller takes over a packet whose transmission has begun. This saves a wake-up for its arrival. The caller
    /// must touch the link no later than [`Link::touch_at`].
    #[inline]
    pub fn leaves(&mut self) {
        self.departed += 1;
    }

    /// Begins every transmission due by `now`; the packets stay in the link until they have arrived.
    #[inline]
    pub fn advance(&mut self, pool: &mut PacketPool, now: Time) {
        while let Some(begun) = self.begin(pool, now) {
            self.flies(begun.arrival, begun.place);
        }
    }

    /// As [`Link::push`], for a packet in `pool`. The packet stays in the link until it has arrived.
    #[inline]
    pub fn push_place(&mut self, pool: &mut PacketPool, at: Time, place: SlotId) {
        self.advance(pool, at);
        match self.accept(pool, at, place) {
            Some(arrival) => self.flies(arrival, place),
            None => self.advance(pool, at),
        }
    }

    /// When a caller of [`Link::begin`] must call again: the next packet in the link arrives, or a waiting packet
    /// could arrive.
    #[inline]
    pub fn touch_at(&self) -> Option<Time> {
        self.next_arrival()
            .or_else(|| (self.waiting > 0).then(|| self.free_at + self.delay))
    }

    /// As [`Link::poll_at`], for a link whose packets are in `pool`.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        // There may be no packet in flight while others wait: the wire may have lost the packet in transmission.
        self.next_arrival()
            .or_else(|| (self.waiting > 0).then_some(self.free_at))
    }

    /// When the first packet in flight arrives.
    #[inline]
    fn next_arrival(&self) -> Option<Time> {
        Some(self.flight.front()?.0)
    }

    /// Packets in flight to the far end, in order of arrival. Waiting packets are not in flight yet.
    #[inline]
    pub fn flying(&self) -> impl Iterator<Item = SlotId> {
        self.flight.iter().map(|&(_, place)| place)
    }

    /// The packet that arrives after `n` other packets in flight.
    #[inline]
    pub fn behind(&self, n: usize) -> Option<SlotId> {
        Some(self.flight.get(n)?.1)
    }

    /// Takes the first packet in flight if it has arrived by `now`, as [`Link::pop`] does. The link must have been
    /// advanced to `now`. The caller must send the packet on or release it.
    #[inline]
    pub fn take_arrived(&mut self, now: Time) -> Option<SlotId> {
        let &(arrival, place) = self.flight.front()?;
        if arrival > now {
            return None;
        }
        self.flight.pop_front();
        self.departed += 1;
        Some(place)
    }
}

/// A link that stores its packets itself.
impl Link {
    /// A packet arrives; `at` never decreases from call to call.
    pub fn push(&mut self, at: Time, packet: Packet) {
        self.with_own(|link, pool| {
            let place = pool.put(&packet);
            link.push_place(pool, at, place);
        });
    }

    /// When [`Link::pop`] may next return a packet: never later than the next departure.
    pub fn poll_at(&self) -> Option<Time> {
        #[cfg(debug_assertions)]
        self.check_places(&self.own);
        self.due()
    }

    /// The next departure and its instant, if that is not later than `now`.
    pub fn pop(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.with_own(|link, pool| {
            link.advance(pool, now);
            let at = link.next_arrival()?;
            let place = link.take_arrived(now)?;
            let packet = pool.copy(place);
            pool.release(place);
            Some((at, packet))
        })
    }

    /// Counts of packets that arrived, departed and were dropped.
    pub fn ledger(&self) -> Ledger {
        Ledger {
            arrived: self.arrived,
            departed: self.departed,
            dropped: self.dropped,
            marked: self.marked(),
        }
    }
}

//! The link: queue, serializer, wire, propagation.

mod extra;
mod varied;

use std::collections::VecDeque;

use swell_base::{DropReason, Dur, Packet, QueueLimit, Rate, Stream, Time};

use crate::pool::Place;
use crate::qdisc::{AnyQdisc, Waiting};
use crate::{
    Backlog, Census, Change, Discipline, Element, Ledger, Loss, LossProcess, Meter, Note, Outlet,
    PacketPool,
};
use extra::Extra;
use varied::Varied;

/// Nanoseconds that a byte takes at one bit per second.
pub(crate) const BYTE: u64 = 8_000_000_000;

/// What a link is made of. The default passes packets on at once.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Rate of the serializer; none = transmission takes no time and nothing ever waits.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Dur,
    /// Queueing discipline.
    pub discipline: Discipline,
    /// How much may wait.
    pub queue: QueueLimit,
    /// Bytes that the link layer adds to each packet on the wire (0 = rates count network-layer
    /// bytes).
    pub overhead: u16,
    /// Loss on the wire, after transmission.
    pub loss: Loss,
    /// What changes, and when.
    pub changes: Vec<Change>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            rate: None,
            delay: Dur::ZERO,
            discipline: Discipline::Fifo,
            queue: QueueLimit::Packets(1000),
            overhead: 0,
            loss: Loss::None,
            changes: Vec::new(),
        }
    }
}

/// A transmission that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// When the packet arrives at the far end.
    pub arrival: Time,
    /// The packet.
    pub place: Place,
    /// Its note: a caller that needs only this does not touch the memory of the packet.
    pub note: Note,
}

/// A queueing discipline, a serializer, a lossy wire and a propagation delay.
///
/// As soon as a transmission begins, its end is known; the packet then moves to the delay line with
/// its arrival at the far end, so a packet costs one wake-up per link. The queue is brought up to
/// date, each dequeue at its own instant, whenever the link is touched.
///
/// A link is used in one of two ways, never in both. As an [`Element`] it keeps its packets in its own pool: `push`,
/// `poll_at`, `pop` and [`Link::backlog`]. With many links it works on places of a shared pool: the methods with a
/// [`PacketPool`] argument, which must always be the same pool. Then [`Link::due`] takes the place of `poll_at`, and
/// debug builds panic if one of those four is called while the link holds packets. Counts ([`Element::ledger`], meter,
/// census, marks) are the same in both.
///
/// Fields are in the order of use: first those for a packet that finds the link idle, then those for one that
/// waits. With thousands of links, cache misses are most of the cost of a hop.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    /// End of the last transmission begun.
    free_at: Time,
    delay: Dur,
    /// Nanoseconds per byte where the rate makes that a whole number, else zero.
    per_byte: u64,
    /// Packets waiting.
    waiting: u32,
    /// The queue wants to see packets too that find the serializer idle and nothing waiting.
    sees_all: bool,
    /// Packets under way, and when each arrives at the far end.
    flight: VecDeque<(Time, Place)>,
    arrived: u64,
    departed: u64,
    /// Features that few links have.
    extra: Option<Box<Extra>>,
    /// Bits per second; zero = transmission takes no time, or how much it takes changes.
    rate: u64,
    /// What the division of bits by rate left over in this busy period, so that rates do not drift.
    carry: u64,
    dropped: [u64; 3],
    queue: AnyQdisc,
    /// Where its packets lie if it is used as an [`Element`], by itself.
    own: PacketPool,
}

impl Link {
    /// A link called `name`, whose random stream derives from `seed` and the name.
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
            // For a link that changes, its shortest delay ever: callers wait at most this long.
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

    /// Counts what passes from now on.
    pub fn set_meter(&mut self, meter: Meter) {
        self.extra.get_or_insert_default().meter = Some(meter);
    }

    /// The meter, if one was set.
    pub fn meter(&self) -> Option<&Meter> {
        self.extra.as_deref()?.meter.as_ref()
    }

    /// Keeps account of groups of flows from now on.
    pub fn set_census(&mut self, census: Census) {
        self.extra.get_or_insert_default().census = Some(census);
    }

    /// The census, if one was set.
    pub fn census(&self) -> Option<&Census> {
        self.extra.as_deref()?.census.as_ref()
    }

    /// The same, to assign flows.
    pub fn census_mut(&mut self) -> Option<&mut Census> {
        self.extra.as_deref_mut()?.census.as_mut()
    }

    /// Keeps what is dropped from now on until it is taken.
    pub fn keep_dropped(&mut self) {
        self.extra
            .get_or_insert_default()
            .lost
            .get_or_insert_default();
    }

    /// What was dropped since the last call, in the order in which that became known: when, what, why.
    pub fn take_dropped(&mut self) -> Vec<(Time, Packet, DropReason)> {
        let lost = self.extra.as_deref_mut().and_then(|e| e.lost.as_mut());
        lost.map(std::mem::take).unwrap_or_default()
    }

    /// Propagation delay; of a link that changes, the shortest it ever has.
    pub fn delay(&self) -> Dur {
        self.delay
    }

    /// When the transmission of the first packet that waits begins; `None` where none waits.
    pub fn next_start(&self) -> Option<Time> {
        (self.waiting > 0).then_some(self.free_at)
    }

    /// What waits in the queue at `now`.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.with_own(|link, pool| {
            link.advance(pool, now);
            while link.exchange(pool, now) {}
        });
        self.queue.backlog()
    }

    /// Does something with the link's own pool.
    fn with_own<T>(&mut self, act: impl FnOnce(&mut Link, &mut PacketPool) -> T) -> T {
        let mut pool = std::mem::take(&mut self.own);
        let result = act(self, &mut pool);
        #[cfg(debug_assertions)]
        self.check_places(&pool);
        self.own = pool;
        result
    }

    /// Every packet that the link holds has a place in its own pool, and no other has.
    #[cfg(debug_assertions)]
    fn check_places(&self, own: &PacketPool) {
        assert_eq!(
            own.used() as u64 + self.queue.holds(),
            self.ledger().held(),
            "packets and places of a link that is used by itself"
        );
    }

    /// Packets that the queue marked instead of dropping them, so far.
    pub fn marked(&self) -> u64 {
        let extra = self.extra.as_deref();
        let before = extra.and_then(|e| Some(e.varied.as_ref()?.marked_before));
        self.queue.marked() + before.unwrap_or(0)
    }

    /// Begins the next transmission due by `now`, if there is one that the wire does not lose. The caller must then either
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
    fn dequeue_any(&mut self, pool: &mut PacketPool, now: Time) -> Option<(Time, Place)> {
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

    /// Begins the transmission of a packet at `start`; when it arrives, if the wire does not lose it.
    #[inline(always)]
    fn transmit(&mut self, pool: &mut PacketPool, start: Time, place: Place) -> Option<Time> {
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

    /// How long the transmission of that many bytes takes, at a rate that does not change.
    #[inline(always)]
    fn transmission(&mut self, bytes: u64) -> Dur {
        Dur::from_nanos(if self.per_byte > 0 {
            bytes * self.per_byte
        } else {
            // Sizes are 16 bits and a second has 1e9 nanoseconds: 2^17 * 8e9 + rate fits 64 bits.
            let work = bytes * BYTE + self.carry;
            self.carry = work % self.rate;
            work / self.rate
        })
    }

    /// The last bit leaves at `end`.
    #[inline]
    fn launch(&mut self, pool: &mut PacketPool, end: Time, place: Place) -> Option<Time> {
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

    /// A packet arrives. If its transmission begins at once, returns when it arrives at the far end, as
    /// [`Link::begin`]. Call it only when everything due by `at` has begun. If it returns `None`, another transmission may
    /// have become due.
    #[inline(always)]
    pub fn accept(&mut self, pool: &mut PacketPool, at: Time, place: Place) -> Option<Time> {
        self.arrived += 1;
        if self.extra.is_some() || self.rate == 0 {
            return self.accept_any(pool, at, place);
        }
        if self.free_at < at {
            // The serializer was idle: the remainder of the last busy period is void.
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
    fn accept_any(&mut self, pool: &mut PacketPool, at: Time, place: Place) -> Option<Time> {
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
            return self.launch(pool, at, place);
        }
        if self.free_at < at {
            // The serializer was idle: a new busy period owes nothing.
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
    fn enqueue(&mut self, pool: &mut PacketPool, at: Time, place: Place) {
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
    fn enqueue_any(&mut self, pool: &mut PacketPool, at: Time, place: Place) {
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
                if reason == DropReason::QueueFull
                    && let Some(meter) = &mut e.meter
                {
                    let bytes = u64::from(packet.size) + e.overhead;
                    let whole = Dur::from_nanos((bytes * BYTE).checked_div(self.rate).unwrap_or(0));
                    meter.refuses(&packet, self.free_at.since(at), whole);
                }
            }
            pool.release(place);
        }
    }

    /// A packet whose transmission has begun is under way until `arrival`, and known to have arrived when it
    /// is [taken](Link::take_arrived).
    #[inline]
    pub fn flies(&mut self, arrival: Time, place: Place) {
        self.flight.push_back((arrival, place));
    }

    /// A packet whose transmission has begun is the caller's from now on. This saves a wake-up for its arrival. The
    /// caller must touch the link by [`Link::touch_at`].
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

    /// As [`Element::push`] of a packet that lies in `pool`, which stays in the link until it has arrived.
    #[inline]
    pub fn push_place(&mut self, pool: &mut PacketPool, at: Time, place: Place) {
        self.advance(pool, at);
        match self.accept(pool, at, place) {
            Some(arrival) => self.flies(arrival, place),
            None => self.advance(pool, at),
        }
    }

    /// When a caller of [`Link::begin`] must call again: the next packet in the link arrives, or a waiting one could
    /// arrive.
    #[inline]
    pub fn touch_at(&self) -> Option<Time> {
        self.next_arrival()
            .or_else(|| (self.waiting > 0).then(|| self.free_at + self.delay))
    }

    /// [`Element::poll_at`] of a link whose packets lie in `pool`.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        // The packet in transmission may have been lost on the wire while others wait.
        self.next_arrival()
            .or_else(|| (self.waiting > 0).then_some(self.free_at))
    }

    /// When the first packet under way arrives.
    #[inline]
    fn next_arrival(&self) -> Option<Time> {
        Some(self.flight.front()?.0)
    }

    /// Packets under way to the far end, in the order of their arrival. Those that wait are not under way yet.
    #[inline]
    pub fn flying(&self) -> impl Iterator<Item = Place> {
        self.flight.iter().map(|&(_, place)| place)
    }

    /// The packet with `n` others under way before it.
    #[inline]
    pub fn behind(&self, n: usize) -> Option<Place> {
        Some(self.flight.get(n)?.1)
    }

    /// The first packet under way if it has arrived by `now`: as [`Element::pop`], of a link that was
    /// advanced to `now`. It is the caller's to send on or to release.
    #[inline]
    pub fn take_arrived(&mut self, now: Time) -> Option<Place> {
        let &(arrival, place) = self.flight.front()?;
        if arrival > now {
            return None;
        }
        self.flight.pop_front();
        self.departed += 1;
        Some(place)
    }
}

impl Element for Link {
    fn push(&mut self, at: Time, packet: Packet) {
        self.with_own(|link, pool| {
            let place = pool.put(&packet);
            link.push_place(pool, at, place);
        });
    }

    fn poll_at(&self) -> Option<Time> {
        #[cfg(debug_assertions)]
        self.check_places(&self.own);
        self.due()
    }

    fn pop(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.with_own(|link, pool| {
            link.advance(pool, now);
            let at = link.next_arrival()?;
            let place = link.take_arrived(now)?;
            let packet = pool.copy(place);
            pool.release(place);
            Some((at, packet))
        })
    }

    fn ledger(&self) -> Ledger {
        Ledger {
            arrived: self.arrived,
            departed: self.departed,
            dropped: self.dropped,
        }
    }
}

//! The link: queue, serializer, wire, propagation.

use swell_base::{DropReason, Dur, Packet, QueueLimit, Rate, Stream, Time};

use crate::flight::Flight;
use crate::qdisc::AnyQdisc;
use crate::{Backlog, Discipline, Element, Ledger, Loss, LossProcess, Meter, Qdisc};

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
        }
    }
}

/// A queueing discipline, a serializer, a lossy wire and a propagation delay.
///
/// As soon as a transmission begins, its end is known; the packet then moves to the delay line with
/// its arrival at the far end, so a packet costs one wake-up per link. The queue is brought up to
/// date, each dequeue at its own instant, whenever the link is touched.
#[derive(Clone, Debug)]
pub struct Link {
    rate: u64,
    overhead: u64,
    delay: Dur,
    /// End of the last transmission begun.
    free_at: Time,
    /// What the division of bits by rate left over in this busy period, so that rates do not drift.
    carry: u64,
    queue: AnyQdisc,
    loss: Option<Box<LossProcess>>,
    flight: Flight,
    ledger: Ledger,
    meter: Option<Box<Meter>>,
}

impl Link {
    /// A link called `name`, whose random stream derives from `seed` and the name.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Link {
        let loss = (config.loss != Loss::None)
            .then(|| Box::new(LossProcess::new(config.loss, Stream::new(seed, name))));
        Link {
            rate: config.rate.map_or(0, Rate::bps),
            overhead: u64::from(config.overhead),
            delay: config.delay,
            free_at: Time::ZERO,
            carry: 0,
            queue: AnyQdisc::new(config.discipline, config.queue, config.rate),
            loss,
            flight: Flight::new(),
            ledger: Ledger::default(),
            meter: None,
        }
    }

    /// Counts what passes from now on.
    pub fn set_meter(&mut self, meter: Meter) {
        self.meter = Some(Box::new(meter));
    }

    /// The meter, if one was set.
    pub fn meter(&self) -> Option<&Meter> {
        self.meter.as_deref()
    }

    /// What waits in the queue at `now`.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.advance(now);
        self.queue.backlog()
    }

    /// Begins every transmission due by `now`.
    #[inline]
    fn advance(&mut self, now: Time) {
        while self.free_at <= now && self.queue.backlog().packets > 0 {
            let start = self.free_at;
            let (ledger, meter) = (&mut self.ledger, &mut self.meter);
            let next = self.queue.dequeue(start, &mut |packet, reason| {
                ledger.count(reason);
                if let Some(m) = meter {
                    m.count_drop(start, &packet);
                }
            });
            let Some(packet) = next else { break };
            self.transmit(start, &packet);
        }
    }

    #[inline]
    fn transmit(&mut self, start: Time, packet: &Packet) {
        // Sizes are 16 bits and a second has 1e9 nanoseconds: 2^17 * 8e9 + rate fits 64 bits.
        let work = (u64::from(packet.size) + self.overhead) * 8_000_000_000 + self.carry;
        let end = start + Dur::from_nanos(work / self.rate);
        self.carry = work % self.rate;
        self.free_at = end;
        self.launch(end, packet);
    }

    /// The last bit leaves at `end`.
    #[inline]
    fn launch(&mut self, end: Time, packet: &Packet) {
        if let Some(m) = &mut self.meter {
            m.departure(end, packet);
        }
        if let Some(loss) = &mut self.loss
            && loss.loses()
        {
            self.ledger.count(DropReason::Loss);
            if let Some(m) = &mut self.meter {
                m.count_drop(end, packet);
            }
            return;
        }
        self.flight.push(end + self.delay, packet);
    }
}

impl Link {
    /// [`Element::push`] without moving the packet about.
    #[inline]
    pub fn push_ref(&mut self, at: Time, packet: &Packet) {
        self.ledger.arrived += 1;
        if self.rate == 0 {
            if let Some(m) = &mut self.meter {
                m.arrival(at, packet, Backlog::default());
            }
            self.launch(at, packet);
            return;
        }
        self.advance(at);
        if let Some(m) = &mut self.meter {
            m.arrival(at, packet, self.queue.backlog());
        }
        if self.free_at < at {
            // The serializer was idle: a new busy period owes nothing.
            self.free_at = at;
            self.carry = 0;
        }
        if self.free_at == at && self.queue.passes_when_idle() {
            self.transmit(at, packet);
            return;
        }
        match self.queue.enqueue(at, *packet) {
            Ok(()) => self.advance(at),
            Err(reason) => {
                self.ledger.count(reason);
                if let Some(m) = &mut self.meter {
                    m.count_drop(at, packet);
                }
            }
        }
    }

    /// The next departure if it is not later than `now`, left in place: [`Element::pop`] in two
    /// steps, the second being [`Link::pop_front`].
    #[inline]
    pub fn front(&mut self, now: Time) -> Option<&mut Packet> {
        if self.rate != 0 {
            self.advance(now);
        }
        match self.flight.arrival() {
            Some(at) if at <= now => self.flight.front(),
            _ => None,
        }
    }

    /// What [`Link::front`] showed, once more.
    #[inline]
    pub fn front_again(&mut self) -> Option<&mut Packet> {
        self.flight.front()
    }

    /// Lets the packet go that [`Link::front`] showed.
    #[inline]
    pub fn pop_front(&mut self) {
        self.ledger.departed += u64::from(self.flight.pop());
    }
}

impl Element for Link {
    #[inline]
    fn push(&mut self, at: Time, packet: Packet) {
        self.push_ref(at, &packet);
    }

    #[inline]
    fn poll_at(&self) -> Option<Time> {
        self.flight.arrival().or_else(|| {
            // What was in transmission was lost on the wire, but more waits behind it.
            (self.queue.backlog().packets > 0).then_some(self.free_at)
        })
    }

    #[inline]
    fn pop(&mut self, now: Time) -> Option<(Time, Packet)> {
        let packet = *self.front(now)?;
        let at = self.flight.arrival()?;
        self.pop_front();
        Some((at, packet))
    }

    fn ledger(&self) -> Ledger {
        self.ledger
    }
}

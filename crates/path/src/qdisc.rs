//! Queueing disciplines: what waits in front of a serializer, in which order, and what is refused.

mod classifier;
mod codel;
mod drr;
mod fifo;
mod fq_codel;
mod pie;
mod priority;
mod red;
mod store;

use swell_base::{DropReason, Dur, Packet, QueueLimit, Rate, Stream};

use crate::PacketPool;
use crate::pool::Place;
use fifo::PlaceQueue;
pub(crate) use fifo::Waiting;

pub use classifier::Classifier;
pub use codel::{CoDel, CoDelConfig};
pub use drr::{Drr, DrrConfig};
pub use fifo::Fifo;
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use pie::{Pie, PieConfig, PieDelay};
pub use priority::{Priority, PriorityConfig};
pub use red::{Red, RedAdaptive, RedConfig, RedDialect, RedSpacing, RedThresholds, RedWeight};
pub use red::{RedMeasure, RedVictim};

use swell_base::Time;

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets waiting.
    pub packets: u64,
    /// Network-layer bytes waiting.
    pub bytes: u64,
}

impl Backlog {
    fn add(&mut self, size: u16) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }
    fn remove(&mut self, size: u16) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
}

/// A queueing discipline. `now` never decreases from call to call. Every packet is at every
/// instant in one of four states: waiting ([`Qdisc::backlog`]), returned by `dequeue`, refused by
/// `enqueue`, or passed to `dropped`.
pub trait Qdisc {
    /// Accepts a packet, or refuses it with a reason. Packets that are dropped to make room are passed
    /// to `dropped`. The new one may be among them.
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason>;

    /// The next packet to transmit. Packets that the discipline drops instead are passed to
    /// `dropped`. It may drop all of them and return `None`.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(Packet, DropReason))
    -> Option<Packet>;

    /// What waits.
    fn backlog(&self) -> Backlog;

    /// Packets marked Congestion Experienced instead of dropped, so far.
    fn marked(&self) -> u64 {
        0
    }
}

/// Which discipline a link has, with its parameters. `docs/queues.md` has a chapter on each.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Discipline {
    /// First in, first out; a packet that finds the queue full is dropped (drop tail).
    #[default]
    Fifo,
    /// Random early detection.
    Red(RedConfig),
    /// Strict priority without preemption.
    Priority(PriorityConfig),
    /// Deficit round robin.
    Drr(DrrConfig),
    /// Controlled delay.
    CoDel(CoDelConfig),
    /// A controlled-delay queue for each flow, served in turn.
    FqCoDel(FqCoDelConfig),
    /// Proportional integral controller, enhanced.
    Pie(PieConfig),
}

/// What a discipline may know of the link it serves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlet {
    /// How much may wait.
    pub limit: QueueLimit,
    /// Rate of the serializer; none = nothing ever waits.
    pub rate: Option<Rate>,
    /// Bytes that the link layer adds to each packet.
    pub overhead: u16,
    /// Propagation delay.
    pub delay: Dur,
}

/// The disciplines in front of a link's serializer. The hot one takes packets where they lie.
#[derive(Clone, Debug)]
pub(crate) enum AnyQdisc {
    Fifo(PlaceQueue),
    Other(Other),
}

/// The others, which store packets themselves.
#[derive(Clone, Debug)]
pub(crate) enum Other {
    Red(Box<Red>),
    Priority(Box<Priority>),
    Drr(Box<Drr>),
    CoDel(Box<CoDel>),
    FqCoDel(Box<FqCoDel>),
    Pie(Box<Pie>),
}

impl AnyQdisc {
    /// The queue of the link called `name`, whose random stream derives from `seed` and the name.
    pub(crate) fn new(d: &Discipline, outlet: &Outlet, seed: u64, name: &str) -> AnyQdisc {
        // Not the name itself: that is the stream of the link's losses.
        let stream = || Stream::new(seed, &format!("{name}/queue"));
        AnyQdisc::Other(match d {
            Discipline::Fifo => return AnyQdisc::Fifo(PlaceQueue::new(outlet.limit, outlet.rate)),
            Discipline::Red(c) => Other::Red(Box::new(Red::new(c, outlet, stream()))),
            Discipline::Priority(c) => Other::Priority(Box::new(Priority::new(c, outlet))),
            Discipline::Drr(c) => Other::Drr(Box::new(Drr::new(c, outlet, stream()))),
            Discipline::CoDel(c) => Other::CoDel(Box::new(CoDel::new(c, outlet))),
            Discipline::FqCoDel(c) => Other::FqCoDel(Box::new(FqCoDel::new(c, outlet, stream()))),
            Discipline::Pie(c) => Other::Pie(Box::new(Pie::new(c, outlet, stream()))),
        })
    }

    /// Whether packets matter to it that find the serializer idle and nothing waiting: averages,
    /// first-packet-above times and drop probabilities are made of such packets too. The others keep
    /// no state that would miss them; a deficit is forgotten with the last packet of its class.
    pub(crate) fn sees_all(&self) -> bool {
        match self {
            AnyQdisc::Fifo(_) | AnyQdisc::Other(Other::Priority(_) | Other::Drr(_)) => false,
            AnyQdisc::Other(_) => true,
        }
    }

    /// As [`Qdisc::enqueue`] of the packet in `place`, where a refused packet stays.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        pool: &mut PacketPool,
        place: Place,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        match self {
            AnyQdisc::Fifo(row) => row.enqueue(pool, place),
            AnyQdisc::Other(other) => other.enqueue(now, pool, place, dropped),
        }
    }

    /// As [`Qdisc::dequeue`].
    #[inline]
    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        pool: &mut PacketPool,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<Place> {
        match self {
            AnyQdisc::Fifo(row) => Some(row.dequeue()?.place),
            AnyQdisc::Other(other) => other.dequeue(now, pool, dropped),
        }
    }

    /// What waits.
    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        match self {
            AnyQdisc::Fifo(row) => row.backlog(),
            AnyQdisc::Other(other) => other.backlog(),
        }
    }

    /// Packets that wait outside of the pool.
    #[cfg(debug_assertions)]
    pub(crate) fn holds(&self) -> u64 {
        match self {
            AnyQdisc::Fifo(_) => 0,
            AnyQdisc::Other(other) => other.backlog().packets,
        }
    }

    /// Packets waiting; more than 2^32 are more than memory.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        self.backlog().packets as u32
    }

    /// As [`Qdisc::marked`].
    pub(crate) fn marked(&self) -> u64 {
        match self {
            AnyQdisc::Fifo(_) => 0,
            AnyQdisc::Other(other) => other.get().marked(),
        }
    }

    /// Returns the next waiting packet in the order of service, for a discipline that takes over. It dequeues at time zero:
    /// then no packet has waited, so no discipline drops one. Do not use it for anything else afterwards.
    pub(crate) fn give_up(
        &mut self,
        pool: &mut PacketPool,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<Place> {
        self.dequeue(Time::ZERO, pool, dropped)
    }
}

impl Other {
    fn get_mut(&mut self) -> &mut dyn Qdisc {
        match self {
            Other::Red(q) => &mut **q,
            Other::Priority(q) => &mut **q,
            Other::Drr(q) => &mut **q,
            Other::CoDel(q) => &mut **q,
            Other::FqCoDel(q) => &mut **q,
            Other::Pie(q) => &mut **q,
        }
    }

    fn get(&self) -> &dyn Qdisc {
        match self {
            Other::Red(q) => &**q,
            Other::Priority(q) => &**q,
            Other::Drr(q) => &**q,
            Other::CoDel(q) => &**q,
            Other::FqCoDel(q) => &**q,
            Other::Pie(q) => &**q,
        }
    }

    // Not inlined, so that a link contains the FIFO and one call.

    #[cold]
    #[inline(never)]
    fn enqueue(
        &mut self,
        now: Time,
        pool: &mut PacketPool,
        place: Place,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        self.get_mut().enqueue(now, pool.copy(place), dropped)?;
        pool.release(place);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Time,
        pool: &mut PacketPool,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<Place> {
        let packet = self.get_mut().dequeue(now, dropped)?;
        Some(pool.put(&packet))
    }

    #[cold]
    #[inline(never)]
    fn backlog(&self) -> Backlog {
        self.get().backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_of_a_discipline_costs_a_fifo_a_word_at_most() {
        assert!(size_of::<AnyQdisc>() <= size_of::<PlaceQueue>() + 8);
    }
}

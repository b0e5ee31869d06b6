//! Queueing disciplines: they decide which packets wait for a serializer, in which order, and which are dropped.

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
use crate::pool::SlotId;
use fifo::PlaceQueue;
pub(crate) use fifo::Waiting;

pub use classifier::Classifier;
pub use codel::{CoDel, CoDelConfig};
pub use drr::{Drr, DrrConfig};
pub use fifo::Fifo;
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use pie::{Pie, PieConfig, PieDelay};
pub use priority::{Priority, PriorityConfig};
pub use red::{
    Red, RedAdaptive, RedConfig, RedDialect, RedSpacing, RedThresholds, RedWeight, RedWeightRule,
};
pub use red::{RedMeasure, RedVictim};

use swell_base::Time;

/// Packets and bytes that wait in a queue.
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

/// A queueing discipline. `now` never decreases from call to call. At every instant each packet is in exactly one of
/// four states: waiting ([`Qdisc::backlog`]), returned by `dequeue`, refused by `enqueue`, or passed to `dropped`.
pub trait Qdisc {
    /// Accepts a packet, or refuses it with a reason. Packets that are dropped to make space are passed to `dropped`.
    /// The new packet may be among them.
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason>;

    /// The next packet to transmit. Packets that the discipline drops are passed to `dropped`. It may drop all of
    /// them and return `None`.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(Packet, DropReason))
    -> Option<Packet>;

    /// Packets and bytes that wait.
    fn backlog(&self) -> Backlog;

    /// Number of packets marked Congestion Experienced instead of dropped.
    fn marked(&self) -> u64 {
        0
    }
}

/// The discipline of a link, with its parameters. `docs/queues.md` has a chapter on each.
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
    /// A CoDel queue for each flow, served in turn.
    FqCoDel(FqCoDelConfig),
    /// Proportional integral controller, enhanced.
    Pie(PieConfig),
}

/// Properties of the link that a discipline serves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlet {
    /// Limit on waiting packets.
    pub limit: QueueLimit,
    /// Rate of the serializer. Without a rate, packets never wait.
    pub rate: Option<Rate>,
    /// Bytes that the link layer adds to each packet.
    pub overhead: u16,
    /// Propagation delay.
    pub delay: Dur,
}

/// The discipline of a link. FIFO is the hot case and works on slots of the packet pool.
#[derive(Clone, Debug)]
pub(crate) enum AnyQdisc {
    Fifo(PlaceQueue),
    Other(Other),
}

/// The other disciplines, which store packets themselves.
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
    /// The queue of the link `name`. Its random stream derives from `seed` and the name.
    pub(crate) fn new(d: &Discipline, outlet: &Outlet, seed: u64, name: &str) -> AnyQdisc {
        // The name alone is already used for the stream of the link's losses.
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

    /// Whether the discipline must also see packets that find the serializer idle and the queue empty. Such packets
    /// affect averages, first-packet-above times and drop probabilities. The other disciplines keep no state across
    /// an empty queue; DRR resets a deficit when its queue empties.
    pub(crate) fn sees_all(&self) -> bool {
        match self {
            AnyQdisc::Fifo(_) | AnyQdisc::Other(Other::Priority(_) | Other::Drr(_)) => false,
            AnyQdisc::Other(_) => true,
        }
    }

    /// As [`Qdisc::enqueue`], for the packet in `place`. A refused packet keeps its slot.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        pool: &mut PacketPool,
        place: SlotId,
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
    ) -> Option<SlotId> {
        match self {
            AnyQdisc::Fifo(row) => Some(row.dequeue()?.place),
            AnyQdisc::Other(other) => other.dequeue(now, pool, dropped),
        }
    }

    /// The serializer asked for a packet, and none waits. Only FQ-CoDel has state that this changes.
    #[inline]
    pub(crate) fn fall_idle(&mut self, now: Time) {
        if let AnyQdisc::Other(Other::FqCoDel(q)) = self {
            q.fall_idle(now);
        }
    }

    /// Packets and bytes that wait.
    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        match self {
            AnyQdisc::Fifo(row) => row.backlog(),
            AnyQdisc::Other(other) => other.backlog(),
        }
    }

    /// Number of packets stored outside the pool.
    #[cfg(debug_assertions)]
    pub(crate) fn holds(&self) -> u64 {
        match self {
            AnyQdisc::Fifo(_) => 0,
            AnyQdisc::Other(other) => other.backlog().packets,
        }
    }

    /// Number of waiting packets. More than 2^32 do not fit in memory.
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

    /// Returns the next waiting packet in order of service, for a discipline that takes over. It dequeues at time
    /// zero, when no packet has waited yet, so that no discipline drops one. The queue must not be used for anything
    /// else afterwards.
    pub(crate) fn give_up(
        &mut self,
        pool: &mut PacketPool,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<SlotId> {
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

    // Not inlined, so that a link contains the FIFO code and a single call.

    #[cold]
    #[inline(never)]
    fn enqueue(
        &mut self,
        now: Time,
        pool: &mut PacketPool,
        place: SlotId,
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
    ) -> Option<SlotId> {
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

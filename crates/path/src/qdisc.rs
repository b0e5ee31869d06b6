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
    fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }
    fn remove(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
    }
}

/// A queueing discipline. `now` never decreases from call to call. A packet handed in is at every
/// instant in one of four states: waiting ([`Qdisc::backlog`]), given out by `dequeue`, refused by
/// `enqueue`, or handed to `dropped`.
pub trait Qdisc {
    /// Accepts a packet or refuses it, saying why. Packets that must make room, if any, are handed
    /// to `dropped`; the new one may be among them, accepted first and dropped at once.
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason>;

    /// The next packet to transmit. Packets that the discipline drops on the way are handed to
    /// `dropped`; it may drop all it has and give none.
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

/// The disciplines, dispatched without a pointer; all but the hot one are boxed.
#[derive(Clone, Debug)]
pub(crate) enum AnyQdisc {
    Fifo(Fifo),
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
        match d {
            Discipline::Fifo => AnyQdisc::Fifo(Fifo::new(outlet.limit, outlet.rate)),
            Discipline::Red(c) => AnyQdisc::Red(Box::new(Red::new(c, outlet, stream()))),
            Discipline::Priority(c) => AnyQdisc::Priority(Box::new(Priority::new(c, outlet))),
            Discipline::Drr(c) => AnyQdisc::Drr(Box::new(Drr::new(c, outlet, stream()))),
            Discipline::CoDel(c) => AnyQdisc::CoDel(Box::new(CoDel::new(c, outlet))),
            Discipline::FqCoDel(c) => {
                AnyQdisc::FqCoDel(Box::new(FqCoDel::new(c, outlet, stream())))
            }
            Discipline::Pie(c) => AnyQdisc::Pie(Box::new(Pie::new(c, outlet, stream()))),
        }
    }

    /// Whether packets matter to it that find the serializer idle and nothing waiting: averages,
    /// first-packet-above times and drop probabilities are made of such packets too. The others keep
    /// no state that would miss them; a deficit is forgotten with the last packet of its class.
    pub(crate) fn sees_all(&self) -> bool {
        match self {
            AnyQdisc::Red(_) | AnyQdisc::CoDel(_) | AnyQdisc::FqCoDel(_) | AnyQdisc::Pie(_) => true,
            AnyQdisc::Fifo(_) | AnyQdisc::Priority(_) | AnyQdisc::Drr(_) => false,
        }
    }

    /// Packets waiting; more than 2^32 are more than memory.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        self.backlog().packets as u32
    }

    /// Gives up what waits, one packet after the other in the order of service, to a discipline that
    /// takes over. It is asked at the beginning of time: no packet has waited then, and no discipline
    /// finds a reason to drop one. Afterwards it is of no more use.
    pub(crate) fn give_up(
        &mut self,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<Packet> {
        self.dequeue(Time::ZERO, dropped)
    }

    /// The disciplines off the hot path.
    fn other_mut(&mut self) -> &mut dyn Qdisc {
        match self {
            AnyQdisc::Fifo(q) => q,
            AnyQdisc::Red(q) => &mut **q,
            AnyQdisc::Priority(q) => &mut **q,
            AnyQdisc::Drr(q) => &mut **q,
            AnyQdisc::CoDel(q) => &mut **q,
            AnyQdisc::FqCoDel(q) => &mut **q,
            AnyQdisc::Pie(q) => &mut **q,
        }
    }

    fn other(&self) -> &dyn Qdisc {
        match self {
            AnyQdisc::Fifo(q) => q,
            AnyQdisc::Red(q) => &**q,
            AnyQdisc::Priority(q) => &**q,
            AnyQdisc::Drr(q) => &**q,
            AnyQdisc::CoDel(q) => &**q,
            AnyQdisc::FqCoDel(q) => &**q,
            AnyQdisc::Pie(q) => &**q,
        }
    }

    // Out of line, so that what is inlined into a link is the FIFO and one call.

    #[cold]
    #[inline(never)]
    fn enqueue_other(
        &mut self,
        now: Time,
        packet: &Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        self.other_mut().enqueue(now, *packet, dropped)
    }

    #[cold]
    #[inline(never)]
    fn dequeue_other(
        &mut self,
        now: Time,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<Packet> {
        self.other_mut().dequeue(now, dropped)
    }

    #[cold]
    #[inline(never)]
    fn backlog_other(&self) -> Backlog {
        self.other().backlog()
    }
}

impl Qdisc for AnyQdisc {
    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        match self {
            AnyQdisc::Fifo(q) => q.enqueue(now, packet, dropped),
            _ => self.enqueue_other(now, &packet, dropped),
        }
    }
    #[inline]
    fn dequeue(
        &mut self,
        now: Time,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<Packet> {
        match self {
            AnyQdisc::Fifo(q) => q.dequeue(now, dropped),
            _ => self.dequeue_other(now, dropped),
        }
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        match self {
            AnyQdisc::Fifo(q) => q.backlog(),
            _ => self.backlog_other(),
        }
    }
    fn marked(&self) -> u64 {
        self.other().marked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_of_a_discipline_costs_a_fifo_no_byte() {
        assert_eq!(size_of::<AnyQdisc>(), size_of::<Fifo>());
    }
}

//! Queueing disciplines: they decide which packets wait for a serializer, in which order, and which are dropped.
//!
//! Each discipline has one file: its keys in experiment files with their checks, its configuration, and its queue. The
//! list `disciplines!` joins them. Other code knows disciplines by the methods of [`DisciplineKeys`] and [`Discipline`].

mod choke;
mod classifier;
mod codel;
mod contract;
mod drr;
mod fifo;
mod fq_codel;
mod keys;
mod pie;
mod priority;
mod red;
mod store;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{DropReason, Findings, Packet, QueueLimit, Rate, Stream, Time};

use crate::PacketPool;
use crate::pool::SlotId;
use fifo::PlaceQueue;
pub(crate) use fifo::Waiting;
use keys::Keys;

pub use choke::{Choke, ChokeKeys};
pub use classifier::Classifier;
pub use codel::{CoDel, CoDelConfig};
pub use contract::{Backlog, Outlet, Qdisc};
pub use drr::{Drr, DrrClasses, DrrConfig, DrrKeys};
pub use fifo::Fifo;
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use pie::{Pie, PieConfig, PieDelay};
pub use priority::{Priority, PriorityConfig, PriorityKeys};
pub use red::{
    Red, RedAdaptive, RedConfig, RedDialect, RedKeys, RedMeasure, RedSet, RedSpacing,
    RedThresholds, RedVictim, RedWeight, RedWeightRule,
};

/// Defines the disciplines besides FIFO. Each entry has the name in files, the keys, the configuration and the queue.
macro_rules! disciplines {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $keys:ty => $config:ty => $queue:ty;)*) => {
        /// A queueing discipline.
        // As a file writes it.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", deny_unknown_fields)]
        #[schemars(rename = "Qdisc")]
        pub enum DisciplineKeys {
            /// First in, first out; arrivals to a full queue are dropped.
            #[default]
            #[serde(rename = "fifo")]
            Fifo,
            $($(#[$doc])* #[serde(rename = $name)] $variant($keys),)*
        }

        impl DisciplineKeys {
            /// Its name in figures and reports.
            pub fn label(&self) -> &'static str {
                match self {
                    DisciplineKeys::Fifo => "FIFO",
                    $(DisciplineKeys::$variant(_) => <$keys>::LABEL,)*
                }
            }

            /// Whether it counts packets that find the link idle, too.
            pub fn sees_all(&self) -> bool {
                match self {
                    DisciplineKeys::Fifo => false,
                    $(DisciplineKeys::$variant(_) => <$keys>::SEES_ALL,)*
                }
            }

            /// Rejects impossible values. `at` is its own key.
            pub fn check(&self, at: &str, found: &mut Findings) {
                match self {
                    DisciplineKeys::Fifo => {}
                    $(DisciplineKeys::$variant(keys) => keys.check(at, found),)*
                }
            }

            /// Its own limits, which must be resolved like the link's.
            pub fn limits_mut(&mut self) -> impl Iterator<Item = &mut QueueLimit> {
                let limits = match self {
                    DisciplineKeys::Fifo => Vec::new(),
                    $(DisciplineKeys::$variant(keys) => keys.limits_mut(),)*
                };
                limits.into_iter()
            }

            /// The discipline on a link of `rate`. Limits in BDP have already been resolved.
            pub fn discipline(&self, rate: Rate) -> Discipline {
                match self {
                    DisciplineKeys::Fifo => Discipline::Fifo,
                    $(DisciplineKeys::$variant(keys) => Discipline::$variant(keys.config(rate)),)*
                }
            }
        }

        /// The discipline of a link, with its parameters. `docs/queues.md` has a chapter on each.
        #[derive(Clone, Debug, PartialEq, Default)]
        pub enum Discipline {
            /// First in, first out; a packet that finds the queue full is dropped (drop tail).
            #[default]
            Fifo,
            $($(#[$doc])* $variant($config),)*
        }

        /// The other disciplines, which store packets themselves.
        #[derive(Clone, Debug)]
        pub(crate) enum Other {
            $($variant(Box<$queue>),)*
        }

        impl Other {
            /// The queue of the link `outlet`, with the random stream `rng`; `None` for FIFO.
            fn new(d: &Discipline, outlet: &Outlet, rng: impl FnOnce() -> Stream) -> Option<Other> {
                Some(match d {
                    Discipline::Fifo => return None,
                    $(Discipline::$variant(config) => {
                        Other::$variant(Box::new(<$keys>::queue(config, outlet, rng())))
                    })*
                })
            }

            fn sees_all(&self) -> bool {
                match self {
                    $(Other::$variant(_) => <$keys>::SEES_ALL,)*
                }
            }

            fn get_mut(&mut self) -> &mut dyn Qdisc {
                match self {
                    $(Other::$variant(queue) => &mut **queue,)*
                }
            }

            fn get(&self) -> &dyn Qdisc {
                match self {
                    $(Other::$variant(queue) => &**queue,)*
                }
            }
        }
    };
}

disciplines! {
    /// Random early detection: arrivals are dropped, or marked, with a probability that grows with
    /// the average of the queue.
    Red = "red", RedKeys => RedConfig => Red;
    /// Strict priority between the applications under study and the background, without preemption.
    Priority = "priority", PriorityKeys => PriorityConfig => Priority;
    /// Deficit round robin.
    Drr = "drr", DrrKeys => DrrConfig => Drr;
    /// Controlled delay (RFC 8289).
    CoDel = "codel", CoDelConfig => CoDelConfig => CoDel;
    /// A controlled-delay queue for each flow, served in turn (RFC 8290).
    FqCoDel = "fq-codel", FqCoDelConfig => FqCoDelConfig => FqCoDel;
    /// Proportional integral controller, enhanced (RFC 8033).
    Pie = "pie", PieConfig => PieConfig => Pie;
    /// RED that also compares each arrival with a random packet that waits, and drops both where they
    /// are of one flow.
    Choke = "choke", ChokeKeys => RedConfig => Choke;
}

/// The discipline of a link. FIFO is the hot case and works on slots of the packet pool.
#[derive(Clone, Debug)]
pub(crate) enum AnyQdisc {
    Fifo(PlaceQueue),
    Other(Other),
}

impl AnyQdisc {
    /// The queue of the link `name`. Its random stream derives from `seed` and the name.
    pub(crate) fn new(d: &Discipline, outlet: &Outlet, seed: u64, name: &str) -> AnyQdisc {
        // The name alone is already used for the stream of the link's losses.
        let rng = || Stream::new(seed, &format!("{name}/queue"));
        match Other::new(d, outlet, rng) {
            Some(other) => AnyQdisc::Other(other),
            None => AnyQdisc::Fifo(PlaceQueue::new(outlet.limit, outlet.rate)),
        }
    }

    /// Whether the discipline must also see packets that find the serializer idle and the queue empty
    /// (`Keys::SEES_ALL`).
    pub(crate) fn sees_all(&self) -> bool {
        match self {
            AnyQdisc::Fifo(_) => false,
            AnyQdisc::Other(other) => other.sees_all(),
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

    /// As [`Qdisc::fall_idle`].
    #[inline]
    pub(crate) fn fall_idle(&mut self, now: Time) {
        if let AnyQdisc::Other(other) = self {
            other.fall_idle(now);
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
    fn fall_idle(&mut self, now: Time) {
        self.get_mut().fall_idle(now);
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

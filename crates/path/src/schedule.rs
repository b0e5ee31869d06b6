//! Scheduled changes of a link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Time};

use crate::{Deliveries, Discipline, Loss};

/// Transmission capacity of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// Transmission takes no time.
    Unlimited,
    /// Bits per second; at 0 nothing is transmitted.
    Rate(Rate),
    /// Capacity given by a delivery trace.
    Deliveries {
        /// The trace, which repeats.
        trace: Arc<Deliveries>,
        /// Offset at which the trace begins.
        phase: Dur,
    },
}

/// An interval during which no packet gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Length of the outage.
    pub length: Dur,
    /// If true, the link keeps transmitting and loses every packet of which at least one bit is transmitted during
    /// the outage. Otherwise the transmitter stops and packets wait.
    pub lossy: bool,
}

/// A new queue that takes over the waiting packets.
#[derive(Clone, Debug, PartialEq)]
pub struct NewQueue {
    /// The discipline.
    pub discipline: Discipline,
    /// Limit on waiting packets.
    pub limit: QueueLimit,
    /// The rate that converts limits in time, and that disciplines use which need a rate.
    pub rate: Option<Rate>,
}

/// Changes of a link at one instant. `None` leaves a property unchanged.
///
/// At one instant, changes come before departures, and departures before arrivals. Simultaneous changes apply in the
/// order in which they are listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// When the change happens.
    pub at: Time,
    /// Interval at which it repeats for ever; `None` or zero = once.
    pub every: Option<Dur>,
    /// New capacity. The rest of a packet in transmission uses the new rate, as on a radio link whose modulation
    /// changes.
    pub capacity: Option<Capacity>,
    /// New propagation delay, for packets whose last bit leaves from now on. When the delay falls, later packets do
    /// not overtake earlier ones but arrive together with them, as on a wire. (Linux netem inserts by time of
    /// delivery, `net/sched/sch_netem.c`, `tfifo_enqueue`, and so reorders.)
    pub delay: Option<Dur>,
    /// New loss process, for packets whose last bit leaves from now on. A process with states begins in the good state.
    pub loss: Option<Loss>,
    /// A new queue. Waiting packets move over in order of service, as if they arrived now; packets that do not fit
    /// are dropped. (Linux drops all waiting packets when a qdisc is replaced.)
    pub queue: Option<NewQueue>,
    /// An outage, which blocks the link whatever its capacity is or becomes. Outages may overlap.
    pub outage: Option<Outage>,
}

impl Change {
    /// Whether the change affects the serializer or the wire after it.
    pub(crate) fn of_wire(&self) -> bool {
        self.capacity.is_some()
            || self.delay.is_some()
            || self.loss.is_some()
            || self.outage.is_some()
    }
}

/// Changes in order of time.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    changes: Arc<[Change]>,
    /// When each change is due next, and its index, the earliest first. Changes that are never due again are not here.
    due: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Timeline {
    /// A timeline of those `changes` for which `concern` returns true.
    pub fn new(changes: &[Change], concern: impl Fn(&Change) -> bool) -> Timeline {
        let changes: Arc<[Change]> = changes.iter().filter(|c| concern(c)).cloned().collect();
        Timeline {
            due: (0..)
                .zip(&*changes)
                .map(|(i, c)| Reverse((c.at, i)))
                .collect(),
            changes,
        }
    }

    /// Adds a change. It comes after other changes at the same instant. Changes that will never be due again are
    /// removed, because any number may be added while a link is in use.
    pub fn add(&mut self, change: Change) {
        let waiting = self.due.iter().map(|&Reverse((at, i))| (i, at));
        let mut waiting: Vec<(usize, Time)> = waiting.filter(|(_, at)| *at < Time::MAX).collect();
        waiting.sort_unstable();
        let mut changes: Vec<Change> = Vec::with_capacity(waiting.len() + 1);
        changes.extend(waiting.iter().map(|&(i, _)| self.changes[i].clone()));
        let last = (change.at, changes.len());
        changes.push(change);
        let due = (0..).zip(&waiting).map(|(i, &(_, at))| (at, i));
        self.due = due.chain([last]).map(Reverse).collect();
        self.changes = changes.into();
    }

    /// Number of changes kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.changes.len()
    }

    /// When the next change is due; `MAX` = never.
    pub fn next_at(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |due| due.0.0)
    }

    /// The next change if it is due by `now`. Nothing is due at `Time::MAX`, because repeating changes would never
    /// end there.
    pub fn take(&mut self, now: Time) -> Option<(Time, &Change)> {
        let mut earliest = self.due.peek_mut()?;
        let Reverse((at, index)) = *earliest;
        if at > now || now == Time::MAX {
            return None;
        }
        match self.changes[index].every {
            Some(every) if every > Dur::ZERO => *earliest = Reverse((at + every, index)),
            _ => {
                PeekMut::pop(earliest);
            }
        }
        Some((at, &self.changes[index]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linear search for the earliest change would take minutes here.
    #[test]
    fn many_changes_come_in_order_and_soon() {
        const N: u64 = 400_000;
        let at = |i: u64| Time::from_nanos(i * 7_919 % N);
        let changes: Vec<Change> = (0..N)
            .map(|i| Change {
                at: at(i),
                ..Change::default()
            })
            .collect();
        let mut timeline = Timeline::new(&changes, |_| true);
        for due in 0..N {
            assert_eq!(timeline.next_at(), Time::from_nanos(due));
            let (found, _) = timeline.take(Time::from_nanos(N)).unwrap();
            assert_eq!(found, Time::from_nanos(due));
        }
        assert_eq!(timeline.next_at(), Time::MAX);
        assert!(timeline.take(Time::from_nanos(N)).is_none());
    }

    #[test]
    fn changes_at_one_instant_keep_their_order_and_repeat() {
        let change = |at: u64, every: u64, delay: u64| Change {
            at: Time::from_nanos(at),
            every: (every > 0).then(|| Dur::from_nanos(every)),
            delay: Some(Dur::from_nanos(delay)),
            ..Change::default()
        };
        let mut timeline = Timeline::new(&[change(10, 5, 1), change(10, 0, 2)], |_| true);
        timeline.add(change(10, 0, 3));
        let mut seen = Vec::new();
        while let Some((at, c)) = timeline.take(Time::from_nanos(20)) {
            seen.push((at.as_nanos(), c.delay.unwrap_or_default().as_nanos()));
        }
        assert_eq!(seen, [(10, 1), (10, 2), (10, 3), (15, 1), (20, 1)]);
        timeline.add(change(25, 0, 4));
        assert_eq!(timeline.kept(), 2);
        let mut last = |now| {
            let (_, c) = timeline.take(Time::from_nanos(now)).unwrap();
            c.delay.unwrap_or_default().as_nanos()
        };
        assert_eq!([last(25), last(25)], [1, 4]);
    }
}

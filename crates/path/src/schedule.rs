//! Scheduled changes of a link.

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
    /// When each change is due next; `MAX` = never again.
    due: Vec<Time>,
    /// The earliest of these instants, and its index.
    next: (Time, usize),
}

impl Timeline {
    /// A timeline of those `changes` for which `concern` returns true.
    pub fn new(changes: &[Change], concern: impl Fn(&Change) -> bool) -> Timeline {
        let changes: Arc<[Change]> = changes.iter().filter(|c| concern(c)).cloned().collect();
        let mut timeline = Timeline {
            due: changes.iter().map(|c| c.at).collect(),
            changes,
            next: (Time::MAX, 0),
        };
        timeline.look();
        timeline
    }

    /// Adds a change. It comes after other changes at the same instant. Changes that will never be due again are
    /// removed, because any number may be added while a link is in use.
    pub fn add(&mut self, change: Change) {
        let all = self.changes.iter().cloned().zip(self.due.iter().copied());
        let (mut changes, mut due): (Vec<Change>, Vec<Time>) =
            all.filter(|(_, at)| *at < Time::MAX).unzip();
        due.push(change.at);
        changes.push(change);
        self.changes = changes.into();
        self.due = due;
        self.look();
    }

    /// Number of changes kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.due.len()
    }

    /// When the next change is due; `MAX` = never.
    pub fn next_at(&self) -> Time {
        self.next.0
    }

    /// The next change if it is due by `now`. Nothing is due at `Time::MAX`, because repeating changes would never
    /// end there.
    pub fn take(&mut self, now: Time) -> Option<(Time, &Change)> {
        let (at, index) = self.next;
        if at > now || now == Time::MAX {
            return None;
        }
        self.due[index] = match self.changes[index].every {
            Some(every) if every > Dur::ZERO => at + every,
            _ => Time::MAX,
        };
        self.look();
        Some((at, &self.changes[index]))
    }

    fn look(&mut self) {
        let due = self.due.iter().copied().zip(0..);
        self.next = due.min().unwrap_or((Time::MAX, 0));
    }
}

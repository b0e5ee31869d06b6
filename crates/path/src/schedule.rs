//! What changes about a link, and when.

use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Time};

use crate::{Deliveries, Discipline, Loss};

/// What a link can carry.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// Transmission takes no time.
    Unlimited,
    /// So many bits per second; at 0 nothing moves.
    Rate(Rate),
    /// What a delivery trace lets through.
    Deliveries {
        /// The trace, over and over.
        trace: Arc<Deliveries>,
        /// How far into it it begins.
        phase: Dur,
    },
}

/// A time during which nothing gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// How long.
    pub length: Dur,
    /// The link transmits all the same, and what it transmits is lost, be it one bit of a packet.
    /// Else the transmitter stands still, and packets wait.
    pub lossy: bool,
}

/// A new queue for what waits.
#[derive(Clone, Debug, PartialEq)]
pub struct NewQueue {
    /// The discipline.
    pub discipline: Discipline,
    /// How much may wait.
    pub limit: QueueLimit,
    /// The rate with which limits in time, and disciplines that ask for a rate, count.
    pub rate: Option<Rate>,
}

/// What changes about a link at an instant; what is `None` stays as it is.
///
/// At one instant changes come before departures, and those before arrivals; among changes, those
/// come first that are named first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// And again after each of these spans, without end; none or zero = once.
    pub every: Option<Dur>,
    /// What it can carry from now on. Of a packet in transmission the rest goes at the new rate, as on
    /// a radio link whose modulation changes.
    pub capacity: Option<Capacity>,
    /// Propagation delay of packets whose last bit leaves from now on. When it falls, what was sent
    /// later does not overtake: it arrives together with what was sent before, as on a wire. (Linux
    /// netem inserts by time of delivery, `net/sched/sch_netem.c`, `tfifo_enqueue`, and so reorders.)
    pub delay: Option<Dur>,
    /// Loss of packets whose last bit leaves from now on. A process with states begins in the good one.
    pub loss: Option<Loss>,
    /// A new queue. What waits moves over in the order in which it would have been served, as if it
    /// came now; what finds no room is dropped. (Linux drops all that waits when a qdisc is replaced.)
    pub queue: Option<NewQueue>,
    /// Nothing gets through for a while, whatever the capacity is and becomes. Outages may overlap.
    pub outage: Option<Outage>,
}

impl Change {
    /// Whether it concerns the serializer and what comes after it.
    pub(crate) fn of_wire(&self) -> bool {
        self.capacity.is_some()
            || self.delay.is_some()
            || self.loss.is_some()
            || self.outage.is_some()
    }
}

/// Changes in their order, each at its instant.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    changes: Arc<[Change]>,
    /// When each is due next; `MAX` = never again.
    due: Vec<Time>,
    /// The earliest of them, and which it is.
    next: (Time, usize),
}

impl Timeline {
    /// Those of `changes` that `concern`.
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

    /// One more change; it comes after those that are at the same instant.
    pub fn add(&mut self, change: Change) {
        self.due.push(change.at);
        self.changes = self.changes.iter().cloned().chain([change]).collect();
        self.look();
    }

    /// When the next change is; `MAX` = never.
    pub fn next_at(&self) -> Time {
        self.next.0
    }

    /// The next change if it is due by `now`. The end of time is never reached: what comes back for
    /// ever has no last time.
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

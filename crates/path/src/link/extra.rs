//! Features that only some links use: counters, losses, and changes on a schedule.

use swell_base::{DropReason, Dur, Head, Packet, Time};

use super::config::LinkConfig;
use crate::channel::Channel;
use crate::qdisc::AnyQdisc;
use crate::schedule::Timeline;
use crate::{Census, Discipline, LossProcess, Meter, Outlet};

/// Link-layer bytes, loss, and counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Extra {
    pub(super) overhead: u64,
    pub(super) loss: Option<LossProcess>,
    pub(super) meter: Option<Meter>,
    pub(super) census: Option<Census>,
    /// Dropped packets that have not been taken yet, if drops are kept.
    pub(super) lost: Option<Vec<(Time, Packet, DropReason)>>,
    /// State of a link that changes.
    pub(super) varied: Option<Box<Varied>>,
}

impl Extra {
    pub(super) fn arrival(&mut self, at: Time, packet: &Head, queue: &AnyQdisc) {
        if let Some(m) = &mut self.meter {
            m.arrival(at, packet, queue.backlog());
        }
        if let Some(c) = &mut self.census {
            c.arrival(at, packet);
        }
    }

    pub(super) fn begins(&mut self, start: Time, packet: &Head) {
        if let Some(c) = &mut self.census {
            c.begins(start, packet);
        }
    }

    pub(super) fn count_drop(
        &mut self,
        at: Time,
        packet: &Packet,
        reason: DropReason,
        refused: bool,
    ) {
        if let Some(m) = &mut self.meter {
            m.count_drop(at, packet);
        }
        if let Some(c) = &mut self.census {
            c.count_drop(at, packet, refused);
        }
        self.keep(at, packet, reason);
    }

    /// Counts a departure and returns whether the wire loses the packet.
    pub(super) fn loses(&mut self, end: Time, packet: &Head) -> bool {
        let lost = self.loss.as_mut().is_some_and(LossProcess::loses);
        self.leaves(end, packet, lost);
        lost
    }

    /// Counts a departure and, if the wire lost the packet, a drop.
    #[inline]
    pub(super) fn leaves(&mut self, end: Time, packet: &Head, lost: bool) {
        if let Some(m) = &mut self.meter {
            m.departure(end, packet, self.overhead, self.census.as_ref());
        }
        if lost && let Some(m) = &mut self.meter {
            m.count_drop(end, packet);
        }
        if let Some(c) = &mut self.census {
            c.leaves(end, packet, lost);
        }
    }

    pub(super) fn keep(&mut self, at: Time, packet: &Packet, reason: DropReason) {
        if let Some(lost) = &mut self.lost {
            lost.push((at, *packet, reason));
        }
    }
}

/// The additional state of a link that changes.
#[derive(Clone, Debug)]
pub(super) struct Varied {
    pub channel: Channel,
    /// Scheduled changes of the queue.
    pub queues: Timeline,
    exchanged: u64,
    /// The discipline of the present queue, if it is not the first one.
    pub discipline: Option<Discipline>,
    seed: u64,
    name: String,
    overhead: u16,
    /// The shortest delay that the link ever has.
    shortest: Dur,
    /// Arrival of the latest packet sent. Later packets do not arrive earlier.
    pub last: Time,
    /// Packets that earlier queues have marked.
    pub marked_before: u64,
}

impl Varied {
    /// `None` if the link has no scheduled changes.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Option<Varied> {
        let delays = config.changes.iter().filter_map(|c| c.delay);
        let shortest = delays.chain([config.delay]).min().unwrap_or_default();
        (!config.changes.is_empty()).then(|| Varied {
            channel: Channel::new(config, seed, name),
            queues: Timeline::new(&config.changes, |c| c.queue.is_some()),
            exchanged: 0,
            discipline: None,
            seed,
            name: name.to_owned(),
            overhead: config.overhead,
            shortest,
            last: Time::ZERO,
            marked_before: 0,
        })
    }

    pub fn shortest(&self) -> Dur {
        self.shortest
    }

    /// State of a link that has not changed until now and whose last packet arrives at `last`.
    pub fn so_far(
        channel: Channel,
        overhead: u16,
        last: Time,
        (seed, name): (u64, &str),
    ) -> Varied {
        Varied {
            queues: Timeline::new(&[], |_| false),
            exchanged: 0,
            discipline: None,
            seed,
            name: name.to_owned(),
            overhead,
            shortest: channel.delay,
            last,
            marked_before: 0,
            channel,
        }
    }

    /// The next queue that takes over by `now`, and the instant when it does.
    pub fn next_queue(&mut self, now: Time) -> Option<(Time, AnyQdisc)> {
        let (at, change) = self.queues.take(now)?;
        let new = change.queue.as_ref()?;
        // The delay may change at the same instant, or may have changed while nothing was sent.
        self.channel.reach(at);
        let outlet = Outlet {
            limit: new.limit,
            rate: new.rate,
            overhead: self.overhead,
            delay: self.channel.delay,
        };
        self.exchanged += 1;
        self.discipline = Some(new.discipline.clone());
        // Each queue has its own random stream.
        let name = format!("{}/{}", self.name, self.exchanged);
        let queue = AnyQdisc::new(&new.discipline, &outlet, self.seed, &name);
        Some((at, queue))
    }
}

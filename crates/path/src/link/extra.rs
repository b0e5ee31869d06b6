//! Features that only some links use.

use swell_base::{DropReason, Head, Packet, Time};

use super::varied::Varied;
use crate::qdisc::AnyQdisc;
use crate::{Census, LossProcess, Meter};

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
        if lost && let Some(c) = &mut self.census {
            c.lost(packet);
        }
    }

    pub(super) fn keep(&mut self, at: Time, packet: &Packet, reason: DropReason) {
        if let Some(lost) = &mut self.lost {
            lost.push((at, *packet, reason));
        }
    }
}

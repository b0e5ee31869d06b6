//! A link that changes on a schedule.
//!
//! Every change takes effect at its own instant, although the link is touched only when packets arrive or leave. The
//! end of a transmission is computed in advance, across all rate changes until then ([`Channel`]). The queue is replaced
//! between the dequeues before and after the change.

use swell_base::{DropReason, Dur, Packet, Rate, Stream, Time};

use super::Link;
use super::extra::{Extra, Varied};
use crate::channel::Channel;
use crate::pool::SlotId;
use crate::{Change, Discipline, Loss, LossProcess, PacketPool};

impl Link {
    fn varied(&mut self) -> Option<&mut Varied> {
        self.extra.as_deref_mut()?.varied.as_deref_mut()
    }

    /// Applies an unscheduled change. A new queue takes over at `now`. Everything else changes at `now` or right after
    /// the transmission in progress, which an outage may prolong. Returns the instant of the last, or `None` if the link has stopped for ever. The link must be up to date ([`Link::advance`] and
    /// [`Link::exchange`]), and `seed` and `name` must be those of [`Link::new`].
    pub fn change(
        &mut self,
        now: Time,
        change: &Change,
        (seed, name): (u64, &str),
    ) -> Option<Time> {
        if self.free_at == Time::MAX {
            return None;
        }
        let of_wire = change.of_wire();
        let at = if of_wire { self.next_change(now) } else { now };
        let mut change = change.clone();
        (change.at, change.every) = (at, None);
        let (constant, delay) = ((self.rate, self.carry), self.delay);
        let last = match self.arrived {
            0 => Time::ZERO,
            _ => self.free_at + delay,
        };
        self.delay = change.delay.map_or(delay, |d| d.min(delay));
        let extra = self.extra.get_or_insert_default();
        if extra.varied.is_none() {
            let still = || LossProcess::new(Loss::None, Stream::new(seed, name));
            let channel = Channel::so_far(constant, delay, extra.loss.take().unwrap_or_else(still));
            let overhead = extra.overhead as u16;
            extra.varied = Some(Box::new(Varied::so_far(
                channel,
                overhead,
                last,
                (seed, name),
            )));
            (self.rate, self.per_byte, self.carry) = (0, 0, 0);
        }
        if let Some(varied) = self.varied() {
            if change.queue.is_some() {
                let mut at_once = change.clone();
                at_once.at = now;
                varied.queues.add(at_once);
            }
            if of_wire {
                varied.channel.add(now, change);
            }
        }
        Some(at)
    }

    /// When a change at `now` takes effect. A transmission that ends at the instant of a change is affected by it,
    /// but the end of the one in progress is already computed.
    fn next_change(&self, now: Time) -> Time {
        now.max(self.free_at + Dur::from_nanos(1))
    }

    /// The discipline of the present queue; `None` if it is that of the configuration. The link must be up to date.
    pub fn discipline(&self) -> Option<&Discipline> {
        let varied = self.extra.as_deref()?.varied.as_deref()?;
        varied.discipline.as_ref()
    }

    /// The rate that the link has when a [change](Link::change) at `now` takes effect. `None` if it has none, stands
    /// still or follows a delivery trace. The link must be up to date.
    pub fn rate_at(&self, now: Time) -> Option<Rate> {
        let varied = self.extra.as_deref().and_then(|e| e.varied.as_deref());
        let bps = match varied {
            Some(varied) => varied.channel.clone().rate_at(self.next_change(now)),
            None => self.rate,
        };
        (bps > 0).then(|| Rate::from_bps(bps))
    }

    /// As [`Link::accept`], for a packet that is already counted as arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn accept_varied(
        &mut self,
        pool: &mut PacketPool,
        at: Time,
        place: SlotId,
    ) -> Option<Time> {
        // Changes of the queue may have become due since the last transmission began. The packet must enter the queue
        // that is in place now.
        while self.exchange(pool, at) {}
        if let Some(extra) = &mut self.extra {
            extra.arrival(at, pool.packet(place), &self.queue);
        }
        let (waiting, free_at) = (self.waiting, self.free_at);
        if waiting == 0
            && free_at <= at
            && let Some(varied) = self.varied()
        {
            self.free_at = varied.channel.wake(at, free_at);
            self.queue.fall_idle(at);
        }
        if self.free_at == at && self.waiting == 0 && !self.sees_all {
            return self.transmit_varied(pool, at, place);
        }
        self.enqueue(pool, at, place);
        None
    }

    /// Replaces the queue as often as due by `now` and begins the next transmission, each at its own instant. At one
    /// instant, replacements come first.
    #[cold]
    #[inline(never)]
    pub(super) fn dequeue_varied(
        &mut self,
        pool: &mut PacketPool,
        now: Time,
    ) -> Option<(Time, SlotId)> {
        while self.waiting > 0 {
            let start = self.free_at;
            if self.exchange(pool, start.min(now)) {
                continue;
            }
            if start > now || start == Time::MAX {
                // A link that never transmits again keeps its waiting packets.
                break;
            }
            let (dropped, extra) = (&mut self.dropped, &mut self.extra);
            let next = self.queue.dequeue(start, pool, &mut |packet, reason| {
                count(dropped, extra, start, &packet, reason);
            });
            self.waiting = self.queue.waiting();
            if let Some(place) = next
                && let Some(arrival) = self.transmit_varied(pool, start, place)
            {
                return Some((arrival, place));
            }
        }
        None
    }

    /// Makes the first replacement of the queue that is due by `now`. Returns false if there is none. Transmissions
    /// due by `now` must have begun.
    pub fn exchange(&mut self, pool: &mut PacketPool, now: Time) -> bool {
        let Some(varied) = self.varied() else {
            return false;
        };
        let Some((at, new)) = varied.next_queue(now) else {
            return false;
        };
        let mut old = std::mem::replace(&mut self.queue, new);
        let (dropped, extra) = (&mut self.dropped, &mut self.extra);
        let mut count = |packet: Packet, reason| count(dropped, extra, at, &packet, reason);
        while old.backlog().packets > 0 {
            if let Some(place) = old.give_up(pool, &mut count)
                && let Err(reason) = self.queue.enqueue(at, pool, place, &mut count)
            {
                count(pool.copy(place), reason);
                pool.release(place);
            }
        }
        self.waiting = self.queue.waiting();
        self.sees_all = self.queue.sees_all();
        if let Some(v) = self.varied() {
            v.marked_before += old.marked();
        }
        true
    }

    /// As [`Link::transmit`].
    fn transmit_varied(
        &mut self,
        pool: &mut PacketPool,
        start: Time,
        place: SlotId,
    ) -> Option<Time> {
        let packet = pool.packet(place);
        let extra = self.extra.as_deref_mut()?;
        extra.begins(start, packet);
        let varied = extra.varied.as_deref_mut()?;
        let sent = (varied.channel).send(start, u64::from(packet.size) + extra.overhead);
        let arrival = varied.last.max(sent.end + varied.channel.delay);
        self.free_at = match sent.end {
            Time::MAX => Time::MAX,
            end => varied.channel.ready(end),
        };
        if !sent.lost {
            varied.last = arrival;
        }
        // A packet whose transmission never ends is not counted in any bin.
        if sent.end < Time::MAX {
            extra.leaves(sent.end, packet, sent.lost);
            if sent.lost {
                extra.keep(sent.end, &pool.copy(place), DropReason::Loss);
            }
        }
        if sent.lost {
            self.dropped[DropReason::Loss as usize] += 1;
            pool.release(place);
            return None;
        }
        Some(arrival)
    }
}

fn count(
    dropped: &mut [u64; 3],
    extra: &mut Option<Box<Extra>>,
    at: Time,
    packet: &Packet,
    reason: DropReason,
) {
    dropped[reason as usize] += 1;
    if let Some(extra) = extra {
        extra.count_drop(at, packet, reason, false);
    }
}

//! First in, first out.

use std::collections::VecDeque;

use swell_base::{Bytes, DropReason, Dur, Packet, QueueLimit, Rate, Time};

use super::store::Bound;
use super::{Backlog, Qdisc};
use crate::pool::SlotId;
use crate::{Note, PacketPool};

/// First in, first out, with a limit in packets, bytes or time at the link's rate.
#[derive(Clone, Debug)]
pub struct Fifo {
    row: PlaceQueue,
    pool: PacketPool,
}

impl Fifo {
    /// A queue with the limit `limit`. A limit in time is converted to bytes at `rate`; without a rate, packets never
    /// wait. A limit in bandwidth-delay products must have been resolved before, and counts as unlimited here.
    pub fn new(limit: QueueLimit, rate: Option<Rate>) -> Fifo {
        Fifo {
            row: PlaceQueue::new(limit, rate),
            pool: PacketPool::default(),
        }
    }

    /// A limit of `k` bandwidth-delay products in bytes, at least one full packet.
    pub fn bdp(k: f64, rate: Rate, round_trip: Dur) -> QueueLimit {
        let bytes = rate.carried_in(round_trip).0 as f64 * k;
        QueueLimit::Bytes(Bytes((bytes as u64).max(1500)))
    }
}

impl Qdisc for Fifo {
    fn enqueue(
        &mut self,
        _: Time,
        packet: Packet,
        _: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        let place = self.pool.put(&packet);
        let accepted = self.row.enqueue(&self.pool, place);
        if accepted.is_err() {
            self.pool.release(place);
        }
        accepted
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        let first = self.row.dequeue()?;
        let packet = self.pool.copy(first.place);
        self.pool.release(first.place);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.row.backlog()
    }
}

/// A [`Fifo`] of packets in a shared pool: the queue of a link without another discipline.
#[derive(Clone, Debug)]
pub(crate) struct PlaceQueue {
    queue: VecDeque<Waiting>,
    waiting: Backlog,
    bound: Bound,
}

/// The data on a waiting packet that the queue and its caller need. The packet itself may have left the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub place: SlotId,
    /// Bytes.
    pub size: u16,
    pub note: Note,
}

impl PlaceQueue {
    /// As [`Fifo::new`].
    pub fn new(limit: QueueLimit, rate: Option<Rate>) -> PlaceQueue {
        PlaceQueue {
            queue: VecDeque::new(),
            waiting: Backlog::default(),
            bound: Bound::new(limit, rate),
        }
    }

    /// Accepts the packet in `place`, or refuses it. A refused packet keeps its slot.
    #[inline]
    pub fn enqueue(&mut self, pool: &PacketPool, place: SlotId) -> Result<(), DropReason> {
        let packet = pool.packet(place);
        if self.bound.refuses(self.waiting, packet) {
            return Err(DropReason::QueueFull);
        }
        let size = packet.size;
        self.waiting.add(size);
        let note = pool.note(place);
        self.queue.push_back(Waiting { place, size, note });
        Ok(())
    }

    /// Removes the first packet.
    #[inline]
    pub fn dequeue(&mut self) -> Option<Waiting> {
        let first = self.queue.pop_front()?;
        self.waiting.remove(first.size);
        Some(first)
    }

    /// Packets and bytes that wait.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Head;

    fn packet(size: u16) -> Packet {
        Packet::from(Head {
            size,
            ..Head::default()
        })
    }
    fn none(_: Packet, _: DropReason) {
        unreachable!("a FIFO never drops what it accepted");
    }

    #[test]
    fn limits_in_packets_bytes_and_time() {
        let rate = Some(Rate::from_bps(8_000_000));
        for (limit, fits) in [
            ("3pkt", 3),
            ("3500B", 3),
            ("3ms", 3),
            ("0pkt", 0),
            ("999B", 0),
        ] {
            let mut q = Fifo::new(limit.parse().unwrap(), rate);
            let accepted = (0..10)
                .filter(|_| q.enqueue(Time::ZERO, packet(1000), &mut none).is_ok())
                .count();
            assert_eq!(accepted, fits, "{limit}");
            assert_eq!(
                q.backlog(),
                Backlog {
                    packets: fits as u64,
                    bytes: fits as u64 * 1000
                }
            );
            assert_eq!(q.pool.in_use(), fits);
            while q.dequeue(Time::ZERO, &mut none).is_some() {}
            assert_eq!(q.backlog(), Backlog::default());
            assert_eq!(q.pool.in_use(), 0);
        }
    }

    #[test]
    fn one_and_a_half_bandwidth_delay_products() {
        let limit = Fifo::bdp(1.5, Rate::from_bps(20_000_000), Dur::from_millis(40));
        assert_eq!(limit, QueueLimit::Bytes(Bytes(150_000)));
    }
}

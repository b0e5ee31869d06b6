//! Queueing disciplines: what waits in front of a serializer, in which order, and what is refused.

use std::collections::VecDeque;

use swell_base::{Bytes, DropReason, Dur, Packet, QueueLimit, Rate, Time};

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets waiting.
    pub packets: u64,
    /// Network-layer bytes waiting.
    pub bytes: u64,
}

/// A queueing discipline. `now` never decreases from call to call.
pub trait Qdisc {
    /// Accepts a packet or refuses it, saying why.
    fn enqueue(&mut self, now: Time, packet: Packet) -> Result<(), DropReason>;

    /// The next packet to transmit. Packets that the discipline drops on the way are handed to
    /// `dropped`.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(Packet, DropReason))
    -> Option<Packet>;

    /// What waits.
    fn backlog(&self) -> Backlog;
}

/// Which discipline a link has, by name and limit.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Discipline {
    /// First in, first out; a packet that finds the queue full is dropped (drop tail).
    #[default]
    Fifo,
}

/// First in, first out with a limit on what waits: packets, bytes or time at the link's rate.
#[derive(Clone, Debug)]
pub struct Fifo {
    waiting: VecDeque<Packet>,
    bytes: u64,
    max_packets: u64,
    max_bytes: u64,
}

impl Fifo {
    /// A queue holding at most `limit`. A limit in time is turned into bytes at `rate` (without a
    /// rate nothing ever waits); one in bandwidth-delay products must have been resolved before and
    /// counts as unlimited here.
    pub fn new(limit: QueueLimit, rate: Option<Rate>) -> Fifo {
        let (max_packets, max_bytes) = match limit {
            QueueLimit::Packets(n) => (n, u64::MAX),
            QueueLimit::Bytes(b) => (u64::MAX, b.0),
            QueueLimit::Time(d) => (u64::MAX, rate.map_or(u64::MAX, |r| r.carried_in(d).0)),
            QueueLimit::Bdp(_) => (u64::MAX, u64::MAX),
        };
        Fifo {
            waiting: VecDeque::new(),
            bytes: 0,
            max_packets,
            max_bytes,
        }
    }

    /// A limit of `k` bandwidth-delay products in bytes, at least one full packet.
    pub fn bdp(k: f64, rate: Rate, round_trip: Dur) -> QueueLimit {
        let bytes = rate.carried_in(round_trip).0 as f64 * k;
        QueueLimit::Bytes(Bytes((bytes as u64).max(1500)))
    }
}

impl Qdisc for Fifo {
    #[inline]
    fn enqueue(&mut self, _now: Time, packet: Packet) -> Result<(), DropReason> {
        let size = u64::from(packet.size);
        if self.waiting.len() as u64 >= self.max_packets || self.bytes + size > self.max_bytes {
            return Err(DropReason::QueueFull);
        }
        self.bytes += size;
        self.waiting.push_back(packet);
        Ok(())
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.waiting.len() as u64,
            bytes: self.bytes,
        }
    }
}

/// The disciplines, dispatched without a pointer.
#[derive(Clone, Debug)]
pub(crate) enum AnyQdisc {
    Fifo(Fifo),
}

impl AnyQdisc {
    pub(crate) fn new(discipline: Discipline, limit: QueueLimit, rate: Option<Rate>) -> AnyQdisc {
        match discipline {
            Discipline::Fifo => AnyQdisc::Fifo(Fifo::new(limit, rate)),
        }
    }

    /// Whether a packet that finds the serializer idle may skip the queue: nothing waits, so no
    /// limit applies, and the discipline keeps no state that would miss it.
    #[inline]
    pub(crate) fn passes_when_idle(&self) -> bool {
        match self {
            AnyQdisc::Fifo(q) => q.waiting.is_empty(),
        }
    }
}

impl Qdisc for AnyQdisc {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: Packet) -> Result<(), DropReason> {
        match self {
            AnyQdisc::Fifo(q) => q.enqueue(now, packet),
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
        }
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        match self {
            AnyQdisc::Fifo(q) => q.backlog(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(size: u16) -> Packet {
        Packet {
            size,
            ..Packet::default()
        }
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
                .filter(|_| q.enqueue(Time::ZERO, packet(1000)).is_ok())
                .count();
            assert_eq!(accepted, fits, "{limit}");
            assert_eq!(
                q.backlog(),
                Backlog {
                    packets: fits as u64,
                    bytes: fits as u64 * 1000
                }
            );
            while q.dequeue(Time::ZERO, &mut none).is_some() {}
            assert_eq!(q.backlog(), Backlog::default());
        }
    }

    #[test]
    fn one_and_a_half_bandwidth_delay_products() {
        let limit = Fifo::bdp(1.5, Rate::from_bps(20_000_000), Dur::from_millis(40));
        assert_eq!(limit, QueueLimit::Bytes(Bytes(150_000)));
    }
}

//! First in, first out.

use std::collections::VecDeque;

use swell_base::{Bytes, DropReason, Dur, Packet, QueueLimit, Rate, Time};

use super::store::Bound;
use super::{Backlog, Qdisc};

/// First in, first out with a limit on what waits: packets, bytes or time at the link's rate.
#[derive(Clone, Debug)]
pub struct Fifo {
    waiting: VecDeque<Packet>,
    bytes: u64,
    bound: Bound,
}

impl Fifo {
    /// A queue holding at most `limit`. A limit in time is turned into bytes at `rate` (without a
    /// rate nothing ever waits); one in bandwidth-delay products must have been resolved before and
    /// counts as unlimited here.
    pub fn new(limit: QueueLimit, rate: Option<Rate>) -> Fifo {
        Fifo {
            waiting: VecDeque::new(),
            bytes: 0,
            bound: Bound::new(limit, rate),
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
    fn enqueue(
        &mut self,
        _: Time,
        packet: Packet,
        _: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        if self.bound.refuses(self.backlog(), &packet) {
            return Err(DropReason::QueueFull);
        }
        self.bytes += u64::from(packet.size);
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

//! The interface of a queueing discipline.

use swell_base::{DropReason, Dur, Packet, QueueLimit, Rate, Time};

/// Packets and bytes that wait in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets waiting.
    pub packets: u64,
    /// Network-layer bytes waiting.
    pub bytes: u64,
}

impl Backlog {
    pub(super) fn add(&mut self, size: u16) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }
    pub(super) fn remove(&mut self, size: u16) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
}

/// A queueing discipline. `now` never decreases from call to call. At every instant each packet is in exactly one of
/// four states: waiting ([`Qdisc::backlog`]), returned by `dequeue`, refused by `enqueue`, or passed to `dropped`.
pub trait Qdisc {
    /// Accepts a packet, or refuses it with a reason. Packets that are dropped to make space are passed to `dropped`.
    /// The new packet may be among them.
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason>;

    /// The next packet to transmit. Packets that the discipline drops are passed to `dropped`. It may drop all of
    /// them and return `None`.
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(Packet, DropReason))
    -> Option<Packet>;

    /// Packets and bytes that wait.
    fn backlog(&self) -> Backlog;

    /// Number of packets marked Congestion Experienced instead of dropped.
    fn marked(&self) -> u64 {
        0
    }

    /// The serializer asked for a packet, and none waits. For disciplines with state that this changes.
    fn fall_idle(&mut self, now: Time) {
        let _ = now;
    }
}

/// Properties of the link that a discipline serves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlet {
    /// Limit on waiting packets.
    pub limit: QueueLimit,
    /// Rate of the serializer. Without a rate, packets never wait.
    pub rate: Option<Rate>,
    /// Bytes that the link layer adds to each packet.
    pub overhead: u16,
    /// Propagation delay.
    pub delay: Dur,
}

//! The configuration of a link.

use swell_base::{Dur, QueueLimit, Rate};

use crate::{Change, Discipline, Loss};

/// Configuration of a link. The default passes packets on at once.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Rate of the serializer. Without a rate, transmission takes no time and packets never wait.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Dur,
    /// Queueing discipline.
    pub discipline: Discipline,
    /// Limit on waiting packets.
    pub queue: QueueLimit,
    /// Bytes that the link layer adds to each packet on the wire (0 = rates count network-layer
    /// bytes).
    pub overhead: u16,
    /// Loss on the wire, after transmission.
    pub loss: Loss,
    /// Scheduled changes.
    pub changes: Vec<Change>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            rate: None,
            delay: Dur::ZERO,
            discipline: Discipline::Fifo,
            queue: QueueLimit::Packets(1000),
            overhead: 0,
            loss: Loss::None,
            changes: Vec::new(),
        }
    }
}

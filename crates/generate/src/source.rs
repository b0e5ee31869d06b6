//! A source of datagrams.

use std::os::fd::OwnedFd;

use swell_traffic::flowlevel::{Exchange, Pacer, UdpSource};

use super::flow::Flow;
use super::wire::{DATAGRAM, MOST_ANSWERS, Stamp};

/// A source of datagrams on a client.
pub(super) struct Source {
    pub fd: OwnedFd,
    pub server: u16,
    pub law: UdpSource,
    pub pacer: Pacer,
    /// Its current exchange, which may be partly sent; `None` after the last.
    pub next: Option<Exchange>,
    /// Datagrams of that exchange that were sent.
    pub sent: u32,
    /// Answers of that exchange that no datagram has asked for yet.
    pub asked: u32,
    /// A datagram that asks for an answer was sent, or was to be sent.
    pub requests: bool,
    /// It waits for its first answer after `LINGER` of `datagrams.rs`.
    pub waits: bool,
    /// No answer came in that time, either.
    pub given_up: bool,
    /// DSCP of the answers.
    pub dscp: u8,
    pub sequence: u32,
    pub flow: Flow,
}

impl Source {
    /// Whether it has exchanges left.
    pub fn goes_on(&self) -> bool {
        self.next.is_some()
    }

    /// It asked for answers, and none came.
    pub fn is_unanswered(&self) -> bool {
        self.requests && self.flow.again == 0
    }

    /// The next datagram of the current exchange, if there is one: its stamp and its payload length in bytes.
    pub fn datagram(&mut self, exchange: &Exchange, client: u16) -> Option<(Stamp, u32)> {
        // Answers are requested by the client's own datagrams. If there are too few of these, small ones are added.
        let asking = exchange.down.div_ceil(u32::from(MOST_ANSWERS));
        let all = exchange.up.max(asking);
        let left = all.checked_sub(self.sent).filter(|&n| n > 0)?;
        if self.sent == 0 {
            self.asked = exchange.down;
        }
        let answers = self.asked.div_ceil(left).min(u32::from(MOST_ANSWERS));
        let stamp = Stamp {
            client,
            answer: u16::try_from(self.law.down.payload).unwrap_or(u16::MAX),
            answers: answers as u16,
            dscp: self.dscp,
            sequence: self.sequence,
        };
        let own = match self.sent < exchange.up {
            true => self.law.up.payload,
            false => 0,
        };
        self.asked -= answers;
        self.requests |= answers > 0;
        self.sent += 1;
        self.sequence = self.sequence.wrapping_add(1);
        Some((stamp, own.max(DATAGRAM as u32)))
    }
}

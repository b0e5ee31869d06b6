//! What a packet of any protocol says about sides, for those who need no more of it.

use swell_capture::{Packet, Transport};

use super::{Host, Hosts};
use crate::addresses::groups;

/// The receiver of a packet to a multicast or broadcast address.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Hosts {
    /// Records what a packet says about sides. Returns its sender and its receiver.
    pub(crate) fn witness(&mut self, p: &Packet) -> [u32; 2] {
        let [from_group, to_group] = groups(p);
        let from = self.id(p.src);
        let to = if to_group { NOBODY } else { self.id(p.dst) };
        if to == NOBODY {
            if !from_group {
                self.see_sender(p, from);
            }
        } else if from != to {
            match &p.transport {
                Transport::Tcp(h) => {
                    self.flow(p, from, to);
                    self.handshake(from, to, h);
                }
                Transport::Udp { .. } => self.flow(p, from, to),
                _ => self.other(p, from, to),
            }
        }
        [from, to]
    }

    /// Whether networks were said to be inside, and no host is in one of them.
    pub(crate) fn none_inside(&self) -> bool {
        let outside = |h: &Host| h.fixed == Some(false);
        !self.inside.is_empty() && !self.hosts.is_empty() && self.hosts.iter().all(outside)
    }

    /// Whether a packet of so many bytes goes from inside to outside; `None` if it stays on one side.
    pub(crate) fn leaves(&mut self, [from, to]: [u32; 2], bytes: u32) -> Option<bool> {
        if from == to {
            return None;
        }
        let outward = match to {
            NOBODY => Some(self.sender(from)),
            to => self.outward(from, to),
        };
        self.sent(from, bytes);
        outward
    }
}

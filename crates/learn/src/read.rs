//! Passes the packets of a capture to a learner.

use swell_base::Warning;
use swell_capture::{Error, InOrder, Packet, Packets};

use crate::learner::Learner;

/// How reading went.
#[derive(Debug)]
#[must_use]
pub struct Read {
    /// About the order of packets and copies of them, for [`Learner::doubt`].
    pub doubts: Vec<Warning>,
    /// Where the capture is damaged: the packets before it were taken.
    pub damage: Option<Error>,
}

impl Learner {
    /// Takes all packets of a capture, in the order of their times and without copies ([`InOrder`]). The model of a
    /// capture then does not depend on the program that learns it.
    pub fn read(&mut self, packets: impl Packets) -> Read {
        let mut ordered = InOrder::new(packets);
        if self.options.apart {
            ordered = ordered.steady();
        }
        let mut packet = Packet::default();
        let damage = loop {
            match ordered.read_into(&mut packet) {
                Ok(true) => self.push(&packet),
                Ok(false) => break None,
                Err(error) => break Some(error),
            }
        };
        Read {
            doubts: ordered.doubts(),
            damage,
        }
    }
}

//! Converts packets of the world to those that a capture on the link would contain.

use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Packet, Time};
use swell_capture as capture;
use swell_learn::{Learner, server_port};
use swell_tcp::Config;
use swell_traffic::Class;
use swell_world::{Parties, Tap};

use crate::packets::headers::{Headers, Source};

/// Bytes of Ethernet framing in front of a packet.
const ETHERNET: u32 = 14;

/// Passes the packets that cross the link to a learner, with the headers that a packet file would have.
pub(super) struct LearnerTap {
    learner: Arc<Mutex<Learner>>,
    headers: Headers,
}

impl LearnerTap {
    /// For a single workload with connections of these `classes` over `tcp`.
    pub fn new(
        learner: Arc<Mutex<Learner>>,
        classes: &[Class],
        tcp: Arc<Config>,
        seed: u64,
    ) -> LearnerTap {
        let classes = classes
            .iter()
            .map(|c| (server_port(&c.name), c.udp))
            .collect();
        let source = Source {
            tcp,
            classes,
            port: 0,
        };
        LearnerTap {
            learner,
            headers: Headers::new(vec![source], seed),
        }
    }
}

impl Tap for LearnerTap {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let (network, transport) = self.headers.describe(at, parties, to_server, packet);
        let ip_len = u32::from(packet.size);
        self.learner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(&capture::Packet {
                time: at.as_nanos() as i64,
                wire_len: ip_len + ETHERNET,
                captured_len: ip_len + ETHERNET,
                ip_len,
                // One interface for each direction, so that the learner need not infer the sides.
                interface: parties.direction(to_server) as u32,
                src: network.from,
                dst: network.to,
                ttl: 64,
                ecn: network.ecn,
                transport,
                ..capture::Packet::default()
            });
    }
}

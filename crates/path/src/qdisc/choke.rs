//! CHOKe: RED that also drops what its own flow has in the queue.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, DropReason, Findings, Packet, QueueLimit, Rate, Stream, Time};

use super::keys::{self, Keys};
use super::{Backlog, Outlet, Qdisc, Red, RedConfig, RedThresholds, RedWeight};

/// RED that holds flows down which fill the queue.
// CHOKe: Pan, Prabhakar & Psounis, INFOCOM 2000; Linux, net/sched/sch_choke.c.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Choke")]
pub struct ChokeKeys {
    /// Average queue above which an arrival is compared with a packet that waits, and dropped now and then: packets of
    /// mean size, bytes, time at the link's rate, or BDP.
    pub min: QueueLimit,
    /// Average queue from which on every arrival is dropped.
    pub max: QueueLimit,
    /// Drop probability as the average reaches `max`.
    pub max_p: f64,
    /// Weight of the newest sample in the average: above 0 and up to 1.
    pub weight: f64,
    /// Size of a mean packet: what thresholds and idle times are counted in.
    pub mean_packet: Bytes,
    /// Mark packets of senders that understand ECN where RED would drop them. Pairs of one flow are dropped all the
    /// same.
    pub ecn: bool,
}

impl Default for ChokeKeys {
    /// The thresholds, probability and weight of [`RedConfig::classic`].
    fn default() -> Self {
        ChokeKeys {
            min: QueueLimit::Packets(5),
            max: QueueLimit::Packets(15),
            max_p: 0.02,
            weight: 0.002,
            mean_packet: Bytes(500),
            ecn: false,
        }
    }
}

impl Keys for ChokeKeys {
    /// What happens to packets that meet no other packet of their flow.
    type Config = RedConfig;
    type Queue = Choke;
    const LABEL: &'static str = "CHOKe";

    fn check(&self, at: &str, found: &mut Findings) {
        let key = |name: &str| format!("{at}.{name}");
        keys::thresholds(&key, self.min, self.max, found);
        found.probability(key("max_p"), self.max_p);
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            found.add(
                key("weight"),
                format!("{} is no weight", self.weight),
                "write a number above 0 and up to 1; 0.002 is usual",
            );
        }
        keys::packet(key("mean_packet"), self.mean_packet, found);
    }

    fn limits_mut(&mut self) -> Vec<&mut QueueLimit> {
        vec![&mut self.min, &mut self.max]
    }

    fn config(&self, rate: Rate) -> RedConfig {
        let mean_packet = keys::small(self.mean_packet);
        let packets = |limit| keys::packets(limit, rate, f64::from(mean_packet.max(1)));
        RedConfig {
            thresholds: RedThresholds::Packets {
                min: packets(self.min),
                max: packets(self.max),
            },
            max_p: self.max_p,
            weight: RedWeight::Fixed(self.weight),
            mean_packet,
            ecn: self.ecn,
            ..RedConfig::classic()
        }
    }

    fn queue(config: &RedConfig, outlet: &Outlet, rng: Stream) -> Choke {
        Choke::new(config, outlet, rng)
    }
}

/// While the average queue is above RED's lower threshold, each arrival is compared with a random packet that waits. If
/// both are of one flow, both are dropped. So a flow loses packets in proportion to its share of the queue, and the
/// discipline keeps no state of flows.
#[derive(Clone, Debug)]
pub struct Choke {
    red: Red,
    draws: Stream,
}

impl Choke {
    /// The discipline for the link `outlet`, drawing from `rng`; `config` is for packets that meet no other packet of
    /// their flow.
    pub fn new(config: &RedConfig, outlet: &Outlet, mut rng: Stream) -> Choke {
        Choke {
            draws: Stream::new(rng.bits(), "choke"),
            red: Red::new(config, outlet, rng),
        }
    }

    /// The place of a waiting packet of the flow of `packet`, if a random draw hits one. The two directions of a
    /// connection are different flows.
    fn meets(&mut self, packet: &Packet) -> Option<usize> {
        let waiting = self.red.waiting();
        if waiting.is_empty() {
            return None;
        }
        let index = self.draws.below(waiting.len() as u64) as usize;
        let drawn = &waiting[index];
        (drawn.flow == packet.flow && drawn.from == packet.from).then_some(index)
    }
}

impl Qdisc for Choke {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        self.red.estimate(now);
        if self.red.is_above()
            && let Some(index) = self.meets(&packet)
            && let Some(victim) = self.red.remove(index)
        {
            dropped(victim, DropReason::Aqm);
            return Err(DropReason::Aqm);
        }
        self.red.admit(packet, dropped)
    }

    fn dequeue(
        &mut self,
        now: Time,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<Packet> {
        self.red.dequeue(now, dropped)
    }

    fn backlog(&self) -> Backlog {
        self.red.backlog()
    }

    fn marked(&self) -> u64 {
        self.red.marked()
    }
}

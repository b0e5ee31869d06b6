//! Controlled delay (CoDel).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, DropReason, Dur, Findings, Packet, Rate, Stream, Time};

use super::keys::{self, Keys};
use super::store::{Bound, Stamped, mark};
use super::{Backlog, Outlet, Qdisc};

/// Controlled delay, RFC 8289.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Codel")]
pub struct CoDelConfig {
    /// Acceptable standing delay (section 5.3, TARGET: 5 ms).
    pub target: Dur,
    /// How long the delay must stay above the target before the first drop, about a worst-case round-trip time
    /// (section 5.3, INTERVAL: 100 ms).
    pub interval: Dur,
    /// Bytes that may wait regardless of their delay: a packet of maximum size, so that the link never becomes idle
    /// (section 5.2, `maxpacket_`).
    pub mtu: Bytes,
    /// Mark packets of ECN-capable senders instead of dropping them (RFC 3168).
    pub ecn: bool,
}

impl Default for CoDelConfig {
    fn default() -> Self {
        CoDelConfig {
            target: Dur::from_millis(5),
            interval: Dur::from_millis(100),
            mtu: Bytes(1500),
            ecn: false,
        }
    }
}

impl Keys for CoDelConfig {
    type Config = CoDelConfig;
    type Queue = CoDel;
    const LABEL: &'static str = "CoDel";

    fn check(&self, at: &str, found: &mut Findings) {
        keys::control(at, self.target, self.interval, found);
        keys::packet(format!("{at}.mtu"), self.mtu, found);
    }

    fn config(&self, _: Rate) -> CoDelConfig {
        *self
    }

    fn queue(config: &CoDelConfig, outlet: &Outlet, _: Stream) -> CoDel {
        CoDel::new(config, outlet)
    }
}

/// A queue managed by CoDel.
#[derive(Clone, Debug)]
pub struct CoDel {
    config: CoDelConfig,
    bound: Bound,
    queue: Stamped,
    control: Control,
    marked: u64,
}

impl CoDel {
    /// The discipline for the link `outlet`.
    pub fn new(config: &CoDelConfig, outlet: &Outlet) -> CoDel {
        CoDel {
            config: *config,
            bound: Bound::new(outlet.limit, outlet.rate),
            queue: Stamped::default(),
            control: Control::default(),
            marked: 0,
        }
    }
}

impl Qdisc for CoDel {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        _: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        if self.bound.refuses(self.queue.backlog(), &packet) {
            return Err(DropReason::QueueFull);
        }
        self.queue.push(now, packet);
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Time,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<Packet> {
        let mut tell = |fate| match fate {
            Fate::Marked => self.marked += 1,
            Fate::Dropped(packet) => dropped(packet, DropReason::Aqm),
        };
        (self.control).dequeue(now, &self.config, (&mut self.queue, 0), &mut tell)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn marked(&self) -> u64 {
        self.marked
    }
}

/// What happened to a packet that CoDel selected.
pub(super) enum Fate {
    /// It was marked and continues.
    Marked,
    /// It was dropped.
    Dropped(Packet),
}

/// The control loop, one per queue (RFC 8289 section 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    /// When the delay will have been above the target for an interval; `None` if it is below the target.
    first_above: Option<Time>,
    /// When the next packet is due to be dropped.
    drop_next: Time,
    /// Number of drops since this dropping state began.
    count: u32,
    /// Value of `count` when this dropping state began.
    last_count: u32,
    dropping: bool,
}

impl Control {
    /// The next packet of a queue that CoDel does not drop (RFC 8289 section 5.5). With the queue come the bytes that
    /// wait in other queues of the link.
    pub fn dequeue(
        &mut self,
        now: Time,
        config: &CoDelConfig,
        (queue, elsewhere): (&mut Stamped, u64),
        tell: &mut dyn FnMut(Fate),
    ) -> Option<Packet> {
        let Some((mut packet, mut may_drop)) = self.take(now, config, queue, elsewhere) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if config.ecn && mark(&mut packet) {
                    // The mark is the signal, so the packet continues (Linux `codel_dequeue`).
                    tell(Fate::Marked);
                    self.drop_next = self.law(config, self.drop_next);
                    break;
                }
                tell(Fate::Dropped(packet));
                let Some(next) = self.take(now, config, queue, elsewhere) else {
                    self.dropping = false;
                    return None;
                };
                (packet, may_drop) = next;
                if may_drop {
                    self.drop_next = self.law(config, self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
            return Some(packet);
        }
        if may_drop {
            let next = if config.ecn && mark(&mut packet) {
                tell(Fate::Marked);
                Some(packet)
            } else {
                tell(Fate::Dropped(packet));
                // The next packet is never dropped: the control law starts with this drop.
                self.take(now, config, queue, elsewhere).map(|(p, _)| p)
            };
            self.dropping = true;
            // If the last dropping state ended recently, resume at the drop rate that controlled the queue then.
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.since(self.drop_next) < config.interval * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.law(config, now);
            return next;
        }
        Some(packet)
    }

    /// Packets were dropped because the link's limit was exceeded: a dropping state that begins soon after the last one
    /// has a higher rate. Before the first one there is no rate to continue.
    pub fn overflowed(&mut self, packets: u32) {
        if self.last_count > 0 {
            self.count = self.count.saturating_add(packets);
        }
    }

    /// Takes a packet and returns whether the delay has been above the target for an interval (section 5.6,
    /// `dodequeue`).
    fn take(
        &mut self,
        now: Time,
        config: &CoDelConfig,
        queue: &mut Stamped,
        elsewhere: u64,
    ) -> Option<(Packet, bool)> {
        let Some((came, packet)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        let waiting = queue.backlog().bytes + elsewhere;
        let short = now.since(came) < config.target || waiting <= config.mtu.0;
        if short {
            self.first_above = None;
            return Some((packet, false));
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + config.interval);
                Some((packet, false))
            }
            Some(at) => Some((packet, now >= at)),
        }
    }

    /// The control law: gaps between drops shrink with the square root of the number of drops, so that TCP throughput
    /// falls linearly (section 5.6, `control_law`).
    fn law(&self, config: &CoDelConfig, from: Time) -> Time {
        from + config.interval.scale(1.0 / f64::from(self.count).sqrt())
    }
}

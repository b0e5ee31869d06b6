//! FQ-CoDel: one CoDel queue per flow.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, DropReason, Dur, Findings, Packet, Rate, Stream, Time};

use super::codel::{Control, Fate};
use super::keys::{self, Keys};
use super::store::{Bound, Stamped};
use super::{Backlog, Classifier, CoDelConfig, Outlet, Qdisc};

/// Flows are hashed to queues, which take turns, new ones first; each is under its own CoDel.
// RFC 8290. The bytes that may wait regardless of their delay (`mtu`) are those of all queues together, as in Linux
// (`net/sched/sch_fq_codel.c`, `fq_codel_dequeue` passes `sch->qstats.backlog`). Otherwise many flows of two packets
// each would never get a signal, however long they wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "FqCodel")]
pub struct FqCoDelConfig {
    /// How many queues flows are hashed to.
    // Section 5.2.5: 1024. At least 1, at most 65535.
    pub flows: u32,
    /// Bytes that a queue may send in each round.
    // Section 5.2.4: 1514. 0 counts as 1.
    pub quantum: Bytes,
    /// Most packets dropped at once when no room is left.
    // Section 4.1: 64.
    pub drop_batch: u32,
    /// Standing delay that is tolerated in each queue.
    pub target: Dur,
    /// How long the delay must stay above the target before the first drop.
    pub interval: Dur,
    /// Bytes that may wait in a queue whatever their delay: the largest packet.
    pub mtu: Bytes,
    /// Mark packets of senders that understand ECN instead of dropping them.
    // Section 5.2.6 enables it by default.
    pub ecn: bool,
}

impl FqCoDelConfig {
    /// The CoDel parameters of each queue.
    pub fn codel(&self) -> CoDelConfig {
        CoDelConfig {
            target: self.target,
            interval: self.interval,
            mtu: self.mtu,
            ecn: self.ecn,
        }
    }
}

impl Default for FqCoDelConfig {
    fn default() -> Self {
        let codel = CoDelConfig::default();
        FqCoDelConfig {
            flows: 1024,
            quantum: Bytes(1514),
            drop_batch: 64,
            target: codel.target,
            interval: codel.interval,
            mtu: codel.mtu,
            ecn: true,
        }
    }
}

impl Keys for FqCoDelConfig {
    type Config = FqCoDelConfig;
    type Queue = FqCoDel;
    const LABEL: &'static str = "FQ-CoDel";

    fn check(&self, at: &str, found: &mut Findings) {
        let key = |name: &str| format!("{at}.{name}");
        keys::control(at, self.target, self.interval, found);
        keys::packet(key("mtu"), self.mtu, found);
        keys::number(key("flows"), "queues", self.flows, found);
        keys::number(key("drop_batch"), "packets", self.drop_batch, found);
        keys::quantum(key("quantum"), self.quantum, found);
    }

    fn config(&self, _: Rate) -> FqCoDelConfig {
        *self
    }

    fn queue(config: &FqCoDelConfig, outlet: &Outlet, rng: Stream) -> FqCoDel {
        FqCoDel::new(config, outlet, rng)
    }
}

/// One queue per flow, each managed by CoDel. Queues are served in rounds, new queues first.
#[derive(Clone, Debug)]
pub struct FqCoDel {
    quantum: i64,
    drop_batch: u64,
    codel: CoDelConfig,
    bound: Bound,
    queues: Vec<Queue>,
    /// Queues that became active and have not yet had a turn (section 4.1), by number.
    new: VecDeque<u16>,
    /// All other active queues.
    old: VecDeque<u16>,
    total: Backlog,
    salt: u64,
    marked: u64,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: Stamped,
    control: Control,
    credits: i64,
    /// Whether the queue is on one of the two lists.
    active: bool,
}

impl FqCoDel {
    /// The discipline for the link `outlet`; `stream` salts the hash.
    pub fn new(config: &FqCoDelConfig, outlet: &Outlet, mut stream: Stream) -> FqCoDel {
        FqCoDel {
            quantum: config.quantum.0.clamp(1, 1 << 32) as i64,
            drop_batch: u64::from(config.drop_batch.max(1)),
            codel: config.codel(),
            bound: Bound::new(outlet.limit, outlet.rate),
            queues: vec![Queue::default(); config.flows.clamp(1, u32::from(u16::MAX)) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            total: Backlog::default(),
            salt: stream.bits(),
            marked: 0,
        }
    }

    /// Gives all old queues at once the quanta of the rounds in which none of them can send, so that a small quantum
    /// costs no time. Their order after a whole round is that before.
    fn skip_rounds(&mut self) {
        let quantum = self.quantum;
        let rounds = |&i: &u16| (-self.queues[usize::from(i)].credits).div_euclid(quantum);
        let idle = self.old.iter().map(rounds).min().unwrap_or(0).max(0);
        for &i in &self.old {
            self.queues[usize::from(i)].credits += idle * quantum;
        }
    }

    /// Drops half the packets of the queue with the most bytes from its head, but at most one batch (section 4.1).
    fn shed(&mut self, dropped: &mut dyn FnMut(Packet, DropReason)) {
        // Ties go to the lowest number, so that the choice is deterministic.
        let fattest = self
            .queues
            .iter_mut()
            .rev()
            .max_by_key(|q| (q.waiting.backlog().bytes, q.waiting.backlog().packets));
        let Some(q) = fattest else { return };
        let half = q.waiting.backlog().packets.div_ceil(2);
        let batch = half.min(self.drop_batch);
        // Linux counts them as signals (`fq_codel_drop`), so that CoDel need not begin anew.
        q.control.overflowed(batch as u32);
        for _ in 0..batch {
            let Some((_, packet)) = q.waiting.pop() else {
                return;
            };
            self.total.remove(packet.size);
            dropped(packet, DropReason::QueueFull);
        }
    }
}

impl Qdisc for FqCoDel {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        let index = Classifier::Hash.class(&packet, self.queues.len(), self.salt);
        let quantum = self.quantum;
        let q = &mut self.queues[index];
        q.waiting.push(now, packet);
        self.total.add(packet.size);
        if !q.active {
            q.active = true;
            q.credits = quantum;
            self.new.push_back(index as u16);
        }
        while self.bound.exceeded(self.total) {
            self.shed(dropped);
        }
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Time,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Option<Packet> {
        let quantum = self.quantum;
        // Turns in succession in which no queue could send.
        let mut turns = 0;
        loop {
            // Section 4.2: new queues come first.
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let q = &mut self.queues[usize::from(index)];
            if q.credits <= 0 {
                q.credits += quantum;
                list.pop_front();
                self.old.push_back(index);
                turns += 1;
                if self.new.is_empty() && turns >= self.old.len() {
                    self.skip_rounds();
                    turns = 0;
                }
                continue;
            }
            turns = 0;
            let (total, marked) = (&mut self.total, &mut self.marked);
            let elsewhere = total.bytes - q.waiting.backlog().bytes;
            let mut tell = |fate| match fate {
                Fate::Marked => *marked += 1,
                Fate::Dropped(packet) => {
                    total.remove(packet.size);
                    dropped(packet, DropReason::Aqm);
                }
            };
            let queue = (&mut q.waiting, elsewhere);
            let next = (q.control).dequeue(now, &self.codel, queue, &mut tell);
            if let Some(packet) = next {
                q.credits -= i64::from(packet.size);
                total.remove(packet.size);
                return Some(packet);
            }
            list.pop_front();
            if is_new {
                // An emptied new queue takes a turn on the old list. Otherwise a flow of single packets could starve
                // the old queues.
                self.old.push_back(index);
            } else {
                q.active = false;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.total
    }

    fn marked(&self) -> u64 {
        self.marked
    }

    /// Takes the emptied queues off the lists, so that the next packet of each makes it a new queue again.
    fn fall_idle(&mut self, now: Time) {
        if self.total.packets == 0 {
            self.dequeue(now, &mut |_, _| {});
        }
    }
}

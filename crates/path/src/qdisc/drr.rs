//! Deficit round robin.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, DropReason, Findings, Packet, Rate, Stream, Time};

use super::keys::{self, Keys};
use super::store::Bound;
use super::{Backlog, Classifier, Outlet, Qdisc};

/// Queues with packets take turns; at its turn a queue may send its quantum and what it left over
/// the turn before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Drr")]
pub struct DrrKeys {
    /// Which packets share a queue.
    pub by: DrrClasses,
    /// How many queues flows are hashed to. With `by = "traffic"` there are two.
    pub queues: u32,
    /// Bytes that a queue may send more in each round: at least the largest packet.
    pub quantum: Bytes,
    /// Quanta of single queues, from the first on; with `by = "traffic"` of the applications under
    /// study and of the background. Shares of the rate are in proportion to them.
    pub quanta: Vec<Bytes>,
}

impl Default for DrrKeys {
    fn default() -> DrrKeys {
        DrrKeys {
            by: DrrClasses::Flow,
            queues: 1024,
            quantum: Bytes(1500),
            quanta: Vec::new(),
        }
    }
}

/// Which packets share a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DrrClasses {
    /// Those of a flow, by a hash: a few flows may meet in one queue.
    #[default]
    Flow,
    /// Those of the applications under study in one queue, those of the background in another.
    Traffic,
}

impl Keys for DrrKeys {
    type Config = DrrConfig;
    type Queue = Drr;
    const LABEL: &'static str = "DRR";
    // A deficit is reset when its queue empties.
    const SEES_ALL: bool = false;

    fn check(&self, at: &str, found: &mut Findings) {
        let key = |name: &str| format!("{at}.{name}");
        keys::number(key("queues"), "queues", self.queues, found);
        keys::quantum(key("quantum"), self.quantum, found);
        for (i, &q) in self.quanta.iter().enumerate() {
            keys::quantum(key(&format!("quanta[{i}]")), q, found);
        }
        let queues = match self.by {
            DrrClasses::Flow => self.queues,
            DrrClasses::Traffic => 2,
        };
        if self.quanta.len() > queues as usize {
            found.add(
                key("quanta"),
                format!("{} quanta for {queues} queues", self.quanta.len()),
                "write one for each queue, or fewer",
            );
        }
    }

    fn config(&self, _: Rate) -> DrrConfig {
        let (classifier, queues) = match self.by {
            DrrClasses::Flow => (Classifier::Hash, keys::count(self.queues)),
            DrrClasses::Traffic => {
                let by = Classifier::Tag {
                    foreground: 0,
                    background: 1,
                };
                (by, 2)
            }
        };
        DrrConfig {
            classifier,
            queues,
            quantum: keys::large(self.quantum),
            quanta: self.quanta.iter().copied().map(keys::large).collect(),
        }
    }

    fn queue(config: &DrrConfig, outlet: &Outlet, rng: Stream) -> Drr {
        Drr::new(config, outlet, rng)
    }
}

/// Deficit round robin (Shreedhar & Varghese, SIGCOMM 1995 and ToN 4(3), 1996).
#[derive(Clone, Debug, PartialEq)]
pub struct DrrConfig {
    /// Maps packets to queues.
    pub classifier: Classifier,
    /// Number of queues, at least 1.
    pub queues: u16,
    /// Bytes added to a queue's deficit in each round; 0 counts as 1.
    pub quantum: u32,
    /// Quanta of individual queues, by index. Rates are shared in proportion to the quanta.
    pub quanta: Vec<u32>,
}

impl Default for DrrConfig {
    /// One class per flow, as many queues as FQ-CoDel has, and a full packet per round.
    fn default() -> Self {
        DrrConfig {
            classifier: Classifier::Hash,
            queues: 1024,
            quantum: 1500,
            quanta: Vec::new(),
        }
    }
}

/// Deficit round robin. If the buffer is full, the longest queue (in bytes) loses its last packet. This is the
/// paper's buffer stealing, after McKenney 1990.
#[derive(Clone, Debug)]
pub struct Drr {
    classifier: Classifier,
    queues: Vec<Queue>,
    /// Non-empty queues, in order of service.
    active: VecDeque<u16>,
    bound: Bound,
    total: Backlog,
    salt: u64,
}

#[derive(Clone, Debug)]
struct Queue {
    waiting: VecDeque<Packet>,
    bytes: u64,
    deficit: u64,
    quantum: u64,
    /// Whether this turn's quantum has been added.
    served: bool,
}

impl Drr {
    /// The discipline for the link `outlet`; `stream` salts the hash.
    pub fn new(config: &DrrConfig, outlet: &Outlet, mut stream: Stream) -> Drr {
        let queue = |i| Queue {
            waiting: VecDeque::new(),
            bytes: 0,
            deficit: 0,
            quantum: u64::from(*config.quanta.get(i).unwrap_or(&config.quantum)).max(1),
            served: false,
        };
        Drr {
            classifier: config.classifier.clone(),
            queues: (0..usize::from(config.queues.max(1))).map(queue).collect(),
            active: VecDeque::new(),
            bound: Bound::new(outlet.limit, outlet.rate),
            total: Backlog::default(),
            salt: stream.bits(),
        }
    }

    /// Removes the last packet of the longest queue. Ties go to the lowest number.
    fn steal(&mut self) -> Option<Packet> {
        let longest = *self
            .active
            .iter()
            .max_by_key(|&&i| (self.queues[usize::from(i)].bytes, u16::MAX - i))?;
        let q = &mut self.queues[usize::from(longest)];
        let packet = q.waiting.pop_back()?;
        q.bytes -= u64::from(packet.size);
        self.total.remove(packet.size);
        if q.waiting.is_empty() {
            q.rest();
            self.active.retain(|&i| i != longest);
        }
        Some(packet)
    }
}

impl Queue {
    /// How many turns pass before the queue can send its first packet.
    fn turns(&self) -> u64 {
        let size = self.waiting.front().map_or(0, |p| u64::from(p.size));
        let lacks = size.saturating_sub(self.deficit);
        lacks.div_ceil(self.quantum).saturating_sub(1)
    }

    /// Resets a queue that has become empty: it must not save up a deficit.
    fn rest(&mut self) {
        self.deficit = 0;
        self.served = false;
    }
}

impl Qdisc for Drr {
    fn enqueue(
        &mut self,
        _: Time,
        packet: Packet,
        dropped: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        let class = self.classifier.class(&packet, self.queues.len(), self.salt);
        let q = &mut self.queues[class];
        if q.waiting.is_empty() {
            self.active.push_back(class as u16);
        }
        q.waiting.push_back(packet);
        q.bytes += u64::from(packet.size);
        self.total.add(packet.size);
        while self.bound.exceeded(self.total)
            && let Some(victim) = self.steal()
        {
            dropped(victim, DropReason::QueueFull);
        }
        Ok(())
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        // Turns in succession in which no queue could send.
        let mut turns = 0;
        loop {
            if turns >= self.active.len() {
                // All rounds in which none can send at once, so that a small quantum costs no time. The order after a
                // whole round is that before.
                let idle = (self.active.iter()).map(|&i| self.queues[usize::from(i)].turns());
                let idle = idle.min().unwrap_or(0);
                for &i in &self.active {
                    let q = &mut self.queues[usize::from(i)];
                    q.deficit += idle * q.quantum;
                }
                turns = 0;
            }
            let index = *self.active.front()?;
            let q = &mut self.queues[usize::from(index)];
            if !q.served {
                q.deficit += q.quantum;
                q.served = true;
            }
            let size = u64::from(q.waiting.front()?.size);
            if size <= q.deficit {
                let packet = q.waiting.pop_front()?;
                q.deficit -= size;
                q.bytes -= size;
                self.total.remove(packet.size);
                if q.waiting.is_empty() {
                    q.rest();
                    self.active.pop_front();
                }
                return Some(packet);
            }
            q.served = false;
            self.active.rotate_left(1);
            turns += 1;
        }
    }

    fn backlog(&self) -> Backlog {
        self.total
    }
}

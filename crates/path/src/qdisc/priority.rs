//! Strict priority.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{DropReason, Findings, Packet, QueueLimit, Rate, Stream, Time};

use super::keys::{self, Keys};
use super::store::Bound;
use super::{Backlog, Classifier, Outlet, Qdisc};

/// Bands of first-in-first-out queues; a band is served only while those above it are empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Priority")]
pub struct PriorityKeys {
    /// How many bands. Band 0 is served first.
    pub bands: u32,
    /// Band of the applications under study.
    pub foreground: u32,
    /// Band of the background.
    pub background: u32,
    /// How much each band holds, from band 0 on. Bands without an entry hold what `queue` says,
    /// each for itself.
    pub limits: Vec<QueueLimit>,
}

impl Default for PriorityKeys {
    fn default() -> PriorityKeys {
        PriorityKeys {
            bands: 2,
            foreground: 0,
            background: 1,
            limits: Vec::new(),
        }
    }
}

impl Keys for PriorityKeys {
    type Config = PriorityConfig;
    type Queue = Priority;
    const LABEL: &'static str = "priority";
    const SEES_ALL: bool = false;

    fn check(&self, at: &str, found: &mut Findings) {
        let key = |name: &str| format!("{at}.{name}");
        keys::number(key("bands"), "bands", self.bands, found);
        for (name, band) in [
            ("foreground", self.foreground),
            ("background", self.background),
        ] {
            if band >= self.bands {
                found.add(
                    key(name),
                    format!("there is no band {band}"),
                    "bands are counted from 0; `bands` says how many there are",
                );
            }
        }
        for (i, &limit) in self.limits.iter().enumerate() {
            found.limit(key(&format!("limits[{i}]")), limit);
        }
        if self.limits.len() > self.bands as usize {
            found.add(
                key("limits"),
                format!("{} limits for {} bands", self.limits.len(), self.bands),
                "write one for each band, or fewer",
            );
        }
    }

    fn limits_mut(&mut self) -> Vec<&mut QueueLimit> {
        self.limits.iter_mut().collect()
    }

    fn config(&self, _: Rate) -> PriorityConfig {
        PriorityConfig {
            classifier: Classifier::Tag {
                foreground: keys::count(self.foreground),
                background: keys::count(self.background),
            },
            bands: keys::count(self.bands),
            limits: self.limits.clone(),
        }
    }

    fn queue(config: &PriorityConfig, outlet: &Outlet, _: Stream) -> Priority {
        Priority::new(config, outlet)
    }
}

/// FIFO bands; a band is served only while all bands before it are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct PriorityConfig {
    /// Maps packets to bands; band 0 is served first.
    pub classifier: Classifier,
    /// Number of bands, at least 1.
    pub bands: u16,
    /// Limit of each band. A band without an entry has the link's limit, which it does not share with other bands.
    pub limits: Vec<QueueLimit>,
}

impl Default for PriorityConfig {
    /// The application under study has priority over everything else.
    fn default() -> Self {
        PriorityConfig {
            classifier: Classifier::Tag {
                foreground: 0,
                background: 1,
            },
            bands: 2,
            limits: Vec::new(),
        }
    }
}

/// Strict priority without preemption: a transmission that has begun is completed.
#[derive(Clone, Debug)]
pub struct Priority {
    classifier: Classifier,
    bands: Vec<Band>,
    total: Backlog,
}

#[derive(Clone, Debug)]
struct Band {
    waiting: VecDeque<Packet>,
    backlog: Backlog,
    bound: Bound,
}

impl Priority {
    /// The discipline for the link `outlet`.
    pub fn new(config: &PriorityConfig, outlet: &Outlet) -> Priority {
        let band = |i| Band {
            waiting: VecDeque::new(),
            backlog: Backlog::default(),
            bound: Bound::new(
                config.limits.get(i).copied().unwrap_or(outlet.limit),
                outlet.rate,
            ),
        };
        Priority {
            classifier: config.classifier.clone(),
            bands: (0..usize::from(config.bands.max(1))).map(band).collect(),
            total: Backlog::default(),
        }
    }
}

impl Qdisc for Priority {
    fn enqueue(
        &mut self,
        _: Time,
        packet: Packet,
        _: &mut dyn FnMut(Packet, DropReason),
    ) -> Result<(), DropReason> {
        let class = self.classifier.class(&packet, self.bands.len(), 0);
        let band = &mut self.bands[class];
        if band.bound.refuses(band.backlog, &packet) {
            return Err(DropReason::QueueFull);
        }
        band.backlog.add(packet.size);
        band.waiting.push_back(packet);
        self.total.add(packet.size);
        Ok(())
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        let band = self.bands.iter_mut().find(|b| !b.waiting.is_empty())?;
        let packet = band.waiting.pop_front()?;
        band.backlog.remove(packet.size);
        self.total.remove(packet.size);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.total
    }
}

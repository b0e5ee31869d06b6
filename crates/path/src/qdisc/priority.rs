//! Strict priority.

use std::collections::VecDeque;

use swell_base::{DropReason, Packet, QueueLimit, Time};

use super::store::Bound;
use super::{Backlog, Classifier, Outlet, Qdisc};

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

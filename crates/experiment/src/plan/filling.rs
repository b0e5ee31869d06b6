//! Packets that do not slow down on links that they may fill.

use std::collections::BTreeMap;

use swell_base::{Direction, Rate};

use super::Plan;
use crate::file::{Change, Queue, queues};
use crate::kinds::Part;
use crate::store::Measured;

/// Above this utilization of a link in the mean, even packets that are not bursty may overflow its queue.
const NEARLY_FULL: f64 = 0.85;

impl Plan {
    /// Whether a background of packets that do not slow down, at the rate that the file or a matched background determines,
    /// nearly fills a link of its path at its slowest in a run. `None` while the matched background is not measured.
    pub(crate) fn may_fill(
        &self,
        background: &Part,
        measured: &BTreeMap<String, Measured>,
    ) -> Option<bool> {
        if !background.is_open_loop() || !background.keys().is_unresponsive() {
            return Some(false);
        }
        let rates = background.fixed_bps(&self.file.taken(background, measured))?;
        let hops = self.file.hops(&background.route());
        let fills = |d: Direction| {
            let mut slowest = queues(&hops, d).into_iter().map(|q| self.slowest(q));
            // What a trace delivers at its worst, or after an outage, is known of a run only.
            rates[d] > 0.0
                && slowest.any(|s| s.is_none_or(|s| rates[d] > NEARLY_FULL * s.bps() as f64))
        };
        Some(Direction::BOTH.into_iter().any(fills))
    }

    /// The lowest rate of a link in a run; `None` where it is that of a packet-delivery trace, or there are outages.
    fn slowest(&self, queue: Queue) -> Option<Rate> {
        let links = self.file.links();
        let (keys, d) = (&links.get(queue.link)?.keys, queue.direction);
        let start = &keys.directions()[d];
        let within = |c: &&Change| c.direction.has(d) && c.at < self.file.run.duration;
        let changes = || keys.change.iter().filter(within);
        let unknown = start.deliveries.is_some()
            || changes().any(|c| c.deliveries.is_some() || c.outage.is_some());
        let rates = changes().filter_map(|c| c.rate);
        (!unknown).then(|| rates.fold(start.rate, Rate::min))
    }
}

//! Changes to a link while the world runs.

use swell_base::{Direction, Dur, QueueLimit, Rate, Time};
use swell_path::{Capacity, Change, Loss, NewQueue};

use crate::path::queue;
use crate::world::World;

/// New settings for one direction of a link. `None` leaves a setting unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSetting {
    /// Transmission rate, above zero.
    pub rate: Option<Rate>,
    /// Propagation delay. Packets stay in order when it decreases.
    pub delay: Option<Dur>,
    /// Loss on the wire, after the queue.
    pub loss: Option<Loss>,
    /// Limit of a new queue with the link's initial discipline. Queued packets move to the new queue; packets that do
    /// not fit are dropped.
    pub queue: Option<QueueLimit>,
}

impl World {
    /// Changes settings of a link, as a scheduled change would ([`Change`]). The change applies now, or after the
    /// current transmission. Returns that instant, or `None` if the link has stopped for ever.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn set_link(
        &mut self,
        link: usize,
        direction: Direction,
        setting: &LinkSetting,
    ) -> Option<Time> {
        let way = direction as usize;
        let config = &mut self.links.shared[link].directions[way];
        config.rate = setting.rate.or(config.rate);
        let change = Change {
            capacity: setting.rate.map(Capacity::Rate),
            delay: setting.delay,
            loss: setting.loss,
            queue: setting.queue.map(|limit| NewQueue {
                discipline: config.discipline.clone(),
                limit,
                rate: config.rate,
            }),
            ..Change::default()
        };
        let name = self.links.shared[link].queue_name(way);
        let seed = self.seed;
        self.links
            .change(queue(link, direction), &change, (seed, &name))
    }
}

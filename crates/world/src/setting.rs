//! What is set of a link while its world runs.

use swell_base::{Direction, Dur, QueueLimit, Rate, Time};
use swell_path::{Capacity, Change, Loss, NewQueue};

use crate::path::queue;
use crate::world::World;

/// What is to be different about one direction of a link from now on; what is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSetting {
    /// The rate of the serializer, above zero.
    pub rate: Option<Rate>,
    /// Propagation delay. Packets stay in order where it falls.
    pub delay: Option<Dur>,
    /// Loss on the wire.
    pub loss: Option<Loss>,
    /// How much may wait, in a new queue of the discipline that the link began with; what waits moves over, and what
    /// finds no room is dropped.
    pub queue: Option<QueueLimit>,
}

impl World {
    /// Sets something about a link, as a scheduled change would ([`Change`]): now, or right after the transmission that has
    /// begun. Returns that instant; `None` where the link stands still for ever.
    ///
    /// # Panics
    /// Where there is no such link.
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

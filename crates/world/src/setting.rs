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
    /// Limit of a new queue with the link's present discipline. A limit in time holds at the rate that the link then
    /// has, or at its first rate if it has none. Queued packets move to the new queue; packets that do not fit are
    /// dropped.
    pub queue: Option<QueueLimit>,
}

impl World {
    /// Changes settings of a link, as a scheduled change would ([`Change`]). A new queue takes over now, and everything
    /// else changes now or after the current transmission. Returns the instant of the last, or `None` if the link has
    /// stopped for ever.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn set_link(
        &mut self,
        link: usize,
        direction: Direction,
        setting: &LinkSetting,
    ) -> Option<Time> {
        let index = queue(link, direction);
        self.links.bring_up(index);
        let rate = self.links.queue(index).rate_at(self.links.now);
        let present = self.links.queue(index).discipline().cloned();
        let shared = &self.links.shared[link];
        let config = &shared.directions[direction];
        let change = Change {
            capacity: setting.rate.map(Capacity::Rate),
            delay: setting.delay,
            loss: setting.loss,
            queue: setting.queue.map(|limit| NewQueue {
                discipline: present.unwrap_or_else(|| config.discipline.clone()),
                limit,
                rate: setting.rate.or(rate).or(config.rate),
            }),
            ..Change::default()
        };
        let name = shared.queue_name(direction);
        self.links.change(index, &change, (self.seed, &name))
    }
}

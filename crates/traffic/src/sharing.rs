//! What a link leaves to one transfer of a model.

use swell_base::{Dur, Rate};

use crate::lasting::{at_once, stays};
use crate::timeline::{Groups, LEAST, Network};
use crate::{Knobs, Model};

/// Below this share of the link, what lasting sessions do hardly depends on what they leave to each other.
const LIGHT: f64 = 0.5;
/// Halvings of the interval in which the rate left is looked for: to 2 % of the link's.
const HALVINGS: usize = 6;

impl Network {
    /// What [`Network::shared`] is for the sessions of `model`, to which the knobs but for `sessions` have been applied.
    /// What sessions that come and go offer is given. A lasting session offers the more the faster it is, and shares with
    /// the others only: that is solved for.
    pub fn met(model: &Model, knobs: &Knobs, rtt: Dur, link: [f64; 2]) -> Network {
        let stays = stays(model, knobs.think, rtt);
        let k = knobs.sessions;
        let stays_on = |i: usize| stays.get(i).is_some_and(Option::is_some);
        let passing = model.rates_of(|i, _| f64::from(u8::from(!stays_on(i))));
        let passing = passing.map(|bps| bps * k);
        let users = model
            .sessions
            .iter()
            .zip(&stays)
            .filter_map(|(session, stay)| {
                let bits = session
                    .load(model)
                    .map(|bytes| bytes * 8.0 * k * session.weight);
                Some((session, (*stay)?, bits))
            });
        let users: Vec<_> = users.collect();
        // How many transfers share each direction.
        let many = [0, 1].map(|d: usize| {
            let uses = users.iter().filter(|u| u.2[d] > 0.0);
            let transfers = uses.map(|u| u.0.weight * k * at_once(u.0)[d]);
            transfers.sum::<f64>().max(1.0)
        });
        // What all others offer where each transfer gets these rates.
        let others = |rates: [f64; 2]| {
            let network = Network {
                rtt,
                rates: rates.map(|bps| Some(Rate::from_bps_f64(bps))),
            };
            let mut sum = [0.0; 2];
            for (session, stay, bits) in &users {
                let cycle = stay.cycle(Groups::of(model, session, &network).end);
                let seconds = cycle.as_secs_f64().max(f64::MIN_POSITIVE);
                (0..2).for_each(|d| sum[d] += bits[d] / seconds);
            }
            [0, 1].map(|d| passing[d] + sum[d] * (1.0 - 1.0 / many[d]))
        };
        if users.is_empty() {
            return Network::shared(rtt, link, passing);
        }
        let most = others(link);
        if (0..2).all(|d| most[d] <= LIGHT * link[d]) {
            return Network::shared(rtt, link, most);
        }
        let (mut low, mut high) = (link.map(|bps| LEAST * bps), link);
        for _ in 0..HALVINGS {
            let middle = [0, 1].map(|d| (low[d] + high[d]) / 2.0);
            let offered = others(middle);
            for d in 0..2 {
                match link[d] - offered[d] > middle[d] {
                    true => low[d] = middle[d],
                    false => high[d] = middle[d],
                }
            }
        }
        let offered = [0, 1].map(|d| link[d] - (low[d] + high[d]) / 2.0);
        Network::shared(rtt, link, offered)
    }
}

#[cfg(test)]
mod tests;

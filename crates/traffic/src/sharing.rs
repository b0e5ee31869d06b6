//! What a link leaves to one transfer of a model.

use swell_base::{Dur, Rate};

use crate::schedule::lasting;
use crate::timeline::{Groups, Network};
use crate::{Knobs, Model};

/// Minimum share of a link that a transfer can expect, however high the load.
const LEAST: f64 = 0.05;
/// Below this share of the link, what lasting sessions do hardly depends on what they leave to each other.
const LIGHT: f64 = 0.5;
/// Halvings of the interval in which the rate left is looked for: to 2 % of the link's.
const HALVINGS: usize = 6;

impl Network {
    /// The network as sessions see it: the round-trip time of their path, and in each direction the rate that processor
    /// sharing leaves to a transfer at the lowest-rate link, whose rates are `link`, bits per second. Under processor
    /// sharing, x bytes take x / (C (1 - load)) on average (Kleinrock, J. ACM 14(2), 1967). `offered` are the mean
    /// offered rates.
    pub fn shared(rtt: Dur, link: [f64; 2], offered: [f64; 2]) -> Network {
        let left = |d: usize| {
            let left = (link[d] - offered[d]).max(LEAST * link[d]);
            Some(Rate::from_bps_f64(left))
        };
        Network {
            rtt,
            rates: [0, 1].map(left),
        }
    }

    /// The same for the sessions of `model`, to which the knobs but for `sessions` have been applied. What sessions that
    /// come and go offer is given. A lasting session offers the more the faster it is, and shares with the others only:
    /// that is solved for.
    pub fn met(model: &Model, knobs: &Knobs, rtt: Dur, link: [f64; 2]) -> Network {
        let lasting = lasting(model, knobs.think);
        let k = knobs.sessions;
        let kind = |i: usize| lasting.get(i).copied().flatten();
        let passing = model.rates_of(|i, _| f64::from(u8::from(kind(i).is_none())));
        let passing = passing.map(|bps| bps * k);
        let users = model
            .sessions
            .iter()
            .zip(&lasting)
            .filter_map(|(session, pause)| {
                let bits = session
                    .load(model)
                    .map(|bytes| bytes * 8.0 * k * session.weight);
                Some((session, (*pause)?, bits))
            });
        let users: Vec<_> = users.collect();
        // How many use each direction.
        let many = [0, 1].map(|d: usize| {
            let uses = users.iter().filter(|u| u.2[d] > 0.0);
            uses.map(|u| u.0.weight * k).sum::<f64>().max(1.0)
        });
        // What all others offer where each transfer gets these rates.
        let others = |rates: [f64; 2]| {
            let network = Network {
                rtt,
                rates: rates.map(|bps| Some(Rate::from_bps_f64(bps))),
            };
            let mut sum = [0.0; 2];
            for (session, pause, bits) in &users {
                let round = Groups::of(model, session, &network).end + *pause;
                let seconds = round.as_secs_f64().max(f64::MIN_POSITIVE);
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

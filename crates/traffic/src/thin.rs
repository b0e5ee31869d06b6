//! Thinning: a bounded sample of sessions that still stands for the whole.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use swell_base::Stream;

use crate::{Model, Session};

/// Bytes added to a session's size when its priority is computed, so that the many small sessions
/// (name look-ups) are not sampled away before the large ones: counts matter as well as bytes.
const BASE: f64 = 4_000.0;

/// Holds sessions up to a budget of items ([`Session::items`]); beyond it, a priority sample
/// (Duffield, Lund & Thorup, "Priority sampling for estimation of arbitrary subset sums", J. ACM
/// 54(6), 2007): session `i` of size `x` has priority `x / u`, `u` uniform in (0, 1]; those with
/// the highest priorities stay, and each stands for `max(1, t / x)` sessions, `t` being the highest
/// priority that went. Sums over any subset stay unbiased (nearly so: the budget counts items, not
/// sessions); sessions larger than `t` are all kept, once, so heavy tails survive.
#[derive(Debug)]
pub struct Thinner {
    heap: BinaryHeap<Held>,
    budget: usize,
    items: usize,
    threshold: f64,
    seen: u64,
    rng: Stream,
}

#[derive(Debug)]
struct Held {
    priority: f64,
    /// Order of arrival, which breaks ties.
    order: u64,
    size: f64,
    items: usize,
    session: Session,
}

impl Thinner {
    /// Keeps at most `budget` items; `seed` names the sample.
    pub fn new(budget: usize, seed: u64) -> Thinner {
        Thinner {
            heap: BinaryHeap::new(),
            budget,
            items: 0,
            threshold: 0.0,
            seen: 0,
            rng: Stream::new(seed, "thin"),
        }
    }

    /// Offers a session. Its `weight` counts: a weight of 2 is like two sessions in one.
    pub fn push(&mut self, session: Session) {
        let [up, down] = session.bytes();
        let size = (up as f64 + down as f64 + BASE) * session.weight;
        let items = session.items();
        let u = 1.0 - self.rng.uniform();
        self.heap.push(Held {
            priority: size / u,
            order: self.seen,
            size,
            items,
            session,
        });
        self.seen += 1;
        self.items += items;
        while self.items > self.budget && self.heap.len() > 1 {
            if let Some(gone) = self.heap.pop() {
                self.items -= gone.items;
                self.threshold = self.threshold.max(gone.priority);
            }
        }
    }

    /// Sessions offered so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Sessions held now.
    pub fn held(&self) -> usize {
        self.heap.len()
    }

    /// The sample, in the order offered, with its weights.
    pub fn finish(self) -> Vec<Session> {
        let mut held = self.heap.into_vec();
        held.sort_unstable_by_key(|h| h.order);
        held.into_iter()
            .map(|h| {
                let mut s = h.session;
                s.weight *= (self.threshold / h.size).max(1.0);
                s
            })
            .collect()
    }
}

impl Model {
    /// The model with at most `budget` items in its sessions; see [`Thinner`]. Unchanged if it
    /// fits.
    pub fn thinned(&self, budget: usize, seed: u64) -> Model {
        let mut thinner = Thinner::new(budget, seed);
        for s in &self.sessions {
            thinner.push(s.clone());
        }
        Model {
            sessions: thinner.finish(),
            ..self.clone()
        }
    }
}

// The heap's greatest is the one to go first: the lowest priority, the latest of equals.
impl Ord for Held {
    fn cmp(&self, other: &Held) -> Ordering {
        other
            .priority
            .total_cmp(&self.priority)
            .then(self.order.cmp(&other.order))
    }
}
impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Held {}

#[cfg(test)]
mod tests;

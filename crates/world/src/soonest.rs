//! The earliest of a fixed number of instants.

use swell_base::Time;

/// A map from numbers to instants that knows the earliest. Ties go to the lowest number.
///
/// A winner tree: each node holds the number of the earlier of its two children, so an update takes O(log n). The
/// event queue could do the same, but with one event per update.
#[derive(Debug)]
pub(crate) struct Soonest {
    at: Vec<Time>,
    /// The root has number 1, the children of node `n` are `2n` and `2n + 1`, the leaves come last.
    winners: Vec<u32>,
    first: (Time, u32),
}

impl Soonest {
    /// A map for `count` numbers, none of which has an instant yet.
    pub fn new(count: usize) -> Soonest {
        let leaves = count.next_power_of_two().max(2);
        let mut soonest = Soonest {
            at: vec![Time::MAX; leaves],
            winners: vec![0; 2 * leaves],
            first: (Time::MAX, 0),
        };
        for (i, leaf) in soonest.winners[leaves..].iter_mut().enumerate() {
            *leaf = i as u32;
        }
        for node in (1..leaves).rev() {
            soonest.winners[node] = soonest.winners[2 * node];
        }
        soonest
    }

    /// Sets the instant of a number; `Time::MAX` for none.
    #[inline]
    pub fn set(&mut self, number: u32, at: Time) {
        self.at[number as usize] = at;
        let mut node = (self.at.len() + number as usize) / 2;
        while node > 0 {
            let [a, b] = [self.winners[2 * node], self.winners[2 * node + 1]];
            let winner = match self.at[b as usize] < self.at[a as usize] {
                true => b,
                false => a,
            };
            if winner == self.winners[node] && winner != number {
                // Nodes further up do not depend on what changed.
                return;
            }
            self.winners[node] = winner;
            node /= 2;
        }
        let winner = self.winners[1];
        self.first = (self.at[winner as usize], winner);
    }

    /// The earliest instant and its number.
    #[inline]
    pub fn first(&self) -> (Time, u32) {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Stream;

    /// The oracle is the minimum of a list.
    #[test]
    fn it_is_the_first_minimum_of_all() {
        for count in [1, 2, 3, 5, 8, 20, 200] {
            let mut rng = Stream::new(count, "soonest");
            let mut soonest = Soonest::new(count as usize);
            let mut list = vec![Time::MAX; count as usize];
            assert_eq!(soonest.first(), (Time::MAX, 0));
            for _ in 0..5_000 {
                let number = rng.below(count) as usize;
                list[number] = match rng.chance(0.2) {
                    true => Time::MAX,
                    false => Time::from_nanos(rng.below(50)),
                };
                soonest.set(number as u32, list[number]);
                let least = (0..list.len()).map(|i| (list[i], i as u32)).min();
                assert_eq!(Some(soonest.first()), least);
            }
        }
    }
}

//! A part of the runs, for one of several machines or processes.

use std::fmt;
use std::str::FromStr;

/// Part `index` of `of`: every `of`-th run, in the order of the plan.
///
/// The plan lists all replications of a condition together. Round-robin assignment therefore gives every shard about
/// the same number of runs of each condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    index: u32,
    of: u32,
}

impl Shard {
    /// All runs.
    pub(super) const ONLY: Shard = Shard { index: 1, of: 1 };

    /// Part `index` of `of`, counted from one; `None` if there is no such part.
    pub fn new(index: u32, of: u32) -> Option<Shard> {
        (1..=of).contains(&index).then_some(Shard { index, of })
    }

    /// Whether this shard executes the run at this index of the plan.
    pub fn takes(self, place: usize) -> bool {
        place as u64 % u64::from(self.of) == u64::from(self.index - 1)
    }

    /// The label in file names, such as `2-of-4`.
    pub fn label(self) -> String {
        format!("{}-of-{}", self.index, self.of)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/');
        let parsed = numbers.and_then(|(k, n)| Shard::new(k.parse().ok()?, n.parse().ok()?));
        parsed.ok_or_else(|| "write K/N with K from 1 to N, such as 2/4".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_belongs_to_one_shard() {
        for of in [1, 2, 3, 7, 40] {
            let shards: Vec<Shard> = (1..=of).filter_map(|k| Shard::new(k, of)).collect();
            for place in 0..30 {
                let owners = shards.iter().filter(|s| s.takes(place)).count();
                assert_eq!(owners, 1, "run {place} of {of} shards");
            }
        }
    }

    #[test]
    fn shards_are_written_as_k_of_n() {
        let shard: Shard = "2/4".parse().unwrap();
        assert_eq!(
            (shard.to_string(), shard.label()),
            ("2/4".into(), "2-of-4".into())
        );
        for wrong in ["0/4", "5/4", "1/0", "1", "/", "a/b", "-1/4", "1/4/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}

//! Maps packets to classes of a discipline.

use swell_base::{FlowId, Head, Tag, derived};

/// Maps a packet to its class: a band of a priority queue, or a queue of a round robin. A class number beyond the
/// last class means the last class.
#[derive(Clone, Debug, PartialEq)]
pub enum Classifier {
    /// Foreground or background.
    Tag {
        /// Class of the application under study.
        foreground: u16,
        /// Class of everything else.
        background: u16,
    },
    /// By ranges of flow numbers. Each entry is the first flow of a range and its class, in ascending order. Flows
    /// before the first entry are in class 0.
    FlowsFrom(Vec<(FlowId, u16)>),
    /// By a salted hash of flow and direction, so that each flow has its own class unless hashes collide (McKenney
    /// 1990).
    Hash,
}

impl Classifier {
    /// The class of `packet`. It is less than `classes`, which must be at least 1.
    pub(super) fn class(&self, packet: &Head, classes: usize, salt: u64) -> usize {
        let class = match self {
            Classifier::Tag {
                foreground,
                background,
            } => usize::from(match packet.tag {
                Tag::Foreground => *foreground,
                Tag::Background => *background,
            }),
            Classifier::FlowsFrom(ranges) => {
                let after = ranges.partition_point(|&(first, _)| first <= packet.flow);
                after.checked_sub(1).map_or(0, |i| usize::from(ranges[i].1))
            }
            Classifier::Hash => {
                // The two directions are different flows. The 1 is added because index 0 would return the salt itself.
                let flow = u64::from(packet.flow.0) << 1 | packet.from as u64;
                return (derived(salt, flow + 1) % classes as u64) as usize;
            }
        };
        class.min(classes - 1)
    }
}

#[cfg(test)]
mod tests {
    use swell_base::End;

    use super::*;

    fn flow(id: u32) -> Head {
        Head {
            flow: FlowId(id),
            ..Head::default()
        }
    }

    #[test]
    fn by_tag_and_by_range() {
        let by_tag = Classifier::Tag {
            foreground: 1,
            background: 0,
        };
        let background = Head {
            tag: Tag::Background,
            ..Head::default()
        };
        assert_eq!(by_tag.class(&flow(3), 2, 0), 1);
        assert_eq!(by_tag.class(&background, 2, 0), 0);
        assert_eq!(by_tag.class(&flow(3), 1, 0), 0, "the last class there is");
        let ranges = Classifier::FlowsFrom(vec![(FlowId(10), 2), (FlowId(20), 1)]);
        let classes = [0, 9, 10, 19, 20, u32::MAX].map(|id| ranges.class(&flow(id), 3, 0));
        assert_eq!(classes, [0, 0, 2, 2, 1, 1]);
    }

    #[test]
    fn hashes_spread_flows_evenly_and_differ_by_salt() {
        let count = |salt| {
            let mut counts = [0u32; 64];
            for id in 0..6400 {
                counts[Classifier::Hash.class(&flow(id), 64, salt)] += 1;
            }
            counts
        };
        let counts = count(1);
        let chi2: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - 100.0).powi(2) / 100.0)
            .sum();
        // 63 degrees of freedom: mean 63, standard deviation 11.2; p = 0.001 at 103.
        assert!((25.0..103.0).contains(&chi2), "{chi2}");
        assert_ne!(counts, count(2));
        let back = Head {
            from: End::Server,
            ..flow(1)
        };
        let both = |salt| {
            Classifier::Hash.class(&back, 64, salt) == Classifier::Hash.class(&flow(1), 64, salt)
        };
        assert!(
            (0..64).filter(|&s| both(s)).count() < 8,
            "directions part ways"
        );
    }
}

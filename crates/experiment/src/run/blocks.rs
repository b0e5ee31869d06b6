//! The order in which the runs of a plan are executed: randomised blocks.
//!
//! Every condition (a foreground with a background) runs once in each block, in random order. If the machine slows
//! down during an experiment, this affects all conditions alike and does not look like an effect of the last one.
//! The results of simulated runs do not depend on the order.

use swell_base::Stream;

use crate::observe::Cell;

/// The indices of `cells` in execution order: by replication, and within a replication in an order drawn from `seed`.
pub(super) fn order(cells: &[Cell], seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|&i| cells[i].replication);
    for block in order.chunk_by_mut(|&a, &b| cells[a].replication == cells[b].replication) {
        let replication = cells[block[0]].replication;
        Stream::new(seed, &format!("order of block {replication}")).shuffle(block);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(conditions: usize, replications: u32) -> Vec<Cell> {
        // In the order of plans: all replications of a condition together.
        let one = |c: usize, replication: u32| Cell {
            foreground: "f".into(),
            background: format!("b{c}"),
            replication,
            seed: u64::from(replication) + 1,
        };
        let conditions = (0..conditions).flat_map(|c| (0..replications).map(move |r| (c, r)));
        conditions.map(|(c, r)| one(c, r)).collect()
    }

    #[test]
    fn every_condition_runs_once_in_each_block() {
        let cells = cells(5, 7);
        let order = order(&cells, 3);
        for (r, block) in order.chunks(5).enumerate() {
            assert!(block.iter().all(|&i| cells[i].replication == r as u32));
            let mut names: Vec<&str> = block
                .iter()
                .map(|&i| cells[i].background.as_str())
                .collect();
            names.sort_unstable();
            assert_eq!(names, ["b0", "b1", "b2", "b3", "b4"]);
        }
        assert_eq!(order.len(), cells.len());
    }

    /// Over many blocks each condition comes about equally often at each position. A repeating order, or one in which
    /// the first condition stays first, fails this test.
    #[test]
    fn places_are_random_and_follow_from_the_seed() {
        const BLOCKS: u32 = 3000;
        let cells = cells(3, BLOCKS);
        assert_eq!(order(&cells, 9), order(&cells, 9));
        assert_ne!(order(&cells, 9), order(&cells, 10));
        let mut places = [[0u32; 3]; 3];
        for block in order(&cells, 9).chunks(3) {
            for (place, &i) in block.iter().enumerate() {
                places[i / BLOCKS as usize][place] += 1;
            }
        }
        // 1000 expected, standard deviation 26.
        for n in places.into_iter().flatten() {
            assert!(n.abs_diff(BLOCKS / 3) < 130, "{places:?}");
        }
    }
}

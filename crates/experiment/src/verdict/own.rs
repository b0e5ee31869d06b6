//! Counts of a run's foreground at the links of its path.

use super::values::Asked;
use crate::store::RunResult;

/// Counts of a run's foreground at one direction of a link.
pub(super) struct Own<'r> {
    pub link: &'r str,
    pub direction: u8,
    pub duration: f64,
    pub arrived: u64,
    pub arrived_packets: u64,
    pub departed: u64,
    pub dropped: u64,
}

impl Asked {
    /// Counts of a run's foreground in the direction `down` (0 is up, 1 is down), in the order of the links on its path.
    pub(super) fn way<'r>(&self, run: &'r RunResult, down: usize) -> Vec<Own<'r>> {
        let observed = &run.observed;
        let own = |(link, direction): &(String, u8)| {
            let at = |l: &str, d: u8| (l, d) == (link, *direction);
            let mut parts = observed.parts.iter();
            // Where several foregrounds share the link, each is counted separately in `parts`.
            let part = parts.find(|p| {
                at(&p.link, p.direction) && p.role == "foreground" && p.part == run.cell.foreground
            });
            if let Some(p) = part {
                return Some(Own {
                    link: &p.link,
                    direction: p.direction,
                    duration: p.duration,
                    arrived: p.arrived,
                    arrived_packets: p.arrived_packets,
                    departed: p.departed,
                    dropped: p.dropped,
                });
            }
            let l = observed.links.iter().find(|l| at(&l.link, l.direction))?;
            Some(Own {
                link: &l.link,
                direction: l.direction,
                duration: l.duration,
                arrived: l.arrived[0],
                arrived_packets: l.arrived_packets[0],
                departed: l.departed[0],
                dropped: l.dropped[0],
            })
        };
        self.ways[down].iter().filter_map(own).collect()
    }

    /// The same for the direction in which the foreground sends most, chosen for each run.
    pub(super) fn main<'r>(&self, run: &'r RunResult) -> Vec<Own<'r>> {
        let ways = [0, 1].map(|down| self.way(run, down));
        let sent = |way: &Vec<Own<'r>>| way.first().map(|l| l.arrived);
        ways.into_iter().max_by_key(sent).unwrap_or_default()
    }
}

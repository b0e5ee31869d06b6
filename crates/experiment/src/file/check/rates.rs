//! Rates that the link cannot carry.

use swell_base::Rate;

use super::super::{File, Side};
use super::Findings;
use crate::kinds::Asked;

/// Directions, as messages name them.
const WAYS: [&str; 2] = ["up", "down"];

/// Refuses what no link carries: a background's rate above the link's, and a foreground and a background that cannot
/// slow down and are above it only together. Over TCP packets may be asked to flow faster: they wait.
pub(super) fn check(file: &File, found: &mut Findings) {
    let links = links(file);
    for (i, background) in file.background.iter().enumerate() {
        alone(
            &links,
            &background.as_keys().asks(),
            &format!("background[{i}]"),
            found,
        );
    }
    for (i, foreground) in file.foreground.iter().enumerate() {
        let own = foreground.as_keys();
        if !own.is_unresponsive() {
            continue;
        }
        // Alone above the link's rate it asks what an overload does.
        let others = file.background.iter().map(|other| other.as_keys());
        for other in others.filter(|other| other.is_unresponsive()) {
            together(&links, &own.asks(), &other.asks(), i, other.name(), found);
        }
    }
}

/// The highest rate of each direction over the run; `None` where a packet-delivery trace says it.
fn links(file: &File) -> [Option<Rate>; 2] {
    let start = file.network.links();
    [0, 1].map(|d| {
        let side = [Side::Up, Side::Down][d];
        let changes = file.network.change.iter();
        let own = changes.filter(|c| c.direction == Side::Both || c.direction == side);
        let traced = start[d].deliveries.is_some() || own.clone().any(|c| c.deliveries.is_some());
        let highest = own.filter_map(|c| c.rate).fold(start[d].rate, Rate::max);
        // A missing rate is another problem.
        (!traced && highest > Rate::default()).then_some(highest)
    })
}

fn alone(links: &[Option<Rate>; 2], asked: &Asked, place: &str, found: &mut Findings) {
    for d in [0, 1] {
        if let (Some(link), Some((key, rate))) = (links[d], asked[d])
            && rate > link
        {
            found.add(
                format!("{place}.{key}"),
                format!(
                    "{rate} are more than the link carries {}, which is {link}",
                    WAYS[d]
                ),
                &format!(
                    "write less than {link}, such as {}, or a faster link under [network]",
                    link.scale(BUSY)
                ),
            );
        }
    }
}

/// A busy link that is not overloaded.
const BUSY: f64 = 0.6;

fn together(
    links: &[Option<Rate>; 2],
    own: &Asked,
    theirs: &Asked,
    foreground: usize,
    background: &str,
    found: &mut Findings,
) {
    for d in [0, 1] {
        let (Some(link), Some((key, a)), Some((_, b))) = (links[d], own[d], theirs[d]) else {
            continue;
        };
        if a <= link && b <= link && a.bps().saturating_add(b.bps()) > link.bps() {
            found.add(
                format!("foreground[{foreground}].{key}"),
                format!(
                    "{a} and the {b} of background `{background}` are together more than the link carries {}, which is {link}",
                    WAYS[d]
                ),
                "neither of them slows down: lower one, or carry one over transport = \"tcp\"",
            );
        }
    }
}

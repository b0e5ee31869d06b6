//! What backgrounds carried.

use swell_base::Direction;
use swell_experiment::file::{Bottleneck, File};
use swell_verdict::BackgroundVerdict;

use super::text::rate;

/// What a background carried towards the foreground's clients, Mbit/s, and up where that is a considerable share of the slowest link there: then it
/// may be what the figures come from.
pub(super) fn loads(file: &File, b: &BackgroundVerdict) -> String {
    let [up, down] = Direction::BOTH.map(|d| b.load_bps[b.along(d)]);
    let mut parts = file.background.iter();
    let part = parts.find(|part| part.name() == b.background);
    let narrowest = part.and_then(|part| file.narrowest(part));
    let considerable = |slowest: [Bottleneck; 2]| {
        let link = &slowest[b.along(Direction::Up)];
        up >= CONSIDERABLE * link.rate.bps() as f64
    };
    match narrowest.is_some_and(considerable) {
        true => format!("{}\nup {}", rate(down), rate(up)),
        false => rate(down),
    }
}

/// What uses more than this share of a link in a direction is told, whatever flows in the other one. Acknowledgements of
/// what fills a link of the same rate are less.
const CONSIDERABLE: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;
    use swell_experiment::file::read;

    #[test]
    fn what_fills_the_uplink_is_told() {
        let text = "name = \"x\"\n[network]\nrate = \"8Mbit\"\n[network.up]\nrate = \"1Mbit\"\n[[foreground]]\nname = \"f\"\nkind = \"none\"\n\
                    [[background]]\nname = \"b\"\nkind = \"greedy\"\n[run]\nduration = \"60s\"\n";
        let file = read(text, "x").unwrap();
        let carried = |load_bps, turned| {
            let b = BackgroundVerdict {
                background: "b".into(),
                kind: "greedy",
                requests: 0,
                unfinished: 0,
                failed: 0,
                replications: 1,
                load_bps,
                offered_bps: load_bps,
                requested_bps: [None; 2],
                turned,
                quantiles: Vec::new(),
                judged: Vec::new(),
                beside: Vec::new(),
                withheld: Vec::new(),
                open: Vec::new(),
                remedy: None,
                matters: None,
            };
            loads(&file, &b)
        };
        assert_eq!(carried([9e5, 2.6e6], false), "2.6\nup 0.9");
        assert_eq!(carried([1e5, 2.6e6], false), "2.6");
        // What fetches from the other end sends its answers up.
        assert_eq!(carried([1e5, 2.6e6], true), "0.1\nup 2.6");
    }
}

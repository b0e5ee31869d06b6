//! What counts as goodput of endless transfers and swarms.

use super::*;
use crate::measure::GOODPUT_EACH_WAY;
use swell_base::Direction;

fn of(foreground: &str) -> (RunSpec, Observations) {
    let text = format!(
        "name = \"test\"\nnetwork = {{ rate = \"5Mbit\", delay = \"10ms\" }}\n[[foreground]]\nname = \"own\"\n{foreground}\n\
         [[background]]\nname = \"none\"\nkind = \"none\"\n[run]\nreplications = 1\nwarmup = \"0s\"\nduration = \"20s\"\n"
    );
    run_of(&text, 0)
}

fn goodput(observed: &Observations) -> [f64; 2] {
    GOODPUT_EACH_WAY.map(|name| {
        let mut own = observed.measures.iter();
        own.find(|s| s.measure == name).expect("its row").value
    })
}

/// Network-layer rate out of the link, up and down.
fn packets(observed: &Observations) -> [f64; 2] {
    Direction::BOTH.map(|d| {
        let mut links = observed.links.iter();
        let link = links.find(|l| l.direction == d).expect("both directions");
        link.departed[0] as f64 * 8.0 / link.duration
    })
}

#[test]
fn acknowledgements_and_headers_of_transfers_are_no_goodput() {
    for window in ["", "active = { from = \"5s\", on = \"3s\", off = \"3s\" }"] {
        let (_, observed) = of(&format!("kind = \"greedy\"\nconnections = 2\n{window}"));
        let (own, all) = (goodput(&observed), packets(&observed));
        assert_eq!(own[0], 0.0);
        assert!(all[0] > 0.0 && own[1] > 0.85 * all[1] && own[1] < all[1]);
        let flows: u64 = observed.flows.iter().map(|f| f.down).sum();
        assert_eq!(own[1], flows as f64 * 8.0 / 20.0);
    }
}

/// All peers are seeds, so that the client uploads requests only.
#[test]
fn requests_of_a_swarm_are_no_goodput() {
    let swarm = |seeds: f64| of(&format!("kind = \"swarm\"\npeers = 5\nseeds = {seeds:?}")).1;
    let alone = swarm(1.0);
    let (own, all) = (goodput(&alone), packets(&alone));
    assert_eq!(own[0], 0.0);
    assert!(all[0] > 0.0 && own[1] > 0.85 * all[1] && own[1] < all[1]);
    assert!(goodput(&swarm(0.0))[0] > 0.0);
}

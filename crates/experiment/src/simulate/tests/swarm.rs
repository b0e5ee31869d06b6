//! Swarms over links and TCP.

use super::*;
use crate::observe::Observations;
use swell_base::Direction;

/// A swarm alone on a link of 6 Mbit/s down and 1 Mbit/s up.
fn swarm(keys: &str, replication: usize) -> Observations {
    let text = format!(
        r#"
name = "swarm"
[network]
rate = "6Mbit"
delay = "10ms"
queue = "64KiB"
[network.up]
rate = "1Mbit"
[[foreground]]
name = "nobody"
kind = "none"
[[background]]
name = "swarm"
kind = "swarm"
{keys}
[run]
replications = 4
warmup = "10s"
duration = "70s"
keep = {{ flows = true, waits = true }}
"#
    );
    run_of(&text, replication).1
}

/// Application bytes up and down.
fn sums(run: &Observations) -> [f64; 2] {
    let way = |get: fn(&crate::observe::Flow) -> u64| run.flows.iter().map(get).sum::<u64>() as f64;
    [way(|f| f.up), way(|f| f.down)]
}

#[test]
fn blocks_flow_both_ways_and_fill_the_uplink() {
    let run = swarm("", 0);
    assert_eq!(run.flows.len(), 40);
    assert!(run.flows.iter().all(|f| f.class == "swarm"));
    // 70 s at 1 Mbit/s, less headers, acknowledgements and the first second.
    let [up, down] = sums(&run).map(|bytes| bytes * 8.0 / 70e6);
    assert!((0.85..0.97).contains(&up), "{up}");
    assert!((0.3..6.0).contains(&down), "{down}");
    // Round trips: 2 · (10 + 5 + 10 to 100) ms and more.
    let least = run
        .flows
        .iter()
        .map(|f| f.rtt)
        .fold(f64::INFINITY, f64::min);
    assert!((0.05..0.12).contains(&least), "{least}");
    // The client serves some of the time, but not at one time, more peers than it has slots.
    let served = run.flows.iter().filter(|f| f.up > 16_384).count();
    assert!(served > 4, "{served}");
}

/// Blocks and requests of the whole run: at most the cap and a block. The rest is 17 bytes for a block of the other
/// direction, and a few chokes and unchokes.
#[test]
fn caps_are_kept_and_used() {
    let keys = "upload = \"400kbit\"\ndownload = \"300kbit\"\nseeds = 0.3";
    let [up, down] = sums(&swarm(keys, 0));
    for (bytes, cap) in [(up, 400e3), (down, 300e3)] {
        let whole = cap / 8.0 * 70.0;
        assert!(bytes < 1.005 * whole + 16_397.0, "{bytes} of {whole}");
        assert!(bytes > 0.93 * whole, "{bytes} of {whole}");
    }
}

#[test]
fn seeds_are_replications_and_draw_their_own_peers() {
    let all = [0, 1, 2, 3].map(|replication| swarm("download = \"6Mbit\"", replication));
    let mut down = all.each_ref().map(|run| sums(run)[1]);
    down.sort_by(f64::total_cmp);
    assert!(down[3] > 1.1 * down[0], "{down:?}");
    let rtts = all.each_ref().map(|run| run.flows[0].rtt);
    assert!(rtts[0] != rtts[1]);
    let again = swarm("download = \"6Mbit\"", 2);
    assert_eq!(sums(&again), sums(&all[2]));
}

/// With LEDBAT the uplink stays full, and its queue short (RFC 6817).
#[test]
fn a_swarm_of_ledbat_yields() {
    let wait = |keys| {
        let run = swarm(keys, 0);
        let departed = run
            .links
            .iter()
            .find(|l| l.direction == Direction::Up)
            .unwrap()
            .departed;
        let used = departed[1] as f64 * 8.0 / 60e6;
        assert!(used > 0.93, "{used}");
        let waits = run.waits.iter().filter(|w| w.direction == Direction::Up);
        let sums = waits.map(|w| (w.waited, w.packets as f64));
        let (all, packets) = sums.fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        all / packets
    };
    let [cubic, ledbat] = ["", "tcp = { congestion = \"ledbat\" }"].map(wait);
    assert!(ledbat < 0.5 * cubic, "{ledbat} {cubic}");
}

/// As a foreground it is measured by its goodput, in both directions.
#[test]
fn as_a_foreground_it_has_a_goodput() {
    let text = r#"
name = "swarm"
[network]
rate = "6Mbit"
[[foreground]]
name = "swarm"
kind = "swarm"
[[background]]
name = "none"
kind = "none"
"#;
    let file = crate::file::read(text, "x.toml").expect("a good file");
    let part = &file.foreground[0];
    assert_eq!(part.sends(), Some([true, true]));
    assert_eq!(part.measures()[0].name, "goodput");
}

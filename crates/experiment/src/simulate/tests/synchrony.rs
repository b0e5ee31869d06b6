//! The table of how connections lose together.

use super::*;

const TOGETHER: &str = r#"
name = "together"
[network]
rate = "5Mbit"
delay = "20ms"
queue = "20pkt"
[[foreground]]
name = "nothing"
kind = "none"
[[background]]
name = "downloads"
kind = "greedy"
connections = 10
tcp = { congestion = "reno" }
[run]
replications = 1
warmup = "5s"
duration = "25s"
keep = { synchrony = true }
"#;

#[test]
fn connections_that_share_a_full_queue_lose_together() {
    let (_, o) = run_of(TOGETHER, 0);
    let [up, down] = &o.synchrony[..] else {
        panic!("{:?}", o.synchrony);
    };
    assert_eq!((up.direction, down.direction), (0, 1));
    assert_eq!((up.flows, down.flows), (10, 10));
    // The bins say in which round trips there were drops.
    let lossy = |d: u8| {
        let mine = o
            .bins
            .iter()
            .filter(|b| b.direction == d && b.time >= 5.0 - 1e-9);
        mine.filter(|b| b.dropped[0] + b.dropped[1] > 0).count() as u64
    };
    assert_eq!((up.events, down.events), (lossy(0), lossy(1)));
    assert!(down.events > 10 && up.events == 0, "{down:?}");
    assert!(up.share.is_nan() && up.independent.is_nan());
    // At least one of ten loses in such a bin, and no more than all.
    assert!((0.1..=1.0).contains(&down.share), "{down:?}");
    assert!((0.1..=1.0).contains(&down.independent), "{down:?}");
    // Acknowledgements go up, and never wait there.
    assert!(up.acks > 1000 && down.acks == 0, "{up:?}");
    assert!(up.compressed < up.acks / 10, "{up:?}");
    assert!(o.waits.is_empty());

    let (_, without) = run_of(&TOGETHER.replace("keep = { synchrony = true }", ""), 0);
    assert!(without.synchrony.is_empty());
    assert_eq!(without.links, o.links, "keeping account changes nothing");
}

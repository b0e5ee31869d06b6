//! The table of loss synchronization.

use super::*;
use swell_base::Direction;

const TOGETHER: &str = r#"
name = "together"
[network]
rate = "20Mbit"
delay = "20ms"
queue = "100pkt"
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

/// The mean share of the ten connections that lost a packet in a bin with drops, and the expected share if each lost
/// independently, as often as it does. Computed from the drops of a run, in a table of bins and connections.
fn by_hand(spec: &RunSpec) -> (f64, f64) {
    let (mut world, _) = stage::RunParts::new(spec).expect("a world");
    world.advance(Time::ZERO + spec.duration);
    let census = world.bottleneck(swell_world::Direction::Down).census();
    let flows = 10;
    let bins = spec.duration.saturating_sub(spec.warmup).as_nanos() / spec.bins.as_nanos();
    let mut lost = vec![vec![false; flows]; bins as usize];
    for &(at, flow) in census.expect("asked for").drops() {
        let Some(since) = at.as_nanos().checked_sub(spec.warmup.as_nanos()) else {
            continue;
        };
        if let Some(bin) = lost.get_mut((since / spec.bins.as_nanos()) as usize) {
            bin[flow as usize] = true;
        }
    }
    let (mut shares, mut events) = (0.0, 0.0);
    for bin in lost.iter().filter(|bin| bin.contains(&true)) {
        shares += bin.iter().filter(|&&l| l).count() as f64 / flows as f64;
        events += 1.0;
    }
    let often = |flow: usize| {
        let bins_of = lost.iter().filter(|bin| bin[flow]).count();
        bins_of as f64 / lost.len() as f64
    };
    let mean = (0..flows).map(often).sum::<f64>() / flows as f64;
    let any = 1.0 - (0..flows).map(|flow| 1.0 - often(flow)).product::<f64>();
    (shares / events, mean / any)
}

#[test]
fn connections_that_share_a_full_queue_lose_together() {
    let (spec, o) = run_of(TOGETHER, 0);
    let [up, down] = &o.synchrony[..] else {
        panic!("{:?}", o.synchrony);
    };
    assert_eq!(
        (up.direction, down.direction),
        (Direction::Up, Direction::Down)
    );
    assert_eq!((up.flows, down.flows), (10, 10));
    // The bins show in which RTTs there were drops.
    let lossy = |d: Direction| {
        let mine = o
            .bins
            .iter()
            .filter(|b| b.direction == d && b.time >= 5.0 - 1e-9);
        mine.filter(|b| b.dropped[0] + b.dropped[1] > 0).count() as u64
    };
    assert_eq!(
        (up.events, down.events),
        (lossy(Direction::Up), lossy(Direction::Down))
    );
    assert!(down.events > 10 && up.events == 0, "{down:?}");
    assert!(up.share.is_nan() && up.independent.is_nan());
    // The same as by hand, and far above independence: a full queue does not select flows.
    let (share, independent) = by_hand(&spec);
    assert!((down.share - share).abs() < 1e-9, "{down:?}, not {share}");
    assert!(
        (down.independent - independent).abs() < 1e-9,
        "{down:?}, not {independent}"
    );
    assert!(down.share > 2.0 * down.independent, "{down:?}");
    // ACKs go up, and are never queued there.
    assert!(up.acks > 1000 && down.acks == 0, "{up:?}");
    assert!(up.compressed < up.acks / 10, "{up:?}");
    assert!(o.waits.is_empty());

    let (_, without) = run_of(&TOGETHER.replace("keep = { synchrony = true }", ""), 0);
    assert!(without.synchrony.is_empty());
    assert_eq!(without.links, o.links, "keeping account changes nothing");
}

#[test]
fn connections_of_the_warm_up_alone_are_not_counted() {
    let windows = "connections = 10\nactive = { on = \"2s\", off = \"4s\" }";
    let (_, o) = run_of(&TOGETHER.replace("connections = 10", windows), 0);
    // Five windows have ten connections each, and the first is over before the warm-up is.
    assert_eq!(o.synchrony.iter().map(|s| s.flows).max(), Some(40));
}

//! Media streams: the viewer's experience, in closed form for simple networks.

use super::*;

/// A run of one stream, with `keys` for its foreground and `network` for its link.
fn watched(network: &str, keys: &str, background: &str) -> Observations {
    let text = format!(
        r#"
name = "stream"
[network]
delay = "10ms"
{network}
[[foreground]]
name = "stream"
kind = "stream"
every = "60s"
{keys}
[[background]]
name = "other"
{background}
[run]
replications = 1
warmup = "1s"
duration = "31s"
"#
    );
    run_of(&text, 0).1
}

const NONE: &str = "kind = \"none\"";

fn all(observed: &Observations, measure: &str) -> Vec<f64> {
    let rows = observed.measures.iter().filter(|m| m.measure == measure);
    rows.map(|m| m.value).collect()
}

fn one(observed: &Observations, measure: &str) -> f64 {
    let values = all(observed, measure);
    assert_eq!(values.len(), 1, "{measure}: {values:?}");
    values[0]
}

#[test]
fn an_idle_link_does_nothing_to_a_stream() {
    let network = "rate = \"4Mbit\"\nqueue = \"100ms\"";
    let observed = watched(network, "length = \"20s\"\nbuffer = \"2s\"", NONE);
    for nothing in [
        "late frame share",
        "lost frame share",
        "stall count",
        "stall time",
        "retransmitted",
    ] {
        assert_eq!(one(&observed, nothing), 0.0, "{nothing}");
    }
    assert_eq!(one(&observed, "full rate"), 1.0);
    let jitter = all(&observed, "jitter");
    assert!(
        jitter.len() == 20 && jitter.iter().all(|j| *j < 1e-8),
        "{jitter:?}"
    );
    // The request of 128 bytes, then packets of 966 bytes, each with 20 ms of delay. The buffer of 60 frames is full
    // after packet 120, at twice the rate of 60 per second, and the first frame is played one frame time later.
    let wanted = 0.020 + 128.0 * 8.0 / 4e6 + 119.0 / 120.0 + 0.020 + 966.0 * 8.0 / 4e6 + 1.0 / 30.0;
    let startup = one(&observed, "start-up");
    assert!((startup - wanted).abs() < 1e-6, "{startup}, not {wanted}");
    let gaps = all(&observed, "inter-arrival");
    assert_eq!(gaps.len(), 20 * 60 - 1);
    let early = |gap: &&f64| (**gap - 1.0 / 120.0).abs() < 1e-6;
    assert_eq!(gaps.iter().filter(early).count(), 120);
    let paced = |gap: &&f64| (**gap - 1.0 / 60.0).abs() < 1e-6;
    assert_eq!(gaps.iter().filter(paced).count(), 20 * 60 - 121);
    let down = &observed.links[1];
    assert_eq!(
        (down.arrived_packets[0], down.arrived[0]),
        (1200, 1200 * 966)
    );
}

#[test]
fn what_is_lost_is_asked_for_in_time_or_more_than_once() {
    let network =
        "rate = \"4Mbit\"\nqueue = \"100ms\"\nloss = { kind = \"independent\", p = 0.03 }";
    let drops = |observed: &Observations| observed.links[1].dropped[0] as f64;

    let patient = watched(network, "length = \"20s\"\nbuffer = \"5s\"", NONE);
    assert!(drops(&patient) > 15.0);
    for nothing in ["late frame share", "lost frame share", "stall count"] {
        assert_eq!(one(&patient, nothing), 0.0, "{nothing}");
    }
    // A packet may be lost before the count starts, and requests for retransmission may be lost themselves.
    let again = one(&patient, "retransmitted") / 938.0;
    assert!((again - drops(&patient)).abs() <= 2.0, "{again}");

    // One frame time for repair, on a path with an RTT of 40 ms: each packet is requested more than once, and arrives
    // too late.
    let hasty = watched(network, "length = \"20s\"\nbuffer = \"0s\"", NONE);
    let more = one(&hasty, "retransmitted") / 938.0;
    assert!(more > 1.2 * drops(&hasty), "{more} of {}", drops(&hasty));
    assert!(one(&hasty, "late frame share") > 0.01);

    // Without repair each lost packet loses its frame.
    let deaf = watched(network, "length = \"20s\"\nrepair = false", NONE);
    let frames = one(&deaf, "lost frame share") * 600.0;
    assert_eq!(one(&deaf, "retransmitted"), 0.0);
    assert!(
        frames <= drops(&deaf) && frames >= drops(&deaf) / 2.0,
        "{frames} of {}",
        drops(&deaf)
    );
}

#[test]
fn a_link_below_the_rate_stops_the_player_for_what_is_missing() {
    // 60 packets of 966 bytes per second are 463.68 kbit/s. A link that is 5 % slower takes 20 s / 19 longer for 20 s
    // of media, which is the total stall time. Each stall also gives the player a frame time of reserve, which it uses.
    let network = "rate = \"440496bit\"\nqueue = \"10s\"";
    let observed = watched(network, "length = \"20s\"\nbuffer = \"0s\"", NONE);
    let stopped = one(&observed, "stall time");
    assert!((stopped - 20.0 / 19.0).abs() < 0.07, "{stopped}");
    assert!(one(&observed, "stall count") > 10.0);
    assert_eq!(one(&observed, "late frame share"), 0.0);
    // A buffer of three seconds is enough for the same link. Filling it takes 3 s / 0.95, and there are no stalls.
    let buffered = watched(network, "length = \"20s\"\nbuffer = \"3s\"", NONE);
    assert_eq!(one(&buffered, "stall count"), 0.0);
    let startup = one(&buffered, "start-up");
    assert!((startup - 3.0 * 20.0 / 19.0).abs() < 0.15, "{startup}");
}

#[test]
fn bursts_beside_it_move_packets_and_not_what_a_buffered_viewer_sees() {
    let network = "rate = \"1Mbit\"\nqueue = \"200ms\"";
    let bursts = "kind = \"on-off\"\nrate = \"0.3Mbit\"\nsources = 4";
    let [buffered, not] = ["5s", "0s"].map(|buffer| {
        let keys = format!("length = \"20s\"\nbuffer = \"{buffer}\"");
        watched(network, &keys, bursts)
    });
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    for observed in [&buffered, &not] {
        assert!(mean(&all(observed, "jitter")) > 1e-3);
    }
    assert_eq!(one(&buffered, "late frame share"), 0.0);
    assert!(one(&not, "late frame share") + one(&not, "stall time") > 0.01);
}

//! Media in segments over TCP.

use super::*;

fn watched(rate: &str, keys: &str) -> Observations {
    let text = format!(
        r#"
name = "dash"
[network]
rate = "{rate}"
delay = "10ms"
queue = "100ms"
[[foreground]]
name = "dash"
kind = "dash"
every = "300s"
{keys}
[[background]]
name = "none"
kind = "none"
[run]
replications = 1
warmup = "1s"
duration = "131s"
"#
    );
    run_of(&text, 0).1
}

fn one(observed: &Observations, measure: &str) -> f64 {
    let mut rows = observed.measures.iter().filter(|m| m.measure == measure);
    let (first, second) = (rows.next(), rows.next());
    assert!(second.is_none(), "{measure}");
    first.expect("a value").value
}

#[test]
fn an_idle_link_is_climbed_to_the_top_and_left_there() {
    // 120 s in segments of 4 s; 60 Mbit/s is about ten times the highest bitrate.
    for rule in ["bba", "bola", "throughput"] {
        let observed = watched("60Mbit", &format!("rule = \"{rule}\"\nlength = \"120s\""));
        assert_eq!(one(&observed, "stall count"), 0.0, "{rule}");
        assert_eq!(one(&observed, "stall time"), 0.0, "{rule}");
        let rate = one(&observed, "mean rate");
        assert!((4.5e6..5.8e6).contains(&rate), "{rule}: {rate}");
        assert!(
            (1.0..=9.0).contains(&one(&observed, "switch count")),
            "{rule}"
        );
        let speeds = observed
            .measures
            .iter()
            .filter(|m| m.measure == "throughput");
        assert_eq!(speeds.count(), 30, "{rule}");
        assert!(observed.requests.is_empty());
    }
}

#[test]
fn the_first_segment_takes_what_slow_start_takes() {
    // One bitrate: 8 media segments of 100 kB, each 70 TCP segments with an initial window of 10, over 10 Mbit/s with
    // an RTT of 40 ms. Handshake and request take 80 ms. Windows of 10, 20 and 40 packets follow, one RTT apart. The
    // last packet follows the first of its window by at most 40 transmissions of 1500 bytes, 1.2 ms each. Hosts take no
    // time.
    let keys = "ladder = [\"200kbit\"]\nlength = \"32s\"\ntcp = { jitter = \"0s\" }";
    let startup = one(&watched("10Mbit", keys), "start-up");
    let (least, most) = (0.080 + 2.0 * 0.040, 0.080 + 2.0 * 0.040 + 0.050);
    assert!((least..most).contains(&startup), "{startup}");
}

#[test]
fn a_link_below_the_only_bitrate_stops_the_player_for_what_is_missing() {
    // 1 Mbit/s of media over a link that carries 0.8 Mbit/s of it. Each segment of 4 s takes 5 s, so playback stalls
    // for a second before each of the fifteen segments except the first. Headers take 52 of 1500 bytes.
    let keys = "ladder = [\"1Mbit\"]\nlength = \"60s\"\nbuffer = \"20s\"";
    let observed = watched(&format!("{}bit", 800_000 * 1500 / 1448), keys);
    let (stalls, stalled) = (one(&observed, "stall count"), one(&observed, "stall time"));
    // The run lasts ten seconds longer than the media: 5 s, then as many periods of 5 s as fit into 65 s.
    assert!((12.0..=14.0).contains(&stalls), "{stalls}");
    assert!(
        (stalled / stalls - 1.0).abs() < 0.1,
        "{stalled} in {stalls}"
    );
    assert_eq!(one(&observed, "mean rate"), 1e6);
    assert_eq!(one(&observed, "switch count"), 0.0);
}

#[test]
fn the_throughput_rule_stays_below_the_link() {
    let keys = "rule = \"throughput\"\nlength = \"120s\"";
    let observed = watched("3Mbit", keys);
    // 0.85 of at most 3 Mbit/s selects 2350 kbit/s, without stalls.
    assert_eq!(one(&observed, "stall count"), 0.0);
    let rate = one(&observed, "mean rate");
    assert!((1.7e6..=2.35e6).contains(&rate), "{rate}");
}

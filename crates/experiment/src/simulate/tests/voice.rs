//! Calls, rated by the E-model.

use super::*;

fn scores(background: &str, cell: usize) -> Observations {
    let text = format!(
        r#"
name = "calls"
[network]
rate = "5Mbit"
delay = "10ms"
queue = "300ms"
[[foreground]]
name = "voice"
kind = "voice"
calls = 20
[[background]]
name = "none"
kind = "none"
[[background]]
{background}
[run]
replications = 1
warmup = "2s"
duration = "22s"
"#
    );
    run_of(&text, cell).1
}

fn values(observed: &Observations, measure: &str) -> Vec<f64> {
    let rows = observed.measures.iter().filter(|m| m.measure == measure);
    rows.map(|m| m.value).collect()
}

#[test]
fn calls_are_as_good_as_delay_and_loss_allow() {
    let heavy = "name = \"heavy\"\nkind = \"greedy\"\nconnections = 4";
    let [alone, beside] = [0, 1].map(|cell| scores(heavy, cell));
    let mos = values(&alone, "MOS");
    // Forty speakers, 2.6 s from spurt to spurt, 20 s minus the end, which is not rated.
    assert!((200..=330).contains(&mos.len()), "{}", mos.len());
    assert_eq!(mos.len(), values(&alone, "unplayed").len());
    assert!(alone.measures.iter().all(|m| (2.0..22.0).contains(&m.at)));
    assert!(alone.requests.is_empty());
    // 20 ms of packetization, 20 ms of path and 60 ms of buffer: R = 93.2 - 0.024 * 100 = 90.8, a score of
    // 1 + 3.178 + 0.180.
    assert!(mos.iter().all(|m| (m - 4.358).abs() < 0.001), "{mos:?}");
    assert!(values(&alone, "unplayed").iter().all(|&x| x == 0.0));
    // Packets of 200 bytes, 50 per second for 1004 of 2591 ms. Over twenty seconds, the activity of twenty speakers has
    // a standard deviation of 7 % (an alternating renewal process). The tolerance is three of them.
    let down = &alone.links[1];
    assert_eq!(down.arrived[0], down.arrived_packets[0] * 200);
    let bps = down.arrived[0] as f64 * 8.0 / down.duration;
    let wanted = 20.0 * 80e3 * 1004.0 / 2591.0;
    assert!((bps / wanted - 1.0).abs() < 0.21, "{bps}");

    // A full queue of 300 ms in the down direction: the worst spurts are worse, by delay and by loss.
    let mut beside = values(&beside, "MOS");
    beside.sort_by(f64::total_cmp);
    let worst = &beside[..beside.len() / 4];
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let (with, without) = (mean(worst), mean(&mos));
    assert!(with < without - 0.1, "{with} and {without}");
}

#[test]
fn calls_may_be_a_background() {
    let text = FILE.replace(
        "name = \"cbr\"\nkind = \"cbr\"\nrate = \"5Mbit\"",
        "name = \"calls\"\nkind = \"voice\"\ncalls = 50",
    );
    let (_, observed) = run_of(&text, 2);
    assert!(observed.measures.is_empty() && !observed.requests.is_empty());
    assert!(observed.links.iter().all(|l| l.arrived[1] > 0));
    let class = |f: &crate::observe::Flow| f.class == "voice";
    assert_eq!(observed.flows.iter().filter(|f| class(f)).count(), 100);
}

//! The foreground's access paths. A request over a new connection takes two round trips, each with the bottleneck's two
//! delays and four access delays.

use std::collections::BTreeMap;
use std::path::Path;

use super::run_of;
use crate::Plan;
use crate::observe::Outcome;

/// Median time of requests of 1 kB without background, milliseconds.
fn request(network: &str, foreground: &str) -> f64 {
    let file = format!(
        r#"
name = "access"
[network]
rate = "1Gbit"
{network}
[[foreground]]
name = "web"
kind = "web"
object = "1kB"
{foreground}
[[background]]
name = "none"
kind = "none"
[run]
replications = 1
warmup = "1s"
duration = "6s"
"#
    );
    let (_, observed) = run_of(&file, 0);
    let mut times: Vec<f64> = (observed.requests.iter())
        // The first request on a kept connection includes the handshake.
        .filter(|r| r.outcome == Outcome::Done && r.index > 0)
        .map(|r| (r.last_byte - r.start) * 1e3)
        .collect();
    times.sort_by(f64::total_cmp);
    assert!(times.len() > 5, "{} requests", times.len());
    // Without other traffic all take the same time.
    assert!(times[times.len() - 1] - times[0] < 0.01, "{times:?}");
    times[times.len() / 2]
}

#[test]
fn a_foreground_has_the_access_path_that_the_file_gives_it() {
    for (network, foreground, round_trip) in [
        (r#"delay = "10ms""#, r#"delay = "0ms""#, 20.0),
        (r#"delay = "10ms""#, r#"delay = "7ms""#, 48.0),
        (r#"delay = "1ms""#, r#"delay = "30ms""#, 122.0),
        // The remainder of the network's RTT is divided among the access paths.
        ("delay = \"10ms\"\nrtt = \"100ms\"", "", 100.0),
        (
            "delay = \"10ms\"\nrtt = \"100ms\"",
            r#"delay = "20ms""#,
            100.0,
        ),
        // Default: each access path has a delay of 5 ms.
        (r#"delay = "10ms""#, "", 40.0),
    ] {
        let over = request(network, &format!("{foreground}\nconnection = \"new\""));
        // Transmission of about 1500 bytes in total, at 1 Gbit/s.
        let little = 0.0..0.1;
        let of = format!("{network} {foreground}");
        assert!(
            little.contains(&(over - 2.0 * round_trip)),
            "{of}: {over} ms"
        );
        let kept = request(network, &format!("{foreground}\nconnection = \"kept\""));
        assert!(little.contains(&(kept - round_trip)), "{of}: {kept} ms");
    }
}

/// Packets and transfers as a foreground have the path that makes the network's RTT; as a background, and without an
/// RTT, they have the default. What the file gives is kept.
#[test]
fn packets_and_transfers_take_the_networks_round_trip() {
    let delays = |rtt: &str, kind: &str, delay: &str| {
        let text = format!(
            "name = \"access\"\n[network]\nrate = \"1Gbit\"\ndelay = \"10ms\"\n{rtt}\n\
             [[foreground]]\nname = \"f\"\n{kind}\n{delay}\n[[background]]\nname = \"b\"\n{kind}\n"
        );
        let plan = Plan::resolve(&text, "access.toml", Path::new(".")).expect("a good file");
        let spec = plan.spec(&plan.cells[0], &BTreeMap::new());
        let spec = spec.expect("a cell of the plan");
        let own = spec.foreground.as_ref().expect("a foreground").delay();
        [own, spec.background[0].delay()].map(|d| d.as_secs_f64() * 1e3)
    };
    for kind in [
        "kind = \"greedy\"",
        "kind = \"cbr\"\nrate = \"1Mbit\"",
        "kind = \"poisson\"\nrate = \"1Mbit\"",
        "kind = \"on-off\"\nrate = \"1Mbit\"",
    ] {
        assert_eq!(delays("", kind, ""), [5.0, 5.0], "{kind}");
        assert_eq!(delays("rtt = \"600ms\"", kind, ""), [145.0, 5.0], "{kind}");
        let given = "delay = \"20ms\"";
        assert_eq!(delays("", kind, given), [20.0, 5.0], "{kind}");
        assert_eq!(
            delays("rtt = \"100ms\"", kind, given),
            [20.0, 5.0],
            "{kind}"
        );
        let text = format!(
            "name = \"access\"\n[network]\nrate = \"1Gbit\"\nrtt = \"600ms\"\n\
             [[foreground]]\nname = \"f\"\n{kind}\n{given}\n[[background]]\nname = \"b\"\n{kind}\n"
        );
        let both = Plan::resolve(&text, "access.toml", Path::new("."));
        assert!(both.is_err(), "{kind}: the delay contradicts the RTT");
    }
}

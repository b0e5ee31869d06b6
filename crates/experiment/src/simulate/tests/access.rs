//! The foreground's access paths. A request over a new connection takes two round trips, each with the bottleneck's two
//! delays and four access delays.

use super::run_of;
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

//! Round trips and gaps between windows, on links where they are known.

use super::*;
use crate::observe::{Observations, RoundTrip, Shown};
use swell_base::Direction::{self, Down, Up};

/// A run of web requests over new connections.
fn observed(network: &str, web: &str, background: &str) -> Observations {
    run_with(network, &format!("kind = \"web\"\n{web}"), background)
}

/// A run of any foreground.
fn run_with(network: &str, foreground: &str, background: &str) -> Observations {
    let text = format!(
        r#"
name = "round-trips"
{network}
[[foreground]]
name = "own"
{foreground}
[[background]]
name = "one"
{background}
[run]
replications = 1
warmup = "2s"
duration = "30s"
keep = {{ flows = false, rtts = true, gaps = true }}
"#
    );
    run_of(&text, 0).1
}

const LINK: &str =
    "[network]\nrate = \"10Mbit\"\ndelay = \"10ms\"\nrtt = \"40ms\"\nqueue = \"200ms\"";
const IDLE: &str = "kind = \"none\"";

/// Time to send this number of bytes at 10 Mbit/s.
fn sends(bytes: u32) -> f64 {
    f64::from(bytes) * 8.0 / 10e6
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
}

fn of(o: &Observations, direction: Direction, shown: Shown) -> Vec<&RoundTrip> {
    let own = o.rtts.iter();
    own.filter(|r| (r.connection, r.direction, r.shown) == (0, direction, shown))
        .collect()
}

/// Requests of one packet each way: a handshake and a request seen by the client, the same seen by the server.
#[test]
fn an_idle_link_shows_its_own_round_trip() {
    let one = observed(
        LINK,
        "object = \"1kB\"\nthink = \"1s\"\ntcp = { jitter = \"0s\" }",
        IDLE,
    );
    let trip = |direction, shown| match &of(&one, direction, shown)[..] {
        [only] => only.rtt,
        other => panic!("{direction:?} {shown:?}: {other:?}"),
    };
    near(trip(Up, Shown::Handshake), 0.04 + 2.0 * sends(60));
    // Its last acknowledgement has 52 bytes; the request follows at once.
    near(trip(Down, Shown::Handshake), 0.04 + sends(60) + sends(52));
    // The request waits for the acknowledgement that was sent before it. Its own comes before the response.
    near(trip(Up, Shown::Data), 0.04 + 2.0 * sends(52) + sends(352));
    assert!(trip(Down, Shown::Data) >= 0.04 + sends(1052) + sends(52));
    assert!(one.gaps.is_empty(), "one window each: {:?}", one.gaps);
    let connections = one.rtts.iter().map(|r| r.connection).max();
    assert_eq!(
        connections.map(|c| c as usize + 1),
        Some(one.requests.len())
    );
}

/// Two objects of three windows each: the first of ten segments, and then what acknowledgements allow.
#[test]
fn gaps_lie_between_the_windows_of_a_sender() {
    let web = "object = \"50kB\"\nthink = \"1s\"\ntcp = { jitter = \"0s\" }";
    let idle = observed(LINK, web, IDLE);
    let first: Vec<_> = idle.gaps.iter().filter(|g| g.connection == 0).collect();
    assert!(first.iter().all(|g| g.direction == Down), "{first:?}");
    // The first window leaves at once, behind the acknowledgement of the request. The gap is the round trip of its first
    // packet.
    near(first[0].gap, 0.04 + sends(1500) + 2.0 * sends(52));
    // The second window is as long as the transmission of the first.
    assert_eq!(first.len(), 2, "{first:?}");
    assert!(first[1].gap < first[0].gap - 0.008, "{first:?}");
    // Behind a full buffer of the uplink every gap is longer, and so are round trips.
    let busy = observed(LINK, web, "kind = \"greedy\"\ndirection = \"up\"");
    let mean = |all: Vec<f64>| swell_stats::mean(&all).expect("values");
    let gap = |o: &Observations| mean(o.gaps.iter().map(|g| g.gap).collect());
    let trip = |o: &Observations| {
        let data = o.rtts.iter().filter(|r| r.direction == Down);
        mean(data.map(|r| r.rtt).collect())
    };
    for (what, more) in [
        ("gap", gap(&busy) - gap(&idle)),
        ("round trip", trip(&busy) - trip(&idle)),
    ] {
        assert!(more > 0.05 && more < 0.25, "{what}: {more}");
    }
}

/// Of packets that were lost, and of those that waited at the receiver for their repair, no round trip is known.
#[test]
fn repairs_are_no_round_trips() {
    let network = format!("{LINK}\nloss = {{ kind = \"independent\", p = 0.03 }}");
    let lossy = observed(
        &network,
        "object = \"200kB\"\ntcp = { jitter = \"0s\" }",
        IDLE,
    );
    assert!(lossy.requests.iter().any(|r| r.retransmissions > 0));
    assert!(lossy.rtts.len() > 500);
    let data = lossy.rtts.iter().filter(|r| r.shown == Shown::Data);
    // Ten segments queue in front of each other, twice that in slow start; an acknowledgement may be 40 ms late.
    let longest = data.map(|r| r.rtt).fold(0.0, f64::max);
    assert!(longest < 0.04 + 0.2 + 0.04, "{longest}");
}

/// Several links: the client's end is seen at the first, the server's at the last.
#[test]
fn ends_are_seen_at_the_outer_links() {
    let network = r#"
[[links]]
name = "home"
rate = "10Mbit"
delay = "5ms"
queue = "200ms"
[[links]]
name = "core"
rate = "10Mbit"
delay = "15ms"
queue = "100ms"
"#;
    let web = "object = \"1kB\"\nthink = \"1s\"\ndelay = \"0s\"\ntcp = { jitter = \"0s\" }";
    let two = observed(network, web, IDLE);
    let trips = of(&two, Up, Shown::Handshake);
    assert_eq!(trips.len(), 1);
    let access = trips[0].rtt - 0.04 - 4.0 * sends(60);
    let other = of(&two, Down, Shown::Handshake)[0].rtt - 0.04 - 2.0 * sends(60) - 2.0 * sends(52);
    near(access, 0.0);
    near(other, 0.0);
}

/// Each end of a connection has an access path of its own.
#[test]
fn access_paths_may_differ() {
    let network = "[network]\nrate = \"10Mbit\"\ndelay = \"10ms\"\nqueue = \"200ms\"";
    let handshakes = |o: &Observations, direction| -> Vec<f64> {
        let own = (o.rtts.iter())
            .filter(|r| (r.direction, r.shown) == (direction, Shown::Handshake))
            .map(|r| r.rtt);
        own.collect()
    };
    let two = run_with(
        network,
        "kind = \"greedy\"\nconnections = 2\ndelay = [\"0s\", \"100ms\"]",
        IDLE,
    );
    let own = handshakes(&two, Up);
    assert_eq!(own.len(), 2);
    near(own[0].min(own[1]), 0.02 + 2.0 * sends(60));
    // Its SYN queues behind data of the first.
    let longer = own[0].max(own[1]);
    assert!((0.42..0.44).contains(&longer), "{longer}");
    for (left, right) in [("0s", "20ms"), ("20ms", "0s")] {
        let tcp = format!(
            "kind = \"cbr\"\nrate = \"100kbit\"\ntransport = \"tcp\"\ndelay = \"{left}\"\ndelay_right = \"{right}\""
        );
        let one = run_with(network, &tcp, IDLE);
        for direction in [Up, Down] {
            for rtt in handshakes(&one, direction) {
                assert!((rtt - 0.06).abs() < 0.001, "{direction:?}: {rtt}");
            }
        }
        let data: Vec<f64> = (one.rtts.iter().filter(|r| r.shown == Shown::Data))
            .map(|r| r.rtt)
            .collect();
        let least = data.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(data.len() > 100, "{}", data.len());
        assert!((least - 0.06).abs() < 0.003, "{least}");
    }
}

/// What waits in a host's access link, before any shared link, has left its sender.
#[test]
fn access_links_are_part_of_the_round_trip() {
    let slow = run_with(
        LINK,
        "kind = \"greedy\"\ndirection = \"up\"\naccess = \"1Mbit\"\ntcp = { jitter = \"0s\" }",
        IDLE,
    );
    let data = slow.rtts.iter().filter(|r| r.shown == Shown::Data);
    let longest = data.map(|r| r.rtt).fold(0.0, f64::max);
    // 64 KiB at 1 Mbit/s.
    assert!(longest > 0.5, "{longest}");
    // Both ends of a swarm's connections see the same path, and its peers' delays.
    let swarm = run_with(LINK, "kind = \"swarm\"\nupload = \"500kbit\"", IDLE);
    let least = |direction| {
        let own = swarm.rtts.iter().filter(|r| r.direction == direction);
        own.map(|r| r.rtt).fold(f64::INFINITY, f64::min)
    };
    let [up, down] = [Up, Down].map(least);
    assert!((up / down - 1.0).abs() < 0.1 && up > 0.02, "{up} {down}");
}

/// What observes links does not disturb what observes hosts.
#[test]
fn a_waterfall_may_be_kept_as_well() {
    let web = "kind = \"web\"\nobject = \"50kB\"";
    let [alone, both] = ["", "waterfall = true,"].map(|more| {
        let text = format!(
            "name = \"two\"\n{LINK}\n[[foreground]]\nname = \"web\"\n{web}\n[[background]]\nname = \"one\"\n{IDLE}\n\
             [run]\nreplications = 1\nwarmup = \"1s\"\nduration = \"5s\"\nkeep = {{ {more} rtts = true, gaps = true }}"
        );
        run_of(&text, 0).1
    });
    assert!(!both.waterfall.is_empty() && alone.waterfall.is_empty());
    assert!(!both.rtts.is_empty() && both.rtts == alone.rtts);
    assert_eq!(both.gaps, alone.gaps);
}

/// Without the keys there are no tables.
#[test]
fn nothing_is_kept_unasked() {
    let text = format!(
        "name = \"one\"\n{LINK}\n[[foreground]]\nname = \"web\"\nkind = \"web\"\nobject = \"1kB\"\n[[background]]\nname = \"one\"\n{IDLE}\n\
         [run]\nreplications = 1\nwarmup = \"1s\"\nduration = \"5s\""
    );
    let found = run_of(&text, 0).1;
    assert!(found.rtts.is_empty() && found.gaps.is_empty());
}

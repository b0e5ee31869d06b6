//! Components of request times, on links where they are known, and with causes removed.

use super::*;
use crate::observe::{Cause, Request, Share};

/// Requests of a run, and the components of their times.
fn waterfall(network: &str, web: &str, background: &str) -> (Vec<Request>, Vec<Share>) {
    waterfall_of("web", network, web, background)
}

/// The same with any kind of foreground.
fn waterfall_of(
    kind: &str,
    network: &str,
    keys: &str,
    background: &str,
) -> (Vec<Request>, Vec<Share>) {
    let text = format!(
        r#"
name = "waterfall"
{network}
[[foreground]]
name = "{kind}"
kind = "{kind}"
{keys}
[[background]]
name = "one"
{background}
[run]
replications = 1
warmup = "2s"
duration = "30s"
[run.keep]
flows = false
waterfall = true
"#
    );
    let observed = run_of(&text, 0).1;
    (observed.requests, observed.waterfall)
}

const LINK: &str =
    "[network]\nrate = \"10Mbit\"\ndelay = \"10ms\"\nrtt = \"40ms\"\nqueue = \"100ms\"";
const IDLE: &str = "kind = \"none\"";
const BUSY: &str = "kind = \"poisson\"\nrate = \"8Mbit\"";
/// Settings without random delays at hosts.
const EXACT: &str = "tcp = { jitter = \"0s\" }";

/// Seconds of these causes, mean over completed requests.
fn mean(of: &(Vec<Request>, Vec<Share>), causes: &[Cause]) -> f64 {
    let done = of.0.iter().filter(|r| r.outcome == Outcome::Done).count();
    let own = of.1.iter().filter(|s| causes.contains(&s.cause));
    own.map(|s| s.seconds).sum::<f64>() / done as f64
}

/// Mean time of a request.
fn time(of: &(Vec<Request>, Vec<Share>)) -> f64 {
    let done = of.0.iter().filter(|r| r.outcome == Outcome::Done);
    let times: Vec<f64> = done.map(|r| r.last_byte - r.start).collect();
    swell_stats::mean(&times).expect("requests")
}

/// Asserts that the parts of each request add up to its time.
fn adds_up(of: &(Vec<Request>, Vec<Share>)) {
    for request in of.0.iter().filter(|r| r.outcome == Outcome::Done) {
        let own = |s: &&Share| (s.client, s.index) == (request.client, request.index);
        let sum: f64 = of.1.iter().filter(own).map(|s| s.seconds).sum();
        let took = request.last_byte - request.start;
        assert!(
            (sum / took - 1.0).abs() < 1e-6,
            "{sum} of {took}: {request:?}"
        );
    }
}

/// Handshakes of TLS and QUIC are handshakes, and the parts of a page add up whatever its protocol.
#[test]
fn a_page_is_explained_over_every_protocol() {
    let busy = "[network]\nrate = \"10Mbit\"\ndelay = \"10ms\"\nrtt = \"40ms\"\nqueue = \"20ms\"\n\
                loss = { kind = \"independent\", p = 0.01 }";
    for protocol in ["http1", "http2", "http3"] {
        let page = |keys: &str, network: &str, background: &str| {
            let keys = format!("think = \"1s\"\nprotocol = \"{protocol}\"\n{keys}");
            let found = waterfall_of("page", network, &keys, background);
            adds_up(&found);
            found
        };
        // Of one small object over one connection: one RTT of 40 ms for TCP, another for TLS.
        let one = {
            let scratch = tempfile::tempdir().expect("a directory");
            let path = scratch.path().join("one.har");
            let har = r#"{"log": {"entries": [{"startedDateTime": "2024-01-01T00:00:00Z",
                "request": {"url": "https://a/"}, "response": {"_transferSize": 1000}}]}}"#;
            std::fs::write(&path, har).expect("a file");
            page(&format!("page = {path:?}\n{EXACT}"), LINK, IDLE)
        };
        let trips = if protocol == "http3" { 1.0 } else { 2.0 };
        for (cause, seconds) in [
            (Cause::Handshake, 0.04 * trips),
            (Cause::Request, 0.02),
            (Cause::Response, 0.02),
            (Cause::Rounds, 0.0),
            (Cause::Recovery, 0.0),
            (Cause::Hosts, 0.0),
        ] {
            let found = mean(&one, &[cause]);
            assert!(
                (found - seconds).abs() < 1e-6,
                "{protocol}: {cause:?}: {found}"
            );
        }
        // Beside other traffic and with losses, every page that is done is explained.
        let found = page("", busy, "kind = \"poisson\"\nrate = \"6Mbit\"");
        assert!(mean(&found, &[Cause::Recovery]) > 0.0, "{protocol}");
    }
}

/// One packet in each direction on an idle link: all components are known.
#[test]
fn a_small_fetch_is_two_round_trips() {
    let one = waterfall(
        LINK,
        &format!("object = \"1kB\"\nthink = \"1s\"\n{EXACT}"),
        IDLE,
    );
    adds_up(&one);
    let known = [
        (Cause::Handshake, 0.04),
        (Cause::Request, 0.02),
        (Cause::Server, 0.0),
        (Cause::Response, 0.02),
        (Cause::Rounds, 0.0),
        // Behind the ACKs that complete the handshake and acknowledge the request, 52 bytes each.
        (Cause::QueueData, 2.0 * 52.0 * 8.0 / 10e6),
        (Cause::QueueAcks, 0.0),
        (Cause::Recovery, 0.0),
        (Cause::Hosts, 0.0),
    ];
    for (cause, seconds) in known {
        let found = mean(&one, &[cause]);
        assert!((found - seconds).abs() < 1e-6, "{cause:?}: {found}");
    }
    // SYN, SYN-ACK, request and response, with headers.
    let sent = mean(&one, &[Cause::Transmission]);
    let bytes = 60.0 + 60.0 + 352.0 + 1052.0;
    assert!((sent - bytes * 8.0 / 10e6).abs() < 1e-9, "{sent}");
}

/// What the link adds to each packet takes time to be sent, not to wait.
#[test]
fn overhead_is_transmission() {
    let one = waterfall(
        &format!("{LINK}\noverhead = \"38B\""),
        &format!("object = \"1kB\"\nthink = \"1s\"\n{EXACT}"),
        IDLE,
    );
    adds_up(&one);
    let sent = mean(&one, &[Cause::Transmission]);
    let bytes = 60.0 + 60.0 + 352.0 + 1052.0 + 4.0 * 38.0;
    assert!((sent - bytes * 8.0 / 10e6).abs() < 1e-9, "{sent}");
    let waits = mean(&one, &[Cause::QueueData, Cause::QueueAcks]);
    let ack = (52.0 + 38.0) * 8.0 / 10e6;
    assert!((waits - 2.0 * ack).abs() < 1e-6, "{waits}");
}

/// The same on a link that is slower and longer when the requests begin, and changes again at 16 s.
#[test]
fn a_link_that_changes_counts_as_it_is() {
    let change = |at: &str, rate: &str, delay: &str| {
        format!("\n[[network.change]]\nat = \"{at}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"")
    };
    let changes = change("1s", "1Mbit", "20ms") + &change("16s", "2Mbit", "15ms");
    let found = waterfall(
        &format!("{LINK}{changes}"),
        &format!("object = \"1kB\"\nthink = \"1s\"\n{EXACT}"),
        IDLE,
    );
    adds_up(&found);
    let (mut early, mut late) = (0, 0);
    for request in found.0.iter().filter(|r| r.outcome == Outcome::Done) {
        // Bits per second, and the round trip with the access paths.
        let (rate, round) = match (request.start, request.last_byte) {
            (_, end) if end < 16.0 => (1e6, 0.06),
            (start, _) if start > 16.0 => (2e6, 0.05),
            _ => continue,
        };
        match round > 0.055 {
            true => early += 1,
            false => late += 1,
        }
        for (cause, seconds) in [
            (Cause::Handshake, round),
            (Cause::Request, round / 2.0),
            (Cause::Response, round / 2.0),
            (Cause::QueueData, 2.0 * 52.0 * 8.0 / rate),
            (Cause::QueueAcks, 0.0),
            (
                Cause::Transmission,
                (60.0 + 60.0 + 352.0 + 1052.0) * 8.0 / rate,
            ),
        ] {
            let own = found
                .1
                .iter()
                .filter(|s| (s.client, s.index, s.cause) == (request.client, request.index, cause));
            let sum: f64 = own.map(|s| s.seconds).sum();
            assert!(
                (sum - seconds).abs() < 1e-6,
                "{cause:?}: {sum} of {request:?}"
            );
        }
    }
    assert!(early > 5 && late > 5, "{early} and {late}");
}

/// Removing a cause removes its component, and leaves the others.
#[test]
fn what_is_removed_is_what_was_waited_for() {
    let web = format!("object = \"50kB\"\n{EXACT}");
    let idle = waterfall(LINK, &web, IDLE);
    adds_up(&idle);
    assert!(mean(&idle, &[Cause::Rounds]) > 0.07, "three windows");
    assert_eq!(mean(&idle, &[Cause::Recovery]), 0.0);
    // No slow start: the whole object fits into the first window.
    let whole = "object = \"50kB\"\ntcp = { jitter = \"0s\", initial_window = 100 }";
    let whole = waterfall(LINK, whole, IDLE);
    adds_up(&whole);
    assert_eq!(mean(&whole, &[Cause::Rounds]), 0.0);
    let less = Cause::ALL.map(|c| mean(&idle, &[c]) - mean(&whole, &[c]));
    let of = |cause: Cause| less[cause as usize];
    assert!(of(Cause::Rounds) > 0.07, "{less:?}");
    // Without separate windows, packets of a single burst queue behind each other.
    assert!(
        of(Cause::QueueData) < 0.0 && of(Cause::Handshake).abs() < 1e-9,
        "{less:?}"
    );
    // Other traffic: queueing, losses, and reduced windows.
    let busy = waterfall(LINK, &web, BUSY);
    adds_up(&busy);
    let queues = [
        Cause::QueueData,
        Cause::QueueAcks,
        Cause::Recovery,
        Cause::Rounds,
        Cause::Hosts,
    ];
    let more = time(&busy) - time(&idle);
    assert!(more > 0.02, "{more}");
    let explained = mean(&busy, &queues) - mean(&idle, &queues);
    assert!(
        (explained / more - 1.0).abs() < 0.02,
        "{explained} of {more}"
    );
    let fixed = [
        Cause::Handshake,
        Cause::Request,
        Cause::Response,
        Cause::Server,
    ];
    assert!((mean(&busy, &fixed) - mean(&idle, &fixed)).abs() < 1e-6);
    assert_eq!(
        mean(&busy, &[Cause::QueueAcks]),
        0.0,
        "nothing is in their way"
    );
    // Losses on the wire.
    let lossy = format!("{LINK}\nloss = {{ kind = \"independent\", p = 0.02 }}");
    let lossy = waterfall(&lossy, &web, IDLE);
    adds_up(&lossy);
    assert!(mean(&lossy, &[Cause::Recovery]) > 0.2 * (time(&lossy) - time(&idle)));
}

/// With several links, queueing is attributed to each link, also for ACKs.
#[test]
fn links_are_told_apart() {
    let network = r#"
[[links]]
name = "home"
rate = "10Mbit"
up = { rate = "1Mbit" }
delay = "5ms"
queue = "200ms"
[[links]]
name = "core"
rate = "20Mbit"
delay = "10ms"
queue = "100ms"
"#;
    let up = "kind = \"poisson\"\nrate_up = \"900kbit\"\nrate = \"1kbit\"\npath = [\"home\"]";
    let found = waterfall(network, &format!("object = \"100kB\"\n{EXACT}"), up);
    adds_up(&found);
    let at = |link: &str, cause: Cause| {
        let own = found
            .1
            .iter()
            .filter(|s| &*s.link == link && s.cause == cause);
        own.map(|s| s.seconds).sum::<f64>()
    };
    assert!(at("home", Cause::QueueAcks) > 10.0 * at("core", Cause::QueueAcks));
    assert!(at("home", Cause::QueueData) > at("core", Cause::QueueData));
    assert!(at("core", Cause::Transmission) > 0.0);
}

/// A delivery trace with four opportunities a millisecond delivers packets of several clients at one instant. Each
/// request is explained by packets of its own client.
#[test]
fn packets_that_arrive_at_one_instant_are_told_apart() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join("48.trace");
    std::fs::write(&path, "1\n1\n1\n1\n").expect("a file");
    let network = format!(
        "[network]\nrtt = \"40ms\"\nqueue = \"200ms\"\n[network.up]\nrate = \"48Mbit\"\n\
         [network.down]\ndeliveries = {path:?}"
    );
    for kept in ["new", "kept"] {
        let web = format!(
            "object = \"200kB\"\nclients = 12\nthink = \"100ms\"\nconnection = \"{kept}\"\n{EXACT}"
        );
        let found = waterfall(&network, &web, IDLE);
        adds_up(&found);
        // The chain of another client's request would begin at another time than the connection.
        if kept == "new" {
            let hosts = mean(&found, &[Cause::Hosts]);
            assert!(hosts < 1e-6, "{hosts}");
        }
    }
}

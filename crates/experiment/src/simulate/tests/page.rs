//! Pages on an idle link, compared with times computed by hand.

use super::*;
use crate::observe::Request;
use swell_base::Direction;

/// An archive of objects, each with size, index of the parent and wait in milliseconds.
fn archive(objects: &[(u64, Option<usize>, u64)]) -> String {
    let entries: Vec<String> = (objects.iter().enumerate())
        .map(|(i, (size, parent, wait))| {
            // Each starts after its wait, counted from the end of its parent, which took 10 ms.
            let mut start = 0;
            let mut at = (*parent, *wait);
            while let (Some(p), w) = at {
                start += 10 + w;
                at = (objects[p].1, objects[p].2);
            }
            let by = parent.map_or_else(String::new, |p| {
                format!(", \"_initiator\": {{\"url\": \"https://a/{p}\"}}")
            });
            format!(
                "{{\"startedDateTime\": \"2024-01-01T00:00:{:06.3}Z\", \"time\": 10,
                \"request\": {{\"url\": \"https://a/{i}\", \"headersSize\": 100, \"bodySize\": 0}},
                \"response\": {{\"_transferSize\": {size}}}{by}}}",
                start as f64 / 1000.0
            )
        })
        .collect();
    format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(","))
}

/// The page loads of a run over 100 Mbit/s with an RTT of 100 ms.
fn loaded(objects: &[(u64, Option<usize>, u64)], keys: &str) -> Vec<Request> {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("page.har"), archive(objects)).expect("a file");
    let text = format!(
        r#"
name = "page"
[network]
rate = "100Mbit"
delay = "40ms"
queue = "100ms"
[[foreground]]
name = "page"
kind = "page"
page = "page.har"
delay = "5ms"
every = "5s"
{keys}
[[background]]
name = "none"
kind = "none"
[run]
replications = 1
warmup = "1s"
duration = "11s"
"#
    );
    let plan = Plan::resolve(&text, "test.toml", directory.path()).expect("a good file");
    let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).expect("a cell");
    let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("a run");
    observed.requests
}

/// Asserts that a page took this many RTTs of 100 ms, and at most 3 ms of transmission.
fn took(request: &Request, trips: f64) {
    assert_eq!(request.outcome, Outcome::Done);
    let time = request.last_byte - request.start;
    let wanted = trips * 0.1;
    assert!(
        (wanted..wanted + 0.003).contains(&time),
        "{time}, not {wanted}"
    );
}

#[test]
fn a_page_takes_the_round_trips_that_its_tree_has() {
    let one = [(1000, None, 0)];
    let alone = loaded(&one, "tls = false");
    // Pages at 1 s and 6 s. The one that is due when the run ends is none of its pages.
    assert_eq!(alone.len(), 2);
    // Handshake and request; TLS 1.3 adds a round trip.
    took(&alone[0], 2.0);
    assert_eq!(alone[0].bytes, 1000);
    took(&loaded(&one, "tls = true")[0], 3.0);
    // A chain of three, each 20 ms after the previous one.
    let chain = [(1000, None, 0), (2000, Some(0), 20), (3000, Some(1), 20)];
    let found = loaded(&chain, "tls = false");
    took(&found[0], 2.0 + 1.2 + 1.2);
    let first = found[0].first_byte - found[0].start;
    assert!((0.2..0.202).contains(&first), "{first}");
    assert_eq!(found[0].bytes, 6000);
    // With kept connections the second page has no handshake.
    let kept = loaded(&chain, "tls = true\nkeep = true");
    took(&kept[0], 3.0 + 1.2 + 1.2);
    took(&kept[1], 1.0 + 1.2 + 1.2);
    assert_eq!(kept[1].connected, kept[1].start);
}

#[test]
fn six_connections_take_turns_and_streams_do_not() {
    // The page and 13 small objects over HTTP/1.1. One object uses the existing connection, and five open new ones. The
    // other eight wait for a free connection. The first connection is free after one RTT, and again after another one,
    // when the five new ones have completed handshake and answer.
    let mut page = vec![(1000, None, 0)];
    page.extend([(500, Some(0), 0); 13]);
    // In RTTs: the page is complete at 2, the first object at 3, another one on that connection at 4, and the five on
    // new connections also at 4. The remaining six objects on six connections complete at 5.
    took(&loaded(&page, "tls = false")[0], 5.0);
    // Two connections: one object at 3, two at 4, then two in each RTT, so the remaining ten are complete at 9.
    took(&loaded(&page, "tls = false\nconnections = 2")[0], 9.0);
    // HTTP/2 streams: all at once.
    took(&loaded(&page, "tls = false\nprotocol = \"http2\"")[0], 3.0);
    // On a single connection a large object delays the small ones behind it: windows of 10, 20, 40 and 80 segments.
    let large = [(1000, None, 0), (150_000, Some(0), 0), (500, Some(0), 0)];
    let found = loaded(&large, "tls = false\nprotocol = \"http2\"");
    let time = found[0].last_byte - found[0].start;
    assert!((0.5..0.7).contains(&time), "{time}");
}

#[test]
fn what_is_not_there_when_the_next_begins_is_given_up() {
    // 40 MB over 100 Mbit/s take more than 3.2 s. Twice as much takes longer than the 5 s until the next page.
    let found = loaded(&[(80_000_000, None, 0)], "");
    assert_eq!(found.len(), 2);
    for page in &found {
        assert_eq!(page.outcome, Outcome::Unfinished);
        assert!((page.observed_until - page.start - 5.0).abs() < 1e-6);
        assert!(page.bytes > 30_000_000);
    }
}

#[test]
fn bundled_pages_load_over_every_protocol() {
    for page in ["article", "shop", "app"] {
        for protocol in ["http1", "http2", "http3"] {
            let text = format!(
                "name = \"t\"\n[network]\nrate = \"20Mbit\"\ndelay = \"10ms\"\nqueue = \"1BDP\"\nrtt = \"40ms\"\n\
                 [[foreground]]\nname = \"p\"\nkind = \"page\"\npage = \"{page}\"\nprotocol = \"{protocol}\"\n\
                 [[background]]\nname = \"none\"\nkind = \"none\"\n\
                 [run]\nreplications = 1\nwarmup = \"1s\"\nduration = \"11s\"\n"
            );
            let found = run_of(&text, 0).1.requests;
            let done = found.iter().filter(|r| r.outcome == Outcome::Done);
            let times: Vec<f64> = done.map(|r| r.last_byte - r.start).collect();
            assert!(times.len() >= 4, "{page} {protocol}: {times:?}");
            // At least the transmission time of its bytes, and at most ten times as much.
            let bytes = found[0].bytes as f64 * 8.0 / 20e6;
            let range = bytes..10.0 * bytes;
            assert!(
                times.iter().all(|t| range.contains(t)),
                "{page} {protocol}: {times:?}"
            );
        }
    }
}

#[test]
fn quic_takes_one_round_trip_where_tcp_and_tls_take_two() {
    let one = [(1000, None, 0)];
    let found = loaded(&one, "protocol = \"http3\"");
    took(&found[0], 2.0);
    assert_eq!(found[0].bytes, 1000);
    let connected = found[0].connected - found[0].start;
    assert!((0.1..0.102).contains(&connected), "{connected}");
    // A kept connection needs no handshake.
    let kept = loaded(&one, "protocol = \"http3\"\nkeep = true");
    took(&kept[1], 1.0);
    assert_eq!(kept[1].connected, kept[1].start);
    // An object of several windows takes as long as over HTTP/1.1, but for the handshake: the sender is the same.
    let large = [(600_000, None, 0)];
    let [tcp, quic] = ["http1", "http3"].map(|protocol| {
        let page = &loaded(&large, &format!("protocol = \"{protocol}\""))[0];
        assert_eq!(page.bytes, 600_000);
        page.last_byte - page.start
    });
    assert!(tcp > 0.7, "six windows: {tcp}");
    assert!((tcp - quic - 0.1).abs() < 0.003, "{tcp} and {quic}");
}

/// The page loads on a link of 10 Mbit/s with an RTT of 100 ms. Down, all that is sent from `lost` to 1 ms later is
/// lost, in milliseconds after the page's beginning.
fn through(lost: Option<f64>, keys: &str) -> Request {
    // The page; two objects, of five and of three packets over QUIC; and a fourth, to which the third refers.
    let objects = [
        (1000, None, 0),
        (5 * 1437, Some(0), 0),
        (3 * 1437, Some(0), 0),
        (1000, Some(2), 0),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("page.har"), archive(&objects)).expect("a file");
    let change = |at: f64, p: u8| {
        format!(
            "[[network.change]]\nat = \"{at}ms\"\ndirection = \"down\"\nloss = {{ kind = \"independent\", p = {p} }}\n"
        )
    };
    let changes = lost.map(|at| change(1000.0 + at, 1) + &change(1001.0 + at, 0));
    let text = format!(
        "name = \"page\"\n[network]\nrate = \"10Mbit\"\ndelay = \"40ms\"\nqueue = \"100ms\"\n{}\
         [[foreground]]\nname = \"page\"\nkind = \"page\"\npage = \"page.har\"\ndelay = \"5ms\"\nevery = \"5s\"\n\
         tcp = {{ jitter = \"0s\" }}\n{keys}\n\
         [[background]]\nname = \"none\"\nkind = \"none\"\n\
         [run]\nreplications = 1\nwarmup = \"1s\"\nduration = \"6s\"\n",
        changes.unwrap_or_default()
    );
    let plan = Plan::resolve(&text, "test.toml", directory.path()).expect("a good file");
    let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).expect("a cell");
    let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("a run");
    observed.requests[0].clone()
}

/// The page load time in milliseconds.
fn time(request: &Request) -> f64 {
    (request.last_byte - request.start) * 1e3
}

/// Milliseconds that a packet of so many bytes takes: its transmission, and 50 for half a round trip.
fn way(bytes: u32) -> f64 {
    f64::from(bytes) / 1250.0 + 50.0
}

/// What is sent at the server is at the link 5 ms later. The second of several full packets has its last bit there
/// 2.4 ms after that; the loss begins a little before.
const SECOND: f64 = 5.0 + 1.8;

#[test]
fn a_loss_delays_its_own_stream_only() {
    // The handshake: 1200 bytes of UDP up and three times as many down, with IP headers.
    let open = way(1228) + way(3 * 1228);
    // The page, and the two requests in one packet. Headers have 63 bytes.
    let asked = open + way(163) + way(1063) + way(263);
    // Eight packets are sent, of which the second one is lost. The last of them completes the third object, so the
    // fourth is requested.
    let done = asked + way(8 * 1500) + way(163) + way(1063);
    for (loss, turns) in [
        (None, false),
        (Some(asked + SECOND), false),
        (Some(asked + SECOND), true),
    ] {
        let keys = format!("protocol = \"http3\"\nincremental = {turns}");
        let found = through(loss, &keys);
        let took = time(&found);
        assert!((took - done).abs() < 0.1, "{keys} {loss:?}: {took} {done}");
        assert_eq!(found.bytes, 2000 + 8 * 1437);
        assert_eq!(found.retransmissions, u32::from(loss.is_some()));
    }
}

#[test]
fn over_tcp_a_loss_delays_all_that_follows() {
    // The handshakes of TCP and TLS: 517 bytes behind an ACK up, 4000 in three packets down.
    let open = way(60) + way(60) + way(52 + 569) + way(4000 + 3 * 52);
    let asked = open + way(152) + way(1052) + way(252);
    // The last packet completes the third object, so the fourth is requested.
    let rest = way(152) + way(1052);
    let whole = asked + way(8 * 1437 + 8 * 52) + rest;
    let found = through(None, "protocol = \"http2\"");
    assert!(
        (time(&found) - whole).abs() < 0.1,
        "{} {whole}",
        time(&found)
    );
    // The fifth packet is the third one after the lost one. Its ACK, with a SACK block, brings the second one again,
    // and only this completes the second and the third object.
    let repaired = asked + way(5 * 1500) + way(64) + way(1500) + rest;
    let lossy = through(Some(asked + SECOND), "protocol = \"http2\"");
    assert!(
        (time(&lossy) - repaired).abs() < 0.1,
        "{} {repaired}",
        time(&lossy)
    );
    assert_eq!((lossy.bytes, lossy.retransmissions), (2000 + 8 * 1437, 1));
}

#[test]
fn responses_in_turns_let_a_short_one_pass() {
    // A short object behind a long one of four windows refers to another.
    let objects = [
        (1000, None, 0),
        (150_000, Some(0), 0),
        (500, Some(0), 0),
        (500, Some(2), 0),
    ];
    for protocol in ["http2", "http3"] {
        let of = |incremental: bool| {
            let keys = format!("protocol = \"{protocol}\"\nincremental = {incremental}");
            let found = loaded(&objects, &keys);
            assert_eq!(found[0].bytes, 152_000);
            found[0].last_byte - found[0].start
        };
        // In turns it is complete after 16 KiB, and its child is there before the long one. In the order of requests,
        // the child's round trip comes last.
        let saved = of(false) - of(true);
        assert!((0.09..0.11).contains(&saved), "{protocol}: {saved}");
    }
}

/// Page load times of the bundled article over a lossy link, one for each page of `seeds` runs, and the bytes of pages.
fn lossy(protocol: &str, seeds: u32) -> Vec<f64> {
    let text = format!(
        "name = \"t\"\n[network]\nrate = \"20Mbit\"\ndelay = \"10ms\"\nqueue = \"1BDP\"\nrtt = \"60ms\"\n\
         loss = {{ kind = \"independent\", p = 0.02 }}\n\
         [[foreground]]\nname = \"p\"\nkind = \"page\"\nprotocol = \"{protocol}\"\nincremental = true\n\
         think = \"1s\"\n\
         [[background]]\nname = \"none\"\nkind = \"none\"\n\
         [run]\nreplications = {seeds}\nwarmup = \"1s\"\nduration = \"31s\"\n"
    );
    let mut times = Vec::new();
    for cell in 0..seeds as usize {
        let found = run_of(&text, cell).1.requests;
        for page in found.iter().filter(|r| r.outcome == Outcome::Done) {
            assert_eq!(
                page.bytes, found[0].bytes,
                "{protocol}: every page has all its bytes"
            );
            times.push(page.last_byte - page.start);
        }
    }
    times
}

#[test]
fn with_losses_independent_streams_are_faster() {
    let mean = |protocol| {
        let times = lossy(protocol, 8);
        assert!(times.len() > 50, "{protocol}: {}", times.len());
        times.iter().sum::<f64>() / times.len() as f64
    };
    let (http2, http3) = (mean("http2"), mean("http3"));
    // The handshake alone saves a round trip of 60 ms to each of two hosts, of which the second waits for the first.
    // The streams alone save as much again.
    let handshakes = 0.12;
    assert!(http3 < http2 - 2.0 * handshakes, "{http3} and {http2}");
    // The same run gives the same times.
    assert_eq!(lossy("http3", 2), lossy("http3", 2));
}

#[test]
fn what_quic_does_not_have_is_refused_in_words() {
    let problems = |backend: &str, keys: &str| {
        let text = format!(
            "name = \"t\"\n{backend}[network]\nrate = \"20Mbit\"\ndelay = \"10ms\"\nqueue = \"1BDP\"\n\
             [[foreground]]\nname = \"p\"\nkind = \"page\"\n{keys}\n\
             [[background]]\nname = \"none\"\nkind = \"none\"\n[run]\nduration = \"11s\"\n"
        );
        match Plan::resolve(&text, "test.toml", Path::new(".")) {
            Ok(_) => String::new(),
            Err(problems) => problems.to_string(),
        }
    };
    let quic = "protocol = \"http3\"";
    assert_eq!(problems("", quic), "");
    let emulated = "backend = \"emulated\"\n";
    assert_eq!(problems(emulated, "protocol = \"http2\""), "");
    let found = problems(emulated, quic);
    assert!(
        found.contains("(key foreground[0].protocol)")
            && found.contains("there is no QUIC over kernel sockets")
            && found.contains("curl --http3"),
        "{found}"
    );
    // The simulator may carry a background of it beside an emulated foreground; the kernel cannot.
    let beside = |stack: &str| {
        let text = format!(
            "name = \"t\"\nbackend = \"emulated\"\n\
             [network]\nrate = \"20Mbit\"\ndelay = \"10ms\"\nqueue = \"1BDP\"\n\
             [[foreground]]\nname = \"p\"\nkind = \"page\"\n\
             [[background]]\nname = \"b\"\nkind = \"page\"\n{quic}\n\
             [run]\nduration = \"11s\"\nbackground_stack = \"{stack}\"\n"
        );
        let resolved = Plan::resolve(&text, "test.toml", Path::new("."));
        resolved.err().map_or(String::new(), |e| e.to_string())
    };
    assert_eq!(beside("simulated"), "");
    let refused = beside("kernel");
    assert!(
        refused.contains("(key background[0].protocol)")
            && refused.contains("there is no QUIC over kernel sockets")
            && refused.contains("leave run.background_stack out"),
        "{refused}"
    );
    for (keys, words) in [
        ("tcp = { mss = \"1164B\" }", "datagrams of 1200 bytes"),
        ("tls = false", "QUIC has no handshake without TLS"),
        ("tcp = { profile = \"classic\" }", "settings of TCP only"),
        ("tcp = { congestion = \"vegas\" }", "settings of TCP only"),
        ("tcp = { sack = false }", "settings of TCP only"),
    ] {
        let said = problems("", &format!("{quic}\n{keys}"));
        assert!(said.contains(words), "{keys}: {said}");
    }
    let shared = "tcp = { congestion = \"bbr\", mss = \"1165B\", initial_window = 20 }";
    assert_eq!(problems("", &format!("{quic}\n{shared}")), "");
    let said = problems("", "incremental = true");
    assert!(said.contains("one answer at a time"), "{said}");
}

/// Browsers in the background load their pages at times of their own, which the seed decides.
#[test]
fn background_pages_do_not_begin_together() {
    let sent = |seed: u64| -> Vec<u64> {
        let text = format!(
            r#"
name = "pages"
network = {{ rate = "100Mbit", rtt = "20ms" }}
foreground = [{{ name = "web", kind = "web", object = "10kB", think = "1s" }}]
run = {{ replications = 1, warmup = "0s", duration = "12s", seed = {seed} }}
[[background]]
name = "pages"
kind = "page"
page = "article"
clients = 20
every = "10s"
"#
        );
        let plan = Plan::resolve(&text, "test.toml", std::path::Path::new(".")).expect("a file");
        let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).expect("a cell");
        let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("a run");
        let down = observed
            .bins
            .iter()
            .filter(|b| b.direction == Direction::Down);
        down.map(|b| b.arrived[1]).collect()
    };
    let (one, other) = (sent(1), sent(2));
    assert!(one != other);
    for bytes in [one, other] {
        // Twenty pages in ten seconds; a page takes a part of a second.
        let bins = bytes.len() * 10 / 12;
        let busy = bytes[..bins].iter().filter(|&&n| n > 0).count();
        assert!(2 * busy > bins, "{bytes:?}");
    }
}

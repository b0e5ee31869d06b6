//! Pages on an idle link, compared with times computed by hand.

use super::*;
use crate::observe::Request;

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
    // Pages at 1 s and 6 s, and one that begins at the end of the run.
    assert_eq!(alone.len(), 3);
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
    assert_eq!(found.len(), 3);
    for page in &found[..2] {
        assert_eq!(page.outcome, Outcome::Unfinished);
        assert!((page.observed_until - page.start - 5.0).abs() < 1e-6);
        assert!(page.bytes > 30_000_000);
    }
}

#[test]
fn bundled_pages_load_over_either_protocol() {
    for page in ["article", "shop", "app"] {
        for protocol in ["http1", "http2"] {
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

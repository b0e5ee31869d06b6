//! Backgrounds carry their nominal load from the first second on: a quick version of the table from
//! `examples/load.rs`.

use swell_base::{Dur, Rate};
use swell_experiment::bundled;
use swell_experiment::load::{Answer, Question, ask};

fn answer(model: &str, mbit: Option<u64>, seeds: u32) -> Result<Answer, String> {
    let question = Question {
        model,
        rate: mbit.map(|m| Rate::from_bps(m * 1_000_000)),
        link: Rate::from_bps(1_000_000_000),
        duration: Dur::from_secs(30),
        part: Dur::from_secs(10),
        seeds,
        threads: 2,
    };
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    ask(&question, dir.path())
}

/// Asserts that the offered load is carried, in the whole run and in its first and last ten seconds.
#[track_caller]
fn holds(what: &str, bar: f64, a: &Answer) {
    for w in a.windows {
        let off = (w.ratio() - 1.0).abs();
        assert!(off < bar + 3.0 * w.ratio_error, "{what}: {:?}", a.windows);
    }
    let [first, last, _] = a.windows;
    let noise = first.error.hypot(last.error);
    assert!(
        (first.carried - last.carried).abs() < 3.0 * noise,
        "{what}: {first:?} {last:?}"
    );
}

/// Tolerance of the load ratio, in addition to three standard errors.
const BAR: f64 = 0.02;

#[test]
fn bundled_models_carry_their_own_load_from_the_first_second_on() {
    for model in bundled::models() {
        holds(model, BAR, &answer(model, None, 12).unwrap());
    }
}

#[test]
fn a_scaled_model_carries_its_rate() {
    let a = answer("access-link", Some(8), 6).unwrap();
    holds("access-link at 8 Mbit/s", BAR, &a);
    assert_eq!(a.nominal, 8e6);
    // Several copies of small models have less noise than at their own rates.
    for model in [
        "backup",
        "bittorrent",
        "browsing",
        "gnutella",
        "meeting",
        "mobile-call",
        "shooter",
        "smart-home",
        "strategy-game",
        "streaming",
        "video-call",
    ] {
        holds(model, BAR, &answer(model, Some(1), 6).unwrap());
    }
}

#[test]
fn a_model_too_small_for_a_rate_says_so_before_anything_runs() {
    for model in ["backup", "gnutella", "mobile-chat", "smart-home"] {
        let why = answer(model, Some(50), 1).unwrap_err();
        assert!(why.contains("is too small for 50 Mbit/s"), "{why}");
    }
}

/// Sessions of one transfer each, about as long as the recording. `window` is the receive window of clients, `servers`
/// that of servers.
fn long_flows(window: u32, servers: u32) -> String {
    let sessions: Vec<String> = (0..20u64)
        .map(|i| {
            // 100 kbit/s to 2 Mbit/s for 18 s to 56 s of 60 s.
            let bytes = (18 + 2 * i) * (i + 1) * 100_000 / 8;
            format!(
                r#"{{"class":0,"start":{},"client":{i},"groups":[{{"think":0,"connections":
[{{"gap":0,"server":0,"window":[{window},{servers}],"turns":[[300,0,{bytes},0]]}}]}}]}}"#,
                i * 2_900_000
            )
        })
        .collect();
    let paths: Vec<String> = (0..20u64)
        .map(|i| format!("[10000,null,{},0,0,9,12,40]", (i + 1) * 100_000))
        .collect();
    format!(
        r#"{{"format":"swell-traffic-model","version":3,"name":"long","provenance":
{{"made_by":"by hand","sources":[],"digests":[],"note":""}},"warnings":[],"duration":60000000,
"parameters":{{"group_timeout":30000000,"session_timeout":300000000,"quiet":500000}},
"totals":{{"packets":[0,0],"bytes":[0,0],"tcp_connections":20,"tcp_handshakes":20,
"udp_flows":0,"unmodelled_packets":0,"unmodelled_bytes":0}},
"load":{{"bin":100000,"bytes":[[],[]],"lsd_bin":1000,"lsd":[[],[]]}},
"classes":[{{"name":"http","udp":false}}],
"client_paths":[{}],
"server_paths":[[20000,null,null,0,0,9,0,40]],
"sessions":[{}]}}"#,
        paths.join(","),
        sessions.join(",")
    )
}

#[test]
fn a_model_of_long_flows_plays_its_rate() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.json");
    let long = |window: u32, servers: u32| {
        std::fs::write(&path, long_flows(window, servers)).unwrap();
        answer(path.to_str().unwrap(), None, 8).unwrap()
    };
    let a = long(16_384, 0);
    holds("long flows", BAR, &a);
    // The client's window limits a connection in progress from its first instant on, however large the server's is.
    holds("from large servers", BAR, &long(16_384, 4 << 20));
    // By hand: bits of all transfers over the length of the recording, plus headers (factor 1.036).
    let bits: u64 = (0..20u64).map(|i| (18 + 2 * i) * (i + 1) * 100_000).sum();
    let rate = bits as f64 / 60.0;
    assert!((a.nominal / rate / 1.036 - 1.0).abs() < 0.005, "{a:?}");
    // Unlimited windows first fill the queues before the clients, which are empty at the start.
    let [_, last, _] = long(0, 0).windows;
    let off = (last.ratio() - 1.0).abs();
    assert!(off < BAR + 3.0 * last.ratio_error, "{last:?}");
}

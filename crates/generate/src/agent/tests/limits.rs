//! Limits of an agent that apply to every controller.

use std::time::{SystemTime, UNIX_EPOCH};

use swell_base::Rate;

use super::*;
use crate::{Budget, Hours};

const METRICS: &str = "fedcba9876543210";

#[test]
fn the_token_for_metrics_reads_metrics_and_nothing_else() {
    let agent = Running::of(AgentConfig {
        metrics_token: Some(METRICS.into()),
        ..plain()
    });
    let status = |token, method, path| agent.ask(Some(token), method, path, &server_run()).0;
    for path in ["/metrics", "/openapi.json"] {
        assert_eq!(status(METRICS, "GET", path), 200, "{path}");
    }
    for (method, path) in [
        ("GET", "/v1/status"),
        ("POST", "/v1/runs"),
        ("PATCH", "/v1/runs/1"),
        ("DELETE", "/v1/runs/1"),
        ("GET", "/v1/runs/1/flows"),
        ("POST", "/metrics"),
        ("GET", "/nothing"),
        ("GET", "//metrics"),
    ] {
        assert_eq!(status(METRICS, method, path), 403, "{method} {path}");
    }
    assert_eq!(agent.get("/v1/status")["runs"], json!([]));
    assert_eq!(status(TOKEN, "POST", "/v1/runs"), 201);
    let same = AgentConfig {
        metrics_token: Some(TOKEN.into()),
        ..plain()
    };
    assert!(matches!(
        Agent::new(same).err(),
        Some(AgentError::SameToken)
    ));
    let short = AgentConfig {
        metrics_token: Some("short".into()),
        ..plain()
    };
    assert!(matches!(
        Agent::new(short).err(),
        Some(AgentError::Token(5))
    ));
}

#[test]
fn traffic_goes_to_peers_of_the_agent_alone() {
    let agent = Running::of(AgentConfig {
        limits: Limits {
            peers: Addresses::parse(&["127.5.0.0/16", "fd05::/64"]).unwrap(),
            ..Limits::default()
        },
        ..plain()
    });
    let client = |address: &str, pool: &[&str]| {
        json!({ "client": {
            "index": 0, "of": 1, "servers": [{ "address": address, "datagrams": 9, "pool": pool }],
            "traffic": { "closed": { "sessions": 1, "up": 1, "down": 1 } },
        } })
    };
    let server = |clients: &[&str]| json!({ "server": { "clients": [clients] } });
    let asked = |part: Value| {
        let run = json!({ "key": "00".repeat(16), "lease_s": 5.0, "part": part });
        agent
            .ask(Some(TOKEN), "POST", "/v1/runs", &run.to_string())
            .0
    };
    assert_eq!(asked(client("127.0.0.1:9", &[])), 403);
    assert_eq!(asked(client("127.5.0.1:9", &["127.0.0.0/8"])), 403);
    assert_eq!(asked(client("192.0.2.1:9", &["127.5.0.0/24"])), 403);
    assert_eq!(asked(client("127.5.0.1:9", &["127.5.9.0/24"])), 201);
    assert_eq!(asked(server(&["127.5.1.0/24", "10.0.0.0/8"])), 403);
    assert_eq!(asked(server(&["127.5.1.0/24"])), 201);
    // If the run does not restrict its clients' addresses, the agent's `peers` do; others count as strangers.
    assert_eq!(asked(server(&[])), 201);
    // Runs are listed by number, so the latest is the last.
    let run = agent.get("/v1/status")["runs"][2].clone();
    let said = run["port"].as_u64().unwrap() as u16;
    let strangers = || {
        let s = agent.get(&format!("/v1/runs/{}/statistics", run["id"]));
        s["counts"]["strangers"].as_u64().unwrap()
    };
    let mut stream = TcpStream::connect(("127.0.0.1", said)).unwrap();
    stream.write_all(&[0; 48]).unwrap();
    until(|| strangers() == 1);
}

/// Rate in bit/s of a run on an agent limited to 8 Mbit/s, with traffic that would use all available capacity.
fn sent_at_most(order: &Order, agent: &Running) -> f64 {
    let mut controller = Controller::new(order).unwrap();
    controller.start().unwrap();
    let path = format!("{}/statistics", agent.run());
    let counts = || agent.get(&path);
    let sent = |s: &Value| {
        let of = |key: &str| s["counts"][key].as_f64().unwrap();
        of("sent_bytes") + of("datagram_bytes_sent")
    };
    until(|| sent(&counts()) > 100_000.0);
    let (first, begun) = (counts(), Instant::now());
    until(|| {
        controller.flows();
        begun.elapsed() > Duration::from_secs(2)
    });
    let last = counts();
    let span =
        last["run"]["elapsed_s"].as_f64().unwrap() - first["run"]["elapsed_s"].as_f64().unwrap();
    assert!(last["counts"]["limited"].as_u64().unwrap() > 0, "{last:#}");
    assert!(last["warnings"].to_string().contains("agent-limit"));
    assert_eq!(last["counts"]["failed"], 0, "{last:#}");
    let rate = (sent(&last) - sent(&first)) * 8.0 / span;
    controller.end();
    rate
}

#[test]
fn an_agent_sends_no_more_than_its_rate_whoever_asks() {
    let limited = || {
        Running::of(AgentConfig {
            limits: Limits {
                budget: Some(Arc::new(Budget::new(Rate::from_bps(8_000_000)))),
                ..Limits::default()
            },
            ..plain()
        })
    };
    // Uploads are limited at the client, downloads at the server, including small ones.
    for (up, down, at_server) in [
        (1 << 30, 0, false),
        (100, 1 << 30, true),
        (100, 3_000, true),
    ] {
        let (one, other) = (limited(), Running::new(None));
        let (client, server) = if at_server {
            (&other, &one)
        } else {
            (&one, &other)
        };
        let mut order = order(&[client], &[server], Trust::Loopback);
        order.traffic = TrafficPart::Closed {
            sessions: 20,
            up,
            down,
        };
        order.lease = Dur::from_secs(5);
        let rate = sent_at_most(&order, &one);
        // Both statistics can be 200 ms old, in a span of two seconds. That gives an error of a fifth, in addition to
        // 4 % headers.
        assert!(rate < 8e6 * 1.2, "{up} {down}: {rate}");
        assert!(rate > 8e6 * 0.6, "{up} {down}: {rate}");
    }
}

#[test]
fn at_the_end_of_its_hours_an_agent_stops() {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
        % 86_400;
    let at = |seconds: u64| {
        let s = (now + seconds) % 86_400;
        format!("{:02}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60)
    };
    let agent = |from: u64, until: u64| {
        let hours: Hours = format!("{}-{}", at(from), at(until)).parse().unwrap();
        Running::of(AgentConfig {
            hours: Some(hours),
            ..plain()
        })
    };
    let begin = |agent: &Running| agent.ask(Some(TOKEN), "POST", "/v1/runs", &server_run());
    let (status, said) = begin(&agent(7_200, 10_800));
    assert_eq!(status, 403, "{said}");
    assert!(said.contains("UTC"), "{said}");
    // Open from an hour ago until three seconds from now: a run begins, is renewed, and ends.
    let closing = agent(82_800, 3);
    assert_eq!(begin(&closing).0, 201);
    let run = closing.run();
    let mut refused = 0;
    until(|| {
        let renewal = r#"{ "lease_s": 60 }"#;
        refused = closing.ask(Some(TOKEN), "PATCH", &run, renewal).0;
        refused != 200
    });
    assert!(matches!(refused, 403 | 409), "{refused}");
    until(|| closing.get(&run)["state"] == "expired");
    assert_eq!(begin(&closing).0, 403);
}

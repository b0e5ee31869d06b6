//! Tests of an agent and its controller over the loopback interface.

#![expect(
    clippy::shadow_unrelated,
    reason = "each step of a test has its own run, traffic and answers"
)]

mod dashboard;
mod dials;
mod errors;
mod limits;
mod returns;
mod silent;
mod visitors;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use swell_base::{Dur, Stream};
use tokio::sync::oneshot;

use super::*;
use crate::patience::until;
use crate::{Addresses, Limits, Outcome};

const TOKEN: &str = "0123456789abcdef";

/// An agent that any local process with the token may control.
fn plain() -> AgentConfig {
    AgentConfig {
        listen: Some(([127, 0, 0, 1], 0).into()),
        dial: None,
        token: TOKEN.into(),
        metrics_token: None,
        identity: None,
        address: None,
        pool: Addresses::parse(&["127.5.0.0/16"]).unwrap(),
        port: 0,
        precise: false,
        limits: Limits::default(),
        hours: None,
    }
}

struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn new(identity: Option<Identity>) -> Running {
        Running::at(([127, 0, 0, 1], 0).into(), identity)
    }

    fn at(listen: SocketAddr, identity: Option<Identity>) -> Running {
        let config = AgentConfig {
            listen: Some(listen),
            identity,
            ..plain()
        };
        Running::of(config)
    }

    fn of(config: AgentConfig) -> Running {
        Running::serving(Agent::new(config).unwrap())
    }

    fn serving(agent: Agent) -> Running {
        // One that dials out has none.
        let none = SocketAddr::from(([127, 0, 0, 1], 0));
        let address = agent.address().unwrap().unwrap_or(none);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || agent.serve(stopped, || ()).unwrap());
        Running {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Ends the agent and everything it does.
    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Sends these bytes and returns the answer.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        // The connection may be closed before everything is sent.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut back = Vec::new();
        let _ = stream.read_to_end(&mut back);
        String::from_utf8_lossy(&back).into_owned()
    }

    /// Status and body of the answer to a request.
    fn ask(&self, token: Option<&str>, method: &str, path: &str, body: &str) -> (u16, String) {
        let token = token.map_or(String::new(), |t| format!("Authorization: Bearer {t}\r\n"));
        let length = body.len();
        let text = self.raw(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: a\r\n{token}Content-Length: {length}\r\n\
                 Connection: close\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        let status = text.split(' ').nth(1).and_then(|s| s.parse().ok());
        let body = text.split_once("\r\n\r\n").map_or("", |t| t.1);
        (status.unwrap_or(0), body.into())
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Some(TOKEN), "GET", path, "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Running {
    /// Path of its first run.
    fn run(&self) -> String {
        format!("/v1/runs/{}", self.get("/v1/status")["runs"][0]["id"])
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn server_run() -> String {
    json!({ "key": "00".repeat(16), "lease_s": 5.0, "part": { "server": { "clients": [[]] } } })
        .to_string()
}

fn order(clients: &[&Running], servers: &[&Running], trust: Trust) -> Order {
    let names = |all: &[&Running]| {
        let names = all
            .iter()
            .map(|a| Address::from(a.address.to_string().as_str()));
        names.collect()
    };
    Order {
        clients: names(clients),
        servers: names(servers),
        token: TOKEN.into(),
        trust,
        rendezvous: None,
        traffic: TrafficPart::Closed {
            sessions: 4,
            up: 200,
            down: 5_000,
        },
        lease: Dur::from_secs(1),
        threads: 1,
        flows: true,
        keep: false,
        dscp: Vec::new(),
        congestion: Vec::new(),
    }
}

fn done(controller: &Controller) -> u64 {
    let (clients, _) = controller.standing();
    let counts = clients.iter().flat_map(|c| &c.statistics);
    counts.map(|s| s.counts.done).sum()
}

#[test]
fn without_the_token_nothing_happens() {
    let agent = Running::new(None);
    let run = server_run();
    let tokens = [
        None,
        Some(""),
        Some("wrong"),
        Some("0123456789abcde"),
        Some("0123456789abcdef0"),
    ];
    for token in tokens {
        for (method, path) in [
            ("GET", "/v1/status"),
            ("POST", "/v1/runs"),
            ("PATCH", "/v1/runs/1"),
            ("DELETE", "/v1/runs/1"),
            ("GET", "/v1/runs/1/statistics"),
            ("GET", "/v1/runs/1/flows"),
            ("GET", "/metrics"),
            ("GET", "/openapi.json"),
            ("GET", "/nothing"),
        ] {
            let (status, body) = agent.ask(token, method, path, &run);
            assert_eq!(status, 401, "{method} {path} {token:?}: {body}");
        }
    }
    assert_eq!(agent.get("/v1/status")["runs"], json!([]));
    let (status, _) = agent.ask(Some(TOKEN), "POST", "/v1/runs", &run);
    assert_eq!(status, 201);
    assert_eq!(agent.get("/v1/status")["runs"][0]["state"], "waiting");
}

#[test]
fn an_agent_that_everybody_could_command_does_not_start() {
    let config = |listen: [u8; 4], token: &str| AgentConfig {
        listen: Some((listen, 0).into()),
        token: token.into(),
        ..plain()
    };
    let refused = Agent::new(config([0, 0, 0, 0], TOKEN)).err();
    assert!(matches!(refused, Some(AgentError::Plain(_))));
    let refused = Agent::new(config([127, 0, 0, 1], "short")).err();
    assert!(matches!(refused, Some(AgentError::Token(5))));
}

#[test]
fn a_run_goes_from_request_to_results() {
    let (client, server) = (Running::new(None), Running::new(None));
    let order = order(&[&client], &[&server], Trust::Loopback);
    let mut controller = Controller::new(&order).unwrap();
    assert_eq!(done(&controller), 0, "not before the start");
    controller.start().unwrap();
    let mut flows = Vec::new();
    until(|| {
        flows.extend(controller.flows().into_iter().flat_map(|batch| batch.flows));
        done(&controller) > 200
    });
    assert!(
        controller.set_load(2.0).is_err(),
        "closed sessions have no load"
    );
    let metrics = client.ask(Some(TOKEN), "GET", "/metrics", "").1;
    let id = client.get("/v1/status")["runs"][0]["id"].clone();
    let line = format!("swell_agent_sessions{{run=\"{id}\",part=\"client\"}} 4");
    assert!(metrics.contains(&line), "{metrics}");
    controller.stop();
    flows.extend(controller.flows().into_iter().flat_map(|batch| batch.flows));
    let (clients, servers) = controller.standing();
    let counts = |s: &Standing| s.statistics.as_ref().unwrap().counts;
    let (mine, theirs) = (counts(&clients[0]), counts(&servers[0]));
    assert_eq!((mine.failed, clients[0].lost), (0, 0));
    assert_eq!(flows.len() as u64, mine.done + mine.unfinished);
    let complete: Vec<_> = flows
        .iter()
        .filter(|f| f.outcome == Outcome::Done)
        .collect();
    assert!(complete.iter().all(|f| (f.up, f.down) == (200, 5_000)));
    // The addresses in the agents' pools: sources, and those of the servers.
    let inside = |a: std::net::IpAddr| a.to_string().starts_with("127.5.0.");
    assert!(
        flows
            .iter()
            .all(|f| inside(f.source) && inside(f.destination))
    );
    assert!(theirs.done >= mine.done && theirs.strangers == 0);
    assert_eq!(client.get("/v1/status")["runs"][0]["state"], "stopped");
    controller.end();
    assert_eq!(client.get("/v1/status")["runs"], json!([]));
}

#[test]
fn over_tls_the_fingerprint_decides() {
    let identity = Identity::made().unwrap();
    let right = identity.fingerprint();
    let client = Running::new(Some(identity));
    let identity = Identity::made().unwrap();
    let other = identity.fingerprint();
    assert_ne!(right, other);
    let server = Running::new(Some(identity));
    let trust = |all: &[&str]| Trust::Fingerprints(all.iter().map(|s| (*s).into()).collect());
    let fails = |trust| Controller::new(&order(&[&client], &[&server], trust)).err();
    let wrong = fails(trust(&[&right])).unwrap().to_string();
    assert!(wrong.contains(&other), "it says which one it saw: {wrong}");
    assert!(fails(Trust::Loopback).is_some(), "plain HTTP to TLS");
    assert!(fails(trust(&["beef"])).is_some());
    let both = trust(&[&right.to_uppercase(), &other]);
    let mut controller = Controller::new(&order(&[&client], &[&server], both)).unwrap();
    controller.start().unwrap();
    until(|| done(&controller) > 0);
}

#[test]
fn when_the_controller_dies_everything_ends() {
    let (client, server) = (Running::new(None), Running::new(None));
    let mut controller = Controller::new(&order(&[&client], &[&server], Trust::Loopback)).unwrap();
    controller.start().unwrap();
    until(|| done(&controller) > 0);
    // The controller ends without notifying the agents, as if it were killed.
    drop(controller);
    let state = |agent: &Running| agent.get("/v1/status")["runs"][0]["state"].clone();
    until(|| state(&client) == "expired" && state(&server) == "expired");
    let statistics = client.get(&format!("{}/statistics", client.run()));
    assert_eq!(statistics["open"], 0);
    assert!(
        statistics["counts"]["done"].as_u64().unwrap() > 0,
        "what was counted stays"
    );
}

#[test]
fn when_an_agent_dies_the_others_and_the_controller_go_on() {
    let (mut one, two, server) = (Running::new(None), Running::new(None), Running::new(None));
    let order = order(&[&one, &two], &[&server], Trust::Loopback);
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    until(|| done(&controller) > 0);
    one.end();
    let count = |c: &Controller, n: usize| {
        let statistics = c.standing().0[n].statistics.clone();
        statistics.map_or(0, |s| s.counts.done)
    };
    let before = count(&controller, 1);
    until(|| {
        let (clients, _) = controller.standing();
        clients[0].trouble.is_some() && count(&controller, 1) > before + 100
    });
    assert!(!controller.is_over());
    controller.stop();
    let counts = controller.standing().1[0]
        .statistics
        .clone()
        .unwrap()
        .counts;
    assert_eq!(counts.lost_parties, 0, "it said that it goes");
    until(|| controller.is_over());
}

/// A TCP relay to an agent that can start to discard everything.
struct Way {
    address: SocketAddr,
    lost: Arc<AtomicBool>,
}

impl Way {
    fn to(agent: SocketAddr) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let lost = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&lost);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let near = stream.unwrap();
                // If the agent is not running, the connection is refused.
                let Ok(far) = TcpStream::connect(agent) else {
                    continue;
                };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let end = Arc::clone(&end);
                    std::thread::spawn(move || carry(from, to, &end));
                }
            }
        });
        Way { address, lost }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, lost: &AtomicBool) {
    let mut bytes = [0; 4096];
    loop {
        let n = from.read(&mut bytes).unwrap_or(0);
        while lost.load(Ordering::Acquire) {
            // Discard everything: neither an answer nor an end of the stream.
            std::thread::park();
        }
        if n == 0 || to.write_all(&bytes[..n]).is_err() {
            let _ = to.shutdown(std::net::Shutdown::Write);
            return;
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_said() {
    let agent = Running::new(None);
    let good: Value = serde_json::from_str(&server_run()).unwrap();
    let client = json!({ "client": {
        "index": 0, "of": 1, "servers": [{ "address": "127.0.0.1:1", "datagrams": 1 }],
        "traffic": { "closed": { "sessions": 1, "up": 1, "down": 1 } },
    } });
    let with = |path: &[&str], value: Value| {
        let mut all = json!({ "key": good["key"], "lease_s": 1.0, "part": client.clone() });
        let mut at = &mut all;
        for key in path {
            at = &mut at[*key];
        }
        *at = value;
        all.to_string()
    };
    let wrong = [
        String::new(),
        "nonsense".into(),
        "[]".into(),
        "{}".into(),
        "\u{0}".into(),
        "[".repeat(100_000),
        with(&["key"], json!("00")),
        with(&["key"], json!("zz".repeat(16))),
        with(&["lease_s"], json!(0.0)),
        with(&["lease_s"], json!(1e300)),
        with(&["lease_s"], json!(-1)),
        with(&["threads"], json!(70_000)),
        with(&["threads"], json!(65)),
        with(&["threads"], json!(0)),
        with(&["unknown"], json!(1)),
        with(&["congestion"], json!(["../../x"])),
        with(&["congestion"], json!(vec!["cubic"; 17])),
        with(&["part"], json!({ "server": { "clients": [] } })),
        with(
            &["part"],
            json!({ "server": { "clients": [["10.0.0.0/33"]] } }),
        ),
        with(
            &["part"],
            json!({ "server": { "clients": [[]], "pool": ["10.0.0.0/8"] } }),
        ),
        with(&["part", "client", "pool"], json!(["0.0.0.0/0"])),
        with(&["part", "client", "servers"], json!([])),
        with(
            &["part", "client", "servers"],
            json!([{ "address": "nowhere", "datagrams": 1 }]),
        ),
        with(&["part", "client", "index"], json!(1)),
        with(&["part", "client", "dscp"], json!([64])),
        with(
            &["part", "client", "traffic"],
            json!({ "model": { "model": "{}" } }),
        ),
        with(
            &["part", "client", "traffic"],
            json!({ "closed": { "sessions": 1 } }),
        ),
        with(
            &["part", "client", "traffic"],
            json!({ "closed": { "sessions": 1 << 21, "up": 1, "down": 1 } }),
        ),
    ];
    for body in &wrong {
        let (status, said) = agent.ask(Some(TOKEN), "POST", "/v1/runs", body);
        let start: String = body.chars().take(200).collect();
        assert_eq!(status, 400, "{start}: {said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!(said["error"].as_str().is_some_and(|e| !e.is_empty()));
    }
    for (method, path) in [
        ("GET", "/v1/runs/7"),
        ("PATCH", "/v1/runs/7"),
        ("DELETE", "/v1/runs/7"),
        ("GET", "/v1/runs/7/statistics"),
        ("GET", "/v1/runs/7/flows"),
        ("GET", "/v2"),
    ] {
        assert_eq!(agent.ask(Some(TOKEN), method, path, "{}").0, 404, "{path}");
    }
    assert_eq!(agent.ask(Some(TOKEN), "GET", "/v1/runs/x", "").0, 400);
    assert_eq!(agent.ask(Some(TOKEN), "PUT", "/v1/status", "").0, 405);
    assert_eq!(
        agent.get("/v1/status")["runs"],
        json!([]),
        "nothing came of all that"
    );
    let (status, said) = agent.ask(Some(TOKEN), "POST", "/v1/runs", &with(&[], good.clone()));
    assert_eq!(status, 201, "{said}");
    for change in [
        json!({ "load": 2.0 }),
        json!({ "lease_s": 1e9 }),
        json!({ "traffic": { "closed": { "sessions": 1, "up": 1, "down": 1 } } }),
        json!({ "boom": 1 }),
    ] {
        let (status, _) = agent.ask(Some(TOKEN), "PATCH", &agent.run(), &change.to_string());
        assert_eq!(status, 400, "{change}");
    }
}

#[test]
fn the_description_is_that_of_the_routes() {
    let agent = Running::new(None);
    let document = agent.get("/openapi.json");
    assert_eq!(document, openapi());
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    for (path, item) in paths {
        let real = path.replace("{id}", "4242");
        for method in ["get", "post", "put", "patch", "delete"] {
            let (status, _) = agent.ask(Some(TOKEN), &method.to_uppercase(), &real, "");
            let described = item.get(method).is_some();
            assert_eq!(described, status != 405, "{method} {path}: {status}");
        }
    }
    // Every reference has a target, and every body refers to a type.
    let text = document.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        let schemas = &document["components"]["schemas"];
        assert!(schemas[name].is_object(), "{name}");
    }
    for name in ["Status", "NewRun", "RunView", "Change", "StatisticsView"] {
        assert!(
            text.contains(&format!("#/components/schemas/{name}\"")),
            "{name}"
        );
    }
}

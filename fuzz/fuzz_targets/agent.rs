#![no_main]
//! What agents and controllers say to an agent, and clients to a server.
//!
//! The first byte of the input chooses to whom the rest is said: raw bytes to an agent; a request with the
//! token, method and path chosen by the second byte, and the rest as its body; bytes on a connection to a
//! server that has a client; a datagram to it; or to the decoders of single messages.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use swell_base::Dur;
use swell_generate::agent::{Agent, AgentConfig};
use swell_generate::wire::{DATAGRAM, HEADER, Message, Stamps};
use swell_generate::{
    Addresses, Client, Closed, Config, Flow, Key, Limits, Play, ROW, Role, Run, Server, Target,
};

const TOKEN: &str = "a token that seeds know";
const KEY: Key = Key::new(*b"a key of 16 byte");
/// No answer is read beyond this.
const MOST: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 5 {
        0 => raw(rest),
        1 => request(rest),
        2 => connection(rest),
        3 => datagram(rest),
        _ => messages(rest),
    }
});

fn agent() -> Agent {
    let config = AgentConfig {
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
    };
    Agent::new(config).unwrap()
}

/// What an agent says to these bytes.
fn say(agent: &Agent, bytes: &[u8]) -> Vec<u8> {
    let (mut own, theirs) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| agent.talk(theirs).unwrap());
        // It may close before everything was said.
        let _ = own.write_all(bytes);
        let _ = own.shutdown(Shutdown::Write);
        let mut back = Vec::new();
        let _ = own.read_to_end(&mut back);
        drop(own);
        back
    })
}

/// Of every answer in it, its status.
fn statuses(said: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(said);
    let lines = text.split("HTTP/1.").skip(1);
    let status = |line: &str| line.get(2..5).and_then(|s| s.parse().ok());
    lines.filter_map(status).collect()
}

fn raw(bytes: &[u8]) {
    let said = say(&agent(), bytes);
    let known = bytes.windows(TOKEN.len()).any(|w| w == TOKEN.as_bytes());
    for status in statuses(&said) {
        assert!(status < 500, "{}", String::from_utf8_lossy(&said));
        // Bytes that are no request at all are told so.
        assert!(
            known || [400, 401, 414, 431].contains(&status),
            "{status} without the token"
        );
    }
}

const REQUESTS: [&str; 9] = [
    "POST /v1/runs",
    "POST /v1/runs",
    "PATCH /v1/runs/ID",
    "PATCH /v1/runs/ID",
    "GET /v1/runs/ID",
    "GET /v1/runs/ID/statistics",
    "GET /v1/runs/ID/flows?after=1",
    "DELETE /v1/runs/ID",
    "GET /metrics",
];

/// The request, about a run if it is about one.
fn request(bytes: &[u8]) {
    let Some((&which, body)) = bytes.split_first() else {
        return;
    };
    let one = |request: &str, body: &[u8]| {
        let mut text = format!(
            "{request} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        text.extend(body);
        text
    };
    let agent = agent();
    let mut request = REQUESTS[usize::from(which) % REQUESTS.len()].to_owned();
    if request.contains("ID") {
        let run = one(
            "POST /v1/runs",
            br#"{ "key": "000102030405060708090a0b0c0d0e0f", "lease_s": 1, "part": { "client": { "index": 0, "of": 1, "servers": [{ "address": "127.0.0.1:9", "datagrams": 9 }], "traffic": { "closed": { "sessions": 1, "up": 1, "down": 1 } } } } }"#,
        );
        let said = String::from_utf8(say(&agent, &run)).unwrap();
        let id = said.split_once("\"id\":").unwrap().1;
        let id = id.split(',').next().unwrap();
        request = request.replace("ID", id);
    }
    let said = say(&agent, &one(&request, body));
    let seen = statuses(&said);
    assert!(
        !seen.is_empty() && seen.iter().all(|s| *s < 500),
        "{}",
        String::from_utf8_lossy(&said)
    );
}

/// A server that has a client, which holds a leash as long as this process lives.
fn server() -> &'static Run {
    static PAIR: OnceLock<(Run, Run)> = OnceLock::new();
    let (server, client) = PAIR.get_or_init(|| {
        let config = |role| Config {
            key: KEY,
            lease: Dur::from_secs(60),
            congestion: Vec::new(),
            threads: 1,
            precise: false,
            room: 0,
            elapsed: Dur::ZERO,
            limits: Default::default(),
            role,
        };
        let clients = vec![Addresses::parse(&["127.0.0.0/8"]).unwrap()];
        let server = Server {
            clients,
            ..Server::default()
        };
        let server = Run::new(config(Role::Server(server))).unwrap();
        let target = Target {
            address: ([127, 0, 0, 1], server.port()).into(),
            datagrams: server.datagram_port(),
            pool: Addresses::default(),
        };
        let client = Client {
            index: 0,
            of: 1,
            pool: Addresses::default(),
            servers: vec![target],
            plan: Arc::new(Closed {
                sessions: 0,
                up: 0,
                down: 0,
            }),
            play: Play::default(),
        };
        let client = Run::new(config(Role::Client(client))).unwrap();
        while client.statistics().parties == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        (server, client)
    });
    for run in [server, client] {
        run.renew(Dur::from_secs(60));
        assert!(run.is_running());
    }
    server
}

fn connection(bytes: &[u8]) {
    // The kernel keeps to itself a connection on which nothing is said.
    if bytes.is_empty() {
        return;
    }
    let port = server().port();
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return;
    };
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut back = Vec::new();
    let _ = stream.set_read_timeout(Some(Duration::from_secs(9)));
    let read = (&stream).take(MOST).read_to_end(&mut back);
    // Whoever said everything is told the end, or what they asked for without end.
    if let Err(error) = read {
        assert_ne!(
            error.kind(),
            std::io::ErrorKind::WouldBlock,
            "a connection hangs"
        );
    }
}

fn datagram(bytes: &[u8]) {
    let port = server().datagram_port();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let _ = socket.send_to(bytes, ("127.0.0.1", port));
}

fn messages(bytes: &[u8]) {
    if let Some((front, rest)) = bytes.split_first_chunk::<HEADER>() {
        if let Some(message) = Message::decode(front, &KEY) {
            assert_eq!(Message::decode(&message.encode(&KEY), &KEY), Some(message));
        }
        // A request without the key is none.
        if let Some(Message::Request(_)) = Message::decode(front, &Key::new([0; 16])) {
            assert_eq!(front[8..24], [0; 16]);
        }
        messages(rest);
    }
    if let Some(front) = bytes.first_chunk::<DATAGRAM>() {
        let stamps = Stamps::new(&KEY);
        if let Some(stamp) = stamps.decode(front) {
            assert_eq!(stamps.decode(&stamps.encode(stamp)), Some(stamp));
        }
    }
    if let Some(row) = bytes.first_chunk::<ROW>()
        && let Some(flow) = Flow::decode(row)
    {
        assert_eq!(Flow::decode(&flow.encode()), Some(flow));
    }
}

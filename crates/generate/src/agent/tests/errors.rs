//! Errors that arise before a request reaches our handlers.

use rustix::io::Errno;

use super::*;
use crate::RunError;
use crate::agent::routes::refused;
use crate::agent::runs::Refusal;

#[test]
fn what_the_machine_lacks_is_no_fault_of_the_request() {
    let lacking = [
        RunError::Socket(Errno::MFILE),
        RunError::Socket(Errno::NOMEM),
        RunError::Thread(io::ErrorKind::OutOfMemory.into()),
    ];
    for error in lacking {
        let why = error.to_string();
        let refusal = Refusal::from(error);
        assert!(matches!(&refusal, Refusal::Failed(said) if *said == why));
        assert_eq!(refused(&refusal).status().as_u16(), 500, "{why}");
    }
    let status = |error: RunError| refused(&Refusal::from(error)).status().as_u16();
    assert_eq!(status(RunError::Config("nothing to do")), 400);
    let error = Errno::ADDRINUSE;
    assert_eq!(status(RunError::Port { port: 80, error }), 409);
}

#[test]
fn no_session_at_all_is_no_traffic() {
    let refused = |sessions| {
        let closed = TrafficPart::Closed {
            sessions,
            up: 1,
            down: 1,
        };
        closed.plan().err()
    };
    assert_eq!(refused(0).as_deref(), Some("closed: at least one session"));
    assert_eq!(refused(1), None);
    let other = |load| TrafficPart::Closed {
        sessions: 1,
        up: load,
        down: 1,
    };
    assert!(
        !other(1).is_load_of(&other(2)),
        "closed sessions have no load"
    );
}

#[test]
fn every_error_is_json_and_says_what_is_wrong() {
    let agent = Running::new(None);
    let said = |status: u16, answer: (u16, String)| {
        assert_eq!(answer.0, status, "{}", answer.1);
        let said: Value = serde_json::from_str(&answer.1).unwrap();
        said["error"].as_str().unwrap().to_owned()
    };
    let with = |method: &str, path: &str| agent.ask(Some(TOKEN), method, path, "");
    // Invalid or too large numbers.
    for id in ["abc", "-1", "99999999999999999999999", "1.0"] {
        let text = said(400, with("GET", &format!("/v1/runs/{id}")));
        assert!(!text.is_empty(), "{id}");
    }
    assert_eq!(
        said(405, with("DELETE", "/v1/status")),
        "Method Not Allowed"
    );
    assert_eq!(said(405, with("POST", "/v1/runs/1")), "Method Not Allowed");
    said(404, with("GET", "/v1/runs/1"));
    said(404, with("GET", "/nothing"));
    said(401, agent.ask(None, "GET", "/v1/runs/abc", ""));
    // The answer lists the methods that the resource supports (RFC 9110 section 15.5.6).
    let head = agent.raw(
        format!("DELETE /v1/status HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n").as_bytes(),
    );
    assert!(head.to_ascii_lowercase().contains("allow: get"), "{head}");
    // A chunked body with an invalid chunk.
    let broken = agent.raw(
        format!(
            "POST /v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\n{{\"a\":\r\nzz\r\n"
        )
        .as_bytes(),
    );
    if let Some((_, body)) = broken.split_once("\r\n\r\n") {
        assert!(serde_json::from_str::<Value>(body).is_ok(), "{broken}");
    }
    assert_eq!(agent.get("/v1/status")["runs"], json!([]));
}

#[test]
fn whatever_is_asked_an_error_is_one_of_those_that_the_description_promises() {
    let agent = Running::new(None);
    let document = agent.get("/openapi.json");
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values().filter(|o| o.is_object()) {
            let wrong = &operation["responses"]["default"]["content"]["application/json"];
            assert!(wrong["schema"]["$ref"].is_string(), "{operation}");
        }
    }
    let promised = document["info"]["description"].as_str().unwrap();
    let ids = [
        "0",
        "7",
        "x",
        "-1",
        "%00",
        "%ff",
        "1e3",
        "18446744073709551616",
        "1/2/3",
        "",
    ];
    for method in [
        "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
    ] {
        for id in ids {
            for rest in ["", "/statistics", "/flows", "/flows?after=x", "/nothing"] {
                for body in ["", "{", "{}", "\u{1}"] {
                    let path = format!("/v1/runs/{id}{rest}");
                    let (status, said) = agent.ask(Some(TOKEN), method, &path, body);
                    assert!(
                        (400..500).contains(&status),
                        "{method} {path}: {status} {said}"
                    );
                    assert!(
                        promised.contains(&status.to_string()),
                        "{method} {path}: {status}"
                    );
                    let said: Value = serde_json::from_str(&said).unwrap();
                    assert!(said["error"].as_str().is_some_and(|e| !e.is_empty()));
                }
            }
        }
    }
}

#[test]
fn a_body_in_chunks_that_is_too_long_is_refused_in_json() {
    let agent = Running::new(None);
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    );
    let mut bytes = head.into_bytes();
    let chunk = vec![b' '; 1 << 20];
    // One byte more than the limit.
    for _ in 0..72 {
        bytes.extend(b"100000\r\n");
        bytes.extend(&chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"1\r\n \r\n0\r\n\r\n");
    let said = agent.raw(&bytes);
    assert!(said.starts_with("HTTP/1.1 413"), "{said}");
    let (_, body) = said.split_once("\r\n\r\n").unwrap();
    assert!(serde_json::from_str::<Value>(body).unwrap()["error"].is_string());
}

#[test]
fn hostile_bytes_hurt_nobody() {
    let agent = Running::new(None);
    let mut random = Stream::new(3, "hostile");
    let run = server_run();
    let seed = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{run}",
        run.len()
    );
    for _ in 0..400 {
        let mut bytes = seed.clone().into_bytes();
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes[at] = random.bits() as u8,
                1 => bytes.truncate(at.max(1)),
                2 => {
                    let part = bytes[at..].to_vec();
                    bytes.extend(part);
                }
                _ => {
                    bytes.insert(at, b"{}[]\",:0\0\xff"[random.below(10) as usize]);
                }
            }
        }
        let said = agent.raw(&bytes);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 "), "{said}");
        assert!(!said.starts_with("HTTP/1.1 5"), "{said}");
    }
    // A body that is longer than any model.
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Length: 99999999999\r\n\r\n"
    );
    assert!(agent.raw(head.as_bytes()).starts_with("HTTP/1.1 413"));
    agent.get("/v1/status");
}

/// Why a run with these agents cannot be made.
fn no_run(client: &Running, server: &Running, trust: Trust) -> String {
    let order = order(&[client], &[server], trust);
    Controller::new(&order).err().unwrap().to_string()
}

#[test]
fn tls_on_one_side_only_is_named() {
    let identity = Identity::made().unwrap();
    let trust = Trust::Fingerprints(vec![identity.fingerprint()]);
    let (plain, secret) = (Running::new(None), Running::new(Some(identity)));
    let said = no_run(&plain, &secret, Trust::Loopback);
    assert!(
        said.contains("it does not answer in plain HTTP; if it uses TLS"),
        "{said}"
    );
    assert!(said.contains(&secret.address.to_string()), "{said}");
    let said = no_run(&plain, &secret, trust);
    assert!(said.contains("the other side does not speak TLS"), "{said}");
    assert!(said.contains(&plain.address.to_string()), "{said}");
}

#[test]
fn a_server_that_does_not_allow_a_client_is_named_with_its_reason() {
    let open = |peers: &[&str]| {
        Running::of(AgentConfig {
            pool: Addresses::default(),
            limits: Limits {
                peers: Addresses::parse(peers).unwrap(),
                ..Limits::default()
            },
            ..plain()
        })
    };
    let (client, server) = (open(&[]), open(&["10.0.0.0/8"]));
    let said = no_run(&client, &server, Trust::Loopback);
    let wanted = format!(
        "{} and {} did not agree within 10 s: {} refuses it: 127.0.0.1 is not within the peers of this agent \
         (--allow-peer 10.0.0.0/8)",
        client.address, server.address, server.address
    );
    assert_eq!(said, wanted);
}

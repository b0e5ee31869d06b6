//! Errors that arise before a request comes to us.

use super::*;

#[test]
fn every_error_is_json_and_says_what_is_wrong() {
    let agent = Running::new(None);
    let said = |status: u16, answer: (u16, String)| {
        assert_eq!(answer.0, status, "{}", answer.1);
        let said: Value = serde_json::from_str(&answer.1).unwrap();
        said["error"].as_str().unwrap().to_owned()
    };
    let with = |method: &str, path: &str| agent.ask(Some(TOKEN), method, path, "");
    // A number that is none, or too large.
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
    // The methods that a resource has are told (RFC 9110 section 15.5.6).
    let head = agent.raw(
        format!("DELETE /v1/status HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n").as_bytes(),
    );
    assert!(head.to_ascii_lowercase().contains("allow: get"), "{head}");
    // A body in chunks, broken in the middle.
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

//! `swell watch`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use super::study::shortened;
use super::under::emulates;
use super::{Scratch, run, swell, text};

const EXPERIMENT: &str = r#"
name = "watched"
[network]
rate = "10Mbit"
[[foreground]]
name = "page"
kind = "web"
object = "20kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "4Mbit"
[run]
replications = 3
warmup = "1s"
duration = "3s"
"#;

/// The running program, which is killed when dropped.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a page that follows a directory; returns its address.
fn watched(dir: &Scratch, what: &str) -> (Watching, String) {
    let mut child = swell(dir)
        .args(["watch", what])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    let watching = Watching(child);
    BufReader::new(out).read_line(&mut line).unwrap();
    let host = line.trim().trim_start_matches("http://");
    (watching, host.trim_end_matches('/').to_owned())
}

/// The complete answer to one request.
fn get(host: &str, path: &str, named: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {named}\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

fn progress(host: &str) -> serde_json::Value {
    let said = get(host, "/progress", host);
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK") && head.contains("application/json"),
        "{head}"
    );
    serde_json::from_str(body).unwrap()
}

#[test]
fn a_page_follows_what_others_do_in_a_run_directory() {
    let dir = Scratch::new("watch");
    dir.write("mine.toml", EXPERIMENT);
    let shard = run(&dir, &["run", "mine.toml", "-o", "one", "--shard", "1/3"]);
    assert!(shard.status.success(), "{}", text(&shard.stderr));
    let (_watching, host) = watched(&dir, "one");
    let host = host.as_str();
    // Every third of the six runs, starting with the first.
    let seen = progress(host);
    assert_eq!(
        (&seen["finished"], &seen["runs"]),
        (&2.into(), &6.into()),
        "{seen}"
    );
    assert_eq!(
        seen["conditions"][0]["finished"],
        serde_json::json!([true, false, false])
    );
    assert_eq!(seen["complete"], false);
    assert!(get(host, "/", host).contains("<progress"));
    assert!(get(host, "/report", host).starts_with("HTTP/1.1 404"));
    // Another process performs the rest.
    let whole = run(&dir, &["run", "mine.toml", "-o", "one"]);
    assert!(
        matches!(whole.status.code(), Some(0 | 3)),
        "{}",
        text(&whole.stderr)
    );
    let seen = progress(host);
    assert_eq!(
        (&seen["finished"], &seen["complete"]),
        (&6.into(), &true.into()),
        "{seen}"
    );
    assert!(get(host, "/report", host).contains("<html"));
    // Other host names are rejected (DNS rebinding), and so are unknown paths.
    assert!(get(host, "/progress", "example.com").starts_with("HTTP/1.1 403"));
    assert!(get(host, "/../mine.toml", host).starts_with("HTTP/1.1 404"));
    // A directory that is not a run is reported at once.
    let nothing = run(&dir, &["watch", "."]);
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing.stderr));
    assert!(text(&nothing.stderr).contains("no run, no study"));
}

#[test]
fn a_page_follows_a_study_to_its_report() {
    let dir = Scratch::new("watch-study");
    let file = shortened(&dir, "buffers", "25s");
    let study = |more: &[&str]| {
        let done = run(
            &dir,
            &[&["study", "file", &file, "--quick", "-o", "one"], more].concat(),
        );
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    study(&["--shard", "2/4"]);
    let (_watching, host) = watched(&dir, "one");
    let seen = progress(&host);
    assert_eq!(
        (&seen["finished"], &seen["runs"], &seen["complete"]),
        (&5.into(), &20.into(), &false.into()),
        "{seen}"
    );
    // Of the four runs of the first line, every fourth is done, starting with the second.
    let first = &seen["conditions"][0];
    assert_eq!(first["names"], serde_json::json!(["reno", "fifo"]));
    assert_eq!(
        first["finished"],
        serde_json::json!([false, true, false, false])
    );
    study(&[]);
    let seen = progress(&host);
    assert_eq!(
        (&seen["finished"], &seen["complete"]),
        (&20.into(), &true.into()),
        "{seen}"
    );
    assert!(get(&host, "/report", &host).contains("How much buffer does a link need?"));
}

#[test]
fn a_page_follows_a_generation_to_its_end() {
    let dir = Scratch::new("watch-generate");
    if !emulates(&dir) {
        return;
    }
    let out = run(
        &dir,
        &[
            "generate",
            "--closed",
            "2",
            "--down",
            "1kB",
            "--duration",
            "2500ms",
            "--local",
            "-q",
            "-o",
            "one",
        ],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    // --quiet prints nothing.
    assert_eq!(text(&out.stdout), "");
    let (_watching, host) = watched(&dir, "one");
    let seen = progress(&host);
    assert_eq!(
        (&seen["complete"], &seen["ended"], &seen["ends_s"]),
        (&true.into(), &"duration".into(), &2.5.into()),
        "{seen}"
    );
    // The last state that it shows is the result of the run.
    let manifest = std::fs::read(dir.0.join("one/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let client = &manifest["agents"]["clients"][0]["statistics"];
    let shown = &seen["generation"]["agents"][0];
    assert!(shown["done"].as_u64().unwrap() > 0, "{seen}");
    assert_eq!(shown["done"], client["counts"]["done"], "{seen}");
    assert!(
        seen["generation"]["course"].as_array().unwrap().len() >= 3,
        "{seen}"
    );
}

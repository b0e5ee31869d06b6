//! `swell watch`: a page on the loopback interface that follows the directory of a run, a study or generated traffic.
//!
//! It reads the directory whenever the page polls, so it needs no cooperation of the processes that write there.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use groundswell::{files, study};
use serde_json::{Value, json};
use swell_experiment::run::Progress;
use swell_experiment::run::grid::Seen;

use crate::cli::WatchArgs;
use crate::fail::Fail;
use crate::{out, report};

const PAGE: &str = include_str!("watch.html");

/// Limits on the size of a request in bytes and on the time to receive it, because clients are served one at a time.
const MOST: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn watch(args: &WatchArgs) -> Result<(), Fail> {
    // Report an unsuitable directory here, not on the page.
    let seen = state(&args.run).map_err(|e| {
        let fail = Fail::usage(e);
        fail.hint("the directory of `swell run`, `swell under -o`, `swell study` or `swell generate`, once it has begun")
    })?;
    let name = seen["name"].as_str().unwrap_or_default();
    let failed = |e: io::Error| Fail::failed(format!("127.0.0.1:{}: {e}", args.port));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    out::data(&format!("http://127.0.0.1:{port}/"));
    out::say(&format!("follows {name}; Ctrl-C ends it"));
    for stream in listener.incoming().flatten() {
        // A browser that disconnects ends only its own request.
        let _ = answer(stream, &args.run, port);
    }
    Ok(())
}

fn answer(mut stream: TcpStream, dir: &Path, port: u16) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            n => request.extend_from_slice(&piece[..n]),
        }
        if request.len() > MOST {
            return Ok(());
        }
    }
    let (status, kind, body) = reply(&String::from_utf8_lossy(&request), dir, port);
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}

/// Status, content type and body of the answer to `request`, a request with its headers.
fn reply(request: &str, dir: &Path, port: u16) -> (&'static str, &'static str, Vec<u8>) {
    const TEXT: &str = "text/plain; charset=utf-8";
    const HTML: &str = "text/html; charset=utf-8";
    let mut lines = request.lines();
    let first = lines.next().unwrap_or_default();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host")
            .then(|| value.trim().to_owned())
    };
    let host = lines.find_map(header);
    // Against DNS rebinding: a foreign page whose name resolves to this host must not read results.
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    if host.is_none_or(|h| !own.contains(&h)) {
        return ("403 Forbidden", TEXT, b"not for other hosts\n".to_vec());
    }
    match first.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/"] => ("200 OK", HTML, PAGE.into()),
        ["GET", "/progress"] => match state(dir) {
            Ok(seen) => ("200 OK", "application/json", seen.to_string().into_bytes()),
            Err(e) => ("503 Service Unavailable", TEXT, e.into_bytes()),
        },
        ["GET", "/report"] => match std::fs::read(dir.join(report::PAGE)) {
            Ok(page) => ("200 OK", HTML, page),
            Err(_) => ("404 Not Found", TEXT, b"there is no report yet\n".to_vec()),
        },
        _ => ("404 Not Found", TEXT, b"there is no such page\n".to_vec()),
    }
}

/// The state of the directory for the page; an error sentence if there is nothing to follow.
fn state(dir: &Path) -> Result<Value, String> {
    let manifest = fs::read(dir.join("manifest.json"));
    let manifest: Option<Value> = manifest
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    match manifest {
        Some(manifest) if manifest["backend"] == "live" => Ok(generation(dir, &manifest)),
        Some(_) => {
            let seen = Progress::of(dir).map_err(|e| e.to_string())?;
            Ok(run(&seen))
        }
        None => {
            let seen = Seen::of(&dir.join(study::RUNS));
            let none = |_| {
                format!(
                    "{}: no run, no study and no generation is in it",
                    dir.display()
                )
            };
            Ok(of_study(dir, &seen.map_err(none)?))
        }
    }
}

fn run(seen: &Progress) -> Value {
    let manifest = &seen.manifest;
    let begun = UNIX_EPOCH + Duration::from_secs(manifest.started);
    let names = manifest.cells.iter();
    let names = names.map(|c| [c.foreground.as_str(), c.background.as_str()]);
    let mut state = rows(
        ["foreground", "background"],
        names.zip(seen.finished.iter().copied()),
    );
    state["name"] = json!(manifest.name);
    state["complete"] = json!(manifest.complete);
    state["measured"] = json!(seen.measured);
    state["seconds"] = match manifest.complete {
        true => json!(manifest.wall_s),
        false => json!(since(begun, SystemTime::now())),
    };
    state
}

fn of_study(dir: &Path, seen: &Seen) -> Value {
    // The key of a run begins with column and line; the values of the axes follow.
    let names = seen.runs.iter().map(|(key, done)| {
        let name = |i: usize| key.get(i).map_or("", String::as_str);
        ([name(0), name(1)], *done)
    });
    let mut state = rows(["column", "line"], names);
    // A page that is older than this study belongs to an earlier one.
    let written = fs::metadata(dir.join(report::PAGE)).and_then(|page| page.modified());
    let written = written.ok().filter(|at| *at >= seen.begun);
    let path = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let name = path.file_name().unwrap_or_default();
    state["name"] = json!(name.to_string_lossy());
    state["complete"] = json!(written.is_some() && state["finished"] == state["runs"]);
    state["seconds"] = json!(since(seen.begun, written.unwrap_or_else(SystemTime::now)));
    state
}

/// Groups runs by their two names, in order of first appearance.
fn rows<'a>(heads: [&str; 2], runs: impl Iterator<Item = ([&'a str; 2], bool)>) -> Value {
    let mut order: Vec<[&str; 2]> = Vec::new();
    let mut each: BTreeMap<[&str; 2], Vec<bool>> = BTreeMap::new();
    for (names, done) in runs {
        let own = each.entry(names).or_default();
        if own.is_empty() {
            order.push(names);
        }
        own.push(done);
    }
    let all = || each.values().flatten();
    let conditions = order
        .iter()
        .map(|names| json!({"names": names, "finished": each[names]}));
    json!({
        "heads": heads,
        "runs": all().count(),
        "finished": all().filter(|done| **done).count(),
        "conditions": conditions.collect::<Vec<_>>(),
    })
}

fn generation(dir: &Path, manifest: &Value) -> Value {
    let path = dir.join(files::PROGRESS);
    // The file does not exist before agents are first polled.
    let seen = fs::read(&path).unwrap_or_default();
    let seen: Value = serde_json::from_slice(&seen).unwrap_or_default();
    let silent = fs::metadata(&path).and_then(|file| file.modified());
    let silent = silent.map_or(0.0, |at| since(at, SystemTime::now()));
    json!({
        "name": manifest["name"],
        "generation": seen,
        "ends_s": manifest["ends_s"],
        "ended": manifest["ended"],
        "complete": manifest["ended"].is_string(),
        "warnings": manifest["warnings"],
        "silent_s": silent,
    })
}

/// Seconds from `begun` to `now`; zero if the clock went back.
fn since(begun: SystemTime, now: SystemTime) -> f64 {
    now.duration_since(begun).unwrap_or_default().as_secs_f64()
}

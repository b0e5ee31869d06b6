//! `swell watch`: a page on the loopback that follows a run directory.
//!
//! It reads what the directory holds whenever the page asks, so that it needs nothing of the processes that run it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use swell_experiment::run::Progress;

use crate::cli::WatchArgs;
use crate::fail::Fail;
use crate::{out, report};

const PAGE: &str = include_str!("watch.html");

/// A request is a few hundred bytes and comes at once; nobody else is served meanwhile.
const MOST: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn watch(args: &WatchArgs) -> Result<(), Fail> {
    // What is no run directory, or never was one, is said here and not on the page.
    let seen = Progress::of(&args.run).map_err(Fail::usage)?;
    let failed = |e: io::Error| Fail::failed(format!("127.0.0.1:{}: {e}", args.port));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    out::data(&format!("http://127.0.0.1:{port}/"));
    out::say(&format!("follows {}; Ctrl-C ends it", seen.manifest.name));
    for stream in listener.incoming().flatten() {
        // A browser that goes away ends its own request only.
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

/// Status, type and body of the answer to `request`, which has its headers.
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
    // A page of elsewhere whose name was made to lead here does not read results.
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    if host.is_none_or(|h| !own.contains(&h)) {
        return ("403 Forbidden", TEXT, b"not for other hosts\n".to_vec());
    }
    match first.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/"] => ("200 OK", HTML, PAGE.into()),
        ["GET", "/progress"] => match Progress::of(dir) {
            Ok(seen) => (
                "200 OK",
                "application/json",
                state(&seen).to_string().into_bytes(),
            ),
            Err(e) => ("503 Service Unavailable", TEXT, e.to_string().into_bytes()),
        },
        ["GET", "/report"] => match std::fs::read(dir.join(report::PAGE)) {
            Ok(page) => ("200 OK", HTML, page),
            Err(_) => ("404 Not Found", TEXT, b"there is no report yet\n".to_vec()),
        },
        _ => ("404 Not Found", TEXT, b"there is no such page\n".to_vec()),
    }
}

/// What the page shows.
fn state(seen: &Progress) -> serde_json::Value {
    let manifest = &seen.manifest;
    let mut order: Vec<(&str, &str)> = Vec::new();
    let mut conditions: BTreeMap<(&str, &str), Vec<bool>> = BTreeMap::new();
    for (cell, done) in manifest.cells.iter().zip(&seen.finished) {
        let key = (cell.foreground.as_str(), cell.background.as_str());
        if !order.contains(&key) {
            order.push(key);
        }
        conditions.entry(key).or_default().push(*done);
    }
    let each = order.iter().map(|key| {
        serde_json::json!({"foreground": key.0, "background": key.1, "finished": conditions[key]})
    });
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    serde_json::json!({
        "name": manifest.name,
        "complete": manifest.complete,
        "runs": seen.finished.len(),
        "finished": seen.finished.iter().filter(|done| **done).count(),
        "measured": seen.measured,
        "seconds": match manifest.complete {
            true => manifest.wall_s,
            false => now.as_secs().saturating_sub(manifest.started) as f64,
        },
        "conditions": each.collect::<Vec<_>>(),
    })
}

//! Model to text. Written by hand for a layout with one line per session and path. So files can be
//! compared line by line, and line numbers in errors are meaningful.

use std::fmt::Write;

use serde::Serialize;
use swell_base::{Dur, Rate};

use super::format::{FORMAT, VERSION};
use crate::{Connection, Exchange, Model, Path, Run, Session, Unit, Wire, WireEnd};

/// Microseconds, rounded to the nearest.
pub(super) fn micros(d: Dur) -> u64 {
    (d.as_nanos() / 1000) + u64::from(d.as_nanos() % 1000 >= 500)
}

pub(super) fn text(m: &Model) -> String {
    let mut out = String::with_capacity(1 << 16);
    // Writing to a String cannot fail, so no error can occur in this module.
    let _ = model(&mut out, m);
    out
}

fn json<T: Serialize + ?Sized>(value: &T) -> String {
    // All values are strings, numbers, arrays or structs of those, which cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn model(out: &mut String, m: &Model) -> std::fmt::Result {
    writeln!(out, "{{\"format\":{},\"version\":{VERSION},", json(FORMAT))?;
    writeln!(out, "\"name\":{},", json(&m.name))?;
    writeln!(out, "\"provenance\":{},", json(&m.provenance))?;
    lines(out, "warnings", &m.warnings, |out, w| {
        out.push_str(&json(w));
        Ok(())
    })?;
    writeln!(out, "\"duration\":{},", micros(m.duration))?;
    let p = &m.parameters;
    writeln!(
        out,
        "\"parameters\":{{\"group_timeout\":{},\"session_timeout\":{},\"quiet\":{}}},",
        micros(p.group_timeout),
        micros(p.session_timeout),
        micros(p.quiet)
    )?;
    let t = &m.totals;
    writeln!(
        out,
        "\"totals\":{{\"packets\":{},\"bytes\":{},\"tcp_connections\":{},\"tcp_handshakes\":{},\
         \"udp_flows\":{},\"unmodelled_packets\":{},\"unmodelled_bytes\":{}}},",
        json(&t.packets),
        json(&t.bytes),
        t.tcp_connections,
        t.tcp_handshakes,
        t.udp_flows,
        t.unmodelled_packets,
        t.unmodelled_bytes
    )?;
    let l = &m.load;
    let filled = match l.filled {
        [false, false] => String::new(),
        filled => format!("\"filled\":{},", json(&filled)),
    };
    writeln!(
        out,
        "\"load\":{{\"bin\":{},\"bytes\":{},{filled}\"lsd_bin\":{},\"lsd\":{}}},",
        micros(l.bin),
        json(&l.bytes),
        micros(l.lsd_bin),
        json(&l.lsd)
    )?;
    lines(out, "classes", &m.classes, |out, c| {
        write!(out, "{{\"name\":{},\"udp\":{}}}", json(&c.name), c.udp)
    })?;
    lines(out, "client_paths", &m.client_paths, path)?;
    lines(out, "server_paths", &m.server_paths, path)?;
    lines(out, "sessions", &m.sessions, session)?;
    // The last list ended in ",\n".
    out.truncate(out.len() - 2);
    writeln!(out, "\n}}")
}

fn lines<T>(
    out: &mut String,
    key: &str,
    items: &[T],
    mut each: impl FnMut(&mut String, &T) -> std::fmt::Result,
) -> std::fmt::Result {
    write!(out, "\"{key}\":[")?;
    comma(out, items, |out, item| {
        out.push('\n');
        each(out, item)
    })?;
    writeln!(out, "],")
}

fn comma<T>(
    out: &mut String,
    items: &[T],
    mut each: impl FnMut(&mut String, &T) -> std::fmt::Result,
) -> std::fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        each(out, item)?;
    }
    Ok(())
}

fn path(out: &mut String, p: &Path) -> std::fmt::Result {
    let rate = |r: Option<Rate>| r.map_or("null".to_string(), |r| r.bps().to_string());
    write!(
        out,
        "[{},{},{},{},{},{},{},{}]",
        micros(p.rtt),
        rate(p.up),
        rate(p.down),
        json(&p.loss_up),
        json(&p.loss_down),
        p.rtt_samples,
        p.capacity_samples,
        p.loss_samples
    )
}

fn session(out: &mut String, s: &Session) -> std::fmt::Result {
    let start = micros(s.start);
    write!(
        out,
        "{{\"class\":{},\"start\":{start},\"client\":{}",
        s.class, s.client
    )?;
    if s.weight != 1.0 {
        write!(out, ",\"weight\":{}", json(&s.weight))?;
    }
    if s.outside {
        out.push_str(",\"outside\":true");
    }
    if let Some(lasted) = s.lasted {
        write!(out, ",\"lasted\":{}", micros(lasted))?;
    }
    out.push_str(",\"groups\":[");
    comma(out, &s.groups, |out, g| {
        write!(out, "{{\"think\":{},\"connections\":[", micros(g.think))?;
        comma(out, &g.connections, connection)?;
        out.push_str("]}");
        Ok(())
    })?;
    out.push_str("]}");
    Ok(())
}

/// Bytes of a session's text.
fn length(s: &Session) -> usize {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = session(&mut text, s);
    // A comma and a line break follow it.
    text.len() + 2
}

/// Bytes that a session takes in the text of a model, with about what its paths take.
pub(crate) fn text_of(session: &Session) -> usize {
    let connections = session.connections().count();
    length(session) + WEIGHT + PATH * (1 + connections)
}

/// Bytes of a weight in the text, which a session has where others are dropped.
const WEIGHT: usize = 28;

/// Bytes of a path in the text, of which few connections have one of their own.
const PATH: usize = 40;

fn wire(out: &mut String, w: &Wire) -> std::fmt::Result {
    if w.ipv6 {
        out.push_str(",\"ipv6\":true");
    }
    if let Some(timestamps) = w.timestamps {
        write!(out, ",\"timestamps\":{timestamps}")?;
    }
    if let Some(sack) = w.sack {
        write!(out, ",\"sack\":{sack}")?;
    }
    if w.ends != [WireEnd::default(); 2] {
        out.push_str(",\"ends\":[");
        comma(out, &w.ends, |out, e| {
            write!(out, "[{},{},{}]", e.mss, json(&e.quick_acks), e.ack_every)
        })?;
        out.push(']');
    }
    Ok(())
}

fn connection(out: &mut String, c: &Connection) -> std::fmt::Result {
    write!(out, "{{\"gap\":{},\"server\":{}", micros(c.gap), c.server)?;
    if c.client_window != 0 || c.server_window != 0 {
        write!(out, ",\"window\":[{},{}]", c.client_window, c.server_window)?;
    }
    wire(out, &c.wire)?;
    if c.writes.iter().any(|w| !w.is_empty()) {
        out.push_str(",\"writes\":[");
        comma(out, &c.writes, |out, writes| {
            out.push('[');
            comma(out, writes, |out, w| {
                write!(out, "[{},{}]", w.after, micros(w.gap))
            })?;
            out.push(']');
            Ok(())
        })?;
        out.push(']');
    }
    if !c.waits.is_empty() {
        out.push_str(",\"waits\":[");
        comma(out, &c.waits, |out, w| {
            write!(out, "[{},{},{}]", w.turn, w.page, micros(w.pause))
        })?;
        out.push(']');
    }
    match (c.left_censored, c.right_censored) {
        (false, false) => {}
        (true, false) => out.push_str(",\"censored\":\"left\""),
        (false, true) => out.push_str(",\"censored\":\"right\""),
        (true, true) => out.push_str(",\"censored\":\"both\""),
    }
    if let Some(overlap) = c.overlap {
        write!(out, ",\"overlap\":{}", json(&overlap))?;
    }
    match &c.exchange {
        Exchange::Sequential(turns) => {
            out.push_str(",\"turns\":[");
            comma(out, turns, |out, t| {
                let (server, client) = (micros(t.server_think), micros(t.client_think));
                write!(out, "[{},{server},{},{client}]", t.request, t.response)
            })?;
            out.push_str("]}");
        }
        Exchange::Concurrent { up, down } => {
            let chain = |text: &mut String, units: &[Unit]| {
                comma(text, units, |text, u| {
                    write!(text, "[{},{},{}]", micros(u.pause), u.bytes, u.after)
                })
            };
            out.push_str(",\"up\":[");
            chain(out, up)?;
            out.push_str("],\"down\":[");
            chain(out, down)?;
            out.push_str("]}");
        }
        Exchange::Attempt { retries, refused } => {
            out.push_str(",\"syn_retries\":[");
            comma(out, retries, |out, &r| write!(out, "{}", micros(r)))?;
            write!(out, "],\"refused\":{refused}}}")?;
        }
        Exchange::Datagrams(d) => {
            if !d.is_whole() {
                out.push_str(",\"runs\":[");
                comma(out, &d.runs, |out, runs| {
                    out.push('[');
                    comma(out, runs, run)?;
                    out.push(']');
                    Ok(())
                })?;
                out.push_str("]}");
                return Ok(());
            }
            out.push_str(",\"datagrams\":[");
            comma(out, &d.packets, |out, &(gap, client, bytes)| {
                write!(out, "[{},{},{bytes}]", micros(gap), u8::from(client))
            })?;
            out.push_str("]}");
        }
    }
    Ok(())
}

fn run(out: &mut String, r: &Run) -> std::fmt::Result {
    let [least, most] = r.sizes;
    write!(
        out,
        "[{},{},{},{},{least},{most}]",
        micros(r.pause),
        micros(r.span),
        r.packets,
        r.bytes
    )
}

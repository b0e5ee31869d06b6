//! Checks the consistency of a model: indices, order, ranges.

use swell_base::Dur;

use super::ModelError;
use crate::thin::MOST_WEIGHT;
use crate::{Connection, Exchange, Model, Path, Run, Unit, Wait};

pub(super) fn connection_path(session: usize, group: usize, connection: usize) -> String {
    format!("sessions[{session}].groups[{group}].connections[{connection}]")
}

pub(crate) fn check(m: &Model) -> Result<(), ModelError> {
    if m.load.bytes[0].len() != m.load.bytes[1].len() {
        return Err(ModelError::invalid(
            "load.bytes",
            "the two directions differ in length",
        ));
    }
    if m.load.bin == Dur::ZERO && !m.load.bytes[0].is_empty() {
        return Err(ModelError::invalid("load.bin", "bins of no width"));
    }
    if m.load.lsd.iter().flatten().any(|e| !e.is_finite()) {
        return Err(ModelError::invalid("load.lsd", "not a finite number"));
    }
    for (side, paths) in [
        ("client_paths", &m.client_paths),
        ("server_paths", &m.server_paths),
    ] {
        for (i, p) in paths.iter().enumerate() {
            path(p).map_err(|reason| ModelError::invalid(format!("{side}[{i}]"), reason))?;
        }
    }
    let mut last = Dur::ZERO;
    for (i, s) in m.sessions.iter().enumerate() {
        let at = |key: &str| format!("sessions[{i}].{key}");
        index(s.class, m.classes.len(), "classes")
            .map_err(|r| ModelError::invalid(at("class"), r))?;
        index(s.client, m.client_paths.len(), "client_paths")
            .map_err(|r| ModelError::invalid(at("client"), r))?;
        if !(s.weight.is_finite() && s.weight > 0.0) {
            return Err(ModelError::invalid(
                at("weight"),
                format!("{} is not positive", s.weight),
            ));
        }
        if s.weight > MOST_WEIGHT {
            return Err(ModelError::invalid(
                at("weight"),
                format!("{:e} sessions are more than {MOST_WEIGHT:e}", s.weight),
            ));
        }
        if s.start < last {
            return Err(ModelError::invalid(
                at("start"),
                "sessions are not in order of their start",
            ));
        }
        if s.start >= m.duration {
            return Err(ModelError::invalid(
                at("start"),
                format!("not before `duration`, {}", m.duration),
            ));
        }
        last = s.start;
        if s.groups.is_empty() {
            return Err(ModelError::invalid(
                at("groups"),
                "a session without groups",
            ));
        }
        for (g, group) in s.groups.iter().enumerate() {
            if group.connections.is_empty() {
                return Err(ModelError::invalid(
                    at(&format!("groups[{g}].connections")),
                    "a group without connections",
                ));
            }
            for (c, connection) in group.connections.iter().enumerate() {
                check_connection(m, connection, m.classes[s.class as usize].udp)
                    .map_err(|reason| ModelError::invalid(connection_path(i, g, c), reason))?;
            }
        }
    }
    Ok(())
}

fn check_connection(m: &Model, c: &Connection, udp: bool) -> Result<(), String> {
    index(c.server, m.server_paths.len(), "server_paths").map_err(|r| format!("server: {r}"))?;
    if udp && c.writes.iter().any(|w| !w.is_empty()) {
        return Err("`writes` in a UDP class".into());
    }
    if c.writes.iter().flatten().any(|w| w.after == 0) {
        return Err("`writes` names an empty write".into());
    }
    waits(c)?;
    let units = c.exchange.units();
    if let Some(overlap) = c.overlap
        && (0..2).any(|i| overlap[i] as usize > units[i])
    {
        return Err(format!(
            "`overlap` is {overlap:?}, but there are {units:?} units"
        ));
    }
    match &c.exchange {
        Exchange::Datagrams(d) => {
            if !udp {
                return Err("datagrams in a class that is not UDP".into());
            }
            if !d.packets.is_empty() && !d.is_whole() {
                return Err("both `datagrams` and `runs`".into());
            }
            if d.packets.iter().any(|p| p.2 > MAX_PAYLOAD) {
                return Err(format!("a datagram of more than {MAX_PAYLOAD} bytes"));
            }
            for (end, runs) in d.runs.iter().enumerate() {
                for (i, r) in runs.iter().enumerate() {
                    run(r).map_err(|reason| format!("runs[{end}][{i}]: {reason}"))?;
                }
            }
        }
        // QUIC: requests and responses under congestion control.
        Exchange::Sequential(_) => {}
        _ if udp => return Err("a TCP exchange in a UDP class".into()),
        Exchange::Concurrent { up, down } => chains(up, down)?,
        Exchange::Attempt { .. } => {}
    }
    Ok(())
}

fn waits(c: &Connection) -> Result<(), String> {
    let Some(first) = c.waits.first() else {
        return Ok(());
    };
    let Exchange::Sequential(turns) = &c.exchange else {
        return Err("`waits` without `turns`".into());
    };
    if first.turn != 0 {
        return Err("`waits` must begin with turn 0, the opening".into());
    }
    if c.waits
        .iter()
        .any(|w| w.turn as usize >= turns.len().max(1))
    {
        return Err(format!(
            "`waits` names a turn beyond the {} there are",
            turns.len()
        ));
    }
    let ordered = |a: &[Wait]| a[0].turn < a[1].turn && a[0].page <= a[1].page;
    if !c.waits.windows(2).all(ordered) {
        return Err("`waits` must be in the order of turns and periods".into());
    }
    Ok(())
}

/// The largest UDP payload over IPv4 (RFC 768, RFC 791).
const MAX_PAYLOAD: u32 = 65_507;

fn run(r: &Run) -> Result<(), String> {
    let [least, most] = r.sizes;
    let n = u64::from(r.packets);
    if n == 0 {
        return Err("no datagram".into());
    }
    if n == 1 && r.span > Dur::ZERO {
        return Err("one datagram takes no time".into());
    }
    if least > most || most > MAX_PAYLOAD {
        return Err(format!("sizes from {least} to {most}"));
    }
    if !(n * u64::from(least)..=n * u64::from(most)).contains(&r.bytes) {
        return Err(format!(
            "{} bytes in {n} datagrams of {least} to {most}",
            r.bytes
        ));
    }
    Ok(())
}

/// Checks for cyclic waits. Each unit is sent as soon as the units that it comes after have been sent; all
/// units must be sent in the end.
fn chains(up: &[Unit], down: &[Unit]) -> Result<(), String> {
    let chains = [up, down];
    let mut sent = [0usize; 2];
    loop {
        let ready = (0..2).find(|&d| {
            let next = chains[d].get(sent[d]);
            next.is_some_and(|u| u.after as usize <= sent[1 - d])
        });
        match ready {
            Some(d) => sent[d] += 1,
            None if sent == [up.len(), down.len()] => return Ok(()),
            None => {
                return Err(format!(
                    "`up[{}]` and `down[{}]` come after units that never go",
                    sent[0], sent[1]
                ));
            }
        }
    }
}

fn index(i: u32, len: usize, list: &str) -> Result<(), String> {
    if (i as usize) < len {
        Ok(())
    } else {
        Err(format!(
            "{i} is not an index into `{list}`, which has {len}"
        ))
    }
}

fn path(p: &Path) -> Result<(), String> {
    for (name, loss) in [("up", p.loss_up), ("down", p.loss_down)] {
        if !(0.0..=1.0).contains(&loss) {
            return Err(format!("loss {name} is {loss}, not a share"));
        }
    }
    for (name, rate) in [("up", p.up), ("down", p.down)] {
        if rate.is_some_and(|r| r.bps() == 0) {
            return Err(format!("capacity {name} is zero; write null where unknown"));
        }
    }
    Ok(())
}

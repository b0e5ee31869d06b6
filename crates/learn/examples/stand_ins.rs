//! Makes stand-ins for two unavailable traces, and variants of one: `stand_ins MODELS-DIRECTORY`.
//!
//! Vishwanath & Vahdat, "Evaluating distributed systems: does background traffic matter?" (2008), table 2,
//! publish the load of the traces. Auckland: 3.3 and 2.2 Mbit/s of web users and proxies. Mawi2: 10.8 and
//! 1.1 Mbit/s of web users and few large news transfers. The users, with their sizes, pauses and paths,
//! come from the bundled models `isi-2pm` and `access-link`. Their number is solved for, so that both
//! directions have the published rate.
#![expect(clippy::disallowed_methods, reason = "an example writes files")]

use std::error::Error;
use std::path::Path as FilePath;

use swell_base::{Dur, Rate, Stream, Warning};
use swell_traffic::{
    Class, Connection, Exchange, Group, Knobs, Load, Model, Path, Provenance, Session, Totals,
    Turn, Wire,
};

/// Application items per part, for files of at most 60 kB.
const ITEMS: usize = 9_000;
/// Number of proxies of Auckland's users.
const PROXIES: u32 = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args()
        .nth(1)
        .ok_or("usage: stand_ins MODELS-DIRECTORY")?;
    let dir = FilePath::new(&dir);
    let read = |name: &str| -> Result<Model, Box<dyn Error>> {
        Ok(Model::from_reader(std::fs::File::open(
            dir.join(format!("{name}.json.zst")),
        )?)?)
    };
    let (isi, access) = (read("isi-2pm")?, read("access-link")?);
    let write = |model: &Model| -> Result<(), Box<dyn Error>> {
        model.check()?;
        let file = std::fs::File::create(dir.join(format!("{}.json.zst", model.name)))?;
        Ok(model.write(file, true)?)
    };

    let auckland = auckland(&isi);
    write(&auckland)?;
    let plain = Knobs::default();
    for (suffix, what, knobs) in [
        (
            "rsp2",
            "responses twice as large",
            Knobs {
                response: 2.0,
                ..plain.clone()
            },
        ),
        (
            "hb",
            "every round trip 4 ms (high burst)",
            Knobs {
                rtt: Some(Dur::from_millis(4)),
                ..plain.clone()
            },
        ),
        (
            "traffic1",
            "users who never pause",
            Knobs {
                think: 0.0,
                ..plain.clone()
            },
        ),
        (
            "traffic2",
            "access links of 2 Mbit/s",
            Knobs {
                access: Some(Rate::from_bps(2_000_000)),
                ..plain
            },
        ),
    ] {
        let mut variant = auckland.varied(&knobs, 1);
        variant.name = format!("auckland-{suffix}");
        variant.provenance.note =
            format!("Variant of auckland: {what}. {}", auckland.provenance.note);
        count(&mut variant);
        write(&variant)?;
    }
    write(&mawi2(&access))
}

/// 600 s, 3.3 Mbit/s to the users and 2.2 Mbit/s from the site's server; half of the users are behind
/// proxies.
fn auckland(isi: &Model) -> Model {
    let web = only(isi, "http");
    let (inside, outside) = (side(&web, false), side(&web, true));
    let [a, b] = solve([inside.rates(), outside.rates()], [2.2e6, 3.3e6]);
    let mut proxies = Vec::new();
    let mut users = Vec::new();
    for (i, session) in inside.sessions.iter().enumerate() {
        let mut session = session.clone();
        if i % 2 == 0 {
            session.client = (i as u32 / 2) % PROXIES;
            proxies.push(session);
        } else {
            users.push(session);
        }
    }
    let mut model = empty(
        "auckland",
        600,
        isi,
        "\
Stand-in for the trace Auckland of 2001 (3.3 and 2.2 Mbit/s, web and proxies). Measured: sizes, pauses and paths of web \
users (the bundled model isi-2pm, distributions measured at USC/ISI, ns-2.35). Drawn: the number of users, so that both directions \
have the trace's rate; half of them share six proxies. The trace's 155 000 connections are smaller than these users' ones.",
    );
    append(
        &mut model,
        &Model {
            sessions: users,
            ..inside.clone()
        },
        "http",
        a,
    );
    append(
        &mut model,
        &Model {
            sessions: proxies,
            ..inside.clone()
        },
        "squid",
        a,
    );
    append(&mut model, &outside, "http-server", b);
    finish(model)
}

/// 900 s, 10.8 Mbit/s to the users and 1.1 Mbit/s from them, mostly a few large transfers.
fn mawi2(access: &Model) -> Model {
    let users = access.thinned(ITEMS, 2);
    let rates = users.rates();
    // ACKs of the news transfers take part of the upstream rate.
    let times = 0.75e6 / rates[0];
    let news = 10.8e6 - times * rates[1];
    let mut model = empty(
        "mawi2",
        900,
        access,
        "\
Stand-in for the trace Mawi2 of 2004 (10.8 and 1.1 Mbit/s, web and few large transfers of news). Measured: sizes, pauses and paths \
of users (a sample of the bundled model access-link, ntop/nDPI, LGPL-3.0). Drawn: their number, and six connections of news, articles of 20 MB one after \
another, which a receive window over round trips of 50 to 90 ms holds to their share of the rate.",
    );
    append(&mut model, &users, "", times);
    let mut rng = Stream::new(1, "news");
    for _ in 0..6 {
        let rtt = Dur::from_millis(50 + rng.below(40));
        let rate = news / 6.0;
        // Headers and the first RTTs take a twentieth.
        let window = (rate / 8.0 * rtt.as_secs_f64() * 1.03) as u32;
        let articles = (rate * 0.96 / 8.0 * 900.0 / 20e6).round() as usize;
        let start = Dur::from_secs_f64(900.0 * rng.uniform());
        let turn = Turn {
            request: 60,
            server_think: Dur::ZERO,
            response: 20_000_000,
            client_think: Dur::ZERO,
        };
        transfer(
            &mut model,
            "nntp",
            start,
            rtt,
            window,
            &vec![turn; articles],
        );
    }
    finish(model)
}

/// Factors of the two parts so that both directions have the wanted rate.
fn solve(parts: [[f64; 2]; 2], want: [f64; 2]) -> [f64; 2] {
    let [[a, c], [b, d]] = parts;
    let det = a * d - b * c;
    [
        (want[0] * d - b * want[1]) / det,
        (a * want[1] - want[0] * c) / det,
    ]
}

fn only(model: &Model, class: &str) -> Model {
    let mut m = model.clone();
    m.sessions
        .retain(|s| m.classes[s.class as usize].name == class);
    m
}

fn side(model: &Model, outside: bool) -> Model {
    let mut m = model.clone();
    m.sessions.retain(|s| s.outside == outside);
    m
}

/// An empty model with the time-outs of `users`.
fn empty(name: &str, seconds: u64, users: &Model, note: &str) -> Model {
    Model {
        name: name.into(),
        provenance: Provenance {
            made_by: concat!("swell-learn ", env!("CARGO_PKG_VERSION")).into(),
            note: note.into(),
            ..Provenance::default()
        },
        warnings: vec![Warning::warning(
            "not-a-trace",
            "made from published aggregates and the users of other models, not from packets: there is no load over time and no \
             log-scale diagram to compare with; totals are application bytes",
        )],
        duration: Dur::from_secs(seconds),
        parameters: users.parameters,
        totals: Totals::default(),
        load: Load::default(),
        classes: Vec::new(),
        client_paths: Vec::new(),
        server_paths: Vec::new(),
        sessions: Vec::new(),
    }
}

/// Appends the sessions of `part`, `times` as many per second; in one class if `class` is not empty.
fn append(model: &mut Model, part: &Model, class: &str, times: f64) {
    let clients = model.client_paths.len() as u32;
    let servers = model.server_paths.len() as u32;
    let classes = model.classes.len() as u32;
    model.client_paths.extend(part.client_paths.iter().cloned());
    model.server_paths.extend(part.server_paths.iter().cloned());
    if class.is_empty() {
        model.classes.extend(part.classes.iter().cloned());
    } else {
        model.classes.push(Class {
            name: class.into(),
            udp: false,
        });
    }
    let stretch = model.duration.as_secs_f64() / part.duration.as_secs_f64();
    for session in &part.sessions {
        let mut s = session.clone();
        s.start = s.start.scale(stretch);
        s.weight *= times * stretch;
        s.client += clients;
        s.class = if class.is_empty() {
            s.class + classes
        } else {
            classes
        };
        for c in s.groups.iter_mut().flat_map(|g| &mut g.connections) {
            c.server += servers;
        }
        model.sessions.push(s);
    }
}

/// Adds one connection of a client on the left.
fn transfer(model: &mut Model, class: &str, start: Dur, rtt: Dur, window: u32, turns: &[Turn]) {
    let known = model.classes.iter().position(|c| c.name == class);
    let class = known.unwrap_or_else(|| {
        model.classes.push(Class {
            name: class.into(),
            udp: false,
        });
        model.classes.len() - 1
    });
    let line = Some(Rate::from_bps(10_000_000));
    let path = |round| Path {
        rtt: round,
        up: line,
        down: line,
        loss_up: 0.0,
        loss_down: 0.0,
        rtt_samples: 1,
        capacity_samples: 0,
        loss_samples: 0,
    };
    model.client_paths.push(path(Dur::ZERO));
    model.server_paths.push(path(rtt));
    model.sessions.push(Session {
        class: class as u32,
        start,
        weight: 1.0,
        client: model.client_paths.len() as u32 - 1,
        outside: false,
        groups: vec![Group {
            think: Dur::ZERO,
            connections: vec![Connection {
                gap: Dur::ZERO,
                server: model.server_paths.len() as u32 - 1,
                exchange: Exchange::Sequential(turns.to_vec()),
                client_window: window,
                server_window: 4 << 20,
                wire: Wire::default(),
                writes: [Vec::new(), Vec::new()],
                left_censored: false,
                right_censored: false,
                overlap: None,
            }],
        }],
    });
}

/// Sorts the sessions by start and computes the totals.
fn finish(mut model: Model) -> Model {
    model.sessions.sort_by_key(|s| s.start);
    count(&mut model);
    model
}

fn count(model: &mut Model) {
    let (mut bytes, mut connections) = ([0.0; 2], 0.0);
    for s in &model.sessions {
        let of = s.bytes();
        let toward = usize::from(s.outside);
        bytes[toward] += s.weight * of[0] as f64;
        bytes[1 - toward] += s.weight * of[1] as f64;
        connections += s.weight * s.connections().count() as f64;
    }
    model.totals = Totals {
        bytes: bytes.map(|b| b as u64),
        tcp_connections: connections as u64,
        ..Totals::default()
    };
    model.load = Load::default();
}

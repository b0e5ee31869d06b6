//! Makes the models that come from published figures: `stand_ins MODELS-DIRECTORY [NAME...]`. They are stand-ins for three
//! unavailable traces with variants of them, backups, and a game.
//!
//! Vishwanath & Vahdat, "Evaluating distributed systems: does background traffic matter?" (2008), table 2,
//! publish the load of the traces. Auckland: 3.3 and 2.2 Mbit/s of web users and proxies. Mawi: 7.8 and
//! 10 Mbit/s of web and rsync. Mawi2: 10.8 and 1.1 Mbit/s of web users and few large news transfers. The
//! users, with their sizes, pauses and paths, come from the bundled models `isi-2pm` and `access-link`.
//! Their number is solved for, so that both directions have the published rate. The variants are the
//! paper's: responses twice as large, every round trip 4 ms (high burst), users who never
//! pause, access links of 2 Mbit/s.
#![expect(clippy::disallowed_methods, reason = "an example writes files")]

use std::error::Error;
use std::path::Path as FilePath;

use swell_base::{Code, Dur, Rate, Stream, Warning};
use swell_traffic::{
    Class, Connection, Datagrams, Exchange, Group, Knobs, Load, Model, Parameters, Path,
    Provenance, Session, Totals, Turn, Wire,
};

/// Application items per part, for files of at most 60 kB.
const ITEMS: usize = 9_000;
/// Capacity of access links that do not matter, from and to the host, bits per second.
const LINE: [u64; 2] = [10_000_000; 2];
/// Capacity of servers' links that limit nothing: the traces were taken on links of 100 Mbit/s.
const FAST: [u64; 2] = [100_000_000; 2];
/// Number of proxies of Auckland's users.
const PROXIES: u32 = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args
        .next()
        .ok_or("usage: stand_ins MODELS-DIRECTORY [NAME...]")?;
    let dir = FilePath::new(&dir);
    let names: Vec<String> = args.collect();
    let read = |name: &str| -> Result<Model, Box<dyn Error>> {
        let file = std::fs::read(dir.join(format!("{name}.json.zst")))?;
        Ok(Model::from_slice(&file)?)
    };
    let (isi, access) = (read("isi-2pm")?, read("access-link")?);
    let write = |model: &Model| -> Result<(), Box<dyn Error>> {
        if !names.is_empty() && !names.contains(&model.name) {
            return Ok(());
        }
        model.check()?;
        let file = std::fs::File::create(dir.join(format!("{}.json.zst", model.name)))?;
        Ok(model.write(file, true)?)
    };

    let plain = Knobs::default();
    let larger = Knobs {
        response: 2.0,
        ..plain.clone()
    };
    let high_burst = Knobs {
        rtt: Some(Dur::from_millis(4)),
        ..plain.clone()
    };
    let restless = Knobs {
        think: 0.0,
        ..plain.clone()
    };
    let narrow = Knobs {
        access: Some(Rate::from_bps(2_000_000)),
        ..plain.clone()
    };
    let burst = "every round trip 4 ms (high burst)";
    let (auckland, mawi, news) = (auckland(&isi), mawi(&isi), mawi2(&access, LINE));
    // Over 4 ms, servers with lines like the clients' would hold the transfers back, and not the window.
    let mawi2 = mawi2(&access, FAST);
    for (stand_in, suffix, what, knobs) in [
        (&auckland, "rsp2", "responses twice as large", &larger),
        (&auckland, "hb", burst, &high_burst),
        (&auckland, "traffic1", "users who never pause", &restless),
        (&auckland, "traffic2", "access links of 2 Mbit/s", &narrow),
        (&mawi, "hb", burst, &high_burst),
        (&mawi2, "hb", burst, &high_burst),
    ] {
        let mut variant = stand_in.varied(knobs, 1);
        variant.name = format!("{}-{suffix}", stand_in.name);
        variant.provenance.note = format!(
            "Variant of {}: {what}. {}",
            stand_in.name, stand_in.provenance.note
        );
        // Published is the rate of the trace, not of its variants.
        variant.provenance.target = None;
        count(&mut variant);
        write(&variant)?;
    }
    for model in [
        &auckland,
        &mawi,
        &news,
        &backup(isi.parameters),
        &shooter(isi.parameters),
    ] {
        write(model)?;
    }
    Ok(())
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
        Some([2.2e6, 3.3e6]),
        isi.parameters,
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

/// 900 s, 7.8 Mbit/s to the left and 10 Mbit/s to the right, half of each web and half rsync.
fn mawi(isi: &Model) -> Model {
    let target = [10.0e6, 7.8e6];
    let web = only(isi, "http");
    let parts = [side(&web, false), side(&web, true)];
    let mut model = empty(
        "mawi",
        900,
        Some(target),
        isi.parameters,
        "\
Stand-in for the trace Mawi of 2004 (7.8 Mbit/s one way and 10 the other, web and rsync). Measured: sizes, pauses and paths of web users (the \
bundled model isi-2pm, distributions measured at USC/ISI, ns-2.35). Drawn: the number of users on either side, so that both directions \
have the trace's rate; eight rsync connections, four each way, files of 4 MB one after another, with half of each direction's bytes, which a receive \
window over round trips of 100 to 180 ms (the trace's link crosses the Pacific) holds to their share of the rate. The trace's 476 000 flows are smaller than these users' ones.",
    );
    let mut rng = Stream::new(1, "rsync");
    for i in 0..8 {
        let rtt = Dur::from_millis(100 + rng.below(80));
        let outside = i % 2 == 1;
        let share = target[usize::from(!outside)] / 2.0 / 4.0;
        // Headers and the first RTTs take a twentieth.
        let files = (share * 0.96 / 8.0 * 900.0 / 4e6).round() as usize;
        let window = (share / 8.0 * rtt.as_secs_f64() * 1.03) as u32;
        let turn = Turn {
            request: 200,
            server_think: Dur::ZERO,
            response: 4_000_000,
            client_think: Dur::ZERO,
        };
        Transfer {
            class: "rsync",
            outside,
            start: Dur::from_secs_f64(900.0 * rng.uniform()),
            rtt,
            windows: [window, 4 << 20],
            lines: [LINE, FAST],
            turns: vec![turn; files],
        }
        .add_to(&mut model);
    }
    let taken = model.rates();
    let left = [0, 1].map(|way| target[way] - taken[way]);
    let [a, b] = solve([parts[0].rates(), parts[1].rates()], left);
    append(&mut model, &parts[0], "http", a);
    append(&mut model, &parts[1], "http-server", b);
    finish(model)
}

/// 600 s of homes that upload changed files to a storage service.
fn backup(parameters: Parameters) -> Model {
    let mut model = empty(
        "backup",
        600,
        None,
        parameters,
        "\
Made, not measured: 24 homes that back up files to a storage service. The way of sending is published: chunks of at most 4 MB, each acknowledged before \
the next (Drago et al., Inside Dropbox, IMC 2012). Drawn: one batch a home in ten minutes, Pareto of shape 1 from 2 to 80 MB; uplinks of 1 to 20 Mbit/s; round trips of 20 to 120 ms.",
    );
    let mut rng = Stream::new(1, "backup");
    for _ in 0..24 {
        let up = [1, 2, 5, 10, 20][rng.below(5) as usize] * 1_000_000;
        let mut rest = (2e6 / (1.0 - rng.uniform())).min(80e6) as u64;
        let mut turns = Vec::new();
        while rest > 0 {
            let request = rest.min(4_000_000);
            rest -= request;
            turns.push(Turn {
                request,
                server_think: Dur::from_millis(50),
                response: 300,
                client_think: Dur::ZERO,
            });
        }
        let rtt = Dur::from_millis(20 + rng.below(100));
        // Enough for the uplink, and not so much that the queue before it outlasts a retransmission timer.
        let window = (up as f64 / 8.0 * rtt.as_secs_f64() * 1.5).max(65536.0) as u32;
        Transfer {
            class: "https",
            outside: false,
            start: Dur::from_secs_f64(600.0 * rng.uniform()),
            rtt,
            windows: [window; 2],
            lines: [[up, 5 * up], FAST],
            turns,
        }
        .add_to(&mut model);
    }
    finish(model)
}

/// 12 s of players of a shooter, each with about 500 packets. Intervals and sizes: Färber, "Network game traffic modelling" (NetGames 2002).
fn shooter(parameters: Parameters) -> Model {
    let mut model = empty(
        "shooter",
        12,
        None,
        parameters,
        "\
Made, not measured: 16 players of Counter-Strike, 12 s of a game each, which repeat. Published (Färber, Network game traffic modelling, NetGames 2002): packets to a player every \
55 ms, of 120 bytes, both with extreme-value distributions (scales 6 ms and 36 bytes); packets from a player every 40 ms, of 80 bytes (scale 5.7). Taken as UDP \
payload. Drawn: the number of players, the starts, and round trips of 20 to 100 ms. Packets do not depend on each other; a server's real ones leave for all players at once.",
    );
    model.classes.push(Class {
        name: "game".into(),
        udp: true,
    });
    let mut rng = Stream::new(1, "shooter");
    for player in 0..16 {
        model.client_paths.push(path(Dur::ZERO, LINE));
        let rtt = Dur::from_millis(20 + rng.below(80));
        model.server_paths.push(path(rtt, FAST));
        let mut packets = Vec::new();
        let mut extreme = |at: f64, scale: f64| at - scale * rng.exponential(1.0).ln();
        let mut next = [0.0, 25.0];
        let mut last = 0.0;
        while packets.len() < 500 {
            let client = next[0] <= next[1];
            let end = usize::from(!client);
            let now: f64 = next[end];
            let (size, gap) = match client {
                true => (extreme(80.0, 5.7), 40.0),
                false => (extreme(120.0, 36.0), extreme(55.0, 6.0).max(1.0)),
            };
            let since = Dur::from_micros(((now - last) * 1e3) as u64);
            packets.push((since, client, size.clamp(20.0, 1400.0) as u32));
            last = now;
            next[end] += gap;
        }
        let whole = Datagrams {
            packets,
            ..Datagrams::default()
        };
        let exchange = Exchange::Datagrams(whole);
        let start = Dur::from_secs_f64(12.0 * rng.uniform());
        model.sessions.push(session(
            0,
            start,
            false,
            player,
            connection(player, exchange, [0; 2]),
        ));
    }
    finish(model)
}

/// 900 s, 10.8 Mbit/s to the users and 1.1 Mbit/s from them, mostly a few large transfers from servers with these links.
fn mawi2(access: &Model, servers: [u64; 2]) -> Model {
    let users = access.thinned(ITEMS, 2);
    let rates = users.rates();
    // ACKs of the news transfers take part of the upstream rate.
    let times = 0.75e6 / rates[0];
    let news = 10.8e6 - times * rates[1];
    let mut model = empty(
        "mawi2",
        900,
        Some([1.1e6, 10.8e6]),
        access.parameters,
        "\
Stand-in for the trace Mawi2 of 2003 (10.8 and 1.1 Mbit/s, web and few large transfers of news). Measured: sizes, pauses and paths \
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
        Transfer {
            class: "nntp",
            outside: false,
            start,
            rtt,
            windows: [window, 4 << 20],
            lines: [LINE, servers],
            turns: vec![turn; articles],
        }
        .add_to(&mut model);
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

/// An empty model.
fn empty(
    name: &str,
    seconds: u64,
    target: Option<[f64; 2]>,
    parameters: Parameters,
    note: &str,
) -> Model {
    Model {
        name: name.into(),
        provenance: Provenance {
            made_by: concat!("swell-learn ", env!("CARGO_PKG_VERSION")).into(),
            note: note.into(),
            target,
            ..Provenance::default()
        },
        warnings: vec![Warning::warning(
            Code::NotATrace,
            "made from published figures and the users of other models, not from packets: there is no load over time and no \
             log-scale diagram to compare with; totals are application bytes",
        )],
        duration: Dur::from_secs(seconds),
        parameters,
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

/// A long transfer: one connection, limited by a receive window or an access link.
struct Transfer {
    class: &'static str,
    /// Whether the client is on the right.
    outside: bool,
    start: Dur,
    rtt: Dur,
    /// Receive windows of client and server, bytes.
    windows: [u32; 2],
    /// Capacity of the access links of client and server, from and to the host.
    lines: [[u64; 2]; 2],
    turns: Vec<Turn>,
}

impl Transfer {
    fn add_to(self, model: &mut Model) {
        let known = model.classes.iter().position(|c| c.name == self.class);
        let class = known.unwrap_or_else(|| {
            model.classes.push(Class {
                name: self.class.into(),
                udp: false,
            });
            model.classes.len() - 1
        });
        model.client_paths.push(path(Dur::ZERO, self.lines[0]));
        model.server_paths.push(path(self.rtt, self.lines[1]));
        let client = model.client_paths.len() as u32 - 1;
        let server = model.server_paths.len() as u32 - 1;
        let exchange = Exchange::Sequential(self.turns);
        let connection = connection(server, exchange, self.windows);
        let class = class as u32;
        let all = session(class, self.start, self.outside, client, connection);
        model.sessions.push(all);
    }
}

/// A path without loss.
fn path(rtt: Dur, [up, down]: [u64; 2]) -> Path {
    Path {
        rtt,
        up: Some(Rate::from_bps(up)),
        down: Some(Rate::from_bps(down)),
        loss_up: 0.0,
        loss_down: 0.0,
        rtt_samples: 1,
        capacity_samples: 0,
        loss_samples: 0,
    }
}

/// A session of one connection.
fn session(class: u32, start: Dur, outside: bool, client: u32, connection: Connection) -> Session {
    Session {
        class,
        start,
        weight: 1.0,
        client,
        outside,
        lasted: None,
        groups: vec![Group {
            think: Dur::ZERO,
            connections: vec![connection],
        }],
    }
}

fn connection(server: u32, exchange: Exchange, windows: [u32; 2]) -> Connection {
    Connection {
        gap: Dur::ZERO,
        server,
        exchange,
        client_window: windows[0],
        server_window: windows[1],
        wire: Wire::default(),
        writes: [Vec::new(), Vec::new()],
        waits: Vec::new(),
        left_censored: false,
        right_censored: false,
        overlap: None,
    }
}

/// Sorts the sessions by start and computes the totals.
fn finish(mut model: Model) -> Model {
    model.sessions.sort_by_key(|s| s.start);
    count(&mut model);
    model
}

fn count(model: &mut Model) {
    let (mut bytes, mut connections) = ([0.0; 2], [0.0; 2]);
    for s in &model.sessions {
        let of = s.bytes();
        let toward = usize::from(s.outside);
        bytes[toward] += s.weight * of[0] as f64;
        bytes[1 - toward] += s.weight * of[1] as f64;
        let udp = model.classes[s.class as usize].udp;
        connections[usize::from(udp)] += s.weight * s.connections().count() as f64;
    }
    model.totals = Totals {
        bytes: bytes.map(|b| b as u64),
        tcp_connections: connections[0] as u64,
        udp_flows: connections[1] as u64,
        ..Totals::default()
    };
    model.load = Load::default();
}

//! Worlds with known traffic.

use std::error::Error;
use std::path::Path;

use swell_base::{Dur, Rate, Stream};
use swell_experiment::bundled;
use swell_traffic::{
    Class, Connection, Datagrams, Exchange, Group, Load, Model, Parameters, Path as HostPath,
    Provenance, Run, Session, Totals, Turn, Wire,
};

use crate::changes::{Beside, Browsers};

/// Why something could not be run.
pub type Failed = Box<dyn Error + Send + Sync>;

/// A background, and the link that it shares.
#[derive(Clone, Debug)]
pub struct World {
    pub name: &'static str,
    /// A bundled model's name, or the file in which a made one is.
    pub model: String,
    pub sessions: f64,
    /// If there are any, the background is these, and `model` the page that they load.
    pub browsers: Option<Browsers>,
    /// Of the link in which it is tapped, up and down, Mbit/s.
    pub rates: [f64; 2],
}

impl World {
    /// The background.
    pub fn beside(&self) -> Beside<'_> {
        match self.browsers {
            Some(browsers) => Beside::Pages(&self.model, browsers),
            None => Beside::Model(&self.model, self.sessions),
        }
    }
}

/// Names of all worlds.
pub const NAMES: [&str; 8] = [
    "access-link",
    "isi-2pm",
    "quic-video",
    "udp-video",
    "kept-and-long",
    "users",
    "pages",
    "articles",
];

/// The world of this name; what is made up for it is written into `scratch`.
pub fn world(name: &'static str, scratch: &Path) -> Result<World, Failed> {
    let made = |model: Model| -> Result<String, Failed> {
        let file = scratch.join(format!("{name}.json"));
        let mut bytes = Vec::new();
        model.write(&mut bytes, false)?;
        std::fs::write(&file, bytes)?;
        Ok(file.display().to_string())
    };
    let (model, sessions, rates) = match name {
        "access-link" => (name.to_owned(), scaled(name, 5.0)?, [10.0, 10.0]),
        // Its users send three times as much as they receive.
        "isi-2pm" => (name.to_owned(), scaled(name, 5.0)?, [32.0, 10.0]),
        "quic-video" => (made(video(name, quic))?, 1.0, [10.0, 10.0]),
        "udp-video" => (made(video(name, stream))?, 1.0, [10.0, 10.0]),
        "kept-and-long" => (made(kept_and_long())?, 1.0, [10.0, 10.0]),
        "users" => (made(users())?, 1.0, [10.0, 10.0]),
        "pages" => {
            let file = scratch.join("page.har");
            std::fs::write(&file, page())?;
            (file.display().to_string(), 1.0, [10.0, 10.0])
        }
        "articles" => ("article".to_owned(), 1.0, [10.0, 10.0]),
        _ => {
            return Err(format!("no world is called `{name}`; one of {}", NAMES.join(", ")).into());
        }
    };
    let browsers = match name {
        "pages" => Some((12, 2)),
        "articles" => Some((3, 6)),
        _ => None,
    };
    Ok(World {
        browsers: browsers.map(|(clients, connections)| Browsers {
            clients,
            connections,
        }),
        name,
        model,
        sessions,
        rates,
    })
}

/// A page of 300 kB: HTML, and six objects that it names.
fn page() -> String {
    let sizes = [40_000, 80_000, 60_000, 50_000, 40_000, 20_000, 10_000];
    let entries: Vec<String> = (sizes.iter().enumerate())
        .map(|(i, size)| {
            let (after, by) = match i {
                0 => (0, ""),
                _ => (20, r#", "_initiator": {"url": "https://a/0"}"#),
            };
            format!(
                r#"{{"startedDateTime": "2024-01-01T00:00:00.{after:03}Z", "time": 10,
                "request": {{"url": "https://a/{i}", "headersSize": 400, "bodySize": 0}},
                "response": {{"_transferSize": {size}}}{by}}}"#
            )
        })
        .collect();
    format!(r#"{{"log": {{"entries": [{}]}}}}"#, entries.join(","))
}

/// The factor on the sessions of a bundled model for `mbit` Mbit/s down.
fn scaled(name: &str, mbit: f64) -> Result<f64, Failed> {
    let model = Model::from_slice(bundled::model(name).ok_or("not bundled")?)?;
    let own = model.totals.bytes[1] as f64 * 8.0 / model.duration.as_secs_f64() / 1e6;
    Ok(mbit / own)
}

/// Length of the synthetic worlds, seconds.
const LENGTH: u64 = 600;

fn empty(name: &str, class: &str, udp: bool) -> Model {
    Model {
        name: name.into(),
        provenance: Provenance::default(),
        warnings: Vec::new(),
        duration: Dur::from_secs(LENGTH),
        parameters: Parameters {
            group_timeout: Dur::from_secs(30),
            session_timeout: Dur::from_secs(300),
            quiet: Dur::from_millis(500),
        },
        totals: Totals::default(),
        load: Load::default(),
        classes: vec![Class {
            name: class.into(),
            udp,
        }],
        client_paths: Vec::new(),
        server_paths: Vec::new(),
        sessions: Vec::new(),
    }
}

fn path(rtt: Dur, down: Option<Rate>) -> HostPath {
    HostPath {
        rtt,
        up: None,
        down,
        loss_up: 0.0,
        loss_down: 0.0,
        rtt_samples: 9,
        capacity_samples: 0,
        loss_samples: 0,
    }
}

fn connection(server: u32, exchange: Exchange) -> Connection {
    Connection {
        gap: Dur::ZERO,
        server,
        exchange,
        client_window: 4 << 20,
        server_window: 65_535,
        wire: Wire {
            timestamps: Some(true),
            ..Wire::default()
        },
        writes: Default::default(),
        waits: Vec::new(),
        left_censored: false,
        right_censored: false,
        overlap: None,
    }
}

/// Adds a user with paths of its own who was there until `lasted`, and these connections, all begun at once.
fn user(
    model: &mut Model,
    (start, lasted): (Dur, Option<Dur>),
    [client, server]: [HostPath; 2],
    exchanges: Vec<Exchange>,
) {
    let place = model.client_paths.len() as u32;
    model.client_paths.push(client);
    model.server_paths.push(server);
    model.sessions.push(Session {
        class: 0,
        start,
        weight: 1.0,
        client: place,
        outside: false,
        lasted,
        groups: vec![Group {
            think: Dur::ZERO,
            connections: exchanges
                .into_iter()
                .map(|exchange| connection(place, exchange))
                .collect(),
        }],
    });
}

/// Sixty views of one to three minutes, ten at a time in the mean: 625 kB, then nine seconds of silence, 5 Mbit/s together.
/// `view` makes one of the silences before its segments.
fn video(name: &str, view: impl Fn(&[f64]) -> Exchange) -> Model {
    let mut model = empty(name, "quic", true);
    let mut rng = Stream::new(1, "counterfactual/video");
    for _ in 0..60 {
        let start = Dur::from_secs_f64(rng.uniform() * (LENGTH - 180) as f64);
        let silences: Vec<f64> = (0..6 + rng.below(9))
            .map(|i| match i {
                0 => 0.02,
                _ => 8.0 + 2.0 * rng.uniform(),
            })
            .collect();
        let exchange = view(&silences);
        let rtt = Dur::from_millis(20 + rng.below(60));
        user(
            &mut model,
            (start, None),
            [path(Dur::from_millis(2), None), path(rtt, None)],
            vec![exchange],
        );
    }
    model.sessions.sort_by_key(|s| s.start);
    model
}

/// Segments that the player asks for, as QUIC carries them: under congestion control.
fn quic(silences: &[f64]) -> Exchange {
    let think = |i: usize| {
        silences
            .get(i + 1)
            .map_or(Dur::ZERO, |&s| Dur::from_secs_f64(s))
    };
    let turns = (0..silences.len()).map(|i| Turn {
        request: 400,
        server_think: Dur::from_millis(20),
        response: 625_000,
        client_think: think(i),
    });
    Exchange::Sequential(turns.collect())
}

/// Segments that come within a second each, whatever the network does. Nobody asks for them, though they come from QUIC's
/// port: the learner has to tell.
fn stream(silences: &[f64]) -> Exchange {
    let mut runs = [Vec::new(), Vec::new()];
    for &silence in silences {
        // Reports of what arrived, one of ten packets, begin and end as the data do.
        for (way, packets, size) in [(0, 50, 40), (1, 500, 1250)] {
            runs[way].push(Run {
                pause: Dur::from_secs_f64(silence),
                span: Dur::from_secs(1),
                packets,
                bytes: u64::from(packets * size),
                sizes: [size, size],
            });
        }
    }
    Exchange::Datagrams(Datagrams {
        packets: Vec::new(),
        runs,
    })
}

/// Six downloads that outlast every run, at 400 kbit/s each because their lines are no faster, and 20 users who keep
/// a connection for all the time: pages of 30 to 300 kB, twelve seconds apart, and a sign of life every twenty seconds
/// on another connection.
fn kept_and_long() -> Model {
    let mut model = empty("kept-and-long", "https", false);
    let mut rng = Stream::new(1, "counterfactual/kept");
    for _ in 0..6 {
        let endless = Turn {
            request: 300,
            response: 30_000_000,
            ..Turn::default()
        };
        let line = Some(Rate::from_bps(400_000));
        let rtt = Dur::from_millis(20 + rng.below(60));
        let download = vec![Exchange::Sequential(vec![endless])];
        user(
            &mut model,
            (Dur::ZERO, Some(Dur::from_secs(LENGTH))),
            [path(Dur::from_millis(10), line), path(rtt, None)],
            download,
        );
    }
    for _ in 0..20 {
        let mut turns = Vec::new();
        let mut at = 0.0;
        while at < LENGTH as f64 {
            let think = rng.exponential(12.0);
            turns.push(Turn {
                request: 400,
                server_think: Dur::from_millis(20 + rng.below(80)),
                response: (30_000.0 * 10f64.powf(rng.uniform())) as u64,
                client_think: Dur::from_secs_f64(think),
            });
            at += think + 0.5;
        }
        let sign = Turn {
            request: 60,
            response: 60,
            client_think: Dur::from_secs(20),
            ..Turn::default()
        };
        let exchanges = vec![
            Exchange::Sequential(turns),
            Exchange::Sequential(vec![sign; LENGTH as usize / 20]),
        ];
        let start = Dur::from_secs_f64(rng.uniform());
        let rtt = Dur::from_millis(20 + rng.below(60));
        user(
            &mut model,
            (start, Some(Dur::from_secs(LENGTH) - start)),
            [path(Dur::from_millis(5), None), path(rtt, None)],
            exchanges,
        );
    }
    model.sessions.sort_by_key(|s| s.start);
    model
}

/// Twenty users who are there all the time. Each fetches 30 to 300 kB over a new connection, reads for three seconds, and
/// fetches the next. Two more send 100 kB now and then.
fn users() -> Model {
    let mut model = empty("users", "https", false);
    let mut rng = Stream::new(1, "counterfactual/users");
    for i in 0..22 {
        let start = Dur::from_secs_f64(3.0 * rng.uniform());
        let rtt = Dur::from_millis(20 + rng.below(60));
        let paths = [path(Dur::from_millis(5), None), path(rtt, None)];
        let lasted = Some(Dur::from_secs(LENGTH) - start);
        user(&mut model, (start, lasted), paths, Vec::new());
        let Some(session) = model.sessions.last_mut() else {
            continue;
        };
        let mut at = 0.0;
        session.groups.clear();
        while at < LENGTH as f64 - 3.0 {
            let think = match at {
                0.0 => 0.0,
                _ => rng.exponential(3.0),
            };
            let large = (30_000.0 * 10f64.powf(rng.uniform())) as u64;
            let turn = Turn {
                request: if i < 20 { 400 } else { large },
                server_think: Dur::from_millis(20 + rng.below(80)),
                response: if i < 20 { large } else { 200 },
                ..Turn::default()
            };
            session.groups.push(Group {
                think: Dur::from_secs_f64(think),
                connections: vec![connection(i, Exchange::Sequential(vec![turn]))],
            });
            at += think + 0.5;
        }
    }
    model.sessions.sort_by_key(|s| s.start);
    model
}

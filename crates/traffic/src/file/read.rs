//! Text to model: first the structure (by serde, which reports line and column), then the meaning (by
//! hand, which reports the JSON path).

use serde::Deserialize;
use swell_base::{Dur, Rate, Warning};

use super::ModelError;
use super::format::{FORMAT, MAX_BYTES, OLDEST, VERSION};
use crate::model::{
    Class, Connection, Exchange, Group, Load, Model, Parameters, Path, Provenance, Session, Totals,
    Turn, Unit, Wait, Wire, WireEnd, Write,
};

use crate::{Datagrams, Run};

mod check;
mod old;

pub(super) use check::check;

/// The longest time span accepted in a file: about thirty years. Sums of a few million of them still fit a
/// [`Dur`].
const MAX_MICROS: u64 = 1_000_000_000_000_000;

/// A span in whole microseconds, at most [`MAX_MICROS`].
#[derive(Clone, Copy)]
struct Micros(Dur);

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let us = u64::deserialize(d)?;
        if us > MAX_MICROS {
            return Err(serde::de::Error::custom(format!(
                "{us} microseconds is longer than thirty years"
            )));
        }
        Ok(Micros(Dur::from_micros(us)))
    }
}

#[derive(Deserialize)]
struct Head {
    format: Option<serde_json::Value>,
    version: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    name: String,
    provenance: Provenance,
    warnings: Vec<Warning>,
    duration: Micros,
    parameters: FileParameters,
    totals: FileTotals,
    load: FileLoad,
    classes: Vec<FileClass>,
    client_paths: Vec<FilePath>,
    server_paths: Vec<FilePath>,
    sessions: Vec<FileSession>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileParameters {
    group_timeout: Micros,
    session_timeout: Micros,
    quiet: Micros,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTotals {
    packets: [u64; 2],
    bytes: [u64; 2],
    tcp_connections: u64,
    tcp_handshakes: u64,
    udp_flows: u64,
    unmodelled_packets: u64,
    unmodelled_bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLoad {
    bin: Micros,
    bytes: [Vec<u64>; 2],
    #[serde(default)]
    filled: [bool; 2],
    lsd_bin: Micros,
    lsd: [Vec<f64>; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileClass {
    name: String,
    udp: bool,
}

#[derive(Deserialize)]
struct FilePath(Micros, Option<u64>, Option<u64>, f64, f64, u32, u32, u32);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSession {
    class: u32,
    start: Micros,
    client: u32,
    #[serde(default = "one")]
    weight: f64,
    #[serde(default)]
    outside: bool,
    lasted: Option<Micros>,
    groups: Vec<FileGroup>,
}

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileGroup {
    think: Micros,
    connections: Vec<FileConnection>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Censored {
    Left,
    Right,
    Both,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileConnection {
    gap: Micros,
    server: u32,
    #[serde(default)]
    window: [u32; 2],
    #[serde(default)]
    ipv6: bool,
    timestamps: Option<bool>,
    sack: Option<bool>,
    #[serde(default)]
    ends: [FileEnd; 2],
    #[serde(default)]
    writes: [Vec<(u64, Micros)>; 2],
    #[serde(default)]
    waits: Vec<(u32, u32, Micros)>,
    censored: Option<Censored>,
    overlap: Option<[u32; 2]>,
    turns: Option<Vec<(u64, Micros, u64, Micros)>>,
    up: Option<Vec<(Micros, u64, u32)>>,
    down: Option<Vec<(Micros, u64, u32)>>,
    syn_retries: Option<Vec<Micros>>,
    refused: Option<bool>,
    datagrams: Option<Vec<(Micros, u8, u32)>>,
    runs: Option<[Vec<FileRun>; 2]>,
    /// Version 2: total number of packets of the flow, of which only blocks are listed.
    packets: Option<u64>,
    block: Option<u32>,
}

/// Pause, span, datagrams, bytes, smallest and largest.
#[derive(Deserialize)]
struct FileRun(Micros, Micros, u32, u64, u32, u32);

/// Full segments' payload, segments acknowledged at once, segments per acknowledgement.
#[derive(Default, Deserialize)]
struct FileEnd(u16, Option<u8>, u8);

pub(super) fn parse(text: &[u8]) -> Result<Model, ModelError> {
    if text.len() > MAX_BYTES {
        return Err(ModelError::TooLarge);
    }
    let head: Head = serde_json::from_slice(text)?;
    match head.format {
        Some(f) if f == FORMAT => {}
        other => return Err(ModelError::Format(shown(other))),
    }
    let version = match head.version.as_ref().and_then(serde_json::Value::as_u64) {
        Some(v) if (OLDEST..=VERSION).contains(&v) => v,
        _ => return Err(ModelError::Version(shown(head.version))),
    };
    let file: File = serde_json::from_slice(text)?;
    let mut model = file.into_model()?;
    if version < VERSION {
        model.warnings.insert(0, old::warning(version));
    }
    check(&model)?;
    Ok(model)
}

/// An unexpected value, shortened for an error message.
fn shown(value: Option<serde_json::Value>) -> String {
    value.map_or("missing".to_string(), |v| {
        let text = v.to_string();
        if text.chars().count() > 40 {
            text.chars().take(40).chain(['…']).collect()
        } else {
            text
        }
    })
}

impl File {
    fn into_model(self) -> Result<Model, ModelError> {
        let p = self.parameters;
        let t = self.totals;
        let mut sessions = Vec::with_capacity(self.sessions.len());
        for (i, s) in self.sessions.into_iter().enumerate() {
            sessions.push(s.into_session(i)?);
        }
        Ok(Model {
            name: self.name,
            provenance: self.provenance,
            warnings: self.warnings,
            duration: self.duration.0,
            parameters: Parameters {
                group_timeout: p.group_timeout.0,
                session_timeout: p.session_timeout.0,
                quiet: p.quiet.0,
            },
            totals: Totals {
                packets: t.packets,
                bytes: t.bytes,
                tcp_connections: t.tcp_connections,
                tcp_handshakes: t.tcp_handshakes,
                udp_flows: t.udp_flows,
                unmodelled_packets: t.unmodelled_packets,
                unmodelled_bytes: t.unmodelled_bytes,
            },
            load: Load {
                bin: self.load.bin.0,
                bytes: self.load.bytes,
                filled: self.load.filled,
                lsd_bin: self.load.lsd_bin.0,
                lsd: self.load.lsd,
            },
            classes: self
                .classes
                .into_iter()
                .map(|c| Class {
                    name: c.name,
                    udp: c.udp,
                })
                .collect(),
            client_paths: self.client_paths.into_iter().map(Path::from).collect(),
            server_paths: self.server_paths.into_iter().map(Path::from).collect(),
            sessions,
        })
    }
}

impl From<FilePath> for Path {
    fn from(p: FilePath) -> Path {
        Path {
            rtt: p.0.0,
            up: p.1.map(Rate::from_bps),
            down: p.2.map(Rate::from_bps),
            loss_up: p.3,
            loss_down: p.4,
            rtt_samples: p.5,
            capacity_samples: p.6,
            loss_samples: p.7,
        }
    }
}

impl From<FileRun> for Run {
    fn from(r: FileRun) -> Run {
        Run {
            pause: r.0.0,
            span: r.1.0,
            packets: r.2,
            bytes: r.3,
            sizes: [r.4, r.5],
        }
    }
}

impl FileSession {
    fn into_session(self, i: usize) -> Result<Session, ModelError> {
        let mut groups = Vec::with_capacity(self.groups.len());
        for (g, group) in self.groups.into_iter().enumerate() {
            let mut connections = Vec::with_capacity(group.connections.len());
            for (c, connection) in group.connections.into_iter().enumerate() {
                connections.push(connection.into_connection().map_err(|reason| {
                    ModelError::invalid(check::connection_path(i, g, c), reason)
                })?);
            }
            groups.push(Group {
                think: group.think.0,
                connections,
            });
        }
        Ok(Session {
            class: self.class,
            start: self.start.0,
            weight: self.weight,
            client: self.client,
            outside: self.outside,
            lasted: self.lasted.map(|lasted| lasted.0),
            groups,
        })
    }
}

impl FileConnection {
    fn into_connection(self) -> Result<Connection, &'static str> {
        let chain = |units: Vec<(Micros, u64, u32)>| {
            units
                .into_iter()
                .map(|(pause, bytes, after)| Unit {
                    pause: pause.0,
                    bytes,
                    after,
                })
                .collect()
        };
        const ONE: &str = "needs exactly one of `turns`; `up` and `down`; `syn_retries` and `refused`; \
                           `datagrams`; `runs`";
        if self.datagrams.is_none() && (self.packets.is_some() || self.block.is_some()) {
            return Err(ONE);
        }
        let chains = (self.up, self.down);
        let attempt = (self.syn_retries, self.refused);
        let exchange = match (self.turns, chains, attempt, self.datagrams, self.runs) {
            (Some(turns), (None, None), (None, None), None, None) => Exchange::Sequential(
                turns
                    .into_iter()
                    .map(|(request, server, response, client)| Turn {
                        request,
                        server_think: server.0,
                        response,
                        client_think: client.0,
                    })
                    .collect(),
            ),
            (None, (Some(up), Some(down)), (None, None), None, None) => Exchange::Concurrent {
                up: chain(up),
                down: chain(down),
            },
            (None, (None, None), (Some(retries), Some(refused)), None, None) => Exchange::Attempt {
                retries: retries.into_iter().map(|r| r.0).collect(),
                refused,
            },
            (None, (None, None), (None, None), Some(datagrams), None) => {
                let mut packets = Vec::with_capacity(datagrams.len());
                for (gap, client, bytes) in datagrams {
                    if client > 1 {
                        return Err("a datagram's direction is 1 (from the client) or 0");
                    }
                    packets.push((gap.0, client == 1, bytes));
                }
                Exchange::Datagrams(old::datagrams(packets, self.packets, self.block))
            }
            (None, (None, None), (None, None), None, Some(runs)) => {
                Exchange::Datagrams(Datagrams {
                    packets: Vec::new(),
                    runs: runs.map(|runs| runs.into_iter().map(Run::from).collect()),
                })
            }
            _ => return Err(ONE),
        };
        let (left_censored, right_censored) = match self.censored {
            None => (false, false),
            Some(Censored::Left) => (true, false),
            Some(Censored::Right) => (false, true),
            Some(Censored::Both) => (true, true),
        };
        Ok(Connection {
            gap: self.gap.0,
            server: self.server,
            exchange,
            client_window: self.window[0],
            server_window: self.window[1],
            wire: Wire {
                ipv6: self.ipv6,
                timestamps: self.timestamps,
                sack: self.sack,
                ends: self.ends.map(|e| WireEnd {
                    mss: e.0,
                    quick_acks: e.1,
                    ack_every: e.2,
                }),
            },
            writes: self.writes.map(|writes| {
                writes
                    .into_iter()
                    .map(|(after, gap)| Write { after, gap: gap.0 })
                    .collect()
            }),
            waits: self
                .waits
                .into_iter()
                .map(|(turn, page, pause)| Wait {
                    turn,
                    page,
                    pause: pause.0,
                })
                .collect(),
            left_censored,
            right_censored,
            overlap: self.overlap,
        })
    }
}

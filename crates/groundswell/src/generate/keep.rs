//! Keeps the results: tables in parts, each complete at any time, and a manifest.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use swell_base::{Dur, Warning};
use swell_experiment::observe;
use swell_experiment::store::{AgentRow, LiveFlow, write_agents, write_live_flows};
use swell_generate::Flow;
use swell_generate::agent::{Controller, Order, Standing, TrafficPart};

use super::agents::{Agents, EndCause};
use crate::Error;
use crate::files::{PROGRESS, write};

/// Describes a run.
pub(super) const MANIFEST: &str = "manifest.json";

/// What the manifest of a run of live traffic names as its backend.
const BACKEND: &str = "live";

/// Maximum number of flows in a part of the table.
const PART: usize = 200_000;
/// Interval between parts: a twentieth of the elapsed time, but at least `SOON` and at most `LATE`. A run that is
/// killed loses no more than that.
const SOON: Duration = Duration::from_secs(10);
const LATE: Duration = Duration::from_secs(300);
/// Initial interval between samples in the table of agents. It doubles whenever the table exceeds `MOST_ROWS`.
const ROWS: Duration = Duration::from_secs(1);
const MOST_ROWS: usize = 100_000;
/// Maximum number of points of the time series for `swell watch`; beyond it, every second point is dropped.
const COURSE: usize = 600;

pub(super) struct Keeper {
    dir: PathBuf,
    name: String,
    manifest: serde_json::Value,
    begun: Instant,
    /// Name of each client, and its rows so far.
    clients: Vec<(String, u64)>,
    flows: Vec<LiveFlow>,
    parts: u32,
    written: Instant,
    total: u64,
    agents: Vec<AgentRow>,
    noted: Option<Duration>,
    spacing: Duration,
    loads: Vec<(f64, f64)>,
    /// Sums over all clients over time, for `swell watch`.
    course: Vec<[f64; 5]>,
    /// Offset of the first client's start on the controller's clock, in seconds.
    zero: Option<f64>,
}

impl Keeper {
    /// Creates the directory, and a manifest that marks the run as incomplete.
    pub fn new(
        dir: &Path,
        name: &str,
        order: &Order,
        [length, end]: [Option<Dur>; 2],
    ) -> Result<Keeper, Error> {
        let fail = |e: std::io::Error| Error::failed(format!("{}: {e}", dir.display()));
        std::fs::create_dir_all(dir.join("flows")).map_err(fail)?;
        let names = |all: &[swell_generate::agent::Address]| -> Vec<String> {
            all.iter().map(|a| a.name.clone()).collect()
        };
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        let manifest = serde_json::json!({
            "format": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "backend": BACKEND,
            "name": name,
            "complete": false,
            "clients": names(&order.clients),
            "servers": names(&order.servers),
            "traffic": traffic(&order.traffic),
            "length_s": length.map(Dur::as_secs_f64),
            "ends_s": end.map(Dur::as_secs_f64),
            "lease_s": order.lease.as_secs_f64(),
            "threads": order.threads,
            "keep": order.keep,
            "dscp": order.dscp,
            "congestion": order.congestion,
            "started": started.map_or(0, |d| d.as_secs()),
        });
        let keeper = Keeper {
            dir: dir.to_owned(),
            name: name.to_owned(),
            manifest,
            begun: Instant::now(),
            clients: names(&order.clients).into_iter().map(|n| (n, 0)).collect(),
            flows: Vec::new(),
            parts: 0,
            written: Instant::now(),
            total: 0,
            agents: Vec::new(),
            noted: None,
            spacing: ROWS,
            loads: Vec::new(),
            course: Vec::new(),
            zero: None,
        };
        keeper.save()?;
        Ok(keeper)
    }

    /// Fetches flows from the agents; true if more may be available at once.
    pub fn take(&mut self, controller: &mut Controller) -> Result<bool, Error> {
        let fetched = controller.flows();
        let more = fetched.iter().any(|batch| batch.more);
        let (clients, _) = controller.standing();
        // Time zero of the table is the start of the first client.
        let offsets = clients.iter().flat_map(|c| c.beginning);
        let zero = offsets.map(|b| b.offset_s).fold(f64::INFINITY, f64::min);
        let zero = *self
            .zero
            .get_or_insert(if zero.is_finite() { zero } else { 0.0 });
        for batch in fetched {
            // Each part of a client counts from its own beginning.
            let shift = batch.beginning.map_or(0.0, |b| b.offset_s - zero);
            if let Some((name, rows)) = self.clients.get_mut(batch.client) {
                *rows += batch.flows.len() as u64;
                let own = batch.flows.iter().map(|f| row(f, name, shift));
                self.flows.extend(own);
            }
        }
        let patience = (self.begun.elapsed() / 20).clamp(SOON, LATE);
        if self.flows.len() >= PART || self.written.elapsed() > patience {
            self.write()?;
        }
        Ok(more)
    }

    /// Samples the state of the agents.
    pub fn note(&mut self, now: Duration, controller: &Controller) -> Result<(), Error> {
        if self.noted.is_some_and(|then| now - then < self.spacing) {
            return Ok(());
        }
        self.noted = Some(now);
        if self.agents.len() >= MOST_ROWS {
            thin(&mut self.agents);
            self.spacing *= 2;
        }
        let (clients, servers) = controller.standing();
        let rows = rows(now, &clients, &servers);
        self.show(now, &rows);
        self.agents.extend(rows);
        Ok(())
    }

    /// Writes the state of the agents and the time series for `swell watch`. Errors are ignored: only `watch` needs it.
    fn show(&mut self, now: Duration, rows: &[AgentRow]) {
        let clients = || rows.iter().filter(|r| r.part == "client");
        let sum = |of: fn(&AgentRow) -> u64| clients().map(of).sum::<u64>() as f64;
        self.course.push([
            now.as_secs_f64(),
            sum(|r| r.bytes[0]),
            sum(|r| r.bytes[1]),
            sum(|r| r.transfers[1]),
            sum(|r| r.sessions),
        ]);
        if self.course.len() > COURSE {
            let mut place = 0;
            self.course.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
        let agents = rows.iter().map(|r| {
            serde_json::json!({
                "agent": r.agent, "part": r.part, "sessions": r.sessions, "open": r.open, "done": r.transfers[1],
                "failed": r.transfers[2], "sent": r.bytes[0], "received": r.bytes[1], "late_s": r.late,
            })
        });
        let agents: Vec<_> = agents.collect();
        let seen = serde_json::json!({
            "seconds": now.as_secs_f64(), "course": self.course, "agents": agents,
        });
        let _ = write(&self.dir.join(PROGRESS), seen.to_string().as_bytes());
    }

    /// Records a change of the load.
    pub fn loaded(&mut self, now: Duration, load: f64) {
        self.loads.push((now.as_secs_f64(), load));
    }

    /// Writes pending flows and rows.
    fn write(&mut self) -> Result<(), Error> {
        self.written = Instant::now();
        if !self.flows.is_empty() {
            let path = self.dir.join(format!("flows/{:05}.parquet", self.parts));
            whole(&path, |to| write_live_flows(to, &self.name, &self.flows))?;
            self.parts += 1;
            self.total += self.flows.len() as u64;
            self.flows.clear();
        }
        if !self.agents.is_empty() {
            let path = self.dir.join("agents.parquet");
            whole(&path, |to| write_agents(to, &self.name, &self.agents))?;
        }
        Ok(())
    }

    /// Writes a part without rows if there is no other, so that the table can be read.
    fn never_empty(&mut self) -> Result<(), Error> {
        if self.parts > 0 {
            return Ok(());
        }
        let path = self.dir.join("flows/00000.parquet");
        whole(&path, |to| write_live_flows(to, &self.name, &[]))
    }

    /// Writes the remaining data and the manifest. Returns the number of flows.
    pub fn finish(
        mut self,
        ended: EndCause,
        agents: &Agents,
        doubts: &[Warning],
    ) -> Result<u64, Error> {
        let written = self.write().and_then(|()| self.never_empty());
        let seconds = agents.seconds();
        self.show(
            self.begun.elapsed(),
            &rows(Duration::ZERO, &agents.clients, &agents.servers),
        );
        let complete = matches!(ended, EndCause::Played | EndCause::Duration) && written.is_ok();
        self.manifest["complete"] = complete.into();
        self.manifest["ended"] = ended.word().into();
        self.manifest["wall_s"] = self.begun.elapsed().as_secs_f64().into();
        self.manifest["played_s"] = seconds.into();
        self.manifest["flows"] = self.total.into();
        self.manifest["loads"] = serde_json::json!(self.loads);
        let [mut clients, servers] = agents.to_json();
        let views = clients.as_array_mut().into_iter().flatten();
        for (client, (_, rows)) in views.zip(&self.clients) {
            client["flows"] = (*rows).into();
        }
        self.manifest["agents"] = serde_json::json!({ "clients": clients, "servers": servers });
        self.manifest["lost"] = serde_json::json!(agents.lost);
        self.manifest["warnings"] = serde_json::json!(doubts);
        // Report the first failure.
        let saved = self.save();
        written?;
        saved?;
        Ok(self.total)
    }

    fn save(&self) -> Result<(), Error> {
        let text = format!("{:#}\n", self.manifest);
        write(&self.dir.join(MANIFEST), text.as_bytes())
    }
}

/// The state of the agents, one row each.
fn rows(now: Duration, clients: &[Standing], servers: &[Standing]) -> Vec<AgentRow> {
    let parts = [("client", clients), ("server", servers)];
    let all = parts
        .iter()
        .flat_map(|(part, all)| all.iter().map(move |standing| (*part, standing)));
    all.filter_map(|(part, standing)| {
        let s = standing.statistics.as_ref()?;
        let c = &s.counts;
        Some(AgentRow {
            time: now.as_secs_f64(),
            agent: standing.agent.clone(),
            part: part.into(),
            sessions: s.sessions,
            open: s.open,
            transfers: [c.begun, c.done, c.failed],
            bytes: [
                c.sent_bytes + c.datagram_bytes_sent,
                c.received_bytes + c.datagram_bytes_received,
            ],
            datagrams: [c.datagrams_sent, c.datagrams_received],
            late: s.late.p99_us / 1e6,
        })
    })
    .collect()
}

/// Drops every second instant, so that the table of a run of days stays small.
fn thin(rows: &mut Vec<AgentRow>) {
    let (mut at, mut keep) = (None, false);
    rows.retain(|row| {
        let time = Some(row.time.to_bits());
        keep ^= time != at;
        at = time;
        keep
    });
}

/// Fails unless the directory holds a run of live traffic. Experiments and other programs have manifests, too.
pub(super) fn is_run(dir: &Path) -> Result<(), Error> {
    let manifest = std::fs::read(dir.join(MANIFEST)).ok();
    let manifest =
        manifest.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    if manifest.is_some_and(|m| m["backend"] == BACKEND) {
        return Ok(());
    }
    let fail = Error::usage(format!(
        "{} holds something that is no run of `swell generate`",
        dir.display()
    ));
    Err(fail.hint("-o DIR puts the run elsewhere"))
}

/// Removes the files of an earlier run and nothing else.
pub(super) fn remove_run(dir: &Path) -> Result<(), Error> {
    is_run(dir)?;
    let fail = |e: std::io::Error| Error::failed(format!("{}: {e}", dir.display()));
    let gone = |removed: std::io::Result<()>| match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(fail(e)),
        _ => Ok(()),
    };
    match std::fs::read_dir(dir.join("flows")) {
        Ok(parts) => {
            for part in parts {
                let part = part.map_err(fail)?.path();
                if part
                    .extension()
                    .is_some_and(|e| e == "parquet" || e == "partial")
                {
                    gone(std::fs::remove_file(part))?;
                }
            }
            // Fails if something of the user's is left in it, which is intended.
            let _ = std::fs::remove_dir(dir.join("flows"));
        }
        Err(e) => gone(Err(e))?,
    }
    for name in ["agents.parquet", PROGRESS, MANIFEST] {
        gone(std::fs::remove_file(dir.join(name)))?;
    }
    Ok(())
}

/// Writes a file atomically.
fn whole<E: std::fmt::Display>(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), Error> {
    let partial = path.with_extension("partial");
    let fail = |e: &dyn std::fmt::Display| Error::failed(format!("{}: {e}", path.display()));
    if let Err(error) = write(&partial) {
        let _ = std::fs::remove_file(&partial);
        return Err(fail(&error));
    }
    std::fs::rename(&partial, path).map_err(|e| fail(&e))
}

/// The table row of a client's flow. `shift` (seconds) converts its times to the common clock of the table.
fn row(f: &Flow, client: &str, shift: f64) -> LiveFlow {
    // Clock errors may place a flow before the start; it is moved to zero.
    let seconds = |ns: u64| (ns as f64 / 1e9 + shift).max(0.0);
    let happened = |ns: u64| if ns == 0 { f64::NAN } else { seconds(ns) };
    LiveFlow {
        flow: observe::Flow {
            class: if f.datagrams { "udp" } else { "tcp" }.into(),
            start: seconds(f.begun),
            end: seconds(f.end),
            up: f.up,
            down: f.down,
            rtt: match f.rtt {
                u32::MAX => f64::NAN,
                us => f64::from(us) / 1e6,
            },
            retransmissions: if f.datagrams { 0 } else { f.again },
        },
        client: client.into(),
        source: match f.source.is_unspecified() {
            true => String::new(),
            false => f.source.to_string(),
        },
        destination: f.destination.to_string(),
        session: f.session,
        due: seconds(f.due),
        connected: happened(f.connected),
        first_byte: happened(f.first),
        outcome: f.outcome.name().into(),
    }
}

/// The traffic's specification, with a model's hash instead of its text.
fn traffic(traffic: &TrafficPart) -> serde_json::Value {
    match traffic {
        TrafficPart::Model(part) => {
            let hash = Sha256::digest(part.model.as_bytes());
            let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
            serde_json::json!({ "model": {
                "hash": hash, "seed": part.seed, "load": part.load, "compression": part.compression,
                "first": part.first, "cycle": part.cycle,
            } })
        }
        TrafficPart::Closed { sessions, up, down } => {
            serde_json::json!({ "closed": { "sessions": sessions, "up": up, "down": down } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_of_live_traffic_is_thrown_away() {
        let scratch = swell_host::scratch::Scratch::new().unwrap();
        let dir = scratch.path();
        let there = |name: &str| dir.join(name).exists();
        let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
        let strangers = [
            r#"{ "format": 1, "backend": "simulated" }"#,
            r#"{ "name": "a web application" }"#,
            "[]",
            "no JSON",
        ];
        for manifest in strangers {
            write(MANIFEST, manifest);
            assert!(is_run(dir).is_err() && remove_run(dir).is_err());
            assert!(there(MANIFEST), "{manifest}");
        }
        write(MANIFEST, r#"{ "format": 1, "backend": "live" }"#);
        // What cannot be removed is said, and the run stays one.
        write("flows", "a file");
        assert!(remove_run(dir).is_err() && there(MANIFEST));
        std::fs::remove_file(dir.join("flows")).unwrap();
        std::fs::create_dir(dir.join("flows")).unwrap();
        write("notes.txt", "mine");
        write("flows/00000.parquet", "");
        remove_run(dir).unwrap();
        assert!(!there(MANIFEST) && !there("flows") && there("notes.txt"));
        std::fs::create_dir(dir.join("flows")).unwrap();
        write("flows/notes.txt", "mine");
        write(MANIFEST, r#"{ "format": 1, "backend": "live" }"#);
        remove_run(dir).unwrap();
        assert!(!there(MANIFEST) && there("flows/notes.txt"));
    }

    #[test]
    fn every_second_instant_is_forgotten_with_all_its_agents() {
        let row = |time: u32, agent: &str| AgentRow {
            time: f64::from(time),
            agent: agent.into(),
            part: "client".into(),
            sessions: 0,
            open: 0,
            transfers: [0; 3],
            bytes: [0; 2],
            datagrams: [0; 2],
            late: 0.0,
        };
        let mut rows: Vec<AgentRow> = (0..5).flat_map(|t| [row(t, "a"), row(t, "b")]).collect();
        thin(&mut rows);
        let left: Vec<(f64, &str)> = rows.iter().map(|r| (r.time, r.agent.as_str())).collect();
        let both = |t: f64| [(t, "a"), (t, "b")];
        assert_eq!(left, [both(0.0), both(2.0), both(4.0)].concat());
    }
}

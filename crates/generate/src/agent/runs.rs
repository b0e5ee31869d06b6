//! The runs of an agent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use swell_base::{Dur, Time};

use super::api::{
    Change, ClientPart, LimitsView, NewRun, Part, RunView, ServerPart, StatisticsView, Status,
    TrafficPart, Wrong,
};
use crate::{
    Addresses, Client, Config, Hours, Key, Limits, Play, Role, Run, RunError, Server, Target,
};
use swell_host::clock::monotonic;

/// Most runs of an agent, including finished runs that were not deleted.
const MOST: usize = 64;
/// A finished run is deleted after this time.
const KEPT: Dur = Dur::from_secs(600);
/// Most flows per run that wait to be fetched, about a hundred bytes each.
const ROOM: usize = 500_000;
/// Permitted lengths of leases in seconds.
const LEASES: std::ops::RangeInclusive<f64> = 0.5..=60.0;
/// Longest elapsed time of a run that can be joined: ten years, in seconds.
const LONGEST_PLAY: f64 = 3e8;

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The request is invalid or not permitted.
    Wrong(Wrong),
    /// There is no such run.
    Unknown(u64),
    /// The agent does not permit this to anyone.
    Forbidden(String),
    /// Not possible in the current state.
    Conflict(String),
    /// The agent's machine lacks descriptors, memory or threads.
    Failed(String),
}

impl From<&str> for Refusal {
    fn from(wrong: &str) -> Refusal {
        Refusal::Wrong(wrong.into())
    }
}

impl From<Wrong> for Refusal {
    fn from(wrong: Wrong) -> Refusal {
        Refusal::Wrong(wrong)
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Refusal {
        let why = error.to_string();
        match error {
            RunError::Config(_) => Refusal::Wrong(why),
            RunError::Port { .. } => Refusal::Conflict(why),
            RunError::Socket(_) | RunError::Thread(_) => Refusal::Failed(why),
        }
    }
}

/// What an agent permits.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowed {
    pub address: Option<String>,
    pub pool: Addresses,
    pub port: u16,
    pub precise: bool,
    pub limits: Limits,
    pub hours: Option<Hours>,
}

impl Allowed {
    /// The lease to grant from now: as long as requested, but at most until the permitted hours end.
    fn span(&self, asked: Dur) -> Result<Dur, Refusal> {
        let Some(hours) = &self.hours else {
            return Ok(asked);
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        match hours.left(now.map_or(0.0, |d| d.as_secs_f64())) {
            Some(left) => Ok(asked.min(left)),
            None => Err(Refusal::Forbidden(format!(
                "this agent plays {hours} UTC only"
            ))),
        }
    }

    /// Checks that traffic may come from and go to all of these addresses.
    fn peers(&self, others: &Addresses) -> Result<(), Refusal> {
        let peers = &self.limits.peers;
        if peers.is_empty() || peers.covers(others) {
            return Ok(());
        }
        let (others, peers) = (others.texts().join(" "), peers.texts().join(" "));
        Err(Refusal::Forbidden(format!(
            "{others} is not within the peers of this agent ({peers})"
        )))
    }
}

pub(super) struct Runs {
    allowed: Allowed,
    instance: String,
    held: Mutex<Held>,
}

struct Held {
    /// The number of the latest run.
    latest: u64,
    runs: BTreeMap<u64, One>,
}

struct One {
    run: Arc<Run>,
    part: &'static str,
    traffic: Option<TrafficPart>,
    stopped: bool,
    /// When it was first found to be over.
    over: Option<Time>,
}

impl Runs {
    pub fn new(allowed: Allowed) -> Runs {
        // A random value that differs between starts.
        let instance = Key::random().map_or_else(|_| String::new(), Key::to_hex);
        // So do the numbers of runs, with 52 random bits: a controller whose run ended with an earlier start must not
        // change or delete the run of another one. JSON numbers are exact up to 2^53.
        let digits = instance.get(..13).unwrap_or_default();
        let held = Held {
            latest: u64::from_str_radix(digits, 16).unwrap_or(0),
            runs: BTreeMap::new(),
        };
        Runs {
            allowed,
            instance,
            held: Mutex::new(held),
        }
    }

    /// Poisoning is ignored: no thread panics while it holds the lock, and the data is consistent at all times.
    fn held(&self) -> MutexGuard<'_, Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.sweep();
        held
    }

    pub fn status(&self) -> Status {
        let held = self.held();
        Status {
            program: "swell-agent".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            instance: self.instance.clone(),
            address: self.allowed.address.clone(),
            pool: self.allowed.pool.texts(),
            limits: LimitsView {
                rate: self.allowed.limits.budget.as_ref().map(|b| b.rate()),
                peers: self.allowed.limits.peers.texts(),
                hours: self.allowed.hours.map(|h| h.to_string()),
            },
            processors: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            runs: held
                .runs
                .iter()
                .map(|(&id, one)| self.view_of(id, one))
                .collect(),
        }
    }

    pub fn begin(&self, asked: &NewRun) -> Result<RunView, Refusal> {
        let (config, part, traffic) = self.config(asked)?;
        let span = self.allowed.span(config.lease)?;
        self.held().room()?;
        let run = Run::new(config)?;
        run.renew(span);
        let mut held = self.held();
        held.room()?;
        held.latest += 1;
        let id = held.latest;
        let one = One {
            run: Arc::new(run),
            part,
            traffic,
            stopped: false,
            over: None,
        };
        let view = self.view_of(id, &one);
        held.runs.insert(id, one);
        Ok(view)
    }

    fn config(
        &self,
        asked: &NewRun,
    ) -> Result<(Config, &'static str, Option<TrafficPart>), Refusal> {
        let key = Key::from_hex(&asked.key).ok_or("key: 32 hexadecimal digits")?;
        let lease = lease(asked.lease_s)?;
        if asked.congestion.len() > 16 || asked.congestion.iter().any(|n| !is_name(n)) {
            return Err("congestion: at most 16 names, each of letters, digits and _".into());
        }
        let (role, part, traffic) = match &asked.part {
            Part::Server(part) => (Role::Server(self.server(part)?), "server", None),
            Part::Client(part) => {
                let role = Role::Client(self.client(part)?);
                (role, "client", Some(part.traffic.clone()))
            }
        };
        let config = Config {
            key,
            lease,
            congestion: asked.congestion.clone(),
            threads: asked.threads,
            precise: self.allowed.precise,
            room: if asked.flows { ROOM } else { 0 },
            elapsed: elapsed(asked.elapsed_s)?,
            limits: self.allowed.limits.clone(),
            role,
        };
        Ok((config, part, traffic))
    }

    /// Parses prefixes and checks that this agent permits them.
    fn pool(&self, texts: &[String]) -> Result<Addresses, Wrong> {
        let pool = Addresses::parse(texts).map_err(|e| format!("pool: {e}"))?;
        if self.allowed.pool.covers(&pool) {
            return Ok(pool);
        }
        let own = self.allowed.pool.texts().join(" ");
        Err(format!(
            "pool: {} is not within what this agent allows ({own}): start it with --pool",
            texts.join(" ")
        ))
    }

    fn server(&self, part: &ServerPart) -> Result<Server, Refusal> {
        if part.clients.len() > usize::from(u16::MAX) {
            return Err("clients: too many".into());
        }
        let clients = part.clients.iter().map(|texts| {
            let own = Addresses::parse(texts).map_err(|e| format!("clients: {e}"))?;
            self.allowed.peers(&own)?;
            Ok(own)
        });
        Ok(Server {
            clients: clients.collect::<Result<_, Refusal>>()?,
            pool: self.pool(&part.pool)?,
            port: match self.allowed.port {
                0 if (1..1024).contains(&part.port) => {
                    return Err("port: 1024 to 65535, or 0 for any".into());
                }
                0 => part.port,
                own => own,
            },
        })
    }

    fn client(&self, part: &ClientPart) -> Result<Client, Refusal> {
        if part.servers.len() > usize::from(u16::MAX) {
            return Err("servers: too many".into());
        }
        if part.dscp.len() > 64 || part.dscp.iter().any(|&d| d > 63) {
            return Err("dscp: at most 64 code points, each 0 to 63".into());
        }
        let target = |t: &super::api::TargetPart| -> Result<Target, Refusal> {
            let address: SocketAddr = t
                .address
                .parse()
                .map_err(|_| format!("servers: `{}` is not an address and port", t.address))?;
            let pool = Addresses::parse(&t.pool).map_err(|e| format!("servers: {e}"))?;
            let own = Addresses::parse(&[address.ip().to_string()]);
            self.allowed
                .peers(&own.map_err(|e| format!("servers: {e}"))?)?;
            self.allowed.peers(&pool)?;
            Ok(Target {
                address,
                datagrams: t.datagrams,
                pool,
            })
        };
        Ok(Client {
            index: part.index,
            of: part.of,
            pool: self.pool(&part.pool)?,
            servers: part.servers.iter().map(target).collect::<Result<_, _>>()?,
            plan: part.traffic.plan()?,
            play: Play {
                keep: part.keep,
                dscp: part.dscp.clone(),
            },
        })
    }

    pub fn change(&self, id: u64, change: &Change) -> Result<RunView, Refusal> {
        // Everything is checked before anything is changed.
        let lease = change.lease_s.map(lease).transpose()?;
        let lease = lease.map(|l| self.allowed.span(l)).transpose()?;
        let (run, played) = {
            let held = self.held();
            let one = held.runs.get(&id).ok_or(Refusal::Unknown(id))?;
            (Arc::clone(&one.run), one.traffic.clone())
        };
        // Parsing a large model takes a while. The lock is not held, so that other leases can be renewed meanwhile.
        let traffic = changed(change, played.as_ref())?;
        let plan = traffic.as_ref().map(TrafficPart::plan).transpose()?;
        let mut held = self.held();
        let one = held.runs.get_mut(&id).ok_or(Refusal::Unknown(id))?;
        if one.over.is_some() && (change.start.is_some() || lease.is_some()) {
            let state = one.state();
            return Err(Refusal::Conflict(format!("run {id} is {state}")));
        }
        if let (Some(plan), Some(new)) = (plan, traffic) {
            match one.traffic.as_ref().is_some_and(|old| old.is_load_of(&new)) {
                true => run.set_load(plan),
                false => run.set_plan(plan),
            }
            one.traffic = Some(new);
        }
        if let Some(lease) = lease {
            run.renew(lease);
        }
        if change.start == Some(true) {
            run.start();
        }
        if change.stop == Some(true) {
            one.stopped = true;
            drop(held);
            run.stop();
            held = self.held();
        }
        let after = held.runs.get(&id).ok_or(Refusal::Unknown(id))?;
        Ok(self.view_of(id, after))
    }

    pub fn delete(&self, id: u64) -> Result<(), Refusal> {
        let gone = self.held().runs.remove(&id);
        let one = gone.ok_or(Refusal::Unknown(id))?;
        one.run.stop();
        Ok(())
    }

    pub fn view(&self, id: u64) -> Result<RunView, Refusal> {
        let held = self.held();
        let one = held.runs.get(&id).ok_or(Refusal::Unknown(id))?;
        Ok(self.view_of(id, one))
    }

    fn view_of(&self, id: u64, one: &One) -> RunView {
        let run = &one.run;
        RunView {
            id,
            instance: self.instance.clone(),
            part: one.part.into(),
            state: one.state().into(),
            port: run.port(),
            datagrams: run.datagram_port(),
            elapsed_s: run.elapsed().as_secs_f64(),
        }
    }

    fn statistics_of(&self, id: u64, one: &One) -> StatisticsView {
        let (run, view) = (&one.run, self.view_of(id, one));
        StatisticsView::new(view, run.statistics(), run.flows_logged())
    }

    pub fn statistics(&self, id: u64) -> Result<StatisticsView, Refusal> {
        let held = self.held();
        let one = held.runs.get(&id).ok_or(Refusal::Unknown(id))?;
        Ok(self.statistics_of(id, one))
    }

    pub fn all_statistics(&self) -> Vec<StatisticsView> {
        let held = self.held();
        held.runs
            .iter()
            .map(|(&id, one)| self.statistics_of(id, one))
            .collect()
    }

    pub fn flows(&self, id: u64, from: u64, most: usize) -> Result<(u64, Vec<u8>), Refusal> {
        let run = {
            let held = self.held();
            let one = held.runs.get(&id).ok_or(Refusal::Unknown(id))?;
            Arc::clone(&one.run)
        };
        Ok(run.rows(from, most))
    }

    /// Ends all runs.
    pub fn end(&self) {
        let all = std::mem::take(&mut self.held().runs);
        for one in all.into_values() {
            one.run.stop();
        }
    }
}

/// The new traffic after a change, if it differs from `played`.
fn changed(change: &Change, played: Option<&TrafficPart>) -> Result<Option<TrafficPart>, Wrong> {
    if change.traffic.is_none() && change.load.is_none() {
        return Ok(None);
    }
    let played = played.ok_or("traffic, load: a server plays none")?;
    let traffic = change.traffic.as_ref().unwrap_or(played);
    match change.load {
        Some(load) => traffic.loaded(load).map(Some),
        None => Ok(Some(traffic.clone())),
    }
}

impl Held {
    /// Checks that another run is permitted.
    fn room(&self) -> Result<(), Refusal> {
        if self.runs.len() < MOST {
            return Ok(());
        }
        Err(Refusal::Conflict(format!(
            "there are {MOST} runs: delete some"
        )))
    }

    /// Detects finished runs, and removes those that finished long ago.
    fn sweep(&mut self) {
        let now = Time::from_nanos(monotonic());
        for one in self.runs.values_mut() {
            if one.over.is_none() && !one.run.is_running() {
                one.over = Some(now);
            }
        }
        let forgotten = |one: &One| one.over.is_some_and(|at| now.since(at) > KEPT);
        self.runs.retain(|_, one| !forgotten(one));
    }
}

impl One {
    fn state(&self) -> &'static str {
        let run = &self.run;
        if run.is_expired() {
            "expired"
        } else if self.stopped || !run.is_running() {
            "stopped"
        } else if !run.is_started() {
            "waiting"
        } else if self.traffic.is_some() && run.is_played() {
            "played"
        } else {
            "playing"
        }
    }
}

fn elapsed(seconds: f64) -> Result<Dur, Wrong> {
    if (0.0..=LONGEST_PLAY).contains(&seconds) {
        return Ok(Dur::from_secs_f64(seconds));
    }
    Err(format!("elapsed_s: 0 to {LONGEST_PLAY} seconds"))
}

fn lease(seconds: f64) -> Result<Dur, Wrong> {
    if LEASES.contains(&seconds) {
        return Ok(Dur::from_secs_f64(seconds));
    }
    Err("lease_s: 0.5 to 60 seconds".into())
}

/// Whether a text can be the name of a congestion control, which is that of a kernel module.
fn is_name(text: &str) -> bool {
    let part = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=15).contains(&text.len()) && text.bytes().all(part)
}

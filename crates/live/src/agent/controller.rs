//! Drives the agents of a run.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::Method;
use futures_util::future::join_all;
use swell_base::Dur;

use super::api::{
    Change, ClientPart, NewRun, Part, RunView, ServerPart, StatisticsView, Status, TargetPart,
    TrafficPart,
};
use super::remote::{Dial, Remote, RemoteError, Trust, dial};
use super::routes::FIRST;
use crate::generate::{Addresses, Flow, Key, ROW};

/// Where an agent is.
#[derive(Clone)]
pub struct Address {
    /// `HOST:PORT`.
    pub name: String,
    /// How it is reached, if not by its name.
    pub dial: Option<Dial>,
}

impl From<&str> for Address {
    fn from(name: &str) -> Address {
        Address {
            name: name.into(),
            dial: None,
        }
    }
}

/// What is to be played between whom.
#[derive(Clone)]
pub struct Order {
    /// Agents that are clients.
    pub clients: Vec<Address>,
    /// Agents that are servers.
    pub servers: Vec<Address>,
    /// What all of them know.
    pub token: String,
    /// Whom to trust to be they.
    pub trust: Trust,
    /// What is played.
    pub traffic: TrafficPart,
    /// How long an agent goes on without hearing from here.
    pub lease: Dur,
    /// Threads of every agent.
    pub threads: u16,
    /// Every transfer is logged.
    pub flows: bool,
    /// Connections stay open for further transfers.
    pub keep: bool,
    /// Code points in turns.
    pub dscp: Vec<u8>,
    /// Congestion controls in turns.
    pub congestion: Vec<String>,
}

/// Why a run did not come about.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// An agent is not there, or refused.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// It takes both.
    #[error("a run takes at least one client and one server")]
    Nobody,
    /// An agent of another version.
    #[error("{agent} is version {theirs}, this is {own}: let them be the same")]
    Version {
        /// Which one.
        agent: String,
        /// Its version.
        theirs: String,
        /// This program's.
        own: &'static str,
    },
    /// An agent's addresses are none.
    #[error("{agent}: {reason}")]
    Addresses {
        /// Which one.
        agent: String,
        /// What is wrong.
        reason: String,
    },
    /// Clients and servers did not find each other.
    #[error(
        "{client} and its servers did not agree within 10 s: {parties} of {servers} did; is the way \
         from it to their ports open?"
    )]
    Agreement {
        /// Which client.
        client: String,
        /// Servers that it agrees with.
        parties: u64,
        /// Servers that there are.
        servers: usize,
    },
    /// No runtime, no random number.
    #[error("{0}")]
    System(std::io::Error),
}

/// How an agent's part stands.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The agent.
    pub agent: String,
    /// What it last said; `None` before.
    pub statistics: Option<StatisticsView>,
    /// Why it could not be asked, if it could not.
    pub trouble: Option<String>,
    /// Flows of it that are lost, since it had no more room for them.
    pub lost: u64,
}

struct Party {
    remote: Remote,
    run: Option<u64>,
    /// Number of the next flow to be fetched.
    next: u64,
    standing: Standing,
    /// It is gone: it did not answer for longer than its lease.
    heard: Instant,
}

/// A run on several agents. When it is dropped without [`Controller::end`], leases run out.
pub struct Controller {
    runtime: tokio::runtime::Runtime,
    parties: Vec<Party>,
    clients: usize,
    lease: Dur,
}

/// An answer is waited for half as long as a lease lasts, within these.
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(10);
/// How long clients and servers have to agree.
const AGREEMENT: Duration = Duration::from_secs(10);

impl Controller {
    /// Has the agents make a run, and agree with each other. Nothing is played before
    /// [`Controller::start`].
    ///
    /// # Errors
    /// Where an agent is not there or refuses, or they do not reach each other. What was begun then ends
    /// with its lease, at the latest.
    pub fn new(order: &Order) -> Result<Controller, OrderError> {
        if order.clients.is_empty() || order.servers.is_empty() {
            return Err(OrderError::Nobody);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(OrderError::System)?;
        let all = order.clients.iter().chain(&order.servers);
        let party = |address: &Address| -> Result<Party, OrderError> {
            let how = address.dial.clone().unwrap_or_else(|| dial(&address.name));
            let patience = Duration::from_secs_f64(order.lease.as_secs_f64() / 2.0);
            let mut remote = Remote::new(&address.name, how, &order.trust, &order.token)?;
            remote.patience = patience.clamp(SHORT, LONG);
            Ok(Party::new(remote))
        };
        let parties = all.map(party).collect::<Result<_, _>>()?;
        let mut controller = Controller {
            runtime,
            parties,
            clients: order.clients.len(),
            lease: order.lease,
        };
        let made = controller.make(order);
        if made.is_err() {
            controller.abandon();
        }
        made?;
        Ok(controller)
    }

    fn make(&mut self, order: &Order) -> Result<(), OrderError> {
        let key = Key::random().map_err(OrderError::System)?;
        let (clients, servers) = self.parties.split_at_mut(self.clients);
        let number = clients.len();
        self.runtime.block_on(async {
            let mut pools = Vec::new();
            for party in clients.iter_mut() {
                pools.push(party.status().await?.pool);
            }
            let run = |part| NewRun {
                key: key.to_hex(),
                lease_s: order.lease.as_secs_f64(),
                congestion: order.congestion.clone(),
                threads: order.threads,
                flows: order.flows,
                part,
            };
            let mut targets = Vec::new();
            for party in servers.iter_mut() {
                let status = party.status().await?;
                let part = ServerPart {
                    clients: pools.clone(),
                    pool: status.pool.clone(),
                };
                let made = party.begin(&run(Part::Server(part))).await?;
                targets.push(party.target(&status, &made)?);
            }
            for (index, party) in clients.iter_mut().enumerate() {
                let part = ClientPart {
                    index: u16::try_from(index).unwrap_or(u16::MAX),
                    of: u16::try_from(number).unwrap_or(u16::MAX),
                    pool: pools[index].clone(),
                    servers: targets.clone(),
                    traffic: order.traffic.clone(),
                    keep: order.keep,
                    dscp: order.dscp.clone(),
                };
                party.begin(&run(Part::Client(part))).await?;
            }
            Ok::<(), OrderError>(())
        })?;
        self.agree()
    }

    /// Waits until every client and every server have agreed.
    fn agree(&mut self) -> Result<(), OrderError> {
        let begun = Instant::now();
        loop {
            self.renew();
            let servers = self.parties.len() - self.clients;
            let missing = self.parties[..self.clients].iter().find(|p| {
                let there = p.standing.statistics.as_ref().map_or(0, |s| s.parties);
                there < servers as u64
            });
            let Some(missing) = missing else {
                return Ok(());
            };
            if begun.elapsed() > AGREEMENT {
                let there = missing.standing.statistics.as_ref();
                return Err(OrderError::Agreement {
                    client: missing.remote.name.clone(),
                    parties: there.map_or(0, |s| s.parties),
                    servers,
                });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The play begins.
    ///
    /// # Errors
    /// Where an agent is gone.
    pub fn start(&mut self) -> Result<(), OrderError> {
        let change = Change {
            start: Some(true),
            ..Change::default()
        };
        // Servers first: they are ready when the first client begins.
        let parties = self.parties.iter_mut().rev();
        self.runtime.block_on(async {
            for party in parties {
                party.change(&change).await?;
            }
            Ok(())
        })
    }

    /// Renews all leases and asks how things stand.
    pub fn renew(&mut self) {
        let change = Change {
            lease_s: Some(self.lease.as_secs_f64()),
            ..Change::default()
        };
        // All at once: one that is gone must not keep the leases of others from being renewed.
        let visits = self.parties.iter_mut().map(|party| party.visit(&change));
        self.runtime.block_on(join_all(visits));
    }

    /// Another load from now on, of every client.
    ///
    /// # Errors
    /// Where an agent refuses.
    pub fn set_load(&mut self, load: f64) -> Result<(), OrderError> {
        let change = Change {
            load: Some(load),
            ..Change::default()
        };
        let clients = self.parties[..self.clients].iter_mut();
        self.runtime.block_on(async {
            for party in clients {
                party.change(&change).await?;
            }
            Ok(())
        })
    }

    /// Flows of all clients that have not been fetched yet, as many as each gives at once; with the number of
    /// the client.
    pub fn flows(&mut self) -> Vec<(usize, Vec<Flow>)> {
        let clients = self.parties[..self.clients].iter_mut();
        let fetched = self.runtime.block_on(join_all(clients.map(Party::flows)));
        // What could not be fetched is asked for again the next time.
        let fetched = fetched.into_iter().enumerate();
        let some = fetched.filter_map(|(n, flows)| flows.ok().map(|flows| (n, flows)));
        some.filter(|(_, flows)| !flows.is_empty()).collect()
    }

    /// How every agent stands: clients, then servers.
    pub fn standing(&self) -> (Vec<Standing>, Vec<Standing>) {
        let of = |parties: &[Party]| parties.iter().map(|p| p.standing.clone()).collect();
        let (clients, servers) = self.parties.split_at(self.clients);
        (of(clients), of(servers))
    }

    /// Whether every client has played everything, is over, or is gone.
    pub fn is_over(&self) -> bool {
        let lease = Duration::from_secs_f64(self.lease.as_secs_f64());
        self.parties[..self.clients].iter().all(|p| {
            let state = p.standing.statistics.as_ref().map(|s| s.run.state.as_str());
            let over = matches!(state, Some("played" | "stopped" | "expired"));
            over || p.heard.elapsed() > lease
        })
    }

    /// Stops everything. What was counted and logged can still be fetched until [`Controller::end`].
    pub fn stop(&mut self) {
        let change = Change {
            stop: Some(true),
            ..Change::default()
        };
        // Clients first: otherwise what servers reset would be failures.
        let (clients, servers) = self.parties.split_at_mut(self.clients);
        for parties in [clients, servers] {
            let visits = parties.iter_mut().map(|party| party.visit(&change));
            self.runtime.block_on(join_all(visits));
        }
    }

    /// Has the agents forget the run.
    pub fn end(mut self) {
        self.abandon();
    }

    fn abandon(&mut self) {
        let all = self.parties.iter_mut().map(Party::forget);
        self.runtime.block_on(join_all(all));
    }
}

impl Party {
    fn new(remote: Remote) -> Party {
        Party {
            standing: Standing {
                agent: remote.name.clone(),
                statistics: None,
                trouble: None,
                lost: 0,
            },
            remote,
            run: None,
            next: 0,
            heard: Instant::now(),
        }
    }

    async fn status(&mut self) -> Result<Status, OrderError> {
        let path = "/v1/status";
        let status: Status = self.remote.call(Method::GET, path, None::<&()>).await?;
        let own = env!("CARGO_PKG_VERSION");
        if status.version != own {
            return Err(OrderError::Version {
                agent: self.remote.name.clone(),
                theirs: status.version,
                own,
            });
        }
        Ok(status)
    }

    async fn begin(&mut self, run: &NewRun) -> Result<RunView, OrderError> {
        let made: RunView = self
            .remote
            .call(Method::POST, "/v1/runs", Some(run))
            .await?;
        self.run = Some(made.id);
        Ok(made)
    }

    /// The server as its clients are to know it.
    fn target(&self, status: &Status, made: &RunView) -> Result<TargetPart, OrderError> {
        let wrong = |reason: String| OrderError::Addresses {
            agent: self.remote.name.clone(),
            reason,
        };
        let pool = Addresses::parse(&status.pool).map_err(|e| wrong(e.to_string()))?;
        let own: Option<IpAddr> = match &status.address {
            Some(text) => Some(
                text.parse()
                    .map_err(|_| wrong(format!("address {text}?")))?,
            ),
            None => pool.host(0).or(self.remote.address),
        };
        let own = own.ok_or_else(|| wrong("it has no address".into()))?;
        Ok(TargetPart {
            address: SocketAddr::new(own, made.port).to_string(),
            datagrams: made.datagrams,
            pool: status.pool.clone(),
        })
    }

    fn path(&self, rest: &str) -> Option<String> {
        self.run.map(|id| format!("/v1/runs/{id}{rest}"))
    }

    async fn change(&mut self, change: &Change) -> Result<(), OrderError> {
        if let Some(path) = self.path("") {
            let _: RunView = self.remote.call(Method::PATCH, &path, Some(change)).await?;
        }
        Ok(())
    }

    async fn forget(&mut self) {
        if let Some(id) = self.run.take() {
            let path = format!("/v1/runs/{id}");
            // Who does not answer forgets it by itself.
            let _ = self.remote.ask(Method::DELETE, &path, Bytes::new()).await;
        }
    }

    /// Changes something and looks. An agent that is gone is asked again and again: it may come back.
    async fn visit(&mut self, change: &Change) {
        match self.change(change).await {
            Ok(()) => self.look().await,
            Err(error) => {
                self.standing.trouble = Some(error.to_string());
                // A run that is over takes no change, but tells how it ended.
                if matches!(error, OrderError::Remote(RemoteError::Refused { .. })) {
                    self.look().await;
                }
            }
        }
    }

    async fn look(&mut self) {
        let Some(path) = self.path("/statistics") else {
            return;
        };
        match self.remote.call(Method::GET, &path, None::<&()>).await {
            Ok(statistics) => {
                self.standing.statistics = Some(statistics);
                self.heard = Instant::now();
            }
            Err(error) => self.standing.trouble = Some(error.to_string()),
        }
    }

    async fn flows(&mut self) -> Result<Vec<Flow>, RemoteError> {
        let Some(path) = self.path(&format!("/flows?after={}", self.next)) else {
            return Ok(Vec::new());
        };
        let (headers, rows) = self.remote.ask(Method::GET, &path, Bytes::new()).await?;
        let first = headers
            .get(FIRST)
            .and_then(|v| v.to_str().ok()?.parse().ok());
        let first: u64 = first.unwrap_or(self.next);
        self.standing.lost += first.saturating_sub(self.next);
        let (rows, _) = rows.as_chunks::<ROW>();
        self.next = first + rows.len() as u64;
        Ok(rows.iter().filter_map(Flow::decode).collect())
    }
}

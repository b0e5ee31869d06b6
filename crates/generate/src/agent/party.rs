//! One agent of a run, as its controller sees it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::Method;
use swell_base::Dur;
use tokio::task::JoinHandle;

use super::api::{Change, NewRun, RunView, StatisticsView, Status, TargetPart};
use super::order::OrderError;
use super::remote::{Remote, RemoteError};
use super::routes::FIRST;
use crate::{Addresses, Flow, ROW};

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
    /// Flows of it that are not fetched yet.
    pub waiting: u64,
    /// How long ago it last answered.
    pub silent: Duration,
}

/// When the last request came: a controller that stopped asking must not keep traffic going.
#[derive(Clone)]
pub(super) struct Attention(Arc<Mutex<Instant>>);

impl Attention {
    pub fn new() -> Attention {
        Attention(Arc::new(Mutex::new(Instant::now())))
    }

    pub fn pay(&self) {
        *lock(&self.0) = Instant::now();
    }

    fn is_gone(&self) -> bool {
        lock(&self.0).elapsed() > ABSENCE
    }
}

/// A controller that has looked at nothing for so long hangs.
const ABSENCE: Duration = Duration::from_secs(60);
/// How an agent stands is asked at least this often.
const LOOK: Duration = Duration::from_millis(500);
/// A lease is renewed so many times in its length.
const BEATS: u32 = 4;

/// Nobody panics while holding one, and what they hold is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of an agent.
struct Seen {
    statistics: Option<StatisticsView>,
    trouble: Option<String>,
    heard: Instant,
}

pub(super) struct Party {
    /// For what is asked now and then; leases are renewed over another connection.
    pub remote: Remote,
    /// To make that other one.
    spare: Option<Remote>,
    run: Option<u64>,
    /// Number of the next flow to be fetched.
    next: u64,
    lost: u64,
    seen: Arc<Mutex<Seen>>,
    beat: Option<JoinHandle<()>>,
}

impl Party {
    /// An agent that is reached over either of two connections.
    pub fn new(remote: Remote, spare: Remote) -> Party {
        Party {
            remote,
            spare: Some(spare),
            run: None,
            next: 0,
            lost: 0,
            seen: Arc::new(Mutex::new(Seen {
                statistics: None,
                trouble: None,
                heard: Instant::now(),
            })),
            beat: None,
        }
    }

    pub fn standing(&self) -> Standing {
        let seen = lock(&self.seen);
        let flows = seen.statistics.as_ref().map_or(0, |s| s.flows);
        Standing {
            agent: self.remote.name.clone(),
            statistics: seen.statistics.clone(),
            trouble: seen.trouble.clone(),
            lost: self.lost,
            waiting: flows.saturating_sub(self.next),
            silent: seen.heard.elapsed(),
        }
    }

    /// Servers, or clients, that it has agreed with.
    pub fn parties(&self) -> u64 {
        let seen = lock(&self.seen);
        seen.statistics.as_ref().map_or(0, |s| s.parties)
    }

    /// Whether its part is over, or it has not answered for as long as its lease lasts.
    pub fn is_over(&self, lease: Duration) -> bool {
        let seen = lock(&self.seen);
        let state = seen.statistics.as_ref().map(|s| s.run.state.as_str());
        let over = matches!(state, Some("played" | "stopped" | "expired"));
        over || seen.heard.elapsed() > lease
    }

    pub async fn status(&mut self) -> Result<Status, OrderError> {
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

    /// Has it make a run, and keeps its lease from now on.
    pub async fn begin(
        &mut self,
        run: &NewRun,
        lease: Dur,
        attention: &Attention,
    ) -> Result<RunView, OrderError> {
        let made: RunView = self
            .remote
            .call(Method::POST, "/v1/runs", Some(run))
            .await?;
        self.run = Some(made.id);
        if let Some(mut remote) = self.spare.take() {
            let lease = Duration::from_secs_f64(lease.as_secs_f64());
            remote.patience = lease / 2;
            let keeping = keep(
                remote,
                made.id,
                lease,
                Arc::clone(&self.seen),
                attention.clone(),
            );
            self.beat = Some(tokio::spawn(keeping));
        }
        Ok(made)
    }

    /// The server as its clients are to know it.
    pub fn target(&self, status: &Status, made: &RunView) -> Result<TargetPart, OrderError> {
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

    pub async fn change(&mut self, change: &Change) -> Result<(), OrderError> {
        if let Some(path) = self.path("") {
            let _: RunView = self.remote.call(Method::PATCH, &path, Some(change)).await?;
        }
        Ok(())
    }

    /// Stops its part, and sees how that left it.
    pub async fn stop(&mut self) {
        if let Some(beat) = self.beat.take() {
            // What it learns last must not come behind what is learnt here.
            beat.abort();
            let _ = beat.await;
        }
        let Some(run) = self.run else { return };
        let change = Change {
            stop: Some(true),
            ..Change::default()
        };
        visit(&mut self.remote, run, &change, &self.seen).await;
    }

    pub async fn look(&mut self) {
        if let Some(run) = self.run {
            look(&mut self.remote, run, &self.seen).await;
        }
    }

    /// Flows that have not been fetched yet, as many as it gives at once.
    pub async fn flows(&mut self) -> Result<Vec<Flow>, RemoteError> {
        let Some(path) = self.path(&format!("/flows?after={}", self.next)) else {
            return Ok(Vec::new());
        };
        let (headers, rows) = self.remote.ask(Method::GET, &path, Bytes::new()).await?;
        let first = headers
            .get(FIRST)
            .and_then(|v| v.to_str().ok()?.parse().ok());
        let first: u64 = first.unwrap_or(self.next);
        self.lost += first.saturating_sub(self.next);
        let (rows, _) = rows.as_chunks::<ROW>();
        self.next = first.saturating_add(rows.len() as u64);
        Ok(rows.iter().filter_map(Flow::decode).collect())
    }

    /// Has it forget the run.
    pub async fn forget(&mut self) {
        if let Some(beat) = self.beat.take() {
            beat.abort();
        }
        if let Some(path) = self.path("") {
            self.run = None;
            // Who does not answer forgets it by itself.
            let _ = self.remote.ask(Method::DELETE, &path, Bytes::new()).await;
        }
    }
}

/// Renews the lease of a run and looks how it stands, again and again, whatever the controller's thread is
/// doing: it may be writing to a slow disk, or waiting for an agent that is gone.
async fn keep(
    mut remote: Remote,
    run: u64,
    lease: Duration,
    seen: Arc<Mutex<Seen>>,
    attention: Attention,
) {
    let change = Change {
        lease_s: Some(lease.as_secs_f64()),
        ..Change::default()
    };
    let mut ticks = tokio::time::interval((lease / BEATS).min(LOOK));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !attention.is_gone() {
        ticks.tick().await;
        visit(&mut remote, run, &change, &seen).await;
    }
}

/// Changes something and looks. An agent that is gone is asked again and again: it may come back.
async fn visit(remote: &mut Remote, run: u64, change: &Change, seen: &Mutex<Seen>) {
    let path = format!("/v1/runs/{run}");
    let changed: Result<RunView, RemoteError> =
        remote.call(Method::PATCH, &path, Some(change)).await;
    if let Err(error) = changed {
        lock(seen).trouble = Some(error.to_string());
        // A finished run takes no change, but reports how it ended.
        if !matches!(error, RemoteError::Refused { .. }) {
            return;
        }
    }
    look(remote, run, seen).await;
}

async fn look(remote: &mut Remote, run: u64, seen: &Mutex<Seen>) {
    let path = format!("/v1/runs/{run}/statistics");
    let said = remote.call(Method::GET, &path, None::<&()>).await;
    let mut seen = lock(seen);
    match said {
        Ok(statistics) => {
            seen.statistics = Some(statistics);
            seen.heard = Instant::now();
        }
        Err(error) => seen.trouble = Some(error.to_string()),
    }
}

//! The controller's view of one agent in a run.

mod heartbeat;
mod seen;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::Method;
use swell_base::Dur;
use tokio::task::JoinHandle;

use super::api::{Change, NewRun, Part, RunView, StatisticsView, Status, TargetPart};
use super::clock::{Beginning, Clock};
use super::errors::RemoteError;
use super::order::OrderError;
use super::remote::Remote;
use super::routes::{FIRST, FLOWS};
use crate::{Addresses, Flow, ROW};
use heartbeat::{keep, look, visit};
pub(super) use seen::Attention;
use seen::{Seen, lock};

/// The state of an agent's part.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The agent.
    pub agent: String,
    /// Its last report, including what earlier parts of it counted; `None` before the first.
    pub statistics: Option<StatisticsView>,
    /// Why a request to it last failed, also if later ones did not.
    pub trouble: Option<String>,
    /// Flows of it that were lost because its log overflowed or it was restarted.
    pub lost: u64,
    /// Flows of it that have not been fetched yet.
    pub waiting: u64,
    /// Whether it refuses to play, such as outside its hours. The reason is in `trouble`.
    pub refuses: bool,
    /// Whether it is not sending because its lease expired or it does not answer.
    pub missing: bool,
    /// Total time for which it has been missing.
    pub away: Duration,
    /// How often it came back and was readmitted.
    pub returns: u32,
    /// When it began to send, once that is known.
    pub beginning: Option<Beginning>,
}

/// A missing agent is waited for during this many leases, if no other client is sending.
const PATIENCE: u32 = 3;
/// A returning agent has this long to agree with a server before its traffic starts.
const AGREEMENT: Duration = Duration::from_secs(2);

/// Flows of one part of an agent, and when that part began.
type Batch = (Vec<Flow>, Option<Beginning>);

pub(super) struct Party {
    /// Connection for occasional requests; leases are renewed over another one.
    pub remote: Remote,
    /// Used to open that other connection.
    spare: Option<Remote>,
    /// The part that it was asked for.
    part: Option<NewRun>,
    /// Where clients reach it, if it is a server.
    address: String,
    lease: Duration,
    /// Number of the next flow to fetch.
    next: u64,
    lost: u64,
    /// Flows that were fetched from earlier parts.
    fetched: VecDeque<Batch>,
    /// A load that its run does not have yet, because it did not answer.
    load: Option<f64>,
    /// The counters of earlier parts.
    earlier: Option<StatisticsView>,
    /// How long it was missing before it came back, and how often.
    away: Duration,
    returns: u32,
    seen: Arc<Mutex<Seen>>,
    beat: Option<JoinHandle<()>>,
}

impl Party {
    /// An agent with two connections to it.
    pub fn new(remote: Remote, spare: Remote, lease: Dur) -> Party {
        Party {
            remote,
            spare: Some(spare),
            part: None,
            address: String::new(),
            lease: Duration::from_secs_f64(lease.as_secs_f64()),
            next: 0,
            lost: 0,
            fetched: VecDeque::new(),
            load: None,
            earlier: None,
            away: Duration::ZERO,
            returns: 0,
            seen: Arc::new(Mutex::new(Seen {
                run: None,
                statistics: None,
                trouble: None,
                refuses: false,
                heard: Instant::now(),
                asked: Instant::now(),
                unknown: false,
                clock: Clock::default(),
            })),
            beat: None,
        }
    }

    pub fn standing(&self, begun: Option<Instant>) -> Standing {
        let seen = lock(&self.seen);
        let flows = seen.statistics.as_ref().map_or(0, |s| s.flows);
        let fetched: usize = self.fetched.iter().map(|batch| batch.0.len()).sum();
        let missing = seen.missing(self.lease);
        let both = match (seen.statistics.clone(), &self.earlier) {
            (Some(now), Some(earlier)) => Some(now.after(earlier)),
            (now, earlier) => now.or_else(|| earlier.clone()),
        };
        Standing {
            agent: self.remote.name.clone(),
            refuses: seen.refuses,
            statistics: both,
            trouble: seen.trouble.clone(),
            lost: self.lost,
            waiting: flows.saturating_sub(self.next) + fetched as u64,
            missing: missing.is_some(),
            away: self.away + missing.map_or(Duration::ZERO, |since| since.elapsed()),
            returns: self.returns,
            beginning: begun.and_then(|begun| seen.clock.beginning(begun)),
        }
    }

    /// Number of servers, or clients, that it has agreed with.
    pub fn parties(&self) -> u64 {
        let seen = lock(&self.seen);
        seen.statistics.as_ref().map_or(0, |s| s.parties)
    }

    /// The index of a server, or client, that it has not agreed with.
    pub fn absent(&self) -> Option<usize> {
        let seen = lock(&self.seen);
        let first = seen.statistics.as_ref()?.absent.first();
        first.copied().map(usize::from)
    }

    /// The reasons why it refused connections, the last one last.
    pub fn refused(&self) -> Vec<String> {
        let seen = lock(&self.seen);
        let statistics = seen.statistics.as_ref();
        statistics.map_or_else(Vec::new, |s| s.refused.clone())
    }

    /// Whether this is an address of a client.
    pub fn is_at(&self, address: Option<&str>) -> bool {
        let Some(address) = address.and_then(|a| a.parse::<IpAddr>().ok()) else {
            return false;
        };
        let pool = match self.part.as_ref().map(|run| &run.part) {
            Some(Part::Client(client)) => Addresses::parse(&client.pool).ok(),
            _ => None,
        };
        self.remote.address == Some(address) || pool.is_some_and(|p| p.contains(address))
    }

    /// Where clients reach it, if it is a server.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether its part is over, or it has been missing for longer than the controller waits.
    pub fn is_over(&self) -> bool {
        let seen = lock(&self.seen);
        let gone = seen.missing(self.lease);
        let over = matches!(seen.state(), Some("played" | "stopped"));
        over || gone.is_some_and(|since| since.max(seen.asked).elapsed() > self.lease * PATIENCE)
    }

    /// Whether it answers but has no running part.
    pub fn may_return(&self) -> bool {
        let seen = lock(&self.seen);
        seen.unknown || seen.state() == Some("expired")
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

    /// Creates its part of the run, and renews the lease from now on.
    pub async fn begin(
        &mut self,
        run: &NewRun,
        attention: &Attention,
    ) -> Result<RunView, OrderError> {
        let made: RunView = self
            .remote
            .call(Method::POST, "/v1/runs", Some(run))
            .await?;
        let mut part = run.clone();
        if let Part::Server(server) = &mut part.part {
            // Clients already know the server by this port.
            server.port = made.port;
        }
        self.part = Some(part);
        // The part has the last load.
        self.load = None;
        {
            let mut seen = lock(&self.seen);
            seen.run = Some((made.id, made.instance.clone()));
            seen.statistics = None;
            seen.unknown = false;
            seen.refuses = false;
            seen.heard = Instant::now();
            seen.clock.forget();
        }
        if let Some(mut remote) = self.spare.take() {
            remote.patience = self.lease / 2;
            let seen = Arc::clone(&self.seen);
            let keeping = keep(remote, self.lease, seen, attention.clone());
            self.beat = Some(tokio::spawn(keeping));
        }
        Ok(made)
    }

    pub fn note_trouble(&self, why: &OrderError) {
        let mut seen = lock(&self.seen);
        seen.trouble = Some(why.to_string());
        seen.refuses = matches!(why, OrderError::Remote(error) if error.is_forbidden());
    }

    /// Whether its traffic can have a load, even if it does not answer. Otherwise the load would end its run once it does.
    pub fn may_have(&self, load: f64) -> Result<(), OrderError> {
        let Some(NewRun {
            part: Part::Client(client),
            ..
        }) = &self.part
        else {
            return Ok(());
        };
        let plan = client.traffic.loaded(load).and_then(|part| part.plan());
        plan.map(|_| ()).map_err(OrderError::Load)
    }

    /// Records another load, for parts that it gets later. `set`: its run has this load already.
    pub fn note_load(&mut self, load: f64, set: bool) {
        self.load = (!set).then_some(load);
        if let Some(NewRun {
            part: Part::Client(client),
            ..
        }) = &mut self.part
            && let Ok(traffic) = client.traffic.loaded(load)
        {
            client.traffic = traffic;
        }
    }

    /// Sets the load that its run does not have yet, if it answers again.
    pub async fn catch_up(&mut self) {
        let Some(load) = self.load else {
            return;
        };
        if lock(&self.seen).missing(self.lease).is_some() {
            return;
        }
        let change = Change {
            load: Some(load),
            ..Change::default()
        };
        match self.change(&change).await {
            Ok(()) => self.load = None,
            Err(why) => {
                self.note_trouble(&why);
                // It would be so in every round.
                if matches!(&why, OrderError::Remote(error) if error.is_invalid()) {
                    self.load = None;
                }
            }
        }
    }

    /// Gives an agent that was cut off or restarted a new part, in a run whose traffic began at `begun`. Before that,
    /// it fetches the counters and flows of the earlier part, as far as they still exist.
    pub async fn admit(&mut self, begun: Instant, attention: &Attention) -> Result<(), OrderError> {
        let status = self.status().await?;
        let (since, run) = {
            let mut seen = lock(&self.seen);
            // The following steps may fail. It has been away since then, whatever it answers before it sends again.
            seen.unknown = true;
            (seen.heard, seen.run.clone())
        };
        match run {
            Some((id, instance)) if instance == status.instance => {
                // A part whose start was not answered may be playing, and would have new flows for ever.
                let stop = Change {
                    stop: Some(true),
                    ..Change::default()
                };
                // What is known of its beginning stays: its flows are placed by that.
                let path = format!("/v1/runs/{id}");
                let _: Result<RunView, RemoteError> =
                    self.remote.call(Method::PATCH, &path, Some(&stop)).await;
                look(&mut self.remote, &self.seen).await;
                let beginning = lock(&self.seen).clock.beginning(begun);
                loop {
                    // Many flows take long to fetch, and the other leases must not expire meanwhile.
                    attention.pay();
                    match self.flows_of(id).await {
                        Ok(flows) if flows.is_empty() => break,
                        Ok(flows) => self.fetched.push_back((flows, beginning)),
                        // The agent deletes a part that ended long ago, with its flows.
                        Err(error) if error.is_unknown() => {
                            self.lose_rest();
                            break;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                // If the deletion fails, the agent forgets the part by itself.
                let _ = self.remote.ask(Method::DELETE, &path, Bytes::new()).await;
            }
            Some(_) => self.lose_rest(),
            None => {}
        }
        {
            let mut seen = lock(&self.seen);
            // The following steps may fail, and the earlier counters must not be added twice.
            seen.run = None;
            if let Some(last) = seen.statistics.take() {
                self.earlier = Some(match &self.earlier {
                    Some(earlier) => last.after(earlier),
                    None => last,
                });
            }
            self.next = 0;
        }
        let Some(mut part) = self.part.clone() else {
            return Ok(());
        };
        part.elapsed_s = begun.elapsed().as_secs_f64();
        self.begin(&part, attention).await?;
        if matches!(part.part, Part::Client(_)) {
            // Transfers that are due before the first agreement would be withheld.
            let asked = Instant::now();
            while self.parties() == 0 && asked.elapsed() < AGREEMENT {
                tokio::time::sleep(Duration::from_millis(20)).await;
                look(&mut self.remote, &self.seen).await;
            }
        }
        let start = Change {
            start: Some(true),
            ..Change::default()
        };
        let started = self.change(&start).await;
        self.away += since.elapsed();
        if started.is_err() {
            let mut seen = lock(&self.seen);
            // Otherwise the new part would wait for its start until the end.
            seen.unknown = true;
            // The time until now is counted.
            seen.heard = Instant::now();
        }
        started?;
        self.returns += 1;
        Ok(())
    }

    /// Counts the flows that were not fetched as lost.
    fn lose_rest(&mut self) {
        let flows = lock(&self.seen).statistics.as_ref().map_or(0, |s| s.flows);
        self.lost += flows.saturating_sub(self.next);
    }

    /// The server's addresses as its clients need them.
    pub fn target(&mut self, status: &Status, made: &RunView) -> Result<TargetPart, OrderError> {
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
        self.address = SocketAddr::new(own, made.port).to_string();
        Ok(TargetPart {
            address: self.address.clone(),
            datagrams: made.datagrams,
            pool: status.pool.clone(),
        })
    }

    fn path(&self) -> Option<String> {
        let seen = lock(&self.seen);
        seen.run.as_ref().map(|(id, _)| format!("/v1/runs/{id}"))
    }

    pub async fn change(&mut self, change: &Change) -> Result<(), OrderError> {
        if let Some(path) = self.path() {
            let sent = Instant::now();
            let view: RunView = self.remote.call(Method::PATCH, &path, Some(change)).await?;
            lock(&self.seen)
                .clock
                .add(sent, Instant::now(), view.elapsed_s);
        }
        Ok(())
    }

    /// Stops its part and reads its final state. Returns false if it does not answer, or no longer has the part.
    pub async fn stop(&mut self) -> bool {
        if let Some(beat) = self.beat.take() {
            // Otherwise a late result of this task could overwrite the final state.
            beat.abort();
            let _ = beat.await;
        }
        let change = Change {
            stop: Some(true),
            ..Change::default()
        };
        visit(&mut self.remote, &change, &self.seen).await
    }

    pub async fn look(&mut self) {
        look(&mut self.remote, &self.seen).await;
    }

    /// Flows that have not been fetched yet, at most as many as the agent returns at once, and whether more may be there.
    /// The run's traffic began at `begun`.
    pub async fn flows(&mut self, begun: Option<Instant>) -> Result<(Batch, bool), RemoteError> {
        if let Some(batch) = self.fetched.pop_front() {
            return Ok((batch, true));
        }
        let run = lock(&self.seen).run.clone();
        let flows = match run {
            Some((id, _)) => self.flows_of(id).await?,
            None => Vec::new(),
        };
        let beginning = begun.and_then(|begun| lock(&self.seen).clock.beginning(begun));
        let more = flows.len() >= FLOWS;
        Ok(((flows, beginning), more))
    }

    async fn flows_of(&mut self, id: u64) -> Result<Vec<Flow>, RemoteError> {
        let path = format!("/v1/runs/{id}/flows?after={}", self.next);
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

    /// Deletes its part of the run.
    pub async fn forget(&mut self) {
        if let Some(beat) = self.beat.take() {
            beat.abort();
        }
        if let Some(path) = self.path() {
            lock(&self.seen).run = None;
            // If the agent does not answer, it forgets the part by itself.
            let _ = self.remote.ask(Method::DELETE, &path, Bytes::new()).await;
        }
    }
}

//! The connections of agents that dial in to their controller.
//!
//! A connection passes three checks before it is used. The handshake shows that the agent has the key of a certificate
//! that is trusted. The certificate belongs to exactly one agent that is expected. The agent answers a request with the
//! token, and tells which start of the program it is: all connections of one agent must be from one start. Whoever fails
//! is disconnected and counted. What has not passed is bounded in number and time, as on agents.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::Method;
use futures_util::future::join_all;
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use super::dial_out::{PING, keep_alive};
use super::errors::RemoteError;
use super::order::{Address, OrderError};
use super::rendezvous::Rendezvous;
use super::request::{Sender, request};
use super::tls::{self, Callers, TlsError, Trust};
use super::visitors::{self, Accepted};

/// Connections that were refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Their number.
    pub count: u64,
    /// The last one: who it was and why, in a sentence.
    pub last: Option<String>,
    /// For each agent that more than one host claims to be: a sentence.
    pub twice: BTreeMap<String, String>,
}

/// Connections of an agent that a run needs: for requests, and for renewing the lease.
const NEEDED: usize = 2;
/// Most connections of one agent.
const LINES: usize = 8;
/// Longest status of an agent, in bytes.
const LONGEST: usize = 1 << 20;
/// An idle connection on which a request has no answer for this long is given up.
const SILENCE: Duration = Duration::from_secs(2);
/// How long agents may take to dial in before a run is created. An agent that has waited for its controller tries again
/// every few seconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// A request to an agent without any connection fails after this time. An agent whose connections broke usually has
/// dialled again by then.
const ABSENCE: Duration = Duration::from_secs(2);
/// Interval at which waiting is reconsidered.
const LOOK: Duration = Duration::from_millis(100);

/// An agent that is expected.
struct Expected {
    name: String,
    /// The fingerprint of its certificate, or the name in it.
    by: By,
    /// Held while its connections are probed and another one gets its seat, so that no connection is judged by a probe
    /// that is not over, or by one of an earlier seat.
    turn: tokio::sync::Mutex<()>,
}

enum By {
    Fingerprint([u8; 32]),
    Name(ServerName<'static>),
}

/// The connections of agents that dialled in.
pub(super) struct Lobby {
    address: SocketAddr,
    expected: Vec<Expected>,
    token: String,
    inside: Mutex<Inside>,
    /// Notified when a connection is ready.
    ready: Notify,
}

#[derive(Default)]
struct Inside {
    seats: BTreeMap<String, Seat>,
    refusals: Refusals,
}

/// The connections of one agent.
#[derive(Default)]
struct Seat {
    /// The start of the program that they belong to.
    instance: String,
    from: Option<SocketAddr>,
    /// Each is alive as long as its connection is open.
    open: Vec<Weak<()>>,
    idle: VecDeque<(Sender, SocketAddr)>,
    /// The last time that its idle connections were probed, none of them gave an answer.
    silent: bool,
    /// When it was first noticed that none is open.
    missed: Option<Instant>,
}

/// What the status of an agent says about its start.
#[derive(Deserialize)]
struct Start {
    instance: String,
}

impl Lobby {
    /// Begins to accept the agents of an order that dial in. Must be called in a runtime.
    ///
    /// # Errors
    /// If an agent cannot be recognized by its certificate, or the controller's own certificate cannot be used.
    pub fn open(
        rendezvous: &Rendezvous,
        agents: &[&Address],
        trust: &Trust,
        token: &str,
    ) -> Result<Arc<Lobby>, OrderError> {
        let expected: Vec<Expected> = agents
            .iter()
            .map(|agent| expect(agent, trust))
            .collect::<Result<_, _>>()?;
        let pins = expected.iter().filter_map(|e| match e.by {
            By::Fingerprint(pin) => Some(pin),
            By::Name(_) => None,
        });
        let authorities = match trust {
            Trust::Authorities(path) => Some(path.as_path()),
            _ => None,
        };
        let tls = |e: TlsError| OrderError::Remote(RemoteError::Tls(e));
        let callers = Callers::new(pins.collect(), authorities).map_err(tls)?;
        let acceptor = rendezvous.identity.server_for(callers).map_err(tls)?;
        let acceptor = TlsAcceptor::from(acceptor);
        let listener = rendezvous
            .listener
            .try_clone()
            .map_err(OrderError::System)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(OrderError::System)?;
        let lobby = Arc::new(Lobby {
            address: rendezvous.address,
            expected,
            token: token.to_owned(),
            inside: Mutex::default(),
            ready: Notify::new(),
        });
        let (own, idle) = (Arc::clone(&lobby), Arc::clone(&lobby));
        // Both end with the runtime.
        tokio::spawn(async move { idle.ping().await });
        tokio::spawn(async move {
            let serve = |one: Accepted| Arc::clone(&own).admit(one, acceptor.clone());
            visitors::receive(listener, serve).await;
        });
        Ok(lobby)
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that were refused so far.
    pub fn refusals(&self) -> Refusals {
        self.inside().refusals.clone()
    }

    /// Poisoning is ignored: no thread panics while it holds the lock, and the data is consistent at all times.
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to an agent, as soon as there is one, and where it comes from. `None` if none has been open for
    /// [`ABSENCE`].
    pub async fn take(&self, agent: &str) -> Option<(Sender, SocketAddr)> {
        loop {
            // Before looking, so that no news is missed.
            let news = self.ready.notified();
            if let Some(found) = self.idle(agent) {
                return Some(found);
            }
            if self.missed(agent) > ABSENCE {
                return None;
            }
            // A connection that breaks is no news.
            let _ = tokio::time::timeout(LOOK, news).await;
        }
    }

    /// Number of connections of an agent that are not in use.
    #[cfg(test)]
    pub fn unused(&self, agent: &str) -> usize {
        let inside = self.inside();
        inside.seats.get(agent).map_or(0, |seat| seat.idle.len())
    }

    /// For how long an agent is known to have no connection.
    fn missed(&self, agent: &str) -> Duration {
        let mut inside = self.inside();
        let seat = inside.seats.entry(agent.to_owned()).or_default();
        if seat.open() > 0 {
            return Duration::ZERO;
        }
        seat.missed.get_or_insert_with(Instant::now).elapsed()
    }

    fn idle(&self, agent: &str) -> Option<(Sender, SocketAddr)> {
        let mut inside = self.inside();
        let seat = inside.seats.get_mut(agent)?;
        while let Some((sender, from)) = seat.idle.pop_front() {
            if !sender.is_closed() {
                return Some((sender, from));
            }
        }
        None
    }

    /// Waits until every expected agent has the connections that a run needs. Returns the names of those that have not
    /// after [`PATIENCE`], or when `cancelled` returns true.
    pub async fn gather(&self, cancelled: &dyn Fn() -> bool) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let news = self.ready.notified();
            let absent = self.absent();
            if absent.is_empty() || begun.elapsed() > PATIENCE || cancelled() {
                return absent;
            }
            let _ = tokio::time::timeout(LOOK, news).await;
        }
    }

    fn absent(&self) -> Vec<String> {
        let inside = self.inside();
        let here = |name: &String| inside.seats.get(name).is_some_and(|s| s.open() >= NEEDED);
        let names = self.expected.iter().map(|e| e.name.clone());
        names.filter(|name| !here(name)).collect()
    }

    /// Admits a connection or refuses it.
    async fn admit(self: Arc<Lobby>, one: Accepted, acceptor: TlsAcceptor) {
        let from = one.from;
        // Dropped on every way out of this function, also when it is aborted because it takes too long.
        let mut unsaid = Unsaid {
            lobby: &self,
            from,
            why: Some("it did not show a certificate and the token in time".into()),
        };
        unsaid.why = self.check(one, acceptor).await.err();
    }

    async fn check(&self, one: Accepted, acceptor: TlsAcceptor) -> Result<(), String> {
        keep_alive(&one.stream).map_err(|e| e.to_string())?;
        let secret = acceptor.accept(one.stream).await;
        let secret = secret.map_err(|e| tls::failure(&e))?;
        let shown = secret.get_ref().1.peer_certificates();
        let shown = shown
            .and_then(<[_]>::first)
            .ok_or("it has no certificate")?;
        let expected = self.whose(shown)?;
        let name = &expected.name;
        let greeted = http1::handshake(TokioIo::new(secret)).await;
        let (mut sender, connection) = greeted.map_err(|e| e.to_string())?;
        let alive = Arc::new(());
        let open = Arc::downgrade(&alive);
        // It ends when the other end closes it, and when the sender is dropped.
        tokio::spawn(async move {
            let _alive = alive;
            // The sender gets the error.
            let _ = connection.await;
        });
        let instance = self.instance(&mut sender).await?;
        let _turn = expected.turn.lock().await;
        let mut answers = None;
        if self.is_another(name, &instance) {
            answers = self.probe(name).await;
            self.give_up(name);
        }
        self.seat(name, one.from, instance, answers.is_some(), (sender, open))?;
        one.visitor.forget();
        self.ready.notify_waiters();
        Ok(())
    }

    /// The agent that has this certificate.
    fn whose(&self, certificate: &CertificateDer<'_>) -> Result<&Expected, String> {
        let pinned = |e: &&Expected| match &e.by {
            By::Fingerprint(pin) => tls::digest(certificate) == *pin,
            By::Name(_) => false,
        };
        if let Some(found) = self.expected.iter().find(pinned) {
            return Ok(found);
        }
        let parsed = ParsedCertificate::try_from(certificate).map_err(|e| e.to_string())?;
        let named = |e: &&Expected| match &e.by {
            By::Name(name) => verify_server_name(&parsed, name).is_ok(),
            By::Fingerprint(_) => false,
        };
        let mut all = self.expected.iter().filter(named);
        match (all.next(), all.next()) {
            (Some(one), None) => Ok(one),
            (Some(one), Some(other)) => Err(format!(
                "its certificate is for {} as well as for {}",
                one.name, other.name
            )),
            (None, _) => Err(format!(
                "its certificate, with the fingerprint {}, is that of no agent that is to dial in",
                tls::fingerprint(certificate)
            )),
        }
    }

    /// The start of the program at the other end.
    async fn instance(&self, sender: &mut Sender) -> Result<String, String> {
        let asked = request(&Method::GET, "/v1/status", &self.token, Bytes::new());
        let asked = asked.map_err(|e| e.to_string())?;
        let answer = sender.send_request(asked).await;
        let answer = answer.map_err(|e| e.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|e| e.to_string())?.to_bytes();
        if !status.is_success() {
            return Err(format!("it does not accept the token ({status})"));
        }
        let start: Result<Start, _> = serde_json::from_slice(&body);
        Ok(start.map_err(|e| format!("no such answer: {e}"))?.instance)
    }

    /// Whether the connections of an agent belong to another start of the program than `instance`.
    fn is_another(&self, name: &str, instance: &str) -> bool {
        let inside = self.inside();
        let seat = inside.seats.get(name);
        seat.is_some_and(|seat| seat.open() > 0 && seat.instance != instance)
    }

    /// Gives up the connections of an agent that does not answer: its host was cut off or reset. The agent may have been
    /// started again before the kernel notices.
    fn give_up(&self, name: &str) {
        let seats = &mut self.inside().seats;
        if seats.get(name).is_some_and(|seat| seat.silent) {
            seats.remove(name);
        }
    }

    /// Sends a request on each idle connection of an agent, and gives up those without an answer. Returns whether there
    /// was an answer; `None` if no connection is idle. The caller has the agent's turn.
    async fn probe(&self, name: &str) -> Option<bool> {
        let mut idle: Vec<(Sender, SocketAddr)> = Vec::new();
        idle.extend(std::iter::from_fn(|| self.idle(name)));
        let each = idle.into_iter().map(async |(mut sender, from)| {
            let answer = tokio::time::timeout(SILENCE, self.instance(&mut sender)).await;
            let alive = matches!(answer, Ok(Ok(_)));
            if alive && let Some(seat) = self.inside().seats.get_mut(name) {
                seat.idle.push_back((sender, from));
            }
            self.ready.notify_waiters();
            alive
        });
        let alive = join_all(each).await.into_iter().reduce(|a, b| a || b)?;
        if let Some(seat) = self.inside().seats.get_mut(name) {
            seat.silent = !alive;
        }
        Some(alive)
    }

    /// Probes the idle connections of all agents, without end. No agent waits for another one.
    async fn ping(&self) {
        join_all(self.expected.iter().map(|one| self.ping_one(one))).await;
    }

    async fn ping_one(&self, one: &Expected) {
        loop {
            tokio::time::sleep(PING).await;
            let _turn = one.turn.lock().await;
            self.probe(&one.name).await;
        }
    }

    /// Adds a connection to those of an agent. `answers` tells whether the connections that it has were probed just now
    /// and gave an answer, if they are of another start.
    fn seat(
        &self,
        name: &str,
        from: SocketAddr,
        instance: String,
        answers: bool,
        (sender, open): (Sender, Weak<()>),
    ) -> Result<(), String> {
        let mut inside = self.inside();
        let Inside { seats, refusals } = &mut *inside;
        let seat = seats.entry(name.to_owned()).or_default();
        seat.open.retain(|one| one.strong_count() > 0);
        seat.idle.retain(|(one, _)| !one.is_closed());
        if seat.open.is_empty() {
            // A new agent, or one that was started again.
            *seat = Seat {
                instance,
                from: Some(from),
                ..Seat::default()
            };
        } else if seat.instance != instance && !answers {
            return Err(format!(
                "connections of {name} from before it was started are in use"
            ));
        } else if seat.instance != instance {
            let first = seat
                .from
                .map_or(String::new(), |f| format!(" at {}", f.ip()));
            let why = format!(
                "two agents claim to be {name}: the one{first} is taken, the one at {} is refused",
                from.ip()
            );
            refusals.twice.insert(name.to_owned(), why.clone());
            return Err(why);
        }
        if seat.open.len() >= LINES {
            return Err(format!("{name} has {LINES} connections already"));
        }
        seat.open.push(open);
        seat.idle.push_back((sender, from));
        seat.silent = false;
        Ok(())
    }
}

impl Seat {
    /// Number of open connections.
    fn open(&self) -> usize {
        self.open.iter().filter(|o| o.strong_count() > 0).count()
    }
}

/// A connection that may be refused. Dropping this records the refusal.
struct Unsaid<'l> {
    lobby: &'l Lobby,
    from: SocketAddr,
    /// `None` once it is admitted.
    why: Option<String>,
}

impl Drop for Unsaid<'_> {
    fn drop(&mut self) {
        if let Some(why) = &self.why {
            let from = self.from.ip().to_canonical();
            let refusals = &mut self.lobby.inside().refusals;
            refusals.count += 1;
            refusals.last = Some(format!("{from}: {why}"));
        }
    }
}

/// How to recognize an agent.
fn expect(agent: &Address, all: &Trust) -> Result<Expected, OrderError> {
    let unrecognized = |reason| OrderError::Unrecognized {
        agent: agent.name.clone(),
        reason,
    };
    // All certificates are verified in the same handshake, so an authority's count for every agent.
    let common = |path| matches!(all, Trust::Authorities(other) if other == path);
    let by = match agent.trust.as_ref().unwrap_or(all) {
        Trust::Fingerprints(prints) => match prints.as_slice() {
            [one] => By::Fingerprint(tls::pin(one).map_err(RemoteError::Tls)?),
            _ => return Err(unrecognized("an agent that dials in has one fingerprint")),
        },
        Trust::Authorities(path) if !common(path) => {
            let reason = "an agent that dials in has a fingerprint, or a certificate of the authority of all \
                          agents: it cannot have an authority of its own";
            return Err(unrecognized(reason));
        }
        Trust::Authorities(_) => {
            let name = ServerName::try_from(agent.name.clone());
            let reason = "without a fingerprint, an agent that dials in is called by a name or address \
                          of its certificate";
            By::Name(name.map_err(|_| unrecognized(reason))?)
        }
        Trust::Loopback => {
            let reason = "an agent that dials in needs a fingerprint, or an authority (ca)";
            return Err(unrecognized(reason));
        }
    };
    Ok(Expected {
        name: agent.name.clone(),
        by,
        turn: tokio::sync::Mutex::default(),
    })
}

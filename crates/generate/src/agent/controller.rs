//! Controls the agents of a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::api::{Change, ClientPart, NewRun, Part, ServerPart};
use super::clock::Beginning;
use super::lobby::{Lobby, Refusals};
use super::order::{Address, Order, OrderError};
use super::party::{Attention, Party, Standing};
use super::remote::{ConnectVia, Remote, dial};
use crate::{Flow, Key};

/// A run on several agents. If it is dropped without [`Controller::end`], the leases expire. They also expire if none
/// of its methods is called for a minute.
pub struct Controller {
    /// Runtime on a thread of its own, which renews leases whatever the caller's thread does.
    runtime: Handle,
    /// The runtime's thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
    parties: Vec<Party>,
    clients: usize,
    /// When the start of the traffic was requested.
    begun: Option<Instant>,
    attention: Attention,
    /// The connections of agents that dial in.
    lobby: Option<Arc<Lobby>>,
}

/// Flows of one client, all of one part of it.
#[derive(Clone, Debug)]
pub struct ClientFlows {
    /// Index of the client.
    pub client: usize,
    /// The flows.
    pub flows: Vec<Flow>,
    /// When that part began to send, once that is known. A client that came back has a new part.
    pub beginning: Option<Beginning>,
    /// Whether more may be available at once.
    pub more: bool,
}

/// Requests time out after half of the lease, but within these limits.
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(10);
/// Time limit for clients and servers to agree.
const AGREEMENT: Duration = Duration::from_secs(10);

impl Controller {
    /// Creates a run on all agents and waits until clients and servers have agreed. No traffic is generated before
    /// [`Controller::start`]. Agents that dial in have 30 s to do so.
    ///
    /// # Errors
    /// If an agent cannot be reached, does not dial in or refuses, or clients do not reach the servers. Parts that already exist end
    /// when their leases expire, at the latest.
    pub fn new(order: &Order) -> Result<Controller, OrderError> {
        Controller::new_unless(order, &|| false)
    }

    /// The same, but gives up soon after `cancelled` returns true.
    ///
    /// # Errors
    /// As above, or if it was cancelled.
    pub fn new_unless(
        order: &Order,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Controller, OrderError> {
        if order.clients.is_empty() || order.servers.is_empty() {
            return Err(OrderError::Nobody);
        }
        let (runtime, stop) = runtime().map_err(OrderError::System)?;
        let lobby = lobby(order, &runtime, cancelled)?;
        let party = |address: &Address| -> Result<Party, OrderError> {
            let way = match &lobby {
                Some(lobby) if address.dials_in => ConnectVia::In(Arc::clone(lobby)),
                _ => {
                    let at = address.at.as_deref().unwrap_or(&address.name);
                    let how = address.dial.clone().unwrap_or_else(|| dial(at));
                    let trust = address.trust.as_ref().unwrap_or(&order.trust);
                    ConnectVia::out([&address.name, at], how, trust)?
                }
            };
            let patience = Duration::from_secs_f64(order.lease.as_secs_f64() / 2.0);
            let remote = || {
                let mut remote = Remote::new(&address.name, way.clone(), &order.token);
                remote.patience = patience.clamp(SHORT, LONG);
                remote
            };
            Ok(Party::new(remote(), remote(), order.lease))
        };
        let all = order.clients.iter().chain(&order.servers);
        let mut controller = Controller {
            runtime,
            _stop: stop,
            parties: all.map(party).collect::<Result<_, _>>()?,
            clients: order.clients.len(),
            begun: None,
            attention: Attention::new(),
            lobby,
        };
        let made = controller.make(order);
        let made = made.and_then(|()| controller.agree(cancelled));
        if made.is_err() {
            controller.abandon();
        }
        made?;
        Ok(controller)
    }

    /// Runs asynchronous work on the clients and the servers.
    fn with<R>(&mut self, work: impl AsyncFnOnce(&mut [Party], &mut [Party]) -> R) -> R {
        self.attention.pay();
        let (clients, servers) = self.parties.split_at_mut(self.clients);
        self.runtime.block_on(work(clients, servers))
    }

    fn make(&mut self, order: &Order) -> Result<(), OrderError> {
        let key = Key::random().map_err(OrderError::System)?;
        let attention = self.attention.clone();
        let run = |part| NewRun {
            key: key.to_hex(),
            lease_s: order.lease.as_secs_f64(),
            congestion: order.congestion.clone(),
            threads: order.threads,
            flows: order.flows,
            elapsed_s: 0.0,
            part,
        };
        // All agents are asked concurrently, so that none waits for the others.
        self.with(async |clients, servers| {
            let parties = clients.iter_mut().chain(servers.iter_mut());
            let statuses = all(parties.map(Party::status)).await?;
            let (theirs, statuses) = statuses.split_at(clients.len());
            let pools: Vec<Vec<String>> = theirs.iter().map(|s| s.pool.clone()).collect();
            let begin = servers
                .iter_mut()
                .zip(statuses)
                .map(async |(party, status)| {
                    let part = ServerPart {
                        clients: pools.clone(),
                        pool: status.pool.clone(),
                        port: 0,
                    };
                    let part = run(Part::Server(part));
                    let made = party.begin(&part, &attention).await?;
                    party.target(status, &made)
                });
            let targets = all(begin).await?;
            let number = u16::try_from(clients.len()).unwrap_or(u16::MAX);
            let join = clients.iter_mut().enumerate().map(async |(index, party)| {
                let part = ClientPart {
                    index: u16::try_from(index).unwrap_or(u16::MAX),
                    of: number,
                    pool: pools[index].clone(),
                    servers: targets.clone(),
                    traffic: order.traffic.clone(),
                    keep: order.keep,
                    dscp: order.dscp.clone(),
                };
                let part = run(Part::Client(part));
                party.begin(&part, &attention).await
            });
            all(join).await?;
            Ok(())
        })
    }

    /// Waits until every client has agreed with every server.
    fn agree(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), OrderError> {
        let begun = Instant::now();
        loop {
            if cancelled() {
                return Err(OrderError::Cancelled);
            }
            self.with(async |clients, _| join_all(clients.iter_mut().map(Party::look)).await);
            let (clients, servers) = self.parties.split_at(self.clients);
            let missing = clients
                .iter()
                .position(|p| p.parties() < servers.len() as u64);
            let Some(client) = missing else {
                return Ok(());
            };
            if begun.elapsed() > AGREEMENT {
                return Err(self.disagreement(client));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Why a client has not agreed with every server.
    fn disagreement(&mut self, client: usize) -> OrderError {
        self.with(async |_, servers| join_all(servers.iter_mut().map(Party::look)).await);
        let (clients, servers) = self.parties.split_at(self.clients);
        let name = clients[client].remote.name.clone();
        let absent = clients[client].absent();
        let Some(server) = absent.and_then(|index| servers.get(index)) else {
            return OrderError::Agreement {
                client: name,
                parties: clients[client].parties(),
                servers: servers.len(),
            };
        };
        let (address, other) = (server.address().to_owned(), server.remote.name.clone());
        // Reasons begin with the address that was refused. It may be that of another client, or of a stranger.
        let reasons = server.refused();
        let its_own = |why: &&String| clients[client].is_at(why.split(' ').next());
        let refused = reasons.last().map_or(String::new(), |why| {
            format!("; {other} refused another connection: {why}")
        });
        match reasons.iter().rev().find(its_own) {
            Some(why) => OrderError::Unwelcome {
                client: name,
                server: other,
                why: why.clone(),
            },
            None if server.remote.dials() => OrderError::Behind {
                client: name,
                server: other,
                address,
                refused,
            },
            None => OrderError::Unreachable {
                client: name,
                server: other,
                address,
                refused,
            },
        }
    }

    /// Starts the traffic.
    ///
    /// # Errors
    /// If an agent cannot be reached.
    pub fn start(&mut self) -> Result<(), OrderError> {
        let change = Change {
            start: Some(true),
            ..Change::default()
        };
        self.begun = Some(Instant::now());
        // Servers first, so that they are ready when the first client begins.
        self.with(async |clients, servers| {
            all(servers.iter_mut().map(|party| party.change(&change))).await?;
            all(clients.iter_mut().map(|party| party.change(&change))).await?;
            Ok(())
        })
    }

    /// Sets another load for every client. Returns the names of those that do not answer: they get it once they answer
    /// again.
    ///
    /// # Errors
    /// If the traffic cannot have this load. Then no client has it.
    pub fn set_load(&mut self, load: f64) -> Result<Vec<String>, OrderError> {
        let change = Change {
            load: Some(load),
            ..Change::default()
        };
        let begun = self.begun;
        self.with(async |clients, _| {
            // All clients have the same traffic.
            if let Some(client) = clients.first() {
                client.may_have(load)?;
            }
            let asked = clients.iter_mut().map(async |client| {
                match client.standing(begun).missing {
                    true => Ok(false),
                    false => client.change(&change).await.map(|()| true),
                }
            });
            let mut answers = join_all(asked).await;
            // What one agent calls invalid is so for all of them.
            let invalid = |answer: &Result<bool, OrderError>| {
                matches!(answer, Err(OrderError::Remote(error)) if error.is_invalid())
            };
            if let Some(first) = answers.iter().position(invalid) {
                return answers.swap_remove(first).map(|_| Vec::new());
            }
            let mut missed = Vec::new();
            for (client, answer) in clients.iter_mut().zip(answers) {
                if let Err(why) = &answer {
                    client.note_trouble(why);
                }
                let set = answer.unwrap_or(false);
                client.note_load(load, set);
                missed.extend((!set).then(|| client.remote.name.clone()));
            }
            Ok(missed)
        })
    }

    /// Readmits agents that were cut off or restarted and now answer again. Returns the names of those that joined.
    /// Agents for which this fails can be readmitted in a later call. Clients that missed a change of the load get it.
    pub fn admit(&mut self) -> Vec<String> {
        let Some(begun) = self.begun else {
            return Vec::new();
        };
        let attention = self.attention.clone();
        let admit = async |parties: &mut [Party]| -> Vec<String> {
            let back = parties.iter_mut().filter(|p| p.may_return());
            let admitted =
                join_all(
                    back.map(async |party| match party.admit(begun, &attention).await {
                        Ok(()) => Some(party.remote.name.clone()),
                        Err(error) => {
                            party.note_trouble(&error);
                            None
                        }
                    }),
                );
            admitted.await.into_iter().flatten().collect()
        };
        self.with(async |clients, servers| {
            // Clients need servers to agree with.
            let mut back = admit(servers).await;
            back.extend(admit(clients).await);
            join_all(clients.iter_mut().map(Party::catch_up)).await;
            back
        })
    }

    /// Flows of all clients that have not been fetched yet. Each client returns a limited number per call.
    pub fn flows(&mut self) -> Vec<ClientFlows> {
        let begun = self.begun;
        let fetched = self.with(async |clients, _| {
            join_all(clients.iter_mut().map(|client| client.flows(begun))).await
        });
        // Flows that could not be fetched are requested again in the next call.
        let fetched = fetched.into_iter().enumerate();
        let some = fetched.filter_map(|(client, batch)| {
            let ((flows, beginning), more) = batch.ok()?;
            Some(ClientFlows {
                client,
                flows,
                beginning,
                more,
            })
        });
        some.filter(|batch| !batch.flows.is_empty()).collect()
    }

    /// The state of every agent, at most half a second old: clients, then servers.
    pub fn standing(&self) -> (Vec<Standing>, Vec<Standing>) {
        self.attention.pay();
        let begun = self.begun;
        let of = |parties: &[Party]| parties.iter().map(|p| p.standing(begun)).collect();
        let (clients, servers) = self.parties.split_at(self.clients);
        (of(clients), of(servers))
    }

    /// Connections that were refused where agents dial in.
    pub fn refusals(&self) -> Refusals {
        let lobby = self.lobby.as_ref();
        lobby.map_or_else(Refusals::default, |lobby| lobby.refusals())
    }

    /// Whether every client has finished its traffic, has ended, or has been missing for three leases.
    pub fn is_over(&self) -> bool {
        let mut clients = self.parties[..self.clients].iter();
        clients.all(Party::is_over)
    }

    /// Stops all traffic. Counters and flows can still be fetched until [`Controller::end`].
    ///
    /// Returns the names of agents that do not answer, or no longer have their part. Their leases may still run.
    pub fn stop(&mut self) -> Vec<String> {
        async fn stop(parties: &mut [Party]) -> Vec<String> {
            let answered = join_all(parties.iter_mut().map(Party::stop)).await;
            let silent = parties
                .iter()
                .zip(answered)
                .filter(|(_, answered)| !answered);
            silent.map(|(party, _)| party.remote.name.clone()).collect()
        }
        // Clients first: otherwise connections reset by servers would count as failures.
        self.with(async |clients, servers| [stop(clients).await, stop(servers).await].concat())
    }

    /// Deletes the run on all agents.
    pub fn end(mut self) {
        self.abandon();
    }

    fn abandon(&mut self) {
        self.with(async |clients, servers| {
            let parties = clients.iter_mut().chain(servers);
            join_all(parties.map(Party::forget)).await;
        });
    }
}

/// Waits for the agents that dial in, if there are any.
fn lobby(
    order: &Order,
    runtime: &Handle,
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<Arc<Lobby>>, OrderError> {
    let all = order.clients.iter().chain(&order.servers);
    let dialling: Vec<&Address> = all.filter(|a| a.dials_in).collect();
    let Some(first) = dialling.first() else {
        return Ok(None);
    };
    let Some(rendezvous) = &order.rendezvous else {
        return Err(OrderError::NoRendezvous(first.name.clone()));
    };
    let (lobby, absent) = runtime.block_on(async {
        let lobby = Lobby::open(rendezvous, &dialling, &order.trust, &order.token)?;
        let absent = lobby.gather(cancelled).await;
        Ok::<_, OrderError>((lobby, absent))
    })?;
    if absent.is_empty() {
        return Ok(Some(lobby));
    }
    if cancelled() {
        return Err(OrderError::Cancelled);
    }
    let refusals = lobby.refusals();
    let last = refusals.last.map(|last| {
        let count = refusals.count;
        format!("; {count} connections were refused, the last from {last}")
    });
    Err(OrderError::Absent {
        agents: absent.join(", "),
        listen: lobby.address(),
        refused: last.unwrap_or_default(),
    })
}

/// Starts a runtime on a thread of its own. It ends when the returned sender is dropped.
pub(super) fn runtime() -> std::io::Result<(Handle, oneshot::Sender<()>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    std::thread::Builder::new()
        .name("controller".into())
        .spawn(move || {
            // The sender is dropped and never sends a message.
            let _ = runtime.block_on(stopped);
            // Do not wait for a pending attempt to reach an agent that is gone.
            runtime.shutdown_background();
        })?;
    Ok((handle, stop))
}

/// Waits for all; returns the first error, if there is one.
async fn all<T>(
    work: impl Iterator<Item = impl Future<Output = Result<T, OrderError>>>,
) -> Result<Vec<T>, OrderError> {
    join_all(work).await.into_iter().collect()
}

//! Drives the agents of a run.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::api::{Change, ClientPart, NewRun, Part, ServerPart};
use super::order::{Address, Order, OrderError};
use super::party::{Attention, Party, Standing};
use super::remote::{Remote, dial};
use crate::{Flow, Key};

/// A run on several agents. When it is dropped without [`Controller::end`], leases run out; also when it is
/// not asked for anything for a minute.
pub struct Controller {
    /// Of a runtime on a thread of its own, which renews leases whatever that of the caller does.
    runtime: Handle,
    /// That thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
    parties: Vec<Party>,
    clients: usize,
    /// When it asked for the play to begin.
    begun: Option<Instant>,
    attention: Attention,
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
        let (runtime, stop) = runtime().map_err(OrderError::System)?;
        let all = order.clients.iter().chain(&order.servers);
        let party = |address: &Address| -> Result<Party, OrderError> {
            let at = address.at.as_deref().unwrap_or(&address.name);
            let how = address.dial.clone().unwrap_or_else(|| dial(at));
            let trust = address.trust.as_ref().unwrap_or(&order.trust);
            let patience = Duration::from_secs_f64(order.lease.as_secs_f64() / 2.0);
            let remote = || {
                let how = std::sync::Arc::clone(&how);
                let mut remote = Remote::new([&address.name, at], how, trust, &order.token)?;
                remote.patience = patience.clamp(SHORT, LONG);
                Ok::<_, OrderError>(remote)
            };
            Ok(Party::new(remote()?, remote()?, order.lease))
        };
        let mut controller = Controller {
            runtime,
            _stop: stop,
            parties: all.map(party).collect::<Result<_, _>>()?,
            clients: order.clients.len(),
            begun: None,
            attention: Attention::new(),
        };
        let made = controller.make(order).and_then(|()| controller.agree());
        if made.is_err() {
            controller.abandon();
        }
        made?;
        Ok(controller)
    }

    /// Waits for something that agents do; they are clients, then servers.
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
        // All at once: the first must not wait for the last.
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

    /// Waits until every client and every server have agreed.
    fn agree(&mut self) -> Result<(), OrderError> {
        let begun = Instant::now();
        loop {
            self.with(async |clients, _| join_all(clients.iter_mut().map(Party::look)).await);
            let (clients, servers) = self.parties.split_at(self.clients);
            let missing = clients.iter().find(|p| p.parties() < servers.len() as u64);
            let Some(missing) = missing else {
                return Ok(());
            };
            if begun.elapsed() > AGREEMENT {
                return Err(OrderError::Agreement {
                    client: missing.remote.name.clone(),
                    parties: missing.parties(),
                    servers: servers.len(),
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
        self.begun = Some(Instant::now());
        // Servers first: they are ready when the first client begins.
        self.with(async |clients, servers| {
            all(servers.iter_mut().map(|party| party.change(&change))).await?;
            all(clients.iter_mut().map(|party| party.change(&change))).await?;
            Ok(())
        })
    }

    /// Another load from now on, of every client, those included that are missing and may come back.
    ///
    /// # Errors
    /// Where an agent refuses.
    pub fn set_load(&mut self, load: f64) -> Result<(), OrderError> {
        let change = Change {
            load: Some(load),
            ..Change::default()
        };
        let begun = self.begun;
        self.with(async |clients, _| {
            let there = clients.iter_mut().filter(|c| !c.standing(begun).missing);
            all(there.map(|party| party.change(&change))).await?;
            for client in clients {
                client.note_load(load);
            }
            Ok(())
        })
    }

    /// Gives agents that were cut off or started anew, and answer again, a part in the run again. Those that play once
    /// more, by name. Who does not come about now may do so the next time.
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
            back
        })
    }

    /// Flows of all clients that have not been fetched yet, as many as each gives at once; with the number of
    /// the client.
    pub fn flows(&mut self) -> Vec<(usize, Vec<Flow>)> {
        let fetched =
            self.with(async |clients, _| join_all(clients.iter_mut().map(Party::flows)).await);
        // What could not be fetched is asked for again the next time.
        let fetched = fetched.into_iter().enumerate();
        let some = fetched.filter_map(|(n, flows)| flows.ok().map(|flows| (n, flows)));
        some.filter(|(_, flows)| !flows.is_empty()).collect()
    }

    /// How every agent stands: clients, then servers. At most half a second old.
    pub fn standing(&self) -> (Vec<Standing>, Vec<Standing>) {
        self.attention.pay();
        let begun = self.begun;
        let of = |parties: &[Party]| parties.iter().map(|p| p.standing(begun)).collect();
        let (clients, servers) = self.parties.split_at(self.clients);
        (of(clients), of(servers))
    }

    /// Whether every client has played everything, is over, or has been missing for three leases.
    pub fn is_over(&self) -> bool {
        let mut clients = self.parties[..self.clients].iter();
        clients.all(Party::is_over)
    }

    /// Stops everything. What was counted and logged can still be fetched until [`Controller::end`].
    pub fn stop(&mut self) {
        // Clients first: otherwise what servers reset would be failures.
        self.with(async |clients, servers| {
            join_all(clients.iter_mut().map(Party::stop)).await;
            join_all(servers.iter_mut().map(Party::stop)).await;
        });
    }

    /// Has the agents forget the run.
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

/// A runtime on a thread of its own, until what is returned with it is dropped.
fn runtime() -> std::io::Result<(Handle, oneshot::Sender<()>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    std::thread::Builder::new()
        .name("controller".into())
        .spawn(move || {
            // It is dropped without a message.
            let _ = runtime.block_on(stopped);
            // An attempt to reach an agent that is gone is not waited for.
            runtime.shutdown_background();
        })?;
    Ok((handle, stop))
}

/// Waits for all; the first error, if there is one.
async fn all<T>(
    work: impl Iterator<Item = impl Future<Output = Result<T, OrderError>>>,
) -> Result<Vec<T>, OrderError> {
    join_all(work).await.into_iter().collect()
}

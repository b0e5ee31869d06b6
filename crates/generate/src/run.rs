//! A run, as seen by its owner.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use swell_base::Dur;

use super::config::{Config, Role, families_meet};
use super::counts::Statistics;
use super::flow::{Flow, ROW};
use super::plan::SharedPlan;
use super::shared::{Command, Shared};
use super::worker::Worker;
use swell_host::sys::datagrams as sys;

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(&'static str),
    /// The kernel provides no sockets.
    #[error("no socket can be made: {0}")]
    Socket(Errno),
    /// The port is in use or not permitted.
    #[error("port {port}: {error}")]
    Port {
        /// The port.
        port: u16,
        /// The kernel's error.
        error: Errno,
    },
    /// The kernel provides no thread.
    #[error("no thread can be started: {0}")]
    Thread(#[from] io::Error),
}

/// Flows that were fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// Number of the first flow. The flows between the requested number and this one were lost.
    pub first: u64,
    /// The flows.
    pub flows: Vec<Flow>,
}

/// One agent's part in a run. Dropping it ends everything.
pub struct Run {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Most threads of a run.
const MAX_THREADS: u16 = 64;

impl Run {
    /// Starts to listen (server), or to request leases (client). No traffic is generated before [`Run::start`].
    ///
    /// # Errors
    /// If the configuration is invalid, or the kernel provides no sockets or threads.
    pub fn new(config: Config) -> Result<Run, RunError> {
        check(&config)?;
        raise_limit();
        let port = match &config.role {
            Role::Server(server) => server.port,
            Role::Client(_) => 0,
        };
        let number = config.threads;
        let shared = Arc::new(Shared::new(config).map_err(RunError::Socket)?);
        let mut run = Run {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
        };
        for n in 0..number {
            let own = Arc::clone(&shared);
            let (tell, told) = mpsc::sync_channel(1);
            let thread = std::thread::Builder::new().name("generate".into());
            run.threads.push(thread.spawn(move || {
                let _panic = Watch(Arc::clone(&own), n);
                // All descriptors of the worker are opened after this.
                if !sys::own_descriptors(&[own.bell(n)]) {
                    own.one_table.store(true, Ordering::Release);
                }
                let made = Worker::new(own, n);
                // The thread that creates the run waits for this message.
                match made {
                    Ok(worker) => {
                        let _ = tell.send(Ok(()));
                        worker.run();
                    }
                    Err(error) => {
                        let _ = tell.send(Err(error));
                    }
                }
            })?);
            // A thread without a message has panicked, and has reported the panic itself.
            match told.recv().unwrap_or(Err(Errno::CANCELED)) {
                Ok(()) => {}
                Err(error @ (Errno::ADDRINUSE | Errno::ACCESS)) => {
                    return Err(RunError::Port { port, error });
                }
                Err(error) => return Err(RunError::Socket(error)),
            }
        }
        Ok(run)
    }

    /// The TCP port of a server; 0 for a client.
    pub fn port(&self) -> u16 {
        self.shared.port.load(Ordering::Acquire)
    }

    /// The UDP port of a server; 0 for a client.
    pub fn datagram_port(&self) -> u16 {
        self.shared.datagram_port.load(Ordering::Acquire)
    }

    /// Starts the traffic now, unless it has been started.
    pub fn start(&self) {
        if self.shared.begun().is_none() {
            self.shared.begin();
            self.shared.tell(&Command::Start);
        }
    }

    /// Whether the traffic was started.
    pub fn is_started(&self) -> bool {
        self.shared.begun().is_some()
    }

    /// Time since the start; 0 before.
    pub fn elapsed(&self) -> Dur {
        let begun = self.shared.begun();
        begun.map_or(Dur::ZERO, |b| self.shared.now().since(b))
    }

    /// Switches to other traffic, at the point where it would be if it had begun with the run. Transfers in progress
    /// continue, and datagram sources end.
    pub fn set_plan(&self, plan: SharedPlan) {
        self.shared.tell(&Command::Plan(plan));
    }

    /// Changes the load: `plan` is of the model that is played. Transfers in progress continue, and running datagram
    /// sources become more or fewer.
    pub fn set_load(&self, plan: SharedPlan) {
        self.shared.tell(&Command::Load(plan));
    }

    /// Extends the run's lease to `span` from now.
    pub fn renew(&self, span: Dur) {
        self.shared.renew(span);
    }

    /// Whether all traffic was generated and is over.
    pub fn is_played(&self) -> bool {
        let mut played = self.shared.played.iter();
        played.all(|p| p.load(Ordering::Acquire))
    }

    /// Whether the run ended because its lease was not renewed.
    pub fn is_expired(&self) -> bool {
        self.shared.expired.load(Ordering::Acquire)
    }

    /// Whether its threads are running.
    pub fn is_running(&self) -> bool {
        self.threads.iter().any(|t| !t.is_finished())
    }

    /// Statistics, at most 200 ms old.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    /// At most `most` flows from number `from` on. The flows before `from` count as received and are removed.
    pub fn flows(&self, from: u64, most: usize) -> Fetched {
        let (first, rows) = self.rows(from, most);
        let (rows, _) = rows.as_chunks::<ROW>();
        Fetched {
            first,
            flows: rows.iter().filter_map(Flow::decode).collect(),
        }
    }

    /// The same, encoded.
    pub fn rows(&self, from: u64, most: usize) -> (u64, Vec<u8>) {
        self.shared.flows(|log| log.fetch(from, most))
    }

    /// Number of flows ever logged.
    pub fn flows_logged(&self) -> u64 {
        self.shared.flows(|log| log.total())
    }

    /// Ends the run and returns its final statistics. Flows can still be fetched.
    pub fn stop(&self) -> Statistics {
        self.shared.tell(&Command::Stop);
        while self.is_running() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.statistics()
    }
}

/// Held by a thread; reports its panic.
struct Watch(Arc<Shared>, u16);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.panicked(self.1);
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.shared.tell(&Command::Stop);
        for thread in self.threads.drain(..) {
            // The thread has reported its own panic.
            let _ = thread.join();
        }
    }
}

fn check(config: &Config) -> Result<(), RunError> {
    if config.lease < Dur::from_millis(500) {
        return Err(RunError::Config("the lease is shorter than half a second"));
    }
    match &config.role {
        _ if !(1..=MAX_THREADS).contains(&config.threads) => {
            Err(RunError::Config("a run has 1 to 64 threads"))
        }
        Role::Server(server) if server.clients.is_empty() => Err(RunError::Config(
            "a server without clients has nothing to do",
        )),
        Role::Client(client) if client.servers.is_empty() => Err(RunError::Config(
            "a client without servers has nothing to do",
        )),
        Role::Client(client) if client.index >= client.of => Err(RunError::Config(
            "a client's index is below the number of clients",
        )),
        Role::Client(client) if !families_meet(&client.pool, &client.servers) => {
            Err(RunError::Config(
                "a server has addresses of a family of which the client's pool has none",
            ))
        }
        _ => Ok(()),
    }
}

/// Raises the limit on descriptors as far as possible, since each connection takes one. Each thread has its own
/// limit.
fn raise_limit() {
    let now = getrlimit(Resource::Nofile);
    let all = Some(MAX_DESCRIPTORS);
    if now.current.is_none() || now.current >= all {
        return;
    }
    let to = |current, maximum| setrlimit(Resource::Nofile, Rlimit { current, maximum });
    // Raising the hard limit requires a privilege. If that fails, the soft limit is raised to the hard limit.
    let beyond = now.maximum.is_some() && now.maximum < all;
    let done = to(all, if beyond { all } else { now.maximum });
    if done.is_err() {
        let _ = to(now.maximum, now.maximum);
    }
}

/// Linux's default limit per process (`fs.nr_open`).
const MAX_DESCRIPTORS: u64 = 1 << 20;

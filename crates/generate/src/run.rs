//! A run: its threads, from outside.

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

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What was asked makes no sense.
    #[error("{0}")]
    Config(&'static str),
    /// The kernel gives no sockets.
    #[error("no socket can be made: {0}")]
    Socket(Errno),
    /// The port is taken.
    #[error("port {port}: {error}")]
    Port {
        /// Which one.
        port: u16,
        /// What the kernel said.
        error: Errno,
    },
    /// The kernel gives no thread.
    #[error("no thread can be started: {0}")]
    Thread(#[from] io::Error),
}

/// Flows that were fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// The number of the first of them; those between what was asked for and this are lost.
    pub first: u64,
    /// They themselves.
    pub flows: Vec<Flow>,
}

/// One agent's part in a run. When it is dropped, everything ends.
pub struct Run {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// No more threads than this.
const MAX_THREADS: u16 = 64;

impl Run {
    /// Begins to listen, or to agree with the servers. Nothing is played before [`Run::start`].
    ///
    /// # Errors
    /// Where the configuration makes no sense, or the kernel gives no sockets or threads.
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
                // Everything that the worker owns is opened behind this.
                if !sys::own_descriptors(&[own.bell(n)]) {
                    own.one_table.store(true, Ordering::Release);
                }
                let made = Worker::new(own, n);
                // Who made the run waits for it.
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
            // A thread without a message has panicked, and has reported that itself.
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

    /// The TCP port of a server; 0 of a client.
    pub fn port(&self) -> u16 {
        self.shared.port.load(Ordering::Acquire)
    }

    /// The UDP port of a server; 0 of a client.
    pub fn datagram_port(&self) -> u16 {
        self.shared.datagram_port.load(Ordering::Acquire)
    }

    /// The first interval begins now, unless it has begun.
    pub fn start(&self) {
        if self.shared.begun().is_none() {
            self.shared.begin();
            self.shared.tell(&Command::Start);
        }
    }

    /// Whether it was started.
    pub fn is_started(&self) -> bool {
        self.shared.begun().is_some()
    }

    /// Seconds since it was started; 0 before.
    pub fn elapsed(&self) -> Dur {
        let begun = self.shared.begun();
        begun.map_or(Dur::ZERO, |b| self.shared.now().since(b))
    }

    /// Goes on with another plan: another load of the same model, or other traffic. Transfers under way go on.
    pub fn set_plan(&self, plan: SharedPlan) {
        self.shared.tell(&Command::Plan(plan));
    }

    /// The run may last for `span` from now on, unless it is renewed again.
    pub fn renew(&self, span: Dur) {
        self.shared.renew(span);
    }

    /// Whether everything was played and is over.
    pub fn is_played(&self) -> bool {
        let mut played = self.shared.played.iter();
        played.all(|p| p.load(Ordering::Acquire))
    }

    /// Whether it ended because its lease was not renewed.
    pub fn is_expired(&self) -> bool {
        self.shared.expired.load(Ordering::Acquire)
    }

    /// Whether its threads are at work.
    pub fn is_running(&self) -> bool {
        self.threads.iter().any(|t| !t.is_finished())
    }

    /// How things stand: at most 200 ms old.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    /// At most `most` flows from number `from` on. Those before are taken to have arrived and are forgotten.
    pub fn flows(&self, from: u64, most: usize) -> Fetched {
        let (first, rows) = self.rows(from, most);
        let (rows, _) = rows.as_chunks::<ROW>();
        Fetched {
            first,
            flows: rows.iter().filter_map(Flow::decode).collect(),
        }
    }

    /// The same, as they are sent home.
    pub fn rows(&self, from: u64, most: usize) -> (u64, Vec<u8>) {
        self.shared.flows(|log| log.fetch(from, most))
    }

    /// How many flows there ever were.
    pub fn flows_logged(&self) -> u64 {
        self.shared.flows(|log| log.total())
    }

    /// Ends everything, and says how things stood. Flows can still be fetched.
    pub fn stop(&self) -> Statistics {
        self.shared.tell(&Command::Stop);
        while self.is_running() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.statistics()
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

/// Raises the limit of descriptors as far as it goes: a connection takes one. It is each thread's.
fn raise_limit() {
    let now = getrlimit(Resource::Nofile);
    let all = Some(MAX_DESCRIPTORS);
    if now.current.is_none() || now.current >= all {
        return;
    }
    let to = |current, maximum| setrlimit(Resource::Nofile, Rlimit { current, maximum });
    // Beyond the hard limit only with a privilege; where even that is refused, the soft limit stays.
    let beyond = now.maximum.is_some() && now.maximum < all;
    let done = to(all, if beyond { all } else { now.maximum });
    if done.is_err() {
        let _ = to(now.maximum, now.maximum);
    }
}

/// What Linux gives a process at most (`fs.nr_open` as it comes).
const MAX_DESCRIPTORS: u64 = 1 << 20;

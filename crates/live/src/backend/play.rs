//! One run: hosts, server, clock, client after client.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use swell_base::{Dur, Time};
use swell_experiment::RunSpec;
use swell_experiment::backend::RunError;
use swell_experiment::file::{self, CommandLine};
use swell_experiment::stage::Cast;
use swell_world::World;

use super::place::{CLIENT, SERVER, filled, placeholders, ports};
use super::{JOURNAL, Settings, Went, warmed_up};
use crate::emulate::{self, Connections, Emulation, Options, Packets, Running};
use crate::host::{
    Device, Host, HostConfig, Precision, Process, Program, Rights, Stream, be_punctual,
};
use crate::scratch::Scratch;
use crate::serve::Serving;

/// How often a run looks at its programs.
const LOOK: Duration = Duration::from_millis(50);
/// What a program gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Play<'a> {
    pub rights: &'a Rights,
    pub settings: &'a Settings,
    pub spec: &'a RunSpec,
    pub program: &'a file::Program,
    pub delay: Dur,
    pub stretch: f64,
}

/// What is left of a run.
pub(super) struct Played {
    pub world: World,
    pub cast: Cast,
    pub connections: Connections,
    pub exits: Vec<Exit>,
    pub at: Time,
    pub went: Went,
}

/// How a run of a client ended.
#[derive(Clone, Copy, Debug)]
pub struct Exit {
    /// When it was started; world time.
    pub start: Time,
    /// When it ended, or was ended.
    pub end: Time,
    /// How it ended; `None` where the run was over first.
    pub status: Option<ExitStatus>,
    /// It took longer than allowed, and was killed.
    pub timed_out: bool,
}

impl Play<'_> {
    pub fn play(
        &self,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Played, RunError> {
        let scratch = Place::new(self.spec.output.as_deref()).map_err(failed)?;
        let words = placeholders(self.spec, scratch.path());
        let (world, cast) = warmed_up(self.spec)?;
        let (client, client_nic) = self.host("client", CLIENT)?;
        let (server, server_nic) = self.host("server", SERVER)?;
        let _serving = self.serve(&server, &words, scratch.path(), cancelled)?;

        let (got, precision) = mpsc::channel();
        let precise = self.settings.precise;
        let [left, right] = ports(self.delay);
        let attach = |port, addresses: [std::net::IpAddr; 2], nic: Device| emulate::Host {
            port,
            prefixes: addresses.map(Into::into).to_vec(),
            nic: Box::new(nic),
        };
        let hosts = vec![
            attach(left, CLIENT, client_nic),
            attach(right, SERVER, server_nic),
        ];
        let packets = self
            .settings
            .packets
            .as_ref()
            .or(self.spec.packets.as_ref());
        let packets = packets.map(|path| Packets::create(path, &["client", "server"], world.now()));
        let options = Options {
            precise,
            stretch: self.stretch,
            until: Some(Time::ZERO + self.spec.duration),
            journal: self.settings.record.then(|| scratch.path().join(JOURNAL)),
            packets: packets.transpose().map_err(failed)?,
            prepare: Some(Box::new(move || {
                // The receiver waits for this.
                let _ = got.send(be_punctual(precise));
            })),
        };
        let running = Emulation::new(world, hosts, options).and_then(Emulation::start);
        let running = running.map_err(failed)?;
        let precision = precision.recv().unwrap_or(Precision::Fair);
        let exits = self.clients(
            &client,
            &running,
            &words,
            scratch.path(),
            progress,
            cancelled,
        )?;
        // What a client's end makes its kernel say has yet to cross.
        let crossing: Dur = self.spec.links.iter().map(|l| l.delay).sum();
        let crossing = (crossing + self.delay * 4).scale(self.stretch);
        let last = running.now() + crossing + Dur::from_nanos(LOOK.as_nanos() as u64);
        while !running.is_over() && running.now() < last {
            std::thread::sleep(LOOK / 10);
        }
        let ended = running.stop().map_err(failed)?;
        Ok(Played {
            world: ended.world,
            cast,
            connections: ended.connections,
            exits,
            at: ended.at,
            went: Went {
                late: ended.late,
                counts: ended.counts,
                precision,
                stretch: self.stretch,
            },
        })
    }

    fn host(
        &self,
        name: &str,
        addresses: [std::net::IpAddr; 2],
    ) -> Result<(Host, Device), RunError> {
        let mut config = HostConfig::new(name, addresses);
        for (other, theirs) in [("client", CLIENT), ("server", SERVER)] {
            if other != name {
                config.names.extend(theirs.map(|a| (other.to_owned(), a)));
            }
        }
        config
            .congestion_control
            .clone_from(&self.program.congestion_control);
        Host::create(self.rights, &config).map_err(failed)
    }

    /// Starts the server and waits until it is ready.
    fn serve(
        &self,
        host: &Host,
        words: &BTreeMap<&'static str, String>,
        scratch: &Path,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Server, RunError> {
        let Some(server) = &self.program.server else {
            let serving = Serving::start(host, std::env::current_dir().map_err(failed)?);
            return Ok(Server::Ours(serving.map_err(failed)?));
        };
        let mut program = command(
            &server.command,
            server.directory.as_ref(),
            &server.environment,
            words,
        );
        let log = scratch.join("server.out");
        let out = File::create(&log).map_err(failed)?;
        program.stderr = out.try_clone().map_err(failed)?.into();
        program.stdout = out.into();
        let mut process = host.spawn(program).map_err(failed)?;
        let Some(port) = server.ready else {
            return Ok(Server::Theirs(process));
        };
        let begun = Instant::now();
        let patience = Duration::from_nanos(server.ready_timeout.as_nanos());
        let listens = || {
            let at = (SERVER[0], port).into();
            host.enter(|| TcpStream::connect_timeout(&at, LOOK).is_ok())
        };
        while !listens().map_err(failed)? {
            if cancelled() {
                return Err(RunError::Cancelled);
            }
            let tail = || tail(&log);
            if let Some(status) = process.try_wait().map_err(failed)? {
                let text = format!("the server ended before it was ready ({status}){}", tail());
                return Err(RunError::Failed(text.into()));
            }
            if begun.elapsed() > patience {
                let text = format!(
                    "the server does not accept connections on port {port} after {}{}",
                    server.ready_timeout,
                    tail()
                );
                return Err(RunError::Failed(text.into()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(Server::Theirs(process))
    }

    /// Runs the client, once or again and again.
    fn clients(
        &self,
        host: &Host,
        running: &Running,
        words: &BTreeMap<&'static str, String>,
        scratch: &Path,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<Exit>, RunError> {
        let mut exits = Vec::new();
        let client = &self.program.client;
        while !running.is_over() && self.program.count.is_none_or(|n| exits.len() < n as usize) {
            let mut program = command(
                &client.command,
                client.directory.as_ref(),
                &client.environment,
                words,
            );
            if self.settings.terminal {
                program.foreground = true;
                program.stdin = Stream::Inherit;
                program.stdout = Stream::Inherit;
                program.stderr = Stream::Inherit;
            } else {
                let file = |what: &str| {
                    File::create(scratch.join(format!("client-{}.{what}", exits.len())))
                };
                program.stdout = file("out").map_err(failed)?.into();
                program.stderr = file("err").map_err(failed)?.into();
            }
            let start = running.now();
            let mut process = host.spawn(program).map_err(failed)?;
            let exit = self.follow(&mut process, start, running, progress, cancelled)?;
            if let Some(ended) = &self.settings.ended {
                ended(&exit);
            }
            exits.push(exit);
            if self.program.think > Dur::ZERO {
                let pause = self.program.think.scale(self.stretch);
                std::thread::sleep(Duration::from_nanos(pause.as_nanos()));
            }
        }
        Ok(exits)
    }

    fn follow(
        &self,
        process: &mut Process,
        start: Time,
        running: &Running,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Exit, RunError> {
        loop {
            let status = process.wait_timeout(LOOK).map_err(failed)?;
            let now = running.now();
            let exit = |how, timed_out| Exit {
                start,
                end: now,
                status: how,
                timed_out,
            };
            if status.is_some() {
                return Ok(exit(status, false));
            }
            let snapshot = running.snapshot();
            progress(snapshot.at.as_secs_f64() / self.spec.duration.as_secs_f64());
            if let Some(watch) = &self.settings.watch {
                watch(&snapshot);
            }
            if cancelled() {
                end(process).map_err(failed)?;
                return Err(RunError::Cancelled);
            }
            if running.is_over() {
                end(process).map_err(failed)?;
                return Ok(exit(None, false));
            }
            if now.since(start) > self.program.timeout {
                end(process).map_err(failed)?;
                return Ok(exit(None, true));
            }
        }
    }
}

/// Who serves; it ends with this value.
enum Server {
    Ours(Serving),
    Theirs(Process),
}

impl Drop for Server {
    fn drop(&mut self) {
        match self {
            Server::Ours(serving) => serving.stop(),
            // It ends with its host in any case; this lets it write what it has to say.
            Server::Theirs(process) => {
                let _ = end(process);
            }
        }
    }
}

fn end(process: &mut Process) -> io::Result<()> {
    process.terminate()?;
    if process.wait_timeout(GRACE)?.is_none() {
        process.kill()?;
        process.wait()?;
    }
    Ok(())
}

fn command(
    command: &CommandLine,
    directory: Option<&String>,
    environment: &BTreeMap<String, String>,
    words: &BTreeMap<&'static str, String>,
) -> Program {
    let mut program = Program::new(command.arguments().iter().map(|a| filled(a, words)));
    program.directory = directory.map(|d| PathBuf::from(filled(d, words)));
    let pair = |(name, value): (&String, &String)| (name.into(), filled(value, words).into());
    program.env = environment.iter().map(pair).collect();
    program
}

/// The end of what a program wrote, for a message.
fn tail(path: &Path) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(500)..]).into_owned();
    match text.trim() {
        "" => String::new(),
        said => format!("; it said: {said}"),
    }
}

/// The run's own directory, or one that nobody keeps.
enum Place {
    Kept(PathBuf),
    Passing(Scratch),
}

impl Place {
    fn new(kept: Option<&Path>) -> io::Result<Place> {
        match kept {
            // Programs may work in other directories than this one.
            Some(path) => path.canonicalize().map(Place::Kept),
            None => Scratch::new().map(Place::Passing),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Place::Kept(path) => path,
            Place::Passing(scratch) => scratch.path(),
        }
    }
}

fn failed(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> RunError {
    RunError::Failed(e.into())
}

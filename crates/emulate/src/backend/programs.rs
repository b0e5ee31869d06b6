//! A run's real programs: a server, and clients one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use swell_base::{Code, Dur, Time, Warning};
use swell_experiment::backend::RunError;
use swell_experiment::file::{self, CommandLine};
use swell_experiment::observe::MeasureSample;
use swell_experiment::reported::{self, Output};

use super::attempt::{LOOK, Play, failed};
use super::exit::Exit;
use super::output::{tail, written};
use super::place::{filled, placeholders};
use super::serve::Serving;
use crate::Running;
use swell_host::{Host, Listening, Process, Program, Stream};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// The programs of a run.
pub(super) struct Programs<'p> {
    play: &'p Play<'p>,
    what: &'p file::Program,
    /// Values of the placeholders in commands.
    words: BTreeMap<String, String>,
    /// Directory that programs may write to and that holds their output.
    directory: &'p Path,
}

impl<'p> Programs<'p> {
    pub fn new(play: &'p Play<'p>, what: &'p file::Program, directory: &'p Path) -> Programs<'p> {
        Programs {
            play,
            what,
            words: placeholders(play.spec, directory),
            directory,
        }
    }

    /// Starts the server and waits until it is ready.
    pub fn serve<'h>(&self, host: &'h Host) -> Result<Server<'h>, RunError> {
        let Some(server) = &self.what.server else {
            let serving = Serving::start(host, std::env::current_dir().map_err(failed)?);
            return Ok(Server::Ours(serving.map_err(failed)?));
        };
        self.start(host, server, "server")
    }

    /// Starts an additional host's program and waits until it is ready.
    pub fn peer<'h>(&self, host: &'h Host, index: usize) -> Result<Server<'h>, RunError> {
        let peer = &self.what.host[index];
        self.start(host, &peer.service(), &peer.name)
    }

    fn start<'h>(
        &self,
        host: &'h Host,
        server: &file::Server,
        name: &str,
    ) -> Result<Server<'h>, RunError> {
        let mut program = command(
            &server.command,
            server.directory.as_ref(),
            &server.environment,
            &self.words,
        );
        let log = self.directory.join(format!("{name}.out"));
        let out = File::create(&log).map_err(failed)?;
        program.stderr = out.try_clone().map_err(failed)?.into();
        program.stdout = out.into();
        let mut process = host.spawn(program).map_err(failed)?;
        if let Some(port) = server.ready {
            let limit = server.ready_timeout;
            self.await_ready(host, name, port, limit, &mut process, &log)?;
        }
        Ok(Server::Theirs(Started {
            host,
            process,
            name: name.into(),
            log,
        }))
    }

    /// Waits until a socket listens on `port`, according to the host's socket tables.
    fn await_ready(
        &self,
        host: &Host,
        name: &str,
        port: u16,
        limit: Dur,
        process: &mut Process,
        log: &Path,
    ) -> Result<(), RunError> {
        let begun = Instant::now();
        let patience = Duration::from_nanos(limit.as_nanos());
        let fail = |text: String| Err(RunError::Failed((text + &tail(log)).into()));
        loop {
            let listening = host.listening(port).map_err(failed)?;
            if listening == Listening::Everyone {
                return Ok(());
            }
            if (self.play.cancelled)() {
                return Err(RunError::Cancelled);
            }
            // A program that exits with status 0 may have started a daemon.
            if let Some(status) = process.try_wait().map_err(failed)?
                && !status.success()
            {
                return fail(format!("the {name} ended before it was ready ({status})"));
            }
            if begun.elapsed() > patience {
                let what = match listening {
                    Listening::Loopback => "listens on the loopback alone",
                    _ => "does not listen",
                };
                return fail(format!("the {name} {what} on port {port} after {limit}"));
            }
            std::thread::sleep(LOOK / 5);
        }
    }

    /// Runs the client once or repeatedly. Returns its runs, and the names of the processes that runs before the last
    /// one left behind.
    pub fn clients(
        &self,
        host: &Host,
        running: &Running,
    ) -> Result<(Vec<Exit>, Vec<String>), RunError> {
        let mut exits: Vec<Exit> = Vec::new();
        let mut left = Vec::new();
        let (what, settings) = (self.what, self.play.settings);
        let client = &what.client;
        while !running.is_over() && what.count.is_none_or(|n| exits.len() < n as usize) {
            if exits.last().is_some_and(|e| e.status.is_some()) {
                let names = lasting_orphans(host).map_err(failed)?;
                left = if names.len() > left.len() {
                    names
                } else {
                    left
                };
            }
            let mut program = command(
                &client.command,
                client.directory.as_ref(),
                &client.environment,
                &self.words,
            );
            if settings.terminal {
                program.foreground = true;
                program.stdin = Stream::Inherit;
                program.stdout = Stream::Inherit;
                program.stderr = Stream::Inherit;
            } else {
                program.stdin = settings.input.stream().map_err(failed)?;
                let file = |stream: &str| {
                    let name = format!("client-{}.{stream}", exits.len());
                    File::create(self.directory.join(name))
                };
                program.stdout = file("out").map_err(failed)?.into();
                program.stderr = file("err").map_err(failed)?.into();
            }
            let start = running.now();
            let mut process = host.spawn(program).map_err(failed)?;
            let exit = self.follow(host, &mut process, start, running)?;
            if let Some(ended) = &settings.ended {
                ended(&exit);
            }
            exits.push(exit);
            if what.count.is_none_or(|n| exits.len() < n as usize) {
                self.think(running)?;
            }
        }
        Ok((exits, left))
    }

    /// Waits between two runs of the client, or until the run of the network is over.
    fn think(&self, running: &Running) -> Result<(), RunError> {
        let until = running.now() + self.what.think;
        while !running.is_over() {
            let left = until.since(running.now()).scale(self.play.stretch);
            if left == Dur::ZERO {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left.as_nanos()).min(LOOK));
            if self.play.look(running) {
                return Err(RunError::Cancelled);
            }
        }
        Ok(())
    }

    /// Measures that the client's runs reported, and warnings about them.
    pub fn reported(&self, exits: &[Exit], stretch: f64) -> (Vec<MeasureSample>, Vec<Warning>) {
        let asked = &self.what.reported;
        if asked.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut cut = None;
        let mut text = |name: String| {
            let output = written(&self.directory.join(&name));
            if output.cut && cut.is_none() {
                cut = Some(name);
            }
            output.text
        };
        let lines = text(reported::LINES.into());
        let outputs = exits.iter().enumerate().map(|(i, exit)| Output {
            stdout: text(format!("client-{i}.out")),
            stderr: text(format!("client-{i}.err")),
            at: exit.end.as_secs_f64(),
        });
        let (samples, mut doubts) = reported::values(asked, outputs, &lines, stretch);
        doubts.extend(cut.map(|name| {
            Warning::warning(
                Code::OutputCut,
                format!(
                    "{name} is so long that only its first and last 32 MiB were searched for measures"
                ),
            )
        }));
        (samples, doubts)
    }

    fn follow(
        &self,
        host: &Host,
        process: &mut Process,
        start: Time,
        running: &Running,
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
            if self.play.look(running) {
                host.end_programs(GRACE).map_err(failed)?;
                return Err(RunError::Cancelled);
            }
            if running.is_over() {
                host.end_programs(GRACE).map_err(failed)?;
                return Ok(exit(None, false));
            }
            if now.since(start) > self.what.timeout {
                host.end_programs(GRACE).map_err(failed)?;
                return Ok(exit(None, true));
            }
        }
    }
}

/// A running server. Dropping it stops the server, and gives it time to write its last output.
pub(super) enum Server<'h> {
    Ours(Serving),
    Theirs(Started<'h>),
}

/// A program that was started to serve. It has its host for itself.
pub(super) struct Started<'h> {
    host: &'h Host,
    process: Process,
    name: String,
    /// File with its output.
    log: PathBuf,
}

/// Names of the processes that the client left behind. What ends within a moment was about to end.
fn lasting_orphans(client: &Host) -> io::Result<Vec<String>> {
    let names = client.orphans()?;
    if names.is_empty() {
        return Ok(names);
    }
    std::thread::sleep(LOOK);
    client.orphans()
}

/// A warning if processes of the client's host went on after the client had ended by itself, such as daemons. `before`
/// names those that earlier runs of it left behind.
pub(super) fn left_behind(client: &Host, exits: &[Exit], before: Vec<String>) -> Option<Warning> {
    let by_itself = exits.last().is_some_and(|e| e.status.is_some());
    let now = client.orphans().ok().filter(|_| by_itself);
    let now = now.unwrap_or_default();
    let beside = match before.is_empty() {
        true => "",
        false => "; later runs of the client ran beside it",
    };
    let names = if now.len() >= before.len() {
        now
    } else {
        before
    };
    let processes = match names.len() {
        0 => return None,
        1 => "a process".to_owned(),
        n => format!("{n} processes"),
    };
    Some(Warning::warning(
        Code::LeftBehind,
        format!(
            "the client left {processes} behind ({}), and the end of the run ended what still ran: what came after the client was not measured{beside}",
            names.join(", ")
        ),
    ))
}

/// Warnings, with their last output, about servers that failed while the client ran. A server that exited with status
/// 0 had finished normally.
pub(super) fn ended_early(servers: &mut [Server<'_>]) -> Vec<Warning> {
    let doubt = |server: &mut Server<'_>| {
        let Server::Theirs(started) = server else {
            return None;
        };
        let status = started.process.try_wait().ok()??;
        (!status.success()).then(|| {
            let text = format!(
                "the {} ended before its client ({status}){}",
                started.name,
                tail(&started.log)
            );
            Warning::warning(Code::ServerEnded, text)
        })
    };
    servers.iter_mut().filter_map(doubt).collect()
}

/// Ends all servers at once, so that those that ignore SIGTERM cost their time only once.
pub(super) fn end_together(servers: Vec<Server<'_>>) {
    std::thread::scope(|scope| {
        for server in servers {
            scope.spawn(|| drop(server));
        }
    });
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        match self {
            Server::Ours(serving) => serving.stop(),
            // It ends with its host in any case.
            Server::Theirs(started) => {
                let _ = started.host.end_programs(GRACE);
            }
        }
    }
}

fn command(
    command: &CommandLine,
    directory: Option<&String>,
    environment: &BTreeMap<String, String>,
    words: &BTreeMap<String, String>,
) -> Program {
    let mut program = Program::new(command.arguments().iter().map(|a| filled(a, words)));
    program.directory = directory.map(|d| PathBuf::from(filled(d, words)));
    let pair = |(name, value): (&String, &String)| (name.into(), filled(value, words).into());
    program.env = environment.iter().map(pair).collect();
    program
}

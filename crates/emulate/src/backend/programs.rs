//! A run's real programs: a server, and clients one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use swell_base::{Dur, Time, Warning};
use swell_experiment::backend::RunError;
use swell_experiment::file::{self, CommandLine};
use swell_experiment::observe::MeasureSample;
use swell_experiment::reported::{self, Output};

use super::place::{filled, placeholders};
use super::play::{LOOK, Play, failed};
use super::serve::Serving;
use crate::Running;
use swell_host::{Host, Listening, Process, Program, Stream};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// The result of one run of a client.
#[derive(Clone, Copy, Debug)]
pub struct Exit {
    /// When it was started; world time.
    pub start: Time,
    /// When it ended or was killed; world time.
    pub end: Time,
    /// Its exit status; `None` if the emulated run ended first.
    pub status: Option<ExitStatus>,
    /// It exceeded its time limit and was killed.
    pub timed_out: bool,
}

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
    pub fn serve(&self, host: &Host) -> Result<Server, RunError> {
        let Some(server) = &self.what.server else {
            let serving = Serving::start(host, std::env::current_dir().map_err(failed)?);
            return Ok(Server::Ours(serving.map_err(failed)?));
        };
        self.start(host, server, "server")
    }

    /// Starts an additional host's program and waits until it is ready.
    pub fn peer(&self, host: &Host, index: usize) -> Result<Server, RunError> {
        let peer = &self.what.host[index];
        self.start(host, &peer.service(), &peer.name)
    }

    fn start(&self, host: &Host, server: &file::Server, name: &str) -> Result<Server, RunError> {
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

    /// Runs the client once or repeatedly.
    pub fn clients(&self, host: &Host, running: &Running) -> Result<Vec<Exit>, RunError> {
        let mut exits = Vec::new();
        let (what, settings) = (self.what, self.play.settings);
        let client = &what.client;
        while !running.is_over() && what.count.is_none_or(|n| exits.len() < n as usize) {
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
            let exit = self.follow(&mut process, start, running)?;
            if let Some(ended) = &settings.ended {
                ended(&exit);
            }
            exits.push(exit);
            if what.think > Dur::ZERO {
                let pause = what.think.scale(self.play.stretch);
                std::thread::sleep(Duration::from_nanos(pause.as_nanos()));
            }
        }
        Ok(exits)
    }

    /// Measures that the client's runs reported, and warnings about them.
    pub fn reported(&self, exits: &[Exit], stretch: f64) -> (Vec<MeasureSample>, Vec<Warning>) {
        let asked = &self.what.reported;
        if asked.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let text = |name: &str| written(&self.directory.join(name));
        let texts: Vec<[String; 2]> = (0..exits.len())
            .map(|i| ["out", "err"].map(|stream| text(&format!("client-{i}.{stream}"))))
            .collect();
        let outputs = texts
            .iter()
            .zip(exits)
            .map(|([stdout, stderr], exit)| Output {
                stdout,
                stderr,
                at: exit.end.as_secs_f64(),
            });
        let outputs: Vec<Output<'_>> = outputs.collect();
        reported::values(asked, &outputs, &text(reported::LINES), stretch)
    }

    fn follow(
        &self,
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
                end(process).map_err(failed)?;
                return Err(RunError::Cancelled);
            }
            if running.is_over() {
                end(process).map_err(failed)?;
                return Ok(exit(None, false));
            }
            if now.since(start) > self.what.timeout {
                end(process).map_err(failed)?;
                return Ok(exit(None, true));
            }
        }
    }
}

/// A running server. Dropping it stops the server.
pub(super) enum Server {
    Ours(Serving),
    Theirs(Started),
}

/// A program that was started to serve.
pub(super) struct Started {
    process: Process,
    name: String,
    /// File with its output.
    log: PathBuf,
}

/// A warning if the client ended by itself and processes of its host go on, such as daemons.
pub(super) fn left_behind(client: &Host, exits: &[Exit]) -> Option<Warning> {
    let by_itself = exits.last().is_some_and(|e| e.status.is_some());
    let names = client
        .orphans()
        .ok()
        .filter(|n| by_itself && !n.is_empty())?;
    let processes = match names.len() {
        1 => "a process".to_owned(),
        n => format!("{n} processes"),
    };
    Some(Warning::warning(
        "left-behind",
        format!(
            "the client left {processes} behind ({}), and the end of the run ended what still ran: what came after the client was not measured",
            names.join(", ")
        ),
    ))
}

/// Warnings, with their last output, about servers that failed while the client ran. A server that exited with status
/// 0 had finished normally.
pub(super) fn ended_early(servers: Vec<Server>) -> Vec<Warning> {
    let doubt = |mut server: Server| {
        let Server::Theirs(started) = &mut server else {
            return None;
        };
        let status = started.process.try_wait().ok()??;
        (!status.success()).then(|| {
            let text = format!(
                "the {} ended before its client ({status}){}",
                started.name,
                tail(&started.log)
            );
            Warning::warning("server-ended", text)
        })
    };
    servers.into_iter().filter_map(doubt).collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        match self {
            Server::Ours(serving) => serving.stop(),
            // It ends with its host in any case. A signal first gives it time to write its last output.
            Server::Theirs(started) => {
                let _ = end(&mut started.process);
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
    words: &BTreeMap<String, String>,
) -> Program {
    let mut program = Program::new(command.arguments().iter().map(|a| filled(a, words)));
    program.directory = directory.map(|d| PathBuf::from(filled(d, words)));
    let pair = |(name, value): (&String, &String)| (name.into(), filled(value, words).into());
    program.env = environment.iter().map(pair).collect();
    program
}

/// At most this many bytes of output are read.
const MOST: u64 = 64 << 20;

/// The text that a program wrote to a file; empty if there is none.
fn written(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(MOST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last part of what a program wrote, for a message.
fn tail(path: &Path) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(500)..]).into_owned();
    match text.trim() {
        "" => String::new(),
        said => format!("; it said: {said}"),
    }
}

//! One run: hosts, world, clock.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use swell_base::{Dur, Time, Warning};
use swell_experiment::RunSpec;
use swell_experiment::backend::{ForegroundSpec, RunError};
use swell_experiment::observe::Request;
use swell_experiment::stage::{self, Cast};
use swell_world::World;

use super::crowd::Crowds;
use super::place::{CLIENT, SERVER, everybody, ports};
use super::programs::{Exit, Programs};
use super::{JOURNAL, Settings, Went, cold, machine, warmed_up};
use crate::emulate::{self, Connections, Emulation, Options, Packets, Running};
use crate::host::{Device, Host, HostConfig, Precision, Rights, be_punctual};
use crate::scratch::Scratch;

/// How often a run looks at what goes on.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// A run to be played, and whom it answers to.
pub(super) struct Play<'a> {
    pub rights: &'a Rights,
    pub settings: &'a Settings,
    pub spec: &'a RunSpec,
    pub foreground: &'a ForegroundSpec,
    pub stretch: f64,
    pub progress: &'a dyn Fn(f64),
    pub cancelled: &'a dyn Fn() -> bool,
}

/// What the foreground did.
pub(super) enum Done {
    /// The runs of a client.
    Exits(Vec<Exit>),
    /// The requests of a machine, and what to doubt.
    Requests(Vec<Request>, Vec<Warning>),
}

/// What is left of a run.
pub(super) struct Played {
    pub world: World,
    pub cast: Cast,
    pub connections: Connections,
    pub done: Done,
    /// About the background, where the kernel's sockets carried it.
    pub doubts: Vec<Warning>,
    pub at: Time,
    pub went: Went,
}

impl Play<'_> {
    pub fn play(&self) -> Result<Played, RunError> {
        let place = Place::new(self.spec.output.as_deref()).map_err(failed)?;
        let crowd = Crowds::new(self)?;
        let (world, mut cast) = match &crowd {
            None => warmed_up(self.spec)?,
            // The real background warms up in real time.
            Some(_) => cold(self.spec)?,
        };
        let (client, client_nic) = self.host("client", CLIENT)?;
        let (server, server_nic) = self.host("server", SERVER)?;
        let (peers, peer_nics) = self.peers()?;
        let programs = match self.foreground {
            ForegroundSpec::Program { program, .. } => {
                let programs = Programs::new(self, program, place.path());
                let mut serving = vec![programs.serve(&server)?];
                for (i, host) in peers.iter().enumerate() {
                    serving.push(programs.peer(host, i)?);
                }
                Some((programs, serving))
            }
            ForegroundSpec::Web { .. } => None,
        };

        let nics = [client_nic, server_nic].into_iter().chain(peer_nics);
        let places = ports(self.foreground)
            .into_iter()
            .zip(everybody(self.foreground));
        let mut hosts: Vec<emulate::Host> = places
            .zip(nics)
            .map(|((port, (_, addresses)), nic)| emulate::Host {
                port,
                prefixes: addresses.map(Into::into).to_vec(),
                nic: Box::new(nic),
            })
            .collect();
        let (crowd, members) = match crowd {
            None => (None, None),
            Some(mut crowd) => {
                hosts.extend(crowd.hosts());
                let members = crowd.members();
                (Some(crowd), Some(members))
            }
        };
        let (seen, warm) = mpsc::channel();
        let warmup = Time::ZERO + self.spec.warmup;
        let then: emulate::Then = crowd.is_some().then(|| {
            let look = move |at_warmup: &World| {
                // The receiver outlives the emulation.
                let _ = seen.send(stage::ledgers(at_warmup));
            };
            (warmup, Box::new(look) as _)
        });
        let (got, precision) = mpsc::channel();
        let precise = self.settings.precise;
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
            journal: self.settings.record.then(|| place.path().join(JOURNAL)),
            packets: packets.transpose().map_err(failed)?,
            crowd: members,
            then,
            prepare: Some(Box::new(move || {
                // The receiver waits for this.
                let _ = got.send(be_punctual(precise));
            })),
        };
        let running = Emulation::new(world, hosts, options).and_then(Emulation::start);
        let running = running.map_err(failed)?;
        let precision = precision.recv().unwrap_or(Precision::Fair);
        let background = crowd.map(|c| c.start(running.now()));
        while background.is_some() && running.now() < warmup && !running.is_over() {
            std::thread::sleep(LOOK);
            if self.look(&running) {
                return Err(RunError::Cancelled);
            }
        }
        let done = match &programs {
            Some((programs, _)) => Done::Exits(programs.clients(&client, &running)?),
            None => machine::run(self, [&client, &server], &running)?,
        };
        // What a client's end makes its kernel say has yet to cross.
        let crossing: Dur = self.spec.links.iter().map(|l| l.delay).sum();
        let crossing = (crossing + delay(self.foreground) * 4).scale(self.stretch);
        let last = running.now() + crossing + Dur::from_nanos(LOOK.as_nanos() as u64);
        while !running.is_over() && running.now() < last {
            std::thread::sleep(LOOK / 10);
        }
        let mut doubts = Vec::new();
        if let Some(background) = background {
            let (records, warnings) = background.finish()?;
            cast.played(records);
            doubts = warnings;
        }
        let ended = running.stop().map_err(failed)?;
        if let Ok(ledgers) = warm.try_recv() {
            cast.was_warm(ledgers);
        }
        Ok(Played {
            world: ended.world,
            cast,
            connections: ended.connections,
            done,
            doubts,
            at: ended.at,
            went: Went {
                late: ended.late,
                counts: ended.counts,
                precision,
                stretch: self.stretch,
            },
        })
    }

    /// Tells how the run goes on; true where it is to be given up.
    pub fn look(&self, running: &Running) -> bool {
        let snapshot = running.snapshot();
        (self.progress)(snapshot.at.as_secs_f64() / self.spec.duration.as_secs_f64());
        if let Some(watch) = &self.settings.watch {
            watch(&snapshot);
        }
        (self.cancelled)()
    }

    /// The hosts beside client and server.
    fn peers(&self) -> Result<(Vec<Host>, Vec<Device>), RunError> {
        let all = everybody(self.foreground).into_iter().skip(2);
        let made: Result<Vec<_>, _> = all
            .map(|(name, addresses)| self.host(&name, addresses))
            .collect();
        Ok(made?.into_iter().unzip())
    }

    fn host(&self, name: &str, addresses: [IpAddr; 2]) -> Result<(Host, Device), RunError> {
        let mut config = HostConfig::new(name, addresses);
        for (other, theirs) in everybody(self.foreground) {
            if other != name {
                config.names.extend(theirs.map(|a| (other.clone(), a)));
            }
        }
        if let ForegroundSpec::Program { program, .. } = self.foreground {
            config
                .congestion_control
                .clone_from(&program.congestion_control);
        }
        Host::create(self.rights, &config).map_err(failed)
    }
}

/// One-way delay of the foreground's access path on each side.
pub(super) fn delay(foreground: &ForegroundSpec) -> Dur {
    match foreground {
        ForegroundSpec::Web { delay, .. } | ForegroundSpec::Program { delay, .. } => *delay,
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

pub(super) fn failed(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> RunError {
    RunError::Failed(e.into())
}

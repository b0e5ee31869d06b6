//! One run: hosts, world, clock.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use swell_base::{Dur, Time, Warning};
use swell_experiment::RunSpec;
use swell_experiment::backend::RunError;
use swell_experiment::file::Hop;
use swell_experiment::kinds::Traffic;
use swell_experiment::observe::{MeasureSample, Request};
use swell_experiment::stage::{self, Ledgers, RunParts};
use swell_tcp::Config;
use swell_world::{PathId, World};

use super::kernel::{KernelBackground, Playing};
use super::place::{Addresses, everybody, ports};
use super::programs::{Exit, Programs, Server, ended_early};
use super::requests;
use super::{Conditions, JOURNAL, Settings, beginning, machine};
use crate::{Conversations, Emulation, HostUpdates, Options, Packets, Running, Urgency};
use swell_host::scratch::Scratch;
use swell_host::{Device, Host, HostConfig, Precision, Pressure, Rights, be_punctual};

/// How often a run looks at what goes on.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// No buffer grows beyond this: the kernel takes numbers of 31 bits, and memory is for others too.
const MOST_BUFFER: u64 = 256 << 20;

/// A run to be played, and whom it answers to.
pub(super) struct Play<'a> {
    pub rights: &'a Rights,
    pub settings: &'a Settings,
    pub spec: &'a RunSpec,
    pub foreground: &'a Traffic,
    pub stretch: f64,
    pub progress: &'a dyn Fn(f64),
    pub cancelled: &'a dyn Fn() -> bool,
}

/// What the foreground did.
pub(super) enum Done {
    /// The runs of a client.
    Exits(Vec<Exit>),
    /// The requests of a machine, values of its measures, and what to doubt.
    Machine(Vec<Request>, Vec<MeasureSample>, Vec<Warning>),
}

/// What is left of a run.
pub(super) struct Played {
    pub world: World,
    pub run_parts: RunParts,
    pub conversations: Conversations,
    pub done: Done,
    /// What the program reported itself.
    pub measures: Vec<MeasureSample>,
    /// About the background, where the kernel's sockets carried it, and about what the program reported.
    pub doubts: Vec<Warning>,
    pub at: Time,
    pub conditions: Conditions,
    /// The client had this process's output, which nobody keeps.
    pub terminal: bool,
}

/// What the emulation reports while it runs.
struct Reports {
    /// What the links had carried when the world was warm.
    warm: Receiver<Ledgers>,
    /// What the kernel granted.
    precision: Receiver<Precision>,
}

impl Play<'_> {
    pub fn play(&self) -> Result<Played, RunError> {
        let place = Place::new(self.spec.output.as_deref()).map_err(failed)?;
        let (world, mut run_parts, ways) = beginning(self.spec)?;
        let (kernel, theirs) = KernelBackground::new(self, ways.background)?.unzip();
        let (hosts, mut attached) = self.hosts(ways.foreground)?;
        let programs = self.programs(&place, &hosts)?;
        attached.extend(theirs.into_iter().flatten());
        let updates = kernel.as_ref().map(KernelBackground::updates);
        let (options, reports) = self.options(&place, world.now(), updates)?;
        let (before, begun) = (Pressure::now(), Instant::now());
        let running = Emulation::new(world, attached, options).and_then(Emulation::start);
        let running = running.map_err(failed)?;
        let precision = reports.precision.recv().unwrap_or(Precision::Fair);
        let background = match kernel {
            None => None,
            Some(kernel) => Some(self.warm_up(kernel, &running)?),
        };
        let done = match &programs {
            Some((programs, _)) => Done::Exits(programs.clients(&hosts[0], &running)?),
            None => machine::run(self, [&hosts[0], &hosts[1]], &running)?,
        };
        self.wait_for_last_words(&running);
        let (measures, unread) = match (&programs, &done) {
            (Some((programs, _)), Done::Exits(exits)) => programs.reported(exits, self.stretch),
            _ => (Vec::new(), Vec::new()),
        };
        let mut doubts = programs.map_or_else(Vec::new, |(_, servers)| ended_early(servers));
        if let Some(background) = background {
            let (records, warnings) = background.finish()?;
            run_parts.played(records);
            doubts.extend(warnings);
        }
        let ended = running.stop().map_err(failed)?;
        doubts.extend(unread);
        if let Ok(ledgers) = reports.warm.try_recv() {
            run_parts.was_warm(ledgers);
        }
        let conversations = ended.tracker.finish(ended.at);
        let own: &[_] = match &done {
            Done::Machine(_, _, warnings) => warnings,
            Done::Exits(_) => &[],
        };
        let too_late = requests::too_late(&conversations, &ended.late)
            || requests::behind(doubts.iter().chain(own));
        let losses = hosts.iter().map(|h| Ok((h.name().to_owned(), h.losses()?)));
        let losses: io::Result<Vec<_>> = losses.collect();
        Ok(Played {
            world: ended.world,
            run_parts,
            conversations,
            done,
            measures,
            doubts,
            at: ended.at,
            conditions: Conditions {
                late: ended.late,
                too_late,
                counts: ended.counts,
                precision,
                offload: self.settings.offload,
                stretch: self.stretch,
                wall: begun.elapsed(),
                gave_way: ended.gave_way,
                waited: ended.waited,
                pressure: Pressure::now() - before,
                losses: losses.map_err(failed)?,
            },
            terminal: self.settings.terminal,
        })
    }

    /// The hosts with a name, client and server first, and what the emulation attaches of them.
    fn hosts(&self, path: PathId) -> Result<(Vec<Host>, Vec<crate::Host>), RunError> {
        let all = everybody(self.foreground);
        let places = ports(self.foreground, path).into_iter().zip(&all);
        let made: Result<Vec<_>, RunError> = places
            .map(|(port, (name, addresses))| {
                let (host, nic) = self.host(name, *addresses, &all)?;
                let attached = crate::Host {
                    port,
                    prefixes: addresses.map(Into::into).to_vec(),
                    nic: Box::new(nic),
                };
                Ok((host, attached))
            })
            .collect();
        Ok(made?.into_iter().unzip())
    }

    fn host(
        &self,
        name: &str,
        addresses: Addresses,
        all: &[(String, Addresses)],
    ) -> Result<(Host, Device), RunError> {
        let mut config = HostConfig::new(name, addresses);
        config.device.offload = self.settings.offload;
        if let Some((_, tcp)) = self.foreground.over_sockets(Dur::ZERO) {
            tell_namespace(&mut config, &tcp);
        }
        let others = all.iter().filter(|(other, _)| other != name);
        config
            .names
            .extend(others.flat_map(|(other, theirs)| theirs.map(|a| (other.clone(), a))));
        if let Some(program) = self.foreground.program() {
            config
                .congestion_control
                .clone_from(&program.congestion_control);
            config.device.mtu = program.mtu;
            // 2: ECN is accepted and not asked for (Documentation/networking/ip-sysctl.rst), and on every machine.
            let ecn = program.ecn.map_or(2, u8::from);
            let ecn = ("ipv4/tcp_ecn".to_owned(), ecn.to_string());
            config.sysctls.push(ecn);
            config.tcp_buffers = self.buffers();
        }
        Host::create(self.rights, &config).map_err(failed)
    }

    /// Bytes of a TCP connection's buffers with which the network is what holds it, not the kernel: four
    /// bandwidth-delay products, since kernels count what their memory costs, about twice the data, and a queue can
    /// double the round trip.
    fn buffers(&self) -> u64 {
        let path = self.spec.foreground_path();
        let delays: Dur = self.spec.along(&path).map(|l| l.delay).sum();
        let round_trip = (delays + self.foreground.delay() * 4).as_secs_f64();
        let narrowest = self.spec.narrowest(&path);
        let rates = narrowest.map(|q| self.spec.link(q).rate.bps());
        let rate = rates.into_iter().max();
        let bytes = rate.unwrap_or(0) as f64 / 8.0 * round_trip * 4.0;
        (bytes as u64).min(MOST_BUFFER)
    }

    /// Starts everything that serves, and waits until it is ready.
    fn programs<'p>(
        &'p self,
        place: &'p Place,
        hosts: &[Host],
    ) -> Result<Option<(Programs<'p>, Vec<Server>)>, RunError> {
        let Some(program) = self.foreground.program() else {
            return Ok(None);
        };
        let programs = Programs::new(self, program, place.path());
        let mut serving = vec![programs.serve(&hosts[1])?];
        for (i, host) in hosts[2..].iter().enumerate() {
            serving.push(programs.peer(host, i)?);
        }
        Ok(Some((programs, serving)))
    }

    /// How the emulation is to run from `begin`, and what it will tell.
    fn options(
        &self,
        place: &Place,
        begin: Time,
        updates: Option<HostUpdates>,
    ) -> Result<(Options, Reports), RunError> {
        let (tell_warm, warm) = mpsc::channel();
        let (tell_precision, precision) = mpsc::channel();
        let pace = self.settings.pace;
        let packets = self
            .settings
            .packets
            .as_ref()
            .or(self.spec.packets.as_ref());
        let names = everybody(self.foreground);
        let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        let packets = packets.map(|path| Packets::create(path, &names, begin));
        let options = Options {
            pace,
            stretch: self.stretch,
            crossing: crossing(self.spec, self.foreground.delay()),
            bridge: false,
            control: self.settings.control.clone(),
            watched: self.spec.narrowest(&self.spec.foreground_path())[1].link,
            until: Some(Time::ZERO + self.spec.duration),
            journal: self.settings.record.then(|| place.path().join(JOURNAL)),
            packets: packets.transpose().map_err(failed)?,
            then: updates.is_some().then(|| {
                let look = move |world: &World| {
                    // The receiver outlives the emulation.
                    let _ = tell_warm.send(stage::ledgers(world));
                };
                (self.warm(), Box::new(look) as _)
            }),
            updates,
            schedule: Some(Box::new(move |urgency| {
                let granted = be_punctual(urgency == Urgency::Punctual);
                // The first is waited for; later ones nobody asks about.
                let _ = tell_precision.send(granted);
            })),
        };
        Ok((options, Reports { warm, precision }))
    }

    fn warm(&self) -> Time {
        Time::ZERO + self.spec.warmup
    }

    /// Starts a real background, and waits until it is warm.
    fn warm_up(&self, kernel: KernelBackground, running: &Running) -> Result<Playing, RunError> {
        let background = kernel.start(running.now());
        while running.now() < self.warm() && !running.is_over() {
            std::thread::sleep(LOOK);
            if self.look(running) {
                return Err(RunError::Cancelled);
            }
        }
        Ok(background)
    }

    /// What a client's end makes its kernel say has yet to cross.
    fn wait_for_last_words(&self, running: &Running) {
        let path = self.spec.foreground_path();
        let crossing: Dur = self.spec.along(&path).map(|l| l.delay).sum();
        let crossing = (crossing + self.foreground.delay() * 4).scale(self.stretch);
        let last = running.now() + crossing + Dur::from_nanos(LOOK.as_nanos() as u64);
        while !running.is_over() && running.now() < last {
            std::thread::sleep(LOOK / 10);
        }
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
}

/// The least that a packet takes from host to host at any time of the run; `access` is the delay of a host's own link.
pub(super) fn crossing(spec: &RunSpec, access: Dur) -> Dur {
    let least = |hop: &Hop| {
        let link = &spec.links[hop.link];
        let changes = link.changes.iter().flatten().filter_map(|c| c.delay);
        let delays = link.directions.iter().map(|l| l.delay).chain(changes);
        delays.min().unwrap_or(Dur::ZERO)
    };
    let links: Dur = spec.foreground_path().iter().map(least).sum();
    links + access * 2
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

/// What of a TCP configuration is set for a namespace, since no socket has it: ECN, asked for and accepted.
pub(super) fn tell_namespace(host: &mut HostConfig, tcp: &Config) {
    if tcp.ecn {
        let setting = ("ipv4/tcp_ecn".to_owned(), "1".to_owned());
        host.sysctls.push(setting); // IPv6 goes by it too
    }
}

/// What is left to be set on the sockets there.
pub(super) fn of_sockets(tcp: &Config) -> Arc<Config> {
    Arc::new(Config {
        ecn: false,
        ..tcp.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecn_is_told_to_the_namespace_and_not_to_sockets() {
        for ecn in [false, true] {
            let tcp = Config {
                ecn,
                ..Config::linux()
            };
            let mut host = HostConfig::new("client", ["10.0.0.1".parse().unwrap()]);
            tell_namespace(&mut host, &tcp);
            let wanted = ("ipv4/tcp_ecn".to_owned(), "1".to_owned());
            assert_eq!(host.sysctls.contains(&wanted), ecn);
            // Nothing is left of which sockets would have to say that they cannot be told.
            assert_eq!(*of_sockets(&tcp), Config::linux());
        }
    }
}

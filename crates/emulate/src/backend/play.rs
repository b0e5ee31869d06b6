//! One emulated run: hosts, world and clock.

use std::io;
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use swell_base::{Direction, Dur, Rate, Time};
use swell_experiment::RunSpec;
use swell_experiment::backend::RunError;
use swell_experiment::file::{Change, Queue, narrowest};
use swell_experiment::stage::{self, Ledgers};
use swell_world::{PathId, World};

use super::attempt::{Done, LOOK, Play, Played, failed, least_delay, tell_namespace};
use super::beginning::beginning;
use super::kernel::{KernelBackground, Playing};
use super::place::{Addresses, RunDirectory, everybody, on_the_right, ports};
use super::programs::{Programs, Server, end_together, ended_early, left_behind};
use super::requests;
use super::{Conditions, Input, JOURNAL, machine};
use crate::{Emulation, HostUpdates, Options, Packets, Running, Urgency};
use swell_host::{Device, Host, HostConfig, Precision, Pressure, be_punctual};

/// Limit on socket buffers: the kernel's values have 31 bits, and other programs need memory too.
const MOST_BUFFER: u64 = 256 << 20;

/// The buffers where `swell set` can change the network: those of 1 Gbit/s over 130 ms. Larger ones would make the
/// kernel announce windows in coarser units than it does by default in most networks (RFC 7323 section 2.3).
const FOR_ANY: u64 = 64 << 20;

/// What the emulation thread reports while it runs.
struct Reports {
    /// The links' ledgers at the end of the warm-up.
    warm: Receiver<Ledgers>,
    /// The scheduling precision that the kernel granted.
    precision: Receiver<Precision>,
}

impl Play<'_> {
    pub fn play(&self) -> Result<Played, RunError> {
        let place = RunDirectory::new(self.spec.output.as_deref()).map_err(failed)?;
        let (world, mut run_parts, ways) = beginning(self.spec)?;
        let (kernel, theirs) = KernelBackground::new(self, ways.background)?.unzip();
        let (hosts, mut attached) = self.hosts(ways.foreground)?;
        let (programs, mut servers) = self.programs(&place, &hosts)?.unzip();
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
        let (done, left) = match &programs {
            Some(programs) => {
                let (exits, left) = programs.clients(&hosts[0], &running)?;
                (Done::Exits(exits), left)
            }
            None => {
                let done = machine::run(self, [&hosts[0], &hosts[1]], &running)?;
                (done, Vec::new())
            }
        };
        self.wait_for_last_words(&running);
        let of_client = match &done {
            Done::Exits(exits) => left_behind(&hosts[0], exits, left),
            Done::Machine(..) => None,
        };
        let input = (!self.settings.terminal).then_some(self.settings.input);
        let mut doubts = ended_early(servers.as_deref_mut().unwrap_or_default());
        if let Some(background) = background {
            let (records, warnings) = background.finish()?;
            run_parts.played(records);
            doubts.extend(warnings);
        }
        // Time that servers take to end is no part of the run.
        let ended = running.stop().map_err(failed)?;
        let (measures, unread) = match (&programs, &done) {
            (Some(programs), Done::Exits(exits)) => programs.reported(exits, self.stretch),
            _ => (Vec::new(), Vec::new()),
        };
        doubts.extend(unread);
        doubts.extend(of_client);
        doubts.extend(input.and_then(Input::doubt));
        if let Ok(ledgers) = reports.warm.try_recv() {
            run_parts.was_warm(ledgers);
        }
        let conversations = ended.tracker.finish(ended.at);
        let own: &[_] = match &done {
            Done::Machine(_, _, warnings) => warnings,
            Done::Exits(_) => &[],
        };
        let too_late = requests::too_late(&conversations, &ended.late, self.stretch)
            || requests::behind(doubts.iter().chain(own));
        let losses = hosts.iter().map(|h| Ok((h.name().to_owned(), h.losses()?)));
        let losses: io::Result<Vec<_>> = losses.collect();
        let played = Played {
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
        };
        servers.map(end_together);
        Ok(played)
    }

    /// The named hosts, client and server first, and what the emulation attaches of them.
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
        if let Some((_, tcp)) = self.spec.over_sockets() {
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
            // 2: ECN is accepted but not requested (Documentation/networking/ip-sysctl.rst). It is set so that the
            // result does not depend on the machine's default.
            let ecn = program.ecn.map_or(2, u8::from);
            let ecn = ("ipv4/tcp_ecn".to_owned(), ecn.to_string());
            config.sysctls.push(ecn);
            config.tcp_buffers = self.buffers();
        }
        Host::create(self.rights, &config).map_err(failed)
    }

    /// Size of TCP buffers in bytes at which the network limits a connection, not the kernel.
    fn buffers(&self) -> u64 {
        let known = buffers(self.spec, self.foreground.delay());
        match self.settings.control {
            // Rates and delays can be set while the program runs.
            Some(_) => known.max(FOR_ANY),
            None => known,
        }
    }

    /// Starts all programs that serve, and waits until they are ready.
    fn programs<'p>(
        &'p self,
        place: &'p RunDirectory,
        hosts: &'p [Host],
    ) -> Result<Option<(Programs<'p>, Vec<Server<'p>>)>, RunError> {
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

    /// The emulation's options for a world that begins at `begin`, and the receivers of its reports.
    fn options(
        &self,
        place: &RunDirectory,
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
        let names = names.iter().zip(on_the_right(self.foreground));
        let names: Vec<(&str, bool)> = names
            .map(|((name, _), right)| (name.as_str(), !right))
            .collect();
        let packets = packets.map(|path| Packets::create(path, &names, begin));
        let options = Options {
            pace,
            stretch: self.stretch,
            crossing: crossing(self.spec, self.foreground.delay()),
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
                // Only the first result is received; for later ones the receiver may be gone.
                let _ = tell_precision.send(granted);
            })),
        };
        Ok((options, Reports { warm, precision }))
    }

    fn warm(&self) -> Time {
        Time::ZERO + self.spec.warmup
    }

    /// Starts a background over kernel sockets, and waits until it is warm.
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

    /// Waits until the final packets of the client's kernel, such as FINs and ACKs, have crossed.
    fn wait_for_last_words(&self, running: &Running) {
        let path = self.spec.foreground_path();
        let crossing: Dur = self.spec.along(&path).map(|l| l.delay).sum();
        // All of this is time of the world, which the clock of the emulation stretches.
        let crossing = crossing + self.foreground.delay() * 4;
        let last = running.now() + crossing + Dur::from_nanos(LOOK.as_nanos() as u64);
        while !running.is_over() && running.now() < last {
            std::thread::sleep(LOOK / 10);
        }
    }
}

/// Four bandwidth-delay products of the run, in bytes: kernels count memory, about twice the data, and a queue can
/// double the round-trip time. Rates and delays are the largest that the links ever have. `access` is the delay of a
/// host's access link.
fn buffers(spec: &RunSpec, access: Dur) -> u64 {
    let path = spec.foreground_path();
    let both = path.iter().flat_map(|hop| {
        Direction::BOTH.map(|direction| Queue {
            link: hop.link,
            direction,
        })
    });
    let delays: Dur = both
        .map(|q| most(spec, q, spec.link(q).delay, |c| c.delay))
        .sum();
    let round_trip = (delays + access * 4).as_secs_f64();
    let of_trace = |c: &Change| {
        let trace = spec.deliveries.get(&c.deliveries.as_ref()?.0.file)?;
        Some(trace.rate())
    };
    let rate = |q: Queue| most(spec, q, spec.link(q).rate, |c| c.rate.or(of_trace(c)));
    let rates = Direction::BOTH.map(|along| narrowest(&path, along, rate).map(rate));
    let highest = rates.into_iter().flatten().max();
    let bytes = highest.map_or(0, Rate::bps) as f64 / 8.0 * round_trip * 4.0;
    (bytes as u64).min(MOST_BUFFER)
}

/// The largest value that a queue's link ever has, if it is `first` at first.
fn most<T: Ord>(spec: &RunSpec, queue: Queue, first: T, of: impl Fn(&Change) -> Option<T>) -> T {
    let changes = &spec.links[queue.link].changes[queue.direction];
    changes.iter().filter_map(of).fold(first, T::max)
}

/// The shortest time that a packet takes from host to host at any time in the run. `access` is the delay of a host's
/// access link.
pub(super) fn crossing(spec: &RunSpec, access: Dur) -> Dur {
    let path = spec.foreground_path();
    let links: Dur = path.iter().map(|hop| least_delay(spec, hop)).sum();
    links + access * 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use swell_experiment::plan::Plan;

    /// A link that becomes faster, or longer, while the program runs.
    #[test]
    fn buffers_are_large_enough_for_what_links_become() {
        let of = |changes: &str| {
            let text = format!(
                "name = 'x'\nbackend = 'emulated'\n[network]\nrate = '10Mbit'\ndelay = '50ms'\n{changes}\n\
                 [[background]]\nkind = 'none'\nname = 'none'\n\
                 [[foreground]]\nkind = 'program'\nname = 'x'\nclient.command = 'true'\n"
            );
            let plan = Plan::resolve(&text, "x.toml", std::path::Path::new("")).unwrap();
            let none = &plan.file.background[0].0;
            buffers(&plan.alone(none, 0, None, &BTreeMap::new()), Dur::ZERO)
        };
        let change = |what| format!("[[network.change]]\nat = '1s'\n{what}");
        // Four times 10 Mbit/s times 100 ms.
        assert_eq!(of(""), 500_000);
        assert_eq!(of(&change("rate = '100Mbit'")), 5_000_000);
        assert_eq!(of(&change("delay = '500ms'")), 5_000_000);
        assert_eq!(of(&change("rate = '1Mbit'")), 500_000);
    }
}

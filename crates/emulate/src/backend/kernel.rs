//! A run's background over kernel sockets. It uses the same traffic machine as the simulator, between two hosts with
//! thousands of addresses.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use swell_base::{Time, Warning};
use swell_experiment::backend::RunError;
use swell_experiment::file::Stack;
use swell_experiment::stage;
use swell_tcp::Config;
use swell_workload::{Access, Record, Workload};
use swell_world::{PathId, PortConfig};

use super::attempt::{Play, failed, of_sockets, tell_namespace};
use super::place::networks;
use super::side::sockets;
use crate::HostUpdates;
use swell_host::{Host, HostConfig, be_punctual};
use swell_sockets::{Carrier, CarrierConfig, Paths, Side};

/// The two hosts and the traffic machine that will run between them.
pub(super) struct KernelBackground {
    machine: Box<dyn Workload>,
    tcp: Arc<Config>,
    hosts: [Host; 2],
    updates: HostUpdates,
    end: Time,
}

/// A running background.
pub(super) struct Playing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Done, RunError>>>,
    /// Keeps the hosts while the background runs.
    _hosts: [Host; 2],
}

type Done = (Vec<Record>, Vec<Warning>);

impl KernelBackground {
    /// Makes the two hosts, and what the emulation attaches of them at the ends of a path. `None` if the run has no
    /// background or a simulated one.
    pub fn new(
        play: &Play<'_>,
        path: PathId,
    ) -> Result<Option<(KernelBackground, [crate::Host; 2])>, RunError> {
        if play.spec.background_stack == Stack::Simulated {
            return Ok(None);
        }
        let Some((machine, tcp)) = stage::background(play.spec)? else {
            return Ok(None);
        };
        if play.stretch > 1.0 {
            return Err(failed(
                "the kernel's time cannot be stretched: run.background_stack = \"simulated\" can",
            ));
        }
        let make = |side: Side, name: &str| -> Result<_, RunError> {
            let networks = networks(side);
            let mut config = HostConfig::new(name, networks.map(|n| n.broadcast()));
            config.local = networks.to_vec();
            config.device.offload = play.settings.offload;
            tell_namespace(&mut config, &tcp);
            let (host, nic) = Host::create(play.rights, &config).map_err(failed)?;
            let attached = crate::Host {
                port: PortConfig {
                    right: side == Side::Right,
                    path,
                    ..PortConfig::default()
                },
                prefixes: networks.to_vec(),
                nic: Box::new(nic),
            };
            Ok((host, attached))
        };
        let (left, users) = make(Side::Left, "users")?;
        let (right, servers) = make(Side::Right, "servers")?;
        let background = KernelBackground {
            machine,
            tcp,
            hosts: [left, right],
            updates: HostUpdates::on(path),
            end: Time::ZERO + play.spec.duration,
        };
        Ok(Some((background, [users, servers])))
    }

    /// The address updates for the emulation.
    pub fn updates(&self) -> HostUpdates {
        self.updates.clone()
    }

    /// Starts the machine at world time `now`.
    pub fn start(self, now: Time) -> Playing {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let namespaces = self.hosts.each_ref().map(Host::network);
        let KernelBackground {
            machine,
            tcp,
            updates,
            end,
            ..
        } = self;
        let thread = std::thread::spawn(move || {
            be_punctual(true);
            let [left, right] = namespaces;
            let side = |network: io::Result<OwnedFd>, place| {
                let network = network.map_err(failed)?;
                sockets(network, networks(place)).map_err(failed)
            };
            let mut carrier = Carrier::new(CarrierConfig {
                sides: [side(left, Side::Left)?, side(right, Side::Right)?],
                paths: Some(Box::new(Updates(updates))),
                epoch: None,
            })
            .map_err(failed)?;
            let index = carrier.add(machine, &of_sockets(&tcp)).map_err(failed)?;
            let span = end.since(now);
            carrier.run(Time::ZERO + span, &theirs).map_err(failed)?;
            carrier.finish();
            Ok((carrier.take_records(index), carrier.report().warnings))
        });
        Playing {
            stop,
            thread: Some(thread),
            _hosts: self.hosts,
        }
    }
}

impl Playing {
    /// Stops the background and returns its results.
    pub fn finish(mut self) -> Result<Done, RunError> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(done)) => done,
            _ => Err(failed("the carrier of the background panicked")),
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The run has already failed for another reason.
            let _ = thread.join();
        }
    }
}

/// Forwards the carrier's address updates to the emulation.
struct Updates(HostUpdates);

impl Paths for Updates {
    fn taken(&mut self, side: Side, address: IpAddr, access: &Access) {
        self.0.attach(side == Side::Right, address, access);
    }

    fn released(&mut self, side: Side, address: IpAddr) {
        self.0.detach(side == Side::Right, address);
    }
}

//! A run's background over kernel sockets: the machine that runs in the simulator, between two hosts with
//! thousands of addresses.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use swell_base::{Time, Warning};
use swell_experiment::backend::RunError;
use swell_experiment::file::Stack;
use swell_experiment::stage;
use swell_tcp::Config;
use swell_workload::{Record, Workload};
use swell_world::PortConfig;

use super::play::{Play, failed};
use crate::emulate::{self, Crowd};
use crate::host::{DEVICE_NAME, Device, Host, HostConfig};
use crate::sockets::{Carrier, CarrierConfig, InNamespace, Prefix, SideConfig};

/// Bits that the addresses of one side have in common: beside the program hosts' own, in the same ranges
/// for benchmarks (RFC 2544 appendix C.2.2, RFC 5180 section 8).
const PREFIXES: [u8; 2] = [17, 64];

fn prefixes(side: u8) -> [IpAddr; 2] {
    [
        IpAddr::V4(Ipv4Addr::new(198, 18 + side, 128, 0)),
        IpAddr::V6(Ipv6Addr::new(
            0x2001,
            2,
            0,
            0x101 + u16::from(side),
            0,
            0,
            0,
            0,
        )),
    ]
}

/// The two hosts and what will run in them.
pub(super) struct Crowds {
    machine: Box<dyn Workload>,
    tcp: Arc<Config>,
    hosts: [Host; 2],
    nics: Option<[Device; 2]>,
    crowd: Crowd,
    end: Time,
}

/// A background that runs.
pub(super) struct Playing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Done, RunError>>>,
    /// They live as long as it runs.
    _hosts: [Host; 2],
}

type Done = (Vec<Record>, Vec<Warning>);

impl Crowds {
    /// Makes the hosts; `None` where the run's background is simulated, or there is none.
    pub fn new(play: &Play<'_>) -> Result<Option<Crowds>, RunError> {
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
        let make = |side: u8, name: &str| {
            let all = prefixes(side);
            // Its own address is the last of the prefix, which no member has.
            let own = all.map(|base| match base {
                IpAddr::V4(a) => IpAddr::V4(Ipv4Addr::from_bits(a.to_bits() | 0x7fff)),
                IpAddr::V6(a) => IpAddr::V6(Ipv6Addr::from_bits(a.to_bits() | 0xffff_ffff)),
            });
            let mut config = HostConfig::new(name, own);
            config.local = nets(side);
            Host::create(play.rights, &config).map_err(failed)
        };
        let (left, left_nic) = make(0, "users")?;
        let (right, right_nic) = make(1, "servers")?;
        Ok(Some(Crowds {
            machine,
            tcp,
            hosts: [left, right],
            nics: Some([left_nic, right_nic]),
            crowd: Crowd::default(),
            end: Time::ZERO + play.spec.duration,
        }))
    }

    /// What the emulation attaches.
    pub fn hosts(&mut self) -> Vec<emulate::Host> {
        let nics = self.nics.take().into_iter().flatten();
        let sides = nics.zip([false, true]);
        sides
            .map(|(nic, right)| emulate::Host {
                port: PortConfig {
                    right,
                    ..PortConfig::default()
                },
                prefixes: nets(u8::from(right)),
                nic: Box::new(nic),
            })
            .collect()
    }

    /// Who tells the emulation of the members.
    pub fn members(&self) -> Crowd {
        self.crowd.clone()
    }

    /// Starts the machine when the world's time is `now`.
    pub fn start(self, now: Time) -> Playing {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let namespaces = self.hosts.each_ref().map(Host::network);
        let Crowds {
            machine,
            tcp,
            crowd,
            end,
            ..
        } = self;
        let thread = std::thread::spawn(move || {
            let [left, right] = namespaces;
            let left = side(left.map_err(failed)?, 0)?;
            let right = side(right.map_err(failed)?, 1)?;
            let mut carrier = Carrier::new(CarrierConfig {
                sides: [left, right],
                paths: Some(Box::new(crowd)),
                epoch: None,
            })
            .map_err(failed)?;
            let index = carrier.add(machine, &tcp).map_err(failed)?;
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
    /// Ends it.
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
            // The run has failed for another reason.
            let _ = thread.join();
        }
    }
}

fn nets(side: u8) -> Vec<ipnet::IpNet> {
    let all = prefixes(side).into_iter().zip(PREFIXES);
    all.filter_map(|(base, bits)| ipnet::IpNet::new(base, bits).ok())
        .collect()
}

fn side(there: OwnedFd, number: u8) -> Result<SideConfig, RunError> {
    let home = File::open("/proc/thread-self/ns/net").map_err(failed)?;
    let [v4, v6] = prefixes(number);
    let bits = "the lengths are within those of addresses";
    Ok(SideConfig {
        sockets: Box::new(InNamespace::new(there, home.into())),
        ipv4: Prefix::new(v4, PREFIXES[0]).ok_or_else(|| failed(bits))?,
        ipv6: Some(Prefix::new(v6, PREFIXES[1]).ok_or_else(|| failed(bits))?),
        device: Some(DEVICE_NAME.into()),
    })
}

//! A bridge: joins existing interfaces through a world.
//!
//! Only this process carries frames between the interfaces, so nothing crosses after it dies. The interfaces keep
//! their names, addresses and owners, and nothing has to be restored.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use swell_base::{Dur, Time};
use swell_experiment::RunSpec;
use swell_experiment::backend::RunError;
use swell_world::Hop;

use super::attempt::{LOOK, failed, least_delay};
use super::beginning::beginning;
use super::place::FIRST_HOP;
use super::{Conditions, Settings};
use crate::{
    Emulation, FaultTally, Faults, Layout, Options, Packets, PortCounts, Route, Running, Urgency,
};
use swell_host::{
    Gateway, Interface, InterfaceFacts, Nic, Precision, Pressure, Routed, Routes, be_punctual,
};

/// A bridge between interfaces.
pub struct Bridge<'b> {
    /// How the emulator runs.
    pub settings: &'b Settings,
    /// The network, the background traffic, and the duration.
    pub spec: &'b RunSpec,
    /// The interfaces, in the calling thread's network namespace.
    pub interfaces: &'b [InterfaceFacts],
    /// Where they are.
    pub layout: &'b Layout,
    /// The gateway that joins the last interface's network by NAT. Otherwise that interface is joined itself.
    pub gateway: Option<&'b Gateway>,
    /// Join them like a router, not like switches: packets that hosts on each side send through this machine cross.
    pub routed: bool,
    /// Faults in addition to the impairments of links. They need one interface on the left and one on the right.
    pub faults: &'b Faults,
    /// Where the faults are counted.
    pub tally: &'b FaultTally,
    /// Called with the name of an interface that no longer exists, or of one that was created again and is joined
    /// again; with true in the second case.
    pub changed: &'b dyn Fn(&str, bool),
}

/// What the kernel says of an interface that does not exist: ENODEV, errno(3).
const NO_DEVICE: i32 = rustix::io::Errno::NODEV.raw_os_error();
/// Interval of the check that the interfaces still exist.
const ASK: Duration = Duration::from_secs(1);

impl Bridge<'_> {
    /// The gateway, if it is that of this interface.
    fn gateway_of(&self, interface: usize) -> Option<&Gateway> {
        self.gateway
            .filter(|_| interface + 1 == self.interfaces.len())
    }

    /// Opens an interface.
    fn open(&self, interface: usize) -> std::io::Result<Box<dyn Nic>> {
        let together = self.interfaces.len();
        if let Some(gateway) = self.gateway_of(interface) {
            return Ok(Box::new(gateway.open(together)?));
        }
        let name = &*self.interfaces[interface].name;
        if !self.routed {
            return Ok(Box::new(Interface::open(name, together)?));
        }
        let addresses = self.interfaces.iter().flat_map(|i| &i.addresses);
        let own: Vec<IpAddr> = addresses.filter_map(|a| a.parse().ok()).collect();
        Ok(Box::new(Routed::open(name, together, own)?))
    }

    /// Opens every interface.
    fn open_each(&self) -> Result<Vec<Box<dyn Nic>>, RunError> {
        let open = |(i, facts): (usize, &InterfaceFacts)| {
            let opened = self.open(i);
            opened.map_err(|e| failed(format!("interface {}: {e}", facts.name)))
        };
        self.interfaces.iter().enumerate().map(open).collect()
    }

    /// Opens all interfaces, with the faults between them.
    fn open_all(&self) -> Result<Vec<Box<dyn Nic>>, RunError> {
        let opened = self.open_each()?;
        if *self.faults == Faults::default() {
            return Ok(opened);
        }
        let two: Result<[Box<dyn Nic>; 2], _> = opened.try_into();
        let two = two.map_err(|_| failed("faults need one interface at each end"))?;
        Ok(self.faults.between(two, self.tally).into())
    }

    /// The kernel's routes between the interfaces. Two of them need none: what comes in by one leaves by the other.
    fn route(&self) -> Result<Option<Route>, RunError> {
        if !self.routed || self.interfaces.len() == 2 {
            return Ok(None);
        }
        let mut routes = Routes::open().map_err(failed)?;
        let indices: Vec<u32> = self.interfaces.iter().map(|i| i.index).collect();
        Ok(Some(Box::new(move |to| {
            let index = routes.interface(to)?;
            indices.iter().position(|&i| i == index)
        })))
    }

    /// Finds interfaces that no longer exist, and joins those again that were created again. `indices` are those of the
    /// joined ones. The others remain joined as long as there is one at each end.
    fn look(&self, indices: &mut [Option<u32>], running: &Running) -> Result<(), RunError> {
        for (i, facts) in self.interfaces.iter().enumerate() {
            let name = &facts.name;
            let now = match InterfaceFacts::of(name) {
                Ok(now) => Some(now),
                Err(e) if e.raw_os_error() == Some(NO_DEVICE) => None,
                // This process may lack descriptors for a moment, so nothing is known.
                Err(_) => continue,
            };
            if indices[i].is_some() && indices[i] != now.as_ref().map(|n| n.index) {
                indices[i] = None;
                let place = self.layout.interfaces[i];
                let mut others = self.layout.interfaces.iter().zip(&*indices);
                if !others.any(|(other, index)| index.is_some() && *other == place) {
                    return Err(failed(format!("interface {name} went away")));
                }
                (self.changed)(name, false);
            }
            // A router's interface has lost its addresses, too, and the gateway its device on the interface. Both are
            // left alone.
            let lasting = !self.routed && self.gateway_of(i).is_none();
            let usable = |n: &InterfaceFacts| n.up && n.ethernet && !n.enslaved && lasting;
            if indices[i].is_none()
                && let Some(again) = now.filter(usable)
                && let Ok(nic) = self.open(i)
            {
                running.replace(i, nic);
                indices[i] = Some(again.index);
                (self.changed)(name, true);
            }
        }
        Ok(())
    }

    /// Runs the bridge until its time is over or it is cancelled. `ready` is called when frames can cross. Also returns
    /// the counts of each interface.
    ///
    /// # Errors
    /// If an interface is missing, the last one at an end disappears, or this process lacks the rights to read frames.
    pub fn stand(
        &self,
        ready: &dyn Fn(),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(Conditions, Vec<PortCounts>), RunError> {
        let route = self.route()?;
        // Whoever lacks the rights learns it before the warm-up.
        drop(self.open_each()?);
        // The background warms up before any host can send, which takes a while. Frames that came meanwhile would wait
        // in the sockets, and the time of faults would run.
        let (mut world, ..) = beginning(self.spec)?;
        let nics = self.open_all()?;
        // Nobody analyses a bridge's traffic by millisecond, and it may stand for weeks.
        world.meter(Dur::from_secs(1), Dur::from_secs(3_600));
        let begin = world.now();
        let first = self.layout.interfaces.first();
        let nodes = self.layout.interfaces.iter();
        let names = self.interfaces.iter().zip(nodes);
        let names: Vec<(&str, bool)> = names
            .map(|(i, node)| (&*i.name, Some(node) == first))
            .collect();
        let packets = self.settings.packets.as_ref();
        let packets = packets.map(|path| Packets::create(path, &names, begin));
        let (tell, told) = std::sync::mpsc::channel();
        let crossing = |hops: &[Hop]| hops.iter().map(|hop| least_delay(self.spec, hop)).sum();
        let spans = self.layout.spans.iter().map(|span| crossing(&span.hops));
        let options = Options {
            pace: self.settings.pace,
            stretch: self.settings.stretch,
            crossing: spans.min().unwrap_or(Dur::ZERO),
            control: self.settings.control.clone(),
            watched: self.spec.narrowest(&self.spec.foreground_path())[1].link,
            until: Some(Time::ZERO + self.spec.duration),
            packets: packets.transpose().map_err(failed)?.map(Packets::of_frames),
            schedule: Some(Box::new(move |urgency| {
                // Only the first result is received; for later ones the receiver may be gone.
                let _ = tell.send(be_punctual(urgency == Urgency::Punctual));
            })),
            ..Options::default()
        };
        let (before, begun) = (Pressure::now(), Instant::now());
        let running = Emulation::bridge(world, nics, self.layout, FIRST_HOP, route, options);
        let running = running.and_then(Emulation::start).map_err(failed)?;
        let precision = told.recv().unwrap_or(Precision::Fair);
        ready();
        let mut asked = Instant::now();
        let mut indices: Vec<Option<u32>> = self.interfaces.iter().map(|i| Some(i.index)).collect();
        while !running.is_over() && !cancelled() {
            std::thread::sleep(LOOK);
            if let Some(watch) = &self.settings.watch {
                watch(&running.snapshot());
            }
            if asked.elapsed() > ASK {
                asked = Instant::now();
                self.look(&mut indices, &running)?;
            }
        }
        let ended = running.stop().map_err(failed)?;
        let conditions = Conditions {
            late: ended.late,
            too_late: ended.late.too_late(self.settings.stretch.max(1.0)),
            counts: ended.counts,
            precision,
            offload: self.settings.offload,
            stretch: self.settings.stretch.max(1.0),
            wall: begun.elapsed(),
            gave_way: ended.gave_way,
            waited: ended.waited,
            pressure: Pressure::now() - before,
            losses: Vec::new(),
        };
        Ok((conditions, ended.ports))
    }
}

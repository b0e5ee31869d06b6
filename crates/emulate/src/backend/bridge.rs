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

use super::place::FIRST_HOP;
use super::play::{LOOK, failed, least_delay};
use super::{Conditions, Settings, beginning};
use crate::{Emulation, FaultTally, Faults, Layout, Options, Packets, PortCounts, Route, Urgency};
use swell_host::{
    Interface, InterfaceFacts, Nic, Precision, Pressure, Routed, Routes, be_punctual,
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
    /// Join them like a router, not like switches: packets that hosts on each side send through this machine cross.
    pub routed: bool,
    /// Faults in addition to the impairments of links. They need one interface on the left and one on the right.
    pub faults: &'b Faults,
    /// Where the faults are counted.
    pub tally: &'b FaultTally,
    /// Called with the name of an interface that no longer exists.
    pub gone: &'b dyn Fn(&str),
}

/// Interval of the check that the interfaces still exist.
const ASK: Duration = Duration::from_secs(1);

impl Bridge<'_> {
    /// Opens the interfaces.
    fn open(&self) -> Result<Vec<Box<dyn Nic>>, RunError> {
        let addresses = self.interfaces.iter().flat_map(|i| &i.addresses);
        let own: Vec<IpAddr> = addresses.filter_map(|a| a.parse().ok()).collect();
        let together = self.interfaces.len();
        let open = |facts: &InterfaceFacts| -> Result<Box<dyn Nic>, RunError> {
            let name = &facts.name;
            let opened: std::io::Result<Box<dyn Nic>> = match self.routed {
                true => Routed::open(name, together, own.clone()).map(|n| Box::new(n) as _),
                false => Interface::open(name, together).map(|n| Box::new(n) as _),
            };
            opened.map_err(|e| failed(format!("interface {name}: {e}")))
        };
        let opened: Result<Vec<_>, _> = self.interfaces.iter().map(open).collect();
        let opened = opened?;
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

    /// Finds interfaces that no longer exist. The others remain joined as long as there is one at each end.
    fn look(&self, there: &mut [bool]) -> Result<(), RunError> {
        for (i, facts) in self.interfaces.iter().enumerate() {
            let same = |now: InterfaceFacts| now.index == facts.index;
            if !there[i] || InterfaceFacts::of(&facts.name).is_ok_and(same) {
                continue;
            }
            there[i] = false;
            let place = self.layout.interfaces[i];
            let mut others = self.layout.interfaces.iter().zip(&*there);
            if !others.any(|(other, remains)| *remains && *other == place) {
                return Err(failed(format!("interface {} went away", facts.name)));
            }
            (self.gone)(&facts.name);
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
        let nics = self.open()?;
        let route = self.route()?;
        // The background warms up before any host can send.
        let (world, ..) = beginning(self.spec)?;
        let begin = world.now();
        let names: Vec<&str> = self.interfaces.iter().map(|i| &*i.name).collect();
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
        let mut there = vec![true; self.interfaces.len()];
        while !running.is_over() && !cancelled() {
            std::thread::sleep(LOOK);
            if let Some(watch) = &self.settings.watch {
                watch(&running.snapshot());
            }
            if asked.elapsed() > ASK {
                asked = Instant::now();
                self.look(&mut there)?;
            }
        }
        let ended = running.stop().map_err(failed)?;
        let conditions = Conditions {
            late: ended.late,
            too_late: ended.late.too_late(),
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

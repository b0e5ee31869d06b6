//! A bridge: joins two existing interfaces through a world.
//!
//! Only this process carries frames between the interfaces, so nothing crosses after it dies. The interfaces keep
//! their names, addresses and owners, and nothing has to be restored.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use swell_base::{Dur, Time};
use swell_experiment::RunSpec;
use swell_experiment::backend::RunError;
use swell_workload::Access;
use swell_world::PortConfig;

use super::place::FIRST_HOP;
use super::play::{LOOK, crossing, failed};
use super::{Conditions, Settings, beginning};
use crate::{Emulation, FaultTally, Faults, Options, Packets, Urgency};
use swell_host::{Interface, InterfaceFacts, Nic, Precision, Pressure, Routed, be_punctual};

/// A bridge between two interfaces.
pub struct Bridge<'b> {
    /// How the emulator runs.
    pub settings: &'b Settings,
    /// The network, the background traffic, and the duration.
    pub spec: &'b RunSpec,
    /// The interfaces, left and right, in the calling thread's network namespace.
    pub ends: [&'b str; 2],
    /// Join them like a router, not like a switch: packets that hosts on each side send through this machine cross.
    pub routed: bool,
    /// Faults in addition to the impairments of links.
    pub faults: &'b Faults,
    /// Where the faults are counted.
    pub tally: &'b FaultTally,
}

/// Interval of the check that the interfaces still exist.
const ASK: Duration = Duration::from_secs(1);

impl Bridge<'_> {
    /// This machine's addresses on both interfaces.
    fn own(&self) -> Result<Vec<IpAddr>, RunError> {
        let mut own = Vec::new();
        for name in self.ends {
            let facts = InterfaceFacts::of(name);
            let facts = facts.map_err(|e| failed(format!("interface {name}: {e}")))?;
            own.extend(
                facts
                    .addresses
                    .iter()
                    .filter_map(|a| a.parse::<IpAddr>().ok()),
            );
        }
        Ok(own)
    }

    /// Runs the bridge until its time is over or it is cancelled. `ready` is called when frames can cross.
    ///
    /// # Errors
    /// If an interface is missing or disappears, or this process lacks the rights to read frames.
    pub fn stand(
        &self,
        ready: &dyn Fn(),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Conditions, RunError> {
        let own = self.own()?;
        let open = |name: &str| -> Result<Box<dyn Nic>, RunError> {
            let opened = match self.routed {
                true => Routed::open(name, own.clone()).map(|n| Box::new(n) as Box<dyn Nic>),
                false => Interface::open(name).map(|n| Box::new(n) as Box<dyn Nic>),
            };
            opened.map_err(|e| failed(format!("interface {name}: {e}")))
        };
        let [left, right] = self.ends.map(open);
        let ends = self.faults.between([left?, right?], self.tally);
        // The background warms up before any host can send.
        let (world, _, ways) = beginning(self.spec)?;
        let begin = world.now();
        let packets = self.settings.packets.as_ref();
        let packets = packets.map(|path| Packets::create(path, &self.ends, begin));
        let (tell, told) = std::sync::mpsc::channel();
        let options = Options {
            pace: self.settings.pace,
            stretch: self.settings.stretch,
            crossing: crossing(self.spec, Dur::ZERO),
            bridge: true,
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
        let hosts = ends
            .into_iter()
            .zip([false, true])
            .map(|(nic, on_right)| crate::Host {
                port: PortConfig {
                    right: on_right,
                    access: Access {
                        delay: Dur::ZERO,
                        up: Some(FIRST_HOP),
                        ..Access::default()
                    },
                    path: ways.foreground,
                },
                prefixes: Vec::new(),
                nic,
            });
        let (before, begun) = (Pressure::now(), Instant::now());
        let running = Emulation::new(world, hosts.collect(), options).and_then(Emulation::start);
        let running = running.map_err(failed)?;
        let precision = told.recv().unwrap_or(Precision::Fair);
        ready();
        let mut asked = Instant::now();
        while !running.is_over() && !cancelled() {
            std::thread::sleep(LOOK);
            if let Some(watch) = &self.settings.watch {
                watch(&running.snapshot());
            }
            if asked.elapsed() > ASK {
                asked = Instant::now();
                for name in self.ends {
                    InterfaceFacts::of(name)
                        .map_err(|e| failed(format!("interface {name} went away: {e}")))?;
                }
            }
        }
        let ended = running.stop().map_err(failed)?;
        Ok(Conditions {
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
        })
    }
}

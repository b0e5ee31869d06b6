//! A run's built-in foreground over kernel sockets. It uses the same traffic machine as the simulator.

use std::sync::atomic::{AtomicBool, Ordering};

use swell_base::{Code, Time};
use swell_experiment::backend::RunError;
use swell_experiment::stage;
use swell_workload::{Action, Conn, Event, Info, Record, Sample, Workload};

use super::attempt::{Done, LOOK, Play, failed, of_sockets};
use super::place::{Addresses, CLIENT, SERVER};
use super::side::sockets;
use crate::Running;
use swell_host::{Host, be_punctual};
use swell_sockets::{Carrier, CarrierConfig};

/// Runs the foreground's machine between the two hosts until the end of the run.
pub(super) fn run(play: &Play, hosts: [&Host; 2], running: &Running) -> Result<Done, RunError> {
    let Some((machine, tcp)) = play.spec.over_sockets() else {
        return Err(failed("this foreground is not a built-in workload"));
    };
    let end = Time::ZERO + play.spec.duration;
    let stop = AtomicBool::new(false);
    let stretch = play.stretch;
    let ran = std::thread::scope(|scope| {
        let carrier = scope.spawn(|| -> Result<_, RunError> {
            // The thread stands for separate hosts, which other programs on this machine must not delay.
            be_punctual(true);
            let side = |host: &Host, addresses: Addresses| {
                let network = host.network().map_err(failed)?;
                sockets(network, addresses.map(Into::into)).map_err(failed)
            };
            let [client, server] = hosts;
            let config = CarrierConfig {
                sides: [side(client, CLIENT)?, side(server, SERVER)?],
                paths: None,
                epoch: None,
            };
            let mut carrier = Carrier::new(config).map_err(failed)?;
            let epoch = running.now();
            let machine = Box::new(InWorldTime {
                machine,
                epoch,
                stretch,
            });
            let index = carrier.add(machine, &of_sockets(&tcp)).map_err(failed)?;
            let span = end.since(epoch).scale(stretch);
            carrier.run(Time::ZERO + span, &stop).map_err(failed)?;
            carrier.finish();
            let warnings = carrier.report().warnings;
            Ok((
                carrier.take_records(index),
                carrier.take_samples(index),
                warnings,
            ))
        });
        while !carrier.is_finished() {
            std::thread::sleep(LOOK);
            if play.look(running) {
                stop.store(true, Ordering::Relaxed);
            }
        }
        carrier
            .join()
            .unwrap_or_else(|_| Err(failed("the carrier of the foreground panicked")))
    });
    let (records, samples, mut warnings) = ran?;
    if (play.cancelled)() {
        return Err(RunError::Cancelled);
    }
    // The carrier's warnings do not apply: the world applies the access paths, and the hosts of a machine share an
    // address by design.
    warnings.retain(|w| ![Code::AccessNotApplied, Code::AddressesShared].contains(&w.code));
    let requests = stage::requests(&records, end.as_secs_f64());
    Ok(Done::Machine(requests, stage::measures(samples), warnings))
}

/// Runs a machine in world time on a carrier that runs in wall-clock time.
struct InWorldTime {
    machine: Box<dyn Workload>,
    /// World time when the carrier began.
    epoch: Time,
    /// Wall-clock seconds per second of world time.
    stretch: f64,
}

impl Workload for InWorldTime {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        let world = self.epoch + now.since(Time::ZERO).scale(1.0 / self.stretch);
        let before = actions.len();
        self.machine.handle(world, event, actions);
        for action in &mut actions[before..] {
            if let Action::Timer(wait, _) = action {
                *wait = wait.scale(self.stretch);
            }
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        self.machine.take_records()
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.machine.take_samples()
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        self.machine.finish(info);
    }
}

//! A run's built-in foreground, over kernel sockets: the same machine that runs in the simulator.

use std::sync::atomic::{AtomicBool, Ordering};

use swell_base::{Dur, Time};
use swell_experiment::backend::RunError;
use swell_experiment::observe::Request;
use swell_experiment::stage;

use super::place::{Addresses, CLIENT, SERVER};
use super::play::{Done, LOOK, Play, failed, of_sockets};
use super::side::sockets;
use crate::Running;
use swell_host::Host;
use swell_sockets::{Carrier, CarrierConfig};

/// Runs the foreground's machine between the two hosts until the world's time is over.
pub(super) fn run(play: &Play, hosts: [&Host; 2], running: &Running) -> Result<Done, RunError> {
    let Some((machine, tcp)) = play.foreground.over_sockets(Dur::ZERO) else {
        return Err(failed("this foreground is not a built-in workload"));
    };
    let end = Time::ZERO + play.spec.duration;
    let stop = AtomicBool::new(false);
    let stretch = play.stretch;
    let (records, epoch, mut warnings) = std::thread::scope(|scope| {
        let carrier = scope.spawn(|| -> Result<_, RunError> {
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
            let index = carrier.add(machine, &of_sockets(&tcp)).map_err(failed)?;
            let epoch = running.now();
            let span = end.since(epoch).scale(stretch);
            carrier.run(Time::ZERO + span, &stop).map_err(failed)?;
            carrier.finish();
            let warnings = carrier.report().warnings;
            Ok((carrier.take_records(index), epoch, warnings))
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
    })?;
    if (play.cancelled)() {
        return Err(RunError::Cancelled);
    }
    // Its clock began when the world was warm, and is the wall's.
    let span = end.since(epoch).as_secs_f64() * stretch;
    let world = |t: f64| epoch.as_secs_f64() + t / stretch;
    // The world applies access paths, and gives the hosts of a machine one address between them.
    warnings.retain(|w| !["access-not-applied", "addresses-shared"].contains(&w.code.as_str()));
    let requests = stage::requests(&records, span)
        .into_iter()
        .map(|r| Request {
            start: world(r.start),
            connected: world(r.connected),
            first_byte: world(r.first_byte),
            last_byte: world(r.last_byte),
            observed_until: world(r.observed_until),
            ..r
        });
    Ok(Done::Requests(requests.collect(), warnings))
}

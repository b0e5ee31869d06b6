//! A run that is to be executed, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use swell_base::{Dur, Time, Warning};
use swell_experiment::RunSpec;
use swell_experiment::backend::RunError;
use swell_experiment::file::Hop;
use swell_experiment::kinds::Plays;
use swell_experiment::observe::{MeasureSample, Request};
use swell_experiment::stage::RunParts;
use swell_host::{HostConfig, Rights};
use swell_tcp::Config;
use swell_world::World;

use super::exit::Exit;
use super::settings::{Conditions, Settings};
use crate::{Conversations, Running};

/// How often a run checks its progress.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// A run that is to be executed, and its callbacks.
pub(super) struct Play<'a> {
    pub rights: &'a Rights,
    pub settings: &'a Settings,
    pub spec: &'a RunSpec,
    pub foreground: &'a dyn Plays,
    pub stretch: f64,
    pub progress: &'a dyn Fn(f64),
    pub cancelled: &'a dyn Fn() -> bool,
}

/// What the foreground did.
pub(super) enum Done {
    /// The completed runs of a client program.
    Exits(Vec<Exit>),
    /// Requests of a machine, samples of its measures, and warnings.
    Machine(Vec<Request>, Vec<MeasureSample>, Vec<Warning>),
}

/// The results of a run.
pub(super) struct Played {
    pub world: World,
    pub run_parts: RunParts,
    pub conversations: Conversations,
    pub done: Done,
    /// Measures that the program reported.
    pub measures: Vec<MeasureSample>,
    /// Warnings about a background over kernel sockets, and about the program's reported measures.
    pub doubts: Vec<Warning>,
    pub at: Time,
    pub conditions: Conditions,
    /// The client wrote to this process's terminal, so its output was not kept.
    pub terminal: bool,
}

impl Play<'_> {
    /// Reports progress; true if the run is to be cancelled.
    pub fn look(&self, running: &Running) -> bool {
        let snapshot = running.snapshot();
        (self.progress)(snapshot.at.as_secs_f64() / self.spec.duration.as_secs_f64());
        if let Some(watch) = &self.settings.watch {
            watch(&snapshot);
        }
        (self.cancelled)()
    }
}

/// The shortest delay of a link at any time in the run, in either direction.
pub(super) fn least_delay(spec: &RunSpec, hop: &Hop) -> Dur {
    let link = &spec.links[hop.link];
    let changes = link.changes.iter().flatten().filter_map(|c| c.delay);
    let delays = link.directions.iter().map(|l| l.delay).chain(changes);
    delays.min().unwrap_or(Dur::ZERO)
}

pub(super) fn failed(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> RunError {
    RunError::Failed(e.into())
}

/// Sets the part of a TCP configuration that only exists per namespace: ECN, requested and accepted.
pub(super) fn tell_namespace(host: &mut HostConfig, tcp: &Config) {
    if tcp.ecn {
        let setting = ("ipv4/tcp_ecn".to_owned(), "1".to_owned());
        host.sysctls.push(setting); // IPv6 goes by it too
    }
}

/// The part of a TCP configuration that is left to set on sockets.
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
            // No setting is left that sockets would have to refuse.
            assert_eq!(*of_sockets(&tcp), Config::linux());
        }
    }
}

//! Generates traffic between hosts that run agents, and keeps the results.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use swell_base::{Code, Dur, Warning};
use swell_experiment::bundled;
pub use swell_generate::agent::{
    Address, Controller, ModelPart, Order, OrderError, Refusals, RemoteError, Rendezvous, Standing,
    StatisticsView, TrafficPart, Trust, kept,
};
use swell_generate::wire::DATAGRAM;
use swell_traffic::flowlevel::FlowModel;

use crate::Error;
use crate::files::may_be_made;

mod agents;
pub(crate) mod doubts;
mod fleet;
mod keep;
mod local;

pub use crate::files::PROGRESS;
pub use agents::{Agents, EndCause};
pub use fleet::{Fleet, is_address};
pub use local::Local;

use doubts::{datagrams_lost, doubts, drained, refused};
use keep::Keeper;

/// How often agents are polled for their state.
const LOOK: Duration = Duration::from_millis(500);

/// Maximum number of fetches of flows in a row before agents are polled again.
const FETCHES: usize = 20;

/// Traffic to generate.
pub struct Traffic {
    /// Its name in tables.
    pub name: String,
    /// The specification that agents receive.
    pub part: TrafficPart,
    /// Its length, if it ends.
    pub length: Option<Dur>,
    /// Reasons to distrust it.
    pub doubts: Vec<Warning>,
}

impl Traffic {
    /// A flow-level model: a bundled one, or a file. `part` has the other settings; its own `model` is ignored.
    ///
    /// # Errors
    /// If it cannot be read, or cannot be generated with these settings.
    pub fn of_model(path: &Path, part: ModelPart) -> Result<Traffic, Error> {
        let wrong = |e: &dyn std::fmt::Display| Error::usage(format!("{}: {e}", path.display()));
        let offered = || {
            let known: Vec<&str> = bundled::flow_models().collect();
            format!(
                "a flow-level model's file, or a bundled one: {}",
                known.join(", ")
            )
        };
        if !path.exists() && path.to_str().and_then(bundled::model).is_some() {
            return Err(wrong(
                &"this model is of packets, and flow-level models are played between hosts",
            )
            .hint(offered()));
        }
        let bytes = match path.to_str().and_then(bundled::flow_model) {
            Some(bytes) => bytes.to_vec(),
            None => std::fs::read(path).map_err(|e| wrong(&e).hint(offered()))?,
        };
        let model = FlowModel::from_slice(&bytes).map_err(|e| {
            let fail = wrong(&e);
            fail.hint("live generation plays flow-level models (docs/flow-model.md)")
        })?;
        let part = ModelPart {
            model: model.to_json(),
            ..part
        };
        let plan = part.plan(&model).map_err(|e| wrong(&e))?;
        let fewer = part.compression > 1.0 || part.load < 1.0;
        let own = [
            quiet_beginning(&model, &part),
            small_datagrams(&model),
            plan.few().filter(|_| fewer),
        ];
        Ok(Traffic {
            length: plan.length(),
            part: TrafficPart::Model(part),
            doubts: model
                .warnings
                .iter()
                .cloned()
                .chain(own.into_iter().flatten())
                .collect(),
            name: model.name,
        })
    }
}

/// A warning if the model begins with a long silence, so that users know why no traffic appears.
fn quiet_beginning(model: &FlowModel, part: &ModelPart) -> Option<Warning> {
    let first = usize::try_from(part.first).ok()?;
    let left = model.tcp.intervals.get(first..)?;
    let quiet = left.iter().position(|i| i.connections > 0)?;
    let time = model.interval.scale(quiet as f64 / part.compression);
    (quiet > 0).then(|| {
        let begin = first + quiet;
        Warning::note(
            Code::QuietBeginning,
            format!(
                "the model has no connection in the first {time}: --first {begin} begins with one"
            ),
        )
    })
}

/// A warning if sources send datagrams that are smaller than the header of those that are played.
fn small_datagrams(model: &FlowModel) -> Option<Warning> {
    let sizes = || model.udp.iter().flat_map(|u| u.datagrams.buckets());
    let all: u64 = sizes().map(|(_, bucket)| bucket.count).sum();
    let small = sizes().map(|(_, bucket)| bucket);
    let small: u64 = small
        .filter(|b| b.sum < b.count.saturating_mul(DATAGRAM as u64))
        .map(|b| b.count)
        .sum();
    (small > 0).then(|| {
        Warning::note(
            Code::SmallDatagrams,
            format!(
                "{small} of the model's {all} sources of datagrams have a mean payload below {DATAGRAM} bytes: their \
                 datagrams are sent with {DATAGRAM} bytes"
            ),
        )
    })
}

/// The directory for the results, by default `runs/generate`. With `fresh` it may hold an earlier run; see
/// [`Options::fresh`].
///
/// # Errors
/// If its parent does not exist, or the directory is not empty, or holds something that is no run.
pub fn directory(output: Option<&Path>, fresh: bool) -> Result<PathBuf, Error> {
    if let Some(dir) = output {
        may_be_made(dir)?;
    }
    let dir = output.map_or_else(|| Path::new("runs").join("generate"), Path::to_owned);
    let used = std::fs::read_dir(&dir).is_ok_and(|mut all| all.next().is_some());
    if used && !fresh {
        let fail = Error::usage(format!("{} holds a run", dir.display()));
        return Err(fail.hint("--fresh throws it away, -o DIR keeps it"));
    }
    if used {
        keep::is_run(&dir)?;
    }
    Ok(dir)
}

/// What traffic to generate, by which agents, and where to keep the results.
pub struct Options {
    /// The directory of the results, from [`directory`].
    pub dir: PathBuf,
    /// Throw away an earlier run in it, once all agents have answered.
    pub fresh: bool,
    /// The order for the agents.
    pub order: Order,
    /// The name of the traffic in tables.
    pub name: String,
    /// The length of the traffic, if it ends.
    pub length: Option<Dur>,
    /// Maximum duration.
    pub duration: Option<Dur>,
}

/// Events while traffic is generated.
pub enum Event<'e> {
    /// The state of the agents after this time, every half second.
    Look(Duration, &'e Controller),
    /// This agent has returned.
    Returned(&'e str),
    /// The load changed: the old and the new value, and the names of clients that do not answer. They get it once they
    /// answer again.
    Loaded(f64, f64, &'e [String]),
    /// A load that could not be set, the reason, and the current load.
    Refused(f64, &'e dyn std::fmt::Display, f64),
    /// The traffic is over, but so many transfers and datagram sources are still in progress.
    Draining(u64),
}

/// The results.
pub struct Played {
    /// Why it ended.
    pub ended: EndCause,
    /// How long clients generated traffic, in seconds, with the time for which they waited for the last transfers.
    pub seconds: f64,
    /// The same without that time.
    pub planned: f64,
    /// Number of flows kept.
    pub flows: u64,
    /// The final state of the agents.
    pub agents: Agents,
    /// Reasons to distrust the results.
    pub doubts: Vec<Warning>,
}

/// Generates the traffic. Loads received from `loads` are applied while it runs. Whatever happens, the agents are
/// stopped, and their results are fetched and kept.
///
/// # Errors
/// If two agents have one address, agents cannot be reached or refuse, or the results cannot be written.
pub fn generate(
    options: &Options,
    loads: &mpsc::Receiver<f64>,
    events: &dyn Fn(Event<'_>),
    cancelled: &dyn Fn() -> bool,
) -> Result<Played, Error> {
    let order = &options.order;
    let all = order.clients.iter().chain(&order.servers);
    let addresses = all.map(|a| a.at.as_deref().unwrap_or(&a.name));
    if let Some(address) = fleet::twice(addresses) {
        let message = format!("two agents have the address {address}");
        return Err(Error::usage(message));
    }
    let mut controller = Controller::new_unless(order, cancelled).map_err(not_begun)?;
    let ends = [options.length, end(options.length, options.duration)];
    let room = match options.fresh && options.dir.join(keep::MANIFEST).exists() {
        true => keep::remove_run(&options.dir),
        false => Ok(()),
    };
    let begun = room
        .and_then(|()| Keeper::new(&options.dir, &options.name, order, ends))
        .and_then(|keeper| controller.start().map_err(Error::failed).map(|()| keeper));
    let mut keeper = match begun {
        Ok(keeper) => keeper,
        Err(fail) => {
            controller.end();
            return Err(fail);
        }
    };
    let how = play(
        &mut controller,
        &mut keeper,
        options,
        loads,
        events,
        cancelled,
    );
    let mut lost = lost(&controller);
    for agent in controller.stop() {
        if !lost.contains(&agent) {
            lost.push(agent);
        }
    }
    let kept = how.and_then(|how| {
        while keeper.take(&mut controller)? {}
        Ok(how)
    });
    let (clients, servers) = controller.standing();
    let refusals = controller.refusals();
    controller.end();
    let ended = *kept.as_ref().unwrap_or(&EndCause::Gone);
    let agents = Agents {
        clients,
        servers,
        lost,
        logged: order.flows,
    };
    let mut doubts = doubts(&agents);
    doubts.extend(datagrams_lost(&agents, ended));
    doubts.extend(refused(refusals));
    let seconds = agents.seconds();
    let planned = options.length.map_or(f64::INFINITY, Dur::as_secs_f64);
    // Whatever else ended the play, or an agent that was waited for, is told elsewhere.
    if ended == EndCause::Played && agents.lost.is_empty() {
        doubts.extend(drained(seconds, planned));
    }
    let finished = keeper.finish(ended, &agents, &doubts);
    kept?;
    let flows = finished?;
    Ok(Played {
        ended,
        seconds,
        planned: seconds.min(planned),
        flows,
        agents,
        doubts,
    })
}

/// When traffic of this length ends, if it may last no longer than `duration`.
fn end(length: Option<Dur>, duration: Option<Dur>) -> Option<Dur> {
    [length, duration].into_iter().flatten().min()
}

/// Why no traffic was generated.
fn not_begun(error: OrderError) -> Error {
    match &error {
        OrderError::Cancelled => Error::interrupted(error),
        OrderError::Nobody
        | OrderError::NoRendezvous(_)
        | OrderError::Unrecognized { .. }
        | OrderError::Remote(RemoteError::Tls(_) | RemoteError::Untrusted { .. }) => {
            Error::usage(error)
        }
        OrderError::Remote(RemoteError::Refused { status: 401, .. }) => {
            Error::failed(error).hint("--token-file: the agent has another token")
        }
        OrderError::Remote(RemoteError::Away { .. }) => {
            let fail = Error::failed(error);
            fail.hint("`swell agent` runs on every host; see docs/generate.md")
        }
        _ => Error::failed(error),
    }
}

/// Agents that no longer generate traffic: their lease ran out, or they do not answer.
fn lost(controller: &Controller) -> Vec<String> {
    let (clients, servers) = controller.standing();
    let all = clients.iter().chain(&servers);
    all.filter(|s| s.missing).map(|s| s.agent.clone()).collect()
}

fn play(
    controller: &mut Controller,
    keeper: &mut Keeper,
    options: &Options,
    loads: &mpsc::Receiver<f64>,
    events: &dyn Fn(Event<'_>),
    cancelled: &dyn Fn() -> bool,
) -> Result<EndCause, Error> {
    let begun = Instant::now();
    let mut playing = match &options.order.traffic {
        TrafficPart::Model(part) => part.load,
        TrafficPart::Closed { .. } => 1.0,
    };
    let mut draining = false;
    loop {
        let round = Instant::now();
        for _ in 0..FETCHES {
            if !keeper.take(controller)? {
                break;
            }
        }
        for agent in controller.admit() {
            events(Event::Returned(&agent));
        }
        keeper.note(begun.elapsed(), controller)?;
        events(Event::Look(begun.elapsed(), controller));
        for load in loads.try_iter() {
            match controller.set_load(load) {
                Ok(missed) => {
                    keeper.loaded(begun.elapsed(), load);
                    let was = std::mem::replace(&mut playing, load);
                    events(Event::Loaded(was, load, &missed));
                }
                Err(error) => events(Event::Refused(load, &error, playing)),
            }
        }
        let over = |limit: Dur| begun.elapsed().as_secs_f64() >= limit.as_secs_f64();
        if !draining && options.length.is_some_and(over) && !controller.is_over() {
            draining = true;
            let (clients, _) = controller.standing();
            let counts = clients.iter().flat_map(|c| &c.statistics);
            events(Event::Draining(
                counts.map(|s| s.counts.in_progress()).sum(),
            ));
        }
        if cancelled() {
            return Ok(EndCause::Interrupted);
        }
        if options.duration.is_some_and(over) {
            return Ok(EndCause::Duration);
        }
        if controller.is_over() {
            let (clients, _) = controller.standing();
            let played = |s: &Standing| {
                let state = s.statistics.as_ref().map(|s| s.run.state.as_str());
                state == Some("played")
            };
            let any = clients.iter().any(played);
            return Ok(if any {
                EndCause::Played
            } else {
                EndCause::Gone
            });
        }
        let left = options.duration.map_or(LOOK, |limit| {
            let left = limit.as_secs_f64() - begun.elapsed().as_secs_f64();
            Duration::from_secs_f64(left.max(0.0))
        });
        std::thread::sleep(LOOK.saturating_sub(round.elapsed()).min(left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_ends_with_its_model_or_its_duration() {
        let [minute, more] = [60, 300].map(|s| Some(Dur::from_secs(s)));
        assert_eq!(end(minute, more), minute);
        assert_eq!(end(more, minute), minute);
        assert_eq!((end(None, more), end(minute, None)), (more, minute));
        assert_eq!(end(None, None), None);
    }

    #[test]
    fn a_bundled_model_of_packets_is_called_one() {
        let part = ModelPart {
            model: String::new(),
            seed: 1,
            load: 1.0,
            compression: 1.0,
            first: 0,
            cycle: true,
        };
        let error = Traffic::of_model(Path::new("access-link"), part)
            .err()
            .unwrap();
        assert!(
            error.message.contains("this model is of packets"),
            "{error:?}"
        );
        assert!(error.hint.is_some_and(|h| h.contains("access-hour")));
    }

    #[test]
    fn small_datagrams_that_are_padded_are_noted() {
        let mut model = FlowModel::from_slice(bundled::flow_model("access-hour").unwrap()).unwrap();
        for sources in &mut model.udp {
            sources.datagrams = Default::default();
        }
        assert!(small_datagrams(&model).is_none());
        model.udp[0].datagrams.add_many(DATAGRAM as u64, 5);
        assert!(small_datagrams(&model).is_none());
        model.udp[0].datagrams.add_many(4, 2);
        let note = small_datagrams(&model).unwrap();
        assert!(note.message.starts_with("2 of the model's 7 sources"));
    }

    #[test]
    fn wrong_usage_is_told_from_agents_that_do_not_answer() {
        let kind = |error| {
            let fail = not_begun(error);
            (
                fail.kind,
                fail.hint.is_some_and(|h| h.contains("runs on every host")),
            )
        };
        let agent = || "a:1".to_owned();
        let untrusted = RemoteError::Untrusted { agent: agent() };
        assert_eq!(kind(untrusted.into()), (crate::Kind::Usage, false));
        let away = RemoteError::Away {
            agent: agent(),
            reason: "refused".into(),
        };
        assert_eq!(kind(away.into()), (crate::Kind::Failed, true));
        let forbidden = RemoteError::Refused {
            agent: agent(),
            status: 403,
            message: "this agent plays 22:00-06:00 UTC only".into(),
        };
        assert_eq!(kind(forbidden.into()), (crate::Kind::Failed, false));
        let secret = RemoteError::Secret {
            agent: agent(),
            reason: "its certificate has the fingerprint 00, which is none of those given".into(),
        };
        assert_eq!(kind(secret.into()), (crate::Kind::Failed, false));
        let tls = swell_generate::agent::is_fingerprint("beef").unwrap_err();
        assert_eq!(
            kind(RemoteError::Tls(tls).into()),
            (crate::Kind::Usage, false)
        );
    }
}

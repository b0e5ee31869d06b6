//! From a run, everything said, to links and machines.

use std::sync::Arc;

use swell_base::{Dur, Rate, Stream, Time, Warning, derived};
use swell_path::{Capacity, Change, LinkConfig, Loss, NewQueue, Outage};
use swell_tcp::Config;
use swell_traffic::flowlevel::{FlowModel, Plan, Playback, Player, Share};
use swell_traffic::{Knobs, Model, Network, Schedule};
use swell_workload::{
    Access, Greedy, GreedyConfig, Law, OnOff, Packets, Parametric, ParametricConfig, Replay,
    ReplayConfig, Sessions, SessionsConfig, Sources, Structural, Transport, Web, WebConfig,
    Workload,
};

use super::before::{BEFORE, met, under_way};
use super::discipline::discipline;
use super::transport::tcp;
use crate::backend::{
    BackgroundSpec, ForegroundSpec, PacketsSpec, Process, RunError, RunSpec, Trace,
};
use crate::file::{self, ConnectionUse, Delays, TcpSettings};
use crate::packets::Source;
use crate::plan::counting_rate;

/// A workload, and the TCP it asks for.
pub type Machine = (Box<dyn Workload>, Arc<Config>);

/// The two directions of the bottleneck, up and down, as links with their changes.
pub(super) fn bottleneck(spec: &RunSpec) -> [LinkConfig; 2] {
    [0, 1].map(|d| link(&spec.links[d], &spec.changes[d], spec))
}

fn link(link: &file::Link, changes: &[file::Change], spec: &RunSpec) -> LinkConfig {
    let from_trace = |deliveries: &file::Deliveries| {
        let trace = Arc::clone(spec.deliveries.get(&deliveries.file)?);
        let phase = deliveries.phase.unwrap_or_default();
        Some(Capacity::Deliveries { trace, phase })
    };
    let at_first = link.deliveries.as_ref().and_then(from_trace);
    let at_first = at_first.map(|capacity| Change {
        capacity: Some(capacity),
        ..Change::default()
    });
    let later = changes.iter().map(|change| Change {
        at: Time::ZERO + change.at,
        every: change.every,
        capacity: match (&change.deliveries, change.rate) {
            (Some(trace), _) => from_trace(&trace.0),
            (None, rate) => rate.map(Capacity::Rate),
        },
        delay: change.delay,
        loss: change.loss.map(loss),
        queue: change
            .queue
            .zip(change.qdisc.as_ref())
            .map(|(limit, qdisc)| {
                let rate = counting_rate(change, link, &spec.deliveries);
                NewQueue {
                    discipline: discipline(&qdisc.0, rate),
                    limit,
                    rate: Some(rate),
                }
            }),
        outage: change.outage.map(|length| Outage {
            length,
            lossy: change.outage_packets == Some(file::OutagePackets::Lost),
        }),
    });
    LinkConfig {
        rate: Some(link.rate),
        delay: link.delay,
        discipline: discipline(&link.qdisc, link.rate),
        queue: link.queue,
        overhead: u16::try_from(link.overhead.0).unwrap_or(u16::MAX),
        loss: loss(link.loss),
        changes: at_first.into_iter().chain(later).collect(),
    }
}

fn loss(loss: file::Loss) -> Loss {
    match loss {
        file::Loss::None => Loss::None,
        file::Loss::Independent { p } => Loss::Independent { p },
        file::Loss::GilbertElliott {
            p_bad,
            p_good,
            loss_bad,
            loss_good,
        } => Loss::GilbertElliott {
            to_bad: p_bad,
            to_good: p_good,
            loss_good,
            loss_bad,
        },
    }
}

/// The machine of a run's foreground; `None` where there is none, or a real program.
pub(super) fn of_run(spec: &RunSpec) -> Option<Machine> {
    match spec.foreground.as_ref()? {
        ForegroundSpec::Packets(own) => {
            let first = match &spec.background {
                BackgroundSpec::Parametric(other) if other.independent => other.sources,
                _ => 0,
            };
            // A schedule of all sources has streams of the same names in foreground and background.
            let seed = match own.independent {
                true => spec.cell.seed,
                false => derived(spec.cell.seed, FOREGROUND),
            };
            Some(packets(own, first, seed))
        }
        ForegroundSpec::Greedy(own) => Some(greedy(own, derived(spec.cell.seed, FOREGROUND))),
        other => foreground(other, spec.warmup),
    }
}

/// Which seed a foreground draws from whose streams are called as a background's.
const FOREGROUND: u64 = 1 << 40;

/// The machine of a foreground of requests; `None` for any other.
pub(super) fn foreground(spec: &ForegroundSpec, start: Dur) -> Option<Machine> {
    let ForegroundSpec::Web { web, delay } = spec else {
        return None;
    };
    let access = access(*delay);
    let config = WebConfig {
        clients: web.clients,
        objects: web.object.sizes().to_vec(),
        request: web.request,
        server_think: Dur::ZERO,
        think: web.think,
        keep: web.connection == ConnectionUse::Kept,
        count: web.count.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        start,
        client: access,
        server: access,
    };
    Some((Box::new(Web::new(config)), tcp(&web.tcp)))
}

/// What a learnt background plays, its schedule, and the network that the schedule assumes.
pub(super) fn learnt(
    spec: &RunSpec,
    model: &Model,
    knobs: &Knobs,
) -> Result<(Model, Schedule, Network), RunError> {
    let seed = spec.cell.seed;
    let played = model.varied(knobs, seed);
    let network = met(spec, played.rates().map(|bps| bps * knobs.sessions));
    let schedule = Schedule::draw(&played, knobs, seed, spec.duration, &network)
        .map_err(|e| RunError::Failed(e.into()))?;
    Ok((played, schedule, network))
}

pub(super) fn background(run: &RunSpec) -> Result<Option<Machine>, RunError> {
    let (duration, seed) = (run.duration, run.cell.seed);
    Ok(match &run.background {
        BackgroundSpec::None => None,
        BackgroundSpec::Parametric(spec) => Some(packets(spec, 0, seed)),
        BackgroundSpec::Learnt {
            model,
            knobs,
            tcp: settings,
        } => {
            let (played, schedule, _) = learnt(run, model, knobs)?;
            let machine = Structural::new(Arc::new(played), &schedule);
            Some((Box::new(machine), tcp(settings)))
        }
        BackgroundSpec::Sessions {
            model,
            playback,
            delay,
            tcp: settings,
        } => {
            let plan = Plan::new(model, playback).map_err(|e| RunError::Failed(e.into()))?;
            let access = access(*delay);
            let offered = model.payload_rates().map(|bps| bps * playback.load);
            let mut network = met(run, offered);
            network.rtt += *delay * 4;
            let before = Player::new(plan.clone(), derived(seed, BEFORE), Share::ALL);
            let player = Player::new(plan, seed, Share::ALL);
            let machine = Sessions::new(SessionsConfig {
                under_way: under_way(before, &network),
                ..SessionsConfig::alike(player, seed, access)
            });
            Some((Box::new(machine), tcp(settings)))
        }
        BackgroundSpec::Replay {
            replay,
            trace,
            stretch,
        } => {
            let config = ReplayConfig {
                transport: carrier(replay.transport),
                phase: replay.phase.unwrap_or_else(|| phase(trace, seed)),
                period: (!replay.once).then_some(trace.period),
                stretch: *stretch,
                grid: replay.grid,
                left: path(replay.delay, replay.access),
                right: path(replay.delay, replay.access),
                ..ReplayConfig::exact(trace.packets.clone())
            };
            Some((Box::new(Replay::new(config)), tcp(&replay.tcp)))
        }
        BackgroundSpec::Greedy(own) => Some(greedy(own, seed)),
        BackgroundSpec::OnOff(own) => Some(on_off(own, duration, seed)?),
    })
}

fn greedy(greedy: &file::Greedy, seed: u64) -> Machine {
    // Without phases of their own, connections and replications would be one run repeated, and intervals
    // would have no width.
    let mut phases = Stream::new(seed, "greedy-phase");
    let each_way = greedy.connections;
    let connections = match greedy.direction {
        file::Direction::Both => each_way.saturating_mul(2),
        file::Direction::Up | file::Direction::Down => each_way,
    };
    let first = greedy.spread.scale(phases.uniform());
    let later = match greedy.independent {
        true => (std::iter::once(first))
            .chain((1..connections).map(|_| greedy.spread.scale(phases.uniform())))
            .collect(),
        false => vec![first; connections as usize],
    };
    let mut draws = Stream::new(seed, "greedy-delay");
    let (delay, delays) = match &greedy.delay {
        Delays::Same(delay) => (*delay, Vec::new()),
        Delays::InTurn(list) => {
            let turns = list.iter().copied().cycle().take(connections as usize);
            (Dur::ZERO, turns.collect())
        }
        Delays::Uniform { from, to } => {
            let wide = to.saturating_sub(*from);
            let mut one = |_| *from + wide.scale(draws.uniform());
            (*from, (0..connections).map(&mut one).collect())
        }
    };
    let config = GreedyConfig {
        connections,
        from_right: greedy.direction == file::Direction::Down,
        start: greedy.start,
        stagger: greedy.stagger,
        later,
        delays,
        sender: path(delay, greedy.access),
        receiver: path(delay, greedy.access),
    };
    let machine = match greedy.direction {
        file::Direction::Both => Greedy::both_ways(config),
        file::Direction::Up | file::Direction::Down => Greedy::new(config),
    };
    (Box::new(machine), tcp(&greedy.tcp))
}

fn on_off(spec: &file::OnOff, duration: Dur, seed: u64) -> Result<Machine, RunError> {
    let config = ReplayConfig {
        left: path(spec.delay, spec.access),
        right: path(spec.delay, spec.access),
        ..ReplayConfig::exact(on_off_packets(spec, duration, seed)?)
    };
    let none = TcpSettings::default();
    Ok((Box::new(Replay::new(config)), tcp(&none)))
}

pub(super) fn on_off_packets(
    spec: &file::OnOff,
    duration: Dur,
    seed: u64,
) -> Result<[Packets; 2], RunError> {
    let seeds = (spec.seeds).unwrap_or_else(|| {
        let draw = |name| Stream::new(seed, name).below(u64::MAX);
        ["on-off/up", "on-off/down"].map(draw)
    });
    let way = |rate: Rate, own| {
        let sources = OnOff {
            rate: rate.bps() as f64,
            sizes: (spec.sizes.iter())
                .map(|s| (u32::try_from(s.packet.0).unwrap_or(u32::MAX), s.share))
                .collect(),
            sources: spec.sources,
            on: spec.on,
            off: spec.off,
            shape: spec.shape,
        };
        match rate == Rate::default() {
            true => Ok(Packets::default()),
            false => (sources.packets(own, duration))
                .map_err(|e| RunError::Failed(format!("background `{}`: {e}", spec.name).into())),
        }
    };
    Ok([
        way(spec.rate_up, seeds[0])?,
        way(spec.rate.fixed(), seeds[1])?,
    ])
}

/// The machine of packets of one size. Where sources are independent, the first has number `first`.
pub(super) fn packets(spec: &PacketsSpec, first: u32, seed: u64) -> Machine {
    let config = ParametricConfig {
        law: match spec.process {
            Process::Cbr => Law::Constant,
            Process::Poisson => Law::Poisson,
        },
        transport: carrier(spec.transport),
        packet: u32::try_from(spec.packet.0).unwrap_or(u32::MAX),
        rate: spec.rates,
        sources: spec.sources,
        left: path(spec.delays[0], spec.access),
        right: access(spec.delays[1]),
    };
    let machine: Box<dyn Workload> = if spec.independent {
        Box::new(Sources::new(&config, first, seed))
    } else {
        Box::new(Parametric::new(config, seed))
    };
    (machine, tcp(&spec.tcp))
}

fn access(delay: Dur) -> Access {
    path(delay, None)
}

fn path(delay: Dur, capacity: Option<Rate>) -> Access {
    Access {
        delay,
        up: capacity,
        down: capacity,
        ..Access::default()
    }
}

fn carrier(transport: file::Transport) -> Transport {
    match transport {
        file::Transport::Udp => Transport::Udp,
        file::Transport::Tcp => Transport::Tcp,
    }
}

/// Where in a trace a run with this seed begins.
pub(super) fn phase(trace: &Trace, seed: u64) -> Dur {
    let mut stream = Stream::new(seed, "replay-phase");
    Dur::from_nanos(stream.below(trace.period.as_nanos()))
}

/// What a recorder of packets must know of background and foreground, those that there are.
pub(super) fn sources(spec: &RunSpec, tcp: [Option<&Arc<Config>>; 2]) -> Vec<Source> {
    /// A web server's, and what iperf has used since its first version.
    const PORTS: [u16; 2] = [5001, 80];
    let classes = match &spec.background {
        BackgroundSpec::Learnt { model, .. } => {
            let class = |c: &swell_traffic::Class| (swell_learn::server_port(&c.name), c.udp);
            model.classes.iter().map(class).collect()
        }
        _ => Vec::new(),
    };
    let of = |(i, config): (usize, Option<&Arc<Config>>)| {
        Some(Source {
            tcp: Arc::clone(config?),
            classes: if i == 0 { classes.clone() } else { Vec::new() },
            port: PORTS[i],
        })
    };
    tcp.into_iter().enumerate().filter_map(of).collect()
}

/// Doubts that the run's own description raises.
pub(super) fn doubts(spec: &RunSpec) -> Vec<Warning> {
    let mut doubts = network_doubts(spec);
    doubts.extend(background_doubts(spec));
    doubts
}

fn network_doubts(spec: &RunSpec) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let begins = |change: &file::Change| {
        let named = change.deliveries.as_ref();
        named.map(|d| (d.0.file.clone(), change.at))
    };
    let later = spec.changes.iter().flatten();
    let mut late: Vec<Dur> = (later.clone().map(|c| c.at))
        .filter(|&at| at >= spec.duration)
        .collect();
    late.sort_unstable();
    if let Some(at) = late.first() {
        doubts.push(Warning::warning(
            "change-after-end",
            format!(
                "the network is to change at {at}; the run of {} is over by then",
                spec.duration
            ),
        ));
    }
    let at_first = spec.links.iter().filter_map(|l| l.deliveries.as_ref());
    let mut traces: Vec<(String, Dur)> = (at_first.map(|d| (d.file.clone(), Dur::ZERO)))
        .chain(later.filter_map(begins))
        .collect();
    traces.sort();
    traces.dedup_by(|a, b| a.0 == b.0);
    for (file, from) in traces {
        let period = spec.deliveries.get(&file).map(|t| t.period());
        if let Some(period) = period
            && spec.duration.saturating_sub(from) > period
        {
            let name = std::path::Path::new(&file).file_name().unwrap_or_default();
            doubts.push(Warning::note(
                "deliveries-repeat",
                format!(
                    "a run of {} is longer than the {period} of the delivery trace `{}`: it begins again",
                    spec.duration,
                    name.to_string_lossy()
                ),
            ));
        }
    }
    doubts
}

/// What queues and congestion windows need at the paths of most models.
const WARM_UP: Dur = Dur::from_secs(5);

fn background_doubts(spec: &RunSpec) -> Vec<Warning> {
    let name = &spec.cell.background;
    match &spec.background {
        BackgroundSpec::Learnt { model, .. } => {
            let mut doubts = Vec::new();
            if spec.warmup < WARM_UP {
                doubts.push(Warning::warning(
                    "short-warm-up",
                    format!(
                        "background `{name}` begins with its sessions in progress, but with an empty queue and small windows; the warm-up of {} is less than {WARM_UP}",
                        spec.warmup
                    ),
                ));
            }
            if spec.duration > model.duration {
                doubts.push(Warning::note(
                    "model-repeats",
                    format!(
                        "a run of {:.0} s is longer than the {:.0} s behind background `{name}`: its sessions come again, in another order",
                        spec.duration.as_secs_f64(),
                        model.duration.as_secs_f64()
                    ),
                ));
            }
            doubts
        }
        BackgroundSpec::Replay {
            replay,
            trace,
            stretch,
        } => replayed(spec, replay, trace, *stretch),
        BackgroundSpec::Sessions {
            model, playback, ..
        } => repeated(spec, model, playback),
        BackgroundSpec::None
        | BackgroundSpec::Parametric(_)
        | BackgroundSpec::Greedy(_)
        | BackgroundSpec::OnOff(_) => Vec::new(),
    }
}

fn repeated(spec: &RunSpec, model: &FlowModel, playback: &Playback) -> Vec<Warning> {
    let once = Playback {
        cycle: false,
        ..*playback
    };
    let Some(length) = Plan::new(model, &once).ok().and_then(|p| p.length()) else {
        return Vec::new();
    };
    if spec.duration <= length {
        return Vec::new();
    }
    vec![Warning::note(
        "model-repeats",
        format!(
            "a run of {} is longer than the {length} of background `{}`: its intervals come again",
            spec.duration, spec.cell.background
        ),
    )]
}

/// A trace stretched or compressed by more than this is doubtful: its bursts and its reactions to round
/// trips have another length than anywhere.
const STRETCHED: f64 = 2.0;

fn replayed(spec: &RunSpec, replay: &file::Replay, trace: &Trace, stretch: f64) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let name = &replay.name;
    let length = trace.period.scale(stretch);
    if spec.duration > length && !replay.once {
        doubts.push(Warning::note(
            "trace-repeats",
            format!(
                "a run of {} is longer than the {:.1} s of the trace behind background `{name}`: it begins again",
                spec.duration,
                length.as_secs_f64()
            ),
        ));
    }
    if replay.phase.is_some() && spec.cell.replication > 0 {
        doubts.push(Warning::note(
            "same-phase",
            format!(
                "every replication of background `{name}` has the same packets at the same times: intervals do not cover other times of the trace"
            ),
        ));
    }
    if !(1.0 / STRETCHED..=STRETCHED).contains(&stretch) {
        doubts.push(Warning::warning(
            "stretched",
            format!(
                "the times of background `{name}` are multiplied by {stretch:.3}: bursts last as much longer or shorter than in the trace"
            ),
        ));
    }
    doubts
}

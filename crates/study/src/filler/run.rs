//! One run: a trace, a link, and perhaps a filler.

use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::{Discipline, LinkConfig, PriorityConfig, Tally};
use swell_tcp::Config;
use swell_workload::{Access, Greedy, GreedyConfig, Replay, ReplayConfig};
use swell_world::{Direction, World};

use super::Trace;

/// The filler's transport and direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Filler {
    /// What its endpoints do.
    pub transport: Config,
    /// It sends against the trace's first direction.
    pub reversed: bool,
}

/// What is varied.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Rate of the central link.
    pub rate: Rate,
    /// Its one-way propagation delay.
    pub latency: Dur,
    /// How it treats the two kinds of traffic; the default is strict priority.
    pub discipline: Discipline,
    /// How much pre-existing traffic may wait.
    pub upper: QueueLimit,
    /// How much filler may wait.
    pub lower: QueueLimit,
    /// The filler; none to see what there was without it.
    pub filler: Option<Filler>,
}

impl Setting {
    /// Both queues hold 1.3 bandwidth-delay products in packets of 1000 bytes.
    pub fn paper(rate: Rate, latency: Dur, filler: Option<Filler>) -> Setting {
        let bytes = rate.carried_in(latency).0 * 13 / 10;
        let limit = QueueLimit::Packets((bytes / 1000).max(1));
        Setting {
            rate,
            latency,
            discipline: Discipline::Priority(PriorityConfig {
                limits: vec![limit; 2],
                ..PriorityConfig::default()
            }),
            upper: limit,
            lower: limit,
            filler,
        }
    }
}

/// What happened to one kind of packets in one direction of the central link.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Packets that arrived at the link.
    pub packets: u64,
    /// Share of them that was dropped.
    pub dropped: f64,
    /// Mean time in the queue, seconds.
    pub wait: f64,
    /// Mean time in the queue, in transmission and on the way, seconds.
    pub delay: f64,
    /// Carried, in thousands of bytes per second.
    pub kilobytes: f64,
    /// Mean size of packets carried, bytes.
    pub size: f64,
    /// Waits in the queue.
    pub tally: Tally,
}

/// What a run showed. Index 0 is the trace's first direction, 1 the other.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Pre-existing traffic.
    pub present: [Account; 2],
    /// Filler: its data in one direction, its acknowledgements in the other.
    pub filler: [Account; 2],
    /// Bytes of pre-existing traffic and of filler that arrived per tenth of a second, in the first
    /// direction.
    pub series: [Vec<u32>; 2],
}

/// Links to the central one: 1 Gbit/s, 10 us.
fn edge() -> Access {
    let rate = Some(Rate::from_bps(1_000_000_000));
    Access {
        delay: Dur::from_micros(10),
        up: rate,
        down: rate,
        ..Access::default()
    }
}

/// Width of the bins of [`Outcome::series`].
const BIN: Dur = Dur::from_millis(100);

/// Replays `trace` over the link of `setting`.
pub fn run(trace: &Trace, setting: &Setting, seed: u64) -> Outcome {
    let link = LinkConfig {
        rate: Some(setting.rate),
        delay: setting.latency,
        discipline: setting.discipline.clone(),
        queue: setting.upper,
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], seed);
    world.take_census();
    world.meter(BIN, Dur::from_secs(1));
    let replay = ReplayConfig {
        left: edge(),
        right: edge(),
        ..ReplayConfig::exact(trace.packets.clone())
    };
    let plain = Arc::new(Config::classic());
    let present = world.add(Box::new(Replay::new(replay)), Tag::Foreground, plain);
    let filler = setting.filler.as_ref().map(|f| {
        let source = GreedyConfig {
            from_right: f.reversed,
            sender: edge(),
            receiver: edge(),
            ..GreedyConfig::default()
        };
        let transport = Arc::new(f.transport.clone());
        world.add(Box::new(Greedy::new(source)), Tag::Background, transport)
    });
    world.advance(Time::ZERO + trace.duration);

    let mut outcome = Outcome::default();
    for (d, direction) in [Direction::Up, Direction::Down].into_iter().enumerate() {
        let central = world.bottleneck(direction);
        let Some(census) = central.census() else {
            continue;
        };
        let account = |group: usize| {
            let tally = census.tally(group as u32);
            let wait = tally.mean_wait().as_secs_f64();
            let size = tally.mean_size();
            Account {
                packets: tally.arrived,
                dropped: tally.drop_share(),
                wait,
                delay: wait
                    + size * 8.0 / setting.rate.bps() as f64
                    + setting.latency.as_secs_f64(),
                kilobytes: tally.sent_bytes as f64 / trace.duration.as_secs_f64() / 1e3,
                size,
                tally,
            }
        };
        outcome.present[d] = account(present);
        if let Some(filler) = filler {
            outcome.filler[d] = account(filler);
        }
        if d == 0
            && let Some(meter) = central.meter()
        {
            outcome.series = meter.fine_bytes.clone();
        }
    }
    outcome
}

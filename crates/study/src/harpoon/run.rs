//! The original and its copies: both cross the same link, and are measured there in the same way.

use std::sync::{Arc, OnceLock};

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_capture::flow::FlowRecord;
use swell_learn::FlowLearner;
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_traffic::flowlevel::{
    ConfigureError, FlowModel, Options, Plan, Playback, Player, Profile, Share,
};
use swell_traffic::{Knobs, Model, Network, Schedule};
use swell_workload::{Access, Sessions, SessionsConfig, Structural, Workload};
use swell_world::{Direction, World};

use super::exporter::{TrueFlow, exporter};

/// Round trip of the original's every connection: what the paper calls its dominant one.
pub const RTT: Dur = Dur::from_millis(200);
/// Rate of every host's access, of originals and copies alike: flow records say nothing of it.
const EDGE: Rate = Rate::from_bps(100_000_000);
/// Everybody's receive window at most, original and copies: what there is without scaling (RFC 7323 section 2.1). Flow
/// records do not tell windows.
const WINDOW: u32 = 65_535;
/// Width of the bins that log-scale diagrams are made of.
pub const BIN: Dur = Dur::from_millis(1);
/// Width of the bins of volumes.
pub const COARSE: Dur = Dur::from_secs(300);

/// What is imitated: users of a structural model, whose every round trip is [`RTT`], for some time. Their access
/// is as fast as the copies', so that what differs is the traffic.
pub struct Original {
    /// The users.
    pub model: Arc<Model>,
    /// How long.
    pub duration: Dur,
    /// Sessions per one of the model's.
    pub sessions: f64,
    whole: OnceLock<Seen>,
}

/// What was seen on the link.
pub struct Seen {
    /// Flow records, in the order of their ends.
    pub records: Vec<FlowRecord>,
    /// What the packets say of the same flows.
    pub flows: Vec<TrueFlow>,
    /// Bytes of both directions in each bin of [`BIN`]: the original has clients on both sides, copies have them
    /// on one.
    pub fine: Vec<u32>,
    /// Bytes and packets of both directions in each bin of [`COARSE`].
    pub bytes: Vec<f64>,
    /// See there.
    pub packets: Vec<f64>,
}

/// How the original is learnt and played back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imitation {
    /// Whose arithmetic.
    pub profile: Profile,
    /// Length of an interval.
    pub interval: Dur,
    /// The exporter's sampling.
    pub sample: u32,
    /// Round trip of every connection.
    pub rtt: Dur,
}

impl Original {
    /// `sessions` times the users of `model`, for `duration`.
    pub fn new(model: Arc<Model>, sessions: f64, duration: Dur) -> Original {
        Original {
            model,
            duration,
            sessions,
            whole: OnceLock::new(),
        }
    }

    /// The original itself, simulated when it is first asked for; every packet is in its records.
    pub fn seen(&self) -> &Seen {
        self.whole.get_or_init(|| self.simulate(1))
    }

    fn simulate(&self, sample: u32) -> Seen {
        let knobs = Knobs {
            rtt: Some(RTT),
            access: Some(EDGE),
            sessions: self.sessions,
            phase: Some(Dur::ZERO),
            ..Knobs::default()
        };
        let played = self.model.varied(&knobs, 1);
        // Knobs that are numbers above zero, and a phase of zero, always give a schedule unless it is endless;
        // then there is nothing to see.
        let drawn = Schedule::draw(&played, &knobs, 1, self.duration, &Network::default());
        // The original is what began in it.
        let schedule = drawn.unwrap_or_default().without_entered();
        let machine = Structural::new(Arc::new(played), &schedule);
        observe(Box::new(machine), self.duration, sample, 1)
    }

    /// The flow-level model of its records.
    ///
    /// # Errors
    /// When they hold nothing to model.
    pub fn learn(&self, copy: &Imitation) -> Result<FlowModel, ConfigureError> {
        if copy.sample == 1 {
            return learn(&self.seen().records, copy.profile, copy.interval);
        }
        learn(
            &self.simulate(copy.sample).records,
            copy.profile,
            copy.interval,
        )
    }

    /// What a copy shows on the link; `None` if there is nothing to play.
    pub fn play(&self, copy: &Imitation, seed: u64) -> Option<Seen> {
        let model = self.learn(copy).ok()?;
        let playback = Playback {
            // Windows limit the rates of large files here, and so the round trip their durations.
            durations: copy.rtt.as_secs_f64() / RTT.as_secs_f64(),
            ..Playback::default()
        };
        let plan = Plan::new(&model, &playback).ok()?;
        // Hosts share their path where it has a capacity, which makes them hosts in the records.
        let access = Access {
            delay: copy.rtt / 4,
            up: Some(EDGE),
            down: Some(EDGE),
            ..Access::default()
        };
        let player = Player::new(plan, seed, Share::ALL);
        let machine = Sessions::new(SessionsConfig::alike(player, seed, access));
        Some(observe(Box::new(machine), self.duration, 1, seed))
    }
}

/// Flow records into a model.
///
/// # Errors
/// When they hold nothing to model.
pub fn learn(
    records: &[FlowRecord],
    profile: Profile,
    interval: Dur,
) -> Result<FlowModel, ConfigureError> {
    let mut learner = FlowLearner::new(Options {
        profile,
        interval,
        ..Options::default()
    });
    records.iter().for_each(|r| learner.push(r));
    learner.finish("original", Default::default())
}

/// Lets `machine` send over a link that is never full, and looks at it.
fn observe(machine: Box<dyn Workload>, duration: Dur, sample: u32, seed: u64) -> Seen {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(1_000_000_000)),
        queue: QueueLimit::Packets(100_000),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], seed);
    world.meter(BIN, Dur::from_secs(1));
    let (tap, reports) = exporter(sample, seed);
    world.set_tap(Box::new(tap));
    let tcp = Config {
        recv_buffer: WINDOW,
        recv_tuning: false,
        ..Config::linux()
    };
    world.add(machine, Tag::Background, Arc::new(tcp));
    world.advance(Time::ZERO + duration);
    let bins = (duration.as_nanos() / BIN.as_nanos()) as usize;
    let group = (COARSE.as_nanos() / BIN.as_nanos()) as usize;
    let (records, flows) = reports.take();
    let mut seen = Seen {
        records,
        flows,
        fine: vec![0; bins],
        bytes: vec![0.0; bins.div_ceil(group)],
        packets: vec![0.0; bins.div_ceil(group)],
    };
    for direction in [Direction::Up, Direction::Down] {
        let Some(meter) = world.bottleneck(direction).meter() else {
            continue;
        };
        let tag = Tag::Background as usize;
        for (into, counts) in [
            (&mut seen.bytes, &meter.fine_bytes[tag]),
            (&mut seen.packets, &meter.fine_packets[tag]),
        ] {
            for (bin, part) in into
                .iter_mut()
                .zip(counts[..counts.len().min(bins)].chunks(group))
            {
                *bin += part.iter().map(|&n| f64::from(n)).sum::<f64>();
            }
        }
        for (bin, &n) in seen.fine.iter_mut().zip(&meter.fine_bytes[tag]) {
            *bin += n;
        }
    }
    seen
}

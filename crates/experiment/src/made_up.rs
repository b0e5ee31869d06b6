//! A backend that makes up plausible numbers, to test a plan or a pipeline without a network.

use std::sync::Arc;

use swell_base::{Code, Direction, Stream, Warning};

use crate::backend::{Backend, Offered, RunError, RunSpec};
use crate::file::{Queue, queues};
use crate::kinds::Role;
use crate::observe::{
    Bin, Flow, LinkTotals, Observations, Outcome, PartBin, PartTotals, Request, Scale,
};

/// Makes up observations, as a pure function of the run. They say nothing about any network, and
/// a warning in each run says so.
#[derive(Clone, Copy, Debug, Default)]
pub struct MadeUp {
    /// Wait this long on the wall clock in every run, so that there is something to interrupt.
    pub pause: std::time::Duration,
}

impl MadeUp {
    /// Its name in manifests.
    pub const NAME: &str = "made-up";
}

impl Backend for MadeUp {
    fn name(&self) -> &'static str {
        MadeUp::NAME
    }

    fn run(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Observations, RunError> {
        const STEPS: u32 = 20;
        for step in 0..STEPS {
            if cancelled() {
                return Err(RunError::Cancelled);
            }
            std::thread::sleep(self.pause / STEPS);
            progress(f64::from(step + 1) / f64::from(STEPS));
        }
        Ok(observe(spec))
    }

    fn offered(&self, spec: &RunSpec) -> Result<Option<Offered>, RunError> {
        let rates = offered(spec);
        Ok(Some(Offered {
            mean: rates,
            drawn: rates,
        }))
    }
}

/// The rate that would be carried if it were proportional to the number of sessions.
fn offered(spec: &RunSpec) -> [f64; 2] {
    let mut sum = [0.0; 2];
    for (setting, part) in spec.parts(Role::Background) {
        let like = part.plausible(&setting);
        (0..2).for_each(|d| sum[d] += like.bps[d] * like.grown);
    }
    sum
}

/// The load up and down, bits per second, and its burstiness.
fn load(spec: &RunSpec) -> ([f64; 2], f64) {
    let (mut sum, mut burst) = ([0.0; 2], QUIET);
    for (setting, part) in spec.parts(Role::Background) {
        let like = part.plausible(&setting);
        (0..2).for_each(|d| sum[d] += like.bps[d]);
        burst = like.burst.max(burst);
    }
    (sum, burst)
}

/// The load of a part of the background on a queue that it crosses.
struct Load<'s> {
    part: &'s str,
    queue: Queue,
    /// Bits per second.
    bps: f64,
}

fn of_parts(spec: &RunSpec) -> Vec<Load<'_>> {
    let mut loads = Vec::new();
    for (setting, part) in spec.parts(Role::Background) {
        let like = part.plausible(&setting);
        for (along, bps) in Direction::BOTH.into_iter().zip(like.bps) {
            loads.extend(queues(&part.path, along).into_iter().map(|queue| Load {
                part: &part.name,
                queue,
                bps,
            }));
        }
    }
    loads
}

/// Burstiness without background traffic.
const QUIET: f64 = 0.01;

fn observe(spec: &RunSpec) -> Observations {
    let mut rng = Stream::new(spec.cell.seed, "made-up");
    let (warmup, end) = (spec.warmup.as_secs_f64(), spec.duration.as_secs_f64());
    let (load, burst) = load(spec);
    let [_, narrowest] = spec.narrowest(&spec.foreground_path());
    let capacity = spec.link(narrowest).rate.bps() as f64;
    let room = (capacity - load[1]).max(capacity * 0.05);
    let mut observed = Observations {
        warnings: vec![Warning::warning(
            Code::MadeUp,
            "these numbers are made up and say nothing about any network",
        )],
        ..Observations::default()
    };
    if let Some(foreground) = &spec.foreground
        && let Some(fetches) = foreground.fetches()
    {
        let own = spec.along(&foreground.path);
        let own: f64 = own.map(|l| l.delay.as_secs_f64()).sum();
        let rtt = own + 4.0 * foreground.delay().as_secs_f64();
        for client in 0..fetches.clients {
            let mut now = warmup;
            for index in 0.. {
                let size = fetches.sizes[index as usize % fetches.sizes.len()];
                let bytes = size.0;
                let slow = (burst * (rng.uniform() - 0.3)).exp();
                let last = now + 2.0 * rtt + bytes as f64 * 8.0 / room * slow;
                let done = last < end;
                observed.requests.push(Request {
                    client,
                    index,
                    start: now,
                    connected: now + rtt,
                    first_byte: now + 2.0 * rtt,
                    last_byte: last.min(end),
                    observed_until: last.min(end),
                    bytes: if done { bytes } else { bytes / 2 },
                    retransmissions: rng.below(3) as u32,
                    outcome: if done {
                        Outcome::Done
                    } else {
                        Outcome::Unfinished
                    },
                });
                now = last + fetches.think.as_secs_f64();
                if now >= end || fetches.count.is_some_and(|n| u64::from(index) + 1 >= n) {
                    break;
                }
            }
        }
        observed
            .requests
            .sort_by(|a, b| a.start.total_cmp(&b.start));
    }
    let loads = of_parts(spec);
    if spec.is_mixed() {
        let seconds = end - warmup;
        observed.parts.extend(loads.iter().map(|one| {
            let bytes = (one.bps * seconds / 8.0) as u64;
            PartTotals {
                part: one.part.to_owned(),
                role: Role::Background.word().to_owned(),
                link: Arc::clone(&spec.links[one.queue.link].name),
                direction: one.queue.direction,
                duration: seconds,
                arrived: bytes,
                arrived_packets: bytes / 1000,
                departed: bytes,
                departed_packets: bytes / 1000,
                dropped: 0,
            }
        }));
    }
    let each = 0..spec.links.len();
    for queue in each.flat_map(|link| Direction::BOTH.map(|direction| Queue { link, direction })) {
        let direction = queue.direction;
        let link = &spec.links[queue.link].name;
        // The load of a part is present only on the links of its path.
        let here = loads.iter().filter(|one| one.queue == queue);
        let mean_bps = here.map(|one| one.bps).sum::<f64>();
        let width = spec.bins.as_secs_f64();
        let bins = (end / width) as u32;
        let mut totals = LinkTotals {
            link: Arc::clone(link),
            direction,
            rate: spec.link(queue).rate.bps() as f64,
            duration: end - warmup,
            ..LinkTotals::default()
        };
        for i in 0..bins {
            let time = f64::from(i) * width;
            let mean = mean_bps * width / 8.0;
            let bytes = (mean * (1.0 + burst * (rng.uniform() - 0.5))) as u64;
            let packets = (bytes / 1000) as u32;
            observed.bins.push(Bin {
                time,
                link: Arc::clone(link),
                direction,
                arrived: [0, bytes],
                arrived_packets: [0, packets],
                departed: [0, bytes],
                dropped: [0, 0],
                queue_max: bytes / 10,
                queue_mean: if packets == 0 {
                    f64::NAN
                } else {
                    bytes as f64 / 20.0
                },
            });
            let parts = loads.iter().filter(|one| one.queue == queue);
            observed
                .part_bins
                .extend(parts.filter(|_| spec.is_mixed() && bytes > 0).map(|one| {
                    let own = (bytes as f64 * one.bps / mean_bps) as u64;
                    PartBin {
                        time,
                        part: one.part.to_owned(),
                        role: Role::Background.word().to_owned(),
                        link: Arc::clone(link),
                        direction,
                        arrived: own,
                        arrived_packets: (own / 1000) as u32,
                        departed: own,
                        dropped: 0,
                    }
                }));
            if time >= warmup {
                totals.arrived[1] += bytes;
                totals.arrived_packets[1] += u64::from(packets);
                totals.departed[1] += bytes;
            }
        }
        observed.links.push(totals);
        for octave in 1..=8u32 {
            observed.scales.push(Scale {
                link: Arc::clone(link),
                direction,
                traffic: "background".into(),
                quantity: "bytes".into(),
                octave,
                timescale: 0.001 * f64::from(1u32 << octave),
                n: u64::from(4096u32 >> octave),
                energy: mean_bps * (1.0 + burst * f64::from(octave)),
            });
        }
    }
    if spec.keep.flows && load[1] > 0.0 {
        for i in 0..20 {
            let start = rng.uniform() * end;
            observed.flows.push(Flow {
                class: "made-up".into(),
                start,
                end: if i == 0 {
                    f64::NAN
                } else {
                    start + rng.exponential(1.0)
                },
                up: rng.below(1_000),
                down: rng.below(1_000_000),
                rtt: 0.01 + rng.exponential(0.05),
                retransmissions: 0,
            });
        }
        observed.flows.sort_by(|a, b| a.start.total_cmp(&b.start));
    }
    observed
}

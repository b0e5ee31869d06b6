//! Converts the state of a finished world to rows of the result tables.

use std::sync::Arc;

use swell_base::{Code, DropReason, Dur, Rate, Time, Warning};
use swell_path::{GroupBin, Ledger, Meter, PHASES, Tally, mean_offered};
use swell_stats::energies;
use swell_workload::{self as workload, Record};
use swell_world::{Bottleneck, Direction, World};

use super::build;
use crate::backend::RunSpec;
use crate::file::Queue;
use crate::kinds::{Crossed, Playing, Role};
use crate::measure::GOODPUT_EACH_WAY;
use crate::observe::{
    Bin, Delay, Flow, LinkTotals, MeasureSample, Observations, Outcome, PartBin, PartTotals,
    Request, Scale, Synchrony, Wait,
};

/// Vanishing moments of the wavelet behind the log-scale diagrams: the usual choice (Abry & Veitch).
pub(super) const VANISHING: usize = 3;

/// A part that was added to the world.
pub(super) struct Added {
    pub role: Role,
    pub part: Playing,
    /// The number of its workload.
    pub index: usize,
    /// Whether it is the foreground under test, not another one that runs alongside.
    pub own: bool,
}

/// The ledgers of all links, up and down.
pub type Ledgers = Vec<[Ledger; 2]>;

pub(super) fn ledgers(world: &World) -> Ledgers {
    let links = 0..world.duplexes();
    links
        .map(|link| Direction::BOTH.map(|d| world.link(link, d).ledger()))
        .collect()
}

/// The directions of all links.
fn queues(world: &World) -> impl Iterator<Item = Queue> {
    (0..world.duplexes())
        .flat_map(|link| Direction::BOTH.map(|direction| Queue { link, direction }))
}

/// One direction of a link.
fn seen(world: &World, queue: Queue) -> Bottleneck<'_> {
    world.link(queue.link, queue.direction)
}

/// The capacities of these links, and what they transmitted for other traffic.
pub(super) fn crossed<'w>(world: &'w World, spec: &RunSpec, queues: &[Queue]) -> Vec<Crossed<'w>> {
    let link = |queue: &Queue| {
        let meter = seen(world, *queue).meter();
        Crossed {
            capacity: capacity(spec, *queue, spec.warmup.as_secs_f64()).bps() as f64,
            overhead: spec.link(*queue).overhead.0 as f64,
            changing: changes(spec, *queue).then(|| build::direction(spec, *queue)),
            others: meter.map_or(&[], |m| &m.fine_departed),
        }
    };
    queues.iter().map(link).collect()
}

/// All observations of the links' meters. `ledgers` are those at the end of the warm-up and at the end of the run.
pub(super) fn links(
    world: &World,
    spec: &RunSpec,
    ledgers: [&Ledgers; 2],
    fine: Dur,
) -> Observations {
    let mut observed = Observations::default();
    for queue in queues(world) {
        let Some(meter) = seen(world, queue).meter() else {
            continue;
        };
        let bins = bins(meter, queue, spec);
        let mut totals = totals(&bins, spec, queue);
        let counted = ledgers.map(|l| {
            let link = l.get(queue.link).copied().unwrap_or_default();
            link[queue.direction]
        });
        totals.dropped_by = dropped_by(&totals, counted.map(|l| l.dropped));
        totals.marked = counted[1].marked - counted[0].marked;
        let at = (&*totals.link, queue.direction.name());
        observed.warnings.extend(locked(&meter.phases, at));
        observed.links.push(totals);
        observed.bins.extend(bins);
        observed.scales.extend(scales(meter, queue, spec, fine));
    }
    observed
}

/// Minimum number of losses for a test of phases.
const LOSSES: u32 = 50;
/// Phases are locked if the chi-squared statistic exceeds its expected noise by this much per loss. The excess is 15 if
/// all losses fall into one bin, and below 0.1 if phases are uniform. Long flows without jitter have 3 to 15
/// (`crates/world/tests/world/phases.rs`).
const LOCKED: f64 = 2.0;

/// A doubt if phase effects decide which flows lose packets at a link.
fn locked(phases: &[u32; PHASES], (link, way): (&str, &str)) -> Option<Warning> {
    let losses = phases.iter().sum::<u32>();
    let fair = f64::from(losses) / PHASES as f64;
    let squares: f64 = phases.iter().map(|&n| (f64::from(n) - fair).powi(2)).sum();
    let noise = (PHASES - 1) as f64;
    if losses < LOSSES || squares / fair < LOCKED * f64::from(losses) + noise {
        return None;
    }
    Some(Warning::warning(
        Code::PhaseEffects,
        format!(
            "{link} {way}: segments find the queue full at the same phases of transmissions again and again; who loses hangs on that, and flows may share the link otherwise than in a real network"
        ),
    ))
}

/// Drops between two ledgers by reason. A ledger counts a random loss when the packet's transmission begins, the bins
/// count it when the transmission ends, like departures. The bins decide, so that the reasons add up to the total.
fn dropped_by(totals: &LinkTotals, [before, after]: [[u64; 3]; 2]) -> [u64; 3] {
    let mut by: [u64; 3] = std::array::from_fn(|i| after[i] - before[i]);
    let lost = DropReason::Loss as usize;
    by[lost] = 0;
    let queue: u64 = by.iter().sum();
    by[lost] = totals.dropped.iter().sum::<u64>().saturating_sub(queue);
    by
}

fn bins(meter: &Meter, queue: Queue, spec: &RunSpec) -> Vec<Bin> {
    let width = meter.coarse_width();
    let n = spec.duration.as_nanos().div_ceil(width.as_nanos()) as usize;
    (0..n)
        .map(|i| {
            let b = meter.bins.get(i).copied().unwrap_or_default();
            let arrivals = f64::from(b.arrived_packets[0]) + f64::from(b.arrived_packets[1]);
            Bin {
                time: (width * i as u64).as_secs_f64(),
                link: Arc::clone(&spec.links[queue.link].name),
                direction: queue.direction,
                arrived: b.arrived,
                arrived_packets: b.arrived_packets,
                departed: b.departed,
                dropped: b.dropped,
                queue_max: b.queue_max,
                queue_mean: if arrivals > 0.0 {
                    b.queue_sum as f64 / arrivals
                } else {
                    f64::NAN
                },
            }
        })
        .collect()
}

/// Sums over the bins after the warm-up.
fn totals(bins: &[Bin], spec: &RunSpec, queue: Queue) -> LinkTotals {
    let warmup = spec.warmup.as_secs_f64();
    let counted: Vec<&Bin> = bins.iter().filter(|b| b.time >= warmup - 1e-9).collect();
    let from = counted
        .first()
        .map_or(spec.duration.as_secs_f64(), |b| b.time);
    let sum = |f: &dyn Fn(&Bin) -> [u64; 2]| {
        counted
            .iter()
            .map(|b| f(b))
            .fold([0, 0], |s, x| [s[0] + x[0], s[1] + x[1]])
    };
    LinkTotals {
        link: Arc::clone(&spec.links[queue.link].name),
        direction: queue.direction,
        rate: capacity(spec, queue, from).bps() as f64,
        duration: spec.duration.as_secs_f64() - from,
        arrived: sum(&|b| b.arrived),
        arrived_packets: sum(&|b| b.arrived_packets.map(u64::from)),
        departed: sum(&|b| b.departed),
        dropped: sum(&|b| b.dropped.map(u64::from)),
        dropped_by: [0; 3],
        marked: 0,
    }
}

/// Mean capacity of the link from `from` seconds to the end of the run.
fn capacity(spec: &RunSpec, queue: Queue, from: f64) -> Rate {
    if !changes(spec, queue) {
        return spec.link(queue).rate;
    }
    let (from, to) = (Time::from_secs_f64(from), Time::ZERO + spec.duration);
    mean_offered(&build::direction(spec, queue), from, to)
}

/// Whether the capacity of the link varies.
fn changes(spec: &RunSpec, queue: Queue) -> bool {
    let d = queue.direction;
    spec.link(queue).deliveries.is_some() || !spec.links[queue.link].changes[d].is_empty()
}

/// Wavelet energies of arrivals after the warm-up: of the background, and of all traffic.
fn scales(meter: &Meter, queue: Queue, spec: &RunSpec, fine: Dur) -> Vec<Scale> {
    let from = spec.warmup.as_nanos().div_ceil(fine.as_nanos()) as usize;
    let to = (spec.duration.as_nanos() / fine.as_nanos()) as usize;
    let at = |counts: &[u32], i: usize| f64::from(counts.get(i).copied().unwrap_or(0));
    let mut rows = Vec::new();
    for (quantity, counts) in [
        ("bytes", &meter.fine_bytes),
        ("packets", &meter.fine_packets),
    ] {
        let background: Vec<f64> = (from..to).map(|i| at(&counts[1], i)).collect();
        let all: Vec<f64> = (from..to)
            .map(|i| at(&counts[0], i) + at(&counts[1], i))
            .collect();
        for (traffic, series) in [("background", background), ("all", all)] {
            if series.iter().all(|&x| x == 0.0) {
                continue;
            }
            rows.extend(
                energies(&series, VANISHING)
                    .into_iter()
                    .map(|octave| Scale {
                        link: Arc::clone(&spec.links[queue.link].name),
                        direction: queue.direction,
                        traffic: traffic.into(),
                        quantity: quantity.into(),
                        octave: octave.j,
                        timescale: octave.timescale(fine).as_secs_f64(),
                        n: octave.n,
                        energy: octave.energy,
                    }),
            );
        }
    }
    rows
}

/// Counts of a part in one direction of a link.
pub(super) struct Counted {
    queue: Queue,
    role: Role,
    own: bool,
    name: String,
    tally: Tally,
}

/// Current counts of all parts; empty if no census is taken.
pub(super) fn counted(world: &World, parts: &[Added]) -> Vec<Counted> {
    let mut all = Vec::new();
    for queue in queues(world) {
        let Some(census) = seen(world, queue).census() else {
            continue;
        };
        // The table of waits lists foregrounds first.
        for role in [Role::Foreground, Role::Background] {
            for added in parts.iter().filter(|p| p.role == role) {
                all.push(Counted {
                    queue,
                    role,
                    own: added.own,
                    name: added.part.name.clone(),
                    tally: census.tally(added.index as u32),
                });
            }
        }
    }
    all
}

/// Totals of parts between two counts; `before` may be empty.
pub(super) fn totals_of_parts(
    before: &[Counted],
    after: &[Counted],
    spec: &RunSpec,
) -> Vec<PartTotals> {
    let duration = spec.duration.saturating_sub(spec.warmup).as_secs_f64();
    let totals = |(i, now): (usize, &Counted)| {
        let since = |of: fn(&Tally) -> u64| {
            let earlier = before.get(i).map_or(0, |then| of(&then.tally));
            of(&now.tally) - earlier
        };
        PartTotals {
            part: now.name.clone(),
            role: now.role.word().to_owned(),
            link: Arc::clone(&spec.links[now.queue.link].name),
            direction: now.queue.direction,
            duration,
            arrived: since(|t| t.arrived_bytes),
            arrived_packets: since(|t| t.arrived),
            departed: since(|t| t.sent_bytes),
            departed_packets: since(|t| t.sent),
            dropped: since(|t| t.dropped),
        }
    };
    after.iter().enumerate().map(totals).collect()
}

/// Counts of parts over time, warm-up included; empty unless parts are counted over time.
pub(super) fn bins_of_parts(world: &World, spec: &RunSpec, parts: &[Added]) -> Vec<PartBin> {
    let mut rows = Vec::new();
    for queue in queues(world) {
        let Some(census) = seen(world, queue).census() else {
            continue;
        };
        for added in parts {
            let counts = census.bins(added.index as u32).iter().enumerate();
            rows.extend(
                counts
                    .filter(|(_, b)| **b != GroupBin::default())
                    .map(|(i, bin)| PartBin {
                        time: (spec.bins * i as u64).as_secs_f64(),
                        part: added.part.name.clone(),
                        role: added.role.word().to_owned(),
                        link: Arc::clone(&spec.links[queue.link].name),
                        direction: queue.direction,
                        arrived: bin.arrived_bytes,
                        arrived_packets: bin.arrived,
                        departed: bin.departed_bytes,
                        dropped: bin.dropped,
                    }),
            );
        }
    }
    rows
}

/// Waits between two counts; `before` may be empty.
pub(super) fn waits(spec: &RunSpec, before: &[Counted], after: &[Counted]) -> Vec<Wait> {
    let mut rows = Vec::new();
    for (i, now) in after.iter().enumerate() {
        // Other foregrounds belong neither to the foreground nor to the background.
        if now.role == Role::Foreground && !now.own {
            continue;
        }
        let since = match before.get(i) {
            Some(then) => now.tally.waits.since(&then.tally.waits),
            None => now.tally.waits.clone(),
        };
        rows.extend(since.buckets().map(|(from, to, bucket)| Wait {
            link: Arc::clone(&spec.links[now.queue.link].name),
            direction: now.queue.direction,
            traffic: now.role.word().to_owned(),
            from: from.as_secs_f64(),
            to: to.as_secs_f64(),
            packets: bucket.packets,
            bytes: bucket.bytes,
            squares: bucket.squares as f64,
            waited: bucket.wait as f64 / 1e9,
        }));
    }
    rows
}

/// Goodput of the foreground in each direction, from bytes of use to it at the end of the warm-up and at the end.
pub(super) fn goodput(spec: &RunSpec, before: [u64; 2], now: [u64; 2]) -> Vec<MeasureSample> {
    let seconds = spec.duration.saturating_sub(spec.warmup).as_secs_f64();
    let row = |d: Direction| MeasureSample {
        measure: GOODPUT_EACH_WAY[d].to_owned(),
        value: now[d].saturating_sub(before[d]) as f64 * 8.0 / seconds,
        at: spec.duration.as_secs_f64(),
    };
    Direction::BOTH.map(row).into()
}

/// One-way delays of a part's datagrams; empty if they were not counted.
pub(super) fn delays(world: &World, workload: usize) -> Vec<Delay> {
    let ways = Direction::BOTH.into_iter().flat_map(|direction| {
        let buckets = world.delays(workload, direction).into_iter();
        buckets.map(move |b| Delay {
            direction,
            from: b.from.as_secs_f64(),
            to: b.to.as_secs_f64(),
            packets: b.packets,
            bytes: b.bytes,
            delayed: b.sum as f64 / 1e9,
        })
    });
    ways.collect()
}

/// ACKs at a link: the number that followed another ACK of their flow, and how many of these the queue compressed.
pub(super) type Acked = [u64; 2];

/// Current ACK counts of every direction of every link; zero where no census is taken.
pub(super) fn acked(world: &World, parts: &[Added]) -> Vec<Acked> {
    let each = queues(world).map(|queue| {
        let census = seen(world, queue).census();
        let tallies = parts
            .iter()
            .filter_map(|p| Some(census?.tally(p.index as u32)));
        tallies.fold([0, 0], |sum, t| {
            [sum[0] + t.acks, sum[1] + t.compressed_acks]
        })
    });
    each.collect()
}

/// Loss synchronization of connections after the warm-up. `before` are the ACK counts at the end of the warm-up.
pub(super) fn synchrony(
    world: &World,
    spec: &RunSpec,
    parts: &[Added],
    before: &[Acked],
) -> Vec<Synchrony> {
    let (from, to) = (Time::ZERO + spec.warmup, Time::ZERO + spec.duration);
    let mut rows = Vec::new();
    for (i, (queue, now)) in queues(world).zip(acked(world, parts)).enumerate() {
        let earlier = before.get(i).copied().unwrap_or_default();
        let Some(census) = seen(world, queue).census() else {
            continue;
        };
        let counted = census.drops().iter().filter(|d| d.0 >= from && d.0 < to);
        let losses: Vec<(f64, u32)> = counted
            .map(|&(at, flow)| (at.since(from).as_secs_f64(), flow))
            .collect();
        let (width, length) = (spec.bins.as_secs_f64(), to.since(from).as_secs_f64());
        let flows = census.flows_since(from);
        let found = swell_stats::synchrony(&losses, flows, width, length);
        rows.push(Synchrony {
            link: Arc::clone(&spec.links[queue.link].name),
            direction: queue.direction,
            flows: u64::from(flows),
            events: found.map_or(0, |s| s.events as u64),
            share: found.map_or(f64::NAN, |s| s.share),
            independent: found.map_or(f64::NAN, |s| s.independent),
            acks: now[0] - earlier[0],
            compressed: now[1] - earlier[1],
        });
    }
    rows
}

/// Rows of requests that were observed until `end`, seconds.
pub(super) fn requests(records: &[Record], end: f64) -> Vec<Request> {
    let mut rows: Vec<Request> = records
        .iter()
        .filter_map(|record| match record {
            Record::Request(r) => Some(Request {
                client: r.client,
                index: r.index,
                start: r.start.as_secs_f64(),
                connected: seconds(r.connected),
                first_byte: seconds(r.first_byte),
                last_byte: seconds(r.last_byte),
                observed_until: match (r.outcome, r.last_byte) {
                    (workload::Outcome::Done, Some(last)) => last.as_secs_f64(),
                    _ => r.watched_until.map_or(end, Time::as_secs_f64),
                },
                bytes: r.bytes,
                retransmissions: r.retransmissions,
                outcome: match r.outcome {
                    workload::Outcome::Done => Outcome::Done,
                    workload::Outcome::Unfinished => Outcome::Unfinished,
                    workload::Outcome::Failed => Outcome::Failed,
                },
            }),
            Record::Flow(_) => None,
        })
        .collect();
    // A request of the instant in which the run ended was never watched.
    rows.retain(|r| r.outcome != Outcome::Unfinished || r.observed_until > r.start);
    rows.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.client.cmp(&b.client)));
    rows
}

pub(super) fn flows(records: Vec<Record>, class: impl Fn(u32) -> String) -> Vec<Flow> {
    records
        .into_iter()
        .filter_map(|record| match record {
            Record::Flow(f) => Some(Flow {
                class: class(f.class),
                start: f.start.as_secs_f64(),
                end: seconds(f.end),
                up: f.up,
                down: f.down,
                rtt: f.min_rtt.map_or(f64::NAN, Dur::as_secs_f64),
                retransmissions: f.retransmissions,
            }),
            Record::Request(_) => None,
        })
        .collect()
}

fn seconds(at: Option<Time>) -> f64 {
    at.map_or(f64::NAN, Time::as_secs_f64)
}

//! Captures the traffic of worlds, learns from it, and compares predictions with the truth.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use swell_base::{Direction, Dur};
use swell_capture::{LinkType, Reader, Record, Writer};
use swell_experiment::observe::{Observations, Outcome};
use swell_experiment::{Backend as _, Plan, Simulator, Traces};
use swell_learn::{Learner, Options};
use swell_stats::{Observation, Replications};

use crate::changes::{Beside, INSIDE, Setting};
use crate::worlds::{Failed, World};

/// Predictors: the learnt model, a replay of the captured packets, Poisson packets, and the truth with other seeds, which
/// shows the effect of chance alone.
pub const PREDICTORS: [&str; 4] = ["B", "replay", "Poisson", "A, other seeds"];

/// Compared percentiles.
const PERCENTILES: [f64; 3] = [0.5, 0.9, 0.95];

/// How much is run.
#[derive(Clone, Debug)]
pub struct Inquiry {
    pub seeds: u64,
    /// Of tap and runs, seconds, warm-up included.
    pub duration: u32,
    pub threads: usize,
}

impl Default for Inquiry {
    fn default() -> Inquiry {
        Inquiry {
            seeds: 4,
            duration: 300,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Results of the capture with one seed.
struct Tap {
    packets: String,
    model: String,
    /// Up and down, bits per second.
    rates: [f64; 2],
}

/// Results for one world.
pub struct Table {
    world: &'static str,
    /// By change: name, whether objects are 1 MB, slowdowns of the truth, and the error of each predictor, by percentile.
    rows: Vec<Row>,
    /// Mbit/s down of A and of each predictor in the network of the tap.
    loads: Vec<f64>,
    /// Mbit/s down while the tap was open.
    tapped: f64,
}

struct Row {
    change: &'static str,
    one_mb: bool,
    slowdown: [f64; 3],
    errors: Vec<[f64; 3]>,
}

/// Times of fetches by seed, and the mean load of the background down, Mbit/s.
type Answer = (Vec<Vec<Observation>>, f64);

/// Warm-up, seconds.
const WARMUP: u32 = 20;

impl Inquiry {
    /// Taps a world, learns it, and asks for every change. `None` where a tap saw nothing.
    pub fn world(
        &self,
        world: &World,
        changes: &[(&'static str, Setting)],
        scratch: &Path,
    ) -> Result<Option<Table>, Failed> {
        let seeds: Vec<u64> = (1..=self.seeds).collect();
        let taps = self.each(&seeds, |&seed| self.tap(world, seed, scratch))?;
        if taps.iter().any(|tap| tap.rates == [0.0; 2]) {
            return Ok(None);
        }
        let known = Traces::default();
        // Without background; the truth; the predictors.
        let columns = PREDICTORS.len() + 2;
        let settings: Vec<Setting> = std::iter::once(Setting::default())
            .chain(changes.iter().map(|c| c.1.clone()))
            .collect();
        let mut jobs = Vec::new();
        for setting in 0..settings.len() {
            for seed in 0..seeds.len() {
                jobs.extend((0..columns).map(|who| (setting, who, seed)));
            }
        }
        let runs = self.each(&jobs, |&(setting, who, i)| {
            let (seed, tap) = (seeds[i], &taps[i]);
            let (beside, seed) = match who {
                0 => (Beside::Nobody, seed),
                1 => (world.beside(), seed),
                // A different seed from that of the truth, to avoid common random numbers.
                2 => (Beside::Model(&tap.model, 1.0), seed + 1000),
                3 => (Beside::Replay(&tap.packets), seed + 1000),
                4 => (Beside::Poisson(tap.rates), seed + 1000),
                _ => (world.beside(), seed + 2000),
            };
            let file = settings[setting].file(world.rates, &beside, true, [WARMUP, self.duration]);
            let observed = run(&file, seed, None, &known)?;
            Ok((durations(&observed), carried(&observed)[1]))
        })?;
        let mut found: BTreeMap<(usize, usize), Answer> = BTreeMap::new();
        for ((setting, who, _), (durations, rate)) in jobs.iter().zip(runs) {
            let entry = found.entry((*setting, *who)).or_default();
            entry.0.push(durations);
            entry.1 += rate / seeds.len() as f64 / 1e6;
        }
        let quantiles = |setting, who| {
            let samples = Replications::censored(&found[&(setting, who)].0);
            PERCENTILES.map(|p| samples.quantile(p).unwrap_or(f64::NAN))
        };
        let rows = (1..settings.len()).map(|s| {
            let ratio = |a: [f64; 3], b: [f64; 3]| [0, 1, 2].map(|i| a[i] / b[i]);
            let truth = quantiles(s, 1);
            Row {
                change: changes[s - 1].0,
                one_mb: settings[s].object == "1MB",
                slowdown: ratio(truth, quantiles(s, 0)),
                errors: (2..columns)
                    .map(|w| ratio(quantiles(s, w), truth).map(|r| r - 1.0))
                    .collect(),
            }
        });
        Ok(Some(Table {
            world: world.name,
            rows: rows.collect(),
            loads: (1..columns).map(|w| found[&(0, w)].1).collect(),
            tapped: taps.iter().map(|t| t.rates[1]).sum::<f64>() / seeds.len() as f64 / 1e6,
        }))
    }

    /// Plays the world alone in the network of the tap, writes its packets and learns from them. The tap is opened
    /// when the warm-up is over, in the midst of connections.
    fn tap(&self, world: &World, seed: u64, scratch: &Path) -> Result<Tap, Failed> {
        let place = |end: &str| scratch.join(format!("{}-{seed}.{end}", world.name));
        let (all, packets, learnt) = (place("all"), place("pcapng"), place("learnt.json"));
        let beside = world.beside();
        let times = [WARMUP, self.duration];
        let file = Setting::default().file(world.rates, &beside, false, times);
        let observed = run(&file, seed, Some(&all), &Traces::default())?;
        cut(&all, &packets)?;
        std::fs::remove_file(&all)?;
        let inside: Result<_, _> = INSIDE.iter().map(|network| network.parse()).collect();
        let mut learner = Learner::new(Options {
            name: world.name.into(),
            inside: inside?,
            link_rtt: Dur::from_millis(2 * u64::from(Setting::default().delay)),
            length: Dur::from_secs(u64::from(self.duration - WARMUP)),
            ..Options::default()
        });
        let mut reader = Reader::open(&packets)?;
        while let Some(packet) = reader.next_packet()? {
            learner.push(&packet);
        }
        let mut bytes = Vec::new();
        learner.finish().write(&mut bytes, false)?;
        std::fs::write(&learnt, bytes)?;
        Ok(Tap {
            packets: packets.display().to_string(),
            model: learnt.display().to_string(),
            rates: carried(&observed),
        })
    }

    /// Runs all jobs on all processors; results are in the order of the jobs.
    fn each<J: Sync, R: Send>(
        &self,
        jobs: &[J],
        work: impl Fn(&J) -> Result<R, Failed> + Sync,
    ) -> Result<Vec<R>, Failed> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    while let i = next.fetch_add(1, Ordering::Relaxed)
                        && let Some(job) = jobs.get(i)
                    {
                        let result = work(job);
                        done.lock()
                            .expect("no worker panics with it")
                            .push((i, result));
                    }
                });
            }
        });
        let mut done = done.into_inner().expect("all workers ended");
        done.sort_by_key(|d| d.0);
        done.into_iter().map(|d| d.1).collect()
    }
}

/// Copies the part of a packet file after the warm-up.
fn cut(from: &Path, to: &Path) -> Result<(), Failed> {
    let mut reader = Reader::open(from)?;
    let mut writer = Writer::create(to, "a tap")?;
    for name in ["tap/up", "tap/down"] {
        writer.interface(name, LinkType::RAW, 0)?;
    }
    let mut failed = None;
    let begin = i64::from(WARMUP) * 1_000_000_000;
    while let Some(()) = reader.next_frame(|frame| {
        if frame.time < begin || failed.is_some() {
            return;
        }
        let record = Record {
            interface: frame.interface,
            time: (frame.time - begin) as u64,
            wire_len: frame.wire_len,
            heading: frame.heading,
            data: frame.data,
        };
        failed = writer.packet(&record).err();
    })? {}
    writer.finish()?;
    failed.map_or(Ok(()), |e| Err(e.into()))
}

/// One run of the only background in `file`.
fn run(
    file: &str,
    seed: u64,
    packets: Option<&Path>,
    known: &Traces,
) -> Result<Observations, Failed> {
    let plan = Plan::resolve_with(file, "counterfactual", Path::new("."), known)?;
    let mut spec = plan
        .spec(&plan.cells[0], &BTreeMap::new())
        .ok_or("no such cell")?;
    spec.cell.seed = seed;
    spec.keep.flows = false;
    spec.packets = packets.map(Path::to_owned);
    Ok(Simulator.run(&spec, &|_| {}, &|| false)?)
}

/// Request times; those of unfinished requests are lower bounds.
fn durations(observed: &Observations) -> Vec<Observation> {
    let request = observed.requests.iter().filter(|r| r.start.is_finite());
    let time = request.map(|r| Observation {
        value: r.observed_until - r.start,
        complete: r.outcome == Outcome::Done,
    });
    time.collect()
}

/// Background rate that left the bottleneck, up and down, bits per second.
fn carried(observed: &Observations) -> [f64; 2] {
    Direction::BOTH.map(|d| {
        let link = observed.links.iter().find(|l| l.direction == d);
        link.map_or(0.0, |l| l.departed[1] as f64 * 8.0 / l.duration)
    })
}

impl Table {
    /// The median over the changes of the absolute error, as a share: by predictor, of percentile number `p`.
    pub fn median(&self, predictor: usize, p: usize) -> f64 {
        let rows = self.rows.iter().filter(|r| p < 2 || r.one_mb);
        let errors: Vec<f64> = rows.map(|r| r.errors[predictor][p].abs()).collect();
        if errors.iter().any(|e| e.is_nan()) {
            return f64::NAN;
        }
        Replications::new(&[errors])
            .quantile(0.5)
            .unwrap_or(f64::NAN)
    }

    /// Every change.
    pub fn details(&self) -> String {
        let mut text = format!(
            "### {}\n\nDown in the network of the tap: {:.2} alone; beside the fetches A {:.2}",
            self.world, self.tapped, self.loads[0]
        );
        for (name, load) in PREDICTORS.iter().zip(&self.loads[1..]) {
            let _ = write!(text, ", {name} {load:.2}");
        }
        text.push_str(" Mbit/s.\n\n| change | slowdown p50 | p95 |");
        for name in PREDICTORS {
            let _ = write!(text, " {name} p50 | p95 |");
        }
        let _ = write!(
            text,
            "\n|---|---:|---:|{}\n",
            "---:|---:|".repeat(PREDICTORS.len())
        );
        for row in &self.rows {
            let _ = write!(
                text,
                "| {} | {:.2} | {:.2} |",
                row.change, row.slowdown[0], row.slowdown[2]
            );
            for errors in &row.errors {
                let _ = write!(
                    text,
                    " {:+.1} | {:+.1} |",
                    100.0 * errors[0],
                    100.0 * errors[2]
                );
            }
            text.push('\n');
        }
        text
    }

    /// Three lines: medians over the changes.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for (p, of) in ["median", "p90", "p95 of 1 MB"].iter().enumerate() {
            let _ = write!(text, "| `{}` | {of} |", self.world);
            for predictor in 0..PREDICTORS.len() {
                let _ = write!(text, " {:.1} |", 100.0 * self.median(predictor, p));
            }
            text.push('\n');
        }
        text
    }
}

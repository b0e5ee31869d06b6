//! Whether backgrounds with additional energy at one timescale have it, and have it only there.
//!
//! Each is simulated alone, with this energy and without it, with the same random numbers. The rise of each octave and
//! of the mean rate is the mean over [`SEEDS`] pairs. Its noise is known from how much the pairs differ, so short runs,
//! which say little about long timescales, raise no doubt.

use swell_base::{Code, Direction, Dur, Warning};

use super::options::{Event, Failure, Rates};
use super::pool::{Progress, over_cores};
use crate::backend::{Backend, RunError, RunSpec};
use crate::kinds::{Energy, Part};
use crate::observe::{Observations, Scale};
use crate::plan::Plan;
use crate::simulate::Simulator;
use crate::store::Measured;

/// Pairs of runs.
const SEEDS: u32 = 5;
/// Chance that noise alone raises a doubt about a background.
const CHANCE: f64 = 0.05;
/// Octaves with fewer wavelet coefficients are left out.
const COEFFICIENTS: u64 = 8;
/// How far the requested rise may be missed, dB.
const THERE: f64 = 1.0;
/// How far other octaves may fall, dB.
const BELOW: f64 = 0.5;
/// How far an octave next to the requested one may rise beside 6 dB there, and one further away: the leakage of the
/// wavelet. A larger rise leaks as much more.
const LEAKS: [f64; 2] = [2.5, 0.5];
/// The rise for which these hold, dB.
const USUAL: f64 = 6.0;
/// How far the mean rate may change.
const MEAN: f64 = 0.01;

/// Energies of a run by octave, finest first, and its mean rate.
struct Spectrum {
    octaves: Vec<Scale>,
    bytes: f64,
}

/// All doubts about the energy of the plan's backgrounds. `None` if it was cancelled.
pub(super) fn doubts(
    plan: &Plan,
    measured: &Rates,
    threads: usize,
    events: &(dyn Fn(Event<'_>) + Sync),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Vec<Warning>>, Failure> {
    let all = plan.file.background.iter().map(|b| &b.0);
    let raised: Vec<(&Part, Energy)> = all.filter_map(|b| Some((b, b.energy()?))).collect();
    if raised.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let each = raised.iter().flat_map(|(background, _)| {
        let pairs = (0..SEEDS).map(|i| pair(plan, background, i, measured));
        pairs.flatten().collect::<Vec<RunSpec>>()
    });
    let specs: Vec<RunSpec> = each.collect();
    events(Event::Stage {
        name: "measuring",
        runs: specs.len(),
        finished: 0,
    });
    let progress = Progress::new(0, specs.len(), events);
    let work = |slot: usize, spec: &RunSpec| {
        let seen = Simulator.run(spec, &|share| progress.share(slot, share), cancelled);
        seen.map(|observed| observed.on_slowest(spec))
            .map_err(|reason| Failure::Run {
                cell: spec.cell.clone(),
                reason,
            })
    };
    let spectra = match over_cores(threads, &specs, &work, cancelled) {
        Err(Failure::Run {
            reason: RunError::Cancelled,
            ..
        }) => return Ok(None),
        spectra => spectra?,
    };
    let Some(spectra) = spectra.into_iter().collect::<Option<Vec<[Spectrum; 2]>>>() else {
        return Ok(None);
    };
    let runs = spectra.chunks(2 * SEEDS as usize);
    let found = raised
        .iter()
        .zip(runs)
        .filter_map(|((background, energy), runs)| {
            // The direction with more bytes is the one whose energy was asked for.
            let sum = |d: Direction| runs.iter().map(|ways| ways[d].bytes).sum::<f64>();
            let busier = if sum(Direction::Up) > sum(Direction::Down) {
                Direction::Up
            } else {
                Direction::Down
            };
            let ways: Vec<&Spectrum> = runs.iter().map(|ways| &ways[busier]).collect();
            missed(background.name(), *energy, &ways)
        });
    Ok(Some(found.collect()))
}

/// A run of the background alone, without its additional energy and with it.
fn pair(plan: &Plan, background: &Part, i: u32, measured: &Rates) -> [RunSpec; 2] {
    let run = &plan.file.run;
    let pace = measured.get(background.name()).and_then(Measured::pace);
    let alone = || {
        let mut spec = plan.alone(background, i % run.replications.max(1), pace, measured);
        spec.cell.seed = run.seed.wrapping_add(u64::from(i));
        spec
    };
    let mut plain = alone();
    plain
        .background
        .iter_mut()
        .for_each(|part| part.energy = None);
    [plain, alone()]
}

impl Observations {
    /// What arrived of the background at the slowest link of its path, up and down.
    fn on_slowest(&self, spec: &RunSpec) -> [Spectrum; 2] {
        let path = spec.background.first().map(|part| &part.path[..]);
        let slowest = spec.narrowest(path.unwrap_or(&spec.foreground_path()));
        Direction::BOTH.map(|d| {
            let queue = slowest[d];
            let name = &spec.links[queue.link].name;
            let here = |s: &&Scale| {
                (&s.link, s.direction) == (name, queue.direction)
                    && (&*s.traffic, &*s.quantity) == ("background", "bytes")
            };
            let total = (self.links.iter())
                .find(|l| (&l.link, l.direction) == (name, queue.direction))
                .map_or(0, |l| l.arrived[1]);
            Spectrum {
                octaves: self.scales.iter().filter(here).cloned().collect(),
                bytes: total as f64,
            }
        })
    }
}

/// A rise over the pairs: its mean, and how far noise may move it.
#[derive(Clone, Copy, Debug)]
struct Rise {
    mean: f64,
    noise: f64,
}

impl Rise {
    fn of(each: &[f64], quantile: f64) -> Rise {
        let n = each.len() as f64;
        let mean = each.iter().sum::<f64>() / n;
        let squares: f64 = each.iter().map(|x| (x - mean).powi(2)).sum();
        Rise {
            mean,
            noise: quantile * (squares / (n - 1.0) / n).sqrt(),
        }
    }

    /// How far it is certainly outside of these bounds; 0 if it may be inside.
    fn outside(self, [low, high]: [f64; 2]) -> f64 {
        let off = (low - self.mean).max(self.mean - high) - self.noise;
        if off.is_finite() { off.max(0.0) } else { 0.0 }
    }
}

/// The doubt about a background, from runs without and with its energy in turn.
fn missed(name: &str, energy: Energy, runs: &[&Spectrum]) -> Option<Warning> {
    let (plain, raised): (Vec<&Spectrum>, Vec<&Spectrum>) = (runs.chunks(2))
        .filter_map(|two| Some((*two.first()?, *two.get(1)?)))
        .unzip();
    let count = runs.iter().map(|s| s.octaves.len()).min()?;
    let known = (0..count).filter(|&i| runs.iter().all(|s| s.octaves[i].n >= COEFFICIENTS));
    let known: Vec<usize> = known.collect();
    let tests = known.len() as f64 + 1.0;
    let quantile = swell_stats::t_quantile(1.0 - CHANCE / tests / 2.0, f64::from(SEEDS) - 1.0);
    let level = |i: usize| plain.iter().map(|s| s.octaves[i].energy).sum::<f64>();
    let rise = |of: &dyn Fn(&Spectrum) -> f64| {
        let each: Vec<f64> = plain
            .iter()
            .zip(&raised)
            .map(|(a, b)| of(b) / of(a))
            .collect();
        each
    };
    let at = known.iter().copied().find(|&i| {
        let own = plain.first().map(|s| s.octaves[i].timescale);
        own.is_some_and(|t| (t / energy.at.as_secs_f64() - 1.0).abs() < 0.01)
    })?;
    let more = |db: f64| 10.0f64.powf(db / 10.0) - 1.0;
    let mut said = Vec::new();
    let mut worst: Option<(f64, usize, Rise)> = None;
    for &i in &known {
        let db: Vec<f64> = rise(&|s| s.octaves[i].energy);
        let db: Vec<f64> = db.into_iter().map(|x| 10.0 * x.log10()).collect();
        let own = Rise::of(&db, quantile);
        let away = i.abs_diff(at);
        if away == 0 {
            if own.outside([energy.db - THERE, energy.db + THERE]) > 0.0 {
                said.push(format!("{:.1} dB came", own.mean));
            }
            continue;
        }
        // What leaks is a share of the energy that was added there, less with each octave.
        let leak = LEAKS[usize::from(away > 1)];
        let share = more(leak) / more(USUAL) / 4.0f64.powi(away as i32 - 2).max(1.0);
        let most = 10.0 * (1.0 + share * more(energy.db) * level(at) / level(i)).log10();
        let off = own.outside([-BELOW, most.max(BELOW)]);
        if off > worst.map_or(0.0, |w| w.0) {
            worst = Some((off, i, own));
        }
    }
    if let Some((_, i, own)) = worst {
        let timescale = plain.first().map_or(0.0, |s| s.octaves[i].timescale);
        let word = if own.mean < 0.0 { "falls" } else { "rises" };
        said.push(format!(
            "energy at {} {word} by {:.1} dB",
            Dur::from_secs_f64(timescale),
            own.mean.abs()
        ));
    }
    let mean = Rise::of(&rise(&|s| s.bytes), quantile);
    if mean.outside([1.0 - MEAN, 1.0 + MEAN]) > 0.0 {
        said.push(format!(
            "its mean rate changes by {:+.1} %",
            100.0 * (mean.mean - 1.0)
        ));
    }
    (!said.is_empty()).then(|| {
        Warning::warning(
            Code::EnergyMissed,
            format!(
                "background {name}: {} dB more energy at {} were asked for; alone on the network, {}",
                energy.db,
                energy.at,
                said.join(", and ")
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const ENERGY: Energy = Energy {
        at: Dur::from_millis(16),
        db: 6.0,
    };

    /// Doubts about pairs whose rises in dB are these, from 2 ms on, each off by a little that depends on the pair.
    fn said(rises: [f64; 6], noise: f64, bytes: f64) -> Option<String> {
        let spectrum = |levels: [f64; 6], total: f64| Spectrum {
            octaves: (levels.iter().zip(1..))
                .map(|(db, octave)| Scale {
                    link: Arc::from("link"),
                    direction: Direction::Down,
                    traffic: "background".into(),
                    quantity: "bytes".into(),
                    octave,
                    timescale: 0.001 * f64::from(1u32 << octave),
                    n: 1000 >> octave,
                    energy: 10.0f64.powf(db / 10.0),
                })
                .collect(),
            bytes: total,
        };
        let pairs = (0..SEEDS).flat_map(|i| {
            let off = noise * (f64::from(i) - 2.0);
            [
                spectrum([0.0; 6], 1e6),
                spectrum(rises.map(|db| db + off), bytes),
            ]
        });
        let runs: Vec<Spectrum> = pairs.collect();
        let runs: Vec<&Spectrum> = runs.iter().collect();
        missed("b", ENERGY, &runs).map(|w| w.message)
    }

    #[test]
    fn what_leaks_no_more_than_the_wavelet_does_is_no_doubt() {
        assert_eq!(said([0.1, 0.3, 2.2, 5.6, 2.2, -0.2], 0.01, 1.005e6), None);
    }

    #[test]
    fn each_miss_is_told() {
        let told = |rises, bytes| said(rises, 0.01, bytes).unwrap_or_default();
        let few = told([0.0, 0.0, 0.0, 1.2, 0.0, 0.0], 1e6);
        assert!(
            few.contains("6 dB more energy at 16ms were asked for") && few.contains("1.2 dB came"),
            "{few}"
        );
        let wide = told([0.0, 0.0, 4.1, 6.0, 0.0, 0.0], 1e6);
        assert!(wide.contains("energy at 8ms rises by 4.1 dB"), "{wide}");
        let far = told([-2.0, 0.0, 2.0, 6.0, 2.0, 0.0], 1e6);
        assert!(far.contains("energy at 2ms falls by 2.0 dB"), "{far}");
        let mean = told([0.0, 0.0, 2.0, 6.0, 2.0, 0.0], 1.03e6);
        assert!(mean.contains("mean rate changes by +3.0 %"), "{mean}");
    }

    /// Poisson packets of 9.8 Mbit/s on a link of 10 Mbit/s, which rise by 20 dB at 1 s.
    fn full(transport: &str) -> Plan {
        let text = format!(
            r#"
name = "full"
network = {{ rate = "10Mbit", rtt = "40ms" }}
foreground = [{{ name = "nothing", kind = "none" }}]
[[background]]
name = "packets"
kind = "poisson"
rate = "9800kbit"
transport = "{transport}"
energy = {{ at = "1024ms", db = 20 }}
[run]
replications = 2
warmup = "1s"
duration = "21s"
"#
        );
        Plan::resolve(&text, "full.toml", std::path::Path::new(".")).unwrap()
    }

    /// The doubts about them.
    fn played(transport: &str) -> Vec<String> {
        let plan = full(transport);
        let found = doubts(&plan, &Rates::new(), 2, &|_| {}, &|| false).unwrap();
        found.unwrap().into_iter().map(|w| w.message).collect()
    }

    /// A rate that often exceeds the link's has the energy where packets are sent whatever the network does, and not where
    /// TCP waits for the link.
    #[test]
    fn a_full_link_takes_the_energy_of_what_waits_for_it() {
        assert_eq!(played("udp"), Vec::<String>::new());
        let said = played("tcp");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("20 dB more energy at 1.024s were asked for; alone on the network, 1"),
            "{said:?}"
        );
        assert!(said[0].contains("dB came"), "{said:?}");
    }

    #[test]
    fn what_another_run_has_looked_at_is_not_looked_at_again() {
        use crate::run::{Options, RunOutcome, run};

        let scratch = tempfile::tempdir().unwrap();
        let said = |energy_known: bool| {
            let mut plan = full("tcp");
            plan.energy_known = energy_known;
            let options = Options {
                dir: scratch.path().join(energy_known.to_string()),
                threads: 2,
                fresh: false,
                shard: None,
            };
            let ended = run(&plan, &Simulator, &options, &|_| {}, &|| false).unwrap();
            let RunOutcome::Complete(results) = ended else {
                panic!("nobody cancelled it");
            };
            let mut warnings = results.manifest.warnings.into_iter();
            warnings.any(|w| w.code == Code::EnergyMissed)
        };
        assert!(said(false));
        assert!(!said(true));
    }

    #[test]
    fn what_noise_explains_is_not_told() {
        assert_eq!(said([0.0, 0.0, 2.0, 4.0, 2.0, 0.0], 1.0, 1e6), None);
    }
}

//! Runs of studies on hosts of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Code, Dur};
use swell_experiment::observe::{MeasureSample, Observations};
use swell_generate::Model;
use swell_generate::router::{self, BenchError, Pattern, Seen, Settings};
use swell_host::{Rights, TokenBucket};
use swell_study::file::bench::{Bench, Bencher, Load, RouterBench};
use swell_traffic::flowlevel::{FlowModel, Plan};

use super::capacity;
use super::load::{at_rate, correction, learnt, playback};

/// Size of a packet of 1500 bytes with its link-layer header.
const FRAME: u32 = 1_514;
/// Burst of the line's token bucket, as a duration at line rate: it makes up for stalls of this machine.
const BURST: Dur = Dur::from_micros(700);

/// Hosts for runs, and the models learnt for them.
pub struct Hosts<'r> {
    rights: &'r Rights,
    program: &'r Path,
    learnt: Mutex<BTreeMap<String, FlowModel>>,
    /// By what trials corrected the loads of sessions.
    corrections: Mutex<BTreeMap<String, f64>>,
}

impl<'r> Hosts<'r> {
    /// Hosts created with these rights. `program` is the `swell` binary, whose agents they run.
    pub fn new(rights: &'r Rights, program: &'r Path) -> Hosts<'r> {
        Hosts {
            rights,
            program,
            learnt: Mutex::default(),
            corrections: Mutex::default(),
        }
    }

    fn learnt(&self, model: &str) -> Result<FlowModel, String> {
        let mut known = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(model) {
            return Ok(known.clone());
        }
        let own = learnt(model)?;
        known.insert(model.to_owned(), own.clone());
        Ok(own)
    }

    /// By what the load of sessions is divided: the result of a trial with this seed. The table and the limit of the line
    /// matter little to what is offered, so runs that differ in nothing else share a trial.
    fn correction(
        &self,
        bench: &RouterBench,
        seed: u64,
        trial: impl FnOnce() -> Result<f64, String>,
    ) -> Result<f64, String> {
        let alike = RouterBench {
            routes: 1,
            limited: true,
            ..bench.clone()
        };
        let key = format!("{alike:?} {seed}");
        // Runs are one at a time, so nobody waits for this lock.
        let known = || {
            self.corrections
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(known) = known().get(&key) {
            return Ok(*known);
        }
        let found = trial()?;
        known().insert(key, found);
        Ok(found)
    }

    fn router(&self, bench: &RouterBench, seed: u64) -> Result<Seen, String> {
        let at_once = (bench.line.bps() as f64 / 8.0 * BURST.as_secs_f64()) as u32;
        let limit = TokenBucket {
            rate: bench.line.bps() / 8,
            burst: at_once.max(2 * FRAME),
            queue: bench.queue * FRAME,
        };
        let settings = Settings {
            routes: bench.routes,
            limit: bench.limited.then_some(limit),
            window_scaling: bench.window_scaling,
            span: bench.duration,
            every: bench.every,
        };
        let load = match &bench.load {
            Load::Sessions {
                model,
                share,
                congestion,
            } => {
                let model = self.learnt(model)?;
                let of_share = |part: f64| -> Result<router::Load, String> {
                    let model = at_rate(&model, bench, part, seed);
                    let plan = Plan::new(&model, &playback()).map_err(|e| e.to_string())?;
                    Ok(router::Load::Sessions {
                        plan: Arc::new(Model { plan, seed }),
                        congestion: congestion.clone(),
                    })
                };
                let by = self.correction(bench, seed, || {
                    let trial = of_share(*share)?;
                    let seen = router::bench(self.rights, &settings, &trial, &|| false);
                    Ok(correction(
                        offered(&seen.map_err(why)?, bench),
                        asked(bench),
                    ))
                })?;
                of_share(share / by)?
            }
            Load::Constant { size, burst, rate } => router::Load::Constant(Pattern {
                sizes: size.in_turn().to_vec(),
                burst: *burst,
                sources: 2,
                line: bench.line.max(*rate),
                load: *rate,
            }),
        };
        router::bench(self.rights, &settings, &load, &|| false).map_err(why)
    }
}

/// The rate that a run is to offer, in bits per second.
fn asked(bench: &RouterBench) -> f64 {
    match &bench.load {
        Load::Sessions { share, .. } => bench.line.bps() as f64 * share,
        Load::Constant { rate, .. } => rate.bps() as f64,
    }
}

/// The rate that a run offered after the warm-up, in bits per second.
fn offered(seen: &Seen, bench: &RouterBench) -> f64 {
    let numbers = seen.numbers(bench.warmup);
    let sum = |name: &str| -> f64 {
        let own = numbers.iter().filter(|n| n.name == name);
        own.map(|n| n.value).sum()
    };
    8.0 * sum("offered_bytes") / sum("seconds")
}

fn why(error: BenchError) -> String {
    match error.is::<swell_host::Error>() {
        true => format!("{error}; `swell doctor` says what this machine grants"),
        false => error.to_string(),
    }
}

/// A row of the table `measures`.
fn row((name, value, at): (&str, f64, f64)) -> MeasureSample {
    MeasureSample {
        measure: name.to_owned(),
        value,
        at,
    }
}

impl Bencher for Hosts<'_> {
    fn play(&self, bench: &Bench, seed: u64) -> Result<Observations, String> {
        let mut observed = Observations::default();
        match bench {
            Bench::Router(bench) => {
                let seen = self.router(bench, seed)?;
                let numbers = seen.numbers(bench.warmup).into_iter();
                let rows = numbers.map(|n| row((n.name, n.value, n.at.as_secs_f64())));
                observed.measures = rows.collect();
                let begin = bench.warmup.as_secs_f64();
                observed.measures.push(row(("asked", asked(bench), begin)));
                observed.warnings = seen.doubts;
                // Lateness is a measure of each run.
                let kept = |code: &Code| *code != Code::GeneratorBehind;
                observed.warnings.retain(|w| kept(&w.code));
            }
            Bench::Agents(bench) => {
                let model = self.learnt(&bench.model)?;
                let measured = capacity::measure((self.rights, self.program), &model, bench, seed);
                let measured = measured.map_err(|fail| fail.message)?.into_iter();
                observed.measures = measured
                    .map(|(name, value)| row((name, value, 0.0)))
                    .collect();
            }
        }
        Ok(observed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use swell_base::Time;
    use swell_generate::router::Sample;
    use swell_study::bundled::{Bundled, STUDY};

    use super::*;

    /// An unknown name has no values, so nothing else tells that a study asks for what no run yields.
    #[test]
    fn the_router_study_asks_for_what_runs_yield() {
        let study = Bundled::named("router").expect("the study");
        let (_, text) = study.files.iter().find(|f| f.0 == STUDY).expect("its file");
        let asked = ["measures.of(\"", "measures.list(\""].into_iter();
        let asked: BTreeSet<&str> = asked
            .flat_map(|call| text.split(call).skip(1))
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let sample = |seconds, offered| Sample {
            at: Time::ZERO + Dur::from_secs(seconds),
            offered,
            elsewhere: Some(0),
            ..Sample::default()
        };
        let seen = Seen {
            samples: vec![sample(0, 0), sample(1, 3)],
            lost: vec![true, true, false],
            ..Seen::default()
        };
        let router = seen.numbers(Dur::ZERO).into_iter().map(|n| n.name);
        let agents = "bulk active done failed late memory_client memory_server idle_client idle_server \
                      program_client program_server reloaded_from \
                      reloaded_to stopped";
        let known = router.chain(agents.split_whitespace()).chain(["asked"]);
        let known: BTreeSet<&str> = known.collect();
        assert_eq!(asked, known);
    }
}

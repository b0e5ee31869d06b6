//! Runs of studies on hosts of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use swell_base::{Code, Dur, Warning};
use swell_generate::Model;
use swell_generate::router::{self, BenchError, Pattern, Seen, Settings, Sizes};
use swell_host::{Rights, TokenBucket};
use swell_study::file::bench::{Bench, Bencher, Load, Mix, RouterBench, Size};
use swell_traffic::flowlevel::{FlowModel, Plan, Playback};

use super::capacity;
use super::load::{Wanted, at_rate, learnt};

/// Size of a packet of 1500 bytes with its link-layer header.
const FRAME: u32 = 1_514;
/// Burst of the line's token bucket, as a duration at line rate: it makes up for stalls of this machine.
const BURST: Dur = Dur::from_micros(700);

/// Hosts for runs, and the models learnt for them.
pub struct Hosts<'r> {
    rights: &'r Rights,
    program: &'r Path,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    learnt: BTreeMap<String, FlowModel>,
    doubts: Vec<Warning>,
}

impl<'r> Hosts<'r> {
    /// Hosts created with these rights. `program` is the `swell` binary, whose agents they run.
    pub fn new(rights: &'r Rights, program: &'r Path) -> Hosts<'r> {
        Hosts {
            rights,
            program,
            state: Mutex::default(),
        }
    }

    /// Warnings of the runs without duplicates.
    pub fn doubts(&self) -> Vec<Warning> {
        self.state().doubts.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learnt(&self, model: &str) -> Result<FlowModel, String> {
        let mut state = self.state();
        if let Some(known) = state.learnt.get(model) {
            return Ok(known.clone());
        }
        let own = learnt(model)?;
        state.learnt.insert(model.to_owned(), own.clone());
        Ok(own)
    }

    /// Keeps the warnings of a run, except those about lateness and shortfall, which are measures of each run.
    fn doubt(&self, seen: &Seen) {
        let mut state = self.state();
        for doubt in &seen.doubts {
            let there = state.doubts.iter().any(|d| d.code == doubt.code);
            if !there && !matches!(doubt.code, Code::GeneratorBehind | Code::GeneratorShort) {
                state.doubts.push(doubt.clone());
            }
        }
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
                let wanted = Wanted {
                    rate: bench.line.scale(*share),
                    line: bench.line,
                    span: bench.duration,
                    settle: bench.warmup,
                    seed,
                };
                let playback = Playback {
                    cycle: true,
                    ..Playback::default()
                };
                let model = at_rate(&self.learnt(model)?, &wanted);
                let plan = Plan::new(&model, &playback).map_err(|e| e.to_string())?;
                router::Load::Sessions {
                    plan: Arc::new(Model { plan, seed }),
                    congestion: congestion.clone(),
                }
            }
            Load::Constant { size, burst, rate } => router::Load::Constant(Pattern {
                sizes: match size {
                    Size::Bytes(n) => Sizes::One(*n),
                    Size::Mix(Mix::Trimodal) => Sizes::Trimodal,
                },
                burst: *burst,
                sources: 2,
                line: bench.line.max(*rate),
                load: *rate,
            }),
        };
        let seen = router::bench(self.rights, &settings, &load, &|| false);
        seen.map_err(|error| match error {
            BenchError::Host(_) => format!("{error}; `swell doctor` says what this machine grants"),
            _ => error.to_string(),
        })
    }
}

impl Bencher for Hosts<'_> {
    fn play(&self, bench: &Bench, seed: u64) -> Result<Value, String> {
        let value = match bench {
            Bench::Router(bench) => {
                let seen = self.router(bench, seed)?;
                self.doubt(&seen);
                let numbers = seen.numbers(bench.warmup);
                serde_json::to_value(numbers.ok_or("it ended before its warm-up")?)
            }
            Bench::Agents(bench) => {
                let model = self.learnt(&bench.model)?;
                let measured = capacity::measure((self.rights, self.program), &model, bench, seed);
                serde_json::to_value(measured.map_err(|fail| fail.message)?)
            }
        };
        value.map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_know_what_is_seen_of_a_router() {
        let mut names: Vec<String> = match serde_json::to_value(router::Numbers::default()) {
            Ok(Value::Object(all)) => all.keys().cloned().collect(),
            other => panic!("{other:?}"),
        };
        names.sort();
        let mut known = swell_study::file::bench::ROUTER.concat();
        known.sort_unstable();
        assert_eq!(names, known);
    }
}

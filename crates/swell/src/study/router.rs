//! `swell study router`: plays the runs of the router study on a router of this machine.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Dur, Rate, Warning};
use swell_generate::router::{BenchError, Load, Pattern, Seen, Settings, Sizes, bench};
use swell_generate::{Model, SharedPlan};
use swell_host::{Rights, TokenBucket};
use swell_study::router::bench::{
    Bench, BenchCell, FLOOD, Mix, Regime, Sent, Setting, first, second,
};
use swell_study::router::{Capacity, Count, Raw, SEED, Wanted, at_rate, learnt, offered, study};
use swell_traffic::flowlevel::{FlowModel, Plan, Playback};

use super::{Done, RUNS, capacity, directory, finish, runs};
use crate::cli::{GridArgs, RouterArgs};
use crate::fail::Fail;
use crate::out;

/// Name of what the generator itself can do, in the study's directory.
const CAPACITY: &str = "capacity.json";
/// Packets of 1500 bytes that wait for the output line: between the paper's bursts of 465, which its router forwarded, and
/// those of 697, of which it did not forward all.
const QUEUE: u32 = 512;
/// Bytes of such a packet on the line.
const FRAME: u32 = 1_514;
/// What the line lets go at once after a silence, over the time that it would take: a stall of the machine's own.
const BURST: Dur = Dur::from_micros(700);

pub(super) fn router(args: &RouterArgs, rights: Option<&Rights>, json: bool) -> Result<(), Fail> {
    let Some(rights) = rights else {
        return Err(Fail::failed("a router needs namespaces"));
    };
    if !(1_000_000..=10_000_000_000).contains(&args.line.bps()) {
        let message = format!("--line {} is not between 1Mbit and 10Gbit", args.line);
        return Err(Fail::usage(message));
    }
    let setting = setting(args);
    let model = learnt(&args.model.display().to_string()).map_err(Fail::failed)?;
    let grid = GridArgs {
        // Two runs at a time would be in each other's way.
        jobs: Some(1),
        out: args.out.clone(),
        fresh: args.fresh,
        shard: None,
    };
    let dir = directory(&grid, "router", args.quick)?;
    let trouble = Trouble::default();
    let player = |bench: &Bench, load: Rate| {
        let seen = play(rights, &setting, &model, bench, load);
        trouble.sort_out(seen)
    };
    let cell = |bench, load| BenchCell {
        bench,
        load,
        setting: &setting,
        player: &player,
    };
    let sessions = first(args.quick);
    let cells: Vec<_> = sessions
        .iter()
        .map(|&b| cell(b, b.regime.target(setting.line)))
        .collect();
    let numbers = whole(runs(&cells, &grid, &dir, RUNS)?)?;
    trouble.first()?;
    let mut all: Vec<(Bench, Vec<f64>)> = sessions.iter().copied().zip(numbers).collect();
    let matching = |bench: &Bench| {
        if bench.floods() {
            return Some(FLOOD);
        }
        let own = Bench::sessions(bench.regime, bench.routes);
        offered(&all.iter().find(|r| r.0 == own)?.1)
    };
    let generated: Vec<(Bench, Rate)> = second(args.quick)
        .into_iter()
        .filter_map(|b| Some((b, matching(&b)?)))
        .collect();
    let generators: Vec<_> = generated.iter().map(|&(b, load)| cell(b, load)).collect();
    // What the first runs left is there.
    let more = GridArgs {
        fresh: false,
        ..grid
    };
    let found = whole(runs(&generators, &more, &dir, RUNS)?)?;
    trouble.first()?;
    all.extend(generated.iter().map(|g| g.0).zip(found));
    let capacity = own_capacity(rights, &model, args, &dir)?;
    let command = command(args);
    let study = study(&setting, &all, Some(&capacity), trouble.doubts(), command);
    finish(&study, &dir, json)
}

/// All numbers: nothing here is divided into shards.
fn whole(done: Done) -> Result<Vec<Vec<f64>>, Fail> {
    match done {
        Done::All(numbers) => Ok(numbers),
        Done::Shard(..) => Err(Fail::failed(
            "a run in real time is not divided into shards",
        )),
    }
}

fn setting(args: &RouterArgs) -> Setting {
    let (span, settle, every) = if args.quick {
        (4_000, 1_000, 250)
    } else {
        (11_500, 1_500, 500)
    };
    Setting {
        line: args.line,
        queue: QUEUE,
        span: Dur::from_millis(span),
        settle: Dur::from_millis(settle),
        every: Dur::from_millis(every),
        model: args.model.display().to_string(),
        today: args.today,
    }
}

/// What runs the study again, wherever its results go.
fn command(args: &RouterArgs) -> String {
    let mut command = "swell study router".to_owned();
    if args.model.as_os_str() != "isi-2pm" {
        command += &format!(" --model '{}'", args.model.display());
    }
    if args.line.bps() != 200_000_000 {
        command += &format!(" --line {}", args.line);
    }
    if args.today {
        command += " --today";
    }
    if args.quick {
        command += " --quick";
    }
    command
}

fn play(
    rights: &Rights,
    setting: &Setting,
    model: &FlowModel,
    run: &Bench,
    load: Rate,
) -> Result<Seen, Fail> {
    let at_once = (setting.line.bps() as f64 / 8.0 * BURST.as_secs_f64()) as u32;
    let limit = TokenBucket {
        rate: setting.line.bps() / 8,
        burst: at_once.max(2 * FRAME),
        queue: setting.queue * FRAME,
    };
    let settings = Settings {
        routes: run.routes,
        limit: (run.regime != Regime::Bare).then_some(limit),
        window_scaling: setting.today,
        span: setting.span,
        every: setting.every,
    };
    let load = match run.sent {
        Sent::Sessions => {
            let wanted = Wanted {
                rate: load,
                line: setting.line,
                span: setting.span,
                settle: setting.settle,
            };
            Load::Sessions {
                plan: plan(model, &wanted)?,
                congestion: if setting.today {
                    Vec::new()
                } else {
                    vec!["reno".into()]
                },
            }
        }
        Sent::Constant { mix, burst } => Load::Constant(Pattern {
            sizes: match mix {
                Mix::Small => Sizes::One(40),
                Mix::Large => Sizes::One(1500),
                Mix::Trimodal => Sizes::Trimodal,
            },
            burst,
            sources: 2,
            line: setting.line.max(load),
            load,
        }),
    };
    bench(rights, &settings, &load, &|| false).map_err(|error| {
        let fail = Fail::failed(&error);
        match error {
            BenchError::Host(_) => fail.hint("`swell doctor` says what this machine grants"),
            _ => fail,
        }
    })
}

fn plan(model: &FlowModel, wanted: &Wanted) -> Result<SharedPlan, Fail> {
    let playback = Playback {
        cycle: true,
        ..Playback::default()
    };
    let plan = Plan::new(&at_rate(model, wanted), &playback).map_err(Fail::failed)?;
    Ok(Arc::new(Model { plan, seed: SEED }))
}

/// What one process at each end can do: measured unless it was before.
fn own_capacity(
    rights: &Rights,
    model: &FlowModel,
    args: &RouterArgs,
    dir: &Path,
) -> Result<Capacity, Fail> {
    let file = dir.join(CAPACITY);
    let kept = std::fs::read(&file).ok().filter(|_| !args.fresh);
    if let Some(kept) = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        return Ok(kept);
    }
    let measured = capacity::measure(rights, model, args.quick)?;
    let text = serde_json::to_vec_pretty(&measured).map_err(Fail::failed)?;
    out::write(&file, &text)?;
    Ok(measured)
}

/// What went wrong in runs, and what they said of themselves.
#[derive(Default)]
struct Trouble(Mutex<(Option<Fail>, Vec<Warning>)>);

impl Trouble {
    fn sort_out(&self, seen: Result<Seen, Fail>) -> Option<Raw> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen {
            Ok(seen) => {
                // Lateness and shortfall of each run are among its numbers.
                let about = |w: &&Warning| !w.code.starts_with("generator-");
                for doubt in seen.doubts.iter().filter(about) {
                    if !state.1.iter().any(|d| d.code == doubt.code) {
                        state.1.push(doubt.clone());
                    }
                }
                Some(raw(&seen))
            }
            Err(fail) => {
                state.0.get_or_insert(fail);
                None
            }
        }
    }

    /// The first failure, if there was one.
    fn first(&self) -> Result<(), Fail> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.0.take() {
            Some(fail) => Err(fail),
            None => Ok(()),
        }
    }

    fn doubts(&self) -> Vec<Warning> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.1)
    }
}

fn raw(seen: &Seen) -> Raw {
    let begin = seen.samples.first().and_then(|s| s.processor);
    let counts = seen.samples.iter().map(|s| {
        let since = s.at.since(swell_base::Time::ZERO);
        let share = begin.zip(s.processor).map(|(a, b)| b.interrupts(&a, since));
        Count {
            at: s.at,
            offered: [s.offered.packets, s.offered.bytes],
            forwarded: [s.forwarded.packets, s.forwarded.bytes],
            back: s.back.packets,
            dropped: [s.queue_drops, s.not_taken],
            sink_missed: s.sink_missed,
            busy: share.map(|x| x * since.as_secs_f64()),
        }
    });
    let emitted = seen.emitted.unwrap_or_default();
    let unsent = emitted.refused + emitted.missed;
    let late = seen
        .played
        .as_ref()
        .map_or(emitted.late.p99, |p| p.late.p99);
    Raw {
        counts: counts.collect(),
        lost: seen.lost.clone(),
        short: unsent as f64 / (emitted.packets + unsent).max(1) as f64,
        late: late.as_secs_f64(),
    }
}

//! Runs any program behind an emulated link with background traffic on it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use swell_emulate::backend::{Conditions, Emulator, Exit, Settings};
use swell_experiment::backend::RunError;
use swell_experiment::run::{self, Event, Failure, RunOutcome};
use swell_experiment::store::Manifest;
use swell_experiment::{Plan, Results};
use swell_host::Rights;
use swell_verdict::Verdict;

use crate::files::may_be_made;
use crate::run::{REPEATS, parallelism};
use crate::{Error, Kind};

mod experiment;
mod options;

pub use experiment::{BIN, Background, DAY, background, bridge};
pub use options::{Keep, Link, Options, Server};

/// The name of the backend, as run directories have it.
const EMULATED: &str = "emulated";

/// A program that is ready to run.
pub struct Session {
    /// The plan.
    pub plan: Plan,
    /// Whether the run directory stays.
    pub kept: bool,
    /// Whether the same command makes the same plan. A model that is learnt from a trace has a new place each time.
    repeatable: bool,
    options: Options,
    dir: PathBuf,
}

/// The results of a session.
pub struct Done {
    /// The results, in the run directory.
    pub results: Results,
    /// The verdict on the results.
    pub verdict: Verdict,
    /// How runs of the program ended; not those of an earlier, interrupted call.
    pub exits: Vec<Exit>,
    /// How well this machine kept up, run by run; not in runs of an earlier, interrupted call.
    pub conditions: Vec<Conditions>,
}

/// Data collected while runs are in progress.
#[derive(Default)]
struct Seen {
    exits: Vec<Exit>,
    conditions: Vec<Conditions>,
}

impl Session {
    /// Plans the session. Files that are not kept go to `scratch`. `progress` gets the number of bytes just read of a
    /// trace to learn from.
    ///
    /// # Errors
    /// If there is no such background, options contradict each other, or the directory holds something else.
    pub fn new(
        options: Options,
        scratch: &Path,
        progress: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<Session, Error> {
        // Before a trace is learnt, which takes a while.
        if let Some(dir) = &options.keep.output {
            may_be_made(dir)?;
        }
        let background = background(&options.link.background, scratch, progress)?;
        let text = experiment::text(&options, &background)?;
        let here = std::env::current_dir().map_err(Error::failed)?;
        let plan = Plan::resolve(&text, "swell under", &here).map_err(Error::problems)?;
        let repeatable = !text.contains(&*scratch.to_string_lossy());
        let keep = &options.keep;
        let kept = keep.always || keep.output.is_some() || options.compare.is_some();
        let dir = match kept {
            true => directory(keep, &plan, options.compare.is_some())?,
            false => scratch.join("run"),
        };
        Ok(Session {
            plan,
            kept,
            repeatable,
            options,
            dir,
        })
    }

    /// Whether it continues an interrupted comparison of the same command and inputs. Only on request: the program, its
    /// input or its environment may have changed, and a comparison of two programs would be no comparison.
    fn resumes(&self) -> bool {
        self.options.compare.is_some()
            && self.options.keep.resume
            && Held::by(&self.dir, &self.plan) == Held::Unfinished
    }

    /// Runs it, or the missing runs of an interrupted comparison.
    ///
    /// # Errors
    /// If it was cancelled, the program could not be started ([`Kind::Program`]), or the emulation failed.
    pub fn run(
        &self,
        rights: Rights,
        settings: Settings,
        events: &(dyn Fn(Event<'_>) + Sync),
        cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Done, Error> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let [of_exits, of_conditions] = [Arc::clone(&seen), Arc::clone(&seen)];
        let theirs = settings.conditions;
        let compared = self.options.compare.is_some();
        let settings = Settings {
            terminal: self.options.terminal && !compared,
            // A program that owns the terminal is not repeated automatically.
            repeats: if compared { REPEATS } else { 0 },
            ended: Some(Box::new(move |exit| lock(&of_exits).exits.push(*exit))),
            conditions: Some(Box::new(move |conditions| {
                if let Some(listener) = &theirs {
                    listener(conditions);
                }
                lock(&of_conditions).conditions.push(conditions.clone());
            })),
            ..settings
        };
        let options = run::Options {
            dir: self.dir.clone(),
            threads: parallelism(),
            fresh: !self.resumes(),
            shard: None,
        };
        let emulator = Emulator::new(rights, settings);
        match run::run(&self.plan, &emulator, &options, events, cancelled) {
            Ok(RunOutcome::Complete(results)) => {
                let results = self.with_request(*results)?;
                let Seen { exits, conditions } = std::mem::take(&mut *lock(&seen));
                Ok(Done {
                    verdict: self.with_load(Verdict::of(&results)),
                    results,
                    exits,
                    conditions,
                })
            }
            // Shards are never requested here.
            Ok(RunOutcome::Shard { .. }) => Err(Error::interrupted("interrupted")),
            Ok(RunOutcome::Interrupted { finished, runs, .. }) if compared => {
                let dir = self.dir.display();
                let message = format!("interrupted; {finished} of {runs} runs are kept in {dir}");
                Err(Error::interrupted(message).hint(match self.repeatable {
                    true => "with --resume, the same command goes on where it stopped; without, it begins anew",
                    false => "`swell learn` makes a model of the trace; a comparison with that goes on where it stopped, with --resume",
                }))
            }
            Ok(RunOutcome::Interrupted { .. }) => Err(Error::interrupted("interrupted")),
            Err(failure @ Failure::Other { .. }) => {
                Err(Error::usage(failure).hint("without --resume, the comparison begins anew"))
            }
            Err(failure) => {
                let goes_on = matches!(failure, Failure::Run { .. }) && compared && self.repeatable;
                let fail = Error {
                    kind: not_started(&failure).map_or(Kind::Failed, Kind::Program),
                    ..Error::failed(failure)
                };
                Err(match (goes_on, fail.kind) {
                    (true, Kind::Failed) => fail.hint(
                        "finished runs are kept; with --resume, the same command goes on where it stopped",
                    ),
                    _ => fail,
                })
            }
        }
    }

    /// Adds the requested load to a verdict on runs whose background was not measured alone.
    fn with_load(&self, mut verdict: Verdict) -> Verdict {
        let link = &self.options.link;
        let (title, load) = (link.title(), link.load.map(|load| load.bps() as f64));
        let all = verdict
            .foregrounds
            .iter_mut()
            .flat_map(|f| &mut f.backgrounds);
        for b in all.filter(|b| b.background == title) {
            b.requested_bps[1] = b.requested_bps[1].or(load);
        }
        verdict
    }

    /// Adds the requested load to the results, so that the verdict can compare it with the actual one. The experiment
    /// itself only has the multiple of the model's sessions that should produce this load.
    fn with_request(&self, mut results: Results) -> Result<Results, Error> {
        let link = &self.options.link;
        if let (Some(measured), Some(load)) =
            (results.manifest.measured.get_mut(&link.title()), link.load)
        {
            measured.target_bps = Some(load.bps() as f64);
            results.manifest.save(&results.dir).map_err(Error::failed)?;
        }
        Ok(results)
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The exit code that a shell returns for a program that could not be started.
fn not_started(failure: &Failure) -> Option<u8> {
    let Failure::Run {
        reason: RunError::Failed(e),
        ..
    } = failure
    else {
        return None;
    };
    match e.downcast_ref() {
        Some(swell_host::Error::Program { code, .. }) => Some(*code),
        _ => None,
    }
}

/// What a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    /// A run of the same command, complete or not.
    Complete,
    Unfinished,
    /// A run of another command.
    Another,
    /// Files that are no run.
    Foreign,
}

impl Held {
    fn by(dir: &Path, plan: &Plan) -> Held {
        // A call that was killed at its beginning may have left a lock.
        let empty = run::is_unused(dir).unwrap_or(true);
        match Manifest::load(dir) {
            _ if empty => Held::Nothing,
            Ok(m) if m.hash != plan.hash(EMULATED) => Held::Another,
            Ok(m) if m.complete => Held::Complete,
            Ok(_) => Held::Unfinished,
            Err(_) if dir.join(Manifest::FILE).is_file() => Held::Another,
            Err(_) => Held::Foreign,
        }
    }
}

/// The directory of the run; an error if it holds something else that may not be deleted. A comparison that is complete
/// stays: its program may have changed since, and nothing of the command would say so.
fn directory(keep: &Keep, plan: &Plan, compared: bool) -> Result<PathBuf, Error> {
    let Some(dir) = &keep.output else {
        let runs = Path::new("runs");
        let unfinished = || {
            let mut all: Vec<PathBuf> = std::fs::read_dir(runs)
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect();
            all.sort();
            all.into_iter()
                .find(|dir| Held::by(dir, plan) == Held::Unfinished)
        };
        if let Some(dir) = (compared && keep.resume).then(unfinished).flatten() {
            return Ok(dir);
        }
        let numbered = (2..).map(|n| runs.join(format!("under-{n}")));
        let mut all = std::iter::once(runs.join("under")).chain(numbered);
        return all
            // A call that has just begun has locked its directory.
            .find(|dir| Held::by(dir, plan) == Held::Nothing && !dir.join(run::LOCK).exists())
            .ok_or_else(|| Error::failed("runs/ is full"));
    };
    let (message, hint) = match Held::by(dir, plan) {
        Held::Nothing | Held::Unfinished => return Ok(dir.clone()),
        Held::Complete if !compared => return Ok(dir.clone()),
        Held::Foreign => ("is not empty, and holds no run", "-o DIR writes elsewhere"),
        _ if keep.fresh => return Ok(dir.clone()),
        Held::Complete => (
            "holds this comparison, and it is complete",
            "--fresh throws it away, -o DIR writes elsewhere",
        ),
        Held::Another => (
            "holds the run of another command",
            "--fresh throws it away, -o DIR writes elsewhere",
        ),
    };
    Err(Error::usage(format!("{} {message}", dir.display())).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_host::scratch::Scratch;

    /// A call that is killed between its lock and its manifest leaves the lock.
    #[test]
    fn a_directory_with_only_a_lock_holds_nothing() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path().join("under");
        std::fs::create_dir(&dir).unwrap();
        let text = "name = \"x\"\n[network]\nrate = \"1Mbit\"\n[[foreground]]\nname = \"f\"\nkind = \"greedy\"\n\
                    [[background]]\nname = \"none\"\nkind = \"none\"\n";
        let plan = Plan::resolve(text, "x.toml", scratch.path()).unwrap();
        let keep = Keep {
            output: Some(dir.clone()),
            ..Keep::default()
        };
        for left in ["", "process 4711\n"] {
            std::fs::write(dir.join(run::LOCK), left).unwrap();
            assert_eq!(directory(&keep, &plan, false).unwrap(), dir);
        }
        // The user's own.
        for name in [run::LOCK, "notes.txt"] {
            std::fs::write(dir.join(run::LOCK), "").unwrap();
            std::fs::write(dir.join(name), "mine").unwrap();
            let refused = directory(&keep, &plan, false).unwrap_err();
            assert!(refused.message.contains("is not empty"), "{refused}");
        }
    }
}

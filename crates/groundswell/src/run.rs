//! Runs an experiment: foregrounds × backgrounds × seeds, into a run directory.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use swell_base::Dur;
use swell_emulate::backend::{Emulator, Settings};
use swell_experiment::file::{self, BackendKind};
use swell_experiment::kinds::Part;
use swell_experiment::made_up::MadeUp;
use swell_experiment::run::{self, Failure, Lock, LockError, Progress, RunOutcome};
pub use swell_experiment::run::{Event, Shard};
use swell_experiment::store::{Manifest, StoreError};
use swell_experiment::suite::suite;
use swell_experiment::{Backend, Plan, Results, Simulator, bundled};
use swell_host::Rights;
use swell_verdict::Verdict;

use crate::Error;
use crate::files::may_be_made;

/// The bundled experiment that runs when none is given.
const QUICK_START: &str = "quickstart";

/// Most bytes of an experiment file. Reading something else to its end, such as a capture, could take minutes.
const MOST_BYTES: u64 = 4_000_000;

/// How often a late emulated run is repeated at once. If it is still late, it is done again after all other runs, with
/// as many repetitions, before the verdict excludes it.
pub const REPEATS: u32 = 1;

/// The text of an experiment.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text (TOML).
    pub text: String,
    /// Its name in messages.
    pub name: String,
    /// The directory that its file names are relative to.
    pub base: PathBuf,
}

impl Source {
    /// The bundled quick start.
    ///
    /// # Errors
    /// If it is not bundled.
    pub fn quick_start() -> Result<Source, Error> {
        let text = bundled::experiment(QUICK_START)
            .ok_or_else(|| Error::failed("the quick start is not bundled"))?;
        Ok(Source {
            text: text.into(),
            name: format!("{QUICK_START}.toml (bundled)"),
            base: PathBuf::new(),
        })
    }

    /// An experiment file; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be read. The error suggests a file of a similar name.
    pub fn open(path: &Path) -> Result<Source, Error> {
        if path.as_os_str() == "-" {
            return Ok(Source {
                text: text(io::stdin())
                    .map_err(|e| Error::usage(format!("standard input: {e}")))?,
                name: "standard input".into(),
                base: PathBuf::new(),
            });
        }
        let name = path.display().to_string();
        match File::open(path).and_then(text) {
            Ok(text) => Ok(Source {
                text,
                name,
                base: path.parent().map_or_else(PathBuf::new, Path::to_owned),
            }),
            Err(e) => {
                let fail = Error::usage(format!("{name}: {e}"));
                // No suggestion for a path that exists but cannot be read: the user meant that one.
                if path.join("manifest.json").exists() {
                    return Err(fail.hint(format!("`swell show {name}` shows a run")));
                }
                if e.kind() != io::ErrorKind::NotFound {
                    let capture = path.is_file() && swell_capture::Reader::open(path).is_ok();
                    return Err(match capture {
                        true => fail.hint(format!(
                            "this is a capture: `swell learn {name}` makes a model of it"
                        )),
                        false => fail,
                    });
                }
                Err(match neighbour(path) {
                    Some(near) => fail.hint(format!("did you mean `{near}`?")),
                    None => fail.hint("`swell run` alone runs a bundled experiment"),
                })
            }
        }
    }
}

/// The text of an experiment.
fn text(from: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    let refused = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    // First the bytes that no text has: they say better than the size that this is something else.
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        return Err(refused(format!("byte {at} is zero, so this is no text")));
    }
    if bytes.len() as u64 > MOST_BYTES {
        let most = MOST_BYTES / 1_000_000;
        return Err(refused(format!("more than {most} MB are no experiment")));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        refused(format!("byte {at} is not UTF-8"))
    })
}

/// An experiment file beside `path` with a similar name.
fn neighbour(path: &Path) -> Option<String> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let wanted = path.file_name()?.to_str()?;
    let mut names: Vec<String> = std::fs::read_dir(parent.unwrap_or(Path::new(".")))
        .ok()?
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| n.ends_with(".toml"))
        .collect();
    names.sort();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_, hint) = file::unknown_name("file", wanted, &known);
    let near = known
        .into_iter()
        .find(|n| hint == format!("did you mean `{n}`?"))?;
    Some(parent.map_or_else(|| near.into(), |p| p.join(near).display().to_string()))
}

/// How to run an experiment.
#[derive(Default)]
pub struct Options {
    /// Overrides of the experiment's keys: `network.rate=10Mbit`.
    pub set: Vec<String>,
    /// Three replications of a quarter of the length.
    pub quick: bool,
    /// Write the packet headers of every run.
    pub packets: bool,
    /// Run against the suite of backgrounds, made from this learnt one; an empty name is the file's first.
    pub suite: Option<String>,
    /// Simulate nothing and make up numbers.
    pub made_up: bool,
    /// The run directory. Default: `runs/NAME`.
    pub output: Option<PathBuf>,
    /// Number of concurrent runs. Default: the number of processors.
    pub threads: Option<usize>,
    /// Delete the contents of the run directory first.
    pub fresh: bool,
    /// Take the runs that the run directory has, although they are not simulated. The caller knows that the program, its
    /// files and its surroundings are the same: of these, nothing is recorded.
    pub resume: bool,
    /// Do only a part of the runs.
    pub shard: Option<Shard>,
    /// Do not look whether backgrounds with `energy` have it: another run, with other seeds, did.
    pub energy_known: bool,
    /// Settings of emulated runs.
    pub emulation: Settings,
}

impl Options {
    /// Whether runs of this experiment need hosts on this machine; false for a file that cannot be read, which
    /// [`Experiment::new`] reports.
    pub fn needs_hosts(&self, source: &Source) -> bool {
        let set = file::override_keys(&source.text, &self.set);
        let set = set.as_deref().unwrap_or(&source.text);
        let wanted = file::read(set, &source.name).map(|f| f.backend);
        !self.made_up && wanted.is_ok_and(|b| b == BackendKind::Emulated)
    }
}

/// An experiment that is ready to run.
pub struct Experiment {
    /// The plan.
    pub plan: Plan,
    backend: Box<dyn Backend>,
    options: run::Options,
    resume: bool,
}

/// The outcome of a run.
pub enum Outcome {
    /// All runs are complete.
    Complete(Box<Results>, Box<Verdict>),
    /// A shard is complete. The counts include the runs of other shards. A run without a shard joins them.
    Shard {
        /// Runs completed.
        finished: usize,
        /// Runs of the experiment.
        runs: usize,
    },
}

impl Experiment {
    /// Plans the experiment. `rights` allow creating hosts, for experiments that [`Options::needs_hosts`].
    ///
    /// # Errors
    /// If the experiment or a file that it names cannot be read, or options contradict it.
    pub fn new(
        source: &Source,
        options: Options,
        rights: Option<Rights>,
    ) -> Result<Experiment, Error> {
        if let Some(dir) = &options.output {
            may_be_made(dir)?;
        }
        let mut plan = plan(source, &options)?;
        plan.energy_known = options.energy_known;
        let dir = directory(&options, &plan);
        let backend: Box<dyn Backend> = match rights {
            _ if options.made_up => Box::new(MadeUp::default()),
            Some(rights) => Box::new(Emulator::new(rights, options.emulation)),
            None => Box::new(Simulator),
        };
        if options.shard.is_some() && backend.at_once() == 1 {
            let message = "--shard: runs in real time on one machine would disturb each other";
            return Err(Error::usage(message).hint("only simulated runs can be divided"));
        }
        Ok(Experiment {
            plan,
            backend,
            resume: options.resume,
            options: run::Options {
                dir,
                threads: options.threads.unwrap_or_else(parallelism),
                fresh: options.fresh,
                shard: options.shard,
            },
        })
    }

    /// The run directory.
    pub fn dir(&self) -> &Path {
        &self.options.dir
    }

    /// Whether an earlier call's runs are there of which nobody knows whether they would come out the same now: runs of
    /// real programs, unless the caller knows.
    fn no_earlier_runs(&self) -> Result<(), Error> {
        let dir = self.dir();
        let exempt = self.backend.is_reproducible() || self.resume || self.options.fresh;
        if exempt || !dir.join(Manifest::FILE).exists() {
            return Ok(());
        }
        // Not the runs of a call that is still at work.
        let _lock = Lock::take(dir, None).map_err(|e| match e {
            LockError::Busy { .. } => busy(e),
            LockError::Store(_) => Error::failed(e),
        })?;
        // What cannot be read, or is of another experiment, is an error of the run itself.
        let Ok(there) = Progress::of(dir) else {
            return Ok(());
        };
        let finished = there.finished.iter().filter(|&&done| done).count();
        if there.manifest.hash != self.plan.hash(self.backend.name()) || finished == 0 {
            return Ok(());
        }
        let what = match there.manifest.complete {
            true => "the finished runs".to_owned(),
            false => format!("{finished} of {} runs", there.finished.len()),
        };
        let message = format!(
            "{} has {what} of an earlier call{}; programs and their files may have changed since",
            dir.display(),
            ago(there.manifest.started),
        );
        Err(Error::usage(message).hint(format!(
            "--fresh runs anew; --resume takes them, if all is as it was; `swell show {}` shows {}",
            dir.display(),
            if there.manifest.complete {
                "them"
            } else {
                "finished ones"
            },
        )))
    }

    /// Performs the missing runs. `cancelled` is polled; completed runs are kept.
    ///
    /// # Errors
    /// If it was cancelled, a run fails, or the directory holds another experiment, is in use or cannot be written; or
    /// runs of an earlier call that are not simulated, without [`Options::resume`].
    pub fn run(
        &self,
        events: &(dyn Fn(Event<'_>) + Sync),
        cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome, Error> {
        self.no_earlier_runs()?;
        match run::run(&self.plan, &*self.backend, &self.options, events, cancelled) {
            Ok(RunOutcome::Complete(results)) => {
                let verdict = Verdict::of(&results);
                Ok(Outcome::Complete(results, Box::new(verdict)))
            }
            Ok(RunOutcome::Shard { finished, runs }) => Ok(Outcome::Shard { finished, runs }),
            Ok(RunOutcome::Interrupted {
                finished,
                runs,
                measured,
            }) => {
                let dir = self.dir().display();
                Err(Error::interrupted(match (finished, measured) {
                    (0, 1..) => format!(
                        "interrupted while measuring; {measured} measurements are kept in {dir}, none of {runs} runs has begun"
                    ),
                    _ => format!("interrupted; {finished} of {runs} runs are kept in {dir}"),
                })
                .hint(match self.backend.is_reproducible() {
                    true => "the same command goes on where it stopped",
                    false => "with --resume, the same command goes on where it stopped",
                }))
            }
            Err(failure @ Failure::Lock(LockError::Busy { .. })) => Err(busy(failure)),
            Err(failure @ Failure::Other { .. }) => {
                let hint = match further(&failure) {
                    Some(there) => {
                        // A replication has the seed of the one before it, plus one.
                        let next = self.plan.file.run.seed.wrapping_add(u64::from(there));
                        format!(
                            "--fresh throws the old runs away; or add runs of further seeds, with -o DIR --set \
                             run.seed={next}, and `swell show A B` judges both together"
                        )
                    }
                    None => "--fresh throws the old runs away; -o DIR writes elsewhere".into(),
                };
                Err(Error::usage(failure).hint(hint))
            }
            // Without a manifest, --fresh removes nothing either.
            Err(failure @ Failure::Unknown { .. }) => {
                Err(Error::usage(failure).hint(own_directory(self.dir(), &self.plan.file.name)))
            }
            Err(failure) => {
                let hint = self.after(&failure);
                let fail = Error::failed(failure);
                Err(match hint {
                    Some(hint) => fail.hint(hint),
                    None => fail,
                })
            }
        }
    }

    /// What to do after a failure.
    fn after(&self, failure: &Failure) -> Option<String> {
        match failure {
            Failure::Run { .. } if !self.backend.is_reproducible() => Some(
                "finished runs are kept; with --resume, the same command goes on where it stopped"
                    .into(),
            ),
            Failure::Store(error) => damaged(self.dir(), error).map(String::from),
            _ => None,
        }
    }
}

/// The hint for a directory with files of the user's in the way: a directory in it, of this name.
pub(crate) fn own_directory(dir: &Path, name: &str) -> String {
    let inside = dir.join(name);
    format!("-o DIR writes elsewhere, such as {}", inside.display())
}

/// What to do about a file of a run directory that cannot be read; `None` if the error is another one, such as a full
/// disk.
fn damaged(dir: &Path, error: &StoreError) -> Option<&'static str> {
    match Manifest::load(dir) {
        Ok(manifest) => (manifest.complete && is_lost(error))
            .then_some("--fresh throws the runs away and runs anew; -o DIR writes elsewhere"),
        // Nobody knows whose files these are, so --fresh removes none.
        Err(StoreError::Manifest { .. }) => {
            Some("move the directory away, or -o DIR writes elsewhere")
        }
        Err(_) => None,
    }
}

/// Whether a table of a run directory is missing, or its contents are not those that were written.
pub(crate) fn is_lost(error: &StoreError) -> bool {
    match error {
        StoreError::Table(_) | StoreError::Content { .. } => true,
        StoreError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

/// How long ago this was, in seconds since the Unix epoch, as the end of a sentence; empty if it is not known.
fn ago(started: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let Some(gone) = now.ok().and_then(|now| now.as_secs().checked_sub(started)) else {
        return String::new();
    };
    let (n, unit) = match gone {
        0..60 => return " less than a minute ago".to_owned(),
        60..3_600 => (gone / 60, "minute"),
        3_600..86_400 => (gone / 3_600, "hour"),
        86_400.. => (gone / 86_400, "day"),
    };
    format!(" {n} {unit}{} ago", if n == 1 { "" } else { "s" })
}

/// The error for a directory that another process uses.
pub(crate) fn busy(error: impl std::fmt::Display) -> Error {
    Error::failed(error).hint("wait until it is done; -o DIR writes elsewhere")
}

fn plan(source: &Source, options: &Options) -> Result<Plan, Error> {
    let Source { text, name, base } = source;
    let mut assignments = options.set.clone();
    if options.quick {
        // The length can be shortened only if the file can be read; overrides are applied first.
        let set = file::override_keys(text, &options.set).ok();
        let run = match set.and_then(|t| file::read(&t, name).ok()) {
            Some(file) => file.run,
            None => file::read(text, name).map_err(Error::problems)?.run,
        };
        let whole = |d: Dur| Dur::from_nanos(d.as_nanos() - d.as_nanos() % run.bins.as_nanos());
        let warmup = whole(run.warmup / 2);
        let length = warmup + whole(run.duration.saturating_sub(run.warmup) / 4).max(run.bins);
        assignments.splice(
            0..0,
            [
                format!("run.replications={}", run.replications.min(3)),
                format!("run.warmup=\"{warmup}\""),
                format!("run.duration=\"{length}\""),
            ],
        );
    }
    if options.packets {
        assignments.push("run.keep.packets=true".into());
    }
    if assignments.is_empty() && options.suite.is_none() {
        return Plan::resolve(text, name, base).map_err(Error::problems);
    }
    // Report errors of the file itself with its own line numbers, before overrides are applied.
    file::read(text, name).map_err(Error::problems)?;
    let mut changed = file::override_keys(text, &assignments).map_err(Error::usage)?;
    let said = match (options.set.is_empty(), options.quick, options.packets) {
        (false, ..) => "--set",
        (true, true, _) => "--quick",
        (true, false, true) => "--packets",
        (true, false, false) => "--suite",
    };
    if options.quick {
        let set = file::override_keys(text, &options.set).map_err(Error::usage)?;
        // Errors of the files are reported below.
        if let (Ok(long), Ok(short)) = (file::read(&set, name), file::read(&changed, name)) {
            windows_remain([&long, &short])?;
        }
    }
    let name = format!("{name} with {said}");
    if let Some(learnt) = &options.suite {
        let file = file::read(&changed, &name).map_err(Error::problems)?;
        let learnt = Some(learnt.as_str()).filter(|it| !it.is_empty());
        changed = suite(&changed, &file, learnt).map_err(|message| {
            let error = Error::usage(message);
            match file.background.iter().any(|b| b.is_model()) {
                true => error,
                false => {
                    error.hint("add a background of kind = \"learnt\"; `swell models` lists models")
                }
            }
        })?;
    }
    Plan::resolve(&changed, &name, base).map_err(Error::problems)
}

/// Refuses a shorter run in which a part that sends in windows sends always, or never: that is another experiment.
fn windows_remain(files: [&file::File; 2]) -> Result<(), Error> {
    let [long, short] = files.map(|file| {
        let share = |part: &Part| {
            let run = &file.run;
            (part.name().to_owned(), part.share(run.warmup, run.duration))
        };
        let foregrounds = file.foreground.iter().map(|f| share(f));
        foregrounds
            .chain(file.background.iter().map(|b| share(b)))
            .collect::<Vec<_>>()
    });
    let in_part = |share: f64| 0.0 < share && share < 1.0;
    let mut both = long.into_iter().zip(short);
    match both.find(|(whole, quick)| in_part(whole.1) && !in_part(quick.1)) {
        None => Ok(()),
        Some(((name, before), (_, now))) => Err(Error::usage(format!(
            "`{name}` sends {:.0} % of the time that counts, and {:.0} % in the quarter of it that --quick runs",
            100.0 * before,
            100.0 * now
        ))
        .hint("shorten or shift its windows with --set, or leave --quick out")),
    }
}

fn directory(options: &Options, plan: &Plan) -> PathBuf {
    options.output.clone().unwrap_or_else(|| {
        let mut name = plan.file.name.clone();
        if options.suite.is_some() {
            name += "-suite";
        }
        if options.quick {
            name += "-quick";
        }
        if options.made_up {
            name += "-made-up";
        }
        Path::new("runs").join(name)
    })
}

/// The number of processors.
pub fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The number of replications of a run directory, if all that is asked of it beyond them is more of the same.
fn further(failure: &Failure) -> Option<u32> {
    let Failure::Other { differences, .. } = failure else {
        return None;
    };
    let [one] = &differences[..] else { return None };
    let [there, here] = [&one.there, &one.here].map(|n| n.parse().ok());
    there.filter(|n| one.what == "run.replications" && here > Some(*n))
}

#[cfg(test)]
mod tests;

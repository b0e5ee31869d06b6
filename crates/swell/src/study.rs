//! `swell study`.

mod bench;
mod capacity;
mod load;

use std::path::{Path, PathBuf};

use groundswell::files::parent_exists;
use indicatif::ProgressDrawTarget;
use swell_experiment::run::LockError;
use swell_experiment::run::grid::{Ended, GridError, Options, Progress};
use swell_host::Rights;
use swell_report::chart::Canvas;
use swell_study::bundled::{self, Bundled};
use swell_study::file::{self, FileStudy, Overrides, StudyError, quoted};
use swell_study::{Picture, Study};

use crate::cli::{BundledArgs, GridArgs, StudyCommand, StudyFileArgs};
use crate::fail::Fail;
use crate::output::Output;
use crate::{interrupt, out, pictures, report, run, tables};

/// Name of the table of runs in a study's directory.
pub(crate) const RUNS: &str = "runs.csv";
/// Folder of the pictures in a study's directory.
const PICTURES: &str = "pictures";
/// Pixels of a picture.
const SIZE: (f64, f64) = (700.0, 420.0);

/// Whether its runs are on hosts of this machine's.
pub(crate) fn needs_hosts(which: &StudyCommand) -> bool {
    match which {
        StudyCommand::Router(args) => args.write.is_none(),
        StudyCommand::File(StudyFileArgs {
            file: Some(path),
            list: false,
            ..
        }) => file::bench::is_named_in(path),
        _ => false,
    }
}

pub(crate) fn study(which: &StudyCommand, rights: Option<&Rights>, json: bool) -> Result<(), Fail> {
    let carried = |name, args, more| carried(name, args, more, rights, json);
    match which {
        StudyCommand::Router(args) => carried("router", args, (&[], &[])),
        StudyCommand::Background(args) => carried("background", args, (&[], &[])),
        StudyCommand::Residential(args) => carried("residential", args, (&[], &[])),
        StudyCommand::Burstiness(args) => carried("burstiness", args, (&[], &[])),
        StudyCommand::Buffers(args) => carried("buffers", args, (&[], &[])),
        StudyCommand::Filler(args) => carried("filler", &args.bundled, (&args.traces, &[])),
        StudyCommand::Sensitivity(args) => {
            carried("sensitivity", &args.bundled, (&[], &args.foreground))
        }
        StudyCommand::Harpoon(args) => carried("harpoon", args, (&[], &[])),
        StudyCommand::File(args) => of_file(args, rights, json),
    }
}

/// A study that the program carries, with a column more for each capture, or in these columns only, and other values of
/// its options.
fn carried(
    name: &str,
    args: &BundledArgs,
    (captures, columns): (&[PathBuf], &[String]),
    rights: Option<&Rights>,
    json: bool,
) -> Result<(), Fail> {
    let none = || Fail::failed(format!("this program carries no study {name}"));
    let bundled = Bundled::named(name).ok_or_else(none)?;
    if let Some(dir) = &args.write {
        return written(bundled, dir, json);
    }
    let overrides = Overrides {
        quick: args.quick,
        seeds: args.seeds,
        captures: captures.to_vec(),
        columns: columns.to_vec(),
        with: args.with.clone(),
    };
    let study = bundled.study(&overrides).map_err(unread)?;
    run_file(&study, args.quick, &args.grid, rights, json)
}

/// Writes the files of a study, and says how to run them.
fn written(bundled: &Bundled, dir: &Path, json: bool) -> Result<(), Fail> {
    parent_exists(dir)?;
    let paths: Vec<PathBuf> = bundled.files.iter().map(|f| dir.join(f.0)).collect();
    if let Some(there) = paths.iter().find(|p| p.exists()) {
        let fail = Fail::usage(format!("{} is there already", there.display()));
        return Err(
            fail.hint("name a directory that is new: a study that was changed is not overwritten")
        );
    }
    std::fs::create_dir_all(dir).map_err(|e| Fail::failed(format!("{}: {e}", dir.display())))?;
    for (path, (_, text)) in paths.iter().zip(bundled.files) {
        out::write(path, text.as_bytes())?;
    }
    let command = format!("swell study file {}", quoted(&dir.join(bundled::STUDY)));
    if json {
        out::json(&serde_json::json!({ "files": paths, "command": command }));
        return Ok(());
    }
    for path in &paths {
        out::say(&format!("written: {}", path.display()));
    }
    out::data(&command);
    Ok(())
}

fn unread(error: StudyError) -> Fail {
    match error {
        StudyError::Io { .. } | StudyError::Capture { .. } => Fail::failed(error),
        _ => Fail::usage(error),
    }
}

/// A study from a file.
fn of_file(args: &StudyFileArgs, rights: Option<&Rights>, json: bool) -> Result<(), Fail> {
    let Some(path) = args.file.as_ref().filter(|_| !args.schema) else {
        out::json(FileStudy::schema());
        return Ok(());
    };
    let overrides = Overrides {
        quick: args.quick,
        seeds: args.seeds,
        captures: args.traces.clone(),
        columns: Vec::new(),
        with: args.with.clone(),
    };
    let study = FileStudy::read(path, &overrides).map_err(unread)?;
    if args.list {
        return list(&study, json);
    }
    run_file(&study, args.quick, &args.grid, rights, json)
}

fn run_file(
    study: &FileStudy,
    quick: bool,
    grid: &GridArgs,
    rights: Option<&Rights>,
    json: bool,
) -> Result<(), Fail> {
    if study.is_of_hosts() && grid.shard.is_some() {
        return Err(Fail::usage(
            "runs on real hosts are not divided into shards",
        ));
    }
    let mut called = study.name().to_owned();
    for change in study.changes() {
        // What may stand in a file's name anywhere, and not too much of it.
        let plain = change.chars().take(40);
        let plain = plain.map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        });
        called.push('-');
        called.extend(plain);
    }
    let default = default_directory(&called, quick);
    let dir = made(grid.out.as_deref(), default)?;
    let bench = rights.map(bench::Hosts::new);
    let done = with_progress(&dir, |progress| {
        let options = options(grid, &dir);
        match &bench {
            Some(hosts) => study.play(hosts, &options, progress, &interrupt::wished),
            None => study.run(&options, progress, &interrupt::wished),
        }
    })?;
    let Done::All(numbers) = done else {
        return shard(&done, grid, &dir, json);
    };
    if study.runs_again() {
        out::say("simulating some runs again for the figures that show their course");
    } else {
        // Nothing is left that asks whether to stop.
        let kept = format!("interrupted; all runs are kept in {}", dir.display());
        interrupt::ends(&kept, "the same command draws the figures");
    }
    let Some(made) = study.study_unless(&numbers, &interrupt::wished) else {
        let message = format!("interrupted; all runs are kept in {}", dir.display());
        return Err(Fail::interrupted(message).hint("the same command draws the figures"));
    };
    let doubts = bench.iter().flat_map(bench::Hosts::doubts);
    let made = Study {
        doubts: made.doubts.iter().cloned().chain(doubts).collect(),
        ..made
    };
    finish(&made, &dir, json)
}

/// Combinations and the commands that do their first runs.
fn list(study: &FileStudy, json: bool) -> Result<(), Fail> {
    if json {
        let each = study.groups().map(|g| {
            serde_json::json!({
                "runs": g.name, "experiment": g.experiment, "foreground": g.foreground,
                "background": g.background, "set": g.assignments, "first_seed": g.seed,
                "seeds": study.seeds(),
            })
        });
        out::json(&each.collect());
        return Ok(());
    }
    for group in study.groups() {
        out::data(&format!(
            "# {}: {} against {}",
            group.name, group.foreground, group.background
        ));
        out::data(&group.command(group.seed));
    }
    let runs = study.groups().count() * usize::from(study.seeds());
    out::say(&format!("{runs} runs, {} seeds each", study.seeds()));
    Ok(())
}

fn default_directory(name: &str, quick: bool) -> PathBuf {
    let quick = if quick { "-quick" } else { "" };
    Path::new("runs").join(format!("study-{name}{quick}"))
}

/// The directory asked for or the default, with a place for pictures.
fn made(asked: Option<&Path>, default: PathBuf) -> Result<PathBuf, Fail> {
    let dir = match asked {
        Some(dir) => {
            parent_exists(dir)?;
            dir.to_owned()
        }
        None => default,
    };
    std::fs::create_dir_all(dir.join(PICTURES))
        .map_err(|e| Fail::failed(format!("{}: {e}", dir.display())))?;
    Ok(dir)
}

fn options(args: &GridArgs, dir: &Path) -> Options {
    Options {
        file: dir.join(RUNS),
        jobs: args
            .jobs
            .map_or_else(groundswell::run::parallelism, usize::from),
        fresh: args.fresh,
        shard: args.shard,
    }
}

/// What was run: everything, with its numbers, or a shard: so many of so many runs are there.
enum Done {
    All(Vec<Vec<f64>>),
    Shard(usize, usize),
}

/// Says how far the table of a study is after a shard.
fn shard(done: &Done, args: &GridArgs, dir: &Path, json: bool) -> Result<(), Fail> {
    let so_far = match done {
        Done::All(numbers) => (numbers.len(), numbers.len()),
        Done::Shard(finished, runs) => (*finished, *runs),
    };
    run::shard_done(dir, args.shard, so_far, json);
    Ok(())
}

/// Shows how far runs are, and says what became of them.
fn with_progress(
    dir: &Path,
    work: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> Result<Ended, GridError>,
) -> Result<Done, Fail> {
    interrupt::wishes();
    let bar = out::bar(
        1000,
        "{msg:>13} [{bar:30}] runs, {elapsed} gone, {eta} to go",
    );
    bar.set_draw_target(ProgressDrawTarget::hidden());
    let log = out::Log::new();
    let progress = |p: Progress| {
        if bar.is_hidden() && p.done < p.runs {
            bar.set_draw_target(out::draw_target());
        }
        if p.done == p.kept {
            if p.kept > 0 {
                bar.suspend(|| out::say(&format!("{} of {} runs are there", p.kept, p.runs)));
            }
            // What is there already says nothing about how long the rest takes.
            bar.set_position((p.share * 1000.0) as u64);
            bar.reset_eta();
        }
        bar.set_position((p.share * 1000.0) as u64);
        bar.set_message(format!("{}/{}", p.done, p.runs));
        log.report("study", p.share * p.runs as f64, p.runs as f64);
    };
    let ended = work(&progress);
    bar.finish_and_clear();
    match ended {
        Ok(Ended::Complete(numbers)) => Ok(Done::All(numbers)),
        Ok(Ended::Shard { finished, runs }) => Ok(Done::Shard(finished, runs)),
        Ok(Ended::Interrupted { finished, runs }) => Err(Fail::interrupted(format!(
            "interrupted; {finished} of {runs} runs are kept in {}",
            dir.display()
        ))
        .hint("the same command goes on where it stopped")),
        Err(error @ GridError::Table { .. }) => {
            Err(Fail::usage(error).hint("--fresh throws it away; -o DIR writes elsewhere"))
        }
        Err(error @ GridError::Run { .. }) => {
            Err(Fail::failed(error).hint("finished runs are kept; the same command goes on"))
        }
        Err(error @ GridError::Lock(LockError::Busy { .. })) => Err(groundswell::run::busy(error)),
        Err(error) => Err(Fail::failed(error)),
    }
}

/// Writes page and pictures, prints the ledgers.
fn finish(study: &Study, dir: &Path, json: bool) -> Result<(), Fail> {
    let kept = format!("interrupted; all runs are kept in {}", dir.display());
    interrupt::ends(&kept, "the same command writes the report");
    let page = dir.join(report::PAGE);
    out::write(&page, swell_report::study_html(study).as_bytes())?;
    for picture in study.sections.iter().flat_map(|s| &s.pictures) {
        draw(picture, dir)?;
    }
    if json {
        Output::Study {
            study,
            report: &page,
            verdicts: study.tally().map(|(v, n)| (v.words(), n)),
        }
        .print();
        return Ok(());
    }
    out::warnings(&study.doubts);
    for ledger in &study.ledgers {
        out::data(&tables::ledger(ledger, &study.reference));
        out::data("");
    }
    for (name, value) in &study.facts {
        out::data(&tables::wrapped(&format!("{name}: {value}")));
    }
    out::data(&format!("report: {}", page.display()));
    Ok(())
}

fn draw(picture: &Picture, dir: &Path) -> Result<(), Fail> {
    let svg = swell_report::study_svg(picture, &Canvas::file(SIZE.0, SIZE.1));
    let path = |ending: &str| {
        dir.join(PICTURES)
            .join(format!("{}.{ending}", picture.name))
    };
    out::write(&path("svg"), svg.as_bytes())?;
    let vega = format!("{:#}", swell_report::study_vega(picture));
    out::write(&path("vl.json"), vega.as_bytes())?;
    if cfg!(feature = "png") {
        // A machine without fonts was warned of by the page's own pictures.
        out::write(&path("png"), &pictures::png(&svg)?.0)?;
        out::write(&path("pdf"), &pictures::pdf(&svg)?.0)?;
    }
    Ok(())
}

//! `swell study`.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use groundswell::files::may_be_made;
use groundswell::study::{
    self, FileStudy, Hosts, Options, Outcome, Overrides, PICTURES, Progress, RUNS,
};
use indicatif::ProgressDrawTarget;
use swell_host::Rights;
use swell_report::chart::Canvas;
use swell_study::bundled;
use swell_study::file::{self, quoted};
use swell_study::{Picture, Study};

use crate::cli::{BundledArgs, GridArgs, StudyCommand, StudyFileArgs};
use crate::fail::Fail;
use crate::output::{self, Output};
use crate::{interrupt, out, pictures, report, run, tables};

/// Size of a picture in pixels.
const SIZE: (f64, f64) = (700.0, 420.0);

/// Whether the runs of the study are on hosts of this machine.
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
        StudyCommand::Hops(args) => carried("hops", args, (&[], &[])),
        StudyCommand::Atlas(args) => carried("atlas", args, (&[], &[])),
        StudyCommand::Harpoon(args) => carried("harpoon", args, (&[], &[])),
        StudyCommand::File(args) => of_file(args, rights, json),
    }
}

/// A bundled study, with an extra column for each capture, or restricted to these columns, and with changed values of
/// its options.
fn carried(
    name: &str,
    args: &BundledArgs,
    (captures, columns): (&[PathBuf], &[String]),
    rights: Option<&Rights>,
    json: bool,
) -> Result<(), Fail> {
    let bundled = study::bundled(name)?;
    if let Some(dir) = &args.write {
        return written(&study::write_files(bundled, dir)?, dir, json);
    }
    let overrides = Overrides {
        quick: args.quick,
        seeds: args.seeds,
        captures: captures.to_vec(),
        columns: columns.to_vec(),
        with: args.with.clone(),
    };
    let study = study::carried(bundled, &overrides)?;
    run_file(&study, args.quick, &args.grid, rights, json)
}

/// Reports which files of a study were written, and how to run them.
fn written(paths: &[PathBuf], dir: &Path, json: bool) -> Result<(), Fail> {
    let command = format!("swell study file {}", quoted(&dir.join(bundled::STUDY)));
    if json {
        let files: Vec<String> = paths.iter().map(output::path).collect();
        out::json(&serde_json::json!({ "files": files, "command": command }));
        return Ok(());
    }
    for path in paths {
        out::say(&format!("written: {}", path.display()));
    }
    out::data(&command);
    Ok(())
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
    let study = study::read(path, &overrides)?;
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
    let dir = made(study, quick, grid)?;
    let program = std::env::current_exe().map_err(Fail::failed)?;
    let hosts = rights.map(|rights| Hosts::new(rights, &program));
    let outcome = with_progress(|progress| {
        let options = options(grid, &dir);
        study::run(
            study,
            hosts.as_ref(),
            &options,
            progress,
            &interrupt::wished,
        )
    })?;
    let numbers = match outcome {
        Outcome::Complete(numbers) => numbers,
        Outcome::Shard { finished, runs } => {
            run::shard_done(&dir, grid.shard, (finished, runs), json);
            return Ok(());
        }
    };
    if study.runs_again() {
        out::say("simulating some runs again for the figures that show their course");
    } else {
        // From here on nothing polls for a request to stop, so Ctrl-C ends the program.
        let kept = format!("interrupted; all runs are kept in {}", dir.display());
        interrupt::ends(&kept, "the same command draws the figures");
    }
    let Some(made) = study.study_unless(&numbers, &interrupt::wished) else {
        let message = format!("interrupted; all runs are kept in {}", dir.display());
        return Err(Fail::interrupted(message).hint("the same command draws the figures"));
    };
    finish(&made, &dir, json)
}

/// Lists the combinations with the command that performs the first run of each.
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

/// Whether `dir` is the directory of a study that was run.
pub(crate) fn is_of_study(dir: &Path) -> bool {
    dir.join(RUNS).is_file() && dir.join(PICTURES).is_dir()
}

/// Creates the requested or the default directory, with a folder for pictures.
fn made(study: &FileStudy, quick: bool, grid: &GridArgs) -> Result<PathBuf, Fail> {
    let dir = match &grid.out {
        Some(dir) => {
            may_be_made(dir)?;
            dir.clone()
        }
        None => study::directory(study, quick),
    };
    study::usable(&dir, grid.fresh, study)?;
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

/// Runs `work` with a progress bar.
fn with_progress(
    work: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> Result<Outcome, Fail>,
) -> Result<Outcome, Fail> {
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
            // Runs that existed before must not affect the estimate of the remaining time.
            bar.set_position((p.share * 1000.0) as u64);
            bar.reset_eta();
        }
        bar.set_position((p.share * 1000.0) as u64);
        bar.set_message(format!("{}/{}", p.done, p.runs));
        log.report("study", p.share * p.runs as f64, p.runs as f64);
    };
    let outcome = work(&progress);
    bar.finish_and_clear();
    outcome
}

/// Writes the page and the pictures, and prints the ledgers.
fn finish(study: &Study, dir: &Path, json: bool) -> Result<(), Fail> {
    let kept = format!("interrupted; all runs are kept in {}", dir.display());
    interrupt::ends(&kept, "the same command writes the report");
    let page = dir.join(report::PAGE);
    interrupt::write(&page, swell_report::study_html(study).as_bytes())?;
    draw_all(study, dir)?;
    if json {
        Output::Study {
            study,
            report: output::path(&page),
            verdicts: study.tally().map(|(v, n)| (v.words(), n)),
        }
        .print();
        return Ok(());
    }
    out::warnings(&study.doubts);
    for ledger in &study.ledgers {
        out::data(&tables::study::ledger(ledger, &study.reference));
        out::data("");
    }
    // A study without claims answers by its pictures.
    if study.ledgers.is_empty() {
        for picture in study.sections.iter().flat_map(|s| &s.pictures) {
            out::data(&tables::study::picture(picture));
            out::data("");
        }
    }
    for (name, value) in &study.facts {
        out::data(&tables::wrapped(&format!("{name}: {value}")));
    }
    out::data(&format!("report: {}", page.display()));
    Ok(())
}

/// Draws the pictures, over all cores: a large study has a hundred, and each takes a tenth of a second.
fn draw_all(study: &Study, dir: &Path) -> Result<(), Fail> {
    let all: Vec<&Picture> = study.sections.iter().flat_map(|s| &s.pictures).collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), Fail> {
        while let Some(picture) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            draw(picture, dir)?;
        }
        Ok(())
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().map(|t| match t.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    })
}

fn draw(picture: &Picture, dir: &Path) -> Result<(), Fail> {
    let canvas = |height| Canvas::file(SIZE.0, height);
    let height = swell_report::study_height(picture, &canvas(SIZE.1)).unwrap_or(SIZE.1);
    let svg = swell_report::study_svg(picture, &canvas(height));
    let path = |ending: &str| {
        dir.join(PICTURES)
            .join(format!("{}.{ending}", picture.name))
    };
    interrupt::write(&path("svg"), svg.as_bytes())?;
    let vega = format!("{:#}", swell_report::study_vega(picture));
    interrupt::write(&path("vl.json"), vega.as_bytes())?;
    // What `swell show --size` draws it from.
    let own = serde_json::to_vec(picture).map_err(Fail::failed)?;
    interrupt::write(&path("json"), &own)?;
    if cfg!(feature = "png") {
        // The warning about missing fonts was printed with the page's own pictures.
        interrupt::write(&path("png"), &pictures::png(&svg)?.0)?;
        interrupt::write(&path("pdf"), &pictures::pdf(&svg)?.0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_help_says_how_many_seeds_each_study_has() {
        let all = crate::cli::Cli::command();
        let studies = all.find_subcommand("study").unwrap();
        // The number that a part of a study file sets. Reading whole studies takes minutes without optimisation.
        let number = |text: &str| -> Option<u16> {
            let mut values = text.lines().filter_map(|l| l.strip_prefix("seeds = "));
            values.next()?.parse().ok()
        };
        for bundled in bundled::ALL {
            let file = bundled.files.iter().find(|f| f.0 == bundled::STUDY);
            let (begin, rest) = file.unwrap().1.split_once("\n[").unwrap();
            let first_look = rest.split("\n[").find(|part| part.starts_with("quick]"));
            let full = number(begin).unwrap();
            let quick = first_look.and_then(number).unwrap_or(1);
            let own = studies.find_subcommand(bundled.name).unwrap();
            let mut arguments = own.get_arguments();
            let seeds_of = arguments.find(|a| a.get_id() == "seeds").unwrap();
            let said = seeds_of.get_help().unwrap().to_string();
            let expected = match full == quick {
                true => format!("Default: {full}"),
                false => format!("Default: {full}, and {quick} with --quick"),
            };
            assert!(said.contains(&expected), "{}: {said}", bundled.name);
        }
    }

    #[test]
    fn runs_in_real_time_are_offered_neither_shards_nor_threads() {
        let all = crate::cli::Cli::command();
        let studies = all.find_subcommand("study").unwrap();
        for (name, hidden) in [("router", true), ("harpoon", false)] {
            let own = studies.find_subcommand(name).unwrap();
            for id in ["shard", "jobs"] {
                let mut arguments = own.get_arguments();
                let found = arguments.find(|a| a.get_id() == id).unwrap();
                assert_eq!(found.is_hide_set(), hidden, "{name} {id}");
            }
        }
    }
}

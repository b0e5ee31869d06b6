//! The command line. Data goes to standard output, talk to standard error.

mod cli;
mod fail;
mod fidelity;
mod interrupt;
mod learn;
mod out;
mod pictures;
mod report;
mod run;
mod show;
mod source;
mod study;
mod tables;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use fail::Fail;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = interrupt::listen().and_then(|()| match cli.command {
        Command::Run(args) => run::run(&args, cli.json),
        Command::Report(args) => report::report(&args, cli.json),
        Command::Learn(args) => learn::learn(&args, cli.json),
        Command::Show(args) => show::show(&args, cli.json),
        Command::Fidelity(args) => fidelity::fidelity(&args, cli.json),
        Command::Study(which) => study::study(&which, cli.json),
        Command::Schema => schema(),
        Command::Models => models(cli.json),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => {
            fail.say();
            ExitCode::from(fail.code)
        }
    }
}

fn schema() -> Result<(), Fail> {
    out::json(swell_experiment::file::schema());
    Ok(())
}

fn models(json: bool) -> Result<(), Fail> {
    let mut listed = Vec::new();
    for name in swell_experiment::bundled::models() {
        let bytes = swell_experiment::bundled::model(name).unwrap_or_default();
        let model = swell_traffic::Model::from_slice(bytes)
            .map_err(|e| Fail::failed(format!("bundled model {name}: {e}")))?;
        listed.push((name, model));
    }
    if json {
        let items: Vec<_> = listed
            .iter()
            .map(|(name, m)| {
                serde_json::json!({
                    "name": name, "note": m.provenance.note, "duration_s": m.duration.as_secs_f64(),
                    "mean_bps": show::mean_bps(m), "sessions": m.sessions.len(), "warnings": m.warnings,
                })
            })
            .collect();
        out::json(&items.into());
    } else if listed.is_empty() {
        out::say("no model is bundled; `swell learn TRACE -o MODEL` makes one");
    } else {
        out::data(&tables::models(&listed));
    }
    Ok(())
}

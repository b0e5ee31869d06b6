//! The command `swell`. Data goes to standard output, messages to standard error.

#[cfg(feature = "agents")]
mod agent;
mod bridge;
mod cli;
mod compare;
mod control;
mod doctor;
mod emulation;
mod fail;
mod fidelity;
#[cfg(feature = "agents")]
mod generate;
mod interrupt;
mod junit;
mod learn;
mod out;
mod output;
mod pairs;
mod pictures;
mod replay;
mod report;
mod run;
mod show;
mod study;
mod tables;
mod threshold;
mod under;
mod watch;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

use cli::{Cli, Command, Schema, SchemaArgs};
use fail::Fail;
use swell_experiment::file;
use swell_host::Rights;

fn main() -> ExitCode {
    // The init process of an emulated host, and the process that then executes a program, run this executable too.
    if let Some(code) = swell_host::helper_main() {
        return code;
    }
    // Errors of the arguments are events, too.
    let words = std::env::args_os().take_while(|word| word != "--");
    let events = words.skip(1).any(|word| word == "--events");
    out::events_wanted(events);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are data. clap itself would ignore a full disk.
        Err(asked) if !asked.use_stderr() && !std::io::stdout().is_terminal() => {
            out::data(asked.render().to_string().trim_end());
            return ExitCode::SUCCESS;
        }
        Err(wrong) => match unknown_command(&wrong) {
            Some(fail) => {
                out::failure(&fail);
                return ExitCode::from(fail::code(&fail));
            }
            None if events && wrong.use_stderr() => {
                let text = wrong.render().to_string();
                let message = text.trim().trim_start_matches("error: ");
                let fail = Fail::usage(message);
                out::failure(&fail);
                return ExitCode::from(fail::code(&fail));
            }
            None => wrong.exit(),
        },
    };
    out::events_wanted(cli.events);
    if cli.events {
        interrupt::with_parent();
    }
    match done(cli) {
        Ok(code) => ExitCode::from(code),
        Err(fail) => {
            out::failure(&fail);
            ExitCode::from(fail::code(&fail))
        }
    }
}

/// An error that lists the commands, if the one that was given does not exist. clap itself lists none.
fn unknown_command(wrong: &clap::Error) -> Option<Fail> {
    let Some(ContextValue::String(name)) = wrong.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let root = Cli::command();
    let mut command = &root;
    // Arguments need not be UTF-8.
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    for word in words.take_while(|word| word != name) {
        command = command.find_subcommand(&word).unwrap_or(command);
    }
    // The commands of `swell study` are studies; other commands have commands.
    let what = match command.get_name() {
        "study" => "study",
        _ => "command",
    };
    let known = command.get_subcommands().filter(|c| !c.is_hide_set());
    let known: Vec<&str> = known.map(clap::Command::get_name).collect();
    let (message, hint) = file::unknown_name(what, name, &known);
    Some(Fail::usage(message).hint(hint))
}

/// Executes the command. The exit code is that of a program run under the emulator, otherwise 0.
fn done(cli: Cli) -> Result<u8, Fail> {
    // If hosts need a user namespace of our own, it must be entered before a second thread starts.
    let source = match &cli.command {
        Command::Run(args) => Some(run::source(args)?),
        _ => None,
    };
    let emulates = match &cli.command {
        Command::Run(args) => source
            .as_ref()
            .is_some_and(|source| run::options(args).needs_hosts(source)),
        Command::Under(_) => true,
        #[cfg(feature = "agents")]
        Command::Generate(args) => args.local,
        Command::Study(which) => study::needs_hosts(which),
        _ => false,
    };
    let rights = emulates
        .then(Rights::obtain)
        .transpose()
        .map_err(Fail::failed)?;
    interrupt::listen()?;
    if let (Command::Run(args), Some(source)) = (&cli.command, &source) {
        return run::run(args, source, rights, cli.json);
    }
    match (cli.command, rights) {
        (Command::Under(args), Some(rights)) => return under::under(&args, rights, cli.json),
        (Command::Compare(args), _) => return compare::compare(&args, cli.json),
        #[cfg(feature = "agents")]
        (Command::Generate(args), rights) => generate::generate(&args, rights.as_ref(), cli.json),
        (Command::Study(which), rights) => study::study(&which, rights.as_ref(), cli.json),
        (command, _) => other(command, cli.json),
    }?;
    Ok(0)
}

fn other(command: Command, json: bool) -> Result<(), Fail> {
    match command {
        // `done` handles these.
        Command::Run(_) | Command::Under(_) | Command::Compare(_) | Command::Study(_) => Ok(()),
        #[cfg(feature = "agents")]
        Command::Generate(_) => Ok(()),
        #[cfg(feature = "agents")]
        Command::Agent(args) => agent::agent(&args, json),
        Command::Bridge(args) => bridge::bridge(&args, json),
        Command::Set(args) => control::set(&args, json),
        Command::Top(args) => control::top(&args, json),
        Command::Doctor(args) => doctor::doctor(&args, json),
        Command::Replay(args) => replay::replay(&args, json),
        Command::Report(args) => report::report(&args, json),
        Command::Watch(args) => watch::watch(&args),
        Command::Learn(args) => learn::learn(&args, json),
        Command::Show(args) => show::show(&args, json),
        Command::Fidelity(args) => fidelity::fidelity(&args, json),
        Command::Schema(args) => schema(&args),
        Command::Models(args) => models(args.bench, json),
        Command::Completions { shell } => completions(shell),
        Command::Man { dir } => man(&dir),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), Fail> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "swell", &mut text);
    out::data(String::from_utf8_lossy(&text).trim_end());
    Ok(())
}

/// Writes the manual pages into a directory, which is created if needed.
fn man(dir: &Path) -> Result<(), Fail> {
    groundswell::files::may_be_made(dir)?;
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
        .map_err(|e| Fail::failed(format!("{}: {e}", dir.display())))
}

fn schema(args: &SchemaArgs) -> Result<(), Fail> {
    match args.of {
        Schema::Experiment => out::json(swell_experiment::file::schema()),
        Schema::Output => out::json(&output::schema()),
    }
    Ok(())
}

fn models(bench: bool, json: bool) -> Result<(), Fail> {
    let mut listed = Vec::new();
    for name in swell_experiment::bundled::models() {
        let bytes = swell_experiment::bundled::model(name).unwrap_or_default();
        let model = swell_traffic::Model::from_slice(bytes)
            .map_err(|e| Fail::failed(format!("bundled model {name}: {e}")))?;
        listed.push((name, model));
    }
    let mut flows = Vec::new();
    for name in swell_experiment::bundled::flow_models() {
        let bytes = swell_experiment::bundled::flow_model(name).unwrap_or_default();
        let model = swell_traffic::flowlevel::FlowModel::from_slice(bytes)
            .map_err(|e| Fail::failed(format!("bundled model {name}: {e}")))?;
        flows.push((name, model));
    }
    if json {
        let of_flows = flows.iter().map(|(name, m)| {
            serde_json::json!({
                "name": name, "kind": "flow-level", "note": m.provenance.note,
                "duration_s": m.duration().as_secs_f64(), "mean_bps": m.payload_rates(),
                "connections": m.tcp.down.count(), "warnings": m.warnings,
            })
        });
        let items: Vec<_> = listed
            .iter()
            .map(|(name, m)| {
                serde_json::json!({
                    "name": name, "kind": "packets", "note": m.provenance.note, "duration_s": m.duration.as_secs_f64(),
                    "mean_bps": groundswell::model::mean_bps(m), "sessions": m.sessions.len(), "warnings": m.warnings,
                    "fidelity": m.provenance.certificate, "character": groundswell::model::character(m),
                })
            })
            .chain(of_flows)
            .collect();
        out::json(&items.into());
    } else if bench {
        out::data(&tables::bench(&listed));
    } else if listed.is_empty() {
        out::say("no model is bundled; `swell learn TRACE -o MODEL` makes one");
    } else {
        out::data(&format!(
            "{}\n\n{}",
            tables::models(&listed),
            tables::flows::models(&flows)
        ));
    }
    Ok(())
}

//! The experiment that `swell under` runs.

use std::path::{Path, PathBuf};

use swell_base::Dur;
use swell_experiment::{bundled, file};
use swell_learn::Options;
use swell_traffic::Model;
use toml::{Table, Value};

use crate::cli::UnderArgs;
use crate::fail::Fail;
use crate::{learn, out};

/// How long a background has been there at least when the program starts, where nothing is said.
const WARM_UP: Dur = Dur::from_secs(30);
/// And at most: it takes a while to simulate.
const LONGEST_WARM_UP: Dur = Dur::from_secs(120);

/// What the background is.
pub(super) enum Background {
    None,
    /// A bundled model, or a model file; its mean rate towards the client, bits per second; how long it
    /// takes from an empty link to its load.
    Model(String, f64, Dur),
}

/// The background that was named: a bundled model, a model file, a trace (learnt here and now), or
/// none.
pub(super) fn background(args: &UnderArgs, scratch: &Path) -> Result<Background, Fail> {
    let name = args.background.as_str();
    if name == "none" {
        return Ok(Background::None);
    }
    if let Some(bytes) = bundled::model(name) {
        let model = Model::from_slice(bytes).map_err(Fail::failed)?;
        return Ok(known(name.into(), &model));
    }
    let path = PathBuf::from(name);
    if !path.is_file() {
        let mut known: Vec<&str> = bundled::models().collect();
        known.push("none");
        let (message, hint) = file::unknown_name("background", name, &known);
        return Err(Fail::usage(message).hint(format!("{hint}; or name a model file or a trace")));
    }
    let bytes = std::fs::read(&path).map_err(|e| Fail::usage(format!("{name}: {e}")))?;
    if let Ok(model) = Model::from_slice(&bytes) {
        let absolute = std::fs::canonicalize(&path).map_err(Fail::usage)?;
        return Ok(known(absolute.display().to_string(), &model));
    }
    drop(bytes);
    let learnt = learn::read(
        std::slice::from_ref(&path),
        learn::stem(&path),
        String::new(),
        Options::default().parameters,
    )?;
    let model = scratch.join("background.json");
    let mut text = Vec::new();
    learnt.model.write(&mut text, false).map_err(Fail::failed)?;
    out::write(&model, &text)?;
    Ok(known(model.display().to_string(), &learnt.model))
}

fn known(name: String, model: &Model) -> Background {
    let rate = model.totals.bytes[1] as f64 * 8.0 / model.duration.as_secs_f64();
    let warm_up = model.warm_up().max(WARM_UP).min(LONGEST_WARM_UP);
    Background::Model(name, rate, warm_up)
}

/// The experiment file.
pub(super) fn text(args: &UnderArgs, background: &Background) -> Result<String, Fail> {
    let mut network = Table::new();
    put(&mut network, "rate", args.rate);
    put(&mut network, "delay", args.delay);
    put(&mut network, "queue", args.queue);
    for (side, rate) in [("up", args.up), ("down", args.down)] {
        if let Some(rate) = rate {
            let table = Table::from_iter([("rate".to_owned(), Value::String(rate.to_string()))]);
            network.insert(side.into(), Value::Table(table));
        }
    }
    if let Some(qdisc) = &args.qdisc {
        network.insert("qdisc".into(), Value::String(qdisc.clone()));
    }
    if let Some(p) = args.loss.filter(|&p| p > 0.0) {
        network.insert(
            "loss".into(),
            table([("kind", "independent".into()), ("p", Value::Float(p))]),
        );
    }

    let command = args
        .command
        .iter()
        .map(|a| Value::String(a.clone()))
        .collect();
    let mut program = Table::new();
    program.insert("name".into(), name(&args.command[0]).into());
    program.insert("kind".into(), "program".into());
    program.insert("measure".into(), "runs".into());
    program.insert("count".into(), Value::Integer(1));
    put(&mut program, "timeout", Some(args.duration));
    // The bottleneck's own delay is all there is, so that --delay says what ping shows.
    program.insert("delay".into(), "0s".into());
    program.insert(
        "congestion_control".into(),
        args.congestion_control.clone().into(),
    );
    program.insert("client".into(), table([("command", Value::Array(command))]));
    if let Some(server) = &args.server {
        let mut table = Table::from_iter([("command".to_owned(), Value::String(server.clone()))]);
        if let Some(port) = args.ready {
            table.insert("ready".into(), Value::Integer(port.into()));
        }
        program.insert("server".into(), Value::Table(table));
    }

    let warm = match background {
        Background::None => Dur::ZERO,
        Background::Model(_, _, warm_up) => args.warmup.unwrap_or(*warm_up),
    };
    let mut run = Table::new();
    run.insert(
        "replications".into(),
        Value::Integer(args.compare.map_or(1, i64::from)),
    );
    run.insert(
        "seed".into(),
        Value::Integer(i64::try_from(args.seed).map_err(Fail::usage)?),
    );
    put(&mut run, "warmup", Some(warm));
    put(&mut run, "duration", Some(warm + args.duration));

    let mut file = Table::new();
    file.insert("name".into(), "under".into());
    file.insert("backend".into(), "emulated".into());
    file.insert("network".into(), Value::Table(network));
    file.insert(
        "foreground".into(),
        Value::Array(vec![Value::Table(program)]),
    );
    file.insert(
        "background".into(),
        Value::Array(backgrounds(args, background)),
    );
    file.insert("run".into(), Value::Table(run));
    toml::to_string(&file).map_err(Fail::failed)
}

fn backgrounds(args: &UnderArgs, background: &Background) -> Vec<Value> {
    let none = || table([("name", "none".into()), ("kind", "none".into())]);
    let Background::Model(model, native, _) = background else {
        return vec![none()];
    };
    let title = name(&args.background);
    let mut learnt = vec![
        ("name", Value::from(title.as_str())),
        ("kind", "learnt".into()),
        ("model", model.as_str().into()),
    ];
    let usual = || args.down.or(args.rate).map(|down| down.scale(USUAL_LOAD));
    if let Some(load) = args.load.or_else(usual)
        && *native > 0.0
    {
        // As many sessions as would make this load on a link that is never full. To hold them to it
        // takes simulations first, which nobody waits for who wants to see a program run.
        let sessions = load.bps() as f64 / native;
        learnt.push(("sessions", Value::Float(sessions)));
    }
    let learnt = table(learnt);
    if args.compare.is_none() {
        return vec![learnt];
    }
    let poisson = table([
        ("name", Value::from("poisson")),
        ("kind", "poisson".into()),
        ("rate", format!("match:{title}").into()),
    ]);
    vec![none(), poisson, learnt]
}

/// The background's mean rate as a share of the link, where nothing is said: loaded, not overloaded.
const USUAL_LOAD: f64 = 0.6;

/// The last part of a path, without its ending.
fn name(path: &str) -> String {
    let name = learn::stem(Path::new(path));
    if name.is_empty() {
        "program".into()
    } else {
        name
    }
}

fn put(table: &mut Table, key: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        table.insert(key.into(), Value::String(value.to_string()));
    }
}

fn table<'k>(pairs: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    let pairs = pairs.into_iter().map(|(k, v)| (k.to_owned(), v));
    Value::Table(pairs.collect())
}

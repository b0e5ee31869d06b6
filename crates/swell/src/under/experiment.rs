//! The experiment that `swell under` runs.

use std::path::{Path, PathBuf};

use groundswell::learn::{Options, ReadAs, stem};
use groundswell::model::AnyModel;
use swell_base::{Dur, Rate};
use swell_experiment::kinds::MOST_COPIES;
use swell_experiment::{bundled, file};
use swell_traffic::Model;
use swell_traffic::flowlevel::FlowModel;
use toml::{Table, Value};

use super::args::{Change, LinkArgs};
use super::shell::Client;
use crate::cli::UnderArgs;
use crate::fail::Fail;
use crate::{learn, out};

/// How long a background has been there when the program starts, where nothing is said. Its sessions begin
/// as if they had always been active: what has to settle are queues and congestion windows.
const WARM_UP: Dur = Dur::from_secs(10);

/// Time in tables; runs and warm-ups are multiples of it.
const BIN: Dur = Dur::from_millis(100);

/// What the background is.
pub(crate) enum Background {
    None,
    Model(Known),
    /// As experiment files have it.
    Written(Table),
}

impl Background {
    /// One endless TCP transfer towards the client.
    pub(crate) fn greedy() -> Background {
        Background::Written(pairs([
            ("name", "tcp".into()),
            ("kind", "greedy".into()),
            ("connections", Value::Integer(1)),
            ("direction", "down".into()),
        ]))
    }

    /// Packets at equal intervals towards the client.
    pub(crate) fn constant(rate: Rate) -> Background {
        Background::Written(pairs([
            ("name", "udp".into()),
            ("kind", "cbr".into()),
            ("rate", rate.to_string().into()),
        ]))
    }
}

/// A bundled model, or a model file.
pub(crate) struct Known {
    model: String,
    /// As experiment files call backgrounds of its kind, and what multiplies its load.
    kind: (&'static str, &'static str),
    /// Mean rate towards the client, bits per second.
    rate: f64,
    /// How long it takes from an empty link to its load.
    warm_up: Dur,
}

/// A flow-level model.
fn known_sessions(model: String, flows: &FlowModel) -> Background {
    Background::Model(Known {
        model,
        kind: ("sessions", "sessions"),
        rate: flows.payload_rates()[1],
        // Its sessions begin as if they had always been active.
        warm_up: WARM_UP,
    })
}

/// The background that was named: a bundled model, a model file of either kind, a trace (learnt here and now), or
/// none.
pub(crate) fn background(args: &LinkArgs, scratch: &Path) -> Result<Background, Fail> {
    let name = args.background.as_str();
    if name == "none" {
        return Ok(Background::None);
    }
    if let Some(bytes) = bundled::model(name) {
        let model = Model::from_slice(bytes).map_err(Fail::failed)?;
        return Ok(known(name.into(), &model));
    }
    if let Some(bytes) = bundled::flow_model(name) {
        let flows = FlowModel::from_slice(bytes).map_err(Fail::failed)?;
        return Ok(known_sessions(name.into(), &flows));
    }
    let path = PathBuf::from(name);
    if !path.is_file() {
        let mut known: Vec<&str> = bundled::models().chain(bundled::flow_models()).collect();
        known.push("none");
        let (message, hint) = file::unknown_name("background", name, &known);
        return Err(Fail::usage(message).hint(format!("{hint}; or name a model file or a trace")));
    }
    let bytes = std::fs::read(&path).map_err(|e| Fail::usage(format!("{name}: {e}")))?;
    if FlowModel::is_one(&bytes) {
        let flows =
            FlowModel::from_slice(&bytes).map_err(|e| Fail::usage(format!("{name}: {e}")))?;
        let absolute = std::fs::canonicalize(&path).map_err(Fail::usage)?;
        return Ok(known_sessions(absolute.display().to_string(), &flows));
    }
    if let Ok(model) = Model::from_slice(&bytes) {
        let absolute = std::fs::canonicalize(&path).map_err(Fail::usage)?;
        return Ok(known(absolute.display().to_string(), &model));
    }
    drop(bytes);
    let options = Options {
        read_as: ReadAs::Packets,
        ..Options::default()
    };
    let learnt = learn::with_bar(std::slice::from_ref(&path), &options)?.model;
    let AnyModel::Packets(model) = &learnt else {
        return Err(Fail::usage(format!("{name}: it holds no packets")));
    };
    let file = scratch.join("background.json");
    out::write(&file, &learnt.to_bytes(false).map_err(Fail::failed)?)?;
    Ok(known(file.display().to_string(), model))
}

fn known(name: String, model: &Model) -> Background {
    Background::Model(Known {
        model: name,
        kind: ("learnt", "sessions"),
        rate: model.rates()[1],
        warm_up: WARM_UP,
    })
}

/// In whole bins, rounded up.
fn whole(span: Dur) -> Dur {
    let bins = span.as_nanos().div_ceil(BIN.as_nanos());
    Dur::from_nanos(bins.saturating_mul(BIN.as_nanos()))
}

/// The longest run that can be kept.
const DAY: Dur = Dur::from_millis(86_400_000);

/// The rate where nothing is said.
const RATE: Rate = Rate::from_bps(20_000_000);

/// The link's rate in both directions, where no trace says it.
fn rate(args: &LinkArgs) -> Option<Rate> {
    let traced = args.deliveries.is_some();
    args.rate.or_else(|| (!traced).then_some(RATE))
}

/// How long the program may take.
fn duration(args: &UnderArgs) -> Dur {
    args.duration.unwrap_or(match args.command.is_empty() {
        true => Dur::from_millis(12 * 3_600_000),
        false => Dur::from_millis(120_000),
    })
}

/// The name of the background in tables.
pub(super) fn title(args: &LinkArgs) -> String {
    name(&args.background)
}

/// Refuses a load that the link cannot carry. A link that changes or follows a trace has no rate to hold it against.
fn fits(args: &LinkArgs) -> Result<(), Fail> {
    let traced = args.deliveries.is_some() || args.deliveries_down.is_some();
    let constant = !traced && args.change.is_empty();
    match (args.load, args.down.or(rate(args))) {
        (Some(load), Some(down)) if constant && load > down => {
            let key = if args.down.is_some() {
                "--down"
            } else {
                "--rate"
            };
            Err(Fail::usage(format!(
                "--load {load} is more than the link carries towards the client, which is {down}"
            ))
            .hint(format!(
                "give less than {down}, such as {}, or a faster link with {key}",
                down.scale(USUAL_LOAD)
            )))
        }
        _ => Ok(()),
    }
}

/// The network.
fn network(args: &LinkArgs, warm: Dur) -> Table {
    let mut network = Table::new();
    put(&mut network, "rate", rate(args));
    put(&mut network, "deliveries", args.deliveries.as_ref());
    put(&mut network, "delay", args.delay);
    put(&mut network, "queue", args.queue);
    for (side, rate, deliveries) in [
        ("up", args.up, &args.deliveries_up),
        ("down", args.down, &args.deliveries_down),
    ] {
        let mut own = Table::new();
        put(&mut own, "rate", rate);
        put(&mut own, "deliveries", deliveries.as_ref());
        if !own.is_empty() {
            network.insert(side.into(), Value::Table(own));
        }
    }
    put(&mut network, "qdisc", args.qdisc.as_ref());
    if let Some(loss) = args.loss {
        network.insert("loss".into(), loss.value());
    }
    let change = |c: &Change| {
        let mut table = c.rest.clone();
        table.insert("at".into(), (warm + c.at).to_string().into());
        Value::Table(table)
    };
    if !args.change.is_empty() {
        let all: Vec<Value> = args.change.iter().map(change).collect();
        network.insert("change".into(), Value::Array(all));
    }
    network
}

/// How long the background is there before anything else.
fn warm_up(args: &LinkArgs, background: &Background) -> Dur {
    whole(match background {
        Background::None | Background::Written(_) => Dur::ZERO,
        Background::Model(known) => args.warmup.unwrap_or(known.warm_up),
    })
}

/// The experiment file of a link that lasts so long, with nobody on it but the background.
pub(crate) fn bridge(
    args: &LinkArgs,
    background: &Background,
    duration: Option<Dur>,
) -> Result<String, Fail> {
    let duration = duration.unwrap_or_else(|| DAY.saturating_sub(warm_up(args, background)));
    let mut program = Table::new();
    program.insert("name".into(), "bridged".into());
    program.insert("kind".into(), "program".into());
    program.insert("delay".into(), "0s".into());
    // Nothing is run: the two ends are somebody else's.
    let nothing = Value::Array(vec!["true".into()]);
    program.insert("client".into(), table([("command", nothing)]));
    file("bridge", args, background, program, (1, duration), false)
}

/// The experiment file of a program.
pub(super) fn text(
    args: &UnderArgs,
    command: &Client,
    background: &Background,
) -> Result<String, Fail> {
    let words = command.argv.iter().map(|a| Value::String(a.clone()));
    let duration = duration(args);
    let mut program = Table::new();
    program.insert("name".into(), name(&command.argv[0]).into());
    program.insert("kind".into(), "program".into());
    program.insert("measure".into(), "requests".into());
    program.insert("count".into(), Value::Integer(1));
    put(&mut program, "timeout", Some(duration));
    // The bottleneck's own delay is all there is, so that --delay says what ping shows.
    program.insert("delay".into(), "0s".into());
    program.insert(
        "congestion_control".into(),
        args.congestion_control.clone().into(),
    );
    if args.ecn {
        program.insert("ecn".into(), true.into());
    }
    if let Some(mtu) = args.mtu {
        program.insert("mtu".into(), i64::from(mtu).into());
    }
    let mut client = Table::from_iter([("command".to_owned(), Value::Array(words.collect()))]);
    if !command.environment.is_empty() {
        let pairs = command.environment.iter();
        let pairs = pairs.map(|(k, v)| (k.clone(), Value::String(v.clone())));
        client.insert("environment".into(), Value::Table(pairs.collect()));
    }
    program.insert("client".into(), Value::Table(client));
    if !args.measure.is_empty() {
        let reported = args.measure.iter().map(Value::try_from);
        let reported: Vec<Value> = reported.collect::<Result<_, _>>().map_err(Fail::failed)?;
        program.insert("reported".into(), Value::Array(reported));
    }
    if let Some(server) = &args.server {
        let mut table = Table::from_iter([("command".to_owned(), Value::String(server.clone()))]);
        if let Some(port) = args.ready {
            table.insert("ready".into(), Value::Integer(port.into()));
            put(&mut table, "ready_timeout", Some(args.ready_timeout));
        }
        program.insert("server".into(), Value::Table(table));
    }
    let replications = args.compare.map_or(1, i64::from);
    file(
        "under",
        &args.link,
        background,
        program,
        (replications, duration),
        args.compare.is_some(),
    )
}

/// The experiment file; `compared`: under no background and Poisson packets too.
fn file(
    title: &str,
    args: &LinkArgs,
    background: &Background,
    program: Table,
    (replications, duration): (i64, Dur),
    compared: bool,
) -> Result<String, Fail> {
    fits(args)?;
    let warm = warm_up(args, background);
    let mut run = Table::new();
    run.insert("replications".into(), Value::Integer(replications));
    run.insert(
        "seed".into(),
        Value::Integer(i64::try_from(args.seed).map_err(Fail::usage)?),
    );
    put(&mut run, "bins", Some(BIN));
    put(&mut run, "warmup", Some(warm));
    put(&mut run, "duration", Some(warm + whole(duration)));

    let mut file = Table::new();
    file.insert("name".into(), title.into());
    file.insert("backend".into(), "emulated".into());
    file.insert("network".into(), Value::Table(network(args, warm)));
    file.insert(
        "foreground".into(),
        Value::Array(vec![Value::Table(program)]),
    );
    file.insert(
        "background".into(),
        Value::Array(backgrounds(args, background, compared)),
    );
    file.insert("run".into(), Value::Table(run));
    toml::to_string(&file).map_err(Fail::failed)
}

fn backgrounds(args: &LinkArgs, background: &Background, compared: bool) -> Vec<Value> {
    let none = || table([("name", "none".into()), ("kind", "none".into())]);
    let known = match background {
        Background::None => return vec![none()],
        Background::Written(table) => return vec![Value::Table(table.clone())],
        Background::Model(known) => known,
    };
    let title = title(args);
    let (kind, multiplier) = known.kind;
    let mut modelled = vec![
        ("name", Value::from(title.as_str())),
        ("kind", kind.into()),
        ("model", known.model.as_str().into()),
    ];
    let usual = || {
        args.down
            .or_else(|| rate(args))
            .map(|down| down.scale(USUAL_LOAD))
    };
    if let Some(load) = args.load.or_else(usual)
        && known.rate > 0.0
    {
        // As many sessions as would make this load on a link that is never full. A comparison holds them to it; that
        // takes simulations first, which nobody waits for who wants to see a program run once.
        let times = load.bps() as f64 / known.rate;
        if compared && times <= MOST_COPIES {
            modelled.push(("rate", load.to_string().into()));
            modelled.push(("load", "offered".into()));
        } else {
            modelled.push((multiplier, Value::Float(times)));
        }
    }
    let modelled = table(modelled);
    if !compared {
        return vec![modelled];
    }
    let poisson = table([
        ("name", Value::from("poisson")),
        ("kind", "poisson".into()),
        ("rate", format!("match:{title}").into()),
    ]);
    vec![none(), poisson, modelled]
}

/// The background's mean rate as a share of the link, where nothing is said: loaded, not overloaded.
const USUAL_LOAD: f64 = 0.6;

/// The last part of a path, without its ending.
fn name(path: &str) -> String {
    let name = stem(Path::new(path));
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

fn pairs<'k>(pairs: impl IntoIterator<Item = (&'k str, Value)>) -> Table {
    pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

fn table<'k>(all: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    Value::Table(pairs(all))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use swell_experiment::Plan;

    use super::*;
    use crate::cli::{Cli, Command};

    /// The experiment of `swell under NAME MORE -- true`.
    fn typed(name: &str, more: &[&str]) -> String {
        let words = ["swell", "under", name, "--duration", "1.23s"];
        let words = words.iter().chain(more).chain(&["--", "true"]);
        let Ok(Cli {
            command: Command::Under(args),
            ..
        }) = Cli::try_parse_from(words)
        else {
            panic!("{name} {more:?} cannot be typed");
        };
        let here = Path::new(".");
        let known = background(&args.link, here).unwrap();
        let client = Client::of(&args, here).unwrap();
        text(&args, &client, &known).unwrap()
    }

    #[test]
    fn a_bridge_stands_for_a_day_with_any_background() {
        let words = [
            "swell",
            "bridge",
            "access-link",
            "--left",
            "a",
            "--right",
            "b",
        ];
        let Ok(Cli {
            command: Command::Bridge(args),
            ..
        }) = Cli::try_parse_from(words)
        else {
            panic!("a bridge cannot be typed");
        };
        let here = Path::new(".");
        let modelled = background(&args.link, here).unwrap();
        let rate = Rate::from_bps(9_000_000);
        let all = [
            modelled,
            Background::None,
            Background::greedy(),
            Background::constant(rate),
        ];
        for background in all {
            let file = bridge(&args.link, &background, None).unwrap();
            if let Err(problems) = Plan::resolve(&file, "bridge", here) {
                panic!("{problems}");
            }
        }
    }

    #[test]
    fn a_comparison_holds_a_background_to_its_load() {
        let modelled = |name, more: &[&str]| {
            let file: Table = typed(name, more).parse().unwrap();
            let all = file["background"].as_array().unwrap();
            all.last().unwrap().as_table().unwrap().clone()
        };
        let held = modelled("access-link", &["--compare", "3", "--load", "14Mbit"]);
        assert_eq!(held["rate"].as_str(), Some("14Mbit"));
        assert_eq!(held["load"].as_str(), Some("offered"));
        assert!(!held.contains_key("sessions"));
        // What is said of no load holds as well: 60 % of 20 Mbit/s.
        let usual = modelled("access-link", &["--compare", "3"]);
        assert_eq!(usual["rate"].as_str(), Some("12Mbit"));
        // Nobody waits for simulations where nothing is compared.
        let once = modelled("access-link", &["--load", "14Mbit"]);
        assert!(once["sessions"].as_float() > Some(0.1) && !once.contains_key("rate"));
        // More copies than a rate may take, as they were typed.
        let more = ["--compare", "3", "--rate", "1Gbit", "--load", "900Mbit"];
        let many = modelled("smart-home", &more);
        assert!(many["sessions"].as_float() > Some(MOST_COPIES) && !many.contains_key("rate"));
        if let Err(problems) = Plan::resolve(&typed("smart-home", &more), "under", Path::new(".")) {
            panic!("{problems}");
        }
    }

    #[test]
    fn every_bundled_background_makes_an_experiment() {
        for name in bundled::models() {
            let here = Path::new(".");
            let text = typed(name, &[]);
            if let Err(problems) = Plan::resolve(&text, name, here) {
                panic!("{name}: {problems}");
            }
        }
    }
}

//! Builds the experiment file of a program behind a link.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use swell_base::{Dur, Rate};
use swell_experiment::file::{LinkKeys, Named};
use swell_experiment::kinds::MOST_COPIES;
use swell_experiment::{bundled, file};
use swell_path::Deliveries;
use swell_traffic::Model;
use swell_traffic::flowlevel::FlowModel;
use toml::{Table, Value};

use super::options::{Link, NONE, Options, POISSON, name};
use crate::Error;
use crate::files::write;
use crate::learn::{self, ReadAs};
use crate::model::{self, AnyModel};

/// Default warm-up of a background. Its sessions start in steady state; only queues and congestion windows have to
/// settle.
const WARM_UP: Dur = Dur::from_secs(10);

/// Width of the bins in tables; runs and warm-ups are multiples of it.
pub const BIN: Dur = Dur::from_millis(100);

/// Most bytes of each part of the name of an experiment, which may have 200.
const MOST_BYTES: usize = 80;

/// The kind of background.
pub enum Background {
    /// No background.
    None,
    /// A model of traffic.
    Model(Known),
    /// A table as in experiment files.
    Written(Table),
}

impl Background {
    /// One endless TCP transfer towards the client.
    pub fn greedy() -> Background {
        Background::Written(pairs([
            ("name", "tcp".into()),
            ("kind", "greedy".into()),
            ("connections", Value::Integer(1)),
            ("direction", "down".into()),
        ]))
    }

    /// Packets at equal intervals towards the client.
    pub fn constant(rate: Rate) -> Background {
        Background::Written(pairs([
            ("name", "udp".into()),
            ("kind", "cbr".into()),
            ("rate", rate.to_string().into()),
        ]))
    }
}

/// A bundled model, or a model file.
pub struct Known {
    model: String,
    /// The `kind` of such backgrounds in experiment files, and the key that scales their load.
    kind: (&'static str, &'static str),
    /// Mean rate towards the client, bits per second.
    rate: f64,
    /// Time from an empty link until it has its load.
    warm_up: Dur,
}

/// A flow-level model.
fn known_sessions(model: String, flows: &FlowModel) -> Background {
    Background::Model(Known {
        model,
        kind: ("sessions", "sessions"),
        rate: flows.payload_rates()[1],
        // Its sessions start in steady state.
        warm_up: WARM_UP,
    })
}

/// The background of this name: a bundled model, a model file of either kind, a trace (learnt here, into `scratch`),
/// or `none`. `progress` gets the number of bytes just read of a trace.
///
/// # Errors
/// If there is no such model or trace, or it cannot be read.
pub fn background(
    name: &str,
    scratch: &Path,
    progress: impl Fn(u64) + Send + Sync + 'static,
) -> Result<Background, Error> {
    if name == NONE {
        return Ok(Background::None);
    }
    if let Some(bytes) = bundled::model(name) {
        let model = Model::from_slice(bytes).map_err(Error::failed)?;
        return Ok(known(name.into(), &model));
    }
    if let Some(bytes) = bundled::flow_model(name) {
        let flows = FlowModel::from_slice(bytes).map_err(Error::failed)?;
        return Ok(known_sessions(name.into(), &flows));
    }
    let path = PathBuf::from(name);
    if !path.is_file() {
        let mut known: Vec<&str> = bundled::models().chain(bundled::flow_models()).collect();
        known.push(NONE);
        let (message, hint) = file::unknown_name("background", name, &known);
        return Err(Error::usage(message).hint(match hint.ends_with('?') {
            true => format!("{hint} You can also name a model file or a trace."),
            false => format!("{hint}; you can also name a model file or a trace"),
        }));
    }
    let bytes = model::read(&path).map_err(|e| Error::usage(format!("{name}: {e}")))?;
    if FlowModel::is_one(&bytes) {
        let flows =
            FlowModel::from_slice(&bytes).map_err(|e| Error::usage(format!("{name}: {e}")))?;
        let absolute = std::fs::canonicalize(&path).map_err(Error::usage)?;
        return Ok(known_sessions(utf8(&absolute)?, &flows));
    }
    if let Ok(model) = Model::from_slice(&bytes) {
        let absolute = std::fs::canonicalize(&path).map_err(Error::usage)?;
        return Ok(known(utf8(&absolute)?, &model));
    }
    drop(bytes);
    let options = learn::Options {
        read_as: ReadAs::Packets,
        ..learn::Options::default()
    };
    let learnt = learn::learn(&[path], &options, progress)?.model;
    let AnyModel::Packets(model) = &learnt else {
        return Err(Error::usage(format!("{name}: it holds no packets")));
    };
    let file = scratch.join("background.json");
    write(&file, &learnt.to_bytes(false).map_err(Error::failed)?)?;
    Ok(known(utf8(&file)?, model))
}

/// A path as text: experiment files are UTF-8 (TOML 1.0).
fn utf8(path: &Path) -> Result<String, Error> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::usage(format!("{}: its path is not UTF-8", path.display())))
}

fn known(name: String, model: &Model) -> Background {
    Background::Model(Known {
        model: name,
        kind: ("learnt", "sessions"),
        rate: model.rates()[1],
        warm_up: WARM_UP,
    })
}

/// Rounds up to whole bins.
fn whole(span: Dur) -> Dur {
    let bins = span.as_nanos().div_ceil(BIN.as_nanos());
    Dur::from_nanos(bins.saturating_mul(BIN.as_nanos()))
}

/// The longest run that can be kept, its warm-up included.
pub const DAY: Dur = Dur::from_millis(86_400_000);

/// Default rate of the link.
const RATE: Rate = Rate::from_bps(20_000_000);

/// The link's rate in both directions, unless a trace determines it.
fn rate(link: &Link) -> Option<Rate> {
    let network = &link.network;
    network
        .rate
        .or_else(|| network.deliveries.is_none().then_some(RATE))
}

/// The rate towards the client at the start; the mean rate of a packet-delivery trace.
fn down(link: &Link) -> Result<Rate, Error> {
    let network = &link.network;
    // What a direction has of its own replaces what both have, and a trace decides over a rate beside it.
    let own = network.down.as_ref().map(|d| (&d.deliveries, d.rate));
    let own = own.filter(|(deliveries, rate)| deliveries.is_some() || rate.is_some());
    match own.unwrap_or((&network.deliveries, network.rate)) {
        (Some(Named(trace)), _) => mean_rate(Path::new(&trace.file)),
        (None, rate) => Ok(rate.unwrap_or(RATE)),
    }
}

/// The mean rate of a packet-delivery trace.
fn mean_rate(file: &Path) -> Result<Rate, Error> {
    let wrong = |e: &dyn std::fmt::Display| Error::usage(format!("{}: {e}", file.display()));
    let opened = File::open(file).map_err(|e| wrong(&e))?;
    let (_, plain) = swell_capture::decompress(opened).map_err(|e| wrong(&e))?;
    let trace = Deliveries::read(BufReader::new(plain)).map_err(|e| wrong(&e))?;
    Ok(trace.rate())
}

/// Rejects a load and a warm-up of a background that has none.
fn concerns(link: &Link, background: &Background) -> Result<(), Error> {
    let nobody = match background {
        Background::Model(known) if known.rate > 0.0 => return Ok(()),
        Background::Model(known) if link.load.is_some() => {
            let message = format!("--load: {} sends nothing towards the client", known.model);
            return Err(Error::usage(message).hint("without --load it is played as it is"));
        }
        Background::Model(_) => return Ok(()),
        Background::None => "there is no background",
        Background::Written(_) => "the background is that of the scenario",
    };
    for (option, given) in [
        ("--load", link.load.is_some()),
        ("--warmup", link.warmup.is_some()),
    ] {
        if given {
            return Err(Error::usage(format!("{option}: {nobody}")));
        }
    }
    Ok(())
}

/// Rejects a load that the link cannot carry. A link that changes or follows a trace has no fixed rate to check against.
fn fits(link: &Link) -> Result<(), Error> {
    let network = &link.network;
    let own = network.down.as_ref();
    let traced = network.deliveries.is_some() || own.is_some_and(|d| d.deliveries.is_some());
    let constant = !traced && network.change.is_empty();
    let Some(load) = link.load.filter(|_| constant) else {
        return Ok(());
    };
    match down(link)? {
        down if load > down => {
            let key = match own.and_then(|d| d.rate) {
                Some(_) => "--down",
                None => "--rate",
            };
            Err(Error::usage(format!(
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

/// The network; times of its changes are shifted to count from the start of the run.
fn network(link: &Link, warm: Dur) -> LinkKeys {
    let mut network = link.network.clone();
    network.rate = rate(link);
    for change in &mut network.change {
        change.at = warm + change.at;
    }
    network
}

/// How long the background runs before anything else.
fn warm_up(link: &Link, background: &Background) -> Dur {
    whole(match background {
        Background::None | Background::Written(_) => Dur::ZERO,
        Background::Model(known) => link.warmup.unwrap_or(known.warm_up),
    })
}

/// The experiment file of a link that lasts `duration` (default: a day), with only the background on it.
///
/// # Errors
/// If the link cannot carry the load.
pub fn bridge(
    link: &Link,
    background: &Background,
    duration: Option<Dur>,
) -> Result<String, Error> {
    let duration = duration.unwrap_or_else(|| DAY.saturating_sub(warm_up(link, background)));
    let mut program = Table::new();
    program.insert("name".into(), "bridged".into());
    program.insert("kind".into(), "program".into());
    program.insert("delay".into(), "0s".into());
    // No program is run: the endpoints are external.
    let nothing = Value::Array(vec!["true".into()]);
    program.insert("client".into(), table([("command", nothing)]));
    file("bridge", link, background, program, (1, duration), false)
}

/// The experiment file of a program.
pub(super) fn text(options: &Options, background: &Background) -> Result<String, Error> {
    let Some(first) = options.command.first() else {
        return Err(Error::usage("there is no command"));
    };
    let words = options.command.iter().map(|a| Value::String(a.clone()));
    let mut program = Table::new();
    program.insert("name".into(), name(first).into());
    program.insert("kind".into(), "program".into());
    program.insert("measure".into(), "requests".into());
    program.insert("count".into(), Value::Integer(1));
    put(&mut program, "timeout", Some(options.duration));
    // No access delay, so that ping shows the link's delay alone.
    program.insert("delay".into(), "0s".into());
    program.insert(
        "congestion_control".into(),
        options.congestion_control.clone().into(),
    );
    if options.ecn {
        program.insert("ecn".into(), true.into());
    }
    if let Some(mtu) = options.mtu {
        program.insert("mtu".into(), i64::from(mtu).into());
    }
    let mut client = Table::from_iter([("command".to_owned(), Value::Array(words.collect()))]);
    if !options.environment.is_empty() {
        let pairs = options.environment.iter();
        let pairs = pairs.map(|(k, v)| (k.clone(), Value::String(v.clone())));
        client.insert("environment".into(), Value::Table(pairs.collect()));
    }
    program.insert("client".into(), Value::Table(client));
    if !options.measures.is_empty() {
        let reported = options.measures.iter().map(Value::try_from);
        let reported: Vec<Value> = reported.collect::<Result<_, _>>().map_err(Error::failed)?;
        program.insert("reported".into(), Value::Array(reported));
    }
    if let Some(server) = &options.server {
        let mut own = pairs([("command", server.command.as_str().into())]);
        if let Some((port, timeout)) = server.ready {
            own.insert("ready".into(), Value::Integer(port.into()));
            put(&mut own, "ready_timeout", Some(timeout));
        }
        program.insert("server".into(), Value::Table(own));
    }
    let replications = options.compare.map_or(1, i64::from);
    let title = [name(first), options.link.title()].map(|part| short(&part));
    let title = title.join(" under ");
    file(
        &title,
        &options.link,
        background,
        program,
        (replications, options.duration),
        options.compare.is_some(),
    )
}

/// A part of the name of an experiment, which also names a directory: names of files may be longer than that, and have
/// backslashes.
fn short(part: &str) -> String {
    let within = part.char_indices();
    let within = within.take_while(|(at, c)| at + c.len_utf8() <= MOST_BYTES);
    let safe = within.map(|(_, c)| if c == '\\' { '_' } else { c });
    safe.collect()
}

/// The experiment file. If `compared`, it also has no background and Poisson packets as backgrounds.
fn file(
    title: &str,
    link: &Link,
    background: &Background,
    program: Table,
    (replications, duration): (i64, Dur),
    compared: bool,
) -> Result<String, Error> {
    concerns(link, background)?;
    fits(link)?;
    let warm = warm_up(link, background);
    let mut run = Table::new();
    run.insert("replications".into(), Value::Integer(replications));
    run.insert(
        "seed".into(),
        Value::Integer(i64::try_from(link.seed).map_err(Error::usage)?),
    );
    put(&mut run, "bins", Some(BIN));
    put(&mut run, "warmup", Some(warm));
    put(&mut run, "duration", Some(warm + whole(duration)));

    let mut file = Table::new();
    file.insert("name".into(), title.into());
    file.insert("backend".into(), "emulated".into());
    let network = Value::try_from(network(link, warm)).map_err(Error::failed)?;
    file.insert("network".into(), network);
    file.insert(
        "foreground".into(),
        Value::Array(vec![Value::Table(program)]),
    );
    file.insert(
        "background".into(),
        Value::Array(backgrounds(link, background, compared)?),
    );
    file.insert("run".into(), Value::Table(run));
    toml::to_string(&file).map_err(Error::failed)
}

fn backgrounds(link: &Link, background: &Background, compared: bool) -> Result<Vec<Value>, Error> {
    let none = || table([("name", NONE.into()), ("kind", "none".into())]);
    let known = match background {
        Background::None => return Ok(vec![none()]),
        Background::Written(table) => return Ok(vec![Value::Table(table.clone())]),
        Background::Model(known) => known,
    };
    let title = link.title();
    let (kind, multiplier) = known.kind;
    let mut modelled = vec![
        ("name", Value::from(title.as_str())),
        ("kind", kind.into()),
        ("model", known.model.as_str().into()),
    ];
    if known.rate > 0.0 {
        let load = match link.load {
            Some(load) => load,
            None => down(link)?.scale(USUAL_LOAD),
        };
        // The number of sessions that offers this load on an uncongested link. A comparison adjusts them to reach the
        // load. That takes simulations first, which would delay a single run of a program.
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
        return Ok(vec![modelled]);
    }
    let poisson = table([
        ("name", Value::from(POISSON)),
        ("kind", "poisson".into()),
        ("rate", format!("match:{title}").into()),
    ]);
    Ok(vec![none(), poisson, modelled])
}

/// Default mean rate of the background as a share of the link: loaded, not overloaded.
const USUAL_LOAD: f64 = 0.6;

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
mod tests;

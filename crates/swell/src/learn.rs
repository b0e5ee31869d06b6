//! `swell learn`.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Instant;

use groundswell::learn::{self, FileCounts, Learnt, Level, Options, protect, stem};
use groundswell::model::AnyModel;
use groundswell::{files, memory};
use swell_base::Dur;
use swell_traffic::Model;

use crate::cli::LearnArgs;
use crate::fail::Fail;
use crate::{interrupt, out, output, tables};

mod private;
mod reading;
mod through;

use reading::options;
pub(crate) use reading::with_bar;

/// First addresses of sources and destinations in Harpoon's configurations, because a model has no addresses.
const HARPOON_POOLS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 2, 0, 1)];

pub(crate) fn learn(args: &LearnArgs, json: bool) -> Result<(), Fail> {
    if args.through {
        return through::learn(args, json);
    }
    let name = match (&args.name, args.traces.first()) {
        (Some(name), _) => name.clone(),
        (None, Some(trace)) => stem(trace),
        (None, None) => "collected".into(),
    };
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{name}.json")));
    if output.extension().is_some_and(|e| e == "gz") {
        let fail = Fail::usage(format!(
            "{}: no model is compressed with gzip",
            output.display()
        ));
        return Err(fail.hint("-o FILE.json.zst is compressed, -o FILE.json is not"));
    }
    let outputs = match is_harpoon(&output) {
        true => configuration_files(&output).to_vec(),
        false => vec![output.clone()],
    };
    let writable = files::outputs(outputs.iter().chain(&args.flows.ipfix), &args.traces);
    // Nobody named this file.
    writable.map_err(|fail| match args.output {
        None => fail
            .hint("without -o the model gets the name of the first trace: -o FILE names another"),
        Some(_) => fail,
    })?;
    // Nobody named this file: what is there may be anything.
    if args.output.is_none() && output.exists() && AnyModel::open(&output).is_err() {
        let message = format!("{} is there already, and no model", output.display());
        return Err(Fail::usage(message).hint("-o FILE names another file"));
    }
    interrupt::ends(
        "interrupted; no model was written",
        "the same command begins anew",
    );
    let only = match args.private {
        Some(_) => Some(Level::Packets),
        None => (is_harpoon(&output) || args.flows.are_asked_for()).then_some(Level::Flows),
    };
    let options = Options {
        only,
        ..options(args, name)
    };
    let mut learnt = match args.listen {
        Some(address) => collect(address, args.duration, &options)?,
        None => with_bar(&args.traces, |progress| {
            learn::learn(&args.traces, &options, progress)
        })?,
    };
    let mut cost = None;
    if let Some(epsilon) = args.private {
        let (model, costs) = protect(&learnt.model, epsilon)?;
        learnt.model = model;
        cost = Some(costs);
    }
    if is_harpoon(&output) {
        configurations(&learnt.model, &output, json)?;
        return complete(&learnt, &output);
    }
    let compress = output.extension().is_some_and(|e| e == "zst");
    let bytes = learnt.model.to_bytes(compress);
    let bytes = bytes.map_err(|e| Fail::failed(format!("{}: {e}", output.display())))?;
    interrupt::write(&output, &bytes)?;

    let memory = memory::peak("self");
    let mut warnings = learnt.model.warnings().to_vec();
    warnings.extend(cost.as_ref().and_then(private::doubt));
    if json {
        out::json(&serde_json::json!({
            "model": output::path(&output), "bytes": bytes.len(), "peak_memory_bytes": memory,
            "traces": learnt.files.iter().map(FileCounts::to_json).collect::<Vec<_>>(),
            "summary": learnt.model.summary(), "warnings": warnings,
            "private": cost.map(|c| private::json(&c)),
        }));
        return complete(&learnt, &output);
    }
    for file in &learnt.files {
        out::say(&tables::wrapped(&file.to_string()));
    }
    out::warnings(&warnings);
    out::data(&tables::any_model(&learnt.model));
    if let (AnyModel::Packets(model), None) = (&learnt.model, args.private) {
        out::data(&tables::wrapped(&assumed(
            model,
            args.link_rtt,
            args.length,
        )));
    }
    if let Some(cost) = &cost {
        out::data(&private::text(cost));
    }
    if let Some(peak) = memory {
        out::say(&format!("peak memory: {:.1} MB", peak as f64 / 1e6));
    }
    out::data(&format!(
        "model: {} ({:.0} kB)",
        output.display(),
        bytes.len() as f64 / 1e3
    ));
    complete(&learnt, &output)
}

/// What packets do not tell and was taken from the options: the length of the tapped link and of the capture.
fn assumed(model: &Model, link_rtt: Dur, length: Dur) -> String {
    let link = match (link_rtt, apart(model)) {
        (Dur::ZERO, None) => String::new(),
        (Dur::ZERO, Some(apart)) => format!(
            "none of the {:.1} ms between the nearest hosts left and right is the round trip of the tapped link itself, \
             which a run would add again (--link-rtt says how much). ",
            apart.as_secs_f64() * 1e3
        ),
        (given, _) => format!("{given} of round trips are the tapped link's (--link-rtt). "),
    };
    let lasts = model.duration.as_secs_f64();
    let length = match length {
        Dur::ZERO => format!(
            "The trace is taken to last from its first packet to its last, {lasts:.1} s; if the capture went on in \
             silence, --length gives its length"
        ),
        _ => format!("The capture lasted {lasts:.1} s (--length)"),
    };
    format!("assumed: {link}{length}")
}

/// The round trip between the nearest hosts left and right of the tap whose own is known.
fn apart(model: &Model) -> Option<Dur> {
    let mut nearest = [None::<Dur>; 2];
    let mut see = |right: bool, rtt: Option<Dur>| {
        if let Some(rtt) = rtt.filter(|rtt| *rtt > Dur::ZERO) {
            let known = &mut nearest[usize::from(right)];
            *known = Some(known.map_or(rtt, |least| least.min(rtt)));
        }
    };
    for s in &model.sessions {
        see(
            s.outside,
            model.client_paths.get(s.client as usize).map(|p| p.rtt),
        );
        for c in s.connections() {
            let server = model.server_paths.get(c.server as usize);
            see(!s.outside, server.map(|p| p.rtt));
        }
    }
    let [left, right] = nearest;
    // A host beside the tap has no round trip.
    (left.is_some() || right.is_some())
        .then(|| left.unwrap_or_default() + right.unwrap_or_default())
}

/// An error if the model was written, but not the IPFIX file.
fn complete(learnt: &Learnt, output: &Path) -> Result<(), Fail> {
    match &learnt.unwritten {
        None => Ok(()),
        Some(error) => Err(error.clone().hint(format!(
            "only the flow records were not written; the model is in {}",
            output.display()
        ))),
    }
}

/// Whether the model becomes Harpoon's configurations.
fn is_harpoon(output: &Path) -> bool {
    output.extension().is_some_and(|e| e == "xml")
}

/// Harpoon's two configurations, client's and server's.
fn configuration_files(output: &Path) -> [PathBuf; 2] {
    let name = stem(output);
    ["client", "server"].map(|side| output.with_file_name(format!("{name}-{side}.xml")))
}

/// Collects until Ctrl-C or for `duration`.
fn collect(address: SocketAddr, duration: Option<Dur>, options: &Options) -> Result<Learnt, Fail> {
    let failed = |e: std::io::Error| Fail::failed(format!("{address}: {e}"));
    let socket = UdpSocket::bind(address).map_err(failed)?;
    let local = socket.local_addr().map_err(failed)?;
    interrupt::wishes();
    out::say(&format!(
        "collecting on {local}; Ctrl-C ends it and makes the model"
    ));
    let begun = Instant::now();
    let over = || duration.is_some_and(|d| begun.elapsed().as_nanos() >= u128::from(d.as_nanos()));
    learn::collect(&socket, options, || interrupt::wished() || over())
}

/// Writes the model as Harpoon's configurations.
fn configurations(model: &AnyModel, output: &Path, json: bool) -> Result<(), Fail> {
    let AnyModel::Flows(flows) = model else {
        let message = "Harpoon plays flow-level models: this is one of packets";
        return Err(Fail::usage(message).hint("--flows meters packet traces into flow records"));
    };
    let texts = flows.to_harpoon(HARPOON_POOLS);
    let written = configuration_files(output);
    for (path, text) in written.iter().zip(texts) {
        interrupt::write(path, text.as_bytes())?;
    }
    if json {
        out::json(&serde_json::json!({
            "configurations": written.each_ref().map(output::path), "warnings": flows.warnings,
            "summary": model.summary(),
        }));
        return Ok(());
    }
    out::warnings(&flows.warnings);
    for path in written {
        out::data(&format!("configuration: {}", path.display()));
    }
    Ok(())
}

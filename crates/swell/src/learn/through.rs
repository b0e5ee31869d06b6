//! `swell learn --through`.

use std::path::{Path, PathBuf};

use groundswell::files;
use groundswell::learn::{self, FileCounts, Through, stem};
use swell_base::{Code, Direction, Dur, Severity, Warning};
use swell_learn::taps::Traffic;
use swell_traffic::Model;

use super::reading::{options, with_bar};
use crate::cli::LearnArgs;
use crate::fail::Fail;
use crate::{interrupt, out, output, tables};

/// The experiment file of the directory.
const EXPERIMENT: &str = "experiment.toml";
/// Octaves with fewer wavelet coefficients are not printed: their intervals are from 0 to almost 1.
const COEFFICIENTS: u64 = 8;

pub(super) fn learn(args: &LearnArgs, json: bool) -> Result<(), Fail> {
    let [first, second] = args.traces.as_slice() else {
        let message = format!("--through takes two captures, not {}", args.traces.len());
        return Err(Fail::usage(message).hint("mergecap joins the pieces of one tap's capture"));
    };
    let dir = args.output.clone().unwrap_or_else(|| "through".into());
    files::may_be_made(&dir)?;
    let there = dir.is_dir();
    let model = |traffic: Traffic| dir.join(format!("{}.json.zst", traffic.name()));
    let mut written: Vec<PathBuf> = Traffic::ALL.map(model).to_vec();
    written.push(dir.join(EXPERIMENT));
    if there {
        files::outputs(&written, &args.traces)?;
    }
    interrupt::ends(
        "interrupted; no model was written",
        "the same command begins anew",
    );
    let options = options(args, args.name.clone().unwrap_or_else(|| stem(first)));
    let captures = [first.clone(), second.clone()];
    // Each is read twice.
    let twice = [first, second, first, second].map(PathBuf::clone);
    let learnt = with_bar(&twice, |progress| {
        learn::through(&captures, &options, progress)
    })?;
    std::fs::create_dir_all(&dir).map_err(|e| Fail::failed(format!("{}: {e}", dir.display())))?;
    for (traffic, model_of) in learnt.models() {
        let path = model(traffic);
        let mut bytes = Vec::new();
        let compressed = model_of.write(&mut bytes, true);
        compressed.map_err(|e| Fail::failed(format!("{}: {e}", path.display())))?;
        interrupt::write(&path, &bytes)?;
    }
    let experiment = dir.join(EXPERIMENT);
    interrupt::write(
        &experiment,
        learnt.experiment(&Through::name(&dir)).as_bytes(),
    )?;
    if json {
        out::json(&value(&learnt, &dir));
        return Ok(());
    }
    for file in &learnt.files {
        out::say(&tables::wrapped(&file.to_string()));
    }
    let notes: usize = learnt.models().map(|(_, m)| notes(m)).sum();
    out::warnings(&warnings(&learnt));
    if notes > 0 {
        let example = model(Traffic::Through);
        out::say(&tables::wrapped(&format!(
            "{notes} notes on the models are not printed here: `swell show {}` lists its own",
            example.display()
        )));
    }
    out::data(&text(&learnt));
    out::data(&format!("experiment: {}", experiment.display()));
    Ok(())
}

/// Whether a doubt is about the comparison of the taps.
fn is_of_taps(w: &Warning) -> bool {
    let own = [
        Code::TranslatedBetween,
        Code::TapClocks,
        Code::FlowsForgotten,
        Code::CommonTime,
    ];
    own.contains(&w.code)
}

/// Number of a model's notes that are not printed.
fn notes(model: &Model) -> usize {
    let all = model.warnings.iter();
    all.filter(|w| w.severity == Severity::Note && !is_of_taps(w))
        .count()
}

/// The warnings of all models and what there is to say of the taps, each once, with the models that have it.
fn warnings(learnt: &Through) -> Vec<Warning> {
    let mut all: Vec<(Warning, Vec<&str>)> = Vec::new();
    for (traffic, model) in learnt.models() {
        let told = |w: &&Warning| w.severity == Severity::Warning || is_of_taps(w);
        for w in model.warnings.iter().filter(told) {
            match all.iter_mut().find(|known| known.0 == *w) {
                Some(known) => known.1.push(traffic.name()),
                None => all.push((w.clone(), vec![traffic.name()])),
            }
        }
    }
    all.sort_by_key(|(w, _)| std::cmp::Reverse(w.severity));
    let named = all.into_iter().map(|(w, models)| match is_of_taps(&w) {
        true => w,
        false => Warning {
            message: format!("{}: {}", models.join(", "), w.message),
            ..w
        },
    });
    named.collect()
}

/// How far clocks are apart, with a sign.
fn signed(nanos: i64) -> String {
    let size = Dur::from_micros(nanos.unsigned_abs() / 1000);
    match nanos {
        ..0 => format!("{size} behind"),
        _ => format!("{size} ahead of"),
    }
}

/// What was found, in sentences and a table.
fn text(learnt: &Through) -> String {
    let links = &learnt.links;
    let clocks = learnt.clocks;
    let between = match clocks.lag {
        Some(lag) => Dur::from_micros(lag.max(0).unsigned_abs() / 1000).to_string(),
        None => "unknown".into(),
    };
    let percent = |tap: usize| 100.0 * links.share(tap);
    let mut text = format!(
        "{} flows pass both taps: {:.1} % of the bytes of the first, {:.1} % of the second\n\
         clock of the second tap: {} that of the first, by {} packets at both; delay between the taps: {between}\n\
         both taps recorded for {:.1} s\n",
        learnt.flows,
        percent(0),
        percent(1),
        signed(clocks.offset),
        clocks.packets,
        learnt.duration.as_secs_f64(),
    );
    for (traffic, model) in learnt.models() {
        let [up, down] = model
            .totals
            .bytes
            .map(|b| b as f64 * 8.0 / 1e6 / model.duration.as_secs_f64());
        text += &format!(
            "{}: {} sessions, {up:.3} Mbit/s up, {down:.3} down\n",
            traffic.name(),
            model.sessions.len()
        );
    }
    for direction in Direction::BOTH {
        text += &format!(
            "{}: energy of both links, and what they have in common\n{}\n",
            direction.name(),
            tables::coherence(links, direction, COEFFICIENTS)
        );
    }
    text.trim_end().to_owned()
}

fn value(learnt: &Through, dir: &Path) -> serde_json::Value {
    let links = &learnt.links;
    let octaves = |direction: Direction| -> Vec<serde_json::Value> {
        let all = links.coherence[direction].iter().enumerate();
        all.map(|(i, o)| {
            let (low, high) = o.interval();
            let through = links.through[direction].get(i).map(|t| t.energies);
            serde_json::json!({
                "octave": o.j, "timescale_s": o.timescale(links.bin).as_secs_f64(), "n": o.n,
                "energies": o.energies, "through_energies": through,
                "correlation": o.correlation(), "coherence": o.coherence(), "interval": [low, high],
                "through_coherence": links.explained(direction, i),
            })
        })
        .collect()
    };
    let models: serde_json::Map<String, serde_json::Value> = learnt
        .models()
        .map(|(traffic, model)| {
            let path = dir.join(format!("{}.json.zst", traffic.name()));
            let any = groundswell::model::AnyModel::Packets(Box::new(model.clone()));
            let of = serde_json::json!({
                "model": output::path(&path), "summary": any.summary(), "warnings": model.warnings,
            });
            (traffic.name().to_owned(), of)
        })
        .collect();
    let seconds = |nanos: i64| nanos as f64 / 1e9;
    serde_json::json!({
        "experiment": output::path(dir.join(EXPERIMENT)),
        "traces": learnt.files.iter().map(FileCounts::to_json).collect::<Vec<_>>(),
        "models": models,
        "matched_flows": learnt.flows,
        "duration_s": learnt.duration.as_secs_f64(),
        "through_share": [links.share(0), links.share(1)],
        "bytes": {"through": [links.bytes[0][0], links.bytes[1][0]], "cross": [links.bytes[0][1], links.bytes[1][1]]},
        "left_out_packets": links.outside,
        "clocks": {
            "offset_s": seconds(learnt.clocks.offset), "delay_s": learnt.clocks.lag.map(seconds),
            "drift_s": learnt.clocks.drift.map(seconds), "packets": learnt.clocks.packets,
        },
        "octaves": {"up": octaves(Direction::Up), "down": octaves(Direction::Down)},
    })
}

//! `swell fidelity`: compares the traffic that a model generates with the trace from which it was learnt.

use std::fmt::Write as _;

use swell_experiment::fidelity::{Fidelity, Playback, Row};
use swell_traffic::Dependency;

use crate::cli::FidelityArgs;
use crate::fail::Fail;
use crate::{interrupt, out};

pub(crate) fn fidelity(args: &FidelityArgs, json: bool) -> Result<(), Fail> {
    let model = groundswell::model::packet_model(&args.model)?;
    let mut playback = Playback::default();
    if let Some(rate) = args.rate {
        playback.rate = rate;
    }
    for name in &args.independent {
        let found = Dependency::ALL.iter().find(|d| d.1 == name);
        let Some((dependency, _)) = found else {
            let known: Vec<&str> = Dependency::ALL.iter().map(|d| d.1).collect();
            let message = format!("no dependency is called `{name}`");
            return Err(Fail::usage(message).hint(format!("one of {}", known.join(", "))));
        };
        playback.knobs.independent.push(*dependency);
    }
    interrupt::ends(
        "interrupted; what was played is not kept",
        "the same command begins anew; fewer --seeds take less time",
    );
    let seeds = args.seeds.into();
    let bar = out::bar(seeds, "playing {bar:30} {pos}/{len} seeds, {eta} left");
    let log = out::Log::new();
    let fidelity = groundswell::fidelity::fidelity(&model, &playback, seeds, || {
        bar.inc(1);
        log.tell(|| format!("played {} of {seeds} seeds", bar.position()));
    })?;
    bar.finish_and_clear();
    if json {
        out::json(&serde_json::to_value(&fidelity).map_err(Fail::failed)?);
    } else {
        out::data(&markdown(&fidelity, &playback));
    }
    Ok(())
}

/// The comparison as a Markdown table that is also readable in a terminal.
fn markdown(fidelity: &Fidelity, playback: &Playback) -> String {
    let mut text = String::new();
    let missed = fidelity.rows.iter().filter(|r| !r.met).count();
    let dropped: Vec<&str> = playback
        .knobs
        .independent
        .iter()
        .map(|d| d.name())
        .collect();
    let _ = writeln!(
        text,
        "Model `{}` played with seeds 1 to {} over {}{}: {} of {} rows met.\n",
        fidelity.model,
        fidelity.seeds,
        playback.rate,
        if dropped.is_empty() {
            String::new()
        } else {
            format!(", dropping {}", dropped.join(", "))
        },
        fidelity.rows.len() - missed,
        fidelity.rows.len(),
    );
    let width = fidelity
        .rows
        .iter()
        .map(|r| r.quantity.len())
        .max()
        .unwrap_or(8);
    let _ = writeln!(
        text,
        "| {:width$} | trace     | replayed  | off      | seeds               | met    |",
        "quantity"
    );
    let _ = writeln!(
        text,
        "|-{:-<width$}-|----------:|----------:|---------:|---------------------|--------|",
        ""
    );
    for r in &fidelity.rows {
        let _ = writeln!(
            text,
            "| {:width$} | {:>9} | {:>9} | {:>8} | {:>9}–{:<9} | {:6} |",
            r.quantity,
            if r.trace.is_nan() {
                "–".into()
            } else {
                number(r.trace)
            },
            number(r.regenerated),
            off(r),
            number(r.spread[0]),
            number(r.spread[1]),
            if r.met { "yes" } else { "**no**" },
        );
    }
    text.push_str(
        "\n`off`: relative difference of the mean over the seeds; for energies, the difference in \
         octaves (1 = a factor of two). A volume is met within 5 %, or inside the trace's own \
         95 % bootstrap interval where that is wider; a median within 10 %; an energy where the \
         mean over the seeds is within 1.5 dB, half an octave. Distances are from the trace; those of \
         energies are met up to 1.5 dB, those of distributions up to 0.1 octaves, of what hosts without \
         round trips borrowed up to 0.5. `seeds`: minimum and maximum over the seeds; of energies over all octaves, \
         of each seed's distance from the mean of the seeds, and not from the trace.",
    );
    text
}

fn off(r: &Row) -> String {
    match r.bar {
        Some(_) if r.trace != 0.0 => format!("{:+.1} %", 100.0 * (r.regenerated / r.trace - 1.0)),
        Some(_) => String::new(),
        None if r.limit.is_some() => String::new(),
        None => format!("{:+.2}", r.regenerated - r.trace),
    }
}

/// Four significant digits, without an exponent if possible.
fn number(x: f64) -> String {
    if x.is_infinite() {
        // A quantity of which the runs have no value.
        return "none".into();
    }
    let magnitude = if x == 0.0 {
        0
    } else {
        x.abs().log10().floor() as i32
    };
    match magnitude {
        9.. => format!("{:.2}G", x / 1e9),
        6..=8 => format!("{:.2}M", x / 1e6),
        4..=5 => format!("{:.1}k", x / 1e3),
        0..=3 => format!("{:.*}", (3 - magnitude) as usize, x),
        -6..=-1 => format!("{:.*}", (3 - magnitude) as usize, x),
        _ => format!("{x:.3e}"),
    }
}

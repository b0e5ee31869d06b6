//! The table of docs/fidelity.md: `fidelity [--seeds N] [--only TEXT] [--certify] TRACE...`. `scripts/fidelity` runs it, in
//! the repository. With `--only` it takes traces with the text in their paths, and lists what is missed. `--certify` writes what
//! came out into the bundled models' files. `--played` does the same for the bundled models without a trace: it writes the rates
//! and the slope of the energy that they play.
//!
//! For each trace, the program learns a model or takes the bundled one, generates traffic with every seed, and compares
//! the results.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use swell_capture::Reader;
use swell_experiment::fidelity::{Fidelity, Playback, Row, compare, halves, played, regenerate};
use swell_experiment::{Traces, bundled};
use swell_learn::{Learner, Options};
use swell_traffic::{Certificate, Model};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Where the bundled models are.
const MODELS: &str = "models";

/// Number of rows with counts, which must be within 5 % or inside the trace's own interval.
const COUNTS: usize = 6;

fn main() -> Result<(), Failed> {
    let (mut seeds, mut only, mut certify, mut made) = (5u64, String::new(), false, false);
    let mut traces = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value"));
        match arg.as_str() {
            "--seeds" => seeds = value()?.parse()?,
            "--only" => only = value()?,
            "--certify" => certify = true,
            "--played" => made = true,
            trace => traces.push(PathBuf::from(trace)),
        }
    }
    if made {
        return write_played(seeds, &only);
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| trace | bytes off | connections off | counts met | energy → (halves; seeds) | energy ← (halves; seeds) | \
         request | response | server think | client think | group think | client RTT | server RTT | rows met |"
    )?;
    writeln!(out, "|---|{}", "---:|".repeat(13))?;
    for trace in traces {
        if !trace.to_string_lossy().contains(&only) {
            continue;
        }
        let (model, bundled) = model(&trace)?;
        // A truncated capture is learnt as far as it goes, but the distance between its halves is unknown.
        let capture = Traces::default().read(&trace, &[]);
        let apart = capture.map_or([f64::NAN; 2], |c| halves(&c));
        let fidelity = compare(&model, &play(&model, seeds)?, Some(apart));
        writeln!(out, "{}", line(&trace, bundled.as_deref(), &fidelity))?;
        if let Some(name) = bundled.filter(|_| certify) {
            let mut certified = model;
            certified.provenance.certificate = Some(certificate(&fidelity));
            write(&name, &certified)?;
        }
        for row in fidelity.rows.iter().filter(|r| !r.met && !only.is_empty()) {
            writeln!(
                out,
                "    {}: {} for {}",
                row.quantity, row.regenerated, row.trace
            )?;
        }
        out.flush()?;
    }
    Ok(())
}

/// Measures what the bundled models play that were made without a trace.
fn write_played(seeds: u64, only: &str) -> Result<(), Failed> {
    for name in bundled::models().filter(|name| name.contains(only)) {
        let mut model = read(name)?;
        if model.totals.packets == [0, 0] {
            model.provenance.played = Some(played(&model, seeds)?);
            write(name, &model)?;
        }
    }
    Ok(())
}

fn read(name: &str) -> Result<Model, Failed> {
    let file = std::fs::read(Path::new(MODELS).join(format!("{name}.json.zst")))?;
    Ok(Model::from_slice(&file)?)
}

fn write(name: &str, model: &Model) -> Result<(), Failed> {
    let mut bytes = Vec::new();
    model.write(&mut bytes, true)?;
    std::fs::write(Path::new(MODELS).join(format!("{name}.json.zst")), bytes)?;
    Ok(())
}

/// The bundled model of this trace and its name, or a model learnt from it.
fn model(trace: &Path) -> Result<(Model, Option<String>), Failed> {
    let file = trace
        .file_name()
        .ok_or("no file name")?
        .to_string_lossy()
        .into_owned();
    // Read the files in the repository, which may be newer than those inside this program.
    for name in bundled::models() {
        let model = read(name)?;
        if model.provenance.sources == [file.as_str()] {
            return Ok((model, Some(name.to_owned())));
        }
    }
    let mut learner = Learner::new(Options {
        name: file,
        ..Options::default()
    });
    let _as_far_as_it_goes = learner.read(Reader::open(trace)?);
    Ok((learner.finish(), None))
}

/// Regenerated models with seeds 1 to `seeds`, on two threads.
fn play(model: &Model, seeds: u64) -> Result<Vec<Model>, Failed> {
    let one = |seed| regenerate(model, &Playback::default(), seed);
    let half = seeds / 2;
    let (a, b) = std::thread::scope(|scope| {
        let a = scope.spawn(|| (1..=half).map(one).collect::<Result<Vec<Model>, _>>());
        let b: Result<Vec<Model>, _> = (half + 1..=seeds).map(one).collect();
        (a.join(), b)
    });
    let mut runs = a.map_err(|_| "a thread panicked")??;
    runs.extend(b?);
    Ok(runs)
}

fn line(trace: &Path, bundled: Option<&str>, fidelity: &Fidelity) -> String {
    let row = |name: &str| fidelity.rows.iter().find(|r| r.quantity.starts_with(name));
    let off = |name: &str| {
        let share = row(name).map(|r| r.regenerated / r.trace - 1.0);
        let known = share.filter(|s| s.is_finite());
        known.map_or("–".into(), |s| format!("{:+.1} %", 100.0 * s))
    };
    let mark = |r: &Row, text: String| if r.met { text } else { format!("**{text}**") };
    let energy = |way: &str| {
        row(&format!("energy of bytes {way}")).map_or("–".into(), |r| {
            let noise = if r.trace.is_nan() {
                "–".into()
            } else {
                format!("{:.1}", r.trace)
            };
            let text = format!("{:.1} ({noise}; {:.1})", r.regenerated, r.spread[1]);
            mark(r, text)
        })
    };
    let distance = |of: &str| {
        let found = row(&format!("distance of {of} [octaves]"));
        found.map_or("–".into(), |r| mark(r, format!("{:.2}", r.regenerated)))
    };
    let file = trace
        .file_name()
        .map_or_else(Default::default, |f| f.to_string_lossy());
    let name = bundled.map_or_else(
        || file.split('.').next().unwrap_or_default().to_owned(),
        |name| format!("`{name}`"),
    );
    let counts = fidelity.rows[..COUNTS].iter().filter(|r| r.met).count();
    let met = fidelity.rows.iter().filter(|r| r.met).count();
    let mut cells = vec![
        name,
        off("bytes of modelled flows"),
        off("TCP connections"),
        format!("{counts} of {COUNTS}"),
        energy("left to right"),
        energy("right to left"),
    ];
    let compared = [
        "request",
        "response",
        "server think",
        "client think",
        "group think",
        "client-side RTT",
        "server-side RTT",
    ];
    cells.extend(compared.iter().map(|of| distance(of)));
    cells.push(format!("{met} of {}", fidelity.rows.len()));
    format!("| {} |", cells.join(" | "))
}

fn certificate(fidelity: &Fidelity) -> Certificate {
    // A missing quantity has an infinite distance, which the file cannot represent.
    let rounded = |x: f64| (x.min(99.0) * 1000.0).round() / 1000.0;
    let energies = ["left to right", "right to left"].map(|way| {
        let name = format!("energy of bytes {way}");
        fidelity.rows.iter().find(|r| r.quantity.starts_with(&name))
    });
    let known = |x: f64| x.is_finite().then(|| rounded(x));
    let w1 = fidelity.rows.iter().filter_map(|r| {
        let of = r
            .quantity
            .strip_prefix("distance of ")?
            .strip_suffix(" [octaves]")?;
        Some((of.to_owned(), rounded(r.regenerated)))
    });
    let counts = fidelity.rows[..COUNTS].iter().filter(|r| r.trace > 0.0);
    Certificate {
        made_by: concat!("swell ", env!("CARGO_PKG_VERSION")).into(),
        seeds: fidelity.seeds as u64,
        met: fidelity.rows.iter().filter(|r| r.met).count() as u64,
        rows: fidelity.rows.len() as u64,
        energy: energies.map(|e| e.map_or(99.0, |r| rounded(r.regenerated))),
        halves: energies.map(|e| e.and_then(|r| known(r.trace))),
        w1: w1.collect(),
        counts: counts
            .map(|r| (r.quantity.clone(), rounded(r.regenerated / r.trace)))
            .collect(),
    }
}

//! Learns a model from a trace: `learn TRACE MODEL.json[.zst] [NAME [NOTE]]`. A minimal version of the
//! command line.
#![expect(clippy::disallowed_methods, reason = "an example opens files")]

use std::error::Error;
use std::io::Write;

use swell_capture::Reader;
use swell_learn::{Learner, Options};
use swell_traffic::Provenance;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [trace, out, rest @ ..] = &args[..] else {
        return Err("usage: learn TRACE MODEL.json[.zst] [NAME [NOTE [SHA256]]]".into());
    };
    let file_name = |p: &str| {
        let name = std::path::Path::new(p).file_name();
        name.map_or(String::new(), |n| n.to_string_lossy().into_owned())
    };
    let mut learner = Learner::new(Options {
        name: rest.first().cloned().unwrap_or_default(),
        provenance: Provenance {
            sources: vec![file_name(trace)],
            note: rest.get(1).cloned().unwrap_or_default(),
            digests: rest
                .get(2)
                .filter(|d| !d.is_empty())
                .cloned()
                .into_iter()
                .collect(),
            ..Provenance::default()
        },
        ..Options::default()
    });
    let mut reader = Reader::open(trace)?;
    let read = learner.read(&mut reader);
    let mut log = std::io::stderr().lock();
    if let Some(e) = read.damage {
        writeln!(log, "stopped: {e}")?;
    }
    let doubts = reader.counts().doubts().into_iter().chain(read.doubts);
    doubts.for_each(|d| learner.doubt(d));
    let model = learner.finish();
    model.check()?;
    for w in &model.warnings {
        writeln!(log, "{:?} {}: {}", w.severity, w.code, w.message)?;
    }
    let file = std::fs::File::create(out)?;
    model.write(file, out.ends_with(".zst"))?;
    Ok(())
}

//! Captures, read for replay.

use std::path::Path;
use std::sync::Arc;

use swell_base::{Dur, Rate, Warning};
use swell_capture::{Packet, Reader};
use swell_learn::{Directions, Splitter};

use super::{Complaint, LoadedTrace};
use crate::backend::Trace;
use crate::file::Replay;
use crate::hash::Hash;
use crate::store::ModelFacts;

/// The trace that `replay` names; or the key that is wrong, and why.
pub(super) fn load(replay: &Replay, base: &Path) -> Result<LoadedTrace, (&'static str, Complaint)> {
    let name = &replay.trace;
    let wrong = |message: String, hint: &str| {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        ("trace", (message, hint))
    };
    let path = base.join(name);
    if !path.is_file() {
        return Err(wrong(
            format!("no file is called `{name}`"),
            "the path of a capture, relative to the experiment file",
        ));
    }
    let (directions, mut warnings, digest) = read(&path).map_err(|e| wrong(e.to_string(), ""))?;
    let both = directions.packets.each_ref().map(Vec::len);
    if both == [0, 0] {
        return Err(wrong(
            format!("`{name}`: no packet leads from one side to the other"),
            "",
        ));
    }
    warnings.extend(directions.doubts());
    let (period, length) = (directions.period(), directions.duration);
    let mut packets = directions.packets.map(Into::into);
    if replay.reversed {
        packets.swap(0, 1);
    }
    let trace = Trace { packets, period };
    let [up, down] = trace.bps().map(Rate::from_bps_f64);
    if replay.rate.is_some() && down == Rate::default() {
        return Err((
            "rate",
            (
                format!(
                    "`{name}` has no packets in the down direction: no stretch makes them a rate"
                ),
                Some("`reversed = true` exchanges the directions; or give `stretch`".into()),
            ),
        ));
    }
    if let Some(phase) = replay.phase
        && phase >= period
    {
        return Err((
            "phase",
            (
                format!("a phase of {phase} lies beyond the trace's {length}"),
                None,
            ),
        ));
    }
    let source = std::fs::canonicalize(&path).unwrap_or(path);
    Ok(LoadedTrace {
        facts: ModelFacts {
            name: source
                .file_name()
                .map_or_else(|| name.clone(), |f| f.to_string_lossy().into_owned()),
            source: source.display().to_string(),
            hash: digest,
            note: format!(
                "{} packets up and {} down in {:.1} s, {:.3} and {:.3} Mbit/s",
                trace.packets[0].len(),
                trace.packets[1].len(),
                length.as_secs_f64(),
                up.as_mbit(),
                down.as_mbit(),
            ),
            warnings,
        },
        trace: Arc::new(trace),
    })
}

/// The packets of a capture by direction, the reader's doubts, and a fingerprint of what is replayed.
fn read(path: &Path) -> Result<(Directions, Vec<Warning>, String), swell_capture::Error> {
    let mut reader = Reader::open(path)?;
    let mut splitter = Splitter::new();
    let mut packet = Packet::default();
    while reader.read_into(&mut packet)? {
        splitter.push(&packet);
    }
    let directions = splitter.finish();
    let mut hash = Hash::new();
    for way in &directions.packets {
        let bytes: Vec<u8> = way
            .iter()
            .flat_map(|&(at, size): &(Dur, u32)| {
                let at = at.as_nanos().to_le_bytes();
                at.into_iter().chain(size.to_le_bytes())
            })
            .collect();
        hash = hash.part(&bytes);
    }
    Ok((directions, reader.counts().doubts(), hash.hex()))
}

//! Captures, read for replay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Dur, Rate, Warning};
use swell_capture::{Packet, Reader};
use swell_learn::{Network, Splitter};
use swell_workload::Packets;

use super::{Complaint, LoadedModel, LoadedTrace};
use crate::backend::Trace;
use crate::file::Replay;
use crate::hash::Hash;
use crate::store::ModelFacts;

/// The trace that `replay` names; or the key that is wrong, and why.
pub(super) fn load(
    replay: &Replay,
    base: &Path,
    traces: &Traces,
) -> Result<LoadedTrace, (&'static str, Complaint)> {
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
    let mut inside = Vec::new();
    for network in &replay.inside {
        let network = network.parse().map_err(|e| ("inside", (e, None)))?;
        inside.push(network);
    }
    let capture = traces
        .read(&path, &inside)
        .map_err(|e| wrong(e.to_string(), ""))?;
    if capture.packets.iter().all(|way| way.is_empty()) {
        return Err(wrong(
            format!("`{name}`: no packet leads from one side to the other"),
            "",
        ));
    }
    let trace = capture.trace(replay.reversed);
    let (period, length) = (capture.period, capture.length);
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
            hash: capture.hash,
            note: format!(
                "{} packets up and {} down in {:.1} s, {:.3} and {:.3} Mbit/s",
                trace.packets[0].len(),
                trace.packets[1].len(),
                length.as_secs_f64(),
                up.as_mbit(),
                down.as_mbit(),
            ),
            warnings: capture.doubts,
        },
        trace: Arc::new(trace),
    })
}

/// A capture, read.
#[derive(Clone, Debug)]
pub struct Capture {
    /// From inside out (up) and from outside in: time since the first packet, network-layer bytes.
    pub packets: [Packets; 2],
    /// From the first packet to the last.
    pub length: Dur,
    /// After how long it begins again where it is played without end.
    pub period: Dur,
    /// What to doubt about it.
    pub doubts: Vec<Warning>,
    /// A fingerprint of times and sizes.
    hash: String,
}

impl Capture {
    /// Of packets that a test made.
    #[cfg(test)]
    pub(crate) fn of(packets: [Packets; 2], length: Dur) -> Capture {
        Capture {
            packets,
            length,
            period: length,
            doubts: Vec::new(),
            hash: String::new(),
        }
    }

    /// Mean rates up and down, bits per second of network-layer bytes.
    pub fn bps(&self) -> [f64; 2] {
        self.trace(false).bps()
    }

    fn trace(&self, reversed: bool) -> Trace {
        let mut packets = self.packets.clone();
        if reversed {
            packets.swap(0, 1);
        }
        Trace {
            packets,
            period: self.period,
        }
    }
}

/// Captures and models that were read, so that experiments that use the same one read it once. A file that changes
/// meanwhile is not read again.
#[derive(Debug, Default)]
pub struct Traces {
    captures: Mutex<BTreeMap<(PathBuf, String), Capture>>,
    models: Mutex<BTreeMap<PathBuf, LoadedModel>>,
}

impl Traces {
    /// The capture in a file. `inside`: the networks that are inside; none: the packets tell.
    ///
    /// # Errors
    /// Where it does not read.
    pub fn read(&self, path: &Path, inside: &[Network]) -> Result<Capture, swell_capture::Error> {
        let networks: Vec<String> = inside.iter().map(Network::to_string).collect();
        let key = (path.to_owned(), networks.join(" "));
        // One at a time: others most likely wait for the same one.
        let mut known = (self.captures.lock()).unwrap_or_else(PoisonError::into_inner);
        if let Some(capture) = known.get(&key) {
            return Ok(capture.clone());
        }
        let capture = read(path, inside)?;
        known.insert(key, capture.clone());
        Ok(capture)
    }

    /// The model of this path, which `load` reads where it was not read yet.
    pub(super) fn model<E>(
        &self,
        path: PathBuf,
        load: impl FnOnce() -> Result<LoadedModel, E>,
    ) -> Result<LoadedModel, E> {
        let mut known = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = known.get(&path) {
            return Ok(model.clone());
        }
        let model = load()?;
        known.insert(path, model.clone());
        Ok(model)
    }
}

fn read(path: &Path, inside: &[Network]) -> Result<Capture, swell_capture::Error> {
    let mut reader = Reader::open(path)?;
    let mut splitter = Splitter::with_inside(inside.to_vec());
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
    let mut doubts = reader.counts().doubts();
    doubts.extend(directions.doubts());
    Ok(Capture {
        length: directions.duration,
        period: directions.period(),
        doubts,
        hash: hash.hex(),
        packets: directions.packets.map(Into::into),
    })
}

//! Reads packet-delivery traces and resolves the changes of a network.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use swell_base::{Direction, Dur, QueueLimit, Rate, Stream};
use swell_path::{Deliveries, Fifo};

use crate::file::{self, Change, Link, LinkKeys};
use crate::kinds::Complaint;

/// Traces by their path in the resolved file.
pub(super) type Traces = BTreeMap<String, Arc<Deliveries>>;

/// Reads all traces of `links`, which come with their keys in the file. Replaces their names by absolute paths and
/// hashes, and fills in their mean rates as link rates. Problems go to `complain`, with their keys.
pub(super) fn resolve<'f>(
    links: impl Iterator<Item = (String, &'f mut LinkKeys)>,
    base: &Path,
    complain: &mut dyn FnMut(String, Complaint),
) -> Traces {
    let mut traces = Traces::new();
    // Many links may have the same trace, which is read once.
    let mut known = BTreeMap::new();
    let mut read = |spec: &mut file::Deliveries, key: &str| match load(spec, base, &mut known) {
        Ok(trace) => {
            let rate = trace.rate();
            traces.insert(spec.file.clone(), trace);
            Some(rate)
        }
        Err((part, complaint)) => {
            complain(format!("{key}{part}"), complaint);
            None
        }
    };
    for (place, link) in links {
        if let Some(spec) = &mut link.deliveries {
            let mean = read(&mut spec.0, &format!("{place}.deliveries"));
            link.rate = link.rate.or(mean);
        }
        for (name, side) in [("up", &mut link.up), ("down", &mut link.down)] {
            if let Some(side) = side
                && let Some(spec) = &mut side.deliveries
            {
                let mean = read(&mut spec.0, &format!("{place}.{name}.deliveries"));
                side.rate = side.rate.or(mean);
            }
        }
        for (i, change) in link.change.iter_mut().enumerate() {
            if let Some(spec) = &mut change.deliveries {
                read(&mut spec.0, &format!("{place}.change[{i}].deliveries"));
            }
        }
    }
    traces
}

/// A trace that was read, and its SHA-256.
type Known = (Arc<Deliveries>, String);

/// Reads the trace of `spec` unless it is `known`, and sets its absolute path and hash. The error is the part of the key
/// that is wrong, and the reason.
fn load(
    spec: &mut file::Deliveries,
    base: &Path,
    known: &mut BTreeMap<PathBuf, Known>,
) -> Result<Arc<Deliveries>, (&'static str, Complaint)> {
    let path = base.join(&spec.file);
    let wrong = |message: String| ("", (message, None));
    if !path.is_file() {
        let hint = "the path of a packet-delivery trace, relative to the experiment file";
        let message = format!("no file is called `{}`", spec.file);
        return Err(("", (message, Some(hint.to_owned()))));
    }
    let name = spec.file.clone();
    let failed = |e: io::Error| wrong(format!("`{name}`: {e}"));
    let (trace, digest) = match known.get(&path) {
        Some(known) => known.clone(),
        None => {
            let digest = digest(&path).map_err(failed)?;
            let file = File::open(&path).map_err(failed)?;
            let (_, plain) = swell_capture::decompress(file).map_err(failed)?;
            let trace = Deliveries::read(BufReader::new(plain))
                .map_err(|e| wrong(format!("`{name}` is no packet-delivery trace: {e}")))?;
            let read = (Arc::new(trace), digest);
            known.insert(path.clone(), read.clone());
            read
        }
    };
    if let Some(expected) = &spec.sha256
        && !expected.eq_ignore_ascii_case(&digest)
    {
        return Err((
            ".sha256",
            (
                format!("`{name}` is another file: its SHA-256 is {digest}"),
                Some("leave `sha256` out to take the file as it is".into()),
            ),
        ));
    }
    if let Some(phase) = spec.phase
        && phase >= trace.period()
    {
        let message = format!(
            "a phase of {phase} lies beyond the trace's {}",
            trace.period()
        );
        return Err((".phase", (message, None)));
    }
    let whole = std::fs::canonicalize(&path).unwrap_or(path);
    spec.file = whole.display().to_string();
    spec.sha256 = Some(digest);
    Ok(trace)
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut part = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut part)?;
        if n == 0 {
            break;
        }
        hash.update(&part[..n]);
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

/// The offset into the traces at which a run with `seed` begins. It is the same for all traces, so that directions
/// recorded together stay synchronized.
pub(super) fn phase(traces: &Traces, seed: u64) -> Dur {
    let longest = traces.values().map(|t| t.period()).max();
    let mut stream = Stream::new(seed, "deliveries-phase");
    Dur::from_nanos(stream.below(longest.unwrap_or_default().as_nanos()))
}

/// Sets the phase of a trace if the file does not.
pub(super) fn begin(spec: &mut file::Deliveries, traces: &Traces, phase: Dur) {
    if let Some(trace) = traces.get(&spec.file) {
        let within = phase.as_nanos() % trace.period().as_nanos();
        spec.phase.get_or_insert(Dur::from_nanos(within));
    }
}

/// The fully specified changes of a direction whose initial link is `link`. A change of the queue has both limit and
/// discipline, with BDP resolved at the rate that then applies.
pub(super) fn changes(
    all: &[Change],
    direction: Direction,
    link: &Link,
    rtt: Dur,
    traces: &Traces,
    phase: Dur,
) -> Vec<Change> {
    let concern = all.iter().filter(|c| c.direction.has(direction));
    let said = |change: &Change| {
        let mut change = change.clone();
        if let Some(spec) = &mut change.deliveries {
            begin(&mut spec.0, traces, phase);
        }
        if change.queue.is_some() || change.qdisc.is_some() {
            let rate = counting_rate(&change, link, traces);
            let mut limit = change.queue.unwrap_or(link.queue);
            let spec = (change.qdisc).get_or_insert_with(|| file::Named(link.qdisc.clone()));
            let limits = std::iter::once(&mut limit).chain(spec.0.limits_mut());
            for each in limits {
                if let QueueLimit::Bdp(k) = *each {
                    *each = Fifo::bdp(k, rate, rtt);
                }
            }
            change.queue = Some(limit);
        }
        change
    };
    concern.map(said).collect()
}

/// The rate for limits of the new queue of `change`: the rate that the change sets, else the link's initial rate.
pub(crate) fn counting_rate(change: &Change, link: &Link, traces: &Traces) -> Rate {
    let trace = change
        .deliveries
        .as_ref()
        .and_then(|d| traces.get(&d.0.file));
    let set = change.rate.or(trace.map(|t| t.rate()));
    set.unwrap_or(link.rate)
}

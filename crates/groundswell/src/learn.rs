//! Learns a model from packets or flow records.
//!
//! [`learn`] reads files of one link: packets (pcap, pcapng, snoop), flow records (NetFlow, IPFIX, sFlow, nfdump, Zeek,
//! Suricata, Argus, CSV), flow-level models of pieces of a trace, and Harpoon's configurations. All may be plain or
//! compressed. [`collect`] receives flow records from exporters as they send them. [`through`] splits the captures of two
//! taps of one path into the traffic that passes both, and that of each.

use std::path::PathBuf;
use std::sync::Arc;

use swell_base::{Code, Dur, Warning};
use swell_capture::Reader;
use swell_experiment::fidelity::carried;
use swell_learn::Learner;
use swell_traffic::Model;

use crate::model::AnyModel;
use crate::{Error, files};

mod collect;
mod counts;
mod flows;
mod ipfix;
mod merged;
mod models;
mod options;
mod packets;
mod private;
mod source;
mod through;

pub use collect::collect;
pub use counts::{Counted, FileCounts};
pub use options::{Learnt, Level, Options, ReadAs, stem};
pub use private::protect;
pub use through::{Through, through};

use merged::Merged;
use options::{REPLAY, provenance};
use source::{Opened, Progress};

/// Learns one model from files of one link; `-` is standard input. All hold packets or all hold flow records, as the first
/// one does. Packets are taken in the order of their times, whichever file they are in. A truncated or damaged file is used up to the damage, with a doubt
/// in the model. `progress` gets the number of bytes just read.
///
/// # Errors
/// If a file cannot be read, holds nothing to model or would be overwritten by the IPFIX file, or files are not of one
/// kind.
pub fn learn(
    files: &[PathBuf],
    options: &Options,
    progress: impl Fn(u64) + Send + Sync + 'static,
) -> Result<Learnt, Error> {
    let progress: Progress = Arc::new(progress);
    let Some((named, others)) = files.split_first() else {
        return Err(Error::usage("no files"));
    };
    if let Some(ipfix) = &options.ipfix {
        files::not_an_input(ipfix, files)?;
    }
    let mut first = Opened::new(named, &progress)?;
    let name = options.name.clone().unwrap_or_else(|| stem(named));
    let provenance = provenance(files, &options.note);
    let input = models::Input::of(&first);
    let level = match input {
        None if !flows::wanted(&first, options.read_as) => Level::Packets,
        _ => Level::Flows,
    };
    let records = options.ipfix.as_ref().map(|_| Level::Flows);
    if options.only.or(records).is_some_and(|only| only != level) {
        if level == Level::Packets {
            // A file that holds neither has another fault.
            let read = first.name.clone();
            Reader::named(&read, first.bytes()).map_err(Error::usage)?;
        }
        return Err(not_wanted(&first.name, level));
    }
    if input.is_some() && options.ipfix.is_some() {
        let message = format!("{} holds no flow records to write", first.name);
        return Err(Error::usage(message));
    }
    if let Some(input) = input {
        let model = input.read(&mut first, others, &progress, &name, provenance, options)?;
        return Ok(Learnt {
            model: AnyModel::Flows(Box::new(model)),
            files: Vec::new(),
            unwritten: None,
        });
    }
    if level == Level::Flows {
        return flows::read(first, others, &progress, &name, provenance, options);
    }
    let learner = Learner::new(swell_learn::Options {
        name,
        provenance,
        ..options.packets.clone()
    });
    of_packets(first, others, &progress, learner, options)
}

/// The error that a file is of the wrong level.
fn not_wanted(name: &str, level: Level) -> Error {
    match level {
        Level::Packets => Error::usage(format!(
            "{name} holds packets, and a flow-level model is wanted"
        ))
        .hint("--flows meters packet traces into flow records"),
        Level::Flows => Error::usage(format!(
            "{name} holds flow records, and a model of packets is wanted"
        )),
    }
}

/// Reads traces of one link into one model, those that overlap in time merged. A truncated or damaged trace is used up to
/// the damage, with a doubt in the model.
fn of_packets(
    first: Opened,
    others: &[PathBuf],
    progress: &Progress,
    mut learner: Learner,
    options: &Options,
) -> Result<Learnt, Error> {
    let length = options.packets.length;
    let mut ended = Vec::new();
    let mut files = Merged::new(first, others, progress)?;
    while files.begin()? {
        let pass = learner.read(&mut files);
        if let Some(damage) = pass.damage {
            return Err(Error::failed(damage));
        }
        let mut read = files.ended();
        let of_files = read.iter_mut().flat_map(|f| std::mem::take(&mut f.doubts));
        let doubts = of_files.chain(files.doubt()).chain(pass.doubts);
        doubts.for_each(|d| learner.doubt(d));
        ended.extend(read);
    }
    ended.sort_by_key(|f| f.place);
    let (read, digests): (Vec<FileCounts>, Vec<String>) =
        ended.into_iter().map(|f| (f.counts, f.sha256)).unzip();
    let mut model = learner.finish();
    // A trace of one packet has a microsecond.
    let span = model.duration.saturating_sub(Dur::from_micros(1));
    if length > Dur::ZERO && span > length {
        let message = format!("the packets span {span}, but the capture is said to last {length}");
        return Err(Error::usage(message).hint(
            "--length is for captures that went on without a packet after the last one; editcap -A and -B of Wireshark \
             cut a trace",
        ));
    }
    if model.sessions.is_empty() {
        return Err(nothing(&read));
    }
    if options.digest {
        model.provenance.digests = digests;
    }
    model.warnings.extend(lacking(&model));
    Ok(Learnt {
        model: AnyModel::Packets(Box::new(model)),
        files: read,
        unwritten: None,
    })
}

/// A model is played once, up to so many packets of its trace: about a second.
const PLAYED: u64 = 1_000_000;
/// Smaller share of the trace's bytes that a playback lacks without a doubt. Connections that the end of a trace cut, and
/// transfers that take a little longer, make some per cent.
const LACKS: f64 = 0.15;

/// A doubt if the model carries clearly less than its trace when it is played alone, whatever the reason.
fn lacking(model: &Model) -> Option<Warning> {
    let found = carried(model, PLAYED).ok().flatten()?;
    let share = found.played / found.recorded;
    (share < 1.0 - LACKS).then(|| {
        Warning::warning(
            Code::LoadLeftOut,
            format!(
                "played alone, the model carries {:.0} % of the bytes of its trace in {:.1} s. So it loads a link less than what it was \
                 learnt from",
                100.0 * share,
                found.over.as_secs_f64()
            ),
        )
    })
}

/// Why packets gave no model.
fn nothing(read: &[FileCounts]) -> Error {
    let mut all = [0u64; 7];
    for file in read {
        if let Counted::Packets(c) = &file.counts {
            let kinds = [
                c.tcp,
                c.udp,
                c.icmp,
                c.fragments,
                c.other,
                c.short_transport,
                c.bad_transport,
            ];
            (all.iter_mut().zip(kinds)).for_each(|(sum, n)| *sum += n);
        }
    }
    let kinds = [
        "of TCP",
        "of UDP",
        "of ICMP",
        "fragments",
        "of other protocols (tunnels, ESP, SCTP)",
        "cut before the end of their transport header",
        "with a bad transport header",
    ];
    let named = all.iter().zip(kinds).filter(|(n, _)| **n > 0);
    let named: Vec<String> = named.map(|(n, kind)| format!("{n} {kind}")).collect();
    let packets: u64 = all.iter().sum();
    let message = format!(
        "nothing to learn: there is no TCP connection or UDP flow that can be modelled in {packets} packets ({})",
        named.join(", ")
    );
    let counts = read.iter().map(FileCounts::to_string);
    let hints: Vec<String> = std::iter::once(REPLAY.to_owned()).chain(counts).collect();
    Error::usage(message).hint(hints.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a model brings back is held against its trace, whichever part of it is played.
    #[test]
    fn a_model_that_carries_less_than_its_trace_says_so() {
        for name in ["browsing", "smart-home", "video-call", "meeting"] {
            let bytes = swell_experiment::bundled::model(name).unwrap();
            let model = Model::from_slice(bytes).unwrap();
            assert_eq!(lacking(&model), None, "{name}");
            let mut busier = model.clone();
            let bins = busier.load.bytes.iter_mut().flatten();
            bins.chain(&mut busier.totals.bytes)
                .for_each(|b| *b = *b * 4 / 3);
            let told = lacking(&busier).unwrap();
            assert_eq!(told.code, Code::LoadLeftOut);
        }
        // Of a long trace the beginning is played.
        let bytes = swell_experiment::bundled::model("access-link").unwrap();
        let model = Model::from_slice(bytes).unwrap();
        let packets: u64 = model.totals.packets.iter().sum();
        let part = carried(&model, packets / 3).unwrap().unwrap();
        assert!(part.over < model.duration.scale(0.6), "{part:?}");
        assert!((part.played / part.recorded - 1.0).abs() < 0.15, "{part:?}");
    }
}

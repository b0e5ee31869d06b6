//! Flow records, read or metered.

use std::path::{Path, PathBuf};

use swell_base::Warning;
use swell_capture::Reader;
use swell_capture::flow::{FlowCounts, FlowReader, FlowSkip, holds_flow_records};
use swell_learn::FlowLearner;
use swell_traffic::Provenance;

use super::ipfix::Ipfix;
use super::source::{Opened, Progress};
use super::{Counted, FileCounts, Learnt, Options, ReadAs, file_name};
use crate::Error;
use crate::model::AnyModel;

/// Whether the file is to be read as flow records.
pub(super) fn wanted(file: &Opened, read_as: ReadAs) -> bool {
    match read_as {
        ReadAs::Packets => false,
        ReadAs::Flows => true,
        ReadAs::Detect => holds_flow_records(file.head()),
    }
}

fn reader(file: &mut Opened, options: &Options) -> Result<FlowReader<'static>, Error> {
    let name = file.name.clone();
    if holds_flow_records(file.head()) {
        return FlowReader::named(&name, file.bytes()).map_err(Error::usage);
    }
    let packets = Reader::named(&name, file.bytes()).map_err(Error::usage)?;
    Ok(FlowReader::metered(packets, options.metering))
}

/// Reads files, one after the other, into one model. A truncated or damaged file is used up to the damage, with a
/// doubt in the model.
pub(crate) fn read(
    first: Opened,
    others: &[PathBuf],
    progress: &Progress,
    name: &str,
    mut provenance: Provenance,
    options: &Options,
) -> Result<Learnt, Error> {
    let mut learner = FlowLearner::new(options.flows);
    let mut written = Ipfix::new(options.ipfix.as_deref())?;
    let mut files = Vec::new();
    let mut metered = false;
    let mut next = Some(first);
    let mut rest = others.iter();
    while let Some(mut file) = next.take() {
        if !wanted(&file, options.read_as) {
            let message = format!("{} is a packet trace, the file before is none", file.name);
            return Err(
                Error::usage(message).hint("--flows meters packet traces into flow records")
            );
        }
        metered |= !holds_flow_records(file.head());
        let mut reader = reader(&mut file, options)?;
        loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    learner.push(&record);
                    written.record(&record);
                }
                Ok(None) => break,
                Err(error) => {
                    learner.doubt(Warning::warning("file-damaged", error.to_string()));
                    break;
                }
            }
        }
        let counts = reader.counts().clone();
        let found = doubts(&file_name(Path::new(&file.name)), &counts);
        for doubt in found.into_iter().chain(reader.captured_twice()) {
            learner.doubt(doubt);
        }
        let format = reader.format().name();
        drop(reader);
        let Opened {
            name: file, source, ..
        } = file;
        // The digest covers the whole file, even if the reader stopped early.
        let digest = source.digest().map_err(Error::failed)?;
        provenance.digests.extend(options.digest.then_some(digest));
        files.push(FileCounts {
            file,
            format,
            counts: Counted::Flows(Box::new(counts)),
        });
        next = rest.next().map(|p| Opened::new(p, progress)).transpose()?;
    }
    let unwritten = written.finish();
    let model = learner.finish(name, provenance).map_err(|e| {
        let read = files.iter().map(FileCounts::to_string);
        let replay = metered.then(|| super::REPLAY.to_owned());
        Error::usage(e).hint(
            replay
                .into_iter()
                .chain(read)
                .collect::<Vec<_>>()
                .join("\n"),
        )
    })?;
    Ok(Learnt {
        model: AnyModel::Flows(Box::new(model)),
        files,
        unwritten,
    })
}

/// Doubts that follow from the counts of a file.
pub(super) fn doubts(file: &str, counts: &FlowCounts) -> Vec<Warning> {
    let mut doubts = Vec::new();
    for skip in FlowSkip::ALL {
        let n = counts.skipped(skip).times;
        if n > 0 && skip.is_damage() {
            let text = format!("{file}: {n} skipped: {}", skip.text());
            doubts.push(Warning::warning("records-skipped", text));
        }
    }
    let mut tell = |many: u64, code: &str, what: &str| {
        if many > 0 {
            let text = format!("{file}: {many} of {} {what}", counts.records);
            doubts.push(Warning::warning(code, text));
        }
    };
    tell(counts.backward, "backward", "records end before they begin");
    tell(
        counts.without_start,
        "no-start",
        "records have no start: it is taken to be their end",
    );
    tell(
        counts.divided,
        "packets-of-both",
        "records know the packets of both directions together, not of each: payload is divided by bytes",
    );
    tell(
        counts.ambiguous_sampling,
        "ambiguous-sampling",
        "records do not say which of several samplings is theirs: they count as not sampled",
    );
    if counts.gaps > 0 {
        doubts.push(Warning::warning(
            "export-lost",
            format!(
                "{file}: sequence numbers jump {} times; {} flows, messages or records are missing",
                counts.gaps, counts.missing
            ),
        ));
    }
    doubts
}

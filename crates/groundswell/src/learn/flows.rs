//! Flow records, read or metered.

use std::path::{Path, PathBuf};

use swell_base::{Code, Warning};
use swell_capture::Reader;
use swell_capture::flow::{FlowCounts, FlowReader, FlowSkip, holds_flow_records};
use swell_learn::FlowLearner;
use swell_traffic::Provenance;

use super::counts::{Counted, FileCounts};
use super::ipfix::Ipfix;
use super::options::{Learnt, Options, REPLAY, ReadAs, file_name, in_file};
use super::source::{Opened, Progress};
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
                    learner.doubt(Warning::warning(Code::FileDamaged, error.to_string()));
                    break;
                }
            }
        }
        let counts = reader.counts().clone();
        let short = file_name(Path::new(&file.name));
        let of_capture = reader.doubts().into_iter().map(|d| in_file(&short, d));
        for doubt in doubts(&short, &counts).into_iter().chain(of_capture) {
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
        let replay = metered.then(|| REPLAY.to_owned());
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

/// One message of so many may be late without a warning.
const OUT_OF_ORDER: u64 = 100;

/// Doubts that follow from the counts of a file.
pub(super) fn doubts(file: &str, counts: &FlowCounts) -> Vec<Warning> {
    let mut doubts = Vec::new();
    for skip in FlowSkip::ALL {
        let n = counts.skipped(skip).times;
        if n > 0 && skip.is_damage() {
            let mut text = format!("{file}: {n} skipped: {}", skip.text());
            if let (FlowSkip::BadRow, Some(first)) = (skip, &counts.bad_row) {
                text += &format!("; the first is line {}", first.line);
                text.extend(first.column.iter().map(|name| format!(", column {name}")));
            }
            doubts.push(Warning::warning(Code::RecordsSkipped, text));
        }
    }
    let mut tell = |many: u64, code: Code, what: &str| {
        if many > 0 {
            let text = format!("{file}: {many} of {} {what}", counts.records);
            doubts.push(Warning::warning(code, text));
        }
    };
    tell(
        counts.backward,
        Code::Backward,
        "records end before they begin",
    );
    tell(
        counts.without_start,
        Code::NoStart,
        "records have no start: it is taken to be their end",
    );
    tell(
        counts.divided,
        Code::PacketsOfBoth,
        "records know the packets of both directions together, not of each: payload is divided by bytes",
    );
    tell(
        counts.ambiguous_sampling,
        Code::AmbiguousSampling,
        "records do not say which of several samplings is theirs: they count as not sampled",
    );
    tell(
        counts.before_sampling,
        Code::SamplingUnknown,
        "records came before their exporter said that it samples packets: they count as not sampled",
    );
    tell(
        counts.unknown_sampler,
        Code::SamplingUnknown,
        "records name a sampler of which nothing had been said before: they count as not sampled",
    );
    tell(
        counts.counted_behind,
        Code::CountedBehind,
        "records have \"out\" counters of the same packets as they left the exporter, not of the other direction: they \
         are left out",
    );
    let repeated = counts.skipped(FlowSkip::Repeated).times;
    let messages = counts.messages_total();
    if repeated > 0 {
        doubts.push(Warning::note(
            Code::ExportRepeated,
            format!("{file}: {repeated} of {messages} messages came twice: they count once"),
        ));
    }
    if counts.out_of_order > messages / OUT_OF_ORDER {
        doubts.push(Warning::warning(
            Code::ExportOutOfOrder,
            format!(
                "{file}: {} of {messages} messages have sequence numbers behind those before: they came late, exporters \
                 restarted, or several share an address and an observation domain. Gaps of sequence numbers tell little",
                counts.out_of_order
            ),
        ));
    }
    if counts.gaps > 0 {
        doubts.push(Warning::warning(
            Code::ExportLost,
            format!(
                "{file}: sequence numbers jump {} times; {} flows, messages or records are missing",
                counts.gaps, counts.missing
            ),
        ));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exporters_leave_open_is_told() {
        let codes = |change: fn(&mut FlowCounts)| {
            let mut counts = FlowCounts::default();
            counts.records = 10;
            change(&mut counts);
            let found = doubts("x", &counts).into_iter();
            found.map(|d| (d.code, d.message)).collect::<Vec<_>>()
        };
        assert_eq!(codes(|_| {}), []);
        let told = codes(|c| c.before_sampling = 3);
        assert_eq!(told[0].0, Code::SamplingUnknown);
        assert!(
            told[0].1.starts_with("x: 3 of 10 records came before"),
            "{told:?}"
        );
        assert_eq!(codes(|c| c.unknown_sampler = 3)[0].0, Code::SamplingUnknown);
        assert_eq!(codes(|c| c.counted_behind = 3)[0].0, Code::CountedBehind);
        assert_eq!(codes(|c| c.out_of_order = 1)[0].0, Code::ExportOutOfOrder);
    }

    #[test]
    fn the_first_row_that_does_not_read_is_told() {
        let table = "start,end,src,dst,packets,bytes\n1,2,::1,::2,3,180\n1,2,::1,::2,three,180\n";
        let mut reader = FlowReader::new(table.as_bytes()).unwrap();
        while reader.next_record().unwrap().is_some() {}
        let told = doubts("x.csv", reader.counts());
        let said = "x.csv: 1 skipped: rows that do not read; the first is line 3, column 5";
        assert_eq!(told[0].message, said);
    }

    /// A message that came twice, of two hundred.
    #[test]
    fn copies_of_messages_are_told() {
        let mut process = swell_capture::flow::CollectingProcess::new();
        let exporter = std::net::IpAddr::from([192, 0, 2, 1]);
        for sequence in (0..200u8).chain([190]) {
            // NetFlow 9 without sets.
            let mut message = vec![0; 20];
            (message[1], message[15]) = (9, sequence);
            let read = process.message(exporter, 0, &message, &mut Vec::new());
            read.expect("an empty message");
        }
        let found = doubts("x", process.counts());
        let [told] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (&told.code, told.message.as_str()),
            (
                &Code::ExportRepeated,
                "x: 1 of 201 messages came twice: they count once"
            )
        );
    }
}

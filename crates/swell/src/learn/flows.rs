//! `swell learn` of flow records.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use swell_base::Warning;
use swell_capture::Reader;
use swell_capture::flow::{
    ENOUGH_TO_TELL, FlowCounts, FlowReader, FlowSkip, Metering, PacketSampling, holds_flow_records,
};
use swell_learn::FlowLearner;
use swell_traffic::Provenance;
use swell_traffic::flowlevel::{FlowModel, Options, Profile};

use super::file_name;
use super::ipfix::Ipfix;
use crate::cli::{FlowArgs, FlowProfile};
use crate::fail::Fail;
use crate::source::Source;
use crate::{out, tables};

/// Files of flow records, or packet traces metered, learnt.
pub(crate) struct LearntFlows {
    pub model: FlowModel,
    /// File, format and counts of each.
    pub files: Vec<(String, &'static str, FlowCounts)>,
}

/// A file of which the beginning has been looked at.
pub(crate) struct Opened {
    pub name: String,
    pub source: Source,
    head: Vec<u8>,
}

impl Opened {
    pub(crate) fn new(path: &Path, bar: &indicatif::ProgressBar) -> Result<Opened, Fail> {
        let name = path.display().to_string();
        let failed = |e: std::io::Error| Fail::usage(format!("{name}: {e}"));
        let source = Source::open(path, bar).map_err(failed)?;
        let mut head = Vec::new();
        source
            .clone()
            .take(ENOUGH_TO_TELL as u64)
            .read_to_end(&mut head)
            .map_err(failed)?;
        Ok(Opened { name, source, head })
    }

    /// Its beginning.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether it is to be read as flow records.
    pub(crate) fn is_flows(&self, args: &FlowArgs) -> bool {
        !args.packets && (args.flows || holds_flow_records(&self.head))
    }

    /// All its bytes, those looked at included.
    pub(crate) fn bytes(&mut self) -> impl Read + Send + 'static {
        Cursor::new(std::mem::take(&mut self.head)).chain(self.source.clone())
    }

    fn flow_reader(&mut self, args: &FlowArgs) -> Result<FlowReader<'static>, Fail> {
        if holds_flow_records(&self.head) {
            let name = self.name.clone();
            return FlowReader::named(&name, self.bytes()).map_err(Fail::usage);
        }
        let metering = Metering {
            active_timeout: args.active_timeout,
            inactive_timeout: args.inactive_timeout,
            sampling: match args.sample {
                1 => PacketSampling::All,
                interval => PacketSampling::Random { interval, seed: 1 },
            },
            ..Metering::default()
        };
        let name = self.name.clone();
        let reader = Reader::named(&name, self.bytes()).map_err(Fail::usage)?;
        Ok(FlowReader::metered(reader, metering))
    }
}

/// Reads files, one after the other, into one model. One that breaks off is used as far as it goes, with
/// a doubt in the model.
pub(crate) fn read(
    first: Opened,
    others: &[PathBuf],
    bar: &indicatif::ProgressBar,
    name: &str,
    mut provenance: Provenance,
    args: &FlowArgs,
) -> Result<LearntFlows, Fail> {
    let mut learner = FlowLearner::new(options(args));
    let mut written = Ipfix::new(args.ipfix.as_deref())?;
    let mut files = Vec::new();
    let mut next = Some(first);
    let mut rest = others.iter();
    while let Some(mut file) = next.take() {
        if !file.is_flows(args) {
            let message = format!("{} is a packet trace, the file before is none", file.name);
            return Err(Fail::usage(message).hint("--flows meters packet traces into flow records"));
        }
        let mut reader = file.flow_reader(args)?;
        loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    learner.push(&record);
                    written.record(&record)?;
                }
                Ok(None) => break,
                Err(error) => {
                    learner.doubt(Warning::warning("file-damaged", error.to_string()));
                    break;
                }
            }
        }
        let counts = reader.counts().clone();
        for doubt in doubts(&file_name(Path::new(&file.name)), &counts) {
            learner.doubt(doubt);
        }
        let format = reader.format().name();
        drop(reader);
        let Opened {
            name: file, source, ..
        } = file;
        // Read to the end in any case.
        let digest = source.digest().map_err(Fail::failed)?;
        provenance.digests.extend(args.digest.then_some(digest));
        files.push((file, format, counts));
        next = rest.next().map(|p| Opened::new(p, bar)).transpose()?;
    }
    bar.finish_and_clear();
    written.finish()?;
    let model = learner.finish(name, provenance).map_err(|e| {
        let read = files.iter().map(tables::flows::counts_line);
        Fail::usage(e).hint(read.collect::<Vec<_>>().join("\n"))
    })?;
    Ok(LearntFlows { model, files })
}

/// How a flow-level model is made.
pub(super) fn options(args: &FlowArgs) -> Options {
    Options {
        profile: match args.profile {
            FlowProfile::Fixed => Profile::Fixed,
            FlowProfile::Harpoon => Profile::Harpoon,
        },
        interval: args.interval,
        session_gap: args.session_gap,
        min_file: args.min_file.0,
        capacity: args.table_entries as usize,
        ..Options::default()
    }
}

/// What the counts of a file say against it.
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

/// The progress bar of reading.
pub(crate) fn bar(files: &[PathBuf]) -> indicatif::ProgressBar {
    let total = files
        .iter()
        .map(|p| std::fs::metadata(p).map_or(0, |m| m.len()))
        .sum();
    out::bar(
        total,
        "  reading [{bar:30}] {bytes}/{total_bytes}, {bytes_per_sec}, {eta} to go",
    )
}

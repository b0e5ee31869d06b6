//! Compares every file of flow records in the trace folder with its manifest.

use super::drain;
use crate::folder::{Entry, manifest, traces};
use swell_capture::flow::{FlowReader, FlowSkip, Protocol};

/// The files of flow records in the manifest.
pub fn flow_files(folder: &std::path::Path) -> Vec<Entry> {
    let files: Vec<Entry> = manifest(folder)
        .into_iter()
        .filter(|e| e.file.starts_with("flow/") || e.file.starts_with("derived/netflow/"))
        // Captures of tunnelled packets are excluded.
        .filter(|e| !e.file.contains("akvorado-encap"))
        .collect();
    assert!(files.len() > 50, "only {} files", files.len());
    files
}

/// Files whose manifest counts only messages of one version, although they also contain others.
const MIXED: &str = "flow/sflow-counters-30pdu.pcap";

#[test]
fn messages_and_records_are_as_many_as_the_manifest_says() {
    let Some(folder) = traces() else { return };
    let mut compared = 0;
    for entry in flow_files(&folder)
        .iter()
        .filter(|e| e.file.ends_with(".pcap"))
    {
        let file = &entry.file;
        let reader = FlowReader::open(folder.join(file)).unwrap_or_else(|e| panic!("{e}"));
        let read = drain(reader);
        assert_eq!(read.records.len() as u64, read.counts.records);
        assert!(read.error.is_none(), "{:?}", read.error);
        let messages = entry
            .before(" messages")
            .expect("the manifest counts messages");
        assert_eq!(read.counts.messages_total(), messages, "{file}");
        for reason in FlowSkip::ALL {
            let skipped = read.counts.skipped(reason);
            let expected = !reason.is_damage() || reason == FlowSkip::NoTemplate;
            assert!(skipped.times == 0 || expected, "{file}: {}", reason.text());
        }
        if file == MIXED {
            assert_eq!(read.counts.messages(Protocol::NetFlow5), 5);
            assert_eq!(read.counts.messages(Protocol::Sflow5), 25);
        }
        if let Some(records) = entry.before(" records") {
            assert_eq!(read.counts.records, records, "{file}");
        }
        compared += 1;
    }
    assert!(compared > 40, "only {compared} files");
}

//! Compares results with other programs: with tshark for messages in captures, and with nfdump's own totals.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::drain;
use super::walk::flow_files;
use crate::folder::traces;
use swell_capture::flow::FlowReader;
use swell_capture::{Reader, Transport};
use swell_needs::programs;

/// Destination ports of the UDP datagrams of a capture.
fn ports(path: &Path) -> BTreeSet<u16> {
    let mut reader = Reader::open(path).unwrap_or_else(|e| panic!("{e}"));
    let mut ports = BTreeSet::new();
    while let Ok(Some(packet)) = reader.next_packet() {
        if let Transport::Udp { dst_port, .. } = packet.transport {
            ports.insert(dst_port);
        }
    }
    ports
}

/// Sums over a capture's NetFlow and IPFIX records according to tshark: packets and bytes of both directions.
fn tshark(path: &Path) -> (u64, u64) {
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(path)
        .args(["-T", "fields", "-E", "aggregator=,"]);
    for port in ports(path) {
        command.args(["-d", &format!("udp.port=={port},cflow")]);
    }
    for field in ["cflow.packets", "cflow.octets"] {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark is installed");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let mut sums = [0, 0];
    for line in text.lines() {
        for (sum, column) in sums.iter_mut().zip(line.split('\t')) {
            *sum += column
                .split(',')
                .filter(|n| !n.is_empty())
                .map(|n| n.parse::<u64>().expect("a number"))
                .sum::<u64>();
        }
    }
    (sums[0], sums[1])
}

/// Packets and bytes according to this crate.
fn ours(path: &Path) -> (u64, u64) {
    let read = drain(FlowReader::open(path).unwrap_or_else(|e| panic!("{e}")));
    assert!(read.counts.records > 0, "{}", path.display());
    (read.counts.packets, read.counts.bytes)
}

/// Packets and bytes that tshark leaves out: data that arrive before their template, and the data after the templates
/// in the first message, because its header counts only the two templates.
const BEYOND_TSHARK: (&str, u64, u64) = ("v9-s100.pcap", 18 + 4, 1453 + 380);

#[test]
fn packets_and_bytes_are_those_of_tshark() {
    let Some(folder) = traces() else { return };
    if !programs(&["tshark"]) {
        return;
    }
    let mut compared = 0;
    for entry in flow_files(&folder) {
        let Some(name) = entry.file.strip_prefix("derived/netflow/") else {
            continue;
        };
        if !name.ends_with(".pcap") {
            continue;
        }
        let path = folder.join(&entry.file);
        let (packets, bytes) = tshark(&path);
        let (more_packets, more_bytes) = match BEYOND_TSHARK {
            (file, p, b) if file == name => (p, b),
            _ => (0, 0),
        };
        let all = (packets + more_packets, bytes + more_bytes);
        assert_eq!(ours(&path), all, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 7);
}

/// Exports of sampled frames, which tshark does not treat as flows.
const SAMPLED_FRAMES: [&str; 4] = [
    "datalink",
    "ethernet-over-mpls",
    "ipfix-srv6",
    "juniper-cpid",
];

/// Many exporters in one capture, in the order of file names, so that most data arrive before their templates. tshark
/// does not wait for templates, so it reads everything twice; the second time it knows them.
#[test]
fn data_before_their_templates_are_what_tshark_reads_behind_them() {
    let Some(folder) = traces() else { return };
    if !programs(&["tshark"]) {
        return;
    }
    let mut capture = Vec::new();
    for entry in flow_files(&folder) {
        let sampled = SAMPLED_FRAMES.iter().any(|name| entry.file.contains(name));
        if entry.file.starts_with("flow/akvorado-netflow/") && !sampled {
            let file = std::fs::read(folder.join(&entry.file)).expect("a file of the manifest");
            let header = if capture.is_empty() { 0 } else { 24 };
            capture.extend(&file[header..]);
        }
    }
    let [once, twice] = [(); 2].map(|()| tempfile::NamedTempFile::new().expect("a file"));
    std::fs::write(once.path(), &capture).expect("room for it");
    capture.extend_from_within(24..);
    std::fs::write(twice.path(), &capture).expect("room for it");
    let (first, both) = (tshark(once.path()), tshark(twice.path()));
    let (packets, bytes) = (both.0 - first.0, both.1 - first.1);
    assert!(packets > first.0, "data wait for templates");
    assert_eq!(ours(once.path()), (packets, bytes));
}

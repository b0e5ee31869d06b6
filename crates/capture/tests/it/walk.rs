//! Compares every file of the trace folder with the results of capinfos and tshark.

use crate::folder::{ARCHIVES, made, manifest, plain, traces, untar};
use std::collections::BTreeSet;
use swell_capture::{Counts, Error, Problem, Reader, Transport};

#[derive(Default)]
struct Seen {
    counts: Counts,
    interfaces: usize,
    tcp_pairs: BTreeSet<Pair>,
    udp_pairs: BTreeSet<Pair>,
    tcp_payload: u64,
    error: Option<Error>,
}

type Pair = [(std::net::IpAddr, u16); 2];

fn drain(opened: Result<Reader<'_>, Error>) -> Seen {
    let mut seen = Seen::default();
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(e) => {
            seen.error = Some(e);
            return seen;
        }
    };
    loop {
        match reader.next_packet() {
            Ok(Some(p)) => {
                let pair = |a, b| {
                    let mut pair = [(p.src, a), (p.dst, b)];
                    pair.sort();
                    pair
                };
                match p.transport {
                    Transport::Tcp(t) => {
                        seen.tcp_payload += u64::from(t.payload);
                        seen.tcp_pairs.insert(pair(t.src_port, t.dst_port));
                    }
                    Transport::Udp {
                        src_port, dst_port, ..
                    } => {
                        seen.udp_pairs.insert(pair(src_port, dst_port));
                    }
                    _ => {}
                }
            }
            Ok(None) => break,
            Err(e) => {
                seen.error = Some(e);
                break;
            }
        }
    }
    seen.interfaces = reader.interfaces().len();
    seen.counts = reader.counts().clone();
    let c = &seen.counts;
    assert_eq!(c.records, c.packets + c.skipped_total());
    let kinds = c.tcp + c.udp + c.icmp + c.fragments + c.other;
    assert_eq!(c.packets, kinds + c.short_transport + c.bad_transport);
    seen
}

/// Files in unsupported formats. The error names the format where it is recognisable.
fn is_foreign(file: &str) -> bool {
    const SUFFIXES: [&str; 12] = [
        ".tsv",
        ".v9",
        ".v5-s10",
        ".ipfix",
        ".nfdump",
        ".binetflow.gz",
        ".json.gz",
        ".log",
        ".log.gz",
        ".csv.gz",
        ".tsh.gz",
        ".netm.gz",
    ];
    SUFFIXES.iter().any(|s| file.ends_with(s)) || file.contains(".erf.") || file.contains(".epeek")
}

/// Captures that correctly end in an error, because their last packet is cut or they were damaged on purpose: file,
/// error text, and number of packets before it.
const DAMAGED: [(&str, &str, u64); 4] = [
    (
        "link/kakaotalk-sll-76s.pcap",
        "at byte 487064 (packet 3204): the file ends inside a packet record",
        3203,
    ),
    (
        "malformed/pcapfix-test_damaged.pcap",
        "at byte 114 (packet 2): the file ends inside a packet record",
        1,
    ),
    (
        "malformed/pcapfix-test_without_pcap_header.pcap",
        "not a pcap, pcapng or snoop capture",
        0,
    ),
    (
        "malformed/ndpi-fuzz-2021-10-13.pcap",
        "at byte 237 (packet 2): the file ends inside a packet record header",
        1,
    ),
];

/// Captures under `malformed/` that are read without an error or skipped record: any damage is above the transport
/// header.
const FINE: [&str; 2] = [
    "malformed/pcapfix-test.pcap",
    "malformed/pcapfix-test_2018.pcap",
];

/// Captures in which our number of connections (pairs of address and port) differs from tshark's streams, and why.
const OTHER_STREAMS: [(&str, &str); 17] = [
    // tshark starts a new stream if a pair is reused.
    ("link/cc-lab-665s.pcap.zst", "ports used again"),
    ("tcp-analysis/6syns.dmp.gz", "ports used again"),
    ("tcp-analysis/badsyns.dmp.gz", "ports used again"),
    ("tcp-analysis/fast_reuse.dmp.gz", "ports used again"),
    (
        "derived/composite-access-link-5min.pcap.zst",
        "ports used again, and tunnels",
    ),
    // tshark follows tunnels.
    ("linklayer/geneve.pcap", "tunnel"),
    ("linklayer/6in4.pcap", "tunnel"),
    ("linklayer/vxlan-ndpi.pcap", "tunnel"),
    ("linklayer/bigtcp-ipv6-vxlan.pcap", "tunnel"),
    ("linklayer/gre.pcapng", "tunnel"),
    // tshark decodes more link layers.
    ("tcp-analysis/single_byte_rexmit.dmp.gz", "link type"),
    ("linklayer/ipoib.pcap", "link type"),
    ("linklayer/pktap.pcap", "link type"),
    ("linklayer/nflog.pcap", "link type"),
    ("linklayer/arcnet.pcap", "link type"),
    ("linklayer/ppi-nanosecond.pcap", "link type"),
    ("linklayer/frame-relay.pcap", "link type"),
];

/// Records with a time before that of the previous record.
fn backward_steps(path: &std::path::Path) -> u64 {
    let mut reader = Reader::open(path).unwrap_or_else(|e| panic!("{e}"));
    let (mut steps, mut before) = (0, i64::MIN);
    while let Ok(Some(time)) = reader.next_frame(|f| f.time) {
        steps += u64::from(time < before);
        before = time;
    }
    steps
}

#[test]
fn every_file_of_the_folder_is_read_or_refused_with_a_reason() {
    let Some(folder) = traces() else { return };
    let (mut captures, mut streams, mut payloads) = (0, 0, 0);
    for entry in manifest(&folder) {
        let file = entry.file.as_str();
        if ARCHIVES.iter().any(|(archive, _)| *archive == file) {
            continue;
        }
        let seen = drain(Reader::open(folder.join(file)));
        let error = seen.error.map(|e| e.to_string());
        let counts = seen.counts;
        if is_foreign(file) {
            let error = error.unwrap_or_default();
            assert!(
                error.contains("not a pcap, pcapng or snoop capture"),
                "{file}: {error}"
            );
            continue;
        }
        captures += 1;
        if let Some((_, words, records)) = DAMAGED.iter().find(|d| d.0 == file) {
            let message = error.unwrap_or_default();
            assert!(message.contains(words), "{file}: {message}");
            assert_eq!(counts.records, *records, "{file}");
        } else {
            assert_eq!(error, None, "{file}");
            if file.starts_with("malformed/") {
                assert_eq!(
                    counts.skipped_total() == 0,
                    FINE.contains(&file),
                    "{file}: {counts:?}"
                );
            }
        }
        // Packet counts, snap-length cuts, backward steps and interfaces, from capinfos and tshark.
        let Some(records) = entry.before("pk") else {
            continue;
        };
        assert_eq!(counts.records, records, "{file}");
        assert_eq!(
            counts.cut,
            entry.before("cut packets").unwrap_or(0),
            "{file}"
        );
        // tshark interprets fractions above 2^31 as negative, so that time steps back. Here they count as odd times.
        if file == "linklayer/nanosecond-invalid-ts.pcap" {
            assert_eq!(
                (counts.odd_times, backward_steps(&folder.join(file))),
                (2, 0)
            );
        } else {
            let steps = entry.before("backward time steps").unwrap_or(0);
            assert_eq!(backward_steps(&folder.join(file)), steps, "{file}");
        }
        // This file describes ten interfaces; the manifest lists the two with packets.
        if file != "linklayer/gre.pcapng" {
            let interfaces = entry.before("interfaces").unwrap_or(1);
            assert_eq!(seen.interfaces as u64, interfaces, "{file}");
        }
        let other = OTHER_STREAMS.iter().find(|(other, _)| *other == file);
        // Payload according to header lengths, regardless of the snap length: megabytes with three decimals.
        if let Some(text) = entry.text_behind("TCP payload")
            && !other.is_some_and(|(_, why)| why.contains("tunnel"))
        {
            payloads += 1;
            let megabytes: f64 = text.trim_end_matches(" MB").parse().expect("a number");
            let thousands = (megabytes * 1000.0).round() as u64;
            assert_eq!((seen.tcp_payload + 500) / 1000, thousands, "{file}: {text}");
        }
        if other.is_none() {
            streams += 1;
            let tcp = entry.behind("TCP").unwrap_or(0);
            let udp = entry.behind("UDP").unwrap_or(0);
            assert_eq!(seen.tcp_pairs.len() as u64, tcp, "{file}: TCP");
            assert_eq!(seen.udp_pairs.len() as u64, udp, "{file}: UDP");
        }
    }
    let least = if made(&folder) { [6; 3] } else { [151, 81, 11] };
    assert!(
        captures >= least[0] && streams >= least[1] && payloads >= least[2],
        "{captures} captures, {streams} and {payloads} compared"
    );
}

#[test]
fn every_capture_in_the_archives_is_read_or_refused_with_a_reason() {
    let Some(folder) = traces().filter(|folder| !made(folder)) else {
        return;
    };
    for (archive, captures) in ARCHIVES {
        let files = untar(&plain(&folder.join(archive)));
        assert_eq!(files.len(), captures, "{archive}");
        for (name, bytes) in files {
            let seen = drain(Reader::named(&name, &bytes[..]));
            match seen.error {
                None => {}
                // A second section of a future version, as intended by the conformance suite.
                Some(e) if name.ends_with("test901.pcapng") => {
                    assert!(
                        matches!(e.problem, Problem::Version { major: 2, .. }),
                        "{e}"
                    );
                    assert_eq!(seen.counts.records, 1, "{e}");
                }
                Some(e) => panic!("{e}"),
            }
        }
    }
}

//! Every file of flow records in the folder of real captures gives a model, or a reason why not.
#![expect(
    clippy::disallowed_methods,
    reason = "the traces lie where the tester has them"
)]

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::common::trace;
use swell_capture::Reader;
use swell_capture::flow::{
    ENOUGH_TO_TELL, FlowReader, FlowSkip, Metering, PacketSampling, holds_flow_records,
};
use swell_learn::FlowLearner;
use swell_traffic::Provenance;
use swell_traffic::flowlevel::{FlowModel, Options};

fn folder() -> Option<PathBuf> {
    trace("")
}

fn files(under: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(under).expect("a folder that is there") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
    found.sort();
}

fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    let file = File::open(path).expect("it opens");
    file.take(ENOUGH_TO_TELL as u64)
        .read_to_end(&mut head)
        .expect("it reads");
    head
}

/// The model, and whether there must be one: whether a record certainly contains a file or datagrams.
fn learn(mut reader: FlowReader<'_>) -> (Result<FlowModel, String>, bool) {
    let mut learner = FlowLearner::new(Options::default());
    let mut certain = false;
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                learner.push(&record);
                // Headers of 74 bytes are Ethernet, IPv6 and TCP; 12 bytes are options.
                let least = record.packets.saturating_mul(74 + 12) + 100;
                certain |= match record.protocol {
                    6 => record.bytes > least,
                    17 => record.packets > 0,
                    _ => false,
                };
            }
            Ok(None) => break,
            Err(error) => return (Err(error.to_string()), certain),
        }
    }
    let skips: Vec<&str> = FlowSkip::ALL
        .into_iter()
        .filter(|&s| reader.counts().skipped(s).times > 0)
        .map(FlowSkip::text)
        .collect();
    let model = learner
        .finish("folder", Provenance::default())
        .map_err(|e| format!("{e}; skipped: {}", skips.join(", ")));
    (model, certain)
}

#[test]
fn every_file_gives_a_model_or_a_reason() {
    let Some(folder) = folder() else { return };
    let mut exports = Vec::new();
    files(&folder.join("flow"), &mut exports);
    files(&folder.join("derived/netflow"), &mut exports);
    let mut models = 0;
    for path in &exports {
        let name = path.display();
        let (result, certain) = learn(FlowReader::open(path).expect("all of them are read"));
        match result {
            Ok(model) => {
                models += 1;
                let back = FlowModel::from_slice(model.to_json().as_bytes());
                assert_eq!(back.expect("read back"), model, "{name}");
            }
            Err(why) => {
                assert!(!certain, "{name}: {why}");
                assert!(why.contains("flow records"), "{name}: {why}");
            }
        }
    }
    assert!(models >= 32, "{models} models of {} files", exports.len());
}

#[test]
fn captures_of_exports_are_told_from_captures_of_packets() {
    let Some(folder) = folder() else { return };
    let mut packets = Vec::new();
    for part in ["link", "proto", "tcp-analysis", "flow/akvorado-encap"] {
        files(&folder.join(part), &mut packets);
    }
    packets.push(folder.join("derived/composite-access-link-5min.pcap.zst"));
    for path in packets {
        assert!(!holds_flow_records(&head(&path)), "{}", path.display());
    }
    let mut exports = Vec::new();
    for part in ["flow", "derived/netflow"] {
        files(&folder.join(part), &mut exports);
    }
    for path in exports {
        if !path.to_string_lossy().contains("encap/") {
            assert!(holds_flow_records(&head(&path)), "{}", path.display());
        }
    }
}

/// Against tshark's counts (the traces' README): 1091 connections with a full handshake in 1588 streams,
/// 20.315 MB of payload. Headers are assumed to have no options here.
#[test]
fn a_metered_trace_gives_its_connections() {
    let Some(folder) = folder() else { return };
    let path = folder.join("derived/composite-access-link-5min.pcap.zst");
    let reader = Reader::open(&path).expect("it opens");
    let (model, _) = learn(FlowReader::metered(reader, Metering::default()));
    let tcp = model.expect("a model").tcp;
    let (connections, bytes) = (tcp.down.count(), tcp.up.sum() + tcp.down.sum());
    assert!((1091..1588).contains(&connections), "{connections}");
    let share = bytes as f64 / 20.315e6;
    assert!((1.0..1.03).contains(&share), "{share}");
}

/// The composite trace metered packet by packet, and sampled one in ten many times: estimates scatter
/// around those of all packets as their errors say. A single sampling has some hundred SYNs, so its error
/// is about 10 %.
#[test]
fn sampled_and_unsampled_records_of_a_trace_agree() {
    let Some(path) = trace("derived/composite-access-link-5min.pcap.zst") else {
        return;
    };
    let model = |sampling| {
        let reader = Reader::open(&path).expect("it opens");
        let metering = Metering {
            sampling,
            ..Metering::default()
        };
        learn(FlowReader::metered(reader, metering))
            .0
            .expect("a model")
    };
    let whole = model(PacketSampling::All);
    let payload = |m: &FlowModel| (m.tcp.up.sum() + m.tcp.down.sum()) as f64;
    let seeds = 20u32;
    let (mut counts, mut bytes, mut error, mut inside) = (0.0, 0.0, 0.0, 0);
    for seed in 0..seeds {
        let some = model(PacketSampling::Random {
            interval: 10,
            seed: seed.into(),
        });
        let known = some.sampled[0].connections.expect("SYNs were sampled");
        counts += known.value / f64::from(seeds);
        bytes += payload(&some) / f64::from(seeds);
        error = known.error;
        let [low, high] = known.interval();
        inside += u32::from(low <= whole.tcp.down.count() as f64 && 1_091.0 <= high);
    }
    // tshark counts 1091 connections with a full handshake. Others began before their capture, and count
    // if one of their packets is sampled. `files` is the number of connections with a file among all
    // packets.
    let near = 3.0 * error / f64::from(seeds).sqrt();
    let files = whole.tcp.down.count() as f64;
    assert!(
        (1_091.0 - near..files + near).contains(&counts),
        "{counts} {files} {near}"
    );
    assert!(inside >= 16, "{inside} of {seeds} intervals");
    let share = bytes / payload(&whole);
    assert!((share - 1.0).abs() < 0.02, "{share}");
}

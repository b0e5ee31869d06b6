//! Tests of metering: no packets are lost between capture and records, time-outs are respected, and records written
//! as IPFIX can be read back unchanged.

use std::process::Command;

use super::drain;
use crate::build::{MICROS, Order, ethernet, pcap_header, pcap_record, udp, v4, web_frames};
use crate::folder::traces;
use swell_base::{Code, Dur};
use swell_capture::Reader;
use swell_capture::flow::{
    EndReason, FlowDirection, FlowReader, FlowRecord, FlowSkip, IpfixWriter, Layer, Metering,
    MeteringProcess, PacketSampling, Reverse, Sampling, SamplingSource,
};

/// A datagram at a second, from a port.
fn at(second: i64, port: u16) -> FlowRecord {
    FlowRecord {
        first: second * 1_000_000_000,
        last: second * 1_000_000_000,
        packets: 1,
        bytes: 33,
        src_port: port,
        protocol: 17,
        ..FlowRecord::BLANK
    }
}

fn run(options: Metering, seconds: &[i64]) -> Vec<FlowRecord> {
    let (mut meter, mut out) = (MeteringProcess::new(options), Vec::new());
    for second in seconds {
        meter.packet(at(*second, 53), &mut out);
    }
    meter.finish(&mut out);
    assert_eq!(meter.open(), 0);
    let packets: u64 = out.iter().map(|r| r.packets).sum();
    assert_eq!(packets, meter.counts().packets);
    out
}

#[test]
fn time_outs_split_a_flow_where_they_say() {
    let said = |records: Vec<FlowRecord>| -> Vec<(u64, i64, EndReason)> {
        let seconds = |r: &FlowRecord| (r.last - r.first) / 1_000_000_000;
        records
            .iter()
            .map(|r| (r.packets, seconds(r), r.end))
            .collect()
    };
    let options = Metering {
        active_timeout: Dur::from_secs(30),
        ..Metering::default()
    };
    assert_eq!(
        said(run(options, &[0, 10, 20, 29, 30, 46])),
        [
            (4, 29, EndReason::ActiveTimeout),
            (1, 0, EndReason::IdleTimeout),
            (1, 0, EndReason::ForcedEnd)
        ]
    );
    // Silence of exactly fifteen seconds does not exceed the time-out of fifteen.
    assert_eq!(
        said(run(options, &[0, 15])),
        [(2, 15, EndReason::ForcedEnd)]
    );
}

/// One stamp of the year 2100 among others, and captures joined in the wrong order: flows have their true lengths.
#[test]
fn wrong_stamps_and_a_clock_that_was_set_leave_flows_as_they_were() {
    let spans = |seconds: &[i64]| -> Vec<(u64, i64, i64)> {
        let records = run(Metering::default(), seconds);
        let span = |r: &FlowRecord| (r.packets, r.first / 1_000_000_000, r.last / 1_000_000_000);
        records.iter().map(span).collect()
    };
    let then = 4_102_444_800;
    let hour = |from: i64| (0..720).map(move |i| from + 5 * i);
    // The packet counts at the time of the one before.
    let mut seconds: Vec<i64> = hour(36_000).collect();
    seconds.insert(100, then);
    let plain = spans(&hour(36_000).collect::<Vec<_>>());
    let with = spans(&seconds);
    assert_eq!(plain.len(), 2, "the active time-out");
    assert_eq!((with[0].1, with[0].2), (plain[0].1, plain[0].2));
    assert_eq!(with[0].0, plain[0].0 + 1);
    assert_eq!(with[1], plain[1]);
    // So does the last of all. The clock may be set for good, or far back for once.
    assert_eq!(spans(&[5, 6, then]), [(3, 5, 6)]);
    assert_eq!(
        spans(&[5, 6, then, then + 1]),
        [(2, 5, 6), (2, then, then + 1)]
    );
    assert_eq!(spans(&[50, 51, 1, 52]), [(4, 50, 52)]);
    // Two captures, the later one first: packets that show the step count at the end of the first.
    let joined: Vec<i64> = hour(36_000).chain(hour(32_400)).collect();
    let found = spans(&joined);
    let last = |r: &(u64, i64, i64)| r.2;
    assert_eq!(
        found.iter().map(last).collect::<Vec<_>>(),
        [37_795, 39_595, 34_230, 35_995]
    );
    assert_eq!(found.iter().map(|r| r.0).sum::<u64>(), 1_440);
    assert_eq!(found[2].1, 32_435);
}

/// Frames without IP are no damage, and other link types are told as such. An error has the name of the file.
#[test]
fn a_metered_capture_keeps_its_doubts_and_its_name() {
    let arp = ethernet(0x0806, &[0; 28]);
    let datagram = ethernet(0x0800, &v4(17, &udp(b"hello")));
    let codes = |link: u32, frames: &[Vec<u8>]| {
        let mut file = pcap_header(Order::Little, MICROS, 4, 65535, link);
        for (i, frame) in frames.iter().enumerate() {
            let len = frame.len() as u32;
            file.extend(pcap_record(Order::Little, [i as u32, 0, len, len], frame));
        }
        // Half a record.
        file.extend([1, 0, 0]);
        let packets = Reader::named("some.pcap", &file[..]).unwrap();
        let mut reader = FlowReader::metered(packets, Metering::default());
        let error = loop {
            match reader.next_record() {
                Ok(found) => assert!(found.is_some(), "the file is cut"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.starts_with("some.pcap: at byte "), "{error}");
        let codes: Vec<Code> = reader.doubts().into_iter().map(|w| w.code).collect();
        let counts = reader.counts();
        let damage = |s: &FlowSkip| s.is_damage() && counts.skipped(*s).times > 0;
        assert_eq!(FlowSkip::ALL.into_iter().find(damage), None);
        (codes, counts.skipped(FlowSkip::NoIp).times)
    };
    assert_eq!(codes(1, &[datagram.clone(), arp.clone()]), (vec![], 1));
    let radiotap = codes(127, &[datagram, arp]);
    assert_eq!(radiotap, (vec![Code::CaptureLinkType], 2));
}

#[test]
fn one_in_n_is_one_in_n() {
    let seconds: Vec<i64> = (0..10_000).map(|i| i / 1000).collect();
    let metered = |sampling| {
        let options = Metering {
            sampling,
            ..Metering::default()
        };
        let records = run(options, &seconds);
        assert_eq!(records[0].sampling.source, SamplingSource::Metering);
        records.iter().map(|r| r.packets).sum::<u64>()
    };
    let random = |seed| {
        metered(PacketSampling::Random {
            interval: 100,
            seed,
        })
    };
    // Binomial with mean 100 and standard deviation 9.95; the bounds are five standard deviations.
    assert!((50..=150).contains(&random(1)));
    assert_eq!(random(2), random(2));
}

#[test]
fn open_flows_are_bounded_and_the_oldest_goes() {
    let options = Metering {
        most_open: 3,
        ..Metering::default()
    };
    let (mut meter, mut out) = (MeteringProcess::new(options), Vec::new());
    for port in 0..10u16 {
        meter.packet(at(0, port), &mut out);
        assert!(meter.open() <= 3);
    }
    assert_eq!(meter.counts().evicted, 7);
    assert!(out.iter().all(|r| r.end == EndReason::LackOfResources));
    let ports: Vec<u16> = out.iter().map(|r| r.src_port).collect();
    assert_eq!(ports, [0, 1, 2, 3, 4, 5, 6]);
}

/// A capture with every kind of packet, and with frames without IP.
fn capture() -> Vec<u8> {
    let mut file = pcap_header(Order::Little, MICROS, 4, 65535, 1);
    for (i, frame) in web_frames().iter().cycle().take(60).enumerate() {
        let len = frame.len() as u32;
        file.extend(pcap_record(
            Order::Little,
            [i as u32 * 7, i as u32, len, len],
            frame,
        ));
    }
    file
}

#[test]
fn written_records_read_back_the_same() {
    let file = capture();
    let packets = Reader::new(&file[..]).unwrap();
    let mut metered = drain(FlowReader::metered(packets, Metering::default())).records;
    assert!(metered.len() > 3);
    // Another domain, both directions, and a sampling that changes.
    metered[1].exporter = 7;
    metered[2].reverse = Some(swell_capture::flow::Reverse {
        first: metered[2].first,
        last: metered[2].last,
        packets: 5,
        bytes: 1 << 40,
        tcp_flags: None,
    });
    metered[2].sampling.interval = 100.0;
    let mut writer = IpfixWriter::new(Vec::new());
    for record in &metered {
        writer.record(record).unwrap();
    }
    let written = writer.finish().unwrap();
    let read = drain(FlowReader::new(&written[..]).unwrap());
    assert!(read.error.is_none(), "{:?}", read.error);
    assert_eq!(read.counts.gaps, 0);
    assert_eq!(read.records.len(), metered.len());
    for (a, b) in metered.iter().zip(&read.records) {
        // Exporters are numbered in order of appearance. Sampling is now that of the domain.
        let same = FlowRecord {
            exporter: a.exporter,
            direction: a.direction,
            sampling: a.sampling,
            ..*b
        };
        assert_eq!(*a, same);
        assert_eq!(a.sampling.interval, b.sampling.interval);
    }
}

/// Every kind of counters is read back as it was, in messages that a datagram can carry.
#[test]
fn what_bytes_cover_is_written_and_read() {
    let back = Reverse {
        first: 1_700_000_000_000_000_003,
        last: 1_700_000_004_000_000_007,
        packets: 20,
        bytes: 30_000,
        tcp_flags: Some(0x12),
    };
    let one = FlowRecord {
        first: 1_700_000_000_000_000_001,
        last: 1_700_000_005_000_000_009,
        packets: 10,
        bytes: 5_000,
        protocol: 6,
        tos: Some(4),
        direction: FlowDirection::Egress,
        ..FlowRecord::BLANK
    };
    let mut all = Vec::new();
    for layer in [Layer::Network, Layer::Link, Layer::Payload] {
        for src in [one.src, [0u16, 0, 0, 0, 0, 0, 0, 1].into()] {
            for reverse in [None, Some(back)] {
                let dst = src;
                let record = FlowRecord {
                    src,
                    dst,
                    layer,
                    reverse,
                    ..one
                };
                all.push(record);
                let payload =
                    (layer == Layer::Network && reverse.is_some()).then_some([4_000, 29_000]);
                all.push(FlowRecord { payload, ..record });
            }
        }
    }
    // Templates are mixed as much as they can be, and messages of different lengths are full.
    let all: Vec<FlowRecord> = (0..2_000).map(|i| all[i * i % all.len()]).collect();
    let mut writer = IpfixWriter::new(Vec::new());
    all.iter().for_each(|r| writer.record(r).unwrap());
    let written = writer.finish().unwrap();
    let read = drain(FlowReader::new(&written[..]).unwrap());
    assert!(read.error.is_none(), "{:?}", read.error);
    assert_eq!(read.records.len(), all.len());
    for (a, b) in all.iter().zip(&read.records) {
        assert_eq!(a, b);
    }
    let mut at = 0;
    while let Some(&[_, _, a, b]) = written.get(at..).and_then(|m| m.first_chunk()) {
        let len = usize::from(u16::from_be_bytes([a, b]));
        assert!(len <= 1_400, "{len}");
        at += len;
    }
}

/// Counters that a collector multiplied are written as they were sampled.
#[test]
fn multiplied_counters_are_written_as_those_of_samples() {
    let sampling = Sampling {
        interval: 100.0,
        source: SamplingSource::Record,
        scaled: true,
    };
    let record = FlowRecord {
        packets: 300,
        bytes: 45_000,
        sampling,
        ..FlowRecord::BLANK
    };
    let mut writer = IpfixWriter::new(Vec::new());
    writer.record(&record).unwrap();
    let written = writer.finish().unwrap();
    let read = drain(FlowReader::new(&written[..]).unwrap()).records[0];
    assert_eq!((read.packets, read.bytes), (3, 450));
    assert_eq!(
        (read.sampling.interval, read.sampling.scaled),
        (100.0, false)
    );
}

#[test]
fn a_cut_or_changed_file_never_panics_and_gives_a_prefix_or_an_error() {
    let file = capture();
    let packets = Reader::new(&file[..]).unwrap();
    let mut writer = IpfixWriter::new(Vec::new());
    for record in drain(FlowReader::metered(packets, Metering::default())).records {
        writer.record(&record).unwrap();
    }
    let written = writer.finish().unwrap();
    let all = drain(FlowReader::new(&written[..]).unwrap()).records;
    for end in 0..written.len() {
        if let Ok(reader) = FlowReader::new(&written[..end]) {
            let read = drain(reader);
            assert_eq!(read.records[..], all[..read.records.len()], "cut at {end}");
        }
    }
    for i in 0..written.len() {
        for bit in [0x01, 0x80] {
            let mut changed = written.clone();
            changed[i] ^= bit;
            if let Ok(reader) = FlowReader::new(&changed[..]) {
                drain(reader);
            }
        }
    }
}

/// A real capture is metered and written. The records have all its packets and bytes, and tshark finds all of them in
/// the file.
#[test]
fn a_capture_metered_loses_nothing_and_tshark_reads_what_is_written() {
    let Some(folder) = traces() else { return };
    let path = folder.join("link/skype-169s.pcap");
    let mut reader = Reader::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let (mut packets, mut bytes) = (0, 0);
    while let Some(packet) = reader.next_packet().unwrap_or_else(|e| panic!("{e}")) {
        packets += 1;
        bytes += u64::from(packet.ip_len);
    }
    let again = Reader::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let read = drain(FlowReader::metered(again, Metering::default()));
    assert_eq!((read.counts.packets, read.counts.bytes), (packets, bytes));
    if !swell_needs::programs(&["tshark"]) {
        return;
    }
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let mut writer = IpfixWriter::new(file.as_file());
    for record in &read.records {
        writer.record(record).unwrap();
    }
    writer.finish().unwrap();
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file.path())
        .args(["-T", "fields", "-E", "aggregator=,", "-e", "cflow.packets"])
        .output()
        .expect("tshark is there");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let counts: Vec<u64> = text
        .split([',', '\n'])
        .filter(|n| !n.is_empty())
        .map(|n| n.parse().expect("a number"))
        .collect();
    assert_eq!(counts.len(), read.records.len());
    assert_eq!(counts.iter().sum::<u64>(), packets);
}

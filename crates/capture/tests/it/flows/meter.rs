//! Tests of metering: no packets are lost between capture and records, time-outs are respected, and records written
//! as IPFIX can be read back unchanged.

use std::process::Command;

use super::drain;
use super::oracle::installed;
use crate::build::{MICROS, Order, ethernet, pcap_header, pcap_record, udp, v4, v6, web_frames};
use crate::folder::traces;
use swell_base::Dur;
use swell_capture::Reader;
use swell_capture::flow::{
    EndReason, FlowReader, FlowRecord, IpfixWriter, Metering, MeteringProcess, PacketSampling,
    SamplingSource,
};
use swell_capture::{Frame, LinkType};

/// A datagram at a second.
fn at(second: i64, data: &[u8]) -> Frame<'_> {
    Frame {
        time: second * 1_000_000_000,
        interface: 0,
        heading: swell_capture::Heading::Unknown,
        link: LinkType::ETHERNET,
        wire_len: data.len() as u32,
        data,
    }
}

fn run(options: Metering, seconds: &[i64]) -> Vec<FlowRecord> {
    let data = ethernet(0x0800, &v4(17, &udp(b"hello")));
    let (mut meter, mut out) = (MeteringProcess::new(options), Vec::new());
    for second in seconds {
        meter.frame(&at(*second, &data), &mut out).unwrap();
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
    assert_eq!(metered(PacketSampling::Systematic(100)), 100);
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
        let mut datagram = udp(b"x");
        datagram[..2].copy_from_slice(&port.to_be_bytes());
        let data = ethernet(0x86dd, &v6(17, &datagram));
        meter.frame(&at(0, &data), &mut out).unwrap();
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
    if !installed("tshark") {
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

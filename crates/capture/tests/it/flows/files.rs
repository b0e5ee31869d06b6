//! Compares nfdump files with nfdump's own totals, and text tables with the sums of their rows.

use std::collections::BTreeMap;
use std::process::Command;

use super::drain;
use crate::folder::{plain, traces};
use swell_capture::flow::{FlowProblem, FlowReader, FlowSkip, Layer, SamplingSource};

#[test]
fn nfdump_files_hold_what_nfdump_counted() {
    let Some(folder) = traces() else { return };
    if !swell_needs::programs(&["nfdump"]) {
        return;
    }
    for file in [
        "derived/netflow/nfcapd.v9",
        "derived/netflow/nfcapd.v5-s10",
        "derived/netflow/nfcapd.ipfix",
        "flow/ctu-portscan.nfdump",
    ] {
        let path = folder.join(file);
        let output = Command::new("nfdump")
            .arg("-r")
            .arg(&path)
            .arg("-I")
            .output();
        let text = String::from_utf8(output.expect("nfdump is there").stdout).expect("text");
        let said: BTreeMap<&str, u64> = text
            .lines()
            .filter_map(|line| line.split_once(": "))
            .filter_map(|(name, value)| Some((name, value.trim().parse().ok()?)))
            .collect();
        let read = drain(FlowReader::open(&path).unwrap_or_else(|e| panic!("{e}")));
        assert!(read.error.is_none(), "{file}: {:?}", read.error);
        let c = &read.counts;
        assert_eq!(
            (c.records, c.packets, c.bytes),
            (said["Flows"], said["Packets"], said["Bytes"]),
            "{file}"
        );
        let tcp = read.records.iter().filter(|r| r.protocol == 6).count() as u64;
        assert_eq!(tcp, said["Flows_tcp"], "{file}");
        if let Some(first) = said.get("First").filter(|first| **first > 0) {
            assert_eq!(c.first / 1_000_000_000, *first as i64, "{file}");
        }
        let scaled = read.records.iter().all(|r| r.sampling.scaled);
        assert_eq!(scaled, file.contains("s10"), "{file}");
        // The collector's sampler record gives the factor.
        let interval = if scaled { 10.0 } else { 1.0 };
        let of = |r: &swell_capture::flow::FlowRecord| r.sampling.interval;
        assert!(read.records.iter().map(of).all(|n| n == interval), "{file}");
    }
}

#[test]
fn an_nfdump_file_cut_anywhere_says_where() {
    let Some(folder) = traces() else { return };
    let whole = plain(&folder.join("flow/ctu-portscan.nfdump"));
    for end in [1, 3, 100, 275, 280, 300, whole.len() - 1] {
        let error = match FlowReader::new(&whole[..end]) {
            Ok(reader) => drain(reader).error,
            Err(e) => Some(e),
        };
        let error = error.unwrap_or_else(|| panic!("cut at {end}"));
        assert!(error.offset <= end as u64, "{error}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn zeek_rows_add_up_to_their_columns() {
    let Some(folder) = traces() else { return };
    let path = folder.join("flow/m57-2009-11-18-conn.log.gz");
    let text = String::from_utf8(plain(&path)).expect("text");
    // Fields 16 to 19 according to the file's header: orig_pkts, orig_ip_bytes, resp_pkts, resp_ip_bytes.
    let (mut rows, mut packets, mut bytes) = (0, 0, 0);
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let column = |i: usize| line.split('\t').nth(i).and_then(|v| v.parse::<u64>().ok());
        rows += 1;
        packets += column(15).unwrap_or(0) + column(17).unwrap_or(0);
        bytes += column(16).unwrap_or(0) + column(18).unwrap_or(0);
    }
    let read = drain(FlowReader::open(&path).unwrap_or_else(|e| panic!("{e}")));
    let c = &read.counts;
    assert_eq!((c.records, c.packets, c.bytes), (rows, packets, bytes));
    assert_eq!(c.biflows, rows);
    assert!(c.skipped(FlowSkip::BadRow).times == 0 && read.error.is_none());
}

#[test]
fn every_other_table_of_the_folder_reads_without_a_bad_row() {
    let Some(folder) = traces() else { return };
    for (file, records) in [
        ("flow/ctu-mixed-tsv.binetflow.gz", 6721),
        ("flow/ctu-normal-7.binetflow.gz", 9797),
        ("flow/ctu-vpn-24h.binetflow.gz", 6751),
        ("flow/ctu-win-host-2016.binetflow.gz", 4786),
        ("flow/m57-argus-10k-pkts.csv.gz", 1786),
        ("flow/suricata-eve-flows.json.gz", 3512),
        ("flow/zeek-conn-json.log", 576),
    ] {
        let path = folder.join(file);
        let read = drain(FlowReader::open(&path).unwrap_or_else(|e| panic!("{e}")));
        assert!(read.error.is_none(), "{file}: {:?}", read.error);
        let c = &read.counts;
        let other = c.skipped(FlowSkip::NoAddresses).times + c.skipped(FlowSkip::OtherKind).times;
        let text = String::from_utf8_lossy(&plain(&path)).into_owned();
        let names = u64::from(!file.contains("json"));
        // Every line is accounted for: as a record, as a skipped line, or as the header line.
        assert_eq!(
            c.records + other + names,
            text.lines().count() as u64,
            "{file}"
        );
        assert_eq!(c.records, records, "{file}");
        assert_eq!(c.skipped(FlowSkip::BadRow).times, 0, "{file}");
    }
}

#[test]
fn our_own_csv_and_what_can_be_wrong_with_it() {
    let text = "start,end,src,dst,src_port,dst_port,protocol,tcp_flags,packets,bytes,sampling_interval\n\
                10.5,11,10.0.0.1,10.0.0.2,4000,80,tcp,0x1b,3,180,100\n\
                2009-11-18 09:00:03.9,,::1,::2,,,udp,,1,60,\n\
                x,11,10.0.0.1,10.0.0.2,4000,80,tcp,0x1b,3,180,100\n\
                10.5,11,10.0.0.1\n\
                10.5,11,host.example,10.0.0.2,4000,80,tcp,0x1b,3,180,100\n\
                10.5,11,10.0.0.1,10.0.0.2,4000,80,tcp,0x1b,3,,100";
    let read = drain(FlowReader::new(text.as_bytes()).unwrap());
    assert!(read.error.is_none());
    let [tcp, udp] = read.records[..] else {
        panic!("{:?}", read.records);
    };
    assert_eq!((tcp.first, tcp.last), (10_500_000_000, 11_000_000_000));
    assert_eq!((tcp.tcp_flags, tcp.layer), (Some(0x1b), Layer::Network));
    assert_eq!(tcp.sampling.interval, 100.0);
    assert_eq!(tcp.sampling.source, SamplingSource::Record);
    assert_eq!((udp.protocol, udp.first), (17, udp.last));
    let times = |reason| read.counts.skipped(reason).times;
    assert_eq!(times(FlowSkip::BadRow), 2);
    assert_eq!(times(FlowSkip::NoAddresses), 1);
    assert_eq!(times(FlowSkip::NoCounters), 1);
    let place = read.counts.skipped(FlowSkip::BadRow).first_at;
    assert_eq!(&text.as_bytes()[place as usize..][..2], b"x,");
    let bad = |table: &str| {
        let found = drain(FlowReader::new(table.as_bytes()).unwrap());
        let row = found.counts.bad_row.unwrap();
        (row.line, row.column.unwrap_or_default())
    };
    assert_eq!(bad(text), (4, "1".into()));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(bad(&[lines[0], lines[4]].join("\n")), (2, "4".into()));
    let json = "{\"id.orig_h\":\"::1\",\"id.resp_h\":\"::2\",\"ts\":1.5,\"orig_pkts\":1,\"orig_ip_bytes\":\"x\"}";
    assert_eq!(bad(json), (1, "orig_ip_bytes".into()));
}

/// Suricata counts frames: of TCP without payload, at least 60 bytes, and 66 with timestamps.
#[test]
fn suricata_counts_frames() {
    let Some(folder) = traces() else { return };
    let path = folder.join("flow/suricata-eve-flows.json.gz");
    let read = drain(FlowReader::open(&path).unwrap_or_else(|e| panic!("{e}")));
    assert!(read.records.iter().all(|r| r.layer == Layer::Link));
    let sides = |r: &swell_capture::flow::FlowRecord| {
        let back = r.reverse.map(|b| (b.packets, b.bytes));
        [Some((r.packets, r.bytes)), back]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    let tcp = read
        .records
        .iter()
        .filter(|r| r.protocol == 6 && r.src.is_ipv4());
    let all: Vec<(u64, u64)> = tcp.flat_map(sides).filter(|s| s.0 > 0).collect();
    // What the file shows: no frame is shorter than an Ethernet frame without its check sequence.
    assert!(all.len() > 1_000 && all.iter().all(|(packets, bytes)| *bytes >= 60 * packets));
    assert!(
        all.iter()
            .filter(|(packets, bytes)| *bytes == 60 * packets)
            .count()
            > 100
    );
}

/// nfdump's text has "out" counters of the other direction, or of the same packets behind the exporter.
#[test]
fn out_counters_of_nfdumps_text_are_judged() {
    let read = |rows: &[&str]| {
        let rows = rows
            .iter()
            .map(|r| format!("2023-01-01 00:00:00,1,10.0.0.1,10.0.0.2,TCP,{r}"));
        let text = format!(
            "ts,td,sa,da,pr,ipkt,ibyt,opkt,obyt\n{}\n",
            rows.collect::<Vec<_>>().join("\n")
        );
        let read = drain(FlowReader::new(text.as_bytes()).unwrap());
        let back = |r: &swell_capture::flow::FlowRecord| r.reverse.map(|b| (b.packets, b.bytes));
        let sides: Vec<_> = read.records.iter().map(back).collect();
        (sides, read.counts.counted_behind)
    };
    let both = read(&["10,700,20,30000", "3,180,0,0"]);
    assert_eq!(both, (vec![Some((20, 30_000)), None], 0));
    // Seven records do not tell, eight do.
    let equal = ["10,700,10,700"; 7];
    let behind = read(&[&equal[..], &["500,9000,499,8990", "9,90,1,9"]].concat());
    assert_eq!(behind.1, 2);
    assert_eq!(behind.0[..7], [Some((10, 700)); 7]);
    assert_eq!(behind.0[7..], [None, None]);
}

/// The end of a stream that is damaged is no line: a number may lack digits.
#[test]
fn half_a_line_before_damage_is_no_record() {
    use std::io::Write;
    let mut text = String::from("start,src,dst,protocol,packets,bytes\n");
    for i in 0..5_000 {
        text += &format!(
            "{i}.5,10.0.0.1,10.0.0.2,tcp,3,{}\n",
            1_000_000 + i * 7_919 % 1_000
        );
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    let whole = encoder.finish().unwrap();
    let all = drain(FlowReader::new(text.as_bytes()).unwrap()).records;
    for cut in (100..whole.len() - 10).step_by(997) {
        let read = drain(FlowReader::new(&whole[..cut]).unwrap());
        assert!(read.error.is_some());
        assert_eq!(read.records[..], all[..read.records.len()], "cut at {cut}");
    }
}

/// Both sides from Argus's columns, whichever are given: sums are exact, and payload stays on its side.
#[test]
fn argus_columns_give_both_sides() {
    let rows = |names: &str, values: &str| {
        let text = format!(
            "StartTime,Dur,Proto,SrcAddr,Sport,DstAddr,Dport,{names}\n1.5,2,tcp,10.0.0.1,4000,10.0.0.2,80,{values}\n"
        );
        let read = drain(FlowReader::new(text.as_bytes()).unwrap());
        let [record] = read.records[..] else {
            panic!("{names}: {:?}", read.counts)
        };
        assert_eq!(record.layer, Layer::Link);
        let sides = record.reverse.map(|r| [r.packets, r.bytes]);
        ([record.packets, record.bytes], sides, read.counts.divided)
    };
    // 30 frames: a request and acknowledgements in one direction, 20 segments in the other.
    let told = ([10, 700], Some([20, 30_000]), 0);
    assert_eq!(
        rows("SrcPkts,DstPkts,SrcBytes,DstBytes", "10,20,700,30000"),
        told
    );
    assert_eq!(
        rows("TotPkts,TotBytes,SrcPkts,SrcBytes", "30,30700,10,700"),
        told
    );
    assert_eq!(
        rows("TotPkts,TotBytes,DstPkts,DstBytes", "30,30700,20,30000"),
        told
    );
    // Segments have at most 1514 bytes, so there are at least 20, which leaves ten frames for acknowledgements.
    let divided = ([10, 700], Some([20, 30_000]), 1);
    assert_eq!(rows("TotPkts,SrcBytes,DstBytes", "30,700,30000"), divided);
    assert_eq!(rows("TotPkts,TotBytes,SrcBytes", "30,30700,700"), divided);
    assert_eq!(
        rows("TotPkts,TotBytes,SrcBytes,DstBytes", "30,30700,700,30000"),
        divided
    );
    assert_eq!(
        rows("SrcBytes,DstBytes", "700,30000"),
        ([0, 700], Some([0, 30_000]), 0)
    );
    assert_eq!(
        rows("TotPkts,TotBytes", "30,30700"),
        ([30, 30_700], None, 0)
    );
    assert_eq!(
        rows("TotPkts,TotBytes,SrcBytes", "3,180,180"),
        ([3, 180], Some([0, 0]), 1)
    );
    assert_eq!(rows("SrcBytes", "180"), ([0, 180], None, 0));
    // Short names.
    assert_eq!(rows("pkts,bytes,sbytes", "30,30700,700"), divided);
    assert_eq!(rows("pkts,bytes,dbytes", "30,30700,30000"), divided);
}

/// Argus's state has the flags of both sides, unless it is a word.
#[test]
fn argus_states_give_flags() {
    let flags = |state: &str| {
        let text = format!(
            "StartTime,Dur,Proto,SrcAddr,Sport,DstAddr,Dport,State,SrcPkts,DstPkts,SrcBytes,DstBytes\n\
             1.5,2,tcp,10.0.0.1,4000,10.0.0.2,80,{state},10,20,700,30000\n"
        );
        let read = drain(FlowReader::new(text.as_bytes()).unwrap());
        let [record] = read.records[..] else {
            panic!("{state}: {:?}", read.counts)
        };
        [
            record.tcp_flags,
            record.reverse.and_then(|back| back.tcp_flags),
        ]
    };
    assert_eq!(flags("FSPA_SPA"), [Some(0x1b), Some(0x1a)]);
    assert_eq!(flags("S_"), [Some(0x02), None]);
    for word in ["CON", "FIN", "", "x_y"] {
        assert_eq!(flags(word), [None, None], "{word}");
    }
}

/// Packets beside the bytes of one direction are of that direction.
#[test]
fn packets_by_another_name_are_packets() {
    let text = "start,end,src,src_port,dst,dst_port,protocol,pkts,bytes\n\
                0.0,0.5,192.0.2.1,80,10.0.0.1,4000,6,10,10400\n";
    let read = drain(FlowReader::new(text.as_bytes()).unwrap());
    assert_eq!(
        (read.records[0].packets, read.records[0].bytes),
        (10, 10_400)
    );
}

#[test]
fn a_file_of_something_else_is_named() {
    let error = FlowReader::new(&b"hello\n"[..]).unwrap_err();
    assert!(
        matches!(error.problem, FlowProblem::NotFlowRecords(Some("text"))),
        "{error}"
    );
}

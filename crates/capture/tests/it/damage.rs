//! Damaged and cut files: where the error is reported, why, and what was read before.

use crate::build::*;
use crate::read;
use swell_capture::{Problem, Reader};

#[test]
fn a_cut_file_gives_every_whole_packet_and_the_place_of_the_cut() {
    let frames = web_frames();
    let files = [
        ("pcap", pcap(1, &frames), 24),
        ("snoop", snoop(&frames), 16),
        (
            "pcapng",
            {
                let mut file = section(Order::Little);
                file.extend(interface(Order::Little, 1, 0, &[]));
                for (i, frame) in (0..).zip(&frames) {
                    file.extend(enhanced(Order::Little, 0, i, frame));
                }
                file
            },
            28 + 20,
        ),
    ];
    for (name, file, header) in files {
        let (all, _, none) = read(&file);
        assert_eq!(all.len(), frames.len(), "{name}");
        assert!(none.is_none());
        for end in 1..file.len() {
            let (packets, counts, error) = read(&file[..end]);
            assert_eq!(packets[..], all[..packets.len()], "{name} cut at {end}");
            let Some(error) = error else {
                // The cut is between records, so the file ends without an error (snoop's last padding may be
                // missing).
                continue;
            };
            assert!(error.offset <= end as u64, "{name} cut at {end}: {error}");
            if end >= header {
                assert!(matches!(error.problem, Problem::CutShort { .. }), "{error}");
                assert_eq!(error.records, counts.records);
            }
            assert!(!error.to_string().is_empty());
        }
        let clean = (1..file.len()).filter(|&end| read(&file[..end]).2.is_none());
        // After the header, and after each record but the last; in pcapng also after the section header.
        let extra = usize::from(name == "pcapng");
        assert_eq!(
            clean.count() - padding(name, &frames),
            frames.len() + extra,
            "{name}"
        );
    }
}

/// Number of cuts inside the padding of snoop records, which leave the record itself complete.
fn padding(name: &str, frames: &[Vec<u8>]) -> usize {
    match name {
        "snoop" => frames
            .iter()
            .map(|f| f.len().next_multiple_of(4) - f.len())
            .sum(),
        _ => 0,
    }
}

#[test]
fn messages_are_sentences_with_file_place_reason_and_what_was_kept() {
    let mut file = pcap(1, &web_frames());
    let end = file.len();
    file.extend(pcap_record(Order::Little, [1, 1, u32::MAX, 60], &[]));
    let mut reader = Reader::named("trace.pcap", &file[..]).unwrap();
    while let Ok(Some(_)) = reader.next_packet() {}
    let mut again = Reader::named("trace.pcap", &file[..]).unwrap();
    let error = loop {
        match again.next_packet() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the last record lies"),
            Err(e) => break e,
        }
    };
    assert_eq!(
        error.to_string(),
        format!(
            "trace.pcap: at byte {end} (packet 7): the record says 4294967295 bytes were captured, \
             but the snap length is 65535 and no more than 262144 are believed: the file is damaged \
             here; the 6 packets before it were read"
        )
    );
    // Afterwards the trace is over.
    assert!(again.next_packet().unwrap().is_none());
    assert_eq!(again.counts().records, 6);
}

#[test]
fn a_record_longer_than_the_snap_length_is_believed_within_reason() {
    let mut file = pcap_header(Order::Little, MICROS, 4, 96, 1);
    let mut frame = web_frames().remove(0);
    frame.resize(262_144, 0);
    file.extend(pcap_record(Order::Little, [1, 1, 262_144, 262_144], &frame));
    file.extend(pcap_record(Order::Little, [1, 1, 262_145, 262_145], &frame));
    let (packets, _, error) = read(&file);
    assert_eq!(packets.len(), 1);
    assert!(matches!(
        error.map(|e| e.problem),
        Some(Problem::RecordTooLong {
            captured: 262_145,
            ..
        })
    ));
    // Even with a snap length of 1 GiB, records of 17 MiB are not accepted.
    let mut huge = pcap_header(Order::Little, MICROS, 4, 1 << 30, 1);
    huge.extend(pcap_record(Order::Little, [1, 1, 17 << 20, 17 << 20], &[]));
    assert!(matches!(
        read(&huge).2.map(|e| e.problem),
        Some(Problem::RecordTooLong {
            limit: 0x100_0000,
            ..
        })
    ));
}

#[test]
fn bad_pcapng_framing_is_an_error_at_the_block() {
    let begin = || {
        let mut file = section(Order::Little);
        file.extend(interface(Order::Little, 1, 0, &[]));
        file
    };
    let at = begin().len() as u64;
    for length in [0, 8, 13, 30, 17 << 20, u32::MAX] {
        let mut file = begin();
        file.extend(6u32.to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend([0; 64]);
        let error = read(&file).2.expect("no such block");
        assert!(
            matches!(error.problem, Problem::BlockLength { kind: 6, length: l } if l == length),
            "{error}"
        );
        assert_eq!(error.offset, at);
    }
    let mut file = begin();
    file.extend(block(Order::Little, 5, b"abcd"));
    let last = file.len() - 4;
    file[last] = 99;
    let error = read(&file).2.expect("lengths differ");
    assert!(
        matches!(
            error.problem,
            Problem::BlockTrailer {
                kind: 5,
                head: 16,
                tail: 99
            }
        ),
        "{error}"
    );
    let mut bad_order = section(Order::Little);
    bad_order[8] = 0;
    assert!(matches!(
        read(&bad_order).2.map(|e| e.problem),
        Some(Problem::ByteOrder(_))
    ));
    let mut bad_version = section(Order::Big);
    bad_version[13] = 7;
    assert!(matches!(
        read(&bad_version).2.map(|e| e.problem),
        Some(Problem::Version { major: 7, .. })
    ));
}

#[test]
fn files_that_are_no_captures_are_named() {
    let cases: [(&[u8], &str); 6] = [
        (b"", "the file is empty"),
        (b"ts,bytes\n1,2\n", "looks like text"),
        (b"PK\x03\x04\x14\0", "looks like a zip archive"),
        (b"BZh91AY&SY\0", "looks like bzip2"),
        (&[0x0c, 0xa5, 1, 0, 0, 0], "looks like an nfdump file"),
        (&[0; 600], "not a pcap, pcapng or snoop capture"),
    ];
    for (bytes, words) in cases {
        let error = Reader::named("x", bytes).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().starts_with("x: "), "{error}");
    }
    // A directory can be opened but not read.
    let folder = Reader::open(env!("CARGO_MANIFEST_DIR")).expect_err("not a file");
    assert!(
        folder.to_string().contains("capture: cannot be read: "),
        "{folder}"
    );
    let missing = Reader::open("/nonexistent/trace.pcap").expect_err("no such file");
    assert!(
        missing
            .to_string()
            .starts_with("/nonexistent/trace.pcap: cannot be opened"),
        "{missing}"
    );
}

#[test]
fn every_record_is_accounted_for() {
    let mut frames = web_frames();
    frames.push(ethernet(0x0806, &[0; 28]));
    frames.push(ethernet(0x0800, &[0x45; 10]));
    frames.push(ethernet(0x0800, &[0x44; 30]));
    frames.push(vec![0; 3]);
    frames.push(ethernet(0x0800, &v4(47, &[0; 8])));
    frames.push(ethernet(0x0800, &v4(6, &[0; 30])));
    frames.push(ethernet(0x0800, &v4(6, &[0; 8])));
    let (_, counts, error) = read(&pcap(1, &frames));
    assert!(error.is_none());
    assert_eq!(counts.records, 13);
    assert_eq!(counts.records, counts.packets + counts.skipped_total());
    assert_eq!((counts.tcp, counts.other), (6, 1));
    assert_eq!((counts.bad_transport, counts.short_transport), (1, 1));
    assert_eq!(counts.skipped_total(), 4);
}

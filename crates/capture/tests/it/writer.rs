//! Reads the writer's output with this crate, with `pcap-parser`, and with Wireshark's capinfos.

use std::io::{self, Write};
use std::process::Command;

use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use swell_capture::{Heading, LinkType, Reader, Record, Writer};

const HEADINGS: [Heading; 3] = [Heading::Unknown, Heading::Inbound, Heading::Outbound];

/// Packets of all lengths modulo four, on two interfaces.
fn written() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "the tests").unwrap();
    let cut = writer.interface("cut", LinkType::RAW, 30).unwrap();
    let whole = writer.interface("whole", LinkType::IPV4, 0).unwrap();
    for i in 0..40u32 {
        let mut data = vec![
            0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        data.resize(20 + i as usize, i as u8);
        writer
            .packet(&Record {
                interface: if i.is_multiple_of(2) { cut } else { whole },
                time: (1 << 40) + u64::from(i),
                wire_len: 40 + i,
                heading: HEADINGS[i as usize % 3],
                data: &data,
            })
            .unwrap();
    }
    let offset = writer.offset();
    let file = writer.finish().unwrap();
    assert_eq!(file.len() as u64, offset);
    file
}

#[test]
fn our_reader_reads_it_back() {
    let file = written();
    let mut reader = Reader::new(&file[..]).unwrap();
    let mut i = 0u32;
    while let Some(()) = reader
        .next_frame(|frame| {
            assert_eq!(frame.time, (1 << 40) + i64::from(i));
            assert_eq!((frame.interface, frame.wire_len), (i % 2, 40 + i));
            let kept = if i.is_multiple_of(2) {
                (20 + i).min(30)
            } else {
                20 + i
            };
            assert_eq!(frame.data.len(), kept as usize);
            assert!(frame.data[20..].iter().all(|&b| u32::from(b) == i));
        })
        .unwrap()
    {
        i += 1;
    }
    assert_eq!(i, 40);
    let snaplens: Vec<u32> = reader.interfaces().iter().map(|f| f.snaplen).collect();
    assert_eq!(snaplens, [30, 0]);
    assert!(
        reader
            .interfaces()
            .iter()
            .all(|f| f.ticks_per_second == Some(1_000_000_000))
    );
    assert_eq!(
        (reader.counts().odd_times, reader.counts().unknown_blocks),
        (0, 0)
    );
}

#[test]
fn pcap_parser_reads_names_and_directions() {
    let file = written();
    let mut reader = create_reader(1 << 16, &file[..]).unwrap();
    let (mut names, mut headings, mut application) = (Vec::new(), Vec::new(), None);
    loop {
        let used = match reader.next() {
            Ok((used, PcapBlockOwned::NG(block))) => {
                match block {
                    Block::SectionHeader(section) => {
                        let mut user = section.options.iter().filter(|o| o.code.0 == 4);
                        application = user.next().map(|o| o.value.to_vec());
                    }
                    Block::InterfaceDescription(interface) => {
                        assert_eq!(interface.if_tsresol, 9);
                        let name = interface.options.iter().find(|o| o.code.0 == 2);
                        names.push(name.map(|o| o.value.to_vec()));
                    }
                    Block::EnhancedPacket(packet) => {
                        assert_eq!(packet.block_len1, packet.block_len2);
                        let flags = packet.options.iter().find(|o| o.code.0 == 2);
                        headings.push(flags.map(|o| o.value[0]));
                    }
                    other => panic!("{other:?}"),
                }
                used
            }
            Ok((_, PcapBlockOwned::Legacy(_) | PcapBlockOwned::LegacyHeader(_))) => panic!(),
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => {
                reader.refill().unwrap();
                continue;
            }
            Err(e) => panic!("{e:?}"),
        };
        reader.consume(used);
    }
    assert!(application.is_some_and(|a| a.starts_with(b"the tests")));
    let starts =
        |name: &Option<Vec<u8>>, with: &[u8]| name.as_ref().is_some_and(|n| n.starts_with(with));
    assert!(starts(&names[0], b"cut") && starts(&names[1], b"whole"));
    assert_eq!(headings.len(), 40);
    for (i, heading) in headings.into_iter().enumerate() {
        assert_eq!(heading, [None, Some(1), Some(2)][i % 3], "packet {i}");
    }
}

#[test]
fn capinfos_reads_it() {
    let path = std::env::temp_dir().join(format!("swell-writer-{}.pcapng", std::process::id()));
    std::fs::write(&path, written()).unwrap();
    let out = Command::new("capinfos")
        .args(["-M", "-A"])
        .arg(&path)
        .output();
    let _ = std::fs::remove_file(&path);
    let Ok(out) = out else {
        assert!(!swell_needs::programs(&["capinfos"]), "it does not start");
        return;
    };
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&out.stderr)
    );
    for (what, value) in [
        ("Number of packets:", "40"),
        ("Capture application:", "the tests"),
        ("File timestamp precision:", "nanoseconds (9)"),
        ("Number of interfaces in file:", "2"),
        ("Data size:", "2380"),
    ] {
        let line = said.lines().find(|l| l.trim().starts_with(what));
        assert!(
            line.is_some_and(|l| l.contains(value)),
            "{what} {value}:\n{said}"
        );
    }
}

/// A disk with space for this many more bytes.
#[derive(Debug)]
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_with_the_place() {
    let mut writer = Writer::new(Full(60), "x").unwrap();
    writer.interface("eth0", LinkType::RAW, 0).unwrap();
    let error = writer.finish().unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
    assert!(
        error.to_string().contains("cannot be written at byte"),
        "{error}"
    );
}

#[test]
fn a_packet_of_no_interface_is_refused() {
    let mut writer = Writer::new(Vec::new(), "x").unwrap();
    let record = Record {
        interface: 0,
        time: 0,
        wire_len: 1,
        heading: Heading::Unknown,
        data: &[0],
    };
    let error = writer.packet(&record).unwrap_err().to_string();
    assert!(error.ends_with("there is no interface 0"), "{error}");
}

#[test]
fn a_file_that_cannot_be_made_is_named() {
    let error = Writer::create("/nowhere/at/all.pcapng", "x").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/at/all.pcapng: cannot"),
        "{error}"
    );
}

/// The names that packet files of a run give to their interfaces are the directions of all packets.
#[test]
fn names_of_interfaces_state_directions() {
    let mut writer = Writer::new(Vec::new(), "x").unwrap();
    let names = ["isp/up", "isp/down", "up", "down", "eth0"];
    for (i, name) in (0..).zip(names) {
        writer.interface(name, LinkType::RAW, 0).unwrap();
        let record = Record {
            interface: i,
            time: u64::from(i),
            wire_len: 20,
            heading: Heading::Outbound,
            data: &[0; 20],
        };
        writer.packet(&record).unwrap();
    }
    let file = writer.finish().unwrap();
    let mut reader = Reader::new(&file[..]).unwrap();
    let mut headings = Vec::new();
    while let Some(heading) = reader.next_frame(|frame| frame.heading).unwrap() {
        headings.push(heading);
    }
    let [up, down, other] = [Heading::Up, Heading::Down, Heading::Outbound];
    assert_eq!(headings, [up, down, other, other, other]);
}

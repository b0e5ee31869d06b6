//! Tests of the crate's public interface: captures built byte by byte, damaged captures, the seeds of the fuzz
//! targets, and every file of the trace folder.

mod build;
mod compressed;
mod damage;
mod flows;
mod folder;
mod in_order;
mod ip;
mod links;
mod oracle;
mod pcap;
mod pcapng;
mod seeds;
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;
mod transport;
mod walk;
mod writer;

use swell_capture::{Counts, Error, Frame, LinkType, Packet, Reader, Skip, dissect};

/// The result of reading a capture: packets, counts, and the error that ended it, if any.
fn read(bytes: &[u8]) -> (Vec<Packet>, Counts, Option<Error>) {
    let mut reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(e) => return (Vec::new(), Counts::default(), Some(e)),
    };
    let mut packets = Vec::new();
    let error = loop {
        match reader.next_packet() {
            Ok(Some(packet)) => packets.push(packet),
            Ok(None) => break None,
            Err(e) => break Some(e),
        }
    };
    (packets, reader.counts().clone(), error)
}

/// Packets and counts of an undamaged capture.
fn read_clean(bytes: &[u8]) -> (Vec<Packet>, Counts) {
    let (packets, counts, error) = read(bytes);
    if let Some(e) = error {
        panic!("{e}");
    }
    (packets, counts)
}

/// Dissects a whole frame with a link type.
fn dissect_whole(link: u16, data: &[u8]) -> Result<Packet, Skip> {
    dissect(&Frame {
        time: 0,
        interface: 0,
        heading: swell_capture::Heading::Unknown,
        link: LinkType(link),
        wire_len: data.len() as u32,
        data,
    })
}

/// Overwriting a packet gives the same result as reading into a new one: nothing of the previous packet remains.
#[test]
fn reading_into_one_packet_gives_what_reading_packet_by_packet_gives() {
    use build::*;
    let mut frames = web_frames();
    // In both orders, so that every kind of packet follows other kinds.
    frames.extend(web_frames().into_iter().rev());
    let mut file = pcap_header(Order::Little, MICROS, 4, 65535, 1);
    for (i, frame) in frames.iter().enumerate() {
        // Every third packet is cut inside its transport header.
        let kept = if i % 3 == 2 {
            frame.len().min(40)
        } else {
            frame.len()
        };
        let header = [i as u32, 0, kept as u32, frame.len() as u32];
        file.extend(pcap_record(Order::Little, header, &frame[..kept]));
    }
    let (apart, counts) = read_clean(&file);
    assert!(apart.len() > 4, "{}", apart.len());
    let mut reader = Reader::new(&file[..]).unwrap();
    let mut packet = Packet::default();
    for want in &apart {
        assert!(reader.read_into(&mut packet).unwrap());
        assert_eq!(&packet, want);
    }
    assert!(!reader.read_into(&mut packet).unwrap());
    assert_eq!(reader.counts(), &counts);
}

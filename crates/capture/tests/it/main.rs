//! Tests of the crate from outside: captures built byte by byte, damaged ones, the seeds of the
//! fuzz targets, and every file of the trace folder.

mod build;
mod compressed;
mod damage;
mod folder;
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

use swell_capture::{Counts, Error, Frame, LinkType, Packet, Reader, Skip, dissect};

/// Everything a capture gives: packets, counts, and the error that ended it, if one did.
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

/// Packets and counts of a capture without damage.
fn read_clean(bytes: &[u8]) -> (Vec<Packet>, Counts) {
    let (packets, counts, error) = read(bytes);
    if let Some(e) = error {
        panic!("{e}");
    }
    (packets, counts)
}

/// Dissects a whole frame of a link type.
fn dissect_whole(link: u16, data: &[u8]) -> Result<Packet, Skip> {
    dissect(&Frame {
        time: 0,
        interface: 0,
        link: LinkType(link),
        wire_len: data.len() as u32,
        data,
    })
}

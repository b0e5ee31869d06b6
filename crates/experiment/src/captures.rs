//! Captures for replay.

use std::path::Path;

use swell_base::{Dur, Stream, Warning};
use swell_capture::{InOrder, Packet, Reader};
use swell_learn::{Network, Splitter};
use swell_workload::Packets;

use crate::hash::Hash;

/// The packets of a trace, in the directions in which they are replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Up and down: time since the first packet, network-layer bytes.
    pub packets: [Packets; 2],
    /// Period of the replay.
    pub period: Dur,
}

impl Trace {
    /// Mean rates up and down, bits per second of network-layer bytes.
    pub fn bps(&self) -> [f64; 2] {
        let seconds = self.period.as_secs_f64();
        self.packets.each_ref().map(|way| {
            let bytes: u64 = way.iter().map(|p| u64::from(p.1)).sum();
            bytes as f64 * 8.0 / seconds
        })
    }

    /// The offset in the trace at which a run with this seed begins.
    pub(crate) fn phase(&self, seed: u64) -> Dur {
        let mut stream = Stream::new(seed, "replay-phase");
        Dur::from_nanos(stream.below(self.period.as_nanos()))
    }
}

/// A capture in memory.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Packets from inside to outside (up) and from outside to inside: time since the first packet, network-layer
    /// bytes.
    pub packets: [Packets; 2],
    /// From the first packet to the last.
    pub length: Dur,
    /// Period of an endless replay.
    pub period: Dur,
    /// Doubts about it.
    pub doubts: Vec<Warning>,
    /// A fingerprint of times and sizes.
    pub(crate) hash: String,
}

impl Capture {
    /// A capture of packets made by a test.
    #[cfg(test)]
    pub(crate) fn of(packets: [Packets; 2], length: Dur) -> Capture {
        Capture {
            packets,
            length,
            period: length,
            doubts: Vec::new(),
            hash: String::new(),
        }
    }

    /// Mean rates up and down, bits per second of network-layer bytes.
    pub fn bps(&self) -> [f64; 2] {
        self.trace(false).bps()
    }

    pub(crate) fn trace(&self, reversed: bool) -> Trace {
        let mut packets = self.packets.clone();
        if reversed {
            packets.swap(0, 1);
        }
        Trace {
            packets,
            period: self.period,
        }
    }
}

/// Reads the capture in a file. `inside` lists the networks that are inside; if it is empty, the sides are inferred from
/// the packets.
pub(crate) fn read(path: &Path, inside: &[Network]) -> Result<Capture, swell_capture::Error> {
    let mut reader = InOrder::new(Reader::open(path)?);
    let mut splitter = Splitter::with_inside(inside.to_vec());
    let mut packet = Packet::default();
    while reader.read_into(&mut packet)? {
        splitter.push(&packet);
    }
    let directions = splitter.finish();
    let mut hash = Hash::new();
    for way in &directions.packets {
        let bytes: Vec<u8> = way
            .iter()
            .flat_map(|&(at, size): &(Dur, u32)| {
                let at = at.as_nanos().to_le_bytes();
                at.into_iter().chain(size.to_le_bytes())
            })
            .collect();
        hash = hash.part(&bytes);
    }
    let mut doubts = reader.reader().counts().doubts();
    doubts.extend(reader.doubts());
    doubts.extend(directions.doubts());
    Ok(Capture {
        length: directions.duration,
        period: directions.period(),
        doubts,
        hash: hash.hex(),
        packets: directions.packets.map(Into::into),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replay of a capture that holds each packet twice, and some of them late, is that of the clean one.
    #[test]
    fn copies_and_disorder_are_not_replayed() {
        let scratch = tempfile::tempdir().expect("a directory");
        let capture = |name: &str, records: &[(u32, u16)]| {
            let mut file = Vec::new();
            for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
                file.extend(word.to_le_bytes());
            }
            for &(us, ident) in records {
                let mut packet = vec![0x45, 0, 0, 100];
                packet.extend(ident.to_be_bytes());
                packet.extend([0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
                packet.extend([0x10, 0, 0, 53, 0, 80, 0, 0]);
                packet.resize(100, 0);
                for word in [1_700_000_000, us, 100, 100] {
                    file.extend(word.to_le_bytes());
                }
                file.extend(packet);
            }
            let path = scratch.path().join(name);
            std::fs::write(&path, file).expect("a file");
            read(&path, &[]).expect("a capture")
        };
        let clean: Vec<(u32, u16)> = (0..200).map(|i| (100 * u32::from(i), i + 1)).collect();
        let mut odd: Vec<(u32, u16)> = (clean.iter())
            .flat_map(|&(us, ident)| [(us, ident), (us + 3, ident)])
            .collect();
        odd.chunks_mut(4).for_each(|four| four.rotate_left(2));
        let (clean, odd) = (capture("clean", &clean), capture("odd", &odd));
        assert_eq!(clean.packets, odd.packets);
        let codes: Vec<&str> = odd.doubts.iter().map(|w| w.code.as_str()).collect();
        assert_eq!(codes, ["put-in-order", "captured-twice"]);
        assert!(clean.doubts.is_empty());
    }
}

//! The packets of real programs as a pcapng file, as a capture on the left side of the network would show them.
//!
//! Every packet is in it once: one from the left when it enters the network, one to the left when it leaves. With both
//! ends in one file, analysers would take every second packet for a retransmission.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use swell_base::Time;
use swell_capture::{Heading, LinkType, Record, WriteError, Writer};
use swell_host::Checksum;
use swell_host::clock::epoch;

/// Length of an Ethernet frame that holds the largest IP packet.
const LONGEST: u32 = 14 + 65_535;
/// The hardware address of the network: locally administered, so that no manufacturer has assigned it (IEEE 802
/// section 8.4).
const ROUTER: [u8; 6] = address(0xffff);

/// The hardware address of a host.
const fn address(number: u16) -> [u8; 6] {
    let [high, low] = number.to_be_bytes();
    [2, 0, 0, 0, high, low]
}

/// Writes the packets that hosts send and receive.
pub struct Packets {
    writer: Writer<File>,
    interface: u32,
    /// Which hosts are at the point of capture, by number.
    here: Vec<bool>,
    /// Unix time in nanoseconds at the world's time zero.
    zero: u64,
    /// Packets that are not written yet, because an earlier one may follow, and their bytes.
    waiting: Vec<Waiting>,
    bytes: Vec<u8>,
    /// Packets already are Ethernet frames.
    frames: bool,
    failed: Option<WriteError>,
}

/// A packet that is to be written.
struct Waiting {
    time: u64,
    heading: Heading,
    /// Where its bytes are.
    bytes: Range<usize>,
}

impl Packets {
    /// Creates a file for hosts with these names, in the order of their numbers. Packets are captured where those hosts
    /// are that have `true`. `now` is the world's time.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path, hosts: &[(&str, bool)], now: Time) -> Result<Packets, WriteError> {
        let mut writer =
            Writer::<File>::create(path, concat!("swell ", env!("CARGO_PKG_VERSION")))?;
        let names: Vec<&str> = hosts.iter().filter(|h| h.1).map(|h| h.0).collect();
        // Ethernet headers are added although the devices carry raw IP. Their addresses tell the hosts of this side
        // from each other and from those behind the network.
        let interface = writer.interface(&names.join(","), LinkType::ETHERNET, LONGEST)?;
        Ok(Packets {
            writer,
            interface,
            here: hosts.iter().map(|h| h.1).collect(),
            zero: epoch().saturating_sub(now.as_nanos()),
            waiting: Vec::new(),
            bytes: Vec::new(),
            frames: false,
            failed: None,
        })
    }

    /// The packets that will be added have Ethernet headers of their own.
    #[must_use]
    pub fn of_frames(self) -> Packets {
        Packets {
            frames: true,
            ..self
        }
    }

    /// A packet of host number `host` entered.
    pub(crate) fn entered(&mut self, at: Time, host: usize, parts: [&[u8]; 2], sum: Checksum) {
        if self.is_here(host) {
            self.add(at, host, Heading::Outbound, parts, sum);
        }
    }

    /// A packet of host number `from` left to host number `to`.
    pub(crate) fn left(&mut self, at: Time, [from, to]: [usize; 2], packet: &[u8], sum: Checksum) {
        if !self.is_here(from) {
            self.add(at, to, Heading::Inbound, [packet, &[]], sum);
        }
    }

    fn is_here(&self, host: usize) -> bool {
        self.here.get(host).is_some_and(|&here| here)
    }

    fn add(
        &mut self,
        at: Time,
        host: usize,
        heading: Heading,
        parts: [&[u8]; 2],
        checksum: Checksum,
    ) {
        let own = address(host as u16 + 1);
        let (to, from) = match heading {
            Heading::Inbound => (own, ROUTER),
            _ => (ROUTER, own),
        };
        let six = parts[0].first().is_some_and(|b| b >> 4 == 6);
        let begin = self.bytes.len();
        if !self.frames {
            self.bytes.extend_from_slice(&to);
            self.bytes.extend_from_slice(&from);
            self.bytes
                .extend_from_slice(if six { &[0x86, 0xdd] } else { &[0x08, 0x00] });
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(parts[0]);
        self.bytes.extend_from_slice(parts[1]);
        checksum.complete(&mut self.bytes[start..]);
        self.waiting.push(Waiting {
            time: self.zero + at.as_nanos(),
            heading,
            bytes: begin..self.bytes.len(),
        });
    }

    /// No packet will be added that is earlier than the latest one so far. Writes all of them by their times.
    pub(crate) fn settle(&mut self) {
        self.waiting.sort_by_key(|w| w.time);
        for packet in self.waiting.drain(..) {
            let data = &self.bytes[packet.bytes];
            let record = Record {
                interface: self.interface,
                time: packet.time,
                wire_len: data.len() as u32,
                heading: packet.heading,
                data,
            };
            if self.failed.is_none() {
                self.failed = self.writer.packet(&record).err();
            }
        }
        self.bytes.clear();
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// The first error that occurred while packets were written.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.settle();
        match self.failed {
            Some(e) => Err(e),
            None => self.writer.finish().map(|_| ()),
        }
    }
}

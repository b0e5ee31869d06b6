//! The packets of real programs as a pcapng file with one interface per host, as a capture on that host would show
//! them.

use std::fs::File;
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
    interfaces: Vec<u32>,
    /// Unix time in nanoseconds at the world's time zero.
    zero: u64,
    whole: Vec<u8>,
    /// Packets already are Ethernet frames.
    frames: bool,
    failed: Option<WriteError>,
}

impl Packets {
    /// Creates a file for hosts with these names, in the order of their ports; `now` is the world's time.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path, hosts: &[&str], now: Time) -> Result<Packets, WriteError> {
        let mut writer =
            Writer::<File>::create(path, concat!("swell ", env!("CARGO_PKG_VERSION")))?;
        // Ethernet headers are added although the devices carry raw IP. libpcap (1.10.4, `add_interface` in
        // sf-pcapng.c) does not open files with two raw-IP interfaces: it translates the link type of the first
        // interface and not of the second.
        let interface = |name: &&str| writer.interface(name, LinkType::ETHERNET, LONGEST);
        let interfaces = hosts.iter().map(interface).collect::<Result<_, _>>()?;
        Ok(Packets {
            writer,
            interfaces,
            zero: epoch().saturating_sub(now.as_nanos()),
            whole: Vec::new(),
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

    pub(crate) fn add(
        &mut self,
        at: Time,
        host: usize,
        heading: Heading,
        parts: [&[u8]; 2],
        checksum: Checksum,
    ) {
        if self.failed.is_some() {
            return;
        }
        let own = address(host as u16 + 1);
        let (to, from) = match heading {
            Heading::Inbound => (own, ROUTER),
            _ => (ROUTER, own),
        };
        let six = parts[0].first().is_some_and(|b| b >> 4 == 6);
        self.whole.clear();
        self.whole.extend_from_slice(parts[0]);
        self.whole.extend_from_slice(parts[1]);
        checksum.complete(&mut self.whole);
        let header = match self.frames {
            true => Vec::new(),
            false => [
                &to[..],
                &from,
                if six { &[0x86, 0xdd] } else { &[0x08, 0x00] },
            ]
            .concat(),
        };
        self.whole.splice(0..0, header);
        let record = Record {
            interface: self.interfaces[host],
            time: self.zero + at.as_nanos(),
            wire_len: self.whole.len() as u32,
            heading,
            data: &self.whole,
        };
        self.failed = self.writer.packet(&record).err();
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// The first error that occurred while packets were written.
    pub fn finish(self) -> Result<(), WriteError> {
        match self.failed {
            Some(e) => Err(e),
            None => self.writer.finish().map(|_| ()),
        }
    }
}

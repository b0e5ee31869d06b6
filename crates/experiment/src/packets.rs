//! The packets of a run as a pcapng file that Wireshark reads.
//!
//! ```text
//!            queue                              queue
//!  left ──●──►▒▒▒──── bottleneck/up ────►    ◄────▒▒▒◄──●── right
//!         │                                             │
//!   interface 0                                    interface 1 (bottleneck/down)
//! ```
//!
//! Each direction is observed where packets arrive at its queue, before the queue drops any. A trace from there
//! contains both a dropped segment and its retransmission. It also has each cause before its effect: data before their
//! ACK, duplicate ACKs before the retransmission. A TCP analysis needs this to distinguish retransmissions from
//! reordering. Packets that are lost on an access path *before* the queue are never seen.
//!
//! Only headers are written, with the packet's true length. Checksums assume a payload of zeros. Packets of the
//! simulator carry no addresses, ports or options; [`headers`] makes them up, deterministically for each run, and the
//! same for all its links. The
//! file's times are seconds since the start of the run, not a date. Memory grows by some hundred bytes per connection.

mod header;
pub(crate) mod headers;
pub(crate) mod hosts;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swell_base::{Packet, Time};
use swell_capture::{Heading, LinkType, Record, Transport, WriteError, Writer};
use swell_world::{Parties, Tap};

use headers::Headers;
pub use headers::Source;

/// Raw IP, by the number that libpcap uses in memory. Up to version 1.10, libpcap compares the number of a second
/// interface in the file with its in-memory number of the first (`sf-pcapng.c`). With the registered number 101 these
/// differ, and tcpdump cannot open the file.
const LINK: LinkType = LinkType::RAW_BSD;

/// The packet file of a link, named after the packet file of the run.
pub fn beside(path: &Path, link: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        None => format!("{stem}.{link}"),
        Some(extension) => format!("{stem}.{link}.{}", extension.to_string_lossy()),
    };
    path.with_file_name(name)
}

/// Made-up headers that the links of a run share.
#[derive(Clone, Debug)]
pub struct SharedHeaders(Arc<Mutex<Headers>>);

impl SharedHeaders {
    /// `sources` are the workloads by their numbers in the world; `seed` is what initial sequence numbers come from.
    pub fn new(sources: Vec<Source>, seed: u64) -> SharedHeaders {
        SharedHeaders(Arc::new(Mutex::new(Headers::new(sources, seed))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Headers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes every packet that arrives at a link to a file.
#[derive(Clone, Debug)]
pub struct Recorder {
    state: Arc<Mutex<State>>,
}

impl Recorder {
    /// Creates the file.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, link: &str, headers: SharedHeaders) -> Result<Recorder, WriteError> {
        let application = concat!("Groundswell ", env!("CARGO_PKG_VERSION"));
        let mut writer = Writer::create(path, application)?;
        for way in ["up", "down"] {
            writer.interface(&format!("{link}/{way}"), LINK, header::LONGEST as u32)?;
        }
        Ok(Recorder {
            state: Arc::new(Mutex::new(State {
                writer: Some(writer),
                failure: None,
                headers,
                bytes: Vec::with_capacity(header::LONGEST),
            })),
        })
    }

    /// The tap for the world.
    pub fn tap(&self) -> Box<dyn Tap> {
        Box::new(self.clone())
    }

    /// Whether writing failed. The run may then be aborted.
    pub fn failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    /// Completes the file. Later packets are ignored.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(self) -> Result<(), WriteError> {
        let mut state = self.lock();
        let writer = state.writer.take();
        match (state.failure.take(), writer) {
            (Some(failure), _) => Err(failure),
            (None, Some(writer)) => writer.finish().map(drop),
            (None, None) => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Recorder {
    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        self.lock().arrival(at, parties, to_server, packet);
    }
}

#[derive(Debug)]
struct State {
    writer: Option<Writer<File>>,
    failure: Option<WriteError>,
    headers: SharedHeaders,
    /// Buffer for the headers of the current packet.
    bytes: Vec<u8>,
}

impl State {
    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        if self.failure.is_some() {
            return;
        }
        let (network, transport) = self.headers.lock().describe(at, parties, to_server, packet);
        match transport {
            Transport::Udp {
                src_port, dst_port, ..
            } => header::udp(&mut self.bytes, &network, [src_port, dst_port]),
            Transport::Tcp(tcp) => header::tcp(&mut self.bytes, &network, &tcp),
            _ => return,
        }
        let written = writer.packet(&Record {
            interface: parties.direction(to_server) as u32,
            time: at.as_nanos(),
            wire_len: u32::from(packet.size),
            heading: Heading::Outbound,
            data: &self.bytes,
        });
        self.failure = written.err();
    }
}

#[cfg(test)]
mod congested;
#[cfg(test)]
mod law;
#[cfg(test)]
mod named;
#[cfg(test)]
mod tests;

//! The packets of a run as a pcapng file that Wireshark reads.
//!
//! ```text
//!            queue                              queue
//!  left ──●──►▒▒▒──── bottleneck/up ────►    ◄────▒▒▒◄──●── right
//!         │                                             │
//!   interface 0                                    interface 1 (bottleneck/down)
//! ```
//!
//! Each direction is observed where packets arrive at its queue, before the queue drops any. A
//! trace taken there has every segment twice that was sent twice, the first time with what it was
//! dropped for, and each cause before its effect: data before their acknowledgement, duplicate
//! acknowledgements before the retransmission. That is what a TCP analysis needs to tell
//! retransmissions from reordering. What is lost on an access path *before* the queue is never seen.
//!
//! Only headers are written, with the packet's true length; payload is thought to be zeros, and the
//! checksums are right for that. Packets of the simulator carry no addresses, ports or options:
//! [`headers`] makes those up, always the same for the same run. The file's times are seconds since the start of
//! the run, not a date. Memory grows by some hundred bytes per connection.

mod clock;
mod header;
pub(crate) mod headers;
mod hosts;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Packet, Time};
use swell_capture::{Heading, LinkType, Record, Transport, WriteError, Writer};
use swell_world::{Parties, Tap};

use headers::Headers;
pub use headers::Source;

/// Raw IP by the number that libpcap has in memory. It holds the number in the file of a second interface against that of
/// the first in memory (`sf-pcapng.c`, up to 1.10), and with 101, which the registry has, tcpdump opens nothing.
const LINK: LinkType = LinkType::RAW_BSD;

/// Writes every packet that arrives at the bottleneck to a file.
#[derive(Clone, Debug)]
pub struct Recorder {
    state: Arc<Mutex<State>>,
}

impl Recorder {
    /// Creates the file. `sources` are the workloads by their numbers in the world; `seed` is what
    /// initial sequence numbers come from.
    ///
    /// # Errors
    /// Where the file cannot be created.
    pub fn create(
        path: &Path,
        link: &str,
        sources: Vec<Source>,
        seed: u64,
    ) -> Result<Recorder, WriteError> {
        let application = concat!("Groundswell ", env!("CARGO_PKG_VERSION"));
        let mut writer = Writer::create(path, application)?;
        for way in ["up", "down"] {
            writer.interface(&format!("{link}/{way}"), LINK, header::LONGEST as u32)?;
        }
        Ok(Recorder {
            state: Arc::new(Mutex::new(State {
                writer: Some(writer),
                failure: None,
                headers: Headers::new(sources, seed),
                bytes: Vec::with_capacity(header::LONGEST),
            })),
        })
    }

    /// What is to be given to the world.
    pub fn tap(&self) -> Box<dyn Tap> {
        Box::new(self.clone())
    }

    /// Whether writing failed: the run may be given up.
    pub fn failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    /// Completes the file; what is shown after that is not written.
    ///
    /// # Errors
    /// Where something could not be written.
    pub fn finish(self) -> Result<(), WriteError> {
        let mut state = self.lock();
        let writer = state.writer.take();
        match (state.failure.take(), writer) {
            (Some(failure), _) => Err(failure),
            (None, Some(writer)) => writer.finish().map(drop),
            (None, None) => Ok(()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Recorder {
    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        self.lock().arrival(at, parties, to_server, packet);
    }

    fn packet(&mut self, _at: Time, _parties: &Parties, to_server: bool, packet: &Packet) {
        self.lock().headers.crossed(to_server, packet);
    }
}

#[derive(Debug)]
struct State {
    writer: Option<Writer<File>>,
    failure: Option<WriteError>,
    headers: Headers,
    /// The headers under way.
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
        let (network, transport) = self.headers.describe(at, parties, to_server, packet);
        match transport {
            Transport::Udp {
                src_port, dst_port, ..
            } => header::udp(&mut self.bytes, &network, [src_port, dst_port]),
            Transport::Tcp(tcp) => header::tcp(&mut self.bytes, &network, &tcp),
            _ => return,
        }
        let up = to_server != parties.from_right;
        let written = writer.packet(&Record {
            interface: u32::from(!up),
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
mod tests;

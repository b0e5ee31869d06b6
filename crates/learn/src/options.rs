//! What may be chosen about learning.

use swell_base::Dur;
use swell_traffic::{Parameters, Provenance};

use crate::sides::Network;

/// What may be chosen about learning.
#[derive(Clone, Debug)]
pub struct Options {
    /// Short name of the model.
    pub name: String,
    /// Where the packets come from. `made_by` is filled in if empty.
    pub provenance: Provenance,
    /// Time-outs of the session structure.
    pub parameters: Parameters,
    /// Silence that ends a UDP flow. 60 s.
    pub udp_idle: Dur,
    /// Silence that ends a TCP connection. 15 min.
    pub tcp_idle: Dur,
    /// Most items (turns, units, datagrams, connections) kept in the model; sessions are thinned
    /// beyond it. [`Options::items`] gives them for the size of a file.
    pub budget: usize,
    /// Measure each session by its own packets alone, and keep all: what [`private::release`](crate::private::release)
    /// needs. Memory grows with the trace then.
    pub apart: bool,
    /// Networks that are inside, on the left of the link; all others are outside. Empty: packets tell.
    pub inside: Vec<Network>,
    /// Propagation delay of the tapped link itself, there and back, where it lies between the tap and some of the
    /// hosts: it is taken out of round trips, since whoever plays the model has a link of their own.
    pub link_rtt: Dur,
    /// How long the capture lasted, where it went on without a packet: rates are means over all of it.
    pub length: Dur,
    /// Packets held back at the beginning, to find out which side of the tap hosts are on before
    /// the first byte is counted.
    pub preview: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            name: String::new(),
            provenance: Provenance::default(),
            parameters: Parameters {
                group_timeout: Dur::from_secs(30),
                session_timeout: Dur::from_secs(300),
                quiet: Dur::from_millis(500),
            },
            udp_idle: Dur::from_secs(60),
            tcp_idle: Dur::from_secs(900),
            budget: Options::items(1_000_000),
            apart: false,
            inside: Vec::new(),
            link_rtt: Dur::ZERO,
            length: Dur::ZERO,
            preview: 50_000,
        }
    }
}

impl Options {
    /// Items of a model that takes so many bytes on disk, compressed: five bytes each in the bundled models
    /// with many, paths included.
    pub const fn items(file: u64) -> usize {
        (file / 5) as usize
    }
}

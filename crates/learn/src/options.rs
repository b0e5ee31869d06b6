//! Options of the learner.

use swell_base::{Dur, Rate};
use swell_traffic::{Parameters, Provenance};

use crate::sides::Network;

/// Options of the learner.
#[derive(Clone, Debug)]
pub struct Options {
    /// Short name of the model.
    pub name: String,
    /// Origin of the packets. `made_by` is filled in if empty.
    pub provenance: Provenance,
    /// Time-outs that define sessions and groups.
    pub parameters: Parameters,
    /// Maximum number of items ([`Session::items`](swell_traffic::Session::items)) in the model. Sessions are thinned
    /// above it. [`Options::items`] derives it from a file size.
    pub budget: usize,
    /// Measure each session by its own packets alone, and keep all sessions, as
    /// [`private::release`](crate::private::release) requires. Memory then grows with the trace.
    pub apart: bool,
    /// Networks on the inside, left of the link; all others are outside. If empty, the packets decide.
    pub inside: Vec<Network>,
    /// Two-way propagation delay of the tapped link, where it lies between the tap and some of the hosts.
    /// It is subtracted from the RTTs, because a replay has a link of its own.
    pub link_rtt: Dur,
    /// Rate of the tapped link, left to right and right to left, if it is known. Capacities of that rate or more are the
    /// link's, and lower ones are those of the hosts' own lines.
    pub link_rate: [Option<Rate>; 2],
    /// Length of the capture, if it continued after the last packet. Rates are means over this time.
    pub length: Dur,
    /// Number of packets buffered at the start. They decide on which side of the tap each host is before
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
            budget: Options::items(1_000_000),
            apart: false,
            inside: Vec::new(),
            link_rtt: Dur::ZERO,
            link_rate: [None; 2],
            length: Dur::ZERO,
            preview: 50_000,
        }
    }
}

impl Options {
    /// Items in a model whose compressed file has this many bytes. The large bundled models take five
    /// bytes per item, paths included.
    pub const fn items(file: u64) -> usize {
        (file / 5) as usize
    }
}

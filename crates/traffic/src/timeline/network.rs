//! The network that sessions are timed in.

use swell_base::{Dur, Rate};

/// The network between the access paths, as far as it affects the duration of an exchange. The default has
/// no delay and no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Network {
    /// Round-trip propagation delay.
    pub rtt: Dur,
    /// Rate that one transfer can expect, left to right and right to left; `None`: no limit.
    pub rates: [Option<Rate>; 2],
}

/// Minimum share of a link that a transfer can expect, however high the load.
pub(crate) const LEAST: f64 = 0.05;

impl Network {
    /// The network as sessions see it: the round-trip time of their path, and in each direction the rate that processor
    /// sharing leaves to a transfer at the lowest-rate link, whose rates are `link`, bits per second. Under processor
    /// sharing, x bytes take x / (C (1 - load)) on average (Kleinrock, J. ACM 14(2), 1967). `offered` are the mean
    /// offered rates.
    pub fn shared(rtt: Dur, link: [f64; 2], offered: [f64; 2]) -> Network {
        let left = |d: usize| {
            let left = (link[d] - offered[d]).max(LEAST * link[d]);
            Some(Rate::from_bps_f64(left))
        };
        Network {
            rtt,
            rates: [0, 1].map(left),
        }
    }
}

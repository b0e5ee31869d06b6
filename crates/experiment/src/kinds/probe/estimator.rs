//! The interface of probing tools: trains that they send, and arrivals that they observe.

use swell_base::{Dur, Stream, Time};

/// Packets to send: time since the first one, and network-layer bytes.
pub(super) struct Train {
    pub packets: Vec<(Dur, u32)>,
    /// From the end of this train to the next one.
    pub pause: Dur,
}

impl Train {
    /// `n` packets of one size at equal gaps, seconds.
    pub fn even(n: usize, gap: f64, size: u32, pause: Dur) -> Train {
        let packets = (0..n).map(|i| (Dur::from_secs_f64(gap * i as f64), size));
        Train {
            packets: packets.collect(),
            pause,
        }
    }
}

/// Send and arrival time of a packet; `None` if it was lost. The clocks of both hosts agree, but no tool relies on
/// that.
pub(super) type Heard = (Time, Option<Time>);

/// Gaps between consecutive packets that both arrived, seconds: at the sender and at the receiver.
pub(super) fn gaps(heard: &[Heard]) -> Vec<(f64, f64)> {
    let pairs = heard.windows(2);
    pairs
        .filter_map(|w| {
            let came = w[1].1?.since(w[0].1?);
            Some((w[1].0.since(w[0].0).as_secs_f64(), came.as_secs_f64()))
        })
        .collect()
}

/// One-way delay of a packet, microseconds.
pub(super) fn delay(heard: &Heard) -> Option<f64> {
    Some(heard.1?.since(heard.0).as_nanos() as f64 / 1000.0)
}

/// Lowest and highest available bandwidth, bits per second.
pub(super) type Range = (f64, f64);

/// A tool: chooses the next train, and derives estimates from arrivals.
pub(super) trait Estimator: Send {
    /// The next train to send.
    fn next(&mut self, rng: &mut Stream) -> Train;

    /// Evaluates the arrivals of a train. Returns an estimate if it is complete, after which the tool starts over.
    fn heard(&mut self, heard: &[Heard]) -> Option<Range>;
}

//! What every tool sends and hears.

use swell_base::{Dur, Stream, Time};

/// Packets to be sent: when each leaves, since the first, and network-layer bytes.
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

/// A packet: when it was sent, and when it came; `None` if it was lost. Clocks of both hosts agree, which no tool rests on.
pub(super) type Heard = (Time, Option<Time>);

/// Gaps between packets that came one after the other, seconds: as they were sent, and as they came.
pub(super) fn gaps(heard: &[Heard]) -> Vec<(f64, f64)> {
    let pairs = heard.windows(2);
    pairs
        .filter_map(|w| {
            let came = w[1].1?.since(w[0].1?);
            Some((w[1].0.since(w[0].0).as_secs_f64(), came.as_secs_f64()))
        })
        .collect()
}

/// How long a packet took, microseconds.
pub(super) fn delay(heard: &Heard) -> Option<f64> {
    Some(heard.1?.since(heard.0).as_nanos() as f64 / 1000.0)
}

/// Lowest and highest available bandwidth, bits per second.
pub(super) type Range = (f64, f64);

/// A tool: which train comes next, and what it concludes.
pub(super) trait Estimator: Send {
    /// What is to be sent.
    fn next(&mut self, rng: &mut Stream) -> Train;

    /// What came of it: an estimate where there is one, after which the tool begins anew.
    fn heard(&mut self, heard: &[Heard]) -> Option<Range>;
}

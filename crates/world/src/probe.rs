//! Internal TCP state of selected connections over time.

use swell_base::{Dur, Time};
use swell_tcp::Endpoint;
use swell_workload::Conn;

/// State of a sender at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When the sample was taken.
    pub at: Time,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes; `u64::MAX` when unlimited.
    pub ssthresh: u64,
    /// The sender's estimate of bytes in the network.
    pub in_flight: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Dur>,
    /// Number of retransmitted segments so far.
    pub retransmitted: u64,
}

/// One end of a connection, sampled after every event that concerned it.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Number of the workload.
    pub workload: u32,
    /// The connection.
    pub conn: Conn,
    /// 0 = the client, 1 = the server.
    pub end: usize,
    /// Samples in order of time; consecutive equal samples are merged.
    pub samples: Vec<Sample>,
}

impl Probe {
    pub(crate) fn look(&mut self, now: Time, endpoint: &Endpoint) {
        let s = endpoint.stats();
        let sample = Sample {
            at: now,
            cwnd: s.cwnd,
            ssthresh: s.ssthresh,
            in_flight: s.in_flight,
            srtt: s.srtt,
            retransmitted: s.retransmitted,
        };
        let same = |last: &Sample| Sample { at: now, ..*last } == sample;
        if !self.samples.last().is_some_and(same) {
            self.samples.push(sample);
        }
    }
}

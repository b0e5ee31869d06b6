//! Transfers that are already in progress when a run begins.

use swell_base::{Direction, Dur, Rate, Time};
use swell_traffic::Network;
use swell_traffic::flowlevel::{Due, Player, Transfer};

use crate::kinds::PathProperties;

/// The network as sessions see it: the round-trip time of their path, and in each direction the rate that processor
/// sharing leaves to a transfer at the lowest-rate link. Under processor sharing, x bytes take x / (C (1 - load)) on
/// average (Kleinrock, J. ACM 14(2), 1967). `offered` are the mean offered rates up and down.
pub(crate) fn met(way: PathProperties, offered: [f64; 2]) -> Network {
    let left = |d: Direction| {
        let rate = way.rates[d].bps() as f64;
        Some(Rate::from_bps_f64((rate - offered[d]).max(LEAST * rate)))
    };
    Network {
        rtt: way.round_trip,
        rates: Direction::BOTH.map(left),
    }
}

/// Minimum share of a link that a transfer can expect, however high the load.
const LEAST: f64 = 0.05;

/// How long before the run the search for transfers in progress begins.
const BACK: Dur = Dur::from_secs(300);
/// Distinguishes the seed of the traffic before a run from that of the run; ASCII "before".
pub(crate) const BEFORE: u64 = 0x6265_666f_7265;

/// Transfers that are still in progress when the run begins, with their remaining bytes. `before` generates the traffic
/// of the preceding [`BACK`] from the same plan. A transfer is in progress if its expected duration exceeds its age.
pub(crate) fn under_way(mut before: Player, network: &Network) -> Vec<Transfer> {
    let end = Time::ZERO + BACK;
    let mut found = Vec::new();
    while let Some(due) = before.pop(end) {
        let Due::Transfer(transfer) = due else {
            continue;
        };
        let had = end.since(transfer.at).as_secs_f64();
        let takes = takes([transfer.up, transfer.down], network);
        if had >= takes {
            continue;
        }
        let all = transfer.up.saturating_add(transfer.down);
        let done = ((all as f64 * had / takes) as u64).min(all.saturating_sub(1));
        found.push(Transfer {
            at: Time::ZERO,
            up: transfer.up.saturating_sub(done),
            down: transfer.down - done.saturating_sub(transfer.up),
            kept: false,
            ..transfer
        });
    }
    found
}

/// Expected duration of a transfer, seconds: two RTTs for handshake and request, slow start from ten segments, then the
/// link rates.
fn takes(bytes: [u64; 2], network: &Network) -> f64 {
    let rtt = network.rtt.as_secs_f64();
    (0..2).fold(2.0 * rtt, |sum, d| {
        let rate = network.rates[d].map_or(f64::INFINITY, |r| r.bps() as f64 / 8.0);
        let (mut left, mut window) = (bytes[d] as f64, WINDOW);
        let mut time = 0.0;
        while left > window && window < rate * rtt {
            left -= window;
            window *= 2.0;
            time += rtt;
        }
        sum + time + left / rate
    })
}

/// The initial window, bytes (RFC 6928).
const WINDOW: f64 = 14_480.0;

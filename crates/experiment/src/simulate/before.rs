//! What was in progress when a run began.

use swell_base::{Dur, Rate, Time};
use swell_traffic::Network;
use swell_traffic::flowlevel::{Due, Player, Transfer};

use crate::kinds::Way;

/// The network that sessions meet: the round trip of their path, and of its lowest rates what the
/// processor-sharing formula leaves to a transfer, which takes x / (C (1 - load)) for x bytes (Kleinrock, J. ACM 14(2),
/// 1967). `offered` are the mean rates up and down.
pub(crate) fn met(way: Way, offered: [f64; 2]) -> Network {
    let left = |d: usize| {
        let rate = way.rates[d].bps() as f64;
        Some(Rate::from_bps_f64((rate - offered[d]).max(LEAST * rate)))
    };
    Network {
        rtt: way.round_trip,
        rates: [left(0), left(1)],
    }
}

/// A transfer can expect so much of a link, however high its load.
const LEAST: f64 = 0.05;

/// How far back transfers are looked for that may be in progress when a run begins.
const BACK: Dur = Dur::from_secs(300);
/// Marks the seed of what came before a run.
pub(crate) const BEFORE: u64 = 0x6265_666f_7265;

/// Transfers that another play of the same plan, which ends when the run begins, leaves in progress: those
/// that by then take longer than they have had, with what is left of them.
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

/// Seconds that a transfer takes: handshake and request, slow start from ten segments, then the rates.
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

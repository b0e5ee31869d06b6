//! Transfers that are already in progress when a run begins.

use swell_base::{Direction, Dur, Rate, Time, derived};
use swell_traffic::Network;
use swell_traffic::flowlevel::{Due, Plan, Player, Share, Transfer};

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
pub(super) const BEFORE: u64 = 0x6265_666f_7265;

/// Most transfers that are generated to find those in progress.
const MOST: f64 = 200_000.0;

/// The player of an endless plan from the beginning of a run, and the transfers that are still in progress then, with
/// their remaining bytes.
///
/// A second player generates the traffic of the preceding [`BACK`] from the same plan. If the plan limits the rates of
/// files, these may be in progress for much longer. Then it generates the whole round before the run.
pub(crate) fn steady(plan: Plan, seed: u64, network: &Network) -> (Player, Vec<Transfer>) {
    let earlier = derived(seed, BEFORE);
    if !plan.is_limited() {
        let before = Player::new(plan.clone(), earlier, Share::ALL);
        let found = under_way(before, Time::ZERO + BACK, network);
        return (Player::new(plan, seed, Share::ALL), found);
    }
    let round = plan.round();
    let from = match plan.transfers() > MOST {
        true => round.saturating_sub(BACK),
        false => Dur::ZERO,
    };
    let before = Player::joining(plan.clone(), earlier, Share::ALL, Time::ZERO + from);
    let found = under_way(before, Time::ZERO + round, network);
    (Player::after_round(plan, seed, Share::ALL, earlier), found)
}

/// The transfers that `before` begins until `end` and that are in progress then. A transfer is in progress if its
/// expected duration exceeds its age.
fn under_way(mut before: Player, end: Time, network: &Network) -> Vec<Transfer> {
    let mut found = Vec::new();
    while let Some(due) = before.pop(end) {
        let Due::Transfer(transfer) = due else {
            continue;
        };
        let had = end.since(transfer.at).as_secs_f64();
        let takes = takes(&transfer, network);
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
/// link rates, or the transfer's own.
fn takes(transfer: &Transfer, network: &Network) -> f64 {
    let bytes = [transfer.up, transfer.down];
    let rtt = network.rtt.as_secs_f64();
    (0..2).fold(2.0 * rtt, |sum, d| {
        let bytes_per_second = |r: Rate| r.bps() as f64 / 8.0;
        let rate = network.rates[d].map_or(f64::INFINITY, bytes_per_second);
        let rate = transfer.limits[d].map_or(rate, |r| rate.min(bytes_per_second(r)));
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

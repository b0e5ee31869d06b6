//! Transfers that are already in progress when a run begins.

use swell_base::{Dur, Rate, Time, derived};
use swell_traffic::Network;
use swell_traffic::flowlevel::{Due, Plan, Player, Share, Transfer};

/// How long before the run the search for transfers in progress begins.
const BACK: Dur = Dur::from_secs(300);
/// Distinguishes the seed of the traffic before a run from that of the run; ASCII "before".
pub(super) const BEFORE: u64 = 0x6265_666f_7265;

/// Most transfers and datagram sources that are generated to find transfers in progress, and most rounds.
const MOST: f64 = 200_000.0;
const ROUNDS: f64 = 100.0;

/// The player of an endless plan from the beginning of a run, and the transfers that are still in progress then, with
/// their remaining bytes.
///
/// A second player generates the traffic of the preceding [`BACK`] from the same plan. If the plan limits the rates of
/// files, these may be in progress for much longer. Then it generates as many whole rounds as the longest file takes, or
/// what [`MOST`] allows.
pub(crate) fn steady(plan: Plan, seed: u64, network: &Network) -> (Player, Vec<Transfer>) {
    let earlier = derived(seed, BEFORE);
    if !plan.is_limited() {
        let mut before = Player::new(plan.clone(), earlier, Share::ALL);
        let found = under_way(&mut before, Time::ZERO + BACK, network);
        return (Player::new(plan, seed, Share::ALL), found);
    }
    let (rounds, from) = rounds_before(&plan);
    let mut before = Player::joining(plan.clone(), earlier, Share::ALL, Time::ZERO + from);
    let found = under_way(&mut before, Time::ZERO + plan.round() * rounds, network);
    (Player::after_round(plan, seed, Share::ALL, &before), found)
}

/// How many rounds before a run are generated, and from when on in the first of them.
fn rounds_before(plan: &Plan) -> (u64, Dur) {
    let round = plan.round();
    let seconds = round.as_secs_f64();
    let wanted = (plan.longest() / seconds).max(1.0);
    let most = (MOST / (plan.transfers() + plan.sources())).max(BACK.as_secs_f64() / seconds);
    let rounds = wanted.min(most).min(ROUNDS);
    let whole = rounds.ceil().max(1.0);
    let skipped = if rounds < wanted { whole - rounds } else { 0.0 };
    (whole as u64, round.scale(skipped))
}

/// The transfers that `before` begins until `end` and that are in progress then. A transfer is in progress if its
/// expected duration exceeds its age.
fn under_way(before: &mut Player, end: Time, network: &Network) -> Vec<Transfer> {
    let mut found = Vec::new();
    while let Some(due) = before.pop(end) {
        if let Due::Transfer(transfer) = due {
            found.extend(rest(transfer, end.since(transfer.at), network));
        }
    }
    found
}

/// What is left of a transfer after this time; `None` if it is over.
fn rest(transfer: Transfer, had: Dur, network: &Network) -> Option<Transfer> {
    let had = had.as_secs_f64();
    let [up, down] = takes(&transfer, network);
    if had >= up + down {
        return None;
    }
    let left = |bytes: u64, seconds: f64, of: f64| {
        let sent = if of > 0.0 { seconds / of } else { 1.0 };
        bytes.saturating_sub((bytes as f64 * sent.clamp(0.0, 1.0)) as u64)
    };
    let up_left = left(transfer.up, had, up);
    let down_left = left(transfer.down, had - up, down);
    Some(Transfer {
        at: Time::ZERO,
        up: up_left,
        // A transfer has something to send.
        down: if up_left == 0 {
            down_left.max(1)
        } else {
            down_left
        },
        kept: false,
        ..transfer
    })
}

/// Expected durations of the two files of a transfer, seconds, the second one after the first: two RTTs for handshake and
/// request, slow start from ten segments, then the link rates, or the transfer's own.
fn takes(transfer: &Transfer, network: &Network) -> [f64; 2] {
    let bytes = [transfer.up, transfer.down];
    let rtt = network.rtt.as_secs_f64();
    [0, 1].map(|d| {
        let bytes_per_second = |r: Rate| r.bps() as f64 / 8.0;
        let rate = network.rates[d].map_or(f64::INFINITY, bytes_per_second);
        let rate = transfer.limits[d].map_or(rate, |r| rate.min(bytes_per_second(r)));
        let (mut left, mut window) = (bytes[d] as f64, WINDOW);
        let mut time = if d == 0 { 2.0 * rtt } else { 0.0 };
        while left > window && window < rate * rtt {
            left -= window;
            window *= 2.0;
            time += rtt;
        }
        time + left / rate
    })
}

/// The initial window, bytes (RFC 6928).
const WINDOW: f64 = 14_480.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// A megabyte up without a limit, then a megabyte down that takes 100 s.
    #[test]
    fn each_direction_of_a_transfer_has_its_own_rest() {
        let network = Network {
            rtt: Dur::from_millis(100),
            rates: [Some(Rate::from_bps(8_000_000)); 2],
        };
        let transfer = Transfer {
            at: Time::ZERO,
            session: 0,
            source: 0,
            destination: 0,
            up: 1_000_000,
            down: 1_000_000,
            limits: [None, Some(Rate::from_bps(80_000))],
            kept: true,
        };
        let left = |seconds: f64| rest(transfer, Dur::from_secs_f64(seconds), &network);
        let begun = left(0.0).expect("it is in progress");
        assert_eq!((begun.up, begun.down), (1_000_000, 1_000_000));
        let early = left(0.7).expect("it is in progress");
        assert!((300_000..700_000).contains(&early.up), "{early:?}");
        assert_eq!(early.down, 1_000_000);
        let late = left(50.0).expect("it is in progress");
        assert_eq!(late.up, 0);
        assert!((500_000..530_000).contains(&late.down), "{late:?}");
        assert_eq!(left(103.0), None);
    }
}

//! Who comes first of packets that reach the gateway at one instant.
//!
//! An access link takes 1.2 ms for a packet, the gateway 0.24 ms: five times less, exactly. Clients are
//! clocked by their acknowledgements, which leave the gateway's slots behind, so a packet that waited
//! behind another of its client reaches the gateway together with one that did not wait and left the
//! client at an acknowledgement five slots later. With one place left in the queue it matters who is first.
//!
//! In ns-2 it is rounding that decides. Its time is a binary floating-point number to which durations are
//! added (`Scheduler::schedule`, `common/scheduler.cc`), and between two powers of two seconds each
//! duration is rounded alike every time: one access transmission comes out later or earlier than five
//! slots, always by as much. So the order is that of the powers of two, and changes when time passes one.

use swell_base::{Dur, Rate, Time};
use swell_path::{Capacity, Change, LinkConfig};

/// Transmission times of a packet as ns-2 computes them, 8 size / bandwidth, in seconds.
const ACCESS: f64 = 8.0 * 1500.0 / 10e6;
const GATEWAY: f64 = 8.0 * 1500.0 / 50e6;
/// The gateway's rate, bits per second.
const RATE: u64 = 50_000_000;
/// So much more, or less: five slots are 1 ns shorter or longer, less than one in a million, than one
/// access transmission. That is enough to part what is together, and nothing else.
const NUDGE: u64 = 42;
/// Powers of two seconds after which nothing runs.
const LAST: i32 = 40;

/// Who comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ties {
    /// Whoever the engine takes up first.
    Engine,
    /// Who waited behind a packet of the same client.
    Waited,
    /// Who did not.
    Fresh,
    /// As in ns-2.
    Ns2,
}

impl Ties {
    /// Gives the gateway's link its rate.
    pub fn set(self, link: &mut LinkConfig, until: Dur) {
        let rate = |ties| Rate::from_bps(bits_per_second(ties));
        if self != Ties::Ns2 {
            link.rate = Some(rate(self));
            return;
        }
        link.rate = Some(rate(in_ns2(0)));
        let mut last = in_ns2(0);
        let mut changes = Vec::new();
        for power in 1..LAST {
            let at = Time::from_secs_f64(f64::powi(2.0, power));
            let now = in_ns2(power);
            if at.since(Time::ZERO) < until && now != last {
                changes.push(Change {
                    at,
                    capacity: Some(Capacity::Rate(rate(now))),
                    ..Change::default()
                });
                last = now;
            }
        }
        link.changes = changes;
    }
}

fn bits_per_second(ties: Ties) -> u64 {
    match ties {
        Ties::Engine | Ties::Ns2 => RATE,
        // Five slots later comes later.
        Ties::Waited => RATE - NUDGE,
        Ties::Fresh => RATE + NUDGE,
    }
}

/// The order in ns-2 between 2^`power` and 2^(`power` + 1) seconds.
fn in_ns2(power: i32) -> Ties {
    let begin = f64::powi(2.0, power);
    let rounded = |seconds: f64| (begin + seconds) - begin;
    let later = rounded(ACCESS) - 5.0 * rounded(GATEWAY);
    if later > 0.0 {
        Ties::Fresh
    } else if later < 0.0 {
        Ties::Waited
    } else {
        Ties::Engine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nudge_is_a_nanosecond_in_five_slots() {
        for (ties, sign) in [(Ties::Waited, 1.0), (Ties::Fresh, -1.0)] {
            let slots = 5.0 * 12_000.0 / bits_per_second(ties) as f64;
            let apart = (slots - ACCESS) * 1e9 * sign;
            assert!((apart - 1.0).abs() < 0.02, "{ties:?}: {apart} ns");
        }
    }

    #[test]
    fn the_order_changes_at_16_32_64_and_128_seconds() {
        // In units of the last place, by exact arithmetic: 1, 1, -2, 1, -2, 2 from 4 s on, and -2, 2 from
        // 256 s on.
        let orders: Vec<Ties> = (2..10).map(in_ns2).collect();
        let (f, w) = (Ties::Fresh, Ties::Waited);
        assert_eq!(orders, [f, f, w, f, w, f, w, f]);
        let mut link = LinkConfig::default();
        Ties::Ns2.set(&mut link, Dur::from_secs(200));
        let at: Vec<f64> = link.changes.iter().map(|c| c.at.as_secs_f64()).collect();
        assert_eq!(at[at.len() - 4..], [16.0, 32.0, 64.0, 128.0]);
    }
}

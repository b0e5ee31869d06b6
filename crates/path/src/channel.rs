//! The serializer of a link that changes. It computes the end of a transmission in advance, across all changes until
//! then.

use swell_base::{Dur, Rate, Stream, Time};

use crate::deliveries::{BYTE, Position};
use crate::schedule::Timeline;
use crate::{Capacity, Change, Deliveries, LinkConfig, LossProcess};

/// Largest number of changes during one transmission. A transmission that takes more counts as never ending. So the
/// work is bounded, even for a link that changes every nanosecond.
const PATIENCE: u32 = 10_000_000;

#[derive(Clone, Debug)]
enum Supply {
    Unlimited,
    /// Bits per second.
    Rate(u64),
    Deliveries(Position),
}

/// State of capacity, outages, delay and loss after all changes up to some instant.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    timeline: Timeline,
    supply: Supply,
    /// End of the latest outage in which packets wait, and of the latest in which packets are lost.
    stopped_until: Time,
    dead_until: Time,
    /// Nanobits of the next packet that were already sent in the last nanosecond of the previous one.
    carry: u128,
    pub delay: Dur,
    loss: LossProcess,
}

/// Result of a transmission.
pub(crate) struct Sent {
    /// When the last bit leaves; `MAX` = never.
    pub end: Time,
    /// Whether the wire lost the packet.
    pub lost: bool,
}

impl Channel {
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Channel {
        Channel {
            timeline: Timeline::new(&config.changes, Change::of_wire),
            supply: match config.rate {
                None => Supply::Unlimited,
                Some(rate) => Supply::Rate(rate.bps()),
            },
            stopped_until: Time::ZERO,
            dead_until: Time::ZERO,
            carry: 0,
            delay: config.delay,
            loss: LossProcess::new(config.loss, Stream::new(seed, name)),
        }
    }

    /// The wire of a link that has not changed until now. Takes its rate (bit/s, 0 = unlimited), the remainder of its
    /// last division of bits by rate, and its loss.
    pub fn so_far((rate, carry): (u64, u64), delay: Dur, loss: LossProcess) -> Channel {
        Channel {
            timeline: Timeline::new(&[], |_| false),
            supply: match rate {
                0 => Supply::Unlimited,
                rate => Supply::Rate(rate),
            },
            stopped_until: Time::ZERO,
            dead_until: Time::ZERO,
            carry: u128::from(carry),
            delay,
            loss,
        }
    }

    /// Adds a change at or after `now`, at which the link is up to date. Changes due by then are applied before, so
    /// that they do not pile up on a link without traffic.
    pub fn add(&mut self, now: Time, change: Change) {
        self.reach(now);
        self.timeline.add(change);
    }

    /// Bits per second after every change up to and including `at`; 0 without a rate.
    pub fn rate_at(&mut self, at: Time) -> u64 {
        self.reach(at);
        match self.supply {
            Supply::Rate(rate) => rate,
            Supply::Unlimited | Supply::Deliveries(_) => 0,
        }
    }

    /// When a transmission may begin on a serializer that is idle at `at`. `free_at` is the previous result, which is
    /// not later than `at`.
    pub fn wake(&mut self, at: Time, free_at: Time) -> Time {
        if at == Time::MAX {
            return Time::MAX;
        }
        self.reach(at);
        if free_at < at {
            // The remainder of the last busy period is dropped.
            self.carry = 0;
        }
        if let Supply::Deliveries(position) = &mut self.supply {
            // Departures come before arrivals: an opportunity at this instant has passed.
            position.seek_beyond(at);
        }
        self.ready(at)
    }

    /// Transmits `bytes` from `start` on, which must be an instant that this wire returned as ready.
    pub fn send(&mut self, start: Time, bytes: u64) -> Sent {
        const NEVER: Sent = Sent {
            end: Time::MAX,
            lost: false,
        };
        self.reach(start);
        let mut lost = self.dead_until > start;
        let header = match self.supply {
            Supply::Deliveries(_) => Deliveries::HEADER.0,
            _ => 0,
        };
        let mut work = u128::from(bytes + header) * u128::from(BYTE) + self.carry;
        self.carry = 0;
        let mut at = start;
        for _ in 0..PATIENCE {
            let until = self.boundary(at);
            match self.supply_at(at) {
                None | Some(Supply::Rate(0)) => {}
                Some(Supply::Unlimited) => return self.sent(at, lost),
                Some(&mut Supply::Rate(rate)) => {
                    let rate = u128::from(rate);
                    let most = rate * u128::from(until.since(at).as_nanos());
                    if work <= most {
                        self.carry = work % rate;
                        // At most the time until the boundary, which fits in 64 bits.
                        return self.sent(at + Dur::from_nanos((work / rate) as u64), lost);
                    }
                    work -= most;
                }
                Some(Supply::Deliveries(position)) => match position.spend(work, until) {
                    Ok(end) => return self.sent(end, lost),
                    Err(rest) => work = rest,
                },
            }
            if until == Time::MAX {
                break;
            }
            at = until;
            self.reach(at);
            lost |= self.dead_until > at;
        }
        NEVER
    }

    fn sent(&mut self, end: Time, lost: bool) -> Sent {
        self.reach(end);
        Sent {
            end,
            lost: lost || self.loss.loses(),
        }
    }

    /// The first instant not before `from` at which a transmission may begin; `MAX` = never.
    pub fn ready(&mut self, from: Time) -> Time {
        let mut at = from;
        for _ in 0..PATIENCE {
            let until = self.boundary(at);
            match self.supply_at(at) {
                None | Some(Supply::Rate(0)) => {}
                Some(Supply::Unlimited | Supply::Rate(_)) => return at,
                Some(Supply::Deliveries(position)) => {
                    let next = position.instant();
                    if next < until {
                        return next;
                    }
                }
            }
            if until == Time::MAX {
                break;
            }
            at = until;
            self.reach(at);
        }
        Time::MAX
    }

    /// Nanobits that could be transmitted between `from`, the instant reached, and `to`.
    pub fn offers(&mut self, from: Time, to: Time) -> u128 {
        let mut sum = 0;
        let mut at = from;
        while at < to {
            self.reach(at);
            let until = self.boundary(at).min(to);
            match self.supply_at(at) {
                None | Some(Supply::Unlimited) => {}
                Some(Supply::Rate(rate)) => {
                    sum += u128::from(*rate) * u128::from(until.since(at).as_nanos());
                }
                Some(Supply::Deliveries(position)) => {
                    let header = u128::from(Deliveries::HEADER.0 * BYTE);
                    let full = u128::from(Deliveries::OPPORTUNITY.0 * BYTE);
                    while position.spend(full, until).is_ok() {
                        sum += full - header;
                    }
                }
            }
            at = until;
        }
        sum
    }

    /// The supply at `at`; `None` in an outage.
    fn supply_at(&mut self, at: Time) -> Option<&mut Supply> {
        if self.stopped_until > at {
            return None;
        }
        if let Supply::Deliveries(position) = &mut self.supply
            && position.instant() < at
        {
            position.seek(at);
        }
        Some(&mut self.supply)
    }

    /// The first instant after `at`, the instant reached, at which the supply may change.
    fn boundary(&self, at: Time) -> Time {
        let next = self.timeline.next_at();
        if self.stopped_until > at {
            next.min(self.stopped_until)
        } else {
            next
        }
    }

    /// Applies every change up to and including `at`, before which no transmission begins any more.
    pub fn reach(&mut self, at: Time) {
        while let Some((when, change)) = self.timeline.take(at) {
            if let Some(capacity) = &change.capacity {
                self.carry = 0;
                self.supply = match capacity {
                    Capacity::Unlimited => Supply::Unlimited,
                    Capacity::Rate(rate) => Supply::Rate(rate.bps()),
                    Capacity::Deliveries { trace, phase } => {
                        Supply::Deliveries(Position::new(trace, *phase, when))
                    }
                };
            }
            if let Some(delay) = change.delay {
                self.delay = delay;
            }
            if let Some(loss) = change.loss {
                self.loss.becomes(loss);
            }
            if let Some(outage) = change.outage {
                let end = when + outage.length;
                let latest = if outage.lossy {
                    &mut self.dead_until
                } else {
                    &mut self.stopped_until
                };
                *latest = end.max(*latest);
            }
        }
    }
}

/// Mean rate in bits per second that a link can carry in each of `bins` bins of `width` from time zero, with all its
/// scheduled changes. Outages in which packets are lost count as capacity, because the link transmits.
///
/// Link-layer overhead is not subtracted. While a link has no rate, it counts as zero.
pub fn offered(config: &LinkConfig, width: Dur, bins: usize) -> Vec<Rate> {
    let mut channel = Channel::new(config, 0, "");
    let width = width.as_nanos().max(1);
    (0..bins as u64)
        .map(|i| {
            let edge = |n: u64| Time::from_nanos(n.saturating_mul(width));
            let nanobits = channel.offers(edge(i), edge(i + 1));
            Rate::from_bps(u64::try_from(nanobits / u128::from(width)).unwrap_or(u64::MAX))
        })
        .collect()
}

/// Mean rate that a link can carry from `from` to `to`, by the definition of [`offered`].
pub fn mean_offered(config: &LinkConfig, from: Time, to: Time) -> Rate {
    let mut channel = Channel::new(config, 0, "");
    let span = u128::from(to.since(from).as_nanos().max(1));
    let nanobits = channel.offers(from, to);
    Rate::from_bps(u64::try_from(nanobits / span).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link may be changed any number of times, with or without traffic.
    #[test]
    fn changes_that_are_over_are_forgotten() {
        let loss = LossProcess::new(crate::Loss::None, Stream::new(1, "wire"));
        let mut channel = Channel::so_far((8_000, 0), Dur::ZERO, loss);
        let every = Change {
            every: Some(Dur::from_millis(300)),
            delay: Some(Dur::from_millis(7)),
            ..Change::default()
        };
        channel.add(Time::ZERO, every);
        for i in 1..=1_000u64 {
            let now = Time::from_nanos(i * 1_000_000);
            let change = Change {
                at: now,
                capacity: Some(Capacity::Rate(Rate::from_bps(i))),
                ..Change::default()
            };
            channel.add(now, change);
            assert!(
                channel.timeline.kept() <= 3,
                "{} at {now}",
                channel.timeline.kept()
            );
        }
        channel.reach(Time::from_nanos(1_000_000_000));
        assert!(matches!(channel.supply, Supply::Rate(1_000)));
        assert_eq!(channel.delay, Dur::from_millis(7));
    }
}

//! Limits on what an agent does for any controller: how much it sends, to which peers, and when.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use swell_base::{Bytes, Dur, Rate};
use swell_host::clock::monotonic;

use super::pool::Addresses;

/// Limits of one agent, for all its runs together. The default sets no limit.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Limit on the sending rate.
    pub budget: Option<Arc<Budget>>,
    /// Where traffic may come from and go to; if empty, anywhere.
    pub peers: Addresses,
}

/// A rate limit that several threads share. It is a token bucket in the form of the virtual scheduling algorithm
/// (ITU-T I.371, annex A), which stores the time at which the bucket is empty again.
#[derive(Debug)]
pub struct Budget {
    rate: Rate,
    /// When everything sent so far will have passed at the rate; nanoseconds of the monotonic clock.
    paid: AtomicU64,
}

/// Length of a burst at the rate.
const BURST: Dur = Dur::from_millis(10);
/// Minimum size of a burst: one full packet, in bytes.
const PACKET: u64 = 1_500;
/// Header bytes of a TCP segment on Ethernet: 14, plus 20 for IPv4, plus 32 for TCP with time stamps. A datagram has
/// fewer.
const HEADERS: u64 = 66;
/// Payload bytes of such a segment.
const SEGMENT: u64 = 1_448;

impl Budget {
    /// A budget for a rate on the wire, headers included.
    pub fn new(rate: Rate) -> Budget {
        Budget {
            rate,
            paid: AtomicU64::new(0),
        }
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// How many bytes may be sent now, or else how long to wait.
    pub(super) fn room(&self) -> Result<usize, Dur> {
        self.room_at(monotonic())
    }

    fn room_at(&self, now: u64) -> Result<usize, Dur> {
        let ahead = self.paid.load(Ordering::Acquire).saturating_sub(now);
        match ahead.checked_sub(BURST.as_nanos()) {
            Some(wait) if wait > 0 => Err(Dur::from_nanos(wait)),
            _ => Ok(self.rate.carried_in(BURST).0.max(PACKET) as usize),
        }
    }

    /// Charges `payload` bytes that were sent on a connection.
    pub(super) fn pay(&self, payload: u64) {
        self.pay_at(monotonic(), payload, payload.div_ceil(SEGMENT));
    }

    /// Charges `datagrams` datagrams with `payload` bytes in total.
    pub(super) fn pay_datagrams(&self, payload: u64, datagrams: u64) {
        self.pay_at(monotonic(), payload, datagrams);
    }

    fn pay_at(&self, now: u64, payload: u64, packets: u64) {
        let wire = payload + packets * HEADERS;
        let cost = self.rate.transmit(Bytes(wire)).as_nanos();
        let paid = |paid: u64| Some(paid.max(now).saturating_add(cost));
        // The closure never returns `None`, so this cannot fail.
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let _ = self.paid.fetch_update(set, get, paid);
    }
}

/// A daily time interval in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// Seconds since midnight.
    from: u32,
    until: u32,
}

const DAY: u32 = 86_400;

impl Hours {
    /// How long the interval still lasts at `epoch` (Unix time in seconds); `None` outside it.
    pub fn left(&self, epoch: f64) -> Option<Dur> {
        let second = epoch.rem_euclid(f64::from(DAY));
        let since = (second - f64::from(self.from)).rem_euclid(f64::from(DAY));
        let length = f64::from((self.until + DAY - self.from) % DAY);
        (since < length).then(|| Dur::from_secs_f64(length - since))
    }
}

impl FromStr for Hours {
    type Err = String;

    /// Parses `22:00-06:00`; seconds are optional.
    fn from_str(text: &str) -> Result<Hours, String> {
        let wrong = || format!("`{text}` is not of the form 22:00-06:00");
        let second = |time: &str| -> Option<u32> {
            let parts: Vec<&str> = time.trim().split(':').collect();
            let number = |part: &str, below: u32| {
                let digits = part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit());
                part.parse::<u32>().ok().filter(|n| digits && *n < below)
            };
            match parts[..] {
                [h, m] => Some(number(h, 24)? * 3_600 + number(m, 60)? * 60),
                [h, m, s] => Some(number(h, 24)? * 3_600 + number(m, 60)? * 60 + number(s, 60)?),
                _ => None,
            }
        };
        let (from, until) = text.split_once('-').ok_or_else(wrong)?;
        let (from, until) = (
            second(from).ok_or_else(wrong)?,
            second(until).ok_or_else(wrong)?,
        );
        if from == until {
            return Err(format!("`{text}` is no time at all"));
        }
        Ok(Hours { from, until })
    }
}

impl std::fmt::Display for Hours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [from, until] = [self.from, self.until]
            .map(|s| format!("{:02}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60));
        write!(f, "{from}-{until}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_keeps_to_the_rate_and_a_burst_however_it_is_divided() {
        for (mbit, chunk) in [(1, 1_448), (1, 100), (10, 14_480), (1_000, 262_144)] {
            let rate = Rate::from_bps(mbit * 1_000_000);
            let budget = Budget::new(rate);
            let (mut now, mut wire) = (1_000_000_000_u64, 0_u64);
            let begun = now;
            while now < begun + 2_000_000_000 {
                match budget.room_at(now) {
                    Ok(room) => {
                        let payload = chunk.min(room as u64);
                        budget.pay_at(now, payload, payload.div_ceil(SEGMENT));
                        wire += payload + payload.div_ceil(SEGMENT) * HEADERS;
                    }
                    Err(wait) => now += wait.as_nanos(),
                }
            }
            let allowed = rate.carried_in(Dur::from_secs(2)).0 as f64;
            let slack = rate.carried_in(BURST).0.max(2 * PACKET) as f64 + chunk as f64;
            let sent = wire as f64;
            assert!(
                sent <= allowed + slack,
                "{mbit} Mbit/s: {sent} of {allowed}"
            );
            assert!(sent >= 0.98 * allowed, "{mbit} Mbit/s: {sent} of {allowed}");
        }
    }

    #[test]
    fn hours_are_read_and_told_and_may_pass_midnight() {
        let hours = |text: &str| text.parse::<Hours>();
        let left = |text: &str, at: f64| hours(text).unwrap().left(at).map(Dur::as_secs_f64);
        assert_eq!(left("22:00-06:00", 0.0), Some(21_600.0));
        assert_eq!(left("22:00-06:00", 21_599.5), Some(0.5));
        assert_eq!(left("22:00-06:00", 21_600.0), None);
        assert_eq!(left("22:00-06:00", 79_199.0), None);
        assert_eq!(left("22:00-06:00", 79_200.0), Some(28_800.0));
        // The day does not matter.
        assert_eq!(
            left("08:30-09:00", 20_000.0 * 86_400.0 + 30_700.0),
            Some(1_700.0)
        );
        assert_eq!(hours("22:00-6:0").unwrap().to_string(), "22:00:00-06:00:00");
        for wrong in [
            "",
            "22-6",
            "24:00-06:00",
            "22:00",
            "1:60-2:00",
            "1:00-1:00",
            "+1:00-2:00",
            "1:00-2:00-3:00",
        ] {
            assert!(hours(wrong).is_err(), "{wrong}");
        }
    }
}

//! The rate of a single connection: a file that was slow in the records is sent no faster than it was.

use swell_base::{Dur, Time};

/// What a connection may send at once: as much as its rate carries in this time. Timers are not more exact.
const BURST: Dur = Dur::from_millis(20);
/// Minimum of a burst, bytes: the payload of a full segment.
const SEGMENT: u64 = 1_448;
/// A slow connection sends at least once in this time, so that neither end takes it for stalled.
const OFTEN: Dur = Dur::from_secs(5);

/// A limit on the rate of the payload that one end of a connection sends: a token bucket in the form of the virtual
/// scheduling algorithm (ITU-T I.371, annex A).
#[derive(Clone, Copy, Debug)]
pub(super) struct Paced {
    /// Bytes per second, not zero.
    rate: u64,
    /// When everything sent so far will have passed at the rate.
    paid: Time,
}

impl Paced {
    /// A limit of `rate` bytes per second from `now` on; `None` for zero.
    pub fn new(rate: u64, now: Time) -> Option<Paced> {
        (rate > 0).then_some(Paced { rate, paid: now })
    }

    fn carried(&self, span: Dur) -> u64 {
        (self.rate as f64 * span.as_secs_f64()) as u64
    }

    /// Bytes of a burst.
    fn burst(&self) -> u64 {
        let most = self.carried(OFTEN).clamp(1, SEGMENT);
        self.carried(BURST).max(most)
    }

    /// How many bytes may be sent now, or else how long to wait.
    pub fn room(&self, now: Time) -> Result<u64, Dur> {
        match self.paid > now {
            true => Err(self.paid.since(now)),
            false => Ok(self.burst()),
        }
    }

    /// Charges bytes that were sent. What was not sent in time is not made up for.
    pub fn sent(&mut self, bytes: u64, now: Time) {
        self.paid = self.paid.max(now) + Dur::from_secs_f64(bytes as f64 / self.rate as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_keeps_its_rate_and_does_not_catch_up() {
        for rate in [1, 200, 62_500, 12_500_000] {
            let mut now = Time::from_secs_f64(5.0);
            let mut paced = Paced::new(rate, now).unwrap();
            let (begun, mut sent) = (now, 0);
            // It is held up for the first of 100 seconds.
            now += Dur::from_secs(1);
            while now < begun + Dur::from_secs(100) {
                match paced.room(now) {
                    Ok(room) => {
                        sent += room;
                        paced.sent(room, now);
                    }
                    Err(wait) => {
                        assert!(wait <= OFTEN, "{rate}: {wait}");
                        now += wait;
                    }
                }
            }
            let most = 99 * rate + paced.burst();
            assert!((98 * rate..=most).contains(&sent), "{rate}: {sent}");
        }
        assert!(Paced::new(0, Time::ZERO).is_none());
    }
}

//! RTTs between the tap and each end without a handshake: the shortest answers to data and to timestamps.
//!
//! An end echoes the latest timestamp that it received (RFC 7323 section 4.3). Time passes between the first packet with
//! a timestamp and its echo: an RTT, and what its receiver waited. The shortest of many is the RTT (passive ping:
//! K. Nichols, `pping`).

/// Number of timestamps of an end that may wait for their echo.
const FEW: usize = 4;

/// Timestamps of one end that were not echoed yet, the oldest first, and when they first passed.
#[derive(Debug, Default)]
struct Sent {
    waiting: [(u32, u64); FEW],
    count: usize,
    latest: Option<u32>,
}

impl Sent {
    /// Only the first packet with a value is sure not to be later than the one that is echoed.
    fn push(&mut self, value: u32, at: u64) {
        let newer = |latest: u32| value.wrapping_sub(latest) as i32 > 0;
        if self.latest.is_none_or(newer) {
            self.latest = Some(value);
            if let Some(place) = self.waiting.get_mut(self.count) {
                *place = (value, at);
                self.count += 1;
            }
        }
    }

    /// When the timestamp first passed that is echoed, if it waited.
    fn echoed(&mut self, echo: u32) -> Option<u64> {
        let waiting = &self.waiting[..self.count];
        let answered = waiting.partition_point(|w| echo.wrapping_sub(w.0) as i32 >= 0);
        let last = waiting[..answered].last().copied();
        self.waiting.copy_within(answered..self.count, 0);
        self.count -= answered;
        last.filter(|w| w.0 == echo).map(|w| w.1)
    }
}

/// The shortest of several samples, nanoseconds, and their number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Least {
    pub(crate) took: u64,
    /// When it was seen, nanoseconds.
    pub(crate) at: u64,
    samples: u32,
}

impl Least {
    /// Whether there were enough samples for the shortest not to have waited for an application.
    pub(crate) fn sound(&self) -> bool {
        self.samples >= ENOUGH
    }
}

/// Minimum number of samples for the shortest to be an RTT. Fewer are an upper bound.
const ENOUGH: u32 = 3;

/// Timestamps of both ends, and the shortest RTTs.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// By the end that set it.
    sent: [Sent; 2],
    /// RTT to each end (0 client, 1 server).
    least: [Option<Least>; 2],
}

impl Stamps {
    /// Records the timestamp and the echo of a packet from end `from`. Returns the RTT to it, if it tells one.
    pub(super) fn packet(&mut self, from: usize, at: u64, [value, echo]: [u32; 2]) -> Option<u64> {
        let passed = self.sent[1 - from].echoed(echo);
        let took = passed.map(|passed| at.saturating_sub(passed));
        if let Some(took) = took {
            self.sample(from, took, at);
        }
        self.sent[from].push(value, at);
        took
    }

    /// Records an RTT to `end`, seen at time `at`.
    pub(super) fn sample(&mut self, end: usize, took: u64, at: u64) {
        let samples = 0;
        let least = self.least[end].get_or_insert(Least { took, at, samples });
        if took < least.took {
            (least.took, least.at) = (took, at);
        }
        least.samples = least.samples.saturating_add(1);
    }

    /// Shortest RTT to `end`; `None` if there was none.
    pub(super) fn least(&self, end: usize) -> Option<Least> {
        self.least[end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_shortest_echo_is_the_round_trip() {
        let mut stamps = Stamps::default();
        // The client is 1 ms away, the server 3 ms. Clocks tick every 4 ms, and begin near their end.
        let clock =
            |at: u64, from: u32| (u32::MAX - 2).wrapping_add(from * 1_000 + (at / (4 * MS)) as u32);
        for round in 0..40 {
            let at = 17 * MS * round;
            // The client waits longer each time but one.
            let wait = if round == 30 { 0 } else { 2 * MS + round };
            let server = at + 3 * MS;
            let client = server + MS + wait;
            stamps.packet(0, at, [clock(at, 0), 7]);
            stamps.packet(1, server, [clock(server, 1), clock(at, 0)]);
            stamps.packet(0, client, [clock(client, 0), clock(server, 1)]);
        }
        let least = [0, 1].map(|end| stamps.least(end).map(|l| (l.took, l.sound())));
        assert_eq!(least, [Some((MS, true)), Some((3 * MS, true))]);
    }

    /// An echo of another value, and the second packet with a value, are no samples.
    #[test]
    fn other_echoes_say_nothing() {
        let mut stamps = Stamps::default();
        stamps.packet(0, 0, [5, 0]);
        stamps.packet(1, MS, [50, 4]);
        stamps.packet(1, 2 * MS, [50, 6]);
        assert!(stamps.least(1).is_none());
        stamps.packet(0, 3 * MS, [5, 50]);
        stamps.packet(1, 4 * MS, [51, 5]);
        let least = [0, 1].map(|end| stamps.least(end).map(|l| (l.took, l.sound())));
        assert_eq!(least, [Some((2 * MS, false)), None]);
    }
}

//! RTTs between the tap and each end without a handshake: the shortest answers to data and to timestamps.
//!
//! An end echoes the latest timestamp that it received (RFC 7323 section 4.3). Time passes between the first packet with
//! a timestamp and its echo: an RTT, and what its receiver waited. The shortest of many is the RTT (passive ping:
//! K. Nichols, `pping`). But an end with nothing to acknowledge and nothing in flight waits for its application, not for
//! the path. So each packet has a limit for the answers to it.

/// Number of timestamps of an end that may wait for their echo.
const FEW: usize = 4;

/// A timestamp that was not echoed yet.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    value: u32,
    /// When it first passed, nanoseconds.
    at: u64,
    /// A later answer does not tell the RTT, nanoseconds.
    longest: u64,
}

/// Timestamps of one end that were not echoed yet, the oldest first.
#[derive(Debug, Default)]
struct Sent {
    waiting: [Waiting; FEW],
    count: usize,
    latest: Option<u32>,
}

impl Sent {
    /// Only the first packet with a value is sure not to be later than the one that is echoed. The first value seen
    /// may be older than the capture, if it is not a SYN's.
    fn push(&mut self, value: u32, at: u64, longest: u64, syn: bool) {
        for earlier in &mut self.waiting[..self.count] {
            earlier.longest = earlier.longest.min(longest);
        }
        let newer = |latest: u32| value.wrapping_sub(latest) as i32 > 0;
        if self.latest.map_or(syn, newer)
            && let Some(place) = self.waiting.get_mut(self.count)
        {
            *place = Waiting { value, at, longest };
            self.count += 1;
        }
        if self.latest.is_none_or(newer) {
            self.latest = Some(value);
        }
    }

    /// How long ago the timestamp first passed that is echoed, if it waited and the answer came in time.
    fn echoed(&mut self, echo: u32, at: u64) -> Option<u64> {
        let waiting = &self.waiting[..self.count];
        let answered = waiting.partition_point(|w| echo.wrapping_sub(w.value) as i32 >= 0);
        let last = waiting[..answered].last().copied();
        self.waiting.copy_within(answered..self.count, 0);
        self.count -= answered;
        let last = last.filter(|w| w.value == echo)?;
        Some(at.saturating_sub(last.at)).filter(|&took| took <= last.longest)
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
    /// Records the timestamp and the echo of a packet from end `from`. Answers to it tell an RTT if they come within
    /// `longest`, nanoseconds. Returns the RTT to `from`, if the packet tells one.
    pub(super) fn packet(
        &mut self,
        from: usize,
        at: u64,
        [value, echo]: [u32; 2],
        longest: u64,
        syn: bool,
    ) -> Option<u64> {
        let took = self.sent[1 - from].echoed(echo, at);
        if let Some(took) = took {
            self.sample(from, took, at);
        }
        self.sent[from].push(value, at, longest, syn);
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
    const LONG: u64 = 1_000 * MS;

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
            stamps.packet(0, at, [clock(at, 0), 7], LONG, false);
            stamps.packet(1, server, [clock(server, 1), clock(at, 0)], LONG, false);
            stamps.packet(0, client, [clock(client, 0), clock(server, 1)], LONG, false);
        }
        let least = [0, 1].map(|end| stamps.least(end).map(|l| (l.took, l.sound())));
        assert_eq!(least, [Some((MS, true)), Some((3 * MS, true))]);
    }

    /// An echo of another value, the second packet with a value, and a value that is older than the capture are no
    /// samples.
    #[test]
    fn other_echoes_say_nothing() {
        let mut stamps = Stamps::default();
        for (from, at, value, echo) in [
            (0, 0, 5, 0),
            (1, 1, 50, 4),
            (1, 2, 50, 6),
            (0, 3, 5, 50),
            (1, 4, 51, 5),
            (1, 5, 51, 5),
            (0, 7, 6, 51),
            (1, 8, 52, 5),
        ] {
            stamps.packet(from, at * MS, [value, echo], LONG, false);
        }
        let least = [0, 1].map(|end| stamps.least(end).map(|l| (l.took, l.sound())));
        assert_eq!(least, [Some((3 * MS, false)), None]);
        // Those of a SYN are new.
        stamps = Stamps::default();
        stamps.packet(0, 0, [5, 0], LONG, true);
        stamps.packet(1, MS, [50, 5], LONG, true);
        assert_eq!(stamps.least(1).map(|l| l.took), Some(MS));
    }

    /// A packet after which nothing is in flight limits the answers to it and to those before.
    #[test]
    fn late_answers_say_nothing() {
        for (longest, last, told) in [(LONG, LONG, true), (LONG, MS, false), (MS, LONG, false)] {
            let mut stamps = Stamps::default();
            stamps.packet(0, 0, [5, 0], longest, true);
            stamps.packet(0, MS, [5, 0], last, false);
            stamps.packet(1, 3 * MS, [50, 5], LONG, false);
            assert_eq!(stamps.least(1).is_some(), told);
        }
    }
}

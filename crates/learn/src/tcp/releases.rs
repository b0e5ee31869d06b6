//! Whether an ACK reached a sender between two of its packets, where its RTT is known by echoes of timestamps alone.

use super::progress::Progress;

/// Times are exact to this part of the RTT.
const PARTS: u64 = 16;

/// ACKs that passed the tap on their way to a sender.
#[derive(Debug, Default)]
pub(super) struct Releases {
    count: u64,
    passed: Progress,
    /// Number of ACKs that surely had reached the sender before its last packet.
    before: u64,
}

impl Releases {
    /// Records an ACK at time `at`. `back`: RTT between tap and sender, nanoseconds.
    pub(super) fn acked(&mut self, at: u64, back: u64) {
        self.count += 1;
        self.passed.push(self.count, at, back + 2 * back / PARTS);
    }

    /// Whether an ACK may have reached the sender between its last packet and the one that passes at time `at`.
    pub(super) fn sent(&mut self, at: u64, back: u64) -> bool {
        let then = at.saturating_sub(back);
        let may = self.passed.reached((then + back / PARTS).min(at));
        let sure = self.passed.reached(then.saturating_sub(back / PARTS));
        may > std::mem::replace(&mut self.before, sure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// ACKs come 240 us apart, and each releases a packet 30 ms later. When no more come, the last packets are the
    /// sender's own.
    #[test]
    fn acks_release_packets_a_round_trip_later() {
        let mut releases = Releases::default();
        let mut released = Vec::new();
        for i in 0..1_000u64 {
            if i < 500 {
                releases.acked(i * MS * 24 / 100, 30 * MS);
            }
            if i >= 125 {
                released.push(releases.sent(i * MS * 24 / 100 + 7_000, 30 * MS));
            }
        }
        assert!(released[..480].iter().all(|r| *r));
        assert!(released[530..].iter().all(|r| !*r));
    }
}

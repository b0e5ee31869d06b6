//! RTTs to a receiver in the midst of transfers, with what waits in queues there: one segment is timed at once, as senders do
//! it (RFC 6298 section 3).

/// Segments that a sample stands for. At a full line, fewer round trips fit into a time the longer they are, but not fewer
/// segments.
const SEGMENTS: u64 = 16;
/// Maximum weight of a sample.
const MOST: u64 = 32;

#[derive(Debug, Default)]
pub(super) struct Timer {
    /// Offset after the timed segment, and when it passed, nanoseconds.
    timed: Option<(u64, u64)>,
    /// Offset up to which the samples that were taken stand for the data.
    weighed: u64,
    /// The latest RTT, nanoseconds, and how many samples it counts for.
    found: Option<(u64, u64)>,
}

impl Timer {
    /// Notes a segment with data up to offset `end` at time `at`. `more`: others before it are unacknowledged, so its ACK is
    /// not delayed if yet another follows.
    pub(super) fn sent(&mut self, end: u64, at: u64, more: bool) {
        if more && self.timed.is_none() {
            self.timed = Some((end, at));
        }
    }

    /// Notes an ACK up to `offset`, when data up to `next` had passed. A full segment has `full` bytes.
    pub(super) fn acked(&mut self, offset: u64, next: u64, at: u64, full: u32) {
        let Some((_, sent)) = self.timed.filter(|timed| timed.0 <= offset) else {
            return;
        };
        self.timed = None;
        if next <= offset {
            return;
        }
        self.weighed = self.weighed.min(offset);
        let weight = (offset - self.weighed) / (SEGMENTS * u64::from(full.max(1)));
        if weight > 0 {
            self.weighed = offset;
        }
        self.found = Some((at - sent, weight.min(MOST)));
    }

    /// Notes that data came again: it is unknown which copy is acknowledged.
    pub(super) fn stop(&mut self) {
        self.timed = None;
    }

    /// The RTT that the last ACK told, nanoseconds, and how many samples it counts for, if it told one.
    pub(super) fn take(&mut self) -> Option<(u64, u64)> {
        self.found.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const FULL: u64 = 1_000;

    /// A line of a segment each millisecond, whose queue grows: each segment counts about as much as any other.
    #[test]
    fn samples_stand_for_segments() {
        let mut timer = Timer::default();
        let mut found = Vec::new();
        // Segment i passes at i / 2 ms and is acknowledged at i ms.
        let (mut acked, mut next) = (0, 0);
        for half in 0..1_600u64 {
            let at = half * MS / 2;
            if half < 800 {
                next += FULL;
                timer.sent(next, at, next > acked + FULL);
            }
            if half % 2 == 0 && half > 0 {
                acked += FULL;
                timer.acked(acked, next, at, FULL as u32);
                found.extend(timer.take());
            }
        }
        let weights: u64 = found.iter().map(|f| f.1).sum();
        assert!((25..=50).contains(&weights), "{weights} of 50");
        let late = found.iter().filter(|f| f.0 > 200 * MS);
        let share = late.map(|f| f.1).sum::<u64>() as f64 / weights as f64;
        assert!((0.35..0.6).contains(&share), "{share} {found:?}");
    }

    #[test]
    fn repeated_data_and_last_segments_say_nothing() {
        let mut timer = Timer::default();
        timer.sent(1_000, 0, false);
        timer.sent(2_000, 0, true);
        timer.stop();
        timer.acked(2_000, 3_000, 5 * MS, 1_000);
        timer.sent(3_000, 6 * MS, true);
        timer.acked(3_000, 3_000, 50 * MS, 1_000);
        assert_eq!(timer.take(), None);
        timer.sent(4_000, 60 * MS, true);
        timer.acked(4_000, 9_000, 70 * MS, 1_000);
        assert_eq!(timer.take().map(|t| t.0), Some(10 * MS));
    }
}

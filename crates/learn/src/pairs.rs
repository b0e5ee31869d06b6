//! Capacity from packet pairs.

/// Number of packet pairs of a connection and direction that are all used. Of those after them, every second is, then
/// every fourth, and so on: half as many of each octave. The first ones may be spaced by a sender that is still slow.
const ALL_PAIRS: u32 = 16;
/// Smallest packet, in bytes, whose spacing indicates a capacity. For smaller ones, header times and timer
/// granularity dominate.
pub(crate) const PAIR_BYTES: u32 = 1000;
/// The same for the full packets of connections that permit no larger ones. Any path carries an MSS of 536 (RFC 9293
/// section 3.7.1).
pub(crate) const LEAST_PAIR: u32 = 500;

/// Sample of a run of packets that the capture's clock cannot separate, kbit/s.
pub(crate) const UNRESOLVED: u32 = u32::MAX;

/// Finds pairs among the packets that one end of a connection sends.
///
/// Two consecutive large packets, with no packet of the other side between them, left the sender's
/// bottleneck back to back, or as far apart as the sender paces them. A packet of another connection from
/// that sender, or to that receiver, would have taken part of the time. So pairs with such a packet in
/// between are rejected. Spacings below the least gap are artefacts of the capture. Where packets are
/// stamped in groups, the bytes of a group passed since the previous group. A run that is all one group came faster than
/// can be told.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    last: Option<Last>,
    /// The latest group of packets stamped so close together that the clock cannot separate them.
    batch: Batch,
    found: Thinned,
}

/// The last packet.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: u64,
    /// Whether it may be the first of a pair.
    first: bool,
    /// Packets that have passed from its sender and to its receiver, of all connections.
    passed: [u32; 2],
}

/// Consecutive packets of one direction that a capture stamped in one interrupt.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// When it began, and when the group before it began, if both belong to the same run of packets.
    began: u64,
    before: Option<u64>,
    bytes: u64,
    /// Whether it has more than one packet.
    several: bool,
    /// Whether groups of more than one packet were seen. Then only spacings between groups are meaningful.
    seen: bool,
}

/// Chooses samples of a connection, whose number grows with the logarithm of what there is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Thinned(u32);

impl Thinned {
    /// Counts a sample. Returns whether it is used.
    pub(crate) fn take(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        let step = self.0.checked_next_power_of_two().unwrap_or(1 << 31) / ALL_PAIRS;
        self.0.is_multiple_of(step.max(1))
    }
}

impl Pairs {
    /// Takes a packet with data, of `ip_len` bytes, at time `at`. Smaller ones than `least` make no pair. `in_order`:
    /// its data follow those of the last one. `passed`: packets that have passed from its sender and to its receiver, of all
    /// connections. Times are nanoseconds. Returns a capacity in kbit/s if the packet completes a pair.
    pub(crate) fn packet(
        &mut self,
        in_order: bool,
        at: u64,
        [ip_len, least]: [u32; 2],
        least_gap: u64,
        passed: [u32; 2],
    ) -> Option<u64> {
        let large = ip_len >= least;
        let row = match self.last {
            Some(last)
                if last.first
                    && in_order
                    && large
                    && passed == last.passed.map(|n| n.wrapping_add(1)) =>
            {
                Some(at.saturating_sub(last.at))
            }
            _ => None,
        };
        let mut sample = None;
        let mut unresolved = false;
        match row {
            Some(gap) if gap < least_gap => {
                self.batch.bytes += u64::from(ip_len);
                self.batch.seen = true;
                self.batch.several = true;
            }
            Some(gap) => {
                let done = self.batch;
                sample = match (done.seen, done.before) {
                    (false, _) => Some((u64::from(ip_len), gap)),
                    (true, Some(before)) => Some((done.bytes, done.began - before)),
                    (true, None) => None,
                };
                self.batch = Batch {
                    began: at,
                    before: Some(done.began),
                    bytes: u64::from(ip_len),
                    several: false,
                    seen: done.seen,
                };
            }
            None => {
                unresolved = self.batch.several && self.batch.before.is_none();
                self.batch = Batch {
                    began: at,
                    before: None,
                    bytes: u64::from(ip_len),
                    several: false,
                    seen: self.batch.seen,
                };
            }
        }
        self.last = Some(Last {
            at,
            first: large,
            passed,
        });
        if unresolved {
            return self.found.take().then_some(u64::from(UNRESOLVED));
        }
        let (bytes, span) = sample.filter(|&(_, span)| span > 0)?;
        self.found.take().then(|| bytes * 8_000_000 / span)
    }

    /// Notes a packet of the other side: it may have triggered the next data packet.
    pub(crate) fn interrupted(&mut self) {
        if let Some(last) = &mut self.last {
            last.first = false;
        }
    }
}

//! Data that arrived out of order.

use swell_base::SackBlocks;

/// Data, and possibly a FIN, beyond a hole.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// Disjoint, sorted, non-adjacent ranges; empty if only the FIN is known.
    pub ranges: Vec<(u64, u64)>,
    /// A sequence number inside each of the latest changed ranges, latest first (RFC 2018 section 4).
    recent: [u64; 3],
    /// Sequence number of the peer's FIN; `u64::MAX` until it is seen.
    pub fin: u64,
    /// A range that arrived twice, until it is reported.
    pub twice: Option<(u64, u64)>,
    /// With [`Config::quic`](crate::Config::quic), the range that arrived last, until the application takes it.
    pub early: Option<(u64, u64)>,
}

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps {
            ranges: Vec::new(),
            recent: [0; 3],
            fin: u64::MAX,
            twice: None,
            early: None,
        }
    }
}

impl Gaps {
    /// Adds `start..end`, merges the ranges that it touches, and returns the resulting range. If there are already
    /// `most` ranges, a new one is refused, as a kernel short of memory drops out-of-order data.
    pub fn insert(&mut self, start: u64, end: u64, most: usize) -> (u64, u64) {
        let from = self.ranges.partition_point(|r| r.1 < start);
        let to = self.ranges.partition_point(|r| r.0 <= end);
        let (s, e) = if from == to {
            if self.ranges.len() >= most {
                return (u64::MAX, u64::MAX);
            }
            self.ranges.insert(from, (start, end));
            (start, end)
        } else {
            let merged = (
                start.min(self.ranges[from].0),
                end.max(self.ranges[to - 1].1),
            );
            self.ranges[from] = merged;
            self.ranges.drain(from + 1..to);
            merged
        };
        // Move this range to the front and remove the older entry for it.
        let old = self.recent.iter().position(|&q| s <= q && q < e);
        self.recent.copy_within(..old.unwrap_or(2), 1);
        self.recent[0] = start;
        (s, e)
    }

    /// Writes the SACK blocks to report above `nxt`, latest first, and returns their number.
    pub fn blocks(&self, nxt: u64, out: &mut SackBlocks) -> u8 {
        let mut count = 0;
        // Ranges lie within one receive window of `nxt`, on either side.
        let offset = |at: u64| i32::try_from(at.wrapping_sub(nxt) as i64).ok();
        if let Some((s, e)) = self.twice
            && let (Some(from), Some(to)) = (offset(s), offset(e))
        {
            out.push(&mut count, from, to);
        }
        let mut said = [0; 3];
        let mut n = 0;
        for &q in &self.recent {
            let i = self.ranges.partition_point(|r| r.1 <= q);
            if let Some(&(s, e)) = self.ranges.get(i)
                && s <= q
                && !said[..n].contains(&s)
                && let (Some(from), Some(to)) = (offset(s), offset(e))
            {
                out.push(&mut count, from, to);
                said[n] = s;
                n += 1;
            }
        }
        count
    }

    /// The first part of `start..end` that had already arrived.
    pub fn overlap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let i = self.ranges.partition_point(|r| r.1 <= start);
        let &(s, e) = self.ranges.get(i)?;
        let (from, to) = (s.max(start), e.min(end));
        (from < to).then_some((from, to))
    }

    /// Whether no data and no FIN is known.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.fin == u64::MAX && self.twice.is_none()
    }
}

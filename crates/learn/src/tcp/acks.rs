//! How one end acknowledges what the other sends.

use super::half::By;

/// An acknowledgement later than this after the path's round trip was delayed: Linux delays by 40 ms
/// at least (`TCP_DELACK_MIN`), others by more.
const PROMPT: u64 = 20_000_000;

/// What was seen of one end's acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    /// Segments acknowledged one by one and at once since the beginning, and whether that is over.
    quick: u8,
    over: bool,
    /// Pure acknowledgements in the middle of transfers, and the full segments they covered.
    bulk: u32,
    covered: u64,
    /// The oldest segment not acknowledged, if it is the only one: (offset after it, time).
    lone: Option<(u64, u64)>,
}

impl Acks {
    /// A data segment up to `end` passed at `at`; `first`: all before it was acknowledged.
    pub(super) fn data(&mut self, first: bool, end: u64, at: u64) {
        if first {
            self.lone = Some((end, at));
        }
    }

    /// `bytes` more were acknowledged, up to `offset`.
    pub(super) fn acknowledged(&mut self, offset: u64, bytes: u64, at: u64, by: &By) {
        let full = u64::from(by.full.max(1));
        if by.pure && bytes >= full {
            self.bulk = self.bulk.saturating_add(1);
            self.covered += (bytes + full / 2) / full;
        }
        let alone = match self.lone.take() {
            Some((end, sent)) => offset == end && at.saturating_sub(sent) <= by.round_trip + PROMPT,
            None => bytes <= full,
        };
        // One that data took along at once says nothing: the end may have been about to acknowledge, or to wait.
        if !self.over && (by.pure || !alone) {
            if alone {
                self.quick = self.quick.saturating_add(1);
            } else {
                self.over = true;
            }
        }
    }

    /// Segments acknowledged at once before the first that was not; `None` without an occasion.
    pub(crate) fn quick(&self) -> Option<u8> {
        match (self.quick, self.over) {
            (0, false) => None,
            (n, true) => Some(n.min(254)),
            (_, false) => Some(u8::MAX),
        }
    }

    /// Full segments per acknowledgement, rounded; 0 where too few were seen.
    pub(crate) fn every(&self) -> u8 {
        if self.bulk < ENOUGH {
            return 0;
        }
        let mean = (self.covered as f64 / f64::from(self.bulk)).round();
        mean.clamp(1.0, 255.0) as u8
    }
}

/// Acknowledgements from which on their mean says something.
const ENOUGH: u32 = 3;

//! How one end acknowledges what the other sends.

use super::half::By;

/// An acknowledgement later than this after the path's round trip was delayed: Linux delays by 40 ms
/// at least (`TCP_DELACK_MIN`), others by more.
const PROMPT: u64 = 20_000_000;

/// Segments outstanding of which it is still known which acknowledgement covers which.
const FEW: usize = 8;

/// What was seen of one end's acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    /// Segments acknowledged one by one and at once since the beginning, and whether that is over.
    quick: u8,
    over: bool,
    /// Since then: small segments acknowledged one by one and at once, and acknowledgements that had waited.
    prompt: u32,
    waited: u32,
    /// Pure acknowledgements in the middle of transfers, and the full segments they covered.
    bulk: u32,
    covered: u64,
    /// Ends of the oldest segments that are not acknowledged (low bits), and how many there are.
    ends: [u32; FEW],
    outstanding: usize,
    /// When the only one outstanding passed.
    lone: Option<u64>,
}

impl Acks {
    /// A data segment up to `end` passed at `at`; `first`: all before it was acknowledged.
    pub(super) fn data(&mut self, first: bool, end: u64, at: u64) {
        if first {
            self.outstanding = 0;
        }
        self.lone = first.then_some(at);
        if let Some(place) = self.ends.get_mut(self.outstanding) {
            *place = end as u32;
        }
        self.outstanding = (self.outstanding + 1).min(FEW + 1);
    }

    /// How many segments an acknowledgement up to `offset` covers; `None` where too many were outstanding, or it ends
    /// inside one.
    fn covers(&mut self, offset: u64) -> Option<usize> {
        let known = self.ends.get(..self.outstanding)?;
        let at = known.iter().position(|end| *end == offset as u32);
        let covered = at.map_or(self.outstanding, |i| i + 1);
        self.ends.copy_within(covered..self.outstanding, 0);
        self.outstanding -= covered;
        at.map(|i| i + 1)
    }

    /// `bytes` more were acknowledged, up to `offset`.
    pub(super) fn acknowledged(&mut self, offset: u64, bytes: u64, at: u64, by: &By) {
        let full = u64::from(by.full.max(1));
        if by.pure && bytes >= full {
            self.bulk = self.bulk.saturating_add(1);
            self.covered += (bytes + full / 2) / full;
        }
        let covered = self.covers(offset);
        let alone = match (self.lone.take(), covered) {
            (Some(sent), covered) => {
                covered == Some(1) && at.saturating_sub(sent) <= by.round_trip + PROMPT
            }
            (None, Some(n)) => n == 1,
            (None, None) => bytes <= full,
        };
        // One that data took along at once says nothing: the end may have been about to acknowledge, or to wait.
        if alone && !by.pure {
            return;
        }
        if !self.over {
            self.quick = self.quick.saturating_add(u8::from(alone));
            self.over = !alone;
        } else if !alone {
            self.waited = self.waited.saturating_add(1);
        } else if covered.is_some() && bytes < full {
            self.prompt = self.prompt.saturating_add(1);
        }
    }

    /// Segments acknowledged at once before the first that was not, or 255 where that foretells less than that it never
    /// waits; `None` without an occasion.
    pub(crate) fn quick(&self) -> Option<u8> {
        match (self.quick, self.over) {
            (0, false) => None,
            (n, true) if self.prompt <= self.waited + 1 => Some(n.min(254)),
            _ => Some(u8::MAX),
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

//! How one end acknowledges the other end's data.

use super::around::By;

/// An ACK that exceeds the path's RTT by more than this was delayed. Linux delays by at least 40 ms
/// (`TCP_DELACK_MIN`), others by more.
const PROMPT: u64 = 20_000_000;

/// Number of outstanding segments up to which ACKs are matched to segments.
const FEW: usize = 8;

/// Observations of one end's ACKs.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    /// Segments acknowledged individually and promptly since the start, and whether that phase is over.
    quick: u8,
    over: bool,
    /// After that phase: small segments acknowledged individually and promptly, and delayed ACKs.
    prompt: u32,
    waited: u32,
    /// Offset up to which data had been sent when the last loss was repaired. ACKs of data before it are of a receiver
    /// that lacked some.
    recover: u64,
    /// Pure ACKs in the middle of transfers, and the full segments they covered.
    bulk: u32,
    covered: u64,
    /// End offsets (low bits) of the oldest unacknowledged segments, and their number.
    ends: [u32; FEW],
    outstanding: usize,
    /// When the segment passed, if it is the only one outstanding.
    lone: Option<u64>,
    /// Whether a packet outstanding holds several segments. Every end acknowledges these at once.
    joined: bool,
}

impl Acks {
    /// Records a packet of `segments` segments up to `end` at time `at`. `first`: all earlier data were
    /// acknowledged.
    pub(super) fn data(&mut self, first: bool, end: u64, at: u64, segments: u64) {
        if first {
            self.outstanding = 0;
            self.joined = false;
        }
        self.joined |= segments > 1;
        self.lone = first.then_some(at);
        if let Some(place) = self.ends.get_mut(self.outstanding) {
            *place = end as u32;
        }
        self.outstanding = (self.outstanding + 1).min(FEW + 1);
    }

    /// Records that data were sent again, when those up to `next` had been sent.
    pub(super) fn repaired(&mut self, next: u64) {
        self.recover = next;
    }

    /// Offset up to which data had been sent when the last loss was repaired.
    pub(super) fn recover(&self) -> u64 {
        self.recover
    }

    /// Number of segments that an ACK up to `offset` covers. `None` if too many were outstanding, or if it
    /// ends inside a segment.
    fn covers(&mut self, offset: u64) -> Option<usize> {
        let known = self.ends.get(..self.outstanding)?;
        let at = known.iter().position(|end| *end == offset as u32);
        let covered = at.map_or(self.outstanding, |i| i + 1);
        self.ends.copy_within(covered..self.outstanding, 0);
        self.outstanding -= covered;
        at.map(|i| i + 1)
    }

    /// Records an ACK of `bytes` more bytes, up to `offset`.
    pub(super) fn acknowledged(&mut self, offset: u64, bytes: u64, at: u64, by: &By) {
        let full = u64::from(by.full.max(1));
        // It covers what waited for the lost data.
        if offset.saturating_sub(bytes) < self.recover {
            self.covers(offset);
            self.lone = None;
            // After a loss, receivers acknowledge at once for a while.
            self.over |= self.quick > 0;
            return;
        }
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
        // A prompt ACK on a data segment is ambiguous: the end might have acknowledged at once anyway, or
        // delayed.
        if alone && !by.pure || self.joined {
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

    /// Number of segments acknowledged promptly before the first that was not. 255 if "never delays"
    /// predicts the ACKs better; `None` if no segment gave an opportunity.
    pub(crate) fn quick(&self) -> Option<u8> {
        match (self.quick, self.over) {
            (0, false) => None,
            (n, true) if self.prompt <= self.waited + 1 => Some(n.min(254)),
            _ => Some(u8::MAX),
        }
    }

    /// Full segments per ACK, rounded; 0 if too few ACKs were seen.
    pub(crate) fn every(&self) -> u8 {
        if self.bulk < ENOUGH {
            return 0;
        }
        let mean = (self.covered as f64 / f64::from(self.bulk)).round();
        mean.clamp(1.0, 255.0) as u8
    }
}

/// Minimum number of ACKs for their mean to be meaningful.
const ENOUGH: u32 = 3;

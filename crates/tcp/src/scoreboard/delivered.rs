//! What an acknowledgement says about the segments in flight.

use swell_base::{Stamps, Time};

use super::record::Record;
use crate::clock::millis;

/// What an acknowledgement delivered, cumulatively or selectively.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    /// Bytes of sequence space that are newly known to be delivered.
    pub(crate) bytes: u64,
    /// The number of newly delivered segments.
    pub(crate) segments: u32,
    /// Send time of the oldest newly delivered segment among those sent only once.
    pub(crate) oldest: Option<Time>,
    /// As `oldest`, among those selectively acknowledged.
    pub(crate) oldest_sacked: Option<Time>,
    /// Send time of the newest newly delivered segment among those sent only once.
    pub(crate) newest: Option<Time>,
    /// A segment was newly selectively acknowledged.
    pub(crate) sacked: bool,
    /// The lowest end of a delivered segment that was sent once.
    pub(crate) original: Option<u64>,
    /// A segment sent more than once was cumulatively acknowledged: no RTT sample (Karn).
    pub(crate) any_resent: bool,
    /// The newly delivered segment that was sent last: (sent at, end, resent).
    pub(crate) last_sent: Option<(Time, u64, bool)>,
    /// The last-sent segment was delivered by its original transmission: the echoed timestamp is older than the
    /// retransmission (`tcp_skb_spurious_retrans`).
    pub(crate) last_late: bool,
    /// A segment sent once was delivered after one with a higher sequence number.
    pub(crate) reordered: bool,
    /// One-way delay that the acknowledgement reported, in ticks (`Stamps::TICK`); zero for none.
    pub(crate) one_way: u32,
    /// Highest selectively acknowledged sequence number before this acknowledgement.
    before: u64,
    /// The echoed time stamp of the acknowledgement.
    echo: Option<u32>,
}

impl Delivered {
    /// An empty record for an acknowledgement that echoes the timestamp `echo`. `before` is the highest selectively
    /// acknowledged sequence number so far.
    pub(super) fn new(echo: Option<u32>, before: u64) -> Delivered {
        Delivered {
            echo,
            before,
            ..Delivered::default()
        }
    }

    /// Counts `bytes` of a record as delivered; `whole` says whether that is the whole record.
    #[inline]
    pub(super) fn take(&mut self, r: &Record, bytes: u64, whole: bool) {
        if whole {
            self.any_resent |= r.resent;
            if !r.resent {
                self.oldest = self.oldest.or(Some(r.sent_at));
            }
            let late = r.resent
                && self
                    .echo
                    .is_some_and(|echo| Stamps::since(echo, millis(r.sent_at)) < 0);
            self.note(r, late);
        } else {
            self.bytes += bytes;
        }
    }

    #[inline]
    pub(super) fn note(&mut self, r: &Record, late: bool) {
        self.bytes += r.size();
        self.segments += 1;
        if !r.resent {
            self.reordered |= r.end() < self.before;
            self.newest = self.newest.max(Some(r.sent_at));
            self.original = Some(self.original.map_or(r.end(), |end| end.min(r.end())));
        }
        if self
            .last_sent
            .is_none_or(|(t, end, _)| (r.sent_at, r.end()) > (t, end))
        {
            self.last_sent = Some((r.sent_at, r.end(), r.resent));
            self.last_late = late;
        }
    }
}

//! Segment sizes of one direction, and where writes end.

use swell_capture::Tcp as Header;

/// Any path carries segments of this size (default `SendMSS`, RFC 9293 section 3.7.1). A smaller largest
/// segment shows the size of the writes, not the MSS.
const LEAST_MSS: u32 = 536;
/// Bytes that timestamps take in every segment, padding included (RFC 7323 appendix A).
const TIMESTAMPS: u32 = 12;
/// Payload of a full segment on Ethernet. Larger ones are several segments, or of jumbo frames.
const ETHERNET_MSS: u32 = 1460;
/// Smaller segments are not full on any path that carries IPv6 (RFC 8200 section 5, less 60 bytes of headers).
const LEAST_FULL: u32 = 1220;

/// The segments of one direction.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    /// Whether the last segment seen, SYN or not, carried timestamps.
    pub(crate) timestamps: Option<bool>,
    /// The sender's own MSS option, which tells its MTU.
    pub(super) own: Option<u16>,
    /// Payload of the largest segment, and how many had that size.
    largest: u32,
    largest_seen: u32,
    /// Whether the last segment was not full, so that its sender had nothing more to send.
    ended: bool,
}

impl Sizes {
    /// Best estimate of the payload of a full segment: what the handshake allows (the other end's MSS
    /// option, `allowed`), or the largest seen if the path carries less. Captures taken before
    /// segmentation or after reassembly by the hardware show larger ones.
    pub(super) fn full(&self, allowed: Option<u16>) -> u32 {
        let payload = |mss: u16| {
            let timestamps = if self.timestamps == Some(true) {
                TIMESTAMPS
            } else {
                0
            };
            u32::from(mss).saturating_sub(timestamps).max(1)
        };
        match allowed.map(payload) {
            Some(a) if self.largest < LEAST_MSS.min(a) => a,
            Some(a) if self.largest > a => self.own.map_or(a, |own| payload(own).min(a)),
            Some(_) => self.largest,
            None => self.largest.max(LEAST_MSS),
        }
    }

    /// Records a segment in order. Returns whether it begins a write: the one before was not full.
    pub(super) fn segment(&mut self, h: &Header, allowed: Option<u16>) -> bool {
        if h.payload > self.largest {
            (self.largest, self.largest_seen) = (h.payload, 0);
        }
        self.largest_seen += u32::from(h.payload == self.largest);
        let ended = match allowed {
            // Several segments in one packet, of a size that nobody knows.
            None if self.largest > ETHERNET_MSS => h.payload < LEAST_FULL,
            _ => !h.payload.is_multiple_of(self.full(allowed)),
        };
        std::mem::replace(&mut self.ended, ended)
    }

    /// Payload of full segments for the model; 0 if unknown. A size counts as the path's only if it was
    /// seen twice. The largest of a few segments may just be the end of a write.
    pub(crate) fn mss(&self, allowed: Option<u16>) -> u16 {
        let full = match (self.largest_seen, allowed) {
            (0 | 1, None) => 0,
            (0 | 1, Some(_)) => Sizes {
                largest: 0,
                ..*self
            }
            .full(allowed),
            (_, None) if self.largest < LEAST_MSS => 0,
            _ => self.full(allowed),
        };
        u16::try_from(full).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::tests::header;

    /// Whether each of these segments begins a write.
    fn begin(sizes: &mut Sizes, payloads: &[u32], allowed: Option<u16>) -> Vec<bool> {
        let begins = |&payload| sizes.segment(&header(Header::ACK, 1, 1, payload), allowed);
        payloads.iter().map(begins).collect()
    }

    /// The receiver would take 1460 bytes, and the sender's MTU leaves it 1420.
    #[test]
    fn super_packets_have_segments_of_the_smaller_mss() {
        let mut sizes = Sizes {
            own: Some(1420),
            ..Sizes::default()
        };
        let bulk = [14_200, 28_400, 42_600, 14_200, 1_000, 14_200];
        let begun = begin(&mut sizes, &bulk, Some(1460));
        assert_eq!(begun, [false, false, false, false, false, true]);
    }

    #[test]
    fn super_packets_of_unknown_segments_end_no_write() {
        let bulk = [14_080, 28_160, 1_408, 14_080, 700, 14_080];
        let begun = begin(&mut Sizes::default(), &bulk, None);
        assert_eq!(begun, [false, false, false, false, false, true]);
    }
}

//! Segment sizes of one direction, and where writes end.

use swell_capture::Tcp as Header;

use crate::pairs::{LEAST_PAIR, PAIR_BYTES};
use crate::superpackets::{ETHERNET, LARGEST_PACKET, Largest};

/// Any path carries segments of this size (default `SendMSS`, RFC 9293 section 3.7.1). A smaller largest
/// segment shows the size of the writes, not the MSS.
const LEAST_MSS: u32 = 536;
/// Bytes that timestamps take in every segment, padding included (RFC 7323 appendix A).
const TIMESTAMPS: u32 = 12;
/// MSS on Ethernet (RFC 9293 section 3.7.1).
const ETHERNET_MSS: u32 = 1460;
/// Smaller segments are not full on any path that carries IPv6 (RFC 8200 section 5, less 60 bytes of headers).
const LEAST_FULL: u32 = 1220;
/// Headers of a segment over IPv4 without options, bytes.
const HEADERS: u32 = 40;

/// The segments of one direction.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    /// Whether the last segment seen, SYN or not, carried timestamps.
    pub(crate) timestamps: Option<bool>,
    /// The sender's own MSS option, which tells its MTU.
    pub(super) own: Option<u16>,
    largest: Largest,
    /// Whether the last segment was not full, so that its sender had nothing more to send.
    ended: bool,
}

impl Sizes {
    /// Best estimate of the payload of a full segment: what the handshake allows (the other end's MSS
    /// option, `allowed`), or the largest seen if the path carries less. Captures taken before
    /// segmentation or after reassembly by the hardware show larger ones.
    pub(super) fn full(&self, allowed: Option<u16>) -> u32 {
        self.full_if(self.largest.payload(), allowed)
    }

    /// The same if the largest segment has `largest` bytes.
    fn full_if(&self, largest: u32, allowed: Option<u16>) -> u32 {
        let payload = |mss: u16| {
            let timestamps = if self.timestamps == Some(true) {
                TIMESTAMPS
            } else {
                0
            };
            u32::from(mss).saturating_sub(timestamps).max(1)
        };
        // What the sender announces tells its MTU.
        let bound = |a: u32| self.own.map_or(a, |own| payload(own).min(a));
        match allowed.map(payload) {
            Some(a) if largest < LEAST_MSS.min(a) => a,
            Some(a) if largest > a.min(bound(a).max(ETHERNET)) => bound(a),
            Some(_) => largest,
            None if largest <= ETHERNET => largest.max(LEAST_MSS),
            None => self.largest.full().unwrap_or(ETHERNET_MSS),
        }
    }

    /// Smallest packet whose spacing indicates a capacity. Where the ends permit only small segments, full ones do;
    /// where they permit larger ones, small segments are writes, which the application may space.
    pub(super) fn large(&self, allowed: Option<u16>) -> u32 {
        let permitted = allowed.map(|a| u32::from(self.own.map_or(a, |own| own.min(a))));
        // Options take the place of payload.
        permitted.map_or(PAIR_BYTES, |mss| {
            (mss + HEADERS).clamp(LEAST_PAIR, PAIR_BYTES)
        })
    }

    /// Number of segments in `payload` bytes of one packet: at least one.
    pub(super) fn segments(&self, payload: u64, allowed: Option<u16>) -> u64 {
        if payload <= u64::from(ETHERNET) {
            return 1;
        }
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        // With this one, which is not recorded yet: sizes of before may all be those of small writes.
        let mut largest = self.largest;
        largest.push(payload);
        let full = match allowed {
            Some(_) => self.full_if(largest.payload(), allowed),
            None => largest.full().unwrap_or(ETHERNET_MSS),
        };
        u64::from(payload.div_ceil(full))
    }

    /// Records a segment in order. Returns whether it begins a write: the one before was not full.
    pub(super) fn segment(&mut self, h: &Header, allowed: Option<u16>) -> bool {
        self.largest.push(h.payload);
        let ended = match allowed {
            // Several segments in one packet, of a size that nobody knows.
            None if self.largest.payload() > ETHERNET => h.payload < LEAST_FULL,
            _ => !h.payload.is_multiple_of(self.full(allowed)),
        };
        std::mem::replace(&mut self.ended, ended)
    }

    /// Payload of full segments for the model; 0 if unknown. A size counts as the path's only if it was
    /// seen twice. The largest of a few segments may just be the end of a write.
    pub(crate) fn mss(&self, allowed: Option<u16>) -> u16 {
        let full = match (self.largest.seen(), allowed) {
            (_, None) => {
                let told = self.largest.full();
                told.filter(|&full| full >= LEAST_MSS).unwrap_or(0)
            }
            (0 | 1, Some(_)) => self.full_if(0, allowed),
            (_, Some(_)) => self.full(allowed),
        };
        // Only the loopback interface carries larger ones. A model is played over links.
        match full + HEADERS <= LARGEST_PACKET {
            true => u16::try_from(full).unwrap_or(0),
            false => 0,
        }
    }

    /// Bytes of payload in packets that hold several segments.
    pub(crate) fn joined(&self, allowed: Option<u16>) -> u64 {
        self.largest.joined(u32::from(self.mss(allowed)))
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

    /// A bulk flow that began before the capture. Its packets tell the MSS, or nothing does.
    #[test]
    fn super_packets_are_no_segments_of_the_model() {
        let mut sizes = Sizes::default();
        begin(&mut sizes, &[65_160, 28_960, 65_160, 65_160], None);
        assert_eq!((sizes.mss(None), sizes.full(None)), (0, 1_460));
        assert_eq!(sizes.segments(65_160, None), 45);
        begin(&mut sizes, &[1_448, 1_448], None);
        assert_eq!((sizes.mss(None), sizes.full(None)), (1_448, 1_448));
        // The handshake tells it. Its own interface may carry what no link does.
        assert_eq!(sizes.mss(Some(1_400)), 1_400);
        assert_eq!(sizes.segments(65_160, Some(1_400)), 47);
        assert_eq!(sizes.mss(Some(65_483)), 0);
        let bytes = 3 * 65_160 + 28_960;
        assert_eq!(
            [None, Some(1_400), Some(65_483)].map(|a| sizes.joined(a)),
            [bytes; 3]
        );
        // After small writes, and beside a receiver that would take jumbo frames.
        let mut late = Sizes::default();
        begin(&mut late, &[36, 36], None);
        assert_eq!(late.segments(20_000, None), 14);
        late.own = Some(1_460);
        begin(&mut late, &[4_380, 4_380], Some(8_961));
        assert_eq!(late.segments(4_380, Some(8_961)), 3);
        assert_eq!(late.mss(Some(8_961)), 1_460);
        // Jumbo frames.
        let mut jumbo = Sizes::default();
        begin(&mut jumbo, &[8_948, 8_948, 8_948, 300], None);
        assert_eq!([None, Some(8_960)].map(|a| jumbo.mss(a)), [8_948; 2]);
        assert_eq!(
            [None, Some(8_960)].map(|a| jumbo.segments(8_948, a)),
            [1; 2]
        );
        assert_eq!([None, Some(8_960)].map(|a| jumbo.joined(a)), [0; 2]);
    }
}

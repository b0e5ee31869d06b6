//! Super-packets: several segments in one packet of a capture.
//!
//! A host divides its data into packets, and joins those that arrive, in the network card or just beside it
//! (TSO, GSO, GRO, LRO; Linux `Documentation/networking/segmentation-offloads.rst`). A capture on that host
//! shows the joined packets, of up to 64 KiB. Links carry the segments.

/// Largest IP packet that a link carries, bytes: the jumbo frames of common switches. Larger ones exist only
/// inside hosts.
pub(crate) const LARGEST_PACKET: u32 = 9_216;
/// Largest payload in a packet of Ethernet's 1500 bytes: that of a UDP datagram over IPv4.
pub(crate) const ETHERNET: u32 = 1_472;
/// Networks with larger packets than Ethernet's have packets of about 9000 bytes. Smaller super-packets of two or three
/// segments are often all of one size.
const LEAST_JUMBO: u32 = 8_000;
/// Smaller payloads are hardly those of full segments or datagrams. QUIC's are of this size (RFC 9000 section 14), and
/// TCP's are larger on paths that carry IPv6.
const LEAST: u32 = 1_200;

/// A payload, bytes, and the number of packets with it.
#[derive(Clone, Copy, Debug, Default)]
struct Most {
    payload: u32,
    seen: u32,
}

impl Most {
    fn push(&mut self, payload: u32) {
        if payload > self.payload {
            *self = Most { payload, seen: 0 };
        }
        self.seen = self.seen.saturating_add(u32::from(payload == self.payload));
    }
}

/// The largest payloads of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Largest {
    any: Most,
    /// The largest that fits into a packet of Ethernet's size.
    single: Most,
    /// Packets larger than that, and their payload in bytes.
    joined: u32,
    joined_bytes: u64,
}

impl Largest {
    pub(crate) fn push(&mut self, payload: u32) {
        self.any.push(payload);
        if payload <= ETHERNET {
            self.single.push(payload);
        } else {
            self.joined = self.joined.saturating_add(1);
            self.joined_bytes += u64::from(payload);
        }
    }

    /// The largest payload, bytes.
    pub(crate) fn payload(&self) -> u32 {
        self.any.payload
    }

    /// Number of packets with the largest payload.
    pub(crate) fn seen(&self) -> u32 {
        self.any.seen
    }

    /// Payload of a full segment, bytes, as the packets alone tell it; `None` if they do not. A size counts if it
    /// was seen twice: the largest of a few packets may just be the end of a write.
    pub(crate) fn full(&self) -> Option<u32> {
        let Most { payload, seen } = self.any;
        let repeated = seen >= 2;
        if payload <= ETHERNET {
            return repeated.then_some(payload);
        }
        // Equal segments are joined, and some stay single.
        let Most {
            payload: one,
            seen: ones,
        } = self.single;
        if ones >= 2 && one >= LEAST && payload.is_multiple_of(one) {
            return Some(one);
        }
        // Most jumbo frames of a transfer are full. Super-packets are of many sizes.
        let jumbo = (LEAST_JUMBO..=LARGEST_PACKET - 40).contains(&payload);
        (jumbo && repeated && seen > self.joined / 2).then_some(payload)
    }

    /// Number of segments in `payload` bytes: at least one.
    pub(crate) fn segments(&self, payload: u32) -> u64 {
        if payload <= ETHERNET {
            return 1;
        }
        u64::from(payload.div_ceil(self.full().unwrap_or(ETHERNET)))
    }

    /// Bytes of payload in super-packets, if a full segment has `full` bytes; 0 if that is unknown.
    pub(crate) fn joined(&self, full: u32) -> u64 {
        match self.any.payload > ETHERNET && full < self.any.payload {
            true => self.joined_bytes,
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(payloads: impl IntoIterator<Item = u32>) -> Largest {
        let mut largest = Largest::default();
        payloads.into_iter().for_each(|p| largest.push(p));
        largest
    }

    #[test]
    fn single_segments_tell_the_size_of_joined_ones() {
        let joined = of([14_480, 1_448, 65_160, 700, 1_448, 65_160]);
        assert_eq!(joined.full(), Some(1_448));
        assert_eq!(joined.segments(65_160), 45);
        assert_eq!([0, 1, 1_448].map(|p| joined.segments(p)), [1; 3]);
        // The same packets without them.
        let unknown = of([65_160, 14_480, 700, 65_160]);
        assert_eq!((unknown.full(), unknown.segments(65_160)), (None, 45));
        assert_eq!([joined.joined(1_448), unknown.joined(0)], [144_800; 2]);
        // Two sizes that are no multiples: the smaller is no full segment.
        assert_eq!(of([65_160, 1_400, 1_400, 65_160]).full(), None);
    }

    /// Jumbo frames are all of one size. Joined segments of the same length are not.
    #[test]
    fn jumbo_frames_are_segments() {
        for full in [8_948, 8_960] {
            let jumbo = of((0..20).flat_map(|i| [full, full, 70 * i]));
            assert_eq!((jumbo.full(), jumbo.segments(full)), (Some(full), 1));
            assert_eq!(jumbo.joined(full), 0);
        }
        let pairs = of([2_896; 20]);
        assert_eq!((pairs.full(), pairs.segments(2_896)), (None, 2));
        let joined = of((0..20).map(|i| 1_448 * (2 + i % 5)));
        assert_eq!((joined.full(), joined.segments(8_688)), (None, 6));
    }
}

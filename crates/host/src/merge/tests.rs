use super::super::segment::tests::{Super, cut, super_packet};
use super::*;
use proptest::prelude::*;

/// Bytes, number of packets, payload of each.
type Together = (Vec<u8>, u16, Option<u16>);

/// The output of a train.
fn put_together(packets: &[Vec<u8>], checksum: Checksum) -> Vec<Together> {
    let mut train = Train::default();
    let mut out = Vec::new();
    for packet in packets {
        if !train.push(packet, checksum) {
            out.push(take(&mut train, checksum));
            assert!(
                train.push(packet, checksum),
                "an empty train takes anything"
            );
        }
    }
    out.push(take(&mut train, checksum));
    out
}

fn take(train: &mut Train, checksum: Checksum) -> Together {
    let count = train.count();
    let (bytes, same, size) = train.whole();
    assert_eq!(same, checksum);
    let taken = (bytes.to_vec(), count, size);
    train.clear();
    taken
}

/// A typical kernel packet: ACK and possibly PSH, a correct header checksum, no IP options.
fn usual(mut whole: Super, push: bool) -> Super {
    let t = whole.transport;
    whole.packet[t + FLAGS] = ACK | if push { PSH } else { 0 };
    if whole.packet[0] >> 4 == 4 {
        let length = whole.packet.len() as u16;
        whole.packet[2..4].copy_from_slice(&length.to_be_bytes());
        whole.packet[10..12].fill(0);
        let sum = !fold(super::super::sum::sum_of(&whole.packet[..t]));
        whole.packet[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        let length = (whole.packet.len() - 40) as u16;
        whole.packet[4..6].copy_from_slice(&length.to_be_bytes());
    }
    whole
}

fn is_plain(whole: &Super) -> bool {
    whole.transport == if whole.packet[0] >> 4 == 4 { 20 } else { 40 }
}

proptest! {
    // Packets with IP options are not merged.
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn what_was_cut_is_put_together(whole in super_packet(), size in 200..3000u16, push: bool) {
        let whole = usual(whole, push);
        prop_assume!(is_plain(&whole) && whole.packet.len() > whole.header);
        let segments = cut(&whole, size);
        let out = put_together(&segments, whole.checksum());
        prop_assert_eq!(out.len(), 1);
        prop_assert_eq!(&out[0].0, &whole.packet);
        prop_assert_eq!(usize::from(out[0].1), segments.len());
        prop_assert_eq!(out[0].2, (segments.len() > 1).then_some(size));
    }

    /// Any packets, in any order and with any differences, come out unchanged after segmentation.
    #[test]
    fn nothing_is_changed(
        whole in super_packet(),
        size in 200..3000u16,
        plain: bool,
        moves in proptest::collection::vec((any::<(u16, u16)>(), any::<u8>()), 0..4),
        changes in proptest::collection::vec((any::<u16>(), 0..60usize, any::<u8>()), 0..4),
    ) {
        let whole = if plain { usual(whole, true) } else { whole };
        let mut segments = cut(&whole, size);
        for ((a, b), _) in moves {
            let n = segments.len();
            segments.swap(usize::from(a) % n, usize::from(b) % n);
        }
        for (which, at, value) in changes {
            let n = segments.len();
            let header = whole.header;
            let segment = &mut segments[usize::from(which) % n];
            let offset = header.saturating_sub(60) + at;
            // Fields that determine header lengths, and checksums, stay valid.
            let t = whole.transport;
            let fixed = [0, 2, 3, 4, 5, 10, 11, t + 12, t + 16, t + 17];
            if offset < header && !fixed.contains(&offset) && (segment[0] >> 4 != 4 || offset >= t) {
                segment[offset] = value;
            }
        }
        let mut again = Vec::new();
        for (bytes, count, step) in put_together(&segments, whole.checksum()) {
            match step {
                None => again.push(bytes),
                Some(step) => {
                    let together = Super { packet: bytes, ..whole.clone() };
                    let parts = cut(&together, step);
                    prop_assert_eq!(parts.len(), usize::from(count));
                    again.extend(parts);
                }
            }
        }
        if whole.packet[0] >> 4 == 4 && whole.packet[6] & DF != 0 {
            // The identification of an unfragmented packet has no meaning (RFC 6864) and is assigned anew.
            for s in again.iter_mut().chain(&mut segments) {
                for at in [4, 5, 10, 11] {
                    s[at] = 0;
                }
            }
        }
        prop_assert_eq!(again, segments);
    }
}

#[test]
fn what_is_no_tcp_is_left_alone() {
    let udp = vec![0x45; 60];
    let partial = Checksum::Partial {
        start: 20,
        offset: 6,
    };
    for checksum in [Checksum::Full, partial] {
        let packets = vec![udp.clone(), udp.clone(), vec![], vec![1]];
        let out = put_together(&packets, checksum);
        let bytes: Vec<Vec<u8>> = out.into_iter().map(|(b, ..)| b).collect();
        assert_eq!(bytes, packets);
    }
}

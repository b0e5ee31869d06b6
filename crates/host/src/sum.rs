//! Building blocks of the Internet checksum (RFC 1071).

/// The sum of the 16-bit words of `bytes` (RFC 1071), not yet folded. An odd last byte is the high half of a word.
pub(super) fn sum_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum = words
        .iter()
        .map(|w| u64::from(u32::from_be_bytes(*w)))
        .sum::<u64>();
    let (halves, odd) = rest.as_chunks::<2>();
    for h in halves {
        sum += u64::from(u16::from_be_bytes(*h));
    }
    if let [last] = odd {
        sum += u64::from(*last) << 8;
    }
    sum
}

/// Folds the sum: adds the carries until 16 bits remain.
pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Updates a checksum field after one covered word changed (RFC 1624, equation 3).
pub(super) fn adjust(field: u16, before: u16, after: u16) -> u16 {
    !fold(u64::from(!field) + u64::from(!before) + u64::from(after))
}

pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(
            fold(sum_of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])),
            0xddf2
        );
    }

    #[test]
    fn the_example_of_rfc_1624() {
        assert_eq!(adjust(0xdd2f, 0x5555, 0x3285), 0x0000);
    }
}

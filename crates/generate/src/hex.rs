//! Hexadecimal digits of bytes.

/// Two lower-case digits per byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The `N` bytes that these digits stand for, in either case; `None` for anything else.
pub(crate) fn decode<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let [high, low] = pair.map(|digit| (digit as char).to_digit(16));
        // Two digits of four bits each.
        *byte = (high? << 4 | low?) as u8;
    }
    Some(bytes)
}

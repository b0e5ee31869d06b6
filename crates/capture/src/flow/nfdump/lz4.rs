//! Decompresses LZ4 blocks (LZ4's `doc/lz4_Block_format.md`).

use super::bytes::again;

/// Decompresses a block of at most `most` bytes into `out`, which must be empty; `None` if the block is damaged or
/// longer.
pub(super) fn decompress(input: &[u8], most: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = input;
    loop {
        let (&token, behind) = rest.split_first()?;
        rest = behind;
        let literals = length(usize::from(token >> 4), &mut rest)?;
        let (copied, behind_literals) = rest.split_at_checked(literals)?;
        if out.len() + literals > most {
            return None;
        }
        out.extend_from_slice(copied);
        rest = behind_literals;
        // The last sequence has no match.
        if rest.is_empty() {
            return Some(());
        }
        let (&offset, behind_offset) = rest.split_first_chunk::<2>()?;
        rest = behind_offset;
        let len = length(usize::from(token & 15), &mut rest)? + 4;
        let distance = usize::from(u16::from_le_bytes(offset));
        if out.len() + len > most {
            return None;
        }
        again(out, distance, len)?;
    }
}

/// Decodes a length of four bits. If all are set, further bytes are added, up to and including the first that is not
/// 255.
fn length(bits: usize, rest: &mut &[u8]) -> Option<usize> {
    let mut len = bits;
    if bits == 15 {
        loop {
            let (&byte, behind) = rest.split_first()?;
            *rest = behind;
            len += usize::from(byte);
            if byte != 255 {
                break;
            }
        }
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    fn decompress(input: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        super::decompress(input, most, &mut out).map(|()| out)
    }

    #[test]
    fn a_match_repeats_what_came_before() {
        // Three literals, a match of eight at distance three, and one literal.
        let stream = [0x34, b'a', b'b', b'c', 3, 0, 0x10, b'!'];
        assert_eq!(
            decompress(&stream, 100).as_deref(),
            Some(&b"abcabcabcab!"[..])
        );
        assert_eq!(decompress(&stream, 10), None);
        assert_eq!(decompress(&stream[..5], 100), None);
        assert_eq!(decompress(&[0x10, b'a', 0, 0, 0], 100), None, "no distance");
    }
}

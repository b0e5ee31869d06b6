//! Files that are not captures: what they look like, so that the message can say it.

/// Enough of a file's beginning for [`looks_like`].
pub(crate) const ENOUGH: usize = 512;

/// What a file is that is not a capture, by its first bytes.
pub(crate) fn looks_like(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            "a file compressed twice"
        }
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => "bzip2, which is not supported",
        [0x04, 0x22, 0x4d, 0x18, ..] => "LZ4, which is not supported",
        [b'P', b'K', 3, 4, ..] => "a zip archive",
        _ if head.get(257..262) == Some(b"ustar") => "a tar archive",
        [0x0c, 0xa5, ..] | [0xa5, 0x0c, ..] => "an nfdump file of flow records",
        [b'G', b'M', b'B', b'U', ..] | [b'R', b'T', b'S', b'S', ..] => {
            "a Microsoft Network Monitor capture"
        }
        _ if is_erf(head) => "an ERF capture",
        _ if is_text(head) => "text",
        _ => return None,
    })
}

/// ERF files have no magic: records begin with a time, a type below 48 and a record length that is
/// not below that of the header (Endace's ERF reference, section 1).
fn is_erf(head: &[u8]) -> bool {
    let Some(&[_, _, _, _, s0, s1, s2, s3, kind, _, l0, l1]) = head.first_chunk::<12>() else {
        return false;
    };
    let seconds = u32::from_le_bytes([s0, s1, s2, s3]);
    let length = u16::from_be_bytes([l0, l1]);
    // Written between 1995 and 2038.
    (788_918_400..0x8000_0000).contains(&seconds)
        && (1..48).contains(&(kind & 0x7f))
        && (16..2048).contains(&length)
}

fn is_text(head: &[u8]) -> bool {
    head.iter()
        .all(|&b| b >= 0x20 && b != 0x7f || matches!(b, b'\t' | b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_it_knows_and_nothing_else() {
        assert_eq!(looks_like(b"ts,src,dst\n1,2,3\n"), Some("text"));
        assert_eq!(looks_like(b"PK\x03\x04...."), Some("a zip archive"));
        assert_eq!(looks_like(&[0; 512]), None);
    }
}

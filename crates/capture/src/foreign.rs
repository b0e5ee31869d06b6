//! Recognises files that are not captures, so that the error message can name them.

use crate::flow;

/// Number of bytes from a file's beginning that [`looks_like`] needs.
pub(crate) const ENOUGH: usize = 512;

/// The format of a file that is not a capture, judging by its first bytes.
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
        _ if is_argus(head) => {
            "Argus's binary file; `ra -r FILE -n -c , -s stime dur proto saddr sport daddr dport spkts dpkts sbytes \
             dbytes` writes the table that is read"
        }
        _ if flow::text::is_table_of_flows(head) => {
            "a table of flows, but without times, bytes or separators; of Argus's, `ra -r FILE -n -c , -s stime dur \
             proto saddr sport daddr dport spkts dpkts sbytes dbytes` writes one that is read"
        }
        _ if is_erf(head) => "an ERF capture",
        _ if is_text(head) => flow::text::lacks(head).unwrap_or("text"),
        _ => return None,
    })
}

/// Argus files begin with a record of Argus's own, which holds the cookie of version 2, 3 or 5 (`argus_def.h`).
fn is_argus(head: &[u8]) -> bool {
    const COOKIES: [u32; 3] = [0xe561_7acb, 0xe571_2dcb, 0xe571_50cb];
    let words = head.get(..64).unwrap_or(head).chunks_exact(4);
    let mut words = words.filter_map(|w| Some(u32::from_be_bytes(*w.first_chunk()?)));
    words.any(|w| COOKIES.contains(&w) || COOKIES.contains(&w.swap_bytes()))
}

/// ERF files have no magic number. Their records begin with a time, a type below 48, and a record length that is at
/// least that of the header (Endace's ERF reference, section 1).
fn is_erf(head: &[u8]) -> bool {
    let Some(&[_, _, _, _, s0, s1, s2, s3, kind, _, l0, l1]) = head.first_chunk::<12>() else {
        return false;
    };
    let seconds = u32::from_le_bytes([s0, s1, s2, s3]);
    let length = u16::from_be_bytes([l0, l1]);
    // Captured between 1995 and 2038.
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
        assert_eq!(looks_like(b"ts,from,to\n1,2,3\n"), Some("text"));
        // A management record of version 3: type, cause and length in words; status; cookie.
        let mut argus = [0x83, 0x10, 0, 0x20, 0, 0, 0, 0, 0xe5, 0x71, 0x2d, 0xcb].to_vec();
        argus.resize(128, 0);
        for head in [
            &argus[..],
            b"StartTime,Flgs,Proto,SrcAddr,Sport,Dir,DstAddr,Dport,TotPkts,State\n",
            b"   StartTime  Flgs  Proto   SrcAddr  Sport   Dir   DstAddr  Dport  TotPkts   TotBytes State \n",
        ] {
            let said = looks_like(head).unwrap();
            assert!(said.contains("`ra -r FILE -n -c ,"), "{said}");
        }
        for (head, lacking) in [
            (
                &b"start,src,protocol,bytes\n1,10.0.0.1,tcp,5\n"[..],
                "`dst`",
            ),
            (
                b"start;src;dst;bytes\n1;10.0.0.1;10.0.0.2;5\n",
                "semicolons",
            ),
            (b"start;dst;protocol;bytes\n", "`src`"),
        ] {
            let said = looks_like(head).unwrap();
            assert!(
                said.contains("table of flows") && said.contains(lacking),
                "{said}"
            );
        }
        assert_eq!(looks_like(b"in,the,state\n"), Some("text"));
        assert_eq!(looks_like(b"PK\x03\x04...."), Some("a zip archive"));
        assert_eq!(looks_like(&[0; 512]), None);
    }
}

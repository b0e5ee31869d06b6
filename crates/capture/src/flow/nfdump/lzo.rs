//! LZO1X decompression. The stream is described in the Linux kernel's `Documentation/staging/lzo.rst`.

use super::bytes::again;

/// Decompresses a block of at most `most` bytes into `out`, which must be empty; `None` if the block is damaged or
/// longer.
pub(super) fn decompress(input: &[u8], most: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut reading = Reading { input, at: 0 };
    // Number of literals copied by the previous instruction; 4 stands for four or more.
    let mut state = 0;
    match *input.first()? {
        first @ 18.. => {
            reading.at = 1;
            let literals = usize::from(first) - 17;
            reading.literals(literals, out)?;
            state = literals.min(4);
        }
        // A bitstream version, which only occurs in the run-length variant.
        17 => return None,
        _ => {}
    }
    loop {
        if out.len() > most {
            return None;
        }
        let code = usize::from(reading.byte()?);
        let (len, distance, literals) = match code {
            0..16 if state == 0 => {
                let len = 3 + reading.length(code, 15)?;
                reading.literals(len, out)?;
                state = 4;
                continue;
            }
            0..16 => {
                let near = (usize::from(reading.byte()?) << 2) + (code >> 2);
                match state {
                    4 => (3, near + 2049, code & 3),
                    _ => (2, near + 1, code & 3),
                }
            }
            16..32 => {
                let len = 2 + reading.length(code & 7, 7)?;
                let word = reading.word()?;
                let distance = 16_384 + ((code & 8) << 11) + (word >> 2);
                if distance == 16_384 {
                    // End-of-stream marker.
                    return (out.len() <= most).then_some(());
                }
                (len, distance, word & 3)
            }
            32..64 => {
                let len = 2 + reading.length(code & 31, 31)?;
                let word = reading.word()?;
                (len, (word >> 2) + 1, word & 3)
            }
            _ => {
                let high = usize::from(reading.byte()?);
                let distance = (high << 3) + (code >> 2 & 7) + 1;
                ((code >> 5) + 1, distance, code & 3)
            }
        };
        if len > most {
            return None;
        }
        again(out, distance, len)?;
        reading.literals(literals, out)?;
        state = literals;
    }
}

struct Reading<'a> {
    input: &'a [u8],
    at: usize,
}

impl Reading<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.input.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn word(&mut self) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes([
            self.byte()?,
            self.byte()?,
        ])))
    }

    /// Decodes a length. If `bits` is not zero, it is the length. Otherwise the length is `base`, plus 255 for each
    /// zero byte that follows, plus the first nonzero byte.
    fn length(&mut self, bits: usize, base: usize) -> Option<usize> {
        if bits != 0 {
            return Some(bits);
        }
        let mut len = base;
        loop {
            match self.byte()? {
                0 => len += 255,
                last => return Some(len + usize::from(last)),
            }
        }
    }

    fn literals(&mut self, len: usize, out: &mut Vec<u8>) -> Option<()> {
        let end = self.at.checked_add(len)?;
        out.extend_from_slice(self.input.get(self.at..end)?);
        self.at += len;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    fn decompress(input: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        super::decompress(input, most, &mut out).map(|()| out)
    }

    /// Six literals, a match of six at a distance of six, and the end.
    const STREAM: [u8; 14] = [
        23,
        b'a',
        b'b',
        b'c',
        b'd',
        b'e',
        b'f',
        36,
        5 << 2,
        0,
        0x11,
        0,
        0,
        0xff,
    ];

    #[test]
    fn a_match_repeats_what_came_before() {
        assert_eq!(
            decompress(&STREAM, 100).as_deref(),
            Some(&b"abcdefabcdef"[..])
        );
    }

    #[test]
    fn damaged_and_too_long_streams_are_none() {
        for cut in 0..13 {
            assert_eq!(decompress(&STREAM[..cut], 100), None, "{cut}");
        }
        assert_eq!(decompress(&STREAM, 11), None);
        // A match that begins before the output.
        assert_eq!(
            decompress(&[18, b'a', 36, 5 << 2, 0, 0x11, 0, 0], 100),
            None
        );
    }
}

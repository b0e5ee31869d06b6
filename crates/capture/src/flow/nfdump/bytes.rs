//! Bytes of a file, and of a block that is being decompressed.

use crate::bytes::Endian;

pub(super) const LE: Endian = Endian::Little;

#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(LE.u64(*bytes.get(at..)?.first_chunk()?))
}

/// Copies `len` bytes that begin `distance` before the end of `out` to the end. The source may overlap the copy.
/// `None` if `distance` is zero or reaches before the beginning.
pub(super) fn again(out: &mut Vec<u8>, distance: usize, len: usize) -> Option<()> {
    let from = out.len().checked_sub(distance).filter(|_| distance > 0)?;
    let mut left = len;
    while left > 0 {
        // The data from there to the end repeats with period `distance`, so each step can copy all of it, which
        // doubles its length.
        let n = left.min(out.len() - from);
        out.extend_from_within(from..from + n);
        left -= n;
    }
    Some(())
}

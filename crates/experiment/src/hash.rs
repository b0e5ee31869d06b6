//! A fingerprint that identifies experiments. It protects against mistakes, not against attacks.

/// FNV-1a, 128 bit, over parts with their lengths.
pub(crate) struct Hash(u128);

/// Offset basis and prime from the authors' page (Fowler, Noll, Vo).
const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Hash {
    pub(crate) fn new() -> Hash {
        Hash(BASIS)
    }

    /// Adds a part; (`ab`, `c`) and (`a`, `bc`) differ.
    pub(crate) fn part(mut self, bytes: &[u8]) -> Hash {
        for &b in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(b)).wrapping_mul(PRIME);
        }
        self
    }

    /// 32 hexadecimal digits.
    pub(crate) fn hex(&self) -> String {
        format!("{:032x}", self.0)
    }
}

//! Maps keys to indices.

use foldhash::fast::FixedState;
#[expect(clippy::disallowed_types, reason = "an `Index` is never walked")]
use hashbrown::HashMap;

/// A hash map with a fixed seed that supports look-ups but no iteration, so that no order leaks into
/// results.
#[expect(clippy::disallowed_types, reason = "an `Index` is never walked")]
#[derive(Clone, Debug)]
pub(crate) struct Index<K>(HashMap<K, u32, FixedState>);

impl<K: Eq + std::hash::Hash> Index<K> {
    #[expect(clippy::disallowed_types, reason = "an `Index` is never walked")]
    pub(crate) fn new() -> Self {
        Index(HashMap::with_hasher(FixedState::with_seed(0)))
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<u32> {
        self.0.get(key).copied()
    }

    /// Returns the index of `key`; inserts `next` if the key is new.
    #[inline]
    pub(crate) fn get_or_insert(&mut self, key: K, next: u32) -> u32 {
        *self.0.entry(key).or_insert(next)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn insert(&mut self, key: K, at: u32) {
        self.0.insert(key, at);
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: &K) {
        self.0.remove(key);
    }
}

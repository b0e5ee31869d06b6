//! Where something is, by its key.

use foldhash::fast::FixedState;
#[expect(clippy::disallowed_types, reason = "an `Index` is never walked")]
use hashbrown::HashMap;

/// A hash map with a fixed seed that can be asked and not walked: no order leaks into results.
#[expect(clippy::disallowed_types, reason = "an `Index` is never walked")]
#[derive(Debug)]
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

    /// Where `key` is; `next` from now on, if it was not there.
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

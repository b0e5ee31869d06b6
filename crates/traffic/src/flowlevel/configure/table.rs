//! A table of open entries by key, which evicts the entries that have been silent for longest.
//!
//! An entry costs one index slot and its own size, whatever its time. Entries are kept in one list per
//! second, and move to a later list only when their list is visited. (A heap or a tree by time would be
//! touched by every record.) Keys are hashed without a secret: only the order of records decides what
//! happens.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Length of a list, nanoseconds.
const SECOND: i64 = 1_000_000_000;

const HASHER: FixedState = FixedState::with_seed(0);

/// Slot numbers by the hashes of their keys. The index keeps the hashes, so growing it does not touch the
/// slots.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: HashTable<[u32; 2]>,
}

/// The stored part of a key's hash.
pub(super) fn hash_of(key: &impl Hash) -> u32 {
    (HASHER.hash_one(key) >> 32) as u32
}

/// `HashTable` uses the highest and the lowest bits.
fn widened(hash: u32) -> u64 {
    u64::from(hash) * 0x1_0000_0001
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let found = self
            .places
            .find(widened(hash), |&[h, place]| h == hash && is_it(place));
        found.map(|e| e[1])
    }

    pub(super) fn insert(&mut self, hash: u32, place: u32) {
        let hash_of_entry = |e: &[u32; 2]| widened(e[0]);
        self.places
            .insert_unique(widened(hash), [hash, place], hash_of_entry);
    }

    pub(super) fn remove(&mut self, hash: u32, place: u32) {
        let found = self
            .places
            .find_entry(widened(hash), |e| *e == [hash, place]);
        if let Ok(entry) = found {
            entry.remove();
        }
    }
}

/// Entries by key, each with the time of its last activity, nanoseconds.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    index: Index,
    slots: Vec<Slot<K, V>>,
    free: Vec<u32>,
    /// Each entry is in exactly one list: that of its last activity, or of an earlier one.
    lists: BTreeMap<i64, Vec<u32>>,
}

#[derive(Debug)]
struct Slot<K, V> {
    key: K,
    hash: u32,
    last: i64,
    value: V,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table {
            index: Index::default(),
            slots: Vec::new(),
            free: Vec::new(),
            lists: BTreeMap::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, V: Default> Table<K, V> {
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let found = self
            .index
            .find(hash_of(key), |i| self.slots[i as usize].key == *key)?;
        Some(&self.slots[found as usize].value)
    }

    /// Changes the entry of a key, which is created with the default value if it is new. `change` returns
    /// the time of the last activity, and a result to pass on.
    pub(super) fn update<T>(&mut self, key: K, change: impl FnOnce(&mut V) -> (i64, T)) -> T {
        let hash = hash_of(&key);
        let is_it = |i: u32| self.slots[i as usize].key == key;
        if let Some(i) = self.index.find(hash, is_it) {
            let slot = &mut self.slots[i as usize];
            let (last, out) = change(&mut slot.value);
            // An entry in too early a list moves on when that list is visited. In too late a list it would
            // be missed.
            slot.last = slot.last.max(last);
            return out;
        }
        let mut value = V::default();
        let (last, out) = change(&mut value);
        let slot = Slot {
            key,
            hash,
            last,
            value,
        };
        let i = match self.free.pop() {
            Some(i) => {
                self.slots[i as usize] = slot;
                i
            }
            None => {
                self.slots.push(slot);
                // Capacities are far below 2^32.
                (self.slots.len() - 1) as u32
            }
        };
        self.index.insert(hash, i);
        let list = self.lists.entry(last.div_euclid(SECOND)).or_default();
        list.push(i);
        out
    }

    /// Removes all entries whose last activity is before the second that contains `until`.
    pub(super) fn expire(&mut self, until: i64, mut each: impl FnMut(&K, &V)) {
        let until = until.div_euclid(SECOND);
        while let Some(entry) = self.lists.first_entry().filter(|e| *e.key() < until) {
            let (second, mut list) = entry.remove_entry();
            // One loop per task, so that the cache misses of independent entries overlap.
            list.retain(|&i| {
                let last = self.slots[i as usize].last.div_euclid(SECOND);
                if last > second {
                    self.lists.entry(last).or_default().push(i);
                }
                last <= second
            });
            for &i in &list {
                self.index.remove(self.slots[i as usize].hash, i);
            }
            for &i in &list {
                let slot = &mut self.slots[i as usize];
                each(&slot.key, &slot.value);
                slot.value = V::default();
            }
            self.free.append(&mut list);
        }
    }

    /// Removes one entry whose last activity is before the second that contains `until`.
    pub(super) fn pop_before(&mut self, until: i64) -> Option<(K, V)> {
        let until = until.div_euclid(SECOND);
        loop {
            let mut entry = self.lists.first_entry().filter(|e| *e.key() < until)?;
            let second = *entry.key();
            let Some(i) = entry.get_mut().pop() else {
                entry.remove();
                continue;
            };
            let slot = &mut self.slots[i as usize];
            let last = slot.last.div_euclid(SECOND);
            if last > second {
                self.lists.entry(last).or_default().push(i);
                continue;
            }
            let (key, hash) = (slot.key, slot.hash);
            let value = std::mem::take(&mut slot.value);
            self.index.remove(hash, i);
            self.free.push(i);
            return Some((key, value));
        }
    }

    /// Removes all entries, in no meaningful order.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let all = std::mem::take(self);
        // Usually few slots are free, so a sorted list of them is cheapest.
        let mut free = all.free;
        free.sort_unstable();
        let mut free = free.into_iter().peekable();
        (0u32..).zip(all.slots).filter_map(move |(i, slot)| {
            let is_free = free.next_if_eq(&i).is_some();
            (!is_free).then_some((slot.key, slot.value))
        })
    }

    /// Removes one of the entries that have been silent for longest.
    pub(super) fn pop_oldest(&mut self) -> Option<(K, V)> {
        self.pop_before(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The table always equals a map, and evicts the oldest first.
        #[test]
        fn a_table_is_a_map_that_forgets_the_oldest(
            steps in prop::collection::vec((0u64..40, 0i64..30, 0u8..8), 0..300),
        ) {
            let mut table: Table<u64, u32> = Table::default();
            let mut map: BTreeMap<u64, (i64, u32)> = BTreeMap::new();
            for (key, second, what) in steps {
                if what > 1 {
                    let at = second * SECOND + 5;
                    table.update(key, |v| { *v += 1; (at, ()) });
                    let entry = map.entry(key).or_insert((at, 0));
                    *entry = (entry.0.max(at), entry.1 + 1);
                } else {
                    let mut gone = Vec::new();
                    match what {
                        0 => table.expire(second * SECOND, |k, v| gone.push((*k, *v))),
                        _ => gone.extend(std::iter::from_fn(|| table.pop_before(second * SECOND))),
                    }
                    for (old, value) in gone {
                        let (last, count) = map.remove(&old).expect("it is in the map");
                        prop_assert!(last < second * SECOND && count == value);
                    }
                    prop_assert!(map.values().all(|(last, _)| *last >= second * SECOND));
                }
                prop_assert_eq!(table.len(), map.len());
                prop_assert_eq!(table.get(&key).copied(), map.get(&key).map(|e| e.1));
            }
            if map.len().is_multiple_of(2) {
                let mut rest: Vec<(u64, u32)> = table.take_all().collect();
                rest.sort_unstable();
                prop_assert_eq!(rest, map.iter().map(|(k, e)| (*k, e.1)).collect::<Vec<_>>());
                map.clear();
            }
            let mut before = i64::MIN;
            while let Some((key, _)) = table.pop_oldest() {
                let (last, _) = map.remove(&key).expect("it is in the map");
                prop_assert!(last.div_euclid(SECOND) >= before);
                before = last.div_euclid(SECOND);
            }
            prop_assert!(map.is_empty() && table.len() == 0);
        }
    }
}

//! A table of what is open, by key, that gives up what has been silent for longest.
//!
//! An entry costs one place in an index and its own size, wherever it is in time: entries wait in a list for each
//! second, and move to a later one only when their list is looked at. (A heap or a tree by time would be touched by
//! every record.) Keys are hashed without a secret: the order of records and nothing else decides what happens.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Nanoseconds of a list.
const SECOND: i64 = 1_000_000_000;

const HASHER: FixedState = FixedState::with_seed(0);

/// Places by the hashes of what is in them. An index that grows needs no look at the places.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: HashTable<[u32; 2]>,
}

/// The hash of a key, as far as it is kept.
pub(super) fn hash_of(key: &impl Hash) -> u32 {
    (HASHER.hash_one(key) >> 32) as u32
}

/// Hash tables look at the highest and the lowest bits.
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

/// Entries by key, each with the time of its last sign of life, nanoseconds.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    index: Index,
    slots: Vec<Slot<K, V>>,
    free: Vec<u32>,
    /// Every entry that is there is in one list: that of its last sign of life, or of an earlier one.
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

    /// The entry of a key, which begins as the default, to be changed; `change` gives the time of its last sign of
    /// life, and what is handed on.
    pub(super) fn update<T>(&mut self, key: K, change: impl FnOnce(&mut V) -> (i64, T)) -> T {
        let hash = hash_of(&key);
        let is_it = |i: u32| self.slots[i as usize].key == key;
        if let Some(i) = self.index.find(hash, is_it) {
            let slot = &mut self.slots[i as usize];
            let (last, out) = change(&mut slot.value);
            // An entry whose list is too early moves on when that is looked at; one in too late a list would stay.
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

    /// Takes all entries whose last sign of life lies before the second that `until` is in.
    pub(super) fn expire(&mut self, until: i64, mut each: impl FnMut(&K, &V)) {
        let until = until.div_euclid(SECOND);
        while let Some(entry) = self.lists.first_entry().filter(|e| *e.key() < until) {
            let (second, mut list) = entry.remove_entry();
            // One loop for each thing to be done: what one waits for in memory, the next does not wait for.
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

    /// Takes an entry whose last sign of life lies before the second that `until` is in.
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

    /// Takes all, in no order that means anything.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let all = std::mem::take(self);
        // Few are free, as a rule: those are looked for in a list of their own.
        let mut free = all.free;
        free.sort_unstable();
        let mut free = free.into_iter().peekable();
        (0u32..).zip(all.slots).filter_map(move |(i, slot)| {
            let is_free = free.next_if_eq(&i).is_some();
            (!is_free).then_some((slot.key, slot.value))
        })
    }

    /// Takes one of those that have been silent for longest.
    pub(super) fn pop_oldest(&mut self) -> Option<(K, V)> {
        self.pop_before(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is done, the table holds what a map holds, and gives up the oldest first.
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

//! A sparse table that frees the memory of old entries.

use crate::fetch;

/// A table for numbers that are assigned in ascending order, of which only some have an entry at a time.
///
/// Entries are stored in pages, and an empty page is freed. So memory is proportional to the entries, plus one word
/// for every page that ever existed.
#[derive(Clone, Debug)]
pub struct Paged<T> {
    pages: Vec<Option<Box<Page<T>>>>,
}

const BITS: u32 = 5;
const ENTRIES: usize = 1 << BITS;

#[derive(Clone, Debug)]
struct Page<T> {
    used: u32,
    entries: [Option<T>; ENTRIES],
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Paged { pages: Vec::new() }
    }
}

/// Page of a number, and index within the page.
#[inline]
fn place(number: u32) -> (usize, usize) {
    ((number >> BITS) as usize, number as usize % ENTRIES)
}

impl<T> Paged<T> {
    /// The entry with this number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        let (page, i) = place(number);
        self.pages.get(page)?.as_deref()?.entries[i].as_ref()
    }

    /// As [`Paged::get`], mutable.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let (page, i) = place(number);
        self.pages.get_mut(page)?.as_deref_mut()?.entries[i].as_mut()
    }

    /// Inserts an entry and returns the previous one, if any. Also allocates one word for each page of lower numbers.
    pub fn insert(&mut self, number: u32, entry: T) -> Option<T> {
        let (at, i) = place(number);
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| {
            Box::new(Page {
                used: 0,
                entries: [const { None }; ENTRIES],
            })
        });
        let before = page.entries[i].replace(entry);
        page.used += u32::from(before.is_none());
        before
    }

    /// Removes and returns an entry.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let (at, i) = place(number);
        let slot = self.pages.get_mut(at)?;
        let page = slot.as_deref_mut()?;
        let entry = page.entries[i].take()?;
        page.used -= 1;
        if page.used == 0 {
            *slot = None;
        }
        Some(entry)
    }

    /// All entries in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let pages = self.pages.iter().enumerate();
        let pages = pages.filter_map(|(p, page)| Some((p as u32, page.as_deref()?)));
        pages.flat_map(|(p, page)| {
            let entries = page.entries.iter().enumerate();
            entries.filter_map(move |(i, entry)| Some((p << BITS | i as u32, entry.as_ref()?)))
        })
    }

    /// [Prefetches](fetch()) an entry.
    #[inline]
    pub fn fetch(&self, number: u32) {
        let (at, i) = place(number);
        if let Some(Some(page)) = self.pages.get(at) {
            fetch(&page.entries[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Stream;

    /// The oracle is a map of the standard library.
    #[test]
    fn it_holds_what_a_map_holds_and_frees_the_rest() {
        let mut rng = Stream::new(1, "paged");
        let (mut paged, mut map) = (Paged::default(), BTreeMap::new());
        for i in 0..50_000u32 {
            assert_eq!(paged.insert(i, u64::from(i)), map.insert(i, u64::from(i)));
            while map.len() > 1000 || rng.chance(0.3) {
                let old = i.saturating_sub(rng.below(4000) as u32);
                assert_eq!(paged.remove(old), map.remove(&old));
            }
            let any = rng.below(u64::from(i) + 10) as u32;
            assert_eq!(paged.get(any), map.get(&any));
            if let Some(entry) = paged.get_mut(any) {
                *entry += 1;
                *map.get_mut(&any).expect("both have it") += 1;
            }
        }
        assert!(paged.iter().eq(map.iter().map(|(&i, entry)| (i, entry))));
        assert!(!map.is_empty());
        let pages = paged.pages.iter().flatten().count();
        assert!(pages <= map.len(), "{pages} pages");
        for i in 0..50_000 {
            paged.remove(i);
        }
        assert_eq!(paged.pages.iter().flatten().count(), 0);
    }
}

//! A table with reusable slots.

/// A table of items. Each has a token that is unique to it, even if its slot is reused.
#[derive(Debug)]
pub(super) struct Table<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

/// Mask for the use count of a slot within a token. The two bits above are free for marks.
const USES: u32 = (1 << 30) - 1;

impl<T> Table<T> {
    pub fn insert(&mut self, value: T) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[at as usize];
        place.0 = place.0.wrapping_add(1) & USES;
        place.1 = Some(value);
        u64::from(place.0) << 32 | u64::from(at)
    }

    fn place(&self, token: u64) -> Option<usize> {
        let at = token as u32 as usize;
        (u64::from(self.places.get(at)?.0) == token >> 32).then_some(at)
    }

    #[inline]
    pub fn get_mut(&mut self, token: u64) -> Option<&mut T> {
        let at = self.place(token)?;
        self.places[at].1.as_mut()
    }

    pub fn remove(&mut self, token: u64) -> Option<T> {
        let at = self.place(token)?;
        let value = self.places[at].1.take();
        if value.is_some() {
            self.free.push(at as u32);
        }
        value
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Tokens of the items for which `which` is true.
    pub fn tokens(&self, which: impl FnMut(&T) -> bool) -> Vec<u64> {
        self.next_tokens(&mut 0, usize::MAX, which)
    }

    /// The same for the next `most` slots from `at` on. `at` is advanced to the slot to continue from.
    pub fn next_tokens(
        &self,
        at: &mut usize,
        most: usize,
        mut which: impl FnMut(&T) -> bool,
    ) -> Vec<u64> {
        let from = if *at < self.places.len() { *at } else { 0 };
        let to = self.places.len().min(from.saturating_add(most));
        *at = to;
        let token = |n: usize| {
            let (uses, value) = &self.places[n];
            let chosen = value.as_ref().is_some_and(&mut which);
            chosen.then_some(u64::from(*uses) << 32 | n as u64)
        };
        (from..to).filter_map(token).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_for_one_thing_alone() {
        let mut table = Table::default();
        let a = table.insert("a");
        let b = table.insert("b");
        assert_eq!(table.remove(a), Some("a"));
        assert_eq!((table.remove(a), table.get_mut(a)), (None, None));
        let c = table.insert("c");
        assert_eq!(c as u32, a as u32, "the place is used again");
        assert_eq!(table.get_mut(a), None);
        assert_eq!(table.get_mut(c), Some(&mut "c"));
        let mut at = 0;
        let mut next = || table.next_tokens(&mut at, 1, |_| true);
        assert_eq!([next(), next(), next()], [vec![c], vec![b], vec![c]]);
        assert_eq!((table.len(), table.tokens(|v| *v == "b")), (2, vec![b]));
    }
}

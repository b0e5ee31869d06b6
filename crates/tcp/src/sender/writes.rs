//! Where the application wrote, of a sender whose writes go out as packets of their own.

use std::collections::VecDeque;

use super::Active;

/// Writes not yet sent: the oldest run of equal ones. [`Runs`], in [`Active`], are the others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writes {
    /// How many; none where nothing waits.
    n: u32,
    /// Bytes of each, at most a segment.
    size: u16,
    /// There are others.
    mixed: bool,
}

/// The runs after the oldest, as (size, how many). Sources that write packets of one size have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(VecDeque<(u16, u32)>);

impl Writes {
    #[inline]
    pub fn add(&mut self, active: &mut Option<Box<Active>>, size: u16, n: u32) {
        if size == 0 || n == 0 {
            return;
        }
        if self.n == 0 {
            *self = Writes { n, size, ..*self };
        } else if !self.mixed && self.size == size {
            self.n = self.n.saturating_add(n);
        } else {
            self.mixed = true;
            let Runs(others) = &mut **active.get_or_insert_default().runs.get_or_insert_default();
            match others.back_mut() {
                Some((s, count)) if *s == size => *count = count.saturating_add(n),
                _ => others.push_back((size, n)),
            }
        }
    }

    /// Adds `n` writes if they are like all that wait; false if not.
    #[inline]
    pub fn more(&mut self, bytes: u64, n: u32) -> bool {
        let alike = self.n > 0 && u64::from(self.size) == bytes && !self.mixed;
        if alike {
            self.n = self.n.saturating_add(n);
        }
        alike
    }

    /// How much of the oldest is unsent; without limit where there is none.
    #[inline]
    pub fn left(&self) -> u32 {
        if self.n == 0 {
            u32::MAX
        } else {
            u32::from(self.size)
        }
    }

    /// `len` bytes of the oldest were sent.
    #[inline]
    pub fn take(&mut self, active: &mut Option<Box<Active>>, len: u32) {
        if self.n > 1 && len == u32::from(self.size) {
            self.n -= 1;
        } else {
            self.take_last(active, len);
        }
    }

    /// The same where it is the last of its run, or cut, or there is none.
    #[inline(never)]
    fn take_last(&mut self, active: &mut Option<Box<Active>>, len: u32) {
        if self.n == 0 || len == 0 {
            return;
        }
        if len < u32::from(self.size) {
            // The receive window cut a write in two.
            if self.n > 1 {
                self.mixed = true;
                let Runs(others) =
                    &mut **active.get_or_insert_default().runs.get_or_insert_default();
                others.push_front((self.size, self.n - 1));
            }
            self.size -= len as u16; // below the size, which is a u16
            self.n = 1;
            return;
        }
        self.n -= 1;
        if self.n == 0
            && self.mixed
            && let Some(active) = active
            && let Some(Runs(others)) = active.runs.as_deref_mut()
        {
            (self.size, self.n) = others.pop_front().unwrap_or_default();
            if others.is_empty() {
                active.runs = None;
                self.mixed = false;
            }
        }
    }
}

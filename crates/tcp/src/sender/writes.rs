//! Application writes, including write boundaries for a sender whose writes are separate packets.

use super::state::{Active, NO_LIMIT, Runs, Sender, Writes};
use crate::Config;

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

    /// Adds `n` writes if they have the same size as all waiting writes. Returns false, without adding, if not.
    #[inline]
    pub fn more(&mut self, bytes: u64, n: u32) -> bool {
        let alike = self.n > 0 && u64::from(self.size) == bytes && !self.mixed;
        if alike {
            self.n = self.n.saturating_add(n);
        }
        alike
    }

    /// Unsent bytes of the oldest write; `u32::MAX` if there is none.
    #[inline]
    pub fn left(&self) -> u32 {
        if self.n == 0 {
            u32::MAX
        } else {
            u32::from(self.size)
        }
    }

    /// Removes `len` bytes from the oldest write after they are sent.
    #[inline]
    pub fn take(&mut self, active: &mut Option<Box<Active>>, len: u32) {
        if self.n > 1 && len == u32::from(self.size) {
            self.n -= 1;
        } else {
            self.take_last(active, len);
        }
    }

    /// The same for a write that is the last of its run or is cut, or if no write waits.
    #[inline(never)]
    fn take_last(&mut self, active: &mut Option<Box<Active>>, len: u32) {
        if self.n == 0 || len == 0 {
            return;
        }
        if len < u32::from(self.size) {
            // The receive window splits a write in two.
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

impl Sender {
    /// Records a write. Returns false if earlier data still waits, so that this write must wait too.
    pub(crate) fn write(&mut self, cfg: &Config, bytes: u64) -> bool {
        // Only Nagle's algorithm can make more data release data that waits.
        let ready = self.end <= self.nxt || self.nagle;
        if self.ns2 {
            self.burst = NO_LIMIT;
        }
        self.feed(cfg, bytes, 1);
        ready
    }

    /// Adds `n` writes to the waiting data.
    #[inline]
    pub(crate) fn feed(&mut self, cfg: &Config, bytes: u64, n: u32) {
        let mut left = n;
        while left > 0 {
            // Half the sequence space: more than any run can send, and sums cannot overflow.
            let all = bytes.saturating_mul(u64::from(left));
            let fits = all <= (u64::MAX / 2).saturating_sub(self.end);
            if fits && self.packets && self.writes.more(bytes, left) {
                self.end += all;
                return;
            }
            self.feed_one(cfg, bytes);
            left -= 1;
        }
    }

    #[inline(never)]
    fn feed_one(&mut self, cfg: &Config, bytes: u64) {
        let bytes = bytes.min((u64::MAX / 2).saturating_sub(self.end));
        self.end += bytes;
        if !self.packets || self.writes.more(bytes, 1) {
            return;
        }
        // A segment is at most 65 000 bytes.
        let mss = cfg.mss() as u16;
        let whole = u32::try_from(bytes / u64::from(mss)).unwrap_or(u32::MAX);
        self.writes.add(&mut self.active, mss, whole);
        let rest = (bytes % u64::from(mss)) as u16;
        self.writes.add(&mut self.active, rest, 1);
    }

    /// See [`Endpoint::defers_writes`](crate::Endpoint::defers_writes).
    #[inline]
    pub(crate) fn defers_writes(&self, cfg: &Config) -> bool {
        // In ns-2 a write ends the limit that an acknowledgement sets to a burst.
        let free = !self.ns2 || self.burst == NO_LIMIT;
        // BBR must notice when all data is sent.
        let deaf = self.packets && !(self.nagle | self.fin_queued | self.paced);
        // A tail loss probe needs to know whether a full segment waits.
        let least = if cfg.rack_tlp { cfg.mss() } else { 1 };
        deaf && self.end >= self.nxt + u64::from(least) && free
    }
}

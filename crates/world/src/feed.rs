//! Sources that write to a connection in which data waits already.
//!
//! A source that submits more than its connection can send would have an event for each of its writes, and all
//! that comes of it is that more waits. Where the source says that its timer does nothing else
//! ([`TimedWrite::alone`](swell_workload::TimedWrite::alone)) and the endpoint that [it would not
//! mind](swell_tcp::Endpoint::minds_no_writes), the timer rests: what became due is written when the endpoint has
//! sent all that waited, and the timer runs again once it is ahead of the present. Nothing else is to be seen
//! of it: packets, and the numbers that sources draw, are the same. Only what happens at the very nanosecond at
//! which a resting write is due may come before that write where it came after it.

use swell_base::{EventQueue, Time, fetch};
use swell_tcp::Endpoint;

use crate::wake::{Timers, Wake};
use crate::worker::Workers;

/// No feed.
pub(crate) const NONE: u32 = u32::MAX;

/// How many writes are made up for at once: a few more than are needed now cost less than to come back for them.
const SOME: u32 = 16;

/// A timer that rests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feed {
    /// When it would have been due.
    pub due: Time,
    pub token: u64,
    pub workload: u32,
}

/// Whether a handle is that of a timer which writes to this end of the connection.
#[inline]
pub(crate) fn is_of(handle: u32, end: u8) -> bool {
    handle != NONE && handle & 1 == u32::from(end)
}

/// All timers that rest.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    feeds: Vec<Feed>,
    free: Vec<u32>,
}

impl Feeds {
    /// Lets a timer rest that writes to this end of a connection; its handle.
    pub fn rest(&mut self, feed: Feed, end: u8) -> u32 {
        let place = match self.free.pop() {
            Some(place) => {
                self.feeds[place as usize] = feed;
                place
            }
            None => {
                self.feeds.push(feed);
                self.feeds.len() as u32 - 1
            }
        };
        place << 1 | u32::from(end)
    }

    /// [Asks](fetch()) for a timer, if there is one.
    #[inline]
    pub fn fetch(&self, handle: u32) {
        if let Some(feed) = self.feeds.get((handle >> 1) as usize) {
            fetch(feed);
        }
    }

    /// The workload whose timer it is.
    #[inline]
    pub fn workload(&self, handle: u32) -> Option<u32> {
        Some(self.feeds.get((handle >> 1) as usize)?.workload)
    }

    /// Forgets a timer, if there is one.
    pub fn forget(&mut self, handle: &mut u32) {
        if *handle != NONE {
            self.free.push(std::mem::replace(handle, NONE) >> 1);
        }
    }

    /// Writes what is needed of what became due; false if nothing did. If the endpoint would mind what is still to
    /// come, the timer runs again.
    #[inline(never)]
    pub fn catch_up(
        &mut self,
        handle: &mut u32,
        endpoint: &mut Endpoint,
        (workers, timers): (&mut Workers, &mut Timers),
        (now, queue): (Time, &mut EventQueue<Wake>),
    ) -> bool {
        let feed = &mut self.feeds[(*handle >> 1) as usize];
        let mut wrote = false;
        while !endpoint.minds_no_writes() && feed.write_some(endpoint, workers, now) {
            wrote = true;
        }
        if !endpoint.minds_no_writes() {
            feed.run_again(timers, (now, queue));
            self.forget(handle);
        }
        wrote
    }

    /// Writes all that became due, and the timer runs again: something else happens to the endpoint.
    #[inline(never)]
    pub fn go_on(
        &mut self,
        handle: &mut u32,
        endpoint: &mut Endpoint,
        (workers, timers): (&mut Workers, &mut Timers),
        at: (Time, &mut EventQueue<Wake>),
    ) {
        let feed = &mut self.feeds[(*handle >> 1) as usize];
        while feed.write_some(endpoint, workers, at.0) {}
        feed.run_again(timers, at);
        self.forget(handle);
    }
}

impl Feed {
    /// Writes some of what became due before `now`, whose own turn comes after what happens now; false if nothing
    /// did.
    fn write_some(&mut self, endpoint: &mut Endpoint, workers: &mut Workers, now: Time) -> bool {
        if self.due >= now {
            return false;
        }
        let machine = workers.machine_mut(self.workload);
        let (bytes, n) = machine.timed_writes(self.token, &mut self.due, now, SOME);
        endpoint.feed(bytes, n);
        n > 0
    }

    fn run_again(&self, timers: &mut Timers, (now, queue): (Time, &mut EventQueue<Wake>)) {
        let wake = timers.set(self.workload, self.token);
        // A machine whose timed writes have ended is asked once more, as any timer is.
        queue.push(self.due.max(now), wake);
    }
}

//! Sources that write to a connection that already has a send backlog.
//!
//! If a source submits more than its connection can send, each write costs an event and only lengthens the backlog.
//! With thousands of such sources these events are most of the work. So the timer of the source is suspended if two
//! conditions hold: it does nothing but write ([`TimedWrite::alone`](swell_workload::TimedWrite::alone)), and the
//! endpoint [has a backlog](swell_tcp::Endpoint::defers_writes). When the endpoint has sent the backlog, it catches
//! up on the writes that became due. The timer resumes once its next write lies in the future.
//!
//! Packets and the random numbers of sources do not change. One difference remains: an event at the same nanosecond
//! as a suspended write may come before that write instead of after it.

use swell_base::{End, EventQueue, Time, fetch};
use swell_tcp::Endpoint;

use crate::wake::{Timers, Wake};
use crate::worker::Workers;

/// No suspended timer.
pub(crate) const NONE: u32 = u32::MAX;

/// Largest number of writes per call. Making a few writes more than are needed now costs less than another call.
const SOME: u32 = 16;

/// A suspended timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feed {
    /// When the timer would have been due.
    pub due: Time,
    pub token: u64,
    pub workload: u32,
}

/// Whether `handle` refers to a timer that writes to this end of the connection.
#[inline]
pub(crate) fn is_of(handle: u32, end: End) -> bool {
    handle != NONE && handle & 1 == end as u32
}

/// All suspended timers.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    feeds: Vec<Feed>,
    free: Vec<u32>,
}

impl Feeds {
    /// Suspends a timer that writes to this end of a connection. Returns its handle.
    pub fn rest(&mut self, feed: Feed, end: End) -> u32 {
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
        place << 1 | end as u32
    }

    /// [Prefetches](fetch()) a timer, if there is one.
    #[inline]
    pub fn fetch(&self, handle: u32) {
        if let Some(feed) = self.feeds.get((handle >> 1) as usize) {
            fetch(feed);
        }
    }

    /// The workload that owns the timer.
    #[inline]
    pub fn workload(&self, handle: u32) -> Option<u32> {
        Some(self.feeds.get((handle >> 1) as usize)?.workload)
    }

    /// Releases a timer, if there is one.
    pub fn forget(&mut self, handle: &mut u32) {
        if *handle != NONE {
            self.free.push(std::mem::replace(handle, NONE) >> 1);
        }
    }

    /// Makes overdue writes until there is a backlog again. Returns false if no write was overdue. If there is still
    /// no backlog, resumes the timer.
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
        while !endpoint.defers_writes() && feed.write_some(endpoint, workers, now) {
            wrote = true;
        }
        if !endpoint.defers_writes() {
            feed.run_again(timers, (now, queue));
            self.forget(handle);
        }
        wrote
    }

    /// Makes all overdue writes and resumes the timer. Needed before anything else acts on the endpoint, whose state
    /// must be the same as without suspension.
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
    /// Makes some of the writes that became due before `now`. A write due at `now` is made by its own event. Returns
    /// false if no write was overdue.
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
        // If the timed writes of the source have ended, this timer calls it once more, as without suspension.
        queue.push(self.due.max(now), wake);
    }
}

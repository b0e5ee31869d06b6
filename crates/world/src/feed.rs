//! Sources that write to a connection with a backlog.
//!
//! A source that submits more than its connection can send needs an event for each write, and each write only
//! lengthens the backlog. With thousands of such sources these events are most of the work. So the timer is suspended if two
//! conditions hold: it does nothing but write ([`TimedWrite::alone`](swell_workload::TimedWrite::alone)), and the
//! endpoint [has a backlog](swell_tcp::Endpoint::defers_writes). The writes that became due are made when the endpoint has sent the backlog.
//! The timer runs again once it is ahead of the present.
//!
//! Packets and the random numbers of sources are the same as without this. The one difference: an event at the very
//! nanosecond of a suspended write may come before that write instead of after it.

use swell_base::{EventQueue, Time, fetch};
use swell_tcp::Endpoint;

use crate::wake::{Timers, Wake};
use crate::worker::Workers;

/// No suspended timer.
pub(crate) const NONE: u32 = u32::MAX;

/// How many writes are made at once: a few more than are needed now cost less than another call.
const SOME: u32 = 16;

/// A suspended timer.
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

/// All suspended timers.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    feeds: Vec<Feed>,
    free: Vec<u32>,
}

impl Feeds {
    /// Suspends a timer that writes to this end of a connection. Returns its handle.
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

    /// Makes writes that became due until there is a backlog again. False if nothing was due. If there is still no backlog,
    /// the timer runs again.
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

    /// Makes all writes that became due and resumes the timer, because something else happens to the endpoint: its state
    /// must be what it would be without suspension.
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
    /// Makes some of the writes that became due before `now`. A write due at `now` comes later, as its event would.
    /// False if nothing was due.
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
        // A source whose timed writes have ended is asked once more, as by any timer.
        queue.push(self.due.max(now), wake);
    }
}

//! Waits of the loop: until a packet is due, one arrives, or the emulation is to stop.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use swell_base::{Dur, Time};
use swell_host::clock::{monotonic, timespec};

use super::{Emulation, Shared};
use crate::clock::Clock;
use crate::load::Load;

/// Devices whose packets carry kernel time stamps may stay unread for this long. The limit bounds the delay of
/// packets between hosts on the same side, which do not cross the network.
const UNREAD: Dur = Dur::from_micros(500);
impl Emulation {
    /// If packets are coalesced and there were any at `last`, sleeps until the next poll or a request to stop.
    pub(super) fn rest(&mut self, last: Time, clock: &Clock, shared: &Shared) -> io::Result<()> {
        let busy = std::mem::take(&mut self.inside.busy);
        let more = self.hosts.iter().any(|h| h.ready);
        let Some(rest) = self.options.pace.rest().filter(|_| busy && !more) else {
            return Ok(());
        };
        let left = rest.saturating_sub(clock.outside(clock.now().since(last)));
        if left > Dur::ZERO {
            sleep(
                &mut [PollFd::new(&shared.wake, PollFlags::IN)],
                left,
                &mut self.load,
            )?;
        }
        self.ask_all();
        Ok(())
    }

    /// Sleeps until `due`, the arrival of a packet, or a request to stop.
    ///
    /// An arriving packet need not wake the loop if three things hold: the kernel stamps it, another packet is due
    /// soon anyway, and the arriving packet cannot leave before that one. At high packet rates this saves half of the
    /// wake-ups.
    pub(super) fn wait(&mut self, due: Time, clock: &Clock, shared: &Shared) -> io::Result<()> {
        if self.hosts.iter().any(|h| h.ready) {
            return Ok(());
        }
        if !self.staged.is_empty() {
            // They arrived after the beginning of this turn, and so may others have.
            self.ask_all();
            return Ok(());
        }
        let stamped = self.hosts.iter().all(|h| h.nic.stamps());
        let until_due = due.since(clock.now());
        let unread =
            stamped && until_due < self.options.crossing && clock.outside(until_due) < UNREAD;
        let spin = match self.load.may_spin() {
            true => self.options.pace.spin(),
            false => Dur::ZERO,
        };
        let left = clock.outside(due.since(clock.now()));
        let early = spin.max(self.oversleep.early(left));
        let left = left.saturating_sub(early);
        let mut ask = true;
        if left > Dur::ZERO && unread {
            // The sleep is so short that a request to stop can wait.
            self.oversleep.slept(nap(left, &mut self.load));
            self.back(due, stamped, clock);
        } else if left > Dur::ZERO {
            let nics = self.hosts.iter().map(|h| h.nic.fd());
            let mut fds: Vec<PollFd<'_>> = nics
                .chain([shared.wake.as_fd()])
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            let late = sleep(&mut fds, left, &mut self.load)?;
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            for (host, something) in self.hosts.iter_mut().zip(ready) {
                host.ready = something;
            }
            let Some(late) = late else {
                return Ok(());
            };
            self.oversleep.slept(late);
            self.back(due, stamped, clock);
            ask = spin > Dur::ZERO;
        }
        self.spin(due, clock);
        if ask {
            self.ask_all();
        }
        Ok(())
    }

    /// Spins until `due`.
    fn spin(&mut self, due: Time, clock: &Clock) {
        let before = clock.now();
        if before >= due {
            return;
        }
        let mut now = before;
        while now < due {
            std::hint::spin_loop();
            now = clock.now();
        }
        self.load.spun(clock.outside(now.since(before)).as_nanos());
    }

    /// Measures how late a sleep until `due` ended.
    fn back(&mut self, due: Time, stamped: bool, clock: &Clock) {
        let now = clock.now();
        let over = now.since(due);
        // With kernel time stamps, packets still enter at their true arrival times, so a stall does not delay them. One
        // that has none, or whose time the world has passed, counts by itself (`Emulation::lift`). Departures are
        // measured in any case.
        if self.inside.lateness.back(clock.outside(over)) && !stamped {
            self.inside.tracker.stalled(now, over);
        }
    }

    /// After a sleep without `poll` on the devices: marks every device that has packets as ready.
    fn ask_all(&mut self) {
        for host in &mut self.hosts {
            host.ready = !host.nic.empty();
        }
    }
}

/// Sleeps for a span of wall-clock time or until a descriptor is ready. Returns how much longer than asked for it slept,
/// or `None` if a descriptor or a signal ended it.
fn sleep(fds: &mut [PollFd<'_>], span: Dur, load: &mut Load) -> io::Result<Option<Dur>> {
    let before = monotonic();
    let answer = poll(fds, Some(&timespec(span)));
    let slept = slept(before, span, load);
    match answer {
        Ok(0) => Ok(Some(slept)),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Sleeps for a span of wall-clock time without watching descriptors, which costs less than `poll`. Returns how much
/// longer it slept.
fn nap(span: Dur, load: &mut Load) -> Dur {
    let before = monotonic();
    // A signal ends the sleep early. That is harmless, because the loop reads the clock in any case.
    let _ = rustix::thread::nanosleep(&timespec(span));
    slept(before, span, load)
}

/// Notes a sleep of `span` that began at `before`, and returns how much longer it was.
fn slept(before: u64, span: Dur, load: &mut Load) -> Dur {
    let slept = monotonic().saturating_sub(before);
    // Counts at most the requested span: after it, the thread was runnable and waited for a processor.
    load.slept(slept.min(span.as_nanos()));
    Dur::from_nanos(slept.saturating_sub(span.as_nanos()))
}

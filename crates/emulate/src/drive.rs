//! The event loop: one thread drives a world against the clock.

mod bridge;
mod entrance;
mod lift;
mod staged;
mod switches;
mod wait;

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use swell_base::{Dur, Time};
use swell_path::CoarseBin;
use swell_world::{Direction, Port, PortConfig, World};

use super::attach::AttachedHosts;
use super::clock::Clock;
use super::ip::{Header, set_ecn};
use super::journal::{Entry, Journal};
use super::load::{Load, Urgency, waited_for_processor};
use super::pace::{Gathering, Oversleep};
use super::pool::Pool;
use super::table::Table;
use super::tracker::Tracker;
use super::{Counts, Host, Options, Packets, Snapshot};
use staged::{DuePacket, Staged};
use swell_host::Nic;
use swell_host::clock::monotonic;
use swell_host::{Late, Lateness};
use switches::Bridging;
pub use switches::{PortCounts, Route};

/// Most packets written as one batch. The kernel receives the packets of one connection in a batch as one
/// super-packet.
const AT_ONCE: usize = 64;
/// Longest sleep. After a longer one, the world has many events to process before the next packet, which is then
/// late.
const LONGEST_SLEEP: Dur = Dur::from_millis(5);
/// How often a snapshot is published.
const SNAPSHOT: Dur = Dur::from_millis(100);

/// A world with hosts attached, ready to be started.
pub struct Emulation {
    world: World,
    hosts: Vec<Attached>,
    /// Index of the host at each port.
    ports: Vec<usize>,
    table: Table,
    attached: AttachedHosts,
    options: Options,
    inside: Inside,
    load: Load,
    gathering: Gathering,
    oversleep: Oversleep,
    /// Packets that were read and wait for earlier packets of other hosts.
    staged: Vec<Staged>,
    /// Buffers of processed packets, for reuse.
    spare: Vec<Vec<u8>>,
    /// When the current turn of the loop began.
    turn: Time,
    /// The hosts are interfaces of a bridge.
    bridge: Option<Bridging>,
}

struct Attached {
    nic: Box<dyn Nic>,
    /// Packets that the host refused.
    refused: u64,
    /// Packets that devices in its place have lost before this one.
    lost: u64,
    /// The device may have packets to read.
    ready: bool,
    /// It had none at this time.
    emptied: Time,
}

/// Everything that is recorded about packets.
#[derive(Default)]
struct Inside {
    pool: Pool,
    journal: Option<Journal<BufWriter<File>>>,
    journal_error: Option<io::Error>,
    tracker: Tracker,
    packets: Option<Packets>,
    lateness: Lateness,
    counts: Counts,
    /// The packets of the current batch.
    due: Vec<DuePacket>,
    /// When a packet last entered.
    entered_last: Time,
    /// How many packets the links have dropped, and by when this number last rose.
    losses: (u64, Time),
    /// Ports below this number belong to hosts with programs, the others to background hosts.
    programs: u32,
    /// Arrivals so far.
    arrivals: u64,
    /// A packet was read or released since the last wait.
    busy: bool,
    /// What the watched link had carried: from left to right, and back.
    carried: [Carried; 2],
}

/// The sum of the bins of a meter. It is kept, since a run can have hundreds of thousands of bins.
#[derive(Clone, Copy, Default)]
struct Carried {
    /// The sum of the first `bins` bins, which no longer change.
    before: [u64; 2],
    bins: usize,
}

/// So many of a meter's newest bins may still change, amply.
const CHANGING: usize = 64;

impl Carried {
    /// The sum of all bins: bytes that departed.
    fn all(&mut self, bins: &[CoarseBin]) -> [u64; 2] {
        let add = |sum: [u64; 2], bin: &CoarseBin| [0, 1].map(|i| sum[i] + bin.departed[i]);
        let settled = bins.len().saturating_sub(CHANGING);
        let new = bins.get(self.bins..settled).unwrap_or_default();
        self.before = new.iter().fold(self.before, add);
        self.bins = self.bins.max(settled);
        bins[self.bins.min(bins.len())..]
            .iter()
            .fold(self.before, add)
    }
}

/// An emulation that has ended.
pub struct EmulationResult {
    /// The world, as it was at its end.
    pub world: World,
    /// How late packets left.
    pub late: Late,
    /// What happened to packets at the edge of the world.
    pub counts: Counts,
    /// The connections and datagram flows between the programs.
    pub tracker: Tracker,
    /// How long the loop ran without real-time priority because its load was too high; wall-clock time.
    pub gave_way: Dur,
    /// How long the loop was runnable while other threads had its processor; wall-clock time.
    pub waited: Dur,
    /// The frames of each interface, if it was a bridge.
    pub ports: Vec<PortCounts>,
    /// World time at which it ended.
    pub at: Time,
    /// Keeps the hosts' devices, and so their addresses, for the lifetime of this value. A program that sends
    /// slightly after the end then gets no answer, instead of an error that would count as a failure.
    _hosts: Vec<Attached>,
}

/// A running emulation.
pub struct Running {
    thread: Option<JoinHandle<io::Result<EmulationResult>>>,
    shared: Arc<Shared>,
    clock: Clock,
}

struct Shared {
    stop: AtomicBool,
    wake: OwnedFd,
    snapshot: Mutex<Snapshot>,
    /// Devices that take the places of others, by the number of the host.
    replacements: Mutex<Vec<(usize, Box<dyn Nic>)>>,
    replaced: AtomicBool,
}

impl Emulation {
    /// Attaches hosts to a world. If the world's time is not zero, the time before counts as warm-up.
    ///
    /// # Errors
    /// If the journal cannot be created or written.
    pub fn new(world: World, hosts: Vec<Host>, options: Options) -> io::Result<Emulation> {
        let mut emulation = Emulation::bare(world, options)?;
        emulation.inside.programs = hosts.len() as u32;
        for host in hosts {
            let port = emulation.add_port(host.port);
            emulation.ports.push(emulation.hosts.len());
            for prefix in host.prefixes {
                emulation.table.route(prefix, port);
            }
            emulation.attach(host.nic);
        }
        Ok(emulation)
    }

    /// Without hosts.
    fn bare(world: World, mut options: Options) -> io::Result<Emulation> {
        let mut inside = Inside::default();
        if let Some(path) = &options.journal {
            inside.journal = Some(Journal::new(BufWriter::new(File::create(path)?))?);
        }
        inside.packets = options.packets.take();
        inside.tracker = Tracker::new(options.crossing);
        Ok(Emulation {
            turn: world.now(),
            world,
            hosts: Vec::new(),
            ports: Vec::new(),
            table: Table::default(),
            attached: AttachedHosts::of(options.updates.take()),
            inside,
            load: Load::starting(monotonic()),
            gathering: Gathering::new(options.pace, options.crossing),
            oversleep: Oversleep::default(),
            staged: Vec::new(),
            spare: Vec::new(),
            bridge: None,
            options,
        })
    }

    /// Adds a port of a program, or of a bridge.
    fn add_port(&mut self, config: PortConfig) -> Port {
        let port = self.world.add_port(&config);
        self.inside.note(&Entry::Port {
            at: self.world.now(),
            config,
            program: true,
        });
        port
    }

    fn attach(&mut self, nic: Box<dyn Nic>) {
        self.hosts.push(Attached {
            nic,
            refused: 0,
            lost: 0,
            ready: true,
            emptied: self.world.now(),
        });
    }

    /// Starts the clock and the event loop on a thread of its own.
    ///
    /// # Errors
    /// If the operating system refuses to create a thread.
    pub fn start(self) -> io::Result<Running> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            snapshot: Mutex::default(),
            replacements: Mutex::default(),
            replaced: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let clock = Clock::starting_at(self.world.now(), self.options.stretch);
        let thread = std::thread::Builder::new()
            .name("world".into())
            .spawn(move || self.drive(&clock, &theirs))?;
        Ok(Running {
            thread: Some(thread),
            shared,
            clock,
        })
    }

    fn drive(mut self, clock: &Clock, shared: &Shared) -> io::Result<EmulationResult> {
        if let Some(schedule) = &mut self.options.schedule {
            schedule(Urgency::Punctual);
        }
        self.load = Load::starting(monotonic());
        let mut next_snapshot = Time::ZERO;
        let end = self.options.until.unwrap_or(Time::MAX);
        let at = loop {
            // The clock comes first. What a host sends between two reads of it is read in the next turn, and the world
            // must not have passed its time by then.
            let now = clock.now().min(end);
            let horizon = self.take_in(now, clock)?;
            let now = now.min(horizon);
            if let Some((at, look)) = self.options.then.take_if(|(at, _)| *at <= now) {
                self.happen(at);
                look(&self.world);
            }
            self.happen(now);
            self.count_losses();
            self.obey();
            self.leave(clock);
            if let Some(urgency) = self.load.judge(monotonic())
                && let Some(schedule) = &mut self.options.schedule
            {
                schedule(urgency);
            }
            if now >= next_snapshot {
                self.publish(now, shared);
                next_snapshot = now + SNAPSHOT;
            }
            if now == end || shared.stop.load(Ordering::Relaxed) {
                break now;
            }
            self.replace(shared);
            let far = now + LONGEST_SLEEP;
            let due = self.world.ports_due();
            let due = due.map_or(far, |d| (d + self.gathering.wait()).min(far));
            let due = due.min(end);
            self.rest(now, clock, shared)?;
            self.wait(due, clock, shared)?;
        };
        self.finish(at, clock)
    }

    /// Puts new devices into the places of others.
    fn replace(&mut self, shared: &Shared) {
        if !shared.replaced.load(Ordering::Acquire) {
            return;
        }
        shared.replaced.store(false, Ordering::Relaxed);
        let all = shared.replacements.lock();
        for (number, nic) in all.unwrap_or_else(PoisonError::into_inner).drain(..) {
            let Some(host) = self.hosts.get_mut(number) else {
                continue;
            };
            host.refused += host.nic.flush();
            host.lost += host.nic.lost();
            host.nic = nic;
            host.ready = true;
            if let Some(bridge) = &mut self.bridge {
                bridge.forget(number);
            }
        }
    }

    /// Applies requested changes of link settings.
    fn obey(&mut self) {
        let Some(control) = &self.options.control else {
            return;
        };
        for entry in control.settle(self.options.watched, &mut self.world) {
            self.inside.note(&entry);
            self.inside.counts.set += 1;
            if let Entry::Set { setting, .. } = entry
                && let Some(delay) = setting.delay
            {
                // A path over this link takes at least the new delay, and the old bound holds for all other paths.
                self.options.crossing = self.options.crossing.min(delay);
                self.inside.tracker.crosses_in(self.options.crossing);
                self.gathering.crosses_in(self.options.crossing);
            }
        }
    }

    /// Releases the packets that are due.
    fn leave(&mut self, clock: &Clock) {
        while self.leave_some(clock) == AT_ONCE {}
        let (inside, bridge) = (&mut self.inside, &mut self.bridge);
        self.world.take_drops(&mut |c| {
            inside.counts.dropped += 1;
            let place = inside.pool.get(c.handle);
            if let Some(bridge) = bridge {
                bridge.counts[place.origin].dropped += 1;
            }
            let number = place.number;
            let lift = place.lift;
            inside.note(&Entry::Drop {
                at: c.at,
                number,
                reason: c.reason,
            });
            inside.lost(c.at, clock.outside(lift.by), lift);
            inside.pool.free(c.handle);
        });
        if let Some(packets) = &mut self.inside.packets {
            packets.settle();
        }
    }

    /// Releases at most one batch of packets that are due, and returns how many.
    fn leave_some(&mut self, clock: &Clock) -> usize {
        self.inside.due.clear();
        match self.bridge {
            Some(_) => self.write_bridged(),
            None => self.write(),
        }
        let inside = &mut self.inside;
        if !inside.due.is_empty() {
            inside.busy = true;
            for host in &mut self.hosts {
                host.refused += host.nic.flush();
            }
            let now = clock.now();
            for packet in &inside.due {
                let at = packet.at;
                let by = now.since(at);
                self.gathering.left(at, clock.outside(by));
                let by = by + packet.lift.delay();
                inside.lateness.add(clock.outside(by));
                if let Some(tracked) = packet.tracked {
                    inside.tracker.left_late(tracked, packet.entered, at, by);
                }
            }
        }
        inside.due.len()
    }

    /// Writes at most one batch of packets that are due to their hosts.
    fn write(&mut self) {
        let inside = &mut self.inside;
        while inside.due.len() < AT_ONCE
            && let Some(d) = self.world.take_delivery()
        {
            let mut tracked = None;
            let place = inside.pool.get(d.handle);
            if let Some(header) = Header::of(&place.bytes) {
                if header.ecn != d.ecn {
                    set_ecn(&mut place.bytes, d.ecn);
                    inside.counts.marked += 1;
                }
                if d.port.0 < inside.programs {
                    tracked = (inside.tracker).received(d.at, place.entered, &header, &place.bytes);
                }
            }
            let host = &mut self.hosts[self.ports[d.port.0 as usize]];
            host.refused += host.nic.write(&place.bytes, place.checksum);
            inside.counts.left += 1;
            inside.due.push(DuePacket {
                entered: place.entered,
                at: d.at,
                lift: place.lift,
                tracked,
            });
            if let Some(packets) = &mut inside.packets
                && d.port.0 < inside.programs
            {
                let ends = [place.origin, d.port.0 as usize];
                packets.left(d.at, ends, &place.bytes, place.checksum);
            }
            let number = place.number;
            inside.note(&Entry::Departure {
                at: d.at,
                number,
                ecn: d.ecn,
            });
            inside.pool.free(d.handle);
        }
    }

    fn publish(&mut self, now: Time, shared: &Shared) {
        let watched = self.options.watched;
        let links = [Direction::Up, Direction::Down].map(|d| self.world.link(watched, d));
        let carried = &mut self.inside.carried;
        let mut seen = |i: usize| carried[i].all(links[i].meter().map_or(&[][..], |m| &m.bins));
        let snapshot = Snapshot {
            at: now,
            carried: [seen(0), seen(1)],
            inside: self.world.inside(),
            flows: self.world.open_flows(),
            dropped: links.map(|l| l.ledger().dropped.iter().sum()),
            late: self.inside.lateness.late(),
        };
        if let Some(control) = &self.options.control {
            control.show(&snapshot, || self.inside.tracker.open_flows(now));
        }
        *shared
            .snapshot
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn finish(mut self, at: Time, clock: &Clock) -> io::Result<EmulationResult> {
        self.leave(clock);
        self.inside.note(&Entry::End { at });
        if let Some(e) = self.inside.journal_error {
            return Err(e);
        }
        if let Some(journal) = self.inside.journal {
            journal.finish()?;
        }
        if let Some(packets) = self.inside.packets {
            packets.finish().map_err(io::Error::other)?;
        }
        let mut counts = self.inside.counts;
        let lost = |h: &Attached| h.lost + h.nic.lost();
        counts.lost = self.hosts.iter().map(lost).sum();
        counts.refused = self.hosts.iter().map(|h| h.refused).sum();
        let mut ports = self.bridge.map_or_else(Vec::new, |b| b.counts);
        for (port, host) in ports.iter_mut().zip(&self.hosts) {
            (port.refused, port.lost) = (host.refused, lost(host));
            // Until here it has every frame that was written, whatever became of it.
            port.sent = port.sent.saturating_sub(host.refused + host.nic.dropped());
        }
        Ok(EmulationResult {
            world: self.world,
            late: self.inside.lateness.late(),
            counts,
            tracker: self.inside.tracker,
            gave_way: self.load.gave_way(),
            waited: waited_for_processor(),
            ports,
            at,
            _hosts: self.hosts,
        })
    }
}

impl Inside {
    fn note(&mut self, entry: &Entry) {
        if let Some(journal) = &mut self.journal
            && let Err(e) = journal.add(entry)
        {
            self.journal_error = Some(e);
            self.journal = None;
        }
    }
}

impl Running {
    /// The world's time.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Puts a device into the place of that of host `number`, such as one that no longer exists. Packets that wait in
    /// the old one are lost.
    pub fn replace(&self, number: usize, nic: Box<dyn Nic>) {
        let all = self.shared.replacements.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .push((number, nic));
        self.shared.replaced.store(true, Ordering::Release);
    }

    /// The state, at most a tenth of a second old.
    pub fn snapshot(&self) -> Snapshot {
        let snapshot = self.shared.snapshot.lock();
        snapshot.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the emulation ended by itself: its time is over, or it failed.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the emulation.
    ///
    /// # Errors
    /// The error that ended the emulation, if any.
    pub fn stop(mut self) -> io::Result<EmulationResult> {
        self.shared.call();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(io::Error::other(
                "the thread that drives the world panicked",
            )),
            None => Err(io::Error::other("the emulation was stopped before")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.call();
        if let Some(thread) = self.thread.take() {
            // The result is not needed here.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn call(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // A write to a full counter fails, but the counter is then readable and wakes the loop.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum is right whenever it is asked for, though old bins are not added again and new ones still change.
    #[test]
    fn what_a_link_carried_is_the_sum_of_all_bins() {
        let mut carried = Carried::default();
        let mut bins = Vec::new();
        for k in 1..=300u64 {
            bins.push(CoarseBin::default());
            for (i, bin) in bins.iter_mut().rev().take(CHANGING).enumerate() {
                bin.departed = [bin.departed[0] + k, i as u64];
            }
            if k % 7 == 0 {
                let sum = |i: usize| bins.iter().map(|b| b.departed[i]).sum::<u64>();
                assert_eq!(carried.all(&bins), [sum(0), sum(1)]);
            }
        }
        assert!(carried.bins > 200);
    }
}

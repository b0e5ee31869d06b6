//! The event loop of one thread.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::{Errno, Result};
use swell_base::{Dur, EventQueue, Time};

use super::config::Role;
use super::counts::{Counts, Statistics};
use super::flow::{Flow, Outcome};
use super::playing::Playing;
use super::shared::{Command, Shared};
use super::state::{
    Answerer, CHUNK, Conn, DATAGRAMS, LISTENER, Leases, NEWS_OF_COMMANDS, SOURCE, State, Wake,
    seconds,
};
use super::table::Table;
use super::wire::{HEADER, Stamps};
use swell_host::Lateness;

pub(super) struct Worker {
    pub shared: Arc<Shared>,
    /// Index of the thread in the run.
    pub number: u16,
    pub epoll: OwnedFd,
    pub conns: Table<Conn>,
    pub queue: EventQueue<Wake>,
    /// Connections and sockets that were interrupted to let others run.
    pub ready: VecDeque<u64>,
    /// Partially received headers.
    pub partial: HashMap<u64, (usize, [u8; HEADER])>,
    /// Buffer for discarded data; the kernel never writes to it.
    pub sink: Vec<u8>,
    /// Buffer for everything that is sent: space for a header, and filler.
    pub payload: Vec<u8>,
    pub stamps: Stamps,
    pub counts: Counts,
    pub failures: BTreeMap<i32, u64>,
    pub source_failures: BTreeMap<i32, u64>,
    pub lateness: Lateness,
    /// Completed flows since the last periodic check.
    pub over: Vec<Flow>,
    pub playing: Option<Playing>,
    pub answerer: Option<Answerer>,
    pub leases: Leases,
    /// Server: the parties of transfers that broke, and when. Whether one failed, or was cut off by the end of its client's
    /// part, is known once the announcement of the end must have arrived.
    broken: VecDeque<(Time, u16)>,
    /// Connections that wait until the rate limit allows sending again.
    pub waiting: VecDeque<u64>,
    /// A timer for them is set.
    room_due: bool,
    stopping: bool,
    /// Position of the periodic check of connections.
    looked: usize,
}

/// Most bytes that one read discards.
const SINK: usize = 1 << 20;
/// Most events taken from the kernel at once.
const NEWS: usize = 512;
/// Most timers run before the kernel is asked for events.
const TIMERS: usize = 128;
/// Most connections inspected in one periodic check: a hundred thousand would take milliseconds.
const AT_A_LOOK: usize = 10_000;
/// A sleeping thread wakes some tens of microseconds later than requested, and the events due in that time then form
/// a burst. A precise thread wakes this much earlier and spins until the time has come.
const EARLY: Dur = Dur::from_micros(100);
/// Interval of the periodic check of leases, stalled connections and statistics.
const LOOK: Dur = Dur::from_millis(200);
/// The announcement of the end of a client's part may arrive this much later than the resets of its connections: it may
/// be lost and sent again, once or twice (RFC 6298 section 2: a time-out is at least 1 s, and doubles).
const BYE_PATIENCE: Dur = Dur::from_secs(3);
/// A connection without progress for this many seconds has failed (the released program's 30 s).
const STALLED: u32 = 30;
/// A connection without a complete header after this many seconds belongs to a stranger.
const HEADER_PATIENCE: u32 = 5;

impl Worker {
    pub fn new(shared: Arc<Shared>, number: u16) -> Result<Worker> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(NEWS_OF_COMMANDS);
        epoll::add(&epoll, shared.bell(number), data, EventFlags::IN)?;
        let mut random = swell_base::Stream::new(0, "generate/payload");
        let bytes = (0..(CHUNK + HEADER) / 8).flat_map(|_| random.bits().to_le_bytes());
        let payload = bytes.collect();
        let mut worker = Worker {
            number,
            epoll,
            conns: Table::default(),
            queue: EventQueue::new(),
            ready: VecDeque::new(),
            partial: HashMap::new(),
            sink: vec![0; SINK],
            payload,
            stamps: Stamps::new(&shared.config.key),
            counts: Counts::default(),
            failures: BTreeMap::new(),
            source_failures: BTreeMap::new(),
            lateness: Lateness::default(),
            over: Vec::new(),
            playing: None,
            answerer: None,
            leases: Leases::default(),
            broken: VecDeque::new(),
            waiting: VecDeque::new(),
            room_due: false,
            stopping: false,
            looked: 0,
            shared,
        };
        match &worker.shared.config.role {
            Role::Client(client) => {
                worker.playing = Some(Playing::new(client));
                if number == 0 {
                    for server in 0..client.servers.len() {
                        worker.queue.push(Time::ZERO, Wake::Lease(server as u16));
                    }
                }
            }
            Role::Server(_) => worker.listen()?,
        }
        Ok(worker)
    }

    /// Runs the loop until the run ends.
    pub fn run(mut self) {
        swell_host::be_punctual(self.shared.config.precise);
        let mut look = Time::ZERO;
        let mut news = Vec::with_capacity(NEWS);
        loop {
            let now = self.now();
            if now >= look {
                look = now + LOOK;
                self.look(now);
            }
            if self.stopping || self.shared.is_over() {
                break;
            }
            let mut behind = self.timers(now);
            behind |= self.play(TIMERS);
            let idle = if behind || !self.ready.is_empty() {
                Dur::ZERO
            } else {
                let due = self.queue.next_at().unwrap_or(Time::MAX).min(look);
                let due = due.min(self.next_due().unwrap_or(Time::MAX));
                early(due.since(self.now()), self.shared.config.precise)
            };
            news.clear();
            let timeout = swell_host::clock::timespec(idle);
            match epoll::wait(&self.epoll, spare_capacity(&mut news), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                // The descriptor is valid and stays open, so this error cannot be handled in any useful way.
                Err(_) => break,
            }
            for _ in 0..self.ready.len() {
                if let Some(token) = self.ready.pop_front() {
                    self.go_on(token);
                }
            }
            for event in &news {
                self.hear(event.data.u64(), event.flags);
            }
        }
        self.finish();
    }

    /// Time on the run's clock.
    pub fn now(&self) -> Time {
        self.shared.now()
    }

    /// Runs due timers; true if some are left.
    fn timers(&mut self, now: Time) -> bool {
        for _ in 0..TIMERS {
            let Some((due, wake)) = self.queue.pop_until(now) else {
                return false;
            };
            match wake {
                Wake::Exchange(source) => self.exchanges_due(source, due),
                Wake::Accept => self.accept_again(),
                Wake::Lease(server) => self.begin_lease(server),
                Wake::Room => self.room_again(),
                Wake::Paced(token) => self.paced_again(token),
            }
        }
        self.queue.next_at().is_some_and(|next| next <= now)
    }

    fn hear(&mut self, token: u64, flags: EventFlags) {
        match token {
            NEWS_OF_COMMANDS => self.obey(),
            DATAGRAMS => self.datagrams_arrived(),
            LISTENER => self.accept(),
            _ if token & SOURCE != 0 => self.answers_arrived(token & !SOURCE),
            _ => self.news(token, flags),
        }
    }

    pub fn go_on(&mut self, token: u64) {
        if token == DATAGRAMS {
            self.datagrams_arrived();
        } else if token == LISTENER {
            self.accept();
        } else if token & SOURCE != 0 {
            self.answers_arrived(token & !SOURCE);
        } else if let Some(conn) = self.conns.get_mut(token) {
            conn.ready = false;
            self.news(token, EventFlags::IN | EventFlags::OUT);
        }
    }

    fn news(&mut self, token: u64, flags: EventFlags) {
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        match conn.state {
            State::Waiting
            | State::Connecting
            | State::Sending
            | State::Receiving
            | State::Idle => {
                self.client_news(token, flags);
            }
            State::Header | State::Taking | State::Giving | State::Ending => {
                self.server_news(token);
            }
            State::Lease => self.lease_event(token),
        }
    }

    /// Queues a connection that has more to do, so that others are served first.
    pub fn later(&mut self, token: u64) {
        if let Some(conn) = self.conns.get_mut(token)
            && !conn.ready
        {
            conn.ready = true;
            self.ready.push_back(token);
        }
    }

    /// How many of `n` bytes a connection may send. `None` if it must wait; it then continues when the rate limit
    /// allows.
    pub fn allowed(&mut self, token: u64, n: usize) -> Option<usize> {
        let budget = self.shared.config.limits.budget.as_ref();
        let wait = match budget.map(|b| b.room()) {
            None => return Some(n),
            Some(Ok(room)) => return Some(n.min(room)),
            Some(Err(wait)) => wait,
        };
        let now = self.now();
        let conn = self.conns.get_mut(token)?;
        // Waiting for the rate limit does not count as a stall.
        conn.progress = seconds(now);
        if !conn.ready {
            conn.ready = true;
            self.counts.limited += 1;
            self.waiting.push_back(token);
            self.wake_for_room(wait);
        }
        None
    }

    /// Sets a timer for the connections that wait for the rate limit, unless there is one.
    fn wake_for_room(&mut self, wait: Dur) {
        if !std::mem::replace(&mut self.room_due, true) {
            let at = self.now() + wait;
            self.queue.push(at, Wake::Room);
        }
    }

    /// Charges sent bytes to the rate limit.
    pub fn pay(&self, payload: u64) {
        if let Some(budget) = &self.shared.config.limits.budget {
            budget.pay(payload);
        }
    }

    /// Continues with the connections that have waited longest, as far as the rate limit allows.
    fn room_again(&mut self) {
        self.room_due = false;
        let mut wait = Dur::ZERO;
        for _ in 0..TIMERS {
            let budget = self.shared.config.limits.budget.as_ref();
            if let Some(Err(full)) = budget.map(|b| b.room()) {
                wait = full;
                break;
            }
            let Some(token) = self.waiting.pop_front() else {
                return;
            };
            let second = seconds(self.now());
            if let Some(conn) = self.conns.get_mut(token) {
                conn.progress = second;
            }
            self.go_on(token);
        }
        if !self.waiting.is_empty() {
            self.wake_for_room(wait);
        }
    }

    /// How many of `n` bytes a connection may send at its own rate and within the agent's limit. `None` if it must wait;
    /// it then continues when both allow.
    pub fn in_pace(&mut self, token: u64, n: usize) -> Option<usize> {
        let now = self.now();
        let conn = self.conns.get_mut(token)?;
        let n = match conn.paced.map(|p| p.room(now)) {
            None => n,
            Some(Ok(room)) => n.min(usize::try_from(room).unwrap_or(usize::MAX)),
            Some(Err(wait)) => {
                // Events of the socket may come in between: one timer is enough.
                if !std::mem::replace(&mut conn.wakes, true) {
                    self.queue.push(now + wait, Wake::Paced(token));
                }
                return None;
            }
        };
        self.allowed(token, n)
    }

    /// Continues with a connection that waited for its own rate.
    pub fn paced_again(&mut self, token: u64) {
        let second = seconds(self.now());
        if let Some(conn) = self.conns.get_mut(token) {
            conn.wakes = false;
            conn.progress = second;
        }
        self.go_on(token);
    }

    /// Registers a connection for edge-triggered events.
    pub fn watch(&mut self, token: u64) -> Result<()> {
        match self.conns.get_mut(token) {
            Some(conn) => watch(&self.epoll, &conn.fd, token),
            None => Ok(()),
        }
    }

    /// Notes why a transfer failed.
    pub fn failed(&mut self, error: Errno) {
        *self.failures.entry(error.raw_os_error()).or_default() += 1;
        self.note_descriptors(error);
    }

    /// Notes why a datagram source failed.
    pub fn source_failed(&mut self, error: Errno) {
        let times = self.source_failures.entry(error.raw_os_error());
        *times.or_default() += 1;
        self.note_descriptors(error);
    }

    fn note_descriptors(&mut self, error: Errno) {
        if matches!(error, Errno::MFILE | Errno::NFILE) {
            self.counts.without_descriptors += 1;
        }
    }

    fn obey(&mut self) {
        let mut rung = [0; 8];
        // Clears the bell. The number of rings does not matter.
        let _ = rustix::io::read(self.shared.bell(self.number), &mut rung);
        for command in self.shared.commands(self.number) {
            match command {
                Command::Start => self.start(),
                Command::Plan(plan) => self.set_plan(&plan),
                Command::Load(plan) => self.set_load(&plan),
                Command::Stop => self.stopping = true,
            }
        }
    }

    /// Periodic check of everything that causes no event.
    fn look(&mut self, now: Time) {
        self.lease_look(now);
        let second = seconds(now);
        let parties = 0..self.shared.parties.len();
        let here: Vec<bool> = parties.map(|p| self.shared.is_here(p as u16)).collect();
        let gone = |conn: &Conn| {
            let still = second.saturating_sub(conn.progress);
            let here = here.get(usize::from(conn.party)) == Some(&true);
            match conn.state {
                State::Lease => false,
                State::Header if !conn.keep => still > HEADER_PATIENCE,
                State::Header | State::Idle => !here,
                // A connection that waits for its turn has not stalled, however long the queue is.
                _ => (still > STALLED && !conn.ready) || !here,
            }
        };
        for token in self.conns.next_tokens(&mut self.looked, AT_A_LOOK, gone) {
            self.drop_conn(token, Outcome::Failed, Some(Errno::TIMEDOUT));
        }
        self.count_broken(Time::from_nanos(
            now.as_nanos().saturating_sub(BYE_PATIENCE.as_nanos()),
        ));
        self.publish();
    }

    /// Ends a connection that did not complete.
    pub fn drop_conn(&mut self, token: u64, outcome: Outcome, error: Option<Errno>) {
        let now = self.now();
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        match conn.state {
            State::Waiting | State::Connecting | State::Sending | State::Receiving => {
                if let Some(error) = error {
                    self.failed(error);
                }
                self.over(token, outcome);
            }
            State::Header if !conn.keep => {
                self.counts.strangers += 1;
                self.forget(token);
            }
            State::Taking | State::Giving => {
                match outcome {
                    Outcome::Unfinished => self.counts.unfinished += 1,
                    _ => self.broken.push_back((now, conn.party)),
                }
                self.forget(token);
            }
            _ => {
                self.forget(token);
            }
        }
    }

    /// Closes the socket. If it is not closed in both directions, the kernel resets the connection.
    pub fn forget(&mut self, token: u64) -> Option<Conn> {
        self.partial.remove(&token);
        self.conns.remove(token)
    }

    /// Counts the transfers that broke before `until`.
    fn count_broken(&mut self, until: Time) {
        while let Some(&(at, party)) = self.broken.front()
            && at <= until
        {
            self.broken.pop_front();
            match self.shared.has_ended(party) {
                true => self.counts.unfinished += 1,
                false => self.counts.failed += 1,
            }
        }
    }

    /// Publishes the statistics.
    fn publish(&mut self) {
        let statistics = Statistics {
            counts: self.counts,
            sessions: self.playing.as_ref().map_or(0, Playing::active),
            open: self.conns.len() as u64,
            late: self.lateness.late(),
            failures: self.failures.clone(),
            source_failures: self.source_failures.clone(),
            // The other fields describe the whole run.
            ..Statistics::default()
        };
        self.shared.publish(self.number, statistics);
        self.shared.log(&mut self.over);
    }

    fn finish(&mut self) {
        self.end_play();
        self.say_bye();
        for token in self.conns.tokens(|_| true) {
            self.drop_conn(token, Outcome::Unfinished, None);
        }
        self.count_broken(Time::MAX);
        self.publish();
    }
}

/// Registers a descriptor for edge-triggered events.
pub(super) fn watch(epoll: &OwnedFd, fd: impl AsFd, token: u64) -> Result<()> {
    let what = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(epoll, fd, epoll::EventData::new_u64(token), what)
}

/// How long to sleep if something is due in `span`.
fn early(span: Dur, precise: bool) -> Dur {
    if precise {
        span.saturating_sub(EARLY)
    } else {
        span
    }
}

#[cfg(test)]
mod tests;

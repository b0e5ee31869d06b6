//! The loop of one thread.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::{Errno, Result};
use swell_base::{Dur, EventQueue, Ranked, Time};

use super::config::Role;
use super::counts::{Counts, Statistics};
use super::flow::{Flow, Outcome};
use super::playing::{Marks, Playing};
use super::server::Answerer;
use super::shared::{Command, Shared};
use super::table::Table;
use super::wire::{HEADER, Stamps};
use swell_host::Lateness;

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Client: no answer to the SYN yet.
    Connecting,
    /// Client: sends.
    Sending,
    /// Client: waits for what comes back.
    Receiving,
    /// Client: kept for the next transfer.
    Idle,
    /// Server: waits for a header.
    Header,
    /// Server: receives.
    Taking,
    /// Server: sends.
    Giving,
    /// Server: everything is sent; the client's FIN is waited for.
    Ending,
    /// Either end of a lease, not yet agreed or agreed.
    Lease,
}

/// An end of a connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub fd: OwnedFd,
    pub state: State,
    /// Waits among those that have more to do.
    pub ready: bool,
    /// The connection serves further transfers.
    pub keep: bool,
    /// Client: place of the server; server: place of the client in the run.
    pub party: u16,
    /// Client: what the server's end is to have.
    pub marks: Marks,
    /// Client: the session, and of which traffic.
    pub session: u64,
    pub generation: u32,
    /// Client: segments sent again for earlier transfers.
    pub again: u32,
    /// Bytes that are still to be sent, and to be received.
    pub to_send: u64,
    pub to_receive: u64,
    /// The second in which it last came forward.
    pub progress: u32,
    /// Client: what will be remembered of it. Server: `source` is the peer.
    pub flow: Flow,
}

impl Conn {
    /// A connection of which nothing is known yet.
    pub fn new(fd: OwnedFd, state: State, now: Time) -> Conn {
        Conn {
            fd,
            state,
            ready: false,
            keep: false,
            party: 0,
            marks: Marks::default(),
            session: 0,
            generation: 0,
            again: 0,
            to_send: 0,
            to_receive: 0,
            progress: seconds(now),
            flow: Flow::default(),
        }
    }
}

/// What is due.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wake {
    /// The next exchange of a source of datagrams.
    Exchange(u64),
    /// The listener may be able to accept again.
    Accept,
    /// A lease is to be made.
    Lease(u16),
    /// The agent may send again.
    Room,
}

impl Ranked for Wake {}

pub(super) struct Worker {
    pub shared: Arc<Shared>,
    /// Which of the run's threads it is, from 0.
    pub number: u16,
    pub epoll: OwnedFd,
    pub conns: Table<Conn>,
    pub queue: EventQueue<Wake>,
    /// Ends that had more to do than they were given time for.
    pub ready: VecDeque<u64>,
    /// Beginnings of headers.
    pub partial: HashMap<u64, (usize, [u8; HEADER])>,
    /// Where what is read would go; nothing is ever written there.
    pub sink: Vec<u8>,
    /// What is sent, whatever is sent: room for a header, and any bytes.
    pub payload: Vec<u8>,
    pub stamps: Stamps,
    pub counts: Counts,
    pub failures: BTreeMap<i32, u64>,
    pub lateness: Lateness,
    /// Flows that are over, until the next look.
    pub over: Vec<Flow>,
    pub playing: Option<Playing>,
    pub answerer: Option<Answerer>,
    pub leases: super::lease::Leases,
    /// Ends that wait until the agent may send again.
    pub waiting: VecDeque<u64>,
    stopping: bool,
    /// How far the connections have been looked at.
    looked: usize,
}

/// Marks among tokens.
pub(super) const LISTENER: u64 = 1 << 63;
pub(super) const SOURCE: u64 = 1 << 62;
const NEWS_OF_COMMANDS: u64 = LISTENER | SOURCE;
pub(super) const DATAGRAMS: u64 = LISTENER | 1;

/// One read discards at most so much.
const SINK: usize = 1 << 20;
/// One write takes at most so much.
pub(super) const CHUNK: usize = 256 << 10;
/// Events taken from the kernel at once.
const NEWS: usize = 512;
/// Timers that run before the kernel is asked for events.
const TIMERS: usize = 128;
/// So many connections are looked at in one look: a hundred thousand would take milliseconds.
const AT_A_LOOK: usize = 10_000;
/// A thread that sleeps is let in some tens of microseconds after the time that it asked for, and what was due meanwhile
/// goes in one bunch. A precise one rises so much earlier, and looks at the clock until it is time.
const EARLY: Dur = Dur::from_micros(100);
/// How often leases, dead ends and numbers are looked at.
const LOOK: Dur = Dur::from_millis(200);
/// A connection that does not come forward for so long has failed (the released program's 30 s).
const STALLED: u32 = 30;
/// A header must be there so many seconds after its connection, or what came is a stranger.
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
            lateness: Lateness::default(),
            over: Vec::new(),
            playing: None,
            answerer: None,
            leases: super::lease::Leases::default(),
            waiting: VecDeque::new(),
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

    /// Runs until the run is over.
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
                // The descriptor is ours and stays open: there is nothing that could be said here.
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

    /// Since the run was made.
    pub fn now(&self) -> Time {
        self.shared.now()
    }

    /// Lets due timers go; true if some are left.
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

    fn go_on(&mut self, token: u64) {
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
            State::Connecting | State::Sending | State::Receiving | State::Idle => {
                self.client_news(token, flags);
            }
            State::Header | State::Taking | State::Giving | State::Ending => {
                self.server_news(token);
            }
            State::Lease => self.lease_event(token),
        }
    }

    /// An end has more to do when others have had their turn.
    pub fn later(&mut self, token: u64) {
        if let Some(conn) = self.conns.get_mut(token)
            && !conn.ready
        {
            conn.ready = true;
            self.ready.push_back(token);
        }
    }

    /// How many bytes an end may send of `n`; `None`: it goes on when the agent may send again.
    pub fn allowed(&mut self, token: u64, n: usize) -> Option<usize> {
        let budget = self.shared.config.limits.budget.as_ref();
        let wait = match budget.map(|b| b.room()) {
            None => return Some(n),
            Some(Ok(room)) => return Some(n.min(room)),
            Some(Err(wait)) => wait,
        };
        let now = self.now();
        let conn = self.conns.get_mut(token)?;
        // It would come forward if it might.
        conn.progress = seconds(now);
        if !conn.ready {
            conn.ready = true;
            self.counts.limited += 1;
            if self.waiting.is_empty() {
                self.queue.push(now + wait, Wake::Room);
            }
            self.waiting.push_back(token);
        }
        None
    }

    /// An end sent so much.
    pub fn pay(&self, payload: u64) {
        if let Some(budget) = &self.shared.config.limits.budget {
            budget.pay(payload);
        }
    }

    /// Those that waited longest go on, as many as there is room for.
    fn room_again(&mut self) {
        let mut wait = Dur::ZERO;
        for _ in 0..TIMERS {
            let budget = self.shared.config.limits.budget.as_ref();
            if let Some(Err(full)) = budget.map(|b| b.room()) {
                wait = full;
                break;
            }
            match self.waiting.pop_front() {
                Some(token) => self.go_on(token),
                None => return,
            }
        }
        if !self.waiting.is_empty() {
            let at = self.now() + wait;
            self.queue.push(at, Wake::Room);
        }
    }

    /// Has the kernel tell what happens at a socket, each thing once.
    pub fn watch(&mut self, token: u64) -> Result<()> {
        match self.conns.get_mut(token) {
            Some(conn) => watch(&self.epoll, &conn.fd, token),
            None => Ok(()),
        }
    }

    pub fn failed(&mut self, error: Errno) {
        *self.failures.entry(error.raw_os_error()).or_default() += 1;
        if matches!(error, Errno::MFILE | Errno::NFILE) {
            self.counts.without_descriptors += 1;
        }
    }

    fn obey(&mut self) {
        let mut rung = [0; 8];
        // The bell was rung; how often does not matter.
        let _ = rustix::io::read(self.shared.bell(self.number), &mut rung);
        for command in self.shared.commands(self.number) {
            match command {
                Command::Start => self.start(),
                Command::Plan(plan) => self.set_plan(&plan),
                Command::Stop => self.stopping = true,
            }
        }
    }

    /// Looks at everything that causes no event.
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
                _ => still > STALLED || !here,
            }
        };
        for token in self.conns.next_tokens(&mut self.looked, AT_A_LOOK, gone) {
            self.drop_conn(token, Outcome::Failed, Some(Errno::TIMEDOUT));
        }
        self.publish();
    }

    /// Ends a connection that did not come to its own end.
    pub fn drop_conn(&mut self, token: u64, outcome: Outcome, error: Option<Errno>) {
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        match conn.state {
            State::Connecting | State::Sending | State::Receiving => {
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
                    _ => self.counts.failed += 1,
                }
                self.forget(token);
            }
            _ => {
                self.forget(token);
            }
        }
    }

    /// Closes the socket; what is not closed in both directions is reset.
    pub fn forget(&mut self, token: u64) -> Option<Conn> {
        self.partial.remove(&token);
        self.conns.remove(token)
    }

    /// Shows others how things stand.
    fn publish(&mut self) {
        let statistics = Statistics {
            counts: self.counts,
            sessions: self.playing.as_ref().map_or(0, Playing::active),
            open: self.conns.len() as u64,
            late: self.lateness.late(),
            failures: self.failures.clone(),
            // The others are the whole run's.
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
        self.publish();
    }
}

/// Has the kernel tell what happens at a socket, each thing once.
pub(super) fn watch(epoll: &OwnedFd, fd: impl AsFd, token: u64) -> Result<()> {
    let what = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(epoll, fd, epoll::EventData::new_u64(token), what)
}

/// How long to sleep when something is due in `span`.
fn early(span: Dur, precise: bool) -> Dur {
    if precise {
        span.saturating_sub(EARLY)
    } else {
        span
    }
}

/// Whole seconds.
pub(super) fn seconds(now: Time) -> u32 {
    u32::try_from(now.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX)
}

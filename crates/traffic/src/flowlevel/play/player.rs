//! The player of a plan: what is due next, over all sessions and datagram sources.

use std::collections::BTreeSet;

use swell_base::{Dur, EventQueue, Ranked, Stream, Time, derived};

use super::super::law::{Law, Stratified};
use super::super::model::Profile;
use super::files::{Files, Remaining};
use super::{Plan, UdpSource};

mod datagrams;

/// A file each way on a connection of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When it is due: the schedule's own time, however late it is taken.
    pub at: Time,
    /// The session, by its place: at most one session has it at a time.
    pub session: u64,
    /// Rank of the client: it opens the connection.
    pub source: u64,
    /// Rank of the server.
    pub destination: u64,
    /// Payload that the client sends first, bytes; 0 = none but what it takes to ask for `down`.
    pub up: u64,
    /// Payload that the server sends then, bytes; at least 1 if `up` is 0.
    pub down: u64,
    /// The session's last transfer was between the same two hosts. A driver that keeps connections may reuse the last
    /// one if it is idle. In the records every transfer had its own connection.
    pub kept: bool,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Due {
    /// A transfer over TCP starts.
    Transfer(Transfer),
    /// A source of datagrams begins.
    Datagrams(UdpSource),
}

/// Which part of the sessions a player has: those whose number modulo `of` is `index`. Players of all
/// shares of one plan together play it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which one, below `of`.
    pub index: u32,
    /// How many there are, not zero.
    pub of: u32,
}

impl Share {
    /// The only player.
    pub const ALL: Share = Share { index: 0, of: 1 };

    /// How many of `all` are in this share.
    pub(super) fn part(self, all: u64) -> u64 {
        let of = u64::from(self.of.max(1));
        (all + of - 1).saturating_sub(u64::from(self.index)) / of
    }

    /// Whether the one with this number, of many, is in this share.
    fn holds(self, number: u64) -> bool {
        number % u64::from(self.of.max(1)) == u64::from(self.index)
    }

    fn number(self, place: u64) -> u64 {
        place * u64::from(self.of.max(1)) + u64::from(self.index)
    }
}

/// Plays a [`Plan`]: says what is due, in order of time. A pure function of plan, seed and share.
#[derive(Debug)]
pub struct Player {
    plan: Plan,
    share: Share,
    seed: u64,
    stream: Stream,
    queue: EventQueue<Event>,
    /// How far it has come.
    clock: Time,
    /// The interval that comes next.
    next: u64,
    sessions: Vec<Session>,
    /// Places of sessions that are active; those that are not, of the ones there have been.
    active: u64,
    free: BTreeSet<u32>,
    /// Draws of gaps.
    gaps: Stratified,
    /// Files up and down of all intervals, this time round.
    files: [Option<Files>; 2],
    round: u64,
    /// What files of the round before bring into the intervals of this one, up and down, bytes of the model.
    before: [Vec<f64>; 2],
    /// Those of this interval that are still to be sent.
    remaining: [Remaining; 2],
    udp: Vec<Kind>,
    sources: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The session in a place starts a transfer, if it is still the same one.
    Session { place: u32, serial: u32 },
    /// A source of this kind takes a place.
    Source { kind: u16, place: u32, serial: u32 },
    /// The starts of the next sources of this kind that come by themselves are to be drawn: from this number on.
    Block { kind: u16, serial: u32, number: u32 },
    /// A source of this kind comes by itself.
    Arrival { kind: u16, serial: u32, number: u32 },
    /// What the end of the round cuts off a source of this kind is played at its beginning.
    Rest { kind: u16, serial: u32, number: u32 },
}

impl Ranked for Event {}

#[derive(Clone, Copy, Debug, Default)]
struct Session {
    serial: u32,
    /// Whether source and destination have been drawn, and for which interval.
    drawn: bool,
    interval: u64,
    source: u64,
    destination: u64,
    /// It starts no transfer after this: only under the released program's profile.
    ends: Time,
}

/// Datagram sources of a kind.
#[derive(Debug)]
struct Kind {
    /// Of each place, which occupation of it this is.
    serials: Vec<u32>,
    active: u64,
    /// Which arrivals these are: those of an interval, under one plan.
    serial: u32,
    /// Their interval, counted on from round to round.
    index: u64,
}

impl Player {
    /// Plays `share` of `plan`.
    pub fn new(plan: Plan, seed: u64, share: Share) -> Player {
        let udp = plan.udp.iter().map(|_| Kind {
            serials: Vec::new(),
            active: 0,
            serial: 0,
            index: 0,
        });
        let mut player = Player {
            stream: Stream::new(derived(seed, u64::from(share.index)), "flow-level player"),
            queue: EventQueue::new(),
            clock: Time::ZERO,
            next: 0,
            sessions: Vec::new(),
            active: 0,
            free: BTreeSet::new(),
            gaps: Stratified::of_several(1, share.index, share.of, seed),
            files: [None, None],
            round: 0,
            before: [Vec::new(), Vec::new()],
            remaining: [Remaining::default(), Remaining::default()],
            seed,
            udp: udp.collect(),
            sources: 0,
            share,
            plan,
        };
        player.choose_files(0);
        player
    }

    /// The plan that is played.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Sessions active now, of this share.
    pub fn active(&self) -> u64 {
        self.active
    }

    /// When [`Player::pop`] may next give something; `None` if it is all over.
    pub fn poll_at(&self) -> Option<Time> {
        let border = (!self.over()).then(|| self.plan.starts_at(self.next));
        match (border, self.queue.next_at()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// What is due at `now` or was due earlier, in order of its own time; `None` if nothing is due. The result does not
    /// depend on when it is asked for. So a driver may plan ahead with a later `now`.
    pub fn pop(&mut self, now: Time) -> Option<Due> {
        loop {
            let border = (!self.over())
                .then(|| self.plan.starts_at(self.next))
                .filter(|&b| b <= now);
            let until = border.map_or(now, |b| Time::from_nanos(b.as_nanos().saturating_sub(1)));
            // At time zero nothing comes before the first interval.
            let event = match border {
                Some(Time::ZERO) => None,
                _ => self.queue.pop_until(until),
            };
            match (event, border) {
                (Some((at, event)), _) => {
                    self.clock = at;
                    if let Some(due) = self.handle(at, event) {
                        return Some(due);
                    }
                }
                (None, Some(at)) => {
                    self.clock = at;
                    self.begin_interval(at);
                }
                (None, None) => return None,
            }
        }
    }

    /// Continues with another plan from `now` on, such as another load of the same model. Surplus sessions
    /// end, new ones begin, the others go on. It continues in the interval of `now`. Sources of datagrams follow when they
    /// end, or with the next interval.
    pub fn change(&mut self, plan: Plan, now: Time) {
        let same_kinds = plan.udp.len() == self.udp.len();
        // Transfers in progress keep their sizes.
        let scale = self.plan.playback.sizes / plan.playback.sizes;
        self.before
            .iter_mut()
            .flatten()
            .for_each(|bytes| *bytes *= scale);
        self.plan = plan;
        let now = now.max(self.clock);
        let index = self.plan.index(now);
        if !same_kinds {
            self.udp = self
                .plan
                .udp
                .iter()
                .map(|_| Kind {
                    serials: Vec::new(),
                    active: 0,
                    serial: self.next as u32,
                    index,
                })
                .collect();
        }
        self.next = index + 1;
        if !self.plan.is_over(index) {
            self.choose_files(index / self.plan.sessions.len() as u64);
        }
        self.remaining = [Remaining::default(), Remaining::default()];
        self.shuffle(index);
        // What the rest of the interval has time for.
        let lasts = self.plan.lasts(index).as_secs_f64().max(1e-9);
        let rest = self.plan.starts_at(index + 1).since(now).as_secs_f64() / lasts;
        for remaining in &mut self.remaining {
            remaining.keep(rest.min(1.0));
        }
        self.set_sessions(index, now);
        for kind in 0..self.udp.len() {
            self.begin_arrivals(kind, index, now);
        }
    }

    /// Whether no interval is still to come, and the last has been ended.
    fn over(&self) -> bool {
        self.plan.is_over(self.next) && self.next > self.plan.sessions.len() as u64
    }

    fn begin_interval(&mut self, at: Time) {
        let index = self.next;
        self.next += 1;
        if self.plan.is_over(index) && self.plan.profile == Profile::Fixed {
            // Only surplus sessions are left in the queue.
            self.queue = EventQueue::new();
        }
        self.shuffle(index);
        self.set_sessions(index, at);
        for kind in 0..self.udp.len() {
            self.set_sources(kind, index, at);
        }
    }

    /// The files of all intervals of a round.
    fn choose_files(&mut self, round: u64) {
        self.round = round;
        if self.plan.profile != Profile::Fixed {
            return;
        }
        let laws = [&self.plan.up, &self.plan.down];
        let mean = laws.map(|l| l.as_ref().map_or(0.0, Law::mean));
        for (which, law) in laws.into_iter().enumerate() {
            let seed = derived(derived(self.seed, round + 1), which as u64 + 2);
            let part = mean[which] / (mean[0] + mean[1]);
            self.files[which] = law
                .as_ref()
                .filter(|_| part > 0.0)
                .map(|law| Files::new(law, &self.plan, part, seed, &self.before[which]));
        }
    }

    /// Gaps and files, as many as the interval is expected to need.
    fn shuffle(&mut self, index: u64) {
        let len = (self.plan.expected(index) / f64::from(self.share.of.max(1))) as usize;
        let seed = derived(derived(self.seed, index + 1), 1);
        self.gaps.then(len, seed);
        let n = self.plan.sessions.len() as u64;
        if index / n != self.round && !self.plan.is_over(index) {
            for (before, files) in self.before.iter_mut().zip(&mut self.files) {
                *before = files
                    .as_mut()
                    .map_or_else(Vec::new, |f| std::mem::take(&mut f.next));
            }
            self.choose_files(index / n);
        }
        let sessions = self.plan.of(&self.plan.sessions, index);
        for (remaining, files) in self.remaining.iter_mut().zip(&self.files) {
            let Some(files) = files else { continue };
            let left = std::mem::take(remaining);
            // Of intervals there are at most some hundred thousand.
            let interval = (index % n) as usize;
            *remaining = files.of_interval(interval, sessions, self.share, left);
        }
    }

    fn set_sessions(&mut self, index: u64, at: Time) {
        let wanted = self
            .share
            .part(self.plan.sessions(self.plan.starts_at(index)));
        if self.plan.profile == Profile::Fixed {
            while self.active > wanted {
                self.active -= 1;
                let place = self.active as u32;
                self.sessions[place as usize].serial += 1;
                self.free.insert(place);
            }
        }
        let begun = wanted.saturating_sub(self.active) as usize;
        // Which gap a session begins in, and where in it.
        let mut first = [Stratified::new(begun), Stratified::new(begun)];
        while self.active < wanted {
            let place = self.free.pop_first().unwrap_or_else(|| {
                self.sessions.push(Session::default());
                // At most a million places.
                (self.sessions.len() - 1) as u32
            });
            self.active += 1;
            let [gap, part] = first
                .each_mut()
                .map(|draws| draws.uniform(&mut self.stream));
            self.begin_session(place, at, gap, part);
        }
    }

    /// A session that has been in a gap for some time: which gap and how much is left of it, as uniform numbers.
    fn begin_session(&mut self, place: u32, at: Time, gap: f64, part: f64) {
        let Some(gaps) = &self.plan.gaps else { return };
        let session = &mut self.sessions[place as usize];
        session.serial = session.serial.wrapping_add(1);
        session.drawn = false;
        let scale = self.plan.playback.gaps;
        let first = match self.plan.profile {
            Profile::Fixed => {
                session.ends = Time::MAX;
                at + micros(gaps.residual(gap, part) * scale)
            }
            Profile::Harpoon => {
                let begin = at + micros(self.stream.uniform() * 1e6);
                session.ends = begin + self.plan.interval;
                begin + micros(gaps.draw(&mut self.stream) * scale)
            }
        };
        let serial = session.serial;
        self.queue.push(first, Event::Session { place, serial });
    }

    fn handle(&mut self, at: Time, event: Event) -> Option<Due> {
        match event {
            Event::Session { place, serial } => self.transfer(at, place, serial).map(Due::Transfer),
            Event::Source {
                kind,
                place,
                serial,
            } => self.source(at, kind, place, serial),
            Event::Block {
                kind,
                serial,
                number,
            } => {
                self.draw_block(at, kind, serial, number);
                None
            }
            Event::Arrival {
                kind,
                serial,
                number,
            } => self.arrival(at, kind, serial, number, false),
            Event::Rest {
                kind,
                serial,
                number,
            } => self.arrival(at, kind, serial, number, true),
        }
    }

    fn transfer(&mut self, at: Time, place: u32, serial: u32) -> Option<Transfer> {
        let session = &mut self.sessions[place as usize];
        if session.serial != serial {
            return None;
        }
        if at > session.ends {
            // The released program notices only here that a session is over or surplus.
            let wanted = self.share.part(self.plan.sessions(at));
            if self.active > wanted {
                self.active -= 1;
                self.free.insert(place);
            } else {
                // In the released program each session draws independently.
                self.begin_session(place, at, 0.0, 0.0);
            }
            return None;
        }
        let interval = self.plan.index(at);
        let fixed = self.plan.profile == Profile::Fixed;
        let kept = session.drawn && (session.interval == interval || !fixed);
        if !kept {
            session.source = self.plan.sources.choose(self.stream.uniform());
            session.destination = self.plan.destinations.choose(self.stream.uniform());
            (session.drawn, session.interval) = (true, interval);
        }
        let (source, destination) = (session.source, session.destination);
        let gap = self.plan.gaps.as_ref().map_or(0.0, |law| {
            if fixed {
                self.gaps.draw(law, &mut self.stream)
            } else {
                law.draw(&mut self.stream)
            }
        });
        let gap = micros(gap * self.plan.playback.gaps);
        let sizes = self.plan.playback.sizes;
        let begun = at.since(self.plan.starts_at(interval));
        let part = begun.as_secs_f64() / self.plan.lasts(interval).as_secs_f64().max(1e-9);
        let mut draw = |which: usize, law: &Option<Law>| {
            let Some(law) = law else { return 0 };
            let quantile = match &self.files[which] {
                Some(_) => self.remaining[which].draw(part, &mut self.stream),
                None => self.stream.uniform(),
            };
            (law.quantile(quantile) * sizes + 0.5) as u64
        };
        let up = draw(0, &self.plan.up);
        let down = draw(1, &self.plan.down);
        self.queue.push(at + gap, Event::Session { place, serial });
        Some(Transfer {
            at,
            session: self.share.number(u64::from(place)),
            source,
            destination,
            up,
            down: if up == 0 { down.max(1) } else { down },
            kept,
        })
    }
}

fn micros(x: f64) -> Dur {
    Dur::from_nanos((x * 1e3 + 0.5) as u64)
}

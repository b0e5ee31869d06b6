//! The player of a plan: yields what is due next, over all sessions and datagram sources.

use std::collections::BTreeSet;

use swell_base::{Dur, EventQueue, Ranked, Rate, Stream, Time, derived};

use super::super::law::{Law, Stratified};
use super::super::model::Profile;
use super::files::{File, Files, Remaining};
use super::rates::one_after_the_other;
use super::share::Share;
use super::{Plan, UdpSource};

mod datagrams;

/// A file in each direction on one connection of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Scheduled time, however late it is taken.
    pub at: Time,
    /// Session slot: at most one session occupies it at a time.
    pub session: u64,
    /// Rank of the client, which opens the connection.
    pub source: u64,
    /// Rank of the server.
    pub destination: u64,
    /// Payload that the client sends first, bytes; 0 means only a request for `down`.
    pub up: u64,
    /// Payload that the server sends next, bytes; at least 1 if `up` is 0.
    pub down: u64,
    /// Highest rates of the payload up and down, whatever the network allows; `None` if TCP alone decides. If both have
    /// one, they are equal, and the two files together take as long as the larger one did in the records.
    pub limits: [Option<Rate>; 2],
    /// Whether the session's last transfer was between the same two hosts. A driver that keeps connections
    /// may reuse the last one if it is idle. In the records every transfer had its own connection.
    pub kept: bool,
}

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Due {
    /// A TCP transfer starts.
    Transfer(Transfer),
    /// A datagram source begins.
    Datagrams(UdpSource),
}

/// Plays a [`Plan`]: yields what is due, in time order. A pure function of plan, seed and share.
#[derive(Debug)]
pub struct Player {
    plan: Plan,
    share: Share,
    seed: u64,
    stream: Stream,
    /// Ranks of the rates of files that were not planned one by one.
    ranks: Stream,
    queue: EventQueue<Event>,
    /// Time reached so far.
    clock: Time,
    /// The next interval.
    next: u64,
    sessions: Vec<Session>,
    /// Number of active sessions, and the free slots among those used so far.
    active: u64,
    free: BTreeSet<u32>,
    /// Draws of gaps.
    gaps: Stratified,
    /// Files up and down of all intervals, in this round.
    pub(super) files: [Option<Files>; 2],
    round: u64,
    /// Bytes that files of the previous round bring into the intervals of this one, up and down, unscaled.
    pub(super) before: [Vec<f64>; 2],
    /// Files of this interval that are still to be sent.
    remaining: [Remaining; 2],
    udp: Vec<Kind>,
    sources: u64,
    /// Sources that are between two streams.
    streaming: datagrams::Streaming,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The session in a slot starts a transfer, unless its serial has changed.
    Session { place: u32, serial: u32 },
    /// A source of this kind takes a slot.
    Source { kind: u16, place: u32, serial: u32 },
    /// Draw the starts of the next block of individually arriving sources of this kind, from `number` on.
    Block { kind: u16, serial: u32, number: u32 },
    /// An individually arriving source of this kind begins, or is in progress: one of this round, or of the one `before`.
    Arrival {
        kind: u16,
        serial: u32,
        number: u32,
        before: bool,
    },
    /// The next stream of a source with several begins.
    Stream { place: u32 },
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
    /// It starts no transfer after this. Used only under the released program's profile.
    ends: Time,
}

/// Datagram sources of a kind.
#[derive(Debug)]
struct Kind {
    /// Serial number of the current occupant of each slot.
    serials: Vec<u32>,
    active: u64,
    /// Serial number of the current set of arrivals: those of an interval, under one plan.
    serial: u32,
    /// Their interval; numbers continue from round to round.
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
            ranks: Stream::new(derived(seed, u64::from(share.index)), "rates of files"),
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
            streaming: Default::default(),
            share,
            plan,
        };
        player.choose_files(0);
        player
    }

    /// Plays `share` of `plan` from `now` on, as if it had been played until then. Sources in progress that arrive
    /// individually are played for the rest of their time: the ones that [`Player::new`] would have begun. Sessions, and
    /// sources that follow one another in slots, are as many, with other draws. Transfers in progress are left out.
    pub fn joining(plan: Plan, seed: u64, share: Share, now: Time) -> Player {
        let mut player = Player::new(plan.clone(), seed, share);
        if now > Time::ZERO {
            player.change(plan, now);
            for kind in 0..player.udp.len() {
                player.enter(kind, now);
            }
        }
        player
    }

    /// Plays an endless plan as if `earlier` had come before, a player of the same plan that has been played to the end of
    /// a round: what its files still send after that end counts in the first intervals.
    pub fn after_round(plan: Plan, seed: u64, share: Share, earlier: &Player) -> Player {
        let mut player = Player::new(plan, seed, share);
        player.before.clone_from(&earlier.before);
        player.choose_files(0);
        player
    }

    /// The plan that is played.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Number of active sessions of this share.
    pub fn active(&self) -> u64 {
        self.active
    }

    /// When [`Player::pop`] may next return something; `None` at the end.
    pub fn poll_at(&self) -> Option<Time> {
        let border = (!self.over()).then(|| self.plan.rounds.starts_at(self.next));
        match (border, self.queue.next_at()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns what is due at `now` or before, in order of scheduled time; `None` if nothing is due. The
    /// result does not depend on when it is called. So a driver may plan ahead with a later `now`.
    pub fn pop(&mut self, now: Time) -> Option<Due> {
        loop {
            let border = (!self.over())
                .then(|| self.plan.rounds.starts_at(self.next))
                .filter(|&b| b <= now);
            let until = border.map_or(now, |b| Time::from_nanos(b.as_nanos().saturating_sub(1)));
            // At time zero, no event precedes the first interval.
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

    /// Continues with another plan from `now` on, such as another load of the same model. It continues in
    /// the interval of `now`. Surplus sessions end, new ones begin, the others continue. So do datagram sources that
    /// have not begun.
    ///
    /// Returns the factor by which the load grows. Datagram sources that have begun are no longer known here: the caller
    /// ends a part of them, or copies those that do not take slots ([`UdpSource::takes_slot`]).
    pub fn change(&mut self, plan: Plan, now: Time) -> f64 {
        let growth = plan.playback.load / self.plan.playback.load;
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
        if !self.plan.rounds.is_over(index) {
            self.choose_files(index / self.plan.rounds.intervals);
        }
        self.remaining = [Remaining::default(), Remaining::default()];
        self.shuffle(index);
        // Keep only the files that fit into the rest of the interval.
        let lasts = self.plan.rounds.lasts(index).as_secs_f64().max(1e-9);
        let rest = self
            .plan
            .rounds
            .starts_at(index + 1)
            .since(now)
            .as_secs_f64()
            / lasts;
        for remaining in &mut self.remaining {
            remaining.keep(rest.min(1.0));
        }
        self.set_sessions(index, now);
        for kind in 0..self.udp.len() {
            self.set_sources(kind, index, now);
        }
        self.scale_waiting(growth);
        growth
    }

    /// Whether no interval is left, and the last one has been ended.
    fn over(&self) -> bool {
        self.plan.rounds.is_over(self.next) && self.next > self.plan.rounds.intervals
    }

    fn begin_interval(&mut self, at: Time) {
        let index = self.next;
        self.next += 1;
        if self.plan.rounds.is_over(index) && self.plan.profile == Profile::Fixed {
            // Only surplus sessions are left in the queue.
            self.queue = EventQueue::new();
        }
        self.shuffle(index);
        self.set_sessions(index, at);
        for kind in 0..self.udp.len() {
            self.set_sources(kind, index, at);
        }
    }

    /// Plans the files of all intervals of a round.
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
            self.files[which] = law.as_ref().filter(|_| part > 0.0).map(|law| {
                let rates = &self.plan.rates[which];
                Files::new((law, rates), &self.plan, part, seed, &self.before[which])
            });
        }
    }

    /// Prepares as many gaps and files as the interval is expected to need.
    fn shuffle(&mut self, index: u64) {
        let len = (self.plan.expected(index) / f64::from(self.share.of.max(1))) as usize;
        let seed = derived(derived(self.seed, index + 1), 1);
        self.gaps.then(len, seed);
        let n = self.plan.rounds.intervals;
        if index / n != self.round && !self.plan.rounds.is_over(index) {
            for (before, files) in self.before.iter_mut().zip(&mut self.files) {
                *before = files
                    .as_mut()
                    .map_or_else(Vec::new, |f| std::mem::take(&mut f.next));
            }
            self.choose_files(index / n);
        }
        let sessions = self.plan.rounds.of(&self.plan.sessions, index);
        for (remaining, files) in self.remaining.iter_mut().zip(&self.files) {
            let Some(files) = files else { continue };
            let left = std::mem::take(remaining);
            // There are at most some hundred thousand intervals.
            let interval = (index % n) as usize;
            *remaining = files.of_interval(interval, sessions, self.share, left);
        }
    }

    fn set_sessions(&mut self, index: u64, at: Time) {
        let wanted = self
            .share
            .part(self.plan.sessions(self.plan.rounds.starts_at(index)));
        if self.plan.profile == Profile::Fixed {
            while self.active > wanted {
                self.active -= 1;
                let place = self.active as u32;
                self.sessions[place as usize].serial += 1;
                self.free.insert(place);
            }
        }
        let begun = wanted.saturating_sub(self.active) as usize;
        // Uniform numbers: the gap that a session begins in, and the position in it.
        let mut first = [Stratified::new(begun), Stratified::new(begun)];
        while self.active < wanted {
            let place = self.free.pop_first().unwrap_or_else(|| {
                self.sessions.push(Session::default());
                // At most a million slots.
                (self.sessions.len() - 1) as u32
            });
            self.active += 1;
            let [gap, part] = first
                .each_mut()
                .map(|draws| draws.uniform(&mut self.stream));
            self.begin_session(place, at, gap, part);
        }
    }

    /// Starts a session in the middle of a gap. `gap` and `part` are uniform numbers: the choice of the
    /// gap, and the part left.
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
                session.ends = begin + self.plan.rounds.interval;
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
                before,
            } => self.arrival(at, kind, serial, number, before),
            Event::Stream { place } => self.stream(place),
        }
    }

    fn transfer(&mut self, at: Time, place: u32, serial: u32) -> Option<Transfer> {
        let session = &mut self.sessions[place as usize];
        if session.serial != serial {
            return None;
        }
        if at > session.ends {
            // The released program checks only here whether a session is over or surplus.
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
        let begun = at.since(self.plan.rounds.starts_at(interval));
        let part = begun.as_secs_f64() / self.plan.rounds.lasts(interval).as_secs_f64().max(1e-9);
        let mut draw = |which: usize, law: &Option<Law>| {
            let Some(law) = law else { return (0, None) };
            let file = match &self.files[which] {
                Some(_) => self.remaining[which].draw(part, &mut self.stream),
                None => File {
                    quantile: self.stream.uniform(),
                    rank: None,
                },
            };
            let size = law.quantile(file.quantile);
            let rates = &self.plan.rates[which];
            let limit = match rates.is_empty() {
                true => None,
                false => {
                    let rank = file.rank.unwrap_or_else(|| self.ranks.uniform());
                    rates.limit(size, rank)
                }
            };
            let limit = limit.map(|bytes| Rate::from_bps_f64(bytes * 8.0));
            ((size * sizes + 0.5) as u64, limit)
        };
        let (up, up_limit) = draw(0, &self.plan.up);
        let (down, down_limit) = draw(1, &self.plan.down);
        self.queue.push(at + gap, Event::Session { place, serial });
        Some(Transfer {
            at,
            session: self.share.number(u64::from(place)),
            source,
            destination,
            up,
            down: if up == 0 { down.max(1) } else { down },
            limits: one_after_the_other([up, down], [up_limit, down_limit]),
            kept,
        })
    }
}

fn micros(x: f64) -> Dur {
    Dur::from_nanos((x * 1e3 + 0.5) as u64)
}

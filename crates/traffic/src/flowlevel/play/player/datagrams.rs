//! Datagram sources: those that follow one another in slots, and those that arrive individually.

use std::collections::BTreeSet;

use swell_base::{Dur, Stream, Time, derived};

use super::super::UdpSource;
use super::super::arrivals::BLOCK;
use super::super::udp::Streams;
use super::{Due, Event, Player};
use crate::flowlevel::randomly;

/// Sources that are between two of their streams.
#[derive(Debug, Default)]
pub(super) struct Streaming {
    places: Vec<Option<Waiting>>,
    free: BTreeSet<u32>,
}

/// A source, and its next stream.
#[derive(Clone, Debug)]
struct Waiting {
    source: UdpSource,
    /// Times of the next stream.
    next: [Time; 2],
    later: Streams,
    /// The part of its lifetime that is played, from its start, and when that part begins.
    part: [Dur; 2],
    at: Time,
}

/// Most streams before the part that is played which are drawn to find its first one.
const MOST_BEFORE: usize = 10_000;

impl Waiting {
    /// The next stream within the part that is played. A source that has had very many streams before begins anew there:
    /// streams of microseconds would otherwise be drawn for minutes.
    fn advance(mut self) -> Option<Waiting> {
        let [from, to] = self.part;
        let within = |s: &[Dur; 2]| s[1] > from || (s[1] == from && from == Dur::ZERO);
        let found = self.later.by_ref().take(MOST_BEFORE).find(within);
        let [begin, end] = match found {
            None if self.later.begin_at(from) => self.later.find(within)?,
            found => found?,
        };
        if begin > to || (begin == to && to > Dur::ZERO) {
            return None;
        }
        let time = |t: Dur| self.at + t.max(from).min(to).saturating_sub(from);
        self.next = [time(begin), time(end)];
        // A stream ends with a datagram, unless it is cut.
        if end < to || end == self.source.until.since(self.source.at) {
            self.next[1] += self.source.spacing;
        }
        Some(self)
    }
}

impl Player {
    pub(super) fn set_sources(&mut self, kind: usize, index: u64, at: Time) {
        let plan = &self.plan.udp[kind];
        let wanted = self.share.part(self.plan.rounds.of(plan.slots(), index));
        let state = &mut self.udp[kind];
        // There are at most 25 kinds.
        let number = kind as u16;
        while state.active > wanted {
            state.active -= 1;
            state.serials[state.active as usize] += 1;
        }
        while state.active < wanted {
            let place = state.active as usize;
            state.active += 1;
            if state.serials.len() <= place {
                state.serials.push(0);
            }
            let event = Event::Source {
                kind: number,
                place: place as u32,
                serial: state.serials[place],
            };
            self.queue.push(at, event);
        }
        self.begin_arrivals(kind, index, at);
    }

    /// Schedules the sources that arrive individually in interval `index`, from `at` on. At time zero, it
    /// also schedules those that are in progress.
    pub(super) fn begin_arrivals(&mut self, kind: usize, index: u64, at: Time) {
        let state = &mut self.udp[kind];
        state.serial = state.serial.wrapping_add(1);
        state.index = index;
        if self.plan.rounds.is_over(index) {
            return;
        }
        let serial = state.serial;
        let arrivals = &self.plan.udp[kind].arrivals;
        // There are at most 25 kinds, and less than 2^32 sources of each.
        let number = kind as u16;
        let begun = arrivals.of((index % self.plan.rounds.intervals) as usize);
        if !begun.is_empty() {
            let event = Event::Block {
                kind: number,
                serial,
                number: begun.start as u32,
            };
            self.queue.push(at, event);
        }
        if at == Time::ZERO {
            self.enter(kind, at);
        }
    }

    /// Schedules the rest of the individually arriving sources that are in progress at `at`: of this round, and of the one
    /// before. Before the first round there was one like it.
    pub(super) fn enter(&mut self, kind: usize, at: Time) {
        let state = &self.udp[kind];
        let (index, serial) = (state.index, state.serial);
        if self.plan.rounds.is_over(index) {
            return;
        }
        let (share, number) = (self.share, kind as u16);
        let arrivals = &self.plan.udp[kind].arrivals;
        for before in [true, false] {
            let since = at.since(self.round_of(index));
            let since = since + self.plan.round() * u64::from(before);
            let seed = self.seed_of(kind, index, before);
            for source in arrivals.in_progress(&self.plan.rounds, seed, since, |n| share.holds(n)) {
                let event = Event::Arrival {
                    kind: number,
                    serial,
                    number: source as u32,
                    before,
                };
                self.queue.push(at, event);
            }
        }
    }

    /// Start of the round of interval `index`.
    fn round_of(&self, index: u64) -> Time {
        let n = self.plan.rounds.intervals;
        self.plan.rounds.starts_at(index / n * n)
    }

    /// Seed of the individually arriving sources of the round of interval `index`, or of the round `before`.
    fn seed_of(&self, kind: usize, index: u64, before: bool) -> u64 {
        let round = index / self.plan.rounds.intervals;
        let round = round.saturating_sub(u64::from(before));
        derived(derived(self.seed, round + 1), kind as u64 + 8)
    }

    /// Draws the starts of a block of sources; starts before `now` are dropped.
    pub(super) fn draw_block(&mut self, now: Time, kind: u16, serial: u32, number: u32) {
        let which = usize::from(kind);
        let Some(state) = self.udp.get(which).filter(|s| s.serial == serial) else {
            return;
        };
        let index = state.index;
        let seed = self.seed_of(which, index, false);
        let round = self.round_of(index);
        let interval = (index % self.plan.rounds.intervals) as usize;
        let arrivals = &self.plan.udp[which].arrivals;
        let first = u64::from(number);
        let end = arrivals.of(interval).end;
        let last = (first + BLOCK).min(end);
        for source in (first..last).filter(|&n| self.share.holds(n)) {
            let at = round + arrivals.place(&self.plan.rounds, interval, source, seed).at;
            let event = Event::Arrival {
                kind,
                serial,
                number: source as u32,
                before: false,
            };
            if at >= now {
                self.queue.push(at, event);
            }
        }
        if last < end {
            let at = round + arrivals.block_at(&self.plan.rounds, interval, last);
            let event = Event::Block {
                kind,
                serial,
                number: last as u32,
            };
            self.queue.push(at.max(now), event);
        }
    }

    pub(super) fn source(&mut self, at: Time, kind: u16, place: u32, serial: u32) -> Option<Due> {
        if self.udp.get(usize::from(kind))?.serials.get(place as usize) != Some(&serial) {
            return None;
        }
        let plan = &self.plan.udp[usize::from(kind)];
        let mut drawn = plan.draw(at, Time::MAX, &mut self.stream);
        // It ends early at the first interval that has no slot for it.
        let mut index = self.plan.index(at) + 1;
        while self.plan.rounds.starts_at(index) < drawn.until {
            let wanted = self.share.part(self.plan.rounds.of(plan.slots(), index));
            if u64::from(place) >= wanted {
                drawn.until = self.plan.rounds.starts_at(index);
                break;
            }
            index += 1;
        }
        self.queue.push(
            drawn.until,
            Event::Source {
                kind,
                place,
                serial,
            },
        );
        let hosts = [self.stream.uniform(), self.stream.uniform()];
        Some(self.name(drawn, hosts))
    }

    /// Starts an individually arriving source of this round or of the one `before`, or the rest of it if it is in progress
    /// at `at`. What it sends, and between which hosts, follows from its number and the seed alone.
    pub(super) fn arrival(
        &mut self,
        at: Time,
        kind: u16,
        serial: u32,
        number: u32,
        before: bool,
    ) -> Option<Due> {
        let which = usize::from(kind);
        let state = self.udp.get(which).filter(|s| s.serial == serial)?;
        let index = state.index;
        let seed = self.seed_of(which, index, before);
        let plan = &self.plan.udp[which];
        let number = u64::from(number);
        let interval = plan.arrivals.interval_of(number);
        let place = plan
            .arrivals
            .place(&self.plan.rounds, interval, number, seed);
        let round = self.plan.round();
        let since = at.since(self.round_of(index)) + round * u64::from(before);
        let from = since.saturating_sub(place.at);
        let to = match before || self.plan.rounds.cycle {
            true => place.lasts,
            false => place.lasts.min(round.saturating_sub(place.at)),
        };
        let mut hosts = Stream::indexed(seed, "hosts", number);
        let hosts = [hosts.uniform(), hosts.uniform()];
        if plan.is_stream() {
            let source = plan.draw_stream(&place, at, number, seed);
            let later = plan.streams(place.lasts, Stream::indexed(seed, "streams", number));
            let waiting = Waiting {
                source: self.named(source, hosts),
                next: [at; 2],
                later,
                part: [from, to],
                at,
            };
            self.wait(waiting.advance());
            return None;
        }
        let mut stream = Stream::indexed(seed, "source", number);
        let drawn = plan.draw_one(&place, at, [from, to], &mut stream)?;
        Some(self.name(drawn, hosts))
    }

    /// Keeps a source until its next stream.
    fn wait(&mut self, waiting: Option<Waiting>) {
        let Some(waiting) = waiting else { return };
        let at = waiting.next[0];
        let Streaming { places, free } = &mut self.streaming;
        let place = free.pop_first().unwrap_or_else(|| {
            places.push(None);
            // There are less than 2^32 sources.
            (places.len() - 1) as u32
        });
        places[place as usize] = Some(waiting);
        self.queue.push(at, Event::Stream { place });
    }

    /// Ends a part of the sources that are between two streams, or copies them, so that their number changes by the factor
    /// `growth`.
    pub(super) fn scale_waiting(&mut self, growth: f64) {
        let mut copies = Vec::new();
        for place in &mut self.streaming.places {
            let Some(waiting) = place else { continue };
            let number = randomly(growth, &mut self.stream);
            for _ in 1..number {
                copies.push(waiting.clone());
            }
            if number == 0 {
                // Its place is free once its event has come.
                *place = None;
            }
        }
        // Afterwards, so that no copy is copied.
        for mut copy in copies {
            let hosts = [self.stream.uniform(), self.stream.uniform()];
            copy.source = self.named(copy.source, hosts);
            copy.later.draw_anew(self.stream.bits());
            self.wait(Some(copy));
        }
    }

    /// The stream of a source begins.
    pub(super) fn stream(&mut self, place: u32) -> Option<Due> {
        let taken = self.streaming.places.get_mut(place as usize)?.take();
        self.streaming.free.insert(place);
        // A lower load may have ended it.
        let waiting = taken?;
        let [at, until] = waiting.next;
        self.sources += 1;
        let due = UdpSource {
            at,
            until,
            number: self.share.number(self.sources - 1),
            ..waiting.source
        };
        self.wait(waiting.advance());
        (until > at).then_some(Due::Datagrams(due))
    }

    fn name(&mut self, drawn: UdpSource, hosts: [f64; 2]) -> Due {
        self.sources += 1;
        Due::Datagrams(UdpSource {
            number: self.share.number(self.sources - 1),
            ..self.named(drawn, hosts)
        })
    }

    /// The source with hosts, chosen by uniform numbers.
    fn named(&self, drawn: UdpSource, hosts: [f64; 2]) -> UdpSource {
        UdpSource {
            source: self.plan.sources.choose(hosts[0]),
            destination: self.plan.destinations.choose(hosts[1]),
            ..drawn
        }
    }
}

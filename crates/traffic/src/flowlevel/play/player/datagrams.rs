//! Datagram sources: those that follow one another in slots, and those that arrive individually.

use std::collections::BTreeSet;

use swell_base::{Dur, Stream, Time, derived};

use super::super::UdpSource;
use super::super::arrivals::BLOCK;
use super::super::udp::{Piece, Streams};
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

impl Waiting {
    /// The next stream within the part that is played.
    fn advance(mut self) -> Option<Waiting> {
        let [from, to] = self.part;
        let [begin, end] = self
            .later
            .find(|s| s[1] > from || (s[1] == from && from == Dur::ZERO))?;
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
        let wanted = self.share.part(self.plan.of(plan.slots(), index));
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
    /// also schedules what the end of the round cuts off.
    pub(super) fn begin_arrivals(&mut self, kind: usize, index: u64, at: Time) {
        let state = &mut self.udp[kind];
        state.serial = state.serial.wrapping_add(1);
        state.index = index;
        if self.plan.is_over(index) {
            return;
        }
        let serial = state.serial;
        let (interval, seed) = self.arrivals_of(kind, index);
        let arrivals = &self.plan.udp[kind].arrivals;
        // There are at most 25 kinds, and less than 2^32 sources of each.
        let number = kind as u16;
        let begun = arrivals.of(interval);
        if !begun.is_empty() {
            let event = Event::Block {
                kind: number,
                serial,
                number: begun.start as u32,
            };
            self.queue.push(at, event);
        }
        if at > Time::ZERO {
            return;
        }
        let share = self.share;
        for (_, source, _) in arrivals.cut_off(&self.plan, seed, |n| share.holds(n)) {
            let event = Event::Rest {
                kind: number,
                serial,
                number: source as u32,
            };
            self.queue.push(at, event);
        }
    }

    /// Position of `index` in its round, and the seed of that round's individually arriving sources.
    fn arrivals_of(&self, kind: usize, index: u64) -> (usize, u64) {
        let n = self.plan.sessions.len() as u64;
        let seed = derived(derived(self.seed, index / n + 1), kind as u64 + 8);
        ((index % n) as usize, seed)
    }

    /// Draws the starts of a block of sources; starts before `now` are dropped.
    pub(super) fn draw_block(&mut self, now: Time, kind: u16, serial: u32, number: u32) {
        let which = usize::from(kind);
        let Some(state) = self.udp.get(which).filter(|s| s.serial == serial) else {
            return;
        };
        let index = state.index;
        let (interval, seed) = self.arrivals_of(which, index);
        let round = self.plan.starts_at(index - interval as u64);
        let arrivals = &self.plan.udp[which].arrivals;
        let first = u64::from(number);
        let end = arrivals.of(interval).end;
        let last = (first + BLOCK).min(end);
        for source in (first..last).filter(|&n| self.share.holds(n)) {
            let at = round + arrivals.place(&self.plan, interval, source, seed).at;
            let event = Event::Arrival {
                kind,
                serial,
                number: source as u32,
            };
            if at >= now {
                self.queue.push(at, event);
            }
        }
        if last < end {
            let at = round + arrivals.block_at(&self.plan, interval, last);
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
        while self.plan.starts_at(index) < drawn.until {
            let wanted = self.share.part(self.plan.of(plan.slots(), index));
            if u64::from(place) >= wanted {
                drawn.until = self.plan.starts_at(index);
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
        Some(self.name(drawn))
    }

    /// Starts an individually arriving source, or the `rest` of one that the end of the round cuts off.
    pub(super) fn arrival(
        &mut self,
        at: Time,
        kind: u16,
        serial: u32,
        number: u32,
        rest: bool,
    ) -> Option<Due> {
        let which = usize::from(kind);
        let state = self.udp.get(which).filter(|s| s.serial == serial)?;
        let index = state.index;
        let plan = &self.plan.udp[which];
        let (of_now, seed) = self.arrivals_of(which, index);
        let number = u64::from(number);
        let interval = match rest {
            true => plan.arrivals.interval_of(number),
            false => of_now,
        };
        let place = plan.arrivals.place(&self.plan, interval, number, seed);
        // The part of its duration before the end of the round.
        let before_end = self.plan.round().saturating_sub(place.at).as_secs_f64();
        let share = before_end / place.lasts.as_secs_f64().max(1e-9);
        let piece = match (rest, self.plan.cycle) {
            (true, _) => Piece::From(share),
            (false, false) if share < 1.0 => Piece::Until(share),
            _ => Piece::Whole,
        };
        if plan.is_stream() {
            let source = plan.draw_stream(&place, at, number, seed);
            let cut = place.lasts.scale(share.min(1.0));
            let part = match piece {
                Piece::Whole => [Dur::ZERO, place.lasts],
                Piece::Until(_) => [Dur::ZERO, cut],
                Piece::From(_) => [cut, place.lasts],
            };
            let later = plan.streams(place.lasts, Stream::indexed(seed, "streams", number));
            let waiting = Waiting {
                source: self.named(source),
                next: [at; 2],
                later,
                part,
                at,
            };
            self.wait(waiting.advance());
            return None;
        }
        let mut stream = Stream::indexed(seed, "source", number);
        let drawn = plan.draw_one(&place, at, piece, &mut stream)?;
        Some(self.name(drawn))
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
        let places = 0..self.streaming.places.len();
        for place in places {
            if self.streaming.places[place].is_none() {
                continue;
            }
            let number = randomly(growth, &mut self.stream);
            for _ in 1..number {
                let copy = self.streaming.places[place].clone();
                self.wait(copy);
            }
            if number == 0 {
                // Its place is free once its event has come.
                self.streaming.places[place] = None;
            }
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

    fn name(&mut self, drawn: UdpSource) -> Due {
        self.sources += 1;
        Due::Datagrams(UdpSource {
            number: self.share.number(self.sources - 1),
            ..self.named(drawn)
        })
    }

    /// The source with hosts.
    fn named(&mut self, drawn: UdpSource) -> UdpSource {
        UdpSource {
            source: self.plan.sources.choose(self.stream.uniform()),
            destination: self.plan.destinations.choose(self.stream.uniform()),
            ..drawn
        }
    }
}

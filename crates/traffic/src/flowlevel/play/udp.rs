//! Datagram sources: how many are active at a time, and when each of them sends what.
//!
//! As for TCP, an interval has as many sources as it takes to carry its bytes. Its bytes are its share of
//! the kind's bytes, in proportion to the sources alive in it. That number is divided by what one source
//! carries. Periodic and exponential sources follow one another in that many slots. Each
//! has its own lifetime, spacing and datagram size. The others arrive individually ([`super::arrivals`]).
//! Constant-rate and on-off sources keep their rate for their lifetime, or for each of their streams. Sources of kind
//! `other` spread their volume evenly over their lifetime; both have the same rank in
//! their distributions. No kind sends datagrams at one instant that the records had spread over a time.

use std::sync::Arc;

use swell_base::{Dur, Stream, Time, derived};

use super::super::law::{Law, permuted};
use super::super::model::{FlowModel, UdpKind, UdpSources};
use super::super::playback::Playback;
use super::arrivals::{Arrivals, RoundSlot};
use super::rounds::whole;

/// Minimum spacing of a source's datagrams, in microseconds.
const LEAST: f64 = 1.0;
/// Largest UDP payload over IPv4 (RFC 768, RFC 791).
const LARGEST: f64 = 65_507.0;

/// A datagram source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpSource {
    /// How it spaces its exchanges.
    pub kind: UdpKind,
    /// Start of its activity. Its first exchange may be later: see [`UdpSource::pace`].
    pub at: Time,
    /// End of its activity; all exchanges are before.
    pub until: Time,
    /// Unique number among this player's sources.
    pub number: u64,
    /// Rank of the client.
    pub source: u64,
    /// Rank of the server.
    pub destination: u64,
    /// Mean time between exchanges.
    pub spacing: Dur,
    /// Time over which the datagrams of an exchange are spread, if it has several.
    pub lasts: Dur,
    /// Number of exchanges after which it ends, if limited.
    pub exchanges: Option<u64>,
    /// What the client sends in an exchange.
    pub up: Burst,
    /// What the server sends in an exchange.
    pub down: Burst,
}

/// What one side sends in an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Burst {
    /// Mean number of datagrams; an exchange has the whole number below or above. All exchanges so far have the mean
    /// to within one datagram.
    pub datagrams: f64,
    /// Payload of each, bytes.
    pub payload: u32,
}

/// An exchange of a source: the client's datagrams, then the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Scheduled time.
    pub at: Time,
    /// Number of the client's datagrams; [`Burst::payload`] gives their size.
    pub up: u32,
    /// Number of the server's datagrams.
    pub down: u32,
}

/// The exchanges of a source, in time order; see [`UdpSource::pace`].
#[derive(Clone, Debug)]
pub struct Pacer {
    source: UdpSource,
    next: Time,
    left: u64,
    stream: Stream,
    /// Fractions of datagrams that are still to be sent, by side.
    owed: [f64; 2],
    current: Option<Spread>,
}

/// An exchange that is spread over a time.
#[derive(Clone, Copy, Debug)]
struct Spread {
    at: Time,
    lasts: Dur,
    datagrams: [u32; 2],
    /// Steps done, and steps in all.
    step: [u32; 2],
}

impl UdpSource {
    /// Its exchanges. Constant-rate, on-off and periodic sources space them evenly, from a random phase on.
    /// Exponential sources use independent, exponentially distributed intervals. Sources of kind `other`
    /// space them evenly from their start. An exchange that takes time ([`UdpSource::lasts`]) comes in steps, each
    /// with at most one datagram of each side, and ends before the next one. Equal seeds give equal exchanges.
    pub fn pace(&self, seed: u64) -> Pacer {
        let mut stream = Stream::indexed(seed, "datagrams", self.number);
        let phase = match self.kind {
            UdpKind::ConstantRate | UdpKind::OnOff | UdpKind::Periodic => {
                self.spacing.scale(stream.uniform())
            }
            UdpKind::Exponential => wait(self.spacing, &mut stream),
            UdpKind::Other => Dur::ZERO,
        };
        // Sources do not send their rare datagrams all at the same time.
        let owed = [(); 2].map(|()| stream.uniform() * ALMOST);
        Pacer {
            source: *self,
            next: self.at + phase,
            left: self.exchanges.unwrap_or(u64::MAX),
            stream,
            owed,
            current: None,
        }
    }

    /// Whether it takes one of a number of slots, which the player fills by itself. The others arrive individually.
    pub fn takes_slot(&self) -> bool {
        matches!(self.kind, UdpKind::Periodic | UdpKind::Exponential)
    }

    /// What is left of it after `now`, as a source of its own; `None` if there is nothing.
    pub fn rest(&self, now: Time) -> Option<UdpSource> {
        let at = now.max(self.at);
        let lasts = self.until.since(self.at);
        let left = self
            .exchanges
            .map(|n| exchanges_in(n, lasts, [at.since(self.at), lasts]));
        let rest = UdpSource {
            at: at + left.map_or(Dur::ZERO, |(_, wait)| wait),
            exchanges: left.map(|(n, _)| n),
            ..*self
        };
        (rest.until > at && rest.exchanges != Some(0)).then_some(rest)
    }

    /// Whether the server answers datagrams that arrive. Otherwise it sends [`Exchange::down`] by the schedule: it is
    /// a stream of its own, or there are too few requests to be the cause of each answer.
    pub fn answers(&self) -> bool {
        let is_stream = matches!(self.kind, UdpKind::ConstantRate | UdpKind::OnOff);
        !is_stream && self.up.datagrams >= self.down.datagrams
    }
}

/// A random whole number with this mean: the whole number below or above. At most a million.
pub fn randomly(mean: f64, stream: &mut Stream) -> u64 {
    let most = mean.clamp(0.0, 1e6);
    most as u64 + u64::from(stream.uniform() < most.fract())
}

/// Below one, so that rounding never makes a datagram.
const ALMOST: f64 = 1.0 - 1e-9;

fn wait(mean: Dur, stream: &mut Stream) -> Dur {
    mean.scale(stream.exponential(1.0))
}

impl Iterator for Pacer {
    type Item = Exchange;

    fn next(&mut self) -> Option<Exchange> {
        if let Some(spread) = &mut self.current {
            let step = spread.take();
            self.current = self.current.filter(|s| s.step[0] < s.step[1]);
            return Some(step);
        }
        let at = self.next;
        if at >= self.source.until || self.left == 0 {
            return None;
        }
        self.left -= 1;
        self.next = at
            + match self.source.kind {
                UdpKind::ConstantRate | UdpKind::OnOff | UdpKind::Periodic => self.source.spacing,
                // A source with a limited number of exchanges ends after the last one, and never later
                // than its lifetime.
                UdpKind::Other => self.source.until.since(at) / (self.left + 1),
                UdpKind::Exponential => wait(self.source.spacing, &mut self.stream),
            };
        let mut whole = |side: usize, mean: f64| {
            let owed = self.owed[side] + mean;
            self.owed[side] = owed.fract();
            owed as u32
        };
        let [up, down] = [
            whole(0, self.source.up.datagrams),
            whole(1, self.source.down.datagrams),
        ];
        let steps = up.max(down);
        let rest = self.next.min(self.source.until).since(at);
        let lasts = self
            .source
            .lasts
            .min(rest.saturating_sub(Dur::from_nanos(1)));
        if steps < 2 || lasts == Dur::ZERO {
            return Some(Exchange { at, up, down });
        }
        let mut spread = Spread {
            at,
            lasts,
            datagrams: [up, down],
            step: [0, steps],
        };
        let first = spread.take();
        self.current = Some(spread);
        Some(first)
    }
}

impl Spread {
    /// The next step. The side that sends less begins with the other one.
    fn take(&mut self) -> Exchange {
        let [step, steps] = self.step.map(u64::from);
        self.step[0] += 1;
        let upto = |n: u32, done: u64| (u64::from(n) * done).div_ceil(steps);
        let [up, down] = self
            .datagrams
            .map(|n| (upto(n, step + 1) - upto(n, step)) as u32);
        // There are at least two steps.
        let part = step as f64 / (steps - 1) as f64;
        Exchange {
            at: self.at + self.lasts.scale(part),
            up,
            down,
        }
    }
}

/// How many of `n` evenly spaced exchanges, the first at the beginning of a time `lasts`, are in a part of it, and how
/// long after the beginning of that part its first one is.
fn exchanges_in(n: u64, lasts: Dur, [from, to]: [Dur; 2]) -> (u64, Dur) {
    let [all, from, to] = [lasts, from, to].map(|d| u128::from(d.as_nanos()));
    let before = |t: u128| (u128::from(n) * t).div_ceil(all.max(1)).min(n.into()) as u64;
    let first = before(from);
    let at = all * u128::from(first) / u128::from(n.max(1));
    // It is at most `lasts`.
    let wait = Dur::from_nanos(at.saturating_sub(from) as u64);
    (before(to).saturating_sub(first), wait)
}

/// A kind of sources prepared for playback.
#[derive(Clone, Debug)]
pub(super) struct UdpPlan {
    pub(super) kind: UdpKind,
    /// Sources active in each interval; empty for sources that arrive individually.
    slots: Vec<u64>,
    /// Sources that arrive individually.
    pub(super) arrivals: Arrivals,
    spacing: Option<Law>,
    /// Durations of exchanges.
    durations: Option<Law>,
    /// Durations of streams and of the silences between them.
    streams: Option<Arc<(Law, Law)>>,
    datagrams: Law,
    volumes: Law,
    lifetimes: Law,
    /// Per side (client, server): datagrams in an exchange, and their payload relative to the mean.
    each: [(f64, f64); 2],
    sizes: f64,
}

impl UdpPlan {
    /// Prepares a kind as `playback` says, in rounds of this length; silent if nothing of it can be
    /// played.
    pub(super) fn new(
        u: &UdpSources,
        model: &FlowModel,
        playback: &Playback,
        round: Dur,
    ) -> UdpPlan {
        let one = || Law::of_one(1);
        let law = |h| Law::of(h).unwrap_or_else(one);
        let datagrams = law(&u.datagrams);
        let spacing = Law::of(&u.spacing);
        let lifetimes = law(&u.lifetimes);
        let streams = (u.kind == UdpKind::OnOff)
            .then(|| Law::of(&u.durations).zip(Law::of(&u.pauses)).map(Arc::new))
            .flatten();
        let (packets, flows) = (u.packets.max(1) as f64, u.flows.max(1) as f64);
        let mean = u.bytes as f64 / packets;
        let sides = [
            (
                u.packets - u.answers.min(u.packets),
                u.bytes - u.answer_bytes.min(u.bytes),
            ),
            (u.answers, u.answer_bytes),
        ];
        let is_stream =
            spacing.is_some() && matches!(u.kind, UdpKind::ConstantRate | UdpKind::OnOff);
        // A stream has a datagram of the busier side in each step; others have all of a flow in an exchange.
        let most = sides[0].0.max(sides[1].0).max(1) as f64;
        let per = if is_stream { most } else { flows };
        let each = sides.map(|(sent, bytes)| match sent {
            0 => (0.0, 0.0),
            n => (n as f64 / per, bytes as f64 / n as f64 / mean.max(1e-9)),
        });
        let length = model.interval.as_nanos() as f64;
        // Total time that sources were alive, in intervals, and each interval's part of it.
        let seen = |index: usize| model.seen_of(index).as_nanos() as f64 / length;
        let alive = u.active.iter().enumerate();
        let alive = alive.map(|(i, &n)| n as f64 * seen(i)).sum::<f64>();
        let played = u.active.iter().enumerate().skip(playback.first);
        let played = played.map(|(i, &n)| (n as f64 / alive.max(1e-9) * playback.load, seen(i)));
        // Exchanges of a source in a microsecond, and bytes of each.
        let often = spacing.as_ref().map_or(0.0, |s| s.mean_reciprocal(LEAST));
        let exchange = packets / per * datagrams.mean();
        let carries = length / 1e3 * often * exchange;
        let (slots, arrivals) = if is_stream || u.kind == UdpKind::Other || carries <= 0.0 {
            // Values of a stream are drawn independently, so its volume is that of the records only with as many
            // sources as it takes.
            let number = match is_stream && exchange > 0.0 {
                true => u.bytes as f64 / (exchange * steps_of(&lifetimes, streams.as_ref(), often)),
                false => u.sources as f64,
            };
            let begun = played.map(|(share, part)| share * part * number);
            let compression = playback.compression;
            let arrivals = Arrivals::new(begun, law(&u.lifetimes), round, compression);
            (Vec::new(), arrivals)
        } else {
            let active = played.map(|(share, _)| share * u.bytes as f64 / carries);
            (whole(active), Arrivals::none())
        };
        UdpPlan {
            kind: match slots.is_empty() && !is_stream {
                true => UdpKind::Other,
                false => u.kind,
            },
            slots,
            arrivals,
            spacing,
            durations: Law::of(&u.durations),
            streams,
            datagrams,
            volumes: law(&u.volumes),
            lifetimes: law(&u.lifetimes),
            each,
            sizes: playback.sizes,
        }
    }

    pub(super) fn slots(&self) -> &Vec<u64> {
        &self.slots
    }

    pub(super) fn is_silent(&self) -> bool {
        self.slots.iter().all(|&n| n == 0) && self.arrivals.all() == 0
    }

    /// Draws a source that takes a slot at `at`, until `end` at the latest.
    pub(super) fn draw(&self, at: Time, end: Time, stream: &mut Stream) -> UdpSource {
        let spacing = self
            .spacing
            .as_ref()
            .map_or(LEAST, |s| s.draw(stream))
            .max(LEAST);
        let payload = self.datagrams.draw(stream);
        let lifetime = self.lifetimes.draw(stream).max(spacing);
        let lasts = self.durations.as_ref().map_or(0.0, |d| d.draw(stream));
        let [up, down] = self.bursts(payload);
        UdpSource {
            kind: self.kind,
            at,
            until: end.min(at + micros(lifetime)),
            number: 0,
            source: 0,
            destination: 0,
            spacing: micros(spacing),
            lasts: micros(lasts),
            exchanges: None,
            up,
            down,
        }
    }

    fn bursts(&self, payload: f64) -> [Burst; 2] {
        self.each.map(|(datagrams, relative)| Burst {
            datagrams,
            payload: self.payload(payload, relative),
        })
    }

    /// Whether sources are streams that keep a rate.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.kind, UdpKind::ConstantRate | UdpKind::OnOff)
    }

    /// Draws source `number` of a round of this seed: a stream that begins at `at`. Spacings and sizes of all
    /// sources of a round are stratified. Its end is that of its whole lifetime.
    pub(super) fn draw_stream(
        &self,
        place: &RoundSlot,
        at: Time,
        number: u64,
        seed: u64,
    ) -> UdpSource {
        let mut stream = Stream::indexed(seed, "source", number);
        let all = self.arrivals.all();
        let mut draw = |law: &Law, salt: u64| {
            let stratum = permuted(number, all, derived(seed, salt));
            law.quantile((stratum as f64 + stream.uniform()) / all as f64)
        };
        let spacing = self
            .spacing
            .as_ref()
            .map_or(LEAST, |s| draw(s, 2))
            .max(LEAST);
        let [up, down] = self.bursts(draw(&self.datagrams, 3));
        let spacing = micros(spacing);
        UdpSource {
            kind: self.kind,
            at,
            until: at + place.lasts,
            number: 0,
            source: 0,
            destination: 0,
            spacing,
            lasts: Dur::ZERO,
            exchanges: None,
            up,
            down,
        }
    }

    /// The streams of a source that is active for `lasts`; one if it has no silences. The same `stream` gives the
    /// same ones.
    pub(super) fn streams(&self, lasts: Dur, stream: Stream) -> Streams {
        Streams {
            laws: self.streams.clone(),
            stream,
            at: Dur::ZERO,
            lasts,
        }
    }

    /// Draws an individually arriving source, and of it the `part` of its time that begins at `at`, if that has an
    /// exchange. The same `stream` gives the same source.
    pub(super) fn draw_one(
        &self,
        place: &RoundSlot,
        at: Time,
        part: [Dur; 2],
        stream: &mut Stream,
    ) -> Option<UdpSource> {
        let volume = self.volumes.quantile(place.rank) * place.part;
        let payload = self.datagrams.draw(stream).max(1.0);
        let in_all = (volume / payload).max(1.0);
        // As many exchanges as the busier side has datagrams.
        let [up, down] = self.each;
        let all = up.0 + down.0;
        let exchanges = (in_all * up.0.max(down.0) / all.max(1e-9)).max(1.0) as u64;
        // Sizes absorb the rounding of the number of exchanges, so that the volume is met.
        let most = up.0.max(down.0).max(1e-9);
        let per = [up.0 / most, down.0 / most];
        let each = volume / exchanges as f64 / (per[0] * up.1 + per[1] * down.1).max(1e-9);
        let [up, down] = [(per[0], up.1), (per[1], down.1)].map(|(datagrams, relative)| Burst {
            datagrams,
            payload: self.payload(each, relative),
        });
        let (exchanges, wait) = exchanges_in(exchanges, place.lasts, part);
        let end = at + part[1].saturating_sub(part[0]);
        let at = at + wait;
        let until = end.max(at + Dur::from_nanos(1));
        (exchanges > 0).then(|| UdpSource {
            kind: UdpKind::Other,
            at,
            until,
            number: 0,
            source: 0,
            destination: 0,
            spacing: until.since(at) / exchanges,
            lasts: Dur::ZERO,
            exchanges: Some(exchanges),
            up,
            down,
        })
    }

    fn payload(&self, mean: f64, relative: f64) -> u32 {
        (mean * relative * self.sizes + 0.5).clamp(0.0, LARGEST) as u32
    }
}

/// Sources that are drawn for the mean of what one of them sends, and most streams of each.
const TRIES: u32 = 4096;
const MOST_STREAMS: u32 = 512;

/// Mean number of datagrams that the busier side of a source sends, one each `1 / often` microseconds: in each stream,
/// one more than there are gaps. Streams and silences of all sources have one law each, whatever a source's lifetime, so
/// the mean is that of sources as they will be played.
fn steps_of(lifetimes: &Law, streams: Option<&Arc<(Law, Law)>>, often: f64) -> f64 {
    let mut steps = 0.0;
    for i in 0..TRIES {
        let lasts = micros(lifetimes.quantile((f64::from(i) + 0.5) / f64::from(TRIES)));
        let mut source = Streams {
            laws: streams.cloned(),
            stream: Stream::indexed(0, "steps", i.into()),
            at: Dur::ZERO,
            lasts,
        };
        let (mut on, mut n) = (Dur::ZERO, 0);
        while n < MOST_STREAMS
            && let Some([begin, end]) = source.next()
        {
            on += end.saturating_sub(begin);
            n += 1;
        }
        // A source with more streams goes on like this.
        let part = source.at.as_secs_f64() / lasts.as_secs_f64().max(1e-9);
        let of = on.as_secs_f64() * 1e6 * often + f64::from(n);
        steps += of / if part > 0.0 { part.min(1.0) } else { 1.0 };
    }
    steps / f64::from(TRIES)
}

/// The streams of a source; see [`UdpPlan::streams`]. Times are from its start.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    /// Durations of streams and of silences, microseconds.
    laws: Option<Arc<(Law, Law)>>,
    stream: Stream,
    at: Dur,
    lasts: Dur,
}

impl Streams {
    /// Draws what follows by another seed, as of another source.
    pub(super) fn draw_anew(&mut self, seed: u64) {
        self.stream = Stream::new(seed, "streams");
    }

    /// Skips to `at`, where the next stream begins; false if the next one is not before it.
    pub(super) fn begin_at(&mut self, at: Dur) -> bool {
        let skips = self.at < at;
        if skips {
            self.at = at;
        }
        skips
    }
}

impl Iterator for Streams {
    type Item = [Dur; 2];

    fn next(&mut self) -> Option<[Dur; 2]> {
        if self.at > self.lasts || (self.at == self.lasts && self.at > Dur::ZERO) {
            return None;
        }
        let begin = self.at;
        let Some((durations, pauses)) = self.laws.as_deref() else {
            self.at = self.lasts + Dur::from_nanos(1);
            return Some([begin, self.lasts]);
        };
        let end = begin + micros(durations.draw(&mut self.stream));
        self.at = end + micros(pauses.draw(&mut self.stream).max(LEAST));
        Some([begin, end.min(self.lasts)])
    }
}

fn micros(x: f64) -> Dur {
    Dur::from_nanos((x * 1e3 + 0.5) as u64)
}

#[cfg(test)]
mod tests;

//! Datagram sources: how many are active at a time, and when each of them sends what.
//!
//! As for TCP, an interval has as many sources as it takes to carry its bytes. Its bytes are its share of
//! the kind's bytes, in proportion to the sources alive in it. That number is divided by what one source
//! carries. Constant-rate, periodic and exponential sources follow one another in that many slots. Each
//! has its own lifetime, spacing and datagram size. Sources of kind `other` arrive individually
//! ([`super::arrivals`]). Each spreads its volume evenly over its lifetime; both have the same rank in
//! their distributions.

use swell_base::{Dur, Stream, Time};

use super::super::law::Law;
use super::super::model::{FlowModel, UdpKind, UdpSources};
use super::arrivals::{Arrivals, Place};
use super::{Playback, law_of, whole};

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
    /// Mean number of datagrams; an exchange has the whole number below or above.
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
}

impl UdpSource {
    /// Its exchanges. Constant-rate and periodic sources space them evenly, from a random phase on.
    /// Exponential sources use independent, exponentially distributed intervals. Sources of kind `other`
    /// space them evenly from their start. Equal seeds give equal exchanges.
    pub fn pace(&self, seed: u64) -> Pacer {
        let mut stream = Stream::indexed(seed, "datagrams", self.number);
        let phase = match self.kind {
            UdpKind::ConstantRate | UdpKind::Periodic => self.spacing.scale(stream.uniform()),
            UdpKind::Exponential => wait(self.spacing, &mut stream),
            UdpKind::Other => Dur::ZERO,
        };
        Pacer {
            source: *self,
            next: self.at + phase,
            left: self.exchanges.unwrap_or(u64::MAX),
            stream,
        }
    }
}

fn wait(mean: Dur, stream: &mut Stream) -> Dur {
    mean.scale(stream.exponential(1.0))
}

impl Iterator for Pacer {
    type Item = Exchange;

    fn next(&mut self) -> Option<Exchange> {
        let at = self.next;
        if at >= self.source.until || self.left == 0 {
            return None;
        }
        self.left -= 1;
        self.next = at
            + match self.source.kind {
                UdpKind::ConstantRate | UdpKind::Periodic => self.source.spacing,
                // A source with a limited number of exchanges ends after the last one, and never later
                // than its lifetime.
                UdpKind::Other => self.source.until.since(at) / (self.left + 1),
                UdpKind::Exponential => wait(self.source.spacing, &mut self.stream),
            };
        let mut whole = |mean: f64| mean as u32 + u32::from(self.stream.chance(mean.fract()));
        Some(Exchange {
            at,
            up: whole(self.source.up.datagrams),
            down: whole(self.source.down.datagrams),
        })
    }
}

/// The part of a source that is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Piece {
    /// All of it.
    Whole,
    /// This share of its duration.
    Until(f64),
    /// Everything after this share of its duration.
    From(f64),
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
    datagrams: Law,
    volumes: Law,
    lifetimes: Law,
    /// Per side (client, server): datagrams in an exchange, and their payload relative to the mean.
    each: [(f64, f64); 2],
    /// Share of the servers in all bytes.
    answers: f64,
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
        let law = |h| law_of(h).unwrap_or_else(one);
        let datagrams = law(&u.datagrams);
        let spacing = law_of(&u.spacing);
        let (packets, flows) = (u.packets.max(1) as f64, u.flows.max(1) as f64);
        let mean = u.bytes as f64 / packets;
        let side = |sent: u64, bytes: u64| match sent {
            0 => (0.0, 0.0),
            n => (n as f64 / flows, bytes as f64 / n as f64 / mean.max(1e-9)),
        };
        let each = [
            side(
                u.packets - u.answers.min(u.packets),
                u.bytes - u.answer_bytes.min(u.bytes),
            ),
            side(u.answers, u.answer_bytes),
        ];
        let length = model.interval.as_nanos() as f64;
        // Total time that sources were alive, in intervals, and each interval's part of it.
        let seen = |index: usize| model.seen_of(index).as_nanos() as f64 / length;
        let alive = u.active.iter().enumerate();
        let alive = alive.map(|(i, &n)| n as f64 * seen(i)).sum::<f64>();
        let played = u.active.iter().enumerate().skip(playback.first);
        let played = played.map(|(i, &n)| (n as f64 / alive.max(1e-9) * playback.load, seen(i)));
        // Bytes that a source carries in an interval of the model.
        let datagrams_each = match u.kind {
            UdpKind::ConstantRate => 1.0,
            _ => packets / flows,
        };
        let carries = spacing.as_ref().map_or(0.0, |s| {
            length / 1e3 * s.mean_reciprocal(LEAST) * datagrams_each * datagrams.mean()
        });
        let (slots, arrivals) = if u.kind == UdpKind::Other || carries <= 0.0 {
            let begun = played.map(|(share, part)| share * part * u.sources as f64);
            let compression = playback.compression;
            let arrivals = Arrivals::new(begun, law(&u.lifetimes), round, compression);
            (Vec::new(), arrivals)
        } else {
            let active = played.map(|(share, _)| share * u.bytes as f64 / carries);
            (whole(active), Arrivals::none())
        };
        UdpPlan {
            kind: if slots.is_empty() {
                UdpKind::Other
            } else {
                u.kind
            },
            slots,
            arrivals,
            spacing,
            datagrams,
            volumes: law(&u.volumes),
            lifetimes: law(&u.lifetimes),
            each,
            answers: u.answer_bytes as f64 / (u.bytes.max(1)) as f64,
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
        let [up, down] = match self.kind {
            UdpKind::ConstantRate => {
                let one = Burst {
                    datagrams: 1.0,
                    payload: self.payload(payload, 1.0),
                };
                if stream.chance(self.answers) {
                    [Burst::default(), one]
                } else {
                    [one, Burst::default()]
                }
            }
            _ => self.each.map(|(datagrams, relative)| Burst {
                datagrams,
                payload: self.payload(payload, relative),
            }),
        };
        UdpSource {
            kind: self.kind,
            at,
            until: end.min(at + micros(lifetime)),
            number: 0,
            source: 0,
            destination: 0,
            spacing: micros(spacing),
            exchanges: None,
            up,
            down,
        }
    }

    /// Draws an individually arriving source that starts at `at`, or the `piece` of it, if that has an
    /// exchange. The same `stream` gives the same source.
    pub(super) fn draw_one(
        &self,
        place: &Place,
        at: Time,
        piece: Piece,
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
        // Both pieces round at the same point, so that together they have every exchange once.
        let rounding = stream.uniform();
        let before_cut = |share: f64| ((exchanges as f64 * share + rounding) as u64).min(exchanges);
        let (exchanges, lasts) = match piece {
            Piece::Whole => (exchanges, place.lasts),
            Piece::Until(share) => (before_cut(share), place.lasts.scale(share)),
            Piece::From(share) => (
                exchanges - before_cut(share),
                place.lasts.scale(1.0 - share),
            ),
        };
        let until = at + lasts.max(Dur::from_nanos(1));
        (exchanges > 0).then(|| UdpSource {
            kind: UdpKind::Other,
            at,
            until,
            number: 0,
            source: 0,
            destination: 0,
            spacing: until.since(at) / exchanges,
            exchanges: Some(exchanges),
            up,
            down,
        })
    }

    fn payload(&self, mean: f64, relative: f64) -> u32 {
        (mean * relative * self.sizes + 0.5).clamp(0.0, LARGEST) as u32
    }
}

fn micros(x: f64) -> Dur {
    Dur::from_nanos((x * 1e3 + 0.5) as u64)
}

#[cfg(test)]
mod tests;

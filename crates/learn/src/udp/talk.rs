//! Requests and responses inside a QUIC connection (RFC 9000), from sizes and times alone, as the rest is
//! encrypted.
//!
//! Data of the client are a request, and data that the server sends after it are a response. Datagrams too
//! short for either are ACKs. Server data that follow a request sooner than an RTT still belong to the
//! previous response. So requests that the client sends during a response wait for its end in a replay.

use swell_base::Dur;
use swell_traffic::{Exchange, SENT_AT_ONCE, Turn, Wire, WireEnd};

use crate::chunks::larger;
use crate::hosts::{PACE_BIN, Peak};
use crate::pairs::{PAIR_BYTES, Pairs};
use crate::superpackets::{ETHERNET, Largest};
use crate::tcp::LONGEST_RTT;

/// Smallest payload that counts as data. QUIC takes some 30 bytes of a datagram, an ACK frame up to some
/// 20 (RFC 9000 section 19.3), so shorter datagrams carry no meaningful request.
const LEAST: u32 = 64;
/// Data that the server sends sooner than this part of the RTT after a request do not answer it.
const SOONER: f64 = 0.8;
/// Number of turns that each flow may have. One with more gets room for as many again, while the model has it
/// ([`Talk::spare`]); then neighbours are merged, so that endless flows need bounded memory.
const MOST: usize = 2_048;
/// Maximum number of turns, however much room there is.
const MOST_EVER: usize = 1 << 17;
/// Minimum mean number of datagrams per turn. Below it both ends talk at once, as in a call or a game.
const PER_TURN: u64 = 3;
/// With at most this many turns, `PER_TURN` does not apply.
const FEW: u64 = 30;
/// Minimum size to which a client pads its first datagram (RFC 9000 section 14.1).
const INITIAL: u32 = 1200;
/// Difference between the TCP and the UDP header, bytes.
const BESIDE: u32 = 12;
/// Delay of ACKs by receivers (RFC 9000 section 18.2: 25 ms), rounded up.
const DELAYED_ACK: u64 = 40_000_000;

/// State of the capture around a datagram.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    /// Length of the IP packet, bytes.
    pub(crate) ip_len: u32,
    /// Packets that have passed from its sender and to its receiver, of all flows.
    pub(crate) passed: [u32; 2],
    /// Shortest spacing that the capture's clock can resolve, nanoseconds.
    pub(crate) least_gap: u64,
    /// Number of items that the model has room for, beyond those of every flow.
    pub(crate) spare: usize,
}

/// The data of a turn in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    bytes: u64,
    datagrams: u64,
    first: u64,
    last: u64,
    /// Number of turns that were merged in it, and the bytes of the largest.
    of: u64,
    largest: u64,
}

impl Part {
    /// Adds `payload` bytes in a packet of `datagrams` datagrams.
    fn add(&mut self, at: u64, [payload, datagrams]: [u64; 2]) {
        if self.datagrams == 0 {
            self.first = at;
        }
        self.last = at;
        self.datagrams += datagrams;
        self.bytes += payload.saturating_sub(u64::from(BESIDE) * datagrams);
        // Data are added to turns that are not merged yet.
        self.largest = self.bytes;
    }

    /// Both as one that begins at `first` and takes as long as they took to send.
    fn with(&self, next: &Part, first: u64) -> Part {
        let took = |p: &Part| p.last.saturating_sub(p.first);
        Part {
            bytes: self.bytes + next.bytes,
            datagrams: self.datagrams + next.datagrams,
            first,
            last: first + took(self) + took(next),
            of: self.of + next.of,
            largest: self.largest.max(next.largest),
        }
    }
}

/// Two turns as one. Of the pauses inside, that before the first response stays, and the others are added to
/// the next, so that the time of both is kept.
fn joined([a, b]: [&[Part; 2]; 2]) -> [Part; 2] {
    // Responses may end after the next request began, but no pause may become negative.
    let end = [a, b].map(|t| t[0].last.max(t[1].last));
    let end = end[0].max(end[1]);
    let first = |of: &[Part; 2]| {
        let known = of.iter().filter(|p| p.datagrams > 0);
        known.map(|p| p.first).min()
    };
    let begun = first(a).or(first(b)).unwrap_or(end);
    let mut request = a[0].with(&b[0], begun);
    request.last = request.last.min(end);
    let answered = [a, b].into_iter().find(|t| t[1].datagrams > 0);
    let think = answered.map_or(0, |t| match t[0].datagrams {
        0 => 0,
        _ => t[1].first.saturating_sub(t[0].last),
    });
    let mut response = a[1].with(&b[1], (request.last + think).min(end));
    response.last = response.last.min(end);
    [request, response]
}

/// Bytes of the responses to requests, and of all.
fn asked(turns: &[[Part; 2]]) -> [u64; 2] {
    turns
        .iter()
        .fold([0, 0], |[asked, sent], [request, response]| {
            let asks = request.bytes >= u64::from(LEAST - BESIDE);
            let own = if asks { response.bytes } else { 0 };
            [asked + own, sent + response.bytes]
        })
}

/// Why a flow does not consist of requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The server sent first.
    Unasked,
    /// The server sent no data, or none for seconds.
    Unanswered,
    /// Both ends talk at once.
    AtOnce,
    /// The server sends most data without a request, and nothing shows that this is QUIC.
    Streams,
}

/// A flow as requests and responses. Times are nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    /// Request and response.
    turns: Vec<[Part; 2]>,
    /// Number of turns before any were merged, and of those that are merged with each other at most.
    begun: u64,
    together: u64,
    /// Number of turns that the model has room for, beyond those of every flow, and how many of them this one has got.
    pub(crate) spare: usize,
    granted: usize,
    /// Bytes of responses to no request that were merged with responses to one.
    unasked: u64,
    /// RTTs from the tap to the server and to the client, from the first answers.
    pub(crate) rtt: [Option<u64>; 2],
    /// When the first datagram of the server passed.
    answered: Option<u64>,
    /// Bytes of the client since the server's last data, and when data moved last that somebody may have waited for.
    unanswered: u64,
    pub(crate) active: u64,
    /// Whether it began with a client's datagram of at least QUIC's minimum size.
    initial: bool,
    /// Whether it began inside the trace. If so, the trace started more than a UDP idle time-out before
    /// it.
    begins: bool,
    /// Datagrams with data, and without, from the client and from the server; the largest payloads.
    data: [u64; 2],
    short: [u64; 2],
    largest: [Largest; 2],
    pairs: [Pairs; 2],
    /// What the client and the server send over time.
    pub(crate) sending: [Peak; 2],
    /// Capacities from the client's and the server's pairs of datagrams, kbit/s, and their times.
    pub(crate) rates: [Vec<(u64, u64)>; 2],
}

impl Talk {
    pub(crate) fn new(begins: bool) -> Talk {
        Talk {
            begins,
            ..Talk::default()
        }
    }

    pub(crate) fn push(&mut self, at: u64, from_client: bool, payload: u32, quiet: u64) {
        let end = usize::from(!from_client);
        self.time(at, from_client);
        self.initial |= self.turns.is_empty() && from_client && payload >= INITIAL;
        self.largest[end].push(payload);
        if payload < LEAST && self.answered.is_some() {
            self.short[end] += 1;
            return;
        }
        self.unanswered = match from_client {
            true => self.unanswered.saturating_add(u64::from(payload)),
            false => 0,
        };
        if !from_client || self.unanswered > SENT_AT_ONCE {
            self.active = at;
        }
        // A capture on a host may show several datagrams in one packet.
        let datagrams = self.largest[end].segments(payload);
        let more = [u64::from(payload), datagrams];
        self.data[end] += datagrams;
        if self.turns.len() >= MOST + self.granted {
            // What will be datagrams needs no turns.
            let room = self.spare >= MOST && self.granted < MOST_EVER - MOST;
            if room && self.doubt().is_none() {
                self.granted += MOST;
            } else {
                self.merge();
            }
        }
        let pause = self.pause(quiet);
        let soon = self.rtt[0].map_or(0, |rtt| (SOONER * rtt as f64) as u64);
        let before = self.turns.len().checked_sub(2);
        match self.turns.last_mut() {
            Some([request, response]) if from_client => {
                let silent = at.saturating_sub(request.last) > pause;
                if response.datagrams == 0 && !silent {
                    request.add(at, more);
                } else {
                    self.begin(at, 0, more);
                }
            }
            Some([request, response]) => {
                let late = at.saturating_sub(request.last) < soon;
                if response.datagrams > 0 {
                    if at.saturating_sub(response.last) > pause {
                        self.begin(at, 1, more);
                    } else {
                        response.add(at, more);
                    }
                } else if let Some(before) = before.filter(|_| late) {
                    self.turns[before][1].add(at, more);
                } else {
                    response.add(at, more);
                }
            }
            None => self.begin(at, end, more),
        }
    }

    /// Takes a capacity from this datagram and the one before, if they are a pair. Datagrams of an end are
    /// in order: QUIC numbers packets anew when it repeats their data (RFC 9000 section 12.3).
    pub(crate) fn pair(&mut self, at: u64, from_client: bool, around: Around) {
        let end = usize::from(!from_client);
        self.pairs[1 - end].interrupted();
        self.sending[end].add(u64::from(around.ip_len), at, PACE_BIN);
        let Around {
            ip_len,
            passed,
            least_gap,
            ..
        } = around;
        if let Some(rate) =
            self.pairs[end].packet(true, at, [ip_len, PAIR_BYTES], least_gap, passed)
        {
            self.rates[end].push((rate, at));
        }
    }

    fn begin(&mut self, at: u64, end: usize, more: [u64; 2]) {
        let one = Part {
            of: 1,
            ..Part::default()
        };
        let mut turn = [one; 2];
        turn[end].add(at, more);
        self.turns.push(turn);
        self.begun += 1;
    }

    /// Merges neighbouring turns, those of the fewest turns first, until a quarter of the list is free. The first
    /// stays, as it tells whether the flow is QUIC, and the last two, to which data are added.
    #[cold]
    fn merge(&mut self) {
        let settled = self.turns.len().saturating_sub(2).max(1);
        let newest = self.turns.split_off(settled);
        let [before, _] = asked(&self.turns[1..]);
        self.together = self.together.max(2);
        let most = MOST + self.granted;
        loop {
            let mut merged: Vec<[Part; 2]> = Vec::with_capacity(most);
            for (i, turn) in self.turns.iter().enumerate() {
                match merged.last_mut() {
                    Some(last) if i > 1 && last[0].of + turn[0].of <= self.together => {
                        *last = joined([last, turn]);
                    }
                    _ => merged.push(*turn),
                }
            }
            self.turns = merged;
            if self.turns.len() <= most / 4 * 3 {
                break;
            }
            self.together *= 2;
        }
        let [after, _] = asked(&self.turns[1..]);
        self.unasked += after - before;
        self.turns.extend(newest);
    }

    /// Whether it had too many turns to keep them all.
    pub(crate) fn merged(&self) -> bool {
        self.begun > self.turns.len() as u64
    }

    /// Number of turns that it has got beyond those of every flow. A turn is an item of the model.
    pub(crate) fn granted(&self) -> usize {
        self.granted
    }

    /// Bytes in requests and responses that merging has made much larger, and these bytes times the factor
    /// ([`larger`]).
    pub(crate) fn larger(&self) -> (u64, f64) {
        larger(self.turns.iter().flatten().map(|p| (p.bytes, p.largest)))
    }

    /// Takes RTT samples from the first answer of either end.
    fn time(&mut self, at: u64, from_client: bool) {
        match (self.answered, from_client) {
            (None, false) => {
                self.answered = Some(at);
                let asked = self.turns.last().map(|t| t[0].last);
                let rtt = asked.map(|asked| at.saturating_sub(asked));
                self.rtt[0] = rtt.filter(|&rtt| rtt <= LONGEST_RTT);
            }
            (Some(answered), true) if self.short[0] + self.data[0] > 0 && self.rtt[1].is_none() => {
                let rtt = at.saturating_sub(answered);
                self.rtt[1] = Some(rtt).filter(|&rtt| rtt <= LONGEST_RTT);
            }
            _ => {}
        }
    }

    /// A longer silence of an end is not the network's.
    fn pause(&self, quiet: u64) -> u64 {
        match self.rtt {
            [Some(server), Some(client)] => quiet.min((server + client) * 3 / 2 + DELAYED_ACK),
            _ => quiet,
        }
    }

    /// Bytes of requests and responses so far, as a replay sends them.
    pub(crate) fn bytes(&self) -> [u64; 2] {
        [0, 1].map(|end| self.turns.iter().map(|t| t[end].bytes).sum())
    }

    /// Whether the server sends most data without a request, and the flow did not begin as QUIC does. The
    /// first turn of a flow that began before the trace is ignored, because its request is unknown.
    fn streams(&self) -> bool {
        let known = &self.turns[usize::from(!self.begins).min(self.turns.len())..];
        let [asked, sent] = asked(known);
        !self.initial && 2 * asked.saturating_sub(self.unasked) < sent
    }

    /// Payload of a full datagram of an end over TCP; 0 if unknown.
    fn mss(&self, end: usize) -> u16 {
        let largest = &self.largest[end];
        let full = match largest.payload() {
            one if one <= ETHERNET => one,
            _ => largest.full().unwrap_or(0),
        };
        u16::try_from(full.saturating_sub(BESIDE)).unwrap_or(0)
    }

    pub(crate) fn answered(&self) -> bool {
        self.answered.is_some()
    }

    /// Why it does not consist of requests and responses; `None` if it does.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let datagrams: u64 = self.data.iter().sum();
        let asks = self.turns.first().is_some_and(|t| t[0].datagrams > 0);
        let calls = self.begun > FEW && datagrams < PER_TURN * self.begun;
        match () {
            () if !asks => Some(Doubt::Unasked),
            () if self.rtt[0].is_none() || self.data[1] == 0 => Some(Doubt::Unanswered),
            () if calls => Some(Doubt::AtOnce),
            // QUIC is always under congestion control (RFC 9002 section 7), so what begins as QUIC is no doubt.
            () if self.streams() => Some(Doubt::Streams),
            () => None,
        }
    }

    /// The exchange, and the properties of its packets over TCP. `None` if it does not consist of requests
    /// and responses.
    pub(crate) fn finish(&self, ipv6: bool) -> Option<(Exchange, Wire)> {
        if self.doubt().is_some() {
            return None;
        }
        let since = |later: u64, earlier: u64| Dur::from_nanos(later.saturating_sub(earlier));
        let mut turns: Vec<Turn> = Vec::with_capacity(self.turns.len());
        // When all earlier data had passed.
        let mut passed = 0;
        for &[request, response] in &self.turns {
            if request.datagrams > 0 {
                if let Some(before) = turns.last_mut() {
                    before.client_think = since(request.first, passed);
                }
                passed = passed.max(request.last);
            }
            let server_think = match response.datagrams {
                0 => Dur::ZERO,
                _ => since(response.first, passed),
            };
            passed = passed.max(response.last);
            turns.push(Turn {
                request: request.bytes.max(u64::from(request.datagrams > 0)),
                server_think,
                response: response.bytes.max(u64::from(response.datagrams > 0)),
                client_think: Dur::ZERO,
            });
        }
        let end = |i: usize| WireEnd {
            mss: self.mss(i),
            quick_acks: None,
            ack_every: match self.short[i] {
                0 => 0,
                acks => (self.data[1 - i] as f64 / acks as f64)
                    .round()
                    .clamp(1.0, 255.0) as u8,
            },
        };
        let wire = Wire {
            ipv6,
            timestamps: Some(false),
            sack: Some(true),
            ends: [end(0), end(1)],
        };
        Some((Exchange::Sequential(turns), wire))
    }
}

#[cfg(test)]
mod tests;

//! Requests and responses inside a QUIC connection (RFC 9000), from sizes and times alone, as the rest is
//! encrypted.
//!
//! Data of the client are a request, and data that the server sends after it are a response. Datagrams too
//! short for either are ACKs. Server data that follow a request sooner than an RTT still belong to the
//! previous response. So requests that the client sends during a response wait for its end in a replay.

use swell_base::Dur;
use swell_traffic::{Exchange, Turn, Wire, WireEnd};

use super::Around;
use crate::pairs::Pairs;
use crate::superpackets::{ETHERNET, Largest};

/// Smallest payload that counts as data. QUIC takes some 30 bytes of a datagram, an ACK frame up to some
/// 20 (RFC 9000 section 19.3), so shorter datagrams carry no meaningful request.
const LEAST: u32 = 64;
/// Data that the server sends sooner than this part of the RTT after a request do not answer it.
const SOONER: f64 = 0.8;
/// Maximum number of turns; later data are added to the last.
const MOST: usize = 2_048;
/// Minimum mean number of datagrams per turn. Below it both ends talk at once, as in a call or a game.
const PER_TURN: u64 = 3;
/// With at most this many turns, `PER_TURN` does not apply.
const FEW: usize = 30;
/// Minimum size to which a client pads its first datagram (RFC 9000 section 14.1).
const INITIAL: u32 = 1200;
/// Difference between the TCP and the UDP header, bytes.
const BESIDE: u32 = 12;
/// A later first answer is no RTT sample, nanoseconds.
const LONGEST_RTT: u64 = 3_000_000_000;
/// Delay of ACKs by receivers (RFC 9000 section 18.2: 25 ms), rounded up.
const DELAYED_ACK: u64 = 40_000_000;

/// The data of a turn in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    bytes: u64,
    datagrams: u64,
    first: u64,
    last: u64,
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
    }
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
    /// RTTs from the tap to the server and to the client, from the first answers.
    pub(crate) rtt: [Option<u64>; 2],
    /// When the first datagram of the server passed.
    answered: Option<u64>,
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
    /// Capacities from the client's and the server's pairs of datagrams, kbit/s, and their times. There are
    /// at most [`MAX_PAIRS`](crate::pairs::MAX_PAIRS) each.
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
        // A capture on a host may show several datagrams in one packet.
        let datagrams = self.largest[end].segments(payload);
        let more = [u64::from(payload), datagrams];
        self.data[end] += datagrams;
        let full = self.turns.len() >= MOST;
        let pause = self.pause(quiet);
        let soon = self.rtt[0].map_or(0, |rtt| (SOONER * rtt as f64) as u64);
        let before = self.turns.len().checked_sub(2);
        match self.turns.last_mut() {
            Some(last) if full => last[end].add(at, more),
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
        let Around {
            ip_len,
            passed,
            least_gap,
        } = around;
        if let Some(rate) = self.pairs[end].packet(true, at, ip_len, least_gap, passed) {
            self.rates[end].push((rate, at));
        }
    }

    fn begin(&mut self, at: u64, end: usize, more: [u64; 2]) {
        let mut turn = [Part::default(); 2];
        turn[end].add(at, more);
        self.turns.push(turn);
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
        let (mut asked, mut sent) = (0, 0);
        for [request, response] in known {
            let asks = request.bytes >= u64::from(LEAST - BESIDE);
            asked += if asks { response.bytes } else { 0 };
            sent += response.bytes;
        }
        !self.initial && 2 * asked < sent
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

    /// Why it does not consist of requests and responses; `None` if it does.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let datagrams: u64 = self.data.iter().sum();
        let asks = self.turns.first().is_some_and(|t| t[0].datagrams > 0);
        let calls = self.turns.len() > FEW && datagrams < PER_TURN * self.turns.len() as u64;
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
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const QUIET: u64 = 500 * MS;

    /// A page over QUIC: RTTs are 40 ms to the server and 4 ms to the client, the think time is 15 ms.
    /// Responses have `sizes` datagrams; requests are a second apart.
    fn page(sizes: &[u32]) -> Talk {
        let mut talk = Talk::default();
        talk.push(0, true, 1_212, QUIET);
        talk.push(40 * MS, false, 1_212, QUIET);
        talk.push(41 * MS, false, 1_212, QUIET);
        talk.push(44 * MS, true, 80, QUIET);
        for (i, &n) in (0..).zip(sizes) {
            let mut at = (1_000 * (i + 1)) * MS;
            talk.push(at, true, 312, QUIET);
            at += 55 * MS;
            for k in 0..n {
                talk.push(at + u64::from(k) * MS, false, 1_212, QUIET);
                if k % 2 == 1 {
                    talk.push(at + u64::from(k) * MS + 4 * MS, true, 35, QUIET);
                }
            }
        }
        talk
    }

    #[test]
    fn a_page_is_requests_and_responses() {
        let talk = page(&[10, 200]);
        assert_eq!(talk.rtt, [Some(40 * MS), Some(4 * MS)]);
        let (exchange, wire) = talk.finish(false).expect("a talk");
        let Exchange::Sequential(turns) = &exchange else {
            panic!("{exchange:?}");
        };
        let sizes: Vec<_> = turns.iter().map(|t| (t.request, t.response)).collect();
        assert_eq!(
            sizes,
            [(1_200, 2_400), (68, 0), (300, 12_000), (300, 240_000)]
        );
        // As the tap saw them; path delays are subtracted later.
        let thinks: Vec<_> = turns
            .iter()
            .map(|t| t.server_think.as_nanos() / MS)
            .collect();
        assert_eq!(thinks, [40, 0, 55, 55]);
        let pauses: Vec<_> = turns
            .iter()
            .map(|t| t.client_think.as_nanos() / MS)
            .collect();
        assert_eq!(pauses, [3, 956, 936, 0]);
        assert_eq!(wire.ends.map(|e| e.mss), [1_200, 1_200]);
        assert_eq!((wire.ends[0].ack_every, wire.timestamps), (2, Some(false)));
        assert_eq!(exchange.bytes(), talk.bytes());
    }

    /// The same page as a host shows it that sends and receives ten datagrams at once.
    #[test]
    fn joined_datagrams_count_one_by_one() {
        for single in [false, true] {
            let mut talk = page(&[]);
            for i in 0..40 {
                let at = 1_000 * (i + 1) * MS;
                talk.push(at, true, 312, QUIET);
                talk.push(at + 55 * MS, false, 12_120, QUIET);
                talk.push(at + 55 * MS + 1, false, 12_120, QUIET);
                if single {
                    talk.push(at + 55 * MS + 2, false, 1_212, QUIET);
                }
            }
            let (exchange, wire) = talk.finish(false).expect("a talk");
            assert_eq!(wire.ends[1].mss, 1_200);
            let per_turn = 24_000 + 1_200 * u64::from(single);
            assert_eq!(exchange.bytes()[1], 2_400 + 40 * per_turn);
        }
        // Nothing tells the size of these.
        let mut talk = Talk::default();
        talk.push(0, true, 1_212, QUIET);
        talk.push(40 * MS, false, 12_120, QUIET);
        let (_, wire) = talk.finish(false).expect("a talk");
        assert_eq!(wire.ends.map(|e| e.mss), [1_200, 0]);
    }

    /// A request during a response: data within an RTT after it still belong to that response.
    #[test]
    fn what_comes_too_soon_is_no_answer() {
        let mut talk = page(&[20]);
        // The response to the first request began at 1055 ms. It continues until the second request can
        // have arrived.
        talk.push(1_070 * MS, true, 212, QUIET);
        for k in 0..10 {
            talk.push((1_076 + k) * MS, false, 1_212, QUIET);
        }
        talk.push(1_115 * MS, false, 712, QUIET);
        let (exchange, _) = talk.finish(false).expect("a talk");
        let Exchange::Sequential(turns) = exchange else {
            panic!("no turns");
        };
        let last: Vec<_> = turns[2..].iter().map(|t| (t.request, t.response)).collect();
        assert_eq!(last, [(300, 36_000), (200, 700)]);
        assert_eq!(turns[2].client_think, Dur::ZERO);
    }

    #[test]
    fn a_stream_pauses_by_itself_and_a_call_is_none() {
        let mut talk = page(&[10]);
        for k in 0..10 {
            talk.push((3_000 + k) * MS, false, 1_212, QUIET);
        }
        let Some((Exchange::Sequential(turns), _)) = talk.finish(false) else {
            panic!("no turns");
        };
        let last = turns.last().expect("a turn");
        assert_eq!((last.request, last.response), (0, 12_000));
        assert_eq!(last.server_think, Dur::from_millis(3_000 - 1_064));
        let mut call = Talk::default();
        for k in 0..200 {
            call.push(20 * k * MS, true, 172, QUIET);
            call.push((20 * k + 9) * MS, false, 172, QUIET);
        }
        assert_eq!(call.doubt(), Some(Doubt::AtOnce));
        // The same server without requests, in a flow that does not begin like QUIC.
        let stream = |begins: bool, first: u32, bursts: u64| {
            let mut stream = Talk::new(begins);
            stream.push(0, true, first, QUIET);
            for burst in 0..bursts {
                for k in 0..200 {
                    let at = (20 + 10_000 * burst + 5 * k) * MS;
                    stream.push(at, false, 1_250, QUIET);
                    if k % 10 == 9 {
                        stream.push(at, true, 40, QUIET);
                    }
                }
            }
            stream.finish(false).is_some()
        };
        assert!(!stream(true, 40, 5) && !stream(true, 40, 1));
        assert!(stream(true, 1_200, 5), "QUIC is under congestion control");
        // Data in flight before the trace may have been requested; the later bursts were not.
        assert!(stream(false, 40, 1) && !stream(false, 40, 2));
        let mut nobody = Talk::default();
        nobody.push(0, true, 1_212, QUIET);
        nobody.push(1_000 * MS, true, 1_212, QUIET);
        assert!(nobody.finish(false).is_none());
    }

    #[test]
    fn endless_flows_need_bounded_memory_and_keep_their_bytes() {
        let mut talk = page(&[]);
        let before = talk.bytes();
        for k in 0..3 * MOST as u64 {
            talk.push((2_000 + 1_000 * k) * MS, true, 112, QUIET);
            talk.push((2_050 + 1_000 * k) * MS, false, 1_012, QUIET);
        }
        assert_eq!(talk.turns.len(), MOST);
        let n = 3 * MOST as u64;
        assert_eq!(talk.bytes(), [before[0] + 100 * n, before[1] + 1_000 * n]);
    }

    /// A flow that the server begins, one that it answers after seconds, and one that it only acknowledges
    /// do not consist of requests and responses.
    #[test]
    fn what_nobody_asked_or_answered_is_no_talk() {
        let first = |from_client: bool, later: u64, payload: u32| {
            let mut talk = Talk::default();
            talk.push(0, from_client, 1_212, QUIET);
            talk.push(later * MS, !from_client, payload, QUIET);
            talk.push((later + 5) * MS, true, 312, QUIET);
            talk.push((later + 60) * MS, false, payload, QUIET);
            assert_eq!(talk.finish(false).is_none(), talk.doubt().is_some());
            talk.doubt()
        };
        assert_eq!(first(true, 40, 1_212), None);
        assert_eq!(first(false, 40, 1_212), Some(Doubt::Unasked));
        assert_eq!(first(true, 3_000, 1_212), None);
        assert_eq!(first(true, 3_001, 1_212), Some(Doubt::Unanswered));
        assert_eq!(first(true, 40, 64), None);
        assert_eq!(first(true, 40, 63), Some(Doubt::Unanswered));
    }

    /// A silence of the server of more than 1.5 RTTs plus a delayed ACK is its own: here 66 and 40 ms.
    #[test]
    fn pauses_longer_than_the_networks_are_the_servers() {
        for (silence, turns) in [(105, 4), (106, 4), (107, 5)] {
            let mut talk = page(&[10, 1]);
            talk.push((2_055 + silence) * MS, false, 1_212, QUIET);
            let Some((Exchange::Sequential(found), _)) = talk.finish(false) else {
                panic!("no turns");
            };
            assert_eq!(found.len(), turns, "{silence} ms");
        }
    }
}

//! One TCP connection as it passes the tap.
//!
//! Follows RFC 9293. Sequence numbers become 64-bit offsets (0 is the SYN, 1 the first byte), at the
//! nearest distance modulo 2^32 to those seen before, so wrapping needs no special case. Payload lengths
//! come from the IP header, so a snap length that cuts payload does not matter.

use swell_capture::Tcp as Header;

use swell_traffic::{SENT_AT_ONCE, Wire, WireEnd};

use crate::chunks::{Chunks, Data, Idle};
use crate::clock::LEAST_GAP;
use crate::pairs::PAIR_BYTES;
use crate::passed::Passed;

mod acks;
mod around;
mod delivered;
mod flight;
mod half;
mod holes;
mod observed;
mod progress;
mod releases;
mod sizes;
mod stamps;
mod timer;
mod window;

use around::{Around, By};
use flight::BATCH;
pub(crate) use half::{Half, MAX_JUMP, Seen};
use observed::DUPLICATE;
pub(crate) use observed::Observed;
pub(crate) use stamps::Least;
use stamps::Stamps;
use window::MAX_SHIFT;

/// A connection being tracked. Index 0 is the client's direction, 1 the server's.
#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) halves: [Half; 2],
    pub(crate) chunks: Chunks,
    /// First packet, nanoseconds since the trace began.
    pub(crate) start: u64,
    /// Times of the client's SYNs.
    pub(crate) syns: Vec<u64>,
    pub(crate) syn_ack: Option<u64>,
    syn_acks: u32,
    /// When the client's ACK of the SYN/ACK passed, or the first data if that ACK was not seen.
    pub(crate) opened: Option<u64>,
    pub(crate) handshake: bool,
    /// When data moved last that somebody may have waited for.
    active: u64,
    /// Bytes that the client has sent since the server's last data.
    unanswered: u64,
    /// The end that reset it, and when.
    pub(crate) reset: Option<(usize, u64)>,
    /// Handshake RTTs on the server's and the client's side, nanoseconds.
    pub(crate) rtt: [Option<u64>; 2],
    /// The same from the shortest answers to data and timestamps.
    stamps: Stamps,
    /// The latest RTTs to each end: by its echo of a timestamp, once it has lost data, and by its ACKs of data,
    /// nanoseconds.
    latest: [[Option<u64>; 2]; 2],
    /// Progress when the user's next group began, if anything passed since.
    pub(crate) overtaken: Option<Passed>,
    /// Shortest packet spacing that the capture's clock can resolve, nanoseconds.
    pub(crate) least_gap: u64,
    /// Packets that have passed from the sender of the current packet and to its receiver, that packet
    /// included.
    pub(crate) passed: [u32; 2],
    /// Whether the SYN and the SYN/ACK permit selective acknowledgements; `None` if not seen.
    sack: [Option<bool>; 2],
}

/// A SYN over IPv4 without options. A SYN with options is longer, over IPv6 too.
const BARE_SYN: u32 = 40;

/// Delay of ACKs by receivers: Linux `TCP_DELACK_MIN`, 40 ms. RFC 1122 section 4.2.3.2 allows 500 ms. With
/// receivers that delay longer, some network pauses are mistaken for pauses of the application.
const DELAYED_ACK: u64 = 40_000_000;
/// Shorter pauses after a short segment are those of an application that writes on and on.
const LEAST_PAUSE: u64 = 2_000_000;
/// Later answers are no RTT samples. The sender would have retransmitted by then (RFC 2988 section 2.1: 3
/// s before any measurement; RFC 6298: 1 s), so the capture lacks a packet.
pub(crate) const LONGEST_RTT: u64 = 3_000_000_000;
/// What follows an ACK of everything counts as its answer only if it comes within this, nanoseconds. Later it is
/// likely to be the application's next data.
const WHOLE_WINDOW: u64 = 100_000_000;

/// Maximum number of SYN times kept per attempt.
const MAX_SYNS: usize = 16;
/// If a connection's RTT is unknown, a segment that fills a hole later than this counts as a
/// retransmission, not as reordering.
const UNKNOWN_RTT: u64 = 20_000_000;

impl Tracked {
    pub(crate) fn new(start: u64) -> Tracked {
        Tracked {
            halves: [Half::default(), Half::default()],
            chunks: Chunks::default(),
            start,
            syns: Vec::new(),
            syn_ack: None,
            syn_acks: 0,
            opened: None,
            active: 0,
            unanswered: 0,
            handshake: false,
            reset: None,
            rtt: [None, None],
            stamps: Stamps::default(),
            latest: [[None; 2]; 2],
            overtaken: None,
            least_gap: LEAST_GAP,
            passed: [0; 2],
            sack: [None; 2],
        }
    }

    /// What has passed so far.
    pub(crate) fn progress(&self) -> Passed {
        Passed {
            bytes: self.chunks.bytes(),
            packets: [self.syns.len() as u64, 0],
        }
    }

    /// Properties of its packets. The connection itself does not know `ipv6`.
    pub(crate) fn wire(&self, ipv6: bool) -> Wire {
        let end = |i: usize| {
            let [sends, answers] = [&self.halves[i], &self.halves[1 - i]];
            WireEnd {
                mss: sends.sizes.mss(answers.announced),
                quick_acks: answers.acks.quick(),
                ack_every: answers.acks.every(),
            }
        };
        let timestamps = self.halves.iter().filter_map(|h| h.sizes.timestamps);
        Wire {
            ipv6,
            // Sent by both ends or by none (RFC 7323 section 3.2).
            timestamps: timestamps.reduce(|a, b| a && b),
            // Used if both SYNs permit it (RFC 2018 section 2).
            sack: self.sack[0].zip(self.sack[1]).map(|(a, b)| a && b),
            ends: [end(0), end(1)],
        }
    }

    /// Bytes of each end in packets that hold several segments, and whether their size is unknown.
    pub(crate) fn joined(&self) -> [(u64, bool); 2] {
        [0, 1].map(|i| {
            let (sizes, allowed) = (&self.halves[i].sizes, self.halves[1 - i].announced);
            (sizes.joined(allowed), sizes.mss(allowed) == 0)
        })
    }

    /// Whether it began before the trace: neither SYN nor SYN/ACK was seen.
    pub(crate) fn left_censored(&self) -> bool {
        self.syns.is_empty() && self.syn_ack.is_none()
    }

    /// Whether it consists of SYNs that were never answered by a SYN/ACK or data.
    pub(crate) fn attempt(&self) -> bool {
        !self.syns.is_empty() && self.syn_ack.is_none() && self.chunks.is_empty()
    }

    /// Whether only stragglers can follow.
    pub(crate) fn closed(&self) -> bool {
        self.reset.is_some() || self.halves.iter().all(|h| h.fin)
    }

    /// When data moved last that the user's next group may have waited for ([`Connection::awaited`]), seen or inferred
    /// from ACKs, or the handshake.
    pub(crate) fn last_active(&self) -> u64 {
        let tried = self.syns.last().copied().unwrap_or(self.start);
        let opened = self.syn_ack.or(self.opened).unwrap_or(0);
        self.active.max(tried).max(opened)
    }

    /// The initial sequence number of the client, if seen.
    pub(crate) fn client_isn(&self) -> Option<u32> {
        (!self.syns.is_empty()).then_some(self.halves[0].base)
    }

    /// End-to-end RTT, for distinguishing reordering from loss.
    fn round_trip(&self) -> u64 {
        match ([0, 1].map(|end| self.path(end)), self.rtt) {
            ([Some(c), Some(s)], _) => s + c,
            (_, [Some(one), None] | [None, Some(one)]) => one,
            ([one, other], _) => one.or(other).unwrap_or(0).max(UNKNOWN_RTT),
        }
    }

    /// RTT to an end (0 client, 1 server), nanoseconds: of the handshake, or the shortest of several answers.
    fn path(&self, end: usize) -> Option<u64> {
        let known = self.rtt[1 - end];
        known.or_else(|| {
            let least = self.stamps.least(end)?;
            Some(match least.sound() {
                true => least.took,
                false => least.took.min(UNKNOWN_RTT),
            })
        })
    }

    /// The shortest of several answers of an end whose part of the handshake was not seen.
    pub(crate) fn echo(&self, end: usize) -> Option<Least> {
        let least = self.stamps.least(end).filter(Least::sound);
        least.filter(|_| self.rtt[1 - end].is_none())
    }

    /// The time since the packet passed whose timestamp a packet of end `from` echoes, if that is an RTT.
    fn echoed(&mut self, from: usize, at: u64, stamps: [u32; 2], h: &Header) -> Option<u64> {
        let bulk = |end: usize| {
            let full = self.halves[end].sizes.full(self.halves[1 - end].announced);
            self.halves[end].flight.most() >= 2 * u64::from(full)
        };
        let to = &self.halves[1 - from];
        // A receiver acknowledges data of a bulk transfer at once, and ACKs clock a sender that has data in flight.
        // One without may send the next window then, or wait for its application.
        let longest = if h.payload > 0 && bulk(from) || to.data_beyond(h.ack, to.data_next()) {
            LONGEST_RTT
        } else if bulk(1 - from) {
            WHOLE_WINDOW
        } else {
            0
        };
        let syn = h.has(Header::SYN);
        self.stamps.packet(from, at, stamps, longest, syn)
    }

    /// End-to-end RTT if both its parts are known, nanoseconds.
    fn known(&self) -> Option<u64> {
        let part = |end: usize| self.rtt[1 - end].or(self.echo(end).map(|least| least.took));
        Some(part(0)? + part(1)?)
    }

    /// When the client could have sent its first data. If its first ACK carried them, this is earlier than
    /// that ACK, as far as the RTT is known.
    pub(crate) fn ready(&self) -> u64 {
        let opened = self.opened.unwrap_or(self.start);
        match (self.syn_ack, self.path(0)) {
            (Some(at), Some(rtt)) if self.handshake && self.syn_acks == 1 => opened.min(at + rtt),
            _ => opened,
        }
    }

    /// A silence with nothing unacknowledged that is longer than this is the application's. TCP itself,
    /// with data to send, waits at most for an ACK in flight: one RTT plus the receiver's delay. The limit
    /// is `quiet` at most, and `quiet` if the RTT is unknown.
    fn pause(&self, quiet: u64) -> u64 {
        self.known()
            .map_or(quiet, |rtt| quiet.min(rtt + DELAYED_ACK))
    }

    /// By how many bits the windows of end `from` are shifted; `None` if the SYNs were not seen.
    fn shift(&self, from: usize) -> Option<u8> {
        match (&self.halves[0].window_scale, &self.halves[1].window_scale) {
            (Some(Some(a)), Some(Some(b))) => Some([*a, *b][from]),
            (Some(_), Some(_)) => Some(0),
            _ => None,
        }
    }

    /// Whether end `from` could have sent its data earlier than at time `at`, well after its `last`.
    fn idle(&self, from: usize, at: u64, last: Option<u64>) -> Idle {
        let half = &self.halves[from];
        let Some(last) = last else {
            return Idle::No;
        };
        let known = self.known();
        let jitter = (4 * self.least_gap).max(known.unwrap_or(0) / 8);
        let idle = |room: Option<u64>| room.map_or(0, |since| at.saturating_sub(last.max(since)));
        let room = half.room;
        let segment = idle(room.segment);
        let full = u64::from(half.sizes.full(self.halves[1 - from].announced));
        // A paced sender sends two segments at a time when it is slow (Linux `tcp_tso_autosize`).
        let paced =
            |round_trip: u64| round_trip.saturating_mul(2 * full) / half.flight.most().max(1);
        match known {
            _ if segment <= LEAST_PAUSE.max(jitter) => Idle::No,
            Some(rtt) if idle(room.burst) > BATCH.max(jitter).max(2 * paced(rtt)) => Idle::Yes,
            // Single segments with pauses between are those of a slow link.
            None if segment > BATCH && room.before > full => Idle::Perhaps,
            _ => Idle::Written,
        }
    }

    /// Handles a packet from end `from` (0 client, 1 server) at time `at`.
    pub(crate) fn packet(
        &mut self,
        from: usize,
        at: u64,
        ip_len: u32,
        h: &Header,
        quiet: u64,
    ) -> Observed {
        let mut observed = Observed::default();
        if h.has(Header::RST) {
            // Hosts ignore one with a number far from the others (RFC 5961 section 3.2).
            if self.halves[from].plausible(h.seq) {
                self.reset = Some((from, at));
            }
            return observed;
        }
        if h.has(Header::SYN) {
            self.syn(from, at, ip_len, h, &mut observed);
        }
        let losing = self.halves.iter().any(|half| half.lost_before > 0);
        if (losing || self.rtt.contains(&None))
            && let Some((value, echo)) = h.options.timestamps
            && let Some(took) = self.echoed(from, at, [value, echo], h)
            && losing
            && h.payload > 0
        {
            self.latest[from][0] = Some(took);
            observed.sending = Some(took);
        }
        let round_trip = self.round_trip();
        let quiet = self.pause(quiet);
        let to = 1 - from;
        let counted = self.counted(from);
        let down = from == 1;
        self.halves[to].interrupted();

        // The ACK: progress of the other direction.
        let mut settled_by_tap = true;
        if h.has(Header::ACK) {
            let allowed = self.halves[from].announced;
            let full = self.halves[to].sizes.full(allowed);
            let by = By {
                pure: h.payload == 0 && !h.has(Header::FIN),
                full,
                // Where no handshake tells that larger ones are not permitted, small ones may be small writes.
                least: allowed.map_or(PAIR_BYTES, |_| full.min(PAIR_BYTES)),
                stamp: h.options.timestamps.map(|t| t.0),
                sack: h.options.sack,
                round_trip: self.path(from).unwrap_or(UNKNOWN_RTT),
                least_gap: self.least_gap,
            };
            let unseen = self.halves[to].acknowledged(h.ack, at, &by, &mut observed);
            if !h.has(Header::SYN) {
                let acked = self.halves[to].acked();
                // A scale that is not known may be any.
                let edge = match self.shift(from) {
                    Some(shift) => acked + (u64::from(h.window) << shift.min(MAX_SHIFT)),
                    None => u64::MAX,
                };
                if self.rtt[from].is_none() && self.halves[to].data_next() > 1 {
                    let echo = self.echo(to).map_or(UNKNOWN_RTT, |least| least.took);
                    self.halves[to].releases.acked(at, echo);
                }
                let back = self.rtt[from].unwrap_or(0);
                let settled = self.halves[to].settled();
                self.halves[to]
                    .flight
                    .acked(at, [acked, edge], back, settled);
            }
            if let Some(sample) = self.halves[to].take_sample()
                && sample <= LONGEST_RTT
            {
                self.stamps.sample(from, sample, at);
                self.latest[from][1] = Some(sample);
                self.chunks.answered(!down, sample, at);
                observed.rtt.get_or_insert((from, false, sample));
            }
            if let Some((took, weight)) = self.halves[to].timer.take()
                && took <= LONGEST_RTT
            {
                self.latest[from][1] = Some(took);
                self.chunks.answered(!down, took, at);
                observed.bulk = Some((took, weight));
            }
            if by.pure && self.halves[to].settled() {
                self.chunks.settled(!down, at);
            }
            if unseen > 0 {
                // The other direction does not pass this tap: its bytes are inferred from ACKs.
                settled_by_tap = false;
                let data = Data {
                    down: !down,
                    bytes: unseen,
                    at,
                    settled: false,
                    write: false,
                    got: 0,
                    free: 0,
                    idle: Idle::No,
                };
                self.chunks.push(&data, quiet);
                self.moved(to, unseen, &mut observed);
            }
        }

        // Data, and the proof of concurrency. These data were sent before the other side's latest data had
        // arrived. The other side also sent those before these had arrived.
        let other_next = self.halves[to].data_next();
        let around = Around {
            round_trip,
            back: self.rtt[to].unwrap_or(0),
            timed: self.rtt[to].is_some(),
            echo: self.echo(from).map(|least| least.took),
            forth: self.path(to).unwrap_or(UNKNOWN_RTT),
            sack: self.sack == [Some(true); 2],
            allowed: self.halves[to].announced,
            least_gap: self.least_gap,
            passed: self.passed,
            waited: [self.latest[from][0], self.latest[to][1]],
        };
        let half = &mut self.halves[from];
        half.passed[0] += u64::from(h.payload);
        let last = half.last_at();
        let settled = half.settled() && settled_by_tap && half.knew(h.options.timestamps);
        match half.segment(at, ip_len, h, &around, &mut observed) {
            Seen::Nothing => {}
            Seen::Again => {
                self.chunks.late(down, 0, at);
                // The client waits for what it lacks.
                observed.active |= down && !self.halves[from].settled();
            }
            Seen::Filled(bytes) => {
                self.chunks.late(down, bytes, at);
                self.moved(from, bytes, &mut observed);
            }
            Seen::New(bytes, write) => {
                // An end that resets a connection sends nothing more, so the RST was not its own.
                self.reset =
                    (self.reset).filter(|&(by, then)| by != from || at - then <= round_trip);
                if h.has(Header::ACK) && self.halves[to].data_beyond(h.ack, other_next) {
                    self.chunks.set_concurrent();
                }
                self.opened.get_or_insert(at);
                let next = self.halves[from].data_next();
                let told = self.halves[from].told();
                self.halves[to].window.data(at, [told, next], round_trip);
                let got = match h.has(Header::ACK) {
                    true => self.halves[to].bytes_before(h.ack),
                    false => 0,
                };
                let receiver = self.rtt[from].unwrap_or(0);
                let idle = self.idle(from, at, last);
                let data = Data {
                    down,
                    bytes,
                    at,
                    settled,
                    write,
                    got,
                    free: self.halves[from].acked_at.saturating_sub(receiver),
                    idle,
                };
                self.chunks.push(&data, quiet);
                self.moved(from, bytes, &mut observed);
            }
        }

        // The third packet of the handshake.
        if from == 0 && !h.has(Header::SYN) && h.has(Header::ACK) && !self.handshake {
            if let Some(t) = self.syn_ack
                && self.halves[1].acked_syn()
                && !self.syns.is_empty()
            {
                self.handshake = true;
                self.opened = Some(at);
                // With data in it, the client's own time until it wrote them is part of the delay.
                if self.syn_acks == 1 && h.payload == 0 && at - t <= LONGEST_RTT {
                    self.rtt[1] = Some(at - t);
                    self.chunks.answered(true, at - t, at);
                    observed.rtt = Some((0, true, at - t));
                }
            }
            self.opened.get_or_insert(at);
        }
        if !h.has(Header::SYN)
            && let Some(shift) = self.shift(from)
        {
            let acked = self.halves[to].acked();
            self.halves[from].window.offered(h.window, shift, acked);
        }
        if observed.active {
            self.active = at;
        }
        let [sent, before, beyond] = self.counted(from);
        observed.sent = sent - counted[0];
        observed.lost = [before - counted[1], beyond - counted[2]];
        observed
    }

    /// Data packets of an end, those lost before the tap, and those of the other end lost beyond the tap.
    fn counted(&self, from: usize) -> [u64; 3] {
        let [own, other] = [&self.halves[from], &self.halves[1 - from]];
        [own.packets, own.lost_before, other.lost_beyond]
    }

    /// `bytes` of new data have moved.
    fn moved(&mut self, from: usize, bytes: u64, observed: &mut Observed) {
        self.unanswered = match from {
            0 => self.unanswered.saturating_add(bytes),
            _ => 0,
        };
        observed.active |= from == 1 || self.unanswered > SENT_AT_ONCE;
    }

    fn syn(&mut self, from: usize, at: u64, ip_len: u32, h: &Header, observed: &mut Observed) {
        if from == 0 && !h.has(Header::ACK) {
            let copy = self.syns.last().is_some_and(|&t| at - t < DUPLICATE);
            if self.syns.len() < MAX_SYNS && self.syn_ack.is_none() && !copy {
                self.syns.push(at);
                observed.active = true;
            }
        } else if from == 1 && h.has(Header::ACK) {
            self.syn_acks += 1;
            if self.syn_ack.is_none() {
                observed.active = true;
                self.syn_ack = Some(at);
                // Karn's algorithm: with a repeated SYN it is unknown which one was answered.
                if let [syn] = self.syns[..]
                    && at - syn <= LONGEST_RTT
                {
                    self.rtt[0] = Some(at - syn);
                    self.chunks.answered(false, at - syn, at);
                    observed.rtt = Some((1, true, at - syn));
                }
            } else if !self.handshake {
                self.syn_ack = Some(at);
            }
        }
        let half = &mut self.halves[from];
        half.window_scale.get_or_insert(h.options.window_scale);
        half.announced = h.options.mss.filter(|&mss| mss > 0).or(half.announced);
        half.sizes.own = half.announced;
        // Options cut off by a short snap length look absent; the IP length tells the difference.
        let bare = ip_len <= h.payload + BARE_SYN;
        if bare || h.options.mss.is_some() {
            self.sack[from] = Some(h.options.sack_permitted);
        }
    }
}

#[cfg(test)]
mod tests;

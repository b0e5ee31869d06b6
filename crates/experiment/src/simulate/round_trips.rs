//! Round trips and windows of the foreground's connections, as an end of a connection sees them in its packets.
//!
//! A tap on the link nearest to an end shows each packet that the end sends or receives; the access path between the two
//! has a known delay. A packet's round trip lasts from its transmission to the first acknowledgement that covers it. A
//! window is what an end sends from one packet until that packet is acknowledged.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Direction, Dur, Flags, Packet, Segment, Tag, Time};
use swell_world::{Parties, Tap};

use crate::observe::{RoundTrip, Shown, WindowGap};

/// Observes the foreground's packets at the two outer links of its path. Clones share their state.
#[derive(Clone, Default)]
pub(super) struct Ends(Arc<Mutex<BTreeMap<Key, Vec<Sight>>>>);

/// A connection, and the direction in which the end that is meant sends.
type Key = (u32, Direction);

/// A packet that crosses the link nearest to an end.
struct Sight {
    /// When it came to that link from the end, or came out of it towards the end.
    at: Time,
    /// Whether the end sent it.
    sent: bool,
    segment: Segment,
}

/// [`Ends`] at one link, of one workload.
struct At {
    ends: Ends,
    own: u32,
    /// The directions in which the ends next to this link send.
    sends: Vec<Direction>,
}

impl Ends {
    /// The taps for the outer links of a path: the client's and the server's, which may be the same. Packets of other
    /// workloads than `own` are not kept.
    pub fn taps(&self, [client, server]: [usize; 2], own: u32) -> Vec<(usize, Box<dyn Tap>)> {
        let mut sends: BTreeMap<usize, Vec<Direction>> = BTreeMap::new();
        sends.entry(client).or_default().push(Direction::Up);
        sends.entry(server).or_default().push(Direction::Down);
        let tap = |(link, directions)| {
            let ends = self.clone();
            let tap: Box<dyn Tap> = Box::new(At {
                ends,
                own,
                sends: directions,
            });
            (link, tap)
        };
        sends.into_iter().map(tap).collect()
    }

    /// The tables `rtts` and `gaps`. `access` is the delay of the access path at each end.
    pub fn tables(&self, access: Dur) -> (Vec<RoundTrip>, Vec<WindowGap>) {
        let seen = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        // Connections are numbered in the order of their first packets.
        let mut first: BTreeMap<u32, Time> = BTreeMap::new();
        for (&(conn, _), sights) in &seen {
            let begin = sights.first().map_or(Time::ZERO, |s| s.at);
            let known = first.entry(conn).or_insert(begin);
            *known = begin.min(*known);
        }
        let mut order: Vec<_> = first.into_iter().map(|(conn, at)| (at, conn)).collect();
        order.sort_unstable();
        let number: BTreeMap<u32, u32> = order.iter().map(|o| o.1).zip(0..).collect();
        let (mut trips, mut gaps) = (Vec::new(), Vec::new());
        for ((conn, direction), sights) in seen {
            let connection = number.get(&conn).copied().unwrap_or(conn);
            let mut end = End::new(connection, direction);
            // By the clock of the end. Of one instant, what it received comes first: it may be why it sent.
            let mut timed: Vec<(Time, bool, Segment)> = sights
                .into_iter()
                .map(|s| match s.sent {
                    true => (s.at - access, true, s.segment),
                    false => (s.at + access, false, s.segment),
                })
                .collect();
            timed.sort_by_key(|&(at, sent, _)| (at, sent));
            for (at, sent, segment) in &timed {
                match sent {
                    true => end.sends(*at, segment),
                    false => end.receives(*at, segment),
                }
            }
            trips.append(&mut end.trips);
            gaps.append(&mut end.gaps);
        }
        trips.sort_by(|a, b| {
            (a.at.total_cmp(&b.at))
                .then((a.connection, a.direction).cmp(&(b.connection, b.direction)))
        });
        gaps.sort_by(|a, b| {
            (a.at.total_cmp(&b.at))
                .then((a.connection, a.direction).cmp(&(b.connection, b.direction)))
        });
        (trips, gaps)
    }
}

impl At {
    /// A packet that comes to the link (`sent`) or out of it.
    fn sees(&self, at: Time, sent: bool, parties: &Parties, to_server: bool, packet: &Packet) {
        if packet.tag != Tag::Foreground || !parties.tcp || parties.workload != self.own {
            return;
        }
        // Of an end that sends up, what goes to the server is sent by it, and everything else is for it.
        let from = |d: Direction| to_server == (d == Direction::Up);
        for &direction in self.sends.iter().filter(|&&d| from(d) == sent) {
            let mut seen = (self.ends.0.lock()).unwrap_or_else(PoisonError::into_inner);
            seen.entry((parties.conn.0, direction))
                .or_default()
                .push(Sight {
                    at,
                    sent,
                    segment: packet.head.seg,
                });
        }
    }
}

impl Tap for At {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        self.sees(at, false, parties, to_server, packet);
    }

    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        self.sees(at, true, parties, to_server, packet);
    }
}

/// A packet that its sender waits to see acknowledged.
struct Unacknowledged {
    /// Its first sequence number, and the one after its last.
    from: u64,
    to: u64,
    sent: Time,
    shown: Shown,
    /// Whether any of it was sent again: an acknowledgement may be for either copy (Karn).
    again: bool,
}

/// One end of a connection.
struct End {
    connection: u32,
    direction: Direction,
    open: VecDeque<Unacknowledged>,
    /// The sequence number after the last one that was sent, and after the last data that was received.
    next: u64,
    received: u64,
    /// The last data of the current row of data, until the other end sends something.
    last: Option<Time>,
    /// The end of the first packet of the current window; `None` once it is acknowledged.
    window: Option<u64>,
    trips: Vec<RoundTrip>,
    gaps: Vec<WindowGap>,
}

impl End {
    fn new(connection: u32, direction: Direction) -> End {
        End {
            connection,
            direction,
            open: VecDeque::new(),
            next: 0,
            received: 0,
            last: None,
            window: None,
            trips: Vec::new(),
            gaps: Vec::new(),
        }
    }

    fn sends(&mut self, at: Time, segment: &Segment) {
        let opens = segment.flags.has(Flags::SYN);
        let to = segment.seq + u64::from(segment.len) + u64::from(opens);
        if to == segment.seq {
            return;
        }
        for other in &mut self.open {
            other.again |= other.from < to && segment.seq < other.to;
        }
        let new = to > self.next;
        if new {
            self.open.push_back(Unacknowledged {
                from: segment.seq,
                to,
                sent: at,
                shown: if opens { Shown::Handshake } else { Shown::Data },
                // What was partly sent before.
                again: segment.seq < self.next,
            });
            self.next = to;
        }
        if opens {
            return;
        }
        // Data that is sent again begins no window.
        if new && self.window.is_none() {
            if let Some(last) = self.last {
                self.gaps.push(WindowGap {
                    connection: self.connection,
                    direction: self.direction,
                    at: last.as_secs_f64(),
                    gap: at.since(last).as_secs_f64(),
                });
            }
            self.window = Some(to);
        }
        self.last = Some(at);
    }

    fn receives(&mut self, at: Time, segment: &Segment) {
        if segment.flags.has(Flags::ACK) {
            self.acknowledged(at, segment.ack);
        }
        let to = segment.seq + u64::from(segment.len);
        if segment.len > 0 && to > self.received {
            self.received = to;
            // What this end sends next may be an answer, and it may have had nothing to send before.
            self.last = None;
            self.window = None;
        }
    }

    fn acknowledged(&mut self, at: Time, ack: u64) {
        let covered = self.open.iter().take_while(|p| p.to <= ack).count();
        let covered: Vec<Unacknowledged> = self.open.drain(..covered).collect();
        // Packets that are acknowledged with one that was sent again have waited for it at the receiver.
        if !covered.iter().any(|p| p.again) {
            self.trips.extend(covered.iter().map(|p| RoundTrip {
                connection: self.connection,
                direction: self.direction,
                shown: p.shown,
                at: p.sent.as_secs_f64(),
                rtt: at.since(p.sent).as_secs_f64(),
            }));
        }
        if self.window.is_some_and(|end| end <= ack) {
            self.window = None;
        }
    }
}

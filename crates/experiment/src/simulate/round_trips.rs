//! Round trips and windows of the foreground's connections, as an end of a connection sees them in its packets.
//!
//! A packet's round trip lasts from when it leaves its sender to the first acknowledgement that covers it. A window is
//! what an end sends from one packet until that packet is acknowledged.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Direction, End, Flags, Head, Segment, Time};
use swell_workload::Conn;
use swell_world::HostTap;

use crate::observe::{RoundTrip, Shown, WindowGap};

/// Observes the packets of the foreground's connections at their ends. Clones share their state.
#[derive(Clone, Default)]
pub(super) struct Ends(Arc<Mutex<BTreeMap<Key, Vec<Sight>>>>);

/// A connection, and the direction in which the end that is meant sends.
type Key = (u32, Direction);

/// A packet at an end.
struct Sight {
    at: Time,
    /// Whether the end sent it.
    sent: bool,
    segment: Segment,
}

impl Ends {
    /// The tables `rtts` and `gaps`.
    pub fn tables(&self) -> (Vec<RoundTrip>, Vec<WindowGap>) {
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
        for ((conn, direction), mut sights) in seen {
            let connection = number.get(&conn).copied().unwrap_or(conn);
            let mut end = Sender::new(connection, direction);
            // Of one instant, what the end received comes first: it may be why it sent.
            sights.sort_by_key(|s| (s.at, s.sent));
            for Sight { at, sent, segment } in &sights {
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

    fn note(&self, conn: Conn, end: End, sight: Sight) {
        let direction = match end {
            End::Client => Direction::Up,
            End::Server => Direction::Down,
        };
        let mut seen = (self.0.lock()).unwrap_or_else(PoisonError::into_inner);
        let own = seen.entry((conn.0, direction)).or_default();
        // Packets with random delays do not overtake each other.
        let before = own.iter().rev().find(|s| s.sent);
        let at = match before {
            Some(before) if sight.sent => before.at.max(sight.at),
            _ => sight.at,
        };
        own.push(Sight { at, ..sight });
    }
}

impl HostTap for Ends {
    fn sends(&mut self, at: Time, conn: Conn, end: End, packet: &Head) {
        self.note(
            conn,
            end,
            Sight {
                at,
                sent: true,
                segment: packet.seg,
            },
        );
    }

    fn receives(&mut self, at: Time, conn: Conn, end: End, packet: &Head) {
        self.note(
            conn,
            end,
            Sight {
                at,
                sent: false,
                segment: packet.seg,
            },
        );
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

/// An end of a connection, as a sender.
struct Sender {
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

impl Sender {
    fn new(connection: u32, direction: Direction) -> Sender {
        Sender {
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

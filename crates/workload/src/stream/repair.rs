//! Repair: which packets a viewer requests again, and when.

use swell_base::{Dur, Time};

use super::{PATIENCE, REPAIR, Sent, Stream, TAIL, Viewing};
use crate::{Action, Conn, End};

/// Payload of a NACK: RTCP and feedback header, then 4 bytes per packet (RFC 4585 section 6.2.1).
const NACK: [u32; 2] = [12, 4];
/// Largest number of packets in a NACK.
const NAMED: usize = 300;
/// Largest number of requests for a packet, as in WebRTC's `NackRequester`.
const ASKED: u32 = 10;
/// How often the wait for an answer is doubled at most.
const DOUBLED: u32 = 3;
/// Largest growth of the round trip that a packet of several requests can show.
const GROWTH: f64 = 1.5;

/// A missing packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// When it was first requested.
    asked: Option<Time>,
    /// Number of requests.
    times: u32,
    /// When it is requested again.
    next: Time,
}

impl Stream {
    /// Requests missing packets that are due, and sets the timer to repeat the requests.
    pub(super) fn ask_again(&mut self, now: Time, conn: u64, actions: &mut Vec<Action>) {
        let (per_frame, _) = self.config.cut();
        let (frame_time, fps) = (self.config.frame_time(), f64::from(self.config.frames));
        let viewing = &mut self.viewings[conn as usize];
        let (next, clock) = (viewing.next, viewing.clock);
        viewing.missing.retain(|j, _| j / per_frame >= next);
        // A retransmitted packet waits behind the packets that were sent before it.
        let round_trip = viewing.round_trip + frame_time;
        let mut due = Vec::new();
        for (&j, missing) in &mut viewing.missing {
            if missing.next > now {
                continue;
            }
            due.push(j);
            let hurried = clock.is_some_and(|(frame, at)| {
                let wanted = at + Dur::from_secs_f64(f64::from(j / per_frame - frame) / fps);
                wanted.since(now) < round_trip * 2
            });
            let wait = if hurried { frame_time } else { round_trip };
            missing.asked.get_or_insert(now);
            // The answer may wait in a queue, which further requests would only fill. It may also be lost, again and
            // again, and the playback time comes nearer.
            missing.next = now + wait * (1 << missing.times.min(DOUBLED));
            missing.times += 1;
            if missing.times == ASKED {
                missing.next = Time::MAX;
            }
        }
        for part in due.chunks(NAMED) {
            viewing.sent.push(Sent::Nack(part.to_vec()));
            let payload = NACK[0] + NACK[1] * part.len() as u32;
            actions.push(Action::SendDatagram(
                Conn(conn as u32),
                End::Client,
                payload,
            ));
        }
        let soonest = viewing.missing.values().map(|m| m.next).min();
        if viewing.repair_at <= now {
            viewing.repair_at = Time::MAX;
        }
        if let Some(soonest) = soonest
            && soonest < viewing.repair_at
        {
            viewing.repair_at = soonest;
            actions.push(Action::Timer(soonest.since(now), REPAIR | conn));
        }
    }

    /// No later packet will reveal gaps at the end of the stream: it is requested when it is overdue.
    pub(super) fn tail(&mut self, now: Time, conn: u64, actions: &mut Vec<Action>) {
        let frame = self.config.frame_time();
        let viewing = &mut self.viewings[conn as usize];
        let end = viewing.got.len() as u32;
        if viewing.seen < end {
            let rest = self.config.offset(end) - self.config.offset(viewing.seen);
            let due = viewing.last + rest + viewing.round_trip + frame;
            if due > now {
                return actions.push(Action::Timer(due.since(now), TAIL | conn));
            }
        }
        viewing.look_for(end, now);
        if self.config.repair {
            self.ask_again(now, conn, actions);
        }
        self.await_end(now, conn, actions);
    }
}

impl Viewing {
    /// A packet arrives for the first time. If it was missing, it shows the round trip.
    ///
    /// After several requests it does not say which one it answers. Karn's algorithm takes no sample then, and would
    /// not notice a queue that delays every answer beyond the wait. Time since the first request alone would count the
    /// waits after lost answers, which are built from the estimate: it would grow without end. So such a sample counts,
    /// but only as little more than the estimate: samples of packets that were requested once bring it back.
    pub(super) fn repaired(&mut self, packet: u32, now: Time) {
        let Some(missing) = self.missing.remove(&packet) else {
            return;
        };
        let Some(asked) = missing.asked else { return };
        let mut took = now.since(asked);
        if missing.times > 1 {
            took = took.min(self.round_trip.scale(GROWTH)).min(PATIENCE);
        }
        self.round_trip = self.round_trip.scale(0.875) + took.scale(0.125);
    }

    /// Marks packets before `end` that have not arrived as missing.
    pub(super) fn look_for(&mut self, end: u32, now: Time) {
        for j in self.seen..end {
            if !self.got[j as usize] {
                let missing = Missing {
                    asked: None,
                    times: 0,
                    next: now,
                };
                self.missing.insert(j, missing);
            }
        }
        self.seen = self.seen.max(end);
    }
}

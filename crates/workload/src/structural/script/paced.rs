//! Writing a unit of data as its application did: in pieces, each at its time.

use std::sync::Arc;

use swell_base::{Bytes, Dur};
use swell_traffic::{Connection, Exchange, Turn};

use super::{ANSWER, NEXT_TURN, Script, State, Step, WRITE_DOWN, WRITE_UP, connection};
use crate::End;

/// What is written and not yet at the other end may be so much before the writer has to wait: Linux's
/// send buffer, 16 KiB to begin with (`tcp_wmem`), grown to twice a window of some hundred segments.
const SEND_BUFFER: u64 = 256 << 10;
/// Payload of a full segment where the model does not say.
const FULL: u64 = 1448;
/// Segments of an initial window (RFC 6928): so much leaves without waiting for acknowledgements.
const AT_ONCE: u64 = 10;

/// One end's unit under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacedWrite {
    /// Bytes of the unit not yet written.
    pub left: u64,
    /// The buffer is full: what is left waits for some of it to arrive.
    pub blocked: bool,
    /// The next place in the model's list of writes, and the bytes written since the last.
    place: u32,
    since: u64,
    /// Bytes written altogether.
    written: u64,
    /// How long after it was written the last of it has left the host, where that is known.
    pub leaving: Dur,
}

/// The token with which an end writes on.
fn more(end: End) -> u8 {
    match end {
        End::Client => WRITE_UP,
        End::Server => WRITE_DOWN,
    }
}

impl Script {
    /// `end` has `bytes` to send.
    pub(super) fn write(&mut self, end: End, bytes: u64, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        let places = &connection(&model, self.place).writes[end as usize];
        let write = &mut self.writes[end as usize];
        write.left += bytes;
        // The place lies between this unit and the one before.
        if let Some(w) = places.get(write.place as usize)
            && write.since >= w.after
        {
            write.place += 1;
            write.since = 0;
        }
        self.write_some(end, steps);
    }

    /// Data of `end` arrived at the other end. If it had to wait for that, it goes on when the
    /// acknowledgement is back.
    pub(super) fn unblock(&mut self, end: End, steps: &mut Vec<Step>) {
        let there = self.received[1 - end as usize];
        let back = self.rtt() / 2;
        let write = &mut self.writes[end as usize];
        if write.blocked && write.written.saturating_sub(there) <= SEND_BUFFER {
            write.blocked = false;
            steps.push(Step::Wait(back.max(Dur::from_nanos(1)), more(end)));
        }
    }

    /// Writes up to the next place.
    pub(super) fn write_some(&mut self, end: End, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        let connection = connection(&model, self.place);
        let there = self.received[1 - end as usize];
        let write = &mut self.writes[end as usize];
        if write.left == 0 {
            return;
        }
        write.blocked = write.written.saturating_sub(there) > SEND_BUFFER;
        if write.blocked {
            return;
        }
        let place = connection.writes[end as usize].get(write.place as usize);
        let piece = place.map_or(u64::MAX, |w| w.after.saturating_sub(write.since).max(1));
        let piece = piece.min(write.left);
        steps.push(Step::Send(end, piece));
        write.left -= piece;
        write.since += piece;
        write.written += piece;
        if write.left == 0 {
            self.wrote(connection, end, piece, steps);
            return;
        }
        write.place += 1;
        write.since = 0;
        // Two writes at one instant would be one.
        let gap = place.map_or(Dur::ZERO, |w| w.gap).max(Dur::from_nanos(1));
        steps.push(Step::Wait(gap, more(end)));
    }

    /// If the next unit of turns is the same end's, waits for it from when the last has left.
    fn goes_on(&mut self, turns: &[Turn], end: End, steps: &mut Vec<Step>) {
        let here = self.next[0] as usize;
        let (Some(turn), Some(next)) = (turns.get(here), turns.get(here + 1)) else {
            return;
        };
        let leaving = self.writes[end as usize].leaving;
        match end {
            End::Client if turn.response == 0 && next.request > 0 => {
                self.state = State::Idle;
                steps.push(Step::Wait(leaving + turn.client_think, NEXT_TURN));
            }
            End::Server if next.request == 0 && next.response > 0 => {
                self.state = State::Idle;
                self.next[0] += 1;
                let pause = turn.client_think + next.server_think;
                steps.push(Step::Wait(leaving + pause, ANSWER));
            }
            _ => {}
        }
    }

    /// The unit is written, last a piece of `bytes`. What fits a window with all that is under way leaves at
    /// once: where the same end goes on by itself, its pause runs from then, not from the acknowledgement.
    fn wrote(&mut self, connection: &Connection, end: End, bytes: u64, steps: &mut Vec<Step>) {
        let full = match connection.wire.ends[end as usize].mss {
            0 => FULL,
            mss => u64::from(mss),
        };
        let window = match [connection.server_window, connection.client_window][end as usize] {
            0 => u64::MAX,
            most => u64::from(most),
        };
        let up = self.up[end as usize];
        let there = self.received[1 - end as usize];
        let write = &mut self.writes[end as usize];
        let under_way = write.written.saturating_sub(there);
        let at_once = match bytes <= full {
            true => SEND_BUFFER,
            false => window.min(AT_ONCE * full),
        };
        let sent = (under_way <= at_once).then_some(Dur::ZERO);
        write.leaving = match sent {
            Some(_) => up.map_or(Dur::ZERO, |rate| rate.transmit(Bytes(bytes))),
            None => Dur::ZERO,
        };
        match &connection.exchange {
            Exchange::Concurrent { .. } => self.next_unit(end, sent, steps),
            Exchange::Sequential(turns) if sent.is_some() => self.goes_on(turns, end, steps),
            _ => {}
        }
    }
}

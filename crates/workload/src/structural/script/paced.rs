//! Writes a unit of data as its application did: in pieces at the observed times.

use swell_base::{Bytes, Dur};
use swell_traffic::{ConnectionView, Data, Items, Turn};

use super::{ANSWER, NEXT_TURN, Script, State, Step, WRITE_DOWN, WRITE_UP};
use crate::End;

/// Bytes that may be written but not yet received before the writer blocks. This is Linux's send buffer, 16 KiB
/// initially (`tcp_wmem`), grown to twice a window of some hundred segments.
const SEND_BUFFER: u64 = 256 << 10;
/// Payload of a full segment if the model does not specify it.
const FULL: u64 = 1448;
/// Segments of an initial window (RFC 6928), which are sent without waiting for acknowledgements.
const AT_ONCE: u64 = 10;

/// The unit that one end is writing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacedWrite {
    /// Bytes of the unit not yet written.
    pub left: u64,
    /// The buffer is full: the remaining bytes wait until some data arrives.
    pub blocked: bool,
    /// Index of the next entry in the model's list of writes, and the bytes written since the previous entry.
    place: u32,
    since: u64,
    /// Total bytes written.
    written: u64,
    /// Time from writing the last piece until it has left the host, if known; otherwise zero.
    pub leaving: Dur,
}

/// The token of the timer with which an end continues writing.
fn more(end: End) -> u8 {
    match end {
        End::Client => WRITE_UP,
        End::Server => WRITE_DOWN,
    }
}

impl Script {
    /// `end` starts to send `bytes`.
    pub(super) fn write(&mut self, end: End, bytes: u64, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let places = source.part().writes(end as usize);
        let write = &mut self.writes[end];
        write.left = write.left.saturating_add(bytes);
        // The entry lies exactly between the previous unit and this one, so the pause between units covers it.
        if let Some(w) = places.get(write.place as usize)
            && write.since >= w.after
        {
            write.place += 1;
            write.since = 0;
        }
        self.write_some(end, steps);
    }

    /// Data of `end` arrived at the other end. If `end` was blocked, it continues when the acknowledgement arrives.
    pub(super) fn unblock(&mut self, end: End, steps: &mut Vec<Step>) {
        let there = self.received[end.other()];
        let back = self.rtt() / 2;
        let write = &mut self.writes[end];
        if write.blocked && write.written.saturating_sub(there) <= SEND_BUFFER {
            write.blocked = false;
            steps.push(Step::Wait(back.max(Dur::from_nanos(1)), more(end)));
        }
    }

    /// Writes up to the next entry of the model's list.
    pub(super) fn write_some(&mut self, end: End, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let part = source.part();
        let there = self.received[end.other()];
        let write = &mut self.writes[end];
        if write.left == 0 {
            return;
        }
        write.blocked = write.written.saturating_sub(there) > SEND_BUFFER;
        if write.blocked {
            return;
        }
        let place = part.writes(end as usize).get(write.place as usize);
        let piece = place.map_or(u64::MAX, |w| w.after.saturating_sub(write.since).max(1));
        let piece = piece.min(write.left);
        steps.push(Step::Send(end, piece));
        write.left -= piece;
        write.since += piece;
        write.written += piece;
        if write.left == 0 {
            self.wrote(part, end, piece, steps);
            return;
        }
        write.place += 1;
        write.since = 0;
        // Two writes at one instant would be merged.
        let gap = place.map_or(Dur::ZERO, |w| w.gap).max(Dur::from_nanos(1));
        steps.push(Step::Wait(gap, more(end)));
    }

    /// If the next unit belongs to the same end, waits for its pause, starting when the current unit has left the host.
    fn goes_on(&mut self, turns: &Items<'_, Turn>, end: End, steps: &mut Vec<Step>) {
        let here = self.next[0] as usize;
        let (Some(turn), Some(next)) = (turns.get(here), turns.get(here + 1)) else {
            return;
        };
        let leaving = self.writes[end].leaving;
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

    /// The unit has been written; its last piece had `bytes`. If all outstanding data fits in a window, it leaves at
    /// once. If the same end continues, its pause then starts at that instant and not at the acknowledgement.
    fn wrote(&mut self, part: ConnectionView<'_>, end: End, bytes: u64, steps: &mut Vec<Step>) {
        let connection = part.connection;
        let full = match connection.wire.ends[end].mss {
            0 => FULL,
            mss => u64::from(mss),
        };
        let window = match [connection.server_window, connection.client_window][end] {
            0 => u64::MAX,
            most => u64::from(most),
        };
        let up = self.up[end];
        let there = self.received[end.other()];
        let write = &mut self.writes[end];
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
        match part.data() {
            Data::Concurrent(_) => self.next_unit(end, sent, steps),
            Data::Sequential(turns) if sent.is_some() => self.goes_on(&turns, end, steps),
            _ => {}
        }
    }
}

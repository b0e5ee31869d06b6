//! Writes a unit of data as its application did: in pieces at the observed times.

use std::collections::VecDeque;

use swell_base::{Bytes, Dur};
use swell_traffic::{ConnectionView, Data, Items, Turn};

use super::{
    ANSWER, LEFT_DOWN, LEFT_UP, NEXT_TURN, Script, State, Step, UNASKED, WRITE_DOWN, WRITE_UP,
};
use crate::End;

/// Bytes that may be written but not yet received before the writer blocks. This is Linux's send buffer, 16 KiB
/// initially (`tcp_wmem`), grown to twice a window of some hundred segments.
const SEND_BUFFER: u64 = 256 << 10;
/// Payload of a full segment if the model does not specify it.
const FULL: u64 = 1448;
/// Segments of an initial window (RFC 6928), which are sent without waiting for acknowledgements.
const AT_ONCE: u64 = 10;
/// Bytes of an acknowledgement with timestamps.
const ACK: u64 = 52;
/// What hosts and links of the shared path add to an acknowledgement's way, at least.
const ACK_MARGIN: Dur = Dur::from_micros(50);

/// The unit that one end is writing.
#[derive(Debug, Default)]
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
    /// The unit may still be in the sender's buffer, and the next unit waits until it has left.
    pub asks: Option<Asks>,
}

/// The question whether a unit has left the sender's buffer.
#[derive(Debug)]
pub(super) struct Asks {
    /// Bytes that leave together at the end.
    last: u64,
    /// The buffer may be empty when so many bytes are acknowledged.
    enough: u64,
    /// The bytes acknowledged at each question that is not answered.
    open: VecDeque<u64>,
}

/// The token of the timer with which an end continues writing.
fn more(end: End) -> u8 {
    match end {
        End::Client => WRITE_UP,
        End::Server => WRITE_DOWN,
    }
}

/// The token of the timer with which an end asks whether its data have left.
fn left(end: End) -> u8 {
    match end {
        End::Client => LEFT_UP,
        End::Server => LEFT_DOWN,
    }
}

impl Script {
    /// `end` starts to send `bytes`.
    pub(super) fn write(&mut self, end: End, bytes: u64, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let places = source.part().writes(end as usize);
        let write = &mut self.writes[end];
        write.asks = None;
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

    /// The pause before the next turn, if it belongs to the same end and follows without input from the other.
    fn own_pause(&self, turns: &Items<'_, Turn>, end: End) -> Option<Dur> {
        let here = self.next[0] as usize;
        let (turn, next) = (turns.get(here)?, turns.get(here + 1)?);
        match end {
            End::Client => (turn.response == 0 && next.request > 0).then_some(turn.client_think),
            End::Server => (next.request == 0 && next.response > 0)
                .then_some(turn.client_think + next.server_think),
        }
    }

    /// If the next unit belongs to the same end, waits for its pause, starting when the current unit has left the host.
    /// It left the sender's buffer `sent` ago.
    fn goes_on(&mut self, turns: &Items<'_, Turn>, end: End, sent: Dur, steps: &mut Vec<Step>) {
        let Some(pause) = self.own_pause(turns, end) else {
            return;
        };
        self.state = State::Idle;
        let what = match end {
            End::Client => NEXT_TURN,
            End::Server => {
                self.next[0] += 1;
                ANSWER
            }
        };
        steps.push(Step::Wait(self.writes[end].leaving + pause - sent, what));
    }

    /// Whether the next unit waits for nothing but the data of the current one to leave.
    fn waits_to_leave(&self, part: ConnectionView<'_>, end: End) -> bool {
        match part.data() {
            Data::Sequential(turns) => {
                // After a long pause of the server, the acknowledgement tells the same, and that nobody waits.
                let pause = self.own_pause(&turns, end);
                pause.is_some_and(|p| end == End::Client || p <= UNASKED)
            }
            Data::Concurrent(chains) => {
                let own = &chains[end as usize];
                let next = self.next[end] as usize;
                let before = next.checked_sub(1).and_then(|i| own.get(i));
                let before = before.map_or(0, |previous| previous.after);
                own.get(next).is_some_and(|unit| unit.after <= before)
            }
            _ => false,
        }
    }

    /// Time since the last data of `end` passed the link, if all of them have arrived.
    pub(super) fn since_arrival(&self, end: End) -> Dur {
        self.now.since(self.arrived[end.other()]) + self.rtt() / 2
    }

    /// The unit has been written; its last piece had `bytes`. If all outstanding data fits in an initial window, it
    /// leaves at once. Otherwise the congestion window decides, and the sender's buffer tells. If the same end
    /// continues, its pause starts when the data have left and not at the acknowledgement.
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
        let there = self.received[end.other()];
        let write = &mut self.writes[end];
        let under_way = write.written.saturating_sub(there);
        let at_once = match bytes <= full {
            true => SEND_BUFFER,
            false => window.min(AT_ONCE * full),
        };
        write.leaving = Dur::ZERO;
        if under_way <= at_once {
            self.writes[end].leaving = self.last_piece(end, bytes);
            return self.has_left(part, end, Dur::ZERO, steps);
        }
        if let Data::Concurrent(_) = part.data() {
            self.next_unit(end, None, steps);
        }
        if self.waits_to_leave(part, end) {
            self.writes[end].asks = Some(Asks {
                last: bytes,
                enough: u64::MAX,
                open: VecDeque::from([there]),
            });
            // TCP sends what it may after the workload has written it.
            steps.push(Step::Wait(Dur::from_nanos(1), left(end)));
        }
    }

    /// Time for which the host's line sends the last piece, of so many bytes.
    fn last_piece(&self, end: End, bytes: u64) -> Dur {
        self.up[end].map_or(Dur::ZERO, |rate| rate.transmit(Bytes(bytes)))
    }

    /// All data of `end` left its buffer so long ago.
    fn has_left(&mut self, part: ConnectionView<'_>, end: End, ago: Dur, steps: &mut Vec<Step>) {
        match part.data() {
            Data::Concurrent(_) => self.next_unit(end, Some(ago), steps),
            Data::Sequential(turns) => self.goes_on(&turns, end, ago, steps),
            _ => {}
        }
    }

    /// The answer to [`Step::Unsent`].
    pub fn unsent(&mut self, end: End, unsent: u64, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let there = self.received[end.other()];
        let write = &mut self.writes[end];
        let Some(asks) = &mut write.asks else {
            return;
        };
        let acknowledged = asks.open.pop_front().unwrap_or(there);
        if unsent > 0 {
            // In slow start an acknowledged byte lets two leave.
            asks.last = unsent.min(2 * FULL);
            asks.enough = acknowledged.saturating_add((unsent / 2).max(1));
            if asks.open.is_empty() && there >= asks.enough {
                self.ask_again(end, steps);
            }
            return;
        }
        let last = asks.last;
        // A line of the host's own may still hold what has left the buffer, except for what is beyond it.
        let under_way = write.written.saturating_sub(there);
        let line = self.up[end].map_or(Dur::ZERO, |rate| rate.transmit(Bytes(under_way)));
        write.asks = None;
        if there >= write.written {
            // They left long ago. The acknowledgement is late.
            let ago = self.since_arrival(end);
            return self.has_left(source.part(), end, ago, steps);
        }
        self.writes[end].leaving = self.last_piece(end, last).max(line - self.rtt() / 2);
        self.has_left(source.part(), end, Dur::ZERO, steps);
    }

    /// Data of `end` arrived at the other end. Their acknowledgement lets further data leave.
    pub(super) fn ask_again(&mut self, end: End, steps: &mut Vec<Step>) {
        let there = self.received[end.other()];
        let line = self.up[end.other()].map_or(Dur::ZERO, |rate| rate.transmit(Bytes(ACK)));
        let back = self.rtt() / 2 + line + ACK_MARGIN;
        if let Some(asks) = &mut self.writes[end].asks
            && there >= asks.enough
        {
            asks.open.push_back(there);
            steps.push(Step::Wait(back, left(end)));
        }
    }
}

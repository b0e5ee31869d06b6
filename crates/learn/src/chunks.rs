//! From data passing the tap to requests, responses and the pauses between them.

use swell_base::Dur;
use swell_traffic::{Exchange, Turn};

/// Chunks held per connection; beyond it neighbours are merged, so that a connection that never ends
/// needs bounded memory.
const MAX_CHUNKS: usize = 4096;

/// Data of one direction with no pause and no data of the other direction inside: an application
/// data unit, as far as one can tell from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Chunk {
    down: bool,
    bytes: u64,
    /// When its first and last packets passed the tap, nanoseconds.
    first: u64,
    last: u64,
    /// Begins a unit of its direction: with everything before acknowledged, it came after an
    /// application's pause there, or after data of the other direction that it may answer.
    fresh: bool,
}

/// The data of one connection.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    list: Vec<Chunk>,
    /// Data in both directions at once was proved (Tmix: Hernández-Campos, Jeffay & Smith).
    concurrent: bool,
    /// Times the list was halved.
    pub(crate) merged: u32,
}

impl Chunks {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn set_concurrent(&mut self) {
        self.concurrent = true;
    }

    pub(crate) fn concurrent(&self) -> bool {
        self.concurrent
    }

    /// New data passed at `at`. `settled`: everything sent before in this direction had been
    /// acknowledged, so that a pause is the application's and not a retransmission's.
    #[inline]
    pub(crate) fn push(&mut self, down: bool, bytes: u64, at: u64, settled: bool, quiet: u64) {
        let fresh = settled
            && self
                .list
                .last()
                .is_none_or(|c| c.down != down || at.saturating_sub(c.last) > quiet);
        if let Some(last) = self.list.last_mut()
            && last.down == down
            && !fresh
        {
            last.bytes = last.bytes.saturating_add(bytes);
            last.last = at;
            return;
        }
        if self.list.len() >= MAX_CHUNKS {
            self.halve();
        }
        self.list.push(Chunk {
            down,
            bytes,
            first: at,
            last: at,
            fresh,
        });
    }

    /// A retransmission passed, with `bytes` that had been missing: it belongs to the last unit of
    /// its direction, which is still on its way if nothing came after it.
    pub(crate) fn late(&mut self, down: bool, bytes: u64, at: u64) {
        let n = self.list.len();
        if let Some(i) = self.list.iter().rposition(|c| c.down == down) {
            let c = &mut self.list[i];
            c.bytes = c.bytes.saturating_add(bytes);
            if i + 1 == n {
                c.last = at;
            }
        } else if bytes > 0 {
            self.push(down, bytes, at, true, 0);
        }
    }

    /// Merges each run of four chunks into two, one per direction: volume and outline stay, the
    /// inner pauses go.
    fn halve(&mut self) {
        self.merged += 1;
        let mut merged = Vec::with_capacity(MAX_CHUNKS);
        for four in self.list.chunks(4) {
            for down in [four[0].down, !four[0].down] {
                let mut run = four.iter().filter(|c| c.down == down);
                if let Some(&first) = run.next() {
                    merged.push(run.fold(first, |a, c| Chunk {
                        bytes: a.bytes.saturating_add(c.bytes),
                        last: c.last,
                        ..a
                    }));
                }
            }
        }
        self.list = merged;
    }

    /// The exchange, with pauses as the tap saw them; [`correct`] takes the paths out. `opened` is
    /// when the handshake was complete.
    pub(crate) fn exchange(&self, opened: u64) -> Exchange {
        if self.concurrent {
            Exchange::Concurrent {
                up: self.chain(false, opened),
                down: self.chain(true, opened),
            }
        } else {
            Exchange::Sequential(self.turns(opened))
        }
    }

    fn chain(&self, down: bool, opened: u64) -> Vec<(Dur, u64)> {
        let mut chain: Vec<(Dur, u64)> = Vec::new();
        let mut last = opened;
        for c in self.list.iter().filter(|c| c.down == down) {
            let pause = c.first.saturating_sub(last);
            match chain.last_mut() {
                Some(unit) if !c.fresh => unit.1 = unit.1.saturating_add(c.bytes),
                _ => chain.push((Dur::from_nanos(pause), c.bytes)),
            }
            last = c.last;
        }
        chain
    }

    fn turns(&self, opened: u64) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        // The end of what came before, and in which direction it went.
        let mut last = (opened, None);
        for c in &self.list {
            let pause = Dur::from_nanos(c.first.saturating_sub(last.0));
            match (c.down, last.1) {
                // A response to the request before it.
                (true, Some(false)) => {
                    if let Some(turn) = turns.last_mut() {
                        turn.server_think = pause;
                        turn.response = c.bytes;
                    }
                }
                // The server goes on, or speaks first.
                (true, _) => turns.push(Turn {
                    server_think: pause,
                    response: c.bytes,
                    ..Turn::default()
                }),
                (false, before) => {
                    if let Some(turn) = turns.last_mut() {
                        turn.client_think = pause;
                    } else if before.is_none() && pause >= OPENING_PAUSE {
                        // The client connected, then waited before it asked.
                        turns.push(Turn {
                            client_think: pause,
                            ..Turn::default()
                        });
                    }
                    turns.push(Turn {
                        request: c.bytes,
                        ..Turn::default()
                    });
                }
            }
            last = (c.last, Some(c.down));
        }
        turns
    }
}

/// Pauses between handshake and first request shorter than this are the host's scheduling.
const OPENING_PAUSE: Dur = Dur::from_millis(1);

/// Takes the round trips between the tap and the hosts out of pauses seen at the tap.
///
/// A response's first byte passes the tap one server-side RTT plus the server's think time after the
/// request's last byte did; a request one client-side RTT plus the user's think time after the
/// response. A pause inside one direction needs no correction: both ends of it took the same way.
pub(crate) fn correct(exchange: &mut Exchange, client_rtt: Dur, server_rtt: Dur) {
    let Exchange::Sequential(turns) = exchange else {
        return;
    };
    for i in 0..turns.len() {
        let next_is_request = turns.get(i + 1).is_some_and(|t| t.request > 0);
        let t = &mut turns[i];
        if t.response > 0 && (t.request > 0 || i == 0) {
            t.server_think = t.server_think.saturating_sub(server_rtt);
        }
        if t.response > 0 && next_is_request {
            t.client_think = t.client_think.saturating_sub(client_rtt);
        }
    }
}

#[cfg(test)]
mod tests;

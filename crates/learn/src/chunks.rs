//! From data passing the tap to requests, responses and the pauses between them.

mod exchange;

/// Chunks held per connection; beyond it neighbours are merged, so that a connection that never ends
/// needs bounded memory.
const MAX_CHUNKS: usize = 4096;

/// A write larger than an initial window (RFC 6928 section 2, of 1460-byte segments) takes round
/// trips to send; what the time to the next one says is the network's as well. Such writes are not
/// told from what follows.
const AT_ONCE: u64 = 14_600;

/// Data of one direction with no pause and no data of the other direction inside: an application
/// data unit, as far as one can tell from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Chunk {
    down: bool,
    bytes: u64,
    /// When its first and last packets passed the tap, nanoseconds.
    first: u64,
    last: u64,
    begins: Begins,
    /// Bytes of the other direction that its sender had got.
    after: u64,
}

/// What data begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Begins {
    /// A unit of its direction: with everything before acknowledged, or the sender having had
    /// nothing more to send, it came after an application's pause there, or after data of the other
    /// direction that it may answer.
    Unit,
    /// A write: the sender had had nothing more to send.
    Write,
    /// Nothing that one could tell; data of the other direction passed before it.
    Nothing,
}

/// New data as it passes the tap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    /// From the server.
    pub(crate) down: bool,
    pub(crate) bytes: u64,
    /// Nanoseconds.
    pub(crate) at: u64,
    /// Everything sent before in this direction had been acknowledged, so that a pause is the
    /// application's and not a retransmission's.
    pub(crate) settled: bool,
    /// The segment before it in this direction was not full: what is sent now was written later.
    pub(crate) write: bool,
    /// Bytes of the other direction that its sender says it has got.
    pub(crate) got: u64,
    /// Since when its sender may have been free to send it, if it had it: when the acknowledgement of what was sent before
    /// would have passed without queues beyond the tap; 0 where that is not known.
    pub(crate) free: u64,
}

/// What passed of one direction so far.
#[derive(Debug, Default)]
struct Way {
    bytes: u64,
    /// When the last data passed, and what its sender had got then.
    last: Option<u64>,
    got: u64,
    /// Bytes of the present write.
    write: u64,
}

/// The data of one connection.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    list: Vec<Chunk>,
    /// Data in both directions at once was proved (Tmix: Hernández-Campos, Jeffay & Smith).
    concurrent: bool,
    /// Times the list was halved.
    pub(crate) merged: u32,
    /// Of the client and of the server.
    ways: [Way; 2],
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

    /// Bytes of the client and of the server so far.
    pub(crate) fn bytes(&self) -> [u64; 2] {
        [self.ways[0].bytes, self.ways[1].bytes]
    }

    /// New data passed. A silence longer than `quiet` is the application's.
    #[inline]
    pub(crate) fn push(&mut self, data: &Data, quiet: u64) {
        let &Data {
            down, bytes, at, ..
        } = data;
        let other = self.ways[usize::from(!down)].bytes;
        let way = &mut self.ways[usize::from(down)];
        let after = data.got.min(other);
        let fresh = match way.last {
            None => true,
            Some(last) => {
                let since = if data.write {
                    last
                } else {
                    last.max(data.free)
                };
                (data.settled || data.write)
                    && (after > way.got || at.saturating_sub(since) > quiet)
            }
        };
        let begins = match (fresh, data.write && way.write <= AT_ONCE) {
            (true, _) => Begins::Unit,
            (false, true) => Begins::Write,
            (false, false) => Begins::Nothing,
        };
        way.bytes = way.bytes.saturating_add(bytes);
        way.last = Some(at);
        way.got = way.got.max(after);
        if begins != Begins::Nothing {
            way.write = 0;
        }
        way.write = way.write.saturating_add(bytes);
        if let Some(last) = self.list.last_mut()
            && last.down == down
            && begins == Begins::Nothing
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
            begins,
            after,
        });
    }

    /// A retransmission passed, with `bytes` that had been missing: it belongs to the last unit of
    /// its direction, which is still on its way if nothing came after it.
    pub(crate) fn late(&mut self, down: bool, bytes: u64, at: u64) {
        let n = self.list.len();
        if let Some(i) = self.list.iter().rposition(|c| c.down == down) {
            let c = &mut self.list[i];
            c.bytes = c.bytes.saturating_add(bytes);
            let way = &mut self.ways[usize::from(down)];
            way.bytes = way.bytes.saturating_add(bytes);
            way.write = way.write.saturating_add(bytes);
            // While data are sent again, what comes after them waits for TCP and not for the application.
            way.last = Some(at);
            if i + 1 == n {
                c.last = at;
            }
        } else if bytes > 0 {
            let data = Data {
                down,
                bytes,
                at,
                settled: true,
                write: false,
                got: 0,
                free: 0,
            };
            self.push(&data, 0);
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
}

pub(crate) use exchange::{Line, correct};

#[cfg(test)]
mod tests;

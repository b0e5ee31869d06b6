//! Derives requests, responses and pauses from the data that pass the tap.

mod exchange;

/// Number of chunks that each connection may have. One with more gets room for as many again, while the model has
/// it ([`Chunks::spare`]); then neighbours are merged, so that endless connections need bounded memory.
pub(crate) const MAX_CHUNKS: usize = 4096;
/// Maximum number of chunks per connection, however much room there is.
const MOST_CHUNKS: usize = 1 << 18;

/// A write larger than an initial window (RFC 6928 section 2, of 1460-byte segments) takes several round
/// trips to send, so the time to the next write is partly the network's. Such writes are separated from
/// the data that follow only if their sender was idle between.
const AT_ONCE: u64 = 14_600;

/// This many runs of equal size, each followed by an idle time of the sender, are writes. Writes that fill
/// their segments have a size of their own; what a network puts between pauses varies.
const EQUAL: u32 = 8;

/// For so long an RTT is that of packets that follow, too, nanoseconds. A queue grows and shrinks within some round trips.
pub(crate) const RECENT: u64 = 500_000_000;

/// Data of one direction with no pause and no data of the other direction inside. This is the best
/// estimate of an application data unit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Chunk {
    down: bool,
    bytes: u64,
    /// When its first and last packets passed the tap, nanoseconds.
    first: u64,
    last: u64,
    begins: Begins,
    /// Bytes of the other direction that its sender had received.
    after: u64,
    /// Number of chunks that were merged in it.
    of: u64,
    /// Bytes of the largest unit or write that is in it, whole or in part.
    largest: u64,
    /// How long after its last packet an answer passes the tap that its receiver gives at once, nanoseconds: the RTT to
    /// the receiver at that time, with what waits in queues. 0 if unknown.
    due: u64,
}

/// What the data are the start of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Begins {
    /// A unit of its direction. All earlier data had been acknowledged, or the sender had nothing more to
    /// send. The new data came after a pause of the application, or after data of the other direction that
    /// they may answer.
    Unit,
    /// A write: the sender had had nothing more to send.
    Write,
    /// Nothing recognizable; data of the other direction passed before it.
    Nothing,
}

/// Whether the sender of new data could have sent them earlier, long after its data before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Idle {
    /// It could not, or nobody knows.
    No,
    /// It could have, but may have spread its data over time.
    Written,
    /// It could have.
    Yes,
    /// It could have if the RTT, which is unknown, is short.
    Perhaps,
}

/// New data that pass the tap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    /// From the server.
    pub(crate) down: bool,
    pub(crate) bytes: u64,
    /// Nanoseconds.
    pub(crate) at: u64,
    /// All earlier data of this direction had been acknowledged. A pause is then the application's, not a
    /// retransmission's.
    pub(crate) settled: bool,
    /// The previous segment of this direction was not full, so these data were written later.
    pub(crate) write: bool,
    /// Bytes of the other direction that the sender has acknowledged.
    pub(crate) got: u64,
    /// Earliest time at which the network would have let the sender send these data. This is when the ACK
    /// of the previous data would have passed the tap without queues beyond it. 0 if unknown.
    pub(crate) free: u64,
    pub(crate) idle: Idle,
}

/// State of one direction.
#[derive(Debug, Default)]
struct Way {
    bytes: u64,
    /// When the last data passed, and what their sender had received then.
    last: Option<u64>,
    got: u64,
    /// Position of the last chunk.
    latest: Option<usize>,
    /// Bytes of the current write, and since a unit or a write began in the list.
    write: u64,
    unit: u64,
    /// Bytes since the sender was last idle, bytes between the idle times before, and how many runs of
    /// equal size there were.
    run: u64,
    before: u64,
    equal: u32,
    /// The latest RTT to the receiver, and when it was known.
    due: Option<(u64, u64)>,
}

impl Way {
    /// Adds to the current write, run and unit.
    fn add(&mut self, bytes: u64) {
        for sum in [&mut self.write, &mut self.run, &mut self.unit] {
            *sum = sum.saturating_add(bytes);
        }
    }

    /// Whether the runs of data between idle times are writes, now that another run has ended.
    fn runs_are_writes(&mut self) -> bool {
        self.equal = match self.run == self.before {
            true => self.equal.saturating_add(1),
            false => 1,
        };
        self.before = std::mem::take(&mut self.run);
        self.equal >= EQUAL && self.before <= AT_ONCE
    }
}

/// The data of one connection.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    list: Vec<Chunk>,
    /// Whether data in flight in both directions at once were proved (Tmix: Hernández-Campos, Jeffay &
    /// Smith).
    concurrent: bool,
    /// Number of chunks that are merged with each other at most; 0: none were.
    together: u64,
    /// Number of items that the model has room for, beyond those of every connection, and how many of them this one
    /// has got. A chunk becomes one item at most.
    pub(crate) spare: usize,
    granted: usize,
    /// Number of pauses that may be the application's or the network's, as the RTT is unknown.
    pub(crate) unclear: u32,
    /// Of the client and of the server.
    ways: [Way; 2],
}

impl Chunks {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether there were too many to keep each.
    pub(crate) fn merged(&self) -> bool {
        self.together > 0
    }

    /// Number of items that it has got beyond those of every connection.
    pub(crate) fn granted(&self) -> usize {
        self.granted
    }

    /// Bytes in bursts that merging has made much larger ([`growth`]), and these bytes times the factor.
    pub(crate) fn larger(&self) -> (u64, f64) {
        larger(self.list.iter().map(|c| (c.bytes, c.largest)))
    }

    /// The receiver of data from the server (`down`) or from the client has answered after `rtt`.
    pub(crate) fn answered(&mut self, down: bool, rtt: u64, at: u64) {
        self.ways[usize::from(down)].due = Some((rtt, at));
        if let Some(last) = self.list.last_mut().filter(|c| c.down == down) {
            last.due = rtt;
        }
    }

    /// The receiver has told that it has all data, without an answer of its application.
    pub(crate) fn settled(&mut self, down: bool, at: u64) {
        if let Some(last) = self.list.last_mut().filter(|c| c.down == down) {
            last.due = last.due.min(at.saturating_sub(last.last));
        }
    }

    /// How long an answer of the client takes now, nanoseconds; 0 if unknown.
    pub(crate) fn due(&self) -> u64 {
        let last = self.list.iter().rev().find(|c| c.down);
        last.map_or(0, |c| c.due)
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

    /// Adds new data. A silence longer than `quiet` is attributed to the application.
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
        let write = match (data.write, data.idle) {
            (true, Idle::No) => way.write <= AT_ONCE,
            (true, _) => true,
            (false, Idle::Yes) => way.runs_are_writes(),
            (false, _) => false,
        };
        let begins = match (fresh, write) {
            (true, _) => Begins::Unit,
            (false, true) => Begins::Write,
            (false, false) => Begins::Nothing,
        };
        if begins == Begins::Nothing && data.idle == Idle::Perhaps {
            self.unclear = self.unclear.saturating_add(1);
        }
        way.bytes = way.bytes.saturating_add(bytes);
        way.last = Some(at);
        way.got = way.got.max(after);
        // A write ends even where the next is not told from it.
        if begins != Begins::Nothing || data.write {
            (way.write, way.run) = (0, 0);
        }
        if begins != Begins::Nothing {
            way.unit = 0;
        }
        way.add(bytes);
        let largest = way.unit;
        let due = way.due.filter(|d| at.saturating_sub(d.1) <= RECENT);
        let due = due.map_or(0, |d| d.0);
        if let Some(last) = self.list.last_mut()
            && last.down == down
            && begins == Begins::Nothing
        {
            last.bytes = last.bytes.saturating_add(bytes);
            last.largest = last.largest.max(largest);
            last.last = at;
            return;
        }
        if self.list.len() >= MAX_CHUNKS + self.granted {
            if self.spare >= MAX_CHUNKS && self.granted < MOST_CHUNKS - MAX_CHUNKS {
                self.granted += MAX_CHUNKS;
            } else {
                self.merge();
            }
        }
        self.ways[usize::from(down)].latest = Some(self.list.len());
        self.list.push(Chunk {
            down,
            bytes,
            first: at,
            last: at,
            begins,
            after,
            of: 1,
            largest,
            due,
        });
    }

    /// Handles a retransmission that filled in `bytes` missing bytes. They belong to the last unit of
    /// their direction. That unit is still being sent if nothing came after it.
    pub(crate) fn late(&mut self, down: bool, bytes: u64, at: u64) {
        let n = self.list.len();
        let way = &mut self.ways[usize::from(down)];
        if let Some(i) = way.latest {
            way.bytes = way.bytes.saturating_add(bytes);
            way.add(bytes);
            let c = &mut self.list[i];
            c.bytes = c.bytes.saturating_add(bytes);
            c.largest = c.largest.max(way.unit);
            // During a retransmission, later data wait for TCP, not for the application.
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
                idle: Idle::No,
            };
            self.push(&data, 0);
        }
    }

    /// Merges runs of chunks into two each, one per direction, until a quarter of the list is free. No run has
    /// more of the chunks that were pushed than it takes. This keeps the volume, the outline and the duration:
    /// of the pauses inside a run, one stays between the two, and the others are added to the next.
    fn merge(&mut self) {
        self.together = self.together.max(4);
        let most = MAX_CHUNKS + self.granted;
        loop {
            let mut merged = Vec::with_capacity(most);
            let mut rest = &self.list[..];
            while !rest.is_empty() {
                let mut sum = 0u64;
                let fits = |c: &&Chunk| {
                    sum += c.of;
                    sum <= self.together
                };
                let (run, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
                rest = others;
                join(run, &mut merged);
            }
            self.list = merged;
            if self.list.len() <= most / 4 * 3 {
                break;
            }
            self.together *= 2;
        }
        for (way, down) in self.ways.iter_mut().zip([false, true]) {
            way.latest = self.list.iter().rposition(|c| c.down == down);
        }
    }
}

/// The factor by which a burst of so many bytes is larger than the largest that was merged in it. `None` if it is less
/// than twice, or if the burst fits an initial window, so that it passes as one flight of packets as before.
fn growth(bytes: u64, largest: u64) -> Option<f64> {
    let much = bytes > AT_ONCE && bytes / 2 >= largest;
    much.then(|| bytes as f64 / largest.max(1) as f64)
}

/// Of bursts with their bytes and those of the largest that was merged in each: the bytes in those that are much larger
/// ([`growth`]), and these bytes times the factor.
pub(crate) fn larger(bursts: impl Iterator<Item = (u64, u64)>) -> (u64, f64) {
    bursts.fold((0, 0.0), |(sum, weighted), (bytes, largest)| {
        match growth(bytes, largest) {
            Some(factor) => (sum.saturating_add(bytes), weighted + bytes as f64 * factor),
            None => (sum, weighted),
        }
    })
}

/// Merges a run of chunks into one per direction.
fn join(run: &[Chunk], merged: &mut Vec<Chunk>) {
    let mut ended = None;
    for down in [run[0].down, !run[0].down] {
        let Some(i) = run.iter().position(|c| c.down == down) else {
            continue;
        };
        let before = i.checked_sub(1).map(|i| &run[i]);
        let pause = before.map_or(0, |b| run[i].first.saturating_sub(b.last));
        let first = ended.map_or(run[i].first, |ended: u64| ended + pause);
        let mut one = Chunk {
            bytes: 0,
            first,
            last: first,
            of: 0,
            largest: 0,
            ..run[i]
        };
        for c in run.iter().filter(|c| c.down == down) {
            one.bytes = one.bytes.saturating_add(c.bytes);
            one.last += c.last.saturating_sub(c.first);
            one.of += c.of;
            one.due = c.due;
            one.largest = one.largest.max(c.largest);
        }
        ended = Some(one.last);
        merged.push(one);
    }
}

pub(crate) use exchange::{Dues, Line, Span, correct, micros, wait};

#[cfg(test)]
mod tests;

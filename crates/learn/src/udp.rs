//! One UDP flow: its packets, or its outline.

use swell_base::Dur;
use swell_traffic::{Datagrams, RUN_ITEMS, Run};

use crate::passed::Passed;

pub(crate) mod talk;

pub(crate) use talk::Around;
use talk::Talk;

/// Maximum number of packets kept one by one; a flow with more is kept as runs.
const WHOLE: usize = 512;
/// Runs per direction at the end of a long flow; they are merged whenever there are twice as many. A flow
/// whose bursts they would spread gets more, while the model has room.
const RUNS: usize = 256;
/// Maximum number of runs per direction, however much room there is.
const MOST_RUNS: usize = 16_384;
/// Runs that move the bytes of a flow by more than this in the mean have spread its bursts, nanoseconds. Bytes move
/// with their packets, and from larger packets to smaller ones.
pub(crate) const SPREAD: u64 = 10_000_000;

/// A UDP flow being tracked.
///
/// Short flows are kept whole. Long ones become runs of evenly spaced packets, per direction and in order.
/// Neighbours are merged where that moves the fewest bytes by the least time. Packets of one size and spacing
/// cost nothing. Long pauses and long times of another rate cost most, so bursts stay in place while there are as
/// many runs as bursts. A flow gets more runs before it loses bursts, if the model has room ([`Around::spare`]);
/// otherwise neighbours are spread.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Gap in nanoseconds, whether from the client, payload bytes; empty in a long flow.
    packets: Vec<(u64, bool, u32)>,
    outlines: [Outline; 2],
    long: bool,
    pub(crate) start: u64,
    pub(crate) last: u64,
    /// Packets of the client and of the server.
    count: [u64; 2],
    /// Payload of all packets.
    pub(crate) bytes: u64,
    /// Progress when the user's next group began, if anything passed since.
    pub(crate) overtaken: Option<Passed>,
    /// The flow as requests and responses, if it may be QUIC.
    pub(crate) talk: Option<Box<Talk>>,
}

impl Flow {
    /// `quic`: `Some` if the flow may be QUIC; whether it began inside the trace.
    pub(crate) fn new(start: u64, quic: Option<bool>) -> Flow {
        Flow {
            talk: quic.map(|begins| Box::new(Talk::new(begins))),
            start,
            last: start,
            ..Flow::default()
        }
    }

    /// What has passed so far.
    pub(crate) fn progress(&self) -> Passed {
        Passed {
            packets: self.count,
            bytes: self.talk.as_ref().map_or([0; 2], |talk| talk.bytes()),
        }
    }

    /// When data moved last that the user's next group may have waited for, nanoseconds.
    pub(crate) fn active(&self) -> u64 {
        let talk = self.talk.as_ref().filter(|talk| talk.answered());
        talk.map_or(self.last, |talk| talk.active.max(self.start))
    }

    /// Adds a datagram. A silence longer than `quiet` is attributed to the application.
    pub(crate) fn push(
        &mut self,
        at: u64,
        from_client: bool,
        payload: u32,
        quiet: u64,
        around: Around,
    ) {
        if let Some(talk) = &mut self.talk {
            talk.spare = around.spare;
            talk.push(at, from_client, payload, quiet);
            talk.pair(at, from_client, around);
        }
        let gap = at.saturating_sub(self.last);
        self.last = self.last.max(at);
        let direction = usize::from(!from_client);
        self.count[direction] += 1;
        self.bytes += u64::from(payload);
        // What is kept as requests and responses needs no runs.
        let talk = &self.talk;
        let spare = || match talk {
            Some(talk) if talk.doubt().is_none() => 0,
            _ => around.spare / RUN_ITEMS,
        };
        if self.long {
            self.outlines[direction].push(self.last - self.start, payload, spare);
            return;
        }
        self.packets.push((gap, from_client, payload));
        if self.packets.len() > WHOLE {
            self.long = true;
            let mut since = 0;
            for (pause, client, bytes) in std::mem::take(&mut self.packets) {
                since += pause;
                self.outlines[usize::from(!client)].push(since, bytes, spare);
            }
        }
    }

    /// Number of items that it has got beyond those of every flow.
    pub(crate) fn granted(&self) -> usize {
        let runs: usize = self.outlines.iter().map(|o| o.granted).sum();
        RUN_ITEMS * runs + self.talk.as_ref().map_or(0, |talk| talk.granted())
    }

    /// The datagrams, and the mean time by which runs have moved their bytes at most, nanoseconds, but for the
    /// order of sizes within a few packets.
    pub(crate) fn finish(mut self) -> (Datagrams, u64) {
        for outline in &mut self.outlines {
            outline.runs = outline.merged();
        }
        let moved = moved(self.outlines.iter().flat_map(|o| &o.runs));
        let datagrams = Datagrams {
            packets: self
                .packets
                .into_iter()
                .map(|(gap, client, bytes)| (Dur::from_nanos(gap), client, bytes))
                .collect(),
            runs: self.outlines.map(Outline::finish),
        };
        (datagrams, moved)
    }
}

/// Mean time by which these runs have moved their bytes at most, nanoseconds.
fn moved<'p>(parts: impl Iterator<Item = &'p Part>) -> u64 {
    let (moved, bytes) = parts.fold((0.0, 0), |(moved, bytes), p| {
        (moved + p.moved, bytes + p.bytes)
    });
    // The packets of a part move by half as much in the mean as the one next to the pause, and surplus bytes of
    // larger packets by half the span.
    (moved / 2.0 / bytes.max(1) as f64) as u64
}

/// The runs of one direction.
#[derive(Debug, Default)]
struct Outline {
    runs: Vec<Part>,
    /// Number of runs at the end beyond [`RUNS`].
    granted: usize,
}

/// A run that may still be merged. Times are nanoseconds since the flow began.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: u64,
    last: u64,
    packets: u64,
    bytes: u64,
    sizes: [u32; 2],
    /// Bytes times the nanoseconds by which mergers have moved them so far: those of each part by the shift of its
    /// packet next to the pause, and those that changed the part by the whole span.
    moved: f64,
}

impl Outline {
    /// Adds a packet; `spare` is how many more runs there is room for.
    fn push(&mut self, at: u64, payload: u32, spare: impl FnOnce() -> usize) {
        self.runs.push(Part {
            first: at,
            last: at,
            packets: 1,
            bytes: u64::from(payload),
            sizes: [payload; 2],
            moved: 0.0,
        });
        let allowed = RUNS + self.granted;
        if self.runs.len() == 2 * allowed {
            let merged = self.merged();
            // Half of what counts as spread, as later runs have to be merged with these.
            let spread = moved(merged.iter()) > SPREAD / 2;
            if spread && allowed < MOST_RUNS && allowed <= spare() / 2 {
                self.granted += allowed;
            } else {
                self.runs = merged;
            }
        }
    }

    /// The runs after merging neighbours, the cheapest first, until at most as many are left as are allowed.
    fn merged(&self) -> Vec<Part> {
        let allowed = RUNS + self.granted;
        let mut runs = self.runs.clone();
        while runs.len() > allowed {
            let mut costs: Vec<f64> = runs.windows(2).map(|w| w[0].with(&w[1]).moved).collect();
            let surplus = runs.len() - allowed;
            let middle = surplus.min(costs.len()) - 1;
            let (_, &mut limit, _) = costs.select_nth_unstable_by(middle, f64::total_cmp);
            let mut merged: Vec<Part> = Vec::with_capacity(2 * allowed);
            // A run takes part in at most one merger per round, because a merger changes the cost of the
            // next.
            let mut fresh = true;
            let mut left = surplus;
            for &part in &runs {
                match merged.last_mut() {
                    Some(before) if fresh && left > 0 => {
                        let joined = before.with(&part);
                        if joined.moved <= limit {
                            *before = joined;
                            left -= 1;
                            fresh = false;
                            continue;
                        }
                        merged.push(part);
                    }
                    _ => {
                        merged.push(part);
                        fresh = true;
                    }
                }
            }
            runs = merged;
        }
        runs
    }

    fn finish(self) -> Vec<Run> {
        let mut ended = 0;
        self.runs
            .iter()
            .map(|p| {
                let pause = Dur::from_nanos(p.first - std::mem::replace(&mut ended, p.last));
                Run {
                    pause,
                    span: Dur::from_nanos(p.last - p.first),
                    packets: u32::try_from(p.packets).unwrap_or(u32::MAX),
                    bytes: p.bytes,
                    sizes: p.sizes,
                }
            })
            .collect()
    }
}

impl Part {
    /// Merges both into one run, whose packets have one spacing and one mean size. The cost is each part's bytes
    /// times the shift of the packet next to the pause between them; plus the bytes that one part has above the
    /// mean, which the other one sends now, times the span; plus what both have moved before.
    fn with(&self, next: &Part) -> Part {
        let packets = self.packets + next.packets;
        let bytes = self.bytes + next.bytes;
        let span = (next.last - self.first) as f64;
        let spacing = span / (packets - 1) as f64;
        let early = (self.last - self.first) as f64 - spacing * (self.packets - 1) as f64;
        let late = (next.first - self.first) as f64 - spacing * self.packets as f64;
        let shifted = self.bytes as f64 * early.abs() + next.bytes as f64 * late.abs();
        let even = self.packets as f64 * (bytes as f64 / packets as f64);
        let exchanged = (self.bytes as f64 - even).abs();
        Part {
            first: self.first,
            last: next.last,
            packets,
            bytes,
            sizes: [
                self.sizes[0].min(next.sizes[0]),
                self.sizes[1].max(next.sizes[1]),
            ],
            moved: self.moved + next.moved + shifted + exchanged * span,
        }
    }
}

#[cfg(test)]
mod tests;

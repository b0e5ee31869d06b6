//! The arithmetic of the released program (harpoon_flowproc and harpoon_conf, 2005), faults included.
//!
//! Records are never joined. The total of a session is appended to the list of file sizes as one more
//! file. An interval's target is a session's bytes, spread evenly from its first start to its last, in
//! whole seconds. Well-formed flows have SYN and FIN or RST.

use std::collections::BTreeMap;

use super::super::law::Sizes;
use super::super::model::FlowTotals;
use super::super::record::{FIN, RST, Record, SYN, micros_between};
use super::sessions::Sessions;
use super::timeline::{Start, Timeline};

const SECOND: i64 = 1_000_000_000;
/// A longer gap between two flows of a pair begins another line (`-i`).
const SESSION_GAP: i64 = 60 * SECOND;
/// Minimum payload of a file, bytes.
const MIN_FILE: u64 = 100;
/// Maximum inter-connection time, microseconds; longer ones are ignored.
const MAX_GAP: u64 = 300_000_000;
/// The program raises an exception on files of 2 GiB; here they are left out.
const MAX_FILE: u64 = 1 << 31;

#[derive(Debug, Default)]
pub(super) struct Released {
    pub(super) sizes: Sizes,
    pub(super) sessions: Sessions,
    capacity: usize,
    waiting: BTreeMap<(i64, u64), Flow>,
    serial: u64,
    pairs: BTreeMap<(u128, u128), Line>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    pair: (u128, u128),
    ports: (u16, u16),
    first: i64,
    payload: u64,
    well_formed: bool,
}

/// A session of a pair of hosts.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Start of the first file.
    first: i64,
    /// Start of the last well-formed flow.
    clock: i64,
    /// The last file in the lists.
    last: Option<Flow>,
    /// The next file. A flow with the same start replaces it.
    pending: Option<Flow>,
    bytes: u64,
}

impl Released {
    pub(super) fn new(capacity: usize) -> Released {
        Released {
            sessions: Sessions::new(capacity),
            capacity,
            ..Released::default()
        }
    }

    pub(super) fn add(&mut self, record: &Record, totals: &mut FlowTotals) {
        let (hosts, ports) = (
            (record.source, record.destination),
            (record.source_port, record.destination_port),
        );
        let turned = ((hosts.1, hosts.0), (ports.1, ports.0));
        let both = [
            (Some(record.forward), (hosts, ports)),
            (record.reverse, turned),
        ];
        for (side, (pair, sides_ports)) in both {
            let Some(side) = side.filter(|s| s.packets > 0) else {
                continue;
            };
            let flow = Flow {
                pair,
                ports: sides_ports,
                first: side.first,
                payload: side.payload(record.header),
                well_formed: side.has(SYN) && side.has(FIN | RST),
            };
            if flow.payload < MIN_FILE {
                totals.small += 1;
                totals.small_bytes = totals.small_bytes.saturating_add(flow.payload);
            }
            self.waiting.insert((flow.first, self.serial), flow);
            self.serial += 1;
        }
    }

    /// Processes all flows that began before `until`, in order.
    pub(super) fn release(&mut self, until: i64, totals: &mut FlowTotals, timeline: &mut Timeline) {
        while let Some((&(first, _), _)) = self.waiting.first_key_value() {
            let settled = first < until;
            if !settled && self.waiting.len() <= self.capacity {
                break;
            }
            if let Some((_, flow)) = self.waiting.pop_first() {
                totals.evicted += u64::from(!settled);
                self.take(flow, totals, timeline);
            }
        }
        while self.pairs.len() > self.capacity {
            if let Some((_, mut line)) = self.pairs.pop_first() {
                totals.evicted += 1;
                self.settle(&mut line, timeline);
                self.end(&line, timeline);
            }
        }
    }

    pub(super) fn finish(&mut self, timeline: &mut Timeline) {
        while let Some((_, mut line)) = self.pairs.pop_first() {
            self.settle(&mut line, timeline);
            self.end(&line, timeline);
        }
    }

    fn take(&mut self, flow: Flow, totals: &mut FlowTotals, timeline: &mut Timeline) {
        if !flow.well_formed {
            return;
        }
        let known = self.pairs.remove(&flow.pair);
        let mut line = match known {
            Some(mut line) if flow.first - line.clock > SESSION_GAP => {
                self.settle(&mut line, timeline);
                self.end(&line, timeline);
                Line::default()
            }
            Some(line) => line,
            None => Line::default(),
        };
        // Flows too small for a file still keep the session alive.
        line.clock = flow.first;
        if (MIN_FILE..MAX_FILE).contains(&flow.payload) {
            // The program keys the flows of a pair by their start: the later one replaces the earlier.
            if line.pending.is_some_and(|p| p.first != flow.first) {
                self.settle(&mut line, timeline);
            }
            line.pending = Some(flow);
        } else if flow.payload >= MAX_FILE {
            totals.refused += 1;
        }
        self.pairs.insert(flow.pair, line);
    }

    /// Adds the pending flow of a session to the lists.
    fn settle(&mut self, line: &mut Line, timeline: &mut Timeline) {
        let Some(flow) = line.pending.take() else {
            return;
        };
        let repeats = line.last.is_some_and(|last| {
            last.ports == flow.ports
                && last.first.div_euclid(SECOND) == flow.first.div_euclid(SECOND)
                && last.payload == flow.payload
        });
        if repeats {
            return;
        }
        match line.last {
            Some(last) => {
                let gap = micros_between(last.first, flow.first);
                if gap < MAX_GAP {
                    self.sessions.gaps.add(gap);
                }
            }
            None => line.first = flow.first,
        }
        timeline.begin(&Start {
            at: flow.first,
            client: flow.pair.0,
            server: flow.pair.1,
            sampled: false,
        });
        self.sizes.complete.add(flow.payload);
        line.bytes = line.bytes.saturating_add(flow.payload);
        line.last = Some(flow);
    }

    /// Ends a session: its total goes into the list of sizes, too.
    fn end(&mut self, line: &Line, timeline: &mut Timeline) {
        let Some(last) = line.last else { return };
        self.sizes.complete.add(line.bytes);
        let whole = |t: i64| t.div_euclid(SECOND) * SECOND;
        timeline.spread(line.bytes, whole(line.first), whole(last.first));
        let index = timeline.index(line.first);
        timeline.session_at(index);
        self.sessions.clients.add(last.pair.0, self.capacity);
        self.sessions.servers.add(last.pair.1, self.capacity);
    }
}

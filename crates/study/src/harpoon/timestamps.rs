//! How true the times of flow records are (section 4 of the paper, table 2), and what sessions that are counted
//! from them come to.
//!
//! The records are those of the original, from the project's own metering. A flow is one direction of a
//! connection; its begin and end by its records are held against those by its packets. The paper's router is
//! unknown inside; its stand-in is a cache whose entries hold no time of their last packet: a sweep, every so often,
//! stamps those that were used since the one before with its own time.

use std::collections::BTreeMap;
use std::net::IpAddr;

use swell_base::Dur;
use swell_stats::Ecdf;
use swell_traffic::flowlevel::Profile;

use super::exporter::TrueFlow;
use super::run::{COARSE, Original, learn};
use swell_experiment::run::grid::Cell;

pub mod claims;
mod figures;
#[cfg(test)]
mod tests;

pub use figures::section;

/// A longer wait between two connections of a pair of hosts ends their session: the learner's own bound.
const SESSION_GAP: Dur = Dur::from_secs(60);
/// Between two sweeps of the cache that has the paper's errors: uniform between zero and this, they have mean and
/// median 450 ms and a standard deviation of 260 ms, for which the paper has 454, 461 and 254.
pub const SWEEP: Dur = Dur::from_millis(900);
/// Sweeps that are tried, none first.
const SWEEPS: [Dur; 6] = [
    Dur::ZERO,
    Dur::from_millis(100),
    Dur::from_millis(300),
    SWEEP,
    Dur::from_secs(3),
    Dur::from_secs(10),
];

/// Quantiles of the errors.
pub const QUANTILES: [(&str, f64); 11] = [
    ("end_1", 0.01),
    ("end_10", 0.1),
    ("end_20", 0.2),
    ("end_30", 0.3),
    ("end_40", 0.4),
    ("end_50", 0.5),
    ("end_60", 0.6),
    ("end_70", 0.7),
    ("end_80", 0.8),
    ("end_90", 0.9),
    ("end_99", 0.99),
];

/// Flows that have records; errors of begin and end in seconds, late is positive; sessions that are active in the
/// mean, by the times of the records and by those of the packets, mean lifetime of a session by the packets in
/// seconds; bytes that playing so many sessions is expected to move over those that there were.
pub const NUMBERS: &[&str] = &[
    "flows",
    "begin_mean",
    "begin_sd",
    "begin_50",
    "begin_99",
    "end_mean",
    "end_sd",
    "end_1",
    "end_10",
    "end_20",
    "end_30",
    "end_40",
    "end_50",
    "end_60",
    "end_70",
    "end_80",
    "end_90",
    "end_99",
    "sessions",
    "true_sessions",
    "lifetime",
    "volume",
    "true_volume",
];

/// One way to stamp records, and what they are held against.
#[derive(Clone, Copy)]
pub struct TimesCell<'a> {
    /// Whose records.
    pub original: &'a Original,
    /// Between two sweeps of the cache; zero: entries hold the time of their last packet.
    pub sweep: Dur,
    /// Held against the packets with payload alone.
    pub payload: bool,
}

/// All of them: as metered against all packets and against payload, then the sweeps.
pub fn cells(original: &Original) -> Vec<TimesCell<'_>> {
    let cell = |sweep, payload| TimesCell {
        original,
        sweep,
        payload,
    };
    let mut cells: Vec<_> = SWEEPS.iter().map(|&sweep| cell(sweep, false)).collect();
    cells.insert(1, cell(Dur::ZERO, true));
    cells
}

impl Cell for TimesCell<'_> {
    const KEYS: &'static [&'static str] = &["sweep_ms", "against"];
    const NUMBERS: &'static [&'static str] = NUMBERS;

    fn key(&self) -> Vec<String> {
        let against = if self.payload { "payload" } else { "packets" };
        vec![
            (self.sweep.as_nanos() / 1_000_000).to_string(),
            against.to_owned(),
        ]
    }

    fn settings(&self) -> String {
        let o = self.original;
        format!("{} {} {} 1", o.model.name, o.sessions, o.duration)
    }

    fn cost(&self) -> f64 {
        1.0
    }

    fn run(&self) -> Vec<f64> {
        let nothing = || vec![f64::NAN; NUMBERS.len()];
        let seen = self.original.seen();
        let flows: Vec<Timed> = matched(&seen.records, &seen.flows, self.payload, self.sweep);
        let begin = Ecdf::new(flows.iter().map(|f| f.off(0)).collect());
        let end = Ecdf::new(flows.iter().map(|f| f.off(1)).collect());
        let Ok(model) = learn(&seen.records, Profile::Fixed, COARSE) else {
            return nothing();
        };
        let (Some(said), Some(lived)) = (sessions(&flows, |f| f.said), sessions(&flows, |f| f.was))
        else {
            return nothing();
        };
        let number = |x: Option<f64>| x.unwrap_or(f64::NAN);
        let mut out = vec![flows.len() as f64];
        out.extend(
            [
                begin.mean(),
                begin.sd(),
                begin.quantile(0.5),
                begin.quantile(0.99),
            ]
            .map(number),
        );
        out.extend([end.mean(), end.sd()].map(number));
        out.extend(QUANTILES.iter().map(|q| number(end.quantile(q.1))));
        // Sessions times what each is expected to move in the time, over what was moved.
        let span = self.original.duration;
        let each = model.session_bytes().unwrap_or(f64::NAN) / COARSE.as_secs_f64();
        let moved: u64 = model.tcp.intervals.iter().map(|i| i.bytes).sum();
        let active = |s: &Sessions| s.lifetimes / span.as_secs_f64();
        let volume = |s: &Sessions| s.lifetimes * each / moved as f64;
        out.extend([active(&said), active(&lived)]);
        out.push(lived.lifetimes / lived.count as f64);
        out.extend([volume(&said), volume(&lived)]);
        out
    }
}

/// A flow's begin and end, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Timed {
    hosts: [IpAddr; 2],
    /// By its records.
    said: [i64; 2],
    /// By its packets.
    was: [i64; 2],
}

impl Timed {
    /// By how much its records are late, in seconds, at the begin or at the end.
    fn off(&self, which: usize) -> f64 {
        (self.said[which] - self.was[which]) as f64 / 1e9
    }
}

/// Flows with their records. Those of which a cache keeps no record, or against payload those without, are left out.
fn matched(
    records: &[swell_capture::flow::FlowRecord],
    flows: &[TrueFlow],
    payload: bool,
    sweep: Dur,
) -> Vec<Timed> {
    let mut index: BTreeMap<[(IpAddr, u16); 2], Vec<[i64; 2]>> = BTreeMap::new();
    for r in records {
        let ends = [(r.src, r.src_port), (r.dst, r.dst_port)];
        index.entry(ends).or_default().push([r.first, r.last]);
    }
    let timed = |flow: &TrueFlow| {
        let was = if payload { flow.payload? } else { flow.packets };
        // Ports may come again: records of this flow lie within it.
        let [from, to] = flow.packets;
        let own = index.get(&flow.ends)?.iter();
        let mut own = own.filter(|r| r[0] >= from && r[1] <= to).peekable();
        own.peek()?;
        let said = own.fold([i64::MAX, i64::MIN], |s, r| {
            [s[0].min(r[0]), s[1].max(r[1])]
        });
        Some(Timed {
            hosts: [flow.ends[0].0, flow.ends[1].0],
            said: [said[0], stamped(said[1], sweep)],
            was,
        })
    };
    flows.iter().filter_map(timed).collect()
}

/// When the end of a flow is stamped: by the first sweep after its last packet.
fn stamped(last: i64, sweep: Dur) -> i64 {
    match i64::try_from(sweep.as_nanos()) {
        Ok(period) if period > 0 => (last.div_euclid(period) + 1) * period,
        _ => last,
    }
}

/// Sessions by their lifetimes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sessions {
    count: u64,
    /// From the first begin to the last end, all added up, seconds. Spread over intervals in proportion, as the
    /// paper says, it is the sessions that are active in each times its length.
    lifetimes: f64,
}

/// Counts sessions as the paper first did: connections of a pair of hosts from the earliest begin to the latest end.
fn sessions(flows: &[Timed], times: impl Fn(&Timed) -> [i64; 2]) -> Option<Sessions> {
    let mut pairs: BTreeMap<[IpAddr; 2], Vec<[i64; 2]>> = BTreeMap::new();
    for flow in flows {
        let mut pair = flow.hosts;
        pair.sort_unstable();
        pairs.entry(pair).or_default().push(times(flow));
    }
    let gap = SESSION_GAP.as_nanos() as i64;
    let (mut count, mut nanos) = (0u64, 0i64);
    for spans in pairs.values_mut() {
        spans.sort_unstable();
        let mut spans = spans.iter();
        let Some(&first) = spans.next() else { continue };
        let (mut begin, mut start, mut end) = (first[0], first[0], first[1]);
        for &[next, last] in spans {
            if next - start > gap {
                count += 1;
                nanos += end - begin;
                (begin, end) = (next, last);
            }
            start = next;
            end = end.max(last);
        }
        count += 1;
        nanos += end - begin;
    }
    (count > 0).then_some(Sessions {
        count,
        lifetimes: nanos as f64 / 1e9,
    })
}

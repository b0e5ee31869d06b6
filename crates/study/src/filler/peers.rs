//! Number by number against ns-2.35 on the same traces.

use super::Trace;
use super::anchors::{ANCHORS, Figures};
use super::cells::FillerCell;
use super::results::Results;
use crate::{Section, Table};

/// Delays may differ by this share.
const DELAY: f64 = 0.02;
/// Throughputs may differ by this share.
const KILOBYTES: f64 = 0.03;
/// Drops may differ by this share, or by [`POINTS`].
const DROPS: f64 = 0.1;
/// Percentage points.
const POINTS: f64 = 0.05;

/// What the comparison gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Numbers compared.
    pub compared: usize,
    /// Of which are within their tolerance.
    pub within: usize,
    /// The others.
    pub misses: Table,
}

/// The comparison as a part of the study.
pub fn section(results: &Results<'_>, traces: &[Trace]) -> Section {
    let compared = compare(results, traces);
    Section {
        title: "Against ns-2.35".to_string(),
        what: format!(
            "{} of {} numbers are within their tolerance: delays 2 %, throughputs 3 %, drops 10 % or \
             0.05 points. At 250 ms everything hangs on one episode: slow start overshoots by a thousand \
             packets, ns-2's sender needs one or two time-outs to repair that and leaves with a \
             threshold of 86 to 350 packets, from where a packet per two round trips is not back at \
             the rate of the link after 600 s.",
            compared.within, compared.compared
        ),
        pictures: Vec::new(),
        tables: vec![compared.misses],
    }
}

/// Compares every number that ns-2 gave with ours.
pub fn compare(results: &Results<'_>, traces: &[Trace]) -> Comparison {
    let mut c = Comparison::default();
    c.misses.title = "Outside the tolerance".to_string();
    c.misses.head = ["run", "number", "ours", "ns-2.35", "off by"]
        .map(str::to_string)
        .to_vec();
    for a in &ANCHORS {
        let Some(trace) = traces.iter().find(|t| t.name == a.trace) else {
            continue;
        };
        let there = a.filler.is_some();
        let query = FillerCell::base(trace)
            .link(a.rate, a.latency)
            .filler(there);
        let run = format!(
            "{}, {} Mbit/s, {} ms, {}",
            a.trace,
            a.rate,
            a.latency,
            if there { "filler" } else { "none" }
        );
        let mut check = |name: &str, theirs: f64, share: f64, floor: f64| {
            let Some(ours) = results.get(query, name) else {
                return;
            };
            c.compared += 1;
            let off = ours - theirs;
            if off.abs() <= (theirs * share).max(floor) {
                c.within += 1;
            } else {
                c.misses.rows.push(vec![
                    run.clone(),
                    name.to_string(),
                    format!("{ours:.3}"),
                    format!("{theirs:.3}"),
                    format!("{:+.1} %", off / theirs * 100.0),
                ]);
            }
        };
        let mut figures = |who: &str, f: &Figures| {
            check(&format!("{who}_drop_pct"), f.dropped, DROPS, POINTS);
            check(&format!("{who}_delay_ms"), f.delay, DELAY, 0.0);
            check(&format!("{who}_kbytes_per_s"), f.kilobytes, KILOBYTES, 0.0);
        };
        figures("pre_fwd", &a.present);
        if let Some(f) = &a.filler {
            figures("fil", f);
        }
        check("pre_rev_delay_ms", a.reverse_delay, DELAY, 0.0);
    }
    c
}

//! Applications that stream: most of their bytes belong to no request, or they send at a pace of their own.

use swell_base::Direction;
use swell_stats::mean;

use super::condition::{Condition, Pairs};
use super::own::{Asked, HEADERS, Own, WORD};
use swell_experiment::measure::{BUILT_IN, Measure};
use swell_experiment::observe::{LinkTotals, Request};
use swell_experiment::store::RunResult;

/// A foreground that carries more than this many times the bytes of its responses does more than make requests.
const ELSEWHERE: u64 = 2;

/// Packets of the foreground in all runs, both ways, and their payload in bytes.
fn carried(asked: &Asked, pairs: &Pairs<'_>) -> (u64, u64) {
    // Count each packet once, at the first link of its path.
    let first = |run| {
        let ways = Direction::BOTH.map(|d| asked.way(run, d).into_iter().next());
        ways.into_iter().flatten()
    };
    let all = pairs.all().flat_map(first);
    let (packets, bytes) = all.fold((0, 0), |sum: (u64, u64), own| {
        (sum.0 + own.arrived_packets, sum.1 + own.departed)
    });
    (packets, bytes.saturating_sub(HEADERS * packets))
}

/// Whether most of what the foreground carried belongs to no response.
pub(super) fn most_bytes_are_in_no_request(asked: &Asked, pairs: &Pairs<'_>) -> bool {
    let (packets, payload) = carried(asked, pairs);
    let requests = pairs.all().flat_map(|r| &r.observed.requests);
    let responses: u64 = requests.map(|r| r.bytes).sum();
    payload > ELSEWHERE * responses && payload > WORD * packets
}

/// Payload that fits into an initial window of TCP, bytes: ten segments (RFC 6928).
const INITIAL_WINDOW: u64 = 14_600;

/// Whether the requests are exchanges of a few packets, and most of their time is spent until the answer begins. Their
/// times are constant where nothing delays them. A download, an upload or a stream of fixed time carries more.
pub(super) fn are_exchanges(asked: &Asked, pairs: &Pairs<'_>) -> bool {
    let requests = || pairs.all().flat_map(|run| &run.observed.requests);
    let until = |end: fn(&Request) -> f64| requests().map(|r| end(r) - r.start).sum::<f64>();
    let (_, payload) = carried(asked, pairs);
    // NaN where no first byte was seen.
    2.0 * until(|r| r.first_byte) >= until(|r| r.last_byte)
        && payload <= INITIAL_WINDOW * requests().count() as u64
}

/// What a transfer carries per round trip at least once slow start is over, bytes: a window without scaling (RFC 9293).
const WINDOW: f64 = 65_535.0;

/// What a loss may leave of a window: a segment.
const SEGMENT: f64 = 1_460.0;

/// An answer that takes more than this many times as long as the network needs for it waits for its server.
const FAR: f64 = 2.0;

/// Whether most answers of a program come at a pace of the server's, as live feeds do: in the runs without traffic, most
/// of a request's time lies after the first byte, and is far longer than its bytes take over the link and in slow start.
/// The last byte of such an answer is late by what it alone waits for, whatever the parts before it waited for.
pub(super) fn answers_are_paced(asked: &Asked, idle: &Condition<'_>) -> bool {
    let round_trip = idle.propagation[0] + idle.propagation[1];
    let (mut paced, mut all) = (0, 0);
    for run in idle.runs.iter().flatten().filter(|_| asked.program) {
        let way = asked.main(run);
        let rates = way.iter().filter_map(|own| link(run, own)).map(|l| l.rate);
        let rate = rates.fold(f64::INFINITY, f64::min);
        let window = match way.iter().any(|own| own.dropped > 0) {
            true => SEGMENT,
            false => WINDOW,
        };
        for r in &run.observed.requests {
            let bytes = r.bytes as f64;
            let slow_start = (bytes / INITIAL_WINDOW as f64).ln_1p() / std::f64::consts::LN_2;
            let needed = round_trip * (1.0 + slow_start + bytes / window) + bytes * 8.0 / rate;
            // NaN where no byte was seen.
            let (answer, whole) = (r.last_byte - r.first_byte, r.last_byte - r.start);
            paced += usize::from(2.0 * answer >= whole && answer > FAR * needed);
            all += 1;
        }
    }
    2 * paced > all
}

/// The direction of the link that these counts are of.
fn link<'r>(run: &'r RunResult, own: &Own<'_>) -> Option<&'r LinkTotals> {
    let mut links = run.observed.links.iter();
    links.find(|l| (&*l.link, l.direction) == (own.link, own.direction))
}

/// A stream that uses less than this share of an otherwise idle link is not limited by the link.
const PACED: f64 = 0.5;

/// The reason why the rate of a self-paced stream, such as a call or a live feed, does not decide. Its rate is the same
/// whether its packets arrive in time or late, and packets do not show when the application needed them. Only a measure
/// that the program reports can; `None` where it reports one.
pub(super) fn paces_itself(asked: &Asked, pairs: &Pairs<'_>) -> Option<String> {
    let itself = |m: &Measure| BUILT_IN.iter().all(|name| *name != m.name);
    let reports = asked.measures.iter().any(itself);
    let shares = pairs.under.iter().filter_map(|run| {
        let share =
            |own: &Own<'_>| Some(own.departed as f64 * 8.0 / own.duration / link(run, own)?.rate);
        let main = asked.main(run);
        main.iter().filter_map(share).max_by(f64::total_cmp)
    });
    let shares: Vec<f64> = shares.filter(|s| s.is_finite()).collect();
    let idle = mean(&shares).is_some_and(|share| share < PACED);
    (asked.program && idle && !reports).then(|| {
        "it sends at a pace of its own, and how late that comes is not measured (--measure)".into()
    })
}

/// Whether most of the foreground's bytes leave links while a request is outstanding, as in an upload. Request times
/// then reflect their delay.
pub(super) fn most_bytes_pass_during_requests(pairs: &Pairs<'_>) -> bool {
    let (mut during, mut all) = (0, 0);
    for run in pairs.all() {
        let observed = &run.observed;
        let mut times: Vec<f64> = observed.bins.iter().map(|b| b.time).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        let widths = times.windows(2).map(|w| w[1] - w[0]);
        let width = widths.reduce(f64::min).unwrap_or(0.0);
        for bin in &observed.bins {
            let meets = |r: &Request| r.start <= bin.time + width && r.observed_until >= bin.time;
            all += bin.departed[0];
            if observed.requests.iter().any(meets) {
                during += bin.departed[0];
            }
        }
    }
    2 * during > all
}

//! Applications that stream: most of their bytes belong to no request, or they send at a pace of their own.

use swell_base::Direction;
use swell_stats::mean;

use super::condition::{Condition, Pairs};
use super::own::{Asked, HEADERS, Own, WORD};
use swell_experiment::measure::{BUILT_IN, Measure};
use swell_experiment::observe::{Bin, LinkTotals, Request};
use swell_experiment::store::RunResult;

/// A foreground that carries more than this many times the bytes of its responses does more than make requests.
const ELSEWHERE: u64 = 2;

/// Packets of the foreground in these runs, both ways, and their payload in bytes.
fn carried<'r>(asked: &Asked, runs: impl Iterator<Item = &'r RunResult>) -> (u64, u64) {
    // Count each packet once, at the first link of its path.
    let first = |run| {
        let ways = Direction::BOTH.map(|d| asked.way(run, d).into_iter().next());
        ways.into_iter().flatten()
    };
    let all = runs.flat_map(first);
    let (packets, bytes) = all.fold((0, 0), |sum: (u64, u64), own| {
        (sum.0 + own.arrived_packets, sum.1 + own.departed)
    });
    (packets, bytes.saturating_sub(HEADERS * packets))
}

/// Whether most of what the foreground carried in these runs belongs to no response.
pub(super) fn most_bytes_are_in_no_request<'r>(
    asked: &Asked,
    runs: impl Iterator<Item = &'r RunResult> + Clone,
) -> bool {
    let (packets, payload) = carried(asked, runs.clone());
    let requests = runs.flat_map(|r| &r.observed.requests);
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
    let (_, payload) = carried(asked, pairs.all());
    // NaN where no first byte was seen.
    2.0 * until(|r| r.first_byte) >= until(|r| r.last_byte)
        && payload <= INITIAL_WINDOW * requests().count() as u64
}

/// What a transfer carries per round trip at least once slow start is over, bytes: a window without scaling (RFC 9293).
const WINDOW: f64 = 65_535.0;

/// What a loss may leave of a window: a segment.
const SEGMENT: f64 = 1_460.0;

/// What takes more than this many times as long as the network needs for it waits for its server or its client.
const FAR: f64 = 2.0;

impl Asked {
    /// The same, knowing the runs without traffic.
    pub(super) fn with_idle(mut self, idle: Option<&Condition<'_>>) -> Asked {
        self.paced = idle.is_some_and(|idle| are_paced(&self, idle));
        self
    }
}

/// Whether requests take the time that one of the two ends needs to send, rather than that of the network, as the runs
/// without traffic show. The last byte is then late by what it alone waits for, whatever the data before it waited for.
fn are_paced(asked: &Asked, idle: &Condition<'_>) -> bool {
    asked.program && (answers_are_paced(asked, idle) || transfers_are_paced(asked, idle))
}

/// What a network without other traffic does to the data of a program in one direction.
struct Network {
    /// Both ways, seconds.
    round_trip: f64,
    /// Of the slowest link of the path, bit/s.
    rate: f64,
    /// What a transfer carries per round trip, bytes.
    window: f64,
    /// The bins of the path's last link: when they begin, and what they carried of the program, bytes.
    bins: Vec<(f64, u64)>,
    /// How long a bin is, seconds; not above zero where there are none.
    width: f64,
}

impl Network {
    /// What the path in the program's main direction does, in a run without traffic.
    fn of(asked: &Asked, idle: &Condition<'_>, run: &RunResult) -> Network {
        let way = asked.main(run);
        let rates = way.iter().filter_map(|own| link(run, own)).map(|l| l.rate);
        let last = way.last();
        let here = |bin: &&Bin| {
            last.is_some_and(|own| (&*bin.link, bin.direction) == (own.link, own.direction))
        };
        let bins = run.observed.bins.iter().filter(here);
        let mut bins: Vec<(f64, u64)> = bins.map(|bin| (bin.time, bin.departed[0])).collect();
        bins.sort_by(|a, b| a.0.total_cmp(&b.0));
        let widths = bins.windows(2).map(|two| two[1].0 - two[0].0);
        Network {
            round_trip: idle.propagation[0] + idle.propagation[1],
            rate: rates.fold(f64::INFINITY, f64::min),
            window: match way.iter().any(|own| own.dropped > 0) {
                true => SEGMENT,
                false => WINDOW,
            },
            width: widths.reduce(f64::min).unwrap_or(0.0),
            bins,
        }
    }

    /// How long it needs for a request and an answer, one of which holds so many bytes, seconds.
    fn needs(&self, bytes: f64) -> f64 {
        let slow_start = (bytes / INITIAL_WINDOW as f64).ln_1p() / std::f64::consts::LN_2;
        self.round_trip * (1.0 + slow_start + bytes / self.window) + bytes * 8.0 / self.rate
    }

    /// When the data begin and end that leave in the bins which `counts` picks by their beginning, and how many bytes they
    /// are; `None` if there are none, or there is a pause in them, or they take longer than the network needs for `bytes`.
    fn in_one_go(&self, bytes: f64, counts: impl Fn(f64) -> bool) -> Option<(f64, f64, u64)> {
        let own = self.bins.iter().filter(|b| b.1 > 0 && counts(b.0));
        let own: Vec<&(f64, u64)> = own.collect();
        let (begin, end) = (own.first()?.0, own.last()?.0 + self.width);
        let apart = |two: &[&(f64, u64)]| two[1].0 - two[0].0 > 1.5 * self.width;
        let is_fast = end - begin <= self.needs(bytes) + 2.0 * self.width;
        (self.width > 0.0 && is_fast && !own.windows(2).any(apart))
            .then(|| (begin, end, own.iter().map(|b| b.1).sum()))
    }
}

/// What the head of an answer may hold, bytes: two segments.
const HEAD: u64 = 2 * 1_460;

/// Whether most answers of a program come at a pace of the server's, as live feeds do: in the runs without traffic, most
/// of a request's time lies after the first byte, and is far longer than its bytes take over the link and in slow start.
/// A server may also send the head of its answer at once and compute the rest: that comes in one go, after a silence that
/// is most of the time. Bins of the links must show it.
fn answers_are_paced(asked: &Asked, idle: &Condition<'_>) -> bool {
    let (mut paced, mut all) = (0, 0);
    for run in idle.runs.iter().flatten() {
        let network = Network::of(asked, idle, run);
        for r in &run.observed.requests {
            let bytes = r.bytes as f64;
            // NaN where no byte was seen.
            let (answer, whole) = (r.last_byte - r.first_byte, r.last_byte - r.start);
            let is_slow = 2.0 * answer >= whole && answer > FAR * network.needs(bytes);
            paced += usize::from(is_slow && !is_computed(&network, r));
            all += 1;
        }
    }
    2 * paced > all
}

/// Whether nothing but the head of an answer came for most of its time, and then the rest in one go.
fn is_computed(network: &Network, r: &Request) -> bool {
    let after_head = |bin: f64| bin >= r.first_byte && bin <= r.last_byte;
    let rest = network.in_one_go(r.bytes as f64, after_head);
    rest.is_some_and(|(begin, _, bytes)| {
        let is_silent = 2.0 * (begin - r.first_byte) >= r.last_byte - r.first_byte;
        is_silent && 2 * bytes >= r.bytes && bytes + HEAD >= r.bytes
    })
}

/// Whether most data of a program belong to no answer, as in uploads, and come at a pace of its own: in the runs without
/// traffic, most of the time passes in requests that begin to be answered far later than such data take over the link.
/// An end may also compute before it answers, or before it sends: the data then go in one go, and there is silence for
/// most of the time.
fn transfers_are_paced(asked: &Asked, idle: &Condition<'_>) -> bool {
    let runs = || idle.runs.iter().flatten().copied();
    if !most_bytes_are_in_no_request(asked, runs()) {
        return false;
    }
    let (mut paced, mut all) = (0.0, 0.0);
    for run in runs() {
        let network = Network::of(asked, idle, run);
        let requests = &run.observed.requests;
        let way = asked.main(run);
        let sent = way.first().map_or(0, |own| {
            own.arrived.saturating_sub(HEADERS * own.arrived_packets)
        });
        // Sizes are not known one by one. What passes in the time of a large one is more than their mean.
        let each = sent as f64 / requests.len().max(1) as f64;
        for r in requests {
            let end = match r.first_byte.is_finite() && asked.directions[0] == Direction::Up {
                true => r.first_byte,
                false => r.observed_until,
            };
            let took = end - r.start;
            let before = |bin: f64| bin + network.width > r.start && bin + network.width <= end;
            let own = network.bins.iter().filter(|b| before(b.0)).map(|b| b.1);
            let size = each.max(own.sum::<u64>() as f64);
            let is_slow = took > FAR * network.needs(size);
            let data = network.in_one_go(size, before);
            let is_computed = data.is_some_and(|(begin, last, _)| 2.0 * (last - begin) <= took);
            paced += if is_slow && !is_computed { took } else { 0.0 };
            all += took;
        }
    }
    2.0 * paced > all
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

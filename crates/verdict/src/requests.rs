//! What the times of requests cover: fixed times, unfinished requests, waits.

use std::collections::BTreeMap;

use swell_base::Bytes;
use swell_stats::{Observation, cov};

use super::answer::{DECISIVE, MARGIN};
use super::condition::Pairs;
use super::own::Asked;
use super::values::Found;
use swell_experiment::measure::Measure;
use swell_experiment::observe::{Outcome, Request};
use swell_experiment::store::RunResult;

/// Durations with a coefficient of variation below this are fixed by the program, not by the network.
const CONSTANT: f64 = 0.01;

/// If mean response sizes differ by more than this share, the two conditions did not fetch the same responses.
const OTHER_BYTES: f64 = 0.02;

/// Whether all requests completed and took the same time, as in a program that runs for a fixed time.
pub(super) fn durations_are_constant(
    over: &[Vec<Observation>],
    under: &[Vec<Observation>],
) -> bool {
    let all = || over.iter().chain(under).flatten();
    let values: Vec<f64> = all().map(|o| o.value).collect();
    values.len() > 1 && all().all(|o| o.complete) && cov(&values).is_some_and(|c| c < CONSTANT)
}

/// Whether the mean size of completed responses differs between the conditions, or cannot be told because one of them
/// completed none.
pub(super) fn bytes_differ(pairs: &Pairs<'_>) -> bool {
    let each = |runs: &mut dyn Iterator<Item = &RunResult>| {
        let done = runs
            .flat_map(|r| &r.observed.requests)
            .filter(|r| r.outcome == Outcome::Done);
        let (bytes, n) = done.fold((0.0, 0.0), |(b, n), r| (b + r.bytes as f64, n + 1.0));
        bytes / n
    };
    let over = each(&mut pairs.over.iter().copied());
    let under = each(&mut pairs.under.iter().copied());
    let apart = (over - under).abs() > OTHER_BYTES * over.max(under);
    apart || over.is_nan() || under.is_nan()
}

/// If the share of requests without completion exceeds that of the other condition by more than this, the end of the
/// run does not explain it.
const MORE_CUT_OFF: f64 = 0.1;

/// The Kaplan-Meier estimate assumes that censored requests would have continued like the others. Requests that hang
/// would not.
pub(super) fn more_are_cut_off(
    [over, under]: [&[Vec<Observation>]; 2],
    [a, b]: &[String; 2],
) -> Option<String> {
    let count = |of: &[Vec<Observation>]| {
        let all = of.iter().flatten();
        (all.clone().filter(|o| !o.complete).count(), all.count())
    };
    let ((with, n), (without, m)) = (count(over), count(under));
    let share = |k: usize, of: usize| k as f64 / of as f64;
    ((share(with, n) - share(without, m)).abs() > MORE_CUT_OFF)
        .then(|| format!("{with} of {n} requests did not finish {a}, {without} of {m} {b}"))
}

/// Number of completed requests. One that the end of the run cut off counts as the part that it had waited of a median
/// request of its size, at most as one: whole numbers of few requests say little about their rate. One that was given up
/// before does not count, and none of a size that never completed. `sizes` are requested in turn; empty if not known.
fn completed(requests: &[Request], sizes: &[Bytes]) -> f64 {
    let size = |r: &Request| {
        let turn = (r.index as usize).checked_rem(sizes.len());
        turn.map(|i| sizes[i])
    };
    let mut times: BTreeMap<Option<Bytes>, Vec<f64>> = BTreeMap::new();
    for r in requests.iter().filter(|r| r.outcome == Outcome::Done) {
        times
            .entry(size(r))
            .or_default()
            .push(r.last_byte - r.start);
    }
    let done: usize = times.values().map(Vec::len).sum();
    for own in times.values_mut() {
        own.sort_by(f64::total_cmp);
    }
    let first = requests.iter().map(|r| r.start).fold(f64::MAX, f64::min);
    let last = requests
        .iter()
        .map(|r| r.observed_until)
        .fold(0.0, f64::max);
    let at_end = |r: &&Request| last - r.observed_until <= AT_END * (last - first);
    let open = requests.iter().filter(|r| r.outcome == Outcome::Unfinished);
    let part = |r: &Request| {
        let own = times.get(&size(r))?;
        let median = own.get(own.len() / 2)?;
        Some(((r.observed_until - r.start) / median).min(1.0))
    };
    done as f64 + open.filter(at_end).filter_map(part).sum::<f64>()
}

/// What is observed until this share of a run before its end is observed until its end.
const AT_END: f64 = 1e-3;

/// Requests of which the sizes of responses have a larger coefficient of variation are not alike.
const UNLIKE: f64 = 0.1;

/// The reason why a ratio of request rates shows no difference: requests are not alike, so that their number depends on
/// which of them a run ends with, and one more or less in each run of both conditions would bring it within the margin.
fn last_one_counts(sizes: &[Bytes], pairs: &Pairs<'_>, ratio: f64) -> Option<String> {
    let requests = || pairs.all().flat_map(|run| &run.observed.requests);
    let unlike = match sizes {
        [] => {
            let done = requests().filter(|r| r.outcome == Outcome::Done);
            let bytes: Vec<f64> = done.map(|r| r.bytes as f64).collect();
            cov(&bytes).is_some_and(|c| c > UNLIKE)
        }
        [first, others @ ..] => others.iter().any(|other| other != first),
    };
    let each = requests().count() as f64 / pairs.all().count().max(1) as f64;
    let apart = ratio.ln().abs();
    let by_one = 2.0 * (1.0 / each).ln_1p();
    let within = apart > MARGIN.ln_1p() && apart <= MARGIN.ln_1p() + by_one;
    (unlike && within).then(|| {
        format!(
            "requests are not alike, and of {each:.0} in a run one more or less decides on the request rate"
        )
    })
}

/// The share of time that requests of both conditions took which did not finish, of those that took longer than
/// `longer_than` seconds: with the background, and without.
fn unfinished_shares(pairs: &Pairs<'_>, longer_than: f64) -> [f64; 2] {
    [&pairs.over, &pairs.under].map(|runs| {
        let took = |wanted: &[Outcome], least: f64| -> f64 {
            let all = runs.iter().flat_map(|r| &r.observed.requests);
            let own = all.filter(|r| wanted.contains(&r.outcome));
            let times = own.map(|r| r.observed_until - r.start);
            times.filter(|&t| t > least).sum()
        };
        let all = took(&[Outcome::Unfinished, Outcome::Done], 0.0);
        took(&[Outcome::Unfinished], longer_than) / all.max(f64::MIN_POSITIVE)
    })
}

/// The mean time counts a request that did not finish as if it ended then. If the shares of time that such requests
/// took differ by more than the margin, so may the true means.
pub(super) fn most_is_unfinished(pairs: &Pairs<'_>) -> Option<String> {
    let [a, b] = &pairs.names;
    let [with, without] = unfinished_shares(pairs, 0.0);
    ((with - without).abs() > MARGIN).then(|| {
        format!(
            "unfinished requests took {:.0} % of the time {a} and {:.0} % {b}, so mean times are lower bounds",
            100.0 * with,
            100.0 * without
        )
    })
}

/// Requests that no judged percentile covers did not finish, and took more than the margin of the time: a large download
/// beside small requests, for example.
pub(super) struct LongUnfinished {
    /// Why nobody may say that nothing differs; `None` where such requests took as much under both conditions, so that
    /// nothing but what they carried can differ.
    pub open: Option<String>,
    /// Whether goodput tells what they carried: there are some under both conditions.
    pub goodput: bool,
}

pub(super) fn long_unfinished(
    pairs: &Pairs<'_>,
    groups: [&[Vec<Observation>]; 2],
) -> Option<LongUnfinished> {
    let [a, b] = &pairs.names;
    let all = || groups.into_iter().flatten().flatten();
    let mut values: Vec<f64> = all().map(|o| o.value).collect();
    values.sort_by(f64::total_cmp);
    let tail = *values.get((values.len() as f64 * DECISIVE[2]) as usize)?;
    let beyond = |t: f64| unfinished_shares(pairs, t.min(f64::MAX) * ALMOST);
    let [mut with, mut without] = beyond(tail);
    let differ = (with - without).abs() > MARGIN;
    if !differ {
        // Where as many end under both conditions, those that end tell of the others of their size.
        let done = all().filter(|o| o.complete).map(|o| o.value);
        [with, without] = beyond(done.fold(tail, f64::max));
    }
    let goodput = with.min(without) > MARGIN;
    (with.max(without) > MARGIN).then(|| LongUnfinished {
        open: (differ || !goodput).then(|| {
            format!(
                "the longest requests did not finish; they took {:.0} % of the time {a} and {:.0} % {b}",
                100.0 * with,
                100.0 * without
            )
        }),
        goodput,
    })
}

/// Requests that are about as long as a percentile are not covered by it.
const ALMOST: f64 = 0.999;

/// The reason why nobody may say that nothing differs, where a program reports a measure more often in one condition: each
/// stall, for example. Neither the mean nor percentiles of its values say how many there are.
pub(super) fn numbers_differ(measure: &Measure, pairs: &Pairs<'_>) -> Option<String> {
    let number = |run: &&RunResult| {
        let all = run.observed.measures.iter();
        all.filter(|s| s.measure == measure.name).count()
    };
    // Elsewhere, runs without any value are the reason.
    if pairs.all().any(|run| number(&run) == 0) {
        return None;
    }
    let [with, without] = [&pairs.over, &pairs.under].map(|runs| {
        let all: usize = runs.iter().map(number).sum();
        all as f64 / runs.len().max(1) as f64
    });
    let [a, b] = &pairs.names;
    ((with - without).abs() > MARGIN * with.max(without)).then(|| {
        format!(
            "{} has {with:.1} values in a run {a} and {without:.1} {b}, and no measure says how many there are",
            measure.name
        )
    })
}

/// Whether clients wait for answers at least half of the time, so that they make fewer requests where answers come
/// late. There are as many clients as requests are outstanding at once.
pub(super) fn waits(run: &RunResult) -> bool {
    let requests = || run.observed.requests.iter();
    let starts = requests().map(|r| (r.start, 1));
    let mut turns: Vec<(f64, i32)> = starts
        .chain(requests().map(|r| (r.observed_until, -1)))
        .collect();
    turns.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut now, mut most) = (0, 0);
    for (_, turn) in &turns {
        now += turn;
        most = most.max(now);
    }
    let span = match (turns.first(), turns.last()) {
        (Some(first), Some(last)) => last.0 - first.0,
        _ => 0.0,
    };
    let busy: f64 = requests().map(|r| r.observed_until - r.start).sum();
    2.0 * busy >= f64::from(most) * span
}

/// Whether the slowest 5 % of requests, which no judged percentile covers, take more than half of the total time. An
/// example is a program that makes many small requests and a large one.
pub(super) fn few_take_most(of: &[Vec<Observation>]) -> bool {
    let mut times: Vec<f64> = of.iter().flatten().map(|o| o.value).collect();
    times.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = times.iter().sum();
    let few = (times.len() as f64 * (1.0 - DECISIVE[2])).ceil() as usize;
    let longest: f64 = times.iter().take(few.max(of.len())).sum();
    2 * few.max(of.len()) < times.len() && 2.0 * longest > all
}

/// Mean time of the requests of a run that `counts`, as far as they were watched. One that did not finish counts as the
/// part that it had waited of a median one, at most as one: otherwise one that the end of the run cuts off at once would
/// pass for a fast one. The median is that of the run or, where it completed none, that of all runs; `None` where these
/// completed none either. A request that fails at once is no fast one: failures are a measure of their own.
pub(super) fn mean_time(
    pairs: &Pairs<'_>,
    run: &RunResult,
    counts: impl Fn(&&Request) -> bool,
) -> Option<f64> {
    let took = |r: &Request| r.observed_until - r.start;
    let own = run.observed.requests.iter().filter(&counts);
    let own: Vec<&Request> = own.filter(|r| r.outcome != Outcome::Failed).collect();
    let median = |of: &mut dyn Iterator<Item = &Request>| {
        let done = of.filter(|r| r.outcome == Outcome::Done);
        let mut times: Vec<f64> = done.map(took).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    };
    let all = pairs.all().flat_map(|other| &other.observed.requests);
    let median = median(&mut own.iter().copied()).or_else(|| median(&mut all.filter(&counts)))?;
    let part = |r: &&Request| match r.outcome {
        Outcome::Unfinished => (took(r) / median).min(1.0),
        _ => 1.0,
    };
    let n: f64 = own.iter().map(part).sum();
    (n > 0.0).then(|| own.iter().map(|r| took(r)).sum::<f64>() / n)
}

impl Found {
    /// Judges how many requests a run completes per second.
    pub(super) fn request_rate(&mut self, asked: &Asked, measure: &Measure, pairs: &Pairs<'_>) {
        let before = self.judged.len();
        self.mean(measure, pairs, |_, run| {
            let requests = &run.observed.requests;
            let first = requests.iter().map(|r| r.start).reduce(f64::min)?;
            let last = requests.iter().map(|r| r.observed_until).reduce(f64::max)?;
            (last > first).then(|| completed(requests, &asked.sizes) / (last - first))
        });
        let reason = (self.judged.get(before))
            .and_then(|j| last_one_counts(&asked.sizes, pairs, j.ratio.value));
        if let Some(reason) = reason {
            self.open.push(reason);
            self.beside.extend(self.judged.pop());
        }
    }
}

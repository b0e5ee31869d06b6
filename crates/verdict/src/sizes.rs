//! Clients that request objects of several sizes in turn: each size is judged by itself. Programs that request other
//! sizes beside traffic.

use std::collections::BTreeSet;

use swell_base::Bytes;

use super::MARGIN;
use super::condition::request_time;
use super::ratios::bounded;
use super::requests::{few_take_most, mean_time};
use super::values::{Asked, Found, Groups, Pairs, levels};
use swell_experiment::measure::{COMPLETION_TIME, FIRST_BYTE, MEAN_TIME, REQUEST_RATE};
use swell_experiment::observe::{Outcome, Request};
use swell_experiment::store::RunResult;

/// What the names of the times of requests of one size begin with.
pub(super) const TIME_OF: &str = "time of ";

/// More sizes than this are not judged one by one.
const MOST_SIZES: usize = 4;

/// No tail is asked for of sizes that are a smaller share of the requests.
const SELDOM: f64 = 0.2;

/// Judges the requests of each size by themselves, if a client requests several sizes in turn, and returns whether it
/// judged all of them. Percentiles of all requests together may lie between two sizes, or within one only.
pub(super) fn judge(asked: &Asked, pairs: &Pairs<'_>, found: &mut Found) -> bool {
    let distinct: BTreeSet<Bytes> = asked.sizes.iter().copied().collect();
    if distinct.len() < 2 || distinct.len() > MOST_SIZES {
        return false;
    }
    let mut all = true;
    for size in distinct {
        let own = |r: &&Request| asked.sizes[r.index as usize % asked.sizes.len()] == size;
        let times = |runs: &[&RunResult]| -> Groups {
            let of = |run: &&RunResult| {
                let requests = run.observed.requests.iter().filter(own);
                bounded(&requests.map(request_time).collect::<Vec<_>>(), asked.end)
            };
            runs.iter().map(of).collect()
        };
        let (over, under) = (times(&pairs.over), times(&pairs.under));
        if over.iter().chain(&under).any(Vec::is_empty) {
            all = false;
            continue;
        }
        let mut measure = COMPLETION_TIME;
        measure.name = format!("{TIME_OF}{size}").into();
        let levels = [&over, &under].map(|of| levels(asked, &measure, of));
        let level = |i: usize| levels.each_ref().map(|l| l[i]);
        let listed = asked.sizes.iter().filter(|s| **s == size).count();
        // The tail of a rare size cannot be asked for.
        match listed as f64 >= SELDOM * asked.sizes.len() as f64 {
            true => found.percentiles(&measure, &over, &under, level),
            false => {
                found.quantiles(&measure, &over, &under, level);
            }
        }
        // As of all requests together: what makes few of them wait for long shows in the mean only.
        if few_take_most(&over) || few_take_most(&under) {
            let mut average = MEAN_TIME;
            average.name = format!("mean {TIME_OF}{size}").into();
            found.mean(&average, pairs, |_, run| mean_time(pairs, run, own));
        }
    }
    all
}

/// Mean time of the requests of a run as if it had made as many of each size as the list says: one request more of some
/// size in a run changes nothing. `None` if one of the sizes has no time.
pub(super) fn mean_as_listed(asked: &Asked, pairs: &Pairs<'_>, run: &RunResult) -> Option<f64> {
    let listed = &asked.sizes;
    let mut sum = 0.0;
    for size in listed.iter().collect::<BTreeSet<_>>() {
        let own = |r: &&Request| listed[r.index as usize % listed.len()] == *size;
        let times = listed.iter().filter(|s| *s == size).count();
        sum += times as f64 * mean_time(pairs, run, own)?;
    }
    Some(sum / listed.len() as f64)
}

/// Critical value of the two-sample Kolmogorov-Smirnov test at the 1 % level.
const CRITICAL: f64 = 1.63;

/// If a program receives responses of other sizes beside traffic, it adapts, and times of its requests are not those of
/// the same requests: they are shown beside the verdict.
pub(super) fn compare_only_alike(pairs: &Pairs<'_>, found: &mut Found) {
    if !differ(pairs) {
        return;
    }
    let of_requests = [&COMPLETION_TIME, &FIRST_BYTE, &MEAN_TIME, &REQUEST_RATE];
    let all = std::mem::take(&mut found.judged).into_iter();
    let (aside, judged) = all.partition(|j| of_requests.iter().any(|m| m.name == j.measure));
    found.judged = judged;
    found.beside.extend::<Vec<_>>(aside);
    let [a, b] = &pairs.names;
    found.open.push(format!(
        "responses have other sizes {a} than {b}, so times of requests are not compared"
    ));
}

/// Whether the distributions of the sizes of responses differ: by more than the margin in size, for a larger share of
/// requests than the margin, chance, one request in each run of both, or the requests that did not finish would explain.
fn differ(pairs: &Pairs<'_>) -> bool {
    let sides = [&pairs.over, &pairs.under].map(|runs| {
        let requests = runs.iter().flat_map(|r| &r.observed.requests);
        let (done, other): (Vec<&Request>, _) = requests.partition(|r| r.outcome == Outcome::Done);
        let mut sizes: Vec<u64> = done.iter().map(|r| r.bytes).collect();
        sizes.sort_unstable();
        let n = sizes.len() as f64;
        let unfinished = other.len() as f64 / (other.len() as f64 + n);
        (sizes, n / runs.len() as f64, unfinished)
    });
    let [(a, a_run, a_lost), (b, b_run, b_lost)] = &sides;
    if a.is_empty() || b.is_empty() {
        return false;
    }
    let share =
        |of: &[u64], most: f64| of.partition_point(|&x| x as f64 <= most) as f64 / of.len() as f64;
    // Of neighbours that are alike within the margin, neither counts as the smaller one.
    let beyond = |a: &[u64], b: &[u64]| {
        let each = a.iter().map(|&x| x as f64);
        let apart = each.map(|x| share(a, x) - share(b, x * (1.0 + MARGIN)));
        apart.fold(0.0, f64::max)
    };
    let chance = CRITICAL * (1.0 / a.len() as f64 + 1.0 / b.len() as f64).sqrt();
    let explained = MARGIN.max(chance).max(2.0 / a_run.min(*b_run)) + a_lost + b_lost;
    beyond(a, b).max(beyond(b, a)) > explained
}

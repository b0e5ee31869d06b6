//! Clients that request objects of several sizes in turn: each size is judged by itself. Programs that request other
//! sizes beside traffic.

use std::collections::BTreeSet;

use swell_base::Bytes;

use super::answer::{LEVEL, MARGIN};
use super::condition::{Pairs, request_time};
use super::judge::Judgement;
use super::own::Asked;
use super::rare::p99;
use super::ratios::bounded;
use super::requests::{few_take_most, mean_time};
use super::values::{Found, Groups, TIME_OF, levels, value};
use swell_experiment::measure::{COMPLETION_TIME, FIRST_BYTE, GOODPUT, MEAN_TIME, REQUEST_RATE};
use swell_experiment::observe::{Outcome, Request};
use swell_experiment::store::RunResult;
use swell_stats::{mean, sd, t_quantile};

/// More sizes than this are not judged one by one.
const MOST_SIZES: usize = 4;

/// No tail is asked for of sizes that are a smaller share of the requests.
const SELDOM: f64 = 0.2;

/// Judges the requests of each size by themselves, if a client requests several sizes in turn, and returns whether it
/// judged all of them. Percentiles of all requests together may lie between two sizes, or within one only. `rare` gets what
/// shows harm to few requests.
pub(super) fn judge(
    asked: &Asked,
    pairs: &Pairs<'_>,
    found: &mut Found,
    rare: &mut Vec<Judgement>,
) -> bool {
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
        rare.extend(p99(asked, found, &measure, [&over, &under]));
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

/// Responses whose sizes differ by no more bytes than this are alike: numbers and headers have more or fewer digits.
const HEADERS: f64 = 100.0;

/// If a program receives responses of other sizes beside traffic, it adapts, and times of its requests are not those of
/// the same requests: they are shown beside the verdict. What responses carry is judged.
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
    // Sizes may differ though their mean does not.
    if !found
        .judged
        .iter()
        .any(|j| j.measure.starts_with(&*GOODPUT.name))
    {
        found.mean(&GOODPUT, pairs, value);
    }
}

/// Whether the distributions of the sizes of responses differ: by more than the margin in size, for a larger share of
/// requests than the margin, chance, one request in each run of both, or the requests that did not finish would explain.
/// Requests of one run are not independent, so the share must differ beyond chance between runs, too.
fn differ(pairs: &Pairs<'_>) -> bool {
    let sides = [&pairs.over, &pairs.under].map(|runs| runs.iter().map(|run| sizes(run)).collect());
    let [over, under]: &[Vec<Vec<u64>>; 2] = &sides;
    let n = sides
        .each_ref()
        .map(|side| side.iter().map(Vec::len).sum::<usize>() as f64);
    if n.contains(&0.0) {
        return false;
    }
    let lost: f64 = [&pairs.over, &pairs.under]
        .iter()
        .zip(n)
        .map(|(runs, done)| {
            let all: usize = runs.iter().map(|run| run.observed.requests.len()).sum();
            1.0 - done / all as f64
        })
        .sum();
    let (more, most) = beyond(over, under);
    let (fewer, least) = beyond(under, over);
    let chance = CRITICAL * (1.0 / n[0] + 1.0 / n[1]).sqrt();
    let by_one = 2.0 / (n[0] / over.len() as f64).min(n[1] / under.len() as f64);
    if more.max(fewer) <= MARGIN.max(chance).max(by_one) + lost {
        return false;
    }
    let shares = |of: &[Vec<u64>], up_to: f64| -> Vec<f64> {
        of.iter()
            .filter(|own| !own.is_empty())
            .map(|own| share(own, up_to))
            .collect()
    };
    match more >= fewer {
        true => runs_differ(pairs, [&shares(over, most), &shares(under, alike(most))]),
        false => runs_differ(pairs, [&shares(under, least), &shares(over, alike(least))]),
    }
}

/// The sizes of the responses that a run completed, in order.
fn sizes(run: &RunResult) -> Vec<u64> {
    let all = run.observed.requests.iter();
    let done = all.filter(|r| r.outcome == Outcome::Done);
    let mut sizes: Vec<u64> = done.map(|r| r.bytes).collect();
    sizes.sort_unstable();
    sizes
}

/// The share of sizes, which are in order, of at most `up_to` bytes.
fn share(of: &[u64], up_to: f64) -> f64 {
    of.partition_point(|&x| x as f64 <= up_to) as f64 / of.len() as f64
}

/// The largest size that is like one of `x` bytes.
fn alike(x: f64) -> f64 {
    x * (1.0 + MARGIN) + HEADERS
}

/// By how much the share of small sizes among `a` exceeds that among `b` at most, and up to which size. Of neighbours
/// that are alike, neither counts as the smaller one.
fn beyond(a: &[Vec<u64>], b: &[Vec<u64>]) -> (f64, f64) {
    let [a, b] = [a, b].map(|runs| {
        let mut all = runs.concat();
        all.sort_unstable();
        all
    });
    let each = a.iter().map(|&x| x as f64);
    let apart = each.map(|x| (share(&a, x) - share(&b, alike(x)), x));
    apart.fold(
        (0.0, 0.0),
        |most, own| if own.0 > most.0 { own } else { most },
    )
}

/// Whether the means of two shares differ beyond the variation between runs, by Student's t at the 5 % level. A single
/// run does not say how much runs vary.
fn runs_differ(pairs: &Pairs<'_>, [a, b]: [&[f64]; 2]) -> bool {
    let (apart, freedom, variance) = match pairs.paired && a.len() == b.len() {
        true => {
            let each: Vec<f64> = a.iter().zip(b).map(|(x, y)| x - y).collect();
            let variance = sd(&each).map(|sd| sd * sd / each.len() as f64);
            (mean(&each), each.len() - 1, variance)
        }
        false => {
            let of = |own: &[f64]| sd(own).map(|sd| sd * sd / own.len() as f64);
            let apart = mean(a).zip(mean(b)).map(|(x, y)| x - y);
            let variance = of(a).zip(of(b)).map(|(x, y)| x + y);
            (apart, a.len() + b.len() - 2, variance)
        }
    };
    let Some((apart, variance)) = apart.zip(variance) else {
        return true;
    };
    apart > t_quantile(0.5 + LEVEL / 2.0, freedom as f64) * variance.sqrt()
}

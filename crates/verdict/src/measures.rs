//! Judges each measure of a foreground under two conditions, by where its values come from.

use super::answer::{DECISIVE, PERCENTILES};
use super::condition::{Condition, Pairs, pairs, times};
use super::own::Asked;
use super::ratios::bounded;
use super::requests::{
    bytes_differ, durations_are_constant, few_take_most, long_unfinished, mean_time,
    more_are_cut_off, most_is_unfinished, waits,
};
use super::streams::{
    are_exchanges, most_bytes_are_in_no_request, most_bytes_pass_during_requests,
};
use super::values::{Found, Groups, levels, value};
use super::{rare, sizes, validity};
use swell_experiment::measure::{COMPLETION_TIME, GOODPUT, MEAN_TIME, REQUEST_RATE, Source};
use swell_experiment::observe::{Outcome, Request};
use swell_experiment::store::RunResult;
use swell_stats::Observation;

/// Judges the measures in `asked` as ratios of one condition to another.
pub(super) fn judgements(asked: &Asked, with: &Condition<'_>, without: &Condition<'_>) -> Found {
    let pairs = pairs(with, without);
    let fresh = || Found {
        paired: pairs.paired,
        ..Found::default()
    };
    let (mut found, mut beside) = (fresh(), fresh());
    found.open.extend(validity::ends_differ(with, without));
    for measure in &asked.measures {
        let found = if measure.beside {
            &mut beside
        } else {
            &mut found
        };
        match measure.source {
            Source::RequestTimes => {
                let (over, under) = times(with, without, asked.end);
                request_times_of(asked, &pairs, [&over, &under], [with, without], found);
            }
            Source::FirstBytes => {
                let [over, under] =
                    [&pairs.over, &pairs.under].map(|runs| first_bytes(runs, asked.end));
                if !over.iter().chain(&under).any(Vec::is_empty) {
                    let own = [&over, &under].map(|of| levels(asked, measure, of));
                    found.percentiles(measure, &over, &under, |i| own.each_ref().map(|l| l[i]));
                }
            }
            Source::RequestFailures => {
                if pairs.all().any(failed) {
                    found.mean(measure, &pairs, value);
                }
            }
            Source::Samples => found.samples(asked, measure, &pairs),
            Source::Delays => found.delays(asked, measure, &pairs, [with, without]),
            Source::Loss => found.each_way(asked, measure, &pairs, |run, d| asked.loss(run, d)),
            Source::Goodput if pairs.all().all(|run| run.observed.requests.is_empty()) => {
                found.each_way(asked, measure, &pairs, |run, d| asked.rate(run, d));
            }
            // `request_times_of` says in how many runs there are requests.
            Source::RequestRate if pairs.all().any(|run| run.observed.requests.is_empty()) => {}
            // Elsewhere its pace decides how many requests it makes, and not the network.
            Source::RequestRate if asked.program && !pairs.all().any(waits) => {}
            Source::RequestRate if found.has(measure) => {}
            Source::RequestRate => found.request_rate(asked, measure, &pairs),
            Source::Goodput => found.mean(measure, &pairs, value),
        }
    }
    if asked.program {
        sizes::compare_only_alike(&pairs, &mut found);
    }
    found
        .beside
        .extend(beside.judged.into_iter().chain(beside.beside));
    found
}

/// Judges the request times, or a rate where request times do not show what the network did.
fn request_times_of(
    asked: &Asked,
    pairs: &Pairs<'_>,
    [over, under]: [&[Vec<Observation>]; 2],
    conditions: [&Condition<'_>; 2],
    found: &mut Found,
) {
    let runs = over.len() + under.len();
    let silent = over
        .iter()
        .chain(under)
        .filter(|run| run.is_empty())
        .count();
    if silent == runs {
        return;
    }
    if silent > 0 {
        found.open.push(format!(
            "requests were made in {} of {runs} runs",
            runs - silent
        ));
        return;
    }
    found
        .open
        .extend(more_are_cut_off([over, under], &pairs.names));
    if asked.program && durations_are_constant(over, under) && !are_exchanges(asked, pairs) {
        // The program runs for a fixed time, so only what it achieves in that time can differ.
        match most_bytes_are_in_no_request(asked, pairs.all()) {
            // An upload, for example: no response holds its bytes.
            true => found.each_way(asked, &GOODPUT, pairs, |run, d| asked.rate(run, d)),
            false => found.mean(&GOODPUT, pairs, value),
        }
        found.request_rate(asked, &REQUEST_RATE, pairs);
        found.paces_itself(asked, pairs);
        return;
    }
    if most_bytes_are_in_no_request(asked, pairs.all()) {
        if !most_bytes_pass_during_requests(pairs) {
            found.paces_itself(asked, pairs);
        }
        // For example a program that makes one request and then streams: request times do not cover the stream.
        found.each_way(asked, &GOODPUT, pairs, |run, d| asked.rate(run, d));
    } else if asked.program && bytes_differ(pairs) {
        // For example a download with a time limit: it takes as long with background traffic, but receives less.
        found.mean(&GOODPUT, pairs, value);
    }
    if asked.paced {
        found.paces_itself(asked, pairs);
    }
    let mut aside = Found {
        paired: pairs.paired,
        ..Found::default()
    };
    // Percentiles of several sizes together depend on how many of each there are in a run.
    let mut rare = Vec::new();
    let by_size = sizes::judge(asked, pairs, found, &mut rare);
    if few_take_most(over) || few_take_most(under) {
        found.open.extend(most_is_unfinished(pairs));
        found.mean(&MEAN_TIME, pairs, |_, run| match by_size {
            true => sizes::mean_as_listed(asked, pairs, run),
            false => mean_time(pairs, run, |_| true),
        });
    }
    if let Some(long) = long_unfinished(pairs, [over, under]) {
        found.open.extend(long.open);
        if long.goodput && !found.judged.iter().any(|j| j.measure == GOODPUT.name) {
            found.mean(&GOODPUT, pairs, value);
        }
    }
    let into = if by_size { &mut aside } else { &mut *found };
    // Levels are pooled over all runs, as in tables and figures.
    into.percentiles(&COMPLETION_TIME, over, under, |i| {
        let p = PERCENTILES.iter().position(|&p| p == DECISIVE[i]);
        conditions.map(|c| p.and_then(|p| c.seconds[p]))
    });
    found
        .beside
        .extend(aside.judged.into_iter().chain(aside.beside));
    let p99 = rare::p99(asked, found, &COMPLETION_TIME, [over, under]);
    let of_all = if by_size {
        &mut found.beside
    } else {
        &mut rare
    };
    of_all.extend(p99);
    if !found.has(&MEAN_TIME) {
        let mut means = Found {
            paired: pairs.paired,
            ..Found::default()
        };
        means.mean(&MEAN_TIME, pairs, |_, run| match by_size {
            true => sizes::mean_as_listed(asked, pairs, run),
            false => mean_time(pairs, run, |_| true),
        });
        rare.extend(means.judged);
    }
    rare::judge(found, rare, by_size);
}

/// The times to first byte of the requests in each run, capped at `end` seconds.
fn first_bytes(runs: &[&RunResult], end: f64) -> Groups {
    let time = |r: &Request| match r.outcome {
        _ if r.first_byte.is_finite() => Observation::complete(r.first_byte - r.start),
        Outcome::Failed => Observation::at_least(f64::INFINITY),
        _ => Observation::at_least(r.observed_until - r.start),
    };
    let of = |run: &&RunResult| {
        let each: Vec<Observation> = run.observed.requests.iter().map(time).collect();
        bounded(&each, end)
    };
    runs.iter().map(of).collect()
}

fn failed(run: &RunResult) -> bool {
    run.observed
        .requests
        .iter()
        .any(|r| r.outcome == Outcome::Failed)
}

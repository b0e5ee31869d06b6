//! The values of measures in each run, and the judgements that follow from them.

use swell_base::{Bytes, Direction};
use swell_stats::{
    Bootstrap, Estimate, MIN_TAIL_SAMPLES, Observation, PairedRatio, mean, quantile_name,
};

use super::condition::names;
use super::gaps;
use super::judge::{Judgement, Statistic, enough, over_runs};
use super::own::Paths;
use super::requests::{
    bytes_differ, durations_are_constant, few_take_most, long_unfinished, mean_time,
    more_are_cut_off, most_is_unfinished, waits,
};
use super::streams::{
    are_exchanges, most_bytes_are_in_no_request, most_bytes_pass_during_requests, paces_itself,
};
use super::{Condition, DECISIVE, PERCENTILES, bounded, pooled, request_times, sizes, validity};
use swell_experiment::measure::{
    Better, COMPLETION_TIME, GOODPUT, MEAN_TIME, Measure, REQUEST_RATE, Source,
};
use swell_experiment::observe::{Outcome, Request};
use swell_experiment::store::RunResult;

/// What stands for no goodput: this share of the largest in any run.
const NO_GOODPUT: f64 = 0.01;

/// What the verdict asks about a foreground.
pub(super) struct Asked {
    /// Its measures.
    pub measures: Vec<Measure>,
    /// Whether it is a real program. What one of its requests fetches may then depend on the network.
    pub program: bool,
    /// Length of a run, seconds.
    pub end: f64,
    /// Resampling for the intervals of pooled percentiles.
    pub bootstrap: Bootstrap,
    /// The links on its path.
    pub paths: Paths,
    /// The directions in which it sends data, most of it first; `Up` is from its clients.
    pub directions: Vec<Direction>,
    /// Whether it sends datagrams, whose delays are known.
    pub datagrams: bool,
    /// Whether it is simulated, and all runs know which bytes were of use to it.
    pub useful: bool,
    /// The sizes of the objects that its clients request in turn; empty if they are no such list.
    pub sizes: Vec<Bytes>,
}

/// The outcome of comparing two conditions.
#[derive(Default)]
pub(super) struct Found {
    /// The judgements that the answer rests on.
    pub judged: Vec<Judgement>,
    /// Judgements that are shown, but that no answer rests on.
    pub beside: Vec<Judgement>,
    /// Reasons why something could not be judged. Any such reason rules out the answer "nothing differs".
    pub open: Vec<String>,
    /// Whether runs are paired.
    pub paired: bool,
}

/// The valid runs of both conditions.
pub(super) struct Pairs<'r> {
    pub over: Vec<&'r RunResult>,
    pub under: Vec<&'r RunResult>,
    /// Whether `over[i]` and `under[i]` are a pair. Otherwise these are two independent samples.
    pub paired: bool,
    /// What texts call the two: for example "with it" and "without".
    pub names: [String; 2],
}

impl<'r> Pairs<'r> {
    /// The number of pairs, or the size of the smaller of two independent samples.
    pub fn len(&self) -> usize {
        self.over.len().min(self.under.len())
    }

    pub fn each(&self) -> impl Iterator<Item = (&'r RunResult, &'r RunResult)> {
        self.over.iter().copied().zip(self.under.iter().copied())
    }

    pub fn all(&self) -> impl Iterator<Item = &'r RunResult> {
        self.over.iter().chain(&self.under).copied()
    }

    /// How many pairs, or runs of independent samples, are excluded.
    pub fn left_out(&self, with: &Condition<'_>, without: &Condition<'_>) -> usize {
        match self.paired {
            true => with.runs.len().max(without.runs.len()) - self.len(),
            false => {
                let runs = with.runs.iter().chain(&without.runs);
                runs.filter(|r| r.is_none()).count()
            }
        }
    }
}

/// The valid runs of both conditions. A pair counts only if both of its runs are valid.
pub(super) fn pairs<'r>(with: &Condition<'r>, without: &Condition<'r>) -> Pairs<'r> {
    let paired = with.paired;
    let (over, under) = match paired {
        true => {
            let both = with.runs.iter().zip(&without.runs);
            both.filter_map(|(a, b)| Some(((*a)?, (*b)?))).unzip()
        }
        false => {
            let of = |c: &Condition<'r>| c.runs.iter().flatten().copied().collect();
            (of(with), of(without))
        }
    };
    Pairs {
        over,
        under,
        paired,
        names: names(with, without),
    }
}

/// Request times of both conditions, for the same runs as [`pairs`]. All times are capped at `end` seconds.
pub(super) fn times(
    with: &Condition<'_>,
    without: &Condition<'_>,
    end: f64,
) -> (Vec<Vec<Observation>>, Vec<Vec<Observation>>) {
    let pairs = pairs(with, without);
    let [over, under] = [pairs.over, pairs.under].map(|runs| {
        let times = runs.into_iter().map(request_times);
        times.map(|own| bounded(&own, end)).collect()
    });
    (over, under)
}

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

/// Percentiles pooled over all runs. The observations include the measure's floor, which is subtracted again.
pub(super) fn levels(
    asked: &Asked,
    measure: &Measure,
    of: &[Vec<Observation>],
) -> Vec<Option<Estimate>> {
    let mut found = pooled(&asked.bootstrap, of, &asked_for(measure));
    for e in found.iter_mut().flatten() {
        let bare = |x: f64| x - measure.floor;
        (e.value, e.low, e.high) = (bare(e.value), bare(e.low), bare(e.high));
    }
    found
}

/// Why the percentile of a measure with index `i` in [`DECISIVE`] was not judged.
pub(super) fn tail_is_missing(
    measure: &Measure,
    groups: [&[Vec<Observation>]; 2],
    i: usize,
) -> String {
    let p = asked_for(measure)[i];
    let tail = quantile_name(p);
    if groups.iter().all(|groups| enough(groups, p)) {
        return format!(
            "{tail} of {} is beyond what was watched in both cases",
            measure.name
        );
    }
    let values = groups.map(|groups| groups.iter().map(Vec::len).sum::<usize>());
    let fewer = values[0].min(values[1]);
    let wanted = MIN_TAIL_SAMPLES / (1.0 - DECISIVE[i]);
    match measure.source {
        _ if measure.source == Source::Samples || measure.name.starts_with(sizes::TIME_OF) => {
            format!(
                "{fewer} values of {} are too few for {tail}, which wants {wanted:.0}",
                measure.name
            )
        }
        _ => format!("{fewer} requests are too few for {tail}, which wants {wanted:.0}"),
    }
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
        match most_bytes_are_in_no_request(asked, pairs) {
            // An upload, for example: no response holds its bytes.
            true => found.each_way(asked, &GOODPUT, pairs, |run, d| asked.rate(run, d)),
            false => found.mean(&GOODPUT, pairs, value),
        }
        found.request_rate(asked, &REQUEST_RATE, pairs);
        found.open.extend(paces_itself(asked, pairs));
        return;
    }
    if most_bytes_are_in_no_request(asked, pairs) {
        if !most_bytes_pass_during_requests(pairs) {
            found.open.extend(paces_itself(asked, pairs));
        }
        // For example a program that makes one request and then streams: request times do not cover the stream.
        found.each_way(asked, &GOODPUT, pairs, |run, d| asked.rate(run, d));
    } else if asked.program && bytes_differ(pairs) {
        // For example a download with a time limit: it takes as long with background traffic, but receives less.
        found.mean(&GOODPUT, pairs, value);
    }
    let mut aside = Found {
        paired: pairs.paired,
        ..Found::default()
    };
    // Percentiles of several sizes together depend on how many of each there are in a run.
    let by_size = sizes::judge(asked, pairs, found);
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
}

/// The percentiles at which a measure is judged: those of [`DECISIVE`], mirrored if higher values are better.
pub(super) fn asked_for(measure: &Measure) -> [f64; DECISIVE.len()] {
    DECISIVE.map(|bad| match measure.better {
        Better::Lower => bad,
        Better::Higher => 1.0 - bad,
    })
}

impl Found {
    /// Whether it says something of a measure.
    fn has(&self, measure: &Measure) -> bool {
        let mut said = self.judged.iter().chain(&self.beside);
        said.any(|j| j.measure == measure.name)
    }

    /// Judges the median and the bad tail of a measure with many values per run. `levels(i)` gives the `i`-th
    /// percentile under each of the two conditions. Without the tail nobody may say that nothing differs.
    pub(super) fn percentiles(
        &mut self,
        measure: &Measure,
        over: &[Vec<Observation>],
        under: &[Vec<Observation>],
        levels: impl Fn(usize) -> [Option<Estimate>; 2],
    ) {
        let [median, tail] = self.quantiles(measure, over, under, levels);
        // `validity::judged_up_to` tells how far it was judged.
        if median && !tail {
            let reason = tail_is_missing(measure, [over, under], 1);
            // Two measures of the same requests lack the same tail.
            if !self.open.contains(&reason) {
                self.open.push(reason);
            }
        } else if tail {
            self.open.extend(self.seen_beyond(measure, [over, under]));
        }
    }

    /// The same without those reasons. Returns whether the median was judged, and any of the tail.
    pub(super) fn quantiles(
        &mut self,
        measure: &Measure,
        over: &[Vec<Observation>],
        under: &[Vec<Observation>],
        levels: impl Fn(usize) -> [Option<Estimate>; 2],
    ) -> [bool; 2] {
        let (mut median, mut tail) = (false, false);
        for (i, p) in asked_for(measure).into_iter().enumerate() {
            if !enough(over, p) || !enough(under, p) {
                continue;
            }
            let seen = if i == 0 { &mut median } else { &mut tail };
            let ratio = match self.paired {
                true => PairedRatio::of(over, under, p),
                false => PairedRatio::independent(over, under, p),
            };
            match ratio {
                Some(ratio) => {
                    let statistic = Statistic::Percentile(p);
                    let judgement = Judgement::new(measure, statistic, ratio, levels(i));
                    *seen = true;
                    if gaps::explains(&ratio, [over, under], p) {
                        self.open.push(format!(
                            "the {} of {} falls into a gap between values, where one more of them decides on which side",
                            if p == 0.5 { "median".into() } else { quantile_name(p) },
                            measure.name
                        ));
                        self.beside.push(judgement);
                    } else {
                        self.judged.push(judgement);
                    }
                }
                None if i == 0 => self.open.push(format!(
                    "the median of {} is beyond what was watched in both cases",
                    measure.name
                )),
                None => {}
            }
        }
        [median, tail]
    }

    /// Judges a measure that has one value per run.
    pub(super) fn mean(
        &mut self,
        measure: &Measure,
        pairs: &Pairs<'_>,
        value: impl Fn(&Measure, &RunResult) -> Option<f64>,
    ) {
        self.of_runs(measure, Statistic::Mean, pairs, value);
    }

    /// Judges a statistic of a measure that is known for each run as a whole.
    pub(super) fn of_runs(
        &mut self,
        measure: &Measure,
        statistic: Statistic,
        pairs: &Pairs<'_>,
        value: impl Fn(&Measure, &RunResult) -> Option<f64>,
    ) {
        let values: Vec<Option<f64>> = pairs.all().map(|run| value(measure, run)).collect();
        if pairs.len() == 0 {
            return; // `validity::in_common` reports why there is no pair of runs.
        }
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let name = &measure.name;
        if known.len() < values.len() {
            self.open.push(format!(
                "{name} was reported in {} of {} runs",
                known.len(),
                values.len()
            ));
            return;
        }
        // Zero in every run means that nothing differs. A ratio of zeros is undefined, so ones stand in for them. No
        // loss anywhere is a result; no goodput anywhere says that the application did nothing.
        let nothing = known.iter().all(|&x| x == 0.0);
        if nothing && measure.better == Better::Higher {
            self.open.push(format!("{name} is zero in every run"));
            return;
        }
        // Nothing at all beside traffic is the clearest of all differences, and no ratio can say so without a floor.
        let measure = &match measure.source {
            Source::Goodput if known.contains(&0.0) && !nothing => Measure {
                floor: NO_GOODPUT * known.iter().copied().fold(0.0, f64::max),
                ..measure.clone()
            },
            _ => measure.clone(),
        };
        let floored = |x: &f64| if nothing { 1.0 } else { x + measure.floor };
        let halves: [&[f64]; 2] = known.split_at(pairs.over.len()).into();
        let [over, under] = halves.map(|own| -> Vec<f64> { own.iter().map(floored).collect() });
        let ratio = match self.paired {
            true => PairedRatio::of_values(&over, &under),
            false => PairedRatio::independent_values(&over, &under),
        };
        match ratio {
            Some(ratio) => {
                let levels = halves.map(over_runs);
                self.judged
                    .push(Judgement::new(measure, statistic, ratio, levels));
            }
            None => {
                let odd = known.iter().filter(|&&x| x + measure.floor <= 0.0).count();
                self.open.push(format!(
                    "{name} is not above zero in {odd} of {} runs, and ratios of it mean nothing without a floor",
                    known.len()
                ));
            }
        }
    }
}

/// Observations by replication.
pub(super) type Groups = Vec<Vec<Observation>>;

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

/// The value of `measure` in one run; `None` where the run does not have one.
pub(super) fn value(measure: &Measure, run: &RunResult) -> Option<f64> {
    let observed = &run.observed;
    let requests = &observed.requests;
    match measure.source {
        Source::RequestTimes | Source::FirstBytes | Source::Loss => None,
        Source::Delays | Source::RequestRate => None,
        Source::Goodput => {
            let seconds: f64 = requests.iter().map(|r| r.observed_until - r.start).sum();
            let bytes: u64 = requests.iter().map(|r| r.bytes).sum();
            (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds)
        }
        Source::RequestFailures => {
            let n = requests.iter().filter(|r| r.outcome == Outcome::Failed);
            (!requests.is_empty()).then(|| n.count() as f64 / requests.len() as f64)
        }
        Source::Samples => {
            let own: Vec<f64> = observed
                .measures
                .iter()
                .filter(|s| s.measure == measure.name)
                .map(|s| s.value)
                .collect();
            mean(&own)
        }
    }
}

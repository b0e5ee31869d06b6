//! The values of measures in each run, and the judgements that follow from them.

use swell_stats::{Estimate, MIN_TAIL_SAMPLES, Observation, PairedRatio, mean, quantile_name};

use super::answer::{DECISIVE, MARGIN};
use super::condition::Pairs;
use super::gaps;
use super::judge::{Judgement, Statistic, enough, over_runs};
use super::numbers::digits;
use super::own::Asked;
use super::ratios::pooled;
use super::streams::paces_itself;
use swell_experiment::measure::{Better, Measure, Source};
use swell_experiment::observe::{Outcome, Request};
use swell_experiment::store::RunResult;

/// What stands for no goodput: this share of the largest in any run.
const NO_GOODPUT: f64 = 0.01;

/// What the names of the times of requests of one size begin with.
pub(super) const TIME_OF: &str = "time of ";

/// What the reason says that there are not enough values for a percentile.
pub(super) const TOO_FEW: &str = " are too few for ";

/// The outcome of comparing two conditions.
#[derive(Default)]
pub(super) struct Found {
    /// The judgements that the answer rests on.
    pub judged: Vec<Judgement>,
    /// Judgements that are shown, but that no answer rests on.
    pub beside: Vec<Judgement>,
    /// Reasons why something could not be judged. Any such reason rules out the answer "nothing differs".
    pub open: Vec<String>,
    /// What would let it be judged, where a reason is that it cannot.
    pub remedy: Option<Remedy>,
    /// Whether runs are paired.
    pub paired: bool,
}

/// What lets a measure be judged that a reason leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remedy {
    /// Longer runs, in which chance makes less of the load.
    Longer,
    /// A measure that the program reports itself.
    Measure,
    /// More requests.
    Requests {
        /// The percentile of their times that is missing, 0..1.
        percentile: f64,
        /// How many there are beside the background, or without it where these are fewer.
        seen: usize,
        /// How many the percentile wants.
        wanted: usize,
    },
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
fn tail_is_missing(measure: &Measure, groups: [&[Vec<Observation>]; 2], i: usize) -> String {
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
        _ if measure.source == Source::Samples || measure.name.starts_with(TIME_OF) => {
            format!(
                "{fewer} values of {}{TOO_FEW}{tail}, which wants {wanted:.0}",
                measure.name
            )
        }
        _ => format!("{fewer} requests{TOO_FEW}{tail}, which wants {wanted:.0}"),
    }
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
    pub(super) fn has(&self, measure: &Measure) -> bool {
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
        // `side::judged_up_to` tells how far it was judged.
        if median && !tail {
            let reason = tail_is_missing(measure, [over, under], 1);
            self.remedied(measure, [over, under], 1);
            // Two measures of the same requests lack the same tail.
            if !self.open.contains(&reason) {
                self.open.push(reason);
            }
        } else if tail && let Some(reason) = self.seen_beyond(measure, [over, under]) {
            self.open.push(reason);
            self.remedied(measure, [over, under], DECISIVE.len() - 1);
        }
    }

    /// Notes that more requests would show the percentile of a measure with index `i` in [`DECISIVE`], if too few are why
    /// it was not judged.
    fn remedied(&mut self, measure: &Measure, groups: [&[Vec<Observation>]; 2], i: usize) {
        let percentile = asked_for(measure)[i];
        let counts = groups.map(|of| of.iter().map(Vec::len).sum::<usize>());
        let of_requests = measure.source != Source::Samples && !measure.name.starts_with(TIME_OF);
        let wanted = (MIN_TAIL_SAMPLES / (1.0 - DECISIVE[i])).round() as usize;
        let seen = counts[0].min(counts[1]);
        if of_requests && (1..wanted).contains(&seen) && self.remedy.is_none() {
            self.remedy = Some(Remedy::Requests {
                percentile,
                seen,
                wanted,
            });
        }
    }

    /// Leaves it open where a program sends at a pace of its own.
    pub(super) fn paces_itself(&mut self, asked: &Asked, pairs: &Pairs<'_>) {
        let reason = paces_itself(asked, pairs);
        if let Some(reason) = reason.filter(|reason| !self.open.contains(reason)) {
            self.open.push(reason);
            self.remedy = Some(Remedy::Measure);
        }
    }

    /// The reason why nobody may say that nothing differs, where the last percentile of a measure is not judged, and it or
    /// the mean of the same values lies beyond the margin. Its interval is not known, but what is seen is no equality.
    fn seen_beyond(
        &self,
        measure: &Measure,
        [over, under]: [&[Vec<Observation>]; 2],
    ) -> Option<String> {
        let last = DECISIVE.len() - 1;
        let p = asked_for(measure)[last];
        let ratio = match self.paired {
            true => PairedRatio::of(over, under, p),
            false => PairedRatio::independent(over, under, p),
        };
        if ratio.is_some() && enough(over, p) && enough(under, p) {
            return None;
        }
        let means = [over, under].map(|groups| -> Vec<f64> {
            let each = groups.iter();
            let of = |own: &Vec<Observation>| own.iter().map(|o| o.value).collect::<Vec<f64>>();
            each.filter_map(|own| mean(&of(own))).collect()
        });
        let of_means = match self.paired {
            true => PairedRatio::of_values(&means[0], &means[1]),
            false => PairedRatio::independent_values(&means[0], &means[1]),
        };
        let beyond = |of: Option<PairedRatio>| {
            let value = of?.value();
            (value.ln().abs() > MARGIN.ln_1p()).then_some(value)
        };
        let tail = quantile_name(p);
        let shown = beyond(ratio).map(|x| (tail.clone(), x));
        let (what, x) = shown.or_else(|| Some(("mean".to_owned(), beyond(of_means)?)))?;
        let reason = tail_is_missing(measure, [over, under], last);
        Some(format!(
            "{reason}, and the {what} seen is {} times as large",
            digits(x)
        ))
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

/// The value of `measure` in one run; `None` where the run does not have one.
pub(super) fn value(measure: &Measure, run: &RunResult) -> Option<f64> {
    let observed = &run.observed;
    let requests = &observed.requests;
    match measure.source {
        Source::RequestTimes | Source::FirstBytes | Source::Loss => None,
        Source::Delays | Source::RequestRate => None,
        Source::Goodput => {
            let seconds = time_open(requests);
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

/// For how long at least one of `requests` was open. Requests that overlap share a second, as they share the link.
fn time_open(requests: &[Request]) -> f64 {
    let mut spans: Vec<(f64, f64)> = requests
        .iter()
        .map(|r| (r.start, r.observed_until))
        .collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut covered = f64::MIN;
    let mut seconds = 0.0;
    for (start, end) in spans {
        seconds += (end - start.max(covered)).max(0.0);
        covered = covered.max(end);
    }
    seconds
}

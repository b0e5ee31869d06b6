//! Values of a measure that the foreground reports itself: percentiles of them, and the mean of each run.

use swell_stats::{MIN_TAIL_SAMPLES, Observation, quantile_name, samples_beyond};

use super::answer::DECISIVE;
use super::condition::Pairs;
use super::own::Asked;
use super::requests::{few_take_most, numbers_differ};
use super::values::{Found, Groups, asked_for, levels, value};
use swell_experiment::measure::Measure;
use swell_experiment::store::RunResult;

/// The values of a measure in each run of both conditions.
enum Values {
    /// Enough for percentiles.
    Many([Groups; 2]),
    /// Enough, but a percentile that is judged is not above zero, as this reason says.
    NotPositive(String),
    /// Too few for percentiles: a run has none, or a condition too few for the tail. Or all are zero.
    Few,
}

impl Found {
    /// Judges the values that the foreground reports of a measure: the mean of each run, and percentiles where there are
    /// enough of them.
    pub(super) fn samples(&mut self, asked: &Asked, measure: &Measure, pairs: &Pairs<'_>) {
        if asked.program {
            self.open.extend(numbers_differ(measure, pairs));
        }
        match distributions(measure, pairs) {
            Values::Many([over, under]) => {
                match mean_counts(measure, [&over, &under]) {
                    true => self.mean(measure, pairs, value),
                    false => {
                        let mut aside = Found {
                            paired: self.paired,
                            ..Found::default()
                        };
                        aside.mean(measure, pairs, value);
                        self.beside.extend(aside.judged);
                    }
                }
                let own = [&over, &under].map(|of| levels(asked, measure, of));
                self.percentiles(measure, &over, &under, |i| own.each_ref().map(|l| l[i]));
            }
            Values::NotPositive(odd) => {
                self.open.push(odd);
                self.mean(measure, pairs, value);
            }
            Values::Few => {
                let before = self.open.len();
                self.mean(measure, pairs, value);
                let is_silent = pairs.all().any(|run| value(measure, run).is_none());
                if let (Some(why), true) = (asked.silent, is_silent) {
                    for reason in &mut self.open[before..] {
                        *reason += &format!(" ({why})");
                    }
                }
            }
        }
    }
}

/// Whether an answer rests on the mean of many values, too. A floor says how much of a measure matters in all, such as
/// one lost packet in a thousand, however few of the values it is in. Elsewhere the mean counts as that of request times
/// does: where the largest values, which no percentile covers, are most of the sum.
fn mean_counts(measure: &Measure, groups: [&Groups; 2]) -> bool {
    measure.floor > 0.0 || groups.into_iter().any(|of| few_take_most(of))
}

fn distributions(measure: &Measure, pairs: &Pairs<'_>) -> Values {
    let of = |run: &RunResult| -> Vec<Observation> {
        let own = run.observed.measures.iter();
        own.filter(|s| s.measure == measure.name)
            .map(|s| Observation::complete(s.value + measure.floor))
            .collect()
    };
    let both = [&pairs.over, &pairs.under]
        .map(|runs| -> Groups { runs.iter().map(|run| of(run)).collect() });
    let plenty = |groups: &Groups| {
        let samples: usize = groups.iter().map(Vec::len).sum();
        groups.iter().all(|g| !g.is_empty())
            && samples_beyond(samples, DECISIVE[1]) >= MIN_TAIL_SAMPLES
    };
    let nothing = both
        .iter()
        .flatten()
        .flatten()
        .all(|o| o.value == measure.floor);
    if nothing || !both.iter().all(plenty) {
        return Values::Few;
    }
    // Percentiles above the lowest one that is judged are positive, too.
    let lowest = asked_for(measure).into_iter().fold(1.0, f64::min);
    let odd = |g: &&Vec<Observation>| {
        let below = g.iter().filter(|o| o.value <= 0.0).count();
        below as f64 >= lowest * g.len() as f64
    };
    match both.iter().flatten().filter(odd).count() {
        0 => Values::Many(both),
        runs => Values::NotPositive(format!(
            "{} of {} is not above zero in {runs} of {} runs, so only means were judged: percentiles of it want a floor",
            quantile_name(lowest),
            measure.name,
            pairs.all().count()
        )),
    }
}

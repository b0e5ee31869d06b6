//! The statistical judgement of one measure of one application under two conditions.

use schemars::JsonSchema;
use serde::Serialize;
use swell_stats::{
    Estimate, Known as Part, MIN_TAIL_SAMPLES, Observation, PairedRatio, hommel, mean,
    samples_beyond, sd, t_quantile,
};

use super::answer::{Answer, LEVEL, MARGIN};
use super::ratios::{Known, without_interval};
use swell_experiment::measure::{Better, Measure};

/// What is compared of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// A percentile of its values within a run, 0..=1.
    Percentile(f64),
    /// Its one value, or the mean of its values, of a run.
    Mean,
}

/// One statistic of a measure, with a background over without it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Judgement {
    /// The measure.
    pub measure: String,
    /// Unit of its values.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Whether the question is about it.
    pub primary: bool,
    /// What is compared of it.
    pub statistic: Statistic,
    /// It with the background and without: a percentile of all runs together, or the mean over runs of what each
    /// says. `None` where it cannot be told.
    pub with: Option<Estimate>,
    /// Likewise without.
    pub without: Option<Estimate>,
    /// The ratio with its 95 % interval.
    pub ratio: Estimate,
    /// p-value of a ratio of at most one plus the margin, corrected for all that the answer looks at.
    pub p_above: f64,
    /// p-value of a ratio of at least one over one plus the margin, corrected likewise.
    pub p_below: f64,
    /// Whether the 90 % interval lies within the margin.
    pub equal: bool,
    /// Whether it differs by more than the margin, as the corrected p-values and `equal` have it. An answer may be
    /// withheld nevertheless.
    pub differs: Answer,
    /// Replications that would narrow the interval to the margin.
    pub replications_wanted: Option<usize>,
    /// What was added to both values before their ratio was taken.
    #[serde(skip)]
    pub(super) floor: f64,
    /// Whether it may show by itself that nothing differs.
    #[serde(skip)]
    sufficient: bool,
    #[serde(skip)]
    paired: PairedRatio,
}

impl Judgement {
    /// Whether the measure is zero with and without the background, such as a stall or a loss that never happened.
    pub(super) fn never(&self) -> bool {
        [&self.with, &self.without]
            .into_iter()
            .all(|e| e.is_some_and(|e| e.value == 0.0))
            // A percentile of all runs may be zero where that of some runs is not.
            && self.ratio.value == 1.0
    }

    /// Its values with and without the background, where its ratio is not theirs: the measure may be zero, and what
    /// counts as nothing was added to both.
    pub(super) fn values_apart(&self) -> Option<[f64; 2]> {
        let (with, without) = (self.with?.value, self.without?.value);
        let close = (with / without / self.ratio.value - 1.0).abs() <= APART;
        (self.floor > 0.0 && with != without && !close).then_some([with, without])
    }

    pub(super) fn new(
        measure: &Measure,
        statistic: Statistic,
        paired: PairedRatio,
        [with, without]: [Option<Estimate>; 2],
    ) -> Judgement {
        let mut judgement = Judgement {
            with,
            without,
            measure: measure.name.to_string(),
            unit: measure.unit.to_string(),
            better: measure.better,
            primary: measure.primary,
            statistic,
            ratio: estimate(&paired, paired.replications()),
            p_above: paired.p_above(1.0 + MARGIN),
            p_below: paired.p_below(1.0 / (1.0 + MARGIN)),
            equal: paired.equivalent(MARGIN, 1.0 - LEVEL),
            replications_wanted: paired.replications_for(MARGIN),
            floor: measure.floor,
            sufficient: measure.sufficient,
            differs: Answer::Unclear,
            paired,
        };
        judgement.differs = judgement.answer();
        judgement
    }

    /// Whether it differs, by its p-values as they are now.
    fn answer(&self) -> Answer {
        match (self.differs(), self.equal) {
            (true, _) => Answer::Yes,
            (false, true) => Answer::No,
            (false, false) => Answer::Unclear,
        }
    }

    /// Whether it is beyond the margin as seen, and its own interval excludes that nothing differs.
    pub(super) fn apart(&self) -> bool {
        matches!(Known::of(&self.ratio), Known::Interval) && self.is_seen()
    }

    /// Whether it, or a bound of it, is beyond the margin as seen, and its own interval excludes that nothing differs.
    pub(super) fn is_seen(&self) -> bool {
        let beyond = self.ratio.value.ln().abs() > MARGIN.ln_1p();
        beyond && (self.ratio.low > 1.0 || self.ratio.high < 1.0)
    }

    /// Whether the corrected p-values show a difference beyond the margin.
    pub fn differs(&self) -> bool {
        self.p_above.min(self.p_below) <= 1.0 - LEVEL
    }

    /// Uncorrected p-value of the hypothesis that the ratio lies outside the margin.
    fn p_outside(&self) -> f64 {
        self.paired.p_equivalent(MARGIN)
    }

    /// Replications that would decide at level `alpha` whether the ratio is within the margin.
    pub(super) fn to_decide(&self, alpha: f64) -> Option<usize> {
        self.paired.replications_to_decide(MARGIN, alpha)
    }

    /// Whether it covers the tail of the measure, which percentiles near the median do not.
    pub(super) fn tells_of_bad_days(&self) -> bool {
        match self.statistic {
            Statistic::Percentile(p) => p.max(1.0 - p) >= TAIL,
            // The failure rate and the mean time alone say nothing about most requests.
            Statistic::Mean => self.sufficient,
        }
    }

    /// Whether a difference is shown and is for the worse.
    pub fn worse(&self) -> bool {
        self.differs() && (self.p_above <= self.p_below) == (self.better == Better::Lower)
    }
}

/// If a ratio is farther than this share from that of the values themselves, sentences quote the values.
const APART: f64 = 0.05;

/// The mean over runs with Student's t interval; a single run has no interval.
pub(super) fn over_runs(values: &[f64]) -> Option<Estimate> {
    let value = mean(values).filter(|m| m.is_finite())?;
    let n = values.len() as f64;
    let half = match sd(values) {
        Some(sd) => t_quantile(0.5 + LEVEL / 2.0, n - 1.0) * sd / n.sqrt(),
        None => f64::INFINITY,
    };
    Some(without_interval(Estimate {
        value,
        low: value - half,
        high: value + half,
        level: LEVEL,
        replications: values.len(),
    }))
}

/// The ratio as tables and figures show it: for a bound, the value is the bound; one replication has no interval.
pub(super) fn estimate(paired: &PairedRatio, replications: usize) -> Estimate {
    let own = paired.value();
    let (value, low, high) = match (paired.interval(LEVEL), paired.known()) {
        ((low, high), Part::Value) => (own, low, high),
        // A bound of a single replication holds for that one.
        (_, Part::AtLeast) if replications < 2 => (own, own, f64::INFINITY),
        (_, Part::AtMost) if replications < 2 => (own, 0.0, own),
        ((low, high), Part::AtLeast) => (low, low, high),
        ((low, high), Part::AtMost) => (high, low, high),
    };
    Estimate {
        value,
        low,
        high,
        level: LEVEL,
        replications,
    }
}

/// Share of the error level that goes to primary measures, where there are both primary and other measures.
const PRIMARY: f64 = 0.8;

/// Corrects the p-values of all judgements of one question: doubled for the two sides of each, then Hommel's correction
/// over all of them. Primary measures are a family of their own, so that other measures cost them little power.
pub(super) fn correct<'j>(judgements: impl Iterator<Item = &'j mut Judgement>) {
    let all: Vec<&mut Judgement> = judgements.collect();
    let (primary, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|j| j.primary);
    let share = match (primary.is_empty(), others.is_empty()) {
        (false, false) => PRIMARY,
        _ => 1.0,
    };
    for (family, alpha) in [
        (primary, share),
        (others, if share < 1.0 { 1.0 - share } else { 1.0 }),
    ] {
        let sides = |j: &Judgement| {
            let (above, below) = (
                j.paired.p_above(1.0 + MARGIN),
                j.paired.p_below(1.0 / (1.0 + MARGIN)),
            );
            (above.min(below), above <= below)
        };
        let ps: Vec<f64> = family.iter().map(|j| (2.0 * sides(j).0).min(1.0)).collect();
        for (judgement, p) in family.into_iter().zip(hommel(&ps)) {
            let p = (p / alpha).min(1.0);
            (judgement.p_above, judgement.p_below) = match sides(judgement).1 {
                true => (p, 1.0),
                false => (1.0, p),
            };
            judgement.differs = judgement.answer();
        }
    }
}

/// One p-value for each of several candidates that could replace the same traffic: of the hypothesis that something
/// judged of it is beyond the margin. Each judgement takes two one-sided tests, and a candidate's p-value is the largest
/// of these, or one where no judgement covers the tail. Hommel's correction covers all candidates, so at most 5 % of
/// experiments call *any* insufficient candidate sufficient.
pub(super) fn p_insufficient(candidates: &[&[Judgement]]) -> Vec<f64> {
    let alone: Vec<f64> = candidates
        .iter()
        .map(
            |judged| match judged.iter().any(Judgement::tells_of_bad_days) {
                true => judged.iter().map(Judgement::p_outside).fold(0.0, f64::max),
                false => 1.0,
            },
        )
        .collect();
    hommel(&alone)
}

/// Whether a candidate with these judgements and this p-value of [`p_insufficient`] is sufficient.
pub(super) fn sufficient(judged: &[Judgement], p: f64) -> Answer {
    if judged.iter().any(Judgement::differs) {
        Answer::No
    } else if p <= 1.0 - LEVEL {
        Answer::Yes
    } else {
        Answer::Unclear
    }
}

/// Whether there are enough requests to judge percentile `p`: [`MIN_TAIL_SAMPLES`] or more beyond it, over all runs.
/// The median can always be judged, because each run has one.
pub(super) fn enough(groups: &[Vec<Observation>], p: f64) -> bool {
    let samples: usize = groups.iter().map(Vec::len).sum();
    p == 0.5 || samples_beyond(samples, p) >= MIN_TAIL_SAMPLES
}

/// Percentiles nearer to the median than this say nothing about the tail; alone they cannot show that nothing differs.
const TAIL: f64 = 0.9;

/// Whether `judgements` show a difference: yes if any does; no if all show equivalence and at least one covers the
/// tail; else unclear.
pub(super) fn answer(judgements: &[Judgement]) -> Answer {
    if judgements.iter().any(Judgement::differs) {
        Answer::Yes
    } else if judgements.iter().any(Judgement::tells_of_bad_days)
        && judgements.iter().all(|j| j.equal)
    {
        Answer::No
    } else {
        Answer::Unclear
    }
}

//! Harm to few requests, which no percentile up to p95 shows.

use swell_experiment::measure::{COMPLETION_TIME, Measure};
use swell_stats::{Observation, PairedRatio};

use super::answer::{DECISIVE, RARE};
use super::gaps;
use super::judge::{Judgement, Statistic, enough};
use super::own::Asked;
use super::ratios::pooled;
use super::values::{Found, TIME_OF};

/// Requests without which there is no p99: ten beyond it.
pub(super) const LEAST: usize = 1000;

/// p99 of a measure of requests, where there are enough of them. A gap between two kinds of requests is no harm to either:
/// a p99 that falls into one is only shown beside.
pub(super) fn p99(
    asked: &Asked,
    found: &mut Found,
    measure: &Measure,
    groups: [&[Vec<Observation>]; 2],
) -> Option<Judgement> {
    let [over, under] = groups;
    if !enough(over, RARE) || !enough(under, RARE) {
        return None;
    }
    let ratio = match found.paired {
        true => PairedRatio::of(over, under, RARE),
        false => PairedRatio::independent(over, under, RARE),
    }?;
    let levels = groups.map(|of| pooled(&asked.bootstrap, of, &[RARE]).pop().flatten());
    let statistic = Statistic::Percentile(RARE);
    let judgement = Judgement::new(measure, statistic, ratio, levels);
    if gaps::explains(&ratio, groups, RARE) {
        found.beside.push(judgement);
        return None;
    }
    Some(judgement)
}

/// Judges what shows harm to few requests (`rare`: p99 and the mean of their times) where it shows a difference and no
/// other percentile does: an outage may harm one request in fifty. What chance explains, perhaps in a percentile of another
/// size, is none. It never shows that nothing differs, so chance in a few long requests leaves no answer open, and the rest
/// is told beside.
pub(super) fn judge(found: &mut Found, rare: Vec<Judgement>, by_size: bool) {
    let times = || {
        (found.judged.iter()).filter(|j| match by_size {
            true => j.measure.starts_with(TIME_OF),
            false => j.measure == COMPLETION_TIME.name,
        })
    };
    let last = Statistic::Percentile(DECISIVE[DECISIVE.len() - 1]);
    // Without the last one, `Found::seen_beyond` says what is seen there.
    let silent = times().any(|j| j.statistic == last) && !times().any(Judgement::is_seen);
    let (judged, beside): (Vec<_>, Vec<_>) = rare.into_iter().partition(|j| silent && j.apart());
    found.judged.extend(judged);
    found.beside.extend(beside);
}

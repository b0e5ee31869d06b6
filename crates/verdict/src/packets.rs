//! Judgements of foregrounds that send packets: rate, loss and delay in each direction.

use swell_base::Direction;
use swell_stats::{MIN_TAIL_SAMPLES, quantile_name, samples_beyond};

use super::answer::{DECISIVE, MARGIN};
use super::condition::{Condition, Pairs};
use super::judge::Statistic;
use super::numbers::digits;
use super::own::Asked;
use super::values::{Found, TOO_FEW, asked_for};
use swell_experiment::measure::Measure;
use swell_experiment::store::RunResult;

impl Asked {
    /// The directions in which the foreground sends data, each with the measure of it. If there are two, their measures
    /// are named after them: a call whose uplink is ruined is not well because its downlink is.
    fn each_way(&self, measure: &Measure) -> Vec<(Direction, Measure)> {
        let alone = self.directions.len() == 1;
        let own = |&d: &Direction| {
            let mut own = measure.clone();
            if !alone {
                own.name = format!("{} {}", measure.name, d.name()).into();
            }
            (d, own)
        };
        self.directions.iter().map(own).collect()
    }
}

impl Found {
    /// Judges a measure that has one value per run and direction.
    pub(super) fn each_way(
        &mut self,
        asked: &Asked,
        measure: &Measure,
        pairs: &Pairs<'_>,
        value: impl Fn(&RunResult, Direction) -> Option<f64>,
    ) {
        for (d, own) in asked.each_way(measure) {
            self.mean(&own, pairs, |_, run| value(run, d));
        }
    }

    /// Judges the mean and the tail of the delays of packets: a mean says nothing about the few that wait long.
    pub(super) fn delays(
        &mut self,
        asked: &Asked,
        measure: &Measure,
        pairs: &Pairs<'_>,
        conditions: [&Condition<'_>; 2],
    ) {
        for (d, own) in asked.each_way(measure) {
            self.delays_one_way(asked, &own, d, pairs, conditions);
        }
    }

    fn delays_one_way(
        &mut self,
        asked: &Asked,
        measure: &Measure,
        direction: Direction,
        pairs: &Pairs<'_>,
        conditions: [&Condition<'_>; 2],
    ) {
        let [over, under] = conditions.map(|c| c.propagation);
        let timed = |runs: &[&RunResult]| -> u64 {
            runs.iter().map(|run| asked.timed(run, direction)).sum()
        };
        let fewer = timed(&pairs.over).min(timed(&pairs.under));
        let propagation = |run: &RunResult| {
            let first = pairs.over.iter().any(|other| std::ptr::eq(*other, run));
            if first { over } else { under }
        };
        let mut statistics = vec![Statistic::Mean];
        for &p in &asked_for(measure)[1..] {
            if samples_beyond(fewer as usize, p) >= MIN_TAIL_SAMPLES {
                statistics.push(Statistic::Percentile(p));
            }
        }
        for &statistic in &statistics {
            let before = self.judged.len();
            self.of_runs(measure, statistic, pairs, |_, run| {
                asked.delay(run, direction, statistic, propagation(run))
            });
            if self.judged.len() == before {
                return; // The reason is the same for all of them.
            }
        }
        if statistics.len() == 1 {
            let wanted = MIN_TAIL_SAMPLES / (1.0 - DECISIVE[1]);
            self.open.push(format!(
                "{fewer} packets{TOO_FEW}the p90 of {}, which wants {wanted:.0}",
                measure.name
            ));
        } else if statistics.len() < DECISIVE.len() {
            // As of other measures: what is seen beyond the last percentile that is judged is no equality.
            let [last, p] = [DECISIVE, asked_for(measure)].map(|all| all[all.len() - 1]);
            let mut aside = Found {
                paired: self.paired,
                ..Found::default()
            };
            aside.of_runs(measure, Statistic::Percentile(p), pairs, |_, run| {
                asked.delay(run, direction, Statistic::Percentile(p), propagation(run))
            });
            let ratio = aside.judged.first().map(|j| j.ratio.value);
            if let Some(x) = ratio.filter(|x| x.ln().abs() > MARGIN.ln_1p()) {
                let wanted = MIN_TAIL_SAMPLES / (1.0 - last);
                let tail = quantile_name(p);
                self.open.push(format!(
                    "{fewer} packets{TOO_FEW}the {tail} of {}, which wants {wanted:.0}, and the {tail} seen is {} times as large",
                    measure.name,
                    digits(x)
                ));
            }
        }
    }
}

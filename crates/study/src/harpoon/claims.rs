//! The paper's claims, S4.1 to S4.11, one column per copy.

use super::cells::{COPIES, GAPS, OCTAVES, RANKS, SIZES};
use super::results::Results;
use super::run::{BIN, RTT};
use crate::ledger::Claim;
use crate::{Estimate, Finding, Ledger, Verdict};

/// The ledger of the study, over `whole` intervals of the original.
pub fn ledger(results: &Results<'_>, whole: usize) -> Ledger {
    let columns = COPIES.iter().enumerate().map(|(copy, (name, _))| {
        let query = Query {
            results,
            whole,
            copy,
        };
        ((*name).to_owned(), query)
    });
    let columns: Vec<(String, Query<'_>)> = columns.collect();
    Ledger::of("Claims of the paper", &claims(), &columns)
}

#[derive(Clone, Copy)]
struct Query<'a> {
    results: &'a Results<'a>,
    whole: usize,
    copy: usize,
}

fn claims<'a>() -> [Claim<Query<'a>>; 11] {
    [
        Claim {
            id: "S4.4",
            claim: "sessions tuned by imitation carry the volume",
            paper: "the interval's bytes are met",
            rule: "holds: connections and wire bytes of the whole run within 3 %; in part: within 10 %",
            find: tuning,
        },
        Claim {
            id: "S4.5",
            claim: "temporal volume is reproduced",
            paper: "figures 6 and 9",
            rule: "holds: wire bytes within 5 % in 95 % of the intervals of 300 s; in part: within 20 %",
            find: temporal,
        },
        Claim {
            id: "S4.6a",
            claim: "file sizes are reproduced",
            paper: "figure 7, the lines lie on each other",
            rule: "holds: every quantile from 10 to 99 % within 5 %; in part: within 20 %",
            find: |q| quantiles(q, &SIZES),
        },
        Claim {
            id: "S4.6b",
            claim: "inter-connection times are reproduced",
            paper: "figure 7",
            rule: "holds: every quantile from 10 to 90 % within 10 %; in part: within a factor of 2",
            find: |q| quantiles(q, &GAPS),
        },
        Claim {
            id: "S4.6c",
            claim: "the popularity of destinations is reproduced by rank",
            paper: "figure 7",
            rule: "holds: shares of the ten most popular within a fifth of the original's or a point; in part: their \
               sum so",
            find: popularity,
        },
        Claim {
            id: "S4.7a",
            claim: "flows per interval match",
            paper: "figures 8 and 10",
            rule: "holds: connections within 5 % in 95 % of the intervals of 300 s; in part: within 20 %",
            find: |q| by_interval(q, "flows", 0.0),
        },
        Claim {
            id: "S4.7b",
            claim: "packets per interval match after scaling by the mean packet size",
            paper: "figures 8 and 10",
            rule: "holds: packets times the ratio of mean sizes within 5 % in 95 % of the intervals of 300 s; in \
               part: within 20 %",
            find: scaled_packets,
        },
        Claim {
            id: "S4.8a",
            claim: "with the dominant RTT emulated, energy above the RTT matches",
            paper: "figure 11",
            rule: "holds: mean distance over octaves from twice the RTT to 33 s at most 0.5 octaves (1.5 dB); in \
               part: 1",
            find: |q| Some(energy(q, true)?.verdict(q.with_rtt(), 0.5)),
        },
        Claim {
            id: "S4.8b",
            claim: "energy below the RTT does not match",
            paper: "figure 11: links and hosts of the testbed differ",
            rule: "holds: mean distance over octaves below half the RTT above 0.5 octaves; in part: above what it is \
               over the RTT",
            find: below,
        },
        Claim {
            id: "S4.8c",
            claim: "without the RTT energy matches nowhere",
            paper: "figure 11",
            rule: "holds: mean distance above 0.5 octaves both above and below the RTT; in part: on one side",
            find: without,
        },
        Claim {
            id: "S4.8d",
            claim: "an interval of 60 s has less energy than one of 300 s",
            paper: "figure 11",
            rule: "holds: lower by more than 0.1 octaves in the mean from twice the RTT to 33 s, both at the same \
               RTT; in part: lower",
            find: shorter,
        },
    ]
}

impl Query<'_> {
    fn with_rtt(&self) -> bool {
        COPIES[self.copy].1.rtt == RTT
    }
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

fn finding(verdict: Verdict, value: String, detail: String, measured: Option<Estimate>) -> Finding {
    Finding {
        measured,
        ..Finding::exact(verdict, value, detail, f64::NAN)
    }
}

fn tuning(q: &Query<'_>) -> Option<Finding> {
    let flows = q.results.off(q.copy, "flows")?;
    let bytes = q.results.off(q.copy, "bytes")?;
    let worst = flows.value.abs().max(bytes.value.abs());
    Some(finding(
        Verdict::of(worst <= 0.03, worst <= 0.1),
        percent(flows.value),
        format!("connections; wire bytes {}", percent(bytes.value)),
        Some(flows),
    ))
}

/// The distance from zero that 95 % of values are within, and their mean distance.
fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let mut sizes: Vec<f64> = values.iter().map(|v| v.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    if sizes.is_empty() {
        return None;
    }
    // At least one, for there is at least one value.
    let within = (sizes.len() as f64 * 0.95).ceil() as usize;
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    Some((sizes[within - 1], mean))
}

fn by_interval(q: &Query<'_>, series: &str, scale: f64) -> Option<Finding> {
    let mut values = q.results.each_off(q.copy, series, q.whole);
    values
        .iter_mut()
        .for_each(|v| *v = (*v + 1.0) * (1.0 + scale) - 1.0);
    let (most, mean) = spread(&values)?;
    Some(finding(
        Verdict::of(most <= 0.05, most <= 0.2),
        format!("{:.1} %", most * 100.0),
        format!(
            "is not passed by 95 % of {} intervals; mean distance {:.1} %",
            values.len(),
            mean * 100.0
        ),
        Estimate::of([most]),
    ))
}

fn temporal(q: &Query<'_>) -> Option<Finding> {
    by_interval(q, "bytes", 0.0)
}

fn scaled_packets(q: &Query<'_>) -> Option<Finding> {
    let size = q.results.off(q.copy, "packet_size")?;
    let mut found = by_interval(q, "packets", size.value)?;
    found.detail += &format!("; mean size {}", percent(size.value));
    Some(found)
}

fn quantiles(q: &Query<'_>, names: &[(&str, f64)]) -> Option<Finding> {
    let mut worst: Option<(f64, f64, Estimate)> = None;
    for &(name, p) in names {
        let off = q.results.off(q.copy, name)?;
        if worst.as_ref().is_none_or(|w| off.value.abs() > w.0.abs()) {
            worst = Some((off.value, p, off));
        }
    }
    let (off, p, estimate) = worst?;
    // Sizes are held more closely than times.
    let (near, far) = if names[0].0.starts_with("size") {
        (0.05, 0.2)
    } else {
        (0.1, 1.0)
    };
    Some(finding(
        Verdict::of(off.abs() <= near, off.abs() <= far),
        percent(off),
        format!("at the {:.0} % quantile, the worst", p * 100.0),
        Some(estimate),
    ))
}

fn popularity(q: &Query<'_>) -> Option<Finding> {
    let near = |copy: f64, original: f64| (copy - original).abs() <= (0.2 * original).max(0.01);
    let (mut each, mut sums) = (true, [0.0; 2]);
    for rank in 1..=RANKS {
        let name = format!("host_{rank}");
        let (original, copy) = (
            q.results.original(&name)?,
            q.results.copy(q.copy, &name)?.value,
        );
        each &= near(copy, original);
        sums = [sums[0] + original, sums[1] + copy];
    }
    Some(finding(
        Verdict::of(each, near(sums[1], sums[0])),
        format!("{:.1} %", sums[1] * 100.0),
        format!(
            "of sessions go to the ten most popular; in the original {:.1} %",
            sums[0] * 100.0
        ),
        Estimate::of([sums[1]]),
    ))
}

/// A mean distance of two log-scale diagrams, in octaves of energy.
struct Energy {
    distance: f64,
    /// With its sign: of the copy over the original.
    above: f64,
}

impl Energy {
    fn verdict(&self, applies: bool, bar: f64) -> Finding {
        if !applies {
            return Finding::not_tested();
        }
        self.finding(Verdict::of(
            self.distance <= bar,
            self.distance <= 2.0 * bar,
        ))
    }

    fn finding(&self, verdict: Verdict) -> Finding {
        finding(
            verdict,
            format!("{:.2}", self.distance),
            format!("octaves in the mean, the copy {:+.2}", self.above),
            Estimate::of([self.distance]),
        )
    }
}

/// The octaves above twice the RTT (below 33 s, where an hour has few coefficients), or below half of it.
fn octaves(above: bool) -> impl Iterator<Item = usize> {
    let millis = |j: usize| BIN.as_millis_f64() * 2f64.powi(j as i32);
    let rtt = RTT.as_millis_f64();
    (1..=OCTAVES).filter(move |&j| {
        if above {
            millis(j) >= 2.0 * rtt && millis(j) < 33_000.0
        } else {
            millis(j) <= rtt / 2.0
        }
    })
}

fn energy(q: &Query<'_>, above: bool) -> Option<Energy> {
    let mut differences = Vec::new();
    for j in octaves(above) {
        let name = format!("energy_{j}");
        let copy = q.results.copy(q.copy, &name)?.value;
        differences.push(copy - q.results.original(&name)?);
    }
    let n = differences.len() as f64;
    Some(Energy {
        distance: differences.iter().map(|d| d.abs()).sum::<f64>() / n,
        above: differences.iter().sum::<f64>() / n,
    })
}

fn below(q: &Query<'_>) -> Option<Finding> {
    let (low, high) = (energy(q, false)?, energy(q, true)?);
    if !q.with_rtt() {
        return None;
    }
    let verdict = Verdict::of(low.distance > 0.5, low.distance > high.distance);
    Some(low.finding(verdict))
}

fn without(q: &Query<'_>) -> Option<Finding> {
    let (low, high) = (energy(q, false)?, energy(q, true)?);
    if q.with_rtt() {
        return None;
    }
    let [a, b] = [low.distance > 0.5, high.distance > 0.5];
    Some(finding(
        Verdict::of(a && b, a || b),
        format!("{:.2}", high.distance),
        format!("octaves above the RTT, {:.2} below", low.distance),
        Estimate::of([high.distance]),
    ))
}

fn shorter(q: &Query<'_>) -> Option<Finding> {
    let this = &COPIES[q.copy].1;
    // The copy that differs in nothing but the longer interval.
    let longer = COPIES.iter().position(|(_, c)| {
        c.interval > this.interval
            && (c.rtt, c.sample, c.profile) == (this.rtt, this.sample, this.profile)
    })?;
    let other = Query { copy: longer, ..*q };
    let difference = energy(q, true)?.above - energy(&other, true)?.above;
    Some(finding(
        Verdict::of(difference < -0.1, difference < 0.0),
        format!("{difference:+.2}"),
        "octaves of energy, 60 s over 300 s".to_string(),
        Estimate::of([difference]),
    ))
}

//! Converts the results of an experiment to the data of a page.

mod capacity;
mod facts;

use std::collections::BTreeMap;

use swell_base::{Direction, Rate, Severity, Warning};
use swell_experiment::Results;
use swell_experiment::file::{Background, Bottleneck, File, Foreground, NamedLink, Part, Queue};
use swell_experiment::kinds::Shown;
use swell_experiment::store::RunResult;
use swell_stats::{
    Bootstrap, Estimate, KaplanMeier, Observation, Octave, mean, pool, quantile_name, sd,
};
use swell_verdict::{BackgroundVerdict, ForegroundVerdict, Judgement, Statistic, Verdict};

use crate::data::{
    BackgroundData, Condition, Doubt, Energy, FEW_SAMPLES, ForegroundData, Interval, LinkLoad,
    LinkWay, Load, MeasureCell, MeasureRow, PartSeries, QUANTILES, ReportData, Said, Series,
};
use crate::human::Quantity;
use crate::palette::Role;
use crate::waterfall;

/// Points at which the band of a distribution function is computed.
const BAND_POINTS: usize = 80;
/// Maximum number of replications shown over time: enough to compare, and few enough for a small page.
const SHOWN: usize = 3;

/// Everything the page shows about `results` and the `verdict` on them.
pub fn report_data(results: &Results, verdict: &Verdict) -> ReportData {
    let file = &results.experiment;
    ReportData {
        title: results.manifest.name.clone(),
        note: file.note.clone().unwrap_or_default(),
        verdict: verdict
            .foregrounds
            .iter()
            .map(|f| {
                let paragraphs = f.paragraphs.iter();
                let said = paragraphs.map(|p| Said {
                    text: p.text.clone(),
                    lines: p.lines.clone(),
                });
                said.collect()
            })
            .collect(),
        doubts: doubts(results, verdict),
        network: facts::network(results),
        against: "no background".into(),
        backgrounds: file.background.iter().map(background).collect(),
        foregrounds: file
            .foreground
            .iter()
            .zip(&verdict.foregrounds)
            .map(|(f, v)| foreground(results, f, v))
            .collect(),
        experiment: results.experiment_toml.clone(),
        rerun: facts::rerun(results),
    }
}

fn background(background: &Background) -> BackgroundData {
    BackgroundData {
        name: background.name().into(),
        what: background.describe(),
        role: match background.shown() {
            Shown::Reference => Role::Reference,
            Shown::Learnt => Role::Learnt,
            Shown::Other => Role::Other,
        },
    }
}

fn foreground(
    results: &Results,
    foreground: &Foreground,
    verdict: &ForegroundVerdict,
) -> ForegroundData {
    ForegroundData {
        name: foreground.name().into(),
        what: foreground.describe(),
        measures: {
            let each: Vec<(Vec<&Judgement>, usize)> = (verdict.backgrounds.iter())
                .map(|b| (b.compared().collect(), b.judged.len()))
                .collect();
            let names = || verdict.backgrounds.iter().map(|b| &b.background);
            let reference = verdict.reference.as_ref();
            let at = names().position(|n| Some(n) == reference);
            measures(&each, at, &reported(foreground))
        },
        conditions: verdict
            .backgrounds
            .iter()
            .map(|b| condition(results, foreground.name(), b))
            .collect(),
    }
}

/// Names of the measures that the foreground reports itself, if it is a program.
pub(crate) fn reported(foreground: &Foreground) -> Vec<&str> {
    let own = foreground.program().map_or(&[][..], |p| &p.reported);
    own.iter().map(|r| r.name.as_str()).collect()
}

/// All statistics compared between `each` condition and the one at index `reference`, one row per statistic. Of each
/// condition an answer rests on the first so many only, so no other is said to differ.
/// `reported` are the measures that a program defines itself.
pub(crate) fn measures(
    each: &[(Vec<&Judgement>, usize)],
    reference: Option<usize>,
    reported: &[&str],
) -> Vec<MeasureRow> {
    let all = || each.iter().flat_map(|(compared, _)| compared).copied();
    let mut rows: Vec<MeasureRow> = Vec::new();
    for j in all() {
        let name = match j.statistic {
            Statistic::Percentile(p) => format!("{}, {}", j.measure, quantile_name(p)),
            Statistic::Mean => j.measure.clone(),
        };
        if rows.iter().any(|r| r.name == name) {
            continue;
        }
        // Nothing says that a number without unit that a program reports is a share.
        let as_it_is = reported.contains(&j.measure.as_str());
        let (quantity, unit) = match (&*j.unit, &*j.measure) {
            ("s", _) => (Quantity::Duration, String::new()),
            ("bit/s", _) => (Quantity::Rate, String::new()),
            ("", _) if as_it_is => (Quantity::Plain, String::new()),
            ("", "failures" | "loss" | "unplayed" | "full rate") => {
                (Quantity::Share, String::new())
            }
            ("", measure) if measure.ends_with(" share") => (Quantity::Share, String::new()),
            (unit, _) => (Quantity::Plain, unit.to_owned()),
        };
        let same = |k: &&Judgement| k.measure == j.measure && k.statistic == j.statistic;
        let cells = each.iter().enumerate().map(|(i, (compared, judged))| {
            match compared.iter().copied().enumerate().find(|(_, k)| same(k)) {
                Some((at, own)) => MeasureCell {
                    value: own.with.map(interval),
                    ratio: Some(interval(own.ratio)),
                    differs: at < *judged && own.differs(),
                },
                None if reference == Some(i) => MeasureCell {
                    value: all().find(same).and_then(|k| k.without).map(interval),
                    ..MeasureCell::default()
                },
                None => MeasureCell::default(),
            }
        });
        rows.push(MeasureRow {
            name,
            quantity,
            unit,
            cells: cells.collect(),
        });
    }
    rows
}

fn condition(results: &Results, foreground: &str, verdict: &BackgroundVerdict) -> Condition {
    let background = &verdict.background;
    let runs: Vec<&RunResult> = results.of(foreground, background).collect();
    // Late runs tell nothing about requests. Their byte counts are right.
    let valid = swell_verdict::valid_runs(results, foreground, background);
    let groups = swell_verdict::request_observations(&valid);
    let all = KaplanMeier::new(groups.iter().flatten().copied());
    let bootstrap = Bootstrap::seeded(results.experiment.run.seed);
    let shown = shown(&results.experiment, foreground, background);
    let mut condition = Condition {
        runs: runs.len(),
        replications: valid.len(),
        samples: verdict.requests,
        unfinished: verdict.unfinished,
        failed: verdict.failed,
        steps: steps(&groups, &all),
        watched: (valid.iter().flat_map(|run| &run.observed.requests))
            .map(|r| r.observed_until - r.start)
            .fold(0.0, f64::max),
        band: band(&groups, &all, &bootstrap),
        energies: shown.each_ref().map(|queue| energies(&runs, queue)),
        load: Direction::BOTH.map(|d| load(&runs, (d, &shown[d]), verdict)),
        links: links(&results.experiment, &runs),
        waterfall: waterfall::means(&valid),
        series: valid
            .iter()
            .take(SHOWN)
            .map(|run| shown.each_ref().map(|queue| series(results, run, queue)))
            .collect(),
        ..Condition::default()
    };
    for (i, p) in QUANTILES.into_iter().enumerate() {
        if p != 0.5 && condition.samples < FEW_SAMPLES {
            continue;
        }
        let Some(q) = verdict.quantiles.iter().find(|q| q.p == p) else {
            continue;
        };
        condition.quantiles[i] = q.seconds.map(interval);
        condition.slowdown[i] = q.slowdown.map(interval);
    }
    condition
}

/// The links shown for a background, up and down: the slowest link of its path or, without a background, of the
/// foreground's path.
fn shown(file: &File, foreground: &str, background: &str) -> [Bottleneck; 2] {
    let mut backgrounds = file.background.iter();
    let mut foregrounds = file.foreground.iter();
    let background = backgrounds.find(|b| b.name() == background && !b.is_none());
    let foreground = || foregrounds.find(|f| f.name() == foreground).map(|f| &f.0);
    let part: Option<&Part> = background.map(|b| &b.0).or_else(foreground);
    let narrowest = part.and_then(|part| file.narrowest(part));
    narrowest.unwrap_or_else(|| {
        Direction::BOTH.map(|direction| Bottleneck {
            link: String::new(),
            queue: Queue { link: 0, direction },
            rate: Rate::default(),
        })
    })
}

/// The traffic on each link, if there are several.
fn links(file: &File, runs: &[&RunResult]) -> Vec<LinkLoad> {
    let all = file.links();
    if all.len() < 2 {
        return Vec::new();
    }
    let of = |name: &str, direction: Direction| {
        let rows: Vec<_> = runs
            .iter()
            .flat_map(|r| &r.observed.links)
            .filter(|l| &*l.link == name && l.direction == direction && l.duration > 0.0)
            .collect();
        let used = |tag: usize| -> Vec<f64> {
            let share = rows
                .iter()
                .map(|l| l.departed[tag] as f64 * 8.0 / l.duration / l.rate);
            share.collect()
        };
        let arrived: u64 = rows.iter().flat_map(|l| l.arrived_packets).sum();
        let dropped: u64 = rows.iter().flat_map(|l| l.dropped).sum();
        LinkWay {
            used: [0, 1].map(|tag| mean(&used(tag)).unwrap_or(f64::NAN)),
            dropped: dropped as f64 / arrived.max(1) as f64,
        }
    };
    let one = |link: &NamedLink| LinkLoad {
        name: link.name.clone(),
        ways: Direction::BOTH.map(|direction| of(&link.name, direction)),
    };
    all.iter().map(one).collect()
}

pub(crate) fn interval(e: Estimate) -> Interval {
    Interval {
        value: e.value,
        low: e.low,
        high: e.high,
    }
}

/// The distribution function. Where few requests are drawn as dots, those that took the same time are steps of their
/// own, one above the other.
fn steps(groups: &[Vec<Observation>], all: &KaplanMeier) -> Vec<(f64, f64)> {
    let few = all.len() < FEW_SAMPLES;
    let same = |value: f64| {
        let each = groups.iter().flatten();
        each.filter(|o| o.complete && o.value == value).count()
    };
    let mut below = 0.0;
    let mut out = Vec::new();
    for step in all.steps() {
        let n = if few { same(step.value).max(1) } else { 1 };
        let each = (step.cdf - below) / n as f64;
        out.extend((1..n).map(|i| (step.value, below + each * i as f64)));
        out.push((step.value, step.cdf));
        below = step.cdf;
    }
    out
}

/// The interval of the completed share, at times spread evenly over the shares. Empty for a single replication, which
/// has no variance.
fn band(
    groups: &[Vec<Observation>],
    all: &KaplanMeier,
    bootstrap: &Bootstrap,
) -> Vec<(f64, f64, f64)> {
    if groups.len() < 2 {
        return Vec::new();
    }
    let mut times: Vec<f64> = (0..=BAND_POINTS)
        .filter_map(|i| all.quantile(i as f64 / BAND_POINTS as f64))
        .collect();
    // Add the last completion; it is not a quantile if requests are unfinished.
    times.extend(all.steps().last().map(|s| s.value));
    times.dedup();
    let shares: Vec<(f64, Vec<f64>)> = groups
        .iter()
        .map(|group| {
            let own = KaplanMeier::new(group.iter().copied());
            (
                own.len() as f64,
                times.iter().map(|&t| own.cdf(t)).collect(),
            )
        })
        .collect();
    let estimates = bootstrap.estimate("cdf", &[groups.len()], |weights| {
        let mut n = 0.0;
        let mut sums = vec![0.0; times.len()];
        for ((samples, share), &weight) in shares.iter().zip(weights[0]) {
            n += samples * f64::from(weight);
            for (sum, f) in sums.iter_mut().zip(share) {
                *sum += samples * f64::from(weight) * f;
            }
        }
        sums.into_iter().map(|s| s / n).collect()
    });
    times
        .iter()
        .zip(estimates)
        .filter_map(|(&t, e)| e.map(|e| (t, e.low, e.high)))
        .collect()
}

/// Wavelet energies of the background's bytes, all replications joined.
fn energies(runs: &[&RunResult], queue: &Bottleneck) -> Vec<Energy> {
    let mut timescales: BTreeMap<u32, f64> = BTreeMap::new();
    let series: Vec<Vec<Octave>> = runs
        .iter()
        .map(|run| {
            let mut octaves: Vec<Octave> = run
                .observed
                .scales
                .iter()
                .filter(|s| {
                    queue.is(&s.link, s.direction)
                        && s.traffic == "background"
                        && s.quantity == "bytes"
                })
                .map(|s| {
                    timescales.insert(s.octave, s.timescale);
                    Octave {
                        j: s.octave,
                        n: s.n,
                        energy: s.energy,
                    }
                })
                .collect();
            octaves.sort_by_key(|o| o.j);
            octaves
        })
        .collect();
    pool(&series)
        .iter()
        .map(|o| {
            let (low, high) = o.interval();
            Energy {
                timescale: timescales.get(&o.j).copied().unwrap_or(f64::NAN),
                y: o.y(),
                low,
                high,
                n: o.n,
            }
        })
        .collect()
}

fn load(
    runs: &[&RunResult],
    (way, queue): (Direction, &Bottleneck),
    verdict: &BackgroundVerdict,
) -> Load {
    let links: Vec<_> = runs
        .iter()
        .flat_map(|r| &r.observed.links)
        .filter(|l| queue.is(&l.link, l.direction) && l.duration > 0.0)
        .collect();
    let rates = |tag: usize| -> Vec<f64> {
        links
            .iter()
            .map(|l| l.arrived[tag] as f64 * 8.0 / l.duration)
            .collect()
    };
    let background = rates(1);
    let used: Vec<f64> = links
        .iter()
        .map(|l| (l.departed[0] + l.departed[1]) as f64 * 8.0 / l.duration / l.rate)
        .collect();
    let total = |of: fn(&swell_experiment::observe::LinkTotals) -> [u64; 2]| {
        links
            .iter()
            .map(|l| (of(l)[0] + of(l)[1]) as f64)
            .sum::<f64>()
    };
    let arrived = total(|l| l.arrived_packets);
    Load {
        requested: verdict.requested_bps[way],
        carried: verdict.load_bps[way],
        background: mean(&background).unwrap_or(f64::NAN),
        background_sd: sd(&background).unwrap_or(f64::NAN),
        foreground: mean(&rates(0)).unwrap_or(f64::NAN),
        utilisation: mean(&used).unwrap_or(f64::NAN),
        dropped: if arrived > 0.0 {
            total(|l| l.dropped) / arrived
        } else {
            0.0
        },
    }
}

/// Share of the warm-up that is shown before a program starts.
const SHOWN_BEFORE: f64 = 0.1;

/// Start of the pictures of a run in seconds. A program does not exist before it starts, and its runs are short.
fn beginning(results: &Results, run: &RunResult) -> f64 {
    let file = &results.experiment;
    let mut own = file
        .foreground
        .iter()
        .filter(|f| f.name() == run.cell.foreground);
    match own.any(|f| f.program().is_some()) {
        true => file.run.warmup.as_secs_f64() * (1.0 - SHOWN_BEFORE),
        false => 0.0,
    }
}

/// One direction of a link in one run. Bins missing in the table stay empty.
fn series(results: &Results, run: &RunResult, queue: &Bottleneck) -> Series {
    let file = &results.experiment;
    let bin = file.run.bins.as_secs_f64();
    let seconds = file.run.duration.as_secs_f64();
    let initial = queue.rate.bps() as f64;
    if bin <= 0.0 || initial <= 0.0 {
        return Series::default();
    }
    let rows = run
        .observed
        .bins
        .iter()
        .filter(|b| queue.is(&b.link, b.direction));
    let place = |time: f64| (time / bin).round().max(0.0) as usize;
    let first = place(beginning(results, run));
    // Ignore bins beyond the end of the run, so that a corrupt table cannot allocate without bound.
    let most = place(seconds) + 1;
    let count = rows
        .clone()
        .map(|b| place(b.time).saturating_add(1))
        .max()
        .unwrap_or(0)
        .min(most)
        .saturating_sub(first);
    let empty = || [vec![0.0; count], vec![0.0; count]];
    let mut series = Series {
        replication: run.cell.replication,
        link: match file.links().len() {
            1 => String::new(),
            _ => queue.link.clone(),
        },
        start: first as f64 * bin,
        bin,
        rate: vec![initial; count],
        rate_known: true,
        arrived: vec![0.0; count],
        used: empty(),
        queue_mean: vec![f64::NAN; count],
        queue_max: vec![0.0; count],
        dropped: empty(),
        parts: Vec::new(),
    };
    match capacity::rates(file, queue) {
        Some(rates) => {
            for (i, rate) in series.rate.iter_mut().enumerate() {
                let from = (first + i) as f64 * bin;
                *rate = capacity::mean(&rates, from, from + bin);
            }
        }
        None => series.rate_known = false,
    }
    for row in rows {
        let Some(i) = place(row.time).checked_sub(first).filter(|&i| i < count) else {
            continue;
        };
        for tag in [0, 1] {
            series.used[tag][i] = row.departed[tag] as f64 * 8.0 / (bin * series.rate[i]);
            series.dropped[tag][i] = f64::from(row.dropped[tag]) / bin;
        }
        series.arrived[i] = row.arrived_packets.map(f64::from).iter().sum();
        series.queue_mean[i] = row.queue_mean;
        series.queue_max[i] = row.queue_max as f64;
    }
    series.parts = parts_of(run, queue, &series);
    series
}

/// The parts of the background in the bins of a series; empty if there is only one.
fn parts_of(run: &RunResult, queue: &Bottleneck, series: &Series) -> Vec<PartSeries> {
    let mut parts: Vec<PartSeries> = Vec::new();
    for row in &run.observed.part_bins {
        let i = ((row.time - series.start) / series.bin).round();
        if row.role != "background" || !queue.is(&row.link, row.direction) || i < 0.0 {
            continue;
        }
        let place = parts.iter().position(|p| p.name == row.part);
        let place = place.unwrap_or_else(|| {
            parts.push(PartSeries {
                name: row.part.clone(),
                used: vec![0.0; series.rate.len()],
                dropped: vec![0.0; series.rate.len()],
            });
            parts.len() - 1
        });
        let part = &mut parts[place];
        if let Some(rate) = series.rate.get(i as usize) {
            part.used[i as usize] = row.departed as f64 * 8.0 / (series.bin * rate);
            part.dropped[i as usize] = f64::from(row.dropped) / series.bin;
        }
    }
    match parts.len() {
        0 | 1 => Vec::new(),
        _ => parts,
    }
}

/// Doubts about the experiment (including its models), its figures, and its runs, as the verdict counts them.
fn doubts(results: &Results, verdict: &Verdict) -> Vec<Doubt> {
    let models = || results.manifest.models.values().flat_map(|m| &m.warnings);
    let one = |warning: &Warning, place: String| {
        let grave = warning.severity == Severity::Warning;
        let unlike = grave && swell_verdict::UNLIKE_TRACE.contains(&warning.code);
        let of_model =
            models().any(|w| !w.message.is_empty() && warning.message.ends_with(&w.message));
        Doubt {
            grave,
            code: warning.code.clone(),
            message: warning.message.clone(),
            place,
            of_model: of_model && !unlike,
        }
    };
    let mut out: Vec<Doubt> = Vec::new();
    let figures = verdict.foregrounds.iter().flat_map(|f| &f.doubts);
    for w in results.manifest.warnings.iter().chain(figures) {
        let doubt = one(w, String::new());
        // A doubt about several applications appears once.
        if !out.contains(&doubt) {
            out.push(doubt);
        }
    }
    let runs = results.runs.len();
    for (warning, cells) in swell_verdict::doubts_of_runs(results) {
        let place = match (cells.len(), cells.first()) {
            (1, Some(cell)) => format!(
                "{} against {}, replication {}",
                cell.foreground, cell.background, cell.replication
            ),
            (n, _) if n == runs => format!("all {n} runs"),
            (n, _) => format!("{n} of {runs} runs"),
        };
        out.push(one(warning, place));
    }
    // Doubts that could change the answer come first, those inherent in a model last.
    out.sort_by_key(|d| (d.of_model, !d.grave, d.code.rank()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of few requests has a dot of its own, also those that took the same time.
    #[test]
    fn equal_times_of_few_requests_are_steps_of_their_own() {
        let group = [1.0, 1.0, 2.0].map(Observation::complete);
        let groups = [group.to_vec(), vec![Observation::at_least(5.0)]];
        let all = KaplanMeier::new(groups.iter().flatten().copied());
        let found = steps(&groups, &all);
        let expected = [(1.0, 0.25), (1.0, 0.5), (2.0, 0.75)];
        assert_eq!(found.len(), 3);
        for (a, b) in found.iter().zip(expected) {
            assert!(a.0 == b.0 && (a.1 - b.1).abs() < 1e-12, "{found:?}");
        }
        let many = [vec![Observation::complete(1.0); FEW_SAMPLES]];
        let curve = KaplanMeier::new(many.iter().flatten().copied());
        assert_eq!(steps(&many, &curve), [(1.0, 1.0)]);
    }
}

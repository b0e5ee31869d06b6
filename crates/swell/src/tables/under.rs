//! Tables of emulated runs: what a program got, and how punctual the emulator was.

use comfy_table::{Table, presets};
use swell_base::Code;
use swell_emulate::backend::{Conditions, Exit};
use swell_experiment::Results;
use swell_experiment::store::RunResult;

use super::text::significant;

/// The results of a program under the emulator, and the performance of the emulator.
pub(crate) fn summary(results: &Results, exits: &[Exit], conditions: &[Conditions]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for exit in exits {
        let end = match exit.status {
            Some(status) => status.to_string(),
            None if exit.timed_out => "it took too long and was ended".into(),
            None => "the time was over and it was ended".into(),
        };
        let seconds = exit.end.since(exit.start).as_secs_f64();
        table.add_row(["program", &format!("{} s, {end}", significant(seconds))]);
    }
    for run in &results.runs {
        for link in run.observed.links.iter().rev() {
            let way = match results.experiment.links().len() {
                1 => link.direction.to_string(),
                _ => format!("{} {}", link.link, link.direction),
            };
            let bins = run.observed.bins.iter();
            let bins = bins.filter(|b| {
                let here = (&b.link, b.direction) == (&link.link, link.direction);
                here && b.queue_mean.is_finite()
            });
            let longest = bins.clone().map(|b| b.queue_max).max().unwrap_or(0);
            let (sum, n) = bins.fold((0.0, 0.0), |(s, n), b| (s + b.queue_mean, n + 1.0));
            let mean = sum / f64::max(n, 1.0);
            let carried =
                |who: usize| link.departed[who] as f64 * 8.0 / link.duration.max(f64::MIN_POSITIVE);
            let (used, queue) = if varies(results, run, &link.link) {
                // Shares and waits need the rate at each time.
                let used = format!(
                    "its rate varied; carried {} Mbit/s of yours, {} Mbit/s of background",
                    significant(carried(0) / 1e6),
                    significant(carried(1) / 1e6)
                );
                let kb = |bytes: f64| significant(bytes / 1e3);
                (
                    used,
                    format!("{} kB, at most {} kB", kb(mean), kb(longest as f64)),
                )
            } else {
                let share = |who: usize| carried(who) / link.rate * 100.0;
                let used = format!(
                    "{} Mbit/s, {:.0} % used: {:.0} % yours, {:.0} % background",
                    significant(link.rate / 1e6),
                    share(0) + share(1),
                    share(0),
                    share(1)
                );
                let ms = |bytes: f64| bytes * 8.0 / link.rate * 1e3;
                (
                    used,
                    format!("{:.1} ms, at most {:.1} ms", ms(mean), ms(longest as f64)),
                )
            };
            table.add_row([&*way, &used]);
            let waits = format!(
                "queue {queue}; {} packets dropped, {} of them yours",
                link.dropped.iter().sum::<u64>(),
                link.dropped[0]
            );
            table.add_row(["", &waits]);
        }
    }
    for w in conditions {
        add_emulator(&mut table, w);
    }
    table.to_string()
}

/// Whether the rate of a link varied in a run: by its schedule, its delivery trace or `swell set`.
fn varies(results: &Results, run: &RunResult, link: &str) -> bool {
    let links = results.experiment.links();
    let keys = links.iter().find(|l| *l.name == *link);
    keys.is_some_and(|l| {
        let per_way = [&l.keys.up, &l.keys.down].into_iter().flatten();
        !l.keys.change.is_empty()
            || l.keys.deliveries.is_some()
            || per_way.into_iter().any(|o| o.deliveries.is_some())
    }) || run
        .observed
        .warnings
        .iter()
        .any(|w| w.code == Code::SetWhileRunning)
}

/// The performance of the emulator.
pub(crate) fn emulator(w: &Conditions) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    add_emulator(&mut table, w);
    table.to_string()
}

fn add_emulator(table: &mut Table, w: &Conditions) {
    let us = |d: swell_base::Dur| d.as_secs_f64() * 1e6;
    let text = format!(
        "{} packets, late by {:.0} us (median), {:.0} us (p99), {:.0} us (most)",
        w.counts.left,
        us(w.late.p50),
        us(w.late.p99),
        us(w.late.max)
    );
    table.add_row(["emulator", &text]);
    table.add_row(["", &format!("scheduling: {}", w.precision)]);
    if w.counts.lost + w.counts.refused > 0 {
        let losses = format!(
            "{} packets lost before the link, {} after it",
            w.counts.lost, w.counts.refused
        );
        table.add_row(["", &losses]);
    }
}

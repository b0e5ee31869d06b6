//! Several run directories on one page: the figures of a single run, with a curve for each run.

use std::collections::BTreeSet;

use swell_experiment::Results;
use swell_verdict::Verdict;
use swell_verdict::{Difference, RunComparison};

use crate::convert::{interval, measures, report_data, reported};
use crate::data::{BackgroundData, Doubt, ForegroundData, ReportData, Rerun, Said};
use crate::page::{self, Answers};
use crate::palette::Role;
use crate::parts::{Part, Section};

/// The page that compares named `runs` with the first of them. `comparisons` has the others in the same order;
/// `command` recreates the page.
pub fn comparison_html(
    runs: &[(String, Results)],
    comparisons: &[RunComparison],
    command: &str,
) -> String {
    let Some(((first, base), others)) = runs.split_first() else {
        return String::new();
    };
    let each: Vec<ReportData> = runs
        .iter()
        .map(|(_, results)| report_data(results, &Verdict::of(results)))
        .collect();
    let (foregrounds, apart) = foregrounds(base, &each, comparisons);
    let mut answers: Vec<Said> = comparisons.iter().map(said).collect();
    if !apart.is_empty() {
        answers.push(Said {
            text: "Not every run has these, so they have no section below:".into(),
            lines: apart,
        });
    }
    let names: Vec<&str> = others.iter().map(|(name, _)| name.as_str()).collect();
    let data = ReportData {
        title: format!("{} compared with {first}", names.join(", ")),
        note: base.experiment.note.clone().unwrap_or_default(),
        verdict: vec![answers],
        doubts: doubts(runs, &each, comparisons),
        against: first.clone(),
        backgrounds: std::iter::once((first, "what the others are compared with".to_owned()))
            .chain(names_and_changes(others, comparisons))
            .enumerate()
            .map(|(i, (name, what))| BackgroundData {
                name: name.clone(),
                what,
                role: match i {
                    0 => Role::Reference,
                    _ => Role::Other,
                },
            })
            .collect(),
        foregrounds,
        network: each[0].network.clone(),
        experiment: base.experiment_toml.clone(),
        rerun: Rerun {
            command: command.into(),
            what: String::new(),
            facts: comparisons.iter().flat_map(facts).collect(),
        },
    };
    let mut sections = page::sections(&data, Answers::InSections);
    for section in &mut sections {
        of_runs(section, first);
    }
    page::with_parts(&data, &sections, |_| Vec::new())
}

fn said(comparison: &RunComparison) -> Said {
    Said {
        text: comparison.said.text.clone(),
        lines: comparison.said.lines.clone(),
    }
}

/// A changed key as a fact: `network.queue: 1BDP, here 64kB`.
fn change(d: &Difference) -> (String, String) {
    let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "–".into());
    (
        d.key.clone(),
        format!("{} → {}", text(&d.first), text(&d.second)),
    )
}

fn names_and_changes<'a>(
    others: &'a [(String, Results)],
    comparisons: &'a [RunComparison],
) -> impl Iterator<Item = (&'a String, String)> {
    others.iter().zip(comparisons).map(|((name, _), c)| {
        let all: Vec<String> = c
            .changes
            .iter()
            .map(change)
            .map(|(key, what)| format!("{key}: {what}"))
            .collect();
        (name, all.join("; "))
    })
}

fn facts(c: &RunComparison) -> Vec<(String, String)> {
    let own = |(key, what)| (format!("{}, {key}", c.second), what);
    c.changes.iter().map(change).map(own).collect()
}

fn doubts(
    runs: &[(String, Results)],
    each: &[ReportData],
    comparisons: &[RunComparison],
) -> Vec<Doubt> {
    let mut all: Vec<Doubt> = Vec::new();
    for c in comparisons {
        for w in &c.doubts {
            let place = format!("{} and {}", c.first, c.second);
            let same = |d: &&mut Doubt| d.code == w.code && d.message == w.message;
            match all.iter_mut().find(same) {
                Some(d) => d.place += &format!("; {place}"),
                None => all.push(Doubt {
                    grave: w.severity == swell_base::Severity::Warning,
                    code: w.code.clone(),
                    message: w.message.clone(),
                    place,
                    of_model: false,
                }),
            }
        }
    }
    // What several runs say is told once, and what the comparison says of them already not again.
    let mut own: Vec<(&Doubt, Vec<&str>)> = Vec::new();
    for ((name, _), data) in runs.iter().zip(each) {
        for doubt in &data.doubts {
            let same = |d: &Doubt| d.code == doubt.code && d.message == doubt.message;
            if all.iter().any(same) {
                continue;
            }
            match own.iter_mut().find(|(d, _)| *d == doubt) {
                Some((_, names)) => names.push(name),
                None => own.push((doubt, vec![name])),
            }
        }
    }
    all.extend(own.into_iter().map(|(d, names)| {
        let names = names.join(" and ");
        Doubt {
            place: match d.place.as_str() {
                "" => format!("in {names}"),
                place => format!("in {names}: {place}"),
            },
            ..d.clone()
        }
    }));
    all
}

/// What all runs share: a section for each foreground with each background, with the runs in place of backgrounds; and
/// the names of those that some run lacks.
fn foregrounds(
    base: &Results,
    each: &[ReportData],
    comparisons: &[RunComparison],
) -> (Vec<ForegroundData>, Vec<String>) {
    let mut found = Vec::new();
    let mut apart: Vec<String> = Vec::new();
    for data in each {
        for f in &data.foregrounds {
            let all = data.backgrounds.iter();
            apart.extend(all.map(|b| beside(&f.name, &b.name)));
        }
    }
    for own in comparisons.first().map_or(&[][..], |c| &c.conditions) {
        let (foreground, background) = (&own.foreground, &own.background);
        let same: Option<Vec<_>> = comparisons
            .iter()
            .map(|c| {
                let mut all = c.conditions.iter();
                all.find(|o| (&o.foreground, &o.background) == (foreground, background))
            })
            .collect();
        let conditions: Option<Vec<_>> = each
            .iter()
            .map(|data| {
                let f = data.foregrounds.iter().find(|f| f.name == *foreground)?;
                let b = data
                    .backgrounds
                    .iter()
                    .position(|b| b.name == *background)?;
                f.conditions.get(b).cloned()
            })
            .collect();
        let (Some(same), Some(mut conditions)) = (same, conditions) else {
            continue;
        };
        conditions[0].slowdown = [None; 4];
        for (condition, c) in conditions.iter_mut().skip(1).zip(&same) {
            for (slot, ratio) in condition.slowdown.iter_mut().zip(&c.ratios) {
                *slot = ratio.map(interval);
            }
        }
        let mut judged = vec![(Vec::new(), 0)];
        judged.extend(
            same.iter()
                .map(|c| (c.compared().collect(), c.judged.len())),
        );
        let mut listed = base.experiment.foreground.iter();
        let listed = listed.find(|f| f.name() == foreground);
        let name = beside(foreground, background);
        apart.retain(|other| *other != name);
        found.push(ForegroundData {
            name,
            what: String::new(),
            measures: measures(&judged, Some(0), &listed.map_or_else(Vec::new, reported)),
            conditions,
        });
    }
    let mut seen = BTreeSet::new();
    apart.retain(|name| seen.insert(name.clone()));
    (found, apart)
}

fn beside(foreground: &str, background: &str) -> String {
    format!("{foreground} beside {background}")
}

/// Adapts a section of a report: its tables have runs instead of backgrounds; the network and the experiment are those
/// of the first run.
fn of_runs(section: &mut Section, first: &str) {
    match section.id.as_str() {
        "the-network" => section.title = format!("The network of {first}"),
        "rerun" => {
            section.title = format!("What differs from {first}, and how to compare again");
            if let Some(part) = section.parts.last_mut() {
                part.summary = format!("The experiment of {first}, resolved");
            }
        }
        _ => {}
    }
    section.parts.iter_mut().for_each(runs_in_tables);
}

fn runs_in_tables(part: &mut Part) {
    let numbers = part.figures.iter_mut().filter_map(|f| f.numbers.as_mut());
    for table in part.tables.iter_mut().chain(numbers) {
        for head in table.head.iter_mut().filter(|h| *h == "Background") {
            *head = "Run".into();
        }
    }
}

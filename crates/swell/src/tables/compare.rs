//! Two run directories side by side.

use swell_stats::{Estimate, quantile_name};
use swell_verdict::{Answer, Difference, Judgement, Known, RunComparison, Statistic};

use super::text::{indented, list, paragraph, plain, ratio, shortened, wrapped};

/// The differences between two runs, every measure of both with its ratio, and the answer.
pub(crate) fn comparison(c: &RunComparison) -> String {
    let pairing = match (c.paired, c.seeds_in_common) {
        (true, _) => "replications of equal seed are pairs".to_owned(),
        (false, 0) if c.changes.iter().any(|d| d.key == "backend") => {
            "other backends, so seeds pair nothing: independent samples".to_owned()
        }
        (false, 0) => "no seeds in common: independent samples".to_owned(),
        (false, n) => format!("{n} seeds in common, too few for pairs: independent samples"),
    };
    let mut text = wrapped(&format!(
        "{} compared with {}; {pairing}",
        c.second, c.first
    ));
    for d in &c.changes {
        text.push('\n');
        text += &indented(&change(d), "  ", "    ");
    }
    if !c.equal_tables.is_empty() {
        let equal = format!("equal, bit for bit: {}", c.equal_tables.join(", "));
        text.push('\n');
        text += &indented(&equal, "  ", "    ");
    }
    let first = shortened(&c.first, 10);
    let second = shortened(&c.second, 10);
    for own in &c.conditions {
        let mut table = list(&["measure", &first, &second, "ratio (95 % interval)", ""]);
        for (i, j) in own.compared().enumerate() {
            let [name, without, with, factor] = judgement(j);
            let mark = match j.differs {
                // No answer rests on it.
                _ if i >= own.judged.len() => "beside",
                Answer::Yes => "differs",
                Answer::No => "equal",
                Answer::Unclear => "open",
            };
            table.add_row(vec![
                shortened(&name, 22),
                without,
                with,
                factor,
                mark.into(),
            ]);
        }
        let said = match own.differs {
            Answer::Yes => "differs",
            Answer::No => "does not differ",
            Answer::Unclear => "not settled",
        };
        let head = format!("{} beside {}: {said}", own.foreground, own.background);
        text += &format!("\n\n{}\n{table}", wrapped(&head));
    }
    text + "\n\n" + paragraph(&c.said).trim_end()
}

/// A difference in the form `network.queue: 1BDP -> 64kB`.
fn change(d: &Difference) -> String {
    let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "none".into());
    format!("{}: {} -> {}", d.key, text(&d.first), text(&d.second))
}

/// The measure with its unit, its values without and with background, and the ratio with its interval.
pub(super) fn judgement(j: &Judgement) -> [String; 4] {
    let (unit, scale) = match &*j.unit {
        "bit/s" => ("Mbit/s", 1e-6),
        unit => (unit, 1.0),
    };
    let level =
        |e: Option<Estimate>| e.map_or_else(|| "unknown".into(), |e| plain(e.value * scale));
    let mut name = j.measure.clone();
    if let Statistic::Percentile(p) = j.statistic {
        name += &format!(" {}", quantile_name(p));
    }
    if !unit.is_empty() {
        name += &format!(" ({unit})");
    }
    let factor = match Known::of(&j.ratio) {
        Known::AtLeast(low) => format!("x >= {}", ratio(low)),
        Known::AtMost(high) => format!("x <= {}", ratio(high)),
        Known::Value => format!("x {}", ratio(j.ratio.value)),
        Known::Interval => format!(
            "x {} ({}-{})",
            ratio(j.ratio.value),
            ratio(j.ratio.low),
            ratio(j.ratio.high)
        ),
    };
    [name, level(j.without), level(j.with), factor]
}

//! The verdict in plain English.

use swell_stats::Estimate;

use super::judge::{Judgement, Statistic};
use super::ratios::Known;
use super::{Answer, BackgroundVerdict, Comparison, ForegroundVerdict, MARGIN, validity};
use crate::measure::Better;

/// One sentence per question: does it matter, is a parametric one enough, how sure are we.
pub(super) fn sentence(v: &ForegroundVerdict) -> String {
    let mut said = Vec::new();
    if v.sureness.tentative() {
        said.push(format!(
            "With only {} all of this is tentative.",
            count(v.sureness.replications, "replication")
        ));
    }
    said.push(matters(v));
    if let Some(enough) = v.parametric_enough {
        said.push(parametric(v, enough));
    }
    said.push(sure(v));
    said.join(" ")
}

fn matters(v: &ForegroundVerdict) -> String {
    let name = &v.foreground;
    if v.reference.is_none() {
        return format!(
            "Whether background traffic matters to {name} cannot be told: there is no background of kind none to compare with."
        );
    }
    // Those that give the answer first, each in the order of the file.
    let mut judged: Vec<(&BackgroundVerdict, Answer)> = v
        .backgrounds
        .iter()
        .filter_map(|b| Some((b, b.matters?)))
        .collect();
    judged.sort_by_key(|&(_, answer)| answer != v.matters);
    if judged.is_empty() {
        return format!("There is nothing beside {name} that could slow it down.");
    }
    let each: Vec<String> = judged.iter().map(|&(b, answer)| one(b, answer)).collect();
    let each = each.join("; ");
    match v.matters {
        Answer::Yes => format!("Background traffic matters to {name} here: {each}."),
        Answer::No => format!(
            "Background traffic does not matter to {name} here, within {}: {each}.",
            percent(MARGIN)
        ),
        Answer::Unclear => {
            format!("Whether background traffic matters to {name} is not settled: {each}.")
        }
    }
}

/// What is said of one background.
fn one(b: &BackgroundVerdict, answer: Answer) -> String {
    let with = format!("with {} ({})", b.background, load(b));
    let nothing = b.requests > 0 && b.unfinished + b.failed == b.requests;
    let none = match nothing {
        true => format!(" not one of {} finished;", count(b.requests, "request")),
        false => String::new(),
    };
    if !b.withheld.is_empty() {
        return format!("{with}{none} it cannot be told: {}", b.withheld.join(", "));
    }
    if b.judged.is_empty() {
        return format!("{with}{none} nothing could be compared");
    }
    let figures = format!("{with}{none} {} without it", figures(&b.judged));
    match answer {
        Answer::Yes => figures,
        Answer::No => match validity::judged_up_to(&b.judged) {
            Some(p) => format!(
                "{figures}, which is within {} up to p{:.0}",
                percent(MARGIN),
                p * 100.0
            ),
            None => format!("{figures}, which is within {}", percent(MARGIN)),
        },
        Answer::Unclear if b.open.is_empty() => format!("{figures}, which settles nothing"),
        Answer::Unclear => format!("{figures}, which settles nothing: {}", b.open.join(", ")),
    }
}

/// A load this far below what was requested is said beside it.
const BELOW: f64 = 0.75;

/// What was carried of a background, and what of it was requested where that is much more.
fn load(b: &BackgroundVerdict) -> String {
    let way = |d: usize| {
        let carried = b.load_bps[d];
        match b.requested_bps[d] {
            // A tenth of a Mbit/s is what figures here resolve.
            Some(asked) if carried < BELOW * asked && asked - carried > 1e5 => {
                format!("{:.1} of {:.1} Mbit/s", carried / 1e6, asked / 1e6)
            }
            _ => format!("{:.1}", carried / 1e6),
        }
    };
    let down = way(1);
    let unit = if down.ends_with("bit/s") {
        ""
    } else {
        " Mbit/s"
    };
    format!("{down}{unit} down, {} up", way(0))
}

/// The smallest and the largest ratio among those that show a difference, or else among all: with responsive traffic the
/// median may be better and the tail worse.
fn figures(judged: &[Judgement]) -> String {
    let differs = judged.iter().any(Judgement::differs);
    // What goes the other way is said beside it, whether it is shown or not.
    let better = |j: &Judgement| (j.ratio.value < 1.0) == (j.better == Better::Lower);
    let far = |j: &Judgement| (j.ratio.value.ln()).abs() > MARGIN.ln_1p();
    let against = |j: &Judgement| {
        let shown = judged.iter().filter(|k| k.differs());
        far(j) && shown.clone().count() > 0 && shown.clone().all(|k| better(k) != better(j))
    };
    let shown: Vec<&Judgement> = judged
        .iter()
        .filter(|j| !differs || j.differs() || against(j))
        .collect();
    let by_value = |a: &&&Judgement, b: &&&Judgement| a.ratio.value.total_cmp(&b.ratio.value);
    let (Some(least), Some(most)) = (shown.iter().min_by(by_value), shown.iter().max_by(by_value))
    else {
        return String::new();
    };
    let said = |j: &Judgement| format!("{} {}", subject(j), times(&j.ratio));
    let unit = match most.statistic {
        Statistic::Percentile(_) => "as long as",
        Statistic::Mean => "that",
    };
    if least.statistic == most.statistic && least.measure == most.measure {
        format!("{} {unit}", said(most))
    } else {
        format!("{} and {} {unit}", said(least), said(most))
    }
}

fn subject(j: &Judgement) -> String {
    match j.statistic {
        Statistic::Percentile(0.5) => "the median request takes".into(),
        Statistic::Percentile(p) => format!("the p{:.0} takes", p * 100.0),
        Statistic::Mean => format!("{} is", j.measure),
    }
}

fn parametric(v: &ForegroundVerdict, enough: Answer) -> String {
    let each: Vec<String> = v.comparisons.iter().map(compared).collect();
    let each = each.join("; ");
    let mut kinds: Vec<&str> = v.comparisons.iter().map(|c| kind(c.kind)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kinds = kinds.join(" or ");
    match enough {
        Answer::Yes => {
            let ones: Vec<&str> = v
                .comparisons
                .iter()
                .filter(|c| c.enough == Answer::Yes)
                .map(|c| kind(c.kind))
                .collect();
            format!(
                "{} traffic of the same mean rate is enough here, within {}: {each}.",
                ones.join(" or "),
                percent(MARGIN)
            )
        }
        Answer::No => format!("{kinds} traffic of the same mean rate is not enough: {each}."),
        Answer::Unclear => format!(
            "Whether {kinds} traffic of the same mean rate is enough is not settled: {each}."
        ),
    }
}

/// What a comparison rests on.
fn compared(c: &Comparison) -> String {
    if !c.withheld.is_empty() {
        return format!(
            "{} and {} cannot be compared: {}",
            c.learnt,
            c.parametric,
            c.withheld.join(", ")
        );
    }
    if c.judged.is_empty() {
        return format!("{} and {} cannot be compared", c.learnt, c.parametric);
    }
    let open = match c.open.is_empty() {
        true => String::new(),
        false => format!(" ({})", c.open.join(", ")),
    };
    format!(
        "with {} {} with {}{open}",
        c.learnt,
        figures(&c.judged),
        c.parametric
    )
}

/// More replications than this are no advice.
const WORTH_SAYING: usize = 1000;

fn sure(v: &ForegroundVerdict) -> String {
    let s = &v.sureness;
    let mut text = format!("This rests on {}", count(s.replications, "replication"));
    match s.widest {
        Some(widest) if widest.is_finite() => {
            text += &format!("; the widest 95 % interval is ±{}", percent(widest));
            if let Some(n) = s
                .replications_wanted
                .filter(|&n| n > s.replications && n <= WORTH_SAYING)
            {
                text += &format!(
                    ", and about {n} replications would bring it to ±{}",
                    percent(MARGIN)
                );
            }
        }
        Some(_) => {
            text += "; of some percentiles only a bound is known, because requests did not finish";
        }
        None if s.replications == 1 => {
            text += ", which gives no intervals: chance may have made every figure";
        }
        None => {}
    }
    match s.warnings {
        0 => text + ".",
        n => text + &format!("; {} to read first.", count(n, "warning")),
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// "2.10 times (1.80 to 2.40) as long", "at least 5.1 times as long".
fn times(e: &Estimate) -> String {
    match Known::of(e) {
        Known::AtLeast(low) => format!("at least {low:.2} times"),
        Known::AtMost(high) => format!("at most {high:.2} times"),
        Known::Value => format!("{:.2} times (no interval)", e.value),
        Known::Interval => format!("{:.2} times ({:.2} to {:.2})", e.value, e.low, e.high),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn kind(kind: &str) -> &str {
    match kind {
        "poisson" => "Poisson",
        "cbr" => "CBR",
        other => other,
    }
}

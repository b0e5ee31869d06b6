//! The verdict in plain English.

use swell_stats::Estimate;

use super::ratios::Known;
use super::{
    Answer, BackgroundVerdict, Comparison, DECISIVE, ForegroundVerdict, MARGIN, Side, side,
};

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
    let Some(worst) = worst(v) else {
        return format!("There is nothing beside {name} that could slow it down.");
    };
    let behind = format!(
        "behind {} ({:.1} Mbit/s)",
        worst.background,
        worst.load_bps[1] / 1e6
    );
    let said = figures(worst, v.matters);
    let nothing = worst.requests > 0 && worst.unfinished + worst.failed == worst.requests;
    let said = match nothing {
        true => format!(
            "{behind} not one of {} finished; {said} as long as without it",
            count(worst.requests, "request")
        ),
        false => format!("{behind} {said} as long as without it"),
    };
    match v.matters {
        Answer::Yes => format!("Background traffic matters to {name} here: {said}."),
        Answer::No => format!(
            "Background traffic does not matter to {name} here, within {}: {said}.",
            percent(MARGIN)
        ),
        Answer::Unclear => {
            format!("Whether background traffic matters to {name} is not settled: {said}.")
        }
    }
}

/// The median and the 95th percentile; another decisive one where only that says yes.
fn figures(b: &BackgroundVerdict, answer: Answer) -> String {
    let shown = |p: f64| p == 0.5 || p == 0.95;
    let slow = |e: Option<Estimate>| e.is_some_and(|e| e.low > 1.0 + MARGIN);
    let hidden =
        answer == Answer::Yes && !b.quantiles.iter().any(|q| shown(q.p) && slow(q.slowdown));
    let figures: Vec<String> = b
        .quantiles
        .iter()
        .filter(|q| shown(q.p) || (hidden && DECISIVE.contains(&q.p) && slow(q.slowdown)))
        .map(|q| format!("{} {}", percentile(q.p), times(q.slowdown)))
        .collect();
    listed(&figures)
}

/// "a", "a and b", "a, b and c".
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The background that the first question was decided by: the slowest of those judged, among
/// those that give the answer.
fn worst(v: &ForegroundVerdict) -> Option<&BackgroundVerdict> {
    let learnt = v.backgrounds.iter().any(|b| b.kind == "learnt");
    let slowest = |b: &BackgroundVerdict| {
        b.quantiles
            .iter()
            .filter_map(|q| q.slowdown)
            .map(|s| s.value)
            .fold(0.0, f64::max)
    };
    v.backgrounds
        .iter()
        .filter(|b| b.matters.is_some() && (!learnt || b.kind == "learnt"))
        .max_by(|a, b| {
            let decides = |x: &BackgroundVerdict| x.matters == Some(v.matters);
            (decides(a).cmp(&decides(b))).then(slowest(a).total_cmp(&slowest(b)))
        })
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

/// The percentile at which the two differ most, among those that bear the answer out: outside the
/// margin for "not enough", on its edge for "not settled".
pub(super) fn compared(c: &Comparison) -> String {
    let distance = |e: &Estimate| e.value.max(f64::MIN_POSITIVE).ln().abs();
    let bears = |e: &Estimate| match c.enough {
        Answer::No => side(e) == Side::Outside,
        Answer::Unclear => side(e) == Side::Astride,
        Answer::Yes => true,
    };
    let most = c
        .ratios
        .iter()
        .filter(|(p, _)| DECISIVE.contains(p))
        .filter_map(|(p, e)| e.map(|e| (*p, e)))
        .max_by(|a, b| {
            (bears(&a.1).cmp(&bears(&b.1))).then(distance(&a.1).total_cmp(&distance(&b.1)))
        });
    match most {
        Some((p, e)) => format!(
            "behind {} {} {} as long as behind {}",
            c.learnt,
            percentile(p),
            times(Some(e)),
            c.parametric
        ),
        None => format!("{} and {} cannot be compared", c.learnt, c.parametric),
    }
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
            text += "; some percentiles cannot be told, because too many requests did not finish";
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

fn percentile(p: f64) -> String {
    if p == 0.5 {
        "the median request takes".into()
    } else {
        format!("the p{} takes", (p * 100.0).round())
    }
}

/// "2.1 times (1.8 to 2.4)", "at least 5.1 times".
fn times(ratio: Option<Estimate>) -> String {
    let Some(e) = ratio else {
        return "an unknown number of times".into();
    };
    match Known::of(&e) {
        Known::AtLeast(low) => format!("at least {low:.2} times"),
        Known::AtMost(high) => format!("at most {high:.2} times"),
        Known::Value => format!("{:.2} times (no interval)", e.value),
        Known::Interval if e.high.is_infinite() => {
            format!("{:.2} times (at least {:.2})", e.value, e.low)
        }
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

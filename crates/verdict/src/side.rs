//! Judgements in phrases, and a paragraph on the sides of a question: one sentence for all of them, or the answer and a
//! line for each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use swell_stats::quantile_name;

use super::answer::{Answer, DECISIVE, MARGIN};
use super::judge::{Judgement, Statistic};
use super::numbers::{digits, percent, quantity, times};
use super::ratios::Known;
use super::values::TOO_FEW;
use swell_experiment::measure::{Better, COMPLETION_TIME};

/// Maximum length of a single-sentence paragraph, characters: four lines of a terminal.
const SENTENCE: usize = 320;

/// Figures whose logarithms differ by less are alike: they are given with three digits.
const ALIKE: f64 = 0.01;

/// An answer, and a line for each background that it rests on, where the answer does not name them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Paragraph {
    /// The answer, in one or two sentences.
    pub text: String,
    /// Empty where the text says everything.
    pub lines: Vec<String>,
}

/// What sentences and lines need to know about a comparison: a background with its reference, or two backgrounds.
pub(super) struct ComparisonText<'v> {
    /// Whether the two sides of the comparison differ.
    pub answer: Answer,
    pub judged: &'v [Judgement],
    pub withheld: &'v [String],
    pub open: &'v [String],
    /// For example "with learnt".
    pub with: String,
    /// The carried load, in parentheses.
    pub load: String,
    /// Text before the figures.
    pub first: String,
    /// For example "without it".
    pub than: String,
    /// Beginning of the line, for example "learnt matters".
    pub line: String,
}

impl ComparisonText<'_> {
    /// The figures for a sentence.
    fn figures(&self) -> String {
        let all: Vec<&Judgement> = self.judged.iter().collect();
        format!("{} {}", phrases(&telling(&all)), self.than)
    }

    /// The clause about it in a sentence.
    fn clause(&self) -> String {
        let with = format!("{}{}{}", self.with, self.load, self.first);
        if !self.withheld.is_empty() {
            return format!("{with} it cannot be told: {}", self.withheld.join(", "));
        }
        if self.judged.is_empty() {
            return format!("{with} nothing could be compared{}", self.reasons());
        }
        let figures = format!("{with} {}", self.figures());
        match self.answer {
            Answer::Yes => figures,
            Answer::No => format!(
                "{figures}, which is within {}{}",
                percent(MARGIN),
                judged_up_to(self.judged)
            ),
            Answer::Unclear => format!("{figures}, which settles nothing{}", self.reasons()),
        }
    }

    /// Its own line.
    pub fn line(&self) -> String {
        let mut text = self.line.clone();
        if !self.withheld.is_empty() {
            return format!("{text}: {}", self.withheld.join(", "));
        }
        if self.answer == Answer::No {
            text += &judged_up_to(self.judged);
        }
        if self.judged.is_empty() {
            return format!("{text}: nothing could be compared{}", self.reasons());
        }
        let all: Vec<&Judgement> = self.judged.iter().collect();
        let figures: Vec<String> = telling(&all).into_iter().map(short).collect();
        let reasons = match self.answer {
            Answer::Unclear => self.reasons(),
            _ => String::new(),
        };
        format!("{text}:{} {}{reasons}", self.first, figures.join(", "))
    }

    fn reasons(&self) -> String {
        let mut reasons = self.open.to_vec();
        reasons.extend(self.singly());
        match &reasons[..] {
            [] => String::new(),
            reasons => format!(": {}", reasons.join(", ")),
        }
    }

    /// Why nothing is settled though intervals exclude one: they are of one measure each.
    fn singly(&self) -> Option<String> {
        let mut open = self.judged.iter().filter(|j| j.differs == Answer::Unclear);
        (!self.judged.iter().any(Judgement::differs) && open.any(Judgement::apart)).then(|| {
            format!(
                "some differences show singly, but none beyond {} after correction for all measures",
                percent(MARGIN)
            )
        })
    }

    /// Why there is no answer, or none but "differs".
    fn all_reasons(&self) -> String {
        [self.withheld, self.open].concat().join(", ")
    }

    /// The reasons that concern what was judged. A percentile with too few values was not, and says nothing about others.
    fn reasons_for_judged(&self) -> String {
        let concerns = |reason: &&String| !reason.contains(TOO_FEW);
        let open = self.open.iter().filter(concerns).cloned().collect();
        [self.withheld.to_vec(), open].concat().join(", ")
    }

    /// The judgement to quote for its answer, of those that `count`: the strongest of those that show a difference or, if
    /// none does, of all.
    fn strongest(&self, count: impl Fn(&Judgement) -> bool) -> Option<&Judgement> {
        let counted = || self.judged.iter().filter(|j| count(j));
        let differs = counted().any(Judgement::differs);
        let shown = counted().filter(|j| !differs || j.differs());
        shown.max_by(|a, b| weightier(a, b))
    }
}

/// Size of a difference, as a logarithm: for a shown difference, the end of its interval that is nearer to one.
fn strength(j: &Judgement) -> f64 {
    let known = match (j.differs(), j.ratio.value > 1.0) {
        _ if j.never() => return -1.0,
        (true, true) => j.ratio.low,
        (true, false) => j.ratio.high,
        (false, _) => match Known::of(&j.ratio) {
            // A bound below one says nothing about what is above it.
            Known::AtLeast(low) => low.max(1.0),
            Known::AtMost(high) => high.min(1.0),
            Known::Interval | Known::Value => j.ratio.value,
        },
    };
    known.ln().abs()
}

/// What is worse comes first: where answers come late, fewer requests are made in a jam, and their percentiles may fall.
fn weightier(a: &Judgement, b: &Judgement) -> std::cmp::Ordering {
    (a.worse().cmp(&b.worse())).then(strength(a).total_cmp(&strength(b)))
}

/// The paragraph about `sides`; the bare claim if there is none. If one sentence for all of them is too long, the
/// paragraph states the answer with its strongest figure and adds a line for each side.
pub(super) fn paragraph(
    sides: &[ComparisonText<'_>],
    answer: Answer,
    [claim, open]: [&str; 2],
    tally: Option<String>,
) -> Paragraph {
    let Some(ComparisonText { withheld, .. }) = sides.first() else {
        return Paragraph {
            text: format!("{claim}."),
            lines: Vec::new(),
        };
    };
    if sides.len() > 1 && !withheld.is_empty() && sides.iter().all(|s| s.withheld == *withheld) {
        return Paragraph {
            text: format!("{claim}: {}.", withheld.join(", ")),
            lines: Vec::new(),
        };
    }
    let each: Vec<String> = sides.iter().map(ComparisonText::clause).collect();
    let whole = format!("{claim}: {}.", each.join("; "));
    if whole.chars().count() <= SENTENCE || sides.len() == 1 {
        return Paragraph {
            text: whole,
            lines: Vec::new(),
        };
    }
    let reasons = ComparisonText::all_reasons;
    // What is open for a stated reason is explained by that reason, neither by its figure nor by one that is settled.
    let counts = |s: &ComparisonText<'_>, j: &Judgement| {
        let asks = j.differs == Answer::Unclear || s.all_reasons().is_empty();
        answer != Answer::Unclear || (asks && s.reasons_for_judged().is_empty())
    };
    let most = sides
        .iter()
        .filter(|s| s.answer == answer)
        .filter_map(|s| Some((s, s.strongest(|j| counts(s, j))?)))
        .max_by(|a, b| weightier(a.1, b.1));
    let undecided = || sides.iter().filter(|s| s.answer == Answer::Unclear);
    let first = undecided()
        .map(|s| (s, reasons(s)))
        .find(|r| !r.1.is_empty());
    let mut text = match (answer, most) {
        (Answer::Unclear, None) => match first {
            Some((_, reason)) if undecided().all(|s| reasons(s) == reason) => {
                format!("{claim}: {reason}.")
            }
            Some((side, reason)) => format!("{claim}: {}, {reason}.", side.with),
            None => format!("{claim}."),
        },
        (Answer::Yes, Some((side, j))) => {
            format!("{claim}: {} {} {}.", side.with, phrases(&[j]), side.than)
        }
        (_, Some((side, j))) => {
            let beside = match answer {
                Answer::Unclear => left_out(sides, j),
                _ => String::new(),
            };
            format!(
                "{claim}: {open} is {}, where {} {}.{beside}",
                side.with,
                phrases(&[j]),
                side.than
            )
        }
        (_, None) => format!("{claim}."),
    };
    if let Some(tally) = tally {
        text += &format!(" {tally}");
    }
    Paragraph {
        text,
        lines: sides.iter().map(ComparisonText::line).collect(),
    }
}

/// A sentence on the side with a larger figure than `most` that has no answer for a stated reason. Tables show it, too.
fn left_out(sides: &[ComparisonText<'_>], most: &Judgement) -> String {
    let larger = sides
        .iter()
        .filter(|s| !s.reasons_for_judged().is_empty())
        .filter_map(|s| Some((s, s.strongest(|_| true)?)))
        .filter(|(_, j)| strength(j) > strength(most) + ALIKE)
        .max_by(|a, b| strength(a.1).total_cmp(&strength(b.1)));
    larger.map_or_else(String::new, |(side, j)| {
        let name = side.with.trim_start_matches("with ");
        format!(
            " A larger one is left out: {name}, where {} {} ({}).",
            phrases(&[j]),
            side.than,
            side.reasons_for_judged()
        )
    })
}

/// How far into the bad tail percentiles were judged, for the end of a sentence, such as " up to p50 of time"; empty where
/// all measures were judged to the largest of [`DECISIVE`]. It speaks of the measure of which the least was judged.
pub(super) fn judged_up_to(judged: &[Judgement]) -> String {
    let percentiles = judged.iter().filter_map(|j| match j.statistic {
        // How far into the bad tail it is, whichever end that is.
        Statistic::Percentile(p) => match j.better {
            Better::Lower => Some((j, p, p)),
            Better::Higher => Some((j, p, 1.0 - p)),
        },
        Statistic::Mean => None,
    });
    let mut furthest: BTreeMap<&str, (&Judgement, f64, f64)> = BTreeMap::new();
    for found in percentiles {
        let own = furthest.entry(&found.0.measure).or_insert(found);
        if found.2 > own.2 {
            *own = found;
        }
    }
    let alone = furthest.len() == 1;
    let least = furthest.into_values().min_by(|a, b| a.2.total_cmp(&b.2));
    // `1 - p` is not exact.
    let short = |badness: f64| DECISIVE.iter().any(|&p| p > badness + 1e-9);
    let Some((j, p, _)) = least.filter(|found| short(found.2)) else {
        return String::new();
    };
    let to = match j.better {
        Better::Lower => "up to",
        Better::Higher => "down to",
    };
    let name = quantile_name(p);
    match alone {
        true => format!(" {to} {name}"),
        false => format!(" {to} {name} of {}", j.measure),
    }
}

/// The smallest and the largest ratio among those that show a difference or, if none does, among all. Both are needed:
/// with responsive traffic the median may improve while the tail gets worse.
pub(super) fn telling<'j>(judged: &[&'j Judgement]) -> Vec<&'j Judgement> {
    let differs = judged.iter().any(|j| j.differs());
    // Also report large ratios in the opposite direction that chance alone does not explain.
    let better = |j: &Judgement| (j.ratio.value < 1.0) == (j.better == Better::Lower);
    let far = |j: &Judgement| (j.ratio.value.ln()).abs() > MARGIN.ln_1p();
    let against = |j: &Judgement| {
        let shown = judged.iter().filter(|k| k.differs());
        let apart = j.ratio.low > 1.0 || j.ratio.high < 1.0;
        far(j)
            && apart
            && shown.clone().count() > 0
            && shown.clone().all(|k| better(k) != better(j))
    };
    let shown: Vec<&Judgement> = judged
        .iter()
        .copied()
        .filter(|j| !differs || j.differs() || against(j))
        // Omit events that never happened, unless nothing happened at all.
        .filter(|j| !j.never() || judged.iter().all(|k| k.never()))
        .collect();
    if let Some(open) = unsettled(&shown).filter(|_| !differs) {
        return open;
    }
    let by_value = |a: &&&Judgement, b: &&&Judgement| a.ratio.value.total_cmp(&b.ratio.value);
    let (Some(&least), Some(&most)) =
        (shown.iter().min_by(by_value), shown.iter().max_by(by_value))
    else {
        return Vec::new();
    };
    if least.statistic == most.statistic && least.measure == most.measure {
        vec![most]
    } else {
        vec![least, most]
    }
}

/// Of what is not settled the judgement with the widest interval, and the other one that is farthest from one; `None` if
/// there is none or there are no intervals.
fn unsettled<'j>(shown: &[&'j Judgement]) -> Option<Vec<&'j Judgement>> {
    let of_runs = |j: &&&Judgement| !j.equal && j.ratio.replications > 1;
    let open = || shown.iter().filter(of_runs).copied();
    let width = |j: &Judgement| (j.ratio.high / j.ratio.low).ln();
    let widest = open().max_by(|a, b| width(a).total_cmp(&width(b)))?;
    let others = open().filter(|j| !std::ptr::eq(*j, widest));
    let far = |j: &Judgement| j.ratio.value.ln().abs();
    let other = others.max_by(|a, b| far(a).total_cmp(&far(b)));
    Some(std::iter::once(widest).chain(other).collect())
}

/// For example "the median request takes 1.2 times (1.1 to 1.3) and the p90 takes 2 times (1.8 to 2.2) as long as".
fn phrases(judged: &[&Judgement]) -> String {
    let last = judged.len().saturating_sub(1);
    let each: Vec<String> = judged
        .iter()
        .enumerate()
        .map(|(i, j)| {
            if let Some([with, without]) = j.values_apart() {
                let (with, without) = (quantity(with, &j.unit), quantity(without, &j.unit));
                return format!("{} {with} against {without}", subject(j));
            }
            let unit = match (is_time(j), i == last) {
                // If both are times or neither is, only the last one names the unit.
                (time, false) if time == is_time(judged[last]) => "",
                (true, false) => " as long",
                (true, true) => " as long as",
                (false, false) => "",
                (false, true) => " that",
            };
            format!("{} {}{unit}", subject(j), times(&j.ratio))
        })
        .collect();
    each.join(" and ")
}

fn is_time(j: &Judgement) -> bool {
    j.measure == COMPLETION_TIME.name
}

fn subject(j: &Judgement) -> String {
    match j.statistic {
        Statistic::Percentile(0.5) if is_time(j) => "the median request takes".into(),
        Statistic::Percentile(p) if is_time(j) => format!("the {} takes", quantile_name(p)),
        Statistic::Percentile(0.5) => format!("the median of {} is", j.measure),
        Statistic::Percentile(p) => format!("the {} of {} is", quantile_name(p), j.measure),
        Statistic::Mean => format!("{} is", j.measure),
    }
}

/// For example "p90 ×2.53 (2.30–2.77)".
fn short(j: &Judgement) -> String {
    let name = match j.statistic {
        Statistic::Percentile(0.5) if is_time(j) => "median".into(),
        Statistic::Percentile(p) if is_time(j) => quantile_name(p),
        Statistic::Percentile(p) => format!("{} {}", j.measure, quantile_name(p)),
        Statistic::Mean => j.measure.clone(),
    };
    let e = &j.ratio;
    if let Some([with, without]) = j.values_apart() {
        return format!(
            "{name} {} against {}",
            quantity(with, &j.unit),
            quantity(without, &j.unit)
        );
    }
    let factor = match Known::of(e) {
        Known::AtLeast(low) => format!("at least ×{}", digits(low)),
        Known::AtMost(high) => format!("at most ×{}", digits(high)),
        Known::Value => format!("×{}", digits(e.value)),
        Known::Interval => format!(
            "×{} ({}–{})",
            digits(e.value),
            digits(e.low),
            digits(e.high)
        ),
    };
    format!("{name} {factor}")
}

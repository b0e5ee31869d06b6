//! A paragraph on the sides of a question: one sentence for all of them, or the answer and a line for each.

use super::judge::Judgement;
use super::numbers::percent;
use super::ratios::Known;
use super::words::{Paragraph, phrases, short, telling};
use super::{Answer, MARGIN, validity};

/// Maximum length of a single-sentence paragraph, characters: four lines of a terminal.
const SENTENCE: usize = 320;

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
                validity::judged_up_to(self.judged)
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
            text += &validity::judged_up_to(self.judged);
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
        let apart = |j: &Judgement| {
            let known = matches!(Known::of(&j.ratio), Known::Interval);
            let beyond = j.ratio.value.ln().abs() > MARGIN.ln_1p();
            known && beyond && (j.ratio.low > 1.0 || j.ratio.high < 1.0)
        };
        let mut open = self.judged.iter().filter(|j| j.differs == Answer::Unclear);
        (!self.judged.iter().any(Judgement::differs) && open.any(apart)).then(|| {
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

    /// The judgement to quote for its answer: the strongest of those that show a difference or, if none does, of all.
    fn strongest(&self) -> Option<&Judgement> {
        let differs = self.judged.iter().any(Judgement::differs);
        let shown = self.judged.iter().filter(|j| !differs || j.differs());
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
    // A side that is open for a stated reason is explained by that reason, not by its figure.
    let most = sides
        .iter()
        .filter(|s| s.answer == answer && (answer != Answer::Unclear || reasons(s).is_empty()))
        .filter_map(|s| Some((s, s.strongest()?)))
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
    let explained = sides.iter().filter(|s| !s.all_reasons().is_empty());
    let larger = explained
        .filter_map(|s| Some((s, s.strongest()?)))
        .filter(|(_, j)| strength(j) > strength(most))
        .max_by(|a, b| strength(a.1).total_cmp(&strength(b.1)));
    larger.map_or_else(String::new, |(side, j)| {
        let name = side.with.trim_start_matches("with ");
        format!(
            " A larger one is left out: {name}, where {} {} ({}).",
            phrases(&[j]),
            side.than,
            side.all_reasons()
        )
    })
}

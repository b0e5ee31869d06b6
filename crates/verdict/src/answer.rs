//! The answers to a question, and what counts as equal.

use schemars::JsonSchema;
use serde::Serialize;

/// The percentiles of slowdowns.
pub const PERCENTILES: [f64; 4] = [0.05, 0.5, 0.9, 0.95];

/// The percentiles that decide a question: the median and the tail.
pub(super) const DECISIVE: [f64; 3] = [0.5, 0.9, 0.95];

/// The percentile that is judged only where it shows harm to fewer requests than the decisive ones cover.
pub(super) const RARE: f64 = 0.99;

/// Equivalence margin: two values within this share of each other, up or down, are equal for practical purposes.
pub const MARGIN: f64 = 0.10;

/// The confidence level of intervals.
pub const LEVEL: f64 = 0.95;

/// An answer with its doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Yes: an interval lies wholly on this side of the margin.
    Yes,
    /// No.
    No,
    /// The intervals do not decide it.
    Unclear,
}

impl Answer {
    /// The answer to the opposite question.
    pub(super) fn inverted(self) -> Answer {
        match self {
            Answer::Yes => Answer::No,
            Answer::No => Answer::Yes,
            Answer::Unclear => Answer::Unclear,
        }
    }
}

/// Yes if any answer is yes, no if there are answers and all are no, else unclear.
pub(super) fn any(answers: impl Iterator<Item = Answer>) -> Answer {
    let answers: Vec<Answer> = answers.collect();
    if answers.contains(&Answer::Yes) {
        Answer::Yes
    } else if !answers.is_empty() && answers.iter().all(|&a| a == Answer::No) {
        Answer::No
    } else {
        Answer::Unclear
    }
}

/// The answer in the light of the objections: `withheld` rules out any answer, `open` only the answer "no".
pub(super) fn weighed(answer: Answer, withheld: &[String], open: &[String]) -> Answer {
    if !withheld.is_empty() || (answer == Answer::No && !open.is_empty()) {
        Answer::Unclear
    } else {
        answer
    }
}

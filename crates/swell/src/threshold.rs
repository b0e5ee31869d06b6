//! `--fail-if`: thresholds on what a verdict measured, and the exit codes that verdicts end with.
//!
//! ```text
//! [BACKGROUND:]p5|p50|p90|p95.slowdown|seconds[.value|.low|.high] >|>=|<|<= NUMBER
//! ```

use std::fmt;
use std::str::FromStr;

use swell_experiment::verdict::{Answer, BackgroundVerdict, PERCENTILES, Verdict};

/// Background traffic matters, or it does not.
pub(crate) const ANSWERED: u8 = 0;
/// The runs do not settle it.
pub(crate) const NOT_SETTLED: u8 = 3;
/// The application fails without background traffic.
pub(crate) const APPLICATION_FAILED: u8 = 4;
/// A `--fail-if` holds.
pub(crate) const THRESHOLD: u8 = 5;

/// The exit code of a verdict, thresholds aside. Where there is nothing to compare with, nothing was asked.
pub(crate) fn exit_code(verdict: &Verdict) -> u8 {
    let all = &verdict.foregrounds;
    let asked = |answer: Option<Answer>| answer == Some(Answer::Unclear);
    if all.iter().any(|f| f.application_failed) {
        APPLICATION_FAILED
    } else if all
        .iter()
        .any(|f| f.backgrounds.iter().any(|b| asked(b.matters)))
    {
        NOT_SETTLED
    } else {
        ANSWERED
    }
}

/// Which number of a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Slowdown,
    Seconds,
}

/// Which end of its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Value,
    Low,
    High,
}

/// A condition that makes a run fail.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Threshold {
    text: String,
    background: Option<String>,
    percentile: usize,
    of: Of,
    end: End,
    more: bool,
    equal: bool,
    limit: f64,
}

/// Why a threshold does not read: the column, from 1, and what is expected there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    column: usize,
    expected: &'static str,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "column {}: expected {}; for example 'p95.slowdown.high > 1.5'",
            self.column, self.expected
        )
    }
}

impl std::error::Error for Unreadable {}

impl FromStr for Threshold {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Threshold, Unreadable> {
        let at = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize + 1;
        let wrong = |part: &str, expected| Unreadable {
            column: at(part),
            expected,
        };
        let operator = text
            .find(['<', '>'])
            .ok_or(wrong(&text[text.len()..], "<, <=, > or >="))?;
        let (left, right) = text.split_at(operator);
        let (more, equal) = (right.starts_with('>'), right[1..].starts_with('='));
        let number = &right[1 + usize::from(equal)..];
        let limit = number
            .trim()
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite())
            .ok_or(wrong(number, "a number"))?;
        let (background, left) = match left.rsplit_once(':') {
            Some((name, rest)) => (Some(name.trim().to_owned()), rest),
            None => (None, left),
        };
        let mut parts = left.split('.').map(str::trim);
        let first = parts.next().unwrap_or(left);
        let percentile = ["p5", "p50", "p90", "p95"]
            .iter()
            .position(|p| *p == first)
            .ok_or(wrong(first, "p5, p50, p90 or p95"))?;
        let of = match parts.next() {
            Some("slowdown") => Of::Slowdown,
            Some("seconds") => Of::Seconds,
            other => return Err(wrong(other.unwrap_or(right), ".slowdown or .seconds")),
        };
        let end = match parts.next() {
            None | Some("value") => End::Value,
            Some("low") => End::Low,
            Some("high") => End::High,
            Some(other) => return Err(wrong(other, ".value, .low or .high")),
        };
        if let Some(rest) = parts.next() {
            return Err(wrong(rest, "an operator"));
        }
        Ok(Threshold {
            text: text.to_owned(),
            background,
            percentile,
            of,
            end,
            more,
            equal,
            limit,
        })
    }
}

impl Threshold {
    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What makes the run fail: a line for every background that crosses the threshold, or of which the number cannot be
    /// told. A threshold that concerns nothing fails, too: it is mistyped.
    pub(crate) fn crossed(&self, verdict: &Verdict) -> Vec<String> {
        let mut concerned = 0;
        let mut lines = Vec::new();
        for foreground in &verdict.foregrounds {
            for b in &foreground.backgrounds {
                let named = self.background.as_ref();
                let reference = self.of == Of::Slowdown && b.matters.is_none();
                if reference || named.is_some_and(|n| *n != b.background) {
                    continue;
                }
                concerned += 1;
                let name = format!("{} against {}", foreground.foreground, b.background);
                match self.number(b) {
                    Some(x) if self.holds(x) => {
                        lines.push(format!("{}: {name} has {x:.3}", self.text));
                    }
                    Some(_) => {}
                    None => lines.push(format!("{}: cannot be told of {name}", self.text)),
                }
            }
        }
        if concerned == 0 {
            lines.push(format!("{}: there is no such background", self.text));
        }
        lines
    }

    fn number(&self, b: &BackgroundVerdict) -> Option<f64> {
        let q = b
            .quantiles
            .iter()
            .find(|q| q.p == PERCENTILES[self.percentile])?;
        let e = match self.of {
            Of::Slowdown => q.slowdown?,
            Of::Seconds => q.seconds?,
        };
        Some(match self.end {
            End::Value => e.value,
            End::Low => e.low,
            End::High => e.high,
        })
    }

    fn holds(&self, x: f64) -> bool {
        (self.equal && x == self.limit)
            || if self.more {
                x > self.limit
            } else {
                x < self.limit
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Threshold, Unreadable> {
        text.parse()
    }

    #[test]
    fn thresholds_read() {
        let t = read("p95.slowdown.high > 1.5").unwrap();
        assert_eq!((t.percentile, t.of, t.end), (3, Of::Slowdown, End::High));
        assert!(t.holds(1.6) && t.holds(f64::INFINITY) && !t.holds(1.5));
        let named = read("my:back:p50.seconds<=0.25").unwrap();
        assert_eq!(named.background.as_deref(), Some("my:back"));
        assert!(named.holds(0.25) && !named.holds(0.26) && named.end == End::Value);
    }

    #[test]
    fn mistakes_are_told_with_their_column() {
        let column = |text: &str| read(text).unwrap_err().column;
        assert_eq!(column("p95.slowdown"), 13);
        assert_eq!(column("p99.slowdown > 1"), 1);
        assert_eq!(column("p95.speed > 1"), 5);
        assert_eq!(column("p95 > 1"), 5);
        assert_eq!(column("p95.slowdown.mid > 1"), 14);
        assert_eq!(column("p95.slowdown > many"), 15);
        assert_eq!(column(""), 1);
        assert_eq!(column("é: p95.slowdown > NaN"), 19);
    }
}

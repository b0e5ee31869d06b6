//! `--fail-if`: thresholds on the numbers of a verdict, and the exit codes of verdicts.
//!
//! ```text
//! [NAME:]p5|p50|p90|p95.slowdown|seconds[.value|.low|.high] >|>=|<|<= NUMBER
//! [NAME:]MEASURE[.p50|.p90|.p95|...].ratio|value[.value|.low|.high] >|>=|<|<= NUMBER
//! ```
//!
//! The first form applies to request times, the second to any measure: `goodput.ratio < 0.5`, `p99.value.high > 250`.
//! `NAME` is a background, a foreground, or `FOREGROUND:BACKGROUND`. Without a foreground, those that have the measure
//! are concerned, or would have it if anything were known of them.

use std::fmt;
use std::str::FromStr;

use swell_experiment::file::{File, Foreground};
use swell_experiment::measure::{
    COMPLETION_TIME, FAILURES, GOODPUT, MEAN_TIME, Measure, REQUEST_RATE, Source,
};
use swell_stats::Estimate;
use swell_verdict::{
    Answer, BackgroundVerdict, ForegroundVerdict, Known, LEVEL, PERCENTILES, Statistic, Verdict,
};

use crate::tables;

mod check;
pub(crate) use check::check;

/// It is settled whether background traffic matters.
pub(crate) const ANSWERED: u8 = 0;
/// The runs do not settle it.
pub(crate) const NOT_SETTLED: u8 = 3;
/// The application fails without background traffic.
pub(crate) const APPLICATION_FAILED: u8 = 4;
/// A `--fail-if` holds.
pub(crate) const THRESHOLD: u8 = 5;

/// The exit code of a verdict on `experiment` without thresholds. A run without a comparison asks no question, so it
/// succeeds, and so does a foreground of kind `none`.
pub(crate) fn exit_code(experiment: &File, verdict: &Verdict) -> u8 {
    let mut all: Vec<&ForegroundVerdict> = verdict.foregrounds.iter().collect();
    all.retain(|f| !tables::is_silent(experiment, f));
    let asked = |answer: Option<Answer>| answer == Some(Answer::Unclear);
    let suite_is_open = |f: &&ForegroundVerdict| f.suite.as_ref().is_some_and(|s| !s.settled);
    if all.iter().any(|f| f.application_failed) {
        APPLICATION_FAILED
    } else if all.iter().any(suite_is_open)
        || all
            .iter()
            .any(|f| f.backgrounds.iter().any(|b| asked(b.matters)))
    {
        NOT_SETTLED
    } else {
        ANSWERED
    }
}

/// The number that a threshold tests.
#[derive(Clone, Debug, PartialEq)]
enum Of {
    /// Slowdown of request times against no background, at the percentile with this index.
    Slowdown(usize),
    /// Request time in seconds, at the percentile with this index.
    Seconds(usize),
    /// Ratio of a measure with background to that without; at a percentile if it has many values.
    Ratio(String, Option<f64>),
    /// Value of a measure with background, in its unit.
    Value(String, Option<f64>),
}

/// The value itself or an end of its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IntervalEnd {
    Value,
    Low,
    High,
}

/// A condition that makes a run fail.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Threshold {
    text: String,
    name: Option<String>,
    of: Of,
    end: IntervalEnd,
    more: bool,
    equal: bool,
    limit: f64,
}

/// A syntax error in a threshold: the column, counted from 1, and what is expected there.
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
        let (subjects, left) = match left.rsplit_once(':') {
            Some((name, rest)) => {
                let parts: Vec<&str> = name.split(':').map(str::trim).collect();
                (Some(parts.join(":")), rest)
            }
            None => (None, left),
        };
        let parts: Vec<&str> = left.split('.').map(str::trim).collect();
        let quantity = |p: &&str| ["slowdown", "seconds", "ratio", "value"].contains(p);
        let Some(at_quantity) = parts.iter().skip(1).position(quantity).map(|i| i + 1) else {
            let place = parts.get(1).copied().unwrap_or(right);
            return Err(wrong(
                place,
                ".slowdown or .seconds, or .ratio or .value of a measure",
            ));
        };
        let subject = &parts[..at_quantity];
        let times = || {
            let known = ["p5", "p50", "p90", "p95"];
            let one = known.iter().position(|p| subject == [*p]);
            one.ok_or(wrong(subject[0], "p5, p50, p90, p95 or p99"))
        };
        let measure = || {
            let percentile = |p: &str| p.strip_prefix('p')?.parse().ok().map(|p: f64| p / 100.0);
            let (last, before) = subject.split_last().unwrap_or((&"", &[]));
            let (name, p) = match percentile(last).filter(|_| !before.is_empty()) {
                Some(p) => (before, Some(p)),
                None => (subject, None),
            };
            match name.join(".") {
                name if name.is_empty() => Err(wrong(subject[0], "the name of a measure")),
                name => Ok((name, p)),
            }
        };
        let of = match parts[at_quantity] {
            // p99 is a percentile of a measure, with enough requests.
            "slowdown" if subject == ["p99"] => {
                Of::Ratio(COMPLETION_TIME.name.to_string(), Some(0.99))
            }
            "seconds" if subject == ["p99"] => {
                Of::Value(COMPLETION_TIME.name.to_string(), Some(0.99))
            }
            "slowdown" => Of::Slowdown(times()?),
            "seconds" => Of::Seconds(times()?),
            "ratio" => measure().map(|(name, p)| Of::Ratio(name, p))?,
            _ => measure().map(|(name, p)| Of::Value(name, p))?,
        };
        let end = match parts.get(at_quantity + 1).copied() {
            None | Some("value") => IntervalEnd::Value,
            Some("low") => IntervalEnd::Low,
            Some("high") => IntervalEnd::High,
            Some(other) => return Err(wrong(other, ".value, .low or .high")),
        };
        if let Some(rest) = parts.get(at_quantity + 2) {
            return Err(wrong(rest, "an operator"));
        }
        Ok(Threshold {
            text: text.to_owned(),
            name: subjects,
            of,
            end,
            more,
            equal,
            limit,
        })
    }
}

impl Threshold {
    /// The threshold as written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The reasons for which a run of `experiment` fails: a line for every background that crosses the threshold, or
    /// whose number is unknown. A threshold that applies to nothing fails too, because it is mistyped.
    pub(crate) fn crossed(&self, experiment: &File, verdict: &Verdict) -> Vec<String> {
        let concerned = self.concerned(verdict);
        if concerned.is_empty() {
            let known = |names: Vec<&str>| names.join(", ");
            let foregrounds = verdict.foregrounds.iter().map(|f| &*f.foreground);
            let backgrounds = verdict.foregrounds.first().into_iter();
            let backgrounds = backgrounds.flat_map(|f| &f.backgrounds);
            return vec![format!(
                "{}: it concerns nothing; the foregrounds are {}, the backgrounds {}",
                self.text,
                known(foregrounds.collect()),
                known(backgrounds.map(|b| &*b.background).collect()),
            )];
        }
        let apt = |(f, _, named): &(&ForegroundVerdict, _, bool)| {
            *named || self.is_of(f) || self.is_missing_in(experiment, f)
        };
        if !concerned.iter().any(apt) {
            return vec![format!("{}: {}", self.text, self.unknown(verdict))];
        }
        let mut lines = Vec::new();
        for (foreground, b, _) in concerned.into_iter().filter(apt) {
            let name = format!("{} against {}", foreground.foreground, b.background);
            let samples = self.is_of_samples(experiment, foreground);
            match self.tested(b, samples) {
                Tested::Holds(_) => {
                    lines.push(format!("{}: {}", self.text, self.said(b, samples, &name)));
                }
                // Runs that are no experiment, for example without the traffic, prove nothing. What a program says of itself
                // stands.
                Tested::Passes if b.withheld.is_empty() || self.is_reported(samples) => {}
                Tested::Unknown | Tested::Passes => {
                    let why = match b.withheld.is_empty() {
                        true => String::new(),
                        false => format!(": {}", b.withheld.join("; ")),
                    };
                    lines.push(format!("{}: cannot be told of {name}{why}", self.text));
                }
            }
        }
        lines
    }

    /// The foregrounds and backgrounds that the name stands for, and whether it names the foreground. A name that a
    /// foreground and a background share is that of the background.
    fn concerned<'v>(
        &self,
        verdict: &'v Verdict,
    ) -> Vec<(&'v ForegroundVerdict, &'v BackgroundVerdict, bool)> {
        let pairs = || {
            let all = verdict.foregrounds.iter();
            let all = all.flat_map(|f| f.backgrounds.iter().map(move |b| (f, b)));
            // The reference itself is compared with nothing.
            all.filter(|(_, b)| matches!(self.of, Of::Seconds(_)) || b.matters.is_some())
        };
        let Some(name) = &self.name else {
            return pairs().map(|(f, b)| (f, b, false)).collect();
        };
        let both = |(f, b): &(&ForegroundVerdict, &BackgroundVerdict)| {
            format!("{}:{}", f.foreground, b.background) == *name
        };
        let whole: Vec<_> = pairs().filter(both).map(|(f, b)| (f, b, true)).collect();
        if !whole.is_empty() {
            return whole;
        }
        let background = pairs().filter(|(_, b)| b.background == *name);
        let background: Vec<_> = background.map(|(f, b)| (f, b, false)).collect();
        if !background.is_empty() {
            return background;
        }
        let foreground = pairs().filter(|(f, _)| f.foreground == *name);
        foreground.map(|(f, b)| (f, b, true)).collect()
    }

    /// Whether a foreground has the measure, beside any background.
    fn is_of(&self, foreground: &ForegroundVerdict) -> bool {
        let mut all = foreground.backgrounds.iter();
        match &self.of {
            Of::Slowdown(_) | Of::Seconds(_) => all.any(|b| b.requests > 0),
            Of::Ratio(name, _) | Of::Value(name, _) => all.any(|b| {
                let failures = *name == FAILURES.name && never_failed(b);
                failures || b.compared().any(|j| j.measure == *name)
            }),
        }
    }

    /// Whether the measure is one whose values a foreground reports.
    fn is_of_samples(&self, experiment: &File, foreground: &ForegroundVerdict) -> bool {
        let (Of::Ratio(name, _) | Of::Value(name, _)) = &self.of else {
            return false;
        };
        let mut own = experiment.foreground.iter();
        let own = own.find(|f| f.name() == foreground.foreground);
        let declared = own.map(|f| f.measures()).unwrap_or_default();
        let sampled = |m: &Measure| m.source == Source::Samples && m.name == *name;
        declared.iter().any(sampled)
    }

    /// Whether it is about what an application reports, and not about a ratio of it. `samples` as in
    /// [`Threshold::is_of_samples`].
    fn is_reported(&self, samples: bool) -> bool {
        samples && matches!(self.of, Of::Value(..))
    }

    /// Whether a foreground's kind is to have the measure, and it is not known: the runs were all late, for example, or
    /// a program did not report it. That the foreground does not have the measure would be no reason to pass.
    fn is_missing_in(&self, experiment: &File, foreground: &ForegroundVerdict) -> bool {
        let mut own = experiment.foreground.iter();
        let Some(own) = own.find(|f| f.name() == foreground.foreground) else {
            return false;
        };
        let all = &foreground.backgrounds;
        let nothing_is_known = all.iter().all(|b| b.compared().next().is_none())
            && all.iter().any(|b| !b.withheld.is_empty());
        self.is_of_samples(experiment, foreground) || nothing_is_known && self.may_be_of(own)
    }

    /// Whether a foreground of this kind may have the measure.
    fn may_be_of(&self, foreground: &Foreground) -> bool {
        match &self.of {
            Of::Slowdown(_) | Of::Seconds(_) => requests(foreground),
            // Names go on with a direction or a size: `delay up`, `time of 10kB`.
            Of::Ratio(name, _) | Of::Value(name, _) => (possible(foreground).iter())
                .filter_map(|m| name.strip_prefix(&*m.name))
                .any(|rest| rest.is_empty() || rest.starts_with(' ')),
        }
    }

    /// Why no foreground has the measure, with those that there are.
    fn unknown(&self, verdict: &Verdict) -> String {
        let name = match &self.of {
            Of::Slowdown(_) | Of::Seconds(_) => return "no foreground has requests".to_owned(),
            Of::Ratio(name, _) | Of::Value(name, _) => name,
        };
        let mut known: Vec<&str> = Vec::new();
        for f in &verdict.foregrounds {
            for j in f.backgrounds.iter().flat_map(BackgroundVerdict::compared) {
                if !known.contains(&&*j.measure) {
                    known.push(&j.measure);
                }
            }
        }
        let when = match *name == GOODPUT.name {
            true => {
                ", which of requests is judged only where their times tell too little: where responses have other \
                 sizes than without traffic, or most bytes are in none"
            }
            false => "",
        };
        match known.is_empty() {
            true => format!("no foreground has a measure `{name}`{when}"),
            false => format!(
                "no foreground has a measure `{name}`{when}; there are {}",
                known.join(", ")
            ),
        }
    }

    /// What the number is beside a background, `name`, that the threshold holds of. `samples` as in
    /// [`Threshold::is_of_samples`].
    fn said(&self, b: &BackgroundVerdict, samples: bool, name: &str) -> String {
        let Some(e) = self.estimate(b, samples) else {
            return String::new();
        };
        let known = Known::of(&e);
        let (end, x) = match self.end {
            IntervalEnd::Value => {
                return match known {
                    Known::AtLeast(low) => format!("{name} has at least {}", digits(low)),
                    Known::AtMost(high) => format!("{name} has at most {}", digits(high)),
                    _ => format!("{name} has {}", digits(e.value)),
                };
            }
            IntervalEnd::Low => ("lower", e.low),
            IntervalEnd::High => ("upper", e.high),
        };
        let why = match known {
            Known::Value => "because there is only 1 replication; five give an interval",
            _ if x.is_infinite() => "because too many requests did not finish",
            _ => return format!("{name} has {}", digits(x)),
        };
        format!("the {end} end for {name} is not known, {why}")
    }

    /// The number beside a background. `samples` as in [`Threshold::is_of_samples`].
    fn tested(&self, b: &BackgroundVerdict, samples: bool) -> Tested {
        let Some(e) = self.estimate(b, samples) else {
            return Tested::Unknown;
        };
        let x = match self.end {
            IntervalEnd::Value => e.value,
            IntervalEnd::Low => e.low,
            IntervalEnd::High => e.high,
        };
        // Whether the value is known only to be more, or less, than the bound `x`.
        let more = match (self.end, Known::of(&e)) {
            (IntervalEnd::Value, Known::AtLeast(_)) => Some(true),
            (IntervalEnd::Value, Known::AtMost(_)) => Some(false),
            _ => None,
        };
        match (self.holds(x), more) {
            (true, Some(more)) if more != self.more => Tested::Unknown,
            (false, Some(more)) if more == self.more => Tested::Unknown,
            (true, _) => Tested::Holds(x),
            (false, _) => Tested::Passes,
        }
    }

    fn estimate(&self, b: &BackgroundVerdict, samples: bool) -> Option<Estimate> {
        let quantile = |i: usize| b.quantiles.iter().find(|q| q.p == PERCENTILES[i]);
        let judged = |name: &str, p: Option<f64>| {
            let is = |s: Statistic| match (s, p) {
                (Statistic::Mean, None) => true,
                (Statistic::Percentile(own), Some(p)) => (own - p).abs() < 1e-9,
                _ => false,
            };
            let of = |fits: &dyn Fn(Statistic) -> bool| {
                let mut own = b.compared().filter(|j| j.measure == name);
                own.find(|j| fits(j.statistic))
            };
            // Times of requests have no mean unless few take most of the time: without a percentile, theirs is the median.
            // Values that a foreground reports have a mean, and where its ratio is not known, another number is not it.
            let median = |s: Statistic| p.is_none() && !samples && s == Statistic::Percentile(0.5);
            of(&is).or_else(|| of(&median))
        };
        match &self.of {
            // Failures are judged only where there are any.
            Of::Value(name, None) if *name == FAILURES.name && never_failed(b) => {
                Some(exactly(0.0, b))
            }
            Of::Ratio(name, None) if *name == FAILURES.name && never_failed(b) => {
                Some(exactly(1.0, b))
            }
            Of::Slowdown(i) => quantile(*i)?.slowdown,
            // The lower end of the interval of a bound is not known.
            Of::Seconds(i) => quantile(*i)?.seconds.or_else(|| {
                let bound = quantile(*i)?
                    .at_least
                    .filter(|_| self.end != IntervalEnd::Low)?;
                Some(Estimate {
                    high: f64::INFINITY,
                    ..exactly(bound, b)
                })
            }),
            Of::Ratio(name, p) => Some(judged(name, *p)?.ratio),
            Of::Value(name, p) => judged(name, *p)?.with,
        }
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

/// A threshold and the number that it tests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tested {
    /// It holds for this number.
    Holds(f64),
    /// The number is not known, or only a bound of it that does not tell.
    Unknown,
    Passes,
}

/// Whether a foreground of this kind makes requests.
fn requests(foreground: &Foreground) -> bool {
    let mut declared = foreground.measures().into_iter();
    declared.any(|m| m.source == Source::RequestTimes)
}

/// The measures that may be compared of a foreground of this kind: its own and, where it makes requests, those that derive
/// from them.
fn possible(foreground: &Foreground) -> Vec<Measure> {
    let mut all = foreground.measures();
    if requests(foreground) {
        for derived in [GOODPUT, REQUEST_RATE, MEAN_TIME] {
            if !all.iter().any(|m| m.name == derived.name) {
                all.push(derived);
            }
        }
    }
    all
}

/// Whether there are requests, none of which failed, and failures were not compared.
fn never_failed(b: &BackgroundVerdict) -> bool {
    let judged = b.compared().any(|j| j.measure == FAILURES.name);
    b.requests > 0 && b.failed == 0 && !judged
}

fn exactly(x: f64, b: &BackgroundVerdict) -> Estimate {
    Estimate {
        value: x,
        low: x,
        high: x,
        level: LEVEL,
        replications: b.replications,
    }
}

/// Three decimals, or as many as show a small number.
fn digits(x: f64) -> String {
    match x.abs() {
        size if size > 0.0 && size < 0.01 => format!("{x:.2e}"),
        _ => format!("{x:.3}"),
    }
}

#[cfg(test)]
mod tests;

//! What is measured of an application: a name, a unit, and which direction is better.
//!
//! The verdict, the report and thresholds know measures and nothing else of an application. What the tables
//! `requests`, `links` and `waits` hold is turned into measures that each kind of traffic names
//! ([`Part::measures`](crate::kinds::Part::measures)); what a program reports itself comes as [`MeasureSample`]s, with its definition in the experiment file
//! (`[[foreground.reported]]`).

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which direction of a measure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better: durations, delays, losses.
    Lower,
    /// More is better: rates.
    Higher,
}

/// Something that is measured of an application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// Its name, unique within the foreground.
    pub name: Cow<'static, str>,
    /// Unit of its values; empty where it has none.
    pub unit: Cow<'static, str>,
    /// Which direction is better.
    pub better: Better,
    /// Whether a value may be known as a lower bound only (right-censored).
    pub censored: bool,
    /// Ratios are of values plus this: differences much below it do not count. Zero for measures whose
    /// ratios mean something down to zero.
    pub floor: f64,
    /// Where its values come from.
    pub source: Source,
    /// Whether it may show by itself that nothing differs.
    pub sufficient: bool,
    /// Whether it is what the question is about: [`Reported::primary`].
    pub primary: bool,
    /// Whether it is shown beside, and no answer rests on it: what the network does to packets where the application
    /// hides it.
    pub beside: bool,
}

impl Measure {
    /// A measure whose values the application says itself, each of which is known.
    pub const fn sampled(
        name: &'static str,
        unit: &'static str,
        better: Better,
        floor: f64,
    ) -> Measure {
        Measure {
            name: Cow::Borrowed(name),
            unit: Cow::Borrowed(unit),
            better,
            censored: false,
            floor,
            source: Source::Samples,
            sufficient: true,
            primary: false,
            beside: false,
        }
    }

    /// It, as what the question is about.
    pub const fn primary(mut self) -> Measure {
        self.primary = true;
        self
    }

    /// It, shown and not judged.
    pub const fn beside(mut self) -> Measure {
        self.beside = true;
        self
    }
}

/// Where the values of a measure come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Table `requests`: how long each took.
    RequestTimes,
    /// Table `requests`: how long the first byte of each took.
    FirstBytes,
    /// Table `requests`: the share that failed.
    RequestFailures,
    /// Table `requests`: how many were done per second.
    RequestRate,
    /// Table `requests`, or `links` where there are none: bytes per second.
    Goodput,
    /// Table `links`: the share of packets that was dropped.
    Loss,
    /// Table `waits`: the mean wait.
    Waits,
    /// Table `measures`: its own rows.
    Samples,
}

/// A value of a measure that no other table holds: a row of the table `measures`.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureSample {
    /// Name of the measure, as the experiment file defines it.
    pub measure: String,
    /// The value, in the unit of the measure.
    pub value: f64,
    /// When it was measured, seconds since the start of the run.
    pub at: f64,
}

/// A measure that a program reports itself: in its output, by `pattern` or `json`, or else in lines of JSON such as
/// `{"NAME": 12.3}` that it writes to `{dir}/measures.jsonl`. Where a run reports many values, their median and bad
/// percentiles are judged, else their mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reported {
    /// Its name in tables and pictures.
    pub name: String,
    /// Unit of its values, for tables and pictures: `ms`, `requests/s`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// A regular expression for the client's output, line by line. Its first group is the value; its second, if there
    /// is one, the value's unit, from which it is converted: `Latency\s+([\d.]+)(us|ms|s)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// A JSONPath (RFC 9535) into the JSON of the client's standard output: `$.latency.p99`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// Ratios are of values plus this. For counts that may be zero, such as errors: what is not worth speaking of.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub floor: f64,
    /// Whether the question is about this measure. Of many measures some differ by chance, which costs all of them
    /// power; primary ones pay for themselves only. The others may still decide, where they are clear.
    #[serde(default, skip_serializing_if = "is_false")]
    pub primary: bool,
}

fn is_false(x: &bool) -> bool {
    !x
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

impl Reported {
    /// The measure that it defines.
    pub fn measure(&self) -> Measure {
        Measure {
            name: self.name.clone().into(),
            unit: self.unit.clone().into(),
            better: self.better,
            censored: false,
            floor: self.floor,
            source: Source::Samples,
            sufficient: true,
            primary: self.primary,
            beside: false,
        }
    }
}

/// From a request's start to its last byte.
pub const COMPLETION_TIME: Measure = Measure {
    name: Cow::Borrowed("time"),
    unit: Cow::Borrowed("s"),
    better: Better::Lower,
    censored: true,
    floor: 0.0,
    source: Source::RequestTimes,
    sufficient: true,
    primary: false,
    beside: false,
};

/// From a request's start to the first byte of its answer.
pub const FIRST_BYTE: Measure = Measure {
    name: Cow::Borrowed("first byte"),
    unit: Cow::Borrowed("s"),
    better: Better::Lower,
    censored: true,
    floor: 0.0,
    source: Source::FirstBytes,
    sufficient: true,
    primary: false,
    beside: false,
};

/// Mean of the times from a request's start to its last byte; one value per run. Where few requests take most of a run's
/// time, percentiles say nothing of them.
pub const MEAN_TIME: Measure = Measure {
    name: Cow::Borrowed("mean time"),
    unit: Cow::Borrowed("s"),
    better: Better::Lower,
    censored: false,
    floor: 0.0,
    source: Source::RequestTimes,
    sufficient: false,
    primary: false,
    beside: false,
};

/// Network-layer bytes of the foreground that left the bottleneck per second, in the direction in which it
/// sends most; one value per run.
pub const GOODPUT: Measure = Measure {
    name: Cow::Borrowed("goodput"),
    unit: Cow::Borrowed("bit/s"),
    better: Better::Higher,
    censored: false,
    floor: 0.0,
    source: Source::Goodput,
    sufficient: true,
    primary: false,
    beside: false,
};

/// Requests that were done per second; one value per run.
pub const REQUEST_RATE: Measure = Measure {
    name: Cow::Borrowed("request rate"),
    unit: Cow::Borrowed("1/s"),
    better: Better::Higher,
    censored: false,
    floor: 0.0,
    source: Source::RequestRate,
    sufficient: true,
    primary: false,
    beside: false,
};

/// Share of the foreground's packets that the bottleneck dropped, in the direction in which it sends most; one
/// value per run. Ratios are of one hundredth plus this: a tenth of a percent of loss is ten percent more.
pub const LOSS: Measure = Measure {
    name: Cow::Borrowed("loss"),
    unit: Cow::Borrowed(""),
    better: Better::Lower,
    censored: false,
    floor: 0.01,
    source: Source::Loss,
    sufficient: true,
    primary: false,
    beside: false,
};

/// Mean time from a packet's arrival at the bottleneck to its arrival behind it, where the experiment keeps
/// waits (`run.keep.waits`); one value per run.
pub const DELAY: Measure = Measure {
    name: Cow::Borrowed("delay"),
    unit: Cow::Borrowed("s"),
    better: Better::Lower,
    censored: false,
    floor: 0.0,
    source: Source::Waits,
    sufficient: true,
    primary: false,
    beside: false,
};

/// Share of the requests that failed; one value per run. Ratios are of one hundredth plus this: a tenth of a percent
/// more failures is ten percent more.
pub const FAILURES: Measure = Measure {
    name: Cow::Borrowed("failures"),
    unit: Cow::Borrowed(""),
    better: Better::Lower,
    censored: false,
    floor: 0.01,
    source: Source::RequestFailures,
    sufficient: false,
    primary: false,
    beside: false,
};

/// The names of the measures that need no definition.
pub const BUILT_IN: [&str; 7] = [
    "time",
    "mean time",
    "failures",
    "goodput",
    "request rate",
    "loss",
    "delay",
];

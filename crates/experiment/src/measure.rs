//! Measures of an application: each has a name, a unit and a better direction.
//!
//! The verdict, the report and thresholds see an application only through its measures. Each kind of traffic names the
//! measures that derive from the tables `requests`, `links` and `waits`
//! ([`Keys::measures`](crate::kinds::Keys::measures)). Values that a program reports itself are [`MeasureSample`]s; the
//! experiment file defines their measures (`[[foreground.reported]]`).

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

/// A measure of an application.
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
    /// Added to all values before ratios are taken, so that differences much below it do not count. Zero for measures
    /// whose ratios are meaningful for all positive values.
    pub floor: f64,
    /// Where its values come from.
    pub source: Source,
    /// Whether this measure alone may show that nothing differs.
    pub sufficient: bool,
    /// Whether the question is about this measure: [`Reported::primary`].
    pub primary: bool,
    /// Whether it is shown, but no answer rests on it: an effect on packets that the application hides from its user.
    pub beside: bool,
}

impl Measure {
    /// A measure with values that the application reports itself, none of them censored.
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

    /// The same as a primary measure.
    pub const fn primary(mut self) -> Measure {
        self.primary = true;
        self
    }

    /// The same as a measure that cannot show by itself that nothing differs.
    pub const fn never_alone(mut self) -> Measure {
        self.sufficient = false;
        self
    }

    /// The same as a measure that is shown and that no answer rests on.
    pub const fn beside(mut self) -> Measure {
        self.beside = true;
        self
    }
}

/// What shows that an application does not work: a slowdown of it then says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failing {
    /// The mean of a measure's values is above this: the measure's name, its unit and the value.
    Above(&'static str, &'static str, f64),
    /// The mean of a measure's values is below this.
    Below(&'static str, &'static str, f64),
    /// More than a tenth of the requests are given up after so many seconds.
    GivenUp(f64),
}

/// Where the values of a measure come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Table `requests`: the completion time of each.
    RequestTimes,
    /// Table `requests`: the time to first byte of each.
    FirstBytes,
    /// Table `requests`: the share that failed.
    RequestFailures,
    /// Table `requests`: completed requests per second.
    RequestRate,
    /// Table `requests`, or `links` where there are no requests: bits per second.
    Goodput,
    /// Table `links`: the share of packets that were dropped, each direction by itself.
    Loss,
    /// Table `delays`, or `waits` for segments of TCP: one-way delays, each direction by itself.
    Delays,
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
/// `{"NAME": 12.3}` that it writes to `{dir}/measures.jsonl`. The mean of each run is judged. Where all runs together
/// report a hundred values or more, it is their median and bad percentiles, and the mean too if there is a `floor`.
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
    /// is one, the value's unit, from which it is converted: `Latency\s+([\d.]+)(us|ms|s)`. `k` is 1000 and `Ki` 1024; a
    /// prefix alone, as in `1.2k`, multiplies a `unit` without a prefix.
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
    #[serde(default, skip_serializing_if = "crate::file::is_default")]
    pub primary: bool,
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

impl Reported {
    /// The measure that this definition describes.
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

/// Mean time from a request's start to its last byte, or to when it was last observed; one value per run. Used where
/// few requests take most of the time, because percentiles do not cover those.
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

/// Response bits per second in which at least one request is open; one value per run. For a foreground that sends most of its bytes outside
/// requests: bits per second that arrive, in each direction in which it sends data. Of endless transfers and swarms
/// these are bits of use to the application ([`GOODPUT_EACH_WAY`]). Of programs only packets are known: network-layer
/// bits, as they leave the last link of the path. Of datagrams they have their headers, too.
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

/// Names of the goodput up and down in the table `measures`, bit/s: what arrives of use to a simulated application after
/// the warm-up, without headers, retransmissions and messages of its protocol.
pub const GOODPUT_EACH_WAY: [&str; 2] = ["goodput up", "goodput down"];

/// Completed requests per second; one value per run.
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

/// Share of the foreground's packets that the links of its path dropped, in each direction in which it sends data; one
/// value per run. With the floor of 0.01, a loss of 0.1 % instead of none is a ratio of 1.1.
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

/// Time that packets of the foreground take from one host to the other, in each direction in which it sends data: mean,
/// p90 and p95 of each run (table `delays`). Segments of TCP are not timed: theirs is the propagation delay before any
/// change of the links, and the sum over the links of what packets wait there (table `waits`).
/// With the floor of 0.1 ms, 10 us more on a path without delay are a ratio of 1.1.
pub const DELAY: Measure = Measure {
    name: Cow::Borrowed("delay"),
    unit: Cow::Borrowed("s"),
    better: Better::Lower,
    censored: false,
    floor: 1e-4,
    source: Source::Delays,
    sufficient: true,
    primary: false,
    beside: false,
};

/// Share of the requests that failed; one value per run. With the floor of 0.01, 0.1 % of failures instead of none is a
/// ratio of 1.1.
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

/// Names of built-in measures, which need no definition.
pub const BUILT_IN: [&str; 8] = [
    "time",
    "first byte",
    "mean time",
    "failures",
    "goodput",
    "request rate",
    "loss",
    "delay",
];

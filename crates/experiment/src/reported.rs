//! Reads the measures that a program reports in its output.
//!
//! A value is found by a regular expression, by a JSONPath (RFC 9535), or in lines of JSON that the program writes to
//! the file [`LINES`] in its directory. Some programs choose the unit by the size of the value (wrk: `900us`,
//! `14.02ms`, `1.20s`). Therefore a second group of the expression captures the unit, and values are converted to the
//! unit of the measure.

use std::fmt;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use serde_json::Value;
use serde_json_path::JsonPath;
use swell_base::{Code, Warning};

use crate::measure::{Better, MeasureSample, Reported};

/// The file in a run's directory to which a program may write measures. Each line is an object with numbers under the
/// names of measures.
pub const LINES: &str = "measures.jsonl";

/// Where to find a value.
enum Source {
    /// In the client's standard output or standard error.
    Pattern(Regex),
    /// In the JSON on its standard output.
    Json(JsonPath),
    /// In [`LINES`].
    Lines,
}

impl Source {
    fn of(reported: &Reported) -> Result<Source, Wrong> {
        match (&reported.pattern, &reported.json) {
            (Some(_), Some(_)) => Err(wrong(
                "json",
                "`pattern` and `json` both say where it is",
                "give one of the two",
            )),
            (Some(pattern), None) => {
                let built = RegexBuilder::new(pattern).multi_line(true).build();
                let regex = built.map_err(|e| {
                    let text = e.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    wrong(
                        "pattern",
                        last.trim(),
                        "it is a regular expression as the Rust crate regex has them",
                    )
                })?;
                let unit = match regex.captures_len() - 1 {
                    0 => {
                        return Err(wrong(
                            "pattern",
                            "no group says where the number is",
                            r"write ([\d.]+) for the number",
                        ));
                    }
                    1 => false,
                    2 => true,
                    _ => {
                        return Err(wrong(
                            "pattern",
                            "more than two groups",
                            "one is for the number, one for its unit; (?:...) groups without telling",
                        ));
                    }
                };
                if unit && reported.unit.is_empty() {
                    return Err(wrong(
                        "unit",
                        "the pattern takes units, and there is none to convert them to",
                        "write a unit such as \"ms\"",
                    ));
                }
                Ok(Source::Pattern(regex))
            }
            (None, Some(path)) => match JsonPath::parse(path) {
                Ok(path) => Ok(Source::Json(path)),
                Err(e) => Err(wrong(
                    "json",
                    &e.to_string(),
                    "it is a JSONPath (RFC 9535), such as $.latency.p99",
                )),
            },
            (None, None) => Ok(Source::Lines),
        }
    }
}

/// A problem with the definition of a measure.
#[derive(Debug, PartialEq)]
pub struct Wrong {
    /// The key of [`Reported`].
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
    /// How to correct it.
    pub hint: &'static str,
}

fn wrong(key: &'static str, message: &str, hint: &'static str) -> Wrong {
    Wrong {
        key,
        message: message.into(),
        hint,
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.key, self.message, self.hint)
    }
}

impl std::error::Error for Wrong {}

/// Checks where a measure is to be found.
///
/// # Errors
/// If an expression or a path is malformed, or an expression has no group for the number.
pub fn check(reported: &Reported) -> Result<(), Wrong> {
    Source::of(reported).map(drop)
}

/// The output of one client process.
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// When the client ended, seconds since the start of the run.
    pub at: f64,
}

/// The values in the outputs of a run's clients and in `lines`, the text of [`LINES`], with doubts about them. Outputs
/// are taken one at a time, because they may be large. `stretch` is the number of seconds on the program's clock for one second of network time.
pub fn values(
    all: &[Reported],
    outputs: impl IntoIterator<Item = Output>,
    lines: &str,
    stretch: f64,
) -> (Vec<MeasureSample>, Vec<Warning>) {
    // The check of the experiment has already rejected malformed definitions.
    let sources = all.iter().filter_map(|reported| {
        let found = Values {
            reported,
            values: Vec::new(),
            unread: None,
        };
        Some((Source::of(reported).ok()?, found))
    });
    let mut sources: Vec<(Source, Values<'_>)> = sources.collect();
    let mut end: f64 = 0.0;
    for output in outputs {
        end = end.max(output.at);
        for (source, found) in &mut sources {
            match source {
                Source::Pattern(regex) => found.matches(regex, &output),
                Source::Json(path) => {
                    for document in documents(&output.stdout) {
                        for value in path.query(&document) {
                            found.value(value, output.at);
                        }
                    }
                }
                Source::Lines => {}
            }
        }
    }
    let (mut samples, mut doubts) = (Vec::new(), Vec::new());
    for (source, mut found) in sources {
        let reported = found.reported;
        if let Source::Lines = source {
            for line in lines.lines() {
                let object = serde_json::from_str::<Value>(line).ok();
                if let Some(value) = object.as_ref().and_then(|o| o.get(&reported.name)) {
                    found.value(value, end);
                }
            }
        }
        doubts.extend(found.doubt(&source));
        let factor = own_clock(&reported.unit, stretch);
        if factor.is_none() && stretch != 1.0 && !found.values.is_empty() {
            doubts.push(Warning::warning(
                Code::StretchedMeasure,
                format!(
                    "measure {}: time was stretched, and from its unit nobody can tell whether its values have to be; they are as the program said them",
                    reported.name
                ),
            ));
        }
        samples.extend(found.values.into_iter().map(|(value, at)| MeasureSample {
            measure: reported.name.clone(),
            value: value * factor.unwrap_or(1.0),
            at,
        }));
    }
    doubts.extend(odd_lines(all, lines));
    (samples, doubts)
}

/// Values of one measure.
struct Values<'r> {
    reported: &'r Reported,
    values: Vec<(f64, f64)>,
    /// A match that is not a number in the measure's unit.
    unread: Option<String>,
}

impl Values<'_> {
    fn matches(&mut self, regex: &Regex, output: &Output) {
        for text in [&output.stdout, &output.stderr] {
            for groups in regex.captures_iter(text) {
                let number = groups.get(1).map_or("", |g| g.as_str());
                let unit = groups.get(2).map_or("", |g| g.as_str());
                self.number(number, unit, output.at);
            }
        }
    }

    fn value(&mut self, value: &Value, at: f64) {
        match value {
            Value::Number(n) => self.add(n.as_f64(), 1.0, value, at),
            Value::String(text) => {
                let text = text.trim();
                let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c)));
                let (number, unit) = text.split_at(end.unwrap_or(text.len()));
                self.number(number, unit, at);
            }
            Value::Array(items) => items.iter().for_each(|item| self.value(item, at)),
            other => self.unread = Some(other.to_string()),
        }
    }

    fn number(&mut self, number: &str, unit: &str, at: f64) {
        let value = number.trim().parse().ok();
        let text = format!("{number}{unit}");
        match convert(unit.trim(), &self.reported.unit) {
            Some(factor) => self.add(value, factor, &text, at),
            None => self.unread = Some(text),
        }
    }

    fn add(&mut self, value: Option<f64>, factor: f64, text: &impl ToString, at: f64) {
        match value.filter(|x| x.is_finite()) {
            Some(x) => self.values.push((x * factor, at)),
            None => self.unread = Some(text.to_string()),
        }
    }

    /// A doubt if nothing was found, or not all of it could be read.
    fn doubt(&self, source: &Source) -> Option<Warning> {
        let r = self.reported;
        if let Some(text) = &self.unread {
            let unit = if r.unit.is_empty() {
                "no unit"
            } else {
                &r.unit
            };
            return Some(Warning::warning(
                Code::MeasureUnread,
                format!(
                    "measure {}: `{}` is no number of {unit}",
                    r.name,
                    clipped(text)
                ),
            ));
        }
        if !self.values.is_empty() {
            return None;
        }
        let how = match source {
            Source::Pattern(regex) => format!(
                "nothing in the client's output, which is kept with the run, matches `{regex}`; where the unit changes, a second group takes it: ([\\d.]+)(us|ms|s)"
            ),
            Source::Json(_) => format!(
                "there is nothing at {} in the JSON of the client's standard output, which is kept with the run",
                r.json.as_deref().unwrap_or_default()
            ),
            Source::Lines => format!(
                "no line of {{dir}}/{LINES} has it, as {{\"{}\": 12.3}} would",
                r.name
            ),
        };
        Some(Warning::warning(
            Code::MeasureMissing,
            format!("measure {}: {how}", r.name),
        ))
    }
}

/// The beginning of a text, for a message.
fn clipped(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The JSON documents in a text that may also contain other lines.
fn documents(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let begins = rest.trim_start().starts_with(['{', '[']);
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next().filter(|_| begins) {
            Some(Ok(value)) => {
                found.push(value);
                rest = &rest[stream.byte_offset()..];
            }
            // An incomplete document is the last output.
            Some(Err(e)) if e.is_eof() => break,
            _ => rest = rest.split_once('\n').map_or("", |(_, after)| after),
        }
    }
    found
}

/// A doubt about lines with unknown measures, and lines that are malformed.
fn odd_lines(all: &[Reported], lines: &str) -> Option<Warning> {
    let asked = |name: &str| {
        let by_line = |r: &&Reported| r.pattern.is_none() && r.json.is_none();
        all.iter().filter(by_line).any(|r| r.name == name)
    };
    let odd = lines.lines().filter(|l| !l.trim().is_empty());
    let odd = odd.filter_map(|line| match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(map)) => {
            let unknown = map.keys().find(|k| !asked(k))?;
            Some(format!(
                "`{}` is no measure of the experiment, so it is not counted",
                clipped(unknown)
            ))
        }
        _ => Some(format!(
            "`{}` is no JSON object; such lines say nothing",
            clipped(line)
        )),
    });
    let mut odd = odd.peekable();
    let first = odd.peek()?.clone();
    Some(Warning::warning(
        Code::OddMeasures,
        format!("{LINES}: {first}"),
    ))
}

/// The factor that converts a time or a rate on the program's clock to network time; `None` for other units.
fn own_clock(unit: &str, stretch: f64) -> Option<f64> {
    let per_time = ["/s", "/sec", "/second", "/seconds", "/min", "/minute"];
    if split(unit).1 == "s" {
        return Some(1.0 / stretch);
    }
    let lower = unit.to_lowercase();
    let plain = lower.strip_prefix(['k', 'm', 'g', 't']).unwrap_or(&lower);
    let is_rate = per_time.iter().any(|end| unit.ends_with(end))
        || PER_SECOND.contains(&&*lower)
        || PER_SECOND.contains(&plain);
    is_rate.then_some(stretch)
}

/// Abbreviations of rates, in lower case and without prefixes. The letters "ps" alone do not make one: there are drops
/// and hops.
const PER_SECOND: [&str; 11] = [
    "bps", "fps", "pps", "rps", "qps", "tps", "ops", "cps", "eps", "iops", "ibps",
];

/// The factor that converts a value from unit `from` to unit `to`. A value without a unit is in the unit of the
/// measure. A prefix without a unit, such as "1.25k", multiplies a unit that has none itself. Of `kB/s` nobody can tell
/// whether it means thousands of that or of `B/s`.
fn convert(from: &str, to: &str) -> Option<f64> {
    if from.is_empty() || from == to {
        return Some(1.0);
    }
    let ((a, base), (b, wanted)) = (split(from), split(to));
    match base {
        // "1.2k" of what is no unit with a prefix, such as "TPS" or "Messages/s".
        "" if wanted.is_empty() => Some(a / b),
        "" => (b == 1.0 || !takes_prefixes(to, wanted)).then_some(a),
        _ => (base == wanted).then_some(a / b),
    }
}

/// Whether a unit has a prefix before this base. Others only begin with a letter that could be one.
fn takes_prefixes(unit: &str, base: &str) -> bool {
    let plain = base.split('/').next().unwrap_or_default();
    let data = ["b", "B", "bit", "bits", "byte", "bytes", "Byte", "Bytes"];
    unit.starts_with('k')
        || data.contains(&plain)
        || ["s", "Hz"].contains(&base)
        || PER_SECOND.contains(&&*base.to_lowercase())
}

/// Splits a unit into a factor and a base unit. Prefixes are those of the SI and, before bits and bytes, the binary ones
/// of IEC 80000-13.
fn split(unit: &str) -> (f64, &str) {
    match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => return (1.0, "s"),
        // No kilo-"eys".
        "key" | "keys" | "key/s" | "keys/s" | "keys/sec" => return (1.0, unit),
        "m" | "min" | "mins" | "minutes" => return (60.0, "s"),
        "h" | "hour" | "hours" => return (3600.0, "s"),
        "msec" | "msecs" | "millis" => return (1e-3, "s"),
        "usec" | "usecs" | "micros" => return (1e-6, "s"),
        "nsec" | "nsecs" | "nanos" => return (1e-9, "s"),
        _ => {}
    }
    let mut letters = unit.chars();
    let factor = match letters.next() {
        Some('n') => 1e-9,
        Some('u' | 'µ' | 'μ') => 1e-6,
        Some('m') => 1e-3,
        Some('k' | 'K') => 1e3,
        Some('M') => 1e6,
        Some('G') => 1e9,
        Some('T') => 1e12,
        _ => return (1.0, unit),
    };
    let base = letters.as_str();
    let power = match factor {
        1e3 => 1,
        1e6 => 2,
        1e9 => 3,
        1e12 => 4,
        _ => 0,
    };
    if let Some(binary) = base.strip_prefix('i')
        && power > 0
        && (binary.is_empty() || binary.starts_with(['b', 'B']))
    {
        return (1024f64.powi(power), binary);
    }
    // Prefixes below one are accepted only for seconds: a "mile" is not a thousandth of an "ile".
    if (factor < 1.0) == (base == "s") {
        (factor, base)
    } else {
        (1.0, unit)
    }
}

impl FromStr for Reported {
    type Err = Wrong;

    /// Reads `NAME [(UNIT[, higher][, primary][, floor X])]: PATTERN`, `NAME ...: json:PATH` and `NAME ...: jsonl`.
    fn from_str(text: &str) -> Result<Reported, Wrong> {
        const FORM: &str =
            r"write 'NAME (UNIT): PATTERN', such as 'p99 (ms): Latency\s+([\d.]+)ms'";
        let cut =
            text.find([':', '=', '('])
                .ok_or(wrong("name", "no `:` behind the name", FORM))?;
        let name = text[..cut].trim();
        let mut better = Better::Lower;
        let mut unit = "";
        let mut floor = 0.0;
        let mut primary = false;
        let mut rest = &text[cut..];
        if let Some(inside) = rest.strip_prefix('(') {
            let (words, after) =
                inside
                    .split_once(')')
                    .ok_or(wrong("unit", "no `)` behind the unit", FORM))?;
            for word in words.split(',').map(str::trim) {
                match word {
                    "higher" => better = Better::Higher,
                    "lower" => better = Better::Lower,
                    "primary" => primary = true,
                    _ if word.starts_with("floor ") => {
                        floor = word["floor ".len()..].trim().parse().unwrap_or(f64::NAN);
                        if !(floor >= 0.0 && floor.is_finite()) {
                            return Err(wrong("floor", word, "write 0 or more, such as (floor 1)"));
                        }
                    }
                    _ if unit.is_empty() => unit = word,
                    _ => {
                        return Err(wrong(
                            "unit",
                            "two units",
                            "write (ms), (higher) or (requests/s, higher)",
                        ));
                    }
                }
            }
            rest = after.trim_start();
        }
        let source = rest
            .strip_prefix([':', '='])
            .ok_or(wrong("name", "no `:` behind the name", FORM))?
            .trim();
        if name.is_empty() || source.is_empty() {
            return Err(wrong(
                "name",
                "a measure needs a name and where it is found",
                FORM,
            ));
        }
        let (pattern, json) = match source.strip_prefix("json:") {
            Some(path) => (None, Some(path.trim().to_owned())),
            None if source == "jsonl" => (None, None),
            None => (Some(source.to_owned()), None),
        };
        let reported = Reported {
            name: name.into(),
            unit: unit.into(),
            better,
            pattern,
            json,
            floor,
            primary,
        };
        check(&reported)?;
        Ok(reported)
    }
}

#[cfg(test)]
mod tests;

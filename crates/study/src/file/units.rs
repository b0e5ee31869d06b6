//! How numbers are written.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::Unit;
use crate::words;

/// How numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Units {
    /// As they are.
    #[default]
    Plain,
    /// In percent.
    Share,
    /// In percent with their sign.
    Change,
    /// As a factor.
    Factor,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
}

impl Units {
    /// The unit of an axis.
    pub(crate) fn of_axis(self) -> Unit {
        match self {
            Units::Plain | Units::Factor => Unit::Plain,
            Units::Share | Units::Change => Unit::Share,
            Units::Seconds => Unit::Seconds,
            Units::Bytes => Unit::Bytes,
            Units::BitsPerSecond => Unit::BitsPerSecond,
        }
    }
}

/// A number as the page writes it.
pub(super) fn written(unit: Units, x: f64) -> String {
    let scaled = |name: &str| {
        let steps = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
        let step = steps.iter().find(|(size, _)| x.abs() >= *size);
        let (size, prefix) = step.copied().unwrap_or((1.0, ""));
        format!("{} {prefix}{name}", significant(x / size))
    };
    match unit {
        Units::Plain => significant(x),
        Units::Share => words::share(x),
        Units::Change => words::percent(x),
        Units::Factor => format!("× {}", significant(x)),
        Units::Bytes => scaled("B"),
        Units::BitsPerSecond => scaled("bit/s"),
        Units::Seconds if x.abs() < 1.0 && x != 0.0 => format!("{} ms", significant(x * 1e3)),
        Units::Seconds => format!("{} s", significant(x)),
    }
}

/// Four significant digits; whole numbers are printed in full.
fn significant(x: f64) -> String {
    if x == 0.0 || !x.is_finite() || (x == x.trunc() && x.abs() < 1e15) {
        return x.to_string();
    }
    let digits = 3 - x.abs().log10().floor() as i32;
    format!("{x:.*}", digits.clamp(0, 12) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_write_them() {
        for (unit, x, text) in [
            (Units::Plain, 0.123_456, "0.1235"),
            (Units::Plain, 833_100.0, "833100"),
            (Units::Share, 0.0513, "5.13 %"),
            (Units::Change, -0.25, "-25 %"),
            (Units::Factor, 1.5, "× 1.500"),
            (Units::BitsPerSecond, 12_340_000.0, "12.34 Mbit/s"),
            (Units::Seconds, 0.25, "250 ms"),
            (Units::Bytes, 0.0, "0 B"),
        ] {
            assert_eq!(written(unit, x), text);
        }
    }
}

//! Formats numbers for readers.

/// The quantity and stored unit of a number, which determine its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Seconds.
    Duration,
    /// A share from 0 to 1, written in percent.
    Share,
    /// Bytes.
    Bytes,
    /// Bits per second.
    Rate,
    /// A factor, written `1.96×`.
    Ratio,
    /// A count or a number without unit.
    Plain,
}

impl Quantity {
    /// The largest unit not above `value`: its size in base units, and its name. Prefixes are decimal.
    pub(crate) fn unit(self, value: f64) -> (f64, &'static str) {
        let units: &[(f64, &'static str)] = match self {
            Quantity::Duration => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
            Quantity::Share => return (0.01, "%"),
            Quantity::Bytes => &[
                (1e12, "TB"),
                (1e9, "GB"),
                (1e6, "MB"),
                (1e3, "kB"),
                (1.0, "B"),
            ],
            Quantity::Rate => &[
                (1e9, "Gbit/s"),
                (1e6, "Mbit/s"),
                (1e3, "kbit/s"),
                (1.0, "bit/s"),
            ],
            Quantity::Ratio => return (1.0, "×"),
            Quantity::Plain => return (1.0, ""),
        };
        let (smallest, biggest) = (units[units.len() - 1], units[0]);
        if value == 0.0 && self == Quantity::Duration {
            return biggest;
        }
        // A small tolerance, so that a tick computed as 0.9999999 s is a second.
        units
            .iter()
            .copied()
            .find(|u| value.abs() >= u.0 * (1.0 - 1e-9))
            .unwrap_or(smallest)
    }

    /// Its name in the page's script.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Quantity::Duration => "duration",
            Quantity::Share => "share",
            Quantity::Bytes => "bytes",
            Quantity::Rate => "rate",
            Quantity::Ratio => "ratio",
            Quantity::Plain => "plain",
        }
    }

    /// `value` with its unit at `digits` significant digits: `759 ms`, `1.48 s`, `12 %`, `1.96×`.
    /// A dash if it is not finite.
    pub fn show(self, value: f64, digits: usize) -> String {
        if !value.is_finite() {
            return "–".into();
        }
        if self == Quantity::Ratio {
            // Ratios are compared with 1, so they keep their hundredths: 0.91×, 1.00×, 12.3×.
            let decimals = if value.abs() < 9.995 { 2 } else { 1 };
            let number = format!("{value:.decimals$}");
            return format!("{number}×");
        }
        let (scale, unit) = self.unit(value);
        let number = significant(value / scale, digits);
        match unit {
            "" => number,
            // Rounding may reach the next unit: 999.9 ms becomes 1 s.
            _ if number == "1000" && self != Quantity::Share => {
                let (next, name) = self.unit(scale * 1000.0);
                format!("{}\u{a0}{name}", significant(value / next, digits))
            }
            _ => format!("{number}\u{a0}{unit}"),
        }
    }

    /// A tick label with the fewest digits that give the number exactly.
    pub(crate) fn tick(self, value: f64) -> String {
        let (scale, unit) = self.unit(value);
        let number = trimmed(value / scale);
        match unit {
            "" | "×" => format!("{number}{unit}"),
            _ => format!("{number}\u{a0}{unit}"),
        }
    }
}

/// `value` at `digits` significant digits, without exponent below 1e15, minus as U+2212.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    // The exponent after rounding: 9.996 at three digits is 10.0, not 10.00.
    let rounded = format!("{:.*e}", digits.clamp(1, 15) - 1, value.abs());
    let magnitude: i32 = rounded
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let decimals = (digits as i32 - 1 - magnitude).clamp(0, 12) as usize;
    let mut text = format!("{:.decimals$}", value.abs());
    if value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        text.insert(0, '−');
    }
    text
}

/// `value` with exactly `decimals` decimals; zero is always `0`.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    if !text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        "0".into()
    } else if value < 0.0 {
        format!("−{text}")
    } else {
        text
    }
}

/// `value` with up to six decimals, trailing zeros removed.
pub(crate) fn trimmed(value: f64) -> String {
    let text = format!("{:.6}", value.abs());
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if value < 0.0 && text != "0" {
        format!("−{text}")
    } else {
        text.to_owned()
    }
}

/// A count with thin spaces between groups of three digits.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_people_write_them() {
        let nb = |s: &str| s.replace(' ', "\u{a0}");
        for (q, v, want) in [
            (Quantity::Duration, 1.4844, "1.48 s"),
            (Quantity::Duration, 0.7591, "759 ms"),
            (Quantity::Duration, 0.9999, "1.00 s"),
            (Quantity::Duration, 0.0, "0 s"),
            (Quantity::Duration, 3.2e-5, "32.0 µs"),
            (Quantity::Share, 0.1234, "12.3 %"),
            (Quantity::Share, 9.996, "1000 %"),
            (Quantity::Bytes, 1_500.0, "1.50 kB"),
            (Quantity::Rate, 20e6, "20.0 Mbit/s"),
            (Quantity::Ratio, 1.956, "1.96×"),
            (Quantity::Ratio, 9.996, "10.0×"),
            (Quantity::Ratio, 0.905, "0.91×"),
            (Quantity::Plain, -0.5, "−0.500"),
            (Quantity::Plain, f64::NAN, "–"),
        ] {
            assert_eq!(q.show(v, 3), nb(want), "{v}");
        }
    }

    #[test]
    fn ticks_are_exact_and_counts_grouped() {
        assert_eq!(Quantity::Duration.tick(0.01), "10\u{a0}ms");
        assert_eq!(Quantity::Duration.tick(10.0), "10\u{a0}s");
        assert_eq!(Quantity::Ratio.tick(1.5), "1.5×");
        assert_eq!(Quantity::Share.tick(0.25), "25\u{a0}%");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(12), "12");
    }
}

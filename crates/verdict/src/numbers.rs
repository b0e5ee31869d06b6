//! Numbers in sentences.

use swell_stats::Estimate;

use super::ratios::Known;

/// A value with three significant digits and its unit; bits per second in a readable multiple.
pub(super) fn quantity(x: f64, unit: &str) -> String {
    let (x, unit) = match unit {
        "bit/s" if x >= 1e6 => (x / 1e6, "Mbit/s"),
        "bit/s" if x >= 1e3 => (x / 1e3, "kbit/s"),
        _ => (x, unit),
    };
    let decimals = match x.abs() {
        0.0 => 0,
        a => (2 - a.log10().floor() as i32).clamp(0, 6) as usize,
    };
    let text = format!("{x:.decimals$}");
    match unit {
        "" => text,
        unit => format!("{text} {unit}"),
    }
}

pub(super) fn digits(x: f64) -> String {
    match x {
        x if x >= 100.0 => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}

pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// For example "2.10 times (1.80 to 2.40)" or "at least 5.10 times".
pub(super) fn times(e: &Estimate) -> String {
    match Known::of(e) {
        Known::AtLeast(low) => format!("at least {low:.2} times"),
        Known::AtMost(high) => format!("at most {high:.2} times"),
        Known::Value => format!("{:.2} times (no interval)", e.value),
        Known::Interval => format!("{:.2} times ({:.2} to {:.2})", e.value, e.low, e.high),
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A rate in Mbit/s with so many decimals, or two digits of less than a tenth.
pub(super) fn mega(bps: f64, decimals: usize) -> String {
    match bps / 1e6 {
        x if x > 0.0 && x < 0.1 => format!("{:.*}", (1.0 - x.log10().floor()).min(6.0) as usize, x),
        x => format!("{x:.decimals$}"),
    }
}
